/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_plot.c - see tool_bench.h: times of passes by rows as an SVG, one line per context, with its limit dashed. Both axes are
 * logarithmic: constant time is a level line, time proportional to rows a line of one slope. */
#include <math.h>
#include <string.h>

#include "cli/tool_bench.h"
#include "cli/show/tool_svg.h"

enum { WIDTH = 900, HEIGHT = 600, LEFT = 78, RIGHT = 24, TOP = 112, BOTTOM = 64, COLORS = 6 };

static const char *const colors[COLORS] = {"#1457a8", "#b8470b", "#22702c", "#7a2f8f", "#8a6d00", "#b01e4a"};

typedef struct plot {
    tool_file *file;
    double x_most, y_least, y_most; /* of the axes: rows; t(n)/t(1) */
} plot;

static double x_of(const plot *p, double rows) {
    return LEFT + log(rows) / log(p->x_most) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const plot *p, double ratio) {
    const double share = log(ratio / p->y_least) / log(p->y_most / p->y_least);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* ---- axes ------------------------------------------------------------------------------------------------------- */

static void find_ranges(plot *p, const bench *b) {
    double low = 1, high = 2, rows = 2;
    for (int i = 0; i < b->n_passes; i++) {
        const bench_pass *q = &b->passes[i];
        low = fmin(low, fmin(q->limit_s, q->s.low) / q->one_row_s);
        high = fmax(high, fmax(q->limit_s, q->s.high) / q->one_row_s);
        rows = fmax(rows, q->rows);
    }
    p->x_most = rows * 1.08;
    p->y_least = low / 1.12;
    p->y_most = high * 1.12;
}

static void put_axes(plot *p, const bench *b) {
    static const double ratios[] = {0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        if (ratios[i] < p->y_least || ratios[i] > p->y_most)
            continue;
        const double y = y_of(p, ratios[i]);
        tool_svg_put(p->file, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT, y, WIDTH - RIGHT, y,
            ratios[i] == 1 ? "#888888" : "#dddddd");
        tool_svg_put(p->file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 5, ratios[i]);
    }
    double last = -100;
    for (int rows = 1; rows <= BENCH_MOST_ROWS; rows++) {
        bool there = false;
        for (int i = 0; i < b->n_passes; i++)
            there |= b->passes[i].rows == rows;
        const double x = x_of(p, rows);
        if (!there || x - last < 22)
            continue;
        last = x;
        tool_svg_put(p->file, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#dddddd\"/>\n", x, TOP, x, HEIGHT - BOTTOM);
        tool_svg_put(p->file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x, HEIGHT - BOTTOM + 20, rows);
    }
    tool_svg_put(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">rows of a pass, n</text>\n", (LEFT + WIDTH - RIGHT) / 2,
        HEIGHT - 16);
    tool_svg_put(p->file, "<text transform=\"translate(22 %d) rotate(-90)\" text-anchor=\"middle\">t(n) / t(1)</text>\n",
        (TOP + HEIGHT - BOTTOM) / 2);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static void put_line(plot *p, const bench_pass *first, const bench_pass *end, const char *color, bool limit) {
    tool_svg_put(p->file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s points=\"", color, limit ? "1.6" : "2.4",
        limit ? " stroke-dasharray=\"7 5\"" : "");
    for (const bench_pass *q = first; q < end; q++)
        tool_svg_put(p->file, "%.1f,%.1f ", x_of(p, q->rows), y_of(p, (limit ? q->limit_s : q->s.median) / q->one_row_s));
    tool_svg_put(p->file, "\"/>\n");
}

static void put_context(plot *p, const bench_pass *first, const bench_pass *end, int number) {
    const char *color = colors[number % COLORS];
    put_line(p, first, end, color, true);
    put_line(p, first, end, color, false);
    for (const bench_pass *q = first; q < end; q++) {
        const double x = x_of(p, q->rows);
        tool_svg_put(p->file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", x,
            y_of(p, q->s.low / q->one_row_s), x, y_of(p, q->s.high / q->one_row_s), color);
        tool_svg_put(p->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, y_of(p, q->s.median / q->one_row_s),
            color);
    }
    const int y = TOP + 26 + 24 * number;
    tool_svg_put(p->file, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"2.4\"/>\n", LEFT + 14, y - 5,
        LEFT + 46, y - 5, color);
    tool_svg_put(p->file, "<text x=\"%d\" y=\"%d\">context %d: t(1) = %.2f ms</text>\n", LEFT + 56, y, first->context,
        first->one_row_s * 1e3);
}

static void put_contexts(plot *p, const bench *b) {
    int number = 0, contexts = 1;
    for (int i = 1; i < b->n_passes; i++)
        contexts += b->passes[i].context != b->passes[i - 1].context;
    tool_svg_put(p->file, "<rect x=\"%d\" y=\"%d\" width=\"500\" height=\"%d\" fill=\"#ffffff\" fill-opacity=\"0.85\"/>\n", LEFT + 4,
        TOP + 4, 24 * (contexts + 1) + 12);
    for (int first = 0, end; first < b->n_passes; first = end, number++) {
        for (end = first; end < b->n_passes && b->passes[end].context == b->passes[first].context; end++)
            continue;
        put_context(p, b->passes + first, b->passes + end, number);
    }
    const int y = TOP + 26 + 24 * number;
    tool_svg_put(p->file, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#444444\" "
           "stroke-width=\"1.6\" stroke-dasharray=\"7 5\"/>\n",
        LEFT + 14, y - 5, LEFT + 46, y - 5);
    tool_svg_put(p->file, "<text x=\"%d\" y=\"%d\">limit of the machine; bars: fastest to slowest turn</text>\n", LEFT + 56, y);
}

static void put_title(plot *p, const bench *b) {
    const hunch_machine *m = &b->machine;
    const char *slash = strrchr(b->name, '/');
    tool_svg_put(p->file, "<text x=\"%d\" y=\"36\" font-size=\"21\" font-weight=\"bold\">", LEFT);
    tool_svg_text(p->file, slash && slash[1] ? slash + 1 : b->name);
    tool_svg_put(p->file, ": time of a pass of n rows</text>\n<text x=\"%d\" y=\"64\">", LEFT);
    tool_svg_text(p->file, m->cpu);
    tool_svg_put(p->file, ", %d threads, level %s, hunch %s</text>\n", m->threads, m->isa, hunch_version());
    tool_svg_put(p->file, "<text x=\"%d\" y=\"88\">read bandwidth %.1f GB/s, products int8 %.0f, bf16 %.0f GMAC/s; ", LEFT,
        tool_median(b->read_gb_s, b->n_read), m->int8_gmac_s, m->bf16_gmac_s);
    tool_svg_put(p->file, "all logits, medians of %d turns</text>\n", b->turns);
}

int bench_plot(const bench *b, const char *path) {
    tool_file file;
    plot p = {.file = &file};
    int code = tool_file_begin(&file, path);
    if (code)
        return tool_file_end(&file, code);
    find_ranges(&p, b);
    tool_svg_put(p.file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"15\" fill=\"#111111\">\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    tool_svg_put(p.file, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, HEIGHT);
    put_axes(&p, b);
    put_contexts(&p, b);
    put_title(&p, b);
    tool_svg_put(p.file, "</svg>\n");
    return tool_file_end(&file, 0);
}
