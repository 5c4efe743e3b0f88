/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - see measure.h. */
#include "train/learn/measure.h"

#include <string.h>

enum { CONTEXT = 1024 }; /* or the model's */

static hunch_status answer(hunch_model *m, hunch_engine *e, const hn_train_text *text, int tokens,
                           hunch_session_state *st, hunch_error *err) {
    hunch_session *s = NULL;
    hunch_request r;
    const int most = hunch_engine_context(e) - tokens - 1;
    int n = text->own > 0 ? text->own : text->n / 2;
    if (n > most) n = most;
    hunch_request_defaults(&r, m);
    r.prompt = text->ids;
    r.n_prompt = (size_t)(n > 0 ? n : 1);
    r.max_tokens = tokens;
    r.sampling = (hunch_sampling){.top_p = 1};
    hunch_status status = hunch_session_open(&s, e, &r, err);
    if (!status) status = hunch_engine_run(e, err);
    if (!status) hunch_session_get(s, st);
    if (!status && st->finish == HUNCH_FINISH_FAILED) status = hn_fail(err, st->error.status, "%s", st->error.message);
    hunch_session_close(&s);
    return status;
}

static hunch_status run(hunch_model *m, const char *spec, const hn_train_text *text, size_t n, int tokens,
                        hn_train_acceptance *out, double *seconds, hunch_error *err) {
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    hunch_engine_options_defaults(&o);
    o.drafts = &spec;
    o.n_drafts = 1;
    o.context = info.context < CONTEXT ? info.context : CONTEXT;
    *seconds = 0;
    hunch_status st = hunch_engine_open(&e, m, &o, err);
    *out = (hn_train_acceptance){0};
    for (size_t i = 0; !st && i < n; i++) {
        hunch_session_state s;
        st = answer(m, e, &text[i], tokens, &s, err);
        if (st) break;
        out->rounds += s.rounds;
        out->tokens += s.n_tokens;
        *seconds += s.decode_s;
        for (int k = 0; k < HN_TRAIN_MOST_DEPTH; k++) out->position[k] += (double)s.accepted_per_position[k];
    }
    hunch_engine_close(&e);
    return st;
}

hunch_status hn_train_measure(hunch_model *m, const char *spec, const hn_train_text *text, size_t n, int tokens,
                              hn_train_acceptance *out, hunch_error *err) {
    hn_train_acceptance plain;
    double seconds, plain_seconds;
    hunch_status st = run(m, "none", text, n, tokens, &plain, &plain_seconds, err);
    if (!st) st = run(m, spec, text, n, tokens, out, &seconds, err);
    if (st || out->rounds == 0) return st;
    const double rounds = (double)out->rounds;
    for (int k = 0; k < HN_TRAIN_MOST_DEPTH; k++) out->position[k] /= rounds;
    out->tau = (double)out->tokens / rounds;
    out->round_s = seconds / rounds;
    out->plain_s = plain.tokens ? plain_seconds / (double)plain.tokens : 0;
    return HUNCH_OK;
}
