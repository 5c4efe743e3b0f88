/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_folder_test.c - the command with damaged Hugging Face folders, templates that never end and invalid prompt
 * files: the documented exit code and one line that names the file and the error in it, within a gigabyte and seconds
 * (hostile_limits.h). The folder is a Llama of one layer, one thing changed at a time. */
#include "command.h"

#include "format/bytes_for_tests.h"
#include "hostile_limits.h"
#include "hunch/hunch.h"

static const char CONFIG[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8, \"intermediate_size\": 8,"
    " \"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"head_dim\": 4, \"max_position_embeddings\": 64,"
    " \"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, \"vocab_size\": 8, \"tie_word_embeddings\": true,"
    " \"hidden_act\": \"silu\"}";
static const char TOKENIZER[] =
    "{\"added_tokens\": [{\"id\": 0, \"content\": \"<unk>\", \"special\": true}], \"normalizer\": {\"type\": "
    "\"Sequence\","
    " \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"\xE2\x96\x81\"}, {\"type\": \"Replace\", \"pattern\":"
    " {\"String\": \" \"}, \"content\": \"\xE2\x96\x81\"}]}, \"pre_tokenizer\": null, \"model\": {\"type\": \"BPE\","
    " \"unk_token\": \"<unk>\", \"fuse_unk\": true, \"byte_fallback\": true, \"vocab\": {\"<unk>\": 0, "
    "\"\xE2\x96\x81\": 1,"
    " \"a\": 2, \"b\": 3, \"ab\": 4}, \"merges\": [\"a b\"]}}";
static const char GENERATION[] = "{\"do_sample\": false, \"eos_token_id\": [2, 7]}";
static const char *const NAMES[] = {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"};

/* ---- a folder ----------------------------------------------------------------------------------------------------- */

static const char *model_file(const char *name) {
    static char path[4][400];
    static int turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/model/%s", folder, name);
    return out;
}

static void model_write(const char *name, const void *data, size_t len) {
    test_file_write(model_file(name), data, len);
}

static void model_text(const char *name, const char *text) {
    model_write(name, text, strlen(text));
}

/* F32 weights; `value` in all of the vectors. */
static bytes weights(float value) {
    static const struct {
        const char *name;
        int rows, cols;
    } tensors[] = {{"model.embed_tokens", 8, 8},
                   {"model.norm", 8, 0},
                   {"model.layers.0.input_layernorm", 8, 0},
                   {"model.layers.0.post_attention_layernorm", 8, 0},
                   {"model.layers.0.self_attn.q_proj", 8, 8},
                   {"model.layers.0.self_attn.k_proj", 8, 8},
                   {"model.layers.0.self_attn.v_proj", 8, 8},
                   {"model.layers.0.self_attn.o_proj", 8, 8},
                   {"model.layers.0.mlp.gate_proj", 8, 8},
                   {"model.layers.0.mlp.up_proj", 8, 8},
                   {"model.layers.0.mlp.down_proj", 8, 8}};
    bytes head = {0}, data = {0}, b = {0};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char line[300];
        const int cols = tensors[i].cols, n = tensors[i].rows * (cols ? cols : 1);
        size_t begin = data.size;
        for (int k = 0; k < n; k++) {
            const float x = cols ? (float)(k * 37 % 17 - 8) / 16 : value;
            bytes_put(&data, &x, sizeof x);
        }
        snprintf(line, sizeof line, "%c\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[8%s],\"data_offsets\":[%zu,%zu]}",
                 i ? ',' : '{', tensors[i].name, cols ? ",8" : "", begin, data.size);
        bytes_put(&head, line, strlen(line));
    }
    bytes_put(&head, "}", 1);
    bytes_number(&b, head.size, 8);
    bytes_put(&b, head.at, head.size);
    bytes_put(&b, data.at, data.size);
    bytes_free(&head);
    bytes_free(&data);
    return b;
}

static void model_whole(void) {
    bytes b = weights(1);
    mkdir(model_file(""), 0777);
    model_text("config.json", CONFIG);
    model_text("tokenizer.json", TOKENIZER);
    model_text("tokenizer_config.json", "{\"unk_token\": \"<unk>\"}");
    model_text("generation_config.json", GENERATION);
    model_write("model.safetensors", b.at, b.size);
    unlink(model_file("model.safetensors.index.json"));
    bytes_free(&b);
}

/* As it is now. */
static void assert_refused(const char *what, const char *says) { model_refused(path_of("model"), "ab", what, says); }

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* README: "A model file that is damaged, inconsistent or unknown is refused with one line that says why; it crashes
 * nothing." */
static void test_values_that_lie(void **state) {
    (void)state;
    static const struct {
        const char *file, *change, *says; /* change: merged into the file's object */
    } cases[] = {
        {"config.json", "{\"model_type\": 7}", "model_type is 7"},
        {"config.json", "{\"model_type\": \"mamba\"}", "unknown architecture \"mamba\""},
        {"config.json", "{\"model_type\": null}", "model_type is missing"},
        {"config.json", "{\"num_hidden_layers\": 0}", "num_hidden_layers is 0"},
        {"config.json", "{\"num_hidden_layers\": 1000000000}", "num_hidden_layers is 1000000000"},
        {"config.json", "{\"num_hidden_layers\": -1}", "num_hidden_layers is -1"},
        {"config.json", "{\"num_hidden_layers\": 1.5}", "num_hidden_layers is 1.5"},
        {"config.json", "{\"num_hidden_layers\": \"1\"}", "num_hidden_layers is a string"},
        {"config.json", "{\"num_hidden_layers\": [1]}", "num_hidden_layers is an array"},
        {"config.json", "{\"num_hidden_layers\": 1000}", "model.layers.1."},
        {"config.json", "{\"hidden_size\": {}}", "hidden_size is an object"},
        {"config.json", "{\"hidden_size\": 1e300}", "hidden_size is 1e+300"},
        {"config.json", "{\"hidden_size\": 16}", "model.embed_tokens.weight"},
        {"config.json", "{\"intermediate_size\": 1048576}", "mlp."},
        {"config.json", "{\"num_attention_heads\": 0}", "num_attention_heads is 0"},
        {"config.json", "{\"num_key_value_heads\": 4}", "heads"},
        {"config.json", "{\"num_key_value_heads\": true}", "num_key_value_heads is a boolean"},
        {"config.json", "{\"head_dim\": 3}", "head size 3"},
        {"config.json", "{\"head_dim\": 1000000000}", "head_dim is 1000000000"},
        {"config.json", "{\"max_position_embeddings\": 1099511627776}", "max_position_embeddings is 1099511627776"},
        {"config.json", "{\"rms_norm_eps\": -1e-5}", "rms_norm_eps is -1e-05"},
        {"config.json", "{\"rms_norm_eps\": 1e300}", "rms_norm_eps is 1e+300"},
        {"config.json", "{\"rms_norm_eps\": \"1e-5\"}", "rms_norm_eps is a string"},
        {"config.json", "{\"rope_theta\": -1}", "rope_theta is -1"},
        {"config.json", "{\"rope_theta\": \"10000\"}", "rope_theta is a string"},
        {"config.json", "{\"rope_scaling\": 7}", "rope_scaling"},
        {"config.json", "{\"rope_scaling\": {\"rope_type\": \"magic\"}}", "rope"},
        {"config.json", "{\"rope_scaling\": {\"rope_type\": \"linear\"}}", "rope_scaling.factor is missing"},
        {"config.json", "{\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": -2}}", "rope_scaling.factor is -2"},
        {"config.json",
         "{\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": "
         "1,"
         " \"original_max_position_embeddings\": 64}}",
         "high_freq_factor"},
        {"config.json", "{\"vocab_size\": 9}", "vocabulary of 9"},
        {"config.json", "{\"tie_word_embeddings\": 1}", "tie_word_embeddings is 1"},
        {"config.json", "{\"hidden_act\": \"relu\"}", "hidden_act is \"relu\""},
        {"config.json", "{\"eos_token_id\": \"2\"}", "eos_token_id"},
        {"generation_config.json", "{\"eos_token_id\": [2, -1]}", "eos_token_id"},
        {"generation_config.json", "{\"eos_token_id\": {}}", "eos_token_id"},
        {"generation_config.json", "{\"do_sample\": true, \"temperature\": -1}", "temperature is -1"},
        {"generation_config.json", "{\"do_sample\": true, \"temperature\": \"hot\"}", "temperature"},
        {"generation_config.json", "{\"do_sample\": true, \"top_p\": 2}", "top_p is 2"},
        {"generation_config.json", "{\"do_sample\": true, \"top_k\": 1e300}", "top_k is 1e+300"},
        {"generation_config.json", "{\"do_sample\": true, \"top_k\": [1]}", "top_k"},
        {"generation_config.json", "{\"do_sample\": \"yes\"}", "do_sample"},
        {"generation_config.json", "{\"repetition_penalty\": 0}", "repetition_penalty is 0"},
        {"tokenizer.json", "{\"model\": null}", "model"},
        {"tokenizer.json", "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {}}}", "WordPiece"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": [], \"merges\": []}}", "vocab"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}", "id"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1099511627776}, \"merges\": []}}", "id"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": \"0\"}, \"merges\": []}}", "id"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2, \"b\": 2}, \"merges\": []}}", "id 2"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2000000}, \"merges\": []}}",
         "tokenizer of 2000001 tokens, model of 8"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2}, \"merges\": [\"a z\"]}}",
         "merges[0]"},
        {"tokenizer.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2}, \"merges\": [7]}}", "merges[0]"},
        {"tokenizer.json", "{\"added_tokens\": [{\"id\": -5, \"content\": \"x\"}]}", "added_tokens"},
        {"tokenizer.json", "{\"normalizer\": {\"type\": \"Magic\"}}", "Magic"},
        {"tokenizer.json", "{\"pre_tokenizer\": {\"type\": \"Magic\"}}", "Magic"},
        {"tokenizer.json",
         "{\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\":"
         " \"Split\", \"pattern\": {\"Regex\": \"(a\"}, \"behavior\": \"Isolated\"},"
         " {\"type\": \"ByteLevel\"}]}}",
         "\"(a\""},
    };
    model_whole();
    model_runs(path_of("model"), "ab");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_whole();
        char *text = file_read(model_file(cases[i].file), NULL);
        json_t *whole = json_loads(text, 0, NULL), *change = json_loads(cases[i].change, 0, NULL);
        assert_non_null(whole);
        assert_non_null(change);
        assert_int_equal(json_object_update(whole, change), 0);
        free(text);
        text = json_dumps(whole, 0);
        model_text(cases[i].file, text);
        assert_refused(cases[i].change, cases[i].says);
        free(text);
        json_decref(whole);
        json_decref(change);
    }
}

/* A text of n times `part`; free. */
static char *repeated(const char *before, const char *part, size_t n, const char *behind) {
    const size_t len = strlen(part), first = strlen(before);
    char *text = malloc(first + n * len + strlen(behind) + 1);
    assert_non_null(text);
    memcpy(text, before, first);
    for (size_t i = 0; i < n; i++) memcpy(text + first + i * len, part, len);
    strcpy(text + first + n * len, behind);
    return text;
}

static void test_no_json(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "7",
                                        "[]",
                                        "{\"a\": 1",
                                        "{} {}",
                                        "{\"a\": NaN}",
                                        "\xEF\xBB\xBF{}",
                                        "{\"a\": \"\xff\"}",
                                        "{\"a\": 1, \"a\": 2}"};
    char *deep = repeated("{\"a\":", "[", 1000000, "");
    for (size_t f = 0; f < sizeof NAMES / sizeof *NAMES; f++) {
        model_whole();
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            model_text(NAMES[f], texts[i]);
            assert_refused(texts[i], NAMES[f]);
        }
        model_text(NAMES[f], deep);
        assert_refused("a million brackets", NAMES[f]);
    }
    free(deep);
}

/* A few megabytes that would become gigabytes in the parser. */
static void test_json_that_takes_memory(void **state) {
    (void)state;
    char *text = repeated("{\"a\": [[]", ",[]", 5000000, "]}");
    for (size_t f = 0; f < 3; f++) { /* generation_config.json may not be that long */
        model_whole();
        model_text(NAMES[f], text);
        assert_refused("millions of lists", "it would take");
        assert_refused("millions of lists", NAMES[f]);
    }
    bytes b = {0};
    bytes_number(&b, strlen(text), 8);
    bytes_put(&b, text, strlen(text));
    model_whole();
    model_write("model.safetensors", b.at, b.size);
    assert_refused("millions of lists", "it would take");
    bytes_free(&b);
    free(text);
}

/* The contents of a file cannot control the terminal. */
static void test_inspect_is_masked(void **state) {
    (void)state;
    model_whole();
    model_text("config.json", "{\"model_type\": \"\\u001b[31m\", \"\\u001b[2J\": 1, \"a\\u009b\": \"\\u009b2J\"}");
    result r = command("inspect", path_of("model"));
    assert_int_equal(r.code, HUNCH_OK);
    assert_non_null(strstr(r.out, "   [2J ")); /* a key and its indentation */
    assert_null(strchr(r.out, '\x1b'));
    assert_null(strstr(r.out, "\xC2\x9B"));
    result_free(&r);
}

/* In this process, since there are thousands. A truncated document is not JSON. */
static void test_documents_cut(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof NAMES / sizeof *NAMES; f++) {
        size_t len;
        model_whole();
        char *text = file_read(model_file(NAMES[f]), &len);
        for (size_t n = 0; n < len; n++) {
            char *json = NULL;
            hunch_error err = {0};
            model_write(NAMES[f], text, n);
            if (hunch_inspect(path_of("model"), &json, &err) != HUNCH_REFUSED || !strstr(err.message, NAMES[f]))
                fail_msg("%s, %zu bytes: %s", NAMES[f], n, err.message);
        }
        free(text);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

static void test_weights(void **state) {
    (void)state;
    static const float values[] = {NAN, INFINITY};
    bytes b = weights(1);
    model_whole();
    for (size_t n = 0; n < b.size; n += b.size / 12 + 1) {
        model_write("model.safetensors", b.at, n);
        assert_refused("cut", "model.safetensors");
    }
    bytes_free(&b);
    for (size_t v = 0; v < 2; v++) {
        b = weights(values[v]);
        model_write("model.safetensors", b.at, b.size);
        result r = command("run", "-m", path_of("model"), "-p", "ab", "--raw", "-n", "3");
        if (r.code != HUNCH_FAILED || !strstr(r.err, "every logit is NaN or -inf") || !strstr(r.err, path_of("model")))
            fail_msg("%d, \"%s\", output \"%s\"", r.code, r.err, r.out);
        result_free(&r);
        bytes_free(&b);
    }
    unlink(model_file("model.safetensors"));
    assert_refused("no weights", "neither model.safetensors nor model.safetensors.index.json");
    model_text("model.safetensors.index.json",
               "{\"weight_map\": {\"model.norm.weight\": \"../../../etc/x.safetensors\"}}");
    assert_refused("a shard elsewhere", "weight_map gives no usable file for model.norm.weight");
    model_text("model.safetensors.index.json", "{\"weight_map\": {\"model.norm.weight\": \"one.safetensors\"}}");
    assert_refused("a shard that is not there", "one.safetensors, which is missing");
}

/* ---- templates -------------------------------------------------------------------------------------------------- */

static void template_ends(const char *what, const char *text) {
    const char *source = text_write("template", text), *vars = text_write("vars", "{\"messages\": [], \"x\": 1}");
    result r = command("tokenize", "--template", source, "--messages", vars, "--text");
    const char *end = strchr(r.err, '\n');
    if ((r.code != HUNCH_USAGE && r.code != HUNCH_REFUSED) || !end || end[1])
        fail_msg("%s: %d, \"%.300s\", output \"%.100s\"", what, r.code, r.err, r.out);
    result_free(&r);
}

/* Chat reports it; the model runs without a template. */
static void test_template_that_is_none(void **state) {
    (void)state;
    model_whole();
    model_text("tokenizer_config.json", "{\"chat_template\": \"{% for %}\"}");
    const char *path = path_of("model");
    model_runs(path, "ab");
    result r = command("run", "-m", path, "-p", "ab", "-n", "3");
    if (r.code != HUNCH_REFUSED || !strstr(r.err, path) || !strstr(r.err, "chat template") || r.out_len)
        fail_msg("got %d, \"%s\"", r.code, r.err);
    result_free(&r);
}

static void test_templates_that_never_end(void **state) {
    (void)state;
    static const char *const loops[] = {
        "{% for i in range(1000000000) %}{% endfor %}",
        "{% for i in range(1000000000000000000) %}{{ i }}{% endfor %}",
        "{% for i in range(9000) %}{% for j in range(9000) %}{% for k in range(9000) %}{% endfor %}{% endfor %}{% "
        "endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s | replace('x', 'xx') %}{% endfor %}",
        "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{{ 'x' * 1000000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{{ range(1000000000) | list }}",
        "{{ 'x\ny' | indent(1000000000000) }}",
        "{{ messages | tojson(indent=1000000000) }}",
        "{% for i in range(100000) %}{{ "
        "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
        " * 1000 }}{% endfor %}",
        "{{ 1 // 0 }}",
        "{{ 1 % 0 }}",
        "{{ 9 ** 9 ** 9 ** 9 }}{{ y.z.a }}",
        "{{ x.y.z }}",
        "{% if x %}",
        "{{ 'abc",
        "{# no end",
    };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) template_ends(loops[i], loops[i]);
    static const struct {
        const char *before, *part, *behind;
    } deep[] = {{"{{ ", "(", "1"},          {"{{ ", "[", " }}"},    {"{{ ", "not ", "x }}"},
                {"{{ ", "-", "x"},          {"", "{% if x %}", ""}, {"", "{% for i in [1] %}", "x"},
                {"{{ ", "{'a':", "1"},      {"{{ x", ".a", " }}"},  {"{{ ", "x if x else ", ""},
                {"", "{% macro f() %}", ""}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        char *text = repeated(deep[i].before, deep[i].part, 300000, deep[i].behind);
        template_ends(deep[i].part, text);
        free(text);
    }
}

/* ---- prompts ------------------------------------------------------------------------------------------------------ */

static void test_prompt_files(void **state) {
    (void)state;
    char *deep = repeated("{\"prompt\": \"a\", \"x\": ", "[", 1000000, "\n"), *list = repeated("", "[", 1000000, "");
    static const struct {
        const char *flag, *text, *says;
    } cases[] = {
        {"-f", "", "empty"},
        {"-f", "a\xff", "not valid UTF-8 at byte 1"},
        {"-f", "{\"prompt\": \"a\"}\n{\"prompt\": 7}\n", ":2: expected an object"},
        {"-f", "{\"prompt\": \"a\"}\n{\"prompt\": \"a\n", ":2: not a line of JSON"},
        {"-f", "{\"prompt\": \"a\", \"prediction\": 7}\n", ":1: \"prediction\""},
        {"-f", "{\"messages\": [7]}\n", ":1: message 0"},
        {"-f", "{\"tokens\": []}\n", ":1: the list of token ids is empty"},
        {"-f", "{\"tokens\": [1, -1]}\n", ":1: entry 1"},
        {"-f", "{\"tokens\": [1, 99999999999]}\n", ":1: entry 1"},
        {"-f", "{\"tokens\": [1, 9]}\n", "9"},
        {"--tokens", "", "expected a JSON array"},
        {"--tokens", "{}", "expected a JSON array"},
        {"--tokens", "[1e9]", "entry 0"},
        {"--tokens", "[2147483647]", "2147483647"},
        {"--tokens", "[1", "expected a JSON array"},
    };
    model_whole();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = text_write("prompts", cases[i].text);
        refused(HUNCH_USAGE, cases[i].says, "run", "-m", path_of("model"), "--raw", "-n", "3", cases[i].flag, path);
    }
    refused(HUNCH_USAGE, "", "run", "-m", path_of("model"), "--raw", "-n", "3", "--tokens",
            text_write("prompts", list));
    refused(HUNCH_USAGE, ":1: not a line of JSON", "run", "-m", path_of("model"), "--raw", "-n", "3", "-f",
            text_write("prompts", deep));
    free(deep);
    free(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_that_lie),
        cmocka_unit_test(test_no_json),
        cmocka_unit_test(test_json_that_takes_memory),
        cmocka_unit_test(test_inspect_is_masked),
        cmocka_unit_test(test_documents_cut),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_template_that_is_none), cmocka_unit_test(test_templates_that_never_end),
        cmocka_unit_test(test_prompt_files),
    };
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
