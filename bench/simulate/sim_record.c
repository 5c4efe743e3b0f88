/* SPDX-License-Identifier: Apache-2.0 */
/* sim_record.c - reads what was recorded: JSON lines of hunch compare --record, and the CSV of hunch bench. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate.h"

enum { LINE = 1 << 20, TOKENS = 4096 };

/* ---- drafts ---- */

static int drafter_of(sim_data *d, const char *name) {
    for (int i = 0; i < d->n_drafters; i++)
        if (strcmp(d->drafter[i], name) == 0) return i;
    if (d->n_drafters == SIM_DRAFTERS) sim_fail("more than %d drafters were recorded", SIM_DRAFTERS);
    d->drafter[d->n_drafters] = strdup(name);
    return d->n_drafters++;
}

static sim_answer *answer_of(sim_data *d, const json_t *id) {
    char *name = json_dumps(id, JSON_ENCODE_ANY);
    if (!name) sim_fail("a line has no prompt");
    for (int i = d->n_answers - 1; i >= 0; i--)
        if (strcmp(d->answer[i].name, name) == 0) return free(name), &d->answer[i];
    d->answer = realloc(d->answer, (size_t)(d->n_answers + 1) * sizeof *d->answer);
    if (!d->answer) sim_fail("no memory");
    sim_answer *a = &d->answer[d->n_answers++];
    *a = (sim_answer){.name = name, .token = sim_alloc(TOKENS * sizeof *a->token)};
    for (int k = 0; k < SIM_DRAFTERS; k++) a->at[k] = sim_alloc(TOKENS * sizeof *a->at[k]);
    return a;
}

static void position_read(sim_position *p, const json_t *drafts) {
    const size_t n = json_array_size(drafts);
    p->draft = sim_alloc(n * sizeof *p->draft);
    p->n = (int)(n < HN_TREE_ROWS ? n : HN_TREE_ROWS - 1);
    for (int k = 0; k < p->n; k++) {
        const json_t *x = json_array_get(drafts, (size_t)k);
        sim_draft *f = &p->draft[k];
        f->depth = (int16_t)json_integer_value(json_array_get(x, 0));
        f->parent = (int16_t)json_integer_value(json_array_get(x, 1));
        f->token = (int32_t)json_integer_value(json_array_get(x, 2));
        f->estimate = (float)json_number_value(json_array_get(x, 3));
        f->right = json_is_true(json_array_get(x, 4));
        if (f->depth > p->levels) p->levels = f->depth;
    }
}

static void line_take(sim_data *d, const json_t *j) {
    const int at = (int)json_integer_value(json_object_get(j, "position"));
    const char *draft = json_string_value(json_object_get(j, "draft"));
    if (!draft || at < 0 || at + 1 >= TOKENS) sim_fail("a line is no recorded position");
    const int k = drafter_of(d, draft);
    sim_answer *a = answer_of(d, json_object_get(j, "prompt"));
    sim_position *p = &a->at[k][at];
    position_read(p, json_object_get(j, "drafts"));
    p->seconds = json_number_value(json_object_get(j, "draft_s"));
    a->token[at] = (int32_t)json_integer_value(json_object_get(j, "root"));
    if (at == 0) a->prompt = (int)json_integer_value(json_object_get(j, "context"));
    if (at + 2 > a->n) a->n = at + 2;
    if (json_number_value(json_object_get(j, "draft_pass_s")) > 0) d->kind[k] = HN_COST_PER_LEVEL;
    if (p->levels > d->most_levels[k]) d->most_levels[k] = p->levels;
}

void sim_record_read(sim_data *d, const char *path) {
    char *line = sim_alloc(LINE);
    FILE *f = fopen(path, "r");
    if (!f) sim_fail("%s: cannot be opened", path);
    while (fgets(line, LINE, f)) {
        json_t *j = json_loads(line, 0, NULL);
        if (!j) sim_fail("%s: a line is no JSON", path);
        line_take(d, j);
        json_decref(j);
    }
    fclose(f);
    free(line);
    if (d->n_answers == 0) sim_fail("%s: nothing was recorded", path);
}

/* ---- passes ---- */

/* The k-th field of a line without commas inside of quotes. */
static const char *field(char *line, int k, char *out, size_t size) {
    const char *p = line;
    for (; k > 0 && p; k--) p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL;
    snprintf(out, size, "%.*s", p ? (int)strcspn(p, ",\n") : 0, p ? p : "");
    return out;
}

/* Between the rows that were recorded, and beyond them with the slope of the last. */
static double by_rows(const sim_curve *c, int k, double rows) {
    int i = 0;
    while (i + 2 < c->n[k] && c->rows[k][i + 1] < rows) i++;
    const double slope = (c->seconds[k][i + 1] - c->seconds[k][i]) / (c->rows[k][i + 1] - c->rows[k][i]);
    return c->seconds[k][i] + (rows - c->rows[k][i]) * slope;
}

static void reads_fit(sim_curve *c) {
    if (c->n[1] < 2) return;
    const int most = c->rows[1][c->n[1] - 1], positions = c->context[1] - c->context[0];
    const double one = (by_rows(c, 1, 1) - by_rows(c, 0, 1)) / positions, all = (by_rows(c, 1, most) - by_rows(c, 0, most)) / positions;
    c->first = one > 0 ? one : 0;
    c->further = all > c->first ? (all - c->first) / (most - 1) : 0;
}

void sim_curve_read(sim_curve *c, const char *path) {
    enum { WHAT = 6, ROWS, CONTEXT, MEDIAN };
    char line[4096], what[64], text[64];
    FILE *f = fopen(path, "r");
    if (!f) sim_fail("%s: cannot be opened", path);
    while (fgets(line, sizeof line, f)) {
        field(line, WHAT, what, sizeof what);
        const int rows = atoi(field(line, ROWS, text, sizeof text)), context = atoi(field(line, CONTEXT, text, sizeof text));
        const double value = atof(field(line, MEDIAN, text, sizeof text));
        if (strcmp(what, "prefill_tok_s") == 0) c->prompt_row = 1 / value;
        if (strcmp(what, "pass_ms") != 0) continue;
        const int k = c->n[0] == 0 || context == c->context[0] ? 0 : c->n[1] == 0 || context == c->context[1] ? 1 : -1;
        if (k < 0 || c->n[k] == SIM_POINTS) continue;
        c->context[k] = context;
        c->rows[k][c->n[k]] = rows;
        c->seconds[k][c->n[k]++] = value * 1e-3;
    }
    fclose(f);
    if (c->n[0] < 2) sim_fail("%s: expected times of passes (pass_ms)", path);
    reads_fit(c);
}

/* The recorded passes are of one text. A row of a prompt counts for less than a row, since it needs no logits. */
double sim_pass(const sim_curve *c, double rows, double texts, double prompt, double context) {
    const int last = c->n[0] - 1;
    const double slope = (c->seconds[0][last] - c->seconds[0][last - 1]) / (c->rows[0][last] - c->rows[0][last - 1]);
    double all = rows + prompt * (c->prompt_row > 0 && c->prompt_row < slope ? c->prompt_row / slope : 1);
    if (all < 1) all = 1;
    const double recorded = c->context[0] * (c->first + c->further * (all - 1));
    const double reads = context * (c->first * texts + c->further * (rows - texts)) + c->context[0] * c->further * (all - rows);
    return by_rows(c, 0, all) - recorded + reads;
}
