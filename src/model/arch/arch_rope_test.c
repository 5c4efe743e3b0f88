/* SPDX-License-Identifier: Apache-2.0 */
/* arch_rope_test.c - the frequencies and the amplitude by a config.json, against numbers of transformers
 * (tools/make_rope_goldens.py); the same by GGUF keys; the lengths that longrope applies to; refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/fault.h"
#include "format/gguf_writer.h"
#include "model/arch/arch.h"
#include "model/folder_for_tests.h"

enum { VOCAB = 4, HIDDEN = 256 };

static hunch_status read_as(hn_arch *a, hunch_error *err) {
    hn_source *s = folder_open();
    const hunch_status st = hn_arch_read(a, s, err);
    hn_source_close(&s);
    return st;
}

static void assert_close(const char *name, const char *what, double got, double want, double bound) {
    if (!(fabs(got - want) <= bound * fabs(want)))
        fail_msg("%s: %s is %.12g, transformers' %.12g", name, what, got, want);
}

static void assert_frequencies(const char *name, const double *got, const json_t *want, int dims, double bound) {
    assert_int_equal(json_array_size(want), dims / 2);
    for (int i = 0; i < dims / 2; i++)
        assert_close(name, "a frequency", got[i], json_number_value(json_array_get(want, (size_t)i)), bound);
}

static void check(const json_t *c, const hn_arch *a, double bound) {
    const char *name = json_string_value(json_object_get(c, "name"));
    const json_t *many = json_object_get(c, "long");
    assert_frequencies(name, a->rotation[0].freq, json_object_get(c, "freq"), a->rotation[0].dims, bound);
    assert_true(!many == !a->rotation[0].freq_long);
    if (many) assert_frequencies(name, a->rotation[0].freq_long, many, a->rotation[0].dims, bound);
    assert_close(name, "the amplitude", (double)a->rotation[0].scale, json_number_value(json_object_get(c, "amplitude")),
                 1e-7 + bound);
}

static json_t *cases(void) {
    json_t *all = json_load_file(HUNCH_TEST_DATA "/rope/frequencies.json", 0, NULL);
    assert_true(json_array_size(all) > 12);
    return all;
}

static void test_folders(void **state) {
    (void)state;
    json_t *all = cases(), *c;
    size_t i;
    json_array_foreach(all, i, c) {
        hn_arch a;
        hunch_error err = {0};
        folder_write_llama(json_object_get(c, "config"), VOCAB, HIDDEN);
        if (read_as(&a, &err) != HUNCH_OK)
            fail_msg("%s: %s", json_string_value(json_object_get(c, "name")), err.message);
        check(c, &a, 1e-10);
        hn_arch_fini(&a);
    }
    json_decref(all);
}

/* ---- the keys of a GGUF --------------------------------------------------------------------------------------------- */

typedef struct extra_key {
    const char *name;
    double value; /* with text NULL */
    const char *text;
} extra_key;

static hn_gguf_writer *begin_gguf(const char *path) {
    static const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {{"llama.block_count", 1},
                 {"llama.embedding_length", HIDDEN},
                 {"llama.feed_forward_length", 8},
                 {"llama.attention.head_count", 4},
                 {"llama.context_length", 131072}};
    hn_gguf_writer *w = NULL;
    const uint64_t dims[2] = {HIDDEN, VOCAB};
    assert_int_equal(hn_gguf_writer_open(&w, path, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_str(w, "general.architecture", "llama", 5, NULL), HUNCH_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(hn_gguf_put_u32(w, sizes[i].name, sizes[i].value, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_declare(w, "token_embd.weight", HN_F16, 2, dims, NULL), HUNCH_OK);
    return w;
}

/* A one-layer llama's description with these keys and tables of these divisors (NULL: none). */
static hunch_status read_gguf(const extra_key *key, int n, const char *const *tables, const float *divisors, int half,
                              hn_arch *a, hunch_error *err) {
    static const uint16_t zeros[HIDDEN * VOCAB];
    const uint64_t dims[1] = {(uint64_t)half};
    char path[1200];
    hn_source *s = NULL;
    snprintf(path, sizeof path, "%s", test_path("rope.gguf"));
    hn_gguf_writer *w = begin_gguf(path);
    for (int i = 0; i < n; i++)
        assert_int_equal(key[i].text ? hn_gguf_put_str(w, key[i].name, key[i].text, strlen(key[i].text), NULL)
                                     : hn_gguf_put_f32(w, key[i].name, (float)key[i].value, NULL),
                         HUNCH_OK);
    for (int i = 0; tables && tables[i]; i++)
        assert_int_equal(hn_gguf_declare(w, tables[i], HN_F32, 1, dims, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_data(w, zeros, sizeof zeros, NULL), HUNCH_OK);
    for (int i = 0; tables && tables[i]; i++)
        assert_int_equal(hn_gguf_data(w, divisors + i * half, (size_t)half * sizeof *divisors, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_writer_finish(&w, NULL), HUNCH_OK);
    assert_int_equal(hn_source_open(&s, path, NULL), HUNCH_OK);
    const hunch_status st = hn_arch_read(a, s, err);
    hn_source_close(&s);
    return st;
}

static const json_t *case_named(const json_t *all, const char *name) {
    size_t i;
    json_t *c;
    json_array_foreach(all, i, c) if (!strcmp(json_string_value(json_object_get(c, "name")), name)) return c;
    fail_msg("no case %s", name);
    return NULL;
}

static void test_gguf_keys(void **state) {
    (void)state;
    static const extra_key base = {"llama.rope.freq_base", 1e6, NULL}, yarn = {"llama.rope.scaling.type", 0, "yarn"};
    const extra_key qwen[] = {base,
                              yarn,
                              {"llama.rope.scaling.factor", 4, NULL},
                              {"llama.rope.scaling.original_context_length", 32768, NULL}},
                    deepseek[] = {{"llama.rope.freq_base", 1e4, NULL},
                                  yarn,
                                  {"llama.rope.scaling.factor", 40, NULL},
                                  {"llama.rope.scaling.yarn_log_multiplier", 1, NULL},
                                  {"llama.rope.scaling.original_context_length", 4096, NULL}},
                    given[] = {{"llama.rope.freq_base", 1e5, NULL},
                               yarn,
                               {"llama.rope.scaling.factor", 16, NULL},
                               {"llama.rope.scaling.yarn_beta_fast", 16, NULL},
                               {"llama.rope.scaling.yarn_beta_slow", 2, NULL},
                               {"llama.rope.scaling.attn_factor", 1.21 / (0.1 * 2.772588722239781 + 1), NULL},
                               {"llama.rope.scaling.original_context_length", 4096, NULL}},
                    linear[] = {{"llama.rope.freq_base", 1e4, NULL}, {"llama.rope.scaling.factor", 8, NULL}},
                    older[] = {{"llama.rope.freq_base", 1e4, NULL}, {"llama.rope.scale_linear", 8, NULL}};
    const struct {
        const extra_key *key;
        int n;
        const char *name;
    } rows[] = {{qwen, 4, "yarn, type spelled the old way"},
                {deepseek, 5, "deepseek, mscale of both kinds"},
                {given, 7, "yarn, attention_factor and betas given"},
                {linear, 2, "linear"},
                {older, 2, "linear"}};
    json_t *all = cases();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_arch a;
        hunch_error err = {0};
        if (read_gguf(rows[i].key, rows[i].n, NULL, NULL, 0, &a, &err) != HUNCH_OK) fail_msg("%s", err.message);
        check(case_named(all, rows[i].name), &a, 2e-7);
        hn_arch_fini(&a);
    }
    json_decref(all);
}

static void test_gguf_tables(void **state) {
    (void)state;
    static const char *const pair[] = {"rope_factors_short.weight", "rope_factors_long.weight", NULL};
    const json_t *c;
    json_t *all = cases();
    float divisors[48];
    hn_arch a;
    hunch_error err = {0};
    c = case_named(all, "phi-4-mini, longrope");
    const json_t *scaling = json_object_get(json_object_get(c, "config"), "rope_scaling");
    for (int i = 0; i < 24; i++) {
        divisors[i] = (float)json_number_value(json_array_get(json_object_get(scaling, "short_factor"), (size_t)i));
        divisors[24 + i] = (float)json_number_value(json_array_get(json_object_get(scaling, "long_factor"), (size_t)i));
    }
    const extra_key keys[] = {{"llama.rope.freq_base", 1e4, NULL},
                              {"llama.rope.dimension_count", 48, NULL},
                              {"llama.rope.scaling.original_context_length", 4096, NULL},
                              {"llama.rope.scaling.attn_factor", 1.1902380714238083, NULL}};
    if (read_gguf(keys, 4, pair, divisors, 24, &a, &err) != HUNCH_OK) fail_msg("%s", err.message);
    check(c, &a, 2e-7);
    assert_true(a.rotation[0].scaling.original == 4096);
    hn_arch_fini(&a);
    json_decref(all);
}

/* ---- refused ---------------------------------------------------------------------------------------------------------- */

static void test_refused_gguf(void **state) {
    (void)state;
    static const char *const few[] = {"rope_factors_short.weight", NULL},
                             *const pair[] = {"rope_factors_short.weight", "rope_factors_long.weight", NULL},
                             *const each[] = {"rope_freqs.weight", NULL};
    static const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const float zeros[64];
    const extra_key yarn = {"llama.rope.scaling.type", 0, "yarn"}, factor = {"llama.rope.scaling.factor", 4, NULL};
    const struct {
        extra_key key[3];
        int n;
        const char *const *tables;
        const float *divisors;
        int half;
        const char *word;
    } cases[] = {
        {{{"llama.rope.scaling.type", 0, "dynamic"}}, 1, NULL, NULL, 0, "dynamic"},
        {{yarn}, 1, NULL, NULL, 0, "rope.scaling.factor"},
        {{yarn, factor, {"llama.rope.scaling.yarn_ext_factor", 0.5, NULL}}, 3, NULL, NULL, 0, "yarn_ext_factor"},
        {{yarn, factor, {"llama.rope.scaling.yarn_attn_factor", 2, NULL}}, 3, NULL, NULL, 0, "yarn_attn_factor"},
        {{yarn, factor, {"llama.rope.scaling.yarn_beta_fast", -1, NULL}}, 3, NULL, NULL, 0, "yarn_beta_fast"},
        {{yarn, factor}, 2, each, ones, 32, "rope_freqs.weight"},
        {{{"llama.rope.scaling.type", 0, "longrope"}}, 1, NULL, NULL, 0, "rope_factors_short"},
        {{factor}, 0, few, ones, 32, "rope_factors_long"},
        {{factor}, 0, pair, ones, 16, "F32 [32]"},
        {{factor}, 0, pair, zeros, 32, "positive"},
        {{factor}, 0, each, zeros, 32, "positive"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        const hunch_status st =
            read_gguf(cases[i].key, cases[i].n, cases[i].tables, cases[i].divisors, cases[i].half, &a, &err);
        if (st != HUNCH_REFUSED || !strstr(err.message, cases[i].word))
            fail_msg("case %zu (%s): status %d, '%s'", i, cases[i].word, st, err.message);
        assert_null(a.rotation[0].freq); /* nothing is allocated */
    }
}

static void test_refused_folders(void **state) {
    (void)state;
    static const struct {
        const char *scaling, *word;
    } cases[] = {
        {"{\"rope_type\": \"dynamic\", \"factor\": 2.0}", "dynamic would change rows"},
        {"{\"rope_type\": \"spiral\"}", "spiral"},
        {"{\"rope_type\": \"linear\"}", "factor is missing"},
        {"{\"rope_type\": \"linear\", \"factor\": -2}", "factor is -2"},
        {"{\"rope_type\": \"yarn\", \"factor\": \"much\"}", "factor"},
        {"{\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": 0}", "beta_fast"},
        {"{\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 0}", "original_max"},
        {"{\"rope_type\": \"yarn\", \"factor\": 4, \"truncate\": 3}", "truncate"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 1}",
         "high_freq_factor"},
        {"{\"rope_type\": \"longrope\"}", "short_factor"},
        {"{\"rope_type\": \"longrope\", \"short_factor\": [1, 2]}", "list of 32 positive numbers"},
        {"{\"rope_type\": \"longrope\", \"short_factor\": 1}", "short_factor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        json_t *more = json_pack("{s:o}", "rope_scaling", json_loads(cases[i].scaling, 0, NULL));
        assert_non_null(more);
        folder_write_llama(more, VOCAB, HIDDEN);
        json_decref(more);
        const hunch_status st = read_as(&a, &err);
        if (st != HUNCH_REFUSED || !strstr(err.message, cases[i].word))
            fail_msg("%s: status %d, '%s'", cases[i].scaling, st, err.message);
        assert_null(a.rotation[0].freq);
        assert_null(a.rotation[0].freq_long);
    }
}

/* YaRN's context is the one after scaling, if the file gives the one before. */
static void test_context(void **state) {
    (void)state;
    hn_arch a;
    json_t *more = json_pack("{s:i, s:{s:s, s:f, s:i}}", "max_position_embeddings", 40960, "rope_scaling", "rope_type",
                             "yarn", "factor", 4.0, "original_max_position_embeddings", 32768);
    folder_write_llama(more, VOCAB, HIDDEN);
    json_decref(more);
    assert_int_equal(read_as(&a, NULL), HUNCH_OK);
    assert_int_equal(a.context, 131072);
    hn_arch_fini(&a);
}

/* Every allocation of a description fails once. */
static void test_no_memory(void **state) {
    (void)state;
    hunch_status st = HUNCH_NO_MEMORY;
    int failures = 0;
    hn_arch a;
    folder_write_changed("phi3-longrope", "\"rope_theta\"", "\"rope_theta\"");
    hn_source *s = folder_open();
    for (int64_t after = 0; st; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        st = hn_arch_read(&a, s, NULL);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (!st) break;
        assert_int_equal(st, HUNCH_NO_MEMORY);
        assert_true(!a.layer && !a.rotation[0].freq && !a.rotation[0].freq_long);
        failures++;
    }
    assert_int_equal(failures, 3); /* both rotations, the layers */
    hn_arch_fini(&a);
    hn_source_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folders),         cmocka_unit_test(test_gguf_keys),
                                       cmocka_unit_test(test_gguf_tables),     cmocka_unit_test(test_refused_gguf),
                                       cmocka_unit_test(test_refused_folders), cmocka_unit_test(test_context),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
