/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_recycle_test.c - the drafter around the matrix: its file, damaged or of something else, texts of other salts, memory that runs
 * out. Its trees, step for step: tests/selfdraft_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "draft/drafter_for_tests.h"
#include "draft/text/recycle_matrix.h"

enum { VOCAB = 1000, LISTS = 8, FILE_MOST = 1 << 20 };

static char folder[] = "/tmp/hunch-recycle-test-XXXXXX";

static const char *path_of(const char *name) {
    static char path[4][64];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path_of("a"));
    unlink(path_of("b"));
    unlink(path_of("bad"));
    return rmdir(folder); /* fails if anything else was left */
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static const char *spec_of(const char *more, const char *path) {
    static char spec[2][160];
    static int next;
    char *s = spec[next++ & 1];
    snprintf(s, sizeof spec[0], "recycle,nodes=16%s%s", more, path);
    return s;
}

/* After a token come those above it, likeliest first. */
static void likeliest(int32_t token, int32_t out[LISTS]) {
    for (int r = 0; r < LISTS; r++) out[r] = (token + 1 + r) % VOCAB;
}

static void begin_salted(hn_drafter *d, int seq, uint64_t salt, const int32_t *token, int n) {
    const hn_begin b = {.seq = seq, .salt = salt, .text = {token, n, n}};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
}

/* A round of a text that counts up from its first token, of which n are there; returns how many more are. */
static int run_round(hn_drafter *d, int seq, int32_t *text, int n, hn_tree *t) {
    int16_t path[HN_TREE_ROWS];
    int32_t best[HN_TREE_ROWS * LISTS];
    hn_observe o = {.seq = seq, .tree = t, .path = path, .best = best, .n_best = LISTS};
    draft(d, seq, (hn_committed_text){text, n, 1}, DEPTH, t);
    for (int i = 0; i < t->n_rows; i++) likeliest(t->token[i], best + i * LISTS);
    for (int row = 0;;) {
        text[n + o.n_accepted] = (text[n + o.n_accepted - 1] + 1) % VOCAB;
        row = hn_tree_child(t, row, o.next_token = text[n + o.n_accepted]);
        if (row < 0) break;
        path[o.n_accepted++] = (int16_t)row;
    }
    d->ops->observe(d, &o, 1);
    return o.n_accepted + 1;
}

/* A whole text of at least `most` tokens; returns the rows of all its trees but the roots. */
static int run_text(hn_drafter *d, int seq, uint64_t salt, int32_t first, int most) {
    static int32_t text[TEXT + 2 * HN_TREE_ROWS];
    hn_tree t = {.n_rows = 1};
    int rows = 0;
    text[0] = first;
    begin_salted(d, seq, salt, text, 1);
    for (int n = 1; n < most; n += run_round(d, seq, text, n, &t)) rows += t.n_rows - 1;
    return rows;
}

static int drafted_after(hn_drafter *d, uint64_t salt, int32_t token) {
    hn_tree t;
    begin_salted(d, 1, salt, &token, 1);
    draft(d, 1, (hn_committed_text){&token, 1, 1}, DEPTH, &t);
    d->ops->end(d, 1);
    return t.n_rows - 1;
}

/* What was learned is there again, and the same bytes are written. */
static void test_file(void **state) {
    (void)state;
    hn_drafter d;
    char spec[200];
    char *a, *b;
    size_t n_a, n_b;
    open_or_fail(&d, spec_of(",save=", path_of("a")), 2);
    run_text(&d, 0, 0, 3, 200);
    const int before = drafted_after(&d, 0, 50);
    assert_true(before > 8);
    hn_drafter_close(&d);
    open_or_fail(&d, spec_of(",load=", path_of("a")), 2);
    assert_int_equal(drafted_after(&d, 0, 50), before);
    assert_int_equal(drafted_after(&d, 7, 50), 0); /* of texts without a salt alone */
    hn_drafter_close(&d);
    snprintf(spec, sizeof spec, "recycle,nodes=16,load=%s,save=%s", path_of("a"), path_of("b"));
    open_or_fail(&d, spec, 2);
    assert_int_equal(drafted_after(&d, 0, 50), before);
    hn_drafter_close(&d);
    assert_int_equal(hn_file_read(path_of("a"), FILE_MOST, &a, &n_a, NULL), HUNCH_OK);
    assert_int_equal(hn_file_read(path_of("b"), FILE_MOST, &b, &n_b, NULL), HUNCH_OK);
    assert_true(n_a == n_b && !memcmp(a, b, n_a));
    hn_free(a);
    hn_free(b);
    open_or_fail(&d, spec_of(",k=3,load=", path_of("a")), 2); /* the first of each row */
    assert_true(drafted_after(&d, 0, 50) > 8);
    hn_drafter_close(&d);
    assert_int_equal(hn_recycle_file_check(path_of("a"), NULL), HUNCH_OK);
}

static void expect_refused(const char *data, size_t size, const char *words) {
    hn_drafter d;
    hunch_error err = {0};
    write_file(path_of("bad"), data, size);
    if (hn_drafter_open(&d, spec_of(",load=", path_of("bad")), 0, 1, &TARGET, &err) != HUNCH_REFUSED) fail_msg("opened: %s", words);
    if (!strstr(err.message, words) || !strstr(err.message, "/bad: ") || strchr(err.message, '\n'))
        fail_msg("%s: %s", words, err.message);
}

/* Every byte of a file counts, and so does its end; files of something else are refused too. */
static void test_damage(void **state) {
    (void)state;
    hn_drafter d;
    char *data;
    size_t size;
    open_or_fail(&d, spec_of(",save=", path_of("a")), 2);
    run_text(&d, 0, 0, 3, 12);
    hn_drafter_close(&d);
    assert_int_equal(hn_file_read(path_of("a"), FILE_MOST, &data, &size, NULL), HUNCH_OK);
    for (size_t at = 0; at < size; at++) {
        data[at] ^= 0x10;
        expect_refused(data, size, at < 8 ? "does not begin" : "expected");
        data[at] ^= 0x10;
        expect_refused(data, at, "expected");
    }
    expect_refused("GGUF and more of a file that is none of these", 45, "does not begin with HNRECYC1");
    const hn_target_info other = {.vocab = VOCAB + 1, .hidden = 8, .layers = 2, .context = TEXT};
    hunch_error err = {0};
    assert_int_equal(hn_drafter_open(&d, spec_of(",load=", path_of("a")), 0, 1, &other, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "of a vocabulary of 1000 tokens, expected that of this model, 1001"));
    assert_int_equal(hn_recycle_file_check(path_of("bad"), NULL), HUNCH_REFUSED);
    assert_int_equal(hn_drafter_open(&d, "recycle,save=/nowhere/x", 0, 1, &TARGET, &err), HUNCH_FAILED);
    hn_free(data);
}

/* A file whose hash is right and whose rows are not. */
static void test_wrong_rows(void **state) {
    (void)state;
    static const int32_t rows[][2][3] = {
        {{5, 1, 2}, {5, 1, 2}}, {{5, 1, 2}, {4, 1, 2}}, {{5, 1, 2}, {9, -1, 2}}, {{5, 1, 1000}, {6, 1, 2}}, {{5, 1, 2}, {1000, 1, 2}},
        {{5, 1, -2}, {6, 1, 2}}, {{-1, 1, 2}, {6, 1, 2}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char file[20 + sizeof rows[0] + 8] = "HNRECYC1";
        const int32_t head[3] = {VOCAB, 2, 2};
        memcpy(file + 8, head, sizeof head);
        memcpy(file + 20, rows[i], sizeof rows[i]);
        const uint64_t hash = hn_bytes_hash(file, sizeof file - 8, 0);
        memcpy(file + sizeof file - 8, &hash, 8);
        expect_refused((const char *)file, sizeof file, "no row of its vocabulary of 1000 at byte");
    }
}

/* Nobody sees what texts of another salt left, and nothing is left after forget. */
static void test_salts(void **state) {
    (void)state;
    hn_drafter d;
    for (uint64_t salt = 0; salt < 2; salt++) {
        open_or_fail(&d, "recycle,nodes=16", 2);
        run_text(&d, 0, salt, 3, 60);
        assert_true(drafted_after(&d, salt, 5) > 8);
        for (uint64_t other = 0; other < 30; other++)
            if (other != salt) assert_int_equal(drafted_after(&d, other, 5), 0);
        d.ops->end(&d, 0);
        assert_true(drafted_after(&d, salt, 5) > 8);
        for (uint64_t other = 100; other < 130; other++) /* one of which gets the place of the first */
            assert_int_equal(drafted_after(&d, other, 5), 0);
        run_text(&d, 0, salt, 3, 60);
        d.ops->end(&d, 0);
        d.ops->forget(&d);
        assert_int_equal(drafted_after(&d, salt, 5), 0);
        hn_drafter_close(&d);
    }
}

/* One chain is requested, or few rows. */
static void test_narrow(void **state) {
    (void)state;
    hn_drafter d;
    hn_tree t;
    const int32_t token = 5;
    open_or_fail(&d, "recycle,tree=paper", 2);
    run_text(&d, 0, 0, 3, 60);
    begin_salted(&d, 1, 0, &token, 1);
    for (int budget = 0; budget < DEPTH; budget++) draft(&d, 1, (hn_committed_text){&token, 1, 1}, budget, &t);
    hn_propose p = {.seq = 1, .text = {&token, 1, 1}, .tree = &t, .budget = DEPTH, .chain = true};
    hn_tree_reset(&t, token, HN_TREE_ROWS);
    for (int level = 0; d.ops->propose(&d, &p, 1, level); level++) continue;
    assert_true(hn_tree_is_chain(&t) && t.n_rows == 1 + 4);
    hn_drafter_close(&d);
}

/* Every allocation fails in turn. */
static void test_no_memory(void **state) {
    (void)state;
    int opened = 0, drafted = 0;
    for (int after = 0; after < 12; after++) {
        hn_drafter d;
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        const hunch_status st = hn_drafter_open(&d, "recycle", 0, 1, &TARGET, NULL);
        if (!st) {
            opened++;
            run_text(&d, 0, 9, 3, 60);
            drafted += run_text(&d, 0, 9, 3, 60) > 0; /* the same again; without memory a salt has no store */
            d.ops->end(&d, 0);
        }
        hn_drafter_close(&d);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (st) assert_int_equal(st, HUNCH_NO_MEMORY);
    }
    assert_true(opened > drafted && drafted > 0 && opened < 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file),  cmocka_unit_test(test_damage), cmocka_unit_test(test_wrong_rows),
                                       cmocka_unit_test(test_salts), cmocka_unit_test(test_narrow), cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
