/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the engine behind hunch_engine (engine.c: open and close) and the lists of its rounds (text_lists.c). One header a part:
 *
 *   loaded_model.h   the model               scheduling.h   which sessions have a place
 *   session.h        a text                  prefixes.h     rows that texts share
 *   drafting.h       drafters, trees         round.h        the one round of all sessions
 *   statistics.h     what is counted         pass_costs.h   passes outside of sessions, costs
 *
 * Private to the library; check/, forecast/ and training use it to run passes of their own. One thread at a time calls an engine. */
#ifndef HN_ENGINE_H
#define HN_ENGINE_H
#include "base/clock.h"
#include "base/name_list.h"
#include "cache/cache.h"
#include "draft/drafter.h"
#include "engine/loaded_model.h"
#include "model/kv_groups.h"
#include "model/pass.h"
#include "plan/controller.h"
#include "verify/verify.h"

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
    struct hn_text_room *room;           /* [parallel + 1] of hn_has_room */
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
    bool keeps_wrong_heads;                /* how good a head is shall be found out: a wrong one goes on */
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
    int passed_over;           /* places given to others since the text that has waited longest, or an older one, got one */
    uint64_t admissions;     /* so far: a session with a larger number got its place later */
    bool internal;           /* the internal sequence is in use */
    hunch_engine_stats stats; /* its counters and times */
    hunch_drafter_stats *drafter_stats; /* [n_drafters] */
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

/* ---- text_lists.c ---- */

hunch_status hn_text_lists_open(hn_text_lists *l, int texts, int rows, hunch_error *err); /* what was made before an error is closed too */
void hn_text_lists_close(hn_text_lists *l);
#endif
