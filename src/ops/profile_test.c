/* SPDX-License-Identifier: Apache-2.0 */
/* profile_test.c - a product is recorded under the phase of its matrix, whatever was called before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/cpu_backend.h"
#include "ops/profile.h"

enum { IN = 32, OUT = 16, ROWS = 3 };

/* In an order that no model has. */
static const hn_phase products[] = {HN_PHASE_DOWN, HN_PHASE_O,   HN_PHASE_O,    HN_PHASE_OTHER,
                                    HN_PHASE_QKV,  HN_PHASE_DOWN, HN_PHASE_OUTPUT};
enum { PRODUCTS = sizeof products / sizeof *products };

typedef struct rig {
    hn_pool *pool;
    hn_cpu_backend cpu;
    hn_mem *mem;
    hn_buf x, y, weights;
    hn_act act;
    const hn_ops *called;
} rig;

static void rig_open(rig *r) {
    const size_t row = sizeof(float) * IN * ROWS;
    assert_int_equal(hn_pool_create(&r->pool, 2, NULL), HUNCH_OK);
    hn_cpu_backend_init(&r->cpu, r->pool, HN_ISA_REF, true);
    hn_backend *b = &r->cpu.base;
    const size_t strip = b->matrix_bytes(b, HN_F32, HN_STRIP, IN), act = (b->act_bytes(IN, ROWS) + 63) / 64 * 64;
    assert_int_equal(b->mem_create(b, HN_MEM_WORK, 2 * row + act + strip, &r->mem, NULL), HUNCH_OK);
    r->x = (hn_buf){r->mem, 0};
    r->y = hn_at(r->x, row);
    r->act = (hn_act){hn_at(r->y, row), IN, ROWS, HN_ACT_F32};
    r->weights = hn_at(r->act.data, act);
}

static void rig_close(rig *r) {
    r->cpu.base.mem_free(&r->cpu.base, r->mem);
    hn_pool_free(r->pool);
}

static void call_products(void *arg, int rank, int ranks) {
    const rig *r = arg;
    const hn_exec ex = {r->called, &r->cpu.base, rank, ranks};
    ex.ops->quantise(&ex, hn_number(ROWS), (hn_matrix){r->x, IN, IN}, r->act);
    for (int i = 0; i < PRODUCTS; i++) {
        const hn_weight w = {.dtype = HN_F32, .out = OUT, .in = IN, .phase = products[i],
                             .place = ex.backend->place(ex.backend, HN_F32, IN, r->weights)};
        const hn_matrix y = {r->y, OUT, OUT};
        const hn_linear_out outs[] = {{&w, y}, {&w, y}};
        ex.ops->linear(&ex, hn_number(ROWS), r->act, outs, 1 + i % 2, false);
    }
}

static void test_products_have_the_phase_of_their_matrix(void **state) {
    (void)state;
    rig r;
    hn_profile *p = NULL;
    hn_phase_sum sum[HN_PHASES];
    int calls[HN_PHASES] = {[HN_PHASE_NORM] = 1}, matrices[HN_PHASES] = {0};
    for (int i = 0; i < PRODUCTS; i++) calls[products[i]]++, matrices[products[i]] += 1 + i % 2;
    rig_open(&r);
    assert_int_equal(hn_profile_open(&p, r.cpu.base.ops, r.pool, NULL), HUNCH_OK);
    r.called = hn_profile_ops(p);
    for (int again = 0; again < 2; again++) {
        hn_pool_run(r.pool, call_products, &r);
        hn_profile_take(p, sum);
        for (int i = 0; i < HN_PHASES; i++) {
            assert_int_equal(sum[i].calls, calls[i]);
            assert_true(sum[i].macs == (double)matrices[i] * ROWS * IN * OUT);
            assert_true(sum[i].bytes == (double)matrices[i] * sizeof(float) * IN * OUT);
        }
    }
    hn_profile_close(&p);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products_have_the_phase_of_their_matrix)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
