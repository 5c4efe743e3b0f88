/* SPDX-License-Identifier: Apache-2.0 */
/* nearest_test.c - distances of words counted by hand, and what is near enough to be proposed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/nearest.h"

static size_t far(const char *a, const char *b) {
    const size_t there = hn_edit_distance(a, strlen(a), b, strlen(b)),
                 back = hn_edit_distance(b, strlen(b), a, strlen(a));
    assert_int_equal(there, back);
    return there;
}

static void test_distance(void **state HN_UNUSED) {
    assert_int_equal(far("", ""), 0);
    assert_int_equal(far("", "abc"), 3);
    assert_int_equal(far("match", "MATCH"), 0);
    assert_int_equal(far("mtch", "match"), 1);
    assert_int_equal(far("dpeth", "depth"), 1);  /* swapped */
    assert_int_equal(far("ngrma", "ngram"), 1);
    assert_int_equal(far("kitten", "sitting"), 3);
    assert_int_equal(far("ab", "ba"), 1);
    assert_int_equal(far("abc", "cba"), 2);
    assert_int_equal(hn_edit_distance("tiny", 4, "tinny.gguf", 5), 1);
    char a[200], b[200];
    memset(a, 'x', sizeof a);
    memset(b, 'y', sizeof b);
    assert_int_equal(hn_edit_distance(a, sizeof a, b, sizeof b), 80); /* the limit */
}

static const char *nearest(const char *word) {
    static const char *const names[] = {"ngram", "cache", "suffix", "prediction", "model",
                                        "-m",    "-n",    "q8_0",   "traversal"};
    return hn_nearest(word, names, sizeof names / sizeof *names);
}

/* README: "The error for a misspelt command, flag, drafter or file names the nearest one that exists." */
static void test_nearest(void **state HN_UNUSED) {
    assert_string_equal(nearest("ngrm"), "ngram");
    assert_string_equal(nearest("sufix"), "suffix");
    assert_string_equal(nearest("SUFFIX"), "suffix");
    assert_string_equal(nearest("pred"), "prediction"); /* the beginning */
    assert_string_equal(nearest("q8"), "q8_0");
    assert_string_equal(nearest("trasverla"), "traversal");
    assert_null(nearest("-x")); /* near to -m by count alone */
    assert_null(nearest("x"));
    assert_null(nearest(""));
    assert_null(nearest("wizard"));
    static const char *const shells[] = {"bash", "zsh", "fish"}; /* of equally near ones that with the word's first letter */
    assert_string_equal(hn_nearest("fsh", shells, 3), "fish");
    assert_null(hn_nearest("ngram", NULL, 0));
    char text[40];
    assert_string_equal(hn_nearest_hint(text, sizeof text, "modle", (const char *const[]){"model"}, 1),
                        ", did you mean model?");
    assert_string_equal(hn_nearest_hint(text, sizeof text, "wizard", (const char *const[]){"model"}, 1), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distance), cmocka_unit_test(test_nearest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
