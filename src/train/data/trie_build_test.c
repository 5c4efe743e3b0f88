/* SPDX-License-Identifier: Apache-2.0 */
/* trie_build_test.c - a trie built in little memory is byte for byte the one of a simple implementation, from ids and
 * from files; refusals, and failures of memory, reading and writing, which leave no files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/run_mode_for_tests.h"
#include "draft/text_tokens.h"
#include "draft/shape/trie_for_tests.h"
#include "train/data/trie_build.h"

static hn_tokenizer *tokenizer;
static trie_texts texts;
static uint64_t seed = 3;

static int number(int below) { return (int)(hn_splitmix(&seed) % (uint64_t)below); }

static void write_texts(int n_texts, int longest, int tokens) {
    texts.n = texts.tokens = 0;
    for (int i = 0; i < n_texts; i++) {
        int32_t text[200];
        const int n = 1 + number(longest);
        for (int k = 0; k < n; k++) text[k] = number(4) ? number(tokens) : TRIE_VOCAB - 1 - number(3);
        trie_text(&texts, text, n);
    }
}

/* In pieces of random length. */
static hunch_status add_texts(hn_trie_build *b, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0, end; !st && i < texts.n; i = end + 1) {
        for (end = i; texts.token[end] >= 0; end++) continue;
        while (!st && i < end) {
            const int n = 1 + number(end - i);
            const bool alone = number(5) == 0; /* the end of the text is reported separately */
            st = hn_trie_build_add(b, texts.token + i, (size_t)n, i + n == end && !alone, err);
            if (!st && i + n == end && alone) st = hn_trie_build_add(b, NULL, 0, true, err);
            i += n;
        }
    }
    return st;
}

static hunch_status build(const char *path, size_t room, hunch_error *err) {
    hn_trie_build *b;
    hunch_status st = hn_trie_build_open(&b, path, TRIE_VOCAB, hn_trie_tokenizer(tokenizer), room, err);
    if (!st) st = add_texts(b, err);
    if (!st) st = hn_trie_build_finish(b, err);
    hn_trie_build_close(&b);
    return st;
}

static void assert_is_plain(const char *path) {
    bytes want = trie_bytes(&texts, tokenizer);
    char *got;
    size_t size;
    hunch_error err;
    if (hn_file_read(path, 1 << 24, &got, &size, &err)) fail_msg("%s", err.message);
    assert_int_equal(size, want.size);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)got[i] != want.at[i]) fail_msg("byte %zu of %zu", i, size);
    hn_free(got);
    bytes_free(&want);
}

static void test_same_bytes(void **state) {
    (void)state;
    static const size_t rooms[] = {16, 17, 40, 333, 100000};
    hunch_error err;
    for (int round = 0; round < (test_light() ? 5 : 20); round++) {
        write_texts(1 + number(30), 1 + number(100), 2 + number(12));
        if (build(test_path("a.trie"), rooms[round % 5], &err)) fail_msg("%s", err.message);
        assert_is_plain(test_path("a.trie"));
    }
}

/* A run has more numbers than are read at a time. */
static void test_long_runs(void **state) {
    (void)state;
    hn_trie_build *b;
    hn_trie t;
    hunch_error err;
    enum { N = 30000 };
    int32_t *ids = hn_alloc(N * sizeof *ids);
    for (int i = 0; i < N; i++) ids[i] = number(TRIE_VOCAB);
    assert_int_equal(hn_trie_build_open(&b, test_path("b.trie"), TRIE_VOCAB, hn_trie_tokenizer(tokenizer), 11000, &err), HUNCH_OK);
    assert_int_equal(hn_trie_build_add(b, ids, N, true, &err), HUNCH_OK);
    assert_int_equal(hn_trie_build_tokens(b), N);
    assert_int_equal(hn_trie_build_finish(b, &err), HUNCH_OK);
    hn_trie_build_close(&b);
    assert_int_equal(hn_trie_open(&t, test_path("b.trie"), tokenizer, &err), HUNCH_OK);
    uint64_t pairs = 0, triples = 0;
    for (uint64_t i = 0; i < t.head.pairs; i++) pairs += t.pair[i].count;
    for (uint64_t i = 0; i < t.head.triples; i++) triples += t.triple[i].count;
    assert_int_equal(pairs, N - 1);
    assert_int_equal(triples, N - 2);
    for (int i = 0; i + 2 < N; i += test_light() ? 997 : 97) {
        int32_t times[2] = {0};
        for (int k = 0; k + 2 < N; k++) {
            times[0] += ids[k] == ids[i] && ids[k + 1] == ids[i + 1];
            times[1] += ids[k] == ids[i] && ids[k + 1] == ids[i + 1] && ids[k + 2] == ids[i + 2];
        }
        times[0] += ids[N - 2] == ids[i] && ids[N - 1] == ids[i + 1];
        float p;
        hn_trie_query(&t, ids + i, 2, ids + i + 2, 1, &p);
        assert_true(p == (float)times[1] / (float)times[0]);
    }
    hn_trie_close(&t);
    hn_free(ids);
}

static void test_refused(void **state) {
    (void)state;
    hn_trie_build *b;
    hunch_error err;
    assert_int_equal(hn_trie_build_open(&b, test_path("c.trie"), (1 << 21) - 1, 0, 100, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "expected at most 2097150"));
    assert_null(b);
    texts.n = 0;
    assert_int_equal(build(test_path("c.trie"), 100, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "no text with any token"));
    assert_false(hn_exists(test_path("c.trie")));
    assert_int_equal(hn_trie_build_open(&b, test_path("no/such/folder"), 5, 0, 100, &err), HUNCH_FAILED);
    assert_null(b);
}

static int files_in(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Each call fails in turn: the error is reported, and nothing remains; if calls do only part of the work, the file is the same. */
static void test_faults(void **state) {
    (void)state;
    char folder[400], path[500];
    hunch_error err;
    snprintf(folder, sizeof folder, "%s", test_path("faults"));
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/a.trie", folder);
    write_texts(30, 60, 9);
    for (enum hn_fault_kind kind = HN_FAULT_ALLOC; kind < HN_FAULT_LOGIT; kind++) {
        const uint64_t same = seed;
        hn_fault_arm(kind, INT64_MAX, false);
        assert_int_equal(build(path, 100, &err), HUNCH_OK);
        const int64_t n = (int64_t)hn_fault_count(kind);
        hn_fault_arm(kind, -1, false);
        assert_true(n > 3);
        unlink(path);
        const int64_t most = test_light() ? 5 : n, step = n > most ? n / most : 1;
        for (int64_t i = 0; i < n; i += step) {
            seed = same;
            hn_fault_arm(kind, i, kind == HN_FAULT_SHORT);
            const hunch_status st = build(path, 100, &err);
            hn_fault_arm(kind, -1, false);
            assert_int_equal(st, kind == HN_FAULT_ALLOC ? HUNCH_NO_MEMORY : kind == HN_FAULT_SHORT ? HUNCH_OK : HUNCH_FAILED);
            if (kind == HN_FAULT_SHORT) assert_is_plain(path);
            unlink(path);
            assert_int_equal(files_in(folder), 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_long_runs),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_faults)};
    tokenizer = trie_tokenizer();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hn_tokenizer_close(&tokenizer);
    return failed;
}
