/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `hunch run`: generates from one prompt. Streams the text, coloured by who proposed each token, and ends
 * with a summary; or, with --json, gives one object that holds everything that happened. */
#include <math.h>
#include <stdlib.h>

#include "tool_commands.h"
#include "tool_open.h"
#include "tool_prompts.h"
#include "tool_show.h"

enum { DEFAULT_TOKENS = 512 };

typedef struct run {
    tool_options o;
    tool_method method;
    tool_prompts prompts;
    hunch_model *model;
    hunch_engine *engine;
    hunch_model_info info;
    hunch_request request;
    double load_s;
    bool color;
    tool_progress prefill;
} run;

/* What of a session was printed. */
typedef struct stream {
    size_t bytes, tokens;
    tool_ends ends; /* kept only when colours are on */
} stream;

/* ---- streaming ----------------------------------------------------------------------------------------------- */

static void stream_ids(stream *s, const run *r, const hunch_session_state *st) {
    for (; s->tokens < st->n_tokens; s->tokens++)
        printf("%s%s%d", s->tokens ? " " : "", tool_color(r->color, st->provenance[s->tokens]),
               (int)st->tokens[s->tokens]);
}

static void stream_text(stream *s, const run *r, const hunch_session_state *st) {
    if (!r->color) {
        fwrite(st->text + s->bytes, 1, st->text_len - s->bytes, stdout);
        s->bytes = st->text_len;
        return;
    }
    tool_ends_update(&s->ends, r->model, st->tokens, st->n_tokens, st->text_len);
    tool_text_colored(&s->ends, st->provenance, st->text, s->bytes, st->text_len);
    s->bytes = st->text_len;
}

static void stream_update(stream *s, const run *r, const hunch_session_state *st) {
    if (st->text)
        stream_text(s, r, st);
    else
        stream_ids(s, r, st);
    tool_flush();
}

/* ---- what came out ------------------------------------------------------------------------------------------- */

static const char *finish_name(hunch_finish f) {
    return f == HUNCH_FINISH_STOP ? "stop" : f == HUNCH_FINISH_LENGTH ? "length" : "cancelled";
}

static double per_second(double n, double seconds) {
    return seconds > 0 && n > 0 ? n / seconds : NAN;
}

static json_t *counts_json(const uint64_t *count, int n) {
    while (n > 0 && count[n - 1] == 0)
        n--;
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)count[i]));
    return list;
}

static json_t *timing_json(const run *r, const hunch_session_state *st) {
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "load_s", tool_json_real(r->load_s), "prefill_s",
                     tool_json_real(st->prefill_s), "decode_s", tool_json_real(st->decode_s), "prefill_tok_s",
                     tool_json_real(per_second((double)st->n_prompt, st->prefill_s)), "decode_tok_s",
                     tool_json_real(per_second((double)st->n_tokens - 1, st->decode_s)), "draft_s",
                     tool_json_real(st->draft_s), "verify_s", tool_json_real(st->verify_s));
}

static double tau_of(const hunch_session_state *st) {
    return st->rounds ? ((double)st->n_tokens - 1) / (double)st->rounds : NAN;
}

static json_t *run_json(const run *r, const hunch_session_state *st, uint64_t seed) {
    json_t *drafters = json_array(), *provenance = json_array();
    for (int i = 0; i < hunch_engine_drafters(r->engine); i++)
        json_array_append_new(drafters, json_string(hunch_engine_drafter_name(r->engine, i)));
    for (size_t i = 0; i < st->n_tokens; i++)
        json_array_append_new(provenance, json_integer(st->provenance[i]));
    json_t *out = json_pack(
        "{s:o,s:o,s:s,s:I,s:I,s:o,s:o,s:I,s:o,s:I,s:I,s:o,s:I}", "tokens", tool_json_ids(st->tokens, st->n_tokens),
        "text", st->text ? tool_json_text(st->text, st->text_len) : json_null(), "finish", finish_name(st->finish),
        "prompt_tokens", (json_int_t)st->n_prompt, "seed", (json_int_t)seed, "drafters", drafters, "provenance",
        provenance, "rounds", (json_int_t)st->rounds, "tau", tool_json_real(tau_of(st)), "drafted",
        (json_int_t)st->drafted, "accepted", (json_int_t)st->accepted, "accepted_per_position",
        counts_json(st->accepted_per_position, HUNCH_MAX_DEPTH), "depth_drafted", (json_int_t)st->depth_drafted);
    if (out) {
        json_object_set_new(out, "timing", timing_json(r, st));
        json_object_set_new(out, "peak_rss_mib", tool_json_real(tool_peak_mib()));
        json_object_set_new(out, "lossy", json_null());
    }
    return out;
}

static void summary_sources(const run *r, const hunch_session_state *st) {
    bool color = tool_colors(r->o.color, stderr);
    int n = hunch_engine_drafters(r->engine);
    fprintf(stderr, "tokens from: ");
    for (int d = -1; d < n; d++) {
        size_t count = 0;
        for (size_t i = 0; i < st->n_tokens; i++)
            count += st->provenance[i] == d;
        fprintf(stderr, "%s%s%s%s %zu", d >= 0 ? " · " : "", tool_color(color, d),
                d < 0 ? "the model" : hunch_engine_drafter_name(r->engine, d), tool_style(color, '0'), count);
    }
    fputc('\n', stderr);
}

static void summary_print(const run *r, const hunch_session_state *st) {
    fprintf(stderr, "\n%zu tokens, %.1f tokens/s · prompt %zu tokens, %.1f tokens/s · loaded in %.2f s\n", st->n_tokens,
            st->decode_s > 0 && st->n_tokens ? ((double)st->n_tokens - 1) / st->decode_s : 0, st->n_prompt,
            st->prefill_s > 0 ? (double)st->n_prompt / st->prefill_s : 0, r->load_s);
    if (st->rounds)
        fprintf(stderr, "acceptance length %.2f over %llu rounds · drafted %llu, accepted %llu\n", tau_of(st),
                (unsigned long long)st->rounds, (unsigned long long)st->drafted, (unsigned long long)st->accepted);
    summary_sources(r, st);
    fprintf(stderr, "finish %s · seed %llu · peak memory %.0f MiB\n", finish_name(st->finish),
            (unsigned long long)r->request.sampling.seed, tool_peak_mib());
}

/* ---- generation ---------------------------------------------------------------------------------------------- */

static void progress_update(run *r, hunch_session *const *s, int n) {
    hunch_session_state st;
    double done = 0, all = 0;
    for (int i = 0; i < n; i++) {
        hunch_session_get(s[i], &st);
        done += (double)st.n_prefilled;
        all += (double)st.n_prompt;
    }
    if (done < all)
        tool_progress_at(&r->prefill, done / all);
    else
        tool_progress_end(&r->prefill);
}

/* Rounds until all sessions have finished; Ctrl-C and a closed standard output cancel them. */
static int generate(run *r, hunch_session *const *s, int n, stream *to) {
    hunch_error err = {0};
    hunch_session_state st;
    tool_progress_begin(&r->prefill, "reading the prompt");
    while (hunch_engine_running(r->engine) > 0) {
        if (tool_interrupted || ferror(stdout))
            for (int i = 0; i < n; i++)
                hunch_session_cancel(s[i]);
        else if (hunch_engine_round(r->engine, &err) != HUNCH_OK)
            return tool_failed(&err);
        progress_update(r, s, n);
        if (to) {
            hunch_session_get(s[0], &st);
            stream_update(to, r, &st);
        }
    }
    tool_progress_end(&r->prefill);
    for (int i = 0; i < n; i++) {
        hunch_session_get(s[i], &st);
        if (st.finish == HUNCH_FINISH_FAILED)
            return tool_failed(&st.error);
    }
    return 0;
}

static int report(const run *r, hunch_session *s, uint64_t seed, stream *to) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    if (!to)
        return tool_print_json(run_json(r, &st, seed));
    stream_update(to, r, &st);
    printf("%s\n", tool_style(r->color, '0'));
    tool_flush();
    summary_print(r, &st);
    return tool_done(HUNCH_OK);
}

/* n answers at once, with seeds first, first + 1, ... */
static int batch_run(run *r, uint64_t first, int n) {
    hunch_session **s = tool_alloc((size_t)n, sizeof *s);
    stream shown = {0}, *to = r->o.json || r->o.json_lines ? NULL : &shown;
    hunch_error err = {0};
    int code = 0;
    for (int i = 0; i < n && !code; i++) {
        r->request.sampling.seed = first + (uint64_t)i;
        if (hunch_session_open(&s[i], r->engine, &r->request, &err) != HUNCH_OK)
            code = tool_failed(&err);
    }
    if (!code)
        code = generate(r, s, n, to);
    for (int i = 0; i < n && !code; i++)
        code = report(r, s[i], first + (uint64_t)i, to);
    for (int i = 0; i < n; i++)
        hunch_session_close(&s[i]);
    free(s);
    tool_ends_fini(&shown.ends);
    return code;
}

static int samples_run(run *r) {
    int samples = r->o.samples == TOOL_UNSET ? 1 : r->o.samples, code = 0;
    int parallel = r->o.parallel == TOOL_UNSET ? 1 : r->o.parallel;
    uint64_t seed = r->request.sampling.seed;
    tool_interrupts_catch();
    for (int i = 0; i < samples && !code && !tool_interrupted; i += parallel)
        code = batch_run(r, seed + (uint64_t)i, samples - i < parallel ? samples - i : parallel);
    return code ? code : tool_interrupted ? HUNCH_CANCELLED : 0;
}

static int run_open(run *r) {
    int code = tool_prompts_read(&r->prompts, &r->o);
    if (code)
        return code;
    if (r->prompts.n != 1)
        return tool_usage("%s holds %zu prompts, run takes one: see hunch compare", r->o.file, r->prompts.n);
    if (r->o.samples > 1 && !r->o.json_lines)
        return tool_usage("--samples needs --json-lines");
    if ((code = tool_model_open(&r->model, &r->o, &r->load_s)))
        return code;
    hunch_model_get_info(r->model, &r->info);
    if (r->o.stops.n && !r->info.has_tokenizer)
        return tool_usage("the model has no tokenizer: --stop cannot be used");
    tool_prompt *p = &r->prompts.items[0];
    if ((code = tool_prompt_ids(p, r->model, !r->o.raw)))
        return code;
    tool_method_init(&r->method, r->o.drafts.items, r->o.drafts.n);
    int parallel = r->o.parallel == TOOL_UNSET ? 1 : r->o.parallel;
    if ((code = tool_engine_open(&r->engine, r->model, &r->o, &r->method, 0, parallel)))
        return code;
    tool_request_init(&r->request, r->model, &r->o, DEFAULT_TOKENS);
    r->request.prompt = p->ids;
    r->request.n_prompt = p->n_ids;
    r->color = !r->o.json && !r->o.json_lines && tool_colors(r->o.color, stdout);
    return 0;
}

int tool_run(int argc, char **argv) {
    run r = {0};
    int code = tool_options_parse(&r.o, TOOL_RUN, argc, argv);
    if (code >= 0)
        return code;
    code = run_open(&r);
    if (!code)
        code = samples_run(&r);
    hunch_engine_close(&r.engine);
    hunch_model_close(&r.model);
    tool_method_fini(&r.method);
    tool_prompts_fini(&r.prompts);
    tool_options_fini(&r.o);
    return code;
}
