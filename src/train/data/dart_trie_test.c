/* SPDX-License-Identifier: Apache-2.0 */
/* dart_trie_test.c - a trie of DART's, written as by its release from the same texts, gives byte for byte the trie that
 * is counted from the texts, alone and together with texts; damaged files are refused by path, and nothing remains if
 * memory or reading fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/run_mode_for_tests.h"
#include "draft/shape/trie_for_tests.h"
#include "train/data/dart_trie.h"

enum { MOST_NODES = 20000, ORDER = 3 };

typedef struct dart_node {
    int32_t token, count;
    uint64_t parent;
} dart_node;
static dart_node nodes[MOST_NODES];
static uint64_t n_nodes, seed = 5;
static hn_tokenizer *tokenizer;
static trie_texts texts;
static const volatile int go_on = 0;

static int number(int below) { return (int)(hn_splitmix(&seed) % (uint64_t)below); }

static uint64_t child_of(uint64_t parent, int32_t token) {
    for (uint64_t i = parent + 1; i < n_nodes; i++)
        if (nodes[i].parent == parent && nodes[i].token == token) return i;
    assert_true(n_nodes < MOST_NODES);
    nodes[n_nodes] = (dart_node){token, 0, parent};
    return n_nodes++;
}

/* As the release counts: from every token on, up to the order, each node of the path. */
static void count_text(const int32_t *text, int n) {
    for (int i = 0; i < n; i++) {
        uint64_t at = 0;
        nodes[at].count++;
        for (int k = i; k < n && k < i + ORDER; k++) nodes[at = child_of(at, text[k])].count++;
    }
}

static bytes dart_bytes(uint64_t order) {
    bytes b = {0};
    bytes_number(&b, order, 8);
    bytes_number(&b, n_nodes, 8);
    for (uint64_t i = 0; i < n_nodes; i++) {
        bytes list = {0};
        uint64_t n = 0;
        for (uint64_t k = n_nodes - 1; k > i; k--) { /* unordered */
            if (nodes[k].parent != i) continue;
            bytes_number(&list, (uint64_t)nodes[k].token, 4);
            bytes_number(&list, k, 8);
            n++;
        }
        bytes_number(&b, (uint64_t)nodes[i].token, 4);
        bytes_number(&b, nodes[i].parent, 8);
        bytes_number(&b, (uint64_t)nodes[i].count, 4);
        bytes_number(&b, n, 8);
        if (n) bytes_put(&b, list.at, list.size);
        bytes_free(&list);
    }
    return b;
}

static void make_texts(int n_texts, int longest, int tokens) {
    texts.n = texts.tokens = 0;
    n_nodes = 1;
    nodes[0] = (dart_node){0, 0, 0};
    for (int i = 0; i < n_texts; i++) {
        int32_t text[100];
        const int n = 1 + number(longest);
        for (int k = 0; k < n; k++) text[k] = number(4) ? number(tokens) : TRIE_VOCAB - 1 - number(3);
        trie_text(&texts, text, n);
        count_text(text, n);
    }
}

static hunch_status build(const char *from, const int32_t *more, size_t n_more, const char *to, size_t room, hunch_error *err) {
    hn_trie_build *b;
    hunch_status st = hn_trie_build_open(&b, to, TRIE_VOCAB, hn_trie_tokenizer(tokenizer), room, err);
    if (!st) st = hn_dart_trie_add(b, from, TRIE_VOCAB, &go_on, err);
    if (!st && n_more) st = hn_trie_build_add(b, more, n_more, true, err);
    if (!st) st = hn_trie_build_finish(b, err);
    hn_trie_build_close(&b);
    return st;
}

static void assert_is_plain(const char *path) {
    bytes want = trie_bytes(&texts, tokenizer), got = test_file_read(path);
    assert_int_equal(got.size, want.size);
    assert_memory_equal(got.at, want.at, want.size);
    bytes_free(&want);
    bytes_free(&got);
}

static void write_dart(const char *path, uint64_t order) {
    bytes b = dart_bytes(order);
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
}

static void test_same_bytes(void **state) {
    (void)state;
    static const size_t rooms[] = {16, 40, 333, 100000};
    static const int32_t more[] = {5, 6, 5, 6, 7};
    hunch_error err;
    for (int round = 0; round < (test_light() ? 4 : 12); round++) {
        make_texts(1 + number(30), 1 + number(90), 2 + number(12));
        const char *from = test_path("dart.bin"), *to = test_path("a.trie");
        write_dart(from, ORDER);
        assert_true(hn_dart_trie_is(from));
        if (build(from, NULL, 0, to, rooms[round % 4], &err)) fail_msg("%s", err.message);
        assert_is_plain(to);
        trie_text(&texts, more, 5); /* and counts of a text in addition */
        if (build(from, more, 5, to, rooms[round % 4], &err)) fail_msg("%s", err.message);
        assert_is_plain(to);
    }
}

static void test_long_file(void **state) { /* longer than one piece of reading */
    (void)state;
    hunch_error err;
    if (test_light()) skip();
    make_texts(35, 90, 400);
    write_dart(test_path("dart.bin"), ORDER);
    bytes b = test_file_read(test_path("dart.bin"));
    assert_true(b.size > 100000);
    bytes_free(&b);
    if (build(test_path("dart.bin"), NULL, 0, test_path("a.trie"), 1000, &err)) fail_msg("%s", err.message);
    assert_is_plain(test_path("a.trie"));
}

static void assert_refused(const bytes *b, const char *says) {
    hunch_error err = {0};
    const char *path = test_path("bad.bin");
    test_file_write(path, b->at, b->size);
    const hunch_status st = build(path, NULL, 0, test_path("bad.trie"), 100, &err);
    if (st != HUNCH_REFUSED || !strstr(err.message, says) || !strstr(err.message, path))
        fail_msg("expected \"%s\", got %d \"%s\"", says, st, err.message);
    assert_false(hn_exists(test_path("bad.trie")));
}

static void test_refused(void **state) {
    (void)state;
    make_texts(6, 20, 5);
    enum { NODE = 24, HEAD = 16, FIRST = 4 }; /* offset of a node's parent */
    bytes good = dart_bytes(ORDER), b = dart_bytes(4);
    assert_refused(&b, "of order 4, expected 3");
    bytes_free(&b);
    for (size_t cut = HEAD; cut < good.size; cut += 1 + good.size / 40) {
        b = (bytes){.at = good.at, .size = cut};
        assert_refused(&b, cut < HEAD + NODE * n_nodes ? "bytes do not hold" : "a truncated trie of DART");
    }
    const struct {
        uint64_t node;
        dart_node bad;
        const char *says;
    } cases[] = {{2, {nodes[2].token, 1, 2}, "node 2 has parent 2, expected one before it"},
                 {2, {nodes[2].token, 1, 1ull << 40}, "expected one before it"},
                 {1, {TRIE_VOCAB, nodes[1].count, 0}, "node 1 is token 512, 1"},
                 {1, {-1, nodes[1].count, 0}, "node 1 is token -1"},
                 {1, {nodes[1].token, -7, 0}, "-7 times: expected tokens of the model's, 0 to 511"},
                 {1, {nodes[1].token, 0, 0}, "node 1 has a smaller count than its children"},
                 {4, {nodes[4].token, 1, 3}, "node 4 is deeper than 3 tokens"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const dart_node was = nodes[cases[i].node];
        if (i == 2) nodes[1].count = 1;
        nodes[cases[i].node] = cases[i].bad;
        if (i == 2) nodes[1].count = 1;
        b = dart_bytes(ORDER);
        nodes[cases[i].node] = was;
        assert_refused(&b, cases[i].says);
        bytes_free(&b);
    }
    bytes_free(&good);
    const char *text = test_path("text.txt");
    test_file_write(text, "Once upon a time there was a text that is no trie.", 50);
    assert_false(hn_dart_trie_is(text));
    assert_false(hn_dart_trie_is(test_path("nowhere")));
}

static void test_faults(void **state) {
    (void)state;
    hunch_error err;
    const char *from = test_path("dart.bin"), *to = test_path("faults.trie");
    make_texts(30, 60, 9);
    write_dart(from, ORDER);
    for (enum hn_fault_kind kind = HN_FAULT_ALLOC; kind < HN_FAULT_LOGIT; kind++) {
        hn_fault_arm(kind, INT64_MAX, false);
        assert_int_equal(build(from, NULL, 0, to, 100, &err), HUNCH_OK);
        const int64_t n = (int64_t)hn_fault_count(kind);
        hn_fault_arm(kind, -1, false);
        unlink(to);
        for (int64_t i = 0; i < n; i += test_light() ? 5 : 1) {
            hn_fault_arm(kind, i, kind == HN_FAULT_SHORT);
            const hunch_status st = build(from, NULL, 0, to, 100, &err);
            hn_fault_arm(kind, -1, false);
            assert_int_equal(st, kind == HN_FAULT_ALLOC ? HUNCH_NO_MEMORY : kind == HN_FAULT_SHORT ? HUNCH_OK : HUNCH_FAILED);
            if (kind == HN_FAULT_SHORT) assert_is_plain(to);
            unlink(to);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_long_file), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_faults)};
    tokenizer = trie_tokenizer();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hn_tokenizer_close(&tokenizer);
    return failed;
}
