/* SPDX-License-Identifier: Apache-2.0 */
/* bits.h - for tests of contract C2: one text in passes that are cut in every way, each of its rows compared with the
 * logits that `hunch logits` writes, byte for byte. The values themselves are not checked.
 *
 * A way specifies how many rows of the text a pass takes (a pass holds HN_MAX_ROWS: more means as many as fit), how
 * many other sequences share the passes, before and after it, and whether the text is a chain or one path of a draft
 * tree, of which a part may be refused and is run again. Include after cmocka. */
#ifndef HN_TEST_BITS_H
#define HN_TEST_BITS_H
#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"

enum { BITS_ROWS = 300, BITS_OTHERS = 3, BITS_SEQS = BITS_OTHERS + 1, BITS_CONTEXT = 512, BITS_OTHER_ROWS = 5 };

typedef struct bits_way {
    int chunk;
    bool beside, tree;
} bits_way;

static const bits_way bits_ways[] = {
    {1, false, false}, {3, false, false}, {8, false, false}, {64, false, false}, {BITS_ROWS, false, false},
    {1, true, false},  {3, true, false},  {8, true, false},  {BITS_ROWS, true, false},
    {1, false, true},  {8, false, true},  {3, true, true},   {8, true, true},    {BITS_ROWS, true, true}};
enum { N_BITS_WAYS = sizeof bits_ways / sizeof *bits_ways };

/* A text, the expected logits, and its passes. */
typedef struct bits {
    const char *where;
    int vocab, context, n, at; /* rows of the text, and committed rows */
    hunch_token token[BITS_ROWS];
    float *want; /* [n][vocab] */
    int rows;    /* rows of hunch_evaluate so far */
    uint64_t rng;
    /* of one way */
    hn_cache *cache;
    hn_runner *runner;
    int text_seq;
    /* of one pass */
    hn_row row[HN_MAX_ROWS];
    int n_rows, first;        /* first: of the current sequence */
    int16_t path[BITS_ROWS];  /* rows of the text in the pass, from the sequence's first on */
    int n_path, text_first;
    int others[BITS_SEQS];    /* rows of each other sequence */
} bits;

HELPER int bits_below(bits *b, int n) {
    return (int)(hn_splitmix(&b->rng) % (uint64_t)n);
}

/* ---- expected logits ------------------------------------------------------------------------------------------- */

HELPER void bits_keep(void *user, size_t position, const float *logits, int vocab) {
    bits *b = user;
    assert_int_equal(position, b->rows);
    memcpy(b->want + position * (size_t)vocab, logits, (size_t)vocab * sizeof *logits);
    b->rows++;
}

HELPER void bits_compare(void *user, size_t position, const float *logits, int vocab) {
    bits *b = user;
    assert_int_equal(position, b->rows);
    if (memcmp(b->want + position * (size_t)vocab, logits, (size_t)vocab * sizeof *logits))
        fail_msg("%s: row %d of the text differs", b->where, (int)position);
    b->rows++;
}

/* Reads the text with an engine. */
HELPER void bits_evaluate(bits *b, hunch_model *m, hunch_kv kv, int chunk,
                           void (*row)(void *user, size_t position, const float *logits, int vocab)) {
    hunch_engine *e = open_engine(m, NULL, 1, chunk, kv, 64, b->context);
    b->rows = 0;
    must(hunch_evaluate(e, b->token, (size_t)b->n, row, b, err));
    assert_int_equal(b->rows, b->n);
    hunch_engine_close(&e);
}

HELPER bits *bits_open(hunch_model *m, hunch_kv kv, int n) {
    bits *b = calloc(1, sizeof *b);
    b->vocab = m->target.arch.vocab;
    b->context = m->target.arch.context < BITS_CONTEXT ? m->target.arch.context : BITS_CONTEXT;
    b->n = n < b->context ? n : b->context;
    b->rng = 20260 + (uint64_t)n;
    for (int i = 0; i < b->n; i++) b->token[i] = bits_below(b, b->vocab);
    b->want = malloc((size_t)b->n * (size_t)b->vocab * sizeof *b->want);
    assert_non_null(b->want);
    bits_evaluate(b, m, kv, 64, bits_keep);
    return b;
}

HELPER void bits_free(bits *b) {
    free(b->want);
    free(b);
}

/* ---- passes ------------------------------------------------------------------------------------------------------- */

HELPER void bits_add(bits *b, int seq, hunch_token token, int parent, bool logits) {
    b->row[b->n_rows++] = (hn_row){.token = token, .seq = (int16_t)seq, .parent = (int16_t)parent, .logits = logits};
}

/* Rows of other sequences: a chain or a random tree, committed from its first row on or not at all. */
HELPER void bits_add_other(bits *b, int seq, bool tree) {
    const int n = 1 + bits_below(b, BITS_OTHER_ROWS);
    b->first = b->n_rows;
    for (int i = 0; i < n; i++) {
        const int parent = i == 0 ? -1 : tree ? b->first + bits_below(b, i) : b->n_rows - 1;
        bits_add(b, seq, bits_below(b, b->vocab), parent, bits_below(b, 2));
    }
    b->others[seq] = n;
}

/* The next rows of the text; in a tree with up to two siblings before each and one after. */
HELPER void bits_add_text(bits *b, const bits_way *w, int room) {
    int parent = -1;
    b->first = b->text_first = b->n_rows;
    b->n_path = 0;
    while (b->n_path < w->chunk && b->at + b->n_path < b->n && b->n_rows - b->first < room) {
        const int left = room - (b->n_rows - b->first), before = w->tree ? bits_below(b, 3) : 0;
        for (int i = 0; i < before && i + 1 < left; i++) {
            const int up = i > 0 && bits_below(b, 2) ? b->n_rows - 1 : parent;
            bits_add(b, b->text_seq, bits_below(b, b->vocab), up, bits_below(b, 2));
        }
        b->path[b->n_path] = (int16_t)(b->n_rows - b->first);
        bits_add(b, b->text_seq, b->token[b->at + b->n_path++], parent, true);
        if (w->tree && b->n_rows - b->first < room && bits_below(b, 2))
            bits_add(b, b->text_seq, bits_below(b, b->vocab), parent, false);
        parent = b->first + b->path[b->n_path - 1];
    }
}

HELPER void bits_check_pass(bits *b, const bits_way *w) {
    for (int i = 0; i < b->n_path; i++) {
        const float *got = hn_pass_logits(b->runner, b->text_first + b->path[i]);
        if (memcmp(b->want + (size_t)(b->at + i) * (size_t)b->vocab, got, (size_t)b->vocab * sizeof *got))
            fail_msg("%s, chunks of %d, %s, %s: row %d of the text differs, row %d of %d in its pass", b->where, w->chunk,
                     w->beside ? "beside others" : "alone", w->tree ? "in a tree" : "a chain", b->at + i,
                     b->text_first + b->path[i], b->n_rows);
    }
}

HELPER void bits_commit(bits *b, const bits_way *w) {
    const int kept = w->tree ? 1 + bits_below(b, b->n_path) : b->n_path; /* the rest was refused and is run again */
    hn_cache_commit(b->cache, b->text_seq, 0, b->path, kept);
    b->at += kept;
    for (int s = 0; s < BITS_SEQS; s++) {
        if (b->others[s] == 0) continue;
        hn_cache_commit(b->cache, s, 0, NULL, bits_below(b, 4) ? 1 : 0);
        if (hn_cache_committed(b->cache, s, 0) + BITS_OTHER_ROWS <= b->context && bits_below(b, 40)) continue;
        hn_cache_seq_end(b->cache, s); /* sometimes another text takes its place */
        hn_cache_seq_begin(b->cache, s);
    }
}

HELPER void bits_pass(bits *b, const bits_way *w) {
    int seqs[BITS_SEQS], n = 0;
    b->n_rows = 0;
    for (int s = 0; s < BITS_SEQS; s++) {
        b->others[s] = 0;
        const int reserved = BITS_OTHER_ROWS * (BITS_SEQS - 1 - s); /* for later ones */
        if (s == b->text_seq)
            bits_add_text(b, w, HN_MAX_ROWS - b->n_rows - (w->beside ? reserved : 0));
        else if (w->beside)
            bits_add_other(b, s, w->tree);
        else
            continue;
        for (int i = b->first; i < b->n_rows; i++) b->row[i].seq = (int16_t)n;
        seqs[n++] = s;
    }
    must(hn_pass_run(b->runner, b->row, b->n_rows, seqs, n, err));
    bits_check_pass(b, w);
    bits_commit(b, w);
}

HELPER void bits_check_way(bits *b, const hunch_model *m, hn_dtype kv, const bits_way *w) {
    hn_cache_group group[HN_MODEL_GROUPS];
    const int n_groups = hn_kv_groups(m->target.run, kv, group, NULL);
    group[0].page_rows = 16 << bits_below(b, 3);
    must(hn_cache_open(&b->cache, m->target.backend, group, n_groups, BITS_SEQS, b->context, 0, err));
    must(hn_runner_open(&b->runner, &m->target, b->cache, 0, b->context, NULL, err));
    for (int s = 0; s < BITS_SEQS; s++) hn_cache_seq_begin(b->cache, s);
    b->text_seq = bits_below(b, BITS_SEQS);
    for (b->at = 0; b->at < b->n;) bits_pass(b, w);
    hn_runner_close(&b->runner);
    hn_cache_close(&b->cache);
}

/* All ways at one level: engines' chunks, then passes; with one thread, then, half of them, with two. n: rows of the text. At ref,
 * which is slow, one way in six: its loop over rows has no tiles that depend on the way. */
HELPER void bits_check(const char *path, const char *isa, hunch_precision precision, hunch_kv kv, hn_dtype stored, int n) {
    static const int chunks[] = {1, 3, 8, BITS_ROWS};
    bits *b = NULL;
    for (int threads = 1; threads <= 2; threads++) {
        char where[300];
        const int step = strcmp(isa, "ref") == 0 ? 6 : threads == 1 ? 1 : test_every(2, 2);
        hunch_model *m = open_model(path, isa, threads, precision);
        if (!b) b = bits_open(m, kv, n);
        snprintf(where, sizeof where, "%.200s at %s, %d threads, kv %d", path, isa, threads, (int)kv);
        b->where = where;
        for (int c = step > 1; c < 4; c += step) bits_evaluate(b, m, kv, chunks[c], bits_compare);
        for (int w = step > 1 ? threads : 0; w < N_BITS_WAYS; w += step) bits_check_way(b, m, stored, &bits_ways[w]);
        hunch_model_close(&m);
    }
    bits_free(b);
}
#endif
