/* SPDX-License-Identifier: Apache-2.0 */
/* explored.h - enumerates a distribution through the real engine: a session's random numbers are replaced by ones that take every
 * outcome in turn (verify/explorer_for_tests.h), and each run is a cell of dist.h. The target is `model`. Include after cmocka,
 * fixture.h and dist.h. */
#ifndef HN_TEST_EXPLORED_H
#define HN_TEST_EXPLORED_H
#include "verify/explorer_for_tests.h"

enum { CONTEXT = 64, ANSWER = 12 };
static hunch_model *model;

HELPER hunch_engine *open_rule(const char *drafts, hunch_verify rule, int parallel) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = CONTEXT;
    o.max_pause = 1000; /* prompts take the same rounds in every run */
    o.verify = rule;
    return open_engine_with(model, drafts, o);
}

HELPER hunch_session *open_text(hunch_engine *e, const dist *l, uint64_t seed, int tokens) {
    hunch_session *s = NULL;
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = l->prompt;
    r.n_prompt = (size_t)l->n_prompt;
    r.max_tokens = tokens;
    r.ignore_eos = true;
    r.sampling = l->params;
    r.sampling.seed = seed;
    must(hunch_session_open(&s, e, &r, err));
    return s;
}

/* Rounds until the session has said what a cell holds. */
HELPER int run_text(hunch_engine *e, const dist *l, hunch_session *s, hunch_session_state *st) {
    for (hunch_session_get(s, st); st->n_tokens < (size_t)l->tokens; hunch_session_get(s, st)) {
        if (st->finish != HUNCH_RUNNING) fail_msg("the session ended: %s", st->error.message);
        must(hunch_engine_round(e, err));
    }
    return dist_cell(l, st->tokens);
}

typedef struct outcome {
    double off;            /* of the farthest cell */
    double accepted, runs; /* mean, and how many */
    double rounds, rows;   /* of all runs; and rows that were drafted in them */
} outcome;

static explorer explored;

/* beside: of other texts that run in the same passes, in all other places of the engine; NULL: none does. They and the turns of drawing
 * are the same in every run: an outcome is told from another by the text's own draws alone. */
HELPER outcome explore(hunch_engine *e, const dist *l, const hn_rng *rng, const dist *beside) {
    double joint[DIST_CELLS] = {0};
    outcome o = {0};
    hunch_session *other[HN_MAX_TEXTS];
    const int others = beside ? e->parallel - 1 : 0;
    memset(&explored, 0, sizeof explored);
    do {
        hunch_session_state st;
        e->draw_turn = 0;
        for (int i = 0; i < others; i++) other[i] = open_text(e, beside, (uint64_t)i, ANSWER - i % 3);
        hunch_session *s = open_text(e, l, 5, ANSWER);
        explorer_begin(&explored);
        s->sampler.rng = *rng;
        const int cell = run_text(e, l, s, &st);
        joint[cell] += explored.p;
        o.accepted += explored.p * (double)st.accepted;
        o.runs++;
        o.rounds += (double)st.rounds;
        o.rows += (double)st.drafted;
        hunch_session_close(&s);
        for (int i = 0; i < others; i++) hunch_session_close(&other[i]);
    } while (explorer_next(&explored));
    for (int c = 0; c < l->cells; c++) o.off = fmax(o.off, fabs(joint[c] - l->p[c]));
    return o;
}

/* The same distribution by n draws with the engine's own random numbers, of so many texts at once. Returns how many drafts were
 * accepted. */
HELPER uint64_t check_counts_of(const char *drafts, hunch_verify rule, const dist *l, int n, int at_once) {
    long counts[DIST_CELLS] = {0};
    uint64_t accepted = 0;
    hunch_session **s = calloc((size_t)at_once, sizeof *s);
    hunch_engine *e = open_rule(drafts, rule, at_once);
    for (int first = 0; first < n; first += at_once) {
        const int m = n - first < at_once ? n - first : at_once;
        for (int i = 0; i < m; i++) s[i] = open_text(e, l, (uint64_t)(first + i) * 104729 + 3, ANSWER);
        for (int i = 0; i < m; i++) {
            hunch_session_state st;
            counts[run_text(e, l, s[i], &st)]++;
            accepted += st.accepted;
        }
        for (int i = 0; i < m; i++) hunch_session_close(&s[i]);
    }
    hunch_engine_close(&e);
    free(s);
    if (!chi_square_fits(counts, l->p, l->cells, n)) fail_msg("%s, rule %d: another distribution", drafts, (int)rule);
    return accepted;
}

HELPER void check_counts(const char *drafts, hunch_verify rule, const dist *l, int n) {
    const uint64_t accepted = check_counts_of(drafts, rule, l, n, 1);
    if (accepted < (uint64_t)n / 4) fail_msg("%s, rule %d: %d accepted", drafts, (int)rule, (int)accepted);
}
#endif
