/* SPDX-License-Identifier: Apache-2.0 */
/* folder_for_tests.h - model folders of tests: a config.json from an object, weights with only an embedding, or golden
 * folders with changes in config.json. Include after cmocka. */
#ifndef HN_FOLDER_FOR_TESTS_H
#define HN_FOLDER_FOR_TESTS_H
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/mem.h"
#include "format/source.h"
#include "model/model.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

/* Writes NAME in the folder `changed`. */
static inline void folder_write(const char *name, const void *data, size_t size) {
    char path[1400];
    (void)mkdir(test_path("changed"), 0700);
    snprintf(path, sizeof path, "%s/%s", test_path("changed"), name);
    (void)unlink(path); /* it may be a link to data of the tests */
    test_file_write(path, data, size);
}

/* model.safetensors: the tensor `name` of [rows, cols] zeros in F16. */
static inline void folder_write_embedding(const char *name, int rows, int cols) {
    char head[400];
    bytes b = {0};
    const size_t size = (size_t)rows * (size_t)cols * 2;
    snprintf(head, sizeof head, "{\"%s\": {\"dtype\": \"F16\", \"shape\": [%d, %d], \"data_offsets\": [0, %zu]}}", name,
             rows, cols, size);
    bytes_text(&b, head);
    bytes_zeros(&b, size);
    folder_write("model.safetensors", b.at, b.size);
    bytes_free(&b);
}

/* model.safetensors: an embedding of [rows, cols] in F16, and if asked for an output that is the same, or has another last number. */
typedef enum folder_end { FOLDER_NONE, FOLDER_SAME, FOLDER_OTHER } folder_end;
static inline void folder_write_ends(int rows, int cols, folder_end output) {
    char head[400], more[200] = "";
    bytes b = {0};
    const size_t size = (size_t)rows * (size_t)cols * 2;
    if (output != FOLDER_NONE)
        snprintf(more, sizeof more, ", \"lm_head.weight\": {\"dtype\": \"F16\", \"shape\": [%d, %d], \"data_offsets\": [%zu, %zu]}",
                 rows, cols, size, 2 * size);
    snprintf(head, sizeof head,
             "{\"model.embed_tokens.weight\": {\"dtype\": \"F16\", \"shape\": [%d, %d], \"data_offsets\": [0, %zu]}%s}", rows, cols,
             size, more);
    bytes_text(&b, head);
    bytes_zeros(&b, output == FOLDER_NONE ? size : 2 * size - 2);
    if (output != FOLDER_NONE) bytes_number(&b, output == FOLDER_OTHER, 2);
    folder_write("model.safetensors", b.at, b.size);
    bytes_free(&b);
}

static inline void folder_write_config(const json_t *config) {
    char *text = json_dumps(config, 0);
    assert_non_null(text);
    folder_write("config.json", text, strlen(text));
    free(text);
}

/* A small llama; keys of `more` have priority. */
static inline void folder_write_llama(const json_t *more, int vocab, int hidden) {
    json_t *config = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:f}", "model_type", "llama", "hidden_size", hidden,
                               "intermediate_size", 8, "num_hidden_layers", 1, "num_attention_heads", 4,
                               "max_position_embeddings", 2048, "rms_norm_eps", 1e-5);
    assert_non_null(config);
    assert_int_equal(json_object_update(config, (json_t *)(uintptr_t)more), 0);
    folder_write_config(config);
    json_decref(config);
    folder_write_embedding("model.embed_tokens.weight", vocab, hidden);
}

/* The weights of a golden folder. */
static inline void folder_link_weights(const char *folder) {
    char from[600], to[1400];
    (void)mkdir(test_path("changed"), 0700);
    snprintf(from, sizeof from, "%s/goldens/%s/model.safetensors", HUNCH_TEST_DATA, folder);
    snprintf(to, sizeof to, "%s/model.safetensors", test_path("changed"));
    (void)unlink(to);
    assert_int_equal(symlink(from, to), 0);
}

/* The golden folder with `find` replaced in its config.json. */
static inline void folder_write_changed(const char *folder, const char *find, const char *replace) {
    char from[600], text[8000];
    snprintf(from, sizeof from, "%s/goldens/%s/config.json", HUNCH_TEST_DATA, folder);
    bytes config = test_file_read(from);
    bytes_number(&config, 0, 1);
    const char *at = strstr((const char *)config.at, find);
    if (!at) fail_msg("%s does not say %s", from, find);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - (const char *)config.at), (const char *)config.at, replace,
             at + strlen(find));
    bytes_free(&config);
    folder_write("config.json", text, strlen(text));
    folder_link_weights(folder);
}

static inline hn_source *folder_open(void) {
    hn_source *s = NULL;
    hunch_error err = {0};
    if (hn_source_open(&s, test_path("changed"), &err) != HUNCH_OK) fail_msg("%s", err.message);
    return s;
}

/* The golden folder with `find` replaced in its config.json is refused, by its description or its tensors, with this word. */
static inline void folder_refused(const char *folder, const char *find, const char *replace, const char *word) {
    hn_arch a = {0};
    hunch_error err = {0};
    folder_write_changed(folder, find, replace);
    hn_source *s = folder_open();
    const hunch_status st = hn_model_mark(s, &a, NULL, &err);
    if (st != HUNCH_REFUSED || !strstr(err.message, word))
        fail_msg("%s with %s: status %d, '%s'", folder, replace, st, err.message);
    assert_null(a.layer);
    hn_source_close(&s);
}

/* A change of a golden folder's config.json, and a word of the refusal. */
typedef struct folder_change {
    const char *folder, *find, *replace, *word;
} folder_change;

static inline void folder_refused_all(const folder_change *c, size_t n) {
    for (size_t i = 0; i < n; i++) folder_refused(c[i].folder, c[i].find, c[i].replace, c[i].word);
}
#endif
