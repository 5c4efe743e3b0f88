/* SPDX-License-Identifier: Apache-2.0 */
/* schema_texts.c - what a grammar of a JSON schema allows, for schemas_long_test.py. Each line of input is {"schema": .., "texts": [..],
 * "sample": n, "seed": n, "loose": bool}; the answer is {"error": ".."} or {"accepts": "0110..", "texts": [..], "ignored": ".."}: which
 * texts are allowed, and texts made byte by byte from what is. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/random.h"
#include "grammar/grammar_private.h"
#include "grammar/matcher.h"

enum { LONGEST_TEXT = 600 };

static hn_vocab_trie *trie;

static bool accepts(hn_matcher *m, const char *text, size_t len) {
    const int32_t state = hn_matcher_bytes(m, hn_matcher_start(m), text, len);
    return state >= 0 && hn_matcher_is_final(m, state);
}

/* One of the bytes that may come; those that end strings and lists more often. -1: none may. */
static int byte_of(hn_matcher *m, int32_t state, size_t n, uint64_t *seed) {
    unsigned char all[2048];
    size_t k = 0;
    for (int c = 0; c < 256; c++) {
        const char byte = (char)c;
        if (hn_matcher_bytes(m, state, &byte, 1) < 0) continue;
        const bool ends = strchr("\"]}", c) != NULL, rare = c >= 0x80 || c == '\\' || c == 'e' || c == 'E';
        for (size_t times = ends ? 2 + n / 8 : rare ? 1 : 4; times && k < sizeof all; times--) all[k++] = (unsigned char)c;
    }
    return k ? all[hn_splitmix(seed) % k] : -1;
}

/* NULL: it became too long. dead: nothing may follow, and the text is not whole. */
static json_t *sample(hn_matcher *m, uint64_t *seed, bool *dead) {
    char text[LONGEST_TEXT];
    size_t n = 0;
    int32_t state = hn_matcher_start(m);
    while (n < sizeof text) {
        const bool final = hn_matcher_is_final(m, state);
        const int byte = byte_of(m, state, n, seed);
        if (final && (byte < 0 || hn_splitmix(seed) % 3 == 0)) return json_stringn(text, n);
        if (byte < 0) {
            *dead = true;
            return json_stringn(text, n);
        }
        text[n++] = (char)byte;
        state = hn_matcher_bytes(m, state, &text[n - 1], 1);
    }
    return NULL;
}

/* NULL: refused. */
static hn_matcher *matcher_of(const json_t *line, json_t *out) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    hn_matcher *m = NULL;
    char *text = hn_json_dump(json_object_get(line, "schema"), JSON_ENCODE_ANY);
    hn_builder *b = hn_builder_open(&err);
    hn_builder_loosen(b, json_is_true(json_object_get(line, "loose")));
    hunch_status st = hn_grammar_finish(&g, &b, hn_expr_json_schema(b, text, strlen(text), ""), &err);
    if (!st && hn_grammar_ignored(g)) json_object_set_new(out, "ignored", json_string(hn_grammar_ignored(g)));
    if (!st) st = hn_matcher_open(&m, &g, trie, &err);
    if (st) json_object_set_new(out, "error", json_string(err.message));
    free(text);
    return m;
}

/* A matcher for some texts: each byte that is tried is a state that it keeps. */
static void sample_some(const json_t *line, int n, uint64_t *seed, json_t *out) {
    json_t *texts = json_object_get(out, "texts");
    hn_matcher *m = matcher_of(line, out);
    bool dead = false;
    for (int i = 0; i < n && !dead; i++) {
        json_t *one = sample(m, seed, &dead);
        if (one && !dead) json_array_append(texts, one);
        if (one && dead) json_object_set(out, "dead", one);
        json_decref(one);
    }
    if (hn_matcher_is_full(m)) json_object_set_new(out, "full", json_true());
    hn_matcher_close(&m);
}

static json_t *answer(const json_t *line) {
    enum { SOME = 20 };
    json_t *out = json_object(), *list = json_object_get(line, "texts");
    hn_matcher *m = matcher_of(line, out);
    if (!m) return out;
    char *bits = calloc(json_array_size(list) + 1, 1);
    for (size_t i = 0; i < json_array_size(list); i++)
        bits[i] = accepts(m, json_string_value(json_array_get(list, i)), json_string_length(json_array_get(list, i))) ? '1' : '0';
    hn_matcher_close(&m);
    json_object_set_new(out, "accepts", json_string(bits));
    json_object_set_new(out, "texts", json_array());
    free(bits);
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(line, "seed"));
    for (json_int_t i = json_integer_value(json_object_get(line, "sample")); i > 0; i -= SOME)
        sample_some(line, i < SOME ? (int)i : SOME, &seed, out);
    return out;
}

int main(void) {
    static char line[1 << 20];
    hn_source *src;
    hn_tokenizer *tokenizer;
    hunch_error err;
    if (hn_source_open(&src, HUNCH_TEST_DATA "/tokenizers/smollm2-vocab.gguf", &err) || hn_tokenizer_open(&tokenizer, src, &err)) return 1;
    hn_source_close(&src);
    if (hn_vocab_trie_open(&trie, tokenizer, hn_tokenizer_vocab(tokenizer), &err)) return 1;
    while (fgets(line, sizeof line, stdin)) {
        json_t *j = hn_json_load(line, strlen(line), 0, NULL), *out = j ? answer(j) : json_pack("{s:s}", "error", "no JSON");
        char *text = json_dumps(out, JSON_COMPACT);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(out);
        json_decref(j);
    }
    hn_vocab_trie_close(&trie);
    hn_tokenizer_close(&tokenizer);
    return 0;
}
