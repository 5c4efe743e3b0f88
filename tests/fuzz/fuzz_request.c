/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_request.c - parameters of an engine and a session on a tiny model: SPECs of drafters, the engine's numbers, prompt and
 * prediction, sampling parameters, biases, stop strings. A request that is not refused ends, and with a lossless rule its text is
 * that of plain decoding.
 *
 * Input: SPECs joined by '+', prediction (a token a byte), prompt (the same), stop strings and DRY breakers (a line each), then a
 * byte a number, 0xFF between the parts; missing numbers have their defaults. Its length chooses a grammar, calls of tools or neither. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_tiny.h"

enum { MOST_TOKENS = 40, MOST_WORDS = 8, MOST_BIASES = 4 };

static hunch_model *model_of_all(void) {
    static hunch_model *m;
    if (m != NULL) return m;
    hunch_model_options o;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.threads = 1;
    FUZZ_MUST(hunch_model_open(&m, fuzz_tiny_model(0), &o, &err) == HUNCH_OK);
    return m;
}

/* ---- the input ---------------------------------------------------------------------------------------------------- */

typedef struct words {
    char *text;
    const char *at[MOST_WORDS];
    int n;
} words;

static words words_cut(fuzz_bytes part, const char *separator) {
    words w = {.text = fuzz_text(part)};
    char *rest = w.text;
    for (char *one; *w.text && w.n < MOST_WORDS && (one = strsep(&rest, separator)) != NULL;) w.at[w.n++] = one;
    return w;
}

static size_t tokens_read(fuzz_bytes part, hunch_token *out) {
    size_t n = part.size < MOST_TOKENS ? part.size : MOST_TOKENS;
    for (size_t i = 0; i < n; i++) out[i] = (hunch_token)(int8_t)part.at[i]; /* most inside the vocabulary, some not */
    return n;
}

/* True unless the input ends here. */
static bool byte_take(fuzz_bytes *rest, int *out) {
    if (rest->size == 0) return false;
    *out = *rest->at;
    *rest = (fuzz_bytes){rest->at + 1, rest->size - 1};
    return true;
}

static void number_take(fuzz_bytes *rest, double *out) {
    static const double odd[] = {NAN,   INFINITY, -INFINITY, -1, -1e-300, 1e-300, 1e-30, 1e-3, 0.999999, 1.0000001, 3.5,
                                 99.99, 100,      1000,      1e4, 1e30,   1e300,  -2,    -100, 0.5,      -0.0,      2};
    int b;
    if (!byte_take(rest, &b)) return;
    *out = b < 200 ? b / 100.0 : odd[(size_t)(b - 200) % (sizeof odd / sizeof *odd)];
}

static void whole_take(fuzz_bytes *rest, int *out) {
    static const int odd[] = {-1, INT32_MIN, INT32_MAX, 1000, 4096, 65536, -64, 1 << 20};
    int b;
    if (byte_take(rest, &b)) *out = b < 240 ? b : odd[b & 7];
}

/* Allowed sizes are limited: memory is not tested here. */
static void engine_numbers(fuzz_bytes *rest, hunch_engine_options *o) {
    int number[5] = {o->kv, o->verify, o->lossy.rule, o->pool_rows, o->no_prefix_reuse};
    whole_take(rest, &o->context);
    whole_take(rest, &o->parallel);
    whole_take(rest, &o->chunk);
    whole_take(rest, &o->page_rows);
    for (int i = 0; i < 5; i++) whole_take(rest, &number[i]);
    o->kv = (hunch_kv)number[0];
    o->verify = (hunch_verify)number[1];
    o->lossy.rule = (hunch_lossy_rule)number[2];
    o->pool_rows = number[3] < 1 << 16 ? number[3] : 1 << 16;
    o->no_prefix_reuse = number[4] & 1;
    number_take(rest, &o->lossy.a);
    number_take(rest, &o->lossy.b);
}

static void sampling_numbers(fuzz_bytes *rest, hunch_sampling *s) {
    double *const numbers[] = {&s->temperature,     &s->top_p,           &s->min_p,
                               &s->top_n_sigma,     &s->typical_p,       &s->xtc_probability,
                               &s->xtc_threshold,   &s->repetition_penalty, &s->frequency_penalty,
                               &s->presence_penalty, &s->dry_multiplier, &s->dry_base};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) number_take(rest, numbers[i]);
    whole_take(rest, &s->top_k);
    whole_take(rest, &s->dry_allowed_length);
    whole_take(rest, &s->dry_range);
}

static int biases_take(fuzz_bytes *rest, hunch_bias *bias) {
    int n = 0;
    for (; n < MOST_BIASES && rest->size > 0; n++) {
        bias[n] = (hunch_bias){0};
        whole_take(rest, &bias[n].token);
        number_take(rest, &bias[n].bias);
    }
    return n;
}

/* A grammar by number, some of one call of a tool; NULL: none. */
static hunch_grammar *grammar_open(size_t number) {
    static const struct {
        hunch_grammar_kind kind;
        const char *text;
    } forms[] = {{HUNCH_GRAMMAR_REGEX, "(a|bc)*d?[^e]{0,3}"},
                 {HUNCH_GRAMMAR_GBNF, "root ::= \"a\" root \"b\" | [c-e]"},
                 {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"type\": [\"integer\", \"array\"], \"items\": {\"enum\": [\"a\", 1]}}"}};
    static const char *const families[] = {"hermes", "llama3", "gpt-oss"};
    enum { FORMS = 3, FAMILIES = 3 };
    hunch_grammar *g = NULL;
    hunch_tools *t = NULL;
    hunch_tools_options o;
    hunch_error err = {0};
    if (number < FORMS)
        FUZZ_MUST(!hunch_grammar_open(&g, model_of_all(), forms[number].kind, forms[number].text, strlen(forms[number].text),
                                      HUNCH_GRAMMAR_AT_ONCE, &err));
    if (number < FORMS || number >= FORMS + 2 * FAMILIES) return g;
    hunch_tools_options_defaults(&o);
    o.tools = "[{\"name\": \"a\"}]";
    o.format = families[(number - FORMS) / 2];
    o.choice = number % 2 ? HUNCH_TOOLS_AUTO : HUNCH_TOOLS_REQUIRED;
    FUZZ_MUST(!hunch_tools_open(&t, model_of_all(), &o, &err) && !hunch_tools_grammar(&g, t, false, &err));
    hunch_tools_close(&t);
    return g;
}

/* ---- running it --------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    hunch_status opened;
    hunch_finish finish;
    hunch_verify verify;
    hunch_token token[64];
    size_t n;
} outcome;

static outcome session_run(hunch_engine *e, const hunch_request *r) {
    outcome out = {0};
    hunch_session *s = NULL;
    hunch_session_state state;
    hunch_error err = {0};
    out.opened = hunch_session_open(&s, e, r, &err);
    fuzz_check(out.opened, &err, NULL);
    if (out.opened != HUNCH_OK) return out;
    while (hunch_engine_running(e) > 0) FUZZ_MUST(hunch_engine_round(e, &err) == HUNCH_OK);
    hunch_session_get(s, &state);
    FUZZ_MUST(state.finish != HUNCH_RUNNING && state.n_tokens <= 64);
    if (state.finish == HUNCH_FINISH_FAILED && !strstr(state.error.message, "every logit is NaN or -inf") &&
        !strstr(state.error.message, "no token that the grammar allows can be drawn"))
        fuzz_check(state.error.status, &state.error, NULL);
    for (size_t i = 0; i < state.n_tokens; i++) {
        FUZZ_MUST(state.tokens[i] >= 0 && state.tokens[i] < TINY_VOCAB);
        out.token[i] = state.tokens[i];
    }
    out.n = state.n_tokens;
    out.finish = state.finish;
    out.verify = state.verify;
    hunch_session_close(&s);
    return out;
}

static bool engine_run(const hunch_engine_options *o, const hunch_request *r, outcome *out) {
    hunch_engine *e = NULL;
    hunch_error err = {0};
    hunch_status st = hunch_engine_open(&e, model_of_all(), o, &err);
    fuzz_check(st, &err, NULL);
    if (st == HUNCH_OK) *out = session_run(e, r);
    hunch_engine_close(&e);
    return st == HUNCH_OK;
}

/* Specs that name files are for other tests: some write them. */
static bool specs_harmless(fuzz_bytes part) {
    return !memmem(part.at, part.size, "save", 4) && !memmem(part.at, part.size, "dynamic", 7) && !memchr(part.at, ':', part.size);
}

static void both_run(hunch_engine_options *o, const hunch_request *r) {
    outcome drafted = {0}, plain = {0};
    if (!engine_run(o, r, &drafted)) return;
    const bool same = o->lossy.rule == HUNCH_LOSSLESS && (drafted.verify == HUNCH_VERIFY_GREEDY || drafted.verify == HUNCH_VERIFY_MATCH);
    if (!same) return;
    o->n_drafts = 0;
    FUZZ_MUST(engine_run(o, r, &plain));
    FUZZ_MUST(plain.opened == drafted.opened && plain.finish == drafted.finish && plain.n == drafted.n);
    FUZZ_MUST(memcmp(plain.token, drafted.token, sizeof plain.token) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hunch_token prediction[MOST_TOKENS], prompt[MOST_TOKENS];
    hunch_bias bias[MOST_BIASES];
    hunch_engine_options o;
    hunch_request r;
    fuzz_bytes rest = {data, size}, specs = fuzz_part(&rest);
    if (specs.size > 0 && !specs_harmless(specs)) return 0;
    words drafts = words_cut(specs, "+");
    hunch_engine_options_defaults(&o);
    hunch_request_defaults(&r, model_of_all());
    r.n_prediction = tokens_read(fuzz_part(&rest), prediction);
    r.n_prompt = tokens_read(fuzz_part(&rest), prompt);
    words stop = words_cut(fuzz_part(&rest), "\n"), breakers = words_cut(fuzz_part(&rest), "\n");
    engine_numbers(&rest, &o);
    whole_take(&rest, &r.max_tokens);
    sampling_numbers(&rest, &r.sampling);
    r.sampling.n_bias = biases_take(&rest, bias);
    o.drafts = drafts.at;
    o.n_drafts = drafts.n;
    r.prediction = prediction;
    r.prompt = prompt;
    r.stop = stop.at;
    r.n_stop = stop.n;
    r.ignore_eos = size & 1;
    r.sampling.dry_breakers = breakers.n ? breakers.at : NULL;
    r.sampling.n_dry_breakers = breakers.n;
    r.sampling.bias = bias;
    r.grammar = grammar_open(size / 2 % 16);
    both_run(&o, &r);
    hunch_grammar_close(&r.grammar);
    free(drafts.text);
    free(stop.text);
    free(breakers.text);
    return 0;
}
