/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stats.h - medians, quantiles, paired bootstrap, and traces of generation time. */
#ifndef HN_TOOL_STATS_H
#define HN_TOOL_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Linear between order statistics; q in 0..1. Does not change values. NAN for n = 0. */
double tool_quantile(const double *values, size_t n, double q);
double tool_median(const double *values, size_t n);

/* mad: the median of distances from the median. */
typedef struct tool_spread {
    double median, low, high, mad;
} tool_spread;
tool_spread tool_spread_of(const double *values, size_t n);

/* Pairs of times for the same work. */
typedef struct tool_pairs {
    double *plain, *drafted;
    size_t n, cap_plain, cap_drafted;
} tool_pairs;
void tool_pairs_add(tool_pairs *p, double plain, double drafted);
void tool_pairs_fini(tool_pairs *p);
/* 90 % interval of sum(plain)/sum(drafted): pairs are drawn with replacement, 2,000 times, by a fixed stream. Both are
 * NAN below five pairs, too few to estimate a spread. */
void tool_pairs_interval(const tool_pairs *p, double *low, double *high);

/* Number of tokens of a session over time: points (tokens, seconds), both ascending; only differences of seconds
 * matter. */
typedef struct tool_trace {
    double *tokens, *seconds;
    size_t n, cap_tokens, cap_seconds;
} tool_trace;
void tool_trace_add(tool_trace *t, double tokens, double seconds);
void tool_trace_fini(tool_trace *t);
/* Seconds at which it had `tokens`, linear inside a round of several tokens; `tokens` must be within the trace. */
double tool_trace_at(const tool_trace *t, double tokens);

/* Pairs the times of two traces over the tokens that both decoded, cut at every multiple of `step` tokens. Returns the
 * common tokens (0: none) and both sums. */
double tool_traces_pair(const tool_trace *plain, const tool_trace *drafted, double step, tool_pairs *pairs,
                        double *plain_s, double *drafted_s);

#endif
