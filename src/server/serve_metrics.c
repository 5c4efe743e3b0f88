/* SPDX-License-Identifier: Apache-2.0 */
/* serve_metrics.c - see serve_metrics.h. */
#include "server/serve_metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { MOST_BOUNDS = 20, MOST_DRAFTERS = 32, MOST_NAME = 64 };

enum { FIRST_TOKEN, PAUSE, A_TOKEN, WHOLE, QUEUED, PREFILL, DECODE, PROMPT, GENERATED, HISTOGRAMS };
static const struct {
    const char *name, *help;
    double bounds[MOST_BOUNDS]; /* upper ends; ends with 0 */
} histograms[HISTOGRAMS] = {
    [FIRST_TOKEN] = {"vllm:time_to_first_token_seconds", "From the arrival of a request to its first token.",
                     {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}},
    [PAUSE] = {"vllm:inter_token_latency_seconds", "Between two outputs of an answer.",
               {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}},
    [A_TOKEN] = {"vllm:request_time_per_output_token_seconds", "Mean time of a token of an answer after its first.",
                 {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}},
    [WHOLE] = {"vllm:e2e_request_latency_seconds", "From the arrival of a request to its end.",
               {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}},
    [QUEUED] = {"vllm:request_queue_time_seconds", "From the arrival of a request to its first session.",
                {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}},
    [PREFILL] = {"vllm:request_prefill_time_seconds", "Share of the rounds that read the prompt.",
                 {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}},
    [DECODE] = {"vllm:request_decode_time_seconds", "Share of the rounds that generated the answer.",
                {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}},
    [PROMPT] = {"vllm:request_prompt_tokens", "Tokens of a prompt.",
                {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}},
    [GENERATED] = {"vllm:request_generation_tokens", "Tokens of an answer.",
                   {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}},
};

/* Counters of the engine. */
#define AT(field) offsetof(hunch_engine_stats, field)
static const struct {
    const char *name, *help;
    size_t at;
} counters[] = {
    {"vllm:spec_decode_num_drafts_total", "Trees of drafts that were verified.", AT(drafts)},
    {"vllm:spec_decode_num_draft_tokens_total", "Drafted tokens that were verified.", AT(drafted)},
    {"vllm:spec_decode_num_accepted_tokens_total", "Drafted tokens that were accepted.", AT(accepted)},
    {"vllm:prompt_tokens_total", "Tokens of prompts.", AT(prompt_tokens)},
    {"vllm:generation_tokens_total", "Tokens of answers.", AT(tokens)},
    {"vllm:prefix_cache_queries_total", "Rows of prompts that were looked for among earlier ones.", AT(prefix_queries)},
    {"vllm:prefix_cache_hits_total", "Rows of prompts that were there.", AT(prefix_hits)},
    {"vllm:num_preemptions_total", "Times that a text gave up its memory, to be computed again.", AT(preemptions)},
    {"hunch:recomputed_rows_total", "Rows that were computed again for that.", AT(recomputed)},
    {"hunch:rounds_total", "Rounds of the engine.", AT(rounds)},
    {"hunch:rows_total", "Rows of its passes.", AT(rows)},
};
enum { COUNTERS = sizeof counters / sizeof *counters };

enum { STOP, LENGTH, ABORT, ERROR, REASONS };
static const char *const reasons[REASONS] = {"stop", "length", "abort", "error"};

struct serve_metrics {
    pthread_mutex_t lock;
    hunch_memory memory;
    hunch_engine_stats engine; /* but its drafters: */
    char name[MOST_DRAFTERS][MOST_NAME];
    uint64_t drafted[MOST_DRAFTERS], accepted[MOST_DRAFTERS];
    uint64_t reason[REASONS];
    struct {
        uint64_t bucket[MOST_BOUNDS], count;
        double sum;
    } histogram[HISTOGRAMS];
    uint64_t refused[600];
    int paused;
};

serve_metrics *serve_metrics_new(void) {
    serve_metrics *m = serve_alloc(1, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void serve_metrics_free(serve_metrics *m) {
    pthread_mutex_destroy(&m->lock);
    hn_free(m);
}

static void note(serve_metrics *m, int which, double value) {
    const double *bound = histograms[which].bounds;
    int i = 0;
    while (bound[i] != 0 && value > bound[i]) i++;
    m->histogram[which].bucket[i]++;
    m->histogram[which].count++;
    m->histogram[which].sum += value;
}

static int reason_of(const hunch_session_state *st) {
    return st->finish == HUNCH_FINISH_STOP || st->finish == HUNCH_FINISH_LOOP ? STOP
           : st->finish == HUNCH_FINISH_LENGTH || st->finish == HUNCH_FINISH_DEADLINE || st->finish == HUNCH_FINISH_GRAMMAR ? LENGTH
           : st->finish == HUNCH_FINISH_CANCELLED                                     ? ABORT
                                                                                      : ERROR;
}

void serve_metrics_engine(serve_metrics *m, const hunch_engine *e) {
    pthread_mutex_lock(&m->lock);
    hunch_engine_get_stats(e, &m->engine);
    hunch_engine_get_memory(e, &m->memory);
    if (m->engine.n_drafters > MOST_DRAFTERS) m->engine.n_drafters = MOST_DRAFTERS;
    for (int i = 0; i < m->engine.n_drafters; i++) {
        const char *name = hunch_engine_drafter_name(e, i);
        if (!m->name[i][0]) hn_utf8_mend(name, strlen(name), m->name[i], MOST_NAME - 1);
        m->drafted[i] = m->engine.drafter[i].drafted;
        m->accepted[i] = m->engine.drafter[i].accepted;
    }
    pthread_mutex_unlock(&m->lock);
}

static void choice_count(serve_metrics *m, const serve_call *call, const serve_choice *c) {
    const hunch_session_state *st = &c->end;
    m->reason[reason_of(st)]++;
    note(m, PREFILL, st->prefill_s);
    note(m, DECODE, st->decode_s);
    note(m, PROMPT, (double)st->n_prompt);
    note(m, GENERATED, (double)c->n_made);
    if (c->first_s) note(m, FIRST_TOKEN, c->first_s - call->received_s);
    if (c->n_made > 1) note(m, A_TOKEN, (c->last_s - c->first_s) / (double)(c->n_made - 1));
    if (c->last_s) note(m, WHOLE, c->last_s - call->received_s);
}

void serve_metrics_call(serve_metrics *m, const serve_call *c) {
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < c->n_choices; i++) choice_count(m, c, &c->choices[i]);
    if (c->opened_s) note(m, QUEUED, c->opened_s - c->received_s);
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_pause(serve_metrics *m, double seconds) {
    pthread_mutex_lock(&m->lock);
    note(m, PAUSE, seconds);
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_paused(serve_metrics *m, int n) {
    pthread_mutex_lock(&m->lock);
    m->paused = n;
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_refused(serve_metrics *m, int http) {
    pthread_mutex_lock(&m->lock);
    if (http >= 0 && http < 600) m->refused[http]++;
    pthread_mutex_unlock(&m->lock);
}

/* ---- the text ------------------------------------------------------------------------------------------------ */

/* A label's value: backslash, quote and line break are escaped. */
static void label_write(serve_bytes *out, const char *s) {
    for (; *s; s++) {
        if (*s == '\\' || *s == '"') serve_bytes_print(out, "\\%c", *s);
        else if (*s == '\n') serve_bytes_print(out, "\\n");
        else serve_bytes_print(out, "%c", *s);
    }
}

static void head_write(serve_bytes *out, const char *name, const char *help, const char *type) {
    serve_bytes_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* NAME{model_name="...",KEY="VALUE"} */
static void name_write(serve_bytes *out, const char *name, const char *model, const char *key, const char *value) {
    serve_bytes_print(out, "%s{model_name=\"", name);
    label_write(out, model);
    if (key) serve_bytes_print(out, "\",%s=\"%s", key, value);
    serve_bytes_print(out, "\"} ");
}

static void gauge_write(serve_bytes *out, const char *name, const char *help, const char *model, double value) {
    head_write(out, name, help, "gauge");
    name_write(out, name, model, NULL, NULL);
    serve_bytes_print(out, "%g\n", value);
}

static void histogram_write(const serve_metrics *m, int which, const char *model, serve_bytes *out) {
    const char *name = histograms[which].name;
    const double *bound = histograms[which].bounds;
    char part[100], le[40];
    uint64_t sum = 0;
    int i = 0;
    head_write(out, name, histograms[which].help, "histogram");
    snprintf(part, sizeof part, "%s_bucket", name);
    do {
        sum += m->histogram[which].bucket[i];
        snprintf(le, sizeof le, "%g", bound[i]);
        name_write(out, part, model, "le", bound[i] == 0 ? "+Inf" : le);
        serve_bytes_print(out, "%llu\n", (unsigned long long)sum);
    } while (bound[i++] != 0);
    snprintf(part, sizeof part, "%s_sum", name);
    name_write(out, part, model, NULL, NULL);
    serve_bytes_print(out, "%.9g\n", m->histogram[which].sum);
    snprintf(part, sizeof part, "%s_count", name);
    name_write(out, part, model, NULL, NULL);
    serve_bytes_print(out, "%llu\n", (unsigned long long)m->histogram[which].count);
}

static void counts_write(const char *name, const char *help, const char *key, const char *const *values, const uint64_t *counts,
                         int n, const char *model, serve_bytes *out) {
    char number[16];
    head_write(out, name, help, "counter");
    for (int i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%d", i);
        name_write(out, name, model, key, values ? values[i] : number);
        serve_bytes_print(out, "%llu\n", (unsigned long long)counts[i]);
    }
}

static void refused_write(const serve_metrics *m, const char *model, serve_bytes *out) {
    char number[16];
    head_write(out, "hunch:requests_refused_total", "Requests that were refused, by their status.", "counter");
    for (int i = 0; i < 600; i++) {
        if (!m->refused[i]) continue;
        snprintf(number, sizeof number, "%d", i);
        name_write(out, "hunch:requests_refused_total", model, "status", number);
        serve_bytes_print(out, "%llu\n", (unsigned long long)m->refused[i]);
    }
}

/* Depths at which something was accepted, or 1. */
static int positions(const serve_metrics *m) {
    int n = HUNCH_MAX_DEPTH;
    while (n > 1 && !m->engine.accepted_per_position[n - 1]) n--;
    return n;
}

static void engine_write(const serve_metrics *m, const char *model, int queued, serve_bytes *out) {
    const hunch_engine_stats *e = &m->engine;
    const char *names[MOST_DRAFTERS];
    gauge_write(out, "vllm:num_requests_running", "Texts that have a place.", model, e->running);
    gauge_write(out, "vllm:num_requests_waiting", "Requests in the queue, and texts that wait for a place.", model, queued + e->waiting);
    gauge_write(out, "hunch:answers_paused", "Answers that wait for their slow readers.", model, m->paused);
    gauge_write(out, "vllm:kv_cache_usage_perc", "Share of the cache's pages that texts hold, 0 to 1.", model,
                e->pages ? (double)e->pages_used / e->pages : 0);
    for (int i = 0; i < COUNTERS; i++) {
        head_write(out, counters[i].name, counters[i].help, "counter");
        name_write(out, counters[i].name, model, NULL, NULL);
        serve_bytes_print(out, "%llu\n", (unsigned long long)*(const uint64_t *)((const char *)e + counters[i].at));
    }
    counts_write("vllm:spec_decode_num_accepted_tokens_per_pos_total", "Accepted drafts by their depth.", "position", NULL,
                 e->accepted_per_position, positions(m), model, out);
    for (int i = 0; i < e->n_drafters; i++) names[i] = m->name[i];
    counts_write("hunch:drafted_tokens_total", "Verified drafts by drafter.", "drafter", names, m->drafted, e->n_drafters, model, out);
    counts_write("hunch:accepted_tokens_total", "Accepted drafts by drafter.", "drafter", names, m->accepted, e->n_drafters, model, out);
}

static void memory_write(const serve_metrics *m, const char *model, serve_bytes *out) {
    for (int taken = 0; taken < 2; taken++) {
        const char *name = taken ? "hunch:memory_taken_bytes" : "hunch:memory_planned_bytes";
        head_write(out, name, taken ? "Memory that each part has." : "Memory that each part may take.", "gauge");
        for (int i = 0; i < HUNCH_MEMORY_PARTS; i++) {
            const hunch_memory_part *part = &m->memory.part[i];
            name_write(out, name, model, "part", hunch_memory_part_name(i));
            serve_bytes_print(out, "%llu\n", (unsigned long long)(taken ? part->taken : part->planned));
        }
    }
}

void serve_metrics_write(serve_metrics *m, const char *model_name, int queued, serve_bytes *out) {
    pthread_mutex_lock(&m->lock);
    engine_write(m, model_name, queued, out);
    memory_write(m, model_name, out);
    counts_write("vllm:request_success_total", "Answers, by how they ended.", "finished_reason", reasons, m->reason, REASONS,
                 model_name, out);
    refused_write(m, model_name, out);
    for (int i = 0; i < HISTOGRAMS; i++) histogram_write(m, i, model_name, out);
    pthread_mutex_unlock(&m->lock);
}
