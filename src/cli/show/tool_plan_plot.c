/* SPDX-License-Identifier: Apache-2.0 */
/* tool_plan_plot.c - see tool_plan.h. On the left times of passes by rows, both axes logarithmic, the limit dashed; on the right a bar for
 * each method, the recommended one filled. */
#include "cli/show/tool_plan.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/show/tool_svg.h"

enum { WIDTH = 1000, HEIGHT = 480, LEFT = 70, MIDDLE = 500, TOP = 90, BOTTOM = 60, BARS = 640, BAR = 24 };
static const char *const BLUE = "#1457a8", *const GREY = "#b9c4d0";

static double real_of(const json_t *j, const char *key) {
    return json_number_value(json_object_get(j, key));
}

typedef struct axes {
    tool_file *file;
    double least, most, rows; /* ms; rows of the widest pass */
} axes;

static double x_of(const axes *a, double rows) {
    return LEFT + log(rows) / log(a->rows) * (MIDDLE - LEFT - 20);
}

static double y_of(const axes *a, double ms) {
    return HEIGHT - BOTTOM - log(ms / a->least) / log(a->most / a->least) * (HEIGHT - TOP - BOTTOM);
}

static void line_put(const axes *a, const json_t *curve, const char *key, bool dashed) {
    const json_t *p;
    size_t i;
    tool_svg_put(a->file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"",
                 dashed ? "#444444" : BLUE, dashed ? " stroke-dasharray=\"7 5\"" : "");
    json_array_foreach(curve, i, p)
        tool_svg_put(a->file, "%.1f,%.1f ", x_of(a, real_of(p, "rows")), y_of(a, real_of(p, key)));
    tool_svg_put(a->file, "\"/>\n");
}

static void passes_put(tool_file *f, const json_t *plan) {
    const json_t *curve = json_object_get(plan, "curve"), *p;
    axes a = {.file = f, .least = INFINITY, .rows = 2};
    size_t i;
    json_array_foreach(curve, i, p) {
        a.least = fmin(a.least, fmin(real_of(p, "ms"), real_of(p, "limit_ms")));
        a.most = fmax(a.most, fmax(real_of(p, "ms"), real_of(p, "limit_ms")));
        a.rows = fmax(a.rows, real_of(p, "rows"));
    }
    a.least /= 1.15;
    a.most *= 1.15;
    json_array_foreach(curve, i, p) {
        const double x = x_of(&a, real_of(p, "rows")), y = y_of(&a, real_of(p, "ms"));
        tool_svg_put(f, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#e4e4e4\"/>\n", x, TOP, x,
                     HEIGHT - BOTTOM);
        if (i % 2 == 0 || i == 1)
            tool_svg_put(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", x, HEIGHT - BOTTOM + 20,
                         real_of(p, "rows"));
        tool_svg_put(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, BLUE);
        if (i == 0 || i + 1 == json_array_size(curve) || real_of(p, "rows") == 8)
            tool_svg_put(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%.2f ms</text>\n", x, y - 10,
                         i ? "end" : "start", real_of(p, "ms"));
    }
    line_put(&a, curve, "limit_ms", true);
    line_put(&a, curve, "ms", false);
    tool_svg_put(f, "<text x=\"%d\" y=\"%d\">time of a pass by its rows; dashed: limit of the machine</text>\n", LEFT,
                 HEIGHT - 14);
}

/* Whether the recommendation names it. */
static bool is_chosen(const json_t *plan, const char *name) {
    const char *flags = json_string_value(json_object_get(plan, "recommend"));
    const size_t n = strlen(name);
    if (!flags || strncmp(flags, "--draft ", 8) != 0 || strncmp(flags + 8, name, n) != 0) return false;
    return flags[8 + n] == 0 || flags[8 + n] == ' ';
}

static void bar_put(tool_file *f, const json_t *plan, const char *name, double speed, double most, int at) {
    const int y = TOP + at * (BAR + 10);
    const double width = most > 0 ? speed / most * (WIDTH - BARS - 90) : 0;
    tool_svg_put(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", BARS - 8, y + BAR - 7);
    char shown[24];
    snprintf(shown, sizeof shown, "%s", name);
    shown[hn_utf8_complete(shown, strlen(shown))] = '\0'; /* a character that was cut would be no XML */
    tool_svg_text(f, shown);
    tool_svg_put(f, "</text>\n<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", BARS, y, width,
                 BAR, is_chosen(plan, name) ? BLUE : GREY);
    tool_svg_put(f, "<text x=\"%.1f\" y=\"%d\">%.1f</text>\n", BARS + width + 8, y + BAR - 7, speed);
}

static void methods_put(tool_file *f, const json_t *plan) {
    enum { MOST = 9 };
    const json_t *methods = json_object_get(plan, "methods"), *m;
    const double plain = real_of(json_object_get(plan, "plain"), "predicted_tok_s");
    double most = plain;
    size_t i;
    json_array_foreach(methods, i, m) most = fmax(most, real_of(m, "predicted_tok_s"));
    bar_put(f, plan, "none", plain, most, 0);
    json_array_foreach(methods, i, m) if (i < MOST) bar_put(f, plan, json_string_value(json_object_get(m, "draft")),
                                                            real_of(m, "predicted_tok_s"), most, (int)i + 1);
    tool_svg_put(f, "<text x=\"%d\" y=\"%d\">tokens a second, one text%s; filled: recommended</text>\n", MIDDLE + 40,
                 HEIGHT - 14, json_is_true(json_object_get(plan, "predicted")) ? ", predicted from figures" : "");
}

int tool_plan_plot(const json_t *plan, const char *path) {
    tool_file file;
    int code = tool_file_begin(&file, path);
    if (code) return tool_file_end(&file, code);
    tool_svg_put(&file,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                 "font-family=\"sans-serif\" font-size=\"14\" fill=\"#111111\">\n<rect width=\"%d\" height=\"%d\" "
                 "fill=\"#ffffff\"/>\n",
                 WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    tool_svg_put(&file, "<text x=\"%d\" y=\"36\" font-size=\"20\" font-weight=\"bold\">", LEFT);
    tool_svg_text(&file, json_string_value(json_object_get(plan, "recommend")));
    tool_svg_put(&file, "</text>\n<text x=\"%d\" y=\"62\">%.1f tokens a second, plain decoding %.1f; hunch %s</text>\n",
                 LEFT, real_of(plan, "predicted_tok_s"), real_of(json_object_get(plan, "plain"), "predicted_tok_s"),
                 hunch_version());
    passes_put(&file, plan);
    methods_put(&file, plan);
    tool_svg_put(&file, "</svg>\n");
    return tool_file_end(&file, 0);
}
