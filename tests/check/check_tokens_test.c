/* SPDX-License-Identifier: Apache-2.0 */
/* check_tokens_test.c - the operations of rounds that wait once, against what the host does elsewhere, token for token: draws against
 * sample/, accepted paths against verify/, levels of likeliest paths against draft/shape; tokens that rows take. */
#include "base/run_mode_for_tests.h"
#include "check.h"
#include "draft/shape/head_tree.h"
#include "verify/verify.h"

/* Called by all ranks. */
typedef struct call {
    hn_backend *o;
    void (*op)(const hn_exec *ex, const struct call *c);
    int n;
    hn_sample sample;
    hn_match match;
    hn_beam_level beam;
    hn_buf from, src, to, dst;
} call;

static void call_rank(void *arg, int rank, int ranks) {
    const call *c = arg;
    const hn_exec ex = {c->o->ops, c->o, rank, ranks};
    c->op(&ex, c);
}
static void sample(const hn_exec *ex, const call *c) { ex->ops->sample(ex, check_number(c->n), &c->sample); }
static void verify_match(const hn_exec *ex, const call *c) { ex->ops->verify_match(ex, &c->match); }
static void beam(const hn_exec *ex, const call *c) { ex->ops->beam(ex, &c->beam); }
static void take_tokens(const hn_exec *ex, const call *c) { ex->ops->take_tokens(ex, check_number(c->n), c->from, c->src, c->to, c->dst); }

static void free_all(hn_backend *o, const hn_buf *b, size_t n) {
    for (size_t i = 0; i < n; i++) o->mem_free(o, b[i].mem);
}
#define FREE(o, ...) free_all(o, (const hn_buf[]){__VA_ARGS__}, sizeof((const hn_buf[]){__VA_ARGS__}) / sizeof(hn_buf))

/* ---- draws ------------------------------------------------------------------------------------------------------------------ */

static hunch_sampling draw_parameters(int vocab) {
    hunch_sampling p = {.temperature = check_int(0, 5) ? 0.05 + 3 * check_unit() : 0,
                        .top_p = 1,
                        .repetition_penalty = 1,
                        .seed = hn_splitmix(&check_state)};
    if (check_int(0, 1)) p.top_k = check_int(1, vocab + 3);
    if (check_int(0, 1)) p.top_p = check_int(0, 1) ? check_unit() : check_int(0, 3) ? 0.9 + 0.1 * check_unit() : 1e-9;
    if (check_int(0, 2) == 0) p.min_p = check_int(0, 3) ? check_unit() * 0.5 : 1;
    if (p.top_p == 0) p.top_p = 1;
    return p;
}

/* Rows of any numbers: many equal ones, too. */
static void draw_logits(float *l, int vocab) {
    const int kind = check_int(0, 9);
    for (int i = 0; i < vocab; i++) {
        l[i] = 4 * check_normal();
        if (kind == 0) l[i] = (float)check_int(-3, 3);
        if (kind == 1) l[i] = check_value(NOT_FINITE);
        if (kind == 2) l[i] = check_int(0, 30) ? -INFINITY : l[i];
        if (kind == 3) l[i] = check_int(0, 1) ? NAN : -INFINITY;
        if (kind == 4) l[i] *= 100;
    }
}

static void test_sample(void **state HN_UNUSED) {
    int drawn = 0, none = 0;
    for (int round = 0; round < 60 / test_every(1, 4); round++) {
        check_ops c = check_open(check_int(1, 4), hn_isa_best(), false);
        hn_backend *o = c.o;
        const int vocab = check_int(0, 5) ? check_int(1, 700) : 5003, n = check_int(1, 24), k = check_int(1, 3), ld = vocab + 5;
        call w = {.o = o, .op = sample, .n = n};
        w.sample = (hn_sample){.draw = check_mem(o, sizeof(hn_draw) * (size_t)n), .id = check_mem(o, sizeof(int32_t) * (size_t)(n * k)),
                               .value = check_mem(o, sizeof(float) * (size_t)(n * k)), .k = k,
                               .logits = {check_mem(o, sizeof(float) * (size_t)(n * ld)), vocab, ld},
                               .scratch = check_mem(o, o->sample_scratch(o, vocab)), .token = check_mem(o, sizeof(int32_t) * (size_t)n)};
        int32_t want[24];
        for (int i = 0; i < n; i++) {
            const hunch_sampling p = draw_parameters(vocab);
            float *l = hn_host_row(w.sample.logits, i);
            hn_sampler s;
            const int32_t text[] = {1, 2, 3};
            const hn_history h = {text, check_int(1, 3), 1, text, check_int(0, 3)};
            draw_logits(l, vocab);
            assert_int_equal(hn_sampler_init(&s, &p, vocab, NULL), HUNCH_OK);
            const int32_t best = hn_vocab_ops_best()->argmax(l, vocab);
            want[i] = hn_sampler_draw(&s, l, &h, -1);
            ((int32_t *)hn_host(w.sample.id))[i * k] = best < 0 ? 0 : best;
            hn_host_f32(w.sample.value)[i * k] = best < 0 ? -INFINITY : l[best];
            ((hn_draw *)hn_host(w.sample.draw))[i] =
                (hn_draw){.seed = p.seed, .position = hn_history_position(&h), .top_p = p.top_p, .min_p = p.min_p,
                          .scale = p.temperature > 0 ? (float)(1 / p.temperature) : 0, .top_k = p.top_k};
            if (p.temperature == 0)
                for (int t = 0; t < vocab; t++) l[t] = NAN; /* is not read */
            drawn += p.temperature > 0;
            none += want[i] < 0;
            hn_sampler_fini(&s);
        }
        hn_pool_run(c.pool, call_rank, &w);
        for (int i = 0; i < n; i++)
            if (hn_host_i32(w.sample.token)[i] != want[i])
                fail_msg("row %d of %d tokens: %d, expected %d", i, vocab, hn_host_i32(w.sample.token)[i], want[i]);
        FREE(o, w.sample.draw, w.sample.id, w.sample.value, w.sample.logits.at, w.sample.scratch, w.sample.token);
        check_close(&c);
    }
    assert_true(drawn > 50 && none > 5);
}

/* ---- paths ------------------------------------------------------------------------------------------------------------------ */

enum { TREES = 5, TOKENS = 4 };

static const float *no_logits(void *ctx HN_UNUSED, int row HN_UNUSED) { return NULL; }
static int32_t token_after(void *after, int row) { return ((const int32_t *)after)[row]; }

/* A tree of few tokens; twice: some rows have the paths of others, as tokens that are known later may. */
static void draw_tree(hn_tree *t, bool twice) {
    hn_tree_reset(t, 1, check_int(1, HN_TREE_ROWS));
    while (t->n_rows < t->max_rows) {
        const int before = t->n_rows, row = check_int(0, before - 1);
        const int32_t token = check_int(0, TOKENS - 1);
        if (!twice) {
            if (t->n_candidates == HN_TREE_CANDIDATES || hn_tree_add(t, row, token, 0, 0.5f) < 0) break;
            continue;
        }
        hn_tree_add_later(t, row, (hn_token_source){{(hn_mem *)t, 0}, 0}, 0, 0.5f);
        t->token[before] = token;
        t->candidate[before - 1].token = token;
    }
}

/* The row of the longest path that the target would have said, of equal ones the first. */
static int farthest(const hn_tree *t, const int32_t *after) {
    int depth[HN_TREE_ROWS] = {0}, most = 0;
    for (int i = 1; i < t->n_rows; i++) {
        depth[i] = depth[t->parent[i]] >= 0 && after[t->parent[i]] == t->token[i] ? t->depth[i] : -1;
        most = depth[i] > depth[most] ? i : most;
    }
    return most;
}

/* What the target says after a row depends on its path alone. */
static void draw_after(const hn_tree *t, int32_t *after) {
    for (int i = 0; i < t->n_rows; i++) {
        after[i] = check_int(-1, TOKENS - 1);
        for (int k = 0; k < i && after[i] != -2; k++) {
            int a = i, b = k;
            while (a > 0 && b > 0 && t->token[a] == t->token[b]) a = t->parent[a], b = t->parent[b];
            if (a == 0 && b == 0) after[i] = after[k];
        }
    }
}

static void check_tree(hn_verifier *v, const hn_tree *t, int32_t *after, bool twice, const int32_t *out) {
    const hunch_sampling greedy = {.top_p = 1, .repetition_penalty = 1};
    const int32_t text[] = {1};
    hn_sampler s;
    hn_verdict want;
    hunch_error err;
    assert_int_equal(out[0], t->depth[farthest(t, after)]);
    int row = 0;
    for (int i = 0; i < out[0]; i++) {
        assert_int_equal(t->parent[out[2 + i]], row);
        row = out[2 + i];
        assert_int_equal(t->token[row], after[t->parent[row]]);
    }
    assert_int_equal(row, farthest(t, after));
    assert_int_equal(out[1], after[row]);
    if (twice) return;
    assert_int_equal(hn_sampler_init(&s, &greedy, TOKENS, NULL), HUNCH_OK);
    const hn_verification how = {.rule = HN_RULE_GREEDY, .sampler = &s, .committed = {text, 1, 1, NULL, 0},
                                 .rows = {no_logits, token_after, after}};
    if (hn_verify_tree(v, t, &how, &want, &err)) {
        assert_int_equal(out[1], -1);
    } else {
        assert_int_equal(want.n_accepted, out[0]);
        assert_int_equal(want.next, out[1]);
        for (int i = 0; i < out[0]; i++) assert_int_equal(want.path[i], out[2 + i]);
    }
    hn_sampler_fini(&s);
}

static void test_match(void **state HN_UNUSED) {
    hn_verifier *v;
    int deep = 0;
    assert_int_equal(hn_verifier_open(&v, TOKENS, NULL), HUNCH_OK);
    for (int round = 0; round < 200 / test_every(1, 4); round++) {
        check_ops c = check_open(check_int(1, 4), hn_isa_best(), false);
        hn_backend *o = c.o;
        static hn_tree tree[TREES];
        int32_t first[TREES], rows[TREES], parent[TREES * HN_TREE_ROWS], token[TREES * HN_TREE_ROWS], after[TREES * HN_TREE_ROWS],
            of_row[TREES * HN_TREE_ROWS], mixed[TREES * HN_TREE_ROWS];
        const bool twice = check_int(0, 1);
        const int n = check_int(1, TREES);
        int all = 0;
        for (int t = 0; t < n; t++) {
            draw_tree(&tree[t], twice);
            first[t] = all;
            rows[t] = tree[t].n_rows;
            draw_after(&tree[t], after + all);
            for (int i = 0; i < rows[t]; i++, all++) {
                parent[all] = tree[t].parent[i];
                token[all] = tree[t].token[i];
                of_row[all] = all;
            }
        }
        for (int i = all - 1; i > 0; i--) { /* gathered in any order */
            const int k = check_int(0, i), x = of_row[i];
            of_row[i] = of_row[k];
            of_row[k] = x;
        }
        for (int i = 0; i < all; i++) mixed[of_row[i]] = after[i];
        const size_t bytes = sizeof(int32_t) * (size_t)all;
        call w = {.o = o, .op = verify_match};
        w.match = (hn_match){.n = check_number(n), .first = check_put(o, first, sizeof first), .rows = check_put(o, rows, sizeof rows),
                             .parent = check_put(o, parent, bytes), .token = check_put(o, token, bytes),
                             .after = check_put(o, mixed, bytes), .of_row = check_put(o, of_row, bytes),
                             .out = check_mem(o, sizeof(int32_t) * HN_MATCH_OUT * TREES)};
        hn_pool_run(c.pool, call_rank, &w);
        for (int t = 0; t < n; t++) {
            const int32_t *out = hn_host_i32(w.match.out) + t * HN_MATCH_OUT;
            check_tree(v, &tree[t], after + first[t], twice, out);
            deep += out[0] > 1;
        }
        FREE(o, w.match.first, w.match.rows, w.match.parent, w.match.token, w.match.after, w.match.of_row, w.match.out);
        check_close(&c);
    }
    assert_true(deep > 20);
    hn_verifier_close(&v);
}

/* ---- likeliest paths --------------------------------------------------------------------------------------------------------- */

static void test_beam(void **state HN_UNUSED) {
    for (int round = 0; round < 100 / test_every(1, 4); round++) {
        check_ops c = check_open(check_int(1, 4), hn_isa_best(), false);
        hn_backend *o = c.o;
        enum { MOST = 3 * 12 };
        const int n = check_int(1, 3), k = check_int(1, 12), width = check_int(1, 12), parts = check_int(1, 2);
        hn_beam b[3] = {{0}};
        int32_t first[4] = {0}, id[MOST * 12];
        float value[MOST * 12], score[MOST], sums[MOST * 2];
        int all = 0;
        for (int t = 0; t < n; t++) { /* the parents are the frontier that a first level left */
            int32_t token[12];
            float p[12];
            assert_int_equal(hn_beam_open(&b[t], 12, 3, NULL), HUNCH_OK);
            hn_beam_start(&b[t]);
            const int parents = check_int(1, 12);
            for (int i = 0; i < parents; i++) {
                token[i] = i;
                p[i] = check_int(0, 2) ? (float)check_unit() + 1e-6f : 0.25f;
            }
            hn_beam_add(&b[t], -1, token, p, parents);
            hn_beam_advance(&b[t]);
            for (int i = 0; i < parents; i++, all++) {
                const int has = check_int(0, k);
                float v = 3 * check_normal(), step = check_int(0, 2) ? 0.7f : 0;
                double sum = 0;
                score[all] = b[t].node[b[t].frontier[i]].score;
                for (int m = 0; m < parts; m++) sum += sums[all * parts + m] = (float)(0.3 + 5 * check_unit());
                for (int m = 0; m < k; m++, v -= step) {
                    id[all * k + m] = m < has ? check_int(0, 999) : -1;
                    value[all * k + m] = m < has ? v : NAN;
                    token[m] = id[all * k + m];
                    p[m] = m < has ? (float)(exp((double)v - (double)value[all * k]) / (sum > 1 ? sum : 1)) : 0;
                }
                hn_beam_add(&b[t], b[t].frontier[i], token, p, has);
            }
            first[t + 1] = all;
        }
        const size_t lists = sizeof(int32_t) * (size_t)(all * k), out = sizeof(int32_t) * (size_t)(n * width);
        call w = {.o = o, .op = beam};
        w.beam = (hn_beam_level){.n = check_number(n), .first = check_put(o, first, sizeof first),
                                 .from = {.k = k, .id = check_put(o, id, lists), .value = check_put(o, value, lists),
                                          .sums = check_put(o, sums, sizeof(float) * (size_t)(all * parts))},
                                 .sum_parts = parts, .score = check_put(o, score, sizeof(float) * (size_t)all), .width = width,
                                 .row = check_mem(o, out), .token = check_mem(o, out), .path_score = check_mem(o, out)};
        hn_pool_run(c.pool, call_rank, &w);
        for (int t = 0; t < n; t++) {
            int at_first[12], parents = first[t + 1] - first[t];
            memcpy(at_first, b[t].frontier, sizeof(int) * (size_t)parents);
            b[t].width = width;
            hn_beam_advance(&b[t]);
            for (int i = 0; i < width; i++) {
                const int at = t * width + i, row = hn_host_i32(w.beam.row)[at];
                if (i >= b[t].n_frontier) {
                    assert_int_equal(row, -1);
                    continue;
                }
                const hn_beam_node *want = &b[t].node[b[t].frontier[i]];
                assert_true(row >= first[t] && row < first[t + 1]);
                assert_int_equal(at_first[row - first[t]], want->parent);
                assert_int_equal(hn_host_i32(w.beam.token)[at], want->token);
                assert_true(check_same(hn_host_f32(w.beam.path_score)[at], want->score));
            }
            hn_beam_close(&b[t]);
        }
        FREE(o, w.beam.first, w.beam.from.id, w.beam.from.value, w.beam.from.sums, w.beam.score, w.beam.row, w.beam.token,
             w.beam.path_score);
        check_close(&c);
    }
}

static void test_take(void **state HN_UNUSED) {
    check_ops c = check_open(3, hn_isa_best(), false);
    hn_backend *o = c.o;
    static const int32_t from[] = {4, 0, 2, 2}, src[] = {7, 8, -1, 9, 10}, to[] = {1, 3, 0, 5};
    static const int32_t dst[] = {-5, -5, -5, -5, -5, -5}, want[] = {0, 10, -5, 7, -5, 0};
    call w = {.o = o, .op = take_tokens, .n = 4, .from = check_put(o, from, sizeof from), .src = check_put(o, src, sizeof src),
              .to = check_put(o, to, sizeof to), .dst = check_put(o, dst, sizeof dst)};
    hn_pool_run(c.pool, call_rank, &w);
    assert_memory_equal(hn_host(w.dst), want, sizeof want);
    FREE(o, w.from, w.src, w.to, w.dst);
    check_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample), cmocka_unit_test(test_match), cmocka_unit_test(test_beam),
                                       cmocka_unit_test(test_take)};
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
