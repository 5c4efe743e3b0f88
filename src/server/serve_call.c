/* SPDX-License-Identifier: Apache-2.0 */
/* serve_call.c - see serve_call.h. */
#include "server/serve_call.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "server/serve_answer.h"

serve_call *serve_call_new(void) {
    serve_call *c = serve_alloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    atomic_init(&c->references, 1);
    c->fd = -1;
    c->n = 1;
    c->predicting = -1;
    return c;
}

static void made_free(serve_made *m) {
    serve_bytes_free(&m->text);
    hn_free(m->tokens);
    hn_free(m->logprobs);
    hn_free(m->top);
    hn_free(m->prompt_logprobs);
    hn_free(m->prompt_top);
    hn_free(m->pooled);
    *m = (serve_made){0};
}

static void choice_free(serve_choice *c) {
    made_free(&c->made);
    made_free(&c->taken);
    serve_bytes_free(&c->text);
    serve_parts_free(&c->parts);
    hn_free(c->told.id);
    hn_free(c->tokens);
    hn_free(c->logprobs);
    hn_free(c->top);
    hn_free(c->prompt_logprobs);
    hn_free(c->prompt_top);
    hn_free(c->by_length);
    hn_free(c->pooled);
}

void serve_call_release(serve_call *c) {
    if (!c || atomic_fetch_sub(&c->references, 1) != 1) return;
    for (int i = 0; i < c->n_choices; i++) choice_free(&c->choices[i]);
    hunch_tools_close(&c->tools);
    hunch_tools_close(&c->forbidden);
    for (int i = 0; i < c->n_prompts; i++) {
        hunch_free(c->prompts[i].ids);
        serve_bytes_free(&c->prompts[i].text);
    }
    for (int i = 0; i < c->request.n_stop; i++) hn_free((void *)(uintptr_t)c->request.stop[i]);
    hunch_grammar_close(&c->request.grammar);
    hn_free((void *)(uintptr_t)c->request.stop_tokens);
    hn_free((void *)(uintptr_t)c->request.salt);
    for (int i = 0; i < c->request.sampling.n_dry_breakers; i++)
        hn_free((void *)(uintptr_t)c->request.sampling.dry_breakers[i]);
    hn_free((void *)(uintptr_t)c->request.stop);
    hn_free((void *)(uintptr_t)c->request.sampling.dry_breakers);
    hn_free((void *)(uintptr_t)c->request.sampling.bias);
    hunch_free((void *)(uintptr_t)c->request.prediction);
    json_decref(c->asked);
    json_decref(c->said);
    hn_free(c->prompts);
    hn_free(c->choices);
    pthread_mutex_destroy(&c->lock);
    hn_free(c);
}

void serve_call_choices(serve_call *c) {
    c->n_choices = c->n_prompts * c->n;
    c->left = c->n_choices;
    c->choices = serve_alloc((size_t)c->n_choices, sizeof *c->choices);
    for (int i = 0; i < c->n_choices; i++)
        c->choices[i] = (serve_choice){.call = c,
                                       .index = i,
                                       .prompt = &c->prompts[i / c->n],
                                       .parts.split.thinking = c->prompts[i / c->n].thinks,
                                       .seed = c->request.sampling.seed + (uint64_t)(i % c->n)};
}

void serve_call_wake(serve_call *c) {
    if (!c->asleep || !c->wake) return;
    c->asleep = false;
    c->wake(c->wake_user);
}

size_t serve_call_prompt_tokens(const serve_call *c) {
    size_t sum = 0;
    for (int i = 0; i < c->n_prompts; i++) sum += c->prompts[i].n;
    return sum;
}

size_t serve_call_unsent(const serve_call *c) {
    size_t sum = 0;
    for (int i = 0; i < c->n_choices; i++) sum += c->choices[i].made.n_tokens;
    return sum;
}

/* ---- what the reader has ------------------------------------------------------------------------------------- */

void serve_call_collect(serve_call *c) {
    for (int i = 0; i < c->n_choices; i++) {
        serve_choice *one = &c->choices[i];
        one->taken = one->made;
        one->made = (serve_made){0};
        one->predicted = one->made_predicted;
        one->predicted_right = one->made_right;
        if (one->over && !one->done) one->state = one->end;
        one->done = one->over;
    }
    c->say_comment = c->comment;
    c->comment = c->untaken = false;
}

/* n elements behind the n_had that there are; an array of the reader's own if there are none. */
static bool list_join(void **to, size_t *cap, size_t n_had, void **from, size_t cap_from, size_t n, size_t size) {
    if (n == 0) return true;
    if (n_had == 0) {
        hn_free(*to);
        *to = *from;
        *cap = cap_from;
        *from = NULL;
        return true;
    }
    if (!hn_grow(to, cap, n_had + n, size)) return false;
    memcpy((char *)*to + n_had * size, *from, n * size);
    return true;
}

static bool made_join(serve_choice *c) {
    serve_made *m = &c->taken;
    const size_t top = (size_t)(c->n_top ? c->n_top : m->n_top);
    if (m->n_top) c->n_top = m->n_top;
    const bool ok = list_join((void **)&c->text.at, &c->text.cap, c->text.n, (void **)&m->text.at, m->text.cap, m->text.n, 1) &&
                    (!m->logprobs || list_join((void **)&c->logprobs, &c->cap_logprobs, c->n_tokens, (void **)&m->logprobs,
                                               m->cap_logprobs, m->n_tokens, sizeof *m->logprobs)) &&
                    (!m->top || list_join((void **)&c->top, &c->cap_top, c->n_tokens * top, (void **)&m->top, m->cap_top,
                                          m->n_tokens * top, sizeof *m->top)) &&
                    list_join((void **)&c->tokens, &c->cap_tokens, c->n_tokens, (void **)&m->tokens, m->cap_tokens, m->n_tokens,
                              sizeof *m->tokens);
    if (!ok) return false;
    c->text.n += m->text.n;
    c->n_tokens += m->n_tokens;
    if (m->prompt_logprobs) {
        c->prompt_logprobs = m->prompt_logprobs, c->prompt_top = m->prompt_top;
        m->prompt_logprobs = NULL, m->prompt_top = NULL;
    }
    if (m->pooled) c->pooled = m->pooled, c->n_pooled = m->n_pooled, m->pooled = NULL;
    return true;
}

/* What the text is made of, as far as that is known. */
static bool parts_make(serve_choice *c) {
    const serve_call *call = c->call;
    if (!call->chat || call->whole_text) return serve_parts_one(&c->parts, c->text.n);
    return serve_parts_grow(&c->parts, call->model, c->text.at, c->text.n, c->done, c->done && (serve_is_cut(c) || serve_is_stopped(c)));
}

void serve_call_absorb(serve_call *c) {
    for (int i = 0; i < c->n_choices; i++) {
        serve_choice *one = &c->choices[i];
        if (one->absorbed) continue;
        const bool ok = made_join(one) && parts_make(one);
        made_free(&one->taken);
        one->absorbed = one->done;
        if (ok) continue;
        hn_fail(&one->state.error, HUNCH_NO_MEMORY, "no memory for the answer");
        one->state.finish = HUNCH_FINISH_FAILED;
        one->done = one->absorbed = true;
    }
}

bool serve_call_over(const serve_call *c) {
    for (int i = 0; i < c->n_choices; i++)
        if (!c->choices[i].done) return false;
    return true;
}
