/* SPDX-License-Identifier: Apache-2.0 */
/* file_out.h - writing a file so that it is there whole or not at all: under another name beside it, renamed at the end.
 * Until then what had the name before stays. Errors name the path. */
#ifndef HN_FILE_OUT_H
#define HN_FILE_OUT_H
#include "base/status.h"

typedef struct hn_out hn_out;

/* shared: several may write it at the same time, each for itself, and the last to finish stays: the other name is one that
 * nothing else has then, PATH.PROCESS-NUMBER.partial; else PATH.partial. HUNCH_FAILED where nothing can be written there, or what
 * is there is a folder or no regular file: a device would be replaced, not written to. HUNCH_NO_MEMORY. *out is NULL then. */
hunch_status hn_out_open(hn_out **out, const char *path, bool shared, hunch_error *err);
/* Gathered in memory, written in large pieces. */
hunch_status hn_out_write(hn_out *o, const void *data, size_t size, hunch_error *err);
/* Brings everything to the disk and gives the file its name; on failure the file is gone. Frees o either way. */
hunch_status hn_out_finish(hn_out **o, hunch_error *err);
void hn_out_abort(hn_out **o); /* removes what was written; NULL is fine */
#endif
