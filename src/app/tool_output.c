/* SPDX-License-Identifier: Apache-2.0 */
/* tool_output.c - see tool_output.h. Writes all output of subcommands other than their tables; independent of any
 * command. */
#include "app/tool_output.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/utf8.h"

/* ---- errors ------------------------------------------------------------------------------------------------ */

static struct {
    void (*put)(void *user, const char *line);
    void *user;
} messages;

void tool_messages_to(void (*put)(void *user, const char *line), void *user) {
    messages.put = put;
    messages.user = user;
}

static void message_print(const char *fmt, va_list ap) {
    char line[2048], whole[sizeof line + 10];
    int n = vsnprintf(line, sizeof line, fmt, ap);
    if (n < 0)
        return;
    tool_progress_hide();
    fflush(stdout); /* keeps the order of the two streams if both go to one place */
    snprintf(whole, sizeof whole, "hunch: %s\n", hn_utf8_mask(line, ' '));
    if (messages.put)
        messages.put(messages.user, whole);
    else
        fputs(whole, stderr);
}

void tool_message(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    message_print(fmt, ap);
    va_end(ap);
}

int tool_usage(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    message_print(fmt, ap);
    va_end(ap);
    return HUNCH_USAGE;
}

int tool_failed(const hunch_error *err) {
    tool_message("%s", err->message[0] ? err->message : "failed without a message");
    return err->status == HUNCH_OK ? HUNCH_FAILED : (int)err->status;
}

_Noreturn static void out_of_memory(size_t bytes) {
    messages.put = NULL; /* the process ends before anybody else would write it */
    tool_message("out of memory: %zu bytes for the command itself", bytes);
    tool_end(HUNCH_NO_MEMORY);
}

void *tool_json_alloc(size_t size) {
    void *p = malloc(size);
    if (!p)
        out_of_memory(size);
    return p;
}

char *tool_json_dump(const json_t *value, size_t flags) {
    char *text = value ? hn_json_dump(value, flags) : NULL;
    if (value && !text)
        out_of_memory(0);
    return text;
}

void *tool_alloc(size_t count, size_t size) {
    void *p = hn_zalloc(count, size);
    if (!p)
        out_of_memory(count * size);
    return p;
}

void *tool_grow(void *p, size_t *cap, size_t need, size_t size) {
    if (!hn_grow(&p, cap, need, size))
        out_of_memory(need * size);
    return p;
}

char *tool_strndup(const char *s, size_t n) {
    char *copy = hn_strndup(s, n);
    if (!copy)
        out_of_memory(n);
    return copy;
}

char *tool_strdup(const char *s) {
    return tool_strndup(s, strlen(s));
}

char *tool_joined(const char *a, const char *b) {
    const size_t n = strlen(a), m = strlen(b);
    char *both = tool_alloc(n + m + 1, 1);
    memcpy(both, a, n);
    memcpy(both + n, b, m);
    return both;
}

/* ---- standard output ----------------------------------------------------------------------------------------- */

static int write_error; /* errno of the first flush that failed */

bool tool_is_standard(const char *path) {
    return strcmp(path, "-") == 0;
}

bool tool_flush(void) {
    if (fflush(stdout) != 0 && !write_error)
        write_error = errno;
    return !ferror(stdout);
}

int tool_done(int code) {
    if (tool_flush())
        return code;
    if (write_error != EPIPE) /* the reader closed the pipe on purpose */
        tool_message("standard output: %s", write_error ? strerror(write_error) : "cannot be written");
    return code == HUNCH_OK ? HUNCH_FAILED : code;
}

int tool_print_json(json_t *value) {
    char *text = tool_json_dump(value, JSON_REAL_PRECISION(10));
    json_decref(value);
    if (!text) {
        tool_message("out of memory while writing JSON");
        return HUNCH_NO_MEMORY;
    }
    if (tool_is_terminal(stdout))
        tool_progress_hide();
    tool_interrupts_hold(); /* a line is written whole or not at all */
    puts(text);
    hn_free(text);
    const int code = tool_done(HUNCH_OK);
    tool_interrupts_resume();
    return code;
}

json_t *tool_json_real(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *tool_json_ids(const hunch_token *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static json_t *json_repaired(const char *bytes, size_t len, bool name_bytes) {
    if (hn_utf8_check(bytes, len) == len)
        return json_stringn(bytes, len);
    char *out = tool_alloc(len + 1, 6), *w = out;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = (size_t)hn_utf8_decode(bytes + i, len - i, &cp);
        if (n) {
            memcpy(w, bytes + i, n);
            w += n;
        } else {
            w += name_bytes ? sprintf(w, "<0x%02X>", (unsigned char)bytes[i]) : sprintf(w, "\xEF\xBF\xBD");
            n = 1;
        }
        i += n;
    }
    json_t *text = json_stringn(out, (size_t)(w - out));
    hn_free(out);
    return text;
}

json_t *tool_json_text(const char *bytes, size_t len) {
    return json_repaired(bytes, len, false);
}

json_t *tool_json_name(const char *name) {
    return json_repaired(name, strlen(name), false);
}

json_t *tool_json_piece(const char *bytes, size_t len) {
    return json_repaired(bytes, len, true);
}

/* ---- time, memory --------------------------------------------------------------------------------------------- */

const char *tool_size_text(double bytes, char out[32]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 999.95 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}

const char *tool_cache_text(double row, double window, double state, char *out, size_t size) {
    char all[32], some[32], of_text[32];
    tool_size_text(row, all);
    tool_size_text(window, some);
    tool_size_text(state, of_text);
    snprintf(out, size, "%s of cache a token%s%s%s%s%s%s", all, window > 0 ? ", and " : "", window > 0 ? some : "",
             window > 0 ? " in layers that keep a window" : "", state > 0 ? "; a state of " : "",
             state > 0 ? of_text : "", state > 0 ? " a text" : "");
    return out;
}

double tool_peak_mib(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss / 1024.0 : 0;
}
