/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stats.c - see tool_stats.h. */
#include "cli/show/tool_stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/tool_output.h"

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tool_quantile(const double *values, size_t n, double q) {
    if (n == 0)
        return NAN;
    double *sorted = tool_alloc(n, sizeof *sorted);
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    double x = i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
    hn_free(sorted);
    return x;
}

double tool_median(const double *values, size_t n) {
    return tool_quantile(values, n, 0.5);
}

tool_spread tool_spread_of(const double *values, size_t n) {
    tool_spread s = {tool_median(values, n), tool_quantile(values, n, 0), tool_quantile(values, n, 1), 0};
    double *away = tool_alloc(n, sizeof *away);
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(values[i] - s.median);
    s.mad = tool_median(away, n);
    hn_free(away);
    return s;
}

/* ---- pairs --------------------------------------------------------------------------------------------------- */

void tool_pairs_add(tool_pairs *p, double plain, double drafted) {
    p->plain = tool_grow(p->plain, &p->cap_plain, p->n + 1, sizeof *p->plain);
    p->drafted = tool_grow(p->drafted, &p->cap_drafted, p->n + 1, sizeof *p->drafted);
    p->plain[p->n] = plain;
    p->drafted[p->n++] = drafted;
}

void tool_pairs_fini(tool_pairs *p) {
    hn_free(p->plain);
    hn_free(p->drafted);
    *p = (tool_pairs){0};
}

static uint64_t next_random(uint64_t *s) { /* xorshift64* */
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 2685821657736338717u;
}

void tool_pairs_interval(const tool_pairs *p, double *low, double *high) {
    enum { DRAWS = 2000, FEWEST = 5 };
    *low = *high = NAN;
    if (p->n < FEWEST)
        return;
    double *ratio = tool_alloc(DRAWS, sizeof *ratio);
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (int d = 0; d < DRAWS; d++) {
        double plain = 0, drafted = 0;
        for (size_t i = 0; i < p->n; i++) {
            size_t k = (size_t)((next_random(&state) >> 32) * p->n >> 32);
            plain += p->plain[k];
            drafted += p->drafted[k];
        }
        ratio[d] = drafted > 0 ? plain / drafted : NAN;
    }
    *low = tool_quantile(ratio, DRAWS, 0.05);
    *high = tool_quantile(ratio, DRAWS, 0.95);
    hn_free(ratio);
}

/* ---- traces -------------------------------------------------------------------------------------------------- */

void tool_trace_add(tool_trace *t, double tokens, double seconds) {
    t->tokens = tool_grow(t->tokens, &t->cap_tokens, t->n + 1, sizeof *t->tokens);
    t->seconds = tool_grow(t->seconds, &t->cap_seconds, t->n + 1, sizeof *t->seconds);
    t->tokens[t->n] = tokens;
    t->seconds[t->n++] = seconds;
}

void tool_trace_fini(tool_trace *t) {
    hn_free(t->tokens);
    hn_free(t->seconds);
    *t = (tool_trace){0};
}

double tool_trace_at(const tool_trace *t, double tokens) {
    size_t low = 0, high = t->n - 1;
    while (low + 1 < high) {
        size_t mid = (low + high) / 2;
        if (t->tokens[mid] <= tokens)
            low = mid;
        else
            high = mid;
    }
    double span = t->tokens[high] - t->tokens[low];
    if (span <= 0)
        return t->seconds[high];
    return t->seconds[low] + (t->seconds[high] - t->seconds[low]) * (tokens - t->tokens[low]) / span;
}

double tool_traces_pair(const tool_trace *plain, const tool_trace *drafted, double step, tool_pairs *pairs,
                        double *plain_s, double *drafted_s) {
    *plain_s = *drafted_s = 0;
    if (plain->n < 2 || drafted->n < 2)
        return 0;
    double from = fmax(plain->tokens[0], drafted->tokens[0]);
    double to = fmin(plain->tokens[plain->n - 1], drafted->tokens[drafted->n - 1]);
    for (double at = from; at < to;) {
        double end = fmin(to, step * (floor(at / step) + 1));
        double p = tool_trace_at(plain, end) - tool_trace_at(plain, at);
        double d = tool_trace_at(drafted, end) - tool_trace_at(drafted, at);
        tool_pairs_add(pairs, p, d);
        *plain_s += p;
        *drafted_s += d;
        at = end;
    }
    return to > from ? to - from : 0;
}
