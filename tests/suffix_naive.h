/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_naive.h - suffix decoding by recounting substrings, written only from its description: the reference of the
 * suffix tests. Slow, without state except the texts. */
#ifndef HN_TEST_SUFFIX_NAIVE_H
#define HN_TEST_SUFFIX_NAIVE_H
#include <math.h>
#include <string.h>

#include "base/helper_for_tests.h"
#include "draft/text/suffix_draft.h"


enum { NAIVE_TEXTS = 8, NAIVE_TOKENS = 512, NAIVE_VOCAB = 16 };

typedef struct naive_texts {
    int window, n;
    struct {
        int n;
        int32_t token[NAIVE_TOKENS];
    } text[NAIVE_TEXTS]; /* oldest first; tokens below NAIVE_VOCAB */
} naive_texts;

/* Occurrences of s; last: where the last one starts, ascending with text and position. */
HELPER int naive_count(const naive_texts *x, const int32_t *s, int len, int *last) {
    int count = 0;
    for (int k = 0; k < x->n && len <= x->window; k++)
        for (int i = 0; i + len <= x->text[k].n; i++)
            if (!memcmp(x->text[k].token + i, s, (size_t)len * sizeof *s)) {
                count++;
                *last = k * NAIVE_TOKENS + i;
            }
    return count;
}

/* The tokens that follow s, by count, then by their last occurrence. */
HELPER int naive_follow(const naive_texts *x, const int32_t *s, int len, int32_t token[NAIVE_VOCAB],
                       int count[NAIVE_VOCAB]) {
    int32_t longer[NAIVE_TOKENS];
    int n = 0, at[NAIVE_VOCAB];
    memcpy(longer, s, (size_t)len * sizeof *s);
    for (int v = 0; v < NAIVE_VOCAB; v++) {
        longer[len] = v;
        int last = 0, c = naive_count(x, longer, len + 1, &last), i = n;
        if (!c) continue;
        for (; i > 0 && (count[i - 1] < c || (count[i - 1] == c && at[i - 1] > last)); i--) {
            token[i] = token[i - 1];
            count[i] = count[i - 1];
            at[i] = at[i - 1];
        }
        token[i] = v;
        count[i] = c;
        at[i] = last;
        n++;
    }
    return n;
}

/* The draft after s. All paths that could be drafted next are in an unsorted list. */
HELPER void naive_draft(const naive_texts *x, const hn_suffix_rules *r, const int32_t *s, int len, int budget,
                       hn_suffix_draft *out) {
    static struct {
        int32_t path[HN_SUFFIX_DEPTH + 1];
        int n, parent, count, above;
    } wait[HN_SUFFIX_DEPTH * NAIVE_VOCAB];
    int n_wait = 0, last, total = naive_count(x, s, len, &last), above = total, n_path = 0;
    int32_t string[NAIVE_TOKENS], token[NAIVE_VOCAB];
    int count[NAIVE_VOCAB];
    memcpy(string, s, (size_t)len * sizeof *s);
    memset(out, 0, sizeof *out);
    while (out->n < budget) {
        int n = naive_follow(x, string, len + n_path, token, count);
        if (!r->tree && n > 1) n = 1;
        for (int i = 0; i < n; i++) {
            if ((double)count[i] / total < r->min_p) continue;
            memcpy(wait[n_wait].path, string + len, (size_t)n_path * sizeof *string);
            wait[n_wait].path[n_path] = token[i];
            wait[n_wait].n = n_path + 1;
            wait[n_wait].parent = out->n - 1;
            wait[n_wait].count = count[i];
            wait[n_wait++].above = above;
        }
        int best = -1;
        for (int i = 0; i < n_wait; i++)
            if (wait[i].count && (best < 0 || wait[i].count > wait[best].count)) best = i;
        if (best < 0) return;
        n_path = wait[best].n;
        memcpy(string + len, wait[best].path, (size_t)n_path * sizeof *string);
        out->token[out->n] = wait[best].path[n_path - 1];
        out->parent[out->n] = (int16_t)wait[best].parent;
        out->p[out->n] = (double)wait[best].count / total;
        out->step[out->n] = (double)wait[best].count / wait[best].above;
        out->score += out->p[out->n++];
        above = wait[best].count;
        wait[best].count = 0;
    }
}

/* The best draft after the context, from m = 1 on while the match is found. */
HELPER void naive_best(const naive_texts *x, const hn_suffix_rules *r, const int32_t *text, int n,
                      hn_suffix_draft *best) {
    int context = n < x->window ? n : x->window, last;
    memset(best, 0, sizeof *best);
    for (int m = 1; m < context && naive_count(x, text + n - m, m, &last); m++) {
        double budget = floor(m * r->factor + r->offset + 1e-6);
        hn_suffix_draft d;
        naive_draft(x, r, text + n - m, m, budget < 0 ? 0 : budget > r->depth ? r->depth : (int)budget, &d);
        d.match = m;
        if (d.n && d.score >= best->score) *best = d;
    }
}

HELPER bool naive_same(const hn_suffix_draft *a, const hn_suffix_draft *b) {
    size_t n = (size_t)a->n;
    return a->n == b->n && a->match == b->match && a->score == b->score &&
           !memcmp(a->token, b->token, n * sizeof *a->token) && !memcmp(a->parent, b->parent, n * sizeof *a->parent) &&
           !memcmp(a->p, b->p, n * sizeof *a->p) && !memcmp(a->step, b->step, n * sizeof *a->step);
}
#endif
