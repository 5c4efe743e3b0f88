/* SPDX-License-Identifier: Apache-2.0 */
/* command_dists_test.c - the `hunch` command: flags that change the distribution of a text and the rule that verifies it,
 * templates, predictions, --why, repeated comparisons, `draft`. */
#include "command.h"

/* ---- run: distributions, rules, templates, reasons ---------------------------------------------------------------------- */

static void test_run_bias(void **state) {
    (void)state;
    json_t *plain = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "30");
    long long banned = json_integer_value(json_array_get(get(plain, "tokens"), 2));
    char forbid[32], force[32];
    snprintf(forbid, sizeof forbid, "%lld=-inf", banned);
    snprintf(force, sizeof force, "%lld=1e4", banned);
    json_t *without = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "30", "--logit-bias", forbid);
    json_t *only = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "5", "--logit-bias", "3=1",
                           "--logit-bias", force);
    size_t i;
    const json_t *t;
    json_array_foreach(get(without, "tokens"), i, t) assert_true(json_integer_value(t) != banned);
    json_array_foreach(get(only, "tokens"), i, t) assert_int_equal(json_integer_value(t), banned);
    assert_int_equal(json_array_size(get(only, "tokens")), 5);
    json_decref(plain);
    json_decref(without);
    json_decref(only);
}

/* Every flag that changes the distribution changes the text of this seed. */
static void test_run_dists(void **state) {
    (void)state;
    static const char *const dists[][4] = {{"--top-n-sigma", "0.5"},
                                          {"--typical", "0.2"},
                                          {"--xtc-probability", "1"},
                                          {"--xtc-probability", "1", "--xtc-threshold", "0.02"},
                                          {"--repetition-penalty", "1.8"},
                                          {"--presence-penalty", "2"},
                                          {"--frequency-penalty", "2"},
                                          {"--dry-multiplier", "5", "--dry-allowed-length", "1"},
                                          {"--min-p", "0.4"}};
    json_t *plain = json_of("run", "-m", STORIES, "-p", "Once", "-n", "80", "--temperature", "1.2", "--seed", "5");
    for (size_t i = 0; i < sizeof dists / sizeof *dists; i++) {
        const char *args[20] = {"run",           "-m",  STORIES,  "-p", "Once",  "-n", "80",
                                "--temperature", "1.2", "--seed", "5",  "--json"};
        int n = 12;
        for (int k = 0; k < 4 && dists[i][k]; k++)
            args[n++] = dists[i][k];
        json_t *j = json_args(args);
        run_shape(j);
        if (json_equal(get(j, "tokens"), get(plain, "tokens")))
            fail_msg("%s changes nothing", dists[i][0]);
        json_decref(j);
    }
    json_decref(plain);
}

static void test_run_rules(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "40", "--temperature", "1", "--verify", "ratio",
                        "--draft", "forced,accept=0.6,depth=3");
    run_shape(j);
    assert_string_equal(text_of(j, "verify"), "ratio");
    json_decref(j);
    j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "40", "--verify", "ratio", "--draft", "ngram");
    assert_string_equal(text_of(j, "verify"), "greedy"); /* temperature 0 */
    json_decref(j);
    result r = command("run", "-m", STORIES, "-p", "Once", "-n", "40", "--temperature", "1", "--verify", "ratio",
                       "--draft", "ngram");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "distribution of the text"));
    result_free(&r);
}

/* README: "An option that may change the text is called `--lossy-…`, is never a default, and marks every answer." */
static void test_run_lossy(void **state) {
    (void)state;
    static const struct {
        const char *flag, *value, *rule;
        double parameters[2];
        size_t n;
    } rules[] = {{"--lossy-lenience", "0.5", "lenience", {0.5, 0}, 1},
                 {"--lossy-typical", "0.09,0.3", "typical", {0.09, 0.3}, 2},
                 {"--lossy-top-m", "4", "top-m", {4, 0}, 1}};
    for (size_t i = 0; i < 3; i++) {
        json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "40", "--temperature", "1", "--draft", "ngram",
                            rules[i].flag, rules[i].value);
        assert_string_equal(text_of(j, "verify"), rules[i].rule);
        const json_t *lossy = get(j, "lossy"), *parameters = get(lossy, "parameters");
        assert_string_equal(text_of(lossy, "rule"), rules[i].rule);
        assert_int_equal(json_array_size(parameters), rules[i].n);
        for (size_t k = 0; k < rules[i].n; k++)
            near(json_number_value(json_array_get(parameters, k)), rules[i].parameters[k], 1e-9);
        json_decref(j);
    }
    result r = command("run", "-m", STORIES, "-p", "Once", "-n", "10", "--draft", "ngram", "--lossy-top-m", "4");
    assert_non_null(strstr(r.err, "LOSSY"));
    result_free(&r);
    json_t *j = json_of("compare", "-m", STORIES, "-p", "Once", "-n", "20", "--lossy-top-m", "4", "--draft", "ngram");
    assert_string_equal(text_of(get(j, "lossy"), "rule"), "top-m");
    json_decref(j);
    j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "10", "--temperature", "1"); /* none is a default */
    assert_true(json_is_null(get(j, "lossy")));
    assert_string_equal(text_of(j, "verify"), "match");
    json_decref(j);
}

static void test_run_logprobs(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "60", "--precision", "f32", "--logprobs",
                        "--draft", "forced,accept=0.7,depth=4");
    const json_t *tokens = get(j, "tokens"), *logprobs = get(j, "logprobs");
    assert_int_equal(json_array_size(logprobs), json_array_size(tokens));
    json_t *pieces = json_of("tokenize", "-m", STORIES, "-p", "Once upon a time"), *ids = json_array();
    json_array_append_new(ids, json_integer(1));
    json_array_extend(ids, get(pieces, "ids"));
    size_t prompt = json_array_size(ids);
    assert_int_equal(prompt, int_of(j, "prompt_tokens"));
    json_array_extend(ids, (json_t *)(uintptr_t)tokens);
    matrix m = logits_of(ids, 0, json_array_size(ids));
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        double wanted = -nll_sum(&m, ids, 0, prompt + i, prompt + i + 1);
        double got = json_number_value(json_array_get(logprobs, i));
        if (fabs(got - wanted) > 1e-4 * (1 + fabs(wanted)))
            fail_msg("log-probability %zu: %g, the logits say %g", i, got, wanted);
    }
    free(m.file);
    json_decref(ids);
    json_decref(pieces);
    json_decref(j);
}

static void test_run_why(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "60", "--why");
    const json_t *why = get(j, "why"), *round;
    size_t i, k;
    long long accepted = 0;
    assert_int_equal(json_array_size(why), int_of(j, "rounds"));
    json_array_foreach(why, i, round) {
        const json_t *considered = get(round, "considered"), *choice;
        assert_int_equal(int_of(round, "round"), i + 1);
        assert_true(int_of(round, "rows") >= 1 && real_of(round, "pass_ms") > 0);
        assert_true(json_is_true(get(round, "controlled")));
        assert_true(int_of(round, "chosen") >= 0 && int_of(round, "chosen") < (long long)json_array_size(considered));
        json_array_foreach(considered, k, choice) {
            assert_true(int_of(choice, "drafter") >= -2 && real_of(choice, "expected") >= 1); /* -2: several */
            assert_true(real_of(choice, "ms") > 0 && int_of(choice, "rows") >= int_of(choice, "depth"));
        }
        accepted += int_of(round, "accepted");
    }
    /* a stop inside the last round drops accepted tokens after it */
    assert_true(accepted >= int_of(j, "accepted"));
    result r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "60", "--why");
    char last[32];
    snprintf(last, sizeof last, "round %lld at", int_of(j, "rounds"));
    assert_non_null(strstr(r.err, "round 1 at"));
    assert_non_null(strstr(r.err, "accepted"));
    result_free(&r);
    r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "30", "--why", "--draft", "ngram");
    assert_non_null(strstr(r.err, "every draft is verified"));
    result_free(&r);
    json_decref(j);
}

/* The speed at the end of an alternative's text, "…, 130/s". */
static double speed_said(const char *alternative, const char *end) {
    const char *at = end;
    while (at > alternative && at[-1] != ',') at--;
    return strtod(at, NULL);
}

/* Whether the line's choice is the best by its own numbers; before any pass was timed there are none. */
static bool choice_is_best(const char *line) {
    double chosen = -1, best = 0;
    const char *from = strchr(line, ':');
    for (const char *end; (end = strstr(from, "/s ")) && end < strstr(line, " | "); from = end + 2) {
        const double speed = speed_said(from, end);
        const char *arrow = strstr(from, "->");
        if (arrow && arrow < end) chosen = speed;
        if (speed > best) best = speed;
    }
    assert_true(chosen > 0 || best == 0);
    return chosen >= best;
}

/* Lines whose choice is not the best; each has one of the reasons. */
static int reasons_said(char *lines) {
    static const char *const reasons[] = {" (a drafter was tried)", " (decided after drafting)",
                                          " (plain decoding is measured)", " (nearly as good)",
                                          " (times still uncertain)"};
    int n = 0;
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        int said = 0;
        if (strncmp(line, "round ", 6) != 0 || choice_is_best(line)) continue;
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) said += strstr(line, reasons[i]) != NULL;
        if (said != 1) fail_msg("no reason, or several: %s", line);
        n++;
    }
    return n;
}

/* A draft model that costs as much as the model is tried, and that time counts. */
static void test_run_why_not_the_best(void **state) {
    (void)state;
    int said = 0;
    for (int run = 0; run < 5 && said == 0; run++) {
        result r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "200", "--ignore-eos", "--draft",
                           "auto+model:" STORIES, "--why");
        said = reasons_said(r.err);
        result_free(&r);
    }
    assert_true(said > 0);
}

static void test_run_template(void **state) {
    (void)state;
    const char *source =
        text_write("own.jinja", "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
                                "{% if tail is mapping %}{{ tail['x'] }}{% else %}{{ tail }}{% endif %}");
    json_t *raw = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "30");
    json_t *text = json_of("run", "-m", STORIES, "-p", "Once upon", "-n", "30", "--chat-template-file", source,
                           "--template-arg", "tail= a time");
    json_t *value = json_of("run", "-m", STORIES, "-p", "Once upon", "-n", "30", "--chat-template-file", source,
                            "--template-arg", "tail={\"x\": \" a time\"}");
    assert_int_equal(int_of(text, "prompt_tokens"), int_of(raw, "prompt_tokens")); /* one BOS */
    tokens_equal(raw, text);
    tokens_equal(raw, value);
    /* a template that opens a <think> block: its text is dim on a terminal */
    result r = command("run", "-m", STORIES, "-p", "Once upon", "-n", "5", "--chat-template-file", source,
                       "--template-arg", "tail=<think>", "--color", "always", "--draft", "none");
    assert_int_equal(strncmp(r.out, "\033[2m", 4), 0);
    result_free(&r);
    json_decref(raw);
    json_decref(text);
    json_decref(value);
}

/* Tools and conversations with calls of them reach the template unchanged. */
static void test_run_tools(void **state) {
    (void)state;
    const char *source = text_write("tools.jinja", "{{ bos_token }}{% for m in messages %}{{ m['content'] }}"
                                                   "{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}"
                                                   "{% endfor %}{% for t in tools %}{{ t.function.name }}{% endfor %}");
    const char *tools = text_write("tools.json", "[{\"type\": \"function\", \"function\": {\"name\": \" a time\"}}]");
    const char *called = text_write(
        "called.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"Once\"}, {\"role\": \"assistant\","
                        "\"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": \" upon\"}}]}],"
                        "\"tools\": [{\"function\": {\"name\": \" a\"}}, {\"function\": {\"name\": \" time\"}}]}\n");
    json_t *raw = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "30");
    json_t *given = json_of("run", "-m", STORIES, "-p", "Once upon", "-n", "30", "--chat-template-file", source,
                            "--tools", tools);
    json_t *row = json_of("run", "-m", STORIES, "-f", called, "-n", "30", "--chat-template-file", source);
    assert_int_equal(int_of(given, "prompt_tokens"), int_of(raw, "prompt_tokens"));
    tokens_equal(raw, given);
    tokens_equal(raw, row);
    json_decref(raw);
    json_decref(given);
    json_decref(row);
    /* without a template the model would not see the tools; the contents of the messages, joined, are still a text */
    refused(2, "\"tools\"", "run", "-m", STORIES, "-f", called, "-n", "1");
    refused(2, "--tools", "run", "-m", STORIES, "-p", "a", "--tools", tools);
    refused(2, "--tools", "run", "-m", STORIES, "-p", "a", "--tools", tools, "--raw");
    refused(2, "give one of them", "run", "-m", STORIES, "-p", "a", "--tools", tools, "--template-arg", "tools=[]");
    refused(2, "array of tools", "run", "-m", STORIES, "-p", "a", "--tools", text_write("no.json", "{}"));
    refused(2, "not JSON", "run", "-m", STORIES, "-p", "a", "--tools", text_write("no.json", "["));
    refused(1, "/proc/nowhere", "run", "-m", STORIES, "-p", "a", "--tools", "/proc/nowhere");
    refused(2, "message 1", "run", "-m", STORIES, "-f", text_write("no.jsonl", "{\"messages\": [{}, 1]}"));
    refused(2, "not an array", "run", "-m", STORIES, "-f", text_write("no.jsonl", "{\"messages\": [], \"tools\": 1}"));
}

static void test_run_input(void **state) {
    (void)state;
    json_t *plain = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "20");
    result r = command_input("Once upon a time\n", "run", "-m", STORIES, "-p", "-", "-n", "20", "--json");
    json_t *j = json_loads(r.out, 0, NULL);
    assert_non_null(j);
    tokens_equal(plain, j);
    json_decref(j);
    result_free(&r);
    /* a row whose prediction is the answer itself */
    json_t *row = json_pack("{s:s,s:s}", "prompt", "Once upon a time", "prediction", text_of(plain, "text"));
    j = json_of("run", "-m", STORIES, "-f", json_write("row.jsonl", row), "-n", "20", "--draft", "prediction");
    tokens_equal(plain, j);
    assert_true(int_of(j, "accepted") > 5);
    json_decref(j);
    json_decref(row);
    json_decref(plain);
    const char *number = text_write("bad.jsonl", "{\"prompt\": \"a\", \"prediction\": 5}\n");
    refused(2, "prediction", "run", "-m", STORIES, "-f", number);
    refused(2, "prediction", "compare", "-m", STORIES, "-f", number);
    refused(2, "bad.jsonl:1", "run", "-m", STORIES, "-f",
            text_write("bad.jsonl", "{\"prompt\": \"a\", \"prediction\": \"\xff\"}\n"));
    refused(2, "bad.jsonl:2", "compare", "-m", STORIES, "-f",
            text_write("bad.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"a\", \"prediction\": \"\xff\"}\n"));
    refused(2, "prediction", "run", "-m", NO_TOKENIZER, "-f",
            text_write("bad.jsonl", "{\"tokens\": [1], \"prediction\": \"a\"}\n"));
}

/* More samples than places, and fewer pages than they need: the same texts. */
static void test_run_crowded(void **state) {
    (void)state;
    result r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "100", "--temperature", "1", "--seed", "3",
                       "--ignore-eos", "--samples", "6", "--json-lines", "--parallel", "3", "--pool-rows", "192");
    assert_int_equal(r.code, 0);
    char *line = r.out;
    for (int i = 0; i < 6; i++) {
        char seed[16], *end = strchr(line, '\n');
        assert_non_null(end);
        *end = 0;
        json_t *sample = json_loads(line, 0, NULL);
        snprintf(seed, sizeof seed, "%d", 3 + i);
        json_t *alone = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "100", "--temperature", "1",
                                "--seed", seed, "--ignore-eos", "--no-prefix-reuse");
        tokens_equal(sample, alone);
        json_decref(sample);
        json_decref(alone);
        line = end + 1;
    }
    result_free(&r);
}

static void test_compare_repeat(void **state) {
    (void)state;
    json_t *j = json_of("compare", "-m", STORIES, "-f", prompts_write(), "-n", "60", "--ignore-eos", "--draft",
                        "forced,accept=0.7,depth=3", "--repeat", "3");
    const json_t *m = json_array_get(get(j, "methods"), 0), *p;
    size_t i;
    method_shape(m, 2);
    json_array_foreach(get(m, "per_prompt"), i, p) assert_int_equal(int_of(p, "repeats"), 3);
    assert_int_equal(int_of(j, "repeat"), 3);
    assert_true(json_is_true(get(j, "cold")));
    assert_int_equal(int_of(m, "rounds") % 3, 0); /* each repetition begins with the same stores */
    json_decref(j);
    /* any width is small enough, but 8 slices are required: 59 tokens after the first give 4 */
    j = json_of("compare", "-m", STORIES, "-p", "Once upon a time", "-n", "60", "--ignore-eos", "--until-width",
                "1000");
    p = json_array_get(get(json_array_get(get(j, "methods"), 0), "per_prompt"), 0);
    assert_int_equal(int_of(p, "repeats"), 2);
    json_decref(j);
    j = json_of("compare", "-m", STORIES, "-p", "Once upon a time", "-n", "60", "--ignore-eos", "--until-width", "1e-9",
                "--repeat", "4");
    p = json_array_get(get(json_array_get(get(j, "methods"), 0), "per_prompt"), 0);
    assert_int_equal(int_of(p, "repeats"), 4);
    near(real_of(j, "until_width"), 1e-9, 1e-6);
    json_decref(j);
    result r = command("compare", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--repeat", "2");
    assert_non_null(strstr(r.out, "emptied before each prompt and each time"));
    result_free(&r);
}

/* ---- draft ------------------------------------------------------------------------------------------------------ */

static void chain_is(const json_t *draft, const json_t *greedy, size_t from, size_t n) {
    assert_int_equal(int_of(draft, "root"), json_integer_value(json_array_get(get(greedy, "tokens"), from)));
    assert_int_equal(json_array_size(get(draft, "tokens")), n);
    assert_int_equal(json_array_size(get(draft, "parents")), n);
    assert_int_equal(json_array_size(get(draft, "q")), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(json_integer_value(json_array_get(get(draft, "parents"), i)), (int)i - 1);
        assert_true(
            json_equal(json_array_get(get(draft, "tokens"), i), json_array_get(get(greedy, "tokens"), from + 1 + i)));
        near(json_number_value(json_array_get(get(draft, "q"), i)), 1, 1e-9);
    }
}

static void test_draft(void **state) {
    (void)state;
    json_t *greedy = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "20", "--precision", "f32");
    /* the model drafts for itself */
    const char *out = path_of("draft.safetensors"), *self = "model:" STORIES;
    json_t *j = json_of("draft", "-m", STORIES, "--draft", self, "-p", "Once upon a time", "--depth", "3", "-o", out,
                        "--precision", "f32");
    chain_is(j, greedy, 0, 3);
    size_t len;
    char *file = file_read(out, &len);
    uint64_t head;
    memcpy(&head, file, 8);
    json_t *header = json_loadb(file + 8, head, 0, NULL);
    const json_t *shape = get(get(header, "logits"), "shape");
    assert_int_equal(head % 8, 0);
    assert_string_equal(text_of(get(header, "logits"), "dtype"), "F32");
    assert_int_equal(json_integer_value(json_array_get(shape, 0)), 3);
    assert_int_equal(json_integer_value(json_array_get(shape, 1)), 512);
    assert_int_equal(len, 8 + head + 3 * 512 * 4);
    const float *logits = (const float *)(const void *)(file + 8 + head);
    for (int level = 0; level < 3; level++) {
        int best = 0;
        for (int v = 1; v < 512; v++)
            if (logits[level * 512 + v] > logits[level * 512 + best])
                best = v;
        assert_int_equal(best, json_integer_value(json_array_get(get(j, "tokens"), (size_t)level)));
    }
    json_decref(header);
    free(file);
    json_decref(j);
    j = json_of("draft", "-m", STORIES, "--draft", self, "-p", "Once upon a time", "--depth", "3", "--accept", "2",
                "--precision", "f32");
    chain_is(j, greedy, 3, 3); /* root, two drafts, the target's token */
    json_decref(j);
    json_decref(greedy);
}

static void test_draft_output(void **state) {
    (void)state;
    result r = command("draft", "-m", STORIES, "--draft", "model:" STORIES, "-p", "Once upon a time", "--depth", "2");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "the model's token after the text\n"));
    assert_non_null(strstr(r.out, "\n└─ "));
    assert_non_null(strstr(r.out, "\n   └─ "));
    result_free(&r);
    /* a drafter without logits leaves -inf everywhere */
    const char *out = path_of("draft.safetensors");
    r = command("draft", "-m", STORIES, "--draft", "ngram", "-p", "Once upon a time", "--depth", "2", "-o", out,
                "--json");
    assert_int_equal(r.code, 0);
    result_free(&r);
    size_t len;
    char *file = file_read(out, &len);
    float last;
    memcpy(&last, file + len - 4, 4);
    assert_true(isinf(last) && last < 0);
    free(file);
    refused(2, "-o", "draft", "-m", STORIES, "--draft", "ngram+suffix", "-p", "a", "-o", out);
    refused(1, "/proc/nowhere", "draft", "-m", STORIES, "--draft", "ngram", "-p", "a", "-o", "/proc/nowhere/x");
    refused(2, "no prompt", "draft", "-m", STORIES);
    refused(2, "wizard", "draft", "-m", STORIES, "-p", "a", "--draft", "wizard");
}

/* ---- main ------------------------------------------------------------------------------------------------------ */

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_bias),       cmocka_unit_test(test_run_dists),     cmocka_unit_test(test_run_rules),
        cmocka_unit_test(test_run_lossy),      cmocka_unit_test(test_run_logprobs), cmocka_unit_test(test_run_why),
        cmocka_unit_test(test_run_why_not_the_best),
        cmocka_unit_test(test_run_template),   cmocka_unit_test(test_run_tools),    cmocka_unit_test(test_run_input),
        cmocka_unit_test(test_run_crowded),    cmocka_unit_test(test_compare_repeat), cmocka_unit_test(test_draft),
        cmocka_unit_test(test_draft_output),
    };
    unsetenv("NO_COLOR");
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
