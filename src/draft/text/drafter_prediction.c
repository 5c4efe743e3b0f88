/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_prediction.c - follows a text that the caller expects the answer to resemble (a file to edit, an earlier answer).
 *
 *   prediction[:FILE][,depth=K][,window=N][,places=P]
 *
 *   FILE    UTF-8 text that is expected if a request has no prediction of its own
 *   depth   tokens of a draft                                                             16
 *   window  tokens on both sides of a break in which two agreeing tokens resume it        64
 *   places  continuations: 1, or up to 4, those of other places with the same tokens before them as branches   1
 *
 * prediction_cursor.h describes how the position is kept through insertions, deletions and replacements. A draft is one
 * chain, one-hot; short after a recent break, and none if the position is lost or the prediction has ended. With more places what
 * follows the same tokens elsewhere in the prediction are branches beside it.
 * The estimates follow the measured results: how often a position that was found was right, how often an established one
 * broke.
 */
#include <assert.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "draft/draft_nodes.h"
#include "draft/text/prediction_cursor.h"

enum { FILE_MOST = 64 << 20, TOKENS_MOST = 1 << 24 };

typedef struct prediction_seq {
    hn_prediction_text own;
    const hn_prediction_text *text; /* own, the file's, or NULL: nothing is predicted */
    hn_cursor cursor;
    int seen; /* emitted tokens that the cursor has processed */
    hn_draft_chain chain;
    hn_draft_nodes nodes; /* the chain, and the branches of other places */
} prediction_seq;

typedef struct prediction_state {
    int depth, window, places, n_seqs;
    hn_prediction_text file;
    prediction_seq *seq; /* [n_seqs] */
} prediction_state;

/* ---- open -------------------------------------------------------------------------------------------------------- */

static void prediction_close(hn_drafter *d);

/* Refuses text in another encoding, with the byte that shows it: invalid UTF-8, or a NUL, which UTF-16 has many of. */
static hunch_status encoding_check(const char *path, const char *data, size_t size, hunch_error *err) {
    const size_t valid = hn_utf8_check(data, size);
    const char *nul = memchr(data, 0, valid);
    if (!nul && valid == size) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "%s: not UTF-8 text at byte %zu, expected a prediction in that encoding", path,
                   nul ? (size_t)(nul - data) : valid);
}

static hunch_status ids_take(prediction_state *st, const char *path, const int32_t *id, size_t n, int vocab,
                             hunch_error *err) {
    if (n > TOKENS_MOST)
        return hn_fail(err, HUNCH_USAGE, "%s: a prediction of %zu tokens, expected at most %d", path, n, TOKENS_MOST);
    for (size_t i = 0; i < n; i++)
        if (id[i] >= vocab)
            return hn_fail(err, HUNCH_USAGE, "%s: token %d is outside the model's vocabulary of %d", path, (int)id[i],
                           vocab);
    return hn_prediction_text_init(&st->file, id, (int)n, err);
}

static hunch_status file_open(prediction_state *st, const hn_spec *spec, const hn_target_info *target,
                              hunch_error *err) {
    static const char mark[] = "\xEF\xBB\xBF"; /* byte-order mark of UTF-8: not part of the text */
    if (!target->tokenizer)
        return hn_fail(err, HUNCH_USAGE, "a prediction file needs a tokenizer, and this model has none");
    char *data;
    size_t size, n = 0;
    int32_t *id = NULL;
    hunch_status s = hn_file_read(spec->path, FILE_MOST, &data, &size, err);
    if (s) return s;
    const size_t skip = size >= 3 && !memcmp(data, mark, 3) ? 3 : 0;
    s = encoding_check(spec->path, data, size, err);
    if (!s) s = hn_tokenizer_encode(target->tokenizer, data + skip, size - skip, 0, &id, &n, err);
    if (!s) s = ids_take(st, spec->path, id, n, target->vocab, err);
    hn_free(id);
    hn_free(data);
    return s;
}

static hunch_status prediction_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs,
                                    hunch_error *err) {
    long depth, window, places;
    hunch_status s = hn_spec_int(spec, "depth", 1, HN_CHAIN_MAX, 16, &depth, err);
    if (!s) s = hn_spec_int(spec, "window", 1, 1024, 64, &window, err);
    if (!s) s = hn_spec_int(spec, "places", 1, HN_CURSOR_PLACES, 1, &places, err);
    if (s) return s;
    prediction_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "drafter 'prediction'", sizeof *st);
    *st = (prediction_state){.depth = (int)depth, .window = (int)window, .places = (int)places, .n_seqs = d->max_seqs};
    d->state = st;
    st->seq = hn_zalloc((size_t)st->n_seqs, sizeof *st->seq);
    if (!st->seq)
        s = hn_fail_memory(err, "drafter 'prediction'", (size_t)st->n_seqs * sizeof *st->seq);
    else if (spec->path && (s = file_open(st, spec, target, err)))
        hn_error_prefix(err, "drafter '%s'", spec->text);
    if (s) {
        prediction_close(d);
        return s;
    }
    needs->max_depth = st->depth;
    needs->branches = places > 1;
    return HUNCH_OK;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static void follow(const prediction_state *st, prediction_seq *q, const hn_committed_text *t) {
    const int emitted = t->n - t->n_prompt;
    for (; q->seen < emitted; q->seen++)
        hn_cursor_advance(&q->cursor, q->text, t->token + t->n_prompt, q->seen, st->window);
}

enum { OTHER_DEPTH = 8, CONTEXT = 16 }; /* tokens of a branch; of the text before the chain that other places are found by */

/* What goes on after the first `done` tokens of the chain as at other places where the tokens before occur: text [n]. */
static void branches_push(const prediction_state *st, prediction_seq *q, int done, const int32_t *text, int n) {
    int at[HN_CURSOR_PLACES];
    const int32_t next = done < q->chain.len ? q->chain.token[done] : -1;
    const int others = hn_prediction_others(q->text, text, n, next, at, st->places - 1);
    for (int k = 0; k < others; k++)
        for (int i = 0, from = done - 1; i < OTHER_DEPTH && done + i < st->depth && at[k] + i < q->text->n; i++) {
            const float estimate = i == 0 ? q->cursor.other_rate / (float)(k + 1) : q->cursor.found_rate;
            from = hn_draft_nodes_push(&q->nodes, from, q->text->token[at[k] + i], estimate);
            if (from < 0) return;
        }
}

/* The chain, and beside each of its tokens what other places have there. */
static void round_begin(const prediction_state *st, prediction_seq *q, const hn_propose *p) {
    int32_t text[CONTEXT + HN_CHAIN_MAX];
    const hn_committed_text *t = &p->text;
    const int emitted = t->n - t->n_prompt, n = emitted < CONTEXT ? emitted : CONTEXT;
    hn_draft_chain_start(&q->chain, t->n);
    hn_cursor_draft(&q->cursor, q->text, st->depth, &q->chain);
    hn_draft_nodes_start(&q->nodes, p);
    for (int i = 0; i < q->chain.len; i++) hn_draft_nodes_push(&q->nodes, i - 1, q->chain.token[i], q->chain.estimate[i]);
    if (st->places == 1 || p->chain) return;
    memcpy(text, t->token + t->n - n, (size_t)n * sizeof *text);
    memcpy(text + n, q->chain.token, (size_t)q->chain.len * sizeof *text);
    for (int i = 0; i <= q->chain.len; i++) branches_push(st, q, i, text, n + i);
}

static int prediction_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    const prediction_state *st = d->state;
    int added = 0;
    for (int i = 0; i < n; i++) {
        prediction_seq *q = &st->seq[p[i].seq];
        if (!q->text) continue;
        if (level == 0) {
            follow(st, q, &p[i].text);
            round_begin(st, q, &p[i]);
        }
        added += hn_draft_nodes_propose(&q->nodes, &p[i], d->index, level);
    }
    return added;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void seq_restart(prediction_seq *q) {
    hn_cursor_init(&q->cursor);
    q->seen = q->chain.len = q->nodes.n = 0;
}

static void prediction_end(hn_drafter *d, int seq) {
    prediction_state *st = d->state;
    prediction_seq *q = &st->seq[seq];
    hn_prediction_text_fini(&q->own);
    q->text = NULL;
    seq_restart(q);
}

static hunch_status prediction_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err) {
    prediction_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        prediction_end(d, seqs[i].seq);
        prediction_seq *q = &st->seq[seqs[i].seq];
        if (seqs[i].prediction) {
            hunch_status s = hn_prediction_text_init(&q->own, seqs[i].prediction, seqs[i].n_prediction, err);
            if (s) return s;
            q->text = &q->own;
        } else if (st->file.n > 0) {
            q->text = &st->file;
        }
        if (q->text) follow(st, q, &seqs[i].text);
    }
    return HUNCH_OK;
}

static void prediction_close(hn_drafter *d) {
    prediction_state *st = d->state;
    for (int i = 0; st->seq && i < st->n_seqs; i++) hn_prediction_text_fini(&st->seq[i].own);
    hn_prediction_text_fini(&st->file);
    hn_free(st->seq);
    hn_free(st);
    d->state = NULL;
}

/* A request's own prediction is not known here. */
static size_t prediction_text_bytes(const hn_drafter *d HN_UNUSED, int tokens HN_UNUSED) {
    return sizeof(prediction_seq);
}

static const hn_drafter_ops ops = {
    .open = prediction_open,
    .begin = prediction_begin,
    .propose = prediction_propose,
    .text_bytes = prediction_text_bytes,
    .end = prediction_end,
    .close = prediction_close,
};

static const hn_drafter_help help = {
    "[:FILE]",
    "the text of FILE, or the \"prediction\" of a prompt's row; survives insertions, deletions, renames",
    {{"depth", "1..63", "tokens drafted at most, default 16"},
     {"window", "1..1024", "tokens within which it finds its position again, default 64"},
     {"places", "1..4", "continuations where several places fit, default 1"}}};
const hn_drafter_kind hn_drafter_prediction = {.name = "prediction", .help = &help, .ops = &ops};
