/* SPDX-License-Identifier: Apache-2.0 */
/* tool_variants.h - a variant: one way of generating (plain, or with a method) that runs in slices and is timed.
 *
 * Variants of one comparison answer the same requests, each on its own engine over the same model, and take turns: each
 * runs until its sessions have a given number of tokens. Time is the wall time of rounds in which no session was still
 * reading its prompt; a session's trace starts after the last round that was not timed. */
#ifndef HN_TOOL_VARIANTS_H
#define HN_TOOL_VARIANTS_H

#include "app/tool_open.h"
#include "cli/show/tool_stats.h"
#include "cli/show/tool_tree.h"
#include "cli/show/tool_why.h"

/* The result of one session. Owns its arrays. */
typedef struct tool_answer {
    hunch_token *tokens;
    int16_t *drafter_of;
    size_t n;
    char *text; /* NULL without tokenizer */
    size_t text_len;
    uint64_t rounds, drafted, accepted, depth_drafted;
    hunch_verify verify; /* the rule that was used */
    hunch_lossy lossy;
    tool_trace trace;
    tool_why recorded;   /* its rounds, if their trees are recorded */
} tool_answer;
void tool_answer_fini(tool_answer *a);

/* Receives the reports of a session's rounds. */
typedef struct tool_recorder {
    tool_ranks *ranks; /* of the variant */
    tool_why recorded;
    bool trees; /* rounds are recorded */
} tool_recorder;

typedef struct tool_variant {
    tool_method method;      /* plain: opens no drafter, text is NULL */
    hunch_engine *engine;
    hunch_session **session; /* [n], of the batch that runs */
    tool_trace *trace;       /* [n] */
    tool_recorder *recorder; /* [n] */
    bool trees;              /* trees of all rounds are recorded */
    tool_ranks *ranks;       /* over all batches; NULL: plain */
    int n;
    double batch_s;          /* timed seconds of this batch */
    double timed_s, timed_tokens; /* over all batches */
} tool_variant;

/* The engine is open already. Functions return 0 or an exit code after a message; HUNCH_CANCELLED has no message. */
void tool_variant_fini(tool_variant *l);
int tool_variant_begin(tool_variant *l, const hunch_request *requests, int n);
/* Runs rounds until every session has `tokens` tokens or has finished. */
int tool_variant_advance(tool_variant *l, size_t tokens);
bool tool_variant_finished(const tool_variant *l);
size_t tool_variant_tokens(const tool_variant *l); /* the fewest of the running sessions; if none runs, the most of all */
/* Closes the sessions and moves their results to answers [n]; NULL: drops them. */
void tool_variant_end(tool_variant *l, tool_answer *answers);

#endif
