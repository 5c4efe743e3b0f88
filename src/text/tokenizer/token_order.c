/* SPDX-License-Identifier: Apache-2.0 */
/* token_order.c - orders tokens by their frequency, as far as a tokenizer's merges or scores give it.
 *
 * Training repeatedly makes a token of the most frequent pair, so the rank of the merge that makes a token orders tokens by
 * frequency (byte-level merges, and SentencePiece's, whose scores are those ranks); Unigram's score is a token's log
 * probability. No merge makes single characters: those of one byte are few and often tokens of their own (digits,
 * punctuation), and come first; others are at least as frequent as the first merge with them as a part; those in no merge
 * come last. So do tokens that were added to a vocabulary without a merge, except those that are matched by name in a text:
 * these are few and were added on purpose, and come first.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "text/tokenizer/tokenizer_private.h"

typedef struct placed {
    double place; /* ascending; -INFINITY: first, INFINITY: last */
    int32_t id;
} placed;

static int compare(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void lower(placed *p, double rank) {
    if (rank < p->place) p->place = rank;
}

/* Places tokens that merges make, by the first merge that makes each. */
static void place_by_merge(const hn_tokenizer *t, placed *p) {
    const hn_merge *m;
    for (size_t at = 0; (m = hn_bpe_next(&t->merges, &at)) != NULL;)
        if (m->id < t->vocab) lower(&p[m->id], m->rank);
}

/* After place_by_merge: places tokens that no merge makes, by the first merge with them as a part. made: those that one makes. */
static void place_by_part(const hn_tokenizer *t, placed *p, const bool *made) {
    const hn_merge *m;
    for (size_t at = 0; (m = hn_bpe_next(&t->merges, &at)) != NULL;) {
        const int32_t part[] = {(int32_t)(m->pair >> 32), (int32_t)(uint32_t)m->pair};
        for (int i = 0; i < 2; i++)
            if (part[i] < t->vocab && !made[part[i]]) lower(&p[part[i]], m->rank);
    }
}

static void place_by_score(const hn_tokenizer *t, placed *p) {
    for (int32_t id = 0; id < t->vocab; id++)
        if (t->kinds[id] == HN_TOKEN_NORMAL) p[id].place = -t->unigram.scores[id];
}

/* True if two tokens have different finite places. */
static bool differ(const placed *p, int32_t n) {
    double least = INFINITY, most = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(p[i].place)) continue;
        if (p[i].place < least) least = p[i].place;
        if (p[i].place > most) most = p[i].place;
    }
    return least < most;
}

static bool is_first(const hn_tokenizer *t, int32_t id) {
    const hn_token_kind kind = t->kinds[id];
    return kind == HN_TOKEN_USER || kind == HN_TOKEN_BYTE ||
           (!t->is_unigram && kind == HN_TOKEN_NORMAL && t->pieces[id].len == 1);
}

hunch_status hn_tokenizer_order(const hn_tokenizer *t, int32_t *ids, bool *by_frequency, hunch_error *err) {
    const size_t n = (size_t)t->vocab;
    placed *p = hn_alloc(n * sizeof *p);
    bool *made = hn_zalloc(n, sizeof *made);
    const bool ok = p && made;
    for (int32_t id = 0; ok && id < t->vocab; id++) p[id] = (placed){INFINITY, id};
    if (ok && t->is_unigram) place_by_score(t, p);
    if (ok && !t->is_unigram) place_by_merge(t, p);
    *by_frequency = ok && differ(p, t->vocab);
    for (int32_t id = 0; ok && id < t->vocab; id++) made[id] = p[id].place < INFINITY;
    if (ok && !t->is_unigram) place_by_part(t, p, made);
    for (int32_t id = 0; ok && id < t->vocab; id++)
        if (is_first(t, id)) p[id].place = -INFINITY;
    if (ok) qsort(p, n, sizeof *p, compare);
    for (size_t i = 0; ok && i < n; i++) ids[i] = p[i].id;
    hn_free(p);
    hn_free(made);
    return ok ? HUNCH_OK : hn_fail_memory(err, "the order of tokens", n * sizeof *p);
}
