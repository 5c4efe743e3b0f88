/* SPDX-License-Identifier: Apache-2.0 */
/* tool_result.c - see tool_result.h. */
#include "cli/tool_calls.h"
#include "cli/tool_result.h"

#include <math.h>
#include <string.h>

#include "app/tool_flags.h"
#include "app/tool_options.h"

/* ---- rounds -------------------------------------------------------------------------------------------------- */

void tool_rounds_begin(tool_rounds *r, const char *label) {
    tool_progress_begin(&r->reading, label, "tokens");
    r->reading.of_prompt = true;
    tool_progress_begin(&r->answering, "answering", r->answers > 1 ? "answers" : "tokens");
}

void tool_rounds_end(tool_rounds *r) {
    tool_progress_end(&r->reading);
    tool_progress_end(&r->answering);
}

static void progress_update(tool_rounds *r) {
    hunch_session_state st;
    double read = 0, to_read = 0, tokens = 0;
    for (int i = 0; i < r->n; i++) {
        if (!r->session[i])
            continue;
        hunch_session_get(r->session[i], &st);
        tokens += (double)st.n_tokens;
        if (st.waiting)
            continue;
        read += (double)st.n_prefilled;
        to_read += (double)st.n_prompt;
    }
    if (tokens == 0 && r->reported == 0 && read < to_read) {
        tool_progress_at(&r->reading, read, to_read);
        return;
    }
    tool_progress_end(&r->reading);
    if (r->stream)
        return;
    if (r->answers > 1)
        tool_progress_at(&r->answering, r->reported + (r->most > 0 ? tokens / r->most : 0), r->answers);
    else
        tool_progress_at(&r->answering, tokens, 0);
}

int tool_rounds_step(tool_rounds *r) {
    hunch_error err = {0};
    if (tool_interrupted || ferror(stdout)) {
        for (int i = 0; i < r->n; i++)
            if (r->session[i])
                hunch_session_cancel(r->session[i]);
    } else if (hunch_engine_round(r->engine, &err) != HUNCH_OK) {
        return tool_failed(&err);
    }
    progress_update(r);
    if (r->stream && r->session[0]) {
        hunch_session_state st;
        hunch_session_get(r->session[0], &st);
        tool_stream_update(r->stream, &st);
    }
    return 0;
}

/* ---- figures and names --------------------------------------------------------------------------------------- */

const char *tool_finish_name(hunch_finish f) {
    static const char *const names[] = {[HUNCH_FINISH_STOP] = "stop",
                                        [HUNCH_FINISH_LENGTH] = "length",
                                        [HUNCH_FINISH_CANCELLED] = "cancelled",
                                        [HUNCH_FINISH_FAILED] = "failed",
                                        [HUNCH_FINISH_LOOP] = "loop",
                                        [HUNCH_FINISH_DEADLINE] = "deadline",
                                        [HUNCH_FINISH_GRAMMAR] = "grammar"};
    return names[f];
}

bool tool_context_full(const hunch_engine *e, const hunch_session_state *st) {
    return st->finish == HUNCH_FINISH_LENGTH && st->n_prompt + st->n_tokens >= (size_t)hunch_engine_context(e);
}

static const char *lossy_name(hunch_lossy_rule r) {
    static const char *const names[] = {"none", "lenience", "typical", "top-m"};
    return names[r];
}

double tool_tau(const hunch_session_state *st) {
    return st->rounds ? ((double)st->n_tokens - 1) / (double)st->rounds : NAN;
}

static double per_second(double n, double seconds) {
    return seconds > 0 && n > 0 ? n / seconds : NAN;
}

/* Of the tokens that were read: without those after an interrupt and those of a shared prefix. */
static double prefill_speed(const hunch_session_state *st) {
    return per_second((double)st->n_prefilled - (double)st->n_restored, st->prefill_s);
}

double tool_decode_speed(const hunch_session_state *st) {
    double speed = per_second((double)st->n_tokens - 1, st->decode_s);
    return isfinite(speed) ? speed : 0;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

static json_t *counts_json(const uint64_t *count, int n) {
    while (n > 0 && count[n - 1] == 0)
        n--;
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)count[i]));
    return list;
}

static json_t *timing_json(const tool_result *r, const hunch_session_state *st) {
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "load_s", tool_json_real(r->load_s), "prefill_s",
                     tool_json_real(st->prefill_s), "decode_s", tool_json_real(st->decode_s), "prefill_tok_s",
                     tool_json_real(prefill_speed(st)), "decode_tok_s",
                     tool_json_real(per_second((double)st->n_tokens - 1, st->decode_s)), "draft_s",
                     tool_json_real(st->draft_s), "draft_pass_s", tool_json_real(st->draft_pass_s), "verify_s",
                     tool_json_real(st->verify_s), "wait_s", tool_json_real(st->wait_s));
}

json_t *tool_lossy_json(const hunch_lossy *lossy) {
    if (lossy->rule == HUNCH_LOSSLESS)
        return json_null();
    json_t *parameters = json_array();
    json_array_append_new(parameters,
                          lossy->rule == HUNCH_LOSSY_TOP_M ? json_integer((json_int_t)lossy->a) : json_real(lossy->a));
    if (lossy->rule == HUNCH_LOSSY_TYPICAL)
        json_array_append_new(parameters, json_real(lossy->b));
    return json_pack("{s:s,s:o}", "rule", lossy_name(lossy->rule), "parameters", parameters);
}

static json_t *reals_json(const float *x, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, tool_json_real(x[i]));
    return list;
}

/* The stop token or stop string that ended the text. */
static json_t *stop_json(const tool_result *r, const hunch_session_state *st) {
    if (st->finish != HUNCH_FINISH_STOP)
        return json_null();
    if (st->stop_string >= 0 && r->stops)
        return tool_json_text(r->stops[st->stop_string], strlen(r->stops[st->stop_string]));
    return st->stop_token >= 0 ? json_integer(st->stop_token) : json_null();
}

static json_t *piece_json(const hunch_model *m, hunch_token id) {
    const char *bytes;
    size_t len;
    return hunch_token_piece(m, id, &bytes, &len, NULL, NULL) == HUNCH_OK ? tool_json_piece(bytes, len) : json_null();
}

/* One list per token, of the n_top likeliest tokens at its position; null where there are none. */
static json_t *top_json(const hunch_model *m, const hunch_logprob *top, size_t n, int n_top) {
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++, top += n_top) {
        json_t *list = top[0].token < 0 ? json_null() : json_array();
        for (int k = 0; k < n_top && top[0].token >= 0; k++)
            json_array_append_new(list,
                                  json_pack("{s:i,s:o,s:o}", "token", (int)top[k].token, "piece",
                                            piece_json(m, top[k].token), "logprob", tool_json_real(top[k].logprob)));
        json_array_append_new(all, list);
    }
    return all;
}

static json_t *drafters_json(const hunch_engine *e) {
    json_t *list = json_array();
    for (int i = 0; i < hunch_engine_drafters(e); i++)
        json_array_append_new(list, tool_json_name(hunch_engine_drafter_name(e, i)));
    return list;
}

static json_t *about_json(const hunch_engine *e) {
    json_t *list = json_array();
    for (int i = 0; i < hunch_engine_drafters(e); i++) {
        const char *about = hunch_engine_drafter_about(e, i);
        json_array_append_new(list, about ? tool_json_text(about, strlen(about)) : json_null());
    }
    return list;
}

static json_t *drafter_of_json(const hunch_session_state *st) {
    json_t *list = json_array();
    for (size_t i = 0; i < st->n_tokens; i++)
        json_array_append_new(list, json_integer(st->drafter_of[i]));
    return list;
}

/* ---- parts ------------------------------------------------------------------------------------------------- */

static void apart_add(char *to, size_t *n, const char *text, size_t len) {
    while (*n == 0 && len && (*text == '\n' || *text == '\r'))
        text++, len--;
    memcpy(to + *n, text, len);
    *n += len;
}

tool_apart tool_answer_apart(const hunch_model *m, bool thinks, const char *text, size_t len) {
    tool_apart a = {.said = tool_alloc(len + 1, 1), .thought = tool_alloc(len + 1, 1)};
    hunch_split split = {.thinking = thinks};
    hunch_part part;
    while (hunch_split_next(m, &split, text, len, true, &part)) {
        if (part.kind == HUNCH_PART_THINKING)
            apart_add(a.thought, &a.n_thought, text + part.from, part.len);
        else if (part.kind != HUNCH_PART_MARK)
            apart_add(a.said, &a.n_said, text + part.from, part.len);
    }
    return a;
}

void tool_apart_fini(tool_apart *a) {
    hn_free(a->said);
    hn_free(a->thought);
    *a = (tool_apart){0};
}

static void apart_json(json_t *out, const tool_result *r, const hunch_session_state *st) {
    json_object_set_new(out, "answer", json_null());
    json_object_set_new(out, "thinking", json_null());
    json_object_set_new(out, "tool_calls", json_null());
    if (!r->chat || !st->text)
        return;
    if (r->tools) {
        tool_calls_json(out, r->tools, r->thinks, st->text, st->text_len);
        return;
    }
    tool_apart a = tool_answer_apart(r->model, r->thinks, st->text, st->text_len);
    json_object_set_new(out, "answer", tool_json_text(a.said, a.n_said));
    if (a.n_thought)
        json_object_set_new(out, "thinking", tool_json_text(a.thought, a.n_thought));
    tool_apart_fini(&a);
}

json_t *tool_result_json(const tool_result *r, const hunch_session_state *st) {
    json_t *out = json_pack(
        "{s:o,s:o,s:s,s:I,s:I,s:o,s:o,s:I,s:o,s:I,s:I,s:o,s:I,s:I,s:I,s:s,s:o}", "tokens",
        tool_json_ids(st->tokens, st->n_tokens), "text",
        st->text ? tool_json_text(st->text, st->text_len) : json_null(), "finish", tool_finish_name(st->finish),
        "prompt_tokens", (json_int_t)st->n_prompt, "seed", (json_int_t)r->seed, "drafters", drafters_json(r->engine),
        "provenance", drafter_of_json(st), "rounds", (json_int_t)st->rounds, "tau", tool_json_real(tool_tau(st)),
        "drafted", (json_int_t)st->drafted, "accepted", (json_int_t)st->accepted, "accepted_per_position",
        counts_json(st->accepted_per_position, HUNCH_MAX_DEPTH), "depth_drafted", (json_int_t)st->depth_drafted,
        "prefix_rows", (json_int_t)st->n_restored, "preempted", (json_int_t)st->preempted, "verify",
        st->lossy.rule ? lossy_name(st->lossy.rule) : tool_verify_names[st->verify], "lossy",
        tool_lossy_json(&st->lossy));
    if (!out)
        return NULL;
    apart_json(out, r, st);
    json_object_set_new(out, "stop_reason", stop_json(r, st));
    json_object_set_new(out, "context_full", json_boolean(tool_context_full(r->engine, st)));
    json_object_set_new(out, "about", about_json(r->engine));
    json_object_set_new(out, "timing", timing_json(r, st));
    json_object_set_new(out, "peak_rss_mib", tool_json_real(tool_peak_mib()));
    if (r->logprobs != TOOL_UNSET)
        json_object_set_new(out, "logprobs", reals_json(st->logprobs, st->n_tokens));
    if (r->logprobs > 0)
        json_object_set_new(out, "top_logprobs", top_json(r->model, st->top_logprobs, st->n_tokens, st->n_top_logprobs));
    if (st->prompt_logprobs)
        json_object_set_new(out, "prompt_logprobs", reals_json(st->prompt_logprobs, st->n_prompt));
    if (st->prompt_top_logprobs)
        json_object_set_new(out, "prompt_top_logprobs", top_json(r->model, st->prompt_top_logprobs, st->n_prompt, st->n_top_logprobs));
    if (st->pooled)
        json_object_set_new(out, "pooled", reals_json(st->pooled, (size_t)st->n_pooled));
    if (r->why)
        json_object_set_new(out, "why", tool_why_json(r->why));
    if (r->trees)
        json_object_set_new(out, "trees", tool_why_trees_json(r->trees));
    return out;
}

/* ---- the summary --------------------------------------------------------------------------------------------- */

const char *tool_rule_note(hunch_verify verify, const hunch_lossy *lossy, char *text) {
    enum { SIZE = 200 };
    text[0] = 0;
    if (lossy->rule == HUNCH_LOSSY_TYPICAL)
        snprintf(text, SIZE, "LOSSY: drafts were accepted by typical %g,%g; the model alone may generate another text",
                 lossy->a, lossy->b);
    else if (lossy->rule != HUNCH_LOSSLESS)
        snprintf(text, SIZE, "LOSSY: drafts were accepted by %s %g; the model alone may generate another text",
                 lossy_name(lossy->rule), lossy->a);
    else if (verify >= HUNCH_VERIFY_RATIO)
        snprintf(text, SIZE, "verified by %s: a seed fixes the distribution of the text, not the text",
                 tool_verify_names[verify]);
    return text;
}

void tool_sources_print(const hunch_engine *e, const hunch_session_state *st, bool color) {
    fprintf(stderr, "tokens from: ");
    for (int d = -1; d < hunch_engine_drafters(e); d++) {
        size_t count = 0;
        for (size_t i = 0; i < st->n_tokens; i++)
            count += st->drafter_of[i] == d;
        fprintf(stderr, "%s%s%s%s %zu", d >= 0 ? " · " : "", tool_color(color, d),
                d < 0 ? "the model" : hunch_engine_drafter_name(e, d), tool_style(color, '0'), count);
    }
    fputc('\n', stderr);
}

void tool_result_summary(const tool_result *r, const hunch_session_state *st, bool color) {
    char note[200];
    const double read = prefill_speed(st);
    fprintf(stderr, "\n%zu tokens, %.1f tokens/s · prompt %zu tokens", st->n_tokens, tool_decode_speed(st),
            st->n_prompt);
    if (st->n_restored)
        fprintf(stderr, ", %llu of them shared", (unsigned long long)st->n_restored);
    if (st->n_prefilled < st->n_prompt)
        fprintf(stderr, ", %zu of them read", st->n_prefilled);
    fprintf(stderr, ", %.1f tokens/s", isfinite(read) ? read : 0);
    fprintf(stderr, " · loaded in %.2f s\n", r->load_s);
    if (st->rounds)
        fprintf(stderr, "acceptance length %.2f over %llu rounds · drafted %llu, accepted %llu\n", tool_tau(st),
                (unsigned long long)st->rounds, (unsigned long long)st->drafted, (unsigned long long)st->accepted);
    tool_sources_print(r->engine, st, color);
    if (*tool_rule_note(st->verify, &st->lossy, note))
        fprintf(stderr, "%s%s%s\n", tool_style(color, 'y'), note, tool_style(color, '0'));
    fprintf(stderr, "finish %s%s · seed %llu · peak memory %.0f MiB", tool_finish_name(st->finish),
            tool_context_full(r->engine, st) ? " (the context is full)" : "", (unsigned long long)r->seed,
            tool_peak_mib());
    if (st->preempted)
        fprintf(stderr, " · preempted %llu times", (unsigned long long)st->preempted);
    fputc('\n', stderr);
}
