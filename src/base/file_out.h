/* SPDX-License-Identifier: Apache-2.0 */
/* file_out.h - writing a file so that it is there whole or not at all: under another name beside it, renamed at the end.
 * Until then what had the name before stays. Errors name the path. */
#ifndef HN_FILE_OUT_H
#define HN_FILE_OUT_H
#include "base/status.h"

typedef struct hn_out hn_out;

/* shared: several processes may write it at the same time, each for itself: the other name is PATH.XXXXXX then, readable by the
 * owner alone; else PATH.partial. */
hunch_status hn_out_open(hn_out **out, const char *path, bool shared, hunch_error *err);
/* Gathered in memory, written in large pieces. */
hunch_status hn_out_write(hn_out *o, const void *data, size_t size, hunch_error *err);
/* Brings everything to the disk and gives the file its name; on failure the file is gone. Frees o either way. */
hunch_status hn_out_finish(hn_out **o, hunch_error *err);
void hn_out_abort(hn_out **o); /* removes what was written; NULL is fine */
#endif
