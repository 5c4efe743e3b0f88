/* SPDX-License-Identifier: Apache-2.0 */
/* measure_test.c - measuring: it measures what was requested, leaves nothing behind, and its sums add up. No time is compared with an
 * expected duration, only with other times of the same run that contain it or are contained in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "engine/engine.h"
#include "fixture.h"

static hunch_model *model;

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 2, HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    return 0;
}

static hunch_engine *engine(void) {
    return open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
}

static int committed(const hunch_engine *e) {
    return hn_cache_committed(e->cache, e->parallel, 0);
}

static void test_the_sequence_stays(void **state) {
    (void)state;
    hunch_engine *e = engine();
    double s[3] = {0};
    must(hunch_measure_pass(e, 4, 100, 3, s, err));
    for (int i = 0; i < 3; i++) assert_true(s[i] > 0);
    assert_int_equal(committed(e), 100);
    must(hunch_measure_decode(e, 8, 100, s, err));
    assert_true(s[0] > 0);
    assert_int_equal(committed(e), 108);
    must(hunch_measure_pass(e, 64, 90, 1, s, err)); /* goes back, and on again */
    assert_int_equal(committed(e), 90);
    must(hunch_measure_prefill(e, 130, s, err));
    assert_int_equal(committed(e), 130);
    must(hunch_measure_pass(e, 1, 255, 1, s, err));
    assert_int_equal(committed(e), 255);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

static void test_bad_requests(void **state) {
    (void)state;
    static const struct {
        int rows, context;
    } bad[] = {{0, 5}, {-1, 5}, {65, 5}, {1, -1}, {1, 256}, {2, INT32_MAX}, {INT32_MAX, 0}};
    hunch_engine *e = engine();
    hunch_phase phases[HUNCH_PHASES];
    hunch_error why;
    double s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hunch_measure_pass(e, bad[i].rows, bad[i].context, 1, &s, &why), HUNCH_USAGE);
        assert_int_equal(hunch_measure_profile(e, bad[i].rows, bad[i].context, phases, &s, &why), HUNCH_USAGE);
        assert_int_equal(hunch_measure_commit(e, bad[i].rows, 1, bad[i].context, 1, &s, &why), HUNCH_USAGE);
        if (bad[i].rows != 65) assert_int_equal(hunch_measure_decode(e, bad[i].rows, bad[i].context, &s, &why), HUNCH_USAGE);
    }
    assert_int_equal(hunch_measure_prefill(e, 0, &s, &why), HUNCH_USAGE);
    assert_int_equal(hunch_measure_prefill(e, 257, &s, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "257"));
    hunch_engine_close(&e);
}

static double sum_of(const hunch_phase *phases, size_t offset) {
    double sum = 0;
    for (int i = 0; i < HUNCH_PHASES; i++) sum += *(const double *)(const void *)((const char *)&phases[i] + offset);
    return sum;
}
#define SUM(phases, field) sum_of(phases, offsetof(hunch_phase, field))

static const hunch_phase *phase_of(const hunch_phase *phases, const char *name) {
    for (int i = 0; i < HUNCH_PHASES; i++)
        if (!strcmp(phases[i].name, name)) return &phases[i];
    fail_msg("no %s", name);
    return NULL;
}

/* Every product is counted, with its type. */
static void test_profile_adds_up(void **state) {
    (void)state;
    hunch_engine *e = engine();
    hunch_model_info info;
    hunch_model_get_info(model, &info);
    static const int rows[] = {1, 7, 64};
    for (int i = 0; i < 3; i++) {
        hunch_phase p[HUNCH_PHASES];
        hunch_work w;
        double pass_s = 0;
        must(hunch_measure_profile(e, rows[i], 100, p, &pass_s, err));
        assert_int_equal(committed(e), 100);
        assert_true(pass_s > 0 && SUM(p, seconds) > 0 && SUM(p, seconds) <= pass_s);
        for (int k = 0; k < HUNCH_PHASES; k++) {
            assert_true(p[k].calls > 0 ? p[k].seconds > 0 : p[k].seconds <= 0);
            assert_true(p[k].waited >= 0);
        }
        static const char *const once_a_layer[] = {"qkv", "attention", "o", "gate up", "down"};
        for (int k = 0; k < 5; k++) assert_int_equal(phase_of(p, once_a_layer[k])->calls, info.layers);
        static const char *const once_a_pass[] = {"embed", "output"};
        for (int k = 0; k < 2; k++) assert_int_equal(phase_of(p, once_a_pass[k])->calls, 1);
        hunch_engine_work(e, rows[i], rows[i], 100, &w);
        assert_true(SUM(p, bytes) == w.weight_bytes + w.kv_bytes);
        assert_true(SUM(p, macs) == w.macs_int8 + w.macs_bf16 + w.macs_f32);
        assert_true(phase_of(p, "output")->macs == (double)rows[i] * info.vocab * info.hidden);
        assert_true(phase_of(p, "attention")->bytes == w.kv_bytes);
        assert_true(w.weight_bytes == (double)info.weight_bytes);
        assert_true(SUM(p, macs) - phase_of(p, "attention")->macs == rows[i] * info.macs_per_row);
    }
    hunch_engine_close(&e);
}

/* What an engine says that a pass multiplies is what the pass' operations say: latent attention, layers of several sizes, experts. */
static void test_work_of_other_layers(void **state) {
    (void)state;
    static const char *const folders[] = {"deepseek_v3-yarn", "deepseek_v2-lite", "gemma4-e", "gemma4_text-moe"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        snprintf(path, sizeof path, "goldens/%s", folders[i]);
        hunch_model *m = open_model(data_path(path), "best", 1, HUNCH_PRECISION_NATIVE);
        hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 64);
        hunch_model_info info;
        hunch_phase p[HUNCH_PHASES];
        hunch_work w;
        double s;
        hunch_model_get_info(m, &info);
        must(hunch_measure_profile(e, 3, 20, p, &s, err));
        hunch_engine_work(e, 3, 3, 20, &w);
        const double said = w.macs_int8 + w.macs_bf16 + w.macs_f32, done = SUM(p, macs);
        if (!(done == said)) fail_msg("%s: %g multiply-accumulates of operations, %g of the pass", folders[i], done, said);
        assert_true(done - phase_of(p, "attention")->macs == 3 * info.macs_per_row);
        hunch_engine_close(&e);
        hunch_model_close(&m);
    }
}

static void test_work(void **state) {
    (void)state;
    hunch_engine *e = engine();
    hunch_work w, none;
    hunch_engine_work(e, 3, 3, 10, &w);
    /* 5 layers, K and V of 4 heads of 8 for 13 positions, two bytes each; queries of 8 heads over 11, 12 and 13 of them */
    assert_true(w.kv_bytes == 5.0 * 2 * 4 * 8 * 13 * 2);
    assert_true(w.macs_bf16 == 5.0 * 2 * 8 * 8 * (11 + 12 + 13) && w.macs_int8 == 0);
    hunch_engine_work(e, 3, 0, 10, &none);
    hunch_model_info info;
    hunch_model_get_info(model, &info);
    const double output = (double)info.vocab * info.hidden;
    assert_true(w.macs_f32 - none.macs_f32 == 3 * output && w.weight_bytes - none.weight_bytes == 4 * output);
    hunch_engine_close(&e);
}

static void note_waited(void *arg, int rank, int ranks) {
    (void)ranks;
    ((int64_t *)arg)[rank] = hn_pool_waited(model->target.pool, rank);
}

/* Profiling, failed or not, leaves passes as they were. */
static void test_profile_leaves_nothing(void **state) {
    (void)state;
    hunch_engine *e = engine();
    hunch_phase p[HUNCH_PHASES];
    hunch_error why;
    double s;
    must(hunch_measure_pass(e, 2, 20, 1, &s, err));
    for (int n = 0; n < 2; n++) {
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(hunch_measure_profile(e, 2, 20, p, NULL, &why), HUNCH_NO_MEMORY);
    }
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    must(hunch_measure_profile(e, 2, 20, p, NULL, err));
    int64_t waited[2][2];
    hn_pool_run(model->target.pool, note_waited, waited[0]);
    must(hunch_measure_pass(e, 2, 20, 3, (double[3]){0}, err));
    hn_pool_run(model->target.pool, note_waited, waited[1]);
    assert_memory_equal(waited[0], waited[1], sizeof waited[0]);
    hunch_engine_close(&e);
}

/* A measurement keeps its rows; a session that needs their pages gets them. */
static void test_pages_are_given_back(void **state) {
    (void)state;
    static const hunch_token prompt[] = {1, 403, 407, 261, 378};
    double seconds;
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_request r;
    hunch_session *s = NULL;
    hunch_session_state end;
    hunch_engine_options_defaults(&o);
    o.context = o.pool_rows = 256;
    o.page_rows = 16;
    must(hunch_engine_open(&e, model, &o, err));
    must(hunch_measure_pass(e, 8, 248, 1, &seconds, err));
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = 5;
    r.max_tokens = 240;
    r.ignore_eos = true;
    must(hunch_session_open(&s, e, &r, err));
    must(hunch_engine_run(e, err));
    hunch_session_get(s, &end);
    assert_int_equal(end.finish, HUNCH_FINISH_LENGTH);
    hunch_session_close(&s);
    hunch_engine_close(&e);
}

static void test_meter(void **state) {
    (void)state;
    hunch_model_options o;
    hunch_meter *t = NULL;
    hunch_error why;
    double gb_s[2] = {0};
    hunch_model_options_defaults(&o);
    o.threads = 3;
    o.isa = "ref";
    must(hunch_meter_open(&t, NULL, &o, err));
    for (int threads = 1; threads <= 3; threads++) {
        must(hunch_meter_read(t, 3 << 20, threads, threads != 2, 2, gb_s, err));
        assert_true(gb_s[0] > 0 && gb_s[1] > 0);
    }
    assert_int_equal(hunch_meter_read(t, 3 << 20, 4, true, 1, gb_s, &why), HUNCH_USAGE);
    assert_int_equal(hunch_meter_read(t, 3 << 20, 0, true, 1, gb_s, &why), HUNCH_USAGE);
    assert_int_equal(hunch_meter_read(t, 3 * 4096 - 1, 3, true, 1, gb_s, &why), HUNCH_USAGE);
    assert_int_equal(hunch_meter_read(t, (size_t)1 << 46, 3, true, 1, gb_s, &why), HUNCH_NO_MEMORY);
    assert_non_null(strstr(why.message, "are available")); /* checked before allocation: a system may overcommit */
    must(hunch_meter_read(t, 3 << 20, 3, true, 2, gb_s, err));
    hunch_meter_close(&t);
    assert_null(t);
    hunch_meter_close(&t);
    must(hunch_meter_open(&t, NULL, NULL, err)); /* the usual options */
    hunch_meter_close(&t);
    o.isa = "warp9";
    assert_int_equal(hunch_meter_open(&t, NULL, &o, &why), HUNCH_USAGE);
    o.isa = NULL;
    for (int n = 0;; n++) {
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        hunch_status st = hunch_meter_open(&t, NULL, &o, &why);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (st == HUNCH_OK) {
            assert_true(n >= 4); /* the meter, its pool, and two of the machine */
            break;
        }
        assert_int_equal(st, HUNCH_NO_MEMORY);
        assert_null(t);
    }
    hunch_meter_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_sequence_stays), cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_profile_adds_up),    cmocka_unit_test(test_work),
        cmocka_unit_test(test_work_of_other_layers),
        cmocka_unit_test(test_profile_leaves_nothing), cmocka_unit_test(test_pages_are_given_back),
        cmocka_unit_test(test_meter),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
