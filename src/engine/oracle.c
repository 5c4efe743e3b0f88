/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - the plain text of a request, for drafters that shall be right on purpose (`forced`, key `force` of heads). A second engine
 * without drafters generates it before the session begins, so neither rounds nor sessions of this engine know of it.
 *
 * The texts of the newest requests are kept: a benchmark asks everything once before it measures, so that no text is generated while it
 * does. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "engine/drafting.h"

enum { KEPT_TEXTS = 512 };

struct hn_oracle_kept {
    struct {
        uint64_t key; /* 0: none */
        int32_t *token;
        int n;
    } text[KEPT_TEXTS];
    int next; /* the oldest, whose place the next one takes */
};

hunch_status hn_oracle_open(hunch_engine *e, const hunch_engine_options *o, hunch_error *err) {
    bool needed = false;
    for (int i = 0; i < e->n_drafters; i++) needed |= e->drafter[i].needs.oracle;
    if (!needed) return HUNCH_OK;
    hunch_engine_options plain = *o;
    plain.drafts = NULL;
    plain.n_drafts = 0;
    plain.context = e->context;
    plain.parallel = 1;
    plain.pool_rows = e->context; /* one text at a time */
    plain.state_bytes = 0;
    plain.no_prefix_reuse = true;
    e->oracle_kept = hn_zalloc(1, sizeof *e->oracle_kept);
    if (!e->oracle_kept) return hn_fail_memory(err, "plain continuations", sizeof *e->oracle_kept);
    return hunch_engine_open(&e->plain, e->model, &plain, err);
}

void hn_oracle_close(hunch_engine *e) {
    hunch_engine_close(&e->plain);
    for (int i = 0; e->oracle_kept && i < KEPT_TEXTS; i++) hn_free(e->oracle_kept->text[i].token);
    hn_free(e->oracle_kept);
    e->oracle_kept = NULL;
}

static uint64_t word_of(double x) {
    uint64_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

/* What the text depends on; 0: on more than is compared here, so it is not kept. */
static uint64_t key_of(const hunch_request *r) {
    const hunch_sampling *s = &r->sampling;
    const bool penalties = (s->repetition_penalty != 0 && s->repetition_penalty != 1) || s->frequency_penalty != 0 ||
                           s->presence_penalty != 0 || s->dry_multiplier != 0;
    const bool ends = r->n_stop || r->n_stop_tokens || r->min_tokens || r->loop_tokens;
    const bool more = penalties || ends || r->grammar || r->thinking_budget || s->n_bias || s->xtc_probability != 0;
    const uint64_t words[] = {(uint64_t)r->max_tokens, r->ignore_eos,     s->seed,
                              word_of(s->temperature), (uint64_t)s->top_k, word_of(s->top_p),
                              word_of(s->min_p),       word_of(s->top_n_sigma), word_of(s->typical_p)};
    uint64_t key = hn_hash_tokens(r->n_prompt, r->prompt, (int)r->n_prompt);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) key = hn_hash_word(key, words[i]);
    return more ? 0 : key | 1;
}

/* False: it is not kept, or there is no memory. */
static bool kept_find(const hunch_engine *e, uint64_t key, int32_t **out, int *n) {
    for (int i = 0; key && i < KEPT_TEXTS; i++) {
        const size_t bytes = (size_t)e->oracle_kept->text[i].n * sizeof **out;
        if (e->oracle_kept->text[i].key != key || !(*out = hn_alloc(bytes))) continue;
        memcpy(*out, e->oracle_kept->text[i].token, bytes);
        *n = e->oracle_kept->text[i].n;
        return true;
    }
    return false;
}

static void kept_add(hunch_engine *e, uint64_t key, const int32_t *token, int n) {
    const int at = e->oracle_kept->next;
    int32_t *own = key ? hn_alloc((size_t)n * sizeof *own) : NULL;
    if (!own) return;
    memcpy(own, token, (size_t)n * sizeof *own);
    hn_free(e->oracle_kept->text[at].token);
    e->oracle_kept->text[at].key = key;
    e->oracle_kept->text[at].token = own;
    e->oracle_kept->text[at].n = n;
    e->oracle_kept->next = (at + 1) % KEPT_TEXTS;
}

static hunch_status copy_text(const hunch_session *s, int32_t **out, int *n, hunch_error *err) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    if (st.finish == HUNCH_FINISH_FAILED) return hn_fail(err, st.error.status, "%s", st.error.message);
    *out = hn_alloc(st.n_tokens * sizeof **out);
    if (!*out) return hn_fail_memory(err, "plain continuation", st.n_tokens * sizeof **out);
    memcpy(*out, st.tokens, st.n_tokens * sizeof **out);
    *n = (int)st.n_tokens;
    return HUNCH_OK;
}

hunch_status hn_oracle_text(hunch_engine *e, const hunch_request *r, int32_t **out, int *n, hunch_error *err) {
    hunch_session *s = NULL;
    hunch_request plain = *r;
    if (!e->plain) return HUNCH_OK;
    const uint64_t key = key_of(r);
    if (kept_find(e, key, out, n)) return HUNCH_OK;
    plain.drafters = HUNCH_ALL_DRAFTERS;
    plain.deadline_s = 0;
    plain.on_logits = NULL;
    plain.on_round = NULL;
    plain.on_output = NULL;
    plain.logprobs = plain.prompt_logprobs = plain.prompt_only = false;
    plain.pooling = HUNCH_POOL_NONE;
    plain.top_logprobs = 0;
    hunch_status st = hunch_session_open(&s, e->plain, &plain, err);
    if (!st) st = hunch_engine_run(e->plain, err);
    if (!st) st = copy_text(s, out, n, err);
    if (!st) kept_add(e, key, *out, *n);
    hunch_session_close(&s);
    return st;
}
