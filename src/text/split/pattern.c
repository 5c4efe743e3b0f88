/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - PCRE2 with limits.
 *
 * PCRE2's match limit is one for each place of the text. To limit the whole search, it proceeds window by window and checks
 * between windows the processor time spent on the text. The limit is many times what any real tokenizer needs; only a
 * pattern made to be slow reaches it.
 */
#include "text/split/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

enum {
    STEPS = 1000000,  /* at one place of a text, */
    STEPS_A_BYTE = 8, /* plus these, as real patterns scan a long run of spaces forth and back */
    HEAP_KIB = 64 << 10,
    JIT_STACK = 1 << 20,
    MAX_PATTERN = 32 << 10, /* bytes */
    MAX_NESTING = 100,
    WINDOW = 256,          /* places that one call of PCRE2 tries */
    CLOCK_INTERVAL = 1024, /* searches between two readings of the clock */
    BASE_SECONDS = 3,
    SECONDS_A_MEGABYTE = 3
};

struct hn_pattern {
    pcre2_general_context *memory;
    pcre2_code *code;
};

struct hn_pattern_work {
    pcre2_general_context *memory;
    pcre2_match_context *context;
    pcre2_match_data *match;
    pcre2_jit_stack *stack;
    double deadline; /* of this thread's processor time */
    unsigned searches;
};

static void *pcre_alloc(size_t size, void *user) {
    (void)user;
    return hn_alloc(size);
}

static void pcre_free(void *p, void *user) {
    (void)user;
    hn_free(p);
}

static hunch_status compile(hn_pattern *p, const char *text, hunch_error *err) {
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    if (!context) return hn_fail_memory(err, "a pattern", 0);
    pcre2_set_parens_nest_limit(context, MAX_NESTING);
    pcre2_set_max_pattern_length(context, MAX_PATTERN);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
                            &code, &at, context);
    pcre2_compile_context_free(context);
    if (!p->code) {
        if (code == PCRE2_ERROR_HEAP_FAILED) return hn_fail_memory(err, "a pattern", 0);
        char why[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return hn_fail(err, HUNCH_REFUSED, "pattern \"%.200s\": %s at byte %zu", text, why, (size_t)at);
    }
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without JIT, PCRE2 interprets */
    return HUNCH_OK;
}

hunch_status hn_pattern_open(hn_pattern **out, const char *text, hunch_error *err) {
    hn_pattern *p = hn_zalloc(1, sizeof *p);
    *out = NULL;
    if (p) p->memory = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    hunch_status s = p && p->memory ? compile(p, text, err) : hn_fail_memory(err, "a pattern", sizeof *p);
    if (!s)
        *out = p;
    else
        hn_pattern_close(&p);
    return s;
}

void hn_pattern_close(hn_pattern **p) {
    if (!*p) return;
    pcre2_code_free((*p)->code);
    pcre2_general_context_free((*p)->memory);
    hn_free(*p);
    *p = NULL;
}

hunch_status hn_pattern_work_open(hn_pattern_work **out, hunch_error *err) {
    hn_pattern_work *w = *out = hn_zalloc(1, sizeof *w);
    if (w) w->memory = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    if (w && w->memory) {
        w->context = pcre2_match_context_create(w->memory);
        w->match = pcre2_match_data_create(1, w->memory);
    }
    if (!w || !w->context || !w->match) {
        hn_pattern_work_close(out);
        return hn_fail_memory(err, "the work area of patterns", sizeof *w);
    }
    w->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK, w->memory);
    if (w->stack) pcre2_jit_stack_assign(w->context, NULL, w->stack); /* NULL without JIT */
    pcre2_set_heap_limit(w->context, HEAP_KIB);
    hn_pattern_work_begin(w, 0);
    return HUNCH_OK;
}

void hn_pattern_work_close(hn_pattern_work **w) {
    if (!*w) return;
    pcre2_jit_stack_free((*w)->stack);
    pcre2_match_data_free((*w)->match);
    pcre2_match_context_free((*w)->context);
    pcre2_general_context_free((*w)->memory);
    hn_free(*w);
    *w = NULL;
}

static double seconds(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void hn_pattern_work_limit(hn_pattern_work *w, double allowed) {
    w->deadline = seconds() + allowed;
    w->searches = 0;
}

void hn_pattern_work_begin(hn_pattern_work *w, size_t len) {
    uint32_t most = INT32_MAX;
    pcre2_set_match_limit(w->context, len < most / STEPS_A_BYTE - STEPS ? STEPS + STEPS_A_BYTE * (uint32_t)len : most);
    hn_pattern_work_limit(w, BASE_SECONDS + SECONDS_A_MEGABYTE * (double)len / 1e6);
}

/* Searches one window. If JIT's stack, which is small, overflows, the interpreter searches within its heap limit. */
static int search(const hn_pattern *p, hn_pattern_work *w, const char *text, size_t at, size_t end, size_t last) {
    static const uint32_t flags = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    pcre2_set_offset_limit(w->context, last);
    int n = pcre2_match(p->code, (PCRE2_SPTR)text, end, at, flags, w->match, w->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(p->code, (PCRE2_SPTR)text, end, at, flags | PCRE2_NO_JIT, w->match, w->context);
    return n;
}

static hunch_status fail_search(int code, size_t at, hunch_error *err) {
    if (code == PCRE2_ERROR_NOMEMORY) return hn_fail_memory(err, "a pattern's match", 0);
    char why[128];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    return hn_fail(err, HUNCH_REFUSED, "a pattern of the tokenizer failed at byte %zu of a text: %s", at, why);
}

/* Reads the clock. */
static hunch_status check_time(hn_pattern_work *w, size_t at, hunch_error *err) {
    w->searches = 0;
    if (seconds() < w->deadline) return HUNCH_OK;
    return hn_fail(
        err, HUNCH_REFUSED,
        "a pattern of the tokenizer takes too long: stopped at byte %zu of a text, expected at most %d s and "
        "%d s a megabyte",
        at, BASE_SECONDS, SECONDS_A_MEGABYTE);
}

/* The last place of a window, at a character's first byte. */
static size_t window_end(const char *text, size_t at, size_t end) {
    if (end - at <= WINDOW) return end;
    size_t last = at + WINDOW;
    while (((unsigned char)text[last] & 0xC0) == 0x80) last--;
    return last;
}

hunch_status hn_pattern_find(const hn_pattern *p, hn_pattern_work *w, const char *text, size_t at, size_t end,
                             bool *found, size_t *from, size_t *to, hunch_error *err) {
    size_t begin = at, last;
    int n;
    for (;; at = last) {
        last = window_end(text, at, end);
        n = search(p, w, text, at, end, last);
        if (n < 0 && n != PCRE2_ERROR_NOMATCH) return fail_search(n, at, err);
        if (++w->searches >= CLOCK_INTERVAL || (n < 0 && last < end)) {
            hunch_status s = check_time(w, at, err);
            if (s) return s;
        }
        if (n >= 0 || last == end) break;
    }
    *found = n >= 0;
    if (!*found) return HUNCH_OK;
    const PCRE2_SIZE *where = pcre2_get_ovector_pointer(w->match);
    *from = where[0];
    *to = where[1];
    if (*from < begin || *to <= *from || *to > end) /* possible with \K */
        return hn_fail(err, HUNCH_REFUSED, "a pattern of the tokenizer matches outside its place");
    return HUNCH_OK;
}
