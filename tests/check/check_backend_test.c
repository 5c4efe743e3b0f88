/* SPDX-License-Identifier: Apache-2.0 */
/* check_backend_test.c - the backend's memory, the measurements of the machine, and both without memory. */
#include "check.h"

#include "base/fault.h"
#include "ops/machine.h"

static void memory_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    unsigned char src[300];
    for (int i = 0; i < 300; i++) src[i] = (unsigned char)check_int(0, 255);
    hn_buf b = check_mem(c.o, 1000);
    const unsigned char *view = c.o->read(c.o, (hn_ticket){0}, b, 1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(view[i], 0);
    c.o->write(c.o, hn_at(b, 77), src, sizeof src);
    assert_memory_equal(c.o->read(c.o, c.o->submit(c.o, NULL, NULL), hn_at(b, 77), sizeof src), src, sizeof src);
    c.o->write(c.o, b, NULL, 0);
    c.o->mem_free(c.o, b.mem);
    c.o->mem_free(c.o, NULL);
    check_close(&c);
}

static void no_memory_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    for (int n = 0; n < 2; n++) {
        hunch_error err = {.status = HUNCH_OK};
        hn_mem *m = (hn_mem *)&err;
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(c.o->mem_create(c.o, HN_MEM_WORK, 5000, &m, &err), HUNCH_NO_MEMORY);
        assert_null(m);
        assert_int_equal(err.status, HUNCH_NO_MEMORY);
    }
    hn_machine *machine = (hn_machine *)&c;
    for (int n = 0; n < 2; n++) {
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(hn_machine_open(&machine, c.pool, HN_ISA_REF, NULL), HUNCH_NO_MEMORY);
        assert_null(machine);
    }
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_int_equal(hn_machine_open(&machine, c.pool, HN_ISA_REF, NULL), HUNCH_OK);
    for (int n = 0; n < 6; n++) { /* two allocations for each of three products */
        hn_peaks peaks;
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(hn_machine_peaks(machine, &peaks, NULL), HUNCH_NO_MEMORY);
    }
    double gb_s;
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_int_equal(hn_machine_read(machine, 8192, 1, false, 1, &gb_s, NULL), HUNCH_NO_MEMORY);
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    hn_machine_close(&machine);
    assert_null(machine);
    hn_machine_close(&machine);
    check_close(&c);
}

/* Numbers of rows and results: a submission sees what was written before it; one without a function is a ticket, too. */
static void add_count(const hn_exec *ex, const void *arg) {
    const hn_buf *at = arg;
    const hn_matrix x = {hn_at(*at, 64), 1, 1};
    ex->ops->scale(ex, (hn_count){*at, 4}, x, 2);
}

static void submit_test(void **state HN_UNUSED) {
    check_ops c = check_open(2, HN_ISA_REF, false);
    const hn_buf at = check_mem(c.o, 128);
    const float ones[4] = {1, 1, 1, 1};
    c.o->write(c.o, hn_at(at, 64), ones, sizeof ones);
    for (int32_t n = 0; n <= 4; n++) { /* the first n numbers are doubled */
        c.o->write(c.o, at, &n, sizeof n);
        const hn_ticket t = c.o->submit(c.o, add_count, &at), empty = c.o->submit(c.o, NULL, NULL);
        assert_true(t.number > 0 && empty.number > t.number && c.o->wait(c.o, t) > 0 && c.o->wait(c.o, empty) == 0);
        const float *x = c.o->read(c.o, t, hn_at(at, 64), sizeof ones);
        for (int i = 0; i < 4; i++) assert_true(x[i] == ldexpf(1, n > i ? n - i : 0));
    }
    c.o->mem_free(c.o, at.mem);
    check_close(&c);
}

static void forms_test(void **state HN_UNUSED) {
    check_ops native = check_open(1, HN_ISA_REF, false), f32 = check_open(1, HN_ISA_REF, true);
    for (int t = 0; t < HN_WEIGHT_TYPES; t++) {
        assert_int_equal(f32.o->act_forms(f32.o, (hn_dtype)t), HN_ACT_F32);
        const int form = hn_dtype_block((hn_dtype)t) > 1 ? HN_ACT_Q8 : t == HN_BF16 ? HN_ACT_BF16 : HN_ACT_F32;
        assert_int_equal(native.o->act_forms(native.o, (hn_dtype)t), form);
    }
    check_close(&native);
    check_close(&f32);
}

/* Only that the numbers are plausible. */
static void machine_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        check_ops c = check_open(2, isa, false);
        hn_machine *m;
        hn_peaks p;
        double read[4] = {0};
        assert_int_equal(hn_machine_open(&m, c.pool, isa, NULL), HUNCH_OK);
        for (int i = 0; i < 4; i++) /* both kinds of pages, less than all threads, a size with a tail */
            assert_int_equal(hn_machine_read(m, ((size_t)4 << 20) + 4096 * 3, i % 2 + 1, i / 2 == 0, 1, &read[i], NULL), HUNCH_OK);
        assert_int_equal(hn_machine_peaks(m, &p, NULL), HUNCH_OK);
        printf("%s: read %.1f GB/s, int8 %.1f, bf16 %.1f, f32 %.1f G MAC/s, dots %.1f, %.1f, barrier %.3f us\n", hn_isa_name(isa),
               read[1], p.int8_gmac_s, p.bf16_gmac_s, p.f32_gmac_s, p.int8_dot_gmac_s, p.bf16_dot_gmac_s, p.barrier_us);
        for (int i = 0; i < 4; i++) assert_true(read[i] > 0.05 && read[i] < 1e5);
        const double macs[] = {p.int8_gmac_s, p.bf16_gmac_s, p.f32_gmac_s};
        for (int i = 0; i < 3; i++) assert_true(macs[i] > 0.001 && macs[i] < 1e6);
        assert_true(hn_isa_includes(isa, HN_ISA_AVX512) ? p.int8_dot_gmac_s > 0.01 : p.int8_dot_gmac_s >= 0);
        assert_true(hn_isa_includes(isa, HN_ISA_AVX512BF16) ? p.bf16_dot_gmac_s > 0.01 : p.bf16_dot_gmac_s >= 0);
        assert_true(p.barrier_us > 1e-3 && p.barrier_us < 1e5);
        hn_machine_close(&m);
        check_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_test),
        cmocka_unit_test(no_memory_test),
        cmocka_unit_test(submit_test),
        cmocka_unit_test(forms_test),
        cmocka_unit_test(machine_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
