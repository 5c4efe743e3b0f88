/* SPDX-License-Identifier: Apache-2.0 */
/* convert_lines.c - whether Gemma 4's tokenizer is expressed by a GGUF: there runs of ends of lines are words of their own, and a run that
 * is a token is that token without merges. So no other token may have ends of lines in it, and the merges must make these tokens. */
#include "convert/convert_tokenizer.h"

enum { MOST_LINES = 64 }; /* of a token */

/* The first merge of runs of these lengths; the number of merges if there is none. */
typedef struct runs {
    size_t merge[MOST_LINES + 1][MOST_LINES + 1];
} runs;

static bool all_lines(const char *text, size_t len) {
    size_t n = 0;
    while (n < len && text[n] == '\n') n++;
    return n > 0 && n == len;
}

static hunch_status runs_read(const hn_tokenizer_conversion *c, const hn_merge_list *m, runs *r) {
    for (int a = 0; a <= MOST_LINES; a++)
        for (int b = 0; b <= MOST_LINES; b++) r->merge[a][b] = m->count;
    for (size_t i = 0; i < m->count; i++) {
        const size_t left = m->left[i], right = m->len[i] - left - 1;
        if (!all_lines(m->text[i], left) || !all_lines(m->text[i] + left + 1, right))
            continue;
        if (left + right > MOST_LINES)
            return hn_fail(c->err, HUNCH_REFUSED, "%s: tokenizer.json: merge %zu makes %zu ends of lines, expected at most %d",
                           hn_source_path(c->src), i, left + right, MOST_LINES);
        if (r->merge[left][right] == m->count)
            r->merge[left][right] = i;
    }
    return HUNCH_OK;
}

/* Into how many tokens the merges encode a run. */
static int run_encode(const runs *r, size_t n, size_t none) {
    size_t part[MOST_LINES];
    int parts = (int)n;
    for (int i = 0; i < parts; i++) part[i] = 1;
    for (;;) {
        int best = -1;
        size_t first = none;
        for (int i = 0; i + 1 < parts; i++)
            if (r->merge[part[i]][part[i + 1]] < first) {
                best = i;
                first = r->merge[part[i]][part[i + 1]];
            }
        if (best < 0)
            return parts;
        part[best] += part[best + 1];
        parts--;
        memmove(part + best + 1, part + best + 2, (size_t)(parts - best - 1) * sizeof *part);
    }
}

hunch_status hn_lines_check(const hn_tokenizer_conversion *c, const hn_merge_list *m) {
    runs r;
    hunch_status status = runs_read(c, m, &r);
    for (int i = 0; i < c->size && !status; i++) {
        if (c->type[i] != HN_TOKEN_NORMAL || memchr(c->text[i], '\n', c->len[i]) == NULL)
            continue;
        if (!all_lines(c->text[i], c->len[i]))
            status = hn_fail(c->err, HUNCH_REFUSED,
                             "%s: tokenizer.json: token %d has ends of lines beside other characters: a GGUF of Gemma 4 "
                             "has words of one or the other",
                             hn_source_path(c->src), i);
        else if (c->len[i] > MOST_LINES || run_encode(&r, c->len[i], m->count) > 1)
            status = hn_fail(c->err, HUNCH_REFUSED,
                             "%s: tokenizer.json: token %d, %zu ends of lines, is not what its merges make of them: "
                             "a GGUF of Gemma 4 has it as a word",
                             hn_source_path(c->src), i, c->len[i]);
    }
    return status;
}
