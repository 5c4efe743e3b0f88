/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the structs behind the three public handles. Files: model_api.c (load, text), chat_api.c (conversations), answer_parts.c
 * (what of an answer is thinking), engine.c (open and close), open_drafters.c (its drafters), head_health.c (heads that are wrong),
 * oracle.c (what those of tests know), request.c (what a session was asked for), grammar_api.c (what its answer obeys), session.c (its
 * life, from open to close), scheduler.c (which sessions have a place), text_room.c (whether there are pages for one more), shared_rows.c
 * (rows that texts share), emit.c (what is emitted, and when a text ends), prompt_rows.c (values of a prompt's rows), engine_stats.c (an
 * engine's numbers), text_lists.c (memory of a round's lists), repeats.c (answers that repeat themselves), drafting.c (the trees of a
 * round), round.c (the one round of all sessions), internal_rows.c (a sequence that is no session's), stream.c (on_output), draft_api.c
 * (hunch_draft), inspect_api.c (evaluate, inspect, convert), measure_api.c (times of passes, limits of the machine), check_api.c and its
 * parts (head_check.h: whether a draft head fits and drafts well), curves.c (measured costs between processes). */
#ifndef HN_ENGINE_H
#define HN_ENGINE_H
#include <limits.h>

#include "base/clock.h"
#include "base/name_list.h"
#include "cache/cache.h"
#include "draft/drafter.h"
#include "draft/round_drafts.h"
#include "grammar/matcher.h"
#include "model/kv_groups.h"
#include "model/model.h"
#include "model/pass.h"
#include "plan/controller.h"
#include "sample/budget.h"
#include "text/jinja/template.h"
#include "text/tokenizer/tokenizer.h"
#include "calls/calls.h"
#include "verify/verify.h"

struct hunch_model {
    hn_model target;
    hn_account account;        /* of its memory, and of the engines that are open on it */
    const char *level;         /* of its passes: of the CPU, or of a device; "" without weights */
    char *path;                /* its file or folder, for messages */
    hn_source *mapped;         /* the files that hold its matrices; NULL: they are in memory */
    hn_tokenizer *tokenizer;   /* NULL: none */
    hn_template *chat;         /* NULL: none */
    hn_template *chat_tools;   /* for conversations with tools; NULL: chat */
    char *chat_refused, *chat_tools_refused; /* why the file's templates are not used; NULL: they are, or there are none */
    const char *think_begin, *think_end; /* the template's marks around thinking */
    bool may_think;      /* the template has such marks, or channels */
    bool think_channels; /* answers are messages whose headers name channels (answer_parts.c) */
    bool think_special;  /* the marks are special tokens */
    int32_t *think_stop; /* [n_think_stop] tokens of the end mark; NULL: no tokenizer */
    int n_think_stop;
    const hn_call_family *calls, *calls_tools; /* how the two templates write calls of tools; NULL: no known format, or no template */
    struct hn_grammars *grammars; /* of its answers (grammar_api.c) */
    char *chat_bos, *chat_eos; /* names of those tokens for the template, "" if absent */
    int threads;
    double load_seconds;
    int n_unused;              /* tensors of the file that are not used, and the names of the first */
    char unused[200];
    hunch_precision precision;
    bool text_only; /* target is zeroed */
    struct hn_machines *machines; /* borrowed: those that run its passes with this one; NULL: none do */
};

/* What text_room.c knows of a text: rows that it has, or is about to read; tokens that it may still get, and is expected to; pages that it
 * holds, and of these those that are nobody else's; tokens a round. */
typedef struct hn_text_room {
    int rows, left, more, held, own;
    bool paused;
    double rate;
} hn_text_room;

/* Of the newest answers that ended; SIZE_MAX: at a limit. */
enum { HN_ANSWERS_KEPT = 32 };
typedef struct hn_answer_lengths {
    size_t at[HN_ANSWERS_KEPT];
    uint64_t n; /* that ended so far */
} hn_answer_lengths;

/* Lists of a round, each [parallel] but the last four (text_lists.c). A name says what it has, and who of round.c, drafting.c and
 * shared_rows.c uses it, until which call returns: none is used twice at a time. */
typedef struct hn_text_lists {
    hunch_session **running, **decoding, **prompts; /* of hunch_engine_round; of hn_round, by what they do */
    hunch_session **ended;               /* while they are released */
    hunch_session **alike;               /* of hn_flush_alike */
    hunch_session **held;                /* while the engine is busy: sessions that had a place when the call began */
    hunch_session **pass;                /* of hn_batch, as the next three */
    int *pass_seq, *n_certain;
    bool *first_token;
    hn_verify_job **job;                 /* while a pass is verified */
    int *flush;                          /* sequences, of hn_flush_pending */
    hn_propose *propose;                 /* of a drafter's level, and which session each is of */
    int *proposing;
    hn_plan_seq *plan;                   /* of hn_draft_trees, as the next three */
    const hn_tree **tree;
    bool (*keep)[HN_TREE_ROWS];
    bool (*out)[HN_MAX_MODELS];
    hn_text_room *room;                  /* [parallel + 1] of hn_has_room */
    hn_pass_tree *match;                 /* of hn_batch: trees that the backend verifies, and what their tokens are drawn from */
    hn_draw *draw;
    hn_row *row;                         /* [most.rows] of the pass that is being put together */
    hn_token_source *source;             /* of these */
    hn_feed_row *feed;                   /* [most.rows] that were committed */
} hn_text_lists;

/* Levels of a drafter in a round that waits once, whose passes were not over when they were drafted. */
typedef struct hn_late_levels {
    int n, texts, added[HUNCH_MAX_DEPTH];
    double seconds[HUNCH_MAX_DEPTH]; /* of each, without its passes */
    double passes;                   /* seconds of its passes before */
} hn_late_levels;

struct hunch_engine {
    hunch_model *model;
    hn_cache *cache;
    hn_runner *runner;
    hn_verifiers *verifiers;
    hn_drafter *drafter; /* [n_drafters] */
    int n_drafters;
    hn_name_list notes;         /* for the user */
    uint32_t told_wrong, told_good; /* bits of heads about which a note was added (head_health.c) */
    bool judges;                /* how good a head is shall be found out: a wrong one goes on */
    hn_name_list left_out;      /* drafters that `auto` did not open, and why */
    bool feeds;                 /* some drafter reads the target's features */
    hunch_engine *plain;        /* makes the plain text of a request for drafters that need it; NULL: none does */
    struct hn_oracle_kept *oracle_kept;
    hn_controller *controller;  /* NULL: everything that is drafted is verified, as far as it fits */
    hn_late_levels late[HN_MAX_MODELS]; /* of the last round: the controller is told of them before the next one */
    hn_drafting_times drafting; /* of the newest round */
    int draw_turn;              /* the text that is the first to draw a row which equal parts leave over */
    struct hn_plan_item *cut;   /* [parallel * HN_TREE_ROWS] for the cut of trees by estimate; NULL: there are no drafters */
    char *curve_path, *curve_key; /* file and key of the controller's costs; NULL: not kept */
    struct {
        hn_cost cost; /* as the controller begins with */
        bool read, found;
    } kept; /* what earlier processes measured of the model */
    int states; /* of recurrent layers: most that are kept for later texts */
    int context, parallel;
    int chunk;            /* rows of a prompt in a pass */
    hn_pass_sizes most;   /* of a pass: rows of a prompt, and beside them those of all trees */
    double max_pause;     /* seconds between two rounds in which prompts are read beside decoding texts; 0: about two plain rounds */
    hn_answer_lengths lengths;
    double plain_s, plain_rows; /* seconds and rows of the newest rounds without rows of prompts; 0: there was none */
    double row_s;         /* seconds that a row of a prompt added to the newest rounds with such rows; 0: there was none */
    double row_dev;       /* mean distance of newest rounds from that */
    hn_text_lists list;
    hn_dtype kv;
    bool reuse; /* of prefixes */
    bool pooling;
    hunch_verify verify;
    hunch_lossy lossy;
    hunch_session **session; /* [parallel] those that have a place, by id; NULL: free */
    hunch_session *queue;    /* waiting sessions, the next one first */
    hunch_session *streams, *last_stream; /* sessions whose on_output has not got its last call, in order of opening */
    hunch_session *callback_session, *callback_next;      /* while callbacks run: whose, and the one after it */
    bool in_output_callback;            /* on_output runs */
    bool busy;               /* a call that runs passes has not returned: its callbacks may run */
    int n_held;              /* of list.held */
    bool forget;             /* was asked for while busy */
    uint64_t salt_key[2];    /* of the hash that makes numbers of salts */
    uint64_t opened;         /* sessions so far */
    int64_t promised[HN_ACCOUNT_PARTS]; /* to its texts, of the model's account */
    int overtaken;           /* places given to others since the text that has waited longest, or an older one, got one */
    uint64_t admissions;     /* so far: a session with a larger number got its place later */
    bool internal;           /* the internal sequence is in use */
    hunch_engine_stats stats; /* its counters and times */
    hunch_drafter_stats *drafter_stats; /* [n_drafters] */
};

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
typedef enum hn_session_wish { HN_WISH_NONE, HN_WISH_CANCEL, HN_WISH_CLOSE } hn_session_wish;

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
    hn_session_wish wish;
    hn_sampler sampler;  /* zeroed before the first place, and after the end */
    hn_session_request request;
    hn_session_text text;
    hn_session_round round;
    hn_session_stream stream;
    hn_head_health health[HN_MAX_MODELS]; /* by drafter */
    hunch_session_state stats; /* its counters and times; pointers are filled by hunch_session_get */
};

/* ---- engine.c ---- */

/* Whether a drafter leaves texts of this rule to the others (hn_needs.for_grammar). */
bool hn_gives_way(const hunch_engine *e, const hn_drafter *d, hn_rule rule);
/* HUNCH_USAGE inside a callback that is called during a round. */
hunch_status hn_engine_check_idle(const hunch_engine *e, hunch_error *err);
/* Around a call that runs passes and callbacks: between them sessions are held, and what callbacks ask for (cancel, close, forget)
 * waits for hn_engine_leave. */
void hn_engine_enter(hunch_engine *e);
void hn_engine_leave(hunch_engine *e);

/* ---- device_api.c ---- */

/* The backend of a device by its name (hunch_model_options.device); *out NULL: this CPU's own. */
hunch_status hn_device_open(hn_backend **out, const char *name, bool f32, hunch_error *err);

/* ---- model_api.c ---- */

hunch_status hn_need_tokenizer(const hunch_model *m, hunch_error *err); /* HUNCH_USAGE: the model has none */
hn_dtype hn_kv_type(const hunch_model *m, hunch_kv kv); /* of the cache; DEFAULT: that of the precision */
/* The error for a text (what: "prompt") of n tokens that does not fit the context; it names a context that is large enough, if
 * there is one. */
hunch_status hn_fail_context(const hunch_engine *e, const char *what, size_t n, hunch_error *err);

/* ---- answer_parts.c ---- */

/* Chooses the marks around thinking that a template has; NULL: the usual ones. */
hunch_status hn_think_marks(hunch_model *m, const char *template_text, size_t len, hunch_error *err);
/* As hunch_prompt_thinks, of tokens. */
bool hn_tokens_think(const hunch_model *m, const int32_t *token, size_t n);

/* ---- grammar_api.c ---- */

hunch_status hn_grammars_open(hunch_model *m, uint64_t bytes, hunch_error *err);
void hn_grammars_close(hunch_model *m);
/* The grammar that the model keeps under a key, which has all that it depends on; else the one that `make` makes of its source. */
typedef hunch_status hn_grammar_maker(hn_grammar **out, const hunch_model *m, const void *source, hunch_error *err);
hunch_status hn_grammar_shared(hunch_grammar **out, const hunch_model *m, const char *key, size_t n, hn_grammar_maker *make,
                               const void *source, hunch_error *err);
/* One more user, who closes it; NULL is fine. */
hunch_grammar *hn_grammar_use(hunch_grammar *g);
hn_matcher *hn_grammar_matcher(const hunch_grammar *g);
bool hn_grammar_has_end(const hunch_grammar *g); /* the vocabulary has a token that ends texts */
bool hn_grammar_fits(const hunch_grammar *g, const hunch_model *m); /* it was made for the model; NULL fits */

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

/* ---- scheduler.c ---- */

/* Places waiting sessions while there are places and pages: by priority, those that were preempted first, then by age, but one in eight
 * the one that waited longest. A session that fails ends alone. */
void hn_admit(hunch_engine *e);
/* Ends the sessions whose deadline has passed. */
void hn_expire(hunch_engine *e);
void hn_fail_all(hunch_engine *e, const hunch_error *why); /* ends every session */
/* Reserves pages for rows of a sequence that is no session's. If there are too few, sessions are preempted: those of the lowest priority
 * first, of these the youngest. */
hunch_status hn_reserve(hunch_engine *e, int seq, int rows, hunch_error *err);
/* Reserves pages for the session's round.n_rows. If there are too few, sessions are preempted, in that order, and wait; they are computed
 * again later, with the same result. false: this session itself was preempted, or failed. */
bool hn_make_room(hunch_session *s);
/* ---- text_room.c ---- */

/* Whether there are pages for the text beside those that have a place. */
bool hn_has_room(const hunch_engine *e, const hunch_session *s);
void hn_room_learn(hn_answer_lengths *l, size_t tokens, hunch_finish how); /* of an answer that ended */

/* Rows that the cache must hold before the session can draft: all of the prompt, because its last row decides the first token; of
 * a resumed text all but the newest token. */
static inline size_t hn_prefill_rows(const hunch_session *s) {
    return s->text.n > s->text.n_prompt ? s->text.n - 1 : s->text.n_prompt;
}

/* ---- prompt_rows.c ---- */

/* The values that were requested of the prompt's rows. */
hunch_status hn_prompt_values_open(hunch_session *s, const hunch_request *r, hunch_error *err);
void hn_prompt_values_fini(hn_session_text *t);
/* Rows that it may take from the prefix index: those whose values it has, if it was asked for any, else all. */
size_t hn_prompt_shared_rows(const hunch_session *s);
/* Whether it needs all logits of this row of the prompt, or its state. */
bool hn_prompt_wants_logits(const hunch_session *s, size_t row);
bool hn_prompt_wants_state(const hunch_session *s, size_t row);
/* Takes what it needs of the rows that the last pass computed. */
void hn_prompt_rows_read(hunch_session *s);

/* ---- text_lists.c ---- */

hunch_status hn_text_lists_open(hn_text_lists *l, int texts, int rows, hunch_error *err); /* what was made before an error is closed too */
void hn_text_lists_close(hn_text_lists *l);

/* ---- engine_stats.c ---- */

hunch_status hn_stats_open(hunch_engine *e, hunch_error *err);
void hn_stats_drafted(hunch_session *s);                           /* the drafts of its round were verified */
void hn_stats_accepted(hunch_session *s, int drafter, int depth); /* a candidate that was emitted */

/* ---- shared_rows.c ---- */

/* Adds the pages that became full to the prefix index. */
void hn_session_publish(hunch_session *s);
/* The same for a text that gives its place back: its last page too, which is not full, so that what continues it computes new rows only. */
void hn_session_publish_end(hunch_session *s);
/* Computes the pending rows of drafters, of all these texts together, so that a text that continues one of them finds them. */
void hn_flush_pending(hunch_engine *e, hunch_session *const *s, int n);
/* The same for texts of which a drafter has not computed all rows that they share with this one, which is about to restore them. */
void hn_flush_alike(const hunch_session *s);
/* Whether a placed session is about to compute rows that this one shares. Then it waits for them: answers to one prompt, or prompts
 * with one system message, are computed once. */
bool hn_shared_rows_pending(const hunch_engine *e, hunch_session *s);

/* ---- emit.c ---- */

/* Appends one token: text, stop strings, end of sequence, limits. True if it ended the session. */
hunch_status hn_session_emit(hunch_session *s, int32_t token, int drafter, const float *logits, bool *ended,
                             hunch_error *err);
void hn_session_finish(hunch_session *s, hunch_finish how);
void hn_session_fail(hunch_session *s, const hunch_error *err);

/* ---- oracle.c ---- */

/* Opens e->plain if a drafter needs it. */
hunch_status hn_oracle_open(hunch_engine *e, const hunch_engine_options *o, hunch_error *err);
void hn_oracle_close(hunch_engine *e);
/* The plain continuation of a request, to be freed; NULL and 0 if no drafter needs it. */
hunch_status hn_oracle_text(hunch_engine *e, const hunch_request *r, int32_t **out, int *n, hunch_error *err);

/* ---- stream.c ---- */

void hn_stream_begin(hunch_session *s); /* does nothing without on_output */
void hn_stream_end(hunch_session *s);   /* idempotent; at any time, from inside a callback too */
/* Calls on_output of all sessions that have new output, until none has. */
void hn_stream_deliver(hunch_engine *e);

/* ---- open_drafters.c ---- */

/* The description of a model for drafters. */
hn_target_info hn_engine_target(const hunch_model *model, int context, hn_dtype kv, int depth);

/* *controlled: whether `auto` was among the specs. Drafters that were opened before an error belong to the engine. */
hunch_status hn_engine_open_drafters(hunch_engine *e, const hunch_engine_options *o, bool *controlled, hunch_error *err);
enum { HN_MOST_DRAFTERS = HN_MAX_MODELS - 1 };
/* Opens one more drafter. */
hunch_status hn_open_drafter(hunch_engine *e, const char *spec, const hn_target_info *info, hunch_error *err);
/* Opens those of `auto` (auto_drafters.c), except kinds that are requested beside it. */
hunch_status hn_open_auto(hunch_engine *e, const hunch_engine_options *o, const hn_target_info *info, hunch_error *err);
/* Once all others are open: what `auto` opens if none of them is a head. */
hunch_status hn_open_auto_without_head(hunch_engine *e, const hunch_engine_options *o, const hn_target_info *info, hunch_error *err);
void hn_note(hunch_engine *e, const char *fmt, ...) HN_PRINTF(2, 3); /* each text once */
/* Adds a note on every failure that drafters recorded since the last call. After each call that runs passes of theirs. */
void hn_note_failures(hunch_engine *e);

/* ---- head_health.c ---- */

/* Counts a round's first drafts of heads and draft models; one that is nearly never right drafts no more for the text. */
void hn_watch_heads(hunch_session *s);

/* ---- internal_rows.c ---- */

static inline int hn_internal_seq(const hunch_engine *e) {
    return e->parallel; /* after those of the places */
}
/* Empty, whatever it had. */
void hn_internal_begin(hunch_engine *e);
void hn_internal_end(hunch_engine *e); /* idempotent */
/* One pass over n rows that continue it, as a chain, and commits them. Sessions give way as for hn_reserve. */
hunch_status hn_internal_read(hunch_engine *e, const hn_row *rows, int n, hunch_error *err);

/* ---- drafting.c, round.c, draft_api.c, curves.c ---- */

/* What hunch_draft wants to see of one session's draft. */
typedef struct hn_draft_probe {
    int depth;  /* most levels */
    bool chain; /* drafters that make trees shall make one chain */
    void (*on_logits)(void *ctx, int level, const float *logits); /* NULL: none */
    void *on_logits_ctx;
    float *confidence; /* [HUNCH_MAX_DEPTH + 1] that each draft of a chain is accepted; NAN: the head has none. NULL: not wanted */
} hn_draft_probe;
/* The trees of sessions that decode, under the controller if there is one. beside: what else the controller is to expect in their pass,
 * NULL: nothing. probe: NULL in a round. */
void hn_draft_trees(hunch_engine *e, hunch_session *const *s, int n, const hn_cost_work *beside, const hn_draft_probe *probe);
/* Rows of prompts that a round reads beside decoding texts with so many rows; 0: as many as a pass takes. */
int hn_prompt_budget(const hunch_engine *e, int beside);
/* One round over the given placed and running sessions. */
hunch_status hn_round(hunch_engine *e, hunch_session *const *sessions, int n, hunch_error *err);
/* A round's drafts, except those that share another's row, parents first: node[n_rows - 1]. Returns how many. */
int hn_round_nodes(const hunch_engine *e, const hn_round_drafts *r, hunch_draft_node *node);
/* The mean number of experts of a layer that the rows of the last pass used; 0: the model has none. */
double hn_experts_used(const hunch_engine *e);
/* n tokens as a chain of rows. */
void hn_chain_rows(hn_row *rows, const hunch_token *tokens, int n, hn_logits logits);
/* Keys and values that a row after this many reads, in the unit of hn_cost_work. */
double hn_reads(const hunch_engine *e, int committed);
/* What earlier processes measured of the model, read once; NULL: nothing. */
const hn_cost *hn_curves_kept(hunch_engine *e);
/* Opens the controller's costs: those that are kept, else measures a few passes. */
hunch_status hn_curves_open(hunch_engine *e, hunch_error *err);
void hn_curves_close(hunch_engine *e);
#endif
