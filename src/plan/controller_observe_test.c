/* SPDX-License-Identifier: Apache-2.0 */
/* controller_observe_test.c - what the controller learns of one round's record, where drafters agree: a path is followed once, a trial is
 * charged for rows that its drafter alone proposed, and drafts that were not reached are no outcomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "fixture.h"
#include "plan/controller_private.h"

enum { FIRST, SECOND, DRAFTERS };

static hn_controller *open(void) {
    static const hn_draft_cost kinds[DRAFTERS] = {HN_COST_PER_ROUND, HN_COST_PER_ROUND};
    hn_controller *c;
    must(hn_controller_open(&c, kinds, DRAFTERS, 1, err));
    return c;
}

/* Two drafters propose token 1 and then 2; the first alone 3 and, below it, 4. */
typedef struct made {
    hn_tree t;
    int16_t path[2], wrong, below;
} made;

static void make(made *m) {
    hn_tree_reset(&m->t, 9, HN_TREE_ROWS);
    m->path[0] = (int16_t)hn_tree_add(&m->t, 0, 1, FIRST, .5f);
    m->wrong = (int16_t)hn_tree_add(&m->t, 0, 3, FIRST, .5f);
    hn_tree_add(&m->t, 0, 3, FIRST, .5f); /* again, in the same row */
    hn_tree_add(&m->t, 0, 1, SECOND, .5f);
    m->path[1] = (int16_t)hn_tree_add(&m->t, m->path[0], 2, FIRST, .5f);
    hn_tree_add(&m->t, m->path[0], 2, SECOND, .5f);
    m->below = (int16_t)hn_tree_add(&m->t, m->wrong, 4, FIRST, .5f);
}

static double tried(const hn_controller *c, int drafter) {
    double sum = 0;
    for (int at = 0; at < HN_ACCEPT_DEPTHS; at++)
        for (int bin = 0; bin < HN_ACCEPT_CLASSES; bin++) sum += (double)c->all.count[drafter][at][bin].tried;
    return sum;
}

static void test_outcomes(void **state) {
    (void)state;
    static made m;
    static hn_round_drafts r;
    hn_controller *c = open();
    make(&m);
    hn_round_drafts_make(&r, &m.t, m.path, 1, false); /* 2 was wrong */
    hn_controller_observe(c, 0, &r);
    assert_true(fabs(tried(c, FIRST) - 4) < .02); /* 1, 3, 3 and 2: each counts a little less than the one after it */
    assert_true(fabs(tried(c, SECOND) - 2) < .02);
    hn_controller_close(&c);
}

/* The tree as it was before a cut is followed by one step for each token. */
static void test_shadow(void **state) {
    (void)state;
    static made m;
    static hn_round_drafts r;
    hn_controller *c = open();
    hn_plan_last_tree *w = &c->text[0].last_tree;
    make(&m);
    w->tree = m.t;
    for (int row = 0; row < m.t.n_rows; row++) w->kept[row] = true;
    w->row = 0;
    hn_round_drafts_make(&r, &m.t, m.path, 2, false);
    hn_controller_observe(c, 0, &r);
    assert_int_equal(w->row, m.path[1]);
    hn_controller_close(&c);
}

static void test_trial(void **state) {
    (void)state;
    static made m;
    static hn_round_drafts r;
    for (int drafter = 0; drafter < DRAFTERS; drafter++) {
        hn_controller *c = open();
        make(&m);
        for (int i = 0; i <= HN_PLAN_MOST_ROWS; i++) c->seconds[i] = 100;
        c->drafter[drafter].why = HN_CALLED_TRIED;
        c->text[0].called[drafter] = true;
        c->n_report = 1;
        c->value = 2;
        c->each_row = .125;
        c->drafter[drafter].trial_budget = 1;
        if (drafter == FIRST) m.path[0] = m.wrong, m.path[1] = m.below; /* its own, two rows; both accepted */
        hn_round_drafts_make(&r, &m.t, m.path, 2, false);
        hn_controller_observe(c, 0, &r);
        const double want = drafter == FIRST ? 1 + 2 / c->value - 2 * c->each_row : 1;
        assert_true(fabs(c->drafter[drafter].trial_budget - want) < 1e-12);
        assert_int_equal(c->text[0].result[drafter].got, 2);
        hn_controller_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outcomes), cmocka_unit_test(test_shadow), cmocka_unit_test(test_trial)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
