/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compare.c - `hunch compare`: plain generation against each method, in one process, on engines of their own over
 * one model.
 *
 * All answer the same prompts with the same seed and take turns: a slice brings every one of them to the next multiple
 * of 16 tokens (ending with the first round that reaches it), the order rotating from slice to slice, so that a
 * machine that slows down or speeds up does so for all. A drafted round may go past a slice's end; the pairing then
 * takes the share of that round that lies before it (tool_trace_at), so that both sides are timed over the same tokens,
 * and nothing is lost: the rest of the round belongs to the next slice.
 *
 * With --repeat or --until-width a prompt is answered several times in a row and its slices are pooled. Each repetition begins with empty
 * stores, so that no method has seen the answer before. */
#include <math.h>

#include "base/least.h"
#include "app/tool_commands.h"
#include "cli/show/tool_compare.h"
#include "cli/tool_record.h"
#include "cli/tool_render.h"
#include "cli/tool_row_keys.h"

enum { DEFAULT_TOKENS = 200, DEFAULT_REPEATS = 32 };

/* ---- opening ------------------------------------------------------------------------------------------------- */

static int prompts_render(tool_comparison *c, const tool_template *t) {
    int code = tool_prompts_read(&c->prompts, &c->o);
    if (code)
        return code;
    if (c->prompts.n == 0)
        return tool_usage("%s: no prompt in it", c->o.file);
    if ((code = tool_model_open(&c->model, &c->o, NULL)))
        return code;
    hunch_model_get_info(c->model, &c->info);
    code = tool_template_check(t, c->model);
    for (size_t i = 0; i < c->prompts.n && !code; i++)
        code = tool_prompt_ids(&c->prompts.items[i], c->model, t);
    return code;
}

static int prompts_open(tool_comparison *c) {
    tool_template t;
    int code = tool_template_open(&t, &c->o);
    if (!code)
        code = prompts_render(c, &t);
    tool_template_fini(&t);
    return code;
}

/* Maximum tokens of a prompt's answer. For a row without a limit it is max_tokens. */
static int tokens_of(const tool_prompt *p, int max_tokens) {
    hunch_request r = {.max_tokens = max_tokens};
    tool_row_request(&r, p);
    return r.max_tokens > 0 ? r.max_tokens : max_tokens;
}

/* Rows that the longest answer needs, so that many engines do not each plan for the model's whole context. */
static int context_choose(const tool_comparison *c, int max_tokens, int *out) {
    enum { SPARE = 64 }; /* a draft may look beyond the last token */
    size_t most = c->o.context != TOOL_UNSET ? (size_t)c->o.context : (size_t)c->info.context;
    const tool_prompt *longest = &c->prompts.items[0];
    for (size_t i = 1; i < c->prompts.n; i++)
        if (c->prompts.items[i].n_ids > longest->n_ids)
            longest = &c->prompts.items[i];
    char where[1100], advice[80];
    if (longest->n_ids > most)
        return tool_usage("%sa prompt of %zu tokens is longer than the context of %zu: %s",
                          tool_prompt_where(longest, where, sizeof where), longest->n_ids, most,
                          tool_context_advice(c->model, longest->n_ids, "--context ", advice));
    size_t need = 0;
    for (size_t i = 0; i < c->prompts.n; i++) {
        const size_t rows = c->prompts.items[i].n_ids + (size_t)tokens_of(&c->prompts.items[i], max_tokens) + SPARE;
        need = hn_most_size(rows, need);
    }
    *out = (int)(c->o.context != TOOL_UNSET ? most : hn_least_size(need, most));
    return 0;
}

static int variants_open(tool_comparison *c, int parallel, int max_tokens) {
    int methods = c->o.drafts.n ? c->o.drafts.n : 1, context = 0, code = context_choose(c, max_tokens, &context);
    c->n_variants = methods + 1;
    c->variants = tool_alloc((size_t)c->n_variants, sizeof *c->variants);
    for (int i = 0; i < c->n_variants && !code; i++) {
        tool_variant *l = &c->variants[i];
        l->trees = i > 0 && (c->o.trees || c->o.record);
        if (i > 0)
            tool_method_init(&l->method, c->o.drafts.n ? &c->o.drafts.items[i - 1] : NULL, c->o.drafts.n ? 1 : 0);
        code = tool_engine_open(&l->engine, c->model, &c->o, i > 0 ? &l->method : NULL, context, parallel);
    }
    return code;
}

/* ---- generating ---------------------------------------------------------------------------------------------- */

/* Brings all variants to `tokens` tokens; turn rotates the variant that goes first. */
static int slice_run(tool_comparison *c, size_t tokens, size_t turn) {
    int code = 0;
    for (int i = 0; i < c->n_variants && !code; i++)
        code = tool_variant_advance(&c->variants[(turn + (size_t)i) % (size_t)c->n_variants], tokens);
    return code;
}

static bool all_finished(const tool_comparison *c) {
    bool finished = true;
    for (int i = 0; i < c->n_variants; i++)
        finished = finished && tool_variant_finished(&c->variants[i]);
    return finished;
}

typedef struct batch {
    hunch_request *requests; /* [n] */
    size_t first;            /* prompt */
    int n, repeat;           /* prompts; times they were answered */
    tool_progress *bar;
} batch;

static void batch_progress(const tool_comparison *c, const batch *b, double part) {
    double repeats = ((double)b->repeat + fmin(part, 1)) / c->repeats;
    tool_progress_at(b->bar, (double)b->first + b->n * repeats, (double)c->prompts.n);
}

static int batch_generate(tool_comparison *c, const batch *b) {
    size_t turn = b->first + (size_t)b->repeat;
    int code = slice_run(c, 1, turn); /* reads the prompts */
    for (int i = 0; i < c->n_variants && !code; i++)
        tool_drafters_note(c->variants[i].engine);
    for (size_t slice = 1; !code && !all_finished(c); slice++) {
        code = slice_run(c, slice * TOOL_SLICE, turn + slice);
        batch_progress(c, b, (double)(slice * TOOL_SLICE) / b->requests[0].max_tokens);
    }
    for (int i = 0; i < c->n_variants && !code; i++)
        tool_drafters_note(c->variants[i].engine);
    return code;
}

/* given: [n_variants][n]. */
static void answers_compare(tool_comparison *c, const batch *b, const tool_answer *given) {
    for (int l = 1; l < c->n_variants; l++)
        for (int i = 0; i < b->n; i++)
            tool_prompt_stats_add(tool_prompt_stats_of(c, l, b->first + (size_t)i), &given[i], &given[l * b->n + i]);
}

/* Keeps the first answers, to be shown. */
static void answers_keep(tool_comparison *c, const batch *b, tool_answer *given) {
    for (int l = 0; l < c->n_variants; l++)
        for (int i = 0; i < b->n; i++) {
            tool_answer *a = &given[l * b->n + i];
            if (b->repeat == 0)
                c->answers[(size_t)l * c->prompts.n + b->first + (size_t)i] = *a;
            else
                tool_answer_fini(a);
        }
}

static int batch_once(tool_comparison *c, const batch *b) {
    tool_answer *given = tool_alloc((size_t)c->n_variants * (size_t)b->n, sizeof *given);
    int code = 0;
    for (int l = 0; l < c->n_variants && !code; l++) {
        if (c->cold)
            hunch_engine_forget(c->variants[l].engine);
        code = tool_variant_begin(&c->variants[l], b->requests, b->n);
    }
    if (!code)
        code = batch_generate(c, b);
    for (int l = 0; l < c->n_variants; l++)
        tool_variant_end(&c->variants[l], code ? NULL : &given[l * b->n]);
    if (!code) {
        answers_compare(c, b, given);
        answers_keep(c, b, given);
    }
    hn_free(given);
    return code;
}

/* Whether every interval of the batch is narrow enough, or all repetitions are done. */
static bool batch_done(const tool_comparison *c, const batch *b) {
    if (b->repeat >= c->repeats)
        return true;
    if (isnan(c->o.until_width) || b->repeat == 0)
        return false;
    for (int l = 1; l < c->n_variants; l++)
        for (int i = 0; i < b->n; i++) {
            const tool_prompt_stats *d = tool_prompt_stats_of(c, l, b->first + (size_t)i);
            if (d->slices.n && !tool_prompt_stats_within(d, c->o.until_width))
                return false;
        }
    return true;
}

/* An interrupt between repetitions keeps those that are complete. */
static int batch_run(tool_comparison *c, const hunch_request *base, size_t first, int n, tool_progress *bar) {
    batch b = {.requests = tool_alloc((size_t)n, sizeof *b.requests), .first = first, .n = n, .bar = bar};
    hunch_error err = {0};
    int code = 0;
    for (int i = 0; i < n; i++) {
        const tool_prompt *p = &c->prompts.items[first + (size_t)i];
        b.requests[i] = *base;
        tool_row_request(&b.requests[i], p);
        b.requests[i].max_tokens = tokens_of(p, base->max_tokens);
        b.requests[i].prompt_only = b.requests[i].prompt_logprobs = false; /* answers are compared */
        b.requests[i].pooling = HUNCH_POOL_NONE;
        if (!code && tool_grammar_open(&b.requests[i].grammar, &c->grammar, p->settings, c->model, p->chat, p->thinks, &err))
            code = tool_failed(&err);
    }
    for (; !code && !batch_done(c, &b); b.repeat++)
        code = batch_once(c, &b);
    for (int i = 0; i < n; i++) hunch_grammar_close(&b.requests[i].grammar);
    if (!code || (code == HUNCH_CANCELLED && b.repeat > 1))
        c->n_done += (size_t)n;
    hn_free(b.requests);
    return code;
}

/* Answers all prompts. An interrupt keeps the batches that are complete. */
static int prompts_run(tool_comparison *c, int parallel, const hunch_request *base) {
    tool_progress bar;
    size_t all = (size_t)c->n_variants * c->prompts.n;
    tool_progress_begin(&bar, "comparing", "prompts");
    tool_interrupts_catch();
    c->answers = tool_alloc(all, sizeof *c->answers);
    c->stats = tool_alloc(all, sizeof *c->stats);
    int code = 0;
    while (c->n_done < c->prompts.n && !code) {
        size_t first = c->n_done, left = c->prompts.n - first;
        code = batch_run(c, base, first, (int)hn_least_size(left, (size_t)parallel), &bar);
        if (c->o.show && !c->o.json) {
            tool_progress_hide();
            for (; first < c->n_done; first++)
                tool_report_show(c, first);
            tool_flush();
        }
    }
    tool_progress_end(&bar);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int comparison_report(const tool_comparison *c) {
    int methods = c->n_variants - 1;
    tool_verdict *verdicts = tool_alloc((size_t)methods, sizeof *verdicts);
    for (int i = 0; i < methods; i++)
        verdicts[i] = tool_verdict_of(c, i + 1, NULL);
    int code = c->o.json ? tool_report_json(c, verdicts) : tool_report_table(c, verdicts);
    hn_free(verdicts);
    return code;
}

static int comparison_run(tool_comparison *c) {
    if (c->o.trees && !c->o.json)
        return tool_usage("--trees needs --json");
    int code = c->o.record ? tool_record_begin(&c->o) : 0;
    if (!code)
        code = tool_grammar_read(&c->grammar, &c->o);
    if (!code)
        code = prompts_open(c);
    if (code)
        return code;
    if (c->o.stops.n && !c->info.has_tokenizer)
        return tool_usage("the model has no tokenizer: --stop cannot be used");
    hunch_request base;
    tool_request_init(&base, c->model, &c->o, DEFAULT_TOKENS);
    base.one_token = c->o.record != NULL;
    c->seed = base.sampling.seed;
    c->repeats = c->o.repeat != TOOL_UNSET ? c->o.repeat : isnan(c->o.until_width) ? 1 : DEFAULT_REPEATS;
    c->cold = c->o.cold || c->repeats > 1;
    int parallel = c->o.parallel == TOOL_UNSET ? 1 : c->o.parallel;
    if ((code = variants_open(c, parallel, base.max_tokens)))
        return code;
    code = prompts_run(c, parallel, &base);
    if (code && code != HUNCH_CANCELLED)
        return code;
    int reported = c->o.record ? tool_record_write(c) : comparison_report(c);
    return code ? code : reported;
}

static void comparison_fini(tool_comparison *c) {
    for (size_t i = 0; c->answers && i < (size_t)c->n_variants * c->prompts.n; i++) {
        tool_answer_fini(&c->answers[i]);
        tool_prompt_stats_fini(&c->stats[i]);
    }
    hn_free(c->answers);
    hn_free(c->stats);
    for (int i = 0; i < c->n_variants; i++)
        tool_variant_fini(&c->variants[i]);
    hn_free(c->variants);
    hunch_model_close(&c->model);
    tool_grammar_fini(&c->grammar);
    tool_prompts_fini(&c->prompts);
    tool_options_fini(&c->o);
}

int tool_compare(int argc, char **argv) {
    tool_comparison c = {0};
    int code = tool_options_parse(&c.o, TOOL_COMPARE, argc, argv);
    if (code >= 0)
        return code;
    code = comparison_run(&c);
    comparison_fini(&c);
    return code;
}
