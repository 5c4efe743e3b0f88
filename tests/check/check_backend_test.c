/* SPDX-License-Identifier: Apache-2.0 */
/* check_backend_test.c - the backend's memory, the measurements of the machine, and what both do without memory. */
#include "check.h"

#include "base/fault.h"
#include "ops/machine.h"

static void memory_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    unsigned char src[300], dst[300];
    for (int i = 0; i < 300; i++) src[i] = (unsigned char)check_int(0, 255);
    hn_buf b = check_mem(&c.o, 1000);
    const unsigned char *view = c.o.view(&c.o, b);
    for (int i = 0; i < 1000; i++) assert_int_equal(view[i], 0);
    c.o.write(&c.o, hn_at(b, 77), src, sizeof src);
    c.o.read(&c.o, dst, hn_at(b, 77), sizeof dst);
    assert_memory_equal(src, dst, sizeof src);
    assert_memory_equal((const unsigned char *)c.o.view(&c.o, hn_at(b, 77)), src, sizeof src);
    c.o.write(&c.o, b, NULL, 0);
    c.o.mem_free(&c.o, b.mem);
    c.o.mem_free(&c.o, NULL);
    check_close(&c);
}

static void no_memory_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    for (int n = 0; n < 2; n++) {
        hunch_error err = {.status = HUNCH_OK};
        hn_mem *m = (hn_mem *)&err;
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(c.o.mem_create(&c.o, 5000, &m, &err), HUNCH_NO_MEMORY);
        assert_null(m);
        assert_int_equal(err.status, HUNCH_NO_MEMORY);
    }
    for (int n = 0; n < 3; n++) {
        double a, b, d;
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(hn_machine_measure(&c.o, &a, &b, &d, NULL), HUNCH_NO_MEMORY);
    }
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    check_close(&c);
}

static void forms_test(void **state HN_UNUSED) {
    check_ops native = check_open(1, HN_ISA_REF, false), f32 = check_open(1, HN_ISA_REF, true);
    for (int t = 0; t < HN_WEIGHT_TYPES; t++) {
        assert_int_equal(f32.o.act_forms(&f32.o, (hn_dtype)t), HN_ACT_F32);
        assert_int_equal(native.o.act_forms(&native.o, (hn_dtype)t),
                         hn_dtype_block((hn_dtype)t) > 1 ? HN_ACT_Q8 : HN_ACT_F32);
    }
    check_close(&native);
    check_close(&f32);
}

/* Not how fast: only that the numbers are numbers of this world. */
static void machine_test(void **state HN_UNUSED) {
    check_ops c = check_open(2, hn_isa_best(), false);
    double read = 0, macs = 0, barrier = 0;
    assert_int_equal(hn_machine_measure(&c.o, &read, &macs, &barrier, NULL), HUNCH_OK);
    printf("read %.1f GB/s, int8 %.1f G MAC/s, barrier %.3f us\n", read, macs, barrier);
    assert_true(read > 0.05 && read < 1e5);
    assert_true(macs > 0.01 && macs < 1e6);
    assert_true(barrier > 1e-3 && barrier < 1e5);
    check_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_test),
        cmocka_unit_test(no_memory_test),
        cmocka_unit_test(forms_test),
        cmocka_unit_test(machine_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
