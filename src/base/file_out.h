/* SPDX-License-Identifier: Apache-2.0 */
/* file_out.h - writing a file completely or not at all: under another name in the same folder, renamed at the end. Until then an
 * old file of the name stays; the new one gets its permissions. Or piece by piece, each completely or not at all. Errors name the path. */
#ifndef HN_FILE_OUT_H
#define HN_FILE_OUT_H
#include "base/status.h"

typedef struct hn_out hn_out;

#define HN_OUT_PARTIAL ".partial" /* the temporary name is PLACE.partial */

/* The path that the finished file is renamed to, to be freed with hn_free: path, or the target of the link if path is one (the
 * link stays; its target need not exist yet). NULL if path is a device, a pipe, or what a process has open (/dev/stdout,
 * whatever that is): it is opened to append and written in place. HUNCH_FAILED: a folder, links that cannot be followed.
 * HUNCH_NO_MEMORY. */
hunch_status hn_out_resolve(const char *path, char **place, hunch_error *err);

/* shared: several writers may write the file at the same time, independently, and the last to finish stays: the temporary name
 * is unique then, PLACE.PROCESS-NUMBER.partial. Without a place (NULL above) path is written directly.
 * HUNCH_FAILED if path cannot be written, if it is not shared and someone else is writing it, or is shared and has no place.
 * HUNCH_NO_MEMORY. *out is NULL then. */
hunch_status hn_out_open(hn_out **out, const char *path, bool shared, hunch_error *err);
/* The same for what is open already, such as standard output, which is written in place and named so in errors. fd is duplicated. */
hunch_status hn_out_open_descriptor(hn_out **out, int fd, const char *name, hunch_error *err);
/* Buffered: written in large pieces. */
hunch_status hn_out_write(hn_out *o, const void *data, size_t size, hunch_error *err);
/* Gives the file its name now: what was written so far is visible and stays. What is written later stays from the next call on: if that
 * fails, or does not come, the file ends in the end as it did after this one. */
hunch_status hn_out_publish(hn_out *o, hunch_error *err);
/* Flushes everything to disk and renames the file; on failure the temporary file is removed. Frees o either way. */
hunch_status hn_out_finish(hn_out **o, hunch_error *err);
void hn_out_abort(hn_out **o); /* removes what was written and not published; NULL is fine */
#endif
