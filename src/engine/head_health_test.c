/* SPDX-License-Identifier: Apache-2.0 */
/* head_health_test.c - heads and draft models that are nearly never right, or always, by what rounds showed of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/drafting.h"

enum { TOKENS = 600 };

static void feed(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f) {
    (void)d, (void)rows, (void)n, (void)f;
}
static double pass_s(const hn_drafter *d) {
    (void)d;
    return 0;
}
static const hn_drafter_ops of_head = {.feed = feed, .pass_s = pass_s}, of_model = {.pass_s = pass_s}, of_text;
static char name_head[] = "eagle3:head", name_model[] = "model:small", name_text[] = "ngram";

typedef struct text {
    hunch_model model;
    hn_drafter drafter[2]; /* a head or a draft model, and another */
    hunch_engine engine;
    hunch_session session;
    int32_t token[TOKENS];
} text;

static void text_begin(text *t) {
    memset(&t->session, 0, sizeof t->session);
    t->model.path = "model.gguf";
    t->drafter[0] = (hn_drafter){.ops = &of_head, .name = name_head};
    t->drafter[1] = (hn_drafter){.ops = &of_text, .name = name_text};
    t->engine.model = &t->model;
    t->engine.drafter = t->drafter;
    t->engine.n_drafters = 2;
    t->session.engine = &t->engine;
    t->session.request.drafters = HUNCH_ALL_DRAFTERS;
    t->session.text.token = t->token;
    t->session.text.n = TOKENS;
}

/* Rounds in which both propose, and one in `every` is right; 0: none. */
static void rounds(text *t, int n, int every) {
    for (int i = 0; i < n; i++) {
        hn_tree *tree = &t->session.round.tree;
        hn_tree_reset(tree, 1, HN_TREE_ROWS);
        const int row = hn_tree_add(tree, 0, 2, 0, 0.5f);
        assert_true(row > 0 && hn_tree_add(tree, 0, 3, 1, 0.5f) > 0);
        const int16_t path[] = {(int16_t)row};
        hn_round_drafts_make(&t->session.round.drafts, tree, path, every > 0 && i % every == 0, false);
        hn_watch_heads(&t->session);
    }
}

static void text_end(text *t) {
    hn_name_list_fini(&t->engine.notes);
}

static void test_wrong(void **state) {
    static text t;
    (void)state;
    text_begin(&t);
    rounds(&t, 63, 0);
    assert_true(t.session.request.drafters == HUNCH_ALL_DRAFTERS && !hunch_engine_note(&t.engine, 0));
    rounds(&t, 1, 0);
    assert_true(t.session.request.drafters == (HUNCH_ALL_DRAFTERS & ~1u)); /* the other still drafts */
    assert_non_null(
        strstr(hunch_engine_note(&t.engine, 0), "eagle3:head drafts no more for a text: 0 of its first 64"));
    assert_non_null(strstr(hunch_engine_note(&t.engine, 0), "hunch check model.gguf --draft eagle3:head"));
    text_begin(&t); /* of the next text it is found again, and not said */
    rounds(&t, 70, 0);
    assert_true(t.session.request.drafters == (HUNCH_ALL_DRAFTERS & ~1u) && !hunch_engine_note(&t.engine, 1));
    text_end(&t);
}

/* A draft model too; of that a head's check knows nothing, and it may be as good as the model itself. */
static void test_draft_model(void **state) {
    static text t, good;
    (void)state;
    text_begin(&t);
    t.drafter[0] = (hn_drafter){.ops = &of_model, .name = name_model};
    rounds(&t, 63, 0);
    assert_true(t.session.request.drafters == HUNCH_ALL_DRAFTERS && !hunch_engine_note(&t.engine, 0));
    rounds(&t, 1, 0);
    assert_true(t.session.request.drafters == (HUNCH_ALL_DRAFTERS & ~1u));
    assert_non_null(strstr(hunch_engine_note(&t.engine, 0), "model:small drafts no more for a text: 0 of its first 64"));
    assert_null(strstr(hunch_engine_note(&t.engine, 0), "hunch check"));
    text_end(&t);
    text_begin(&good);
    good.drafter[0] = t.drafter[0];
    for (int i = 0; i < TOKENS; i++) good.token[i] = i;
    rounds(&good, 300, 1);
    assert_true(good.session.request.drafters == HUNCH_ALL_DRAFTERS && !hunch_engine_note(&good.engine, 0));
    text_end(&good);
}

/* One in 40 is .025: enough. */
static void test_seldom_right(void **state) {
    static text t;
    (void)state;
    text_begin(&t);
    rounds(&t, 400, 40);
    assert_true(t.session.request.drafters == HUNCH_ALL_DRAFTERS && !hunch_engine_note(&t.engine, 0));
    text_end(&t);
}

static void test_always_right(void **state) {
    static text t, repeats;
    (void)state;
    text_begin(&t);
    text_begin(&repeats);
    for (int i = 0; i < TOKENS; i++) {
        t.token[i] = i;
        repeats.token[i] = i % 50;
    }
    rounds(&t, 255, 1);
    assert_null(hunch_engine_note(&t.engine, 0));
    rounds(&t, 1, 1);
    assert_non_null(
        strstr(hunch_engine_note(&t.engine, 0), "right in 256 of 256 rounds of a text that does not repeat"));
    assert_true(t.session.request.drafters == HUNCH_ALL_DRAFTERS);
    rounds(&repeats, 300, 1);
    assert_null(hunch_engine_note(&repeats.engine, 0));
    text_end(&t);
    text_end(&repeats);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong), cmocka_unit_test(test_draft_model),
                                       cmocka_unit_test(test_seldom_right), cmocka_unit_test(test_always_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
