/* SPDX-License-Identifier: Apache-2.0 */
/* trie_build.c - see trie_build.h. */
#include "train/data/trie_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/file_out.h"
#include "base/mem.h"
#include "base/scratch.h"
#include "draft/shape/ngram_trie.h"

/* A number has three tokens of TOKEN_BITS, each plus 1 (0: the end of the text); it is sorted by DIGIT bits at a time. */
enum { TOKEN_BITS = 21, DIGIT = 11, DIGITS = 1 << DIGIT, RUN_PIECE = 4096, MOST_RUNS = 1024 };

/* The number of occurrences of a number. */
typedef struct counted {
    uint64_t number;
    uint64_t times;
} counted;

/* Sorted numbers in the scratch file: n of them from `at` on. */
typedef struct run {
    size_t at, n;
    counted *piece; /* during the merge: the next ones, from `first` to `end` */
    size_t first, end;
} run;

struct hn_trie_build {
    const char *path;
    int vocab;
    uint64_t tokenizer, tokens;
    int32_t before[2]; /* the newest tokens of the text */
    int n_before;
    uint64_t *number, *other; /* [room] */
    size_t n, room;
    counted *given; /* counts of other tries, room / 2 of them; NULL: none yet */
    size_t n_given;
    hn_scratch *runs, *pairs, *triples;
    run run[MOST_RUNS];
    int n_runs;
    hn_trie_single *single; /* [vocab + 1] */
    uint64_t n_pairs, n_triples;
};

hunch_status hn_trie_build_open(hn_trie_build **out, const char *path, int vocab, uint64_t tokenizer, size_t room,
                                hunch_error *err) {
    *out = NULL;
    if (vocab < 1 || vocab > (1 << TOKEN_BITS) - 2)
        return hn_fail(err, HUNCH_REFUSED, "%s: a trie of %d tokens, expected at most %d", path, vocab, (1 << TOKEN_BITS) - 2);
    hn_trie_build *b = hn_zalloc(1, sizeof *b);
    if (!b) return hn_fail_memory(err, "a trie", sizeof *b);
    b->path = path;
    b->vocab = vocab;
    b->tokenizer = tokenizer;
    b->room = room < 16 ? 16 : room;
    b->number = hn_alloc(b->room * sizeof *b->number);
    b->other = hn_alloc(b->room * sizeof *b->other);
    b->single = hn_zalloc((size_t)vocab + 1, sizeof *b->single);
    hunch_status st = b->number && b->other && b->single ? HUNCH_OK : hn_fail_memory(err, "a trie", 2 * b->room * sizeof *b->number);
    if (!st) st = hn_scratch_open(&b->runs, path, err);
    if (!st) st = hn_scratch_open(&b->pairs, path, err);
    if (!st) st = hn_scratch_open(&b->triples, path, err);
    *out = b;
    if (st) hn_trie_build_close(out);
    return st;
}

void hn_trie_build_close(hn_trie_build **out) {
    hn_trie_build *b = *out;
    *out = NULL;
    if (!b) return;
    for (int i = 0; i < b->n_runs; i++) hn_free(b->run[i].piece);
    hn_scratch_close(&b->runs);
    hn_scratch_close(&b->pairs);
    hn_scratch_close(&b->triples);
    hn_free(b->number);
    hn_free(b->other);
    hn_free(b->given);
    hn_free(b->single);
    hn_free(b);
}

uint64_t hn_trie_build_tokens(const hn_trie_build *b) {
    return b->tokens;
}

/* ---- gathering ------------------------------------------------------------------------------------------------------------- */

static void sort_digit(const uint64_t *from, uint64_t *to, size_t n, int shift) {
    size_t start[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) start[from[i] >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        const size_t count = start[d];
        start[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) to[start[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_numbers(hn_trie_build *b) {
    for (int shift = 0; shift < 3 * TOKEN_BITS; shift += DIGIT) {
        uint64_t *const sorted = b->other;
        sort_digit(b->number, sorted, b->n, shift);
        b->other = b->number;
        b->number = sorted;
    }
}

static hunch_status new_run(hn_trie_build *b, run **r, hunch_error *err) {
    if (b->n_runs == MOST_RUNS)
        return hn_fail(err, HUNCH_REFUSED, "%s: more than %d times %zu tokens, expected fewer texts", b->path, MOST_RUNS, b->room);
    *r = &b->run[b->n_runs++];
    **r = (run){.at = hn_scratch_size(b->runs)};
    return HUNCH_OK;
}

static hunch_status put_aside(hn_trie_build *b, hunch_error *err) {
    run *r = NULL;
    if (b->n == 0) return HUNCH_OK;
    hunch_status st = new_run(b, &r, err);
    if (st) return st;
    sort_numbers(b);
    for (size_t i = 0, end; !st && i < b->n; i = end) {
        for (end = i + 1; end < b->n && b->number[end] == b->number[i]; end++) continue;
        const counted c = {b->number[i], end - i};
        st = hn_scratch_write(b->runs, &c, sizeof c, err);
        r->n++;
    }
    b->n = 0;
    return st;
}

static uint64_t number_of(int32_t a, int32_t second, int32_t third) {
    return (uint64_t)(a + 1) << 2 * TOKEN_BITS | (uint64_t)(second + 1) << TOKEN_BITS | (uint64_t)(third + 1);
}

static hunch_status add_number(hn_trie_build *b, uint64_t number, hunch_error *err) {
    b->number[b->n++] = number;
    return b->n == b->room ? put_aside(b, err) : HUNCH_OK;
}

/* ---- counts of other tries ------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b) {
    const uint64_t x = ((const counted *)a)->number, y = ((const counted *)b)->number;
    return (x > y) - (x < y);
}

static hunch_status put_given_aside(hn_trie_build *b, hunch_error *err) {
    run *r = NULL;
    if (b->n_given == 0) return HUNCH_OK;
    const hunch_status st = new_run(b, &r, err);
    if (st) return st;
    qsort(b->given, b->n_given, sizeof *b->given, by_number);
    r->n = b->n_given;
    b->n_given = 0;
    return hn_scratch_write(b->runs, b->given, r->n * sizeof *b->given, err);
}

hunch_status hn_trie_build_count(hn_trie_build *b, const int32_t *ids, int n, uint64_t times, hunch_error *err) {
    const size_t room = b->room / 2;
    if (times == 0) return HUNCH_OK;
    if (!b->given) b->given = hn_alloc(room * sizeof *b->given);
    if (!b->given) return hn_fail_memory(err, "a trie", room * sizeof *b->given);
    b->given[b->n_given++] = (counted){number_of(ids[0], n > 1 ? ids[1] : -1, n > 2 ? ids[2] : -1), times};
    b->tokens += times;
    return b->n_given == room ? put_given_aside(b, err) : HUNCH_OK;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------------- */

static hunch_status end_text(hn_trie_build *b, hunch_error *err) {
    hunch_status st = b->n_before > 1 ? add_number(b, number_of(b->before[0], b->before[1], -1), err) : HUNCH_OK;
    if (!st && b->n_before > 0) st = add_number(b, number_of(b->before[b->n_before - 1], -1, -1), err);
    b->n_before = 0;
    return st;
}

hunch_status hn_trie_build_add(void *user, const int32_t *ids, size_t n, bool ends, hunch_error *err) {
    hn_trie_build *b = user;
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < n; i++) {
        if (b->n_before < 2) {
            b->before[b->n_before++] = ids[i];
            continue;
        }
        st = add_number(b, number_of(b->before[0], b->before[1], ids[i]), err);
        b->before[0] = b->before[1];
        b->before[1] = ids[i];
    }
    b->tokens += n;
    return st || !ends ? st : end_text(b, err);
}

/* ---- merging --------------------------------------------------------------------------------------------------------------- */

/* The next number of a run, read from the file if needed; false: there is none, or it cannot be read. */
static bool run_next(hn_trie_build *b, run *r, const counted **c, hunch_status *st, hunch_error *err) {
    if (*st) return false;
    if (r->first == r->end) {
        const size_t n = r->n < RUN_PIECE ? r->n : RUN_PIECE;
        if (n == 0) return false;
        *st = hn_scratch_read(b->runs, r->at, r->piece, n * sizeof *r->piece, err);
        if (*st) return false;
        r->at += n * sizeof *r->piece;
        r->n -= n;
        r->first = 0;
        r->end = n;
    }
    *c = &r->piece[r->first];
    return true;
}

/* A heap of runs by their next numbers, the smallest first. */
typedef struct heap {
    hn_trie_build *b;
    int item[MOST_RUNS], n;
} heap;

static uint64_t heap_key(const heap *h, int i) {
    const run *r = &h->b->run[h->item[i]];
    return r->piece[r->first].number;
}

static void heap_sink(heap *h, int i) {
    for (int child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && heap_key(h, child + 1) < heap_key(h, child)) child++;
        if (heap_key(h, i) <= heap_key(h, child)) return;
        const int t = h->item[i];
        h->item[i] = h->item[child];
        h->item[child] = t;
    }
}

static hunch_status heap_make(heap *h, hn_trie_build *b, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    const counted *c;
    *h = (heap){.b = b};
    for (int i = 0; !st && i < b->n_runs; i++) {
        b->run[i].piece = hn_alloc(RUN_PIECE * sizeof *b->run[i].piece);
        if (!b->run[i].piece) return hn_fail_memory(err, "a trie", RUN_PIECE * sizeof *b->run[i].piece);
        if (run_next(b, &b->run[i], &c, &st, err)) h->item[h->n++] = i;
    }
    for (int i = h->n / 2 - 1; !st && i >= 0; i--) heap_sink(h, i);
    return st;
}

/* The smallest number of all runs, and its occurrences in all of them. False: there is none, or *st. */
static bool heap_take(heap *h, counted *out, hunch_status *st, hunch_error *err) {
    const counted *c;
    if (h->n == 0 || *st) return false;
    *out = (counted){heap_key(h, 0), 0};
    while (!*st && h->n > 0 && heap_key(h, 0) == out->number) {
        run *r = &h->b->run[h->item[0]];
        out->times += r->piece[r->first++].times;
        if (!run_next(h->b, r, &c, st, err)) h->item[0] = h->item[--h->n];
        heap_sink(h, 0);
    }
    return !*st;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

static uint32_t limited(uint64_t n) {
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* A pair is written when the next one starts: then its count is known. */
typedef struct levels {
    hn_trie_build *b;
    int32_t first, second; /* the current pair; second -1: none */
    uint64_t times, begins; /* its count, and the index of its first triple */
    uint64_t of_first;      /* count of the first token */
} levels;

static hunch_status close_pair(levels *l, hunch_error *err) {
    const hn_trie_pair p = {(uint32_t)l->second, limited(l->times), (uint32_t)l->begins};
    if (l->second < 0) return HUNCH_OK;
    l->b->n_pairs++;
    l->second = -1;
    return hn_scratch_write(l->b->pairs, &p, sizeof p, err);
}

/* Sets the index of the first pair of the tokens up to this one. */
static void open_single(levels *l, int32_t token) {
    if (l->first >= 0) l->b->single[l->first].count = limited(l->of_first);
    for (int32_t i = l->first + 1; i <= token; i++) l->b->single[i].first = (uint32_t)l->b->n_pairs;
    l->first = token;
    l->of_first = 0;
}

static hunch_status take_number(levels *l, const counted *c, hunch_error *err) {
    const uint64_t mask = ((uint64_t)1 << TOKEN_BITS) - 1;
    const int32_t a = (int32_t)(c->number >> 2 * TOKEN_BITS) - 1, second = (int32_t)(c->number >> TOKEN_BITS & mask) - 1,
                  third = (int32_t)(c->number & mask) - 1;
    hunch_status st = HUNCH_OK;
    if (a != l->first || second != l->second) {
        st = close_pair(l, err);
        if (!st && a != l->first) open_single(l, a);
        l->second = second;
        l->times = 0;
        l->begins = l->b->n_triples;
    }
    l->of_first += c->times;
    l->times += c->times;
    if (st || third < 0) return st;
    const hn_trie_triple t = {(uint32_t)third, limited(c->times)};
    l->b->n_triples++;
    return hn_scratch_write(l->b->triples, &t, sizeof t, err);
}

static hunch_status merge(hn_trie_build *b, hunch_error *err) {
    heap *h = hn_alloc(sizeof *h);
    levels l = {.b = b, .first = -1, .second = -1};
    counted c;
    hunch_status st = h ? heap_make(h, b, err) : hn_fail_memory(err, "a trie", sizeof *h);
    while (!st && heap_take(h, &c, &st, err)) st = take_number(&l, &c, err);
    hn_free(h);
    if (!st) st = close_pair(&l, err);
    if (st) return st;
    open_single(&l, b->vocab);
    if (b->n_pairs >= UINT32_MAX || b->n_triples >= UINT32_MAX)
        return hn_fail(err, HUNCH_REFUSED, "%s: more than %u pairs or triples of tokens, expected fewer texts", b->path, UINT32_MAX - 1);
    const hn_trie_pair end = {0, 0, (uint32_t)b->n_triples};
    return hn_scratch_write(b->pairs, &end, sizeof end, err);
}

static hunch_status copy(hn_trie_build *b, hn_scratch *from, hn_out *to, hunch_error *err) {
    const size_t size = hn_scratch_size(from), room = b->room * sizeof *b->number;
    hunch_status st = HUNCH_OK;
    for (size_t at = 0, n; !st && at < size; at += n) {
        n = size - at < room ? size - at : room;
        st = hn_scratch_read(from, at, b->number, n, err);
        if (!st) st = hn_out_write(to, b->number, n, err);
    }
    return st;
}

hunch_status hn_trie_build_finish(hn_trie_build *b, hunch_error *err) {
    hn_trie_header head = {.version = HN_TRIE_VERSION, .order = HN_TRIE_ORDER, .tokenizer = b->tokenizer,
                           .vocab = (uint64_t)b->vocab, .tokens = b->tokens};
    hn_out *out = NULL;
    hunch_status st = end_text(b, err);
    if (!st) st = put_aside(b, err);
    if (!st) st = put_given_aside(b, err);
    if (!st && b->n_runs == 0) st = hn_fail(err, HUNCH_REFUSED, "%s: no text with any token to count, expected some", b->path);
    if (!st) st = merge(b, err);
    if (st) return st;
    memcpy(head.magic, HN_TRIE_MAGIC, sizeof head.magic);
    head.pairs = b->n_pairs;
    head.triples = b->n_triples;
    head.check = hn_trie_check(&head);
    st = hn_out_open(&out, b->path, false, err);
    if (!st) st = hn_out_write(out, &head, sizeof head, err);
    if (!st) st = hn_out_write(out, b->single, ((size_t)b->vocab + 1) * sizeof *b->single, err);
    if (!st) st = copy(b, b->pairs, out, err);
    if (!st) st = copy(b, b->triples, out, err);
    if (!st) return hn_out_finish(&out, err);
    hn_out_abort(&out);
    return st;
}
