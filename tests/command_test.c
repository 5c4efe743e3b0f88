/* SPDX-License-Identifier: Apache-2.0 */
/* command_test.c - the `hunch` command as a black box: exit codes, one-line errors, shapes of its JSON, and that its
 * figures agree with each other and with the golden data. What the engine computes is tested elsewhere. */
#include "command.h"

#include <ctype.h>

/* ---- usage --------------------------------------------------------------------------------------------------- */

static void test_usage_errors(void **state) {
    (void)state;
    refused(2, "did you mean run", "rum");
    refused(2, "bogusbogus", "bogusbogus");
    refused(2, "did you mean --model", "run", "--modle", "x");
    refused(2, "--samples", "compare", "--samples", "3");
    refused(2, "--model-free", "run", "--model-free");
    refused(2, "unexpected argument here", "run", "a", "b", "here");
    refused(2, "unexpected argument here: the model is there", "inspect", "-m", "a", "here");
    refused(2, "model and text are there", "run", "-m", "a", "-p", "b", "here");
    refused(3, "here", "run", "here", "hello");
    refused(2, "--temperature", "run", "--temperature");
    refused(2, "-n 3000000000 is not a whole number from 1 to 2147483647", "run", "-n", "3000000000");
    static const char *const wrong[] = {"1e999", "-1e999", "nan", "inf", "-inf", "0x1p3", "infinity"};
    char long_value[600], said[200];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(said, sizeof said, "--temperature %s is not a number from 0 to 1000", wrong[i]);
        refused(2, said, "run", "--temperature", wrong[i]);
    }
    snprintf(long_value, sizeof long_value, "%0599d", 0);
    long_value[0] = '5';
    snprintf(said, sizeof said, "--temperature %.80s... is not a number from 0 to 1000", long_value);
    refused(2, said, "run", "--temperature", long_value);
    refused(2, "--logit-bias 5=1e999 is not ID=BIAS: a token id, 0 to 2147483647, and a number, -1.79769e+308 to", "run", "--logit-bias",
            "5=1e999");
    refused(2, "from -1 to 9223372036854775807", "run", "--seed", "9223372036854775808");
    refused(2, "from 0 to 2147483647", "bench", "--contexts", "1,99999999999");
    refused(2, "from 1 to 256", "run", "--parallel", "257");
    refused(2, "is too large for 3 samples", "run", "-m", STORIES, "-p", "a", "--json-lines", "--seed",
            "9223372036854775806", "--samples", "3");
    refused(2, "--temperature hot", "run", "-m", STORIES, "-p", "a", "--temperature", "hot");
    refused(2, "--temperature -1", "run", "-m", STORIES, "-p", "a", "--temperature=-1");
    refused(2, "--temperature nan", "run", "--temperature", "nan");
    refused(2, "--top-p 1.5", "run", "--top-p", "1.5");
    refused(2, "--seed 12x", "run", "--seed", "12x");
    refused(2, "-n 0", "run", "-n", "0");
    refused(2, "-n 1e3", "run", "-n", "1e3");
    refused(2, "--threads 0", "run", "--threads=0");
    refused(2, "--chunk 0", "run", "--chunk", "0");
    refused(2, "--verify guess", "run", "--verify", "guess");
    refused(2, "--kv q4_0", "run", "--kv", "q4_0");
    refused(2, "--color pink", "run", "--color", "pink");
    refused(2, "--raw takes no value", "run", "--raw=yes");
    refused(2, "--rows", "bench", "--rows", "1,,2");
    refused(2, "MODEL is missing", "run", "-p", "a");
    refused(2, "no prompt", "run", "-m", STORIES);
    refused(2, "several prompts", "run", "-m", STORIES, "-p", "a", "-f", "b");
    refused(2, "-o", "logits", "-m", STORIES, "-p", "a");
    refused(2, "model", "inspect");
}

static void test_sampling_flags(void **state) {
    (void)state;
    static const struct {
        const char *flag, *bad[3];
    } flags[] = {
        {"--top-n-sigma", {"-1", "1e9"}},
        {"--typical", {"1.1", "-0.1"}},
        {"--xtc-probability", {"2", "-1"}},
        {"--xtc-threshold", {"0.6", "-0.1"}},
        {"--dry-multiplier", {"-1", "nan"}},
        {"--dry-base", {"0.5", "101"}},
        {"--dry-allowed-length", {"0", "1.5"}},
        {"--dry-range", {"-1", "all"}},
        {"--repetition-penalty", {"-1", "101", ""}},
        {"--presence-penalty", {"2.5", "-2.5"}},
        {"--frequency-penalty", {"3", "-3"}},
        {"--lossy-lenience", {"0", "1.5"}},
        {"--lossy-typical", {"0.1", "0.1,2", "0,0.3"}},
        {"--lossy-top-m", {"0", "2.5"}},
        {"--logit-bias", {"5", "-1=2", "5=inf"}},
        {"--pool-rows", {"0", "-5"}},
        {"--verify", {"default", "lossy"}},
        {"--context", {"0"}},
        {"--top-p", {"0", "1.5"}},
        {"--temperature", {"-1", "1001"}},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        for (int k = 0; k < 3 && flags[i].bad[k]; k++) {
            refused(2, flags[i].flag, "run", flags[i].flag, flags[i].bad[k]);
            refused(2, flags[i].flag, "compare", flags[i].flag, flags[i].bad[k]);
            refused(2, flags[i].flag, "chat", flags[i].flag, flags[i].bad[k]);
        }
    refused(2, "-2 to 2", "run", "--presence-penalty", "3");
    refused(2, "from 0 to 0.5", "run", "--xtc-threshold", "1");
    refused(2, "above 0 and at most 1", "run", "--lossy-lenience", "0");
    refused(2, "--until-width", "compare", "--until-width", "0");
    refused(2, "--repeat", "compare", "--repeat", "0");
    refused(2, "1 to 63", "draft", "--depth", "64");
    refused(2, "--accept", "draft", "--accept", "-1");
}

static void test_contradictions(void **state) {
    (void)state;
    refused(2, "--lossy-top-m", "run", "--lossy-lenience", ".5", "--lossy-top-m", "3");
    refused(2, "--verify", "run", "--verify", "match", "--lossy-typical", ".1,.3");
    refused(2, "--dry-multiplier", "run", "--dry-base", "2");
    refused(2, "--dry-breaker", "run", "--dry-breaker", "x");
    refused(2, "--xtc-probability", "chat", "--xtc-threshold", "0.2");
    refused(2, "--raw", "run", "--raw", "--template-arg", "a=1");
    refused(2, "--chat-template-file", "chat", "--raw", "--chat-template-file", "x");
    refused(2, "--template-arg", "run", "-m", STORIES, "-p", "a", "--template-arg", "a=1");
    refused(2, "K=V", "run", "-m", STORIES, "-p", "a", "--template-arg", "a");
    refused(2, "messages", "run", "-m", STORIES, "-p", "a", "--template-arg", "messages=[]");
    refused(1, "/proc/nowhere", "run", "-m", STORIES, "-p", "a", "--chat-template-file", "/proc/nowhere");
    refused(3, "bad.jinja", "run", "-m", STORIES, "-p", "a", "--chat-template-file",
            text_write("bad.jinja", "{% for %}"));
    refused(2, "--logprobs", "run", "-m", STORIES, "-p", "a", "--logprobs");
    refused(2, "--logprobs", "chat", "-m", STORIES, "--logprobs");
    refused(2, "512", "run", "-m", STORIES, "-p", "a", "--logit-bias", "512=1");
    refused(2, "block", "run", "-m", STORIES, "-p", "a", "--verify", "block", "--temperature", "1", "--draft", "ngram");
}

/* A text too long for the context: the advice names a context that holds it, if there is one, and that works. */
static void test_too_long(void **state) {
    (void)state;
    char text[4000] = "";
    for (int i = 0; i < 100; i++)
        strcat(text, "a ");
    const char *file = text_write("mid.txt", text), *const npy = path_of("mid.npy");
    static const char cure[] = "of 64: --context 256 makes room", none[] = "the model takes 512 at most";
    refused(2, cure, "run", "-m", STORIES, "-f", file, "--raw", "--context", "64");
    refused(2, cure, "compare", "-m", STORIES, "-p", text, "--raw", "--context", "64");
    refused(2, cure, "logits", "-m", STORIES, "-f", file, "-o", npy, "--context", "64");
    refused(2, cure, "draft", "-m", STORIES, "-f", file, "--draft", "ngram", "--context", "64");
    json_decref(json_of("run", "-m", STORIES, "-f", file, "--raw", "--context", "256", "-n", "1"));
    for (int i = 0; i < 500; i++)
        strcat(text, "a ");
    file = text_write("long.txt", text);
    refused(2, none, "run", "-m", STORIES, "-f", file, "--raw");
    refused(2, none, "logits", "-m", STORIES, "-f", file, "-o", npy);
    refused(2, none, "compare", "-m", STORIES, "-p", text, "--raw");
}

/* An answer that ends because the context is full says so, with a context that has room; one that ends at -n does not. */
static void test_full_context(void **state) {
    (void)state;
    static const char *const limits[][3] = {{"--context", "64", "the context of 64 rows is full; --context 256 makes room"},
                                            {"-n", "3", NULL}};
    for (size_t i = 0; i < 2; i++) {
        const char *flag = limits[i][0], *value = limits[i][1], *said = limits[i][2];
        result r = command("run", "-m", STORIES, "-p", "Once", "--ignore-eos", flag, value);
        if (said ? !strstr(r.err, said) : strstr(r.err, "is full") != NULL) fail_msg("%s %s: %s", flag, value, r.err);
        result_free(&r);
        json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "--ignore-eos", flag, value);
        assert_string_equal(text_of(j, "finish"), "length");
        assert_int_equal(json_is_true(get(j, "context_full")), said != NULL);
        json_decref(j);
    }
}

/* Two columns of `compare --show`: what the one's drafter proposed has not the colour of the other's. */
static void test_colors_of_columns(void **state) {
    (void)state;
    static const char *const first[] = {"\033[36mfrom ngram", "\033[38;5;32mfrom ngram"},
                             *const second[] = {"\033[33mfrom suffix", "\033[38;5;172mfrom suffix"};
    result r = command("compare", "-m", STORIES, "-p", "Once upon a time", "-n", "8", "--show", "--color", "always",
                       "--draft", "ngram", "--draft", "suffix");
    assert_true(strstr(r.out, first[0]) || strstr(r.out, first[1]));
    assert_true(strstr(r.out, second[0]) || strstr(r.out, second[1]));
    result_free(&r);
}

static void test_help(void **state) {
    (void)state;
    static const char *const names[] = {"run",      "chat",   "compare", "bench", "inspect",
                                        "tokenize", "logits", "draft",   "score", "convert"};
    result all = command("--help"), version = command("--version");
    assert_int_equal(all.code, 0);
    assert_int_equal(version.code, 0);
    assert_int_equal(strncmp(version.out, "hunch 0.", 8), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_non_null(strstr(all.out, names[i]));
        result one = command(names[i], "--help");
        assert_int_equal(one.code, 0);
        assert_non_null(strstr(one.out, "--model"));
        result_free(&one);
    }
    result_free(&all);
    result_free(&version);
}

static void test_engine_refusals(void **state) {
    (void)state;
    refused(2, "wizard", "run", "-m", STORIES, "-p", "a", "--draft", "wizard");
    refused(2, "sdepth", "run", "-m", STORIES, "-p", "a", "--draft", "ngram,sdepth=2");
    refused(2, "warp9", "run", "-m", STORIES, "-p", "a", "--isa", "warp9");
    refused(2, "greedy", "run", "-m", STORIES, "-p", "a", "--verify", "greedy", "--temperature", "1");
    refused(2, "513", "run", "-m", STORIES, "-p", "a", "--context", "513");
    refused(2, "empty", "run", "-m", STORIES, "-p", "");
    refused(2, "UTF-8", "run", "-m", STORIES, "-p", "caf\xc3");
    refused(2, "UTF-8", "tokenize", "-m", STORIES, "-p", "caf\xc3");
    refused(2, "--tokens", "run", "-m", NO_TOKENIZER, "-p", "hello");
    refused(2, "tokenizer", "tokenize", "-m", NO_TOKENIZER, "-p", "hello");
    refused(2, "tokenizer", "run", "-m", NO_TOKENIZER, "--tokens", text_write("t.json", "[1]"), "--stop", "x");
}

static void test_token_files(void **state) {
    (void)state;
    refused(1, "/proc/nowhere.json", "run", "-m", STORIES, "--tokens", "/proc/nowhere.json");
    refused(1, "/proc/nowhere.txt", "run", "-m", STORIES, "-f", "/proc/nowhere.txt");
    refused(2, "empty", "run", "-m", STORIES, "--tokens", text_write("t.json", "[]"));
    refused(2, "array", "run", "-m", STORIES, "--tokens", text_write("t.json", "{\"a\":1}"));
    refused(2, "array", "run", "-m", STORIES, "--tokens", text_write("t.json", "[1,2"));
    refused(2, "entry 1", "run", "-m", STORIES, "--tokens", text_write("t.json", "[1,\"a\"]"));
    refused(2, "512", "run", "-m", STORIES, "--tokens", text_write("t.json", "[1,512]"));
    char list[4096] = "[1";
    for (int i = 0; i < 600; i++)
        strcat(list, ",2");
    strcat(list, "]");
    const char *longer = text_write("long.json", list);
    refused(2, "601", "run", "-m", STORIES, "--tokens", longer);
    refused(2, "601", "logits", "-m", STORIES, "--tokens", longer, "-o", path_of("long.npy"));
    refused(2, "601", "compare", "-m", STORIES, "--tokens", longer);
}

static size_t prompts_in(const char *path) {
    json_t *j = json_of("compare", "-m", STORIES, "-f", path, "-n", "2", "--draft", "none");
    size_t n = (size_t)int_of(j, "prompts");
    json_decref(j);
    return n;
}

/* A file meant as rows is never taken for one text; one that merely begins with a brace is. */
static void test_prompt_files(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } broken[] = {
        {"x.txt", "{\"promt\": \"a\"}\n{\"prompt\": \"b\"}\n", "x.txt:1"},
        {"x.txt", "{\"prompt\": \"a\",}\n{\"prompt\": \"b\"}\n", "x.txt:1"},
        {"x.txt", "\n{\"id\": \"prompt\", \"prompt\" : \"a\"},\n", "x.txt:2"},
        {"x.txt", "[{\"prompt\": \"a\"}]\n", "x.txt:1"},
        {"x.txt", "[\n  {\"messages\": []}\n]\n", "x.txt:1"},
        {"x.txt", "{\n  \"tokens\": [1],\n}\n", "x.txt:1"},
        {"x.txt", "[\n  {\"role\": \"user\", \"content\": \"a\"},\n]\n", "x.txt:1"},
        {"x.JSONL", "Once\n", "x.JSONL:1"},
        {"x.txt", "{\"prompt\": \"a\"}\n{\"prompt\": \"\"}\n", "x.txt:2: the prompt is empty"},
        {"x.txt", "\xEF\xBB\xBF{\"prompt\": \"a\"}\n{\"prompt\": 5}\n", "x.txt:2"},
        {"x.txt", "", "x.txt: the prompt is empty"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        refused(2, broken[i].says, "compare", "-m", STORIES, "-f", text_write(broken[i].name, broken[i].text));
    refused(2, "standard input: the prompt is empty", "run", "-m", STORIES, "-p", "-");
    assert_int_equal(prompts_in(text_write("x.txt", "\xEF\xBB\xBF{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n")), 2);
    assert_int_equal(prompts_in(text_write("x.txt", "{ int x = 1; }\n{ \"prompt\" }\n")), 1);
    assert_int_equal(prompts_in(text_write("x.txt", "{\n  \"name\": \"a prompt\"\n}\n")), 1);
    char long_row[3000] = "{\"prompt\": \"a\"}\n{\"prompt\": \"";
    for (int i = 0; i < 600; i++)
        strcat(long_row, "to ");
    refused(2, "long.jsonl:2: a prompt of", "compare", "-m", STORIES, "-f",
            text_write("long.jsonl", strcat(long_row, "\"}")));
    /* no byte of the mark becomes a token */
    json_t *a = json_of("run", "-m", STORIES, "-f", text_write("x.txt", "\xEF\xBB\xBFOnce"), "-n", "2");
    json_t *b = json_of("run", "-m", STORIES, "-p", "Once", "-n", "2");
    assert_int_equal(int_of(a, "prompt_tokens"), int_of(b, "prompt_tokens"));
    json_decref(a);
    json_decref(b);
}

/* A zero byte is a character like others: in a text, in a row, and through a template. */
static void test_zero_byte(void **state) {
    (void)state;
    const char *source =
        text_write("z.jinja", "{% for m in messages %}[{{ m.content }}{{ m.content|length }}]{% endfor %}");
    json_t *plain = json_of("tokenize", "-m", STORIES, "-f", file_write("z.txt", "[a\0b3]", 6));
    json_t *text =
        json_of("run", "-m", STORIES, "-f", file_write("z.txt", "a\0b", 3), "-n", "1", "--chat-template-file", source);
    json_t *row = json_of("run", "-m", STORIES, "-f", text_write("z.jsonl", "{\"prompt\": \"a\\u0000b\"}"), "-n", "1",
                          "--chat-template-file", source);
    const long long rendered = (long long)json_array_size(get(plain, "ids"));
    assert_in_range(int_of(text, "prompt_tokens"), rendered, rendered + 1); /* BOS */
    assert_int_equal(int_of(row, "prompt_tokens"), int_of(text, "prompt_tokens"));
    json_decref(plain);
    json_decref(text);
    json_decref(row);
}

static void test_damaged_models(void **state) {
    (void)state;
    size_t len;
    char *model = file_read(STORIES, &len);
    refused(3, "/proc/nowhere.gguf", "run", "-m", "/proc/nowhere.gguf", "-p", "a");
    refused(3, "cut.gguf", "run", "-m", file_write("cut.gguf", model, len / 2), "-p", "a");
    refused(3, "cut.gguf", "inspect", file_write("cut.gguf", model, 20));
    refused(3, "text.gguf", "run", "-m", text_write("text.gguf", "this is no model at all"), "-p", "a");
    free(model);
}

/* ---- run ----------------------------------------------------------------------------------------------------- */

static void test_run_golden(void **state) {
    (void)state;
    json_t *row = golden("golden.jsonl", 1);
    const char *ids = json_write("ids.json", get(row, "prompt_ids"));
    json_t *plain =
        json_of("run", "-m", STORIES, "--prompt-tokens", ids, "--precision", "f32", "-n", "48", "--draft", "none");
    json_t *wanted = first_of(get(row, "greedy_ids"), 48);
    run_shape(plain);
    assert_true(json_equal(get(plain, "tokens"), wanted));
    assert_string_equal(text_of(plain, "finish"), "length");
    assert_int_equal(int_of(plain, "prompt_tokens"), json_array_size(get(row, "prompt_ids")));
    assert_int_equal(int_of(plain, "rounds"), 47);
    assert_int_equal(int_of(plain, "drafted"), 0);
    json_decref(plain);
    json_decref(wanted);
    json_decref(row);
}

static void test_run_text(void **state) {
    (void)state;
    json_t *row = golden("golden.jsonl", 1);
    json_t *a = json_of("run", "-m", STORIES, "-p", text_of(row, "prompt"), "--precision=f32", "-n", "32");
    char with_newline[400];
    snprintf(with_newline, sizeof with_newline, "%s\n", text_of(row, "prompt"));
    json_t *b =
        json_of("run", "-m", STORIES, "-f", text_write("p.txt", with_newline), "--precision=f32", "-n", "32", "--raw");
    json_t *wanted = first_of(get(row, "greedy_ids"), 32);
    assert_int_equal(int_of(a, "prompt_tokens"), json_array_size(get(row, "prompt_ids")));
    assert_true(json_equal(get(a, "tokens"), wanted));
    assert_true(json_equal(get(b, "tokens"), wanted));
    const char *text = text_of(a, "text"), *whole = strstr(text_of(row, "greedy_text"), text);
    if (!whole || strlen(text) < 20)
        fail_msg("\"%s\" is no part of \"%s\"", text, text_of(row, "greedy_text"));
    json_decref(wanted);
    json_decref(a);
    json_decref(b);
    json_decref(row);
}

static void test_run_drafted(void **state) {
    (void)state;
    json_t *plain = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "100", "--draft", "none");
    json_t *forced =
        json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "100", "--draft", "forced,accept=1,depth=4");
    json_t *pair = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "100", "--draft",
                           "forced,accept=0.5,depth=3", "--draft", "ngram", "--chunk", "3");
    run_shape(forced);
    run_shape(pair);
    assert_true(json_equal(get(plain, "tokens"), get(forced, "tokens")));
    assert_true(json_equal(get(plain, "tokens"), get(pair, "tokens")));
    assert_string_equal(text_of(plain, "text"), text_of(forced, "text"));
    assert_int_equal(json_array_size(get(plain, "drafters")), 0);
    assert_int_equal(json_array_size(get(pair, "drafters")), 2);
    assert_string_equal(json_string_value(json_array_get(get(pair, "drafters"), 1)), "ngram");
    assert_true(real_of(forced, "tau") > 4.5); /* every draft is right: 5 tokens per round, except the last */
    assert_true(int_of(forced, "rounds") <= 20);
    assert_int_equal(int_of(forced, "depth_drafted"), int_of(forced, "drafted"));
    assert_true(int_of(pair, "accepted") > 0 && int_of(pair, "accepted") < int_of(pair, "drafted"));
    json_decref(plain);
    json_decref(forced);
    json_decref(pair);
}

/* A + in a path joins nothing, one before a kind does. */
static void test_plus_in_a_path(void **state) {
    (void)state;
    char spec[400], missing[400];
    size_t len;
    char *model = file_read(STORIES, &len);
    snprintf(spec, sizeof spec, "model:%s,depth=3+ngram", file_write("a+model.b+c.gguf", model, len));
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "8", "--draft", spec, "--draft", "suffix+cache");
    assert_int_equal(json_array_size(get(j, "drafters")), 4);
    assert_string_equal(json_string_value(json_array_get(get(j, "drafters"), 1)), "ngram");
    assert_string_equal(json_string_value(json_array_get(get(j, "drafters"), 3)), "cache");
    json_decref(j);
    snprintf(missing, sizeof missing, "prediction:%s", path_of("no+such"));
    refused(1, "no+such", "run", "-m", STORIES, "-p", "a", "--draft", missing);
    refused(2, "ngrm", "run", "-m", STORIES, "-p", "a", "--draft", "suffix+ngrm");
    text_write("no+such", "there now");
    refused(2, "'ngrm'", "run", "-m", STORIES, "-p", "a", "--draft", missing, "--draft", "ngrm");
    free(model);
}

static void test_run_one_token(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "1");
    run_shape(j);
    assert_int_equal(json_array_size(get(j, "tokens")), 1);
    assert_int_equal(int_of(j, "rounds"), 0);
    json_decref(j);
}

static void test_run_seed(void **state) {
    (void)state;
    char seed[32];
    json_t *a = json_of("run", "-m", STORIES, "-p", "Once", "-n", "60", "--temperature", "1", "--ignore-eos");
    json_t *c = json_of("run", "-m", STORIES, "-p", "Once", "-n", "60", "--temperature", "1", "--ignore-eos");
    snprintf(seed, sizeof seed, "%lld", int_of(a, "seed"));
    json_t *b = json_of("run", "-m", STORIES, "-p", "Once", "-n", "60", "--temperature", "1", "--ignore-eos", "--seed",
                        seed, "--draft", "forced,accept=0.7,depth=3");
    assert_int_equal(int_of(a, "seed"), int_of(b, "seed"));
    assert_true(json_equal(get(a, "tokens"), get(b, "tokens")));
    assert_true(int_of(a, "seed") != int_of(c, "seed"));
    assert_false(json_equal(get(a, "tokens"), get(c, "tokens")));
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

static void test_run_samples(void **state) {
    (void)state;
    result r = command("run", "-m", STORIES, "-p", "Once", "-n", "12", "--temperature", "1", "--seed", "7", "--samples",
                       "5", "--json-lines", "--parallel", "2");
    assert_int_equal(r.code, 0);
    char *line = r.out;
    for (int i = 0; i < 5; i++) {
        char seed[16], *end = strchr(line, '\n');
        assert_non_null(end);
        *end = 0;
        json_t *sample = json_loads(line, 0, NULL);
        assert_non_null(sample);
        snprintf(seed, sizeof seed, "%d", 7 + i);
        json_t *alone = json_of("run", "-m", STORIES, "-p", "Once", "-n", "12", "--temperature", "1", "--seed", seed);
        run_shape(sample);
        assert_int_equal(int_of(sample, "seed"), 7 + i);
        assert_true(json_equal(get(sample, "tokens"), get(alone, "tokens")));
        json_decref(sample);
        json_decref(alone);
        line = end + 1;
    }
    assert_int_equal(*line, 0);
    result_free(&r);
    refused(2, "--json-lines", "run", "-m", STORIES, "-p", "Once", "--samples", "2");
}

static void test_run_stop(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "100", "--stop", "xyzzy", "--stop", ".");
    assert_string_equal(text_of(j, "finish"), "stop");
    assert_null(strchr(text_of(j, "text"), '.'));
    assert_true(strlen(text_of(j, "text")) > 5);
    json_decref(j);
}

/* README: "A token's colour shows which drafter proposed it, and every speed comes with its acceptance length." */
static void test_run_plain_output(void **state) {
    (void)state;
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "40");
    result r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "40");
    assert_int_equal(r.code, 0);
    size_t len = strlen(text_of(j, "text"));
    assert_int_equal(r.out_len, len + 1);
    assert_memory_equal(r.out, text_of(j, "text"), len);
    assert_non_null(strstr(r.err, "tokens/s"));
    assert_non_null(strstr(r.err, "acceptance length"));
    assert_null(strchr(r.out, 27));
    result_free(&r);
    r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--draft", "forced,accept=1,depth=2",
                "--color", "always");
    assert_non_null(strstr(r.out, "\033[36m"));
    /* without its escape sequences it is the same text */
    char *to = r.out;
    for (const char *from = r.out; *from; from++)
        if (*from == 27)
            from = strchr(from, 'm');
        else
            *to++ = *from;
    *to = 0;
    assert_int_equal(strlen(r.out), len + 1);
    assert_memory_equal(r.out, text_of(j, "text"), len);
    result_free(&r);
    json_decref(j);
}

static void test_run_without_tokenizer(void **state) {
    (void)state;
    const char *ids = text_write("t.json", "[3, 14, 15, 92]");
    json_t *j = json_of("run", "-m", NO_TOKENIZER, "--tokens", ids, "-n", "8");
    run_shape(j);
    assert_true(json_is_null(get(j, "text")));
    char *end;
    result r = command("run", "-m", NO_TOKENIZER, "--tokens", ids, "-n", "8");
    assert_int_equal(strtol(r.out, &end, 10), json_integer_value(json_array_get(get(j, "tokens"), 0)));
    result_free(&r);
    json_decref(j);
}

/* README: "Ctrl-C ends an answer, keeps what was generated so far, and gives exit code 130." */
static void test_run_interrupted(void **state) {
    (void)state;
    const char *const args[] = {"run",     "-m",           STORIES, "-p", "Once", "--samples",
                                "1000000", "--json-lines", "-n",    "50", NULL};
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    unlink(out);
    pid_t child = command_start(args, out, err);
    struct stat st = {0};
    for (int i = 0; i < 600 && st.st_size == 0; i++) { /* the first answer is there: generation has begun */
        usleep(50000);
        if (stat(out, &st) != 0)
            st.st_size = 0;
    }
    kill(child, SIGINT);
    assert_int_equal(child_wait(child), 130);
    size_t len;
    char *text = file_read(out, &len);
    assert_true(len > 0 && text[len - 1] == '\n'); /* ends with a whole line */
    free(text);
}

/* Ctrl-C while the prompt is read: the reported speed is that of the tokens read. */
static void test_run_interrupted_in_the_prompt(void **state) {
    (void)state;
    enum { PROMPT = 4000 };
    json_t *ids = json_array();
    for (int i = 0; i < PROMPT; i++)
        json_array_append_new(ids, json_integer(i % 200));
    const char *file = json_write("long.json", ids);
    json_decref(ids);
    const char *const args[] = {"run", "-m", NO_TOKENIZER, "--tokens", file, "--json", "--isa", "ref", "--chunk", "1",
                                NULL};
    char out[300], err[300];
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    bool met = false; /* interrupted between the first row and the last; that moment differs between machines */
    for (useconds_t after = 100000; !met && after < 3000000; after += after / 2) {
        test_file_write(out, "", 0);
        pid_t child = command_start(args, out, err);
        usleep(after);
        kill(child, SIGINT);
        if (child_wait(child) != 130)
            continue;
        char *text = file_read(out, NULL);
        json_t *j = json_loads(text, 0, NULL);
        if (j && json_array_size(get(j, "tokens")) == 0 && !json_is_null(get(get(j, "timing"), "prefill_tok_s"))) {
            const double read = real_of(get(j, "timing"), "prefill_tok_s") * real_of(get(j, "timing"), "prefill_s");
            assert_true(read > 0.5 && read < PROMPT - 0.5);
            met = true;
        }
        json_decref(j);
        free(text);
    }
    assert_true(met);
}

static void test_full_output(void **state) {
    (void)state;
    const char *const args[] = {"run", "-m", STORIES, "-p", "Once", "-n", "5", "--json", NULL};
    char err[300];
    snprintf(err, sizeof err, "%s/err", folder);
    assert_int_equal(child_wait(command_start(args, "/dev/full", err)), 1);
    char *text = file_read(err, NULL);
    assert_non_null(strstr(text, "standard output"));
    free(text);
}

/* ---- compare ------------------------------------------------------------------------------------------------- */

static void test_compare(void **state) {
    (void)state;
    json_t *j = json_of("compare", "-m", STORIES, "-f", prompts_write(), "-n", "90", "--ignore-eos", "--draft",
                        "forced,accept=1,depth=4", "--draft", "forced,accept=0.4,depth=2+ngram", "--draft", "none");
    assert_int_equal(int_of(j, "prompts"), 2);
    assert_true(real_of(get(j, "plain"), "tok_s") > 0);
    const json_t *methods = get(j, "methods");
    assert_int_equal(json_array_size(methods), 3);
    const json_t *all = json_array_get(methods, 0), *some = json_array_get(methods, 1),
                 *none = json_array_get(methods, 2);
    method_shape(all, 2);
    method_shape(some, 2);
    method_shape(none, 2);
    assert_string_equal(text_of(some, "draft"), "forced,accept=0.4,depth=2+ngram");
    assert_true(real_of(all, "tau") > 4.5);
    near(real_of(all, "acceptance"), 1, 1e-9);
    assert_true(real_of(some, "acceptance") < 1);
    near(real_of(none, "tau"), 1, 1e-9);
    assert_true(json_is_null(get(none, "acceptance")));
    assert_string_equal(text_of(json_array_get(get(all, "per_prompt"), 0), "id"), "a");
    assert_int_equal(int_of(json_array_get(get(all, "per_prompt"), 1), "id"), 17);
    assert_true(json_is_false(get(j, "cold")));
    assert_true(json_is_null(get(j, "lossy")));
    json_decref(j);
}

static void test_compare_parallel(void **state) {
    (void)state;
    json_t *j = json_of("compare", "-m", STORIES, "-f", prompts_write(), "-n", "60", "--ignore-eos", "--draft",
                        "forced,accept=0.7,depth=3", "--parallel", "2", "--temperature", "0.8", "--cold");
    method_shape(json_array_get(get(j, "methods"), 0), 2);
    assert_int_equal(int_of(j, "parallel"), 2);
    assert_true(json_is_true(get(j, "cold")));
    json_decref(j);
}

/* A line for each token that a round decides; what is right in it are the tokens after its own. */
static void test_compare_record(void **state) {
    (void)state;
    char line[20000];
    int token[60] = {0}, lines = 0, right = 0, wrong = 0;
    const char *file = text_write("record.jsonl", "");
    json_t *plain = json_of("run", "-m", STORIES, "-p", "Once", "-n", "60", "--ignore-eos", "--temperature", "0.9", "--seed", "5",
                            "--draft", "none");
    for (int i = 0; i < 60; i++) token[i] = (int)json_integer_value(json_array_get(get(plain, "tokens"), (size_t)i));
    result r = command("compare", "-m", STORIES, "-p", "Once", "-n", "60", "--ignore-eos", "--temperature", "0.9", "--seed", "5", "--draft",
                       "forced,accept=0.7,depth=3", "--draft", "ngram", "--record", file);
    assert_int_equal(r.code, 0);
    result_free(&r);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *j = json_loads(line, 0, NULL);
        const json_t *drafts = get(j, "drafts");
        const int position = (int)int_of(j, "position");
        assert_int_equal(position, lines++ % 59);
        for (size_t k = 0; k < json_array_size(drafts); k++) {
            const json_t *d = json_array_get(drafts, k);
            const int at = position + (int)json_integer_value(json_array_get(d, 0)), t = (int)json_integer_value(json_array_get(d, 2));
            const bool is_right = json_is_true(json_array_get(d, 4));
            if (is_right) assert_true(at < 60 && token[at] == t);
            *(is_right ? &right : &wrong) += 1;
        }
        json_decref(j);
    }
    fclose(f);
    json_decref(plain);
    assert_int_equal(lines, 2 * 59);
    assert_true(right > 40 && wrong > 10);
    refused(2, "auto", "compare", "-m", STORIES, "-p", "Once", "--record", file);
    refused(2, "one_token", "compare", "-m", STORIES, "-p", "Once", "--draft", "auto", "--record", file);
}

/* Whether x is between key's figures of both prompts. */
static bool between(const json_t *a, const json_t *b, const char *key, double x) {
    const double from = real_of(a, key), to = real_of(b, key);
    return x >= fmin(from, to) - 1e-9 && x <= fmax(from, to) + 1e-9;
}

static void test_compare_groups(void **state) {
    (void)state;
    const char *rows = text_write("groups.jsonl", "{\"id\": 1, \"group\": \"g\", \"prompt\": \"Once upon a time\"}\n"
                                                  "{\"id\": 2, \"prompt\": \"The sun\"}\n"
                                                  "{\"id\": 3, \"group\": \"g\", \"prompt\": \"Lily and Ben\"}\n");
    json_t *j = json_of("compare", "-m", STORIES, "-f", rows, "-n", "90", "--ignore-eos", "--draft",
                        "forced,accept=0.5,depth=3");
    const json_t *m = json_array_get(get(j, "methods"), 0), *groups = get(m, "per_group"), *each = get(m, "per_prompt");
    assert_int_equal(json_array_size(groups), 2);
    const json_t *g = json_array_get(groups, 0), *none = json_array_get(groups, 1), *first = json_array_get(each, 0),
                 *alone = json_array_get(each, 1), *last = json_array_get(each, 2);
    assert_string_equal(text_of(g, "group"), "g");
    assert_string_equal(text_of(none, "group"), "");
    assert_int_equal(int_of(g, "prompts"), 2);
    assert_int_equal(int_of(none, "prompts"), 1);
    near(real_of(none, "ratio"), real_of(alone, "ratio"), 1e-9);
    near(real_of(none, "ratio_total"), real_of(alone, "ratio"), 1e-9);
    near(real_of(none, "tau"), real_of(alone, "tau"), 1e-9);
    near(real_of(g, "ratio"), (real_of(first, "ratio") + real_of(last, "ratio")) / 2, 1e-9);
    assert_true(between(first, last, "ratio", real_of(g, "ratio_total")));
    assert_true(between(first, last, "tau", real_of(g, "tau")));
    assert_true(real_of(first, "tau") != real_of(last, "tau"));
    assert_true(json_is_true(get(g, "identical")));
    assert_true(real_of(g, "acceptance") > 0 && real_of(g, "acceptance") < 1);
    json_decref(j);
    result r = command("compare", "-m", STORIES, "-f", rows, "-n", "40", "--draft", "ngram", "--color", "never");
    assert_non_null(strstr(r.out, "\nmedian ratio by group:  g "));
    assert_non_null(strstr(r.out, "\ntotal ratio by group:   g "));
    assert_non_null(strstr(r.out, "\ntau by group:           g "));
    result_free(&r);
}

/* "1.20 - 1.40" */
static bool has_interval(const char *table) {
    const char *at = table;
    while ((at = strstr(at + 1, " - ")) && !isdigit((unsigned char)at[-1]))
        continue;
    return at;
}

static void test_compare_table(void **state) {
    (void)state;
    result of_file = command("compare", "-m", STORIES, "-p", "Once", "-n", "4", "--draft", "model:" STORIES ",depth=2");
    assert_non_null(strstr(of_file.out, "plain against model:stories260K.f32.gguf,depth=2\n"));
    result_free(&of_file);
    char spec[400], heading[450];
    snprintf(spec, sizeof spec, "ngram+cache,save=%s", path_of("counts"));
    snprintf(heading, sizeof heading, "plain against %s\n", spec);
    of_file = command("compare", "-m", STORIES, "-p", "Once", "-n", "4", "--draft", spec);
    assert_non_null(strstr(of_file.out, heading)); /* a value of a key is whole */
    result_free(&of_file);
    result r = command("compare", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--show", "--color", "never");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "plain: "));
    assert_non_null(strstr(r.out, "plain against auto"));
    assert_non_null(strstr(r.out, "identical 1 of 1"));
    assert_null(strchr(r.out, 27));
    assert_false(has_interval(r.out)); /* three slices have none */
    result_free(&r);
    r = command("compare", "-m", STORIES, "-p", "Once upon a time", "-n", "90", "--ignore-eos", "--color", "never");
    assert_true(has_interval(r.out));
    result_free(&r);
    refused(2, "empty", "compare", "-m", STORIES, "-f", text_write("none.txt", "{\"id\":1,\"prompt\":\"\"}\n"));
    refused(2, "bad.jsonl:2", "compare", "-m", STORIES, "-f",
            text_write("bad.jsonl", "{\"prompt\":\"a\"}\n{\"promt\":\"b\"}\n"));
}

/* ---- draft --------------------------------------------------------------------------------------------------- */

static int times(const char *text, const char *what) {
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* The drawing marks the drafts that the model generates: all, some or none; none after --accept of other tokens. */
static void test_draft_picture(void **state) {
    (void)state;
    static const struct {
        const char *draft, *accept, *says;
        int marks, nodes;
    } cases[] = {{"forced,accept=1,depth=4", NULL, "accepted by the model: 4 of 4 drafted", 4, 4},
                 {"forced,accept=0,depth=3", NULL, "none of 3 drafted tokens is accepted", 0, 3},
                 {"forced,accept=1,depth=4", "0", "the drafter's confidence", 0, 4},
                 {"forced,accept=1,depth=4", "2", "the drafter's confidence", 0, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r = command("draft", STORIES, "The cat ran. The", "--draft", cases[i].draft,
                           cases[i].accept ? "--accept" : NULL, cases[i].accept);
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.out, cases[i].says));
        assert_int_equal(times(r.out, "─ "), cases[i].nodes);
        assert_int_equal(times(r.out, "✓"), cases[i].marks + (cases[i].marks > 0)); /* and the legend */
        assert_null(strstr(r.out, "forced"));                                       /* there is only one drafter */
        result_free(&r);
    }
    result r = command("draft", STORIES, "The cat ran. The cat ran. The", "--draft",
                       "forced,accept=0,depth=1+ngram,form=pld+ngram");
    assert_true(times(r.out, "  forced\n") == 1 && times(r.out, "  ngram 1") > 0);
    assert_null(strstr(r.out, "form=pld"));
    result_free(&r);
}

/* ---- tokenize, logits, score ---------------------------------------------------------------------------------- */

static void test_tokenize(void **state) {
    (void)state;
    json_t *row = golden("golden.jsonl", 1), *ids = get(row, "prompt_ids");
    json_t *j = json_of("tokenize", "-m", STORIES, "-p", text_of(row, "prompt"));
    assert_int_equal(json_array_size(get(j, "ids")) + 1, json_array_size(ids)); /* no BOS */
    for (size_t i = 1; i < json_array_size(ids); i++)
        assert_true(json_equal(json_array_get(get(j, "ids"), i - 1), json_array_get(ids, i)));
    assert_int_equal(json_array_size(get(j, "pieces")), json_array_size(get(j, "ids")));
    json_t *request = json_pack("{s:s,s:b}", "text", text_of(row, "prompt"), "add_special", 1);
    char *line = json_dumps(request, 0), lines[600];
    snprintf(lines, sizeof lines, "%s\n{\"text\": \"\\u00e9\\u4e2d\"}\n{\"text\": \"\"}\n", line);
    result r = command("tokenize", "-m", STORIES, "-f", text_write("rows.jsonl", lines), "--json-lines");
    assert_int_equal(r.code, 0);
    json_t *first = json_loads(r.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_true(json_equal(get(first, "ids"), ids)); /* with BOS */
    assert_non_null(strstr(r.out, "<0x"));           /* characters that the vocabulary lacks fall back to bytes */
    assert_non_null(strstr(r.out, "\n{\"ids\": [], \"pieces\": []}\n"));
    result_free(&r);
    free(line);
    json_decref(request);
    json_decref(first);
    json_decref(j);
    json_decref(row);
    refused(2, "bad.jsonl:1", "tokenize", "-m", STORIES, "-f", text_write("bad.jsonl", "{\"txt\":1}"), "--json-lines");
}

static void test_template(void **state) {
    (void)state;
    const char *source =
        text_write("t.jinja", "{% for m in messages %}[{{ m['role'] }}: {{ m['content'] }}]{% endfor %}");
    const char *vars = text_write("v.json", "{\"messages\": [{\"role\": \"user\", \"content\": \"caf\xc3\xa9\"},"
                                            "{\"role\": \"assistant\", \"content\": \"b\"}]}");
    result r = command("tokenize", "--template", source, "--messages", vars, "--text");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "[user: caf\xc3\xa9][assistant: b]");
    result_free(&r);
    refused(2, "--messages", "tokenize", "--template", source, "--text");
    refused(1, "/proc/nowhere", "tokenize", "--template", "/proc/nowhere", "--messages", vars, "--text");
    refused(2, "nul.jinja: a zero byte", "tokenize", "--template", file_write("nul.jinja", "a\0b", 3), "--messages",
            vars, "--text");
    refused(2, "--messages contradicts a TEXT", "tokenize", STORIES, "hello", "--template", source, "--messages", vars);
    refused(2, "--messages contradicts -f", "tokenize", STORIES, "-f", vars, "--template", source, "--messages", vars);
    refused(2, "v.json", "tokenize", "--template", source, "--messages", text_write("v.json", "{"), "--text");
}

static void test_score(void **state) {
    (void)state;
    json_t *row = golden("nll.jsonl", 0), *ids = get(row, "ids");
    size_t n = json_array_size(ids);
    const char *tokens = json_write("ids.json", ids);
    json_t *j = json_of("score", "-m", STORIES, "--tokens", tokens, "--precision", "f32");
    assert_int_equal(int_of(j, "tokens"), n);
    assert_int_equal(int_of(row, "n_scored"), n - 1);
    near(real_of(j, "nll"), real_of(row, "nll_sum") / (double)(n - 1), 1e-4);
    near(real_of(j, "perplexity"), exp(real_of(j, "nll")), 1e-6);
    matrix m = logits_of(ids, 0, n);
    assert_int_equal(m.rows, n);
    assert_int_equal(m.columns, 512);
    near(real_of(j, "nll"), nll_sum(&m, ids, 0, 1, n) / (double)(n - 1), 1e-6);
    free(m.file);
    json_decref(j);
    /* windows of 64 with half overlap: 0..63, 32..95, 64..127, ...; each scores the tokens without a score */
    double sum = 0;
    for (size_t begin = 0, scored = 1; scored < n; begin += 32) {
        size_t end = begin + 64 < n ? begin + 64 : n;
        m = logits_of(ids, begin, end);
        sum += nll_sum(&m, ids, begin, scored, end);
        scored = end;
        free(m.file);
    }
    j = json_of("score", "-m", STORIES, "--tokens", tokens, "--precision", "f32", "--context", "64");
    near(real_of(j, "nll"), sum / (double)(n - 1), 1e-6);
    json_decref(j);
    /* as text: the same ids, BOS from the tokenizer */
    j = json_of("score", "-m", STORIES, "-f", text_write("story.txt", text_of(row, "text")), "--precision", "f32");
    near(real_of(j, "nll"), real_of(row, "nll_sum") / (double)(n - 1), 1e-4);
    json_decref(j);
    json_decref(row);
    refused(2, "at least 2", "score", "-m", STORIES, "--tokens", text_write("t.json", "[1]"));
    /* the newline at the end of a file is no part of the text; the line says over how many tokens the mean is */
    result text = command("score", "-m", STORIES, "-p", "Once upon a time"),
           file = command("score", "-m", STORIES, "-f", text_write("story.txt", "Once upon a time\n"));
    assert_string_equal(text.out, file.out);
    assert_non_null(strstr(text.out, "5 tokens, "));
    assert_non_null(strstr(text.out, " nats a token over the 4 after the first, perplexity "));
    result_free(&text);
    result_free(&file);
}

/* A device is written, not replaced (through a link here, as replacing a device would damage the system). */
static void test_logits_to_a_device(void **state) {
    (void)state;
    struct stat st;
    char *link = path_of("null.npy");
    assert_int_equal(symlink("/dev/null", link), 0);
    result r = command("logits", "-m", STORIES, "-p", "a", "-o", link);
    assert_int_equal(r.code, 0);
    result_free(&r);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

/* A chunk beyond the rows of a pass is cut to these, with a message, and the text is unchanged. */
static void test_chunk_rows(void **state) {
    (void)state;
    result plain = command("run", STORIES, "Once upon a time", "-n", "12", "--temperature", "0");
    result cut = command("run", STORIES, "Once upon a time", "-n", "12", "--temperature", "0", "--chunk", "100000");
    result most = command("run", STORIES, "Once upon a time", "-n", "12", "--chunk", "512");
    assert_string_equal(plain.out, cut.out);
    assert_non_null(strstr(cut.err, "--chunk 100000 is taken as 512"));
    assert_null(strstr(most.err, "--chunk"));
    result_free(&plain);
    result_free(&cut);
    result_free(&most);
}

/* A pool too small for one text is enlarged, with a message, and the text is unchanged. */
static void test_pool_rows(void **state) {
    (void)state;
    static const char says[] = "--pool-rows 1 is taken as 512";
    result plain = command("run", STORIES, "Once upon a time", "-n", "12", "--temperature", "0");
    result raised = command("run", STORIES, "Once upon a time", "-n", "12", "--temperature", "0", "--pool-rows", "1");
    result quiet = command("run", STORIES, "Once upon a time", "-n", "12", "--pool-rows", "1", "-q");
    result enough = command("run", STORIES, "Once upon a time", "-n", "12", "--pool-rows", "512");
    result many = command("compare", STORIES, "Once upon a time", "-n", "12", "--pool-rows", "1", "--context", "64",
                          "--draft", "ngram");
    assert_string_equal(plain.out, raised.out);
    assert_non_null(strstr(raised.err, says));
    assert_null(strstr(quiet.err, "--pool-rows"));
    assert_null(strstr(enough.err, "--pool-rows"));
    const char *first = strstr(many.err, "--pool-rows 1 is taken as 64");
    assert_non_null(first); /* once for two engines */
    assert_null(strstr(first + 1, "--pool-rows"));
    result_free(&plain);
    result_free(&raised);
    result_free(&quiet);
    result_free(&enough);
    result_free(&many);
}

static void test_logits_unwritable(void **state) {
    (void)state;
    refused(1, "/proc/nowhere/x.npy", "logits", "-m", STORIES, "-p", "a", "-o", "/proc/nowhere/x.npy");
}

/* ---- inspect, convert ------------------------------------------------------------------------------------------ */

static void test_inspect(void **state) {
    (void)state;
    json_t *j = json_of("inspect", STORIES);
    assert_string_equal(text_of(j, "format"), "gguf");
    assert_true(json_is_true(get(j, "runs")));
    assert_string_equal(text_of(get(j, "metadata"), "general.architecture"), "llama");
    assert_true(json_array_size(get(j, "tensors")) > 40);
    size_t i;
    const json_t *t;
    json_array_foreach(get(j, "tensors"), i, t) assert_true(json_is_true(get(t, "used")));
    json_decref(j);
    result r = command("inspect", "-m", STORIES);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "token_embd.weight"));
    assert_non_null(strstr(r.out, "none of the tensors"));
    result_free(&r);
}

static void test_convert(void **state) {
    (void)state;
    char converted[300];
    snprintf(converted, sizeof converted, "%s/converted.gguf", folder);
    result r = command("convert", "-m", STORIES_HF, "-o", converted);
    assert_int_equal(r.code, 0);
    result_free(&r);
    json_t *a = json_of("run", "-m", STORIES_HF, "-p", "Once upon a time", "-n", "40", "--precision", "f32");
    json_t *b = json_of("run", "-m", converted, "-p", "Once upon a time", "-n", "40", "--precision", "f32");
    assert_true(json_equal(get(a, "tokens"), get(b, "tokens")));
    assert_string_equal(text_of(a, "text"), text_of(b, "text"));
    json_decref(a);
    json_decref(b);
    refused(3, "/proc/nowhere", "convert", "-m", "/proc/nowhere", "-o", converted, "--force");
    refused(2, "folder", "convert", "-m", STORIES, "-o", converted, "--force");
    refused(2, "-o", "convert", "-m", STORIES_HF);
}

/* ---- main ------------------------------------------------------------------------------------------------------ */

/* Files have names of any bytes; where JSON or SVG says them again, U+FFFD is there for what is not UTF-8. */
static void test_names_of_any_bytes(void **state) {
    (void)state;
    static const char shown[] = "caf\xEF\xBF\xBD";
    char model[300], draft[330], out[300], spec[330];
    snprintf(model, sizeof model, "%s/caf\xe9.gguf", folder);
    snprintf(out, sizeof out, "%s/record\xe9.jsonl", folder);
    assert_int_equal(symlink(STORIES, model), 0);
    snprintf(draft, sizeof draft, "prediction:%s", text_write("caf\xe9.txt", "Once upon a time there was a girl."));
    snprintf(spec, sizeof spec, "model:%s", model);
    json_t *about = json_of("inspect", model, "--draft", draft);
    assert_non_null(strstr(text_of(about, "path"), shown));
    assert_non_null(strstr(text_of(json_array_get(get(about, "drafters"), 0), "drafter"), shown));
    json_decref(about);
    json_t *answer = json_of("run", model, "Once", "-n", "4", "--draft", draft);
    assert_int_equal(json_array_size(get(answer, "drafters")), 1);
    assert_non_null(strstr(json_string_value(json_array_get(get(answer, "drafters"), 0)), shown));
    json_decref(answer);
    result r = command("compare", model, "Once", "-n", "4", "--draft", spec, "--record", out);
    if (r.code != 0) fail_msg("%s", r.err);
    result_free(&r);
    char *lines = file_read(out, NULL);
    assert_non_null(strstr(lines, shown));
    free(lines);
    refused(2, "the prompt is not valid UTF-8 at byte 3", "run", model, "caf\xe9", "-n", "1");
    snprintf(model, sizeof model, "%s/none\xe9", folder);
    refused(3, "no such file or folder", "run", "-m", model, "-p", "a");
    refused(3, "no such file or folder", "run", STORIES, "a", "--draft", "eagle3:\xe9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_errors),
        cmocka_unit_test(test_names_of_any_bytes),
        cmocka_unit_test(test_sampling_flags),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_full_context),
        cmocka_unit_test(test_colors_of_columns),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_engine_refusals),
        cmocka_unit_test(test_token_files),
        cmocka_unit_test(test_prompt_files),
        cmocka_unit_test(test_zero_byte),
        cmocka_unit_test(test_damaged_models),
        cmocka_unit_test(test_run_golden),
        cmocka_unit_test(test_run_text),
        cmocka_unit_test(test_run_drafted),
        cmocka_unit_test(test_plus_in_a_path),
        cmocka_unit_test(test_run_one_token),
        cmocka_unit_test(test_run_seed),
        cmocka_unit_test(test_run_samples),
        cmocka_unit_test(test_run_stop),
        cmocka_unit_test(test_run_plain_output),
        cmocka_unit_test(test_run_without_tokenizer),
        cmocka_unit_test(test_run_interrupted),
        cmocka_unit_test(test_run_interrupted_in_the_prompt),
        cmocka_unit_test(test_full_output),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_parallel),
        cmocka_unit_test(test_compare_groups),
        cmocka_unit_test(test_compare_record),
        cmocka_unit_test(test_compare_table),
        cmocka_unit_test(test_draft_picture),
        cmocka_unit_test(test_tokenize),
        cmocka_unit_test(test_template),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_logits_to_a_device), cmocka_unit_test(test_logits_unwritable),
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_chunk_rows), cmocka_unit_test(test_pool_rows),
        cmocka_unit_test(test_convert),
    };
    unsetenv("NO_COLOR");
    unsetenv("COLORTERM");
    setenv("TERM", "xterm", 1);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
