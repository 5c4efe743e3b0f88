/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - `hunch plan`: what speculation would give; prints the library's plan (hunch_plan) as tables and words, or draws it
 * (tool_plan_plot.c). Prompts are read as compare reads them. */
#include "cli/show/tool_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "app/tool_commands.h"
#include "cli/tool_grammar.h"
#include "app/tool_open.h"
#include "cli/tool_render.h"
#include "cli/tool_row_keys.h"

enum { DEFAULT_TOKENS = 200 };

typedef struct plan {
    tool_options o;
    tool_prompts prompts;
    tool_grammar grammar;
    tool_method *methods;    /* [o.drafts.n] */
    hunch_method *method;    /* the same for the library */
    hunch_request *requests; /* [prompts.n] */
    hunch_model *model;
    hunch_figures figures;
    hunch_plan_options how;
} plan;

/* ---- a machine that is not here ------------------------------------------------------------------------------------------ */

/* "8B", "36e9", "2.5G": whether it is a number, up to the end or a comma. */
static bool number_read(const char *text, double *out, const char **end) {
    static const char units[] = "kKmMgGbBtT";
    static const double of[] = {1e3, 1e3, 1e6, 1e6, 1e9, 1e9, 1e9, 1e9, 1e12, 1e12};
    char *after;
    *out = strtod(text, &after);
    const char *unit = *after ? strchr(units, *after) : NULL;
    if (unit) {
        *out *= of[unit - units];
        after++;
    }
    *end = after;
    return after > text && isfinite(*out) && *out > 0 && (*after == 0 || *after == ',');
}

/* NAME=NUMBER of two names, in any order; returns where they are other ones, NULL: they are not. */
static const char *pair_read(const char *text, const char *const names[2], double *const to[2]) {
    while (*text) {
        const size_t first = strlen(names[0]), second = strlen(names[1]);
        const bool is_first = !strncmp(text, names[0], first), is_second = !strncmp(text, names[1], second);
        const char *end;
        if ((!is_first && !is_second) || !number_read(text + (is_first ? first : second), to[is_second], &end)) return text;
        text = *end ? end + 1 : end;
    }
    return NULL;
}

static int machine_read(hunch_figures *f, const char *text) {
    const char *wrong = pair_read(text, (const char *const[]){"bandwidth=", "peak="}, (double *const[]){&f->bandwidth, &f->int8_mac_s});
    if (wrong)
        return tool_usage("--machine: %s: expected bandwidth=BYTES/S,peak=INT8_MAC/S, such as bandwidth=36e9,peak=470e9", wrong);
    if (f->bandwidth <= 0 || f->int8_mac_s <= 0)
        return tool_usage("--machine needs bandwidth=BYTES/S and peak=INT8_MAC/S, of all cores");
    return 0;
}

static int links_read(plan *p) {
    hunch_plan_options *how = &p->how;
    if (p->o.machines < 2) return p->o.link ? tool_usage("--link needs --machines") : 0;
    how->machines = p->o.machines;
    how->link_latency = 50e-6;
    how->link_bytes_s = 3.1e9;
    const char *wrong = !p->o.link ? NULL : pair_read(p->o.link, (const char *const[]){"latency=", "bandwidth="},
                                                      (double *const[]){&how->link_latency, &how->link_bytes_s});
    return wrong ? tool_usage("--link: %s: expected latency=SECONDS,bandwidth=BYTES/S, such as latency=50e-6,bandwidth=3.1e9", wrong) : 0;
}

static int figures_read(plan *p) {
    const tool_options *o = &p->o;
    const char *end;
    if (!o->figures)
        return o->parameters || o->figures_type
                   ? tool_usage("%s needs --machine", o->parameters ? "--parameters" : "--type")
                   : 0;
    int code = machine_read(&p->figures, o->figures);
    if (code) return code;
    if (o->parameters && (!number_read(o->parameters, &p->figures.parameters, &end) || *end))
        return tool_usage("--parameters %s: expected a number, such as 8B or 600M", o->parameters);
    if (!o->parameters == !o->model)
        return tool_usage("--machine needs %s",
                          o->model ? "a config.json or --parameters, not both" : "a config.json, or --parameters N");
    p->figures.config = o->model;
    p->figures.type = o->figures_type;
    p->how.figures = &p->figures;
    return 0;
}

/* ---- prompts and methods --------------------------------------------------------------------------------------------------- */

static bool has_prompts(const tool_options *o) {
    return o->prompt || o->file || o->tokens_file;
}

static int request_make(plan *p, size_t i, const hunch_request *base) {
    hunch_error err = {0};
    const tool_prompt *from = &p->prompts.items[i];
    hunch_request *r = &p->requests[i];
    *r = *base;
    tool_row_request(r, from);
    if (r->max_tokens <= 0) r->max_tokens = base->max_tokens;
    r->prompt_only = r->prompt_logprobs = false;
    r->pooling = HUNCH_POOL_NONE;
    return tool_grammar_open(&r->grammar, &p->grammar, from->settings, p->model, from->chat, from->thinks, &err)
               ? tool_failed(&err)
               : 0;
}

static int requests_make(plan *p) {
    tool_template t;
    hunch_request base;
    int code = tool_template_open(&t, &p->o);
    if (!code) code = tool_template_check(&t, p->model);
    for (size_t i = 0; i < p->prompts.n && !code; i++) code = tool_prompt_ids(&p->prompts.items[i], p->model, &t);
    tool_template_fini(&t);
    if (code) return code;
    tool_request_init(&base, p->model, &p->o, DEFAULT_TOKENS);
    p->requests = tool_alloc(p->prompts.n, sizeof *p->requests);
    for (size_t i = 0; i < p->prompts.n && !code; i++) code = request_make(p, i, &base);
    p->how.requests = p->requests;
    p->how.n_requests = (int)p->prompts.n;
    return code;
}

static void methods_make(plan *p) {
    const int n = p->o.drafts.n;
    p->methods = tool_alloc((size_t)n, sizeof *p->methods);
    p->method = tool_alloc((size_t)n, sizeof *p->method);
    for (int i = 0; i < n; i++) {
        tool_method_init(&p->methods[i], &p->o.drafts.items[i], 1);
        p->method[i] = (hunch_method){p->methods[i].text, p->methods[i].drafts, p->methods[i].n_drafts};
    }
    p->how.methods = p->method;
    p->how.n_methods = n;
}

/* ---- showing ------------------------------------------------------------------------------------------------------------------ */

static double real_of(const json_t *j, const char *key) {
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text_of(const json_t *j, const char *key) {
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "";
}

/* What a text takes beside the weights. */
static void text_memory_show(const json_t *model) {
    char text[160], row[32];
    printf("%s", tool_cache_text(real_of(model, "cache_row_bytes"), real_of(model, "cache_window_row_bytes"),
                                 real_of(model, "state_bytes"), text, sizeof text));
    if (real_of(model, "input_bytes") > 0)
        printf(", and %s of each of its last rows", tool_size_text(real_of(model, "input_bytes"), row));
    printf("\n");
}

static void machine_show(const json_t *d, bool color) {
    const json_t *m = json_object_get(d, "machine"), *model = json_object_get(d, "model");
    const bool measured = json_is_true(json_object_get(m, "measured"));
    printf("%s%s%s", tool_style(color, 'b'),
           measured ? text_of(m, "cpu") : "A machine that is not here: all is predicted from figures",
           tool_style(color, '0'));
    if (measured)
        printf(", %d threads, level %s", (int)json_integer_value(json_object_get(m, "threads")), text_of(m, "isa"));
    printf("\nreads %.1f GB/s · %.0f int8 GMAC/s · a pass of one row reads %.0f MB (%.1f bits a weight) and computes "
           "%.2f GMAC\n",
           real_of(m, "bandwidth") * 1e-9, real_of(m, "int8_mac_s") * 1e-9, real_of(model, "bytes") * 1e-6,
           real_of(model, "bits"), real_of(model, "macs") * 1e-9);
    if (real_of(model, "cache_row_bytes") > 0 || real_of(model, "state_bytes") > 0) text_memory_show(model);
    printf("\n");
}

static void curve_show(const json_t *d, bool color) {
    const json_t *curve = json_object_get(d, "curve"), *p;
    const double one = real_of(json_array_get(curve, 0), "ms");
    size_t i;
    printf("%s%6s %10s %8s %9s%s   passes after %lld rows\n", tool_style(color, 'b'), "rows", "ms", "t/t1", "limit ms",
           tool_style(color, '0'), (long long)json_integer_value(json_object_get(d, "context")));
    json_array_foreach(curve, i, p)
        printf("%6lld %10.2f %8.2f %9.2f\n", (long long)json_integer_value(json_object_get(p, "rows")),
               real_of(p, "ms"), real_of(p, "ms") / one, real_of(p, "limit_ms"));
    putchar('\n');
}

static void name_print(const json_t *name) {
    char *shown = hn_utf8_mask(tool_strdup(json_string_value(name)), ' ');
    printf("%s", shown);
    hn_free(shown);
}

static void method_show(const json_t *m, bool color) {
    const json_t *t = json_object_get(m, "leviathan"), *rates = json_object_get(m, "acceptance"), *x;
    const bool typical = json_is_string(json_object_get(m, "typical"));
    size_t i;
    printf("%s", tool_style(color, 'b'));
    name_print(json_object_get(m, "draft"));
    printf("%s: %.1f tokens/s, %.2f tokens a round", tool_style(color, '0'), real_of(m, "predicted_tok_s"),
           real_of(m, "tokens_a_round"));
    if (typical) printf(" (typical: %s)", text_of(m, "typical"));
    if (json_is_object(t))
        printf("\n    %.0f %% of the rounds draft, K %lld: a %.2f, c %.3f, v %.2f: factor %.2f, with v %.2f; "
               "operations %.2f",
               100 * real_of(t, "share"), (long long)json_integer_value(json_object_get(t, "depth")), real_of(t, "a"),
               real_of(t, "c"), real_of(t, "v"), real_of(t, "factor"), real_of(t, "factor_with_v"),
               real_of(t, "operations"));
    if (json_is_object(t))
        printf("\n    r %.2f of all drafts, c with verification %.3f; by a and c alone K %lld would be best", real_of(t, "r"),
               real_of(t, "whole_c"), (long long)json_integer_value(json_object_get(t, "best_depth")));
    if (!typical && json_array_size(rates) > 0) {
        printf("\n    right by depth:");
        json_array_foreach(rates, i, x) if (i < 8) printf(" %.2f", json_number_value(x));
    }
    putchar('\n');
}

/* Speeds of one method: a line a batch, a column a depth. */
static void table_show(const json_t *m) {
    const json_t *table = json_object_get(m, "table"), *x, *depth;
    long long batch = -1;
    size_t i;
    json_array_foreach(table, i, x) {
        const long long b = json_integer_value(json_object_get(x, "batch"));
        if (b != batch) printf("%s    batch %-3lld", batch < 0 ? "" : "\n", b);
        batch = b;
        depth = json_object_get(x, "depth");
        if (json_is_integer(depth))
            printf("  K%lld %.1f", (long long)json_integer_value(depth), real_of(x, "predicted_tok_s"));
        else
            printf("  as it runs %.1f", real_of(x, "predicted_tok_s"));
    }
    puts("\n");
}

static void advice_show(const json_t *d, bool color) {
    const json_t *list = json_object_get(d, "batches"), *a;
    size_t i;
    json_array_foreach(list, i, a) {
        printf("%sbatch %lld: %s%s\n    ", tool_style(color, 'b'),
               (long long)json_integer_value(json_object_get(a, "batch")), text_of(a, "recommend"),
               tool_style(color, '0'));
        name_print(json_object_get(a, "why"));
        printf("\n    what would help most: %s\n", text_of(a, "help"));
    }
}

/* A line for each number of machines that divide the model. */
static void machines_show(const json_t *d, bool color) {
    const json_t *list = json_object_get(d, "machines"), *m;
    size_t i;
    if (json_array_size(list) == 0) return;
    printf("\n%s%8s %10s %12s %12s %12s %6s%s\n", tool_style(color, 'b'), "machines", "pass ms", "of it links", "plain tok/s",
           "best tok/s", "gain", tool_style(color, '0'));
    json_array_foreach(list, i, m) {
        printf("%8lld %10.2f %12.2f %12.2f %12.2f %6.2f  ", (long long)json_integer_value(json_object_get(m, "machines")),
               real_of(m, "pass_ms"), real_of(m, "links_ms"), real_of(m, "plain_tok_s"), real_of(m, "predicted_tok_s"),
               real_of(m, "gain"));
        name_print(json_object_get(m, "draft"));
        const json_t *depth = json_object_get(m, "depth");
        if (json_is_integer(depth)) printf(", K%lld", (long long)json_integer_value(depth));
        putchar('\n');
    }
}

static void plan_show(const json_t *d, bool color) {
    const json_t *methods = json_object_get(d, "methods"), *m;
    size_t i;
    machine_show(d, color);
    curve_show(d, color);
    printf("%splain%s: %.1f tokens/s\n\n", tool_style(color, 'b'), tool_style(color, '0'),
           real_of(json_object_get(d, "plain"), "predicted_tok_s"));
    json_array_foreach(methods, i, m) {
        method_show(m, color);
        table_show(m);
    }
    advice_show(d, color);
    machines_show(d, color);
}

static int plan_output(const plan *p, const char *text) {
    json_t *d = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (!d) {
        tool_message("the plan is not valid JSON");
        return HUNCH_FAILED;
    }
    int code = p->o.svg ? tool_plan_plot(d, p->o.svg) : 0;
    if (!code && p->o.json) return tool_print_json(d);
    if (!code) plan_show(d, tool_colors(p->o.color, stdout));
    json_decref(d);
    return code ? code : tool_done(HUNCH_OK);
}

/* ---- the command --------------------------------------------------------------------------------------------------------------- */

static int inputs_open(plan *p) {
    int code = figures_read(p);
    if (!code) code = links_read(p);
    if (code) return code;
    if (p->how.figures && has_prompts(&p->o)) return tool_usage("--machine contradicts prompts: nothing runs there");
    if (!has_prompts(&p->o) || (code = tool_grammar_read(&p->grammar, &p->o)) ||
        (code = tool_prompts_read(&p->prompts, &p->o)))
        return code;
    return p->prompts.n == 0 ? tool_usage("%s: no prompt in it", p->o.file) : 0;
}

static int plan_run(plan *p) {
    hunch_engine_options engine;
    hunch_error err = {0};
    tool_progress bar;
    char *text = NULL;
    int code = inputs_open(p);
    if (!code && p->o.svg) code = tool_file_check(p->o.svg);
    if (!code && !p->how.figures) code = tool_model_open(&p->model, &p->o, NULL);
    if (!code && p->prompts.n > 0) code = requests_make(p);
    if (code) return code;
    if (p->o.drafts.n) methods_make(p);
    tool_engine_options(&engine, &p->o);
    p->how.engine = &engine;
    p->how.batch = p->o.batches.items;
    p->how.n_batch = p->o.batches.n;
    p->how.seconds = isnan(p->o.seconds) ? 0 : p->o.seconds;
    p->how.progress = tool_progress_bytes;
    p->how.progress_user = &bar;
    tool_progress_begin(&bar, "measuring", NULL);
    const hunch_status st = hunch_plan(p->model, &p->how, &text, &err);
    tool_progress_end(&bar);
    code = st ? tool_failed(&err) : plan_output(p, text);
    hunch_free(text);
    return code;
}

static void plan_fini(plan *p) {
    for (int i = 0; p->methods && i < p->o.drafts.n; i++) tool_method_fini(&p->methods[i]);
    for (size_t i = 0; p->requests && i < p->prompts.n; i++) hunch_grammar_close(&p->requests[i].grammar);
    hn_free(p->methods);
    hn_free(p->method);
    hn_free(p->requests);
    hunch_model_close(&p->model);
    tool_grammar_fini(&p->grammar);
    tool_prompts_fini(&p->prompts);
    tool_options_fini(&p->o);
}

int tool_plan(int argc, char **argv) {
    plan p = {0};
    int code = tool_options_parse(&p.o, TOOL_PLAN, argc, argv);
    if (code >= 0) return code;
    hunch_plan_options_defaults(&p.how);
    code = plan_run(&p);
    plan_fini(&p);
    return code;
}
