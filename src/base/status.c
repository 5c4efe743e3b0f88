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

/* Messages quote untrusted bytes (keys, paths); what could move a cursor or end the line becomes '?': the control
 * characters of ASCII, and those of Latin-1, which are two bytes of UTF-8. */
static void control_mask(char *s) {
    for (; *s; s++) {
        const unsigned char *c = (const unsigned char *)s;
        const bool latin = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0;
        if (c[0] < 0x20 || c[0] == 0x7f || latin) *s = '?';
        if (latin) *++s = '?';
    }
}

/* A message that was cut may end in the middle of a UTF-8 sequence: removes the incomplete tail. */
static void tail_trim(char *s) {
    size_t n = strlen(s), start = n;
    while (start > 0 && n - start < 4 && ((unsigned char)s[start - 1] & 0xC0) == 0x80) start--;
    if (start == 0) return;
    unsigned char lead = (unsigned char)s[start - 1];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (want > n - start + 1) s[start - 1] = '\0';
}

static void message_print(hunch_error *err, const char *fmt, va_list args) {
    locale_t before = hn_c_locale_begin();
    vsnprintf(err->message, sizeof err->message, fmt, args);
    hn_c_locale_end(before);
}

static void message_clean(hunch_error *err) {
    control_mask(err->message);
    tail_trim(err->message);
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
