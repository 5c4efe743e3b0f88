/* SPDX-License-Identifier: Apache-2.0 */
/* answer_parts.c - what of an answer is thinking, by the marks that its model's template has: a pair of them around it, or messages with
 * headers that name a channel (Harmony: <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...). */
#include <string.h>

#include "base/least.h"
#include "base/mem.h"
#include "calls/calls.h"
#include "engine/engine.h"

/* ---- a model's marks ------------------------------------------------------------------------------------------------- */

/* Leaves out the blank that some tokenizers put before a text. */
static size_t drop_blank(const hn_tokenizer *t, int32_t *ids, size_t n) {
    size_t len = 0;
    const char *first = n > 1 ? hn_tokenizer_piece(t, ids[0], &len) : NULL;
    if (!first || len != 1 || *first != ' ') return n;
    memmove(ids, ids + 1, (n - 1) * sizeof *ids);
    return n - 1;
}

hunch_status hn_think_marks(hunch_model *m, const char *template_text, size_t len, hunch_error *err) {
    const hn_think_pair pair = hn_think_pair_of(template_text, len);
    size_t n = 0;
    m->think_channels = pair.channels;
    m->think_begin = pair.begin;
    m->think_end = pair.end;
    m->may_think = pair.found;
    m->think_special = false;
    hn_free(m->think_stop);
    m->think_stop = NULL;
    if (!m->tokenizer) return HUNCH_OK;
    const hunch_status st =
        hn_tokenizer_encode(m->tokenizer, m->think_end, strlen(m->think_end), HUNCH_TEXT_PARSE_SPECIAL, &m->think_stop, &n, err);
    m->n_think_stop = st ? 0 : (int)drop_blank(m->tokenizer, m->think_stop, n);
    m->think_special = !st && n == 1 && hn_tokenizer_is_special(m->tokenizer, m->think_stop[0]);
    return st;
}

hunch_status hunch_model_set_marks(hunch_model *m, const char *template_text, hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"template_text", template_text}, {0}};
    const hunch_status st = hn_check_arguments(__func__, needed, err);
    return st ? st : hn_think_marks(m, template_text, strlen(template_text), err);
}

bool hunch_marks_are_special(const hunch_model *m) {
    return m && m->think_special;
}

bool hunch_prompt_thinks(const hunch_model *m, const char *text, size_t len) {
    if (!m || !text) return false;
    const size_t n = strlen(m->think_begin);
    while (len && strchr(" \r\n", text[len - 1])) len--;
    return len >= n && memcmp(text + len - n, m->think_begin, n) == 0;
}

bool hn_tokens_think(const hunch_model *m, const int32_t *token, size_t n) {
    char end[256];
    size_t from = sizeof end, len;
    while (n && from) {
        const char *piece = hn_tokenizer_piece(m->tokenizer, token[--n], &len);
        const size_t fits = piece ? hn_least_size(len, from) : 0;
        from -= fits;
        if (fits) memcpy(end + from, piece + len - fits, fits);
    }
    return hunch_prompt_thinks(m, end + from, sizeof end - from);
}

/* ---- marks in a text ------------------------------------------------------------------------------------------------- */

/* Bytes at the end of the text that may be the beginning of the mark. */
static size_t mark_begun(const char *text, size_t len, const char *mark) {
    size_t k = strlen(mark) - 1;
    if (k > len) k = len;
    while (k > 0 && memcmp(text + len - k, mark, k) != 0) k--;
    return k;
}

static bool begins_with(const char *text, size_t len, const char *mark) {
    return len >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0;
}

/* The first of the marks (NULL ends them) in a text, NULL: none; then *held bytes at its end may be the beginning of one. */
static const char *first_mark(const char *text, size_t len, const char *const *marks, const char **which, size_t *held) {
    const char *first = NULL;
    *held = 0;
    for (; *marks; marks++) {
        const char *at = memmem(text, len, *marks, strlen(*marks));
        const size_t begun = mark_begun(text, len, *marks);
        if (begun > *held) *held = begun;
        if (!at || (first && at >= first)) continue;
        first = at;
        *which = *marks;
    }
    return first;
}

static bool take(hunch_split *s, hunch_part *part, hunch_part_kind kind, size_t len) {
    *part = (hunch_part){kind, s->done, len};
    s->done += len;
    return len > 0;
}

static bool next_between_marks(const hunch_model *m, hunch_split *s, const char *from, size_t left, bool ended, hunch_part *part) {
    const char *const marks[] = {s->thinking ? m->think_end : m->think_begin, NULL}, *mark;
    size_t held;
    const char *at = first_mark(from, left, marks, &mark, &held);
    const hunch_part_kind kind = s->thinking ? HUNCH_PART_THINKING : HUNCH_PART_TEXT;
    if (at != from) return take(s, part, kind, at ? (size_t)(at - from) : left - (ended ? 0 : held));
    s->thinking = !s->thinking;
    return take(s, part, HUNCH_PART_MARK, strlen(mark));
}

/* ---- messages in channels ----------------------------------------------------------------------------------------------- */

enum { IN_HEADER, IN_TEXT, IN_CALL }; /* hunch_split.message; in thinking s->thinking is set */
enum { LONGEST_HEADER = 256 };
#define MESSAGE "<|message|>"

/* What a header begins with, if one begins here; NULL also if the text is too short to tell (*unknown). */
static const char *header_begin(const char *text, size_t len, bool *unknown) {
    static const char *const first[] = {"<|channel|>", "<|start|>", MESSAGE, "<|constrain|>", " to=", "to="};
    *unknown = false;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (begins_with(text, len, first[i])) return first[i];
        *unknown = *unknown || (len < strlen(first[i]) && memcmp(text, first[i], len) == 0);
    }
    return NULL;
}

/* A recipient makes a call, whatever the channel is. */
static hunch_part_kind kind_of(const char *header, size_t len) {
    static const char name[] = "<|channel|>";
    const char *channel = memmem(header, len, name, sizeof name - 1);
    if (begins_with(header, len, "to=") || memmem(header, len, " to=", 4)) return HUNCH_PART_CALL;
    if (!channel) return HUNCH_PART_TEXT;
    channel += sizeof name - 1;
    return begins_with(channel, len - (size_t)(channel - header), "analysis") ? HUNCH_PART_THINKING : HUNCH_PART_TEXT;
}

static void enter(hunch_split *s, hunch_part_kind kind) {
    s->thinking = kind == HUNCH_PART_THINKING;
    s->message = kind == HUNCH_PART_CALL ? IN_CALL : kind == HUNCH_PART_TEXT ? IN_TEXT : IN_HEADER;
}

/* A whole header, up to <|message|>, is a mark, that of a call belongs to the call. False: not known yet, or (IN_TEXT) there is none: a
 * model that writes none answers all the same. */
static bool next_header(hunch_split *s, const char *from, size_t left, bool ended, hunch_part *part) {
    static const char *const marks[] = {MESSAGE, "<|end|>", "<|call|>", "<|return|>", NULL};
    bool unknown;
    size_t held;
    const char *mark = NULL, *begin = header_begin(from, left, &unknown), *at = first_mark(from, left, marks, &mark, &held);
    const size_t len = at ? (size_t)(at - from) + strlen(mark) : left;
    if (unknown && !begin && !ended) return false;
    if (at != from && (!begin || len > LONGEST_HEADER)) {
        s->message = IN_TEXT;
        return begin && *begin == '<' && take(s, part, HUNCH_PART_MARK, strlen(begin));
    }
    if (!at) return ended && take(s, part, HUNCH_PART_MARK, left);
    const hunch_part_kind kind = strcmp(mark, MESSAGE) == 0 ? kind_of(from, len) : HUNCH_PART_MARK;
    enter(s, kind);
    return take(s, part, kind == HUNCH_PART_CALL ? kind : HUNCH_PART_MARK, len);
}

/* A message ends with its mark, or where another header begins. */
static bool next_body(hunch_split *s, const char *from, size_t left, bool ended, hunch_part *part) {
    static const char *const marks[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>", NULL};
    const hunch_part_kind kind = s->thinking ? HUNCH_PART_THINKING : s->message == IN_CALL ? HUNCH_PART_CALL : HUNCH_PART_TEXT;
    const char *mark;
    size_t held;
    const char *at = first_mark(from, left, marks, &mark, &held);
    if (at != from) return take(s, part, kind, at ? (size_t)(at - from) : left - (ended ? 0 : held));
    enter(s, HUNCH_PART_MARK);
    return mark == marks[3] || mark == marks[4] ? next_header(s, from, left, ended, part)
                                                : take(s, part, HUNCH_PART_MARK, strlen(mark));
}

static bool next_of_messages(hunch_split *s, const char *from, size_t left, bool ended, hunch_part *part) {
    if (!s->thinking && s->message == IN_HEADER) {
        const bool found = next_header(s, from, left, ended, part);
        if (found || s->message == IN_HEADER) return found;
    }
    return next_body(s, from, left, ended, part);
}

/* ---- the parts of an answer ---------------------------------------------------------------------------------------------- */

bool hunch_split_next(const hunch_model *m, hunch_split *s, const char *text, size_t len, bool ended, hunch_part *part) {
    if (!m || !s || !text || !part || s->done >= len) return false;
    const char *from = text + s->done;
    return m->think_channels ? next_of_messages(s, from, len - s->done, ended, part)
                             : next_between_marks(m, s, from, len - s->done, ended, part);
}
