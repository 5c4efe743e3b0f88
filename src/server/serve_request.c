/* SPDX-License-Identifier: Apache-2.0 */
/* serve_request.c - see serve_request.h: the fields but those of sampling (serve_sampling.h) and the prompts (serve_prompt.h). */
#include "server/serve_request.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/serve_fields.h"
#include "server/serve_grammar.h"
#include "server/serve_prompt.h"
#include "server/serve_sampling.h"
#include "server/serve_speculation.h"
#include "server/serve_tools.h"

enum { MOST_TOP = 20, COMPLETION_TOKENS = 16, MOST_SALT = 200 }; /* of OpenAI: top_logprobs of chats, max_tokens of completions */

/* ---- what is refused ----------------------------------------------------------------------------------------- */

/* Fields that would change the answer and are not honoured: ignoring them silently would be wrong. */
static const char *const refused[] = {
    "suffix",       "functions",     "function_call",      "logits_processors", "bad_words",              "allowed_token_ids",
    "audio",        "chat_template", "documents",          "images",            "web_search_options",     "lora_request",
    "prompt_logprobs", "truncate_prompt_tokens", "thinking_token_budget", "guided_whitespace_pattern"};

static bool is_plain(const json_t *value) {
    return json_is_false(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (hn_json_is_object(value) && json_object_size(value) == 0) || (json_is_integer(value) && json_integer_value(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static bool switch_check(const json_t *body, const char *name, bool must, serve_error *err) {
    bool value = must;
    if (!serve_field_bool(body, name, &value, err)) return false;
    return value == must ? true : serve_fail(err, 400, name, "%s: only %s is supported", name, must ? "true" : "false");
}

/* What an answer consists of: a text. */
static bool modalities_check(const json_t *body, serve_error *err) {
    const json_t *list = serve_field(body, "modalities"), *one = json_array_get(list, 0);
    if (!list || (json_array_size(list) == 1 && json_is_string(one) && strcmp(json_string_value(one), "text") == 0)) return true;
    return serve_fail(err, 400, "modalities", "modalities: only [\"text\"] is supported");
}

static bool refused_check(const json_t *body, serve_error *err) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const json_t *value = serve_field(body, refused[i]);
        if (value && !is_plain(value)) return serve_fail(err, 400, refused[i], "%s is not supported", refused[i]);
    }
    return modalities_check(body, err) && switch_check(body, "use_beam_search", false, err) &&
           switch_check(body, "include_stop_str_in_output", false, err);
}

/* ---- fields -------------------------------------------------------------------------------------------------- */

bool serve_request_model(const serve_server *s, const json_t *body, serve_error *err) {
    const char *name = NULL;
    if (!serve_field_text(body, "model", &name, err)) return false;
    if (!name || serve_is_served(s->settings, name)) return true;
    return serve_fail_code(err, 404, "model_not_found", "model", "there is no model %.200s here, but %s", name,
                           s->settings->model_name);
}

static bool stream_read(serve_call *c, const json_t *body, serve_error *err) {
    const json_t *options = serve_field(body, "stream_options");
    if (!serve_field_bool(body, "stream", &c->stream, err)) return false;
    if (!options) return true;
    if (!hn_json_is_object(options)) return serve_fail(err, 400, "stream_options", "stream_options is not an object");
    if (!c->stream) return serve_fail(err, 400, "stream_options", "stream_options is for streams: \"stream\": true");
    return serve_field_bool(options, "stream_options.include_usage", &c->include_usage, err) &&
           serve_field_bool(options, "stream_options.continuous_usage_stats", &c->continuous_usage, err);
}

static bool logprobs_read(serve_call *c, const json_t *body, serve_error *err) {
    int64_t top = -1;
    if (!c->chat) {
        if (!serve_field_int(body, "logprobs", 0, HUNCH_MOST_TOP_LOGPROBS, &top, err)) return false;
        c->request.logprobs = top >= 0;
    } else if (!serve_field_bool(body, "logprobs", &c->request.logprobs, err) ||
               !serve_field_int(body, "top_logprobs", 0, MOST_TOP, &top, err)) return false;
    if (top > 0 && !c->request.logprobs) return serve_fail(err, 400, "top_logprobs", "top_logprobs needs \"logprobs\": true");
    c->request.top_logprobs = top > 0 ? (int)top : 0;
    return true;
}

static bool limit_read(serve_call *c, const json_t *body, serve_error *err) {
    int64_t most = c->chat ? 0 : COMPLETION_TOKENS;
    if (!serve_field_int(body, "max_tokens", 0, INT32_MAX, &most, err) ||
        !serve_field_int(body, "max_completion_tokens", 1, INT32_MAX, &most, err)) return false;
    if (most == 0 && c->chat && serve_field(body, "max_tokens"))
        return serve_fail(err, 400, "max_tokens", "max_tokens is 0: an answer has at least one token");
    c->request.max_tokens = (int)most;
    int64_t least = 0;
    bool special = true;
    if (!serve_field_int(body, "min_tokens", 0, most ? most : INT32_MAX, &least, err) ||
        !serve_field_bool(body, "skip_special_tokens", &special, err)) return false;
    c->request.min_tokens = (int)least;
    c->request.special_text = !special;
    return serve_field_bool(body, "ignore_eos", &c->request.ignore_eos, err);
}

static bool stop_tokens_read(serve_call *c, const json_t *body, const hunch_model *m, serve_error *err) {
    const json_t *list = serve_field(body, "stop_token_ids");
    hunch_model_info info;
    hunch_token *ids = NULL;
    size_t n = 0;
    hunch_model_get_info(m, &info);
    if (!list) return true;
    if (!json_is_array(list) || json_array_size(list) > HUNCH_MOST_STOPS)
        return serve_fail(err, 400, "stop_token_ids", "stop_token_ids is not a list of at most %d token ids", HUNCH_MOST_STOPS);
    if (!serve_ids_read(list, "stop_token_ids", info.vocab, &ids, &n, err)) return false;
    c->request.stop_tokens = ids;
    c->request.n_stop_tokens = (int)n;
    return true;
}

static bool number_read(serve_call *c, const json_t *body, serve_error *err) {
    int64_t n = 1, best = 0;
    if (!serve_field_int(body, "n", 1, SERVE_MOST_N, &n, err) || !serve_field_int(body, "best_of", 1, 100, &best, err)) return false;
    if (best > n) return serve_fail(err, 400, "best_of", "best_of is larger than n: answers are not ranked");
    c->n = (int)n;
    return true;
}

static bool report_read(serve_call *c, const json_t *body, serve_error *err) {
    if (!serve_field_bool(body, "return_token_ids", &c->token_ids, err) || !serve_field_bool(body, "timings", &c->with_timings, err) ||
        !serve_field_bool(body, "speculation_metrics", &c->with_metrics, err)) return false;
    if (c->with_metrics && c->n * c->n_prompts > 1)
        return serve_fail(err, 400, "speculation_metrics", "speculation_metrics is for one answer, but there are %d", c->n * c->n_prompts);
    bool apart = true;
    if (!serve_field_bool(body, "separate_reasoning", &apart, err)) return false;
    c->whole_text = !c->chat || !apart;
    if (!c->chat && !serve_field_bool(body, "echo", &c->echo, err)) return false;
    c->request.prompt_logprobs = c->echo && c->request.logprobs;
    if (c->request.max_tokens > 0 || c->chat || !serve_field(body, "max_tokens")) return true;
    c->request.prompt_only = true;
    return c->echo ? true : serve_fail(err, 400, "max_tokens", "max_tokens is 0: without echo an answer has at least one token");
}

/* A seed that was not given is random, below 2^53, so that readers of JSON that keep doubles can send it back. */
static bool seed_read(serve_call *c, const json_t *body, serve_error *err) {
    int64_t seed = -1;
    uint64_t any;
    if (!serve_field_int(body, "seed", INT64_MIN, INT64_MAX, &seed, err)) return false;
    if (serve_field(body, "seed")) return c->request.sampling.seed = (uint64_t)seed, true;
    if (getrandom(&any, sizeof any, 0) != (ssize_t)sizeof any) any = (uint64_t)hn_now_ns();
    c->request.sampling.seed = any >> 11;
    return true;
}

static bool tier_read(serve_call *c, const json_t *body, serve_error *err) {
    static const struct {
        const char *name;
        int priority;
    } tiers[] = {{"auto", 0}, {"default", 0}, {"flex", -1}, {"priority", 1}, {"scale", 0}};
    const char *given = NULL;
    if (!serve_field_text(body, "service_tier", &given, err)) return false;
    for (size_t i = 0; given && i < sizeof tiers / sizeof *tiers; i++)
        if (strcmp(given, tiers[i].name) == 0) return c->request.priority = tiers[i].priority, true;
    return given ? serve_fail(err, 400, "service_tier", "service_tier is none of auto, default, flex, priority, scale") : true;
}

/* The service tier, or the header x-priority, a number: larger ones go first. And the time after which an answer is of no use. */
static bool priority_read(serve_call *c, const serve_asked *q, serve_error *err) {
    const json_t *deadline = serve_field(q->body, "deadline");
    char *end = NULL;
    if (!tier_read(c, q->body, err)) return false;
    if (deadline && (!json_is_number(deadline) || !(json_number_value(deadline) > 0)))
        return serve_fail_value(err, "deadline", deadline, "deadline is not a number of seconds above 0, %g at most", DBL_MAX);
    c->request.deadline_s = json_number_value(deadline);
    if (!q->priority) return true;
    const long given = strtol(q->priority, &end, 10);
    if (*end || end == q->priority || given < -100 || given > 100)
        return serve_fail(err, 400, "x-priority", "the header x-priority is not a whole number from -100 to 100, it is %.60s", q->priority);
    c->request.priority = (int)given;
    return true;
}

/* Texts share rows only with those of the same key and "cache_salt": others could tell by the time what was sent before. */
static bool salt_make(serve_call *c, const serve_asked *q, serve_error *err) {
    const char *given = NULL;
    char salt[HUNCH_MOST_SALT_BYTES];
    if (!serve_field_text(q->body, "cache_salt", &given, err)) return false;
    if (given && strlen(given) > MOST_SALT)
        return serve_fail(err, 400, "cache_salt", "cache_salt has more than %d bytes", MOST_SALT);
    if (!given && !q->tenant) return true;
    snprintf(salt, sizeof salt, "%016llx%s", (unsigned long long)q->tenant, given ? given : "");
    c->request.salt = hn_strdup(salt);
    return c->request.salt ? true : serve_fail(err, 503, NULL, "no memory for the request");
}

/* ---- prompts ------------------------------------------------------------------------------------------------- */

static bool context_check(const serve_call *c, int context, serve_error *err) {
    for (int i = 0; i < c->n_prompts; i++)
        if (c->prompts[i].n >= (size_t)context)
            return serve_fail_code(err, 400, "context_length_exceeded", c->chat ? "messages" : "prompt",
                                   "the prompt has %s%zu tokens, but the context holds %d, the answer included",
                                   c->prompts[i].ids ? "" : "at least ", c->prompts[i].n, context);
    if (c->n_prompts * c->n > SERVE_MOST_CHOICES)
        return serve_fail(err, 400, "prompt", "%d prompts of %d answers each: at most %d answers together", c->n_prompts, c->n,
                          SERVE_MOST_CHOICES);
    return true;
}

static bool read_all(serve_server *s, serve_call *c, const serve_asked *q, hunch_model *m, serve_error *err) {
    const json_t *body = q->body;
    hunch_request_defaults(&c->request, m);
    return serve_request_model(s, body, err) && refused_check(body, err) && stream_read(c, body, err) && number_read(c, body, err) &&
           limit_read(c, body, err) && logprobs_read(c, body, err) && seed_read(c, body, err) && priority_read(c, q, err) &&
           salt_make(c, q, err) && stop_tokens_read(c, body, m, err) && serve_speculation_read(s, c, m, body, err) &&
           serve_sampling_read(&c->request, m, body, err) && (!c->chat || serve_tools_read(s, c, m, body, err)) &&
           (c->chat ? serve_prompt_chat(s, c, m, body, err) : serve_prompt_completion(s, c, m, body, err)) &&
           context_check(c, serve_engine_context(s->engine), err) && report_read(c, body, err) && serve_grammar_read(c, body, err) &&
           serve_tools_hold(c, body, err);
}

serve_call *serve_request_read(serve_server *s, const serve_asked *q, bool chat, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    if (!m) return NULL;
    serve_call *c = serve_call_new();
    c->chat = chat;
    c->model = m;
    c->received_s = q->received_s;
    c->created = time(NULL);
    snprintf(c->id, sizeof c->id, "%s-%s", chat ? "chatcmpl" : "cmpl", q->id);
    if (!read_all(s, c, q, m, err)) return serve_call_release(c), NULL;
    serve_call_choices(c);
    for (int i = 0; i < c->n_choices; i++)
        if (!serve_tools_begin(&c->choices[i])) {
            serve_fail(err, 503, NULL, "no memory for the request");
            return serve_call_release(c), NULL;
        }
    return c;
}
