/* SPDX-License-Identifier: Apache-2.0 */
/* toy_for_tests.h - a synthetic target, drafters and an engine's round in a few lines, for the tests of verification.
 *
 *   toy_model    a text → logits over a small vocabulary
 *   toy_pass     the logits of a tree's rows
 *   toy_drafter  trees of any shape, drawn from distributions good and bad, or one-hot; also wrongly on purpose
 *   toy_joint    the exact distribution of the first tokens over several rounds of the real code, by explorer_for_tests.h
 * Include after cmocka. */
#ifndef HN_TOY_FOR_TESTS_H
#define HN_TOY_FOR_TESTS_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/run_mode_for_tests.h"
#include "draft/tree.h"
#include "verify/explorer_for_tests.h"
#include "verify/verify_private.h"

/* The race of the target's own draw, over given weights: draws with equal keys are coupled. */
__attribute__((unused)) static int toy_race(const hn_random_key *key, const double *weight, int n) {
    hn_random_key k = *key;
    int winner = -1;
    double best = 0;
    for (int i = 0; i < n; i++) {
        k.token = (uint32_t)i;
        const double time = weight[i] > 0 ? -log(hn_random_uniform(&k)) / weight[i] : INFINITY;
        if (weight[i] > 0 && (winner < 0 || time < best)) best = time, winner = i;
    }
    return winner;
}

enum { TOY_VOCAB = 5, TOY_TEXT = 160, TOY_PROMPT = 3, TOY_DEPTH = 5, TOY_CELLS = 256 };
static const int32_t toy_prompt[TOY_PROMPT] = {1, 0, 2};

static inline bool toy_light(void) { return test_light(); }

/* ---- the target -------------------------------------------------------------------------------------------------- */

typedef struct toy_model {
    int vocab;
    bool coarse; /* logits of four values: ties */
    uint64_t salt;
    const double *same; /* [vocab] this P after every text */
} toy_model;

static inline uint64_t toy_hash(uint64_t h, const int32_t *text, int n, int last) {
    for (int i = n > last ? n - last : 0; i < n; i++) {
        h ^= (uint64_t)text[i] + 1;
        h = hn_splitmix(&h);
    }
    return h;
}

/* Logits after a text: they depend on its last three tokens, so that texts repeat stretches. */
static inline void toy_logits(const toy_model *m, const int32_t *text, int n, float *l) {
    uint64_t h = toy_hash(m->salt, text, n, 3);
    for (int i = 0; i < m->vocab; i++) {
        const uint64_t x = hn_splitmix(&h);
        l[i] = m->same ? (float)log(m->same[i]) : m->coarse ? (float)(x >> 62) : (float)(x >> 40) * 0x1p-24f * 3;
    }
}

typedef struct toy_pass {
    const toy_model *m;
    const hn_tree *t;
    int32_t text[TOY_TEXT + HN_TREE_ROWS]; /* committed, then the path */
    int n;                                 /* committed, the root included */
    float logits[TOY_VOCAB];
    bool hint;
} toy_pass;

static inline const float *toy_pass_logits(void *ctx, int row) {
    toy_pass *p = ctx;
    for (int r = row; r > 0; r = p->t->parent[r]) p->text[p->n + p->t->depth[r] - 1] = p->t->token[r];
    toy_logits(p->m, p->text, p->n + p->t->depth[row], p->logits);
    return p->logits;
}

static inline int32_t toy_pass_greedy(void *ctx, int row) {
    toy_pass *p = ctx;
    const float *l = toy_pass_logits(ctx, row);
    int32_t best = 0;
    for (int i = 1; i < p->m->vocab; i++)
        if (l[i] > l[best]) best = i;
    return p->hint ? best : -1;
}

static inline hn_verification toy_verification(toy_pass *p, hn_rule rule, hn_sampler *s) {
    return (hn_verification){.rule = rule,
                             .sampler = s,
                             .committed = {.text = p->text, .n = p->n, .n_prompt = TOY_PROMPT},
                             .rows = {toy_pass_logits, toy_pass_greedy, p}};
}

/* ---- drafters ---------------------------------------------------------------------------------------------------- */

typedef enum toy_q {
    TOY_Q_CONTEXT, /* depends on the last two tokens */
    TOY_Q_STALE,   /* depends on tokens before the newest two */
    TOY_Q_BAD,     /* nearly all on one token, nothing on another */
    TOY_Q_TARGET   /* the target's own distribution */
} toy_q;

typedef struct toy_drafter {
    int branch[TOY_DEPTH + 1]; /* candidates for each row, by depth; 0 ends */
    toy_q kind;
    bool without, one_hot;
    const double *same; /* [vocab] this Q at every row */
    unsigned only;      /* bit mask of its ids, which its distributions list; 0: all ids, and distributions without a list */
    /* mistakes */
    bool merges;   /* a token that was drawn before does not become a candidate again */
    bool denies;   /* draws without replacement, but does not mark it */
    double prunes; /* drops tokens below this probability of Q */
    double warps;  /* draws from Q to this power, 0: from Q */
    double scale;  /* of the weights; 0: 1 */
    int drawn;     /* in this round */
    float q[HN_TREE_ROWS][TOY_VOCAB]; /* by id */
    struct {
        hn_proposal_dist dist;
        int32_t id[TOY_VOCAB];
        float weight[TOY_VOCAB];
    } listed[HN_TREE_ROWS];
} toy_drafter;

static inline void toy_drafter_q(const toy_drafter *d, hn_sampler *s, toy_pass *p, int row, float *q) {
    const float *l = toy_pass_logits(p, row);
    const int32_t *path = p->text + p->n;
    const int depth = p->t->depth[row], vocab = p->m->vocab;
    if (d->kind == TOY_Q_TARGET) {
        const hn_history h = {.text = p->text, .n = p->n, .n_prompt = TOY_PROMPT, .path = path, .n_path = depth};
        hn_dist dist;
        hn_sampler_dist(s, l, &h, &dist);
        for (int i = 0; i < vocab; i++) q[i] = 0;
        for (int i = 0; i < dist.n; i++) q[dist.id[i]] = dist.weight[i];
        return;
    }
    uint64_t h = toy_hash(77, p->text, p->n + depth - (d->kind == TOY_Q_STALE ? 2 : 0), 2);
    const int bad = (int)(h % (uint64_t)vocab);
    for (int i = 0; i < vocab; i++) {
        q[i] = d->same ? (float)d->same[i] : (float)(hn_splitmix(&h) >> 40) * 0x1p-23f + .1f;
        if (d->kind == TOY_Q_BAD) q[i] = i == bad ? 3.f : i == (bad + 1) % vocab ? 0 : .125f;
        if (d->scale > 0) q[i] *= (float)d->scale;
    }
}

/* The distribution of a row in the form that its candidates refer to. */
static inline void toy_list_dist(toy_drafter *d, int row, int vocab) {
    hn_proposal_dist *q = &d->listed[row].dist;
    *q = (hn_proposal_dist){vocab, NULL, d->q[row]};
    if (!d->only) return;
    *q = (hn_proposal_dist){0, d->listed[row].id, d->listed[row].weight};
    for (int i = 0; i < vocab; i++) {
        if (!(d->only >> i & 1)) {
            d->q[row][i] = 0;
            continue;
        }
        d->listed[row].id[q->n] = i;
        d->listed[row].weight[q->n++] = d->q[row][i];
    }
}

/* Adds one drawn candidate; left: weights that can still be drawn at the row. False: none. */
static inline bool toy_draw_candidate(toy_drafter *d, hn_sampler *s, hn_tree *t, int row, int vocab, double *left,
                                      int root) {
    double w[TOY_VOCAB], sum = 0;
    const hn_random_key key = {.seed = s->params.seed,
                               .position = (uint64_t)root,
                               .purpose = HN_PURPOSE_PROPOSAL,
                               .number = (uint32_t)d->drawn++};
    for (int i = 0; i < vocab; i++) {
        w[i] = d->warps > 0 && left[i] > 0 ? pow(left[i], d->warps) : left[i];
        sum += (double)d->q[row][i];
    }
    const int x = hn_rng_draw(&s->rng, &key, NULL, w, vocab);
    if (x < 0) return false;
    if (d->without) left[x] = 0;
    if ((double)d->q[row][x] / sum < d->prunes || (d->merges && hn_tree_child(t, row, x) >= 0)) return true;
    return hn_tree_add_drawn(t, row, x, 0, .5f, &d->listed[row].dist, d->without && !d->denies) >= 0;
}

/* The branch likeliest tokens; the second is proposed by another drafter too. */
static inline void toy_add_points(const toy_drafter *d, hn_tree *t, int row, int vocab, int branch) {
    bool taken[TOY_VOCAB] = {false};
    for (int c = 0; c < branch; c++) {
        int best = -1;
        for (int i = 0; i < vocab; i++)
            if (!taken[i] && (best < 0 || d->q[row][i] > d->q[row][best])) best = i;
        if (best < 0) return;
        taken[best] = true;
        hn_tree_add(t, row, best, 0, .5f);
        if (c == 1) hn_tree_add(t, row, best, 1, .6f);
    }
}

static inline void toy_draft(toy_drafter *d, hn_sampler *s, toy_pass *p, hn_tree *t) {
    d->drawn = 0;
    for (int row = 0; row < t->n_rows; row++) { /* rows are appended: level by level */
        const int branch = d->branch[t->depth[row]], vocab = p->m->vocab;
        if (branch == 0) continue;
        toy_drafter_q(d, s, p, row, d->q[row]);
        toy_list_dist(d, row, vocab);
        double left[TOY_VOCAB];
        for (int i = 0; i < vocab; i++) left[i] = (double)d->q[row][i];
        if (d->one_hot)
            toy_add_points(d, t, row, vocab, branch);
        else
            for (int c = 0; c < branch && toy_draw_candidate(d, s, t, row, vocab, left, p->n - 1); c++) {
            }
    }
}

/* ---- exact distributions -------------------------------------------------------------------------------------------------- */

typedef struct toy {
    toy_model m;
    hunch_sampling params;
    hn_rule rule;
    double a, b;               /* of a lossy rule */
    toy_drafter first, second; /* drafter of the first round, and of the others */
    int tokens, rounds; /* number of tokens of the distribution, from at most `rounds` rounds, the rest from plain P */
    hunch_status (*wrong)(const hn_walk *k); /* replaces the rule */
    hn_rng (*rekey)(explorer *x);          /* replaces the explorer's random numbers */
    double accepted, first_accepted, runs; /* out: mean of the first round; chance that it accepts any; how many runs */
} toy;

/* Adds p times the product distribution of the tokens after n tokens of text. */
static inline void toy_extend(const toy *y, hn_sampler *s, int32_t *text, int n, double p, double *joint) {
    if (n >= TOY_PROMPT + y->tokens) {
        int cell = 0;
        for (int i = 0; i < y->tokens; i++) cell = cell * y->m.vocab + text[TOY_PROMPT + i];
        joint[cell] += p;
        return;
    }
    float l[TOY_VOCAB];
    double dist[TOY_VOCAB] = {0};
    hn_dist sparse;
    const hn_history h = {.text = text, .n = n, .n_prompt = TOY_PROMPT};
    toy_logits(&y->m, text, n, l);
    hn_sampler_dist(s, l, &h, &sparse);
    for (int i = 0; i < sparse.n; i++) dist[sparse.id[i]] = (double)sparse.weight[i] / sparse.sum;
    for (int x = 0; x < y->m.vocab; x++) {
        if (dist[x] == 0) continue;
        text[n] = x;
        toy_extend(y, s, text, n + 1, p * dist[x], joint);
    }
}

static inline void toy_check_verdict(const hn_tree *t, const hn_verdict *v) {
    int row = 0;
    for (int i = 0; i < v->n_accepted; i++) {
        assert_int_equal(t->parent[v->path[i]], row);
        row = v->path[i];
        bool proposed = false;
        for (int c = t->first[t->parent[row]]; c >= 0; c = t->candidate[c].next)
            proposed |= t->candidate[c].child == row && t->candidate[c].drafter == v->drafter_of[i];
        assert_true(proposed);
    }
    assert_int_equal(v->next_row, row);
}

/* One round: draft, verify, append. Returns the number of accepted tokens. */
static inline int toy_round(toy *y, hn_verifier *w, hn_sampler *s, toy_pass *p, toy_drafter *d) {
    hn_tree t;
    hn_verdict v;
    hunch_error err = {0};
    hn_tree_reset(&t, p->text[p->n - 1], HN_TREE_ROWS);
    p->t = &t;
    toy_draft(d, s, p, &t);
    assert_true(hn_tree_valid(&t));
    hn_verification ver = toy_verification(p, y->rule, s);
    ver.a = y->a, ver.b = y->b;
    const hn_walk k = {w, &t, &ver, &v, &err};
    w->used = 0;
    if (y->wrong ? y->wrong(&k) : hn_verify_tree(w, &t, &ver, &v, &err)) fail_msg("%s", err.message);
    toy_check_verdict(&t, &v);
    for (int i = 0; i < v.n_accepted; i++) p->text[p->n++] = t.token[v.path[i]];
    p->text[p->n++] = v.next;
    return v.n_accepted;
}

static inline int toy_cells(const toy *y) {
    int cells = 1;
    for (int i = 0; i < y->tokens; i++) cells *= y->m.vocab;
    assert_true(cells <= TOY_CELLS);
    return cells;
}

/* The distribution of plain sampling. */
static inline void toy_product(const toy *y, double *product) {
    hn_sampler s;
    int32_t text[TOY_TEXT];
    memset(product, 0, (size_t)toy_cells(y) * sizeof *product);
    assert_int_equal(hn_sampler_init(&s, &y->params, y->m.vocab, NULL), HUNCH_OK);
    memcpy(text, toy_prompt, sizeof toy_prompt);
    toy_extend(y, &s, text, TOY_PROMPT, 1, product);
    hn_sampler_fini(&s);
}

/* One outcome of all rounds. */
static inline void toy_run(toy *y, hn_verifier *w, hn_sampler *s, explorer *x, double *joint) {
    toy_pass p = {.m = &y->m, .n = TOY_PROMPT};
    int accepted = 0;
    memcpy(p.text, toy_prompt, sizeof toy_prompt);
    for (int r = 0; r < y->rounds && p.n < TOY_PROMPT + y->tokens; r++) {
        const int a = toy_round(y, w, s, &p, r == 0 ? &y->first : &y->second);
        if (r == 0) accepted = a;
    }
    y->accepted += x->p * accepted;
    y->first_accepted += accepted > 0 ? x->p : 0;
    y->runs++;
    toy_extend(y, s, p.text, p.n, x->p, joint);
}

/* The distribution of the tokens that the rounds emit. */
static inline void toy_joint(toy *y, double *joint) {
    static explorer x;
    hn_sampler s;
    hn_verifier *w = NULL;
    double total = 0;
    memset(&x, 0, sizeof x);
    memset(joint, 0, (size_t)toy_cells(y) * sizeof *joint);
    y->accepted = y->first_accepted = y->runs = 0;
    assert_int_equal(hn_sampler_init(&s, &y->params, y->m.vocab, NULL), HUNCH_OK);
    assert_int_equal(hn_verifier_open(&w, y->m.vocab, NULL), HUNCH_OK);
    s.rng = y->rekey ? y->rekey(&x) : explorer_rng(&x);
    do {
        explorer_begin(&x);
        toy_run(y, w, &s, &x, joint);
        total += x.p;
    } while (explorer_next(&x));
    hn_verifier_close(&w);
    hn_sampler_fini(&s);
    assert_true(fabs(total - 1) < 1e-9);
}

/* The largest difference between the two distributions. */
static inline double toy_distance(toy *y) {
    double joint[TOY_CELLS], product[TOY_CELLS], worst = 0;
    toy_joint(y, joint);
    toy_product(y, product);
    for (int c = 0; c < toy_cells(y); c++) worst = fmax(worst, fabs(joint[c] - product[c]));
    return worst;
}
#endif
