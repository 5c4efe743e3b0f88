/* SPDX-License-Identifier: Apache-2.0 */
/* feed_test.c - the rows that are fed to drafters that read the target: every committed row once, in order, with its next token, the
 * rows of all texts of a pass together, and the features that each drafter requested, no others: equal to those of a plain pass over
 * the same text, bit for bit, whatever tree the row was accepted from. Also the likeliest tokens after rows that they observe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"

enum { SEQS = 3, CONTEXT = 64, HIDDEN = 64, MOST_FEATURES = 3, LISTENERS = 2 };

static hn_backend *backend;
static const struct {
    hn_feature_set set;
    int n, boundary[MOST_FEATURES];
} wants[LISTENERS] = {{{{1u << 0 | 1u << 3, 0, 0, 0}, true}, 3, {0, 3, HN_FEATURE_POST_NORM}},
                      {{{1u << 2 | 1u << 3, 0, 0, 0}, false}, 2, {2, 3}}};

static struct {
    int calls, seqs; /* of this round; bit set of the texts of the last call */
    struct {
        int n, from_tree;
        int32_t token[CONTEXT], next[CONTEXT];
        float feature[CONTEXT][MOST_FEATURES][HIDDEN];
    } fed[SEQS];
} fed_to[LISTENERS];

static void keep_rows(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f) {
    const int me = d->index;
    assert_int_equal(f->n, wants[me].n);
    fed_to[me].calls++;
    fed_to[me].seqs = 0;
    for (int i = 0; i < n; i++) {
        const int seq = rows[i].seq, at = fed_to[me].fed[seq].n++;
        fed_to[me].seqs |= 1 << seq;
        assert_int_equal(rows[i].position, at);
        fed_to[me].fed[seq].token[at] = rows[i].token;
        fed_to[me].fed[seq].next[at] = rows[i].next_token;
        fed_to[me].fed[seq].from_tree += rows[i].node > 0;
        for (int k = 0; k < f->n; k++)
            memcpy(fed_to[me].fed[seq].feature[at][k],
                   backend->read(backend, (hn_ticket){0}, hn_at(f->buffer[k], sizeof(float) * (size_t)rows[i].feature_row * (size_t)f->ld),
                                 sizeof(float) * HIDDEN),
                   sizeof(float) * HIDDEN);
    }
}

/* The same text in one plain chunk. */
static void check_against_plain(hunch_engine *e, int seq) {
    hn_row rows[HN_MAX_ROWS];
    const int id = e->parallel, n = fed_to[0].fed[seq].n;
    for (int i = 0; i < n; i++) rows[i] = (hn_row){.token = fed_to[0].fed[seq].token[i], .parent = (int16_t)(i - 1), .feature = true};
    hn_cache_seq_begin(e->cache, id);
    must(hn_pass_run(e->runner, rows, n, &id, 1, err));
    for (int i = 0; i < n; i++)
        for (int l = 0; l < LISTENERS; l++)
            for (int k = 0; k < wants[l].n; k++)
                assert_memory_equal(fed_to[l].fed[seq].feature[i][k],
                                    hn_pass_feature(e->runner, wants[l].boundary[k], i), sizeof(float) * HIDDEN);
    hn_cache_seq_end(e->cache, id);
}

/* Makes all drafters of the engine record what is fed, as if they had requested features when they were opened. */
static void listen(hunch_engine *e, hn_drafter_ops listening[LISTENERS]) {
    hn_feature_set all = {{0}, false};
    assert_int_equal(e->n_drafters, LISTENERS);
    for (int l = 0; l < LISTENERS; l++) {
        listening[l] = *e->drafter[l].ops;
        listening[l].feed = keep_rows;
        e->drafter[l].ops = &listening[l];
        e->drafter[l].needs.features = wants[l].set;
        all.layers[0] |= wants[l].set.layers[0];
        all.post_norm |= wants[l].set.post_norm;
    }
    e->feeds = true;
    hn_runner_close(&e->runner);
    must(hn_runner_open(&e->runner, &e->model->target, e->cache, 0, CONTEXT, &all, err));
}

/* A round of one pass: every drafter is called once, with the rows of all texts. */
static void round_of_one_pass(hunch_engine *e) {
    int running = 0;
    for (int i = 0; i < SEQS; i++) running |= (e->session[i] && hn_session_running(e->session[i])) << i;
    for (int l = 0; l < LISTENERS; l++) fed_to[l].calls = 0;
    must(hunch_engine_round(e, err));
    for (int l = 0; running && l < LISTENERS; l++) {
        assert_int_equal(fed_to[l].calls, 1);
        assert_int_equal(fed_to[l].seqs, running);
    }
}

static void check_feed(const char *draft, int chunk, bool one_pass) {
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, draft, SEQS, chunk, HUNCH_KV_DEFAULT, 16, CONTEXT);
    hn_drafter_ops listening[LISTENERS];
    hunch_session *s[SEQS];
    static const hunch_token prompt[SEQS][9] = {
        {1}, {1, 403, 407, 261, 378}, {1, 370, 432, 352, 266, 268, 388, 426, 338}};
    static const size_t len[SEQS] = {1, 5, 9};
    int from_tree = 0;
    memset(fed_to, 0, sizeof fed_to);
    backend = m->target.backend;
    listen(e, listening);
    for (int i = 0; i < SEQS; i++) {
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = prompt[i];
        r.n_prompt = len[i];
        r.max_tokens = 30;
        r.ignore_eos = true;
        must(hunch_session_open(&s[i], e, &r, err));
    }
    while (hunch_engine_running(e) > 0)
        if (one_pass)
            round_of_one_pass(e);
        else
            must(hunch_engine_round(e, err));
    for (int i = 0; i < SEQS; i++) {
        for (int l = 0; l < LISTENERS; l++) {
            assert_true(fed_to[l].fed[i].n > (int)len[i] + 10);
            assert_int_equal(fed_to[l].fed[i].n, fed_to[0].fed[i].n);
            for (int k = 0; k < fed_to[l].fed[i].n; k++) {
                assert_int_equal(fed_to[l].fed[i].token[k], s[i]->text.token[k]);
                assert_int_equal(fed_to[l].fed[i].next[k], s[i]->text.token[k + 1]);
            }
        }
        check_against_plain(e, i);
        from_tree += fed_to[0].fed[i].from_tree;
        hunch_session_close(&s[i]);
    }
    assert_true(from_tree > 10);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void test_chains(void **state) {
    (void)state;
    check_feed("forced,accept=0.7,depth=4,seed=1+ngram,depth=2", 64, true);
}
static void test_trees(void **state) {
    (void)state;
    check_feed("forced,accept=0.7,depth=5,tree=random,seed=2+ngram,depth=2", 3, false);
}

static struct {
    int n;
    int32_t token[CONTEXT];
} observed;

static void keep_observed(hn_drafter *d, const hn_observe *o, int n) {
    (void)d;
    for (; n > 0; n--, o++) {
        for (int i = 0; i < o->n_accepted; i++) observed.token[observed.n++] = o->tree->token[o->path[i]];
        observed.token[observed.n++] = o->next_token;
    }
}

/* When a text ends inside an accepted block, drafters observe only the emitted tokens, nothing of what the target would have emitted
 * after them: stores that outlive the text would learn it. */
static void test_end_inside_a_block(void **state) {
    (void)state;
    static const hunch_token prompt[] = {1, 403, 407, 261, 378};
    static const char *const stops[] = {" girl"};
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "forced,accept=1,depth=15", 1, 64, HUNCH_KV_DEFAULT, 16, CONTEXT);
    hn_drafter_ops listening = *e->drafter[0].ops;
    hunch_session *s = NULL;
    hunch_request r;
    listening.observe = keep_observed;
    e->drafter[0].ops = &listening;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.stop = stops;
    r.n_stop = 1;
    must(hunch_session_open(&s, e, &r, err));
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    assert_int_equal(s->stats.finish, HUNCH_FINISH_STOP);
    assert_int_equal(s->stats.accepted, hn_session_emitted(s) - 1); /* all but the prompt's own */
    assert_int_equal(observed.n, hn_session_emitted(s) - 1);
    assert_memory_equal(observed.token, s->text.token + s->text.n_prompt + 1, (size_t)observed.n * sizeof *observed.token);
    hunch_session_close(&s);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

enum { LIKELIEST = 5 };
static hunch_engine *looked_at;
static int whole, alone, not_accepted; /* rows with all logits, with the best alone; those of both that were not accepted */

/* The lists of a tree are those of its rows in the pass. */
static void check_likeliest(hn_drafter *d, const hn_observe *o, int n) {
    (void)d;
    for (; n > 0; n--, o++) {
        assert_int_equal(o->n_best, LIKELIEST);
        not_accepted += o->tree->n_rows - 1 - o->n_accepted;
        for (int i = 0; i < o->tree->n_rows; i++) {
            const int row = looked_at->session[o->seq]->round.first_row + i;
            const float *l = hn_pass_logits(looked_at->runner, row);
            const int32_t *id = o->best + i * LIKELIEST;
            ++*(l ? &whole : &alone);
            assert_int_equal(id[0], hn_pass_argmax(looked_at->runner, row));
            for (int k = 1; l && k < LIKELIEST; k++) assert_true(l[id[k]] <= l[id[k - 1]]);
            for (int v = 0, better = 0; l && v < looked_at->model->target.arch.vocab; v++)
                assert_true((better += l[v] > l[id[LIKELIEST - 1]]) < LIKELIEST);
        }
    }
}

/* Drafters that need the likeliest tokens get those after every row of every tree, of texts of one pass with and without all logits. */
static void test_likeliest_tokens(void **state) {
    (void)state;
    static const hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = looked_at = open_engine(m, "forced,accept=0.7,depth=5,tree=random,seed=2", SEQS, 64, HUNCH_KV_DEFAULT, 16, CONTEXT);
    hn_drafter_ops listening = *e->drafter[0].ops;
    hunch_session *s[SEQS];
    listening.observe = check_likeliest;
    e->drafter[0].ops = &listening;
    e->most.best = LIKELIEST;
    hn_runner_close(&e->runner);
    must(hn_runner_open_for(&e->runner, &m->target, e->cache, 0, CONTEXT, &e->most, NULL, err));
    for (int i = 0; i < SEQS; i++) {
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = prompt;
        r.n_prompt = sizeof prompt / sizeof *prompt - (size_t)i;
        r.max_tokens = 30;
        r.ignore_eos = true;
        r.sampling.temperature = i == 1 ? 0.8 : 0;
        r.logprobs = i == 1;
        must(hunch_session_open(&s[i], e, &r, err));
    }
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    assert_true(whole > 20 && alone > 40 && not_accepted > 20);
    for (int i = 0; i < SEQS; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_likeliest_tokens), cmocka_unit_test(test_chains), cmocka_unit_test(test_trees),
                                       cmocka_unit_test(test_end_inside_a_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
