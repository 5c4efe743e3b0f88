/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench.c - `hunch bench`: measures the machine's limits, and how close passes and plain generation come to them.
 *
 * Every figure is reported with the limit measured at the same time: max(bytes / read bandwidth, MACs / the peak of
 * their arithmetic), where bytes are the weights and the K/V that a pass must read, once. The parts: tool_bench.h. */

#include "base/least.h"
#include "cli/tool_bench.h"
#include "app/tool_commands.h"

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int wrong_flags(const bench *b) {
    const tool_options *o = &b->o;
    const char *const to[] = {o->json_to, o->csv_to, o->svg};
    int standard = 0;
    for (int i = 0; i < 3; i++)
        standard += to[i] && tool_is_standard(to[i]);
    if (standard > 1)
        return tool_usage("bench: give one of --json, --csv and --svg on standard output, or --json=FILE");
    if (o->machine + o->profile + o->requests > 1)
        return tool_usage("bench: --machine, --profile and --requests are different measurements: give one");
    if (o->svg && (o->machine || o->profile || o->requests))
        return tool_usage("bench: --svg plots passes, which --machine, --profile and --requests do not measure");
    if (o->requests && (o->json_to || o->csv_to))
        return tool_usage("bench: --requests answers in lines of its own, not in JSON or CSV");
    if (o->machine && b->name)
        return tool_usage("bench: --machine measures no model: leave %s out, or --machine", b->name);
    return 0;
}

/* Rows that a sequence must hold for everything that is measured. */
static int context_needed(const bench *b) {
    const int most = b->o.context != TOOL_UNSET ? b->o.context : b->info.context;
    int context = BENCH_PREFILL + BENCH_DECODE;
    if (b->o.requests)
        context = b->o.context != TOOL_UNSET ? b->o.context : 8192 + BENCH_MOST_ROWS;
    for (int i = 0; i < b->n_passes; i++)
        context = hn_most(context, b->passes[i].context + BENCH_MOST_ROWS);
    return hn_least(context, most);
}

static int bench_open(bench *b) {
    int code = tool_model_open(&b->model, &b->o, &b->load_s);
    if (code)
        return code;
    hunch_model_get_info(b->model, &b->info);
    if (!b->o.requests && bench_passes_plan(b) == 0)
        return tool_usage("no pass to measure: the contexts asked for and their rows must fit into %d",
                          b->info.context);
    const int context = context_needed(b);
    bench_plain *p = &b->plain;
    p->new_tokens = context < 4 * BENCH_DECODE ? (context + 3) / 4 : BENCH_DECODE;
    p->prompt = hn_least(context - p->new_tokens, BENCH_PREFILL);
    p->context = p->prompt + p->new_tokens / 2;
    b->parallel = b->o.parallel == TOOL_UNSET ? 1 : b->o.parallel;
    b->o.no_prefix_reuse = true; /* every turn of a measurement reads the same prompt */
    return tool_engine_open(&b->engine, b->model, &b->o, NULL, context, b->parallel);
}

static int meter_open(bench *b) {
    hunch_model_options o;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.isa = b->o.isa;
    if (b->o.threads != TOOL_UNSET)
        o.threads = b->o.threads;
    if (hunch_meter_open(&b->meter, b->model, &o, &err) != HUNCH_OK)
        return tool_failed(&err);
    b->busy = bench_busy();
    if (b->busy > 0.05)
        tool_message("other processes use %.0f %% of this machine's processors: the figures are less reliable",
                     b->busy * 100);
    return 0;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int measure_machine(bench *b) {
    int code = meter_open(b);
    if (!code)
        code = bench_machine_peaks(b);
    return code ? code : bench_machine_reads(b);
}

/* The machine's peaks are measured before and after: load of other processes during one of them must not lower the
 * limits. */
static int measure_model(bench *b) {
    int code = meter_open(b);
    if (!code)
        code = bench_machine_peaks(b);
    if (!code && b->o.profile)
        return bench_profiles_measure(b);
    if (!code)
        code = bench_plain_measure(b);
    if (!code)
        code = bench_passes_measure(b);
    if (!code)
        code = bench_machine_peaks(b);
    if (!code)
        bench_fractions(b);
    return code;
}

static int bench_run(bench *b) {
    b->name = b->o.model;
    int code = wrong_flags(b);
    if (code)
        return code;
    code = bench_files_check(b);
    if (code)
        return code;
    b->turns = b->o.quick ? 3 : BENCH_MOST_TURNS;
    if (!b->o.machine && (code = bench_open(b)))
        return code;
    if (b->o.requests)
        return bench_requests_serve(b);
    tool_interrupts_catch();
    code = b->o.machine ? measure_machine(b) : measure_model(b);
    return code ? code : bench_files(b);
}

int tool_bench(int argc, char **argv) {
    bench b = {0};
    int code = tool_options_parse(&b.o, TOOL_BENCH, argc, argv);
    if (code >= 0)
        return code;
    code = bench_run(&b);
    hn_free(b.passes);
    hn_free(b.profiles);
    hn_free(b.reads);
    hn_free(b.read_gb_s);
    hunch_meter_close(&b.meter);
    hunch_engine_close(&b.engine);
    hunch_model_close(&b.model);
    tool_options_fini(&b.o);
    return code;
}
