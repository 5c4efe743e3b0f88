/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_curve.c - seconds of a pass by its rows: the shape from passes that are timed in turns between the requests, the speed from
 * those of the rounds. */
#include <math.h>
#include <stdlib.h>

#include "engine/pass_costs.h"
#include "forecast/forecast.h"
#include "model/split.h"

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Several passes of a short one, the first of which is cold. */
static hunch_status time_width(hunch_engine *e, int rows, int context, double *out, hunch_error *err) {
    enum { MOST = 8 };
    const double enough = 0.02;
    double s[MOST], sum = 0;
    int n = 0;
    hunch_status st = hunch_measure_pass(e, rows, context, 1, s, err);
    while (!st && n < MOST && (n == 0 || sum < enough)) {
        st = hunch_measure_pass(e, rows, context, 1, &s[n], err);
        if (!st) sum += s[n++];
    }
    qsort(s, (size_t)n, sizeof *s, by_value);
    *out = n > 0 ? s[n / 2] : 0;
    return st;
}

hunch_status hn_forecast_turn(hn_forecast *f, hunch_engine *plain, hunch_error *err) {
    hn_forecast_curve *c = &f->curve;
    hunch_status st = HUNCH_OK;
    if (c->turns == HN_FORECAST_TURNS) return HUNCH_OK;
    c->n = 0;
    for (int i = 0; !st && i < HN_FORECAST_WIDTHS && c->context + HN_FORECAST_WIDTH[i] <= plain->context; i++) {
        st = time_width(plain, HN_FORECAST_WIDTH[i], c->context, &c->turn[i][c->turns], err);
        c->rows[c->n++] = HN_FORECAST_WIDTH[i];
    }
    c->turns++;
    hn_internal_end(plain);
    return st;
}

/* How many times the timed passes those of the methods' rounds took, all together: a run has slow passes too, which medians leave out. */
static double of_rounds(const hn_forecast *f) {
    double ran = 0, timed = 0;
    for (int i = 0; i < f->n; i++) {
        const hn_forecast_method *m = &f->method[i];
        if (!m->measured) continue;
        ran += m->sums.pass_s;
        for (int n = 1; n <= HN_TREE_ROWS; n++) timed += m->rounds * m->rows[HN_FORECAST_UNCUT][n] * hn_forecast_pass(f, n, 1);
    }
    return ran > 0 && timed > 0 ? ran / timed : 1;
}

void hn_forecast_settle(hn_forecast *f, const hunch_engine *plain) {
    hn_forecast_curve *c = &f->curve;
    hunch_work w;
    for (int i = 0; i < c->n; i++) {
        qsort(c->turn[i], (size_t)c->turns, sizeof(double), by_value);
        c->seconds[i] = c->turn[i][c->turns / 2];
        hunch_engine_work(plain, c->rows[i], c->rows[i], c->context, &w);
        const double computes = 1e-9 * (w.macs_int8 / f->here.int8_gmac_s + w.macs_bf16 / f->here.bf16_gmac_s +
                                        w.macs_f32 / f->here.f32_gmac_s);
        c->limit[i] = fmax((w.weight_bytes + w.kv_bytes) / f->machine.bandwidth, computes);
        if (i == 0) c->text_s = w.kv_bytes / f->machine.bandwidth;
        if (i > 0) c->seconds[i] = fmax(c->seconds[i], c->seconds[i - 1]); /* more rows never take less */
    }
    const double factor = of_rounds(f);
    for (int i = 0; i < c->n; i++) c->seconds[i] *= factor;
}

void hn_forecast_exchanges(hn_forecast *f, const hn_arch *a, double number) {
    f->exchange.row_bytes = hn_split_exchanged(a, number, &f->exchange.n);
    f->operations_s = HN_FIGURES_OPERATION * HN_FORECAST_OPERATIONS * a->layers;
}

double hn_forecast_pass(const hn_forecast *f, double rows, int texts) {
    const hn_figures_links links = {f->o->link_latency, f->o->link_bytes_s};
    const double alone = hn_forecast_pass_alone(f, rows, texts), whole = fmin(f->operations_s, alone);
    if (f->machines < 2) return alone;
    return whole + (alone - whole) / f->machines + hn_figures_links_seconds(&links, &f->exchange, f->machines, rows);
}

double hn_forecast_pass_alone(const hn_forecast *f, double rows, int texts) {
    const hn_forecast_curve *c = &f->curve;
    int i = 0;
    while (i + 2 < c->n && c->rows[i + 1] < rows) i++;
    double s = c->seconds[0];
    if (c->n > 1) {
        const double slope = (c->seconds[i + 1] - c->seconds[i]) / (c->rows[i + 1] - c->rows[i]);
        s = c->seconds[i] + fmax(rows - c->rows[i], 0) * slope;
    }
    return s + (texts - 1) * c->text_s;
}
