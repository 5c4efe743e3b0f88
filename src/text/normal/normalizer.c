/* SPDX-License-Identifier: Apache-2.0 */
/* normalizer.c - runs the steps, each from one of two buffers into the other. Unicode's forms: normal_forms.c. */
#include "text/normal/normalizer.h"

#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/normal/characters.h"
#include "text/normal/normal_forms.h"

enum { MOST_GROWTH = 16 }; /* the longest compatibility form is 11 times its character */

typedef struct step {
    hn_normal_kind kind;
    bool left, right;
    char *string, *content;
    hn_pattern *pattern;
    hn_charsmap map;
    hn_charsmap_rule rule;
} step;

struct hn_normalizer {
    size_t n;
    bool patterns; /* some step has a pattern, which needs a work area */
    step steps[HN_NORMAL_MAX_STEPS];
};

struct hn_normal_work {
    hn_pattern_work *patterns; /* NULL until a normalizer with a pattern uses it */
    hn_form_work forms;
    hn_text made[2];
};

static hunch_status fail_memory(hunch_error *err) {
    return hn_fail_memory(err, "a normalised text", 0);
}

static hunch_status step_open(step *out, const hn_normal_step *from, hunch_error *err) {
    *out = (step){.kind = from->kind, .left = from->left, .right = from->right, .rule = from->rule};
    if (from->content && strlen(from->content) > HN_NORMAL_MAX_CONTENT) {
        return hn_fail(err, HUNCH_REFUSED, "a normalizer puts %zu bytes into a text, at most %d are read",
                       strlen(from->content), HN_NORMAL_MAX_CONTENT);
    }
    if (from->string && !(out->string = hn_strdup(from->string))) return fail_memory(err);
    if (from->content && !(out->content = hn_strdup(from->content))) return fail_memory(err);
    if (from->kind == HN_NORMAL_CHARSMAP) return hn_charsmap_init(&out->map, from->charsmap, from->n_charsmap, err);
    return from->pattern ? hn_pattern_open(&out->pattern, from->pattern, err) : HUNCH_OK;
}

hunch_status hn_normalizer_open(hn_normalizer **out, const hn_normal_step *steps, size_t n, hunch_error *err) {
    *out = NULL;
    if (n > HN_NORMAL_MAX_STEPS)
        return hn_fail(err, HUNCH_REFUSED, "a normalizer of %zu steps, at most %d are read", n, HN_NORMAL_MAX_STEPS);
    hn_normalizer *z = hn_zalloc(1, sizeof *z);
    hunch_status s = z ? HUNCH_OK : hn_fail_memory(err, "the normalizer", sizeof *z);
    for (size_t i = 0; i < n && !s; i++) {
        z->n++; /* so that close frees a step that failed half-way */
        s = step_open(&z->steps[i], &steps[i], err);
        z->patterns |= z->steps[i].pattern != NULL;
    }
    if (!s)
        *out = z;
    else
        hn_normalizer_close(&z);
    return s;
}

void hn_normalizer_close(hn_normalizer **z) {
    if (!*z) return;
    for (size_t i = 0; i < (*z)->n; i++) {
        step *s = &(*z)->steps[i];
        hn_free(s->string);
        hn_free(s->content);
        hn_pattern_close(&s->pattern);
        hn_charsmap_fini(&s->map);
    }
    hn_free(*z);
    *z = NULL;
}

hunch_status hn_normal_work_open(hn_normal_work **out, hunch_error *err) {
    *out = hn_zalloc(1, sizeof **out);
    return *out ? HUNCH_OK : fail_memory(err);
}

void hn_normal_work_close(hn_normal_work **w) {
    if (!*w) return;
    hn_pattern_work_close(&(*w)->patterns);
    hn_form_work_fini(&(*w)->forms);
    for (int i = 0; i < 2; i++) hn_free((*w)->made[i].bytes);
    hn_free(*w);
    *w = NULL;
}

/* ---- steps ---- */

static bool put_char(hn_text *out, uint32_t cp) {
    char bytes[4];
    return hn_text_put(out, bytes, (size_t)hn_utf8_encode(cp, bytes));
}

/* Full lower case: one letter has a lower case of two characters. */
static bool put_lower(hn_text *out, uint32_t cp) {
    if (cp == 0x130) return hn_text_put(out, "i\xCC\x87", 3);
    return put_char(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

static bool is_dropped_by_nmt(uint32_t cp) {
    return (cp >= 1 && cp <= 8) || cp == 0x0B || (cp >= 0x0E && cp <= 0x1F) || cp == 0x7F || cp == 0x8F || cp == 0x9F;
}

static bool is_space_to_nmt(uint32_t cp) {
    static const uint32_t spaces[] = {0x09, 0x0A, 0x0C, 0x0D, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (cp == spaces[i]) return true;
    }
    return cp >= 0x200B && cp <= 0x200F;
}

/* Steps that treat one character at a time. */
static bool each_character(hn_text *out, hn_normal_kind kind, const char *text, size_t len) {
    uint32_t cp;
    bool ok = true;
    for (size_t i = 0, n; i < len && ok; i += n) {
        n = (size_t)hn_utf8_decode(text + i, len - i, &cp);
        if (kind == HN_NORMAL_LOWERCASE) {
            ok = put_lower(out, cp);
        } else if (kind == HN_NORMAL_STRIP_ACCENTS) {
            ok = hn_char_is_mark(cp) || hn_text_put(out, text + i, n);
        } else if (!is_dropped_by_nmt(cp)) {
            ok = is_space_to_nmt(cp) ? hn_text_put(out, " ", 1) : hn_text_put(out, text + i, n);
        }
    }
    return ok;
}

/* The error of a failed hn_text_put. */
static hunch_status fail_growth(const hn_text *out, hunch_error *err) {
    if (!out->over) return fail_memory(err);
    return hn_fail(err, HUNCH_USAGE,
                   "the tokenizer's normalizer makes more than %zu bytes of a text, expected at most %d "
                   "times what it had",
                   out->most, MOST_GROWTH);
}

static hunch_status replace_pattern(hn_text *out, const step *s, hn_pattern_work *w, const char *text, size_t len,
                                    hunch_error *err) {
    bool found = true;
    for (size_t at = 0, from, to; at < len; at = to) {
        hunch_status status = hn_pattern_find(s->pattern, w, text, at, len, &found, &from, &to, err);
        if (status) return status;
        if (!found) from = to = len;
        if (!hn_text_put(out, text + at, from - at)) return fail_growth(out, err);
        if (found && !hn_text_put(out, s->content, strlen(s->content))) return fail_growth(out, err);
    }
    return HUNCH_OK;
}

static bool collapse_spaces(hn_text *out, const char *text, size_t len) {
    for (size_t at = 0, end; at < len; at = end) {
        for (; at < len && text[at] == ' '; at++) {
        }
        const char *space = at < len ? memchr(text + at, ' ', len - at) : NULL;
        end = space ? (size_t)(space - text) : len;
        if (end > at && (!hn_text_put(out, " ", 1) || !hn_text_put(out, text + at, end - at))) return false;
    }
    return true;
}

static bool map_longest(hn_text *out, const hn_charsmap *m, const char *text, size_t len) {
    uint32_t cp;
    for (size_t i = 0, used; i < len; i += used) {
        const char *to = hn_charsmap_find(m, text + i, len - i, true, &used);
        if (!to) used = (size_t)hn_utf8_decode(text + i, len - i, &cp);
        if (!(to ? hn_text_put(out, to, strlen(to)) : hn_text_put(out, text + i, used))) return false;
    }
    return true;
}

/* Replaces a whole chunk by the replacement of the shortest rule that it begins with, as the package does. */
static bool map_chunk(hn_text *out, const hn_charsmap *m, const char *text, size_t len, bool *mapped) {
    size_t used;
    const char *to = hn_charsmap_find(m, text, len, false, &used);
    *mapped = to != NULL;
    return !to || hn_text_put(out, to, strlen(to));
}

static bool map_cluster(hn_text *out, const hn_charsmap *m, const char *text, size_t len) {
    enum { LONG = 6 };
    uint32_t cp;
    bool mapped = false;
    if (len < LONG && !map_chunk(out, m, text, len, &mapped)) return false;
    for (size_t i = 0, n; !mapped && i < len; i += n) {
        bool one;
        n = (size_t)hn_utf8_decode(text + i, len - i, &cp);
        if (!map_chunk(out, m, text + i, n, &one)) return false;
        if (!one && !hn_text_put(out, text + i, n)) return false;
    }
    return true;
}

static bool map_clusters(hn_text *out, const hn_charsmap *m, const char *text, size_t len) {
    utf8proc_int32_t state = 0;
    uint32_t cp, next;
    for (size_t from = 0, at = 0; at < len; from = at) {
        at += (size_t)hn_utf8_decode(text + at, len - at, &cp);
        for (size_t n; at < len; at += n, cp = next) {
            n = (size_t)hn_utf8_decode(text + at, len - at, &next);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next, &state)) break;
        }
        if (!map_cluster(out, m, text + from, at - from)) return false;
    }
    return true;
}

static bool strip(hn_text *out, const step *s, const char *text, size_t len) {
    size_t from = s->left ? hn_spaces_at_start(text, len) : 0;
    size_t to = s->right && from < len ? len - hn_spaces_at_end(text + from, len - from) : len;
    return hn_text_put(out, text + from, to - from);
}

static hunch_status run_step(const step *s, hn_normal_work *w, hn_text *out, const char *text, size_t len,
                             hunch_error *err) {
    bool ok = true;
    switch (s->kind) {
    case HN_NORMAL_NFC:
    case HN_NORMAL_NFD:
    case HN_NORMAL_NFKC:
    case HN_NORMAL_NFKD:
        ok = hn_normal_form(&w->forms, out, text, len, s->kind == HN_NORMAL_NFC || s->kind == HN_NORMAL_NFKC,
                            s->kind == HN_NORMAL_NFKC || s->kind == HN_NORMAL_NFKD);
        break;
    case HN_NORMAL_STRIP: ok = strip(out, s, text, len); break;
    case HN_NORMAL_REPLACE:
        if (s->pattern) return replace_pattern(out, s, w->patterns, text, len, err);
        ok = hn_text_replace(out, text, len, s->string, s->content);
        break;
    case HN_NORMAL_PREPEND:
        ok = (len == 0 || hn_text_put(out, s->content, strlen(s->content))) && hn_text_put(out, text, len);
        break;
    case HN_NORMAL_CHARSMAP:
        ok = s->rule == HN_CHARSMAP_LONGEST ? map_longest(out, &s->map, text, len)
                                            : map_clusters(out, &s->map, text, len);
        break;
    case HN_NORMAL_SPACES: ok = collapse_spaces(out, text, len); break;
    default: ok = each_character(out, s->kind, text, len);
    }
    return ok ? HUNCH_OK : fail_growth(out, err);
}

/* True if the step removes the start of the text: its first character, or the match there. */
static bool loses_start(const step *s, hn_normal_work *w, const char *text, size_t len) {
    uint32_t cp;
    size_t used, from = 0, to = 0;
    bool found;
    const char *as;
    if (len == 0) return false;
    size_t n = (size_t)hn_utf8_decode(text, len, &cp);
    switch (s->kind) {
    case HN_NORMAL_STRIP: return s->left && hn_char_is_space(cp);
    case HN_NORMAL_STRIP_ACCENTS: return hn_char_is_mark(cp);
    case HN_NORMAL_NMT: return is_dropped_by_nmt(cp);
    case HN_NORMAL_REPLACE:
        if (*s->content) return false;
        used = s->string ? strlen(s->string) : 0;
        if (s->string) return used && used <= len && memcmp(text, s->string, used) == 0;
        return hn_pattern_find(s->pattern, w->patterns, text, 0, len, &found, &from, &to, NULL) == HUNCH_OK && found &&
               from == 0;
    case HN_NORMAL_CHARSMAP:
        as = hn_charsmap_find(&s->map, text, n, s->rule == HN_CHARSMAP_LONGEST, &used);
        return as && !*as;
    default: return false;
    }
}

static hunch_status check_step(const step *s, const char *text, size_t len, hunch_error *err) {
    size_t valid = s->kind == HN_NORMAL_CHARSMAP ? hn_utf8_check(text, len) : len;
    if (valid == len) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "the tokenizer's charsmap makes invalid UTF-8 of a text, at byte %zu", valid);
}

/* Normalizers without a pattern, which most are, allocate no work area of PCRE2 and read no clock. */
static hunch_status begin_patterns(const hn_normalizer *z, hn_normal_work *w, size_t len, hunch_error *err) {
    if (!z->patterns) return HUNCH_OK;
    hunch_status s = w->patterns ? HUNCH_OK : hn_pattern_work_open(&w->patterns, err);
    if (!s) hn_pattern_work_begin(w->patterns, len);
    return s;
}

hunch_status hn_normalize(const hn_normalizer *z, hn_normal_work *w, const char *text, size_t len, hn_normal_text *out,
                          hunch_error *err) {
    hunch_status s = begin_patterns(z, w, len, err);
    if (s) return s;
    out->lost_start = false;
    size_t most = len < INT32_MAX / (2 * MOST_GROWTH) ? MOST_GROWTH * len + 4096 : INT32_MAX;
    for (size_t i = 0; i < z->n; i++) {
        hn_text *to = &w->made[i & 1];
        to->len = 0;
        to->most = most;
        out->lost_start |= loses_start(&z->steps[i], w, text, len);
        s = run_step(&z->steps[i], w, to, text, len, err);
        if (!s) s = check_step(&z->steps[i], to->bytes, to->len, err);
        if (s) return s;
        text = to->bytes;
        len = to->len;
    }
    out->bytes = text;
    out->len = len;
    return HUNCH_OK;
}
