/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - the plain text of a request, for drafters that shall be right on purpose (`forced`, key `force` of heads). A second engine
 * without drafters generates it before the session begins, so neither rounds nor sessions of this engine know of it. */
#include <string.h>

#include "base/mem.h"
#include "engine/engine.h"

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
    return hunch_engine_open(&e->plain, e->model, &plain, err);
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
    hunch_session_close(&s);
    return st;
}
