/* SPDX-License-Identifier: Apache-2.0 */
/* sample_bench.c - times sampling and verification over a wide vocabulary, at each level the machine has: the cost of a token
 * after the pass that computed its logits.
 *
 *   sample_bench [VOCAB [REPEATS]]      defaults: 151936, 25; the best time of each case, in microseconds
 *
 * Logits come in two shapes: peaked as a language model's usually are (a few hundred tokens stand out), and flat (nothing does).
 * Rows are distinct, so they are in the cache level of a pass of eight. Verification is of eight drafted rows that are all
 * accepted, and of one that is refused.
 *
 * Not part of the build. From the root of the repository, with the library built in build/:
 *   cc -O2 -D_GNU_SOURCE -Iinclude -Isrc tests/check/sample_bench.c build/libhunch.a $(pkg-config --libs jansson libpcre2-8 \
 *     libutf8proc) -lpthread -lm -o build/sample_bench
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verify/verify.h"

enum { DRAFTED = 8, ROWS = DRAFTED + 1, PROMPT = 3 };

typedef struct bench {
    int vocab, repeats;
    float *logits[ROWS], *flat[ROWS], *q[ROWS];
    int32_t *id; /* of a distribution that lists them: every fifth */
    hn_proposal_dist dist[ROWS];
    float **rows; /* of the case */
    int32_t best[ROWS];
    hn_sampler s;
    hn_verifier *w;
    hn_tree tree;
    hn_rule rule;
    bool hint;
    int sink;
} bench;

/* Time of this thread only: less affected by other work on the machine. */
static double thread_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t seed = 1;
static double unit(void) { return ((double)(hn_splitmix(&seed) >> 11) + .5) * 0x1p-53; }
static double normal(void) { return sqrt(-2 * log(unit())) * cos(6.283185307179586 * unit()); }

static float *row_make(int vocab, bool peaked) {
    float *l = malloc((size_t)vocab * sizeof *l);
    if (!l) exit(4);
    for (int i = 0; i < vocab; i++) l[i] = (float)(2.2 * normal());
    for (int i = 0; peaked && i < 400; i++) l[hn_splitmix(&seed) % (uint64_t)vocab] += (float)(16 * pow(unit(), 3));
    return l;
}

static const float *row_logits(void *ctx, int row) { return ((bench *)ctx)->rows[row]; }
static int32_t row_greedy(void *ctx, int row) { return ((bench *)ctx)->best[row]; }

static int32_t argmax_plain(const float *l, int n) {
    int best = 0;
    for (int i = 1; i < n; i++) best = l[i] > l[best] ? i : best;
    return best;
}

/* ---- timed work: every row once ---------------------------------------------------------------------------------- */

static void draw_rows(bench *b) {
    static const int32_t text[PROMPT] = {1, 2, 3};
    for (int r = 0; r < DRAFTED; r++) {
        const hn_history h = {.text = text, .n = PROMPT, .n_prompt = PROMPT};
        b->s.params.seed++;
        b->sink += hn_sampler_draw(&b->s, b->rows[r], &h, b->hint ? b->best[r] : -1);
    }
}

static void dist_rows(bench *b) {
    static const int32_t text[PROMPT] = {1, 2, 3};
    const hn_history h = {.text = text, .n = PROMPT, .n_prompt = PROMPT};
    for (int r = 0; r < DRAFTED; r++) {
        hn_dist dist;
        hn_sampler_dist(&b->s, b->rows[r], &h, &dist);
        b->sink += dist.n;
    }
}

static void verify_rows(bench *b) {
    static const int32_t text[PROMPT] = {1, 2, 3};
    const hn_verification v = {.rule = b->rule, .sampler = &b->s, .committed = {text, PROMPT, PROMPT, NULL, 0},
                               .rows = {row_logits, b->hint ? row_greedy : NULL, b}};
    hn_verdict out;
    hunch_error err;
    b->s.params.seed++;
    if (hn_verify_tree(b->w, &b->tree, &v, &out, &err) != HUNCH_OK) exit(1);
    b->sink += out.n_accepted;
}

/* ---- cases ------------------------------------------------------------------------------------------------------------ */

static double best_us(bench *b, void (*work)(bench *b)) {
    double best = 1e9;
    for (int i = 0; i < b->repeats; i++) {
        const double start = thread_s();
        work(b);
        const double s = thread_s() - start;
        best = s < best ? s : best;
    }
    return best * 1e6;
}

enum { ONE_HOT, WHOLE, LISTED, FIFTH = 5 };

/* Takes the ids that the distribution lists out of the whole. */
static void dist_list(bench *b, int r, int32_t token) {
    int n = 0;
    for (int32_t i = 0; i < b->vocab; i++) {
        if (i % FIFTH != 0 && i != token) continue;
        b->id[r * b->vocab + n] = i;
        b->q[r][n++] = b->q[r][i];
    }
    b->dist[r] = (hn_proposal_dist){n, b->id + r * b->vocab, b->q[r]};
}

/* A chain of the likeliest tokens. distribution: q is each row's own distribution times a factor, so that all are accepted; refused: q
 * has all of its weight elsewhere. */
static void chain_make(bench *b, int dist, bool refused) {
    hn_tree_reset(&b->tree, 3, HN_TREE_ROWS);
    for (int r = 0; r < DRAFTED; r++) {
        int32_t token = b->best[r];
        for (int i = 0; dist && i < b->vocab; i++) b->q[r][i] = expf(b->rows[r][i] - b->rows[r][token]);
        if (refused) {
            token = argmax_plain(b->rows[r], b->vocab) == 0 ? 1 : 0;
            b->q[r][token] = 1e6f;
        }
        b->dist[r] = (hn_proposal_dist){b->vocab, NULL, b->q[r]};
        if (dist == LISTED) dist_list(b, r, token);
        if (dist)
            hn_tree_add_drawn(&b->tree, r, token, 0, .5f, &b->dist[r], false);
        else
            hn_tree_add(&b->tree, r, token, 0, .5f);
    }
}

typedef struct bench_case {
    const char *name;
    void (*work)(bench *b);
    double per; /* the time is for so many */
    hunch_sampling p;
    hn_rule rule;
    bool flat, hint;
    int dist;
    bool refused;
} bench_case;

static const hunch_bias some_bias[] = {{5, 1}, {77, -2}};
static const bench_case cases[] = {
    {"greedy 8 rows, argmax known", verify_rows, 1, {.top_p = 1}, HN_RULE_GREEDY, false, true, ONE_HOT, false},
    {"greedy 8 rows, from logits", verify_rows, 1, {.top_p = 1}, HN_RULE_GREEDY, false, false, ONE_HOT, false},
    {"greedy draw, logit bias", draw_rows, 8, {.top_p = 1, .bias = some_bias, .n_bias = 2}, 0, false, true, ONE_HOT, false},
    {"draw T=1", draw_rows, 8, {.temperature = 1, .top_p = 1}, 0, false, true, ONE_HOT, false},
    {"draw T=1, flat", draw_rows, 8, {.temperature = 1, .top_p = 1}, 0, true, true, ONE_HOT, false},
    {"draw top-k 40", draw_rows, 8, {.temperature = 1, .top_k = 40, .top_p = 1}, 0, false, true, ONE_HOT, false},
    {"draw top-k 1000", draw_rows, 8, {.temperature = 1, .top_k = 1000, .top_p = 1}, 0, false, true, ONE_HOT, false},
    {"draw top-p .9", draw_rows, 8, {.temperature = 1, .top_p = .9}, 0, false, true, ONE_HOT, false},
    {"draw top-p .9, flat", draw_rows, 8, {.temperature = 1, .top_p = .9}, 0, true, true, ONE_HOT, false},
    {"draw min-p .05", draw_rows, 8, {.temperature = 1, .top_p = 1, .min_p = .05}, 0, false, true, ONE_HOT, false},
    {"draw top-k 40 top-p .95", draw_rows, 8, {.temperature = 1, .top_k = 40, .top_p = .95}, 0, false, true, ONE_HOT, false},
    {"draw top-n-sigma 2", draw_rows, 8, {.temperature = 1, .top_p = 1, .top_n_sigma = 2}, 0, false, true, ONE_HOT, false},
    {"draw typical .9", draw_rows, 8, {.temperature = 1, .top_p = 1, .typical_p = .9}, 0, false, true, ONE_HOT, false},
    {"draw xtc", draw_rows, 8, {.temperature = 1, .top_p = 1, .xtc_probability = 1, .xtc_threshold = .1}, 0, false, true, ONE_HOT, false},
    {"draw T=1, frequency penalty", draw_rows, 8, {.temperature = 1, .top_p = 1, .frequency_penalty = .5}, 0, false, true, ONE_HOT, false},
    {"distribution T=1", dist_rows, 8, {.temperature = 1, .top_p = 1}, 0, false, false, ONE_HOT, false},
    {"ratio, 8 of 8 accepted", verify_rows, 1, {.temperature = 1, .top_p = 1}, HN_RULE_RATIO, false, true, WHOLE, false},
    {"ratio, first refused", verify_rows, 1, {.temperature = 1, .top_p = 1}, HN_RULE_RATIO, false, true, WHOLE, true},
    {"ratio, top-k 40", verify_rows, 1, {.temperature = 1, .top_p = 1, .top_k = 40}, HN_RULE_RATIO, false, true, WHOLE, false},
    {"block, 8 of 8 accepted", verify_rows, 1, {.temperature = 1, .top_p = 1}, HN_RULE_BLOCK, false, true, WHOLE, false},
    {"traversal, 8 of 8 accepted", verify_rows, 1, {.temperature = 1, .top_p = 1}, HN_RULE_TRAVERSAL, false, true, WHOLE, false},
    {"ratio, 8 of 8, fifth of ids", verify_rows, 1, {.temperature = 1, .top_p = 1}, HN_RULE_RATIO, false, true, LISTED, false},
    {"ratio, refused, fifth of ids", verify_rows, 1, {.temperature = 1, .top_p = 1}, HN_RULE_RATIO, false, true, LISTED, true},
    {"ratio, refused, k 40, fifth", verify_rows, 1, {.temperature = 1, .top_p = 1, .top_k = 40}, HN_RULE_RATIO, false, true, LISTED, true},
    {"ratio, refused, top-k 40", verify_rows, 1, {.temperature = 1, .top_p = 1, .top_k = 40}, HN_RULE_RATIO, false, true, WHOLE, true},
};

static double run_case(bench *b, const bench_case *c, hn_isa isa) {
    hunch_error err;
    b->rows = c->flat ? b->flat : b->logits;
    b->rule = c->rule;
    b->hint = c->hint;
    for (int r = 0; r < ROWS; r++) b->best[r] = argmax_plain(b->rows[r], b->vocab);
    if (hn_sampler_init(&b->s, &c->p, b->vocab, &err) != HUNCH_OK) exit(2);
    b->s.lanes = hn_vocab_ops_for(isa);
    if (c->work == verify_rows) chain_make(b, c->dist, c->refused);
    const double us = best_us(b, c->work) / c->per;
    hn_sampler_fini(&b->s);
    return us;
}

int main(int argc, char **argv) {
    static bench b;
    b.vocab = argc > 1 ? atoi(argv[1]) : 151936;
    b.repeats = argc > 2 ? atoi(argv[2]) : 25;
    if (b.vocab < 100 || b.repeats < 1 || hn_verifier_open(&b.w, b.vocab, NULL) != HUNCH_OK) return 2;
    for (int r = 0; r < ROWS; r++) {
        b.logits[r] = row_make(b.vocab, true);
        b.flat[r] = row_make(b.vocab, false);
        b.q[r] = row_make(b.vocab, false);
    }
    b.id = malloc(ROWS * (size_t)b.vocab * sizeof *b.id);
    if (!b.id) return 4;
    printf("%-28s", "us");
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) printf(" %10s", hn_isa_name(isa));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        printf("\n%-28s", cases[c].name);
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
            printf(" %10.1f", run_case(&b, &cases[c], isa));
        fflush(stdout);
    }
    printf("\n");
    for (int r = 0; r < ROWS; r++) free(b.logits[r]), free(b.flat[r]), free(b.q[r]);
    free(b.id);
    hn_verifier_close(&b.w);
    return b.sink == 12345; /* what was drawn is used */
}
