/* SPDX-License-Identifier: Apache-2.0 */
/* check_short_conv_test.c - the kernel of gated short convolutions at every level against plain C, and the operation against the formula
 * of ops/short_conv.h in double: chains and trees behind committed rows, in pages in any order, of two texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/check.h"
#include "ops/cpu_mem.h"
#include "ops/short_conv.h"

static void one_kernel(const struct hn_kernels *k, const char *name) {
    const int taps = check_int(1, HN_MOST_TAPS), count = check_int(1, 100), ldw = count + check_int(0, 9);
    check_buf bw, bb, by, bz, bm[HN_MOST_TAPS];
    float *w = check_guarded(&bw, taps * ldw), *bias = check_guarded(&bb, count), *y = check_guarded(&by, count),
          *z = check_guarded(&bz, count);
    const float *m[HN_MOST_TAPS];
    const bool biased = check_int(0, 1);
    check_fill(w, taps * ldw, USUAL);
    check_fill(bias, count, USUAL);
    check_fill(y, count, check_any_kind());
    memcpy(z, y, (size_t)count * sizeof *y);
    for (int t = 0; t < taps; t++) {
        float *row = check_guarded(&bm[t], count);
        check_fill(row, count, check_any_kind());
        m[t] = check_int(0, 4) ? row : NULL;
    }
    check_ref()->gated_taps(m, taps, w, ldw, biased ? bias : NULL, count, y);
    k->gated_taps(m, taps, w, ldw, biased ? bias : NULL, count, z);
    check_same_row(z, y, count, name, count);
    for (int t = 0; t < taps; t++) check_free(&bm[t]);
    check_free(&bw);
    check_free(&bb);
    check_free(&by);
    check_free(&bz);
}

static void kernel_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int round = 0; round < 200; round++) one_kernel(hn_kernels_get(isa), hn_isa_name(isa));
}

/* ---- the operation ---------------------------------------------------------------------------------------------------------- */

enum { SEQS = 2, COMMITTED = 9, NEW = 7, SLOTS = 32, PAGE = 4, MOST_WIDTH = 150, ROWS = SEQS * NEW };

typedef struct bench {
    check_ops c;
    hn_short_conv conv;
    hn_rows rows;
    hn_input_pages kept;
    hn_matrix x;
    int width;
} bench;

static void run_rank(void *arg, int rank, int ranks) {
    const bench *b = arg;
    const hn_exec ex = {b->c.o->ops, b->c.o, rank, ranks};
    b->c.o->ops->short_conv(&ex, &b->rows, &b->conv, &b->kept, b->x);
}

static float *slot_of(const bench *b, int seq, int slot) {
    const int32_t page = hn_host_i32(b->kept.table)[b->kept.stride * seq + slot / PAGE];
    unsigned char *at = (unsigned char *)hn_host(b->kept.pool) + b->kept.page_bytes * (size_t)page;
    return (float *)(void *)(at + b->kept.row_bytes * (size_t)(slot % PAGE) + b->kept.off);
}

static hn_buf numbers(hn_backend *o, const int32_t *from, int n) {
    const hn_buf b = check_mem(o, (size_t)n * sizeof *from);
    memcpy(hn_host(b), from, (size_t)n * sizeof *from);
    return b;
}

/* The first text continues in a chain, the second, with fewer committed rows, in a tree: each row's parent is any before it. */
static void one_operation(void) {
    bench b = {.c = check_open(check_int(1, 4), hn_isa_best(), false), .width = check_int(1, MOST_WIDTH)};
    hn_backend *o = b.c.o;
    const int width = b.width, pages = SLOTS / PAGE, taps = check_int(1, HN_MOST_TAPS), committed[SEQS] = {COMMITTED, check_int(0, 3)};
    const size_t row = sizeof(float) * (size_t)(width + 3);
    b.conv = (hn_short_conv){taps, check_put_random(o, taps * width), check_int(0, 1) ? check_put_random(o, width) : (hn_buf){NULL, 0}};
    b.x = (hn_matrix){check_put_random(o, ROWS * 3 * width), 3 * width, 3 * width};
    int32_t table[SEQS * SLOTS / PAGE], seq[ROWS], slot[ROWS], position[ROWS], start[ROWS], path[ROWS * NEW], n_path = 0, parent[ROWS],
        direct[SEQS] = {1, 0}, first[SEQS];
    for (int i = 0; i < SEQS * pages; i++) table[i] = (i * 5 + 3) % (SEQS * pages);
    for (int i = 0; i < ROWS; i++) {
        const int s = i / NEW, k = i % NEW;
        seq[i] = s;
        slot[i] = committed[s] + k;
        parent[i] = s == 0 || k == 0 ? k - 1 : check_int(-1, k - 1);
        const int before = parent[i] < 0 ? 0 : position[s * NEW + parent[i]] - committed[s] + 1;
        position[i] = committed[s] + before;
        start[i] = n_path;
        if (before > 0) memcpy(path + n_path, path + start[s * NEW + parent[i]], (size_t)before * sizeof *path);
        path[n_path + before] = slot[i];
        n_path += before + 1;
    }
    for (int s = 0; s < SEQS; s++) first[s] = committed[s];
    b.rows = (hn_rows){.n = check_number(ROWS), .seq = numbers(o, seq, ROWS), .slot = numbers(o, slot, ROWS),
                       .position = numbers(o, position, ROWS), .path_start = numbers(o, start, ROWS),
                       .path_slots = numbers(o, path, n_path),
                       .committed = numbers(o, first, SEQS), .direct = numbers(o, direct, SEQS)};
    b.kept = (hn_input_pages){check_put_random(o, (int)(row / sizeof(float)) * SEQS * SLOTS), numbers(o, table, SEQS * pages), PAGE * row,
                              row, 3 * sizeof(float), PAGE, pages};
    static float before[ROWS * 3 * MOST_WIDTH], old[SEQS][COMMITTED][MOST_WIDTH];
    memcpy(before, hn_host(b.x.at), sizeof(float) * (size_t)(ROWS * 3 * width));
    for (int s = 0; s < SEQS; s++)
        for (int r = 0; r < committed[s]; r++) memcpy(old[s][r], slot_of(&b, s, r), sizeof(float) * (size_t)width);
    hn_pool_run(b.c.pool, run_rank, &b);
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < width; d++) {
            const int s = seq[i];
            double sum = b.conv.bias.mem ? (double)hn_host_f32(b.conv.bias)[d] : 0;
            int node = i % NEW, at = position[i];
            for (int t = taps - 1; t >= 0 && at >= 0; t--, at--) {
                const float *r = before + (size_t)((s * NEW + node) * 3 * width);
                const double m = at < committed[s] ? (double)old[s][at][d] : (double)(r[d] * r[2 * width + d]);
                sum += (double)hn_host_f32(b.conv.w)[t * width + d] * m;
                if (at >= committed[s]) node = parent[s * NEW + node];
            }
            const float *r = before + (size_t)(i * 3 * width);
            const double want = sum * (double)r[width + d];
            assert_true(fabs((double)hn_host_row(b.x, i)[width + d] - want) <= 1e-4 * (1 + fabs(want)));
            assert_true(slot_of(&b, s, slot[i])[d] == r[d] * r[2 * width + d]);
        }
    const hn_buf all[] = {b.conv.w, b.conv.bias, b.x.at, b.rows.seq, b.rows.slot, b.rows.position, b.rows.path_start, b.rows.path_slots,
                          b.rows.committed, b.rows.direct, b.kept.pool, b.kept.table};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) o->mem_free(o, all[i].mem);
    check_close(&b.c);
}

static void operation_test(void **state HN_UNUSED) {
    for (int round = 0; round < 60; round++) one_operation();
}

int main(void) {
    check_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernel_test), cmocka_unit_test(operation_test)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
