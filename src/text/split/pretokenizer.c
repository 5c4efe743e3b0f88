/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer.c - runs a text through the steps, depth first: each piece passes all steps before the next one is split off,
 * so words are produced from left to right and nothing is collected.
 *
 * The pieces of a split: put_span. The patterns that GGUF files name: pretokenizer_kinds.c.
 */
#include "text/split/pretokenizer.h"

#include <string.h>

#include "base/mem.h"
#include "text/normal/byte_letters.h"
#include "text/split/pattern.h"
#include "text/split/pretokenizer_scan.h"
#include "text/normal/space_mark.h"

typedef struct step {
    hn_pretok_step_kind kind;
    hn_pattern *pattern;
    hn_scanner *scan; /* NULL: always the pattern */
    hn_split split;
    bool invert;
    hn_space_prefix prefix;
    bool whole;
} step;

struct hn_pretok {
    size_t n;
    bool letters; /* some step makes letters of bytes: words are converted back to bytes */
    step steps[HN_PRETOK_MAX_STEPS];
};

typedef struct buffer {
    char *text;
    size_t cap;
} buffer;

struct hn_pretok_work {
    hn_pattern_work *patterns;
    buffer made[HN_PRETOK_MAX_STEPS + 1]; /* [i]: output of step i; the last: a word as bytes */
};

static hunch_status step_open(step *out, const hn_pretok_step *from, hunch_error *err) {
    *out = (step){
        .kind = from->kind, .split = from->split, .invert = from->invert, .prefix = from->prefix, .whole = from->whole};
    if (from->kind != HN_PRETOK_SPLIT) return HUNCH_OK;
    out->scan = hn_scanner_of(from->pattern);
    return hn_pattern_open(&out->pattern, from->pattern, err);
}

hunch_status hn_pretok_open(hn_pretok **out, const hn_pretok_step *steps, size_t n, hunch_error *err) {
    *out = NULL;
    if (n > HN_PRETOK_MAX_STEPS)
        return hn_fail(err, HUNCH_REFUSED, "a pre-tokenizer of %zu steps, at most %d are read", n, HN_PRETOK_MAX_STEPS);
    hn_pretok *p = hn_zalloc(1, sizeof *p);
    hunch_status s = p ? HUNCH_OK : hn_fail_memory(err, "the pre-tokenizer", sizeof *p);
    for (; !s && p->n < n; p->n += !s) {
        s = step_open(&p->steps[p->n], &steps[p->n], err);
        p->letters |= steps[p->n].kind == HN_PRETOK_LETTERS;
    }
    if (!s)
        *out = p;
    else
        hn_pretok_close(&p);
    return s;
}

void hn_pretok_close(hn_pretok **p) {
    if (!*p) return;
    for (size_t i = 0; i < (*p)->n; i++) hn_pattern_close(&(*p)->steps[i].pattern);
    hn_free(*p);
    *p = NULL;
}

hunch_status hn_pretok_work_open(hn_pretok_work **out, hunch_error *err) {
    *out = hn_zalloc(1, sizeof **out);
    if (!*out) return hn_fail_memory(err, "the pre-tokenizer's work area", sizeof **out);
    hunch_status s = hn_pattern_work_open(&(*out)->patterns, err);
    if (s) hn_pretok_work_close(out);
    return s;
}

void hn_pretok_work_close(hn_pretok_work **w) {
    if (!*w) return;
    hn_pattern_work_close(&(*w)->patterns);
    for (size_t i = 0; i <= HN_PRETOK_MAX_STEPS; i++) hn_free((*w)->made[i].text);
    hn_free(*w);
    *w = NULL;
}

void hn_pretok_work_begin(hn_pretok_work *w, size_t len) {
    hn_pattern_work_begin(w->patterns, len);
}

typedef struct walker {
    const hn_pretok *p;
    hn_pretok_work *w;
    hn_word_fn *word;
    void *user;
} walker;

static hunch_status walk(const walker *w, size_t level, const char *text, size_t len, bool first, hunch_error *err);

static char *room(buffer *b, size_t len) {
    return hn_grow((void **)&b->text, &b->cap, len, 1) ? b->text : NULL;
}

static hunch_status fail_room(size_t len, hunch_error *err) {
    return hn_fail_memory(err, "a piece of text", len);
}

/* ---- splits ---- */

typedef struct cutter { /* the pieces of one split, as they are found */
    const walker *w;
    const step *step;
    size_t level;
    const char *text;
    bool first;
    bool holding, previous; /* previous: the last span was a match */
    size_t from, to;        /* the span held back, which may grow */
} cutter;

static hunch_status pass(const cutter *c, size_t from, size_t to, hunch_error *err) {
    return walk(c->w, c->level + 1, c->text + from, to - from, c->first && from == 0, err);
}

static hunch_status pass_held(cutter *c, hunch_error *err) {
    if (!c->holding) return HUNCH_OK;
    c->holding = false;
    return pass(c, c->from, c->to, err);
}

static hunch_status hold(cutter *c, size_t from, size_t to, hunch_error *err) {
    hunch_status s = pass_held(c, err);
    c->holding = true;
    c->from = from;
    c->to = to;
    return s;
}

/* A match, or the text between two, from left to right. */
static hunch_status put_span(cutter *c, size_t from, size_t to, bool match, hunch_error *err) {
    if (from == to) return HUNCH_OK;
    match ^= c->step->invert;
    bool previous = c->previous, grows = false;
    c->previous = match;
    switch (c->step->split) {
    case HN_SPLIT_REMOVED:
        if (match) return HUNCH_OK;
        return pass(c, from, to, err);
    case HN_SPLIT_WITH_PREVIOUS: grows = c->holding && match && !previous; break;
    case HN_SPLIT_WITH_NEXT: /* only a match is held */
        if (c->holding && !match) {
            c->to = to;
            return pass_held(c, err);
        }
        return match ? hold(c, from, to, err) : pass(c, from, to, err);
    case HN_SPLIT_CONTIGUOUS: grows = c->holding && match == previous; break;
    default: return pass(c, from, to, err);
    }
    if (!grows) return hold(c, from, to, err);
    c->to = to;
    return HUNCH_OK;
}

static hunch_status next_match(const cutter *c, size_t at, size_t len, bool *found, size_t *from, size_t *to,
                               hunch_error *err) {
    *from = at;
    if (c->step->scan) {
        hn_scan seen = c->step->scan(c->text, at, len, from, to);
        *found = seen == HN_SCAN_MATCH;
        if (seen != HN_SCAN_UNDECIDED) return HUNCH_OK;
    }
    return hn_pattern_find(c->step->pattern, c->w->w->patterns, c->text, *from, len, found, from, to, err);
}

static hunch_status walk_split(const walker *w, size_t level, const char *text, size_t len, bool first,
                               hunch_error *err) {
    cutter c = {.w = w, .step = &w->p->steps[level], .level = level, .text = text, .first = first};
    hunch_status s = HUNCH_OK;
    for (size_t at = 0, from, to; at < len && !s; at = to) {
        bool found;
        s = next_match(&c, at, len, &found, &from, &to, err);
        if (s) return s;
        if (!found) from = to = len;
        s = put_span(&c, at, from, false, err);
        if (!s) s = put_span(&c, from, to, true, err);
    }
    return s ? s : pass_held(&c, err);
}

/* ---- steps that change the text ---- */

static hunch_status walk_space(const walker *w, size_t level, const char *text, size_t len, bool first,
                               hunch_error *err) {
    if (text[0] == ' ') return walk(w, level + 1, text, len, first, err);
    char *made = room(&w->w->made[level], len + 1);
    if (!made) return fail_room(len, err);
    made[0] = ' ';
    memcpy(made + 1, text, len);
    return walk(w, level + 1, made, len + 1, first, err);
}

static hunch_status walk_letters(const walker *w, size_t level, const char *text, size_t len, bool first,
                                 hunch_error *err) {
    char *made = room(&w->w->made[level], 2 * len);
    if (!made) return fail_room(len, err);
    return walk(w, level + 1, made, hn_bytes_to_letters(text, len, made), first, err);
}

/* The text with marks for spaces, and one before it if add. */
static size_t put_marks(char *out, const char *text, size_t len, bool add) {
    size_t n = 0;
    if (add) n = HN_SPACE_MARK_BYTES, memcpy(out, HN_SPACE_MARK, HN_SPACE_MARK_BYTES);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ') {
            memcpy(out + n, HN_SPACE_MARK, HN_SPACE_MARK_BYTES);
            n += HN_SPACE_MARK_BYTES;
        } else {
            out[n++] = text[i];
        }
    }
    return n;
}

static hunch_status walk_metaspace(const walker *w, size_t level, const char *text, size_t len, bool first,
                                   hunch_error *err) {
    const step *s = &w->p->steps[level];
    bool starts = text[0] == ' ' || hn_is_space_mark(text, len);
    bool add = !starts && (s->prefix == HN_SPACE_PREFIX_EACH || (s->prefix == HN_SPACE_PREFIX_FIRST && first));
    char *made = room(&w->w->made[level], HN_SPACE_MARK_BYTES * (len + 1));
    if (!made) return fail_room(len, err);
    size_t n = put_marks(made, text, len, add), from = 0;
    hunch_status status = HUNCH_OK;
    for (size_t at = 1; !s->whole && at < n && !status; at++) {
        if (!hn_is_space_mark(made + at, n - at)) continue;
        status = walk(w, level + 1, made + from, at - from, first && from == 0, err);
        from = at;
    }
    return status ? status : walk(w, level + 1, made + from, n - from, first && from == 0, err);
}

static hunch_status put_word(const walker *w, const char *text, size_t len, hunch_error *err) {
    if (!w->p->letters) return w->word(w->user, text, len, err);
    size_t n;
    char *bytes = room(&w->w->made[HN_PRETOK_MAX_STEPS], len);
    if (!bytes) return fail_room(len, err);
    if (!hn_letters_to_bytes(text, len, bytes, &n)) {
        return hn_fail(err, HUNCH_REFUSED,
                       "the pre-tokenizer adds characters after its ByteLevel step, which is not supported");
    }
    return w->word(w->user, bytes, n, err);
}

static hunch_status walk(const walker *w, size_t level, const char *text, size_t len, bool first, hunch_error *err) {
    if (len == 0) return HUNCH_OK;
    if (level == w->p->n) return put_word(w, text, len, err);
    switch (w->p->steps[level].kind) {
    case HN_PRETOK_SPACE: return walk_space(w, level, text, len, first, err);
    case HN_PRETOK_LETTERS: return walk_letters(w, level, text, len, first, err);
    case HN_PRETOK_METASPACE: return walk_metaspace(w, level, text, len, first, err);
    default: return walk_split(w, level, text, len, first, err);
    }
}

hunch_status hn_pretok_split(const hn_pretok *p, hn_pretok_work *w, const char *text, size_t len, bool first,
                             hn_word_fn *word, void *user, hunch_error *err) {
    walker whole = {p, w, word, user};
    return walk(&whole, 0, text, len, first, err);
}
