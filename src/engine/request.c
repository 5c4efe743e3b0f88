/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what a session was asked for: checked once, when it opens, and copied; the sampler, which is large, is made of it when the
 * session gets a place. */
#include <string.h>

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "engine/prefixes.h"
#include "sample/constraint.h"

void hunch_request_defaults(hunch_request *r, const hunch_model *m) {
    if (!r) return;
    memset(r, 0, sizeof *r);
    r->drafters = HUNCH_ALL_DRAFTERS;
    r->sampling = m ? m->target.arch.sampling : (hunch_sampling){.top_p = 1};
}

hunch_status hn_check_tokens(const hunch_engine *e, const char *what, const hunch_token *t, size_t n, hunch_error *err) {
    const int vocab = e->model->target.arch.vocab;
    for (size_t i = 0; i < n; i++)
        if (t[i] < 0 || t[i] >= vocab)
            return hn_fail(err, HUNCH_USAGE, "%stoken %zu is %d, expected 0 to %d", what, i, t[i], vocab - 1);
    return HUNCH_OK;
}

/* Every token is searched for stop strings, and for a beginning of one. */
static hunch_status check_stops(const hunch_request *r, hunch_error *err) {
    if (r->n_stop > HUNCH_MOST_STOPS) return hn_fail(err, HUNCH_USAGE, "%d stop strings, expected at most %d", r->n_stop, HUNCH_MOST_STOPS);
    for (int i = 0; i < r->n_stop; i++) {
        if (!r->stop || !r->stop[i] || !*r->stop[i]) return hn_fail(err, HUNCH_USAGE, "stop string %d is empty", i);
        const size_t n = strlen(r->stop[i]), bad = hn_utf8_check(r->stop[i], n);
        if (bad < n) return hn_fail(err, HUNCH_USAGE, "stop string %d is not UTF-8: byte %zu", i, bad);
        if (n > HUNCH_MOST_STOP_BYTES)
            return hn_fail(err, HUNCH_USAGE, "stop string %d has %zu bytes, expected at most %d", i, n, HUNCH_MOST_STOP_BYTES);
    }
    return HUNCH_OK;
}

/* Where the text may end. */
static hunch_status check_ends(const hunch_engine *e, const hunch_request *r, hunch_error *err) {
    if (r->n_stop < 0 || (r->n_stop > 0 && !e->model->tokenizer))
        return hn_fail(err, HUNCH_USAGE, "stop strings need a tokenizer, and this model has none");
    if (r->n_stop_tokens < 0 || r->n_stop_tokens > HUNCH_MOST_STOPS || (r->n_stop_tokens > 0 && !r->stop_tokens))
        return hn_fail(err, HUNCH_USAGE, "stop_tokens: %d of them, expected a list of 0 to %d", r->n_stop_tokens, HUNCH_MOST_STOPS);
    if (r->min_tokens < 0 || (r->max_tokens > 0 && r->min_tokens > r->max_tokens))
        return hn_fail(err, HUNCH_USAGE, "min_tokens is %d, expected 0 to max_tokens (%d)", r->min_tokens, r->max_tokens);
    if (!(r->deadline_s >= 0)) return hn_fail(err, HUNCH_USAGE, "deadline_s is %g, expected 0 (none) or more", r->deadline_s);
    if (r->loop_tokens < 0) return hn_fail(err, HUNCH_USAGE, "loop_tokens is %d, expected 0 or more", r->loop_tokens);
    const hunch_status st = hn_check_tokens(e, "stop_tokens: ", r->stop_tokens, (size_t)r->n_stop_tokens, err);
    return st ? st : check_stops(r, err);
}

static hunch_status check_drafting(const hunch_engine *e, const hunch_request *r, hunch_error *err) {
    const uint32_t known = ((uint32_t)1 << e->n_drafters) - 1;
    if (r->drafters != HUNCH_ALL_DRAFTERS && (r->drafters & ~known))
        return hn_fail(err, HUNCH_USAGE, "drafters is 0x%x, expected bits of the engine's %d drafters, or HUNCH_ALL_DRAFTERS",
                       (unsigned)r->drafters, e->n_drafters);
    if (r->one_token && e->controller)
        return hn_fail(err, HUNCH_USAGE, "one_token: a controller chooses this engine's drafters, expected drafters without auto");
    if (r->draft_depth < 0 || r->draft_depth > HUNCH_MAX_DEPTH)
        return hn_fail(err, HUNCH_USAGE, "draft_depth is %d, expected 0 (as the engine chooses) to %d", r->draft_depth, HUNCH_MAX_DEPTH);
    if (r->draft_rows < 0 || r->draft_rows > HUNCH_MAX_ROWS)
        return hn_fail(err, HUNCH_USAGE, "draft_rows is %d, expected 0 (as the engine chooses) to %d", r->draft_rows, HUNCH_MAX_ROWS);
    if (r->salt && strlen(r->salt) > HUNCH_MOST_SALT_BYTES)
        return hn_fail(err, HUNCH_USAGE, "salt has %zu bytes, expected at most %d", strlen(r->salt), HUNCH_MOST_SALT_BYTES);
    return HUNCH_OK;
}

/* The whole vocabulary is searched for each, between two rounds. */
static hunch_status check_breakers(const hunch_sampling *p, hunch_error *err) {
    if (p->n_dry_breakers > HUNCH_MOST_BREAKERS)
        return hn_fail(err, HUNCH_USAGE, "%d DRY breakers, expected at most %d", p->n_dry_breakers, HUNCH_MOST_BREAKERS);
    for (int i = 0; i < p->n_dry_breakers; i++)
        if (strlen(p->dry_breakers[i]) > HUNCH_MOST_STOP_BYTES)
            return hn_fail(err, HUNCH_USAGE, "DRY breaker %d has %zu bytes, expected at most %d", i, strlen(p->dry_breakers[i]),
                           HUNCH_MOST_STOP_BYTES);
    return HUNCH_OK;
}

hunch_status hn_request_check(const hunch_engine *e, const hunch_request *r, hunch_error *err) {
    enum { MOST_PREDICTED = 1 << 24 };
    if (!r->prompt || r->n_prompt == 0)
        return hn_fail(err, HUNCH_USAGE, "prompt is empty: expected at least one token");
    if (r->n_prompt > (size_t)e->context) return hn_fail_context(e, "prompt", r->n_prompt, err);
    if (r->top_logprobs < 0 || r->top_logprobs > HUNCH_MOST_TOP_LOGPROBS)
        return hn_fail(err, HUNCH_USAGE, "top_logprobs is %d, expected 0 to %d", r->top_logprobs, HUNCH_MOST_TOP_LOGPROBS);
    if ((unsigned)r->pooling > HUNCH_POOL_LAST)
        return hn_fail(err, HUNCH_USAGE, "pooling is %d, expected one of enum hunch_pooling", (int)r->pooling);
    if (r->pooling != HUNCH_POOL_NONE && !e->pooling)
        return hn_fail(err, HUNCH_USAGE, "pooling: this engine was opened without hunch_engine_options.pooling");
    if (r->thinking_budget < 0) return hn_fail(err, HUNCH_USAGE, "thinking_budget is %d, expected 0 (none) or more", r->thinking_budget);
    if (r->thinking_budget > 0 && !(e->model->may_think && e->model->think_stop))
        return hn_fail(err, HUNCH_USAGE, "thinking_budget: the chat template has no marks around thinking");
    if (!hn_grammar_fits(r->grammar, e->model))
        return hn_fail(err, HUNCH_USAGE, "grammar: it was opened for another model, expected the engine's");
    if (r->n_prediction > MOST_PREDICTED)
        return hn_fail(err, HUNCH_USAGE, "prediction of %zu tokens, expected at most %d", r->n_prediction,
                       MOST_PREDICTED);
    hunch_status st = hn_check_tokens(e, "prompt ", r->prompt, r->n_prompt, err);
    if (!st) st = hn_check_tokens(e, "prediction ", r->prediction, r->prediction ? r->n_prediction : 0, err);
    if (st) return st;
    st = check_ends(e, r, err);
    if (!st) st = check_drafting(e, r, err);
    if (st) return st;
    if (r->sampling.dry_multiplier > 0 && r->sampling.dry_breakers && !e->model->tokenizer)
        return hn_fail(err, HUNCH_USAGE, "DRY breakers need a tokenizer, and this model has none");
    st = hn_sampling_check(&r->sampling, e->model->target.arch.vocab, err);
    return st ? st : check_breakers(&r->sampling, err);
}

/* ---- the copy ----------------------------------------------------------------------------------------------------------- */

static void strings_free(char **strings, int n) {
    for (int i = 0; i < n; i++) hn_free(strings[i]);
    hn_free(strings);
}

static hunch_status copy_strings(char ***out, int *n_out, const char *const *from, int n, const char *what, hunch_error *err) {
    if (n == 0) return HUNCH_OK;
    *out = hn_zalloc((size_t)n, sizeof **out);
    if (!*out) return hn_fail_memory(err, what, (size_t)n * sizeof **out);
    for (; *n_out < n; ++*n_out)
        if (!((*out)[*n_out] = hn_strdup(from[*n_out]))) return hn_fail_memory(err, what, strlen(from[*n_out]));
    return HUNCH_OK;
}

static hunch_status copy_tokens(int32_t **out, const hunch_token *t, size_t n, const char *what, hunch_error *err) {
    if (!t || n == 0) return HUNCH_OK;
    *out = hn_alloc(n * sizeof **out);
    if (!*out) return hn_fail_memory(err, what, n * sizeof **out);
    memcpy(*out, t, n * sizeof **out);
    return HUNCH_OK;
}

/* What the sampler will be made of. */
static hunch_status copy_sampling(hn_session_request *q, const hunch_sampling *p, hunch_error *err) {
    const size_t bytes = (size_t)p->n_bias * sizeof *q->bias;
    q->sampling = *p;
    q->sampling.bias = NULL;
    q->sampling.dry_breakers = NULL;
    if (p->n_bias > 0) {
        q->bias = hn_alloc(bytes);
        if (!q->bias) return hn_fail_memory(err, "logit bias", bytes);
        memcpy(q->bias, p->bias, bytes);
        q->sampling.bias = q->bias;
    }
    return p->dry_breakers ? copy_strings(&q->breaker, &q->n_breakers, p->dry_breakers, p->n_dry_breakers, "DRY breakers", err) : HUNCH_OK;
}

/* Records in the statistics how the text is verified. */
static void record_rule(hunch_session *s) {
    static const hunch_verify of_rule[] = {[HN_RULE_GREEDY] = HUNCH_VERIFY_GREEDY,
                                           [HN_RULE_MATCH] = HUNCH_VERIFY_MATCH,
                                           [HN_RULE_RATIO] = HUNCH_VERIFY_RATIO,
                                           [HN_RULE_BLOCK] = HUNCH_VERIFY_BLOCK,
                                           [HN_RULE_TRAVERSAL] = HUNCH_VERIFY_TRAVERSAL};
    if (s->request.rule >= HN_RULE_LENIENCE)
        s->stats.lossy = s->engine->lossy;
    else
        s->stats.verify = of_rule[s->request.rule];
}

/* What limits the text's thinking; its marks are the model's. */
static hn_budget budget_of(const hunch_model *m, const hunch_request *r) {
    if (r->thinking_budget == 0) return (hn_budget){0};
    return (hn_budget){.tokenizer = m->tokenizer, .mark = {m->think_begin, m->think_end}, .end = m->think_stop, .n_end = m->n_think_stop,
                       .most = r->thinking_budget, .channels = m->think_channels, .begins = hn_tokens_think(m, r->prompt, r->n_prompt)};
}

hunch_status hn_request_copy(hunch_session *s, const hunch_request *r, hunch_error *err) {
    hunch_engine *e = s->engine;
    s->request.ignore_eos = r->ignore_eos;
    s->request.loop_tokens = (size_t)r->loop_tokens;
    s->request.logprobs = r->logprobs || r->top_logprobs > 0;
    s->request.n_top = r->top_logprobs < e->model->target.arch.vocab ? r->top_logprobs : e->model->target.arch.vocab;
    s->request.min_new = (size_t)r->min_tokens;
    s->request.drafters = r->drafters;
    s->request.one_token = r->one_token;
    s->request.draft_depth = r->draft_depth ? r->draft_depth : HUNCH_MAX_DEPTH;
    s->request.draft_rows = r->draft_rows ? r->draft_rows : HUNCH_MAX_ROWS;
    s->request.salt = r->salt && *r->salt ? hn_keyed_hash(e->salt_key, r->salt, strlen(r->salt)) : 0;
    s->request.priority = r->priority;
    s->request.deadline = r->deadline_s > 0 ? hn_now() + r->deadline_s : 0;
    s->request.grammar = hn_grammar_use(r->grammar);
    s->request.budget = budget_of(e->model, r);
    s->request.on_logits = r->on_logits;
    s->request.on_logits_user = r->on_logits_user;
    s->request.on_round = r->on_round;
    s->request.on_round_user = r->on_round_user;
    s->request.on_output = r->on_output;
    s->request.on_output_user = r->on_output_user;
    s->text.n_prompt = s->text.n = r->n_prompt;
    /* The context holds the text; a prompt that fills it still gets the one token that its last row decides. */
    s->request.max_new = r->n_prompt < (size_t)e->context ? (size_t)e->context - r->n_prompt : 1;
    if (r->max_tokens > 0 && (size_t)r->max_tokens < s->request.max_new) s->request.max_new = (size_t)r->max_tokens;
    if (!hn_grow((void **)&s->text.token, &s->text.cap, s->text.n_prompt + 1, sizeof *s->text.token))
        return hn_fail_memory(err, "prompt", s->text.n_prompt * sizeof *s->text.token);
    memcpy(s->text.token, r->prompt, s->text.n_prompt * sizeof *s->text.token);
    hunch_status st = hn_prompt_values_open(s, r, err);
    if (!st) st = copy_tokens(&s->request.prediction, r->prediction, r->n_prediction, "prediction", err);
    s->request.n_prediction = s->request.prediction ? (int)r->n_prediction : 0;
    if (!st) st = hn_rule_choose(e->verify, &e->lossy, &r->sampling, &s->request.rule, err);
    if (!st) st = copy_sampling(&s->request, &r->sampling, err);
    if (!st) st = copy_strings(&s->request.stop, &s->request.n_stop, r->stop, r->n_stop, "stop strings", err);
    if (!st) st = copy_tokens(&s->request.stop_token, r->stop_tokens, (size_t)r->n_stop_tokens, "stop tokens", err);
    s->request.n_stop_tokens = s->request.stop_token ? r->n_stop_tokens : 0;
    if (!st) record_rule(s);
    return st;
}

void hn_request_fini(hn_session_request *r) {
    strings_free(r->stop, r->n_stop);
    strings_free(r->breaker, r->n_breakers);
    hn_free(r->stop_token);
    hn_free(r->bias);
    hn_free(r->oracle);
    hn_free(r->prediction);
    hunch_grammar_close(&r->grammar);
}

/* ---- the sampler --------------------------------------------------------------------------------------------------------- */

/* DRY's breakers: the tokens whose bytes contain one of the strings. */
static hunch_status find_breakers(hn_sampler *sampler, const hn_session_request *r, const hn_tokenizer *t, hunch_error *err) {
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    const char *const *strings = r->breaker ? (const char *const *)r->breaker : usual;
    const int n = r->breaker ? r->n_breakers : (int)(sizeof usual / sizeof *usual), vocab = sampler->vocab;
    if (!hn_sampler_wants_breakers(sampler)) return HUNCH_OK;
    uint8_t *bits = hn_zalloc((size_t)(vocab + 7) / 8, 1);
    if (!bits) return hn_fail_memory(err, "DRY breakers", (size_t)vocab / 8);
    for (int id = 0; t && id < vocab; id++) {
        size_t len = 0;
        const char *piece = hn_tokenizer_piece(t, id, &len);
        for (int i = 0; piece && i < n; i++)
            if (memmem(piece, len, strings[i], strlen(strings[i]))) bits[id / 8] |= (uint8_t)(1u << (id % 8));
    }
    hunch_status st = hn_sampler_breakers(sampler, bits, err);
    hn_free(bits);
    return st;
}

bool hn_request_ends(const hunch_session *s, int32_t token) {
    const hn_tokenizer *t = s->engine->model->tokenizer;
    for (int i = 0; i < s->request.n_stop_tokens; i++)
        if (s->request.stop_token[i] == token) return true;
    return t && (s->request.grammar || !s->request.ignore_eos) && hn_tokenizer_is_end(t, token);
}

/* Until the text may end, the tokens that would end it have probability 0. */
static hunch_status forbid_ends(hunch_session *s, hunch_error *err) {
    const int vocab = s->sampler.vocab;
    int n = 0;
    if (s->request.min_new == 0) return HUNCH_OK;
    int32_t *ends = hn_alloc((size_t)vocab * sizeof *ends);
    if (!ends) return hn_fail_memory(err, "tokens that end a text", (size_t)vocab * sizeof *ends);
    for (int32_t id = 0; id < vocab; id++)
        if (hn_request_ends(s, id)) ends[n++] = id;
    const hunch_status st = hn_sampler_forbid(&s->sampler, ends, n, s->text.n_prompt + s->request.min_new, err);
    hn_free(ends);
    return st;
}

hunch_status hn_request_sampler(hunch_session *s, hunch_error *err) {
    const hunch_model *m = s->engine->model;
    if (s->sampler.vocab > 0) return HUNCH_OK;
    hunch_status st = hn_sampler_init(&s->sampler, &s->request.sampling, m->target.arch.vocab, err);
    if (!st) st = find_breakers(&s->sampler, &s->request, m->tokenizer, err);
    if (!st) st = forbid_ends(s, err);
    if (!st && s->request.grammar) st = hn_sampler_constrain(&s->sampler, hn_grammar_matcher(s->request.grammar), err);
    if (!st && s->request.budget.most) st = hn_sampler_limit_thinking(&s->sampler, &s->request.budget, err);
    s->sampler.grows = true;
    if (st) hn_sampler_fini(&s->sampler);
    return st;
}
