/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_model_test.c - a draft model's logits equal those of a fresh evaluation, bit for bit, whatever was accepted before, and no
 * token is evaluated twice; draws follow the distribution that their candidates carry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/draft_model_for_tests.h"
#include "sample/chi_square.h"

static void test_rounds(void **state) {
    (void)state;
    check_rounds("model:" MODEL, VOCAB, light() ? 12 : 60);
    check_rounds("model:" MODEL ",depth=1", VOCAB, light() ? 4 : 20);
    check_rounds("model:" MODEL ",depth=3", WIDEST, light() ? 4 : 20); /* a padded target */
}

/* Rounds with another draft model than MODEL. */
static void check_model(const char *path) {
    char spec[700];
    reference_close();
    reference_open(path);
    for (int depth = 1; depth <= DEPTH; depth += DEPTH - 1) {
        snprintf(spec, sizeof spec, "model:%s,depth=%d", path, depth);
        check_rounds(spec, VOCAB, light() ? 12 : 60);
    }
    reference_close();
    reference_open(MODEL);
}

/* Draft models with a window of 16 rows: rows that a round rewinds still exist; rows that a text loses are computed again. */
static void test_windows(void **state) {
    (void)state;
    static const char *const paths[] = {HUNCH_TEST_DATA "/goldens/gemma3_text-local",
                                        HUNCH_TEST_DATA "/goldens/mistral-sliding"};
    for (int i = 0; i < 2; i++) check_model(paths[i]);
}

/* Draft models with states, which cannot be rewound: of a round's drafts they keep what was accepted. */
static void test_states(void **state) {
    (void)state;
    static const char *const paths[] = {HUNCH_TEST_DATA "/goldens/qwen3_5-dense", HUNCH_TEST_DATA "/goldens/qwen3_next-moe"};
    for (int i = 0; i < 2; i++) check_model(paths[i]);
}

/* A round whose end the drafter did not observe is dropped. */
static void test_unobserved(void **state) {
    (void)state;
    static story s;
    story *const all[1] = {&s};
    rig r = rig_of("model:" MODEL, VOCAB);
    story_begin(&s, &r, 0, VOCAB, &GREEDY, 20);
    for (int accepted = 0; accepted <= DEPTH; accepted++) {
        draft_round(&r, all, 1, DEPTH);
        check_round(&s);
        end_round(&r, &s, s.chain, accepted, accepted < DEPTH ? (s.chain[accepted] + 1) % VOCAB : 5, false);
        assert_int_equal(r.d.ops->valid_rows(&r.d, 0), s.n - accepted - 1); /* rows certain until then */
        s.expected_rows = rows_of(&r, &s);
    }
    /* called twice for one level: the same drafts, not a wrong row */
    draft_round(&r, all, 1, 2);
    s.expected_rows = rows_of(&r, &s);
    draft_round(&r, all, 1, DEPTH);
    check_round(&s);
    assert_int_equal(propose_once(&r, &s, DEPTH, 9), 0); /* deeper than its depth */
    story_end(&s, &r);
    rig_close(&r);
}

/* ---- shared trees and limits ----------------------------------------------------------------------------------------------- */

static void test_room(void **state) {
    (void)state;
    static story s;
    story *const all[1] = {&s};
    rig r = rig_of("model:" MODEL, VOCAB);
    story_begin(&s, &r, 0, VOCAB, &GREEDY, 20);
    draft_round(&r, all, 1, 3);
    /* without a row to spend: nothing, and no pass; shared rows cost nothing */
    hn_tree_reset(&s.tree, s.token[s.n - 1], HN_TREE_ROWS);
    cut_text(&r, &s, s.n);
    assert_int_equal(propose_once(&r, &s, 0, 0), 0);
    assert_int_equal(rows_of(&r, &s), s.n - 1);
    int row = 0;
    for (int i = 0; i < 2; i++) row = hn_tree_add(&s.tree, row, s.chain[i], OTHER, 0.5f);
    hn_tree_add(&s.tree, row, (s.chain[2] + 1) % VOCAB, OTHER, 0.5f);
    assert_int_equal(propose_once(&r, &s, 0, 0), 1);
    assert_int_equal(propose_once(&r, &s, 1, 0), 1);
    assert_int_equal(propose_once(&r, &s, 2, 0), 0); /* the row is of another token */
    assert_int_equal(s.tree.n_rows, 4);
    assert_int_equal(s.tree.n_candidates, 5);
    assert_true(hn_tree_valid(&s.tree));
    /* a drawn candidate is not even drawn if only a shared row could take it */
    s.drawn = true;
    cut_text(&r, &s, s.n);
    assert_int_equal(propose_once(&r, &s, 0, 0), 0);
    assert_int_equal(rows_of(&r, &s), s.n - 1);
    /* a full tree */
    s.drawn = false;
    hn_tree_reset(&s.tree, s.token[s.n - 1], 1);
    assert_int_equal(propose_once(&r, &s, 0, 5), 0);
    story_end(&s, &r);
    rig_close(&r);
}

/* Nothing is drafted beyond the context, nor after ids that the draft model does not have. */
static void test_limits(void **state) {
    (void)state;
    static story s;
    rig r = rig_of("model:" MODEL, WIDEST);
    story_begin(&s, &r, 0, WIDEST, &GREEDY, CONTEXT - 1);
    hn_tree_reset(&s.tree, s.token[s.n - 1], HN_TREE_ROWS);
    assert_int_equal(propose_once(&r, &s, 0, 9), 1);
    assert_int_equal(propose_once(&r, &s, 1, 9), 1);
    assert_int_equal(propose_once(&r, &s, 2, 9), 0);
    s.token[s.n++] = 3;
    s.token[s.n++] = 4;
    assert_int_equal(propose_once(&r, &s, 0, 9), 0);
    s.expected_rows = s.n;
    cut_text(&r, &s, 30);
    s.token[s.n++] = VOCAB + 3;
    hn_tree_reset(&s.tree, s.token[s.n - 1], HN_TREE_ROWS);
    assert_int_equal(propose_once(&r, &s, 0, 9), 0);
    assert_int_equal(r.d.ops->valid_rows(&r.d, 0), 29);
    story_end(&s, &r);
    rig_close(&r);
}

/* ---- drawn drafts -------------------------------------------------------------------------------------------------------------- */

/* Noise that checks its keys. */
typedef struct key_check {
    const story *s;
    int draws;
} key_check;

static double check_key(void *ctx, const hn_random_key *key) {
    key_check *w = ctx;
    assert_int_equal(key->seed, w->s->sampler.params.seed);
    assert_int_equal(key->position, w->s->n - 1);
    assert_int_equal(key->purpose, HN_PURPOSE_PROPOSAL);
    assert_int_equal(key->drafter, MODEL_INDEX);
    assert_int_equal(key->number, w->s->levels - 1);
    w->draws++;
    return hn_random_uniform(key);
}

/* q of each candidate is the distribution of the same parameters after the row's own path. */
static void check_dists(story *s) {
    for (int k = 0; k < s->drafted; k++) {
        const hn_candidate *c = &s->tree.candidate[k];
        const hn_history h = {s->token, s->n, s->n_prompt, s->chain, k};
        float dense[VOCAB] = {0}, most = 0;
        hn_dist dist;
        hn_sampler_dist(&s->sampler, s->logits[k], &h, &dist);
        for (int i = 0; i < dist.n; i++) {
            dense[dist.id[i]] = dist.weight[i];
            most = fmaxf(most, dist.weight[i]);
        }
        assert_non_null(c->q);
        for (int i = 0; i < s->vocab; i++) assert_true(hn_proposal_weight(c->q, i) == dense[i]);
        assert_true(hn_proposal_weight(c->q, c->token) > 0 && !c->without);
        assert_true(fabs((double)c->estimate - (double)most / dist.sum) < 1e-6);
        for (int j = 0; j < k; j++) assert_ptr_not_equal(c->q, s->tree.candidate[j].q);
    }
}

static void test_drawn(void **state) {
    (void)state;
    static story s[2];
    story *const all[2] = {&s[0], &s[1]};
    const hunch_sampling with_penalties = {.temperature = 0.8, .top_p = 1, .presence_penalty = 1.5, .seed = 77};
    rig r = rig_of("model:" MODEL, VOCAB);
    story_begin(&s[0], &r, 0, VOCAB, &WARM, 17);
    story_begin(&s[1], &r, 1, VOCAB, &with_penalties, 5);
    for (int round = 0; round < (light() ? 4 : 20); round++) {
        for (int i = 0; i < 2; i++) s[i].drawn = true;
        draft_round(&r, all, 2, DEPTH);
        for (int i = 0; i < 2; i++) {
            check_round(&s[i]);
            check_dists(&s[i]);
            end_round_at_random(&r, &s[i]);
        }
    }
    for (int i = 0; i < 2; i++) story_end(&s[i], &r);
    rig_close(&r);
}

static void test_draws_follow_the_dist(void **state) {
    (void)state;
    static story s;
    story *const all[1] = {&s};
    const long rounds = light() ? 300 : 3000;
    long counts[VOCAB] = {0};
    double p[VOCAB] = {0};
    key_check w = {&s, 0};
    hn_dist dist;
    rig r = rig_of("model:" MODEL, VOCAB);
    story_begin(&s, &r, 0, VOCAB, &HOT, 12);
    s.drawn = true;
    draft_round(&r, all, 1, 1);
    hn_sampler_dist(&s.sampler, s.logits[0], &(hn_history){s.token, s.n, s.n_prompt, NULL, 0}, &dist);
    for (int i = 0; i < dist.n; i++) p[dist.id[i]] = (double)dist.weight[i] / dist.sum;
    s.sampler.rng = (hn_rng){.uniform = check_key, .ctx = &w};
    for (long i = 0; i < rounds; i++) {
        s.sampler.params.seed = (uint64_t)i;
        s.expected_rows = s.n;
        draft_round(&r, all, 1, 1);
        counts[s.tree.candidate[0].token]++;
    }
    assert_int_equal(w.draws, rounds);
    assert_true(chi_square_fits(counts, p, VOCAB, rounds));
    s.expected_rows = s.n;
    draft_round(&r, all, 1, DEPTH); /* the keys of later levels */
    story_end(&s, &r);
    rig_close(&r);
}

/* ---- prefixes --------------------------------------------------------------------------------------------------------- */

/* Computes the target's rows of the text but its newest token, before the draft model's, as in an engine. */
static void target_reads(rig *r, const story *s) {
    hunch_error err = {0};
    for (int rows = s->n - 1, m; rows > 0; rows -= m) {
        m = rows < HN_MAX_ROWS ? rows : HN_MAX_ROWS;
        ok(hn_cache_reserve(r->cache, s->seq, 0, m, &err), &err);
        hn_cache_commit(r->cache, s->seq, 0, NULL, m);
    }
    hn_cache_publish(r->cache, s->seq, s->token, (int[MODEL_ID + 1]){s->n - 1, 0, r->d.ops->valid_rows(&r->d, s->seq)});
}

/* A text that shares a prefix with another one begins with its rows, the draft model's too, and with its state. */
static void check_restored(const char *spec) {
    static story a, b;
    story *const first[1] = {&a}, *const second[1] = {&b};
    hunch_error err = {0};
    rig r = rig_of(spec, VOCAB);
    story_begin(&a, &r, 0, VOCAB, &GREEDY, 200);
    target_reads(&r, &a);
    draft_round(&r, first, 1, DEPTH);
    end_round(&r, &a, NULL, 0, 1, true);
    const int valid[MODEL_ID + 1] = {a.n - 2, 0, r.d.ops->valid_rows(&r.d, 0)};
    hn_cache_publish(r.cache, 0, a.token, valid);
    for (int rest = 0; rest < 2; rest++) { /* while the other still runs, and when it has ended */
        story_begin(&b, &r, 1, VOCAB, &WARM, 1);
        memcpy(b.token, a.token, sizeof a.token);
        b.n = b.n_prompt = 180;
        b.token[170] = (b.token[170] + 1) % VOCAB;
        hn_cache_restore(r.cache, 1, b.token, b.n - 1);
        b.expected_rows = rows_of(&r, &b);
        assert_int_equal(b.expected_rows, 128);
        const hn_begin again = {.seq = 1, .text = {b.token, b.n, b.n}, .rows_restored = b.expected_rows};
        ok(r.d.ops->begin(&r.d, &again, 1, &err), &err);
        assert_int_equal(r.d.ops->valid_rows(&r.d, 1), b.expected_rows);
        draft_round(&r, second, 1, DEPTH);
        check_round(&b);
        end_round_at_random(&r, &b);
        cut_text(&r, &b, 40); /* into a shared page, which is not changed */
        draft_round(&r, second, 1, DEPTH);
        check_round(&b);
        story_end(&b, &r);
        if (!rest) story_end(&a, &r);
        assert_true(hn_cache_valid(r.cache));
    }
    rig_close(&r);
}

static void test_restored(void **state) {
    (void)state;
    check_restored("model:" MODEL);
    reference_close();
    reference_open(HUNCH_TEST_DATA "/goldens/qwen3_5-dense");
    check_restored("model:" HUNCH_TEST_DATA "/goldens/qwen3_5-dense");
    reference_close();
    reference_open(MODEL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),   cmocka_unit_test(test_windows),    cmocka_unit_test(test_unobserved),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_drawn),      cmocka_unit_test(test_draws_follow_the_dist),
        cmocka_unit_test(test_restored),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
