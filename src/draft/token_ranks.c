/* SPDX-License-Identifier: Apache-2.0 */
/* token_ranks.c - see token_ranks.h. Reading the files: token_files.c. */
#include "draft/token_ranks.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "draft/token_files.h"

/* ---- ranks: ids, likeliest first ----------------------------------------------------------------------------------------- */

/* By the tokenizer's order, or, if that has no information and need not have, by number. Returns how many in *n. */
static hunch_status rank_by_tokenizer(const hn_tokenizer *t, bool required, int32_t *rank, int *n, hunch_error *err) {
    bool informative = false;
    hunch_status st = hn_tokenizer_order(t, rank, &informative, err);
    *n = hn_tokenizer_vocab(t);
    if (!st && !informative && required)
        st = hn_fail(err, HUNCH_USAGE, "the order of this model's tokenizer does not tell which tokens are likely: expected ids=FILE or "
                     "texts=FILE as well");
    return st;
}

typedef struct counted {
    uint64_t times;
    int place; /* in the tokenizer's order */
    int32_t id;
} counted;

static int compare(const void *a, const void *b) {
    const counted *x = a, *y = b;
    if (x->times != y->times) return x->times > y->times ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static hunch_status rank_by_texts(const char *path, const hn_tokenizer *t, int32_t *rank, int *n, hunch_error *err) {
    const size_t all = (size_t)hn_tokenizer_vocab(t);
    uint64_t *times = hn_zalloc(all, sizeof *times);
    counted *list = hn_alloc(all * sizeof *list);
    hunch_status st = times && list ? rank_by_tokenizer(t, false, rank, n, err)
                                    : hn_fail_memory(err, "the counts of tokens", all * (sizeof *times + sizeof *list));
    if (!st) st = hn_token_file_count(path, t, times, err);
    for (int i = 0; !st && i < *n; i++) list[i] = (counted){times[rank[i]], i, rank[i]};
    if (!st) qsort(list, all, sizeof *list, compare);
    for (int i = 0; !st && i < *n; i++) rank[i] = list[i].id;
    hn_free(list);
    hn_free(times);
    return st;
}

static hunch_status rank_tokens(const hn_token_selection *wish, const hn_tokenizer *t, int vocab, int32_t *rank, int *n, hunch_error *err) {
    if (wish->ids) return hn_token_file_ids(wish->ids, vocab, rank, n, err);
    if (!t)
        return hn_fail(err, HUNCH_USAGE, "the model has no tokenizer%s: expected ids=FILE",
                       wish->texts ? " to count tokens with" : ", whose order would tell which tokens are likely");
    return wish->texts ? rank_by_texts(wish->texts, t, rank, n, err) : rank_by_tokenizer(t, true, rank, n, err);
}

/* ---- the choice ---------------------------------------------------------------------------------------------------------- */

static bool is_padding(const hn_tokenizer *t, int32_t id) {
    return t && hn_tokenizer_is_padding(t, id);
}

static bool is_special(const hn_tokenizer *t, int32_t id) {
    return t && (hn_tokenizer_is_special(t, id) || hn_tokenizer_is_end(t, id));
}

/* Marks the special tokens, then the likeliest others; returns how many are marked. */
static int mark(const hn_tokenizer *t, int vocab, const int32_t *rank, int n_rank, int wanted, bool *in) {
    int n = 0;
    for (int32_t id = 0; id < vocab; id++) {
        in[id] = is_special(t, id) && !is_padding(t, id);
        n += in[id];
    }
    for (int i = 0; i < n_rank && n < wanted; i++) {
        const int32_t id = rank[i];
        if (id >= vocab || in[id] || is_padding(t, id)) continue;
        in[id] = true;
        n++;
    }
    return n;
}

static hunch_status check(const hn_token_selection *wish, const hn_tokenizer *t, int vocab, int n, hunch_error *err) {
    int there = 0;
    for (int32_t id = 0; id < vocab; id++) there += !is_padding(t, id);
    if (n > wish->n)
        return hn_fail(err, HUNCH_USAGE, "vocab=%d: this model has %d special tokens, which are always drafted: expected at least as many",
                       wish->n, n);
    if (wish->ids && n < wish->n && n < there)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d tokens with the special ones, expected at least the %d of vocab=%d", wish->ids, n,
                       wish->n, wish->n);
    return HUNCH_OK;
}

hunch_status hn_tokens_choose(const hn_token_selection *wish, const hn_tokenizer *t, int vocab, int32_t **out, int *n, hunch_error *err) {
    const int of_tokenizer = t ? hn_tokenizer_vocab(t) : 0, room = of_tokenizer > vocab ? of_tokenizer : vocab;
    int n_rank = 0;
    assert(wish->n >= 1 && !(wish->ids && wish->texts));
    *out = NULL;
    *n = 0;
    if (wish->n >= vocab) return HUNCH_OK;
    int32_t *rank = hn_alloc((size_t)room * sizeof *rank);
    bool *in = hn_alloc((size_t)vocab * sizeof *in);
    hunch_status st = rank && in ? rank_tokens(wish, t, vocab, rank, &n_rank, err)
                                 : hn_fail_memory(err, "the ranks of tokens", (size_t)room * sizeof *rank);
    if (!st) {
        *n = mark(t, vocab, rank, n_rank, wish->n, in);
        st = check(wish, t, vocab, *n, err);
    }
    for (int32_t id = 0, k = 0; !st && id < vocab; id++)
        if (in[id]) rank[k++] = id;
    hn_free(in);
    if (st) {
        hn_free(rank);
        *n = 0;
        return st;
    }
    *out = rank;
    return HUNCH_OK;
}
