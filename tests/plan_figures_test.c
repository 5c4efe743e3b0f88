/* SPDX-License-Identifier: Apache-2.0 */
/* plan_figures_test.c - passes predicted from figures alone, against those that were measured and committed; the two numbers of hunch that
 * this takes are fitted on another model. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "fixture.h"
#include "plan/figures.h"

enum { CONTEXT = 256 };

/* Of a file in bench/results: bandwidth in bytes a second before its turns, peak, seconds of passes of 1 and 8 rows, and what one row would
 * have taken at the bandwidth that was read in the turns. */
typedef struct passes {
    double bandwidth, peak, one, eight, limit;
} passes;

static passes read_passes(const char *name) {
    char path[256], line[1000];
    passes p = {0};
    snprintf(path, sizeof path, "../../bench/results/amd-epyc-family25-model17/%s.pass.csv", name);
    FILE *f = fopen(data_path(path), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        double gb_s, gmac_s, ms, limit;
        int rows, context;
        const char *at = strstr(line, "\",avx512bf16,2,"), *pass = strstr(line, ",pass_ms,");
        if (!at || !pass || sscanf(at, "\",avx512bf16,2,%lf,%lf", &gb_s, &gmac_s) != 2) continue;
        assert_int_equal(sscanf(pass, ",pass_ms,%d,%d,%lf,%*f,%*f,%*f,%*f,%*f,%*f,%lf", &rows, &context, &ms, &limit),
                         4);
        p.bandwidth = gb_s * 1e9;
        p.peak = gmac_s * 1e9;
        if (context == CONTEXT && rows == 1) p.one = ms * 1e-3, p.limit = limit * 1e-3;
        if (context == CONTEXT && rows == 8) p.eight = ms * 1e-3;
    }
    fclose(f);
    assert_true(p.one > 0 && p.eight > 0);
    return p;
}

/* SmolLM2-135M in Q4_1 after 256 rows: 96.1 MB of matrices and 5.9 MB of keys and values; 134.5 M weights; attention of 30 layers of 576
 * numbers, twice, in bf16. Its time with another overlap than the constant's shows whether that is the best. */
static double smollm2(const passes *p, int rows) {
    const hn_figures_machine m = {p->bandwidth, p->peak};
    const hn_figures_work w = {96.1e6 + 5.9e6, rows * (134.5e6 + 2 * 2 * CONTEXT * 30 * 576.0), 303};
    return hn_figures_seconds(&m, &w);
}

static void test_fit(void **state) {
    (void)state;
    const passes p = read_passes("smollm2-135m-q4_1");
    const double one = smollm2(&p, 1) / p.one, eight = smollm2(&p, 8) / p.eight;
    if (fabs(one - 1) > .02 || fabs(eight - 1) > .02)
        fail_msg("SmolLM2: %.3f of the measured pass of one row, %.3f of eight", one, eight);
}

/* Milliseconds of a curve's pass: "ms" or "limit_ms". */
static double curve_of(const json_t *plan, int rows, const char *key) {
    const json_t *p;
    size_t i;
    json_array_foreach(json_object_get(plan, "curve"), i,
                       p) if (json_integer_value(json_object_get(p, "rows")) ==
                              rows) return json_number_value(json_object_get(p, key));
    fail_msg("no pass of %d rows", rows);
    return NAN;
}

static double curve_ms(const json_t *plan, int rows) {
    return curve_of(plan, rows, "ms");
}

static json_t *plan_of(const hunch_figures *f, int context) {
    hunch_plan_options o;
    char *text = NULL;
    hunch_plan_options_defaults(&o);
    o.figures = f;
    o.context = context;
    must(hunch_plan(NULL, &o, &text, err));
    json_t *plan = json_loads(text, 0, NULL);
    hunch_free(text);
    assert_non_null(plan);
    return plan;
}

/* The machine's speed changed between its reading before the turns and those in them, by up to 1.7 times: the mean of both times. */
static json_t *plan_of_passes(const passes *p, const char *config, const char *type) {
    hunch_figures f = {p->bandwidth, p->peak, config, 0, type};
    json_t *plan = plan_of(&f, CONTEXT);
    const double before = curve_of(plan, 1, "limit_ms") * 1e-3;
    f.bandwidth *= before / ((before + p->limit) / 2);
    json_decref(plan);
    return plan_of(&f, CONTEXT);
}

static void test_committed_passes(void **state) {
    static const struct {
        const char *config, *type, *name;
    } models[] = {{"configs/qwen3-0.6b.json", "BF16", "random-qwen3-0.6b-bf16"},
                  {"configs/qwen3-0.6b.json", "Q4_0", "random-qwen3-0.6b-q4_0"},
                  {"configs/qwen3-0.6b.json", "Q4_K", "random-qwen3-0.6b-q4_k_m"},
                  {"configs/qwen3-0.6b.json", "Q8_0", "random-qwen3-0.6b-q8_0"},
                  {"configs/qwen3-4b.json", "Q4_0", "random-qwen3-4b-q4_0"},
                  {"configs/qwen3-4b.json", "q4_k_m", "random-qwen3-4b-q4_k_m"},
                  {"configs/qwen3-4b.json", "Q8_0", "random-qwen3-4b-q8_0"}};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const passes p = read_passes(models[i].name);
        json_t *plan = plan_of_passes(&p, data_path(models[i].config), models[i].type);
        const double one = curve_ms(plan, 1) * 1e-3 / p.one, eight = curve_ms(plan, 8) * 1e-3 / p.eight;
        print_message("%-28s predicted / measured: %.2f of one row, %.2f of eight\n", models[i].name, one, eight);
        if (fabs(one - 1) > .2 || fabs(eight - 1) > .2) fail_msg("%s: beyond 20 %%", models[i].name);
        json_decref(plan);
    }
}

/* What ranks exchange (docs/machines.md): of each layer heads' results and the gated numbers as 8-bit rows, and the stream twice. */
static void test_machines(void **state) {
    (void)state;
    const hunch_figures f = {36e9, 470e9, data_path("configs/qwen3-4b.json"), 0, "Q4_K"};
    const double latency = 50e-6, bandwidth = 3.1e9, row = 36 * (1.125 * (32 * 128 + 9728) + 2 * 4 * 2560);
    const hn_figures_links links = {latency, bandwidth};
    const hn_figures_exchange exchange = {4 * 36, row};
    hunch_plan_options o;
    char *text = NULL;
    double alone = 0, gain = 0;
    const int batch[] = {1};
    size_t i;
    json_t *m;
    hunch_plan_options_defaults(&o);
    o.figures = &f;
    o.batch = batch;
    o.n_batch = 1;
    o.machines = 64;
    o.link_latency = latency;
    o.link_bytes_s = bandwidth;
    must(hunch_plan(NULL, &o, &text, err));
    json_t *plan = json_loads(text, 0, NULL), *list = json_object_get(plan, "machines");
    hunch_free(text);
    assert_int_equal(json_array_size(list), 7);
    json_array_foreach(list, i, m) {
        const int n = 1 << i, steps = (int)i;
        const double link = (4 * 36 + 3) * steps * latency + row * (n - 1) / n / bandwidth, whole = 36 * 10 * HN_FIGURES_OPERATION;
        const double pass = json_number_value(json_object_get(m, "pass_ms")) * 1e-3;
        if (n == 1) alone = pass;
        else assert_true(fabs(hn_figures_links_seconds(&links, &exchange, n, 1) / link - 1) < 1e-9);
        const double want = whole + (alone - whole) / n + (n > 1 ? link : 0);
        if (fabs(pass / want - 1) > 1e-4) fail_msg("%d machines: a pass of %g s, expected %g", n, pass, want);
        /* latency is paid a round, not a token */
        const double own = json_number_value(json_object_get(m, "gain"));
        if (own < gain - .01) fail_msg("%d machines: speculation gives %.3f, %.3f on half as many", n, own, gain);
        gain = own;
    }
    assert_true(gain > json_number_value(json_object_get(json_array_get(list, 0), "gain")) + .05);
    json_decref(plan);
    o.link_latency = 0;
    assert_int_equal(hunch_plan(NULL, &o, &text, NULL), HUNCH_USAGE);
}

/* Without a config: the same bytes, no keys and values. */
static void test_parameters(void **state) {
    (void)state;
    const hunch_figures f = {36e9, 470e9, NULL, 8e9, "Q4_K"};
    json_t *plan = plan_of(&f, 0);
    assert_true(fabs(curve_ms(plan, 1) / (1e3 * 8e9 * 4.785 / 8 / 36e9) - 1) < .02);
    assert_true(json_is_true(json_object_get(plan, "predicted")));
    assert_string_equal(json_string_value(json_object_get(plan, "recommend")), "--draft ngram --draft-depth 2");
    json_decref(plan);
}

/* The configurations that classes of transformers have by default open; matrices that a row reads, in millions of weights, as their
 * modules have them (those that transformers cannot make without more keys: by hand). */
static void test_default_configurations(void **state) {
    static const struct {
        const char *name;
        double weights;
    } classes[] = {{"AfmoeConfig", 3268.28},          {"Ernie4_5Config", 360.71},       {"Ernie4_5_MoeConfig", 3352.00},
                   {"Exaone4Config", 9009.36},        {"ExaoneMoeConfig", 6287.00},     {"Glm4Config", 8778.68},
                   {"HYV3Config", 20180.11},          {"HunYuanDenseV1Config", 7667.71}, {"HunYuanMoEV1Config", 11996.36},
                   {"LagunaConfig", 2558.79},         {"Lfm2Config", 2705.33},          {"Lfm2MoeConfig", 1881.01},
                   {"MiMoV2FlashConfig", 14820.57},   {"MiniMaxM2Config", 10415.11},    {"Ministral3Config", 7952.40},
                   {"Mistral3Config", 22900.90},      {"MixtralConfig", 12748.59},      {"Olmo2Config", 6682.05},
                   {"Olmo3Config", 6682.05},          {"Qwen2MoeConfig", 2377.76},      {"SeedOssConfig", 28284.29},
                   {"Step3p7Config", 10347.02},       {"Step3p7TextConfig", 10347.02}};
    (void)state;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        char path[200];
        snprintf(path, sizeof path, "configs/defaults/%s.json", classes[i].name);
        const hunch_figures f = {36e9, 470e9, data_path(path), 0, "BF16"};
        json_t *plan = plan_of(&f, 0);
        const double bytes = json_number_value(json_object_get(json_object_get(plan, "model"), "bytes"));
        if (fabs(bytes / 2e6 / classes[i].weights - 1) > 1e-5)
            fail_msg("%s: %.2f million weights, expected %.2f", classes[i].name, bytes / 2e6, classes[i].weights);
        json_decref(plan);
    }
}

/* A machine that computes little for what it reads: every row costs. */
static void test_no_use(void **state) {
    (void)state;
    const hunch_figures f = {400e9, 400e9, NULL, 8e9, "Q8_0"};
    json_t *plan = plan_of(&f, 0);
    assert_string_equal(json_string_value(json_object_get(plan, "recommend")), "--draft none");
    assert_non_null(strstr(json_string_value(json_object_get(plan, "why")), "cannot pay here because a draft adds"));
    json_decref(plan);
}

static void test_refused(void **state) {
    static const struct {
        hunch_figures f;
        const char *says;
    } wrong[] = {{{0, 1e12, NULL, 8e9, "Q4_K"}, "bandwidth 0"},
                 {{1e9, -1, NULL, 8e9, "Q4_K"}, "peak -1"},
                 {{1e9, 1e12, NULL, 0, "Q4_K"}, "0 parameters"},
                 {{1e9, 1e12, NULL, 8e9, "Q4"}, "type Q4: expected"},
                 {{1e9, 1e12, "/nowhere/config.json", 0, NULL}, "no config.json"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hunch_plan_options o;
        hunch_error err = {0};
        char *text;
        hunch_plan_options_defaults(&o);
        o.figures = &wrong[i].f;
        assert_int_not_equal(hunch_plan(NULL, &o, &text, &err), HUNCH_OK);
        if (!strstr(err.message, wrong[i].says)) fail_msg("%s, expected %s", err.message, wrong[i].says);
        assert_null(text);
    }
}

/* What a text of a model with states takes: 36 layers of 64 x 64 x 128, and of a row x, B, the step and the convolution's input. */
static void test_text_memory(void **state) {
    (void)state;
    const hunch_figures f = {36e9, 470e9, data_path("configs/granite-4.0-h-micro.json"), 0, "Q4_0"};
    json_t *plan = plan_of(&f, CONTEXT), *model = json_object_get(plan, "model");
    static const struct {
        const char *key;
        double want;
    } of[] = {{"cache_row_bytes", 4 * 2 * 8 * 64 * 2},
              {"state_bytes", 36.0 * 64 * 64 * 128 * 4},
              {"input_bytes", 36.0 * (4096 + 128 + 64 + 4352) * 4}};
    for (int i = 0; i < 3; i++) { /* a few digits are written */
        const double is = json_number_value(json_object_get(model, of[i].key));
        if (!(fabs(is / of[i].want - 1) < 1e-4)) fail_msg("%s is %g, expected %g", of[i].key, is, of[i].want);
    }
    json_decref(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fit),        cmocka_unit_test(test_committed_passes),
                                       cmocka_unit_test(test_machines),   cmocka_unit_test(test_parameters),
                                       cmocka_unit_test(test_default_configurations), cmocka_unit_test(test_no_use),
                                       cmocka_unit_test(test_text_memory),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
