/* SPDX-License-Identifier: Apache-2.0 */
/* pass_told.h - passes that ranks run together: what a leader tells the others, and what these do with it. */
#ifndef HN_PASS_TOLD_H
#define HN_PASS_TOLD_H
#include "model/pass.h"

/* Of a rank beside the leader: a runner like the leader's (HN_TOLD_RUNNER), of this model over the cache with this number; and a pass of it
 * (HN_TOLD_PASS). Errors: HUNCH_FAILED: a message of another form; what hn_pass_run_with has. */
hunch_status hn_runner_cache_told(const void *message, size_t bytes, uint32_t *cache, uint32_t *model, hunch_error *err);
hunch_status hn_runner_open_told(hn_runner **out, const hn_model *m, hn_cache *cache, const void *message, hunch_error *err);
hunch_status hn_pass_follow(hn_runner *r, const void *message, size_t bytes, hunch_error *err);
#endif
