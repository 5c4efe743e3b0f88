/* SPDX-License-Identifier: Apache-2.0 */
/* internal_rows.c - the internal sequence, which is no session's: hunch_evaluate reads a text with it, hunch_draft drafts with it, and
 * measuring keeps rows in it from call to call, so that a context is computed once for all measurements after it. */
#include "engine/pass_costs.h"
#include "engine/scheduling.h"

void hn_internal_begin(hunch_engine *e) {
    hn_internal_end(e);
    hn_cache_seq_begin(e->cache, hn_internal_seq(e));
    e->internal = true;
}

void hn_internal_end(hunch_engine *e) {
    if (e->internal) hn_cache_seq_end(e->cache, hn_internal_seq(e));
    e->internal = false;
}

hunch_status hn_internal_read(hunch_engine *e, const hn_row *rows, int n, hunch_error *err) {
    const int id = hn_internal_seq(e);
    const hn_pass_options more = {.n_certain = &n};
    hunch_status st = hn_reserve(e, id, n, err);
    if (!st) st = hn_pass_run_with(e->runner, rows, n, &id, 1, &more, err);
    if (!st) hn_cache_commit(e->cache, id, 0, NULL, n);
    return st;
}
