/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - errors are values: a hunch_status and one line in the caller's hunch_error. */
#ifndef HN_STATUS_H
#define HN_STATUS_H
#include <stdarg.h>
#include "hunch/hunch.h"

#define HN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define HN_UNUSED __attribute__((unused))

/* Writes status and message (one line) to err, unless err is NULL. Returns status: `return hn_fail(err, ...)`. */
hunch_status hn_fail(hunch_error *err, hunch_status status, const char *fmt, ...) HN_PRINTF(3, 4);
/* The error of a failed allocation of `bytes` for `what`. */
hunch_status hn_fail_memory(hunch_error *err, const char *what, size_t bytes);
/* Puts "prefix: " before the message of an error that a callee wrote. */
void hn_error_prefix(hunch_error *err, const char *fmt, ...) HN_PRINTF(2, 3);
void hn_error_clear(hunch_error *err);

/* An argument that a public call needs: `{"model", m}`. A list ends with {0}. */
typedef struct hn_argument {
    const char *name;
    bool given; /* not NULL */
} hn_argument;
/* HUNCH_USAGE for the first one that is not given; call: __func__. */
hunch_status hn_check_arguments(const char *call, const hn_argument *a, hunch_error *err);
#endif
