/* SPDX-License-Identifier: Apache-2.0 */
/* serve_request.c - see serve_request.h: the fields that protocols have in the same way, but for parameters (serve_parameters.h) and
 * prompts (serve_prompt.h). */
#include "server/serve_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/protocols/serve_parameters.h"
#include "server/serve_prompt.h"
#include "server/protocols/serve_speculation.h"
#include "server/serve_tools.h"

enum { MOST_TOP = 20, MOST_SALT = 200 }; /* MOST_TOP: of OpenAI, top_logprobs of chats */

/* ---- fields -------------------------------------------------------------------------------------------------- */

bool serve_request_model(const serve_server *s, const serve_view *v, serve_error *err) {
    const char *name = NULL;
    if (!serve_field_text(v, "model", &name, err)) return false;
    const size_t n = name ? strlen(name) : 0, end = v->tag ? strlen(v->tag) : 0;
    char field[SERVE_NAME], plain[300]; /* a served name is no longer: serve_main.c */
    const bool tagged = end && n > end && strcmp(name + n - end, v->tag) == 0;
    snprintf(plain, sizeof plain, "%.*s", (int)(tagged ? n - end : n < sizeof plain ? n : sizeof plain), name ? name : "");
    if (!name || serve_is_served(s->settings, plain)) return true;
    name = plain;
    return serve_fail_code(err, 404, "model_not_found", serve_field_name(v, "model", field), "there is no model %.200s here, but %s", name,
                           s->settings->model_name);
}

static bool stream_read(serve_call *c, const serve_view *v, const serve_wanted *w, serve_error *err) {
    const json_t *options = serve_field(v, "stream_options");
    c->stream = w->stream;
    if (!serve_field_bool(v, "stream", &c->stream, err)) return false;
    if (!options) return true;
    if (!hn_json_is_object(options)) return serve_wrong(err, v, "stream_options", " is not an object");
    if (!c->stream) return serve_wrong(err, v, "stream_options", " is for streams: \"stream\": true");
    return serve_field_bool(v, "stream_options.include_usage", &c->include_usage, err) &&
           serve_field_bool(v, "stream_options.continuous_usage_stats", &c->continuous_usage, err);
}

static bool logprobs_read(serve_call *c, const serve_view *v, const serve_wanted *w, serve_error *err) {
    int64_t top = -1;
    c->request.logprobs = w->logprobs;
    if (!c->chat && !w->switched) {
        if (!serve_field_int(v, "logprobs", 0, HUNCH_MOST_TOP_LOGPROBS, &top, err)) return false;
        c->request.logprobs = top >= 0;
    } else if (!serve_field_bool(v, "logprobs", &c->request.logprobs, err) ||
               !serve_field_int(v, "top_logprobs", 0, MOST_TOP, &top, err)) return false;
    if (top > 0 && !c->request.logprobs) return serve_wrong(err, v, "top_logprobs", " needs \"logprobs\": true");
    c->request.top_logprobs = top > 0 ? (int)top : 0;
    return true;
}

static bool limit_read(serve_call *c, const serve_view *v, const serve_wanted *w, serve_error *err) {
    int64_t most = w->most;
    bool special = true;
    if (!serve_field_int(v, "max_tokens", 0, INT32_MAX, &most, err) ||
        !serve_field_int(v, "max_completion_tokens", 1, INT32_MAX, &most, err) ||
        !serve_field_bool(v, "skip_special_tokens", &special, err)) return false;
    if (most == 0 && c->chat && serve_field(v, "max_tokens"))
        return serve_wrong(err, v, "max_tokens", " is 0: an answer has at least one token");
    if (most && c->request.min_tokens > most)
        return serve_wrong_value(err, v, "min_tokens", serve_field(v, "min_tokens"), " is not a whole number from 0 to %lld",
                                 (long long)most);
    c->request.max_tokens = (int)most;
    c->request.special_text = !special;
    return true;
}

/* Most tokens of thinking: "thinking_token_budget" is in the table of parameters; these are what other servers call it. */
static bool thinking_read(serve_call *c, const serve_view *v, const hunch_model *m, serve_error *err) {
    static const char *const names[] = {"thinking_budget", "reasoning.max_tokens", "thinking_token_budget"};
    const char *name = names[0];
    int64_t most = 0;
    hunch_model_info info;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (serve_field(v, names[i])) name = names[i];
        if (!serve_field_int(v, names[i], 1, INT32_MAX, &most, err)) return false;
    }
    hunch_model_get_info(m, &info);
    if (most && !info.has_thinking) return serve_wrong(err, v, name, " cannot be held: the chat template has no marks around thinking");
    c->request.thinking_budget = (int)most;
    return true;
}

static bool stop_tokens_read(serve_call *c, const serve_view *v, const hunch_model *m, serve_error *err) {
    const json_t *list = serve_field(v, "stop_token_ids");
    hunch_model_info info;
    hunch_token *ids = NULL;
    size_t n = 0;
    hunch_model_get_info(m, &info);
    if (!list) return true;
    if (!json_is_array(list) || json_array_size(list) > HUNCH_MOST_STOPS)
        return serve_wrong(err, v, "stop_token_ids", " is not a list of at most %d token ids", HUNCH_MOST_STOPS);
    if (!serve_ids_read(v, "stop_token_ids", list, info.vocab, &ids, &n, err)) return false;
    c->request.stop_tokens = ids;
    c->request.n_stop_tokens = (int)n;
    return true;
}

static bool number_read(serve_call *c, const serve_view *v, serve_error *err) {
    int64_t n = 1, best = 0;
    if (!serve_field_int(v, "n", 1, SERVE_MOST_N, &n, err) || !serve_field_int(v, "best_of", 1, 100, &best, err)) return false;
    if (best > n) return serve_wrong(err, v, "best_of", " is larger than n: answers are not ranked");
    c->n = (int)n;
    return true;
}

static bool report_read(serve_call *c, const serve_view *v, const serve_wanted *w, serve_error *err) {
    if (!serve_field_bool(v, "return_token_ids", &c->token_ids, err) || !serve_field_bool(v, "timings", &c->with_timings, err) ||
        !serve_field_bool(v, "speculation_metrics", &c->with_metrics, err)) return false;
    if (c->with_metrics && c->n * c->n_prompts > 1)
        return serve_wrong(err, v, "speculation_metrics", " is for one answer, but there are %d", c->n * c->n_prompts);
    bool apart = true;
    if (!serve_field_bool(v, "separate_reasoning", &apart, err)) return false;
    c->whole_text = !c->chat || !apart;
    c->echo = w->echo;
    if (!c->chat && !serve_field_bool(v, "echo", &c->echo, err)) return false;
    c->request.prompt_logprobs = c->echo && c->request.logprobs;
    c->request.prompt_only = w->prompt_only;
    if (c->request.max_tokens > 0 || c->chat || !serve_field(v, "max_tokens")) return true;
    c->request.prompt_only = true;
    return c->echo ? true : serve_wrong(err, v, "max_tokens", " is 0: without echo an answer has at least one token");
}

/* A seed that was not given is random, below 2^53, so that readers of JSON that keep doubles can send it back. */
static bool seed_read(serve_call *c, const serve_view *v, serve_error *err) {
    int64_t seed = -1;
    uint64_t any;
    if (!serve_field_int(v, "seed", INT64_MIN, INT64_MAX, &seed, err)) return false;
    if (serve_field(v, "seed")) return c->request.sampling.seed = (uint64_t)seed, true;
    if (getrandom(&any, sizeof any, 0) != (ssize_t)sizeof any) any = (uint64_t)hn_now_ns();
    c->request.sampling.seed = any >> 11;
    return true;
}

static bool tier_read(serve_call *c, const serve_view *v, serve_error *err) {
    static const struct {
        const char *name;
        int priority;
    } tiers[] = {{"auto", 0}, {"default", 0}, {"flex", -1}, {"priority", 1}, {"scale", 0}, {"standard_only", 0} /* Anthropic's default */};
    const char *given = NULL;
    if (!serve_field_text(v, "service_tier", &given, err)) return false;
    for (size_t i = 0; given && i < sizeof tiers / sizeof *tiers; i++)
        if (strcmp(given, tiers[i].name) == 0) return c->request.priority = tiers[i].priority, true;
    return given ? serve_wrong(err, v, "service_tier", " is none of auto, default, flex, priority, scale") : true;
}

/* The service tier, or the header x-priority, a number: larger ones go first. */
static bool priority_read(serve_call *c, const serve_http_request *q, const serve_view *v, serve_error *err) {
    char *end = NULL;
    if (!tier_read(c, v, err)) return false;
    if (!q->priority) return true;
    const long given = strtol(q->priority, &end, 10);
    if (*end || end == q->priority || given < -100 || given > 100)
        return serve_fail(err, 400, "x-priority", "the header x-priority is not a whole number from -100 to 100, it is %.60s", q->priority);
    c->request.priority = (int)given;
    return true;
}

/* Texts share rows only with those of the same key and "cache_salt": others could tell by the time what was sent before. */
static bool salt_make(serve_call *c, const serve_http_request *q, const serve_view *v, serve_error *err) {
    const char *given = NULL;
    char salt[HUNCH_MOST_SALT_BYTES];
    if (!serve_field_text(v, "cache_salt", &given, err)) return false;
    if (given && strlen(given) > MOST_SALT)
        return serve_wrong(err, v, "cache_salt", " has more than %d bytes", MOST_SALT);
    if (!given && !q->tenant) return true;
    snprintf(salt, sizeof salt, "%016llx%s", (unsigned long long)q->tenant, given ? given : "");
    c->request.salt = hn_strdup(salt);
    return c->request.salt ? true : serve_fail(err, 503, NULL, "no memory for the request");
}

/* ---- prompts ------------------------------------------------------------------------------------------------- */

static bool context_check(const serve_call *c, const serve_view *v, int context, serve_error *err) {
    char field[SERVE_NAME];
    serve_field_name(v, c->chat ? "messages" : "prompt", field);
    for (int i = 0; i < c->n_prompts; i++)
        if (c->prompts[i].n >= (size_t)context)
            return serve_fail_code(err, 400, "context_length_exceeded", field,
                                   "the prompt is too long: it has %s%zu tokens, and this model's maximum context length is %d tokens, the "
                                   "answer included", /* as clients look for it */
                                   c->prompts[i].ids ? "" : "at least ", c->prompts[i].n, context);
    if (c->n_prompts * c->n > SERVE_MOST_CHOICES)
        return serve_fail(err, 400, field, "%d prompts of %d answers each: at most %d answers together", c->n_prompts, c->n,
                          SERVE_MOST_CHOICES);
    return true;
}

static bool read_all(serve_server *s, serve_call *c, const serve_http_request *q, const serve_view *v, serve_wanted *w, serve_error *err) {
    hunch_model *m = c->model;
    hunch_request_defaults(&c->request, m);
    return serve_request_model(s, v, err) && stream_read(c, v, w, err) && number_read(c, v, err) &&
           serve_speculation_read(s, c, m, v, err) && serve_parameters_read(&c->request, m, v, err) && limit_read(c, v, w, err) &&
           thinking_read(c, v, m, err) &&
           logprobs_read(c, v, w, err) && seed_read(c, v, err) && priority_read(c, q, v, err) && salt_make(c, q, v, err) &&
           stop_tokens_read(c, v, m, err) && (!c->chat || serve_tools_read(s, c, m, v, w, err)) &&
           (c->chat ? serve_prompt_chat(s, c, m, v, w, err) : serve_prompt_completion(s, c, m, v, err)) &&
           context_check(c, v, serve_engine_context(s->engine), err) && report_read(c, v, w, err) &&
           serve_grammar_read(c, v, &w->form, err) && serve_tools_hold(c, v, w, err);
}

serve_call *serve_request_read(serve_server *s, const serve_http_request *q, const serve_view *v, serve_wanted *w, bool chat,
                               serve_error *err) {
    hunch_model *m = serve_model(s, err);
    if (!m) return NULL;
    serve_call *c = serve_call_new();
    c->chat = chat;
    c->model = m;
    c->received_s = q->received_s;
    snprintf(c->client, sizeof c->client, "%s", q->client);
    c->created = time(NULL);
    snprintf(c->id, sizeof c->id, "%s-%s", chat ? "chatcmpl" : "cmpl", q->id);
    if (!read_all(s, c, q, v, w, err)) return serve_call_release(c), NULL;
    serve_call_choices(c);
    for (int i = 0; i < c->n_choices; i++)
        if (!serve_tools_begin(&c->choices[i])) {
            serve_fail(err, 503, NULL, "no memory for the request");
            return serve_call_release(c), NULL;
        }
    return c;
}

bool serve_request_count(serve_server *s, const serve_view *v, const serve_wanted *w, size_t *n, serve_error *err) {
    hunch_model *m = serve_model(s, err);
    serve_rendered rendered;
    hunch_token *ids = NULL;
    if (!m || !serve_request_model(s, v, err) || !serve_prompt_render(s, m, v, w, true, &rendered, err)) return false;
    const bool ok = serve_rendered_tokenize(m, v, &rendered, SIZE_MAX, &ids, n, err);
    serve_rendered_free(&rendered);
    hunch_free(ids);
    return ok;
}
