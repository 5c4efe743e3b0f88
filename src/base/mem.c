/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - allocation: small blocks from the C library, large ones as huge pages from the system.
 *
 * Owns nothing itself: every block belongs to its caller. All calls go through fault.h, so that a test can reach every
 * out-of-memory path. Sizes computed from files go through hn_mul_size and hn_add_size before they get here.
 */
#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

void *hn_alloc(size_t size) {
    void *p = NULL;
    if (hn_fault_hit(HN_FAULT_ALLOC) || size > PTRDIFF_MAX || posix_memalign(&p, ALIGNMENT, size ? size : 1) != 0)
        return errno = ENOMEM, NULL; /* as malloc */
    return p;
}

void *hn_zalloc(size_t count, size_t size) {
    size_t bytes;
    if (!hn_mul_size(count, size, &bytes)) return NULL;
    void *p = hn_alloc(bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *hn_realloc(void *p, size_t old_size, size_t new_size) {
    void *q = hn_alloc(new_size);
    if (!q) return NULL;
    if (p) memcpy(q, p, old_size < new_size ? old_size : new_size);
    free(p);
    return q;
}

void hn_free(void *p) {
    free(p);
}

char *hn_strndup(const char *s, size_t n) {
    size_t bytes;
    if (!hn_add_size(n, 1, &bytes)) return NULL;
    char *copy = hn_alloc(bytes);
    if (!copy) return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *hn_strdup(const char *s) {
    return hn_strndup(s, strlen(s));
}

/* Bytes to map for a block of `size`: whole huge pages if it is as large as one. */
static bool pages_bytes(size_t size, size_t *bytes) {
    size_t unit = size >= HUGE_PAGE ? HUGE_PAGE : (size_t)sysconf(_SC_PAGESIZE);
    if (!hn_add_size(size ? size : 1, unit - 1, bytes)) return false;
    *bytes -= *bytes % unit;
    return true;
}

void *hn_pages_alloc(size_t size) {
    size_t bytes, with_slack;
    if (hn_fault_hit(HN_FAULT_ALLOC) || !pages_bytes(size, &bytes)) return NULL;
    size_t slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    if (!hn_add_size(bytes, slack, &with_slack)) return NULL;
    unsigned char *raw = mmap(NULL, with_slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    if (!slack) return raw;
    /* Cut the ends off, so that the block starts on a huge page and hn_pages_free needs no more than its size. */
    size_t head = (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    if (head) munmap(raw, head);
    if (slack - head) munmap(raw + head + bytes, slack - head);
    madvise(raw + head, bytes, MADV_HUGEPAGE); /* advisory: fails on a system without huge pages, and need not succeed */
    return raw + head;
}

void hn_pages_no_huge(void *p, size_t size) {
    size_t bytes;
    if (pages_bytes(size, &bytes)) madvise(p, bytes, MADV_NOHUGEPAGE);
}

void hn_pages_free(void *p, size_t size) {
    size_t bytes;
    if (p && pages_bytes(size, &bytes)) munmap(p, bytes);
}

void hn_pages_release(void *p, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1);
    uintptr_t to = ((uintptr_t)p + size) & ~(page - 1);
    if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
}

void hn_pages_expect(const void *p, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p & ~(page - 1);
    madvise((void *)from, (uintptr_t)p + size - from, MADV_WILLNEED); /* advisory: without it the access waits */
}

bool hn_grow(void **items, size_t *cap, size_t need, size_t item_size) {
    if (need <= *cap) return true;
    size_t want = *cap < 8 ? 8 : *cap, old_bytes, bytes;
    if (!hn_add_size(want, want / 2, &want) || want < need) want = need;
    if (!hn_mul_size(want, item_size, &bytes) || !hn_mul_size(*cap, item_size, &old_bytes)) return false;
    void *p = hn_realloc(*items, old_bytes, bytes);
    if (!p) return false;
    *items = p;
    *cap = want;
    return true;
}

bool hn_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

bool hn_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
