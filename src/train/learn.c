/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - see learn.h. */
#include "train/learn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"
#include "base/random.h"
#include "train/adamw.h"
#include "train/common_tokens.h"
#include "train/hold_out.h"
#include "train/learn_kind.h"
#include "train/loss.h"
#include "train/online.h"
#include "train/product.h"
#include "train/save_head.h"
#include "train/target_rows.h"
#include "train/unrolled.h"

/* A part of a text that is learned from in one piece: rows [from, from + rows), each with the token behind it. */
typedef struct piece {
    uint32_t text;
    int from, rows;
} piece;

struct hn_learner {
    hunch_model *model;
    const hn_features_read *f;
    hn_learn_options o;
    hn_team team;
    void *head; /* of o.kind */
    hn_target_rows target;
    hn_common_tokens tokens; /* that it drafts, or by whose law it learns */
    piece *all;              /* learned from, in the order of the texts */
    uint32_t *order;         /* [n_all] of this epoch */
    size_t n_all, at;        /* at: the next in order */
    piece *judged;           /* held out */
    size_t n_judged;
    hn_train_text *held;
    size_t n_held;
    int step, epoch;
    hn_learn_note note;
    size_t count; /* of weights */
    void *memory; /* [bytes] all that follows */
    size_t bytes;
    hn_real *w, *g;
    hn_adamw adam;
    /* a batch */
    hn_features_wanted *wanted; /* [rows] */
    int *token, *start;
    size_t reads; /* numbers of the states that a row reads */
    int *law_row;
    hn_real *states, *last, *counted, *logits, *law, *weight; /* counted: last, of the rows that have a loss */
};

hn_learn_options hn_learn_usual(const hn_learn_kind *kind, const hn_arch *target, uint64_t tokens) {
    const int rows = 2048;
    const uint64_t epochs = tokens > 2000000 ? 3 : 6;
    const double steps = (double)(epochs * tokens) / rows;
    return (hn_learn_options){.kind = kind,
                              .steps = steps < 50 ? 50 : (int)steps,
                              .rows = rows,
                              .longest = 512,
                              .unroll = 3,
                              .decay = 0.8,
                              .rate = 1e-3,
                              .clip = 0.5,
                              .vocab = target->vocab < 8192 ? target->vocab : 8192,
                              .held_out = 32,
                              .every = 200,
                              .products = HN_PRODUCTS_BF16};
}

/* ---- texts in pieces ---------------------------------------------------------------------------------------------------- */

/* Of n tokens n - 1 are known with the token behind them. A piece without a row that is learned from is left out. */
static size_t cut(const hn_learner *l, uint32_t text, piece *out) {
    const hn_feature_text *t = &l->f->text[text];
    size_t n = 0;
    for (int from = 0; from < t->n - 1; from += l->o.longest) {
        const int left = t->n - 1 - from, rows = left < l->o.longest ? left : l->o.longest;
        if (from + rows + 1 <= t->own) continue;
        if (out) out[n] = (piece){text, from, rows};
        n++;
    }
    return n;
}

static hunch_status make_pieces(hn_learner *l, const hn_text_role *role, hunch_error *err) {
    size_t n = 0, m = 0;
    for (size_t t = 0; t < l->f->n; t++)
        if (role[t] != HN_TEXT_LEFT_OUT) *(role[t] == HN_TEXT_HELD_OUT ? &m : &n) += cut(l, (uint32_t)t, NULL);
    if (n == 0) return hn_fail(err, HUNCH_REFUSED, "no text has words of the target's own to learn from");
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

static hunch_status share_texts(hn_learner *l, hunch_error *err) {
    hn_text_role *role = hn_alloc((l->f->n ? l->f->n : 1) * sizeof *role);
    if (!role) return hn_fail_memory(err, "roles of texts", l->f->n * sizeof *role);
    hn_hold_out(l->f->text, l->f->n, l->o.held_out, role);
    hunch_status st = make_pieces(l, role, err);
    hn_free(role);
    return st;
}

/* The order of an epoch follows from seed and number alone. */
static void shuffle(hn_learner *l) {
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

typedef struct batch {
    int rows, texts;
    double own; /* rows that are learned from */
} batch;

/* The last of the stored states of a row is that behind the norm: of a row's law it is that of the row behind it. */
static void batch_add(hn_learner *l, batch *b, const piece *p) {
    const hn_feature_text *t = &l->f->text[p->text];
    const size_t width = l->f->header.width, row = l->f->header.n_states * width, last = row - width;
    const size_t from = l->o.kind->reads_layers ? 0 : last;
    l->start[b->texts++] = b->rows;
    for (int i = p->from; i < p->from + p->rows; i++, b->rows++) {
        const int next = i + 2 < t->n ? t->ids[i + 2] : -1;
        l->token[b->rows] = t->ids[i + 1];
        l->weight[b->rows] = next >= 0 && i + 2 >= t->own && (!l->o.kind->own_output || l->tokens.output[next] >= 0);
        b->own += (double)l->weight[b->rows];
        hn_dequantise(HN_BF16, t->states + (size_t)i * row + from, l->reads, l->states + (size_t)b->rows * l->reads);
        hn_dequantise(HN_BF16, t->states + (size_t)(i + 1) * row + last, width, l->last + (size_t)b->rows * width);
    }
    l->start[b->texts] = b->rows;
}

/* The laws of the rows that have a loss. */
static hn_mat laws_of(hn_learner *l, const batch *b) {
    const int vocab = l->o.vocab, hidden = l->target.hidden;
    int n = 0;
    for (int i = 0; i < b->rows; i++) {
        if (l->weight[i] == 0) continue;
        memcpy(l->counted + (size_t)n * (size_t)hidden, l->last + (size_t)i * (size_t)hidden,
               (size_t)hidden * sizeof *l->last);
        l->law_row[i] = n++;
    }
    const hn_mat logits = hn_mat_of(l->logits, n, vocab), law = hn_mat_of(l->law, n, vocab);
    if (n == 0) return law;
    hn_product(&l->team, HN_ABT, hn_mat_of(l->counted, n, hidden), hn_mat_of(l->target.output, vocab, hidden), logits,
               false);
    for (size_t i = 0; l->target.cap > 0 && i < (size_t)n * (size_t)vocab; i++)
        l->logits[i] = (hn_real)(l->target.cap * tanhf((float)l->logits[i] / l->target.cap));
    hn_law_kept(&l->team, logits, NULL, law, NULL, NULL);
    return law;
}

static hn_learn_batch batch_end(hn_learner *l, const batch *b) {
    const hn_mat last = hn_mat_of(l->last, b->rows, l->target.hidden), law = laws_of(l, b);
    return (hn_learn_batch){.texts = b->texts,
                            .start = l->start,
                            .token = l->token,
                            .states = hn_mat_of(l->states, b->rows, (int)l->reads),
                            .next = last,
                            .law = law,
                            .weight = l->weight,
                            .law_row = l->law_row};
}

/* A batch of the first pieces that fit, of n: those of `order`, NULL: as they stand. *taken: how many. */
static hunch_status make_batch(hn_learner *l, const piece *all, const uint32_t *order, size_t n, batch *b,
                               hn_learn_batch *out, size_t *taken, hunch_error *err) {
    int rows = 0;
    *b = (batch){0};
    for (*taken = 0; *taken < n; ++*taken) {
        const piece *p = &all[order ? order[*taken] : *taken];
        if (rows + p->rows > l->o.rows) break;
        rows += p->rows;
        l->wanted[*taken] = (hn_features_wanted){p->text, p->from + p->rows + 1};
    }
    hunch_status st = hn_features_need(l->f, l->wanted, *taken, err);
    for (size_t i = 0; !st && i < *taken; i++) batch_add(l, b, &all[order ? order[i] : i]);
    if (!st) *out = batch_end(l, b);
    return st;
}

/* A batch does not go over the end of an epoch. */
static hunch_status next_batch(hn_learner *l, batch *b, hn_learn_batch *out, hunch_error *err) {
    size_t taken;
    if (l->at == l->n_all) {
        l->epoch++;
        shuffle(l);
    }
    hunch_status st = make_batch(l, l->all, l->order + l->at, l->n_all - l->at, b, out, &taken, err);
    if (!st) l->at += taken;
    return st;
}

/* ---- open --------------------------------------------------------------------------------------------------------------- */

/* One block, for huge pages: a step walks through most of it, many times. */
static void lay_out(hn_learner *l, hn_room *r) {
    const size_t rows = (size_t)l->o.rows, vocab = (size_t)l->o.vocab, hidden = (size_t)l->target.hidden, real = sizeof *l->w;
    l->w = hn_room_take(r, l->count, real);
    l->g = hn_room_take(r, l->count, real);
    l->adam.mean = hn_room_take(r, l->count, real);
    l->adam.square = hn_room_take(r, l->count, real);
    l->wanted = hn_room_take(r, rows, sizeof *l->wanted);
    l->token = hn_room_take(r, rows, sizeof *l->token);
    l->start = hn_room_take(r, rows + 1, sizeof *l->start);
    l->law_row = hn_room_take(r, rows, sizeof *l->law_row);
    l->states = hn_room_take(r, rows * l->reads, real);
    l->last = hn_room_take(r, rows * hidden, real);
    l->counted = hn_room_take(r, rows * hidden, real);
    l->logits = hn_room_take(r, rows * vocab, real);
    l->law = hn_room_take(r, rows * vocab, real);
    l->weight = hn_room_take(r, rows, real);
}

static hunch_status buffers_create(hn_learner *l, hunch_error *err) {
    hn_room r = {0};
    l->adam = (hn_adamw){.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    lay_out(l, &r);
    l->bytes = r.used;
    l->memory = hn_pages_alloc(l->bytes);
    if (!l->memory) return hn_fail_memory(err, "training", l->bytes);
    r = (hn_room){.p = l->memory};
    lay_out(l, &r);
    return HUNCH_OK;
}

static hunch_status check_features(const hn_learner *l, hunch_error *err) {
    const hn_shard_header *h = &l->f->header;
    const hn_arch *a = &l->model->target.arch;
    const uint32_t least = l->o.kind->reads_layers ? 2 : 1;
    if (h->width != (uint32_t)a->hidden || h->n_states < least || h->boundary[h->n_states - 1] != HN_FEATURE_POST_NORM)
        return hn_fail(err, HUNCH_REFUSED,
                       "features of %u states of %u numbers: expected some of %d, and the last one behind the norm",
                       h->n_states, h->width, a->hidden);
    for (size_t t = 0; t < l->f->n; t++)
        for (int i = 0; i < l->f->text[t].n; i++)
            if (l->f->text[t].ids[i] < 0 || l->f->text[t].ids[i] >= a->vocab)
                return hn_fail(err, HUNCH_REFUSED, "features of token %d, expected 0 to %d", l->f->text[t].ids[i],
                               a->vocab - 1);
    return HUNCH_OK;
}

/* The features' level may have no products of bf16. */
static hunch_status team_open(hn_learner *l, hunch_error *err) {
    const hn_model *t = &l->model->target;
    const size_t scratch = hn_attention_scratch(l->o.longest);
    const hunch_status st = hn_team_open(&l->team, t->pool, t->ops.isa, l->o.products, scratch, err);
    return st == HUNCH_REFUSED && l->o.products == HN_PRODUCTS_BF16
               ? hn_team_open(&l->team, t->pool, t->ops.isa, HN_PRODUCTS_F32, scratch, err)
               : st;
}

static hunch_status head_open(hn_learner *l, hunch_error *err) {
    const int layers = l->o.kind->reads_layers ? (int)l->f->header.n_states - 1 : 0;
    const hn_learn_setting s = {.target = &l->model->target.arch,
                                .rows = &l->target,
                                .o = &l->o,
                                .team = &l->team,
                                .taps = l->f->header.boundary,
                                .n_taps = layers};
    l->reads = (size_t)(layers ? layers : 1) * l->f->header.width;
    hunch_status st = l->o.kind->open(&l->head, &s, err);
    if (st) return st;
    l->count = l->o.kind->count(l->head);
    st = buffers_create(l, err);
    if (!st) l->o.kind->begin(l->head, l->w);
    return st;
}

static hunch_status parts_open(hn_learner *l, const char *path, hunch_error *err) {
    const hn_arch *a = &l->model->target.arch;
    if (l->o.vocab > a->vocab) l->o.vocab = a->vocab;
    if (l->o.longest > l->o.rows) l->o.longest = l->o.rows;
    if (!l->o.ffn) l->o.ffn = a->layer[0].ffn_width;
    hunch_status st = check_features(l, err);
    if (!st) st = hn_common_tokens_choose(&l->tokens, l->model, l->f, l->o.vocab, err);
    if (!st) st = share_texts(l, err);
    if (!st) st = hn_target_rows_read(&l->target, path, a, l->tokens.ids, l->o.vocab, err);
    if (!st) st = team_open(l, err);
    if (!st) st = head_open(l, err);
    if (!st) shuffle(l);
    return st;
}

hunch_status hn_learner_open(hn_learner **out, hunch_model *m, const char *path, const hn_features_read *f,
                             const hn_learn_options *o, hunch_error *err) {
    hn_learner *l = hn_zalloc(1, sizeof *l);
    *out = NULL;
    if (!l) return hn_fail_memory(err, "training", sizeof *l);
    l->model = m;
    l->f = f;
    l->o = *o;
    hunch_status st = parts_open(l, path, err);
    if (st)
        hn_learner_close(&l);
    else
        *out = l;
    return st;
}

void hn_learner_close(hn_learner **lp) {
    hn_learner *l = *lp;
    *lp = NULL;
    if (!l) return;
    l->o.kind->close(l->head);
    hn_team_close(&l->team);
    hn_target_rows_free(&l->target);
    hn_common_tokens_free(&l->tokens);
    hn_pages_free(l->memory, l->bytes);
    void *const owned[] = {l->all, l->order, l->judged, l->held};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) hn_free(owned[i]);
    hn_free(l);
}

int hn_learner_step_number(const hn_learner *l) {
    return l->step;
}
hn_learn_note *hn_learner_note(hn_learner *l) {
    return &l->note;
}
double hn_learner_parameters(const hn_learner *l) {
    return (double)l->count;
}
double hn_learner_coverage(const hn_learner *l) {
    return l->tokens.coverage;
}
const hn_train_text *hn_learner_held_out(const hn_learner *l, size_t *n) {
    *n = l->n_held;
    return l->held;
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

hunch_status hn_learner_step(hn_learner *l, double *losses, int *tokens, hunch_error *err) {
    batch b;
    hn_learn_batch next;
    hunch_status st = next_batch(l, &b, &next, err);
    if (st) return st;
    const long wanted = l->o.steps / 20 + 1, warm_up = wanted < l->o.steps ? wanted : l->o.steps - 1;
    memset(l->g, 0, l->count * sizeof *l->g);
    const double loss = l->o.kind->loss(l->head, l->w, &next, l->g, losses), norm = hn_norm(&l->team, l->g, l->count);
    *tokens = b.rows;
    l->step++;
    if (!isfinite(loss) || !isfinite(norm))
        return hn_fail(err, HUNCH_FAILED,
                       "step %d: the loss is %g and its gradient's norm %g: the weights stay what they were before it",
                       l->step, loss, norm);
    const double rate = hn_learning_rate(l->step - 1, warm_up, l->o.steps, l->o.rate, l->o.rate / 50);
    hn_adamw_step(&l->team, &l->adam, l->w, l->g, l->count, hn_clip_factor(norm, l->o.clip), rate);
    return HUNCH_OK;
}

hunch_status hn_learner_judge(hn_learner *l, double *losses, hunch_error *err) {
    double sum[HN_MOST_STEPS] = {0}, all = 0;
    for (size_t i = 0, taken; i < l->n_judged; i += taken) {
        batch b;
        hn_learn_batch next;
        double one[HN_MOST_STEPS];
        hunch_status st = make_batch(l, l->judged + i, NULL, l->n_judged - i, &b, &next, &taken, err);
        if (st) return st;
        l->o.kind->loss(l->head, l->w, &next, NULL, one);
        for (int k = 0; k < l->o.unroll; k++) sum[k] += one[k] * b.own;
        all += b.own;
    }
    for (int k = 0; k < l->o.unroll; k++) losses[k] = all > 0 ? sum[k] / all : 0;
    return HUNCH_OK;
}

/* ---- files -------------------------------------------------------------------------------------------------------------- */

hunch_status hn_learner_save_head(const hn_learner *l, const char *folder, hunch_error *err) {
    const hn_learn_kind *kind = l->o.kind;
    const int vocab = l->model->target.arch.vocab;
    hn_saved_part part[HN_LEARN_MOST_PARTS];
    hn_head_to_save h = {.part = part, .vocab = l->o.vocab, .target_vocab = vocab, .config = kind->config(l->head)};
    if (!kind->own_output) h.commonest = l->tokens.first;
    if (kind->own_output && l->o.vocab < vocab) h.ids = l->tokens.ids;
    for (int i = 0; i < kind->parts; i++) {
        hn_saved_part *p = &part[h.n_parts];
        p->m = kind->part(l->head, i, l->w);
        kind->part_name(i, p->name);
        h.n_parts += p->m.rows > 0;
    }
    const hunch_status st = hn_head_save(&h, folder, err);
    json_decref(h.config);
    return st;
}

static const char magic[8] = "HUNCHCK3";

typedef struct checkpoint {
    char magic[8], kind[16], level[HN_TRAIN_LEVEL_BYTES];
    hn_shard_header features;
    char made[400]; /* what it must have been made with, as text */
    uint64_t count, at;
    int64_t adam_steps;
    int32_t step, epoch;
    hn_learn_note note;
} checkpoint;

static checkpoint checkpoint_of(const hn_learner *l) {
    const hn_arch *a = &l->model->target.arch;
    checkpoint c;
    memset(&c, 0, sizeof c); /* gaps too: it is compared as bytes */
    memcpy(c.magic, magic, sizeof c.magic);
    snprintf(c.kind, sizeof c.kind, "%s", l->o.kind->name);
    snprintf(c.level, sizeof c.level, "%s", hn_isa_name(l->model->target.ops.isa));
    c.features = l->f->header;
    snprintf(
        c.made, sizeof c.made,
        "steps %d rows %d longest %d unroll %d decay %.17g rate %.17g clip %.17g vocab %d ffn %d norm %d seed %llu "
        "held out %d products %d hidden %d heads %d %d",
        l->o.steps, l->o.rows, l->o.longest, l->o.unroll, l->o.decay, l->o.rate, l->o.clip, l->o.vocab, l->o.ffn,
        l->o.norm_before_residual, (unsigned long long)l->o.seed, l->o.held_out, (int)l->o.products, a->hidden,
        a->layer[0].heads, a->layer[0].kv_heads);
    c.count = l->count;
    c.at = l->at;
    c.note = l->note;
    c.step = l->step;
    c.epoch = l->epoch;
    c.adam_steps = l->adam.steps;
    return c;
}

hunch_status hn_learner_save(const hn_learner *l, const char *path, hunch_error *err) {
    const checkpoint c = checkpoint_of(l);
    const size_t bytes = l->count * sizeof *l->w;
    hn_out *out;
    hunch_status st = hn_out_open(&out, path, false, err);
    if (!st) st = hn_out_write(out, &c, sizeof c, err);
    if (!st) st = hn_out_write(out, l->w, bytes, err);
    if (!st) st = hn_out_write(out, l->adam.mean, bytes, err);
    if (!st) st = hn_out_write(out, l->adam.square, bytes, err);
    if (!st) return hn_out_finish(&out, err);
    hn_out_abort(&out);
    return st;
}

static hunch_status check_kind(const checkpoint *c, const hn_learn_kind *kind, const hunch_model *m, const char *path,
                               hunch_error *err) {
    const char *level = hn_isa_name(m->target.ops.isa);
    if (strncmp(c->kind, kind->name, sizeof c->kind) != 0)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a checkpoint of a head of kind %.16s: expected one of %s, or another name for the head",
                       path, c->kind, kind->name);
    if (strncmp(c->level, level, sizeof c->level) != 0)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a checkpoint of instruction level %.24s: expected one of %s, or another name for the head",
                       path, c->level, level);
    return HUNCH_OK;
}

hunch_status hn_learner_planned(const char *path, const hn_learn_kind *kind, const hunch_model *m, int *steps,
                                hunch_error *err) {
    checkpoint c;
    hn_map map;
    *steps = 0;
    if (!hn_is_file(path)) return HUNCH_OK;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    if (map.size >= sizeof c && !memcmp(map.data, magic, sizeof magic)) {
        memcpy(&c, map.data, sizeof c);
        if (memchr(c.made, 0, sizeof c.made)) (void)sscanf(c.made, "steps %d", steps);
        st = check_kind(&c, kind, m, path, err);
    }
    hn_map_close(&map);
    return st;
}

hunch_status hn_learner_load(hn_learner *l, const char *path, hunch_error *err) {
    const checkpoint want = checkpoint_of(l);
    const size_t bytes = l->count * sizeof *l->w;
    checkpoint c;
    hn_map map;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    if (map.size < sizeof c || memcmp(map.data, want.magic, sizeof want.magic) != 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: no checkpoint", path);
    else {
        memcpy(&c, map.data, sizeof c);
        st = check_kind(&c, l->o.kind, l->model, path, err);
        if (!st && (memcmp(&c.features, &want.features, sizeof c.features) ||
                    memcmp(c.made, want.made, sizeof c.made) || c.count != want.count ||
                    map.size != sizeof c + 3 * bytes || c.at > l->n_all || !hn_run_history_is_whole(&c.note.past)))
            st = hn_fail(
                err, HUNCH_REFUSED,
                "%s: a checkpoint of other texts or options: expected the same again, or another name for the head",
                path);
    }
    if (!st) {
        memcpy(l->w, map.data + sizeof c, bytes);
        memcpy(l->adam.mean, map.data + sizeof c + bytes, bytes);
        memcpy(l->adam.square, map.data + sizeof c + 2 * bytes, bytes);
        l->adam.steps = (long)c.adam_steps;
        l->note = c.note;
        l->step = c.step;
        l->epoch = c.epoch;
        shuffle(l);
        l->at = (size_t)c.at;
    }
    hn_map_close(&map);
    return st;
}
