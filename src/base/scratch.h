/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - an unlinked temporary file, for data that does not fit into memory: written sequentially, read at any offset. It
 * is removed when it is closed or when the process ends, however that ends. */
#ifndef HN_SCRATCH_H
#define HN_SCRATCH_H
#include "base/status.h"

typedef struct hn_scratch hn_scratch;

/* Creates it in the folder of `beside`, a path of a file that need not exist; errors name it. HUNCH_FAILED, HUNCH_NO_MEMORY; *s is
 * NULL then. */
hunch_status hn_scratch_open(hn_scratch **s, const char *beside, hunch_error *err);
/* Appends. Buffered: written in large pieces. */
hunch_status hn_scratch_write(hn_scratch *s, const void *data, size_t size, hunch_error *err);
size_t hn_scratch_size(const hn_scratch *s);
/* Reads bytes [off, off + size), which must have been written. Later writes still append. */
hunch_status hn_scratch_read(hn_scratch *s, size_t off, void *to, size_t size, hunch_error *err);
void hn_scratch_close(hn_scratch **s); /* NULL is fine */
#endif
