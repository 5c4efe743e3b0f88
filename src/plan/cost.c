/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - the filter behind cost.h; its file is cost_file.c.
 *
 * The model of a pass: log(seconds) = log(speed) + log(shape + parts) + noise. All have a variance, each shape has a covariance with the
 * speed, and a Kalman filter distributes the difference between a pass and its expectation (other covariances are left out). Speed
 * gains variance with every pass, because it drifts, so it takes most of the difference; a shape that was never seen
 * takes most of its first pass and later little; and if the next passes of another width show that it was not the speed, the
 * covariance returns it to the shape. In the long run only comparisons of widths move a shape. The price of a part is one more such
 * number, as far as it is part of the pass: passes of one width that read more than others, or use more experts, separate it from the
 * shape.
 * Where widths contradict each other (more rows that take less time) the curve has their mean, and a pass moves that: if it moved its
 * width's own last value, what the mean takes away would be added again in every pass, without an end.
 */
#include "plan/cost.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/least.h"

/* Of logarithms. */
static const double LEAST_NOISE = 0.0025, MOST_NOISE = 0.02; /* variance of a pass, as it turns out: 5 to 14 % */
static const double NOISE_PASSES = 64, OF_SPREAD = 1.5708; /* of its mean; variance to the squared mean of absolute values */
static const double DRIFT = 4e-4;        /* variance of the speed that a pass adds: 2 % */
static const double FIRST_VARIANCE = 0.01;  /* of the speed after the first pass */
static const double MOST_VARIANCE = 0.25;   /* of the speed */
static const double SHAPE_DRIFT = 1e-6;  /* variance that a pass adds to every shape */
static const double GUESSED = 0.01;      /* variance of an interpolation between neighbours on both sides: 10 % */
static const double CLOSE = 1.25;        /* neighbours whose rows differ by less: less, by the logarithm */
static const double BEYOND = 0.25;       /* variance of an extrapolation, by the square of the distance */
static const double LEAST_VARIANCE = 1e-6;
static const double MOST_SHAPE_VARIANCE = 1;
static const double LEAST_SECONDS = 1e-9; /* of a pass */
/* Of a drafter's calls. One counts for at most SLOW times the mean and SLOW_PASS of a pass; each that takes longer lets the
 * next count for MORE_SLOW times as much, each that does not for LESS_SLOW: one among a dozen soon has its full weight. */
static const double CALLS = 16, READ_PART = 1.0 / 4; /* how many make the mean */
static const double SLOW = 4, SLOW_PASS = 0.02, MORE_SLOW = 4, LESS_SLOW = 0.95;
static const double UNSEEN_SLOPE = 0.05; /* a row, as long as only passes of one row were seen: low, so that more are tried */
/* What parts cost before passes have shown it. A text's first row reads its keys and values from memory, as it reads the weights; further
 * rows find them in the caches. Variances of the logarithms: of that, and what a pass adds. */
static const double FIRST_EACH[HN_COST_KINDS] = {1, 0.2, 1}, FIRST_PART[HN_COST_KINDS] = {0.25, 1, 0.25}, PART_DRIFT = 1e-6;
static const double LEAST_EACH[HN_COST_KINDS] = {0.25, 1e-6, 0.25}, MOST_EACH[HN_COST_KINDS] = {4, 2, 4}; /* properties of kernels */
static const double LEAST_EXPERT = 1e-6, MOST_EXPERT = 1000, MOST_READS = 1e6; /* limits, against clocks that jump */
/* Of experts: variance between their share of the time and their share of the bytes (50 %), what a pass adds to that variance, the least
 * remainder of a shape, number of passes in the mean of distinct experts; above this part of all experts a pass does not count in it. */
static const double EACH_VARIANCE = 0.25, EACH_DRIFT = 1e-5, LEAST_REST = 0.05, DISTINCT_PASSES = 16, NEARLY_ALL = 0.97;
/* Of how alike rows choose: what is assumed before the first pass, its weight (in the unit of spread_rows), what a pass leaves of the
 * earlier ones. */
static const double FIRST_ALIKE = 0.2, FIRST_WEIGHT = 1, KEPT = 1 - 1.0 / 300;

void hn_cost_init(hn_cost *c) {
    memset(c, 0, sizeof *c);
    for (int k = 0; k < HN_COST_KINDS; k++) c->part[k] = (hn_cost_part){FIRST_EACH[k], FIRST_PART[k]};
}

void hn_cost_set_output(hn_cost *c, double part) {
    assert(part >= 0 && part <= 1);
    c->output = part;
}

/* A time below a nanosecond or above HN_COST_MOST_SECONDS is an error of the clock. */
static bool can_be(double seconds) {
    return seconds >= LEAST_SECONDS && seconds <= HN_COST_MOST_SECONDS;
}

/* ---- experts ---- */

void hn_cost_set_experts(hn_cost *c, int count, int used, double part) {
    assert(used >= 1 && used <= count && part >= 0 && part <= 1);
    if (count == used) return; /* one row uses them all */
    c->experts = (hn_cost_experts){.count = count, .used = used, .each = part / used, .variance = EACH_VARIANCE, .fresh = 1};
    hn_cost_set_alike(&c->experts, FIRST_ALIKE, 0);
}

void hn_cost_set_alike(hn_cost_experts *x, double alike, double passes) {
    x->alike = alike;
    x->seen = passes;
    x->spread_rows = FIRST_WEIGHT;
    x->spread_both = -FIRST_WEIGHT * alike;
}

static double log_of_rows(double rows) {
    return rows > 2 ? log(rows / 2) : 0;
}

double hn_cost_fresh(const hn_cost_experts *x, double rows) {
    return hn_least_double(x->fresh * exp(x->alike * (x->at - log_of_rows(rows))), HN_COST_FRESH);
}

double hn_cost_distinct_experts(const hn_cost *c, double rows) {
    const hn_cost_experts *x = &c->experts;
    if (x->count == 0) return 0;
    return x->count * (1 - pow(1 - (double)x->used / x->count, 1 + hn_cost_fresh(x, rows) * (rows - 1)));
}

/* Time of the experts that rows after the first are expected to add, in passes of one row. */
static double of_distinct(const hn_cost *c, double rows) {
    return c->experts.count == 0 ? 0 : c->experts.each * (hn_cost_distinct_experts(c, rows) - c->experts.used);
}

/* fresh and `at` are means over the last passes. alike is a least-squares slope of differences between passes and those before them: a
 * text that is different in general changes one difference, and passes of equal width none. */
static void distinct_learn(hn_cost_experts *x, int rows, double distinct) {
    if (rows < 2 || distinct > NEARLY_ALL * x->count) return;
    const double rest = log(1 - distinct / x->count) / log(1 - (double)x->used / x->count);
    const double now = hn_least_double(hn_most_double((rest - 1) / (rows - 1), 0), HN_COST_FRESH);
    x->seen = hn_least_double(x->seen + 1, DISTINCT_PASSES);
    x->fresh += (now - x->fresh) / x->seen;
    x->at += (log_of_rows(rows) - x->at) / x->seen;
    if (x->last_rows > 0) {
        const double wider = x->fresh * (log_of_rows(rows) - log_of_rows(x->last_rows));
        const double weight = 1 / (1.0 / (rows - 1) + 1.0 / (x->last_rows - 1));
        x->spread_rows = KEPT * x->spread_rows + weight * wider * wider;
        x->spread_both = KEPT * x->spread_both + weight * wider * (now - x->last);
        x->alike = hn_least_double(hn_most_double(-x->spread_both / x->spread_rows, 0), HN_COST_ALIKE);
    }
    x->last_rows = rows;
    x->last = now;
}

/* ---- shapes ---- */

/* Row counts that were seen, rising; the first is 1. */
typedef struct points {
    const hn_cost *of;
    int n, rows[HN_COST_ROWS];
    double ratio[HN_COST_ROWS], variance[HN_COST_ROWS];
    double rest[HN_COST_ROWS + 1], unsure[HN_COST_ROWS + 1]; /* by rows: without experts; variance of the logarithm */
    double risen[HN_COST_ROWS + 1]; /* by rows, without experts: before neighbours are asked; 0: not seen */
} points;

/* A point without the experts that it is expected to use: these values lie on a line. */
static double rest_of(const points *p, int i) {
    return p->ratio[i] - of_distinct(p->of, p->rows[i]);
}

/* Extrapolates the first n points with the slope of the wider half (that of adjacent points would be noise). */
static double beyond(const points *p, int n, int rows) {
    const int last = n - 1;
    int from = last - 1;
    const double distinct = of_distinct(p->of, rows);
    if (last == 0) return 1 + distinct + UNSEEN_SLOPE * (rows - 1);
    while (from > 0 && p->rows[from] * 2 > p->rows[last]) from--;
    const double slope = (rest_of(p, last) - rest_of(p, from)) / (p->rows[last] - p->rows[from]);
    return hn_most_double(p->ratio[last], rest_of(p, last) + hn_most_double(slope, 0) * (rows - p->rows[last]) + distinct);
}

static double beyond_variance(const points *p, int n, int rows) {
    const int last = p->rows[n - 1];
    const double far = 2.0 * (rows - last) / (rows + last); /* about the logarithm, of small ratios */
    return GUESSED + BEYOND * far * far;
}

/* Between neighbours that are close to each other there is less to guess. */
static double between_variance(const points *p, int a, int b) {
    return GUESSED * hn_least_double(log((double)p->rows[b] / p->rows[a]) / log(CLOSE), 1);
}

static double between(const points *p, int a, int b, int rows) {
    const double part = (double)(rows - p->rows[a]) / (p->rows[b] - p->rows[a]);
    return hn_most_double(p->ratio[a], rest_of(p, a) + part * (rest_of(p, b) - rest_of(p, a)) + of_distinct(p->of, rows));
}

/* More rows cost no less: where measurements contradict this they are averaged by their weights. A change of speed that was
 * attributed to the shape is corrected so: a width cannot be cheaper than fewer rows whose time is well known. */
static void points_rise(points *p) {
    double weight[HN_COST_ROWS];
    int first[HN_COST_ROWS], n = 0; /* of a block of equal values */
    for (int i = 0; i < p->n; i++) {
        double sum = p->ratio[i], w = i == 0 ? 1e9 : 1 / p->variance[i];
        int from = i;
        for (; n > 0 && p->ratio[first[n - 1]] > sum; n--) {
            from = first[n - 1];
            sum = (sum * w + p->ratio[from] * weight[n - 1]) / (w + weight[n - 1]);
            w += weight[n - 1];
        }
        for (int j = from; j <= i; j++) p->ratio[j] = sum;
        first[n] = from;
        weight[n++] = w;
    }
}

/* Between the points, and beyond them. */
static void curve_read(points *p) {
    for (int r = 1, i = 0; r <= HN_COST_ROWS; r++) {
        while (i + 1 < p->n && p->rows[i + 1] <= r) i++;
        double ratio = p->ratio[i], variance = p->variance[i];
        if (p->rows[i] != r) {
            const bool inner = i + 1 < p->n;
            ratio = inner ? between(p, i, i + 1, r) : beyond(p, p->n, r);
            variance = inner ? between_variance(p, i, i + 1) : beyond_variance(p, p->n, r);
        }
        p->rest[r] = ratio - of_distinct(p->of, r);
        p->unsure[r] = variance;
    }
}

static void points_read(const hn_cost *c, points *p) {
    p->of = c;
    p->n = 1;
    p->rows[0] = 1;
    p->ratio[0] = 1;
    p->variance[0] = 0;
    for (int r = 2; r <= HN_COST_ROWS; r++) {
        if (c->shape[r].variance <= 0) continue;
        p->variance[p->n] = c->shape[r].variance;
        p->rows[p->n] = r;
        p->ratio[p->n++] = c->shape[r].ratio + of_distinct(c, r);
    }
    points_rise(p);
    memset(p->risen, 0, sizeof p->risen);
    for (int i = 1; i < p->n; i++) p->risen[p->rows[i]] = hn_most_double(rest_of(p, i), LEAST_REST);
    for (int i = 1; i < p->n; i++) { /* in place: neighbours to the left have been compared with theirs already */
        const bool inner = i + 1 < p->n;
        const double guess = inner ? between(p, i - 1, i + 1, p->rows[i]) : beyond(p, i, p->rows[i]);
        const double weak = inner ? between_variance(p, i - 1, i + 1) : beyond_variance(p, i, p->rows[i]);
        const double own = p->variance[i];
        p->ratio[i] = (weak * p->ratio[i] + own * guess) / (weak + own);
        p->variance[i] = weak * own / (weak + own);
    }
    curve_read(p);
}

/* The approximations must not make variances negative, nor a correlation 1. */
static void filter_check(hn_cost *c) {
    c->variance = hn_most_double(c->variance, LEAST_VARIANCE);
    for (int r = 2; r <= HN_COST_ROWS; r++) {
        if (c->shape[r].variance <= 0) continue;
        c->shape[r].variance = hn_most_double(c->shape[r].variance, LEAST_VARIANCE);
        const double most = 0.9 * sqrt(c->variance * c->shape[r].variance);
        c->shape[r].covariance = hn_least_double(hn_most_double(c->shape[r].covariance, -most), most);
    }
}

/* ---- a pass ---- */

/* What a pass is expected to take, in passes of one row, and whose it is. */
typedef struct expectation {
    int width;    /* whose shape it has */
    double shape; /* of this width; 0: not seen yet */
    double rest, part[HN_COST_KINDS], experts, all;
} expectation;

/* The shape at a number of rows that need not be an integer, without experts. */
static double rest_at(const points *p, double rows) {
    const int whole = (int)rows;
    return rows > whole ? p->rest[whole] + (rows - whole) * (p->rest[whole + 1] - p->rest[whole]) : p->rest[whole];
}

static bool distinct_known(const hn_cost *c, const hn_cost_work *w) {
    return c->experts.count > 0 && w->distinct >= c->experts.used && w->distinct <= c->experts.count;
}

/* Rows without logits count for less. */
static expectation expect(const points *p, const hn_cost_work *w) {
    const hn_cost *c = p->of;
    const double rows = hn_most_double(w->rows + (1 - c->output) * w->prompt, 1), inside = hn_least_double(rows, HN_COST_ROWS);
    double amount[HN_COST_KINDS] = {w->reads, w->again, 0};
    expectation e = {.width = (int)(inside + 0.5)};
    if (rows > inside)
        amount[HN_COST_WIDE] = (rows - inside) * hn_most_double(p->rest[HN_COST_ROWS] - p->rest[HN_COST_ROWS / 2], 0) * 2 / HN_COST_ROWS;
    e.rest = hn_most_double(rest_at(p, inside), LEAST_REST);
    e.shape = p->risen[e.width];
    e.experts = distinct_known(c, w) ? c->experts.each * (w->distinct - c->experts.used) : of_distinct(c, w->rows + w->prompt);
    e.all = e.rest + e.experts;
    for (int k = 0; k < HN_COST_KINDS; k++) e.all += e.part[k] = c->part[k].each * amount[k];
    return e;
}

/* Moves the price of a part by its share of the pass; all: variance of the innovation. */
static void part_learn(double *each, double *variance, double share, double clipped, double all, double drift, double most) {
    const double of_each = share * *variance;
    *each *= exp(clipped * of_each / all);
    *variance = hn_least_double(*variance - of_each * of_each / all + drift, most);
}

static double within(double x, double least, double most) {
    return hn_least_double(hn_most_double(x, least), most);
}

bool hn_cost_price_can_be(hn_cost_kind kind, double each) {
    return each >= LEAST_EACH[kind] && each <= MOST_EACH[kind];
}

static double noise_of(const hn_cost *c) {
    return within(OF_SPREAD * c->spread * c->spread, LEAST_NOISE, MOST_NOISE);
}

/* Kalman update: the speed, the shape of this width, the shapes with a covariance to the speed, and the prices of the parts divide the
 * innovation `more`: x += P h e / S, P -= P h h' / S with h = 1 for speed, and their shares of the pass for the others. */
static void filter(hn_cost *c, const expectation *e, double more) {
    hn_cost_experts *x = &c->experts;
    const int rows = e->width;
    const double of_rest = e->rest / e->all, of_experts = e->experts / e->all;
    const double variance = rows > 1 ? c->shape[rows].variance : 0, covariance = rows > 1 ? c->shape[rows].covariance : 0;
    const double of_speed = c->variance + of_rest * covariance, of_shape = of_rest * variance + covariance;
    double all = of_speed + of_rest * of_shape + of_experts * of_experts * x->variance + noise_of(c);
    for (int k = 0; k < HN_COST_KINDS; k++) all += e->part[k] / e->all * (e->part[k] / e->all) * c->part[k].variance;
    const double most = 3 * sqrt(all), clipped = fabs(more) > most ? copysign(most, more) : more;
    const double before = c->variance;
    c->spread += (fabs(clipped) - c->spread) / NOISE_PASSES;
    c->speed *= exp(clipped * of_speed / all);
    c->variance -= of_speed * of_speed / all;
    for (int r = 2; r <= HN_COST_ROWS; r++) {
        if (c->shape[r].variance <= 0) continue;
        const double part = r == rows ? of_shape : c->shape[r].covariance;
        if (r == rows && e->shape > 0) c->shape[r].ratio = e->shape;
        c->shape[r].ratio *= exp(clipped * part / all);
        c->shape[r].variance = hn_least_double(c->shape[r].variance - part * part / all + SHAPE_DRIFT, MOST_SHAPE_VARIANCE);
        c->shape[r].covariance -= of_speed * part / all;
    }
    part_learn(&x->each, &x->variance, of_experts, clipped, all, EACH_DRIFT, EACH_VARIANCE);
    x->each = within(x->each, LEAST_EXPERT, MOST_EXPERT);
    for (int k = 0; k < HN_COST_KINDS; k++) {
        part_learn(&c->part[k].each, &c->part[k].variance, e->part[k] / e->all, clipped, all, PART_DRIFT, FIRST_PART[k]);
        c->part[k].each = within(c->part[k].each, LEAST_EACH[k], MOST_EACH[k]);
    }
    if (clipped != more)
        c->variance = hn_least_double(2 * before, MOST_VARIANCE); /* a spike, or a new speed: adapt faster to the next one */
    filter_check(c);
}

/* A width that was not seen begins with the estimate from its neighbours. */
static void width_enter(hn_cost *c, const points *p, const expectation *e) {
    const int rows = e->width;
    if (rows == 1 || c->shape[rows].variance > 0) return;
    c->shape[rows].ratio = e->rest;
    c->shape[rows].variance = rows < p->rows[p->n - 1] ? GUESSED : beyond_variance(p, p->n, rows);
    c->shape[rows].covariance = 0;
}

void hn_cost_pass(hn_cost *c, const hn_cost_work *w, double seconds) {
    points p;
    if (w->rows < 0 || w->prompt < 0 || w->rows + w->prompt < 1 || !can_be(seconds)) return;
    if (!(w->reads >= 0 && w->reads <= MOST_READS && w->again >= 0 && w->again <= MOST_READS)) return;
    if (distinct_known(c, w) && w->prompt == 0) distinct_learn(&c->experts, w->rows, w->distinct);
    points_read(c, &p);
    const expectation e = expect(&p, w);
    if (c->speed <= 0) { /* the very first pass */
        c->speed = seconds / e.all;
        c->variance = FIRST_VARIANCE + (e.width > 1 ? beyond_variance(&p, p.n, e.width) : 0);
        return;
    }
    width_enter(c, &p, &e);
    c->variance += DRIFT;
    filter(c, &e, log(seconds / (c->speed * e.all)));
}

/* ---- drafters ---- */

static int width_of(int seqs) {
    int w = 0;
    while (w < HN_COST_WIDTHS - 1 && 1 << w < seqs) w++;
    return w;
}

static void call_learn(hn_cost_call *call, double now) {
    double *ratio = &call->ratio, *count = &call->count, *most = &call->most;
    if (*count < HN_COST_FIRST) {
        *ratio = *count > 0 ? hn_least_double(*ratio, now) : now;
    } else {
        *ratio += (hn_least_double(now, *most) - *ratio) / hn_least_double(*count + 1, CALLS);
        *most *= now > *most ? MORE_SLOW : LESS_SLOW;
    }
    *most = hn_most_double(*most, SLOW * *ratio + SLOW_PASS);
    *count += 1;
}

void hn_cost_draft(hn_cost *c, int drafter, int seqs, int behind, double seconds) {
    assert(drafter >= 0 && drafter < HN_COST_DRAFTERS && seqs >= 1 && behind >= 0);
    if (c->speed <= 0 || !(seconds >= 0 && seconds <= HN_COST_MOST_SECONDS)) return;
    hn_cost_drafter *d = &c->drafter[drafter];
    if (behind == 0) {
        call_learn(&d->call[width_of(seqs)], seconds / c->speed);
        return;
    }
    const double call = hn_cost_of_draft(c, drafter, seqs), now = hn_most_double(seconds - (isnan(call) ? 0 : call), 0);
    const double row = now / c->speed / behind;
    d->row += d->row > 0 ? (row - d->row) * READ_PART : row;
}

void hn_cost_draft_level(hn_cost *c, int drafter, int seqs, double seconds) {
    assert(drafter >= 0 && drafter < HN_COST_DRAFTERS && seqs >= 1);
    if (c->speed <= 0 || !(seconds >= 0 && seconds <= HN_COST_MOST_SECONDS)) return;
    call_learn(&c->drafter[drafter].further[width_of(seqs)], seconds / c->speed);
}

/* Time of a call in passes of one row; NAN: none was timed. */
static double of_call(const hn_cost_call *call, int seqs) {
    const int width = width_of(seqs);
    for (int away = 0; away < HN_COST_WIDTHS; away++) {
        const int less = width - away, more = width + away;
        if (less >= 0 && call[less].count > 0) return call[less].ratio;
        if (more < HN_COST_WIDTHS && call[more].count > 0) return call[more].ratio / (1 << away);
    }
    return NAN;
}

double hn_cost_of_draft(const hn_cost *c, int drafter, int seqs) {
    assert(drafter >= 0 && drafter < HN_COST_DRAFTERS && seqs >= 1);
    return c->speed * of_call(c->drafter[drafter].call, seqs);
}

double hn_cost_of_draft_level(const hn_cost *c, int drafter, int seqs) {
    assert(drafter >= 0 && drafter < HN_COST_DRAFTERS && seqs >= 1);
    const double further = of_call(c->drafter[drafter].further, seqs);
    return isnan(further) ? hn_cost_of_draft(c, drafter, seqs) : c->speed * further;
}

bool hn_cost_knows_level(const hn_cost *c, int drafter, int seqs) {
    assert(drafter >= 0 && drafter < HN_COST_DRAFTERS && seqs >= 1);
    return !isnan(of_call(c->drafter[drafter].further, seqs));
}

int hn_cost_draft_calls(const hn_cost *c, int drafter) {
    double calls = 0;
    for (int w = 0; w < HN_COST_WIDTHS; w++) calls += c->drafter[drafter].call[w].count;
    return (int)hn_least_double(calls, 1e6);
}

double hn_cost_of_reading(const hn_cost *c, int drafter, int behind) {
    return c->speed * c->drafter[drafter].row * behind;
}

/* ---- what the next pass costs ---- */

double hn_cost_of_again(const hn_cost *c) {
    return c->speed * c->part[HN_COST_AGAIN].each;
}

bool hn_cost_curve(const hn_cost *c, const hn_cost_round *r, double *seconds, double *optimistic, double optimism) {
    points p;
    if (c->speed <= 0) return false;
    points_read(c, &p);
    seconds[0] = optimistic[0] = 0;
    for (int rows = 1, seen = 1; rows <= hn_most(r->most, HN_COST_ROWS); rows++) {
        hn_cost_work w = r->beside;
        w.rows += rows;
        w.reads += r->reads * hn_least(rows, r->texts);
        w.again += r->reads * hn_most(rows - r->texts, 0);
        const expectation e = expect(&p, &w);
        const bool known = e.width == 1 || c->shape[e.width].variance > 0;
        const double unsure = e.rest + e.experts, hoped = unsure / (1 + optimism * sqrt(p.unsure[e.width]));
        seconds[rows] = c->speed * e.all;
        optimistic[rows] = seconds[rows] + c->speed * (hoped - unsure);
        const double least = known ? seconds[1] : hn_most_double(seconds[1], optimistic[seen]);
        if (rows > 1) optimistic[rows] = hn_most_double(optimistic[rows], least);
        if (known) seen = rows;
    }
    return true;
}
