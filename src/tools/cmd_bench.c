/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench.c - `hunch bench`: what the machine allows, and what a pass and plain generation make of it.
 *
 * Every figure stands beside the limits of the same minute. Bytes of a pass = weights, read once, and the K/V of its
 * context; limit = max(bytes / read bandwidth, rows x MACs / int8 peak) / measured time of one row, attention's own MACs
 * not counted. Figures are medians of at least 7; the row counts take turns, so that a machine that changes its speed
 * does so for all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool_commands.h"
#include "tool_open.h"
#include "tool_stats.h"

enum { TURNS = 7, MOST_ROWS = 64, PREFILL = 512, DECODE = 64 };

typedef struct pass {
    int rows, context;
    double *seconds; /* [TURNS]: medians of the repetitions of a turn */
    double one_row;  /* median of one row at this context */
    double median, low, high, flatness, limit, of_bandwidth;
    int commit; /* rows kept by the commit that is measured beside it */
    double commit_s;
} pass;

typedef struct bench {
    tool_options o;
    hunch_model *model;
    hunch_engine *engine;
    hunch_model_info info;
    hunch_machine machine;
    double load_s;
    pass *passes;
    int n_passes, parallel;
    double kv_bytes;
    /* plain generation */
    double prefill_tok_s[TURNS], decode_tok_s[TURNS];
    int prompt, new_tokens, decode_context;
} bench;

static const int default_rows[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64};
static const int default_contexts[] = {256, 2048};

/* ---- what to measure ----------------------------------------------------------------------------------------- */

static void passes_plan(bench *b) {
    tool_ints rows = b->o.rows, contexts = b->o.contexts;
    if (!rows.items)
        rows = (tool_ints){(int *)(uintptr_t)default_rows, sizeof default_rows / sizeof *default_rows};
    if (!contexts.items)
        contexts = (tool_ints){(int *)(uintptr_t)default_contexts, sizeof default_contexts / sizeof *default_contexts};
    b->passes = tool_alloc((size_t)rows.n * (size_t)contexts.n, sizeof *b->passes);
    int most = b->o.context != TOOL_UNSET ? b->o.context : b->info.context;
    for (int c = 0; c < contexts.n; c++)
        for (int r = 0; r < rows.n; r++)
            if (contexts.items[c] <= most - rows.items[r])
                b->passes[b->n_passes++] = (pass){.rows = rows.items[r], .context = contexts.items[c],
                                                  .seconds = tool_alloc(TURNS, sizeof(double))};
}

static int bench_open(bench *b) {
    int code = tool_model_open(&b->model, &b->o, &b->load_s), context = 0;
    if (code)
        return code;
    hunch_model_get_info(b->model, &b->info);
    passes_plan(b);
    if (b->n_passes == 0)
        return tool_usage("no pass to measure: the contexts asked for and their rows must fit into %d", b->info.context);
    for (int i = 0; i < b->n_passes; i++)
        if (b->passes[i].context + MOST_ROWS > context)
            context = b->passes[i].context + MOST_ROWS;
    if (context < PREFILL + DECODE)
        context = PREFILL + DECODE;
    int most = b->o.context != TOOL_UNSET ? b->o.context : b->info.context;
    if (context > most)
        context = most;
    b->new_tokens = context < 4 * DECODE ? (context + 3) / 4 : DECODE;
    b->prompt = context - b->new_tokens < PREFILL ? context - b->new_tokens : PREFILL;
    b->parallel = b->o.parallel == TOOL_UNSET ? 1 : b->o.parallel;
    b->kv_bytes = tool_kv_bytes(&b->o);
    b->o.no_prefix_reuse = true; /* every turn of a measurement reads the same prompt */
    return tool_engine_open(&b->engine, b->model, &b->o, NULL, context, b->parallel);
}

/* ---- passes -------------------------------------------------------------------------------------------------- */

static double bytes_of(const bench *b, double context) {
    return (double)b->info.weight_bytes + (double)hunch_model_kv_elements(b->model, (int)context) * b->kv_bytes;
}

/* Median of a turn: one pass, or as many as fit into a few milliseconds. */
static int pass_turn(bench *b, int rows, int context, double *seconds) {
    enum { MOST = 16 };
    double s[MOST];
    hunch_error err = {0};
    int reps = 1;
    if (hunch_measure_pass(b->engine, rows, context, 1, s, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (s[0] < 0.005)
        reps = (int)fmin(MOST, 0.01 / fmax(s[0], 1e-9));
    if (reps > 1 && hunch_measure_pass(b->engine, rows, context, reps, s, &err) != HUNCH_OK)
        return tool_failed(&err);
    *seconds = tool_median(s, (size_t)reps);
    return 0;
}

static void pass_judge(const bench *b, pass *p) {
    double bandwidth = b->machine.read_gb_s * 1e9, peak = b->machine.int8_gmac_s * 1e9;
    double bytes = bytes_of(b, p->context);
    p->median = tool_median(p->seconds, TURNS);
    p->low = tool_quantile(p->seconds, TURNS, 0);
    p->high = tool_quantile(p->seconds, TURNS, 1);
    p->flatness = p->median / p->one_row;
    p->of_bandwidth = bytes / p->median / bandwidth;
    p->limit = fmax(bytes / bandwidth, p->rows * b->info.macs_per_row / peak) / p->one_row;
}

/* All passes of one context, which stand side by side in the list: [first, end). */
static int context_measure(bench *b, int first, int end, tool_progress *bar) {
    double one_row[TURNS];
    int code = 0, context = b->passes[first].context;
    for (int turn = 0; turn < TURNS && !code; turn++) {
        code = pass_turn(b, 1, context, &one_row[turn]);
        for (int i = first; i < end && !code; i++) {
            if (b->passes[i].rows == 1)
                b->passes[i].seconds[turn] = one_row[turn];
            else
                code = pass_turn(b, b->passes[i].rows, context, &b->passes[i].seconds[turn]);
        }
        tool_progress_at(bar, (first + (double)(end - first) * (turn + 1) / TURNS) / b->n_passes);
        if (!code && tool_interrupted)
            code = HUNCH_CANCELLED;
    }
    for (int i = first; i < end && !code; i++)
        b->passes[i].one_row = tool_median(one_row, TURNS);
    return code;
}

/* A commit of half of each pass's rows, behind its context: what rolling back the rest costs. */
static int rollbacks_measure(bench *b) {
    hunch_error err = {0};
    for (int i = 0; i < b->n_passes; i++) {
        double s[4 * TURNS];
        pass *p = &b->passes[i];
        p->commit = (p->rows + 1) / 2;
        if (hunch_measure_commit(b->engine, p->rows, p->commit, p->context, 4 * TURNS, s, &err) != HUNCH_OK)
            return tool_failed(&err);
        p->commit_s = tool_median(s, 4 * TURNS);
    }
    return 0;
}

static void passes_judge(bench *b) {
    for (int i = 0; i < b->n_passes; i++)
        pass_judge(b, &b->passes[i]);
}

static int passes_measure(bench *b) {
    tool_progress bar;
    tool_progress_begin(&bar, "measuring passes");
    int code = 0;
    for (int first = 0, end; first < b->n_passes && !code; first = end) {
        for (end = first; end < b->n_passes && b->passes[end].context == b->passes[first].context; end++)
            continue;
        code = context_measure(b, first, end, &bar);
    }
    tool_progress_end(&bar);
    return code;
}

/* ---- plain generation ---------------------------------------------------------------------------------------- */

/* One run of `parallel` sequences at once: tokens a second over all of them, prompt and generation apart. */
static int plain_turn(bench *b, hunch_session **s, const hunch_request *r, int turn) {
    hunch_error err = {0};
    double prefill_s = 0, decode_s = 0, decoded = 0;
    for (int i = 0; i < b->parallel; i++)
        if (hunch_session_open(&s[i], b->engine, r, &err) != HUNCH_OK)
            return tool_failed(&err);
    while (hunch_engine_running(b->engine) > 0) {
        if (tool_interrupted)
            return HUNCH_CANCELLED;
        if (hunch_engine_round(b->engine, &err) != HUNCH_OK)
            return tool_failed(&err);
    }
    for (int i = 0; i < b->parallel; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        if (st.finish == HUNCH_FINISH_FAILED)
            return tool_failed(&st.error);
        prefill_s += st.prefill_s;
        decode_s += st.decode_s;
        decoded += (double)st.n_tokens - 1;
    }
    b->prefill_tok_s[turn] = prefill_s > 0 ? (double)r->n_prompt * b->parallel / prefill_s : NAN;
    b->decode_tok_s[turn] = decode_s > 0 ? decoded / decode_s : NAN;
    return 0;
}

static int plain_measure(bench *b) {
    hunch_token *prompt = tool_alloc((size_t)b->prompt, sizeof *prompt);
    hunch_session **s = tool_alloc((size_t)b->parallel, sizeof *s);
    for (int i = 0; i < b->prompt; i++) /* any text costs the same */
        prompt[i] = (hunch_token)(((int64_t)i * 7919 + 1) % b->info.vocab);
    hunch_request r;
    hunch_request_defaults(&r, b->model);
    r.prompt = prompt;
    r.n_prompt = (size_t)b->prompt;
    r.max_tokens = b->new_tokens;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    tool_progress bar;
    tool_progress_begin(&bar, "measuring generation");
    int code = 0;
    for (int turn = 0; turn < TURNS && !code; turn++) {
        code = plain_turn(b, s, &r, turn);
        for (int i = 0; i < b->parallel; i++)
            hunch_session_close(&s[i]);
        tool_progress_at(&bar, (turn + 1.0) / TURNS);
    }
    tool_progress_end(&bar);
    b->decode_context = b->prompt + b->new_tokens / 2; /* in the middle of the run */
    free(s);
    free(prompt);
    return code;
}

/* Share of the read bandwidth that decoding uses; with several sequences the weights are read once for all. */
static double decode_of_bandwidth(const bench *b) {
    double rounds_s = tool_median(b->decode_tok_s, TURNS) / b->parallel;
    double kv = (double)hunch_model_kv_elements(b->model, b->decode_context) * b->kv_bytes;
    return ((double)b->info.weight_bytes + kv * b->parallel) * rounds_s / (b->machine.read_gb_s * 1e9);
}

/* ---- output -------------------------------------------------------------------------------------------------- */

static json_t *spread_json(const double *values) {
    return json_pack("[o,o]", tool_json_real(tool_quantile(values, TURNS, 0)),
                     tool_json_real(tool_quantile(values, TURNS, 1)));
}

static json_t *passes_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_passes; i++) {
        const pass *p = &b->passes[i];
        json_array_append_new(list, json_pack("{s:i,s:i,s:o,s:[f,f],s:o,s:o,s:o}", "rows", p->rows, "context",
                                              p->context, "ms", tool_json_real(p->median * 1e3), "ms_spread",
                                              p->low * 1e3, p->high * 1e3, "flatness", tool_json_real(p->flatness),
                                              "of_bandwidth", tool_json_real(p->of_bandwidth), "limit",
                                              tool_json_real(p->limit)));
    }
    return list;
}

static json_t *rollbacks_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_passes; i++) {
        const pass *p = &b->passes[i];
        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:o}", "rows", p->rows, "commit", p->commit, "context",
                                              p->context, "ms", tool_json_real(p->commit_s * 1e3)));
    }
    return list;
}

static json_t *plain_json(const bench *b) {
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:i}", "prefill_tok_s",
                     tool_json_real(tool_median(b->prefill_tok_s, TURNS)), "prefill_spread",
                     spread_json(b->prefill_tok_s), "decode_tok_s", tool_json_real(tool_median(b->decode_tok_s, TURNS)),
                     "decode_spread", spread_json(b->decode_tok_s), "of_bandwidth",
                     tool_json_real(decode_of_bandwidth(b)), "weight_bytes", (json_int_t)b->info.weight_bytes,
                     "kv_bytes", (json_int_t)(bytes_of(b, b->decode_context) - (double)b->info.weight_bytes), "context",
                     b->decode_context);
}

static int bench_json(const bench *b) {
    return tool_print_json(json_pack(
        "{s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:i,s:s,s:o,s:o,s:o}", "cpu", b->machine.cpu, "isa", b->info.isa, "threads",
        b->info.threads, "read_gb_s", tool_json_real(b->machine.read_gb_s), "int8_gmac_s",
        tool_json_real(b->machine.int8_gmac_s), "barrier_us", tool_json_real(b->machine.barrier_us), "model",
        tool_json_text(b->o.model, strlen(b->o.model)), "load_s", tool_json_real(b->load_s), "parallel", b->parallel,
        "precision", b->o.precision == HUNCH_PRECISION_F32 ? "f32" : "native", "plain", plain_json(b), "pass",
        passes_json(b), "rollback", rollbacks_json(b)));
}

/* A text as one CSV field. */
static void csv_text(const char *s) {
    putchar('"');
    for (; *s; s++)
        printf(*s == '"' ? "\"\"" : "%c", *s);
    fputs("\",", stdout);
}

/* One line a figure, the machine on each, so that files of several machines can be joined. */
static void csv_line(const bench *b, const char *what, int rows, int context, const double figures[6]) {
    csv_text(b->machine.cpu);
    printf("%s,%d,%.2f,%.1f,", b->info.isa, b->info.threads, b->machine.read_gb_s, b->machine.int8_gmac_s);
    csv_text(b->o.model);
    printf("%s,%d,%d", what, rows, context);
    for (int i = 0; i < 6; i++)
        if (isfinite(figures[i]))
            printf(",%.6g", figures[i]);
        else
            putchar(',');
    putchar('\n');
}

static int bench_csv(const bench *b) {
    puts("cpu,isa,threads,read_gb_s,int8_gmac_s,model,what,rows,context,median,low,high,flatness,of_bandwidth,limit");
    const double prefill[6] = {tool_median(b->prefill_tok_s, TURNS), tool_quantile(b->prefill_tok_s, TURNS, 0),
                               tool_quantile(b->prefill_tok_s, TURNS, 1), NAN, NAN, NAN};
    const double decode[6] = {tool_median(b->decode_tok_s, TURNS), tool_quantile(b->decode_tok_s, TURNS, 0),
                              tool_quantile(b->decode_tok_s, TURNS, 1), NAN, decode_of_bandwidth(b), NAN};
    csv_line(b, "prefill_tok_s", b->o.chunk == TOOL_UNSET ? MOST_ROWS : b->o.chunk, b->prompt, prefill);
    csv_line(b, "decode_tok_s", b->parallel, b->decode_context, decode);
    for (int i = 0; i < b->n_passes; i++) {
        const pass *p = &b->passes[i];
        const double f[6] = {p->median * 1e3, p->low * 1e3, p->high * 1e3, p->flatness, p->of_bandwidth, p->limit};
        csv_line(b, "pass_ms", p->rows, p->context, f);
    }
    return tool_done(HUNCH_OK);
}

static int bench_table(const bench *b) {
    bool color = tool_colors(b->o.color, stdout);
    const char *bold = tool_style(color, 'b'), *off = tool_style(color, '0');
    printf("%s%s%s, %d threads, level %s: reads %.1f GB/s, int8 %.0f GMAC/s, barrier %.1f us\n", bold, b->machine.cpu,
           off, b->info.threads, b->info.isa, b->machine.read_gb_s, b->machine.int8_gmac_s, b->machine.barrier_us);
    printf("%s: %.1f M parameters, %.1f MB read a pass, loaded in %.2f s\n", b->o.model,
           (double)b->info.parameters / 1e6, (double)b->info.weight_bytes / 1e6, b->load_s);
    printf("prefill %.1f tokens/s (%.1f to %.1f) of %d tokens · decode %s%.1f tokens/s%s (%.1f to %.1f) at context %d, "
           "%.0f %% of the read bandwidth\n\n",
           tool_median(b->prefill_tok_s, TURNS), tool_quantile(b->prefill_tok_s, TURNS, 0),
           tool_quantile(b->prefill_tok_s, TURNS, 1), b->prompt, bold, tool_median(b->decode_tok_s, TURNS), off,
           tool_quantile(b->decode_tok_s, TURNS, 0), tool_quantile(b->decode_tok_s, TURNS, 1), b->decode_context,
           decode_of_bandwidth(b) * 100);
    printf("%s%8s %5s %9s %17s %9s %7s %14s %15s%s\n", bold, "context", "rows", "ms", "low to high", "flatness", "limit",
           "of bandwidth", "commit of half", off);
    for (int i = 0; i < b->n_passes; i++) {
        const pass *p = &b->passes[i];
        printf("%8d %5d %9.3f %8.3f-%8.3f %9.2f %7.2f %12.0f %% %12.3f ms\n", p->context, p->rows, p->median * 1e3,
               p->low * 1e3, p->high * 1e3, p->flatness, p->limit, p->of_bandwidth * 100, p->commit_s * 1e3);
    }
    return tool_done(HUNCH_OK);
}

/* ---- the command --------------------------------------------------------------------------------------------- */

/* Called before and after the measurements: what the machine can do is the best of both, so that somebody else's load
 * during one of them does not flatter the figures. */
static int machine_measure(bench *b) {
    hunch_machine now;
    hunch_error err = {0};
    if (hunch_measure_machine(b->model, &now, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (b->machine.read_gb_s > 0) {
        now.read_gb_s = fmax(now.read_gb_s, b->machine.read_gb_s);
        now.int8_gmac_s = fmax(now.int8_gmac_s, b->machine.int8_gmac_s);
        now.barrier_us = fmin(now.barrier_us, b->machine.barrier_us);
    }
    b->machine = now;
    return 0;
}

static int bench_run(bench *b) {
    if (b->o.json && b->o.csv)
        return tool_usage("bench: give one of --json and --csv");
    int code = bench_open(b);
    if (code)
        return code;
    if ((code = machine_measure(b)))
        return code;
    tool_interrupts_catch();
    if ((code = plain_measure(b)) || (code = passes_measure(b)) || (code = rollbacks_measure(b)) ||
        (code = machine_measure(b)))
        return code;
    passes_judge(b);
    return b->o.json ? bench_json(b) : b->o.csv ? bench_csv(b) : bench_table(b);
}

int tool_bench(int argc, char **argv) {
    bench b = {0};
    int code = tool_options_parse(&b.o, TOOL_BENCH, argc, argv);
    if (code >= 0)
        return code;
    code = bench_run(&b);
    for (int i = 0; i < b.n_passes; i++)
        free(b.passes[i].seconds);
    free(b.passes);
    hunch_engine_close(&b.engine);
    hunch_model_close(&b.model);
    tool_options_fini(&b.o);
    return code;
}
