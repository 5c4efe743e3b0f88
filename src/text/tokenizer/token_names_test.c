/* SPDX-License-Identifier: Apache-2.0 */
/* token_names_test.c - the search for names against its definition, and the white space and words around them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/random.h"
#include "text/tokenizer/token_names.h"

enum { NAMES = 12 };

typedef struct plain_name {
    char text[8];
    size_t len;
    bool special;
} plain_name;

static size_t random_string(char *out, size_t most, uint64_t *seed) {
    size_t n = hn_splitmix(seed) % (most + 1);
    for (size_t i = 0; i < n; i++) out[i] = "<>a|"[hn_splitmix(seed) % 4];
    return n;
}

/* The definition: the first place where a name begins, of those the longest. */
static int find_by_definition(const plain_name *names, const char *text, size_t at, size_t len, bool special,
                              size_t *place) {
    for (; at < len; at++) {
        int best = -1;
        for (int i = 0; i < NAMES; i++) {
            const plain_name *n = &names[i];
            if (!n->len || n->len > len - at || memcmp(text + at, n->text, n->len) || (n->special && !special))
                continue;
            if (best < 0 || n->len > names[best].len) best = i;
        }
        *place = at;
        if (best >= 0) return best;
    }
    return -1;
}

static bool is_again(const plain_name *names, int i) {
    for (int k = 0; k < i; k++) {
        if (names[k].len == names[i].len && !memcmp(names[k].text, names[i].text, names[i].len)) return true;
    }
    return false;
}

static void test_against_definition(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 300; round++) {
        hn_names s = {0};
        plain_name names[NAMES];
        for (int i = 0; i < NAMES; i++) {
            names[i].len = random_string(names[i].text, i % 3 ? 3 : 7, &seed);
            names[i].special = i % 2;
            if (is_again(names, i)) names[i].len = 0;
            assert_true(hn_names_add(&s, names[i].text, names[i].len, i, names[i].special ? HN_NAME_SPECIAL : 0));
        }
        assert_true(hn_names_finish(&s));
        for (int k = 0; k < 30; k++) {
            char text[60];
            size_t len = random_string(text, sizeof text, &seed), place = 0, at = 0;
            bool special = k % 2;
            hn_name_match m;
            for (bool found = true; found; at = m.to) {
                int want = find_by_definition(names, text, at, len, special, &place);
                found = hn_names_find(&s, text, at, len, special, NULL, &m);
                assert_int_equal(found, want >= 0);
                if (!found) break;
                assert_int_equal(m.id, want);
                assert_true(m.from == place && m.to == place + names[want].len);
            }
        }
        for (int i = 0; i < NAMES; i++) {
            if (names[i].len) assert_int_equal(hn_names_get(&s, names[i].text, names[i].len), i);
        }
        assert_int_equal(hn_names_get(&s, "nothing", 7), -1);
        hn_names_fini(&s);
    }
}

static void check_one(uint8_t marks, const char *text, int from, int to) {
    hn_names s = {0};
    hn_name_match m = {0};
    assert_true(hn_names_add(&s, "tok", 3, 9, marks) && hn_names_finish(&s));
    bool found = hn_names_find(&s, text, 0, strlen(text), true, NULL, &m);
    if (found != (from >= 0) || (found && ((int)m.from != from || (int)m.to != to)))
        fail_msg("\"%s\": %d, [%zu, %zu)", text, found, m.from, m.to);
    hn_names_fini(&s);
}

static void test_marks(void **state) {
    (void)state;
    check_one(0, "a tok b", 2, 5);
    check_one(HN_NAME_EAT_LEFT, "a \xE3\x80\x80\ntok b", 1, 9);
    check_one(HN_NAME_EAT_RIGHT,
              "a tok\t \xC2\x85"
              "b",
              2, 9);
    check_one(HN_NAME_EAT_LEFT | HN_NAME_EAT_RIGHT, " tok ", 0, 5);
    check_one(HN_NAME_SINGLE_WORD, "atok tok", 5, 8);
    check_one(HN_NAME_SINGLE_WORD, "tok\xCC\x81 tok-", 6, 9); /* a mark belongs to the word */
    check_one(HN_NAME_SINGLE_WORD, "tok1 _tok étok", -1, 0);
    check_one(HN_NAME_SPECIAL, "toktok", 0, 3);
}

/* White space in the match of one name is not in that of the next. */
static void test_eaten_once(void **state) {
    (void)state;
    hn_names s = {0};
    hn_name_match m;
    assert_true(hn_names_add(&s, "<", 1, 0, HN_NAME_EAT_RIGHT) && hn_names_add(&s, ">", 1, 1, HN_NAME_EAT_LEFT) &&
                hn_names_finish(&s));
    assert_true(hn_names_find(&s, "<  >", 0, 4, false, NULL, &m) && m.to == 3);
    assert_true(hn_names_find(&s, "<  >", m.to, 4, false, NULL, &m) && m.from == 3 && m.to == 4);
    assert_false(hn_names_find(&s, "<  >", m.to, 4, false, NULL, &m));
    hn_names_fini(&s);
    assert_false(hn_names_find(&s, "<", 0, 1, false, NULL, &m)); /* no names at all */
}

/* Half a character is not a name: matched inside a character, it would leave the other half. */
static void test_half_characters(void **state) {
    (void)state;
    hn_names s = {0};
    hn_name_match m;
    assert_true(hn_names_add(&s, "\xA9", 1, 0, 0) && hn_names_add(&s, "\xC3", 1, 1, 0) &&
                hn_names_add(&s, "", 0, 2, 0) && hn_names_add(&s, "\xC3\xA9", 2, 3, 0) && hn_names_finish(&s));
    assert_true(hn_names_find(&s, "a\xC3\xA9", 0, 3, true, NULL, &m) && m.id == 3);
    assert_false(hn_names_find(&s, "\xC3\xA8", 0, 2, true, NULL, &m));
    hn_names_fini(&s);
}

static void test_no_memory(void **state) {
    (void)state;
    int failed = 0;
    for (int64_t after = 0; after < 20; after++) {
        hn_names s = {0};
        bool ok = true;
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        for (int i = 0; i < 10 && ok; i++) {
            char name[8];
            ok = hn_names_add(&s, name, (size_t)snprintf(name, sizeof name, "<%d>", i), i, 0);
        }
        ok = ok && hn_names_finish(&s);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        failed += !ok;
        hn_names_fini(&s);
    }
    assert_in_range(failed, 10, 19);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_definition), cmocka_unit_test(test_marks),     cmocka_unit_test(test_eaten_once),
        cmocka_unit_test(test_half_characters),    cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
