/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_model.c - see tool_bench.h: times of passes, of commits and of plain generation, as fractions of the limits. The row counts
 * take turns, so that a machine that changes its speed does so for all; each turn has the bandwidth measured in it. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/least.h"
#include "cli/tool_bench.h"

/* ---- passes -------------------------------------------------------------------------------------------------- */

static tool_ints or_default(tool_ints given, const int *items, int n) {
    return given.items ? given : (tool_ints){(int *)(uintptr_t)items, n};
}

int bench_passes_plan(bench *b) {
    static const int rows_all[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}, rows_few[] = {1, 2, 4, 8, 16, 32};
    static const int rows_profile[] = {1, 8}, contexts_all[] = {256, 2048, 8192};
    const tool_ints rows = b->o.profile ? or_default(b->o.rows, rows_profile, 2)
                           : b->o.quick ? or_default(b->o.rows, rows_few, 6)
                                        : or_default(b->o.rows, rows_all, 12);
    const tool_ints contexts = or_default(b->o.contexts, contexts_all, b->o.quick ? 1 : b->o.profile ? 2 : 3);
    const int most = b->o.context != TOOL_UNSET ? b->o.context : b->info.context;
    b->passes = tool_alloc((size_t)rows.n * (size_t)contexts.n, sizeof *b->passes);
    for (int c = 0; c < contexts.n; c++)
        for (int r = 0; r < rows.n; r++)
            if (contexts.items[c] <= most - rows.items[r])
                b->passes[b->n_passes++] = (bench_pass){.rows = rows.items[r], .context = contexts.items[c]};
    return b->n_passes;
}

/* One figure per turn: for a short pass the median of several, without the first. */
static int pass_turn(bench *b, int rows, int context, double *seconds) {
    enum { MOST = 16 };
    const double enough = 0.05;
    double s[MOST];
    hunch_error err = {0};
    int reps = 1;
    if (hunch_measure_pass(b->engine, rows, context, 1, s, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (s[0] < enough)
        reps = (int)fmin(MOST, ceil(enough / fmax(s[0], 1e-9)));
    if (reps > 1 && hunch_measure_pass(b->engine, rows, context, reps, s, &err) != HUNCH_OK)
        return tool_failed(&err);
    *seconds = tool_median(s, (size_t)reps);
    return 0;
}

static void pass_fractions(const bench *b, bench_pass *p) {
    double limit[BENCH_MOST_TURNS], fraction[BENCH_MOST_TURNS], of_bandwidth[BENCH_MOST_TURNS];
    const size_t n = (size_t)b->turns;
    for (int t = 0; t < b->turns; t++) {
        limit[t] = bench_limit(b, &p->work, p->read_gb_s[t]);
        fraction[t] = limit[t] / p->seconds[t];
        of_bandwidth[t] = (p->work.weight_bytes + p->work.kv_bytes) / p->seconds[t] / (p->read_gb_s[t] * 1e9);
    }
    p->s = tool_spread_of(p->seconds, n);
    p->limit_s = tool_median(limit, n);
    p->fraction = tool_median(fraction, n);
    p->of_bandwidth = tool_median(of_bandwidth, n);
}

static int context_turn(bench *b, int first, int end, int turn, double *one_row) {
    const int context = b->passes[first].context;
    double gb_s;
    int code = bench_machine_turn(b, &gb_s);
    if (!code)
        code = pass_turn(b, 1, context, one_row);
    for (int i = first; i < end && !code; i++) {
        bench_pass *p = &b->passes[i];
        p->read_gb_s[turn] = gb_s;
        if (p->rows == 1)
            p->seconds[turn] = *one_row;
        else
            code = pass_turn(b, p->rows, context, &p->seconds[turn]);
        p->experts = p->rows == 1 ? b->info.experts_used : hunch_measure_experts(b->engine);
    }
    return code ? code : tool_interrupted ? HUNCH_CANCELLED : 0;
}

/* All passes of one context, adjacent in the list: [first, end). */
static int context_measure(bench *b, int first, int end, tool_progress *bar) {
    double one_row[BENCH_MOST_TURNS], warm[1];
    hunch_error err = {0};
    const int context = b->passes[first].context;
    if (hunch_measure_pass(b->engine, 1, context, 1, warm, &err) != HUNCH_OK) /* reads the context */
        return tool_failed(&err);
    int code = 0;
    const double begun = hn_now();
    for (int turn = 0; turn < b->turns && !code; turn++) {
        code = context_turn(b, first, end, turn, &one_row[turn]);
        const double left = (hn_now() - begun) / (turn + 1) * (b->turns - turn - 1);
        if (turn == 0 && left > 20)
            tool_message("passes after %d rows: about %.0f s", context, left);
        tool_progress_at(bar, first + (double)(end - first) * (turn + 1) / b->turns, b->n_passes);
    }
    for (int i = first; i < end && !code; i++) {
        hunch_engine_work(b->engine, b->passes[i].rows, b->passes[i].rows, context, &b->passes[i].work);
        b->passes[i].work.weight_bytes += (b->passes[i].experts - b->info.experts_used) * (double)b->info.expert_bytes;
        b->passes[i].one_row_s = tool_median(one_row, (size_t)b->turns);
    }
    return code;
}

/* A commit of half of each pass's rows, after its context: the cost of rolling back the rest. */
static int commits_measure(bench *b) {
    enum { TIMES = 28 };
    hunch_error err = {0};
    for (int i = 0; i < b->n_passes; i++) {
        double s[TIMES];
        bench_pass *p = &b->passes[i];
        p->commit = (p->rows + 1) / 2;
        if (hunch_measure_commit(b->engine, p->rows, p->commit, p->context, TIMES, s, &err) != HUNCH_OK)
            return tool_failed(&err);
        p->commit_s = tool_median(s, TIMES);
    }
    return 0;
}

/* Drafts of 8 rows and of 16, as in a large tree, of which few, some and all are kept. They take turns, so that other load affects all of
 * them. After the first context. */
static int rollbacks_measure(bench *b) {
    enum { TURNS = 9 };
    static const int rows[] = {8, 16}, commits[][3] = {{1, 3, 8}, {1, 6, 16}};
    double s[BENCH_ROLLBACKS][TURNS];
    hunch_error err = {0};
    const int context = b->n_passes > 0 ? b->passes[0].context : 0;
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3 && context + rows[r] < hunch_engine_context(b->engine); k++)
            b->rollback[b->n_rollbacks++] =
                (bench_rollback){.rows = rows[r], .commit = commits[r][k], .context = context};
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < b->n_rollbacks; i++) {
            const bench_rollback *p = &b->rollback[i];
            if (hunch_measure_rollback(b->engine, p->rows, p->commit, p->context, 1, &s[i][turn], &err) != HUNCH_OK)
                return tool_failed(&err);
        }
    for (int i = 0; i < b->n_rollbacks; i++)
        b->rollback[i].seconds = tool_median(s[i], TURNS);
    return 0;
}

int bench_passes_measure(bench *b) {
    tool_progress bar;
    tool_progress_begin(&bar, "measuring passes", NULL);
    int code = 0;
    for (int first = 0, end; first < b->n_passes && !code; first = end) {
        for (end = first; end < b->n_passes && b->passes[end].context == b->passes[first].context; end++)
            continue;
        code = context_measure(b, first, end, &bar);
    }
    tool_progress_end(&bar);
    if (!code)
        code = commits_measure(b);
    return code ? code : rollbacks_measure(b);
}

/* ---- plain generation ---------------------------------------------------------------------------------------- */

/* One run of `parallel` sequences at once: tokens a second over all of them, prompt and generation apart. */
static int plain_turn(bench *b, hunch_session **s, const hunch_request *r, int turn) {
    hunch_error err = {0};
    double prefill_s = 0, decode_s = 0, decoded = 0;
    int code = bench_machine_turn(b, &b->plain.read_gb_s[turn]);
    for (int i = 0; i < b->parallel && !code; i++)
        if (hunch_session_open(&s[i], b->engine, r, &err) != HUNCH_OK)
            code = tool_failed(&err);
    while (!code && hunch_engine_running(b->engine) > 0) {
        if (tool_interrupted)
            code = HUNCH_CANCELLED;
        else if (hunch_engine_round(b->engine, &err) != HUNCH_OK)
            code = tool_failed(&err);
    }
    for (int i = 0; i < b->parallel && !code; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        if (st.finish == HUNCH_FINISH_FAILED)
            return tool_failed(&st.error);
        prefill_s += st.prefill_s;
        decode_s += st.decode_s;
        decoded += (double)st.n_tokens - 1;
    }
    b->plain.prefill_tok_s[turn] = prefill_s > 0 ? (double)r->n_prompt * b->parallel / prefill_s : NAN;
    b->plain.decode_tok_s[turn] = decode_s > 0 ? decoded / decode_s : NAN;
    return code;
}

/* Sums over chunks: each reads the weights again. */
static double prefill_limit(const bench *b, double read_gb_s) {
    const int chunk = hunch_engine_chunk(b->engine), n = b->plain.prompt;
    double seconds = 0;
    for (int at = 0; at < n; at += chunk) {
        hunch_work w;
        const int rows = hn_least(n - at, chunk);
        hunch_engine_work(b->engine, rows, at + rows == n, at, &w);
        seconds += bench_limit(b, &w, read_gb_s);
    }
    return n / seconds;
}

static void plain_fractions(bench *b) {
    bench_plain *p = &b->plain;
    double limit[2][BENCH_MOST_TURNS], reached[2][BENCH_MOST_TURNS], of_bandwidth[BENCH_MOST_TURNS];
    const size_t n = (size_t)b->turns;
    hunch_work *w = &p->work;
    hunch_engine_work(b->engine, 1, 1, p->context, w);
    w->kv_bytes *= b->parallel; /* the weights are read once for all */
    w->macs_int8 *= b->parallel;
    w->macs_bf16 *= b->parallel;
    w->macs_f32 *= b->parallel;
    for (int t = 0; t < b->turns; t++) {
        limit[0][t] = prefill_limit(b, p->read_gb_s[t]);
        limit[1][t] = b->parallel / bench_limit(b, w, p->read_gb_s[t]);
        reached[0][t] = p->prefill_tok_s[t] / limit[0][t];
        reached[1][t] = p->decode_tok_s[t] / limit[1][t];
        of_bandwidth[t] = (w->weight_bytes + w->kv_bytes) * p->decode_tok_s[t] / b->parallel / (p->read_gb_s[t] * 1e9);
    }
    p->prefill = tool_spread_of(p->prefill_tok_s, n);
    p->decode = tool_spread_of(p->decode_tok_s, n);
    p->prefill_limit_tok_s = tool_median(limit[0], n);
    p->decode_limit_tok_s = tool_median(limit[1], n);
    p->prefill_fraction = tool_median(reached[0], n);
    p->decode_fraction = tool_median(reached[1], n);
    p->of_bandwidth = tool_median(of_bandwidth, n);
}

int bench_plain_measure(bench *b) {
    bench_plain *p = &b->plain;
    hunch_token *prompt = tool_alloc((size_t)p->prompt, sizeof *prompt);
    hunch_session **s = tool_alloc((size_t)b->parallel, sizeof *s);
    for (int i = 0; i < p->prompt; i++) /* any text costs the same */
        prompt[i] = (hunch_token)(((int64_t)i * 7919 + 1) % b->info.vocab);
    hunch_request r;
    hunch_request_defaults(&r, b->model);
    r.prompt = prompt;
    r.n_prompt = (size_t)p->prompt;
    r.max_tokens = p->new_tokens;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    tool_progress bar;
    tool_progress_begin(&bar, "measuring generation", NULL);
    int code = 0;
    for (int turn = 0; turn < b->turns && !code; turn++) {
        code = plain_turn(b, s, &r, turn);
        for (int i = 0; i < b->parallel; i++)
            hunch_session_close(&s[i]);
        tool_progress_at(&bar, turn + 1, b->turns);
    }
    tool_progress_end(&bar);
    hn_free(s);
    hn_free(prompt);
    return code;
}

/* ---- fractions of the limits ----------------------------------------------------------------------------------- */

void bench_fractions(bench *b) {
    plain_fractions(b);
    for (int i = 0; i < b->n_passes; i++)
        pass_fractions(b, &b->passes[i]);
}
