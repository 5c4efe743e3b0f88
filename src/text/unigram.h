/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.h - the Unigram model: a word is cut into the tokens whose scores add up to most (Viterbi). Read-only after
 * hn_unigram_finish. */
#ifndef HN_UNIGRAM_H
#define HN_UNIGRAM_H
#include "text/prefix_index.h"

typedef struct hn_unigram {
    hn_prefix_index index; /* of the id */
    double *scores;        /* [id] */
    size_t n;              /* pieces that were put */
    double unknown_score; /* of a character that no piece is */
    double least;         /* of all scores */
} hn_unigram;

/* Room for n pieces of ids below n. False: no memory. */
bool hn_unigram_init(hn_unigram *u, size_t n);
void hn_unigram_fini(hn_unigram *u);
/* Keeps the bytes' address. An empty piece only counts for the least score. At most n calls. */
void hn_unigram_put(hn_unigram *u, hn_piece piece, int32_t id, double score);
/* False: no memory. */
bool hn_unigram_finish(hn_unigram *u);

typedef struct hn_unigram_node { /* the best way to the end of some bytes */
    double score;
    uint32_t from; /* where its last piece begins; HN_UNIGRAM_NONE: no way */
    int32_t id;    /* -1: a character without a piece */
} hn_unigram_node;

#define HN_UNIGRAM_NONE UINT32_MAX

typedef struct hn_unigram_work { /* reused from word to word; zeroed at first */
    hn_unigram_node *nodes;
    uint32_t *ends;
    size_t cap_nodes, cap_ends;
} hn_unigram_work;
void hn_unigram_work_fini(hn_unigram_work *w);

/* Cuts a word of valid UTF-8 (len > 0): n_ends ends rise to len in w->ends; w->nodes[end] says what the piece is. False:
 * no memory. */
bool hn_unigram_cut(const hn_unigram *u, hn_unigram_work *w, const char *word, size_t len, size_t *n_ends);
#endif
