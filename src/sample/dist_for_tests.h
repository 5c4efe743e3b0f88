/* SPDX-License-Identifier: Apache-2.0 */
/* dist_for_tests.h - for tests: the distribution by its definition, in doubles, with sorted lists and no shortcut, over a contiguous
 * history. Roundings of logits to float32 are made here too, no others. */
#ifndef HN_DIST_FOR_TESTS_H
#define HN_DIST_FOR_TESTS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hunch/hunch.h"

enum { DEFINED_LONGEST = 1024 }; /* a longer repetition counts as this long */

typedef struct defined_dist {
    int vocab;
    double *l;    /* processed logits */
    double *p;    /* the distribution */
    int *id;      /* scratch */
    double *w, *key;
    bool unsure;  /* a cut was so close that float32 may differ */
} defined_dist;

static inline void defined_dist_open(defined_dist *d, int vocab) {
    const size_t n = (size_t)vocab;
    *d = (defined_dist){.vocab = vocab,
                       .l = calloc(n, sizeof(double)),
                       .p = calloc(n, sizeof(double)),
                       .w = calloc(n, sizeof(double)),
                       .key = calloc(n, sizeof(double)),
                       .id = calloc(n, sizeof(int))};
}
static inline void defined_dist_close(defined_dist *d) {
    free(d->l);
    free(d->p);
    free(d->w);
    free(d->key);
    free(d->id);
}

/* A logit that was changed to x: rounded, and finite if it was finite. */
static inline double defined_rounded(double logit, double x) {
    const double most = 3.4028234663852886e38; /* of float32 */
    return isfinite(logit) && fabs(x) > most ? copysign(most, x) : (double)(float)x;
}

/* ---- logits ----------------------------------------------------------------------------------------------------- */

static inline bool defined_breaker(const uint8_t *breakers, int32_t token) {
    return breakers && (breakers[token / 8] >> (token % 8) & 1);
}

/* Length of the longest repetition of the text's end that ends before position j, within the window from `start` on. */
static inline int defined_repeat(const int32_t *text, int n, int start, int j, const uint8_t *breakers) {
    int m = 0;
    while (j - 1 - m >= start && m < DEFINED_LONGEST && text[j - 1 - m] == text[n - 1 - m] &&
           !defined_breaker(breakers, text[n - 1 - m]))
        m++;
    return m;
}

static inline void defined_dry(defined_dist *d, const hunch_sampling *q, const int32_t *text, int n,
                               const uint8_t *breakers) {
    const int allowed = q->dry_allowed_length ? q->dry_allowed_length : 2;
    const double base = q->dry_base > 0 ? q->dry_base : 1.75;
    const int start = q->dry_range > 0 && q->dry_range < n ? n - q->dry_range : 0;
    for (int i = 0; i < d->vocab; i++) {
        int longest = 0;
        for (int j = start + 1; j < n; j++)
            if (text[j] == i) longest = (int)fmax(longest, defined_repeat(text, n, start, j, breakers));
        if (longest >= allowed && !defined_breaker(breakers, i))
            d->l[i] = defined_rounded(d->l[i], d->l[i] - q->dry_multiplier * pow(base, longest - allowed));
    }
}

static inline void defined_logits(defined_dist *d, const float *logits, const hunch_sampling *q, const int32_t *text,
                                  int n, int n_prompt, const uint8_t *breakers) {
    for (int i = 0; i < d->vocab; i++) {
        double x = (double)logits[i];
        int all = 0, answered = 0;
        for (int j = 0; j < q->n_bias; j++)
            if (q->bias[j].token == i) x = (double)(float)(x + q->bias[j].bias); /* small, or -infinity */
        const double biased = x;
        for (int j = 0; j < n; j++) {
            all += text[j] == i;
            answered += text[j] == i && j >= n_prompt;
        }
        if (all && q->repetition_penalty > 0) x = x > 0 ? x / q->repetition_penalty : x * q->repetition_penalty;
        x -= answered * q->frequency_penalty;
        if (answered) x -= q->presence_penalty;
        d->l[i] = defined_rounded(biased, x);
    }
    if (q->dry_multiplier > 0) defined_dry(d, q, text, n, breakers);
}

/* ---- cuts ------------------------------------------------------------------------------------------------------- */

static const double *defined_sort_by;
static inline int defined_compare(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    if (defined_sort_by[x] != defined_sort_by[y]) return defined_sort_by[x] > defined_sort_by[y] ? -1 : 1;
    return x < y ? -1 : 1;
}
static inline void defined_sort(defined_dist *d, int n, const double *falling) {
    defined_sort_by = falling;
    qsort(d->id, (size_t)n, sizeof *d->id, defined_compare);
}

static inline void defined_close(defined_dist *d, double a, double b, double slack) {
    if (fabs(a - b) <= 3e-6 * fabs(b) + slack) d->unsure = true;
}

static inline double defined_sum(const defined_dist *d, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += d->w[d->id[i]];
    return sum;
}

/* The shortest run of sorted tokens with this share of the weight. slack: error of a key in float32. */
static inline int defined_run(defined_dist *d, int n, double share, double slack) {
    const double target = share * defined_sum(d, n);
    double run = 0;
    for (int i = 0; i < n; i++) {
        run += d->w[d->id[i]];
        defined_close(d, run, target, 0);
        if (run < target) continue;
        if (i + 1 < n && d->l[d->id[i]] != d->l[d->id[i + 1]])
            defined_close(d, d->key[d->id[i]], d->key[d->id[i + 1]], slack);
        return i + 1;
    }
    return n;
}

static inline int defined_sigma(defined_dist *d, int n, double sigmas) {
    double mean = 0, variance = 0;
    int kept = 0;
    for (int i = 0; i < n; i++) mean += d->l[d->id[i]] / n;
    for (int i = 0; i < n; i++) variance += (d->l[d->id[i]] - mean) * (d->l[d->id[i]] - mean) / n;
    const double least = d->l[d->id[0]] - sigmas * sqrt(variance);
    for (int i = 0; i < n; i++) {
        if (fabs(d->l[d->id[i]] - least) < 1e-6) d->unsure = true;
        kept += d->l[d->id[i]] >= least;
    }
    return kept;
}

static inline int defined_typical(defined_dist *d, int n, double share) {
    const double sum = defined_sum(d, n);
    double entropy = 0;
    for (int i = 0; i < n; i++) {
        const double p = d->w[d->id[i]] / sum;
        if (p > 0) entropy -= p * log(p);
    }
    for (int i = 0; i < n; i++) d->key[d->id[i]] = -fabs(-log(d->w[d->id[i]] / sum) - entropy);
    defined_sort(d, n, d->key);
    n = defined_run(d, n, share, 2e-5);
    defined_sort(d, n, d->l);
    return n;
}

static inline int defined_xtc(defined_dist *d, int n, double threshold) {
    const double least = threshold * defined_sum(d, n);
    int above = 0, kept = 0, last;
    for (; above < n && d->w[d->id[above]] >= least; above++) {}
    for (int i = 0; i < n; i++) defined_close(d, d->w[d->id[i]], least, 0);
    if (above < 2) return n;
    for (last = above - 1; last > 0 && d->l[d->id[last - 1]] == d->l[d->id[above - 1]]; last--) {} /* the lowest id */
    if (last > 0) defined_close(d, d->w[d->id[last - 1]], d->w[d->id[last]], 0);
    for (int i = 0; i < n; i++)
        if (i >= above || i == last) d->id[kept++] = d->id[i];
    return kept;
}

/* From processed logits to the distribution. xtc: XTC acts. Temperature > 0 and at least one logit that is a number. */
static inline void defined_cuts(defined_dist *d, const hunch_sampling *q, bool xtc) {
    int n = 0, kept = 0;
    d->unsure = false;
    for (int i = 0; i < d->vocab; i++) {
        d->p[i] = d->w[i] = 0;
        if (d->l[i] > -INFINITY) d->id[n++] = i;
    }
    defined_sort(d, n, d->l);
    if (q->top_n_sigma > 0) n = defined_sigma(d, n, q->top_n_sigma);
    if (q->top_k > 0 && q->top_k < n) n = q->top_k;
    for (int i = 0; i < n; i++) {
        const double w = exp((d->l[d->id[i]] - d->l[d->id[0]]) / q->temperature);
        d->w[d->id[i]] = w < 1e-37 ? 0 : w; /* as in float32 */
        kept += w >= 1e-37;
    }
    n = kept; /* sorted */
    if (q->typical_p > 0 && q->typical_p < 1) n = defined_typical(d, n, q->typical_p);
    memcpy(d->key, d->w, (size_t)d->vocab * sizeof *d->key);
    if (q->top_p < 1) n = defined_run(d, n, q->top_p, 0);
    const double least = q->min_p * d->w[d->id[0]];
    for (int i = 0; i < n; i++) defined_close(d, d->w[d->id[i]], least, 0);
    while (d->w[d->id[n - 1]] < least) n--;
    if (xtc) n = defined_xtc(d, n, q->xtc_threshold);
    const double sum = defined_sum(d, n);
    for (int i = 0; i < n; i++) d->p[d->id[i]] = d->w[d->id[i]] / sum;
}

/* All steps: text[n] is prompt, answer and path. */
static inline void defined_by(defined_dist *d, const float *logits, const hunch_sampling *q, const int32_t *text, int n,
                              int n_prompt, const uint8_t *breakers, bool xtc) {
    defined_logits(d, logits, q, text, n, n_prompt, breakers);
    defined_cuts(d, q, xtc);
}
#endif
