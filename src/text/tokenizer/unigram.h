/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.h - the Unigram model: a word is split into the tokens with the greatest sum of scores (Viterbi). Read-only after
 * hn_unigram_finish. */
#ifndef HN_UNIGRAM_H
#define HN_UNIGRAM_H
#include "text/prefix_index.h"

typedef struct hn_unigram {
    hn_prefix_index index; /* of the id */
    double *scores;        /* [id] */
    size_t n;              /* pieces that were put */
    double unknown_score; /* of a character without a piece */
    double least;         /* of all scores */
} hn_unigram;

/* Room for n pieces of ids below n. False: no memory. */
bool hn_unigram_init(hn_unigram *u, size_t n);
void hn_unigram_fini(hn_unigram *u);
/* Keeps the bytes' address. An empty piece only counts for the least score. At most n calls. */
void hn_unigram_put(hn_unigram *u, hn_piece piece, int32_t id, double score);
/* False: no memory. */
bool hn_unigram_finish(hn_unigram *u);

typedef struct hn_unigram_node { /* the best path to an offset of the word */
    double score;
    uint32_t from; /* where its last piece begins; HN_UNIGRAM_NONE: no path */
    int32_t id;    /* -1: a character without a piece */
} hn_unigram_node;

#define HN_UNIGRAM_NONE UINT32_MAX

typedef struct hn_unigram_work { /* reused from word to word; zeroed at first */
    hn_unigram_node *nodes;
    uint32_t *ends;
    size_t cap_nodes, cap_ends;
} hn_unigram_work;
void hn_unigram_work_fini(hn_unigram_work *w);

/* Splits a word of valid UTF-8 (len > 0) into *n_ends pieces: w->ends has their ends, ascending to len, and w->nodes[end] the
 * piece. False: no memory. */
bool hn_unigram_cut(const hn_unigram *u, hn_unigram_work *w, const char *word, size_t len, size_t *n_ends);
#endif
