/* SPDX-License-Identifier: Apache-2.0 */
/* drafting.h - an engine's drafters: opened (open_drafters.c, auto_drafters.c), asked for the trees of a round (drafting.c), watched
 * (head_health.c); and the plain text of those that know it (oracle.c). */
#ifndef HN_DRAFTING_H
#define HN_DRAFTING_H
#include "engine/session.h"

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

/* ---- oracle.c ---- */

/* Opens e->plain if a drafter needs it. */
hunch_status hn_oracle_open(hunch_engine *e, const hunch_engine_options *o, hunch_error *err);
void hn_oracle_close(hunch_engine *e);
/* The plain continuation of a request, to be freed; NULL and 0 if no drafter needs it. */
hunch_status hn_oracle_text(hunch_engine *e, const hunch_request *r, int32_t **out, int *n, hunch_error *err);

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
/* A round's drafts, except those that share another's row, parents first: node[n_rows - 1]. Returns how many. */
int hn_round_nodes(const hunch_engine *e, const hn_round_drafts *r, hunch_draft_node *node);
#endif
