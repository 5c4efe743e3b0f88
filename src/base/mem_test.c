/* SPDX-License-Identifier: Apache-2.0 */
/* mem_test.c - alignment, zeroes, overflow, growth, pages, and failures on command (fault.c). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

static bool is_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i]) return false;
    }
    return true;
}

static void test_small_blocks(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = hn_alloc(sizes[i]), *z = hn_zalloc(sizes[i], 3);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_int_equal((uintptr_t)z % 64, 0);
        assert_true(is_zero(z, 3 * sizes[i]));
        memset(p, 1, sizes[i]);
        hn_free(p);
        hn_free(z);
    }
    hn_free(NULL);
    assert_null(hn_zalloc(SIZE_MAX / 2, 3));
    assert_null(hn_alloc(SIZE_MAX - 10));
}

static void test_realloc_and_strings(void **state) {
    (void)state;
    char *s = hn_strdup("hunch");
    assert_string_equal(s, "hunch");
    s = hn_realloc(s, 6, 1000);
    assert_string_equal(s, "hunch");
    s = hn_realloc(s, 1000, 3);
    assert_memory_equal(s, "hun", 3);
    hn_free(s);
    char *with_nul = hn_strndup("a\0b", 3);
    assert_memory_equal(with_nul, "a\0b", 4);
    hn_free(with_nul);
    assert_null(hn_strndup("x", SIZE_MAX));
}

static void test_overflow(void **state) {
    (void)state;
    size_t v = 7;
    assert_true(hn_mul_size(1u << 20, 1u << 10, &v) && v == 1u << 30);
    assert_false(hn_mul_size(SIZE_MAX, 2, &v));
    assert_true(hn_add_size(SIZE_MAX - 1, 1, &v) && v == SIZE_MAX);
    assert_false(hn_add_size(SIZE_MAX, 1, &v));
}

static void test_grow(void **state) {
    (void)state;
    int *items = NULL;
    size_t cap = 0;
    int moves = 0;
    for (size_t n = 0; n < 10000; n++) {
        size_t old = cap;
        assert_true(hn_grow((void **)&items, &cap, n + 1, sizeof *items));
        moves += cap != old;
        items[n] = (int)n;
    }
    for (size_t n = 0; n < 10000; n++) assert_int_equal(items[n], n);
    assert_true(moves < 30);
    size_t before = cap;
    assert_false(hn_grow((void **)&items, &cap, SIZE_MAX / 2, sizeof *items));
    hn_fault_arm(HN_FAULT_ALLOC, 0, false);
    assert_false(hn_grow((void **)&items, &cap, cap + 1, sizeof *items));
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_int_equal(cap, before);
    assert_int_equal(items[9999], 9999);
    hn_free(items);
}

static void test_pages(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 5000, (2u << 20) - 1, 2u << 20, (5u << 20) + 17};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = hn_pages_alloc(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] >= 2u << 20 ? 2u << 20 : 4096), 0);
        assert_true(is_zero(p, sizes[i]));
        memset(p, 0xAA, sizes[i]);
        hn_pages_release(p, sizes[i]);
        for (size_t at = 0; at + 4096 <= sizes[i]; at += 4096) assert_int_equal(p[at], 0);
        hn_pages_free(p, sizes[i]);
    }
    hn_pages_free(NULL, 100);
    assert_null(hn_pages_alloc(SIZE_MAX - 100));
}

/* Only whole pages inside the range may lose their content. */
static void test_release_spares_the_edges(void **state) {
    (void)state;
    size_t size = 5 * 4096;
    unsigned char *p = hn_pages_alloc(size);
    memset(p, 0xAA, size);
    hn_pages_release(p + 100, 3 * 4096);
    for (size_t i = 0; i < size; i++) assert_int_equal(p[i], i >= 4096 && i < 3 * 4096 ? 0 : 0xAA);
    hn_pages_release(p + 5000, 100);
    assert_int_equal(p[3 * 4096], 0xAA);
    hn_pages_free(p, size);
}

/* Kilobytes of huge pages in the mapping that holds p. */
static long huge_kib(const void *p) {
    char line[400];
    unsigned long first, end;
    long kib = -1;
    bool here = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            here = (uintptr_t)p >= first && (uintptr_t)p < end;
        else if (here && sscanf(line, "AnonHugePages: %ld kB", &kib) != 1)
            kib = -1;
    }
    if (f) fclose(f);
    return kib;
}

static void test_small_pages(void **state) {
    (void)state;
    const size_t size = 8 << 20;
    unsigned char *p = hn_pages_alloc(size);
    assert_non_null(p);
    hn_pages_no_huge(p, size);
    memset(p, 1, size);
    assert_true(huge_kib(p) <= 0); /* -1: the system does not report it */
    hn_pages_free(p, size);
}

enum { FILE_PAGES = 64, A_PAGE = 4096 };

/* Which pages of a mapped file are in memory. */
static size_t pages_in(const unsigned char *map, unsigned char in[FILE_PAGES]) {
    size_t n = 0;
    assert_int_equal(mincore((void *)(uintptr_t)map, FILE_PAGES * A_PAGE, in), 0);
    for (int i = 0; i < FILE_PAGES; i++) n += in[i] & 1;
    return n;
}

/* The system fetches the pages of the range, at any alignment, while nobody reads them. Of a system that keeps files in memory alone
 * nothing is seen. */
static void test_expected_pages_are_fetched(void **state) {
    (void)state;
    static unsigned char bytes[FILE_PAGES * A_PAGE];
    unsigned char in[FILE_PAGES] = {0};
    char path[] = "mem_test.XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0 && write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes && fsync(fd) == 0);
    const unsigned char *map = mmap(NULL, sizeof bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(map != MAP_FAILED);
    if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 && pages_in(map, in) == 0) {
        hn_pages_expect(map + 10 * A_PAGE + 100, 2 * A_PAGE);
        for (int i = 0; i < 1000 && pages_in(map, in) < 3; i++) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        for (int i = 10; i < 13; i++) assert_true(in[i] & 1);
    }
    munmap((void *)(uintptr_t)map, sizeof bytes);
    close(fd);
}

static void test_faults(void **state) {
    (void)state;
    hn_fault_arm(HN_FAULT_ALLOC, 2, false);
    void *p[5];
    for (int i = 0; i < 5; i++) p[i] = hn_alloc(8);
    for (int i = 0; i < 5; i++) assert_true((p[i] == NULL) == (i == 2));
    assert_int_equal(hn_fault_count(HN_FAULT_ALLOC), 5);
    for (int i = 0; i < 5; i++) hn_free(p[i]);
    hn_fault_arm(HN_FAULT_ALLOC, 1, true);
    void *first = hn_zalloc(1, 8);
    assert_non_null(first);
    assert_null(hn_realloc(first, 8, 16));
    assert_null(hn_pages_alloc(8));
    assert_null(hn_strdup("x"));
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
    assert_int_equal(hn_fault_count(HN_FAULT_ALLOC), 4);
    void *again = hn_alloc(8);
    assert_non_null(again);
    assert_int_equal(hn_fault_count(HN_FAULT_ALLOC), 4);
    hn_free(again);
    hn_free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_blocks), cmocka_unit_test(test_realloc_and_strings),
        cmocka_unit_test(test_overflow),     cmocka_unit_test(test_grow),
        cmocka_unit_test(test_pages),        cmocka_unit_test(test_release_spares_the_edges),
        cmocka_unit_test(test_small_pages),  cmocka_unit_test(test_expected_pages_are_fetched),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
