/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - writes the one line that explains a failure.
 *
 * Owns the format of messages: one line, cut to fit, never with control characters that a hostile file name or key
 * could smuggle into a terminal. Owns no state. The type itself is public: include/hunch/hunch.h.
 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/utf8.h"

static void message_print(hunch_error *err, const char *fmt, va_list args) {
    locale_t before = hn_c_locale_begin();
    vsnprintf(err->message, sizeof err->message, fmt, args);
    hn_c_locale_end(before);
}

/* Messages quote untrusted bytes (keys, paths), and one that was cut may end in the middle of a character. */
static void message_clean(hunch_error *err) {
    const size_t n = hn_utf8_complete(hn_utf8_mask(err->message, '?'), strlen(err->message));
    err->message[n] = '\0';
}

hunch_status hn_fail(hunch_error *err, hunch_status status, const char *fmt, ...) {
    if (!err) return status;
    err->status = status;
    va_list args;
    va_start(args, fmt);
    message_print(err, fmt, args);
    va_end(args);
    message_clean(err);
    return status;
}

hunch_status hn_fail_memory(hunch_error *err, const char *what, size_t bytes) {
    return hn_fail(err, HUNCH_NO_MEMORY, "no memory for %s (%zu bytes)", what, bytes);
}

/* Appends as much of text as fits. */
static void text_append(char *s, size_t size, const char *text) {
    size_t used = strlen(s), n = strlen(text);
    if (n > size - 1 - used) n = size - 1 - used;
    memcpy(s + used, text, n);
    s[used + n] = '\0';
}

void hn_error_prefix(hunch_error *err, const char *fmt, ...) {
    if (!err) return;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, fmt);
    message_print(err, fmt, args);
    va_end(args);
    text_append(err->message, sizeof err->message, ": ");
    text_append(err->message, sizeof err->message, old);
    message_clean(err);
}

void hn_error_clear(hunch_error *err) {
    if (!err) return;
    err->status = HUNCH_OK;
    err->message[0] = '\0';
}

hunch_status hn_check_arguments(const char *call, const hn_argument *a, hunch_error *err) {
    for (; a->name; a++)
        if (!a->given) return hn_fail(err, HUNCH_USAGE, "%s: argument %s is NULL, and the call needs it", call, a->name);
    return HUNCH_OK;
}
