/* SPDX-License-Identifier: Apache-2.0 */
/* head_round.c - see head_round.h. */
#include "draft/head/head_round.h"

#include <math.h>
#include <string.h>

#include "sample/processors.h"

int hn_head_force(const hn_head_round *c, const hn_propose *p, hn_head_seq_tree *s, int32_t *token, int n) {
    return hn_head_oracle_force(&s->oracle, p, &c->t->force, c->d->index, c->t->vocab, c->level, token, n);
}

/* Whether tokens are drawn from a row's logits, not chosen from its best ones. */
static bool draws(const hn_head_trees *t, const hn_propose *p) {
    return !(t->likely && !p->chain) && (p->drawn || !hn_sampler_takes_best(p->sampler, (uint64_t)p->text.n));
}

static int choose(hn_head_round *c, const hn_propose *p, int row, const hn_history *h, int n, int32_t *token, float *prob) {
    hn_head_trees *t = c->t;
    const float *value;
    const int32_t *best = hn_head_best(t->head, row, &value);
    if (best[0] < 0 || !(value[0] > -INFINITY)) return 0;
    const double sum = hn_head_sum(t->head, row);
    int m = 0;
    if ((t->likely && !p->chain) || hn_sampler_takes_best(p->sampler, (uint64_t)p->text.n)) {
        for (; m < n && m < t->topk && best[m] >= 0 && value[m] > -INFINITY; m++) {
            token[m] = best[m];
            prob[m] = (float)(exp((double)value[m] - (double)value[0]) / sum);
        }
        return m;
    }
    const float *logits = hn_head_logits(t->head, row, c->worker);
    float *left = t->drawn + (size_t)c->worker * (size_t)t->vocab;
    if (n > 1) logits = memcpy(left, logits, (size_t)t->vocab * sizeof *logits);
    for (; m < n; m++) {
        const int32_t hint = m ? HN_NONE : best[0];
        token[m] = t->picks_best ? hn_processors_best(p->sampler, logits, h, hint) : hn_sampler_draw(p->sampler, logits, h, hint);
        if (token[m] < 0) break;
        prob[m] = (float)(exp((double)logits[token[m]] - (double)value[0]) / sum);
        if (n > 1) left[token[m]] = -INFINITY;
    }
    return m;
}

int hn_head_choose(hn_head_round *c, const hn_propose *p, int row, const hn_history *h, int n, int32_t *token, float *prob) {
    const int m = choose(c, p, row, h, n, token, prob);
    hn_forced_rates_estimate(&c->t->force, prob, m);
    return m;
}

static hn_certainty certainty_of(const hn_head_round *c, const hn_propose *p, int row) {
    return p->certainty && !c->t->ahead ? hn_head_certainty(c->t->head, row) : hn_certainty_none();
}

void hn_head_level_certainty(const hn_head_round *c, const hn_propose *p, int level, int row) {
    c->t->seq[p->seq].certainty[level] = certainty_of(c, p, row);
}

void hn_head_set_level_certainty(const hn_head_round *c, const hn_propose *p) {
    const hn_tree *t = p->tree;
    const int newest = t->n_candidates - 1, level = t->depth[t->candidate[newest].child] - 1;
    hn_tree_set_certainty(p->tree, newest, c->t->seq[p->seq].certainty[level]);
}

bool hn_head_row_confident(hn_head_round *c, const hn_propose *p, int row) {
    const hn_head_trees *t = c->t;
    c->certainty = certainty_of(c, p, row);
    c->confidence = hn_head_confidence(t->head, row);
    if (p->confidence) p->confidence[c->level] = (float)c->confidence;
    return !(c->confidence < t->min_confidence);
}

void hn_head_set_estimate(const hn_head_round *c, hn_tree *t) {
    if (isnan(c->confidence) || hn_forced_rates_are_estimates(&c->t->force)) return;
    t->candidate[t->n_candidates - 1].estimate = (float)c->confidence;
}

int hn_head_masks(const hn_head_trees *t, const hn_propose *p, int levels) {
    int n = p->depth < levels ? p->depth : levels;
    if (n > t->depth) n = t->depth;
    return (t->at_once || t->laid_out) && n > 1 ? n - 1 : 0;
}

/* What the workers share: the rows of a pass, by text. */
typedef struct reading {
    hn_head_round *c;
    const hn_head_row *read;
    int n, n_texts;
    bool *ready; /* [n_texts] has rows that can be taken */
    int *added;
} reading;

static void take_rank(void *arg, int rank, int ranks HN_UNUSED) {
    reading *r = arg;
    const hn_head_trees *t = r->c->t;
    hn_claim claim = hn_claim_begin(t->head->model.pool, rank, r->n_texts);
    for (int text; (text = hn_claim_next(&claim)) >= 0;) {
        hn_head_round own = *r->c;
        own.added = 0;
        own.worker = rank;
        for (int k = 0; k < r->n && r->ready[text]; k++)
            if (t->of[r->read[k].node] == text) own.take(&own, r->read[k].node, r->read[k].mask, r->read[k].row);
        r->added[text] = own.added;
    }
}

/* Lists the texts. True if several of them draw from whole rows, which are not shown to a callback. */
static bool by_workers(reading *r) {
    const hn_head_round *c = r->c;
    int drawing = 0;
    if (c->t->ahead) return false;
    for (int k = 0; k < r->n; k++) {
        const int text = c->t->of[r->read[k].node];
        if (c->p[text].on_logits) return false;
        if (r->ready[text]) continue;
        r->ready[text] = true;
        drawing += draws(c->t, &c->p[text]);
        if (text >= r->n_texts) r->n_texts = text + 1;
    }
    return drawing > 1 && c->t->head->workers > 1;
}

void hn_head_take_rows(void *round, const hn_head_row *read, int n) {
    hn_head_round *c = round;
    reading r = {.c = c, .read = read, .n = n, .ready = c->t->ready, .added = c->t->added};
    memset(r.ready, 0, (size_t)c->t->n_seqs * sizeof *r.ready);
    if (!by_workers(&r)) {
        for (int k = 0; k < n; k++) c->take(c, read[k].node, read[k].mask, read[k].row);
        return;
    }
    for (int k = 0; c->reserve && k < n; k++) {
        bool *ready = &r.ready[c->t->of[read[k].node]];
        *ready = *ready && c->reserve(c, read[k].node, read[k].mask);
    }
    hn_pool_run(c->t->head->model.pool, take_rank, &r);
    for (int text = 0; text < r.n_texts; text++) c->added += r.added[text];
}

void hn_head_run_roots(hn_head_round *c, int n) {
    hn_head_trees *t = c->t;
    int *text_n = t->text_n, m = 0;
    for (int i = 0; i < n; i++) {
        const hn_propose *p = &c->p[i];
        if (!hn_propose_has_room(p, 0)) continue;
        t->of[m] = i;
        t->place[m] = HN_ROOT;
        text_n[m] = p->text.n;
        t->node[m++] = (hn_head_node){p->seq, p->text.token[p->text.n - 1], hn_head_masks(t, p, t->depth), -1, -1, NULL};
    }
    if (m > 0) hn_head_roots(t->head, t->node, text_n, m, hn_head_take_rows, c);
}
