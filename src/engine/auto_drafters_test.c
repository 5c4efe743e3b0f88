/* SPDX-License-Identifier: Apache-2.0 */
/* auto_drafters_test.c - what `auto` opens without a head: recycle, and lookahead with the window that suits the kept price of rows, which
 * is read once; beside a head or draft model neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/file_tree_for_tests.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "fixture.h"

static hunch_engine *engine_of(hunch_model *m, const char *draft) {
    return open_engine(m, draft, 1, 64, HUNCH_KV_DEFAULT, 64, 64);
}

/* Keeps costs in which each further row takes `each` of the first one. */
static void keep_price(const hunch_engine *e, double each) {
    hn_cost *c = hn_alloc(sizeof *c);
    hn_cost_init(c);
    for (int turn = 0; turn < 3; turn++)
        for (int rows = 1; rows <= HN_COST_ROWS; rows++)
            hn_cost_pass(c, &(hn_cost_work){.rows = rows}, 1e-3 * (1 + each * (rows - 1)));
    must(hn_cost_save(c, e->curve_path, e->curve_key, err));
    hn_free(c);
}

/* The engine with the given price of rows; the engine that is passed is closed. */
static hunch_engine *reopened(hunch_model *m, hunch_engine *e, double each, const char *draft) {
    char path[500], key[700];
    snprintf(path, sizeof path, "%s", e->curve_path);
    snprintf(key, sizeof key, "%s", e->curve_key);
    hunch_engine_close(&e); /* keeps its own costs */
    hunch_engine names = {.curve_path = path, .curve_key = key};
    keep_price(&names, each);
    return engine_of(m, draft);
}

static void test_lookahead(void **state) {
    (void)state;
    setenv("HUNCH_CACHE", tree_root, 1);
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = engine_of(m, "auto");
    assert_int_equal(hunch_engine_drafters(e), 4);
    assert_string_equal(hunch_engine_drafter_name(e, 3), "recycle");
    assert_non_null(strstr(hunch_engine_left_out(e, 0), "kept for the next one"));
    e = reopened(m, e, 0.3, "auto");
    assert_int_equal(hunch_engine_drafters(e), 4);
    assert_non_null(strstr(hunch_engine_left_out(e, 0), "takes 2.")); /* 5.3 rows more, .3 each */
    e = reopened(m, e, 0.001, "auto");
    assert_int_equal(hunch_engine_drafters(e), 5);
    assert_non_null(strstr(hunch_engine_drafter_name(e, 4), "lookahead"));
    assert_int_equal(e->drafter[4].needs.max_depth, 7 + 5 - 2); /* the largest window */
    assert_null(hunch_engine_left_out(e, 0));
    e = reopened(m, e, 0.001, "auto+lookahead,window=2,ngram=3,guess=2+recycle"); /* the user's options hold */
    assert_int_equal(hunch_engine_drafters(e), 5);
    assert_int_equal(e->drafter[3].needs.max_depth, 2 + 3 - 2);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* One that is requested closes them as one that lies beside the model does (tests/auto_heads_test.c). */
static void test_requested_model(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    char spec[600];
    snprintf(spec, sizeof spec, "auto+model:%s", data_path("models/stories260K/stories260K.f32.gguf"));
    hunch_engine *e = engine_of(m, spec);
    assert_int_equal(hunch_engine_drafters(e), 4);
    assert_non_null(strstr(hunch_engine_drafter_name(e, 3), "model"));
    assert_non_null(strstr(hunch_engine_left_out(e, 0), "recycle and lookahead"));
    assert_null(hunch_engine_left_out(e, 1));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static uint64_t reads_of(hunch_model *m, const char *draft) {
    hn_fault_arm(HN_FAULT_READ, INT64_MAX, false);
    hunch_engine *e = engine_of(m, draft);
    const uint64_t n = hn_fault_count(HN_FAULT_READ);
    hn_fault_arm(HN_FAULT_READ, -1, false);
    assert_true(e->kept.found);
    hunch_engine_close(&e);
    return n;
}

/* A requested lookahead needs no price. */
static void test_costs_are_read_once(void **state) {
    (void)state;
    setenv("HUNCH_CACHE", tree_root, 1);
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = engine_of(m, "auto");
    hunch_engine_close(&e);
    const uint64_t n = reads_of(m, "auto");
    assert_true(n > 0);
    assert_int_equal(n, reads_of(m, "auto+lookahead,window=2,ngram=3,guess=2"));
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lookahead), cmocka_unit_test(test_requested_model),
                                       cmocka_unit_test(test_costs_are_read_once)};
    return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
