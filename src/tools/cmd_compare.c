/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compare.c - `hunch compare`: plain generation against each method, in one process, on engines of their own over
 * one model.
 *
 * All answer the same prompts with the same seed and take turns: a slice brings every one of them to the next multiple
 * of 16 tokens (ending with the first round that reaches it), the order rotating from slice to slice, so that a
 * machine that slows down or speeds up does so for all. A drafted round may go past a slice's end; the pairing then
 * takes the share of that round that lies before it (tool_trace_at), so that both sides are timed over the same tokens,
 * and nothing is lost: the rest of the round belongs to the next slice. */
#include <math.h>
#include <stdlib.h>

#include "tool_commands.h"
#include "tool_compare.h"

enum { SLICE = 16, DEFAULT_TOKENS = 200 };

/* ---- opening ------------------------------------------------------------------------------------------------- */

static int prompts_open(tool_comparison *c) {
    int code = tool_prompts_read(&c->prompts, &c->o);
    if (code)
        return code;
    if (c->prompts.n == 0)
        return tool_usage("%s: no prompt in it", c->o.file);
    if ((code = tool_model_open(&c->model, &c->o, NULL)))
        return code;
    hunch_model_get_info(c->model, &c->info);
    for (size_t i = 0; i < c->prompts.n; i++)
        if ((code = tool_prompt_ids(&c->prompts.items[i], c->model, !c->o.raw)))
            return code;
    return 0;
}

/* Rows that the longest answer needs, so that many engines do not each plan for the model's whole context. */
static int context_choose(const tool_comparison *c, int max_tokens, int *out) {
    enum { SPARE = 64 }; /* a draft may look beyond the last token */
    size_t longest = 0;
    for (size_t i = 0; i < c->prompts.n; i++)
        if (c->prompts.items[i].n_ids > longest)
            longest = c->prompts.items[i].n_ids;
    size_t most = c->o.context != TOOL_UNSET ? (size_t)c->o.context : (size_t)c->info.context;
    if (longest > most)
        return tool_usage("a prompt of %zu tokens is longer than the context of %zu", longest, most);
    size_t need = longest + (size_t)max_tokens + SPARE;
    *out = (int)(c->o.context != TOOL_UNSET || need > most ? most : need);
    return 0;
}

static int lanes_open(tool_comparison *c, int parallel, int max_tokens) {
    static const char *const by_default[] = {"auto"};
    int methods = c->o.drafts.n ? c->o.drafts.n : 1, context = 0, code = context_choose(c, max_tokens, &context);
    const char *const *specs = c->o.drafts.n ? c->o.drafts.items : by_default;
    c->n_lanes = methods + 1;
    c->lanes = tool_alloc((size_t)c->n_lanes, sizeof *c->lanes);
    for (int i = 0; i < c->n_lanes && !code; i++) {
        tool_lane *l = &c->lanes[i];
        if (i > 0)
            tool_method_init(&l->method, &specs[i - 1], 1);
        code = tool_engine_open(&l->engine, c->model, &c->o, i > 0 ? &l->method : NULL, context, parallel);
    }
    return code;
}

/* ---- generating ---------------------------------------------------------------------------------------------- */

/* Brings all lanes to `tokens` tokens; turn rotates who goes first. */
static int slice_run(tool_comparison *c, size_t tokens, size_t turn) {
    int code = 0;
    for (int i = 0; i < c->n_lanes && !code; i++)
        code = tool_lane_advance(&c->lanes[(turn + (size_t)i) % (size_t)c->n_lanes], tokens);
    return code;
}

static bool all_finished(const tool_comparison *c) {
    bool finished = true;
    for (int i = 0; i < c->n_lanes; i++)
        finished = finished && tool_lane_finished(&c->lanes[i]);
    return finished;
}

static int batch_generate(tool_comparison *c, size_t first, int n, int max_tokens, tool_progress *bar) {
    int code = slice_run(c, 1, first); /* reads the prompts */
    for (size_t slice = 1; !code && !all_finished(c); slice++) {
        code = slice_run(c, slice * SLICE, first + slice);
        double part = (double)(slice * SLICE) / max_tokens;
        tool_progress_at(bar, ((double)first + n * (part < 1 ? part : 1)) / (double)c->prompts.n);
    }
    return code;
}

static int batch_run(tool_comparison *c, const hunch_request *base, size_t first, int n, tool_progress *bar) {
    hunch_request *requests = tool_alloc((size_t)n, sizeof *requests);
    int code = 0;
    for (int i = 0; i < n; i++) {
        requests[i] = *base;
        requests[i].prompt = c->prompts.items[first + (size_t)i].ids;
        requests[i].n_prompt = c->prompts.items[first + (size_t)i].n_ids;
    }
    for (int l = 0; l < c->n_lanes && !code; l++) {
        if (c->o.cold)
            hunch_engine_forget(c->lanes[l].engine);
        code = tool_lane_begin(&c->lanes[l], requests, n);
    }
    if (!code)
        code = batch_generate(c, first, n, base->max_tokens, bar);
    for (int l = 0; l < c->n_lanes; l++)
        tool_lane_end(&c->lanes[l], code ? NULL : &c->answers[(size_t)l * c->prompts.n + first]);
    free(requests);
    return code;
}

/* Answers all prompts. An interrupt leaves the batches that were complete. */
static int prompts_run(tool_comparison *c, int parallel, const hunch_request *base) {
    tool_progress bar;
    tool_progress_begin(&bar, "comparing");
    tool_interrupts_catch();
    c->answers = tool_alloc((size_t)c->n_lanes * c->prompts.n, sizeof *c->answers);
    int code = 0;
    while (c->n_done < c->prompts.n && !code) {
        size_t left = c->prompts.n - c->n_done;
        int n = left < (size_t)parallel ? (int)left : parallel;
        code = batch_run(c, base, c->n_done, n, &bar);
        if (code)
            break;
        c->n_done += (size_t)n;
        if (c->o.show && !c->o.json) {
            tool_progress_end(&bar);
            for (size_t i = c->n_done - (size_t)n; i < c->n_done; i++)
                tool_report_show(c, i);
            tool_flush();
        }
    }
    tool_progress_end(&bar);
    return code;
}

/* ---- judging ------------------------------------------------------------------------------------------------- */

static size_t first_difference(const tool_answer *a, const tool_answer *b) {
    size_t i = 0;
    while (i < a->n && i < b->n && a->tokens[i] == b->tokens[i])
        i++;
    return i;
}

static void duel_judge(tool_duel *d, const tool_answer *plain, const tool_answer *drafted, tool_pairs *all) {
    tool_pairs slices = {0};
    d->difference = first_difference(plain, drafted);
    d->identical = plain->n == drafted->n && d->difference == plain->n;
    d->tokens = tool_traces_pair(&plain->trace, &drafted->trace, SLICE, &slices, &d->plain_s, &d->drafted_s);
    d->ratio = d->drafted_s > 0 ? d->plain_s / d->drafted_s : NAN;
    d->tau = drafted->rounds ? ((double)drafted->n - 1) / (double)drafted->rounds : NAN;
    tool_pairs_interval(&slices, &d->low, &d->high);
    for (size_t i = 0; i < slices.n; i++)
        tool_pairs_add(all, slices.plain[i], slices.drafted[i]);
    tool_pairs_fini(&slices);
}

static double lane_speed(const tool_lane *l) {
    return l->timed_s > 0 ? l->timed_tokens / l->timed_s : NAN;
}

void tool_verdict_init(tool_verdict *v, const tool_comparison *c, int lane) {
    *v = (tool_verdict){.draft = c->lanes[lane].method.text, .identical = true,
                        .duels = tool_alloc(c->n_done, sizeof *v->duels)};
    double *ratios = tool_alloc(c->n_done, sizeof *ratios), plain_s = 0, drafted_s = 0, tokens = 0;
    tool_pairs all = {0};
    size_t n = 0;
    for (size_t i = 0; i < c->n_done; i++) {
        tool_duel *d = &v->duels[i];
        const tool_answer *a = tool_answer_of(c, lane, i);
        duel_judge(d, tool_answer_of(c, 0, i), a, &all);
        if (isfinite(d->ratio))
            ratios[n++] = d->ratio;
        if (!d->identical && v->identical) {
            v->identical = false;
            v->first_different = i;
        }
        plain_s += d->plain_s;
        drafted_s += d->drafted_s;
        tokens += a->rounds ? (double)a->n - 1 : 0;
        v->rounds += a->rounds;
        v->drafted += a->drafted;
        v->accepted += a->accepted;
        v->depth_drafted += a->depth_drafted;
    }
    v->ratio = tool_median(ratios, n);
    v->ratio_total = drafted_s > 0 ? plain_s / drafted_s : NAN;
    v->tau = v->rounds ? tokens / (double)v->rounds : NAN;
    v->acceptance = v->drafted ? (double)v->accepted / (double)v->drafted : NAN;
    v->tok_s = lane_speed(&c->lanes[lane]);
    v->plain_tok_s = lane_speed(&c->lanes[0]);
    tool_pairs_interval(&all, &v->low, &v->high);
    tool_pairs_fini(&all);
    free(ratios);
}

void tool_verdict_fini(tool_verdict *v) {
    free(v->duels);
    *v = (tool_verdict){0};
}

static int comparison_report(const tool_comparison *c) {
    int methods = c->n_lanes - 1;
    tool_verdict *verdicts = tool_alloc((size_t)methods, sizeof *verdicts);
    for (int i = 0; i < methods; i++)
        tool_verdict_init(&verdicts[i], c, i + 1);
    int code = c->o.json ? tool_report_json(c, verdicts) : tool_report_table(c, verdicts);
    for (int i = 0; i < methods; i++)
        tool_verdict_fini(&verdicts[i]);
    free(verdicts);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int comparison_run(tool_comparison *c) {
    int code = prompts_open(c);
    if (code)
        return code;
    if (c->o.stops.n && !c->info.has_tokenizer)
        return tool_usage("the model has no tokenizer: --stop cannot be used");
    hunch_request base;
    tool_request_init(&base, c->model, &c->o, DEFAULT_TOKENS);
    c->seed = base.sampling.seed;
    int parallel = c->o.parallel == TOOL_UNSET ? 1 : c->o.parallel;
    if ((code = lanes_open(c, parallel, base.max_tokens)))
        return code;
    code = prompts_run(c, parallel, &base);
    if (code && code != HUNCH_CANCELLED)
        return code;
    int reported = comparison_report(c);
    return code ? code : reported;
}

static void comparison_fini(tool_comparison *c) {
    for (size_t i = 0; c->answers && i < (size_t)c->n_lanes * c->prompts.n; i++)
        tool_answer_fini(&c->answers[i]);
    free(c->answers);
    for (int i = 0; i < c->n_lanes; i++)
        tool_lane_fini(&c->lanes[i]);
    free(c->lanes);
    hunch_model_close(&c->model);
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
