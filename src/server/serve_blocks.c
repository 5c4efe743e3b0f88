/* SPDX-License-Identifier: Apache-2.0 */
/* serve_blocks.c - see serve_blocks.h. */
#include "server/serve_blocks.h"

#include "server/serve_answer.h"
#include "server/serve_tools.h"

static const serve_bytes *source_of(const serve_choice *one, serve_block_kind kind) {
    return kind == SERVE_BLOCK_THINKING ? &one->parts.thinking : serve_choice_answer(one);
}

const hunch_call *serve_block_call(const serve_choice *one) {
    hunch_answer a;
    hunch_calls_get(one->parts.calls, &a);
    return &a.call[one->sent_calls - 1];
}

const char *serve_block_text(const serve_choice *one, size_t *n) {
    const serve_block *b = &one->block;
    if (b->kind == SERVE_BLOCK_CALL) {
        const hunch_call *call = serve_block_call(one);
        *n = call->n_arguments;
        return *n ? call->arguments : "";
    }
    const serve_bytes *all = source_of(one, b->kind);
    *n = (b->kind == SERVE_BLOCK_THINKING ? one->sent_thinking : one->sent_text) - b->from;
    return *n ? all->at + b->from : "";
}

static void block_close(serve_choice *one, const serve_block_events *e, void *to) {
    if (one->block.kind == SERVE_BLOCK_NONE) return;
    e->close(to, one);
    one->block.kind = SERVE_BLOCK_NONE;
    one->block.index++;
}

static void block_open(serve_choice *one, serve_block_kind kind, size_t from, const serve_block_events *e, void *to) {
    block_close(one, e, to);
    one->block.kind = kind;
    one->block.from = from;
    if (e->open) e->open(to, one);
}

/* What is new of thinking, or of the answer's text. */
static void text_next(serve_choice *one, serve_block_kind kind, size_t *sent, const serve_block_events *e, void *to) {
    const serve_bytes *all = source_of(one, kind);
    const size_t from = *sent;
    if (all->n == from) return;
    if (one->block.kind != kind) block_open(one, kind, from, e, to);
    *sent = all->n;
    if (e->add) e->add(to, one, all->at + from, all->n - from);
}

void serve_blocks_next(serve_choice *one, const serve_block_events *e, void *to) {
    serve_tools_news news;
    const size_t had = one->sent_text + one->sent_thinking;
    text_next(one, SERVE_BLOCK_THINKING, &one->sent_thinking, e, to);
    text_next(one, SERVE_BLOCK_TEXT, &one->sent_text, e, to);
    while (!one->call->whole_text && serve_tools_next(one, &news)) {
        if (news.begins) block_open(one, SERVE_BLOCK_CALL, 0, e, to);
        else if (e->add) e->add(to, one, news.arguments, news.n);
    }
    /* Log-probabilities of tokens whose text is still held back come with that. */
    if (!one->call->request.logprobs || one->sent_text + one->sent_thinking > had || one->done) one->sent_tokens = one->n_tokens;
    if (!one->done) return;
    if (one->block.kind == SERVE_BLOCK_NONE && one->block.index == 0) block_open(one, SERVE_BLOCK_TEXT, 0, e, to);
    one->block.last = true;
    block_close(one, e, to);
}
