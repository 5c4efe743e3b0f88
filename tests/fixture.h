/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - helpers of tests across modules: opening the tiny models, running a request and keeping its results
 * (tokens and the logits that they were chosen from). Include after cmocka. */
#ifndef HN_TEST_FIXTURE_H
#define HN_TEST_FIXTURE_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/helper_for_tests.h"
#include "base/run_mode_for_tests.h"
#include "hunch/hunch.h"


/* Fails the test with the library's message. */
#define must(call)                                                                                                     \
    do {                                                                                                               \
        hunch_error e_ = {0};                                                                                          \
        hunch_error *err = &e_;                                                                                        \
        if ((call) != HUNCH_OK) fail_msg("%s: %s", #call, e_.message);                                                 \
    } while (0)

HELPER bool light(void) { return test_light(); }

HELPER const char *data_path(const char *name) {
    static char path[4][512];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", HUNCH_TEST_DATA, name);
    return p;
}

HELPER hunch_model *open_model_as(const char *path, const char *isa, int threads, hunch_precision precision, bool mapped) {
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_model_options_defaults(&o);
    o.isa = isa;
    o.device = getenv("HUNCH_TEST_DEVICE");
    o.threads = threads;
    o.precision = precision;
    o.mapped = mapped;
    must(hunch_model_open(&m, path, &o, err));
    return m;
}

HELPER hunch_model *open_model(const char *path, const char *isa, int threads, hunch_precision precision) {
    return open_model_as(path, isa, threads, precision, false);
}

/* Opens with the given options; draft: NULL, or drafters that draft together, joined by '+'. */
HELPER hunch_engine *open_engine_with(hunch_model *m, const char *draft, hunch_engine_options o) {
    hunch_engine *e = NULL;
    char specs[1000], *rest = specs;
    const char *drafts[8];
    snprintf(specs, sizeof specs, "%s", draft ? draft : "");
    for (char *one; draft && (one = strsep(&rest, "+"));) drafts[o.n_drafts++] = one;
    o.drafts = drafts;
    must(hunch_engine_open(&e, m, &o, err));
    return e;
}

HELPER hunch_engine *open_engine(hunch_model *m, const char *draft, int parallel, int chunk, hunch_kv kv,
                                  int page_rows, int context) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.chunk = chunk;
    o.kv = kv;
    o.page_rows = page_rows;
    o.context = context;
    return open_engine_with(m, draft, o);
}

HELPER hunch_engine *open_drafting(hunch_model *m, const char *draft, hunch_verify verify, int parallel, int page_rows, int context) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = context;
    o.page_rows = page_rows;
    o.parallel = parallel;
    o.verify = verify;
    return open_engine_with(m, draft, o);
}

typedef struct answer {
    hunch_token *token;
    size_t n;
    float *logits; /* [n][vocab] */
    int vocab;
    uint64_t rounds, drafted, accepted, restored, preempted;
    hunch_finish finish;
    char *text;
} answer;

HELPER void keep_logits(void *user, size_t index, const float *logits, int vocab) {
    answer *a = user;
    a->vocab = vocab;
    a->logits = realloc(a->logits, (index + 1) * (size_t)vocab * sizeof(float));
    memcpy(a->logits + index * (size_t)vocab, logits, (size_t)vocab * sizeof(float));
}

HELPER void answer_free(answer *a) {
    free(a->token);
    free(a->logits);
    free(a->text);
    memset(a, 0, sizeof *a);
}

HELPER void keep_answer(answer *a, const hunch_session *s) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    a->n = st.n_tokens;
    a->token = malloc((st.n_tokens + 1) * sizeof *a->token);
    memcpy(a->token, st.tokens, st.n_tokens * sizeof *a->token);
    a->rounds = st.rounds;
    a->drafted = st.drafted;
    a->accepted = st.accepted;
    a->restored = st.n_restored;
    a->preempted = st.preempted;
    a->finish = st.finish;
    if (st.finish == HUNCH_FINISH_FAILED) fail_msg("session failed: %s", st.error.message);
    if (st.text) {
        a->text = calloc(1, st.text_len + 1);
        memcpy(a->text, st.text, st.text_len);
    }
}

/* Runs n requests together on one engine; out[i] must be zeroed and keeps logits if `logits`. */
HELPER void run_requests(hunch_engine *e, const hunch_request *r, int n, bool logits, answer *out) {
    hunch_session **s = calloc((size_t)n, sizeof *s);
    for (int i = 0; i < n; i++) {
        hunch_request q = r[i];
        if (logits) {
            q.on_logits = keep_logits;
            q.on_logits_user = &out[i];
        }
        must(hunch_session_open(&s[i], e, &q, err));
    }
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    for (int i = 0; i < n; i++) {
        keep_answer(&out[i], s[i]);
        hunch_session_close(&s[i]);
    }
    free(s);
}

/* Tokens and logits of b equal a's, bit for bit. */
HELPER void assert_same(const answer *a, const answer *b, const char *what) {
    if (a->n != b->n) fail_msg("%s: %zu tokens, plain gave %zu", what, b->n, a->n);
    for (size_t i = 0; i < a->n; i++) {
        if (a->token[i] != b->token[i])
            fail_msg("%s: token %zu is %d, plain gave %d", what, i, b->token[i], a->token[i]);
        if (a->logits && b->logits &&
            memcmp(a->logits + i * (size_t)a->vocab, b->logits + i * (size_t)a->vocab,
                   (size_t)a->vocab * sizeof(float)))
            fail_msg("%s: logits of token %zu differ from plain's", what, i);
    }
}

/* Summed by hunch_evaluate's row callback: the negative log-likelihood of tokens 1.. in nats. */
typedef struct likelihood {
    const hunch_token *ids;
    size_t n, scored;
    double nll;
} likelihood;

HELPER void likelihood_row(void *user, size_t position, const float *logits, int vocab) {
    likelihood *l = user;
    double max = (double)logits[0], sum = 0;
    if (position + 1 >= l->n) return;
    for (int i = 1; i < vocab; i++) max = fmax(max, (double)logits[i]);
    for (int i = 0; i < vocab; i++) sum += exp((double)logits[i] - max);
    l->nll += max + log(sum) - (double)logits[l->ids[position + 1]];
    l->scored++;
}

/* The instruction levels of this machine; on a device it has one. */
HELPER int levels(const char *names[HN_ISA_COUNT]) {
    int n = 0;
    if (getenv("HUNCH_TEST_DEVICE")) {
        names[0] = "best";
        return 1;
    }
    for (hn_isa i = HN_ISA_REF; i < HN_ISA_COUNT; i = hn_isa_next(i)) names[n++] = hn_isa_name(i);
    return n;
}
#endif
