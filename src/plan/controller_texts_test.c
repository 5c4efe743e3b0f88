/* SPDX-License-Identifier: Apache-2.0 */
/* controller_texts_test.c - the controller for sixteen texts at once, on recorded times of a machine's passes and on simulated ones: never
 * much worse than plain decoding or the best fixed depth, and rows go to the texts in which they pay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#define SIMULATED_TEXTS 16
#include "plan/simulation_for_tests.h"

static const double LEAST = 0.98; /* of the better of plain and the best fixed depth */

/* Tokens a second of all texts with the same depth in each, or of plain decoding; in one pass. */
static double best_of_depths(const world *w, const simulated *d, int *depth) {
    double best = plain(w);
    *depth = 0;
    for (int k = 1; k <= d->depth && SEQS * (k + 1) <= HN_TREE_ROWS; k++) {
        double tokens = 0;
        for (int i = 0; i < SEQS; i++) tokens += expected(d, i, k);
        const double v = tokens / (machine_relative(&w->m, SEQS * (k + 1), w->context) + (SEQS * k * d->step + d->round) * one_row(w));
        if (v <= best) continue;
        best = v;
        *depth = k;
    }
    return best;
}

static void check(enum machine_kind kind, const simulated *d, const char *what, double a) {
    int depth;
    world *w = world_open(kind, 0.04, SEQS, d, 1);
    const double best = best_of_depths(w, d, &depth);
    rounds_run(w, 150);
    const double got = rounds_run(w, light() ? 200 : 600) / best;
    if (got < LEAST) fail_msg("%s: machine %d, a %g: %.3f of depth %d", what, kind, a, got, depth);
    world_close(w);
}

static const double rates[] = {0, 0.3, 0.6, 0.8, 0.9, 0.97};
enum { RATES = sizeof rates / sizeof *rates };

/* A lookup, which costs nothing: in all texts with the same rate, or in a quarter of them. */
static void test_lookups_on_recorded_times(void **state) {
    (void)state;
    for (int kind = SMOLLM2_135M; kind <= GEMMA3_270M; kind++)
        for (int i = 0; i < RATES; i++) {
            simulated d = even(rates[i], DEPTH);
            check((enum machine_kind)kind, &d, "lookup", rates[i]);
            for (int s = 0; s < SEQS; s++)
                for (int k = 1; k <= DEPTH && s % 4; k++) d.a[s][k] = 0;
            check((enum machine_kind)kind, &d, "lookup in a quarter", rates[i]);
        }
}

/* A head with a pass for each level. */
static void test_heads_on_recorded_times(void **state) {
    (void)state;
    for (int kind = SMOLLM2_135M; kind <= GEMMA3_270M; kind++)
        for (int i = 0; i < RATES; i++) {
            simulated d = even(rates[i], 5);
            d.kind = HN_COST_PER_LEVEL;
            d.step = 0.01;
            check((enum machine_kind)kind, &d, "head", rates[i]);
        }
}

/* Tokens a second with drafts by those without, where so many rows of prompts come for each token, and `chunk` of them are read at once. */
static double beside_prompts(enum machine_kind kind, int texts, double a, double arrive, int chunk) {
    double speed[2];
    for (int drafts = 0; drafts < 2; drafts++) {
        simulated d = even(a, 4);
        d.silent = !drafts;
        world *w = world_open(kind, 0.04, texts, &d, 1);
        w->arrive = arrive;
        w->chunk = chunk;
        rounds_run(w, 150);
        speed[drafts] = rounds_run(w, 600);
        world_close(w);
    }
    return speed[1] / speed[0];
}

/* A row for each token, 128 in one pass: drafts that do not pay in other passes do not pay in these. */
static void test_prompts_make_no_draft_cheap(void **state) {
    (void)state;
    for (int kind = SMOLLM2_135M; kind <= GEMMA3_270M; kind++)
        for (int i = 0; i < 3; i++) {
            const double ratio = beside_prompts((enum machine_kind)kind, SEQS, rates[i], 1, CHUNK);
            if (ratio < LEAST) fail_msg("machine %d, a %g: %.3f of plain decoding", kind, rates[i], ratio);
        }
}

/* Every pass has rows of prompts: an accepted draft saves what a row adds to such a pass, not a part of a whole one. By themselves the
 * texts' passes would take as long as one of a single row, and drafts would pay. */
static void test_drafts_save_a_row_beside_prompts(void **state) {
    (void)state;
    for (int i = 0; i < RATES; i++) {
        const double ratio = beside_prompts(BANDWIDTH, 4, rates[i], 2, 0);
        if (ratio < LEAST) fail_msg("a %g: %.3f of plain decoding", rates[i], ratio);
    }
}

/* One text with certain drafts beside fifteen with none that is right: it gets a tree that a sixteenth of the rows does not hold. */
static void test_one_text_has_all_the_rows(void **state) {
    (void)state;
    simulated d = even(0, DEPTH);
    for (int k = 1; k <= DEPTH; k++) d.a[3][k] = 1;
    world *w = world_open(TILES, 0.02, SEQS, &d, 1);
    rounds_run(w, 200);
    int whole = 0;
    for (int i = 0; i < 50; i++) {
        round_run(w);
        whole += hn_tree_depth(&w->tree[3]) == DEPTH;
    }
    if (whole < 45) fail_msg("whole in %d of 50 rounds", whole);
    world_close(w);
}

/* Two equal texts, one with a long context: its rows cost more, and fewer of them are verified. With equal contexts both get as many. */
static void test_rows_of_a_long_text_cost_more(void **state) {
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        hn_controller *c;
        const hn_draft_cost kinds[] = {HN_COST_PER_ROUND};
        machine m = machine_make(COMPUTING, 0.01, 7);
        const double reads[] = {0.1, is_long ? 3 : 0.1};
        int rows[2] = {0};
        must(hn_controller_open(&c, kinds, 1, 2, err));
        for (int i = 0; i < 400; i++) {
            const int n = 1 + i % 12;
            const double read = i % 3 ? 0.1 : 3;
            const hn_cost_work work = {.rows = n, .reads = read, .again = (n - 1) * read};
            hn_cost_pass(hn_controller_cost(c), &work, machine_pass(&m, n, 0) + m.speed * (read + 0.2 * work.again));
        }
        hn_controller_took(c, 0, 2, 0, 1, 0);
        for (int round = 0; round < 40; round++) {
            static hn_tree tree[2];
            hn_plan_seq s[2];
            for (int i = 0; i < 2; i++) {
                hn_tree_reset(&tree[i], 1, HN_TREE_ROWS);
                for (int k = 0, row = 0; k < 8; k++) row = hn_tree_add(&tree[i], row, 2 + k, 0, 0.8f);
                s[i] = (hn_plan_seq){i, 100, &tree[i], 8, reads[i], 0};
            }
            hn_controller_start(c, s, 2, &(hn_plan_round){.rows = HN_TREE_ROWS, .behind = (const int[1]){0}});
            while (hn_controller_choose(c, s, 2, false) >= 0) hn_controller_took(c, 0, 2, 0, 16, 0);
            hn_controller_prune(c, s, 2, false);
            for (int i = 0; i < 2; i++) rows[i] += tree[i].n_rows - 1;
        }
        assert_true(rows[0] > 40);
        if (is_long ? rows[1] >= rows[0] - 40 : abs(rows[1] - rows[0]) > 40) fail_msg("%d rows, and %d of the other", rows[0], rows[1]);
        hn_controller_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookups_on_recorded_times),
        cmocka_unit_test(test_heads_on_recorded_times),
        cmocka_unit_test(test_prompts_make_no_draft_cheap),
        cmocka_unit_test(test_drafts_save_a_row_beside_prompts),
        cmocka_unit_test(test_one_text_has_all_the_rows),
        cmocka_unit_test(test_rows_of_a_long_text_cost_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
