/* SPDX-License-Identifier: Apache-2.0 */
/* serve_call.c - see serve_call.h. */
#include "server/serve_call.h"

#include "base/mem.h"

serve_call *serve_call_new(void) {
    serve_call *c = serve_alloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    atomic_init(&c->references, 1);
    c->fd = -1;
    c->n = 1;
    c->predicting = -1;
    return c;
}

static void choice_free(serve_choice *c) {
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
    for (int i = 0; i < c->n_choices; i++) sum += c->choices[i].n_tokens - c->choices[i].sent_tokens;
    return sum;
}
