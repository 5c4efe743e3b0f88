/* SPDX-License-Identifier: Apache-2.0 */
/* learn_eagle3.c - training of EAGLE-3 (learn_kind.h): saved in speculators' layout, which vLLM and SGLang read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/nets/eagle3_net.h"
#include "train/learn/learn_kind.h"

typedef struct eagle3 {
    hn_learn_setting s;
    hn_eagle3_shape shape;
    hn_eagle3_net *net;
    int *order; /* [vocab] its outputs, cluster after cluster; NULL: it has no clusters */
} eagle3;

static void eagle3_close(void *head) {
    eagle3 *e = head;
    if (e) {
        hn_eagle3_net_close(e->net);
        hn_free(e->order);
    }
    hn_free(e);
}

static hn_mat output_rows(const eagle3 *e) {
    return hn_mat_of(e->s.rows->output, e->s.o->vocab, e->s.target->hidden);
}

static hunch_status check_clusters(const hn_learn_options *o, hunch_error *err) {
    const int most = o->clusters < HN_MAX_TOP ? o->clusters : HN_MAX_TOP;
    if (o->clusters < 2 || o->clusters > HN_MOST_CLUSTERS || o->vocab % o->clusters != 0)
        return hn_fail(err, HUNCH_USAGE, "%d centroids: expected 2 to %d, a divisor of the %d tokens that it drafts", o->clusters,
                       HN_MOST_CLUSTERS, o->vocab);
    return o->clusters_used <= most
               ? HUNCH_OK
               : hn_fail(err, HUNCH_USAGE, "%d of %d clusters: expected 1 to %d", o->clusters_used, o->clusters, most);
}

/* Chooses the tokens of each cluster. */
static hunch_status open_clusters(eagle3 *e, hunch_error *err) {
    const hn_learn_options *o = e->s.o;
    const int eighth = o->clusters < 16 ? 1 : o->clusters / 8, usual = eighth < 32 ? eighth : 32;
    const size_t n = (size_t)o->vocab;
    hunch_status st = check_clusters(o, err);
    if (st) return st;
    int *first = hn_alloc(n * sizeof *first);
    e->order = hn_alloc(n * sizeof *e->order);
    if (!first || !e->order) st = hn_fail_memory(err, "clusters of tokens", n * sizeof *first);
    for (size_t i = 0; !st && i < n; i++) first[i] = e->s.tokens->output[e->s.tokens->first[i]];
    if (!st) st = hn_clusters_choose(e->s.workers, o->cluster_start, output_rows(e), o->clusters, first, o->seed + 1, e->order, err);
    hn_free(first);
    e->shape.clusters = (hn_token_clusters){o->clusters, o->clusters_used ? o->clusters_used : usual, e->order};
    return st;
}

static hunch_status eagle3_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    const hn_arch *a = s->target;
    eagle3 *e = hn_alloc(sizeof *e);
    *out = NULL;
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    *e = (eagle3){.s = *s};
    e->shape = (hn_eagle3_shape){.sizes = hn_learn_sizes(s), .taps = s->n_taps * a->hidden, .vocab = s->o->vocab,
                                 .norm_before_residual = s->o->norm_before_residual};
    const hn_mat table = hn_mat_of(s->rows->embedding, a->vocab, a->hidden);
    hunch_status st = s->o->clusters ? open_clusters(e, err) : HUNCH_OK;
    if (!st) st = hn_eagle3_net_open(&e->net, s->workers, &e->shape, s->o->unroll, s->o->decay, table, s->o->rows, err);
    if (st)
        eagle3_close(e);
    else
        *out = e;
    return st;
}

static size_t eagle3_count(const void *head) {
    return hn_eagle3_count(&((const eagle3 *)head)->shape);
}

static int eagle3_parts(const void *head) {
    return ((const eagle3 *)head)->order ? HN_EAGLE3_ALL_PARTS : HN_EAGLE3_PARTS;
}

static const int *eagle3_order(const void *head) {
    return ((const eagle3 *)head)->order;
}

static size_t eagle3_read(const void *head) {
    const hn_eagle3_shape *s = &((const eagle3 *)head)->shape;
    const int out = s->clusters.count ? s->vocab / s->clusters.count * (s->clusters.count - s->clusters.used) : 0;
    return eagle3_count(head) - (size_t)out * (size_t)s->hidden;
}

static hn_mat eagle3_part(const void *head, int part, hn_real *vector) {
    return hn_eagle3_part_of(&((const eagle3 *)head)->shape, (hn_eagle3_part)part, vector);
}

/* The layer's tensors as speculators names them. */
static void eagle3_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    (void)head;
    static const char middle[] = "midlayer.";
    const char *name = hn_eagle3_part_name((hn_eagle3_part)part);
    const bool layer = !strncmp(name, middle, sizeof middle - 1);
    snprintf(out, HN_LEARN_PART_NAME, "%s%s", layer ? "layers.0." : "", layer ? name + sizeof middle - 1 : name);
}

/* Random matrices, norms 1; the last tap is passed unchanged to the target's own norm and output, so that the head
 * starts better than random. */
static void eagle3_begin(const void *head, hn_real *w) {
    const eagle3 *e = head;
    uint64_t x = e->s.o->seed + 1;
    for (int part = 0; part < HN_EAGLE3_PARTS; part++) {
        const hn_mat m = eagle3_part(e, part, w);
        const double spread = part == HN_EAGLE3_O || part == HN_EAGLE3_DOWN ? 0.2 / sqrt(m.cols) : 1 / sqrt(m.cols);
        if (m.rows > 1) hn_learn_random(m, spread, &x);
        for (int k = 0; m.rows == 1 && k < m.cols; k++) m.p[k] = 1;
    }
    const hn_mat fc = eagle3_part(e, HN_EAGLE3_FC, w), norm = eagle3_part(e, HN_EAGLE3_NORM, w),
                 output = eagle3_part(e, HN_EAGLE3_HEAD, w);
    const int hidden = e->shape.hidden;
    for (int i = 0; i < hidden; i++) {
        for (int k = 0; k < fc.cols; k++) hn_mat_row(fc, i)[k] *= (hn_real)0.1;
        hn_mat_row(fc, i)[fc.cols - hidden + i] += 1;
        norm.p[i] = e->s.rows->norm[i];
    }
    for (size_t i = 0; i < (size_t)output.rows * (size_t)hidden; i++) output.p[i] = e->s.rows->output[i];
    if (e->order) hn_clusters_means(output_rows(e), e->order, eagle3_part(e, HN_EAGLE3_CENTROIDS, w));
}

static double eagle3_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    return hn_eagle3_net_loss(((eagle3 *)head)->net, weights, b, gradient, losses);
}

/* ---- config.json -------------------------------------------------------------------------------------------------------- */

static json_t *layer_config(const eagle3 *e) {
    json_t *c = hn_config_layers(&e->s, &e->shape.sizes, "llama", 1);
    hn_config_put(&c, "attention_bias", json_false());
    hn_config_put(&c, "mlp_bias", json_false());
    return c;
}

static json_t *with_clusters(json_t *config, const hn_token_clusters *c) {
    if (!c->count || !config) return config;
    hn_config_put(&config, "num_centroids", json_integer(c->count));
    hn_config_put(&config, "centroid_intermediate_top_k", json_integer(c->used));
    hn_config_put(&config, "use_ordered_embeddings", json_true());
    return config;
}

static json_t *eagle3_config(const void *head) {
    const eagle3 *e = head;
    const hn_arch *target = e->s.target;
    json_t *how = hn_config_speculators(&e->s, "eagle3", e->s.o->unroll);
    json_t *config = json_pack("{s:[s], s:s, s:s, s:o, s:i, s:i, s:o, s:b, s:b, s:o}", "architectures", "Eagle3Speculator",
                     "speculators_model_type", "eagle3", "speculators_version", "0.9.0", "transformer_layer_config",
                     layer_config(e), "draft_vocab_size", e->shape.vocab, "target_hidden_size", target->hidden,
                     "eagle_aux_hidden_state_layer_ids", hn_config_taps(&e->s), "norm_before_residual",
                     e->shape.norm_before_residual ? 1 : 0, "tie_word_embeddings", 0, "speculators_config", how);
    return with_clusters(config, &e->shape.clusters);
}

const hn_learn_kind hn_learn_eagle3 = {.name = "eagle3",
                                       .others = "vLLM and SGLang",
                                       .others_need_embedding = true,
                                       .reads_layers = true,
                                       .own_output = true,
                                       .open = eagle3_open,
                                       .close = eagle3_close,
                                       .count = eagle3_count,
                                       .parts = eagle3_parts,
                                       .part = eagle3_part,
                                       .part_name = eagle3_part_name,
                                       .read = eagle3_read,
                                       .begin = eagle3_begin,
                                       .loss = eagle3_loss,
                                       .order = eagle3_order,
                                       .config = eagle3_config};
