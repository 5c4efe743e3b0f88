/* SPDX-License-Identifier: Apache-2.0 */
/* null_arguments_test.c - every call of hunch.h with NULL for each of its arguments that is a place: one
 * that it needs is HUNCH_USAGE and named, a call without a status does nothing and returns nothing. What the header declares is read from
 * it, so a new call, or a new argument, is tested here or listed as optional. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"

enum { MOST = 256, LONGEST = 80 };

/* ---- what the header declares ------------------------------------------------------------------------------------------------- */

static const char *const optional[] = {"hunch_free p",
                                       "hunch_model_open o",
                                       "hunch_model_row_bytes window",
                                       "hunch_token_piece special",
                                       "hunch_chat_render o",
                                       "hunch_chat_pieces o",
                                       "hunch_template_render now",
                                       "hunch_engine_open o",
                                       "hunch_draft sampling",
                                       "hunch_draft on_logits",
                                       "hunch_check_head o",
                                       "hunch_plan o",
                                       "hunch_convert o",
                                       "hunch_meter_open m",
                                       "hunch_meter_open o",
                                       "hunch_measure_profile pass_s"};

static char tested[MOST][LONGEST]; /* "call argument" */
static int n_tested;

static void seen(const char *call, const char *argument) {
    assert_true(n_tested < MOST);
    snprintf(tested[n_tested++], LONGEST, "%s %s", call, argument);
}

static bool is_tested(const char *name) {
    for (int i = 0; i < n_tested; i++)
        if (strcmp(tested[i], name) == 0) return true;
    return false;
}

static bool is_optional(const char *name) {
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (strcmp(optional[i], name) == 0) return true;
    return false;
}

/* Blanks comments, directives, and what is in braces. */
static void blank(char *s) {
    int depth = 0;
    for (char *at = s; *at; at++) {
        char *end = at;
        if (strncmp(at, "/*", 2) == 0)
            end = strstr(at, "*/") + 2;
        else if (*at == '#' && (at == s || at[-1] == '\n'))
            end = strchr(at, '\n');
        else if (strncmp(at, "extern \"C\" {", 12) == 0)
            end = at + 12;
        while (at < end) *at++ = ' ';
        depth += *at == '{';
        if (*at == '}' && depth > 0) {
            depth--;
            *at = ' ';
        }
        if (depth > 0 || *at == '\n') *at = ' ';
    }
}

static bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The name of an argument that is a place, "" for others and for those that every call takes NULL for. */
static void argument_name(const char *from, const char *to, char *name) {
    const char *star = memchr(from, '*', (size_t)(to - from)), *function = memchr(from, '(', (size_t)(to - from));
    const char *bracket = memchr(from, '[', (size_t)(to - from)), *end = bracket ? bracket : to, *begin;
    if (function) end = strchr(function, ')');
    for (begin = end; begin > from && in_name(begin[-1]); begin--) {}
    snprintf(name, LONGEST, "%.*s", star || bracket ? (int)(end - begin) : 0, begin);
    if (strcmp(name, "err") == 0 || strcmp(name, "user") == 0) *name = 0;
}

/* The arguments of a declaration after its opening parenthesis. Returns how many of them are places. */
static int arguments_read(const char *call, const char *at) {
    int depth = 0, found = 0;
    for (const char *from = at;; at++) {
        if ((*at == ',' && depth == 0) || (*at == ')' && depth == 0)) {
            char name[LONGEST], both[2 * LONGEST];
            argument_name(from, at, name);
            snprintf(both, sizeof both, "%s %s", call, name);
            if (*name && !is_tested(both) && !is_optional(both)) fail_msg("not tested with NULL: %s", both);
            found += *name != 0;
            from = at + 1;
        }
        if (*at == ')' && depth == 0) return found;
        depth += (*at == '(') - (*at == ')');
    }
}

/* Every call that the header declares. Returns how many places they take. */
static int header_read(void) {
    static char text[1 << 17];
    FILE *f = fopen(data_path("../../include/hunch/hunch.h"), "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    blank(text);
    int calls = 0, places = 0;
    for (char *rest = text, *one; (one = strsep(&rest, ";"));) {
        char *open = strchr(one, '('), *begin, call[LONGEST];
        if (!open || strstr(one, "typedef")) continue;
        for (begin = open; begin > one && in_name(begin[-1]); begin--) {}
        snprintf(call, sizeof call, "%.*s", (int)(open - begin), begin);
        assert_memory_equal(call, "hunch_", 6);
        places += arguments_read(call, open + 1);
        calls++;
    }
    assert_true(calls > 50);
    return places;
}

/* ---- calls with a status ------------------------------------------------------------------------------------------------------ */

static hunch_error error;
static hunch_error *const why = &error;

static void refused(const char *call, const char *argument, hunch_status st) {
    char named[LONGEST];
    snprintf(named, sizeof named, "argument %s is", argument);
    if (st != HUNCH_USAGE || error.status != HUNCH_USAGE || !strstr(error.message, call) || !strstr(error.message, named))
        fail_msg("%s without %s: status %d, \"%s\"", call, argument, (int)st, error.message);
    error = (hunch_error){0};
    seen(call, argument);
}

/* `...` are the arguments, one of them NULL. */
#define REFUSED(call, argument, ...) refused(#call, #argument, call(__VA_ARGS__))

static void each_row(void *user, size_t position, const float *logits, int vocab) {
    (void)user, (void)position, (void)logits, (void)vocab;
}

static void files_and_texts(hunch_model *m) {
    char *text;
    const char *bytes;
    size_t n;
    hunch_token *ids, id = 1;
    const hunch_message message = {"user", "a"};
    hunch_device device[HUNCH_DEVICES];
    int devices;
    REFUSED(hunch_devices, out, NULL, &devices, why);
    REFUSED(hunch_devices, n, device, NULL, why);
    REFUSED(hunch_tokenize, m, NULL, "a", 1, 0, &ids, &n, why);
    REFUSED(hunch_tokenize, text, m, NULL, 1, 0, &ids, &n, why);
    REFUSED(hunch_tokenize, ids, m, "a", 1, 0, NULL, &n, why);
    REFUSED(hunch_tokenize, n, m, "a", 1, 0, &ids, NULL, why);
    REFUSED(hunch_token_piece, m, NULL, 1, &bytes, &n, NULL, why);
    REFUSED(hunch_token_piece, bytes, m, 1, NULL, &n, NULL, why);
    REFUSED(hunch_token_piece, len, m, 1, &bytes, NULL, NULL, why);
    REFUSED(hunch_detokenize, m, NULL, &id, 1, &text, &n, why);
    REFUSED(hunch_detokenize, ids, m, NULL, 1, &text, &n, why);
    REFUSED(hunch_detokenize, text, m, &id, 1, NULL, &n, why);
    REFUSED(hunch_detokenize, len, m, &id, 1, &text, NULL, why);
    REFUSED(hunch_chat_render, m, NULL, "{}", NULL, &text, &n, why);
    REFUSED(hunch_chat_render, vars_json, m, NULL, NULL, &text, &n, why);
    REFUSED(hunch_chat_render, text, m, "{}", NULL, NULL, &n, why);
    REFUSED(hunch_chat_render, len, m, "{}", NULL, &text, NULL, why);
    hunch_piece *pieces;
    size_t n_pieces;
    REFUSED(hunch_chat_pieces, m, NULL, "{}", NULL, &text, &n, &pieces, &n_pieces, why);
    REFUSED(hunch_chat_pieces, vars_json, m, NULL, NULL, &text, &n, &pieces, &n_pieces, why);
    REFUSED(hunch_chat_pieces, text, m, "{}", NULL, NULL, &n, &pieces, &n_pieces, why);
    REFUSED(hunch_chat_pieces, len, m, "{}", NULL, &text, NULL, &pieces, &n_pieces, why);
    REFUSED(hunch_chat_pieces, pieces, m, "{}", NULL, &text, &n, NULL, &n_pieces, why);
    REFUSED(hunch_chat_pieces, n_pieces, m, "{}", NULL, &text, &n, &pieces, NULL, why);
    const hunch_piece whole = {1, true};
    REFUSED(hunch_tokenize_pieces, m, NULL, "a", 1, &whole, 1, &ids, &n, why);
    REFUSED(hunch_tokenize_pieces, text, m, NULL, 1, &whole, 1, &ids, &n, why);
    REFUSED(hunch_tokenize_pieces, pieces, m, "a", 1, NULL, 1, &ids, &n, why);
    REFUSED(hunch_tokenize_pieces, ids, m, "a", 1, &whole, 1, NULL, &n, why);
    REFUSED(hunch_tokenize_pieces, n, m, "a", 1, &whole, 1, &ids, NULL, why);
    REFUSED(hunch_tokenize_at_most, m, NULL, "a", 1, NULL, 0, 0, 1, &ids, &n, why);
    REFUSED(hunch_tokenize_at_most, text, m, NULL, 1, NULL, 0, 0, 1, &ids, &n, why);
    REFUSED(hunch_tokenize_at_most, pieces, m, "a", 1, NULL, 1, 0, 1, &ids, &n, why);
    REFUSED(hunch_tokenize_at_most, ids, m, "a", 1, NULL, 0, 0, 1, NULL, &n, why);
    REFUSED(hunch_tokenize_at_most, n, m, "a", 1, NULL, 0, 0, 1, &ids, NULL, why);
    hunch_split split = {0};
    hunch_part part;
    REFUSED(hunch_model_set_marks, m, NULL, "a", why);
    REFUSED(hunch_model_set_marks, template_text, m, NULL, why);
    assert_false(hunch_marks_are_special(NULL)), seen("hunch_marks_are_special", "m");
    assert_false(hunch_prompt_thinks(NULL, "a", 1)), seen("hunch_prompt_thinks", "m");
    assert_false(hunch_prompt_thinks(m, NULL, 1)), seen("hunch_prompt_thinks", "text");
    assert_false(hunch_split_next(NULL, &split, "a", 1, true, &part)), seen("hunch_split_next", "m");
    assert_false(hunch_split_next(m, NULL, "a", 1, true, &part)), seen("hunch_split_next", "s");
    assert_false(hunch_split_next(m, &split, NULL, 1, true, &part)), seen("hunch_split_next", "text");
    assert_false(hunch_split_next(m, &split, "a", 1, true, NULL)), seen("hunch_split_next", "part");
    REFUSED(hunch_chat_tokens, m, NULL, &message, 1, &ids, &n, why);
    REFUSED(hunch_chat_tokens, messages, m, NULL, 1, &ids, &n, why);
    REFUSED(hunch_chat_tokens, ids, m, &message, 1, NULL, &n, why);
    REFUSED(hunch_chat_tokens, n_ids, m, &message, 1, &ids, NULL, why);
    hunch_grammar *grammar = NULL;
    REFUSED(hunch_grammar_open, out, NULL, m, HUNCH_GRAMMAR_REGEX, "a", 1, HUNCH_GRAMMAR_AT_ONCE, why);
    REFUSED(hunch_grammar_open, m, &grammar, NULL, HUNCH_GRAMMAR_REGEX, "a", 1, HUNCH_GRAMMAR_AT_ONCE, why);
    REFUSED(hunch_grammar_open, text, &grammar, m, HUNCH_GRAMMAR_REGEX, NULL, 1, HUNCH_GRAMMAR_AT_ONCE, why);
    hunch_grammar_close(NULL), seen("hunch_grammar_close", "g");
    assert_null(hunch_grammar_ignored(NULL)), seen("hunch_grammar_ignored", "g");
    REFUSED(hunch_template_render, template_text, NULL, "{}", NULL, &text, &n, why);
    REFUSED(hunch_template_render, vars_json, "a", NULL, NULL, &text, &n, why);
    REFUSED(hunch_template_render, text, "a", "{}", NULL, NULL, &n, why);
    REFUSED(hunch_template_render, len, "a", "{}", NULL, &text, NULL, why);
}

static void calls_of_tools(hunch_model *m) {
    hunch_tools *tools = NULL;
    hunch_calls *calls = NULL;
    hunch_grammar *grammar = NULL;
    hunch_answer a = {.n_calls = 1};
    hunch_tools_options o;
    hunch_tools_options_defaults(NULL), seen("hunch_tools_options_defaults", "o");
    hunch_tools_options_defaults(&o);
    assert_int_equal(hunch_tools_open(&tools, m, &o, why), HUNCH_USAGE); /* its list is NULL */
    o.tools = "[{\"name\": \"f\"}]";
    o.format = "hermes";
    REFUSED(hunch_tools_open, out, NULL, m, &o, why);
    REFUSED(hunch_tools_open, m, &tools, NULL, &o, why);
    REFUSED(hunch_tools_open, o, &tools, m, NULL, why);
    must(hunch_tools_open(&tools, m, &o, err));
    REFUSED(hunch_tools_grammar, out, NULL, tools, false, why);
    REFUSED(hunch_tools_grammar, t, &grammar, NULL, false, why);
    REFUSED(hunch_calls_open, out, NULL, tools, false, why);
    REFUSED(hunch_calls_open, t, &calls, NULL, false, why);
    must(hunch_calls_open(&calls, tools, false, err));
    REFUSED(hunch_calls_feed, c, NULL, "a", 1, true, why);
    REFUSED(hunch_calls_feed, text, calls, NULL, 1, true, why);
    hunch_calls_get(NULL, &a), seen("hunch_calls_get", "c");
    assert_int_equal(a.n_calls, 0);
    hunch_calls_get(calls, NULL), seen("hunch_calls_get", "out");
    assert_null(hunch_tools_format(NULL)), seen("hunch_tools_format", "t");
    assert_int_equal(hunch_tools_stop(NULL), -1), seen("hunch_tools_stop", "t");
    hunch_calls_close(&calls);
    hunch_tools_close(&tools);
    hunch_calls_close(NULL), seen("hunch_calls_close", "c");
    hunch_tools_close(NULL), seen("hunch_tools_close", "t");
}

static void handles(const char *path, hunch_model *m, hunch_engine *e) {
    hunch_model *no_model = m;
    hunch_engine *no_engine = e;
    hunch_session *s = NULL;
    hunch_request r;
    char *json;
    hunch_request_defaults(&r, m);
    REFUSED(hunch_model_open, out, NULL, path, NULL, why);
    REFUSED(hunch_model_open, path, &no_model, NULL, NULL, why);
    REFUSED(hunch_engine_open, out, NULL, m, NULL, why);
    REFUSED(hunch_engine_open, m, &no_engine, NULL, NULL, why);
    assert_true(no_model == NULL && no_engine == NULL);
    REFUSED(hunch_session_open, out, NULL, e, &r, why);
    REFUSED(hunch_session_open, e, &s, NULL, &r, why);
    REFUSED(hunch_session_open, r, &s, e, NULL, why);
    assert_int_equal(hunch_session_open(&s, e, &r, why), HUNCH_USAGE); /* its prompt is NULL */
    REFUSED(hunch_engine_round, e, NULL, why);
    REFUSED(hunch_engine_run, e, NULL, why);
    REFUSED(hunch_inspect, path, NULL, &json, why);
    REFUSED(hunch_inspect, json, path, NULL, why);
    REFUSED(hunch_check_head, m, NULL, "eagle:a", NULL, &json, why);
    REFUSED(hunch_check_head, spec, m, NULL, NULL, &json, why);
    REFUSED(hunch_check_head, json, m, "eagle:a", NULL, NULL, why);
    REFUSED(hunch_plan, m, NULL, NULL, &json, why);
    REFUSED(hunch_plan, json, m, NULL, NULL, why);
    REFUSED(hunch_convert, path, NULL, "a", NULL, why);
    REFUSED(hunch_convert, out_path, "a", NULL, NULL, why);
}

static void passes(hunch_engine *e) {
    const hunch_token id = 1;
    hunch_draft_result draft;
    hunch_phase phases[HUNCH_PHASES];
    hunch_machine machine;
    hunch_meter *t;
    double x[2];
    REFUSED(hunch_evaluate, e, NULL, &id, 1, each_row, NULL, why);
    REFUSED(hunch_evaluate, tokens, e, NULL, 1, each_row, NULL, why);
    REFUSED(hunch_evaluate, row, e, &id, 1, NULL, NULL, why);
    REFUSED(hunch_draft, e, NULL, &id, 1, 0, -1, NULL, NULL, NULL, &draft, why);
    REFUSED(hunch_draft, tokens, e, NULL, 1, 0, -1, NULL, NULL, NULL, &draft, why);
    REFUSED(hunch_draft, out, e, &id, 1, 0, -1, NULL, NULL, NULL, NULL, why);
    REFUSED(hunch_measure_pass, e, NULL, 1, 0, 1, x, why);
    REFUSED(hunch_measure_pass, seconds, e, 1, 0, 1, NULL, why);
    REFUSED(hunch_measure_prefill, e, NULL, 1, x, why);
    REFUSED(hunch_measure_prefill, seconds, e, 1, NULL, why);
    REFUSED(hunch_measure_decode, e, NULL, 1, 0, x, why);
    REFUSED(hunch_measure_decode, seconds, e, 1, 0, NULL, why);
    REFUSED(hunch_measure_rollback, e, NULL, 2, 1, 0, 1, x, why);
    REFUSED(hunch_measure_rollback, seconds, e, 2, 1, 0, 1, NULL, why);
    REFUSED(hunch_measure_commit, e, NULL, 2, 1, 0, 1, x, why);
    REFUSED(hunch_measure_commit, seconds, e, 2, 1, 0, 1, NULL, why);
    REFUSED(hunch_measure_profile, e, NULL, 1, 0, phases, NULL, why);
    REFUSED(hunch_measure_profile, phases, e, 1, 0, NULL, NULL, why);
    REFUSED(hunch_meter_open, out, NULL, NULL, NULL, why);
    must(hunch_meter_open(&t, NULL, NULL, err));
    REFUSED(hunch_meter_machine, t, NULL, &machine, why);
    REFUSED(hunch_meter_machine, out, t, NULL, why);
    REFUSED(hunch_meter_read, t, NULL, 1 << 20, 1, false, 1, x, why);
    REFUSED(hunch_meter_read, gb_s, t, 1 << 20, 1, false, 1, NULL, why);
    hunch_meter_close(&t);
}

/* ---- calls without ------------------------------------------------------------------------------------------------------------ */

/* Frees and closes nothing; defaults and information go nowhere. */
static void nothing_happens(void) {
    hunch_free(NULL);
    hunch_model_close(NULL), seen("hunch_model_close", "m");
    hunch_engine_close(NULL), seen("hunch_engine_close", "e");
    hunch_session_close(NULL), seen("hunch_session_close", "s");
    hunch_meter_close(NULL), seen("hunch_meter_close", "t");
    hunch_session_cancel(NULL), seen("hunch_session_cancel", "s");
    hunch_session_pause(NULL, true), seen("hunch_session_pause", "s");
    hunch_engine_forget(NULL), seen("hunch_engine_forget", "e");
    hunch_build_get_info(NULL), seen("hunch_build_get_info", "out");
    hunch_model_options_defaults(NULL), seen("hunch_model_options_defaults", "o");
    hunch_engine_options_defaults(NULL), seen("hunch_engine_options_defaults", "o");
    hunch_check_options_defaults(NULL), seen("hunch_check_options_defaults", "o");
    hunch_plan_options_defaults(NULL), seen("hunch_plan_options_defaults", "o");
    hunch_convert_options_defaults(NULL), seen("hunch_convert_options_defaults", "o");
    hunch_chat_options_defaults(NULL), seen("hunch_chat_options_defaults", "o");
}

/* What is asked of nothing is nothing. */
static void nothing_is_returned(hunch_model *m, hunch_engine *e) {
    hunch_model_info info = {.layers = 1};
    hunch_session_state state = {.n_tokens = 1};
    hunch_work work = {.kv_bytes = 1};
    hunch_request r = {.max_tokens = 1};
    uint64_t window = 1;
    hunch_model_get_info(m, NULL), seen("hunch_model_get_info", "info");
    hunch_model_get_info(NULL, &info), seen("hunch_model_get_info", "m");
    assert_int_equal(info.layers, 0);
    assert_int_equal(hunch_model_kv_elements(NULL, 1), 0), seen("hunch_model_kv_elements", "m");
    assert_int_equal(hunch_model_row_bytes(NULL, HUNCH_KV_DEFAULT, &window), 0), seen("hunch_model_row_bytes", "m");
    assert_int_equal(window, 0);
    assert_int_equal(hunch_model_context_for(NULL, 1), 0), seen("hunch_model_context_for", "m");
    assert_int_equal(hunch_engine_states(NULL), 0), seen("hunch_engine_states", "e");
    assert_int_equal(hunch_engine_context(NULL), 0), seen("hunch_engine_context", "e");
    assert_int_equal(hunch_engine_chunk(NULL), 0), seen("hunch_engine_chunk", "e");
    assert_int_equal(hunch_engine_drafters(NULL), 0), seen("hunch_engine_drafters", "e");
    assert_int_equal(hunch_engine_running(NULL), 0), seen("hunch_engine_running", "e");
    assert_null(hunch_engine_drafter_name(NULL, 0)), seen("hunch_engine_drafter_name", "e");
    assert_null(hunch_engine_drafter_about(NULL, 0)), seen("hunch_engine_drafter_about", "e");
    assert_int_equal(hunch_engine_drafter_bytes(NULL, 0, 1), 0), seen("hunch_engine_drafter_bytes", "e");
    assert_null(hunch_engine_note(NULL, 0)), seen("hunch_engine_note", "e");
    assert_null(hunch_engine_left_out(NULL, 0)), seen("hunch_engine_left_out", "e");
    hunch_request_defaults(NULL, m), seen("hunch_request_defaults", "r");
    hunch_request_defaults(&r, NULL), seen("hunch_request_defaults", "m");
    assert_true(r.max_tokens == 0 && r.sampling.top_p == 1);
    hunch_session_get(NULL, &state), seen("hunch_session_get", "s");
    assert_true(state.n_tokens == 0 && state.tokens == NULL);
    hunch_session_get(NULL, NULL), seen("hunch_session_get", "state");
    hunch_engine_stats numbers = {.pages = 7};
    hunch_engine_get_stats(NULL, &numbers), seen("hunch_engine_get_stats", "e");
    assert_int_equal(numbers.pages, 0);
    hunch_engine_get_stats(NULL, NULL), seen("hunch_engine_get_stats", "out");
    hunch_memory memory = {.planned = 7};
    hunch_engine_get_memory(NULL, &memory), seen("hunch_engine_get_memory", "e");
    assert_int_equal(memory.planned, 0);
    hunch_engine_get_memory(NULL, NULL), seen("hunch_engine_get_memory", "out");
    assert_int_equal(hunch_model_memory_left(NULL), 0), seen("hunch_model_memory_left", "m");
    assert_true(hunch_measure_experts(NULL) == 0), seen("hunch_measure_experts", "e");
    hunch_engine_work(e, 1, 1, 1, NULL), seen("hunch_engine_work", "out");
    hunch_engine_work(NULL, 1, 1, 1, &work), seen("hunch_engine_work", "e");
    assert_true(work.kv_bytes == 0);
}

/* Lists of a request that are NULL although their number is not 0. */
static void lists(hunch_engine *e) {
    const hunch_token id = 1;
    static const char *const none[] = {NULL};
    hunch_request r[4];
    hunch_session *s;
    for (int i = 0; i < 4; i++) {
        hunch_request_defaults(&r[i], NULL);
        r[i].prompt = &id;
        r[i].n_prompt = 1;
    }
    r[0].n_stop = 1;
    r[1].sampling.n_bias = 1;
    r[2].sampling.dry_multiplier = 1;
    r[2].sampling.dry_breakers = none;
    r[2].sampling.n_dry_breakers = 1;
    r[3].stop = none;
    r[3].n_stop = 1;
    for (int i = 0; i < 4; i++) assert_int_equal(hunch_session_open(&s, e, &r[i], why), HUNCH_USAGE);
}

static void test_no_call_crashes(void **state) {
    (void)state;
    const char *path = data_path("models/stories260K/stories260K.f32.gguf");
    hunch_model *m = open_model(path, "ref", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    hunch_engine *e = open_engine_with(m, NULL, o);
    calls_of_tools(m);
    files_and_texts(m);
    handles(path, m, e);
    passes(e);
    nothing_happens();
    nothing_is_returned(m, e);
    lists(e);
    assert_int_equal(header_read(), n_tested + (int)(sizeof optional / sizeof *optional)); /* no name that is not there */
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* An empty text or list needs no place. */
static void test_empty_is_no_error(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "ref", 1, HUNCH_PRECISION_NATIVE);
    hunch_token *ids;
    size_t n = 1;
    char *text;
    must(hunch_tokenize(m, NULL, 0, 0, &ids, &n, err));
    assert_int_equal(n, 0);
    hunch_free(ids);
    must(hunch_detokenize(m, NULL, 0, &text, &n, err));
    assert_string_equal(text, "");
    hunch_free(text);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_call_crashes),
        cmocka_unit_test(test_empty_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
