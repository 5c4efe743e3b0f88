/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_forced.c - an oracle drafter for tests and benchmarks: it knows the plain continuation and is right with a given
 * probability, so that overhead can be separated from acceptance. Its proposals are verified like any other.
 *
 *   forced[,accept=A][,depth=K][,width=W][,seed=S][,cost_us=U][,tree=shaped|random]
 *
 *   accept   probability that a level has the right token, given that the levels before did          1
 *   depth    levels a round                                                                         4
 *   width    candidates of a row on the spine (random: at most that many of any row)               1
 *   seed     of all its choices; they depend on seed, text, root position and place alone           0
 *   cost_us  busy wait a round, as if drafting took that long                                       0
 *   tree     shaped: a spine of K levels, each with W candidates of which one, at a random place, is right with probability
 *            A; beside it, if the budget allows, wrong tokens below the wrong rows, so that wide trees have many branches.
 *            random: any shape, any order, duplicate candidates, the right token anywhere: for property tests.
 *
 * The spine continues below a wrong level (with the oracle's later tokens, which cannot be accepted there), as a real
 * drafter would. After the oracle's end and on a text that differs from it nothing is drafted.
 *
 * Random numbers: (seed and text, position of the round's root, HN_PURPOSE_FORCED, drafter, number), contract C3; the
 * number counts this drafter's draws in the round.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "draft/drafter.h"

enum { MAX_WIDTH = 16 };

typedef struct forced_seq {
    int32_t *oracle;       /* [n] continuation after the prompt; owned */
    int n;
    int checked;           /* emitted tokens that were compared with it */
    bool left;             /* the text differs from the oracle */
    int spine;             /* row that the next level continues, -1: none */
    bool mine[HN_TREE_ROWS];  /* rows that carry a candidate of this drafter, and the root */
    bool right[HN_TREE_ROWS]; /* of these: whose whole path is the oracle's */
    hn_random_key key;     /* of the next draw */
} forced_seq;

typedef struct forced_state {
    double accept, cost_us;
    int depth, width, vocab;
    bool random;
    uint64_t seed;
    int n_seqs;
    forced_seq *seq; /* [n_seqs] */
} forced_state;

/* ---- options ----------------------------------------------------------------------------------------------------- */

static hunch_status options_read(forced_state *st, hn_spec *spec, hunch_error *err) {
    static const char *const trees[] = {"shaped", "random", NULL};
    if (st->vocab < 2)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': needs a vocabulary of at least 2, this one has %d", spec->text, st->vocab);
    long depth = 0, width = 0, seed = 0, max_width = st->vocab - 1 < MAX_WIDTH ? st->vocab - 1 : MAX_WIDTH;
    int tree = 0;
    hunch_status s = hn_spec_no_path(spec, err);
    if (!s) s = hn_spec_double(spec, "accept", 0, 1, 1, &st->accept, err);
    if (!s) s = hn_spec_int(spec, "depth", 1, HN_TREE_ROWS - 1, 4, &depth, err);
    if (!s) s = hn_spec_choice(spec, "tree", trees, 0, &tree, err);
    if (!s) s = hn_spec_int(spec, "width", 1, max_width, tree == 0 || max_width < 3 ? 1 : 3, &width, err);
    if (!s) s = hn_spec_int(spec, "seed", 0, INT64_MAX, 0, &seed, err);
    if (!s) s = hn_spec_double(spec, "cost_us", 0, 1e6, 0, &st->cost_us, err);
    st->depth = (int)depth;
    st->width = (int)width;
    st->random = tree == 1;
    st->seed = (uint64_t)seed;
    return s;
}

static hunch_status forced_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs, hunch_error *err) {
    forced_state st = {.vocab = target->vocab, .n_seqs = d->max_seqs};
    hunch_status s = options_read(&st, spec, err);
    if (s) return s;
    forced_state *out = hn_alloc(sizeof *out);
    st.seq = hn_zalloc((size_t)st.n_seqs, sizeof *st.seq);
    if (!out || !st.seq) {
        hn_free(out);
        hn_free(st.seq);
        return hn_fail_memory(err, "drafter 'forced'", sizeof *out + (size_t)st.n_seqs * sizeof *st.seq);
    }
    *out = st;
    d->state = out;
    needs->oracle = true;
    needs->max_depth = st.depth;
    return HUNCH_OK;
}

/* ---- draws --------------------------------------------------------------------------------------------------------- */

static double draw_uniform(forced_seq *q) {
    double u = hn_random_uniform(&q->key);
    q->key.number++;
    return u;
}

/* 0..n-1 */
static int draw_below(forced_seq *q, int n) {
    return (int)(draw_uniform(q) * n);
}

/* The k-th of vocab - 1 wrong tokens: never `right`, different for every k below vocab - 1. */
static int32_t wrong_token(const forced_state *st, int32_t right, int start, int k) {
    int64_t step = 1 + ((int64_t)start + k) % (st->vocab - 1);
    return (int32_t)((right + step) % st->vocab);
}

/* Seed of a text: the choices repeat for it, and differ from those of other texts. */
static uint64_t seed_of_text(uint64_t seed, const int32_t *oracle, int n) {
    uint64_t h = seed;
    for (int i = 0; i < n && i < 32; i++) {
        uint64_t s = h ^ (uint32_t)oracle[i];
        h = hn_splitmix(&s);
    }
    return h;
}

static void wait_us(double us) {
    const double end = hn_now() + us * 1e-6;
    while (hn_now() < end) continue;
}

/* ---- a level ------------------------------------------------------------------------------------------------------ */

/* At a round's first level: checks whether the text is still the oracle's. */
static void round_start(forced_seq *q, const hn_propose *p, int drafter) {
    int emitted = p->text.n - p->text.n_prompt;
    for (; q->checked < emitted && q->checked < q->n; q->checked++)
        if (p->text.token[p->text.n_prompt + q->checked] != q->oracle[q->checked]) break;
    q->left = q->checked < emitted && q->checked < q->n;
    q->spine = 0;
    memset(q->mine, 0, sizeof q->mine);
    q->mine[0] = q->right[0] = true;
    q->key = (hn_random_key){.seed = q->key.seed, .position = (uint64_t)p->text.n - 1, .purpose = HN_PURPOSE_FORCED,
                             .drafter = (uint32_t)drafter};
}

typedef struct level_job {
    const hn_drafter *d;
    const forced_state *st;
    forced_seq *q;
    hn_propose *p;
    int32_t right; /* the oracle's token of this level */
    int budget;    /* rows left */
    int first;     /* rows from here on are of this level */
    int added;
} level_job;

/* Adds a candidate if it shares a row or there is one left; returns its row or -1. */
static int job_add(level_job *j, int row, int32_t token, double estimate) {
    hn_tree *t = j->p->tree;
    int before = t->n_rows;
    if (j->budget < 1 && hn_tree_child(t, row, token) < 0) return -1;
    int child = hn_tree_add(t, row, token, j->d->index, (float)estimate);
    if (child < 0) return -1;
    bool right = j->q->right[row] && token == j->right;
    j->budget -= t->n_rows - before;
    j->q->mine[child] = true;
    j->q->right[child] = right;
    j->added++;
    return child;
}

/* W candidates at the spine: the one at place `hit` is right with probability A. Sets the next spine row. */
static void level_spine(level_job *j) {
    const forced_state *st = j->st;
    int row = j->q->spine, next = -1;
    int width = j->budget < 1 ? 1 : j->budget < st->width ? j->budget : st->width;
    bool hit = draw_uniform(j->q) < st->accept;
    int place = draw_below(j->q, width), start = draw_below(j->q, st->vocab - 1);
    for (int k = 0; k < width; k++) {
        int32_t token = hit && k == place ? j->right : wrong_token(st, j->right, start, k);
        int child = job_add(j, row, token, k == place ? st->accept : (1 - st->accept) / width);
        if (k == place) next = child;
    }
    j->q->spine = next;
}

/* Up to two children below each own row of the previous level that is not the spine, while `spare` rows last. */
static void level_garbage(level_job *j, int level, int spine, int spare) {
    hn_tree *t = j->p->tree;
    for (int r = 1; r < j->first && spare > 0; r++) {
        if (r == spine || !j->q->mine[r] || t->depth[r] != level) continue;
        int children = draw_below(j->q, 3), start = draw_below(j->q, j->st->vocab - 1);
        for (int k = 0; k < children && k < j->st->vocab - 1 && spare > 0; k++) {
            int before = t->n_rows;
            if (job_add(j, r, wrong_token(j->st, j->right, start, k), 0) < 0) return;
            spare -= t->n_rows - before;
        }
    }
}

/* Every own row of the previous level gets 0..W candidates: the right token or any token, possibly twice. */
static void level_random(level_job *j, int level) {
    hn_tree *t = j->p->tree;
    for (int r = 0; r < j->first; r++) {
        if (!j->q->mine[r] || t->depth[r] != level) continue;
        int children = draw_below(j->q, j->st->width + 1);
        for (int k = 0; k < children; k++) {
            bool hit = draw_uniform(j->q) < j->st->accept;
            int32_t token = hit ? j->right : draw_below(j->q, j->st->vocab);
            if (job_add(j, r, token, draw_uniform(j->q)) < 0) return;
        }
    }
}

static int propose_one(const hn_drafter *d, hn_propose *p, int level) {
    const forced_state *st = d->state;
    forced_seq *q = &st->seq[p->seq];
    if (level == 0) round_start(q, p, d->index);
    int at = p->text.n - p->text.n_prompt + level;
    if (q->left || level >= st->depth || at < 0 || at >= q->n) return 0;
    level_job j = {d, st, q, p, q->oracle[at], p->budget, p->tree->n_rows, 0};
    if (st->random) {
        level_random(&j, level);
    } else if (q->spine >= 0) {
        int spine = q->spine, spare = p->budget - st->width * (st->depth - level);
        level_spine(&j);
        level_garbage(&j, level, spine, spare);
    }
    return j.added;
}

static int forced_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    const forced_state *st = d->state;
    if (level == 0 && st->cost_us > 0) wait_us(st->cost_us);
    int added = 0;
    for (int i = 0; i < n; i++) added += propose_one(d, &p[i], level);
    return added;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void forced_end(hn_drafter *d, int seq) {
    forced_state *st = d->state;
    hn_free(st->seq[seq].oracle);
    memset(&st->seq[seq], 0, sizeof st->seq[seq]);
}

static hunch_status forced_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err) {
    forced_state *st = d->state;
    for (int i = 0; i < n; i++) {
        assert(seqs[i].seq >= 0 && seqs[i].seq < st->n_seqs);
        forced_end(d, seqs[i].seq);
        forced_seq *q = &st->seq[seqs[i].seq];
        if (!seqs[i].oracle || seqs[i].n_oracle < 1) continue;
        size_t bytes = (size_t)seqs[i].n_oracle * sizeof *q->oracle;
        q->oracle = hn_alloc(bytes);
        if (!q->oracle) return hn_fail_memory(err, "the continuation that drafter 'forced' knows", bytes);
        memcpy(q->oracle, seqs[i].oracle, bytes);
        q->n = seqs[i].n_oracle;
        q->key.seed = seed_of_text(st->seed, q->oracle, q->n);
    }
    return HUNCH_OK;
}

static void forced_close(hn_drafter *d) {
    forced_state *st = d->state;
    for (int i = 0; i < st->n_seqs; i++) hn_free(st->seq[i].oracle);
    hn_free(st->seq);
    hn_free(st);
}

static const hn_drafter_ops ops = {
    .open = forced_open, .begin = forced_begin, .propose = forced_propose, .end = forced_end,
    .close = forced_close,
};

static const hn_drafter_help help = {
    NULL, "for tests: right with a given probability, by looking at the plain answer",
    {{"accept", "0..1", "that probability, default 1"},
     {"depth", "1..63", "tokens drafted, default 4"},
     {"tree", "shaped|random", "its shape, default shaped"},
     {"width", "1..16", "children of a node"},
     {"seed", "0..", "of its random numbers, default 0"},
     {"cost_us", "0..1000000", "simulated microseconds per draft, default 0"}}};
const hn_drafter_kind hn_drafter_forced = {.name = "forced", .help = &help, .ops = &ops};
