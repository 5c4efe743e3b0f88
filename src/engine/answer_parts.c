/* SPDX-License-Identifier: Apache-2.0 */
/* answer_parts.c - what of an answer is thinking, by the marks that its model's template has. */
#include <string.h>

#include "engine/engine.h"

void hn_think_marks(hunch_model *m, const char *template_text, size_t len) {
    static const char *const marks[][2] = {{"<think>", "</think>"},
                                           {"[THINK]", "[/THINK]"},
                                           {"<seed:think>", "</seed:think>"},
                                           {"<|START_THINKING|>", "<|END_THINKING|>"}};
    size_t i = 0, n = sizeof marks / sizeof *marks;
    while (i < n && !(template_text && memmem(template_text, len, marks[i][1], strlen(marks[i][1])))) i++;
    m->think_begin = marks[i % n][0];
    m->think_end = marks[i % n][1];
}

bool hunch_prompt_thinks(const hunch_model *m, const char *text, size_t len) {
    if (!m || !text) return false;
    const size_t n = strlen(m->think_begin);
    while (len && strchr(" \r\n", text[len - 1])) len--;
    return len >= n && memcmp(text + len - n, m->think_begin, n) == 0;
}

/* Bytes at the end of the text that may be the beginning of the mark. */
static size_t mark_begun(const char *text, size_t len, const char *mark) {
    size_t k = strlen(mark) - 1;
    if (k > len) k = len;
    while (k > 0 && memcmp(text + len - k, mark, k) != 0) k--;
    return k;
}

bool hunch_split_next(const hunch_model *m, hunch_split *s, const char *text, size_t len, bool ended, hunch_part *part) {
    if (!m || !s || !text || !part || s->done >= len) return false;
    const char *mark = s->thinking ? m->think_end : m->think_begin, *from = text + s->done;
    const size_t left = len - s->done;
    const char *at = memmem(from, left, mark, strlen(mark));
    *part = (hunch_part){s->thinking ? HUNCH_PART_THINKING : HUNCH_PART_TEXT, s->done, at ? (size_t)(at - from) : left};
    if (!at && !ended) part->len -= mark_begun(from, left, mark);
    if (at == from) {
        part->kind = HUNCH_PART_MARK;
        part->len = strlen(mark);
        s->thinking = !s->thinking;
    }
    s->done += part->len;
    return part->len > 0;
}
