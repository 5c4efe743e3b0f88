/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h - the only place where the library allocates. Every call here can be made to fail by a test (fault.h).
 *
 * PCRE2 allocates here too, by its contexts. jansson uses malloc: its allocator is global to the process, so the program chooses
 * it (json_set_alloc_funcs), not a library; tests choose hn_alloc. */
#ifndef HN_MEM_H
#define HN_MEM_H
#include <stdbool.h>
#include <stddef.h>

void *hn_alloc(size_t size); /* 64-byte aligned; NULL and errno ENOMEM on failure; size 0 gives a valid pointer */
void *hn_zalloc(size_t count, size_t size);   /* zeroed, overflow-checked, 64-byte aligned */
void *hn_realloc(void *p, size_t old_size, size_t new_size); /* p untouched on failure */
void hn_free(void *p);
char *hn_strndup(const char *s, size_t n);    /* copies n bytes, NULs too, and adds a NUL */
char *hn_strdup(const char *s);

/* Zeroed anonymous memory in huge pages where the system gives them (2 MiB aligned, MADV_HUGEPAGE).
 * Touched lazily. NULL on failure. Freed with hn_pages_free(p, size). */
void *hn_pages_alloc(size_t size);
void hn_pages_free(void *p, size_t size);
/* Keeps this range in small pages, usually 4 KiB (MADV_NOHUGEPAGE). To be called before it is touched. */
void hn_pages_no_huge(void *p, size_t size);
/* Tells the system that [p, p+size) is not needed any more (MADV_DONTNEED on whole pages inside). */
void hn_pages_release(void *p, size_t size);
/* Tells the system that [p, p+size) of a mapped file will be read soon: it reads what is not in memory while the caller goes on, the
 * pages of several such calls at once (MADV_WILLNEED). */
void hn_pages_expect(const void *p, size_t size);

/* Bytes that this process may still allocate: the memory that the system has free or can free, swap included, limited by its
 * control groups and by ulimit. An estimate, to report an error before the process is killed; SIZE_MAX if nothing is known. */
size_t hn_memory_available(void);
/* The same from files in the format of /proc/meminfo, /proc/self/cgroup and /proc/self/mountinfo, without ulimit. */
size_t hn_memory_available_of(const char *meminfo, const char *cgroup_table, const char *mounts);

/* A growing array: grows *items (of item_size bytes each, *cap of them) to hold at least need. False: no memory,
 * nothing changed. */
bool hn_grow(void **items, size_t *cap, size_t need, size_t item_size);
/* a*b and a+b without overflow; false on overflow. */
bool hn_mul_size(size_t a, size_t b, size_t *out);
bool hn_add_size(size_t a, size_t b, size_t *out);
#endif
