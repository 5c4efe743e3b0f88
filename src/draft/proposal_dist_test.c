/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_dist_test.c - distributions that list their ids, distributions of all ids and distributions of the first few give the same
 * weights for a token, for ranges and for lists, compared with plain loops over a whole vocabulary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "draft/proposal_dist.h"

enum { VOCAB = 3000, ROOM = 256 };

typedef struct sample {
    hn_proposal_dist dist;
    int32_t id[VOCAB];
    float weight[VOCAB], whole[VOCAB]; /* whole: by token */
} sample;

/* Every `gap`-th token or so is listed; 0: the first `n` ids without a list. */
static void sample_make(sample *s, uint64_t *seed, int gap, int n) {
    memset(s->whole, 0, sizeof s->whole);
    int listed = 0;
    for (int i = 0; i < VOCAB; i++) {
        if (gap ? hn_splitmix(seed) % (uint64_t)gap != 0 : i >= n) continue;
        s->whole[i] = (float)(hn_splitmix(seed) % 100);
        s->id[listed] = i;
        s->weight[listed++] = s->whole[i];
    }
    s->dist = (hn_proposal_dist){listed, gap ? s->id : NULL, s->weight};
}

static void check_one(const sample *s) {
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) sum += (double)s->whole[i];
    for (int i = 0; i < VOCAB; i++) {
        const int at = hn_proposal_find(&s->dist, i);
        assert_true(hn_proposal_weight(&s->dist, i) == s->whole[i]);
        assert_true(at < 0 ? s->whole[i] == 0 : s->weight[at] == s->whole[i] && (!s->dist.id || s->id[at] == i));
        assert_true(fabs(hn_proposal_probability(&s->dist, i) - (sum > 0 ? (double)s->whole[i] / sum : 0)) < 1e-12);
    }
    assert_int_equal(hn_proposal_find(&s->dist, -1), -1);
    assert_int_equal(hn_proposal_find(&s->dist, VOCAB), -1);
    assert_int_equal(hn_proposal_find(&s->dist, INT32_MAX), -1);
}

/* Ranges one after the other, some skipped. */
static void check_ranges(const sample *s, uint64_t *seed) {
    float room[ROOM];
    int from = 0;
    for (int first = 0, n; first < VOCAB; first += n) {
        n = 1 + (int)(hn_splitmix(seed) % ROOM);
        if (n > VOCAB - first) n = VOCAB - first;
        if (hn_splitmix(seed) % 4 == 0) continue;
        memset(room, 0xFF, sizeof room);
        assert_memory_equal(hn_proposal_range(&s->dist, &from, first, n, room), s->whole + first, (size_t)n * sizeof *room);
    }
}

/* Ascending lists, close and far apart. */
static void check_lists(const sample *s, uint64_t *seed) {
    for (int gap = 1; gap < 2000; gap *= 5) {
        float room[ROOM];
        int from = 0;
        for (int token = 0; token < VOCAB;) {
            int32_t list[ROOM];
            int n = 0;
            for (; n < ROOM && token < VOCAB; token += 1 + (int)(hn_splitmix(seed) % (uint64_t)gap)) list[n++] = token;
            const float *w = hn_proposal_of(&s->dist, &from, list, n, room);
            for (int j = 0; j < n; j++) assert_true(w[j] == s->whole[list[j]]);
        }
    }
}

static void test_all_forms_agree(void **state) {
    (void)state;
    static const int gaps[] = {0, 1, 2, 7, 300, 100000}, firsts[] = {0, 1, 1999, VOCAB};
    static sample s;
    uint64_t seed = 11;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 4; k++) {
            sample_make(&s, &seed, gaps[i], firsts[k]);
            check_one(&s);
            check_ranges(&s, &seed);
            check_lists(&s, &seed);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_forms_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
