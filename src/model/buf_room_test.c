/* SPDX-License-Identifier: Apache-2.0 */
/* buf_room_test.c - buffers of one allocation begin at lines, do not overlap, and are those of the list; one of size 0 is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "model/buf_room.h"

enum { ROWS = 3, COLS = 37, IN = 70, BYTES = 65 };

typedef struct rig {
    hn_backend *backend;
    hn_pool *pool;
    hn_buf_room room;
    int listed; /* how often */
    hn_buf bytes, none;
    hn_matrix matrix, no_columns, results;
    hn_act act;
} rig;

static void list(void *arg, hn_buf_room *room) {
    rig *r = arg;
    r->listed++;
    r->bytes = hn_buf_room_take(room, BYTES);
    r->none = hn_buf_room_take(room, 0);
    r->matrix = hn_buf_room_matrix(room, ROWS, COLS);
    r->no_columns = hn_buf_room_matrix(room, ROWS, 0);
    r->act = hn_buf_room_act(room, ROWS, IN);
    r->results = hn_buf_room_results(room, ROWS, COLS);
}

static void rig_open(rig *r) {
    *r = (rig){.listed = 0};
    assert_int_equal(hn_pool_create(&r->pool, 1, NULL), HUNCH_OK);
    assert_int_equal(hn_cpu_backend_open(&r->backend, r->pool, HN_ISA_REF, false, NULL), HUNCH_OK);
}

static void test_places(void **state) {
    (void)state;
    rig r;
    rig_open(&r);
    assert_int_equal(hn_buf_room_open(&r.room, r.backend, list, &r, NULL), HUNCH_OK);
    assert_int_equal(r.listed, 2);
    assert_true(r.bytes.mem == r.room.work && r.matrix.at.mem == r.room.work && r.act.data.mem == r.room.work);
    assert_true(!r.none.mem && !r.no_columns.at.mem);
    assert_true(r.results.at.mem == r.room.results && r.results.at.mem != r.room.work && r.results.at.off == 0);
    assert_int_equal(r.room.used_results, ROWS * 48 * sizeof(float));
    assert_int_equal(r.bytes.off, 0);
    assert_int_equal(r.matrix.at.off, 128); /* the next whole line */
    assert_true(r.matrix.cols == COLS && r.matrix.ld == 48);
    assert_int_equal(r.act.data.off, 128 + ROWS * 48 * sizeof(float));
    assert_true(r.act.in == IN && r.act.max_rows == ROWS && r.act.forms == 0);
    assert_true(r.room.used >= r.act.data.off + r.backend->act_bytes(IN, ROWS));
    hn_buf_room_close(&r.room);
    hn_buf_room_close(&r.room);
    r.backend->close(r.backend);
    hn_pool_free(r.pool);
}

static void test_no_memory(void **state) {
    (void)state;
    rig r;
    rig_open(&r);
    for (int n = 0; n < 4; n++) { /* two for each memory */
        hn_fault_arm(HN_FAULT_ALLOC, n, false);
        assert_int_equal(hn_buf_room_open(&r.room, r.backend, list, &r, NULL), HUNCH_NO_MEMORY);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(!r.room.work && !r.room.results && !r.bytes.mem);
        hn_buf_room_close(&r.room);
    }
    r.backend->close(r.backend);
    hn_pool_free(r.pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
