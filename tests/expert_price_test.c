/* SPDX-License-Identifier: Apache-2.0 */
/* expert_price_test.c - GPT-OSS' experts in the price of rows: an engine's planner knows their number and what part of the bytes they are,
 * learns from passes how many a further row adds, and counts these in what more rows cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/pass_costs.h"
#include "fixture.h"
#include "format/bytes_for_tests.h"

enum { LAYERS = 4, EXPERTS = 8, WEIGHTS = 3 * 64 * 64 /* of one in a layer */, ROWS = 6 };

static void check_price(const char *path, int used, double bytes_a_weight) {
    hunch_model *m = open_model(path, "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    /* biases beside the weights, and padding of rows this short, are the rest */
    const double size = (double)info.expert_bytes / (LAYERS * WEIGHTS * bytes_a_weight), part = used * (double)info.expert_bytes;
    if (!(size >= 1 && size < 2.3)) fail_msg("%s: an expert has %g bytes for each of its weights", path, size);
    assert_true(part > 0.1 * (double)info.weight_bytes && part < (double)info.weight_bytes);

    hn_cost *c = hn_controller_cost(e->controller);
    assert_true(c->experts.count == EXPERTS && c->experts.used == used && c->experts.each > 0);
    assert_true(hn_cost_distinct_experts(c, 1) == used);
    for (int i = 0; i < 12; i++) { /* as rounds do */
        double seconds;
        must(hunch_measure_pass(e, ROWS, 0, 1, &seconds, err));
        const double distinct = hunch_measure_experts(e);
        assert_true(distinct > used && distinct <= EXPERTS);
        hn_cost_pass(c, &(hn_cost_work){.rows = ROWS, .reads = hn_reads(e, 0), .distinct = distinct}, seconds);
    }
    const double real = hunch_measure_experts(e), expected = hn_cost_distinct_experts(c, ROWS);
    if (real < 0.9 * EXPERTS && !(fabs(expected - real) < 0.3 * real)) fail_msg("%s: %g experts expected, %g used", path, expected, real);
    /* of the price of more rows a part is what their experts add */
    hn_cost others = *c;
    others.experts.count = 0;
    const hn_cost_round round = {.reads = hn_reads(e, 0)};
    double with[HN_COST_ROWS + 1], without[HN_COST_ROWS + 1], hoped[HN_COST_ROWS + 1];
    assert_true(hn_cost_curve(c, &round, with, hoped, 0) && hn_cost_curve(&others, &round, without, hoped, 0));
    assert_true(fabs(with[1] - without[1]) < 1e-6 * with[1]);
    if (!(with[ROWS] > without[ROWS] * 1.001)) fail_msg("%s: rows cost %g, %g without their experts", path, with[ROWS], without[ROWS]);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void test_price(void **state) {
    (void)state;
    must(hunch_convert(data_path("goldens/gpt_oss-mxfp4"), test_path("price.gguf"), NULL, err));
    check_price(data_path("goldens/gpt_oss-bf16"), 2, 2);
    check_price(data_path("goldens/gpt_oss-mxfp4"), 4, 17. / 32);
    check_price(test_path("price.gguf"), 4, 17. / 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_price)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
