/* SPDX-License-Identifier: Apache-2.0 */
/* fault_load_test.c - every allocation and every read of opening models and of the calls outside rounds fails, once and from
 * then on: a clear status and one line each time, no leaks, and the next try works. Rounds: fault_round_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/program_files.h"
#include "faults.h"
#include "format/split_for_tests.h"

/* Number of failures tried by tests that do not break all of them in the quick run. */
#define MANY (EVERY_CASE ? 150 : 24)

static hunch_status open_for(hunch_model **m, const char *path, bool mapped, int threads, bool text_only, hunch_error *err) {
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.threads = threads;
    o.mapped = mapped;
    o.text_only = text_only;
    return hunch_model_open(m, path, &o, err);
}

/* ---- opening ----------------------------------------------------------------------------------------------------------- */

typedef struct load {
    const char *path;
    bool mapped;
    int threads;
} load;

/* Logits of a few positions too: a vector that was not read would change them. */

static void row_digest(void *user, size_t position, const float *logits, int vocab) {
    (void)position;
    digest_add(user, logits, (size_t)vocab * sizeof *logits);
}

static hunch_status evaluate(hunch_model *m, uint64_t *digest, hunch_error *err) {
    static const hunch_token ids[] = {1, 5, 9, 3, 12};
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_engine_options_defaults(&o);
    o.context = 32;
    o.page_rows = 16;
    hunch_status st = hunch_engine_open(&e, m, &o, err);
    if (!st) st = hunch_evaluate(e, ids, sizeof ids / sizeof *ids, row_digest, digest, err);
    hunch_engine_close(&e);
    return st;
}

static hunch_status load_life(const void *what, uint64_t *digest, hunch_error *err) {
    const load *l = what;
    hunch_model *m = NULL;
    hunch_status st = open_for(&m, l->path, l->mapped, l->threads, false, err);
    if (st) assert_null(m);
    if (!st) st = evaluate(m, digest, err);
    hunch_model_close(&m);
    return st;
}

static void check_load_by(const char *path, bool mapped, int threads) {
    const load l = {path, mapped, threads};
    faults_break_both(path, load_life, &l, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2);
    faults_break_both(path, load_life, &l, HN_FAULT_READ, HUNCH_FAILED, MANY, 1);
    faults_break(path, load_life, &l, HN_FAULT_SHORT, false, HUNCH_OK, 20, 0);
    faults_break(path, load_life, &l, HN_FAULT_SHORT, true, HUNCH_OK, 3, 0);
}

static void check_load(const char *path, bool mapped) {
    check_load_by(path, mapped, 2);
}

/* README: "An allocation or a read that fails is an error: nothing is lost, and the next try works." */
static void test_gguf(void **state) {
    (void)state;
    check_load(data_path("models/stories260K/stories260K.f16.gguf"), false);
    check_load(data_path("models/babyllama105/babyllama105.q8_0.gguf"), true);
}

static void test_folders(void **state) {
    (void)state;
    static const char *const names[] = {"goldens/qwen3-fp8", "goldens/phi3-longrope", "goldens/gemma3_text-local",
                                        "goldens/granite-bias", "goldens/qwen3_5-dense", "goldens/gpt_oss-mxfp4",
                                        "goldens/gemma4-e", "goldens/gemma4_text-moe", "goldens/deepseek_v3-mtp2", "goldens/mamba2-odd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_load(data_path(names[i]), i % 2);
    check_load(data_path("goldens/gpt_oss-mxfp4"), false);
    check_load_by(data_path("goldens/gpt_oss-bf16"), false, 1); /* threads that share bands of turned rows read some of them twice */
}

static void test_parts(void **state) {
    (void)state;
    const char *path = split_file(data_path("models/stories260K/stories260K.f16.gguf"), "fault", 3, true);
    check_load(path, false);
    check_load(path, true);
}

static void test_folder_with_tokenizer(void **state) {
    (void)state;
    check_load(data_path("models/stories260K/hf"), false);
}

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

#define LONG_TEMPLATE                                                                                                          \
    "{% macro line(m) %}{{ m.role | upper }}: {{ m['content'] | trim | replace('a', 'b') }}{% endmacro %}"                   \
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ line(m) }}\n"                          \
    "{%- if loop.last %}{{ ns.n }} {{ m | tojson(indent=2) }}{% endif %}{% endfor %}{{ bos_token }}{{ eos_token }}"            \
    "{% if add_generation_prompt %}assistant: {% endif %}{{ messages | map(attribute='role') | join(',') }}"                \
    "{{ strftime_now('%Y') | length }}{{ range(3) | list }}{{ {'a': [1, 2.5, none]} | tojson }}"

static const char VARS[] = "{\"messages\": [{\"role\": \"user\", \"content\": \" Once upon a time \"}, {\"role\": \"assistant\", "
                           "\"content\": \"h\\u00e9llo\"}], \"extra\": [1, 2, {\"deep\": null}]}";

static hunch_status text_calls(hunch_model *m, uint64_t *digest, hunch_error *err) {
    static const char text[] = "Once upon a time, there was h\xC3\xA9llo  <s> 123 \xF0\x9F\x90\x8B!\n\n  tail";
    hunch_token *ids = NULL;
    size_t n = 0, len = 0;
    char *back = NULL, *rendered = NULL;
    hunch_status st = hunch_tokenize(m, text, sizeof text - 1, HUNCH_TEXT_PARSE_SPECIAL | HUNCH_TEXT_ADD_SPECIAL, &ids, &n, err);
    if (!st) digest_add(digest, ids, n * sizeof *ids);
    if (!st) st = hunch_detokenize(m, ids, n, &back, &len, err);
    if (!st) digest_add(digest, back, len);
    if (!st) st = hunch_chat_render(m, VARS, &(hunch_chat_options){.template_text = LONG_TEMPLATE}, &rendered, &len, err);
    if (!st) digest_add(digest, rendered, len);
    if (st) assert_true(!ids || !back || !rendered);
    hunch_free(ids);
    hunch_free(back);
    hunch_free(rendered);
    return st;
}

static hunch_model *text_model; /* opened before any failure */

static hunch_status text_life(const void *what, uint64_t *digest, hunch_error *err) {
    (void)what;
    return text_calls(text_model, digest, err);
}

static void test_text(void **state) {
    (void)state;
    static const char *const names[] = {"models/stories260K/hf", "models/stories260K/stories260K.f16.gguf",
                                        "models/babyllama105/hf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        must(open_for(&text_model, data_path(names[i]), false, 2, true, err));
        faults_break_both(names[i], text_life, NULL, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 0, 2);
        hunch_model_close(&text_model);
    }
}

static hunch_status template_life(const void *what, uint64_t *digest, hunch_error *err) {
    char *text = NULL;
    size_t len = 0;
    hunch_status st = hunch_template_render(what, VARS, "2026-01-02 03:04:05", &text, &len, err);
    if (!st) digest_add(digest, text, len);
    hunch_free(text);
    return st;
}

static void test_template(void **state) {
    (void)state;
    faults_break_both("template", template_life, LONG_TEMPLATE, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 0, 1);
}

/* A tokenizer and chat template alone, and their calls. */
static hunch_status text_only_life(const void *what, uint64_t *digest, hunch_error *err) {
    hunch_model *m = NULL;
    hunch_status st = open_for(&m, what, false, 2, true, err);
    if (!st) st = text_calls(m, digest, err);
    hunch_model_close(&m);
    return st;
}

static void test_text_only(void **state) {
    (void)state;
    static const char *const names[] = {"models/babyllama105/hf", "models/babyllama105/babyllama105.q8_0.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = data_path(names[i]);
        faults_break_both(path, text_only_life, path, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2);
        faults_break_both(path, text_only_life, path, HN_FAULT_READ, HUNCH_FAILED, MANY, 1);
    }
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static hunch_status inspect_life(const void *what, uint64_t *digest, hunch_error *err) {
    char *json = NULL;
    hunch_status st = hunch_inspect(what, &json, err);
    if (st) assert_null(json);
    digest_text(digest, json);
    hunch_free(json);
    return st;
}

static void test_inspect(void **state) {
    (void)state;
    static const char *const names[] = {"models/stories260K/hf", "models/stories260K/stories260K.f16.gguf",
                                        "goldens/qwen3-fp8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = data_path(names[i]);
        faults_break_both(path, inspect_life, path, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2); /* closing succeeds without memory */
        faults_break_both(path, inspect_life, path, HN_FAULT_READ, HUNCH_FAILED, MANY, 1);
    }
}

/* ---- the check of a head ---------------------------------------------------------------------------------------------- */

typedef struct checked {
    hunch_model *model;
    const char *spec;
    bool smoke;
} checked;

/* The results of a smoke test differ if allocations fail: a head continues without pages. */
static hunch_status check_life(const void *what, uint64_t *digest, hunch_error *err) {
    const checked *c = what;
    const hunch_check_options o = {.smoke = c->smoke};
    char *json = NULL;
    hunch_status st = hunch_check_head(c->model, c->spec, &o, &json, err);
    assert_true(!json == (st != HUNCH_OK));
    if (!c->smoke) digest_text(digest, json);
    hunch_free(json);
    return st;
}

static void test_check(void **state) {
    (void)state;
    char spec[600];
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    snprintf(spec, sizeof spec, "%s", data_path("heads/stories-eagle3"));
    const checked fits = {m, spec, false}, smoke = {m, spec, true},
                  misfit = {m, data_path("goldens-heads/eagle3spec-plain/head"), false};
    faults_break_both("check", check_life, &fits, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2);
    faults_break_both("check", check_life, &fits, HN_FAULT_READ, HUNCH_FAILED, MANY, 1);
    faults_break_both("check of a misfit", check_life, &misfit, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2);
    faults_break_both("smoke test", check_life, &smoke, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 40, 0);
    hunch_model_close(&m);
}

static const char converted[] = "/tmp/hunch-fault-converted.gguf";
static const char OLD[] = "the old file";

typedef struct conversion {
    const char *path, *type;
} conversion;

/* After any failure there is the old file or the complete new one, and none under another name. */
static hunch_status convert_life(const void *what, uint64_t *digest, hunch_error *err) {
    char data[256], path[64], partial[80];
    snprintf(path, sizeof path, "%s.%d", converted, (int)getpid());
    snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(OLD, f);
    fclose(f);
    const conversion *c = what;
    hunch_status st = hunch_convert(c->path, path, &(hunch_convert_options){.type = c->type}, err);
    assert_true(access(partial, F_OK) != 0);
    f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(data, 1, sizeof data, f);
    assert_int_equal(st != HUNCH_OK, n == strlen(OLD) && memcmp(data, OLD, n) == 0);
    for (; !st && n > 0; n = fread(data, 1, sizeof data, f)) digest_add(digest, data, n);
    fclose(f);
    unlink(path);
    return st;
}

static void test_convert(void **state) {
    (void)state;
    static const conversion all[] = {{"models/stories260K/hf", NULL},
                                     {"goldens/phi3-longrope", NULL},
                                     {"goldens/qwen3_5-dense", NULL},
                                     {"goldens-heads/peagle-spec-2layers/head", NULL},
                                     {"goldens-heads/peagle-spec-2layers/head", "q4_0"},
                                     {"goldens-heads/medusa-vllm-map/head", NULL},
                                     {"goldens-heads/hydra-2blocks/head", "q8_0"},
                                     {"goldens-heads/mlp-arctic-rnn/head", NULL},
                                     {"goldens-heads/meta-3tokens/head", NULL},
                                     {"goldens-heads/dspark-rnn/head", NULL},
                                     {"goldens-heads/domino-early/head", NULL},
                                     {"goldens-heads/dflash2-zlab/head", "q8_0"},
                                     {"goldens-heads/dflash-swa-sinks/head", "q8_0"},
                                     {"goldens-heads/falcon-k2/head", NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const conversion c = {data_path(all[i].path), all[i].type};
        faults_break_both(c.path, convert_life, &c, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2);
        faults_break_both(c.path, convert_life, &c, HN_FAULT_READ, HUNCH_FAILED, MANY, 1);
        faults_break_both(c.path, convert_life, &c, HN_FAULT_WRITE, HUNCH_FAILED, MANY, 1);
        faults_break(c.path, convert_life, &c, HN_FAULT_SHORT, true, HUNCH_OK, 5, 0);
    }
}

/* ---- which files ----------------------------------------------------------------------------------------------------------- */

static void file_take(void *digest, const char *file) {
    digest_add(digest, file, strlen(file));
}

static void use_take(void *digest, const char *file, hn_file_use use) {
    digest_add(digest, file, strlen(file));
    digest_add(digest, &use, sizeof use);
}

static hunch_status files_life(const void *what, uint64_t *digest, hunch_error *err) {
    const hunch_status st = hn_model_files(what, file_take, digest, err);
    return st ? st : hn_drafter_files("cache:/a,dynamic=/b,save=/c", use_take, digest, err);
}

static void test_files(void **state) {
    (void)state;
    static const char *const names[] = {"models/stories260K/hf", "models/stories260K/stories260K.f32.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = data_path(names[i]);
        faults_break_both(path, files_life, path, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, MANY, 2); /* heads are dropped only for speed */
        faults_break_both(path, files_life, path, HN_FAULT_READ, HUNCH_FAILED, MANY, 1);
    }
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------- */

static hunch_status meter_life(const void *what, uint64_t *digest, hunch_error *err) {
    (void)digest;
    hunch_meter *t = NULL;
    double gb_s;
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.threads = 2;
    hunch_status st = hunch_meter_open(&t, what, &o, err);
    if (!st) st = hunch_meter_read(t, 1 << 20, 2, false, 1, &gb_s, err);
    hunch_meter_close(&t);
    return st;
}

static void test_meter(void **state) {
    (void)state;
    faults_break_both("meter", meter_life, NULL, HN_FAULT_ALLOC, HUNCH_NO_MEMORY, 0, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),     cmocka_unit_test(test_folders),
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_folder_with_tokenizer),
        cmocka_unit_test(test_text),     cmocka_unit_test(test_template),
        cmocka_unit_test(test_text_only), cmocka_unit_test(test_inspect), cmocka_unit_test(test_check),
        cmocka_unit_test(test_convert), cmocka_unit_test(test_files),  cmocka_unit_test(test_meter)};
    return cmocka_run_group_tests(tests, faults_setup, faults_teardown);
}
