/* SPDX-License-Identifier: Apache-2.0 */
/* trie.c - how fast n-grams of a corpus are counted into a trie (hunch train trie), and how long DART's tree waits for it.
 *
 *     cmake --build build --target trie && build/trie TEXT MODEL OUT
 *
 * MODEL's tokenizer reads TEXT, its tokens are counted and written to OUT: MB of text per second, for reading and counting
 * separately and together. Then look-ups as of a tree: 25 tokens after two, at random places of the text, the next token
 * and others: microseconds of one look-up, the pages of the file in memory; and of a whole tree of 8 levels with and
 * without the trie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "draft/text_tokens.h"
#include "draft/tree.h"
#include "draft/shape/tree_pruned.h"
#include "format/source.h"
#include "train/data/trie_build.h"

enum { ROOM = 1 << 24, TIMES = 20000, TREES = 500, LEVELS = 8 };

typedef struct corpus {
    int32_t *id;
    size_t n, room;
} corpus;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static hunch_status keep(void *ctx, const int32_t *ids, size_t n, bool ends, hunch_error *err) {
    corpus *c = ctx;
    (void)ends;
    if (c->n + n > c->room) {
        c->room = 2 * (c->n + n);
        c->id = realloc(c->id, c->room * sizeof *c->id);
        if (!c->id) return hn_fail_memory(err, "a corpus", c->room * sizeof *c->id);
    }
    memcpy(c->id + c->n, ids, n * sizeof *ids);
    c->n += n;
    return HUNCH_OK;
}

static int failed(const hunch_error *e) {
    fprintf(stderr, "trie: %s\n", e->message);
    return 1;
}

/* Tokens that may follow at a place: the right one, those of other places, some that never stand there. */
static void pick(const corpus *c, uint64_t *seed, size_t at, int32_t token[HN_PRUNED_TOKENS], float p[HN_PRUNED_TOKENS]) {
    for (int i = 0; i < HN_PRUNED_TOKENS; i++) {
        token[i] = i ? c->id[hn_splitmix(seed) % c->n] : c->id[at + 2];
        p[i] = 0.5f / (float)(i + 1);
    }
}

static void ask(const corpus *c, const hn_trie *t) {
    uint64_t seed = 7;
    int32_t token[HN_PRUNED_TOKENS];
    float p[HN_PRUNED_TOKENS], sum = 0;
    double us = 0;
    for (int i = 0; i < TIMES; i++) {
        const size_t at = hn_splitmix(&seed) % (c->n - 3);
        pick(c, &seed, at, token, p);
        const double start = now();
        hn_trie_query(t, c->id + at, 2, token, HN_PRUNED_TOKENS, p);
        us += (now() - start) * 1e6;
        sum += p[0];
    }
    printf("a question for %d tokens: %.2f us (of the text's own next token on average %.2f)\n", HN_PRUNED_TOKENS, us / TIMES,
           (double)sum / TIMES);
}

static double tree_us(const corpus *c, hn_pruned *tree, const hn_trie *t) {
    uint64_t seed = 9;
    int32_t token[HN_PRUNED_TOKENS];
    float p[HN_PRUNED_TOKENS];
    int list[HN_TREE_ROWS];
    double us = 0;
    for (int i = 0; i < TREES; i++) {
        const size_t at = hn_splitmix(&seed) % (c->n - 3 - LEVELS);
        hn_pruned_start(tree, c->id + at, 2);
        for (int l = 0; l < LEVELS; l++) {
            pick(c, &seed, at + (size_t)l, token, p);
            const double start = now();
            hn_pruned_level(tree, token, p, HN_PRUNED_TOKENS, t, -1);
            us += (now() - start) * 1e6;
        }
        hn_pruned_best(tree, 60, list);
    }
    return us / TREES;
}

static hunch_status build(const corpus *c, const hn_tokenizer *t, const char *out, double *seconds, hunch_error *err) {
    hn_trie_build *b = NULL;
    const double start = now();
    hunch_status st = hn_trie_build_open(&b, out, hn_tokenizer_vocab(t), hn_trie_tokenizer(t), ROOM, err);
    if (!st) st = hn_trie_build_add(b, c->id, c->n, true, err);
    if (!st) st = hn_trie_build_finish(b, err);
    hn_trie_build_close(&b);
    *seconds = now() - start;
    return st;
}

int main(int argc, char **argv) {
    hunch_error err = {0};
    hn_source *src = NULL;
    hn_tokenizer *t = NULL;
    corpus c = {0};
    hn_trie trie;
    hn_pruned tree = {0};
    double counting = 0;
    if (argc != 4) return fprintf(stderr, "usage: trie TEXT MODEL OUT\n"), 2;
    FILE *f = fopen(argv[1], "rb");
    if (!f || fseek(f, 0, SEEK_END)) return fprintf(stderr, "trie: %s: cannot be read\n", argv[1]), 1;
    const double mb = (double)ftell(f) / 1e6;
    fclose(f);
    if (hn_source_open(&src, argv[2], &err) || hn_tokenizer_open(&t, src, &err)) return failed(&err);
    double start = now();
    if (hn_text_tokens(argv[1], t, keep, &c, &err)) return failed(&err);
    const double reading = now() - start;
    if (build(&c, t, argv[3], &counting, &err) || hn_trie_open(&trie, argv[3], t, &err)) return failed(&err);
    printf("%.1f MB, %zu tokens: read in %.1f s (%.1f MB/s), counted and written in %.1f s (%.1f MB/s), together %.1f "
           "MB/s; %.1f MB, %llu pairs, "
           "%llu triples\n",
           mb, c.n, reading, mb / reading, counting, mb / counting, mb / (reading + counting),
           (double)trie.map.size / 1e6, (unsigned long long)trie.head.pairs, (unsigned long long)trie.head.triples);
    ask(&c, &trie);
    if (hn_pruned_open(&tree, LEVELS, &err)) return failed(&err);
    const double with = tree_us(&c, &tree, &trie), without = tree_us(&c, &tree, NULL);
    printf("a tree of %d levels: %.0f us with the trie, %.0f us without\n", LEVELS, with, without);
    hn_pruned_close(&tree);
    hn_trie_close(&trie);
    hn_tokenizer_close(&t);
    hn_source_close(&src);
    free(c.id);
    return 0;
}
