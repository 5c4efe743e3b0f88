/* SPDX-License-Identifier: Apache-2.0 */
/* unigram_test.c - the best path against trying all paths, over random vocabularies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "fixture.h"
#include "text/tokenizer/unigram.h"

enum { PIECES = 30, LONGEST = 12 };

static const char *const letters[] = {"a", "b", "é", "語"};

static size_t random_word(char *out, size_t most, uint64_t *seed) {
    size_t n = 0;
    out[0] = '\0';
    for (size_t k = 1 + hn_splitmix(seed) % most; k > 0; k--)
        n += strlen(strcpy(out + n, letters[hn_splitmix(seed) % 4]));
    return n;
}

typedef struct vocabulary {
    char text[PIECES][40];
    double score[PIECES], least;
} vocabulary;

static bool starts_character(const char *at) {
    return ((unsigned char)*at & 0xC0) != 0x80;
}

/* The best sum over all ways to split the word; a single character without a piece scores 10 less than the least score. */
static double best_by_search(const vocabulary *v, const char *word) {
    if (!*word) return 0;
    double best = -INFINITY;
    bool single = false;
    size_t n = 1;
    while (word[n] && !starts_character(word + n)) n++;
    for (int i = 0; i < PIECES; i++) {
        size_t len = strlen(v->text[i]);
        if (strncmp(word, v->text[i], len)) continue;
        single |= len == n;
        double s = v->score[i] + best_by_search(v, word + len);
        if (s > best) best = s;
    }
    double unknown = v->least - 10 + best_by_search(v, word + n);
    return !single && unknown > best ? unknown : best;
}

static void check_word(const hn_unigram *u, const vocabulary *v, hn_unigram_work *w, const char *word) {
    size_t n, from = 0;
    double sum = 0;
    assert_true(hn_unigram_cut(u, w, word, strlen(word), &n));
    for (size_t i = 0; i < n; i++) {
        size_t end = w->ends[i];
        int32_t id = w->nodes[end].id;
        assert_true(end > from && starts_character(word + end));
        sum += id < 0 ? v->least - 10 : v->score[id];
        if (id >= 0) {
            assert_int_equal(strlen(v->text[id]), end - from);
            assert_memory_equal(v->text[id], word + from, end - from);
        }
        from = end;
    }
    assert_int_equal(from, strlen(word));
    assert_true(fabs(sum - best_by_search(v, word)) < 1e-9);
}

static void test_against_all_paths(void **state) {
    (void)state;
    uint64_t seed = 17;
    hn_unigram_work w = {0};
    for (int round = 0; round < (light() ? 15 : 60); round++) {
        vocabulary v = {.least = INFINITY};
        hn_unigram u = {0};
        assert_true(hn_unigram_init(&u, PIECES));
        for (int i = 0; i < PIECES; i++) {
            random_word(v.text[i], i < 4 ? 1 : 4, &seed);
            for (int k = 0; k < i; k++) { /* all different: of equal ones only one counts */
                if (strcmp(v.text[i], v.text[k]) == 0) random_word(v.text[i], 9, &seed), k = -1;
            }
            v.score[i] = -(double)(hn_splitmix(&seed) % 100000) / 7000.0;
            if (v.score[i] < v.least) v.least = v.score[i];
            hn_unigram_put(&u, (hn_piece){v.text[i], (uint32_t)strlen(v.text[i])}, i, v.score[i]);
        }
        assert_true(hn_unigram_finish(&u));
        for (int k = 0; k < 40; k++) {
            char word[LONGEST * 3 + 1];
            random_word(word, LONGEST, &seed);
            check_word(&u, &v, &w, word);
        }
        hn_unigram_fini(&u);
    }
    hn_unigram_work_fini(&w);
}

/* Pieces that are not text, one that only lowers the least score, bytes of all values, a long word. */
static void test_odd_pieces(void **state) {
    (void)state;
    hn_unigram u = {0};
    hn_unigram_work w = {0};
    size_t n;
    char word[3000];
    assert_true(hn_unigram_init(&u, 5));
    hn_unigram_put(&u, (hn_piece){"", 0}, 0, -50);
    hn_unigram_put(&u, (hn_piece){"\xC3", 1}, 1, 0); /* half a character: never a path's end */
    hn_unigram_put(&u, (hn_piece){"a", 1}, 2, -2);
    hn_unigram_put(&u, (hn_piece){"a\0b", 3}, 3, -1);
    hn_unigram_put(&u, (hn_piece){"a", 1}, 4, -1); /* of equal ones the first */
    assert_true(hn_unigram_finish(&u));
    assert_true(hn_unigram_cut(&u, &w,
                               "a\0b\xC3\xA9"
                               "a",
                               6, &n));
    assert_int_equal(n, 3);
    assert_int_equal(w.nodes[3].id, 3);
    assert_int_equal(w.nodes[5].id, -1);
    assert_true(fabs(w.nodes[5].score - (-1 - 60)) < 1e-9);
    assert_int_equal(w.nodes[6].id, 2);
    memset(word, 'a', sizeof word);
    assert_true(hn_unigram_cut(&u, &w, word, sizeof word, &n));
    assert_int_equal(n, sizeof word);
    hn_unigram_fini(&u);
    hn_unigram_work_fini(&w);
}

static void test_no_memory(void **state) {
    (void)state;
    int failed = 0;
    for (int64_t after = 0; after < 20; after++) {
        hn_unigram u = {0};
        hn_unigram_work w = {0};
        size_t n;
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        bool ok = hn_unigram_init(&u, 1);
        if (ok) hn_unigram_put(&u, (hn_piece){"a", 1}, 0, 0);
        ok = ok && hn_unigram_finish(&u) && hn_unigram_cut(&u, &w, "ab", 2, &n);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        failed += !ok;
        hn_unigram_fini(&u);
        hn_unigram_work_fini(&w);
    }
    assert_in_range(failed, 8, 19);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all_paths),
        cmocka_unit_test(test_odd_pieces),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
