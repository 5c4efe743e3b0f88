/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - a file without a name, for what has no room in memory: written from its beginning to its end, then read at any place. It
 * is gone when it is closed, and when the process ends, however it does. */
#ifndef HN_SCRATCH_H
#define HN_SCRATCH_H
#include "base/status.h"

typedef struct hn_scratch hn_scratch;

/* In the folder of `beside`, a file that need not be there; it gives errors their name. HUNCH_FAILED, HUNCH_NO_MEMORY; *s is NULL
 * then. */
hunch_status hn_scratch_open(hn_scratch **s, const char *beside, hunch_error *err);
/* At the end. Gathered in memory, written in large pieces. */
hunch_status hn_scratch_write(hn_scratch *s, const void *data, size_t size, hunch_error *err);
size_t hn_scratch_size(const hn_scratch *s);
/* Bytes [off, off + size), which were written. Writing goes on behind it. */
hunch_status hn_scratch_read(hn_scratch *s, size_t off, void *to, size_t size, hunch_error *err);
void hn_scratch_close(hn_scratch **s); /* NULL is fine */
#endif
