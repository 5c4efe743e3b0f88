/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - see picture.h. Two panels with an axis of steps each: losses on the left, acceptance in the engine on the
 * right; a colour for each draft in both. Colours are CSS classes, which differ in dark mode. */
#include "train/learn/picture.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file_out.h"

enum {
    WIDTH = 1040,
    HEIGHT = 520,
    TOP = 110,
    BOTTOM = 400,
    PANEL = 400,
    LEFT = 66,
    SECOND = 578,
    COLORS = 6,
    NEAR = 2
};

typedef struct picture {
    hn_out *out;
    hunch_status st;
    hunch_error *err;
    const hn_run_history *h;
    const hn_picture_about *a;
} picture;

/* A panel's axes: steps, and values. */
typedef struct axes {
    double left, x_most, y_least, y_most;
} axes;

static void put(picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(picture *p, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!p->st)
        p->st = hn_out_write(p->out, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, p->err);
}

/* Text between tags; characters that XML or UTF-8 does not allow become question marks. */
static void put_text(picture *p, const char *s) {
    for (; *s; s++) {
        const char *escaped = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : NULL;
        if (escaped)
            put(p, "%s", escaped);
        else
            put(p, "%c", *s < 32 || *s > 126 ? '?' : *s);
    }
}

static double x_of(const axes *a, double step) {
    return a->left + step / a->x_most * PANEL;
}

static double y_of(const axes *a, double y) {
    return BOTTOM - (y - a->y_least) / (a->y_most - a->y_least) * (BOTTOM - TOP);
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

/* The mean of a few neighbours: training's losses differ from batch to batch. */
static double smoothed(const hn_run_history *h, int at, int draft) {
    const int n = (int)h->n_means, from = at > NEAR ? at - NEAR : 0, to = at + NEAR < n ? at + NEAR + 1 : n;
    double sum = 0, steps = 0;
    for (int i = from; i < to; i++) {
        sum += h->mean[i].loss[draft];
        steps += h->mean[i].steps;
    }
    return steps > 0 ? sum / steps : 0;
}

static const hn_run_history_check *last_check(const hn_run_history *h) {
    return h->n_checks > 0 ? &h->check[(int)h->n_checks - 1] : NULL;
}

static void find_losses(const picture *p, double *least, double *most) {
    *least = HUGE_VAL;
    *most = 0;
    for (int k = 0; k < p->a->drafts; k++) {
        for (int i = 0; i < (int)p->h->n_means; i++) {
            *least = fmin(*least, smoothed(p->h, i, k));
            *most = fmax(*most, smoothed(p->h, i, k));
        }
        for (int i = 0; i < (int)p->h->n_checks; i++) {
            *least = fmin(*least, p->h->check[i].loss[k]);
            *most = fmax(*most, p->h->check[i].loss[k]);
        }
    }
    if (*least > *most) *least = 0;
    if (*most - *least < 1e-6) *most = *least + 1;
}

/* ---- axes --------------------------------------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, with about `about` ticks in the range. */
static double tick_of(double range, int about) {
    const double rough = range / about, power = pow(10, floor(log10(rough))), times = rough / power;
    return power * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void put_number(picture *p, double x) {
    if (fabs(x) >= 1e6)
        put(p, "%gM", x / 1e6);
    else if (fabs(x) >= 1e4)
        put(p, "%gk", x / 1e3);
    else
        put(p, "%g", fabs(x) < 1e-9 ? 0 : x);
}

static void put_y_ticks(picture *p, const axes *a, bool right) {
    const double tick = tick_of(a->y_most - a->y_least, 6), x = right ? a->left + PANEL : a->left;
    for (double i = ceil(a->y_least / tick - 1e-9); i * tick <= a->y_most + tick * 1e-6; i++) {
        const double y = y_of(a, i * tick);
        if (!right) put(p, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", a->left, y, a->left + PANEL);
        put(p, "<text x=\"%.1f\" y=\"%.1f\"%s>", right ? x + 8 : x - 8, y + 5, right ? "" : " text-anchor=\"end\"");
        put_number(p, i * tick);
        put(p, "</text>\n");
    }
}

static void put_x_ticks(picture *p, const axes *a) {
    const double tick = fmax(1, tick_of(a->x_most, 5));
    for (double i = 0; i * tick <= a->x_most; i++) {
        const double x = x_of(a, i * tick);
        put(p, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, TOP,
            BOTTOM, x, BOTTOM + 20);
        put_number(p, i * tick);
        put(p, "</text>\n");
    }
    put(p, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">steps</text>\n", a->left + PANEL / 2.0, BOTTOM + 42);
}

static void put_frame(picture *p, const axes *a, const char *what, const char *unit) {
    put_x_ticks(p, a);
    put_y_ticks(p, a, false);
    put(p, "<path class=\"axis\" d=\"M%.1f %dV%dH%.1f\"/>\n", a->left, TOP, BOTTOM, a->left + PANEL);
    put(p, "<text x=\"%.1f\" y=\"%d\" class=\"strong\">%s</text>\n", a->left, TOP - 16, what);
    put(p, "<text transform=\"translate(%.1f %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", a->left - 48,
        (TOP + BOTTOM) / 2, unit);
}

/* ---- lines -------------------------------------------------------------------------------------------------------------- */

static void line_begin(picture *p, const char *style, int color) {
    put(p, "<polyline class=\"%s c%d\" points=\"", style, color);
}

static void put_trained(picture *p, const axes *a, int draft) {
    double step = 0;
    line_begin(p, "line", draft % COLORS);
    for (int i = 0; i < (int)p->h->n_means; i++) {
        const double steps = p->h->mean[i].steps;
        put(p, "%.1f,%.1f ", x_of(a, step + steps / 2), y_of(a, smoothed(p->h, i, draft)));
        step += steps;
    }
    put(p, "\"/>\n");
}

/* One value of each check, with a point for each. value: its offset in a check. */
static void put_checks(picture *p, const axes *a, const char *style, int color, size_t value) {
    line_begin(p, style, color);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < (int)p->h->n_checks; i++) {
            const hn_run_history_check *c = &p->h->check[i];
            const double x = x_of(a, c->step), y = y_of(a, *(const double *)(const void *)((const char *)c + value));
            if (pass)
                put(p, "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", color, x, y);
            else
                put(p, "%.1f,%.1f ", x, y);
        }
        if (!pass) put(p, "\"/>\n");
    }
}

static double x_most_of(const picture *p) {
    return fmax(1, p->h->steps);
}

static void put_losses(picture *p) {
    axes a = {.left = LEFT, .x_most = x_most_of(p)};
    find_losses(p, &a.y_least, &a.y_most);
    const double margin = (a.y_most - a.y_least) * 0.05;
    a.y_least = fmax(0, a.y_least - margin);
    a.y_most += margin;
    put_frame(p, &a, "loss: training (line), held out (dashed)", "loss");
    for (int k = 0; k < p->a->drafts; k++) {
        put_trained(p, &a, k);
        put_checks(p, &a, "line held", k % COLORS, offsetof(hn_run_history_check, loss) + (size_t)k * sizeof(double));
    }
}

static void put_accepted(picture *p) {
    const axes a = {SECOND, x_most_of(p), 0, 1}, round = {SECOND, x_most_of(p), 1, 1 + p->a->drafts};
    put_frame(p, &a, "accepted, measured in the engine on held-out texts", "share of rounds");
    put_y_ticks(p, &round, true);
    put(p, "<text transform=\"translate(%d %d) rotate(90)\" text-anchor=\"middle\">tokens a round</text>\n",
        SECOND + PANEL + 40, (TOP + BOTTOM) / 2);
    for (int k = 0; k < p->a->drafts; k++)
        put_checks(p, &a, "line", k % COLORS, offsetof(hn_run_history_check, position) + (size_t)k * sizeof(double));
    put_checks(p, &round, "line round", COLORS, offsetof(hn_run_history_check, tau));
}

/* ---- words -------------------------------------------------------------------------------------------------------------- */

static void put_legend(picture *p) {
    enum { ROW = 8, ITEM = 116 };
    for (int k = 0; k <= p->a->drafts; k++) {
        const bool round = k == p->a->drafts;
        const int x = LEFT + k % ROW * ITEM, y = BOTTOM + 72 + 22 * (k / ROW);
        put(p, "<path class=\"line%s c%d\" d=\"M%d %dh24\"/>\n<text x=\"%d\" y=\"%d\">", round ? " round" : "",
            round ? COLORS : k % COLORS, x, y - 5, x + 32, y);
        if (round)
            put(p, "tokens a round</text>\n");
        else
            put(p, "draft %d</text>\n", k + 1);
    }
}

static void put_figures(picture *p, const hn_run_history_check *c) {
    put(p, "held out: loss");
    for (int k = 0; k < p->a->drafts; k++) put(p, " %.3f", c->loss[k]);
    put(p, ", accepted");
    for (int k = 0; k < p->a->drafts; k++) put(p, " %.3f", c->position[k]);
}

/* A round is one pass, after as many steps of the head as there are drafts: the bytes read limit the speed-up. */
static void put_speed(picture *p, const hn_run_history_check *c) {
    put(p, "%.2f tokens a round, the best %.2f", c->tau, p->a->best);
    if (p->a->step_cost > 0)
        put(p, "; speed-up at most %.2f by the bytes read: a draft step reads %.3f of what a pass does",
            p->a->best / (1 + p->a->drafts * p->a->step_cost), p->a->step_cost);
}

static void put_words(picture *p) {
    const hn_run_history_check *c = last_check(p->h);
    put(p, "<text x=\"%d\" y=\"26\" class=\"strong\" font-size=\"18\">", LEFT);
    put_text(p, p->a->head);
    const bool many = p->h->tokens >= 1e6;
    put(p, ": step %.0f of %d, %.1f %s tokens</text>\n", p->h->steps, p->a->steps, p->h->tokens / (many ? 1e6 : 1e3),
        many ? "million" : "thousand");
    if (!c) return;
    put(p, "<text x=\"%d\" y=\"47\">", LEFT);
    put_figures(p, c);
    put(p, "</text>\n<text x=\"%d\" y=\"67\">", LEFT);
    put_speed(p, c);
    put(p, "</text>\n");
}

static void put_style(picture *p) {
    static const char *const light[COLORS + 1] = {"#1457a8", "#b8470b", "#22702c", "#7a2f8f",
                                                  "#8a6d00", "#b01e4a", "#24292f"},
                                            *const dark[COLORS + 1] = {"#79b8ff", "#ffab70", "#7ee787", "#d2a8ff",
                                                                       "#e3c04b", "#ff8fab", "#f0f3f6"};
    put(p, "<style>\ntext{fill:#1b1f24}.paper{fill:#ffffff}.strong{font-weight:bold}\n"
           ".grid{stroke:#d8dee4}.axis{stroke:#57606a;fill:none}\n"
           ".line{fill:none;stroke-width:2}.held{stroke-dasharray:6 4}.round{stroke-width:3}\n");
    for (int i = 0; i <= COLORS; i++) put(p, ".c%d{stroke:%s}.dot.c%d{fill:%s}\n", i, light[i], i, light[i]);
    put(p, "@media "
           "(prefers-color-scheme:dark){\ntext{fill:#e6edf3}.paper{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#"
           "8b949e}\n");
    for (int i = 0; i <= COLORS; i++) put(p, ".c%d{stroke:%s}.dot.c%d{fill:%s}\n", i, dark[i], i, dark[i]);
    put(p, "}\n</style>\n");
}

hunch_status hn_picture_write(const hn_run_history *h, const hn_picture_about *about, const char *path,
                              hunch_error *err) {
    picture p = {.err = err, .h = h, .a = about};
    hunch_status st = hn_out_open(&p.out, path, false, err);
    if (st) return st;
    put(&p,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" "
        "font-size=\"14\">\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_style(&p);
    put(&p, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
    put_words(&p);
    put_losses(&p);
    put_accepted(&p);
    put_legend(&p);
    put(&p, "</svg>\n");
    if (!p.st) return hn_out_finish(&p.out, err);
    hn_out_abort(&p.out);
    return p.st;
}
