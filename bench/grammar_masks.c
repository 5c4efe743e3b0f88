/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_masks.c - the time of masks of structured output, of states that were seen before and of new ones, and of compiling:
 *
 *     build/grammar_masks MODEL tests/data/structured/schemas.jsonl [VOCABULARY]
 *
 * MODEL gives the tokenizer; VOCABULARY: as many ids as a row of logits has, its own number if it is not given. For each schema's valid
 * texts the tokens are replayed, and random allowed tokens are taken, with the first and a second mask of each state timed. Prints one
 * line of JSON.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/mem.h"
#include "base/random.h"
#include "grammar/matcher_private.h"
#include "quantile.h"

typedef struct times {
    double *at; /* microseconds */
    size_t n, cap;
} times;

typedef struct bench {
    hn_tokenizer *tokenizer;
    hn_vocab_trie *trie;
    int vocab;
    uint64_t *mask, seed;
    times fresh, kept, opened, steps;
} bench;

static void die(const char *what, const hunch_error *err) {
    fprintf(stderr, "grammar_masks: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static void times_put(times *t, double from) {
    const double now = hn_now();
    if (!hn_grow((void **)&t->at, &t->cap, t->n + 1, sizeof *t->at)) die("no memory", NULL);
    t->at[t->n++] = (now - from) * 1e6;
}

static double part(times *t, double p) {
    return quantile(t->at, t->n, p);
}

static bool is_new(hn_matcher *m, int32_t state) {
    const int32_t near = hn_automaton_near(m->states, hn_joint_of(m, state).state);
    return (size_t)near >= m->cap_mask_of || !m->mask_of[near];
}

static void print(const char *name, times *t) {
    printf(",\n \"%s\": {\"times\": %zu, \"median\": %.2f, \"p99\": %.1f, \"p999\": %.1f, \"most\": %.1f}", name, t->n, part(t, 0.5),
           part(t, 0.99), part(t, 0.999), part(t, 1));
}

/* The mask of a state. Returns an allowed token by chance; -1: none. */
static int32_t masks_time(bench *b, hn_matcher *m, int32_t state) {
    const bool fresh = is_new(m, state);
    const double from = hn_now();
    const int n = hn_matcher_mask(m, state, b->mask);
    times_put(fresh ? &b->fresh : &b->kept, from);
    if (n < 0) die("a matcher is full", NULL);
    if (n == 0) return -1;
    for (int64_t left = (int64_t)(hn_splitmix(&b->seed) % (uint64_t)n), id = 0; id < b->vocab; id++)
        if ((b->mask[id / 64] >> id % 64 & 1) && left-- == 0) return (int32_t)id;
    return -1;
}

static void text_replay(bench *b, hn_matcher *m, const char *text) {
    hunch_error err = {0};
    int32_t *ids, state = hn_matcher_start(m);
    size_t n;
    if (hn_tokenizer_encode(b->tokenizer, text, strlen(text), 0, &ids, &n, &err) != HUNCH_OK) die("a text", &err);
    for (size_t i = 0; i < n && state >= 0; i++) {
        masks_time(b, m, state);
        const double from = hn_now();
        state = hn_matcher_next(m, state, ids[i]);
        times_put(&b->steps, from);
    }
    if (state >= 0) masks_time(b, m, state);
    hn_free(ids);
}

static void text_by_chance(bench *b, hn_matcher *m, int most) {
    int32_t state = hn_matcher_start(m);
    for (int i = 0; i < most && state >= 0; i++) {
        const int32_t id = masks_time(b, m, state);
        if (id < 0 || hn_tokenizer_is_end(b->tokenizer, id)) break;
        state = hn_matcher_next(m, state, id);
    }
}

static hn_matcher *matcher_time(bench *b, const char *schema) {
    hunch_error err = {0};
    hn_grammar *g;
    hn_matcher *m;
    const double from = hn_now();
    if (hn_grammar_json_schema(&g, schema, strlen(schema), &err) != HUNCH_OK || hn_matcher_open(&m, &g, b->trie, &err) != HUNCH_OK)
        die(schema, &err);
    times_put(&b->opened, from);
    return m;
}

static void schemas_time(bench *b, const char *path) {
    static char line[1 << 20];
    FILE *f = fopen(path, "r");
    if (!f) die(path, NULL);
    while (fgets(line, sizeof line, f)) {
        json_t *j = hn_json_load(line, strlen(line), 0, NULL);
        const json_t *texts = json_object_get(j, "valid");
        char *schema = hn_json_dump(json_object_get(j, "schema"), JSON_ENCODE_ANY);
        if (!schema) die(line, NULL);
        hn_matcher *m = matcher_time(b, schema);
        for (size_t i = 0; i < json_array_size(texts); i++) text_replay(b, m, json_string_value(json_array_get(texts, i)));
        for (int i = 0; i < 3; i++) text_by_chance(b, m, 40);
        hn_matcher_close(&m);
        hn_free(schema);
        json_decref(j);
    }
    fclose(f);
}

/* Objects of 200 properties of several kinds. */
static double wide_schema_time(bench *b) {
    static const char *const kinds[] = {"{\"type\":\"string\",\"maxLength\":40}", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000}",
                                        "{\"type\":\"array\",\"items\":{\"type\":\"number\"}}", "{\"enum\":[\"a\",\"b\",null]}"};
    char *schema = malloc(40000);
    size_t n = (size_t)sprintf(schema, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 200; i++) n += (size_t)sprintf(schema + n, "%s\"property_%d\":%s", i ? "," : "", i * 7919 % 1000, kinds[i % 4]);
    sprintf(schema + n, "}}");
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        hn_matcher *m = matcher_time(b, schema);
        const double us = b->opened.at[--b->opened.n];
        if (us < best) best = us;
        if (i == 0) text_by_chance(b, m, 200);
        hn_matcher_close(&m);
    }
    free(schema);
    return best;
}

int main(int argc, char **argv) {
    hunch_error err = {0};
    hn_source *src;
    bench b = {.seed = 1};
    if (argc < 3) die("expected MODEL SCHEMAS [VOCABULARY]", NULL);
    if (hn_source_open(&src, argv[1], &err) != HUNCH_OK || hn_tokenizer_open(&b.tokenizer, src, &err) != HUNCH_OK) die(argv[1], &err);
    hn_source_close(&src);
    b.vocab = argc > 3 ? atoi(argv[3]) : hn_tokenizer_vocab(b.tokenizer);
    const double from = hn_now();
    if (hn_vocab_trie_open(&b.trie, b.tokenizer, b.vocab, &err) != HUNCH_OK) die("the trie", &err);
    const double trie = (hn_now() - from) * 1e3;
    b.mask = calloc((size_t)(b.vocab + 63) / 64, sizeof *b.mask);
    schemas_time(&b, argv[2]);
    const double wide = wide_schema_time(&b);
    printf("{\"vocabulary\": %d, \"trie_ms\": %.1f, \"open_200_properties_us\": %.0f", b.vocab, trie, wide);
    print("new_us", &b.fresh);
    print("kept_us", &b.kept);
    print("step_us", &b.steps);
    print("open_us", &b.opened);
    printf("}\n");
    hn_vocab_trie_close(&b.trie);
    hn_tokenizer_close(&b.tokenizer);
    free(b.mask);
    hn_free(b.fresh.at);
    hn_free(b.kept.at);
    hn_free(b.opened.at);
    hn_free(b.steps.at);
    return 0;
}
