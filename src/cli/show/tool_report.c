/* SPDX-License-Identifier: Apache-2.0 */
/* tool_report.c - the results of `hunch compare` as JSON, as a table, and as answers side by side. Measures nothing. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/show/tool_compare.h"
#include "cli/tool_result.h"

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

static json_t *interval_json(double low, double high) {
    return isfinite(low) && isfinite(high) ? json_pack("[f,f]", low, high) : json_null();
}

static double speed(double tokens, double seconds) {
    return seconds > 0 ? tokens / seconds : NAN;
}

static json_t *prompt_json(const tool_prompt *p, const tool_prompt_stats *d, const tool_answer *a, bool trees) {
    json_t *out = json_pack("{s:O,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:i,s:b}", "id", p->id, "group", p->group, "tokens",
                            (json_int_t)a->n, "plain_tok_s", tool_json_real(speed(d->tokens, d->plain_s)), "tok_s",
                            tool_json_real(speed(d->tokens, d->drafted_s)), "ratio", tool_json_real(d->ratio), "ci",
                            interval_json(d->low, d->high), "tau", tool_json_real(tool_prompt_stats_tau(d)), "repeats",
                            d->repeats, "identical", (int)d->identical);
    if (trees)
        json_object_set_new(out, "trees", tool_why_trees_json(&a->recorded));
    return out;
}

/* Only for one drafter; with several the ranks are ambiguous. */
static json_t *ranks_json(const tool_variant *l) {
    return l->ranks && hunch_engine_drafters(l->engine) == 1 ? tool_ranks_json(l->ranks) : json_null();
}

static json_t *difference_json(const tool_comparison *c, const tool_verdict *v) {
    if (v->identical)
        return json_null();
    return json_pack("{s:O,s:I}", "prompt", c->prompts.items[v->first_different].id, "position",
                     (json_int_t)v->stats[v->first_different].difference);
}

/* Of each group, in the order of the prompts. */
static json_t *groups_json(const tool_comparison *c, int variant) {
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_done; i++) {
        if (!tool_group_is_new(c, i))
            continue;
        const tool_verdict v = tool_verdict_of(c, variant, c->prompts.items[i].group);
        json_array_append_new(
            list, json_pack("{s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:b}", "group", c->prompts.items[i].group, "prompts",
                            (json_int_t)v.prompts, "ratio", tool_json_real(v.ratio), "ratio_total",
                            tool_json_real(v.ratio_total), "ci", interval_json(v.low, v.high), "tau",
                            tool_json_real(v.tau), "acceptance", tool_json_real(v.acceptance), "identical",
                            (int)v.identical));
    }
    return list;
}

static json_t *verdict_json(const tool_comparison *c, const tool_verdict *v, int variant) {
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_done; i++)
        json_array_append_new(list,
                              prompt_json(&c->prompts.items[i], &v->stats[i], tool_answer_of(c, variant, i), c->o.trees));
    json_t *out = json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:b,s:o,s:o,s:o,s:o}", "draft",
        tool_json_text(v->draft, strlen(v->draft)), "ratio", tool_json_real(v->ratio), "ratio_total",
        tool_json_real(v->ratio_total), "ci", interval_json(v->low, v->high), "tok_s", tool_json_real(v->tok_s), "tau",
        tool_json_real(v->tau), "acceptance", tool_json_real(v->acceptance), "rounds", (json_int_t)v->rounds, "drafted",
        (json_int_t)v->drafted, "accepted", (json_int_t)v->accepted, "depth_drafted", (json_int_t)v->depth_drafted,
        "identical", (int)v->identical, "first_difference", difference_json(c, v), "per_prompt", list, "per_group",
        groups_json(c, variant), "ranks", ranks_json(&c->variants[variant]));
    return out;
}

int tool_report_json(const tool_comparison *c, const tool_verdict *verdicts) {
    json_t *methods = json_array();
    for (int i = 1; i < c->n_variants; i++)
        json_array_append_new(methods, verdict_json(c, &verdicts[i - 1], i));
    return tool_print_json(
        json_pack("{s:I,s:{s:o},s:o,s:o,s:s,s:i,s:i,s:I,s:b,s:i,s:o,s:o}", "prompts", (json_int_t)c->n_done, "plain",
                  "tok_s", tool_json_real(verdicts[0].plain_tok_s), "methods", methods, "model",
                  tool_json_text(c->o.model, strlen(c->o.model)), "isa", c->info.isa, "threads", c->info.threads,
                  "parallel", c->o.parallel == TOOL_UNSET ? 1 : c->o.parallel, "seed", (json_int_t)c->seed, "cold",
                  (int)c->cold, "repeat", c->repeats, "until_width", tool_json_real(c->o.until_width), "lossy",
                  c->n_done ? tool_lossy_json(&tool_answer_of(c, 1, 0)->lossy) : json_null()));
}

/* ---- the table ----------------------------------------------------------------------------------------------- */

/* A figure in `width` columns, or a dash. */
static void figure(int width, int digits, double x) {
    if (isfinite(x))
        printf(" %*.*f", width, digits, x);
    else
        printf(" %*s", width, "-");
}

static void interval(double low, double high) {
    if (isfinite(low) && isfinite(high))
        printf(" %6.2f - %4.2f", low, high);
    else
        printf(" %13s", "-");
}

/* A word in `width` columns, never cut within a UTF-8 character. */
static void word(int width, const char *s) {
    int columns = 0;
    for (; *s && (columns < width || !width); columns++) {
        putchar(*s++);
        while (hn_utf8_inside(*s))
            putchar(*s++);
    }
    printf("%*s ", width > columns ? width - columns : 0, "");
}

static void id_word(int width, const json_t *id) { /* width 0: not cut or padded */
    char number[64];
    word(width, json_is_string(id) ? json_string_value(id) : hn_json_show(id, number, sizeof number));
}

static const char *ratio_style(bool color, double low, double high) {
    return tool_style(color, low > 1 ? 'g' : high < 1 ? 'r' : 'd');
}

static void prompt_row(const tool_comparison *c, const tool_prompt *p, const tool_prompt_stats *d, bool color) {
    word(10, p->group);
    id_word(18, p->id);
    figure(9, 1, speed(d->tokens, d->plain_s));
    figure(9, 1, speed(d->tokens, d->drafted_s));
    fputs(ratio_style(color, d->low, d->high), stdout);
    figure(7, 2, d->ratio);
    fputs(tool_style(color, '0'), stdout);
    interval(d->low, d->high);
    figure(6, 2, tool_prompt_stats_tau(d));
    if (c->repeats > 1)
        printf(" %5d", d->repeats);
    printf("  %s%s%s\n", tool_style(color, d->identical ? 'g' : 'r'), d->identical ? "yes" : "NO",
           tool_style(color, '0'));
}

/* A line with one figure of each group; at: its offset in tool_verdict. */
static void group_figures_print(const tool_comparison *c, int variant, const char *what, size_t at) {
    printf("%-22s", what);
    for (size_t i = 0; i < c->n_done; i++)
        if (tool_group_is_new(c, i)) {
            const char *group = c->prompts.items[i].group;
            const tool_verdict v = tool_verdict_of(c, variant, group);
            printf("  %s", *group ? group : "(none)");
            figure(1, 2, *(const double *)(const void *)((const char *)&v + at));
        }
    putchar('\n');
}

static void groups_print(const tool_comparison *c, int variant) {
    int groups = 0;
    for (size_t i = 0; i < c->n_done; i++)
        groups += tool_group_is_new(c, i);
    if (groups < 2)
        return;
    group_figures_print(c, variant, "median ratio by group:", offsetof(tool_verdict, ratio));
    group_figures_print(c, variant, "total ratio by group:", offsetof(tool_verdict, ratio_total));
    group_figures_print(c, variant, "tau by group:", offsetof(tool_verdict, tau));
}

/* A SPEC whose heads and models have no folders: the line about each names its whole path. Values of keys stay as they are
 * (force=.8/.6). */
static void spec_print(const char *spec) {
    bool value = false;
    while (*spec) {
        const size_t n = strcspn(spec, "+:,="); /* of a word */
        const char *name = spec;
        for (size_t i = 0; !value && i + 1 < n; i++)
            if (spec[i] == '/')
                name = spec + i + 1;
        fwrite(name, 1, (size_t)(spec + n - name), stdout);
        spec += n;
        value = *spec == '=';
        if (*spec)
            putchar(*spec++);
    }
}

static void heading_print(const tool_comparison *c, const tool_verdict *v, bool color) {
    const char *stores = c->repeats > 1 ? ", stores emptied before each prompt and each time it is repeated"
                         : c->cold      ? ", stores emptied before each prompt"
                                        : "";
    char note[200];
    printf("%splain against ", tool_style(color, 'b'));
    spec_print(v->draft);
    printf("%s%s\n", stores, tool_style(color, '0'));
    const tool_answer *any = c->n_done ? tool_answer_of(c, 1, 0) : NULL;
    if (any && *tool_rule_note(any->verify, &any->lossy, note))
        printf("%s%s%s\n", tool_style(color, 'y'), note, tool_style(color, '0'));
    printf("%s%-10s %-18s %9s %9s %7s %13s %6s%s  %s%s\n", tool_style(color, 'd'), "group", "prompt", "plain t/s",
           "tok/s", "ratio", "90 % interval", "tau", c->repeats > 1 ? " times" : "", "identical",
           tool_style(color, '0'));
}

static void verdict_print(const tool_comparison *c, const tool_verdict *v, int variant, bool color) {
    size_t same = 0;
    heading_print(c, v, color);
    for (size_t i = 0; i < c->n_done; i++) {
        prompt_row(c, &c->prompts.items[i], &v->stats[i], color);
        same += v->stats[i].identical;
    }
    groups_print(c, variant);
    printf("%sratio", tool_style(color, 'b'));
    figure(1, 2, v->ratio);
    fputs(" (median), total", stdout);
    figure(1, 2, v->ratio_total);
    printf("%s · acceptance length", tool_style(color, '0'));
    figure(1, 2, v->tau);
    printf(" · accepted %llu of %llu drafted · %sidentical %zu of %zu%s\n", (unsigned long long)v->accepted,
           (unsigned long long)v->drafted, tool_style(color, v->identical ? 'g' : 'r'), same, c->n_done,
           tool_style(color, '0'));
    if (!v->identical) {
        fputs("first difference: prompt ", stdout);
        id_word(0, c->prompts.items[v->first_different].id);
        printf("at token %zu\n", v->stats[v->first_different].difference);
    }
}

int tool_report_table(const tool_comparison *c, const tool_verdict *verdicts) {
    bool color = tool_colors(c->o.color, stdout);
    for (int i = 1; i < c->n_variants; i++) {
        if (i > 1)
            putchar('\n');
        verdict_print(c, &verdicts[i - 1], i, color);
    }
    return tool_done(HUNCH_OK);
}

/* ---- side by side -------------------------------------------------------------------------------------------- */

/* Without a tokenizer the ids replace the text. */
static char *ids_text(const tool_answer *a, tool_ends *ends, size_t *len) {
    char *text = tool_alloc(a->n + 1, 12);
    size_t at = 0;
    ends->at = tool_grow(ends->at, &ends->cap, a->n, sizeof *ends->at);
    for (; ends->n < a->n; ends->n++) {
        at += (size_t)sprintf(text + at, "%d ", (int)a->tokens[ends->n]);
        ends->at[ends->n] = at;
    }
    *len = at;
    return text;
}

static double answer_speed(const tool_answer *a) {
    const tool_trace *t = &a->trace;
    return t->n > 1 ? speed(t->tokens[t->n - 1] - t->tokens[0], t->seconds[t->n - 1] - t->seconds[0]) : NAN;
}

/* The drafters' names, "ngram+suffix+hydra": a SPEC may have a long path. */
static void names_write(char *to, size_t size, const hunch_engine *e) {
    size_t at = 0;
    snprintf(to, size, "none");
    for (int d = 0; d < hunch_engine_drafters(e) && at < size; d++)
        at += (size_t)snprintf(to + at, size - at, "%s%s", d ? "+" : "", hunch_engine_drafter_name(e, d));
}

static void title_write(char *to, size_t size, const tool_comparison *c, int variant, size_t prompt) {
    const tool_answer *a = tool_answer_of(c, variant, prompt);
    const double tok_s = answer_speed(a);
    char name[80] = "plain";
    if (variant)
        names_write(name, sizeof name, c->variants[variant].engine);
    int n = isfinite(tok_s) ? snprintf(to, size, "%s: %.0f tokens/s", name, tok_s) : snprintf(to, size, "%s", name);
    if (variant > 0 && a->rounds && n > 0 && (size_t)n < size)
        snprintf(to + n, size - (size_t)n, ", %.2f a round", ((double)a->n - 1) / (double)a->rounds);
}

/* Every drafter of the comparison has its own. */
static int colors_before(const tool_comparison *c, int variant) {
    int n = 0;
    for (int l = 1; l < variant; l++)
        n += hunch_engine_drafters(c->variants[l].engine);
    return n;
}

static void legend_print(const tool_comparison *c, bool color) {
    if (!color)
        return;
    fputs("colours:  from the model", stdout);
    for (int l = 1; l < c->n_variants; l++)
        for (int d = 0; d < hunch_engine_drafters(c->variants[l].engine); d++)
            printf("  %sfrom %s%s", tool_color(true, colors_before(c, l) + d), hunch_engine_drafter_name(c->variants[l].engine, d),
                   tool_style(true, '0'));
    putchar('\n');
}

void tool_report_show(const tool_comparison *c, size_t prompt) {
    enum { TITLE = 120 };
    bool color = tool_colors(c->o.color, stdout);
    tool_pane *panes = tool_alloc((size_t)c->n_variants, sizeof *panes);
    tool_ends *ends = tool_alloc((size_t)c->n_variants, sizeof *ends);
    char *titles = tool_alloc((size_t)c->n_variants, TITLE), **made = tool_alloc((size_t)c->n_variants, sizeof *made);
    for (int l = 0; l < c->n_variants; l++) {
        const tool_answer *a = tool_answer_of(c, l, prompt);
        title_write(titles + l * TITLE, TITLE, c, l, prompt);
        panes[l] = (tool_pane){titles + l * TITLE, a->text, a->text_len, &ends[l], a->drafter_of,
                               colors_before(c, l)};
        if (a->text)
            tool_ends_update(&ends[l], c->model, a->tokens, a->n);
        else
            panes[l].text = made[l] = ids_text(a, &ends[l], &panes[l].len);
    }
    tool_panes_print(panes, c->n_variants, color);
    legend_print(c, color);
    putchar('\n');
    for (int l = 0; l < c->n_variants; l++) {
        hn_free(made[l]);
        tool_ends_fini(&ends[l]);
    }
    hn_free(made);
    hn_free(titles);
    hn_free(ends);
    hn_free(panes);
}
