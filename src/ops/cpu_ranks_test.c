/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_ranks_test.c - what ranks join is what one process computes, in every form, of uneven slices and of stripes. Ranks take turns: the
 * first time each leaves its part, the second time it gets all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "ops/act.h"
#include "ops/cpu_mem.h"

enum { ROWS = 5, COLS = 768, RANKS = 3, MOST = 8, ROOM = 1 << 16 };

typedef struct rig {
    hn_link link; /* first */
    int calls;    /* of this turn */
    bool again;
    unsigned char part[MOST][RANKS][ROOM];
    hn_backend *backend;
    hn_mem *mem;
    hn_buf x, room;
    hn_act own, whole, want;
    hn_slices slices;
} rig;

static void exchange(hn_link *l, void *all, const int *at, const int *bytes) {
    rig *r = (rig *)(void *)l;
    assert_true(r->calls < MOST);
    for (int k = 0; k < RANKS; k++) {
        unsigned char *part = r->part[r->calls][k], *to = (unsigned char *)all + at[k];
        assert_true(bytes[k] <= ROOM);
        if (k == l->rank) memcpy(part, to, (size_t)bytes[k]);
        else if (r->again) memcpy(to, part, (size_t)bytes[k]);
        else memset(to, 0, (size_t)bytes[k]);
    }
    r->calls++;
}

static void join(const hn_exec *ex, const void *arg) {
    const rig *r = arg;
    const hn_slices *s = &r->slices;
    const int run = hn_own_count(s) / s->stripes;
    const hn_matrix x = {r->x, COLS, COLS}, columns = {hn_at(r->x, sizeof(float) * ROWS * COLS), hn_own_count(s), COLS};
    hn_pick pick = {x, columns, hn_own_first(s), run, s->first[RANKS]};
    ex->ops->pick(ex, hn_number(ROWS), &pick, 1);
    ex->ops->quantise(ex, hn_number(ROWS), columns, r->own);
    ex->ops->join_act(ex, hn_number(ROWS), 1, s, r->own, r->whole, r->room);
}

static void quantise(const hn_exec *ex, const void *arg) {
    const rig *r = arg;
    ex->ops->quantise(ex, hn_number(ROWS), (hn_matrix){r->x, COLS, COLS}, r->want);
}

/* Of each rank all that products read of the joined rows. */
static void check(rig *r, int forms) {
    hn_backend *b = r->backend;
    const size_t bytes = hn_act_size(COLS, ROWS);
    r->want = (hn_act){r->want.data, COLS, ROWS, forms};
    r->whole = (hn_act){r->whole.data, COLS, ROWS, forms};
    memset(hn_host(r->want.data), 0, bytes);
    hn_backend_run(b, quantise, r);
    for (int turn = 0; turn < 2; turn++)
        for (int k = 0; k < RANKS; k++) {
            r->link.rank = r->slices.rank = k;
            r->again = turn > 0;
            r->calls = 0;
            r->own = (hn_act){r->own.data, hn_own_count(&r->slices), ROWS, r->slices.groups ? forms : HN_ACT_F32};
            memset(hn_host(r->whole.data), 0, bytes);
            hn_backend_run(b, join, r);
            for (int i = 0; turn > 0 && i < ROWS; i++) {
                const unsigned char *got = hn_host(r->whole.data), *want = hn_host(r->want.data);
                const size_t q8 = hn_act_q8_off(COLS, i), bf16 = hn_act_bf16_off(COLS, ROWS, i), f32 = hn_act_f32_off(COLS, ROWS, i);
                if (forms & HN_ACT_Q8) assert_memory_equal(got + q8, want + q8, hn_act_parts_off(COLS) / 3 * 4);
                if (forms & HN_ACT_BF16) assert_memory_equal(got + bf16, want + bf16, COLS * sizeof(uint16_t));
                if (forms & HN_ACT_F32) assert_memory_equal(got + f32, want + f32, COLS * sizeof(float));
            }
        }
}

static void test_joined_rows_are_those_of_one_process(void **state) {
    static const hn_slices all[] = {{.ranks = RANKS, .stripes = 1, .groups = true, .first = {0, 320, 640, COLS}},
                                    {.ranks = RANKS, .stripes = 1, .first = {0, 300, 600, COLS}},
                                    {.ranks = RANKS, .stripes = 3, .groups = true, .first = {0, 128, 192, 256}},
                                    {.ranks = RANKS, .stripes = 4, .first = {0, 96, 160, 192}}};
    static const int forms[] = {HN_ACT_Q8, HN_ACT_BF16, HN_ACT_F32, HN_ACT_Q8 | HN_ACT_BF16, HN_ACT_Q8 | HN_ACT_BF16 | HN_ACT_F32};
    static rig r;
    hn_pool *pool;
    uint64_t seed = 1;
    (void)state;
    r.link = (hn_link){.ranks = RANKS, .exchange = exchange};
    assert_int_equal(hn_pool_create(&pool, 2, NULL), HUNCH_OK);
    assert_int_equal(hn_ranks_backend_open(&r.backend, &r.link, pool, HN_ISA_REF, false, NULL), HUNCH_OK);
    const size_t x = sizeof(float) * ROWS * COLS, act = hn_act_size(COLS, ROWS), room = r.backend->join_room(r.backend, ROWS, COLS, 0, 0);
    assert_int_equal(r.backend->mem_create(r.backend, HN_MEM_WORK, 2 * x + 3 * act + room, &r.mem, NULL), HUNCH_OK);
    r.x = (hn_buf){r.mem, 0};
    r.own.data = hn_at(r.x, 2 * x);
    r.whole.data = hn_at(r.own.data, act);
    r.want.data = hn_at(r.whole.data, act);
    r.room = hn_at(r.want.data, act);
    for (int i = 0; i < ROWS * COLS; i++) hn_host_f32(r.x)[i] = (float)(int)(hn_splitmix(&seed) % 4001 - 2000) / 512;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            r.slices = all[i];
            check(&r, forms[k]);
        }
    r.backend->mem_free(r.backend, r.mem);
    r.backend->close(r.backend);
    hn_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined_rows_are_those_of_one_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
