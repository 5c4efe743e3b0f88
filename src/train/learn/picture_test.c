/* SPDX-License-Identifier: Apache-2.0 */
/* picture_test.c - the history of a training run, and its SVG plot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "train/learn/picture.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

static const hn_picture_about about = {
    .head = "h<e>&\n\xff.gguf", .drafts = 3, .steps = 5000, .best = 2.25, .step_cost = 0.125};

static double loss_at(int step, int draft) {
    return 4.0 + draft + 2.0 / (1 + step);
}

/* Steps [from, to) of a run, with a check after every `every`-th. */
static void run(hn_run_history *h, int from, int to, int every) {
    for (int i = from; i < to; i++) {
        const double losses[3] = {loss_at(i, 0), loss_at(i, 1), loss_at(i, 2)}, right[3] = {0.5, 0.25, 0.125};
        hn_run_history_step(h, losses, 3, 100);
        if ((i + 1) % every == 0) hn_run_history_add_check(h, losses, right, 3, 1.875);
    }
}

static char *drawn(const hn_run_history *h, const hn_picture_about *a) {
    hunch_error err = {0};
    if (hn_picture_write(h, a, test_path("p.svg"), &err)) fail_msg("%s", err.message);
    bytes b = test_file_read(test_path("p.svg"));
    char *text = malloc(b.size + 1);
    memcpy(text, b.at, b.size);
    text[b.size] = 0;
    bytes_free(&b);
    return text;
}

/* Tags are closed in order, quotes in a tag are even, and there is no unescaped & or < between tags. */
static void assert_well_formed(const char *text) {
    const char *open[20];
    int depth = 0, roots = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        int quotes = 0;
        for (const char *c = at; c < end; c++) quotes += *c == '"';
        assert_int_equal(quotes % 2, 0);
        if (at[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_memory_equal(at + 2, open[depth], (size_t)(end - at - 2));
        } else if (end[-1] != '/') {
            assert_true(depth < 20);
            roots += depth == 0;
            open[depth++] = at + 1;
        }
        at = end;
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
    for (const char *c = text; *c; c++) assert_true((*c >= 32 && *c < 127) || *c == '\n');
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    if (system("command -v xmllint > /dev/null") != 0) return;
    char line[700];
    snprintf(line, sizeof line, "xmllint --noout '%s'", test_path("p.svg"));
    assert_int_equal(system(line), 0);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

/* The means contain all steps, for any number of steps. */
static void test_steps(void **state) {
    static const int numbers[] = {0, 1, 127, 128, 129, 256, 257, 5000};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        hn_run_history h = {0};
        double steps = 0, sum = 0, want = 0;
        run(&h, 0, numbers[i], 1 << 30);
        for (int k = 0; k < HN_RUN_MEANS; k++) {
            steps += h.mean[k].steps;
            sum += h.mean[k].loss[1];
            if (k >= (int)h.n_means) assert_true(h.mean[k].steps == 0);
            if (k + 1 < (int)h.n_means) assert_true(h.mean[k].steps == h.width);
        }
        for (int k = 0; k < numbers[i]; k++) want += loss_at(k, 1);
        assert_true(steps == numbers[i] && h.steps == numbers[i] && h.tokens == 100.0 * numbers[i]);
        assert_true(fabs(sum - want) <= 1e-9 * want);
        assert_true(hn_run_history_is_whole(&h));
    }
}

static void test_checks(void **state) {
    (void)state;
    hn_run_history h = {0};
    const double losses[1] = {1}, right[1] = {0.5};
    run(&h, 0, 100, 50);
    assert_true(h.n_checks == 2 && h.check[0].step == 50 && h.check[1].step == 100);
    hn_run_history_add_check(&h, losses, right, 1, 3); /* again at the end: replaces the last */
    assert_true(h.n_checks == 2 && h.check[1].tau == 3 && h.check[1].loss[1] == 0);
    run(&h, 100, 5000, 50);
    assert_true(h.n_checks == HN_RUN_CHECKS && h.check[0].step == 50 && h.check[HN_RUN_CHECKS - 1].step == 5000);
    for (int i = 1; i < HN_RUN_CHECKS; i++) assert_true(h.check[i].step > h.check[i - 1].step);
    hn_run_history bad = h;
    bad.n_means = HN_RUN_MEANS + 1;
    assert_false(hn_run_history_is_whole(&bad));
    bad = h;
    bad.n_checks = 1.5;
    assert_false(hn_run_history_is_whole(&bad));
    bad = h;
    bad.check[3].tau = NAN;
    assert_false(hn_run_history_is_whole(&bad));
    bad = h;
    bad.steps = -1;
    assert_false(hn_run_history_is_whole(&bad));
}

/* A history that was stored in a file gives the same bytes of the plot, which contains its numbers. */
static void test_picture(void **state) {
    (void)state;
    hn_run_history whole = {0}, ended = {0}, again;
    run(&whole, 0, 3000, 500);
    run(&ended, 0, 1234, 500);
    memcpy(&again, &ended, sizeof again);
    run(&again, 1234, 3000, 500);
    assert_memory_equal(&whole, &again, sizeof whole);
    char *a = drawn(&whole, &about);
    assert_well_formed(a);
    assert_non_null(strstr(a, "h&lt;e&gt;&amp;??.gguf: step 3000 of 5000, 300.0 thousand tokens"));
    assert_non_null(strstr(a, "held out: loss 4.001 5.001 6.001, accepted 0.500 0.250 0.125"));
    assert_non_null(strstr(a, "1.88 tokens a round, the best 2.25; speed-up at most 1.64 by the bytes read"));
    assert_int_equal(count(a, "<circle"), 6 * 7); /* three losses, three positions, tokens a round; six checks */
    assert_int_equal(count(a, "<polyline"), 10);
    assert_non_null(strstr(a, ">draft 3</text>"));
    assert_null(strstr(a, ">draft 4</text>"));
    assert_non_null(strstr(a, "prefers-color-scheme:dark"));
    char *b = drawn(&again, &about);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

/* Places of the points: acceptance of a half is half-way up, the last check at the right end. */
static void test_places(void **state) {
    (void)state;
    hn_run_history h = {0};
    run(&h, 0, 200, 100);
    char *a = drawn(&h, &about);
    assert_non_null(strstr(a, "<circle class=\"dot c0\" cx=\"978.0\" cy=\"255.0\""));
    assert_non_null(strstr(a, "<circle class=\"dot c0\" cx=\"778.0\" cy=\"255.0\""));
    assert_non_null(strstr(a, "<circle class=\"dot c1\" cx=\"978.0\" cy=\"327.5\""));
    free(a);
}

static void test_little(void **state) {
    (void)state;
    for (int drafts = 1; drafts <= HN_RUN_DRAFTS; drafts += 15)
        for (int steps = 0; steps < 3; steps++)
            for (int checks = 0; checks < 2; checks++) {
                hn_run_history h = {0};
                const hn_picture_about a = {.head = "", .drafts = drafts};
                const double zeros[HN_RUN_DRAFTS] = {0};
                for (int i = 0; i < steps; i++) hn_run_history_step(&h, zeros, drafts, 0);
                if (checks) hn_run_history_add_check(&h, zeros, zeros, drafts, 1);
                char *text = drawn(&h, &a);
                assert_well_formed(text);
                assert_null(strstr(text, "speed-up"));
                free(text);
            }
}

/* With a full disk the earlier plot remains. */
static void test_full(void **state) {
    (void)state;
    hn_run_history h = {0};
    hunch_error err = {0};
    run(&h, 0, 10, 5);
    char *before = drawn(&h, &about);
    run(&h, 10, 20, 5);
    hunch_status st = HUNCH_FAILED;
    int broken = 0;
    for (; st; broken++) {
        hn_fault_arm(HN_FAULT_WRITE, broken, true);
        st = hn_picture_write(&h, &about, test_path("p.svg"), &err);
        hn_fault_arm(HN_FAULT_WRITE, -1, false);
        assert_false(test_file_exists(test_path("p.svg.partial")));
        if (!st) break;
        assert_int_equal(st, HUNCH_FAILED);
        assert_non_null(strstr(err.message, "p.svg"));
        bytes b = test_file_read(test_path("p.svg"));
        assert_int_equal(b.size, strlen(before));
        assert_memory_equal(b.at, before, b.size);
        bytes_free(&b);
    }
    assert_true(broken >= 3);
    free(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps),   cmocka_unit_test(test_checks),
                                       cmocka_unit_test(test_picture), cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_little),  cmocka_unit_test(test_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
