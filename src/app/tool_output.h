/* SPDX-License-Identifier: Apache-2.0 */
/* tool_output.h - output of all subcommands: one-line errors, JSON on standard output; also memory. Colours: tool_terminal.h,
 * progress bars: tool_progress.h.
 *
 * Standard output carries the answer alone; messages, tables of progress and summaries go to standard error.
 * Functions that end a command return its exit code. */
#ifndef HN_TOOL_OUTPUT_H
#define HN_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "base/status.h"
#include "app/tool_progress.h"
#include "app/tool_signals.h"
#include "app/tool_terminal.h"

/* ---- errors ---- */

/* "hunch: " and one line on standard error (control characters in it are replaced, so that it stays one line). */
void tool_message(const char *fmt, ...) HN_PRINTF(1, 2);
/* Gives such lines to `put` instead, of a program that must not wait for whoever reads standard error; NULL: no longer. Before other
 * threads begin and after they have ended. */
void tool_messages_to(void (*put)(void *user, const char *line), void *user);
int tool_usage(const char *fmt, ...) HN_PRINTF(1, 2); /* the same; returns HUNCH_USAGE */
int tool_failed(const hunch_error *err);                /* prints its message; returns its status, never 0 */
/* Memory of the command itself, as that of base/mem.h, and freed with hn_free: never NULL, out of memory ends the process with exit
 * code 4. */
void *tool_alloc(size_t count, size_t size); /* zeroed */
void *tool_grow(void *p, size_t *cap, size_t need, size_t size); /* as hn_grow; returns the items */
char *tool_strndup(const char *s, size_t n);
char *tool_strdup(const char *s);
char *tool_joined(const char *a, const char *b); /* one after the other */
/* Allocator for jansson, which may silently lose data if an allocator returns NULL: this one ends the process. Its blocks are small and
 * many, and freed with free. */
void *tool_json_alloc(size_t size);
char *tool_json_dump(const json_t *value, size_t flags); /* hn_json_dump; of NULL it is NULL */

/* ---- standard output ---- */

bool tool_is_standard(const char *path); /* "-" is standard input or output, even if a file has that name */
bool tool_flush(void); /* what was written so far; false once standard output has failed */
/* Flushes standard output. `code` if all was written, else HUNCH_FAILED with a message (none for a closed pipe). */
int tool_done(int code);
/* Writes one line of JSON and frees the value; NULL is out of memory. Returns HUNCH_OK or an exit code. */
int tool_print_json(json_t *value);
json_t *tool_json_real(double x);                          /* null for what is not finite */
json_t *tool_json_text(const char *bytes, size_t len);     /* invalid UTF-8 becomes U+FFFD */
json_t *tool_json_name(const char *name);                  /* of a file, or of a drafter, which may have names of files: the same */
json_t *tool_json_piece(const char *bytes, size_t len);    /* invalid UTF-8 becomes <0xNN> */
json_t *tool_json_ids(const hunch_token *ids, size_t n);

const char *tool_size_text(double bytes, char out[32]);    /* "123.4 MB" */
/* Memory of texts beside the weights: bytes of the cache per token, of those in layers with a window, of a state per text. */
const char *tool_cache_text(double row, double window, double state, char *out, size_t size);

/* ---- time, memory, signals ---- */

double tool_peak_mib(void);      /* largest resident set so far */

#endif
