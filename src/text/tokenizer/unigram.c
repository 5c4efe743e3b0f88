/* SPDX-License-Identifier: Apache-2.0 */
/* unigram.c - Viterbi's algorithm: for each end of a character the best path to it, over the pieces that end there. */
#include "text/tokenizer/unigram.h"

#include <float.h>

#include "base/mem.h"
#include "base/utf8.h"

static const double UNKNOWN_PENALTY = 10;

bool hn_unigram_init(hn_unigram *u, size_t n) {
    u->scores = hn_zalloc(n, sizeof *u->scores);
    u->least = DBL_MAX;
    return u->scores && hn_prefix_index_init(&u->index, n);
}

void hn_unigram_fini(hn_unigram *u) {
    hn_prefix_index_fini(&u->index);
    hn_free(u->scores);
    *u = (hn_unigram){0};
}

void hn_unigram_put(hn_unigram *u, hn_piece piece, int32_t id, double score) {
    if (score < u->least) u->least = score;
    hn_prefix_index_put(&u->index, piece, (uint32_t)id);
    u->scores[id] = score;
    u->n++;
}

bool hn_unigram_finish(hn_unigram *u) {
    u->unknown_score = (u->n ? u->least : 0) - UNKNOWN_PENALTY;
    return hn_prefix_index_finish(&u->index);
}

void hn_unigram_work_fini(hn_unigram_work *w) {
    hn_free(w->nodes);
    hn_free(w->ends);
    *w = (hn_unigram_work){0};
}

static void offer(hn_unigram_node *n, double score, size_t from, int32_t id) {
    if (n->from != HN_UNIGRAM_NONE && score <= n->score) return;
    *n = (hn_unigram_node){score, (uint32_t)from, id};
}

/* Offers every piece that word[at…] begins with. Returns whether one of them is the first character alone. */
static bool offer_pieces(const hn_unigram *u, hn_unigram_node *nodes, const char *word, size_t at, size_t len,
                         size_t char_len) {
    bool single = false;
    double score = nodes[at].score;
    hn_prefix_walk w;
    hn_prefix_walk_begin(&u->index, &w, word + at, len - at);
    while (hn_prefix_walk_next(&u->index, &w)) {
        offer(&nodes[at + w.found_len], u->scores[w.value] + score, at, (int32_t)w.value);
        single |= w.found_len == char_len;
    }
    return single;
}

bool hn_unigram_cut(const hn_unigram *u, hn_unigram_work *w, const char *word, size_t len, size_t *n_ends) {
    if (!hn_grow((void **)&w->nodes, &w->cap_nodes, len + 1, sizeof *w->nodes)) return false;
    for (size_t i = 0; i <= len; i++) w->nodes[i] = (hn_unigram_node){0, HN_UNIGRAM_NONE, -1};
    uint32_t cp;
    for (size_t at = 0, n; at < len; at += n) {
        n = (size_t)hn_utf8_decode(word + at, len - at, &cp);
        if (!offer_pieces(u, w->nodes, word, at, len, n))
            offer(&w->nodes[at + n], u->unknown_score + w->nodes[at].score, at, -1);
    }
    size_t count = 0;
    for (size_t end = len; end > 0; end = w->nodes[end].from) count++;
    if (!hn_grow((void **)&w->ends, &w->cap_ends, count, sizeof *w->ends)) return false;
    *n_ends = count;
    for (size_t end = len; end > 0; end = w->nodes[end].from) w->ends[--count] = (uint32_t)end;
    return true;
}
