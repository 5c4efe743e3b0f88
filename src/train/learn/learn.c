/* SPDX-License-Identifier: Apache-2.0 */
/* learn.c - see learn.h. */
#include "train/learn/learn.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "train/learn/learn_private.h"
#include "train/nets/unrolled.h"

hn_learn_options hn_learn_usual(const hn_learn_kind *kind, const hn_arch *target, uint64_t tokens) {
    const int rows = 2048;
    const uint64_t epochs = tokens > 2000000 ? 3 : 6;
    const double steps = (double)(epochs * tokens) / rows;
    hn_learn_options o = {.kind = kind,
                          .steps = steps < 50 ? 50 : (int)steps,
                          .rows = rows,
                          .longest = 512,
                          .unroll = 3,
                          .layers = 1,
                          .decay = 0.8,
                          .rate = 1e-3,
                          .clip = 0.5,
                          .state_share = 1,
                          .vocab = target->vocab < 8192 ? target->vocab : 8192,
                          .policy_temperature = 1,
                          .refresh = 8,
                          .parallel = 24,
                          .held_out = 32,
                          .every = 200,
                          .products = HN_PRODUCTS_BF16};
    if (kind->usual) kind->usual(&o);
    return o;
}

/* ---- open --------------------------------------------------------------------------------------------------------------- */

/* One block, for huge pages: a step reads most of it many times. */
static void lay_out(hn_learner *l, hn_room *r) {
    const size_t rows = (size_t)l->o.rows, vocab = (size_t)l->o.vocab, hidden = (size_t)l->target.hidden, real = sizeof *l->w;
    l->w = hn_room_take(r, l->count, real);
    l->g = hn_room_take(r, l->count, real);
    l->adam.mean = hn_room_take(r, l->count, real);
    l->adam.square = hn_room_take(r, l->count, real);
    l->wanted = hn_room_take(r, rows, sizeof *l->wanted);
    l->token = hn_room_take(r, rows, sizeof *l->token);
    l->start = hn_room_take(r, rows + 1, sizeof *l->start);
    l->before = hn_room_take(r, rows, sizeof *l->before);
    l->dist_row = hn_room_take(r, rows, sizeof *l->dist_row);
    l->label = hn_room_take(r, rows, sizeof *l->label);
    l->states = hn_room_take(r, rows * l->reads, real);
    l->last = hn_room_take(r, rows * hidden, real);
    l->counted = hn_room_take(r, rows * hidden, real);
    l->logits = hn_room_take(r, rows * vocab, real);
    l->dist = hn_room_take(r, rows * vocab, real);
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
                       "features of %u states of %u numbers: expected some of %d, and the last one after the norm",
                       h->n_states, h->width, a->hidden);
    for (size_t t = 0; t < l->f->n; t++)
        for (int i = 0; i < l->f->text[t].n; i++)
            if (l->f->text[t].ids[i] < 0 || l->f->text[t].ids[i] >= a->vocab)
                return hn_fail(err, HUNCH_REFUSED, "features of token %d, expected 0 to %d", l->f->text[t].ids[i],
                               a->vocab - 1);
    return HUNCH_OK;
}

/* The level of the features may have no products of bf16. */
static hunch_status workers_open(hn_learner *l, hunch_error *err) {
    const hn_model *t = &l->model->target;
    const size_t scratch = hn_attention_scratch(l->o.longest + 1); /* a draft model reads the token before a piece, too */
    const hunch_status st = hn_workers_open(&l->workers, t->pool, t->isa, l->o.products, scratch, err);
    return st == HUNCH_REFUSED && l->o.products == HN_PRODUCTS_BF16
               ? hn_workers_open(&l->workers, t->pool, t->isa, HN_PRODUCTS_F32, scratch, err)
               : st;
}

static hunch_status head_open(hn_learner *l, const char *path, hunch_error *err) {
    const int layers = l->o.kind->reads_layers ? (int)l->f->header.n_states - 1 : 0;
    const hn_learn_setting s = {.target = &l->model->target.arch,
                                .rows = &l->target,
                                .o = &l->o,
                                .workers = &l->workers,
                                .path = path,
                                .name = &l->name,
                                .ids = l->tokens.ids,
                                .tokens = &l->tokens,
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
    if (l->o.on_policy > 0 && (!l->o.kind->whole_model || !l->o.spoken_in || l->o.on_policy > 1))
        return hn_fail(err, HUNCH_USAGE, "a head of kind %s with a share %g of its own texts: expected a draft model, a share of at "
                                         "most 1, and a folder", l->o.kind->name, l->o.on_policy);
    hunch_status st = check_features(l, err);
    if (!st) st = hn_common_tokens_choose(&l->tokens, l->model, l->f, l->o.vocab, err);
    if (!st) st = hn_learn_share_texts(l, err);
    if (!st) st = hn_target_rows_read(&l->target, path, a, l->tokens.ids, l->o.vocab, err);
    if (!st) st = hn_target_name_read(&l->name, path, l->o.verifier, err);
    if (!st) st = workers_open(l, err);
    if (!st) st = head_open(l, path, err);
    if (!st) hn_learn_shuffle(l);
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
    hn_on_policy_close(&l->spoken);
    l->o.kind->close(l->head);
    hn_workers_close(&l->workers);
    hn_target_rows_free(&l->target);
    hn_target_name_free(&l->name);
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
double hn_learner_draft_reads(const hn_learner *l) {
    return (double)(l->o.kind->read ? l->o.kind->read(l->head) : l->count);
}
double hn_learner_coverage(const hn_learner *l) {
    return l->tokens.coverage;
}
const hn_train_text *hn_learner_held_out(const hn_learner *l, size_t *n) {
    *n = l->n_held;
    return l->held;
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

/* The steps of the first of two stages: as IBM's 15,000 of 21,000. */
static int first_stage(const hn_learner *l) {
    return l->o.kind->two_stages ? (int)((long)l->o.steps * 5 / 7) : 0;
}

/* With two stages the first decreases to a tenth, the second from there to a hundredth. */
static double rate_of(const hn_learner *l, int step) {
    const int first = first_stage(l), end = first ? first : l->o.steps;
    const long wanted = l->o.steps / 20 + 1, warm_up = wanted < end ? wanted : end - 1;
    const double peak = l->o.rate;
    if (step < first) return hn_learning_rate(step, warm_up, first, peak, peak / 10);
    return first ? hn_learning_rate(step - first, 0, l->o.steps - first, peak / 10, peak / 100)
                 : hn_learning_rate(step, warm_up, l->o.steps, peak, peak / 50);
}

hunch_status hn_learner_step(hn_learner *l, double *losses, int *tokens, hunch_error *err) {
    hn_learn_made b;
    hn_net_batch next;
    l->all_words = l->step < first_stage(l);
    hunch_status st = hn_learn_next_batch(l, &b, &next, err);
    l->all_words = false;
    if (st) return st;
    next.seed = l->o.seed * 0x9e3779b97f4a7c15u + (uint64_t)l->step + 1;
    next.done = (double)l->step / l->o.steps;
    memset(l->g, 0, l->count * sizeof *l->g);
    const double loss = l->o.kind->loss(l->head, l->w, &next, l->g, losses), norm = hn_gradient_norm(&l->workers, l->g, l->count);
    *tokens = b.rows;
    l->step++;
    if (!isfinite(loss) || !isfinite(norm))
        return hn_fail(err, HUNCH_FAILED,
                       "step %d: the loss is %g and its gradient's norm %g: the weights are those before it",
                       l->step, loss, norm);
    const double rate = rate_of(l, l->step - 1);
    hn_adamw_step(&l->workers, &l->adam, l->w, l->g, l->count, hn_clip_factor(norm, l->o.clip), rate);
    return HUNCH_OK;
}

hunch_status hn_learner_held_out_losses(hn_learner *l, double *losses, hunch_error *err) {
    double sum[HN_MOST_STEPS] = {0}, all = 0;
    for (size_t i = 0, taken; i < l->n_judged; i += taken) {
        hn_learn_made b;
        hn_net_batch next;
        double one[HN_MOST_STEPS];
        hunch_status st = hn_learn_make_batch(l, l->judged + i, NULL, l->n_judged - i, &b, &next, &taken, err);
        if (st) return st;
        next.seed = i; /* the same in every check */
        next.done = 1;
        l->o.kind->loss(l->head, l->w, &next, NULL, one);
        for (int k = 0; k < l->o.unroll; k++) sum[k] += one[k] * b.own;
        all += b.own;
    }
    for (int k = 0; k < l->o.unroll; k++) losses[k] = all > 0 ? sum[k] / all : 0;
    return HUNCH_OK;
}
