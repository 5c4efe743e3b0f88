/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the insides of the three public handles. Files: model_api.c (load, text), engine.c (open and close),
 * session.c (one text: what is emitted and when it ends), round.c (the one round of all sessions), look_api.c (evaluate,
 * inspect, convert, measure). */
#ifndef HN_ENGINE_H
#define HN_ENGINE_H
#include "cache/cache.h"
#include "draft/drafter.h"
#include "model/model.h"
#include "model/pass.h"
#include "text/template.h"
#include "text/tokenizer.h"
#include "verify/verify.h"

struct hunch_model {
    hn_model target;
    hn_tokenizer *tokenizer;   /* NULL: none */
    hn_template *chat;         /* NULL: none */
    char *chat_bos, *chat_eos; /* names of those tokens for the template, "" if absent */
    int threads;
    double load_seconds;
    hunch_precision precision;
};

struct hunch_engine {
    hunch_model *model;
    hn_cache *cache;
    hn_runner *runner;
    hn_drafter *drafter; /* [n_drafters] */
    int n_drafters;
    bool needs_oracle, feeds; /* what its drafters asked for */
    int context, parallel, chunk;
    hunch_verify verify;
    hunch_session **session; /* [parallel], by id; NULL: free */
    int measured;            /* the inside sequence (id `parallel`) is live with rows for hunch_measure_pass */
};

struct hunch_session {
    hunch_engine *engine;
    int id;
    bool plain; /* never drafts: the oracle's own run */
    hn_sampler sampler;
    hn_rule rule;
    bool ignore_eos;
    void (*on_logits)(void *user, size_t index, const float *logits, int vocab);
    void *on_logits_user;
    /* committed text: prompt, then what was emitted; the newest token's row is not in the cache */
    int32_t *text;
    size_t n_text, n_prompt, cap_text;
    int16_t *provenance; /* of emitted tokens */
    size_t cap_provenance, max_new;
    /* what a reader sees */
    hn_detok detok;
    char *out;
    size_t out_len, out_cap, shown;
    char **stop;
    int n_stop;
    size_t longest_stop;
    /* this round */
    hn_tree tree;
    int first_row, n_rows;     /* in the pass */
    hunch_session_state stats; /* its counters and times; pointers are filled by hunch_session_get */
};

double hn_now(void); /* monotonic seconds */

/* Starts a session without its drafters: prompt checked and copied, sampler made. */
hunch_status hn_session_create(hunch_session **out, hunch_engine *e, const hunch_request *r, int id, hunch_error *err);
void hn_session_destroy(hunch_session *s);
static inline size_t hn_session_emitted(const hunch_session *s) {
    return s->n_text - s->n_prompt;
}
static inline bool hn_session_running(const hunch_session *s) {
    return s->stats.finish == HUNCH_RUNNING;
}
/* Appends one token: text, stop strings, end of sequence, limits. True if it ended the session. */
hunch_status hn_session_emit(hunch_session *s, int32_t token, int provenance, const float *logits, bool *ended,
                             hunch_error *err);
void hn_session_finish(hunch_session *s, hunch_finish how);
void hn_session_fail(hunch_session *s, const hunch_error *err);
/* Ends the sequence in the cache and in the drafters; idempotent. */
void hn_session_release(hunch_session *s);

/* Drops the rows that hunch_measure_pass keeps between calls in the inside sequence. */
void hn_look_end_measure(hunch_engine *e);

/* One round over the given running sessions. */
hunch_status hn_round(hunch_engine *e, hunch_session *const *sessions, int n, hunch_error *err);
#endif
