/* SPDX-License-Identifier: Apache-2.0 */
/* head_batch_test.c - eight texts draft together: a level is one pass of the head, what waits since the round before comes with
 * the first of them, and each text gets the drafts, with the same probabilities, bit for bit, that it gets alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"

enum { SEQS = 8, DEPTH = 4, CONTEXT = 128, TOKENS = 40 };
#define TARGET "goldens-heads/targets/llama-a"

static const hn_drafter_ops *real;
static void (*real_embed)(const hn_exec *, const hn_rows *, const hn_weight *, float, hn_buf, int);
static int passes; /* since the last look */

/* A pass of a head embeds its rows' tokens once. */
static void count_passes(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_buf x, int ldx) {
    if (ex->rank == 0) passes++;
    real_embed(ex, rows, table, scale, x, ldx);
}

/* What was drafted behind a text of so many tokens. */
typedef struct heard {
    int n;
    int32_t token[DEPTH];
    float p[DEPTH];
} heard;
static heard (*hears)[CONTEXT]; /* [sequence][tokens] */
static int together; /* levels at which all texts drafted */

static int hear_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    int before[HN_MAX_ROWS];
    for (int i = 0; i < n; i++) before[i] = p[i].tree->n_candidates;
    passes = 0;
    const int added = real->propose(d, p, n, level);
    assert_int_equal(passes, added > 0);
    together += n == SEQS && added == SEQS;
    for (int i = 0; i < n; i++) {
        heard *h = &hears[p[i].seq][p[i].text.n];
        if (level == 0) *h = (heard){0};
        for (int k = before[i]; k < p[i].tree->n_candidates; k++, h->n++) {
            assert_int_equal(h->n, level); /* a chain: one a level */
            h->token[h->n] = p[i].tree->candidate[k].token;
            h->p[h->n] = p[i].tree->candidate[k].estimate;
        }
    }
    return added;
}

static void make_request(hunch_request *r, hunch_model *m, hunch_token prompt[16], int i) {
    const int n = 2 + i; /* all prompts wait together, and fit a pass */
    for (int k = 0; k < n; k++) prompt[k] = 3 + (i * 61 + k * 97) % 470;
    hunch_request_defaults(r, m);
    r->prompt = prompt;
    r->n_prompt = (size_t)n;
    r->max_tokens = TOKENS;
    r->ignore_eos = true;
    r->sampling = (hunch_sampling){.top_p = 1};
}

static hunch_engine *open_listening(hunch_model *m, const char *spec, int parallel, hn_drafter_ops *listening) {
    hunch_engine *e = open_engine(m, spec, parallel, 64, HUNCH_KV_DEFAULT, 16, CONTEXT);
    real = e->drafter[0].ops;
    *listening = *real;
    listening->propose = hear_propose;
    e->drafter[0].ops = listening;
    return e;
}

static void check(const char *kind, const char *folder) {
    static heard all[SEQS][CONTEXT], alone[1][CONTEXT];
    static hunch_token prompt[SEQS][16];
    char spec[600];
    hn_drafter_ops listening;
    hunch_request r[SEQS];
    answer a[SEQS] = {0}, b = {0};
    hunch_model *m = open_model(data_path(TARGET), "best", 2, HUNCH_PRECISION_NATIVE);
    real_embed = m->target.ops.embed;
    m->target.ops.embed = count_passes; /* heads take the target's operations */
    snprintf(spec, sizeof spec, "%s:%s,depth=%d", kind, data_path(folder), DEPTH);
    for (int i = 0; i < SEQS; i++) make_request(&r[i], m, prompt[i], i);
    memset(all, 0, sizeof all);
    hears = all;
    together = 0;
    hunch_engine *e = open_listening(m, spec, SEQS, &listening);
    run_requests(e, r, SEQS, false, a);
    hunch_engine_close(&e);
    assert_true(together >= 4 * DEPTH);
    hears = alone;
    for (int i = 0; i < SEQS; i++) {
        int compared = 0;
        memset(alone, 0, sizeof alone);
        e = open_listening(m, spec, 1, &listening);
        run_requests(e, &r[i], 1, false, &b);
        assert_same(&b, &a[i], "eight together");
        for (int n = 0; n < CONTEXT; n++) {
            assert_memory_equal(&all[i][n], &alone[0][n], sizeof(heard));
            compared += alone[0][n].n;
        }
        assert_true(compared > TOKENS);
        answer_free(&b);
        hunch_engine_close(&e);
    }
    for (int i = 0; i < SEQS; i++) answer_free(&a[i]);
    hunch_model_close(&m);
}

static void test_eagle(void **state) {
    (void)state;
    check("eagle", "goldens-heads/eagle2-nobias-gqa/head");
}

static void test_eagle3(void **state) {
    (void)state;
    check("eagle3", "goldens-heads/eagle3-official-d2t/head");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_eagle), cmocka_unit_test(test_eagle3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
