/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_speed.c - tokens a second of a method: tokens of a round over its seconds. With one text a round's time is the mean over the
 * rows that rounds had, since a pass of nine rows takes more than nine passes of one and one of nine do on average; with several texts a
 * pass has the mean rows of each. */
#include <math.h>

#include "forecast/forecast.h"
#include "plan/speedup.h"

static double tokens_of(const hn_forecast_method *m, int depth) {
    double sum = 1;
    for (int i = 0; i < depth; i++) sum += m->accepted[i];
    return sum;
}

static double mean_rows(const hn_forecast_method *m, int cut) {
    double sum = 0;
    for (int n = 1; n <= HN_TREE_ROWS; n++) sum += n * m->rows[cut][n];
    return sum;
}

/* Mean over rounds of the deepest level that is drafted. */
static double mean_levels(const hn_forecast_method *m, int cut) {
    double sum = 0;
    for (int i = 0; i < hn_forecast_depth(m, cut); i++) sum += fmin(m->drafted[i], 1);
    return sum;
}

int hn_forecast_depth(const hn_forecast_method *m, int cut) {
    return HN_FORECAST_DEPTH[cut] < m->deepest ? HN_FORECAST_DEPTH[cut] : m->deepest;
}

static double pass_of(const hn_forecast *f, const hn_forecast_method *m, int cut, int texts) {
    double sum = 0;
    if (texts > 1) return hn_forecast_pass(f, texts * mean_rows(m, cut), texts);
    for (int n = 1; n <= HN_TREE_ROWS; n++)
        if (m->rows[cut][n] > 0) sum += m->rows[cut][n] * hn_forecast_pass(f, n, 1);
    return sum;
}

/* A drafter's pass grows with texts as the target's does. */
static double drafting_of(const hn_forecast *f, const hn_forecast_method *m, int cut, int texts) {
    const double grows = hn_forecast_pass_alone(f, texts, texts) / hn_forecast_pass_alone(f, 1, 1);
    return mean_levels(m, cut) * m->level_s * grows + m->round_s * texts;
}

double hn_forecast_speed(const hn_forecast *f, const hn_forecast_method *m, int cut, int texts) {
    const double seconds = pass_of(f, m, cut, texts) + drafting_of(f, m, cut, texts) + m->other_s * texts;
    return texts * tokens_of(m, hn_forecast_depth(m, cut)) / seconds;
}

double hn_forecast_plain(const hn_forecast *f, int texts) {
    return hn_forecast_speed(f, &f->method[0], HN_FORECAST_UNCUT, texts);
}

double hn_forecast_best(const hn_forecast *f, const hn_forecast_method *m, int texts, int *cut) {
    int best = HN_FORECAST_UNCUT;
    double speed = hn_forecast_speed(f, m, best, texts);
    for (int k = 0; k < HN_FORECAST_UNCUT && (!m->measured || (m->controlled && texts > 1)); k++) {
        const double s = hn_forecast_speed(f, m, k, texts);
        if (s > speed) best = k, speed = s;
    }
    if (cut) *cut = best;
    return m->controlled ? fmax(speed, hn_forecast_plain(f, texts)) : speed;
}

double hn_forecast_cost(const hn_forecast *f, const hn_forecast_method *m, int cut) {
    const double levels = mean_levels(m, cut);
    return levels > 0 ? drafting_of(f, m, cut, 1) / levels / hn_forecast_pass(f, 1, 1) : 0;
}

double hn_forecast_rate(const hn_forecast_method *m, int cut) {
    double tried = 0, right = 0;
    for (int i = 0; i < hn_forecast_depth(m, cut); i++) {
        tried += i > 0 ? fmin(m->drafted[i], m->accepted[i - 1]) : m->drafted[i];
        right += m->accepted[i];
    }
    return tried > 0 ? fmin(right / tried, 1) : 0;
}

double hn_forecast_accepted(const hn_forecast_method *m, int cut) {
    const double levels = mean_levels(m, cut);
    return levels > 0 ? (tokens_of(m, hn_forecast_depth(m, cut)) - 1) / levels : 0;
}

double hn_forecast_whole_cost(const hn_forecast *f, const hn_forecast_method *m, int cut) {
    const double gain = hn_forecast_speed(f, m, cut, 1) / hn_forecast_plain(f, 1);
    return hn_speedup_cost(gain, hn_forecast_accepted(m, cut), mean_levels(m, cut));
}

double hn_forecast_levels(const hn_forecast_method *m, int cut) {
    return m->drafted[0] > 0 ? mean_levels(m, cut) / fmin(m->drafted[0], 1) : 0;
}

double hn_forecast_verify(const hn_forecast *f, const hn_forecast_method *m, int cut) {
    return pass_of(f, m, cut, 1) / hn_forecast_pass(f, 1, 1);
}
