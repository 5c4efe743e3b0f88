/* SPDX-License-Identifier: Apache-2.0 */
/* learn_batch.c - pieces of texts, and batches of them: the inputs and labels of each row. */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "base/random.h"
#include "train/data/hold_out.h"
#include "train/learn/learn_private.h"
#include "train/math/loss/loss.h"
#include "train/math/product/product.h"

/* ---- texts in pieces ---------------------------------------------------------------------------------------------------- */

/* n tokens give n - 1 rows with the token after them. A piece without a row that has a loss is left out. */
static size_t cut(const hn_learner *l, uint32_t text, hn_learn_piece *out) {
    const hn_feature_text *t = &l->f->text[text];
    size_t n = 0;
    for (int from = 0; from < t->n - 1; from += l->o.longest) {
        const int left = t->n - 1 - from, rows = left < l->o.longest ? left : l->o.longest;
        if (from + rows + 1 <= t->own) continue;
        if (out) out[n] = (hn_learn_piece){text, from, rows};
        n++;
    }
    return n;
}

static hunch_status make_pieces(hn_learner *l, const hn_text_role *role, hunch_error *err) {
    size_t n = 0, m = 0;
    for (size_t t = 0; t < l->f->n; t++)
        if (role[t] != HN_TEXT_LEFT_OUT) *(role[t] == HN_TEXT_HELD_OUT ? &m : &n) += cut(l, (uint32_t)t, NULL);
    if (n == 0) return hn_fail(err, HUNCH_REFUSED, "no text has an answer of the target to learn from");
    l->all = hn_alloc(n * sizeof *l->all);
    l->order = hn_alloc(n * sizeof *l->order);
    l->judged = hn_alloc((m ? m : 1) * sizeof *l->judged);
    l->held = hn_alloc((l->f->n ? l->f->n : 1) * sizeof *l->held);
    if (!l->all || !l->order || !l->judged || !l->held)
        return hn_fail_memory(err, "pieces of texts", n * sizeof *l->all);
    for (size_t t = 0; t < l->f->n; t++) {
        const hn_feature_text *x = &l->f->text[t];
        if (role[t] == HN_TEXT_LEARNED) l->n_all += cut(l, (uint32_t)t, l->all + l->n_all);
        if (role[t] != HN_TEXT_HELD_OUT) continue;
        l->n_judged += cut(l, (uint32_t)t, l->judged + l->n_judged);
        l->held[l->n_held++] = (hn_train_text){(int32_t *)(uintptr_t)x->ids, x->n, x->own};
    }
    return HUNCH_OK;
}

hunch_status hn_learn_share_texts(hn_learner *l, hunch_error *err) {
    hn_text_role *role = hn_alloc((l->f->n ? l->f->n : 1) * sizeof *role);
    if (!role) return hn_fail_memory(err, "roles of texts", l->f->n * sizeof *role);
    hn_hold_out(l->f->text, l->f->n, l->o.held_out, role);
    hunch_status st = make_pieces(l, role, err);
    hn_free(role);
    return st;
}

void hn_learn_shuffle(hn_learner *l) {
    uint64_t x = l->o.seed * 0x9e3779b97f4a7c15u + (uint64_t)l->epoch;
    for (size_t i = 0; i < l->n_all; i++) l->order[i] = (uint32_t)i;
    for (size_t i = l->n_all - 1; i > 0; i--) {
        const size_t k = (size_t)(hn_splitmix(&x) % (i + 1));
        const uint32_t t = l->order[i];
        l->order[i] = l->order[k];
        l->order[k] = t;
    }
    l->at = 0;
}

/* ---- batches ------------------------------------------------------------------------------------------------------------ */

/* A piece as it is read: of the stored texts, or of those of the student, which may have ended earlier. */
typedef struct source {
    const hn_features_read *f;
    hn_learn_piece piece;
    bool own; /* the student's */
} source;

/* place: of the epoch's order; below 0: a piece that is held out. */
static source source_of(const hn_learner *l, const hn_learn_piece *p, long place) {
    const int own = place < 0 ? -1 : hn_on_policy_text(l, (size_t)place);
    if (own < 0) return (source){l->f, *p, false};
    const int left = l->spoken.f.text[own].n - 1 - p->from;
    return (source){&l->spoken.f, {(uint32_t)own, p->from, left < p->rows ? left : p->rows}, true};
}

/* The last stored state of a row is the one after the norm: a row's distribution is computed from that of the next row. The student's own
 * tokens are no labels. */
static void batch_add(hn_learner *l, hn_learn_made *b, const source *s) {
    const hn_features_read *f = s->f;
    const hn_learn_piece *p = &s->piece;
    const hn_feature_text *t = &f->text[p->text];
    const size_t width = f->header.width;
    const uint32_t last = f->header.n_states - 1, from = l->o.kind->reads_layers ? 0 : last;
    l->before[b->texts] = t->ids[p->from];
    l->start[b->texts++] = b->rows;
    for (int i = p->from; i < p->from + p->rows; i++, b->rows++) {
        const int next = i + 2 < t->n ? t->ids[i + 2] : -1;
        l->token[b->rows] = t->ids[i + 1];
        l->label[b->rows] = next >= 0 && !s->own ? l->tokens.output[next] : -1;
        l->weight[b->rows] = next >= 0 && (i + 2 >= t->own || l->all_words) && (!l->o.kind->own_output || l->label[b->rows] >= 0);
        b->own += (double)l->weight[b->rows];
        hn_real *states = l->states + (size_t)b->rows * l->reads;
        for (size_t k = 0; k * width < l->reads; k++)
            hn_dequantise(HN_BF16, hn_features_state(f, t, i, from + (uint32_t)k), width, states + k * width);
        hn_dequantise(HN_BF16, hn_features_state(f, t, i + 1, last), width, l->last + (size_t)b->rows * width);
    }
    l->start[b->texts] = b->rows;
}

/* Gives the text's next token a share of the distribution, if it is one of the chosen tokens. */
static void mix_in_tokens(hn_learner *l, const hn_learn_made *b, hn_mat dist) {
    const hn_real share = (hn_real)l->o.token_share;
    for (int i = 0; share > 0 && i < b->rows; i++) {
        if (l->weight[i] == 0 || l->label[i] < 0) continue;
        hn_real *p = hn_mat_row(dist, l->dist_row[i]);
        for (int c = 0; c < dist.cols; c++) p[c] *= 1 - share;
        p[l->label[i]] += share;
    }
}

/* The distributions of the rows with a loss. */
static hn_mat dists_of(hn_learner *l, const hn_learn_made *b) {
    const int vocab = l->o.vocab, hidden = l->target.hidden;
    int n = 0;
    for (int i = 0; i < b->rows; i++) {
        if (l->weight[i] == 0) continue;
        memcpy(l->counted + (size_t)n * (size_t)hidden, l->last + (size_t)i * (size_t)hidden,
               (size_t)hidden * sizeof *l->last);
        l->dist_row[i] = n++;
    }
    const hn_mat logits = hn_mat_of(l->logits, n, vocab), dist = hn_mat_of(l->dist, n, vocab);
    if (n == 0) return dist;
    hn_product(&l->workers, HN_ABT, hn_mat_of(l->counted, n, hidden), hn_mat_of(l->target.output, vocab, hidden), logits,
               false);
    for (size_t i = 0; l->target.cap > 0 && i < (size_t)n * (size_t)vocab; i++)
        l->logits[i] = (hn_real)(l->target.cap * tanhf((float)l->logits[i] / l->target.cap));
    hn_target_dist(&l->workers, logits, NULL, dist, NULL, NULL);
    mix_in_tokens(l, b, dist);
    return dist;
}

static hn_net_batch batch_end(hn_learner *l, const hn_learn_made *b) {
    const hn_mat last = hn_mat_of(l->last, b->rows, l->target.hidden), dist = dists_of(l, b);
    return (hn_net_batch){.texts = b->texts,
                          .start = l->start,
                          .token = l->token,
                          .before = l->before,
                          .state = hn_mat_of(l->states, b->rows, (int)l->reads),
                          .next = last,
                          .dist = dist,
                          .weight = l->weight,
                          .dist_row = l->dist_row,
                          .label = l->label};
}

size_t hn_learn_fitting(const hn_learner *l, const hn_learn_piece *all, const uint32_t *order, size_t n) {
    size_t taken = 0;
    for (int rows = 0; taken < n; taken++) {
        rows += all[order ? order[taken] : taken].rows;
        if (rows > l->o.rows) break;
    }
    return taken;
}

static source nth_source(const hn_learner *l, const hn_learn_piece *all, const uint32_t *order, size_t i) {
    return source_of(l, &all[order ? order[i] : i], order ? (long)(l->at + i) : -1);
}

/* The states of the stored texts, and those of the student's. */
static hunch_status need_states(hn_learner *l, const hn_learn_piece *all, const uint32_t *order, size_t n, hunch_error *err) {
    size_t stored = 0, own = 0;
    for (size_t i = 0; i < n; i++) {
        const source s = nth_source(l, all, order, i);
        l->wanted[s.own ? n - ++own : stored++] = (hn_features_wanted){s.piece.text, s.piece.from + s.piece.rows + 1};
    }
    hunch_status st = hn_features_need(l->f, l->wanted, stored, err);
    return st || own == 0 ? st : hn_features_need(&l->spoken.f, l->wanted + stored, own, err);
}

hunch_status hn_learn_make_batch(hn_learner *l, const hn_learn_piece *all, const uint32_t *order, size_t n, hn_learn_made *b,
                                 hn_net_batch *out, size_t *taken, hunch_error *err) {
    *b = (hn_learn_made){0};
    *taken = hn_learn_fitting(l, all, order, n);
    hunch_status st = need_states(l, all, order, *taken, err);
    for (size_t i = 0; !st && i < *taken; i++) {
        const source s = nth_source(l, all, order, i);
        batch_add(l, b, &s);
    }
    if (!st) *out = batch_end(l, b);
    return st;
}

/* A batch does not cross the end of an epoch. */
hunch_status hn_learn_next_batch(hn_learner *l, hn_learn_made *b, hn_net_batch *out, hunch_error *err) {
    size_t taken;
    if (l->at == l->n_all) {
        l->epoch++;
        hn_learn_shuffle(l);
    }
    hunch_status st = hn_on_policy_speak(l, err);
    if (!st) st = hn_learn_make_batch(l, l->all, l->order + l->at, l->n_all - l->at, b, out, &taken, err);
    if (!st) l->at += taken;
    return st;
}
