/* SPDX-License-Identifier: Apache-2.0 */
/* tool_open.c - see tool_open.h. */
#include "app/tool_open.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "app/tool_drafts.h"
#include "app/tool_flags.h"
#include "app/tool_machines.h"

int tool_model_missing(void) {
    return tool_usage(
        "MODEL is missing: a GGUF file, a Hugging Face folder or the name of a download (hunch help models)");
}

int tool_text_open(hunch_model **out, const tool_options *o) {
    if (!o->model)
        return tool_model_missing();
    hunch_model_options mo;
    hunch_model_options_defaults(&mo);
    mo.text_only = true;
    hunch_error err = {0};
    return hunch_model_open(out, o->model, &mo, &err) == HUNCH_OK ? 0 : tool_failed(&err);
}

/* Reports tensors that are not used: they may be the reason for choosing the file, such as a projector of images or
 * layers for drafting. */
static void unused_note(const hunch_model *m, const char *name) {
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    if (info.n_unused)
        tool_message("%s: %d tensor%s not used: %s", name, info.n_unused, info.n_unused == 1 ? " is" : "s are",
                     info.unused);
}

/* Reports the memory that the model needs, if not all of it is in memory or standard error is a terminal. */
static void plan_note(const hunch_model *m, const tool_options *o) {
    hunch_model_info info;
    char rows[160];
    uint64_t window;
    hunch_model_get_info(m, &info);
    if (!info.mapped_bytes && !tool_is_terminal(stderr))
        return;
    const uint64_t row = hunch_model_row_bytes(m, o->kv == TOOL_UNSET ? HUNCH_KV_DEFAULT : (hunch_kv)o->kv, &window);
    tool_cache_text((double)row, (double)window, (double)info.state_bytes, rows, sizeof rows);
    if (info.mapped_bytes)
        tool_message("%s: %.1f MB of %s stay mapped in the file, %.1f MB are in memory; %s", o->model,
                     (double)info.mapped_bytes / 1e6, o->mapped ? "weights" : "experts",
                     (double)info.memory_bytes / 1e6, rows);
    else
        tool_message("%s: %.1f MB of weights in memory; %s", o->model, (double)info.memory_bytes / 1e6, rows);
}

int tool_model_open(hunch_model **out, const tool_options *o, double *load_s) {
    if (!o->model)
        return tool_model_missing();
    tool_progress bar;
    tool_progress_begin(&bar, "loading", "B");
    hunch_model_options mo;
    hunch_model_options_defaults(&mo);
    if (o->threads != TOOL_UNSET)
        mo.threads = o->threads;
    if (o->isa)
        mo.isa = o->isa;
    mo.device = o->device;
    if (o->precision != TOOL_UNSET)
        mo.precision = (hunch_precision)o->precision;
    mo.mapped = o->mapped;
    mo.mapped_experts = o->mapped_experts;
    mo.grammar_bytes = o->grammar_bytes;
    mo.progress = tool_progress_bytes;
    mo.progress_user = &bar;
    hunch_error err = {0};
    double begun = hn_now();
    hunch_status st = hn_machines_model_open(out, tool_machines(), o->model, &mo, &err);
    tool_progress_end(&bar);
    if (load_s)
        *load_s = hn_now() - begun;
    if (st != HUNCH_OK)
        return tool_failed(&err);
    if (!tool_quiet) {
        unused_note(*out, o->model);
        plan_note(*out, o);
    }
    return 0;
}

/* The + that ends a SPEC; NULL: it is the last. Within a path or a value a + is part of it, unless a kind follows. */
static char *spec_end(char *spec) {
    const char *behind_kind = spec + strcspn(spec, ":=/");
    tool_draft_kind k;
    for (char *plus = spec; (plus = strchr(plus, '+')); plus++)
        if (plus < behind_kind || tool_draft_kind_find(plus + 1, strcspn(plus + 1, ":,+"), &k))
            return plus;
    return NULL;
}

void tool_method_init(tool_method *m, const char *const *specs, int n) {
    static const char *const by_default[] = {"auto"};
    if (n == 0) {
        specs = by_default;
        n = 1;
    }
    size_t len = 0, parts = 0;
    for (int i = 0; i < n; i++) {
        len += strlen(specs[i]) + 1;
        parts++;
        for (const char *c = specs[i]; *c; c++)
            parts += *c == '+';
    }
    *m = (tool_method){.text = tool_alloc(len + 1, 1),
                       .copy = tool_alloc(len + 1, 1),
                       .drafts = tool_alloc(parts, sizeof *m->drafts)};
    char *at = m->copy;
    for (int i = 0; i < n; i++) {
        strcat(m->text, i ? "+" : "");
        strcat(m->text, specs[i]);
        strcpy(at, specs[i]);
        for (char *plus; (plus = spec_end(at)); at = plus + 1) {
            m->drafts[m->n_drafts++] = at;
            *plus = 0;
        }
        m->drafts[m->n_drafts++] = at;
        at += strlen(at) + 1;
    }
}

void tool_method_fini(tool_method *m) {
    hn_free(m->text);
    hn_free(m->copy);
    hn_free(m->drafts);
    *m = (tool_method){0};
}

hunch_lossy tool_lossy(const tool_options *o) {
    if (!isnan(o->lossy_lenience))
        return (hunch_lossy){HUNCH_LOSSY_LENIENCE, o->lossy_lenience, 0};
    if (!isnan(o->lossy_typical[0]))
        return (hunch_lossy){HUNCH_LOSSY_TYPICAL, o->lossy_typical[0], o->lossy_typical[1]};
    if (o->lossy_top_m != TOOL_UNSET)
        return (hunch_lossy){HUNCH_LOSSY_TOP_M, o->lossy_top_m, 0};
    return (hunch_lossy){HUNCH_LOSSLESS, 0, 0};
}

/* A pool holds at least one text of a whole context. Reported once, however many engines open. */
static void pool_note(const hunch_engine *e, const tool_options *o) {
    static bool printed;
    const int least = hunch_engine_context(e);
    if (o->pool_rows == TOOL_UNSET || o->pool_rows >= least || printed || tool_quiet)
        return;
    tool_message(
        "--pool-rows %d is taken as %d: one text of the whole context always fits (a smaller --context needs fewer)",
        o->pool_rows, least);
    printed = true;
}

/* A pass has a limit of rows. Reported once, too. */
static void chunk_note(const hunch_engine *e, const tool_options *o) {
    static bool printed;
    const int most = hunch_engine_chunk(e);
    if (o->chunk == TOOL_UNSET || o->chunk <= most || printed || tool_quiet)
        return;
    tool_message("--chunk %d is taken as %d, the most rows of a pass", o->chunk, most);
    printed = true;
}

/* Prints a line, once for all engines. */
static void print_once(const char *line) {
    static char *printed;
    if (tool_quiet || (printed && strstr(printed, line)))
        return;
    char *all = tool_alloc((printed ? strlen(printed) : 0) + strlen(line) + 2, 1);
    sprintf(all, "%s%s\n", printed ? printed : "", line);
    hn_free(printed);
    printed = all;
    tool_message("%s", line);
}

void tool_drafters_note(const hunch_engine *e) {
    for (int i = 0; i < hunch_engine_drafters(e); i++)
        if (hunch_engine_drafter_about(e, i))
            print_once(hunch_engine_drafter_about(e, i));
    for (int i = 0; hunch_engine_note(e, i); i++)
        print_once(hunch_engine_note(e, i));
}

void tool_engine_options(hunch_engine_options *eo, const tool_options *o) {
    hunch_engine_options_defaults(eo);
    eo->verify = o->verify != TOOL_UNSET ? (hunch_verify)o->verify : HUNCH_VERIFY_DEFAULT;
    eo->lossy = tool_lossy(o);
    if (o->context != TOOL_UNSET)
        eo->context = o->context;
    if (o->kv != TOOL_UNSET)
        eo->kv = (hunch_kv)o->kv;
    if (o->depth != TOOL_UNSET)
        eo->draft_depth = o->depth;
    if (o->chunk != TOOL_UNSET)
        eo->chunk = o->chunk;
    if (o->max_pause != TOOL_UNSET)
        eo->max_pause = o->max_pause * 1e-3;
    if (o->pool_rows != TOOL_UNSET)
        eo->pool_rows = o->pool_rows;
    if (o->state_memory != TOOL_UNSET)
        eo->state_bytes = (uint64_t)o->state_memory * 1000000;
    eo->no_prefix_reuse = o->no_prefix_reuse;
    eo->pooling = o->pools;
    eo->kept_bytes = o->kept_bytes;
}

int tool_engine_open(hunch_engine **out, hunch_model *m, const tool_options *o, const tool_method *method, int context,
                     int parallel) {
    hunch_engine_options eo;
    tool_engine_options(&eo, o);
    if (method) {
        eo.drafts = method->drafts;
        eo.n_drafts = method->n_drafts;
    } else {
        eo.verify = HUNCH_VERIFY_DEFAULT;
        eo.lossy = (hunch_lossy){0};
    }
    if (context > 0)
        eo.context = context;
    eo.parallel = parallel;
    hunch_error err = {0};
    if (hunch_engine_open(out, m, &eo, &err) != HUNCH_OK)
        return tool_failed(&err);
    pool_note(*out, o);
    chunk_note(*out, o);
    return 0;
}

const char *tool_context_advice(const hunch_model *m, size_t tokens, const char *way, char *text) {
    enum { SIZE = 80 };
    hunch_model_info info;
    const int rows = hunch_model_context_for(m, tokens);
    hunch_model_get_info(m, &info);
    if (rows)
        snprintf(text, SIZE, "%s%d makes room", way, rows);
    else
        snprintf(text, SIZE, "the model takes %d at most", info.context);
    return text;
}

hunch_status tool_context_check(const hunch_engine *e, const hunch_model *m, size_t n, hunch_error *err) {
    const int context = hunch_engine_context(e);
    char advice[80];
    if (n <= (size_t)context)
        return HUNCH_OK;
    err->status = HUNCH_USAGE;
    snprintf(err->message, sizeof err->message, "prompt of %zu tokens is longer than the context of %d: %s", n, context,
             tool_context_advice(m, n, "--context ", advice));
    return HUNCH_USAGE;
}

/* Below 2^53, so that JSON readers that store numbers as doubles can return it. */
uint64_t tool_random_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)hn_now_ns();
    return seed >> 11;
}

/* The members of a request, and the options that set them. */
static const struct {
    enum tool_kind kind;
    size_t option, member;
} parameters[] = {
#define ROW(ID, MEMBER, KIND, ...) {TOOL_##KIND, offsetof(tool_options, ID), offsetof(hunch_request, MEMBER)},
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
};

/* What was given; lists, the seed and the length have more to them. */
static void parameters_set(hunch_request *r, const tool_options *o) {
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        const void *from = (const char *)o + parameters[i].option;
        void *to = (char *)r + parameters[i].member;
        switch (parameters[i].kind) {
        case TOOL_REAL:
        case TOOL_ABOVE:
            if (!isnan(*(const double *)from))
                *(double *)to = *(const double *)from;
            break;
        case TOOL_INT:
        case TOOL_CHOICE:
            if (*(const int *)from != TOOL_UNSET)
                *(int *)to = *(const int *)from;
            break;
        case TOOL_SWITCH:
            *(bool *)to = *(const bool *)from;
            break;
        case TOOL_TEXT:
            *(const char **)to = *(const char *const *)from;
            break;
        default:
            break;
        }
    }
}

void tool_request_init(hunch_request *r, const hunch_model *m, const tool_options *o, int default_n) {
    hunch_request_defaults(r, m);
    parameters_set(r, o);
    r->max_tokens = o->n == TOOL_UNSET ? default_n : o->n;
    if (o->command == TOOL_CHAT && !o->no_loop_guard)
        r->loop_tokens = HUNCH_LOOP_TOKENS;
    r->stop = o->stops.items;
    r->n_stop = o->stops.n;
    r->stop_tokens = o->stop_tokens.items;
    r->n_stop_tokens = o->stop_tokens.n;
    r->logprobs = o->logprobs != TOOL_UNSET;
    r->top_logprobs = r->logprobs ? o->logprobs : 0;
    hunch_sampling *s = &r->sampling;
    if (s->xtc_probability > 0)
        s->xtc_threshold = isnan(o->xtc_threshold) ? 0.1 : o->xtc_threshold;
    if (o->breakers.n) {
        s->dry_breakers = o->breakers.items;
        s->n_dry_breakers = o->breakers.n;
    }
    if (o->biases.n) {
        s->bias = o->biases.items;
        s->n_bias = o->biases.n;
    }
    s->seed = o->seed == TOOL_UNSET ? tool_random_seed() : (uint64_t)o->seed;
}

int tool_request_try(hunch_engine *e, const hunch_request *r) {
    static const hunch_token any[] = {0};
    hunch_request probe = *r;
    hunch_session *s = NULL;
    hunch_error err = {0};
    probe.prompt = any;
    probe.n_prompt = 1;
    probe.prediction = NULL;
    probe.n_prediction = 0;
    probe.max_tokens = 1;
    probe.min_tokens = 0;
    hunch_status status = hunch_session_open(&s, e, &probe, &err);
    hunch_session_close(&s);
    return status == HUNCH_OK ? 0 : tool_failed(&err);
}
