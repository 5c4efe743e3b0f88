/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_for_tests.h - tests of src/text open tokenizers from the text of a tokenizer.json. Include after cmocka. */
#ifndef HN_TOKENIZER_FOR_TESTS_H
#define HN_TOKENIZER_FOR_TESTS_H
#include "base/mem.h"
#include "format/bytes_for_tests.h"
#include "text/tokenizer/tokenizer.h"

/* Makes a folder with the files, and a tensor, because a model must have weights. */
static inline void tokenizer_folder(const char *tokenizer, size_t len, const char *config, const char *generation) {
    char folder[400], path[600];
    bytes weights = {0};
    snprintf(folder, sizeof folder, "%s", test_path("hf"));
    mkdir(folder, 0700);
    const char *const files[][2] = {{"config.json", "{\"architectures\": [\"LlamaForCausalLM\"]}"},
                                    {"tokenizer_config.json", config},
                                    {"generation_config.json", generation}};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
        test_file_write(path, files[i][1], strlen(files[i][1]));
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    test_file_write(path, tokenizer, len);
    static const char head[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    bytes_number(&weights, sizeof head - 1, 8);
    bytes_put(&weights, head, sizeof head - 1);
    bytes_zeros(&weights, 4);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    test_file_write(path, weights.at, weights.size);
    bytes_free(&weights);
}

/* Opens it. *t is NULL also if the folder itself is refused. */
static inline hunch_status open_folder_of(const char *tokenizer, size_t len, const char *config, const char *generation,
                                          hn_tokenizer **t, hunch_error *e) {
    hn_source *src;
    *t = NULL;
    tokenizer_folder(tokenizer, len, config, generation);
    hunch_status s = hn_source_open(&src, test_path("hf"), e);
    if (s != HUNCH_OK) return s;
    s = hn_tokenizer_open(t, src, e);
    hn_source_close(&src);
    return s;
}

static inline hunch_status open_json(const char *tokenizer, hn_tokenizer **t, hunch_error *e) {
    return open_folder_of(tokenizer, strlen(tokenizer), "{}", "{}", t, e);
}

/* The whole text of ids, hn_alloc'ed. */
static inline char *decode_ids(const hn_tokenizer *t, const int32_t *ids, size_t n) {
    hn_detok d;
    char *text = NULL;
    size_t len = 0, cap = 0;
    hn_detok_init(&d);
    for (size_t i = 0; i < n; i++) assert_int_equal(hn_detok_push(&d, t, ids[i], &text, &len, &cap, NULL), HUNCH_OK);
    assert_int_equal(hn_detok_end(&d, &text, &len, &cap, NULL), HUNCH_OK);
    return text;
}
#endif
