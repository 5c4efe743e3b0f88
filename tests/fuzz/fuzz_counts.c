/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_counts.c - a lookup cache of n-grams: entries that were read are found, their sums are right, and the file is known for one. */
#include "draft/text/counts_file.h"
#include "fuzz.h"

enum { VOCAB = 1000, LIMIT = 1 << 20 };

static void entry_check(const hn_counts *x, const hn_counts_entry *e) {
    uint64_t sum = 0;
    uint32_t n = 0, most = 0;
    FUZZ_MUST(hn_counts_find(x, e->gram) == e);
    for (uint32_t p = e->first; p != HN_COUNTS_NONE; p = x->pair[p].next, n++) {
        FUZZ_MUST(hn_counts_pair_of(x, e, x->pair[p].token) == &x->pair[p]);
        sum += x->pair[p].count;
        most = x->pair[p].count > most ? x->pair[p].count : most;
    }
    FUZZ_MUST(n == e->n_pairs && sum == e->sum && most == x->pair[e->best].count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hn_counts x;
    hunch_error err = {0};
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    hn_counts_init(&x, LIMIT);
    const hunch_status st = hn_counts_read(&x, path, 1, HN_COUNTS_N, VOCAB, &err);
    fuzz_check(st, &err, path);
    const hunch_status looks = hn_counts_file_check(path, &err);
    fuzz_check(looks, &err, path);
    FUZZ_MUST(st != HUNCH_OK || looks == HUNCH_OK); /* what can be read may be replaced */
    for (size_t i = 0; i < x.n_entries; i++) entry_check(&x, &x.entry[i]);
    hn_counts_fini(&x);
    return 0;
}
