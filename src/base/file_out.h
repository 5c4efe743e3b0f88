/* SPDX-License-Identifier: Apache-2.0 */
/* file_out.h - writing a file so that it is there whole or not at all: under another name beside it, renamed at the end.
 * Until then what had the name before stays; its permissions pass on. Errors name the path. */
#ifndef HN_FILE_OUT_H
#define HN_FILE_OUT_H
#include "base/status.h"

typedef struct hn_out hn_out;

/* The name that a file made beside it is renamed to, to be freed with hn_free: path, or what it leads to if it is a link (which
 * stays, and may lead to what is not there yet). NULL: a file of that name would be in the place of a device, a pipe, or what a
 * process has open (/dev/stdout, whatever that is): it is opened to append, and written as it is. HUNCH_FAILED: a folder, links
 * that lead nowhere. HUNCH_NO_MEMORY. */
hunch_status hn_out_place(const char *path, char **place, hunch_error *err);

/* shared: several may write it at the same time, each for itself, and the last to finish stays: the other name is one that
 * nothing else has then, PLACE.PROCESS-NUMBER.partial; else PLACE.partial, or what has no place. HUNCH_FAILED where nothing can
 * be written there, or of what is shared where it has no place. HUNCH_NO_MEMORY. *out is NULL then. */
hunch_status hn_out_open(hn_out **out, const char *path, bool shared, hunch_error *err);
/* Gathered in memory, written in large pieces. */
hunch_status hn_out_write(hn_out *o, const void *data, size_t size, hunch_error *err);
/* Brings everything to the disk and gives the file its name; on failure the file is gone. Frees o either way. */
hunch_status hn_out_finish(hn_out **o, hunch_error *err);
void hn_out_abort(hn_out **o); /* removes what was written; NULL is fine */
#endif
