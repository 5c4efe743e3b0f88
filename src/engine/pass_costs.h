/* SPDX-License-Identifier: Apache-2.0 */
/* pass_costs.h - passes outside of sessions: a sequence of the engine's own (internal_rows.c), and what passes cost, kept between processes
 * (curves.c). */
#ifndef HN_PASS_COSTS_H
#define HN_PASS_COSTS_H
#include "engine/engine.h"

/* ---- internal_rows.c ---- */

static inline int hn_internal_seq(const hunch_engine *e) {
    return e->parallel; /* after those of the places */
}
/* Empty, whatever it had. */
void hn_internal_begin(hunch_engine *e);
void hn_internal_end(hunch_engine *e); /* idempotent */
/* One pass over n rows that continue it, as a chain, and commits them. Sessions give way as for hn_reserve. */
hunch_status hn_internal_read(hunch_engine *e, const hn_row *rows, int n, hunch_error *err);

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
