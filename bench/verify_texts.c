/* SPDX-License-Identifier: Apache-2.0 */
/* verify_texts.c - what a round's verification takes, without the pass: the draws of many texts over a large vocabulary, by one worker
 * and by more.
 *
 *   build-test/verify_texts [THREADS [TURNS]]      default: 2 threads, 21 turns
 *
 * 64 texts at temperature 1 over 151,936 tokens (Qwen3's vocabulary); each tree is a root and a draft that is accepted, so two rows of
 * logits are read for each text. Under match both rows are drawn with the text's noise; under ratio the draft carries a distribution over
 * the whole vocabulary. Turns alternate between one worker and all; milliseconds a round, median and quartiles.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"
#include "quantile.h"
#include "verify/verify.h"

enum { VOCAB = 151936, TEXTS = 64, ROWS = 2, MOST_TURNS = 999 };

typedef struct text {
    float *logits; /* [ROWS][VOCAB] */
    int32_t token[2];
    hn_tree tree;
    hn_sampler sampler;
    hn_verdict verdict;
    hn_verify_job job;
} text;

static text texts[TEXTS];
static hn_verify_job *jobs[TEXTS];

static void check(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "verify_texts: %s\n", err->message);
    exit(1);
}

static const float *logits_of(void *ctx, int row) {
    const text *t = ctx;
    return t->logits + (size_t)row * VOCAB;
}

/* Logits like a model's: most tokens far below a few. */
static void fill(float *l, uint64_t *seed) {
    for (int i = 0; i < VOCAB; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) sum += (float)(hn_splitmix(seed) >> 40) * 0x1p-24f;
        l[i] = (sum - 2) * 7;
    }
}

static void text_open(text *t, int i) {
    hunch_error err;
    uint64_t seed = 77 + (uint64_t)i;
    const hunch_sampling params = {.temperature = 1, .top_p = 1, .seed = (uint64_t)i};
    t->logits = malloc(ROWS * VOCAB * sizeof *t->logits);
    if (!t->logits) exit(1);
    for (int row = 0; row < ROWS; row++) fill(t->logits + (size_t)row * VOCAB, &seed);
    t->token[0] = 1;
    t->token[1] = i;
    check(hn_sampler_init(&t->sampler, &params, VOCAB, &err), &err);
    t->job.how = (hn_verification){.sampler = &t->sampler, .committed = {t->token, 2, 2, NULL, 0}, .rows = {logits_of, NULL, t}};
    t->job.tree = &t->tree;
    t->job.out = &t->verdict;
    t->job.whole_rows = true;
    jobs[i] = &t->job;
}

/* The draft is the token that will be drawn, or, under ratio, one whose distribution is the target's: it is accepted. */
static void text_draft(text *t, hn_rule rule, const hn_proposal_dist *q) {
    const int32_t token = hn_sampler_draw(&t->sampler, t->logits, &t->job.how.committed, -1);
    t->job.how.rule = rule;
    hn_tree_reset(&t->tree, t->token[1], ROWS);
    if (rule == HN_RULE_MATCH)
        hn_tree_add(&t->tree, 0, token, 0, .5f);
    else
        hn_tree_add_drawn(&t->tree, 0, token, 0, .5f, q, false);
}

static void measure(const char *name, hn_verifiers *const *v, const int *threads, int turns) {
    static double ms[2][MOST_TURNS];
    for (int turn = -1; turn < turns; turn++) /* the first one warms up */
        for (int k = 0; k < 2; k++) {
            const double start = hn_now();
            hn_verify_trees(v[k], jobs, TEXTS);
            if (turn >= 0) ms[k][turn] = 1e3 * (hn_now() - start);
        }
    int accepted = 0;
    for (int i = 0; i < TEXTS; i++) accepted += texts[i].verdict.n_accepted;
    const size_t n = (size_t)turns;
    const double middle[2] = {median(ms[0], n), median(ms[1], n)};
    for (int k = 0; k < 2; k++)
        printf("%-6s %d worker%s %7.2f ms a round (%.2f to %.2f), %6.1f us a row, %.2f of the time of one worker\n", name, threads[k],
               threads[k] > 1 ? "s:" : ": ", middle[k], quantile(ms[k], n, .25), quantile(ms[k], n, .75),
               1e3 * middle[k] / (TEXTS + accepted), middle[k] / middle[0]);
}

int main(int argc, char **argv) {
    const int threads[2] = {1, argc > 1 ? atoi(argv[1]) : 2};
    int turns = argc > 2 ? atoi(argv[2]) : 21;
    hn_verifiers *v[2];
    hn_pool *pool[2];
    hunch_error err;
    float *weight = malloc(TEXTS * sizeof(float) * VOCAB);
    if (!weight || turns < 1 || turns > MOST_TURNS) return 1;
    for (int k = 0; k < 2; k++) {
        check(hn_pool_create(&pool[k], threads[k], &err), &err);
        check(hn_verifiers_open(&v[k], pool[k], VOCAB, &err), &err);
    }
    for (int i = 0; i < TEXTS; i++) text_open(&texts[i], i);
    for (int i = 0; i < TEXTS; i++) text_draft(&texts[i], HN_RULE_MATCH, NULL);
    measure("match", v, threads, turns);
    static hn_proposal_dist q[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        hn_dist p;
        float *w = weight + (size_t)i * VOCAB;
        hn_sampler_dist_lazy(&texts[i].sampler, texts[i].logits, &texts[i].job.how.committed, &p);
        hn_dist_weights(&texts[i].sampler, &p, 0, VOCAB, w);
        q[i] = (hn_proposal_dist){VOCAB, NULL, w};
        text_draft(&texts[i], HN_RULE_RATIO, &q[i]);
    }
    measure("ratio", v, threads, turns);
    for (int i = 0; i < TEXTS; i++) {
        hn_sampler_fini(&texts[i].sampler);
        free(texts[i].logits);
    }
    for (int k = 0; k < 2; k++) {
        hn_verifiers_close(&v[k]);
        hn_pool_free(pool[k]);
    }
    free(weight);
    return 0;
}
