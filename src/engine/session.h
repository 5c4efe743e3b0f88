/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - the text behind hunch_session: what was asked for (request.c), the tokens so far (emit.c), what a round knows of it, and who
 * is told (stream.c); its life from open to close is in session.c. A session belongs to the thread that runs its engine. */
#ifndef HN_SESSION_H
#define HN_SESSION_H
#include <limits.h>

#include "draft/round_drafts.h"
#include "engine/engine.h"
#include "grammar/matcher.h"
#include "sample/budget.h"

/* What was asked for: fixed while the session lives, except that `oracle` is made after the rest. */
typedef struct hn_session_request {
    hn_rule rule;
    bool ignore_eos, logprobs;
    bool one_token; /* of a round */
    bool prompt_logprobs, prompt_only;
    hunch_pooling pooling;
    int n_top;          /* log-probabilities of the likeliest tokens */
    size_t max_new;     /* tokens */
    size_t loop_tokens; /* 0: off */
    char **stop;        /* [n_stop], owned */
    int n_stop;
    int32_t *stop_token; /* [n_stop_tokens], owned */
    int n_stop_tokens;
    size_t min_new;     /* tokens before which it does not end */
    uint32_t drafters;  /* that may propose: bits of their indices */
    int draft_depth, draft_rows; /* most of a round */
    uint64_t salt;      /* of its rows in the prefix index; 0: none */
    int priority;
    double deadline;    /* by hn_now; 0: none */
    hunch_sampling sampling; /* without breakers */
    hunch_grammar *grammar; /* used; NULL: none */
    hn_budget budget;   /* of its thinking; most 0: none */
    hunch_bias *bias;   /* [sampling.n_bias], owned */
    char **breaker;     /* [n_breakers] of DRY, owned; NULL: the usual ones */
    int n_breakers;
    int32_t *oracle, *prediction; /* passed to drafters when the sequence begins, owned */
    int n_oracle, n_prediction;
    void (*on_logits)(void *user, size_t index, const float *logits, int vocab);
    void *on_logits_user;
    void (*on_round)(void *user, const hunch_round_report *report);
    void *on_round_user;
    bool (*on_output)(void *user, const hunch_output *output);
    void *on_output_user;
} hn_session_request;

/* The committed text: prompt, then what was emitted; the newest token's row is not in the cache. */
typedef struct hn_session_text {
    int32_t *token; /* [n] */
    size_t n, n_prompt, cap;
    int16_t *drafter_of; /* of emitted tokens */
    float *logprob;      /* the same; NULL: not requested */
    hunch_logprob *top;  /* n_top a token, likewise */
    float *prompt_logprob;     /* [n_prompt]; NULL: not requested */
    hunch_logprob *prompt_top; /* [n_prompt][n_top], likewise */
    double *pooled;            /* [hidden] sum of states, or the last one, of the prompt's rows so far; NULL: not requested */
    float *pooled_out;         /* [hidden] when all were read */
    size_t n_read;             /* rows of the prompt that these are made of */
    size_t cap_drafter_of, cap_logprob, cap_top;
    hn_detok detok;
    char *out; /* the emitted tokens as UTF-8 */
    size_t out_len, out_cap, shown;
} hn_session_text;

/* What a round knows of a session. */
typedef struct hn_session_round {
    hn_tree tree;
    int expected;          /* its first rows, whose tokens the target's runner expects */
    int place;             /* among the sessions that draft in this round */
    int first_row, n_rows; /* in the pass */
    int root_row;          /* in the pass: the tree's root; of a prompt the last row, whose tree is the root alone */
    bool decides;          /* a token is emitted after the pass */
    bool matched;          /* by the backend: its rule is greedy or match, and nothing else needs its logits */
    hn_verify_job verification;
    hn_verdict verdict;
    int first_committed, n_committed; /* of its rows */
    bool from_tree;                   /* else from a prompt */
    int16_t committed[HN_TREE_ROWS];  /* rows of the tree */
    hn_round_drafts drafts; /* of the newest round from a tree */
} hn_session_round;

/* What on_output has got. */
typedef struct hn_session_stream {
    hunch_session *before, *after; /* neighbours in the engine's list */
    bool listed;
    size_t tokens, text;
} hn_session_stream;

/* First drafts of a head or draft model in this text: rounds that had one, and in which it was right. */
typedef struct hn_head_health {
    int drafted, right;
} hn_head_health;

/* What was asked for while the session was held. */
typedef enum hn_session_deferred { HN_DEFERRED_NONE, HN_DEFERRED_CANCEL, HN_DEFERRED_CLOSE } hn_session_deferred;

struct hunch_session {
    hunch_engine *engine;
    int id;              /* of its place, and of its sequence in the cache; -1: none */
    hunch_session *next; /* in the queue */
    uint64_t opened;     /* the how manyeth session of the engine */
    double opened_at;    /* by hn_now */
    int lost_rows;       /* that it had in the cache when it was preempted */
    uint64_t admission;
    bool in_turn;        /* it has its place because it waited longest: no other is before it for its priority */
    struct hn_same_tokens *same; /* [parallel] while it waits: what it has in common with the sessions placed; NULL: unknown */
    bool held;           /* a call that runs passes has it in its hands: what ends the session waits until that returns */
    hn_session_deferred deferred;
    hn_sampler sampler;  /* zeroed before the first place, and after the end */
    hn_session_request request;
    hn_session_text text;
    hn_session_round round;
    hn_session_stream stream;
    hn_head_health health[HN_MAX_MODELS]; /* by drafter */
    hunch_session_state stats; /* its counters and times; pointers are filled by hunch_session_get */
};

/* ---- request.c ---- */

/* Checks that every id is in the vocabulary, else HUNCH_USAGE with the first that is not; what: "prompt " or "". */
hunch_status hn_check_tokens(const hunch_engine *e, const char *what, const hunch_token *t, size_t n, hunch_error *err);
/* The one check of a request, before anything is allocated for it. */
hunch_status hn_request_check(const hunch_engine *e, const hunch_request *r, hunch_error *err);
/* Copies a checked request into a new session. HUNCH_USAGE: the rule does not fit the temperature. What was copied before an error
 * belongs to the session. */
hunch_status hn_request_copy(hunch_session *s, const hunch_request *r, hunch_error *err);
void hn_request_fini(hn_session_request *r);
/* Whether the token ends the text: one of its stop tokens, or an end-of-sequence token that is not ignored. */
bool hn_request_ends(const hunch_session *s, int32_t token);
/* Makes the session's sampler, if it has none. */
hunch_status hn_request_sampler(hunch_session *s, hunch_error *err);

/* ---- session.c ---- */

/* Starts a session without a place: request checked and copied. */
hunch_status hn_session_create(hunch_session **out, hunch_engine *e, const hunch_request *r, hunch_error *err);
void hn_session_destroy(hunch_session *s);
static inline size_t hn_session_emitted(const hunch_session *s) {
    return s->text.n - s->text.n_prompt;
}
static inline bool hn_session_running(const hunch_session *s) {
    return s->stats.finish == HUNCH_RUNNING;
}
/* Its priority, above all for one that is in turn. */
static inline int hn_session_rank(const hunch_session *s) { return s->in_turn ? INT_MAX : s->request.priority; }
/* Before those of lower priority, and behind those of its own; front: before these, too. */
void hn_queue_push(hunch_session *s, bool front);
void hn_queue_remove(hunch_session *s);
/* Whether it takes part in rounds: it is running, and not paused. */
static inline bool hn_session_awake(const hunch_session *s) {
    return hn_session_running(s) && !s->stats.paused;
}
/* Gives a session the place `id`, or the internal sequence: sequence, shared prefix, drafters. */
hunch_status hn_session_place(hunch_session *s, int id, hunch_error *err);
/* Takes the place back, in the cache and in the drafters; its full pages stay with the prefix index. Idempotent. */
void hn_session_release(hunch_session *s);
/* The session is no longer held: what callbacks asked for is done, which may free it. */
void hn_session_let_go(hunch_session *s);
/* The session loses its place, and is the first that waits for one. */
void hn_session_preempt(hunch_session *s);

/* ---- emit.c ---- */

/* Appends one token: text, stop strings, end of sequence, limits. True if it ended the session. */
hunch_status hn_session_emit(hunch_session *s, int32_t token, int drafter, const float *logits, bool *ended,
                             hunch_error *err);
void hn_session_finish(hunch_session *s, hunch_finish how);
void hn_session_fail(hunch_session *s, const hunch_error *err);

/* ---- stream.c ---- */

void hn_stream_begin(hunch_session *s); /* does nothing without on_output */
void hn_stream_end(hunch_session *s);   /* idempotent; at any time, from inside a callback too */
/* Calls on_output of all sessions that have new output, until none has. */
void hn_stream_deliver(hunch_engine *e);
#endif
