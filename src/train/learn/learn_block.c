/* SPDX-License-Identifier: Apache-2.0 */
/* learn_block.c - training of heads that draft all their tokens in one pass (learn_kind.h): P-EAGLE, DFlash and DSpark,
 * saved in speculators' layouts, DART and JetSpec, in their releases', Domino, in SpecForge's. All draft only the chosen tokens, with an
 * output matrix of their own that is trained too (DFlash with the whole vocabulary has the target's, as its loaders do); masks have the
 * embedding of the vocabulary's last token. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/nets/block_net.h"
#include "train/learn/learn_kind.h"

typedef struct blocks {
    hn_learn_setting s;
    hn_block_shape shape;
    hn_block_net *net;
} blocks;

static void blocks_close(void *head) {
    blocks *e = head;
    if (e) hn_block_net_close(e->net);
    hn_free(e);
}

enum { MARKOV_RANK = 64 };

/* What a kind's net has beside its size. */
typedef struct blocks_form {
    hn_block_kind kind;
    int markov_rank;
    bool causal;
    hn_prefix_shape prefix;
} blocks_form;

static hunch_status blocks_open(void **out, const hn_learn_setting *s, blocks_form f, hunch_error *err) {
    const hn_arch *a = s->target;
    *out = NULL;
    if (s->o->unroll < 2 || s->o->unroll >= HN_MOST_BLOCK)
        return hn_fail(err, HUNCH_USAGE, "--unroll %d: a head of kind %s drafts them in one pass: expected 2 to %d",
                       s->o->unroll, s->o->kind->name, HN_MOST_BLOCK - 1);
    blocks *e = hn_alloc(sizeof *e);
    if (!e) return hn_fail_memory(err, "a head in training", sizeof *e);
    *e = (blocks){.s = *s};
    e->shape = (hn_block_shape){.sizes = hn_learn_sizes(s), .kind = f.kind, .taps = s->n_taps * a->hidden,
                                .layers = s->o->layers, .vocab = s->o->vocab,
                                .borrowed = f.kind == HN_BLOCK_DFLASH && s->o->vocab == a->vocab,
                                .drafts = s->o->unroll, .mask_token = a->vocab - 1, .causal = f.causal,
                                .markov_rank = f.markov_rank, .tokens = a->vocab, .prefix = f.prefix,
                                .decay = s->o->decay, .keep = 0.7, .least = 0.2};
    const hn_mat table = hn_mat_of(s->rows->embedding, a->vocab, a->hidden);
    const hn_mat output = hn_mat_of(s->rows->output, s->o->vocab, a->hidden);
    hunch_status st = hn_block_net_open(&e->net, s->workers, &e->shape, table, output, s->o->rows, err);
    if (st)
        blocks_close(e);
    else
        *out = e;
    return st;
}

static hunch_status peagle_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, (blocks_form){.kind = HN_BLOCK_PEAGLE}, err);
}

static hunch_status dart_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, (blocks_form){.kind = HN_BLOCK_DART}, err);
}

static hunch_status dflash_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, (blocks_form){.kind = HN_BLOCK_DFLASH}, err);
}

static hunch_status dspark_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, (blocks_form){.kind = HN_BLOCK_DFLASH, .markov_rank = MARKOV_RANK}, err);
}

static hunch_status jetspec_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    return blocks_open(out, s, (blocks_form){.kind = HN_BLOCK_DFLASH, .causal = true}, err);
}

/* The recipes' sizes for models of 2,560 numbers or more; others have parts of their own width, in whole blocks of quantised types. */
static hn_prefix_shape prefix_of(const hn_learn_setting *s) {
    enum { BLOCK = 32, MOST_STATE = 1024, MOST_WIDTH = 256 };
    const int state = (s->target->hidden / 2 + BLOCK - 1) / BLOCK * BLOCK, width = (s->target->hidden / 8 + BLOCK - 1) / BLOCK * BLOCK;
    return (hn_prefix_shape){.state = state < MOST_STATE ? state : MOST_STATE,
                             .width = width < MOST_WIDTH ? width : MOST_WIDTH,
                             .plain = s->o->plain,
                             .shifted = s->o->shift_label};
}

static hunch_status domino_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    if (s->o->plain < 0 || s->o->plain >= s->o->unroll) {
        *out = NULL;
        return hn_fail(err, HUNCH_USAGE, "--pure-prefix %d of --unroll %d drafts: expected 0 to %d", s->o->plain, s->o->unroll,
                       s->o->unroll - 1);
    }
    return blocks_open(out, s, (blocks_form){.kind = HN_BLOCK_DFLASH, .prefix = prefix_of(s)}, err);
}

static size_t blocks_count(const void *head) {
    return hn_block_count(&((const blocks *)head)->shape);
}

static int blocks_parts(const void *head) {
    return hn_block_parts(&((const blocks *)head)->shape);
}

static hn_mat blocks_part(const void *head, int part, hn_real *vector) {
    return hn_block_part_of(&((const blocks *)head)->shape, part, vector);
}

static void blocks_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    hn_block_part_name(&((const blocks *)head)->shape, part, out);
}

/* One pass makes all drafts. */
static size_t blocks_read(const void *head) {
    const blocks *e = head;
    return blocks_count(e) / (size_t)e->shape.drafts;
}

/* mask_hidden [1][1][taps] */
static int peagle_ones(const void *head HN_UNUSED, int part) {
    return part == HN_BLOCK_MASK ? 2 : 0;
}

/* ---- as published -------------------------------------------------------------------------------------------------------- */

static void peagle_usual(hn_learn_options *o) {
    o->unroll = 5;
    o->decay = 1;
}

static void dart_usual(hn_learn_options *o) {
    o->unroll = 5;
    o->decay = 0.6;
}

/* speculators' blocks of 8, whose weights decrease to e^-1 in 4 places. */
static void dflash_usual(hn_learn_options *o) {
    o->unroll = 7;
    o->decay = exp(-1.0 / 4);
    o->layers = 2;
}

/* All places count alike, as in its recipe. */
static void jetspec_usual(hn_learn_options *o) {
    dflash_usual(o);
    o->decay = 1;
}

/* ---- initial weights ----------------------------------------------------------------------------------------------------------- */

/* Passes the last tap unchanged to the target's own norm and output, as in EAGLE-3. */
static void pass_tap_on(const blocks *e, hn_real *w) {
    const hn_mat fc = blocks_part(e, HN_BLOCK_FC, w);
    for (int i = 0; i < fc.rows; i++) {
        for (int k = 0; k < fc.cols; k++) hn_mat_row(fc, i)[k] *= (hn_real)0.1;
        hn_mat_row(fc, i)[fc.cols - e->shape.hidden + i] += 1;
    }
}

static bool ends_layer(int part) {
    const int of_layer = (part - HN_BLOCK_LAYERS) % HN_BLOCK_LAYER_PARTS;
    return part >= HN_BLOCK_LAYERS && (of_layer == HN_BLOCK_O || of_layer == HN_BLOCK_DOWN);
}

/* The factor of the target's output. If no state is passed on (DFlash) it is so small that the logits of a random
 * direction have a standard deviation of a third: with the target's size they would be confident without information. 1
 * if the matrix is not trained, but only the norm before it, whose few numbers take longer to grow. */
static double gain_of(const blocks *e) {
    const float *norm = e->s.rows->norm, *output = e->s.rows->output;
    const int vocab = e->shape.vocab, hidden = e->shape.hidden;
    double square = 0;
    if (e->shape.kind != HN_BLOCK_DFLASH) return 1;
    for (int i = 0; i < vocab; i++)
        for (int k = 0; k < hidden; k++) {
            const double x = (double)norm[k] * (double)output[(size_t)i * (size_t)hidden + (size_t)k];
            square += x * x;
        }
    const double spread = sqrt(square / vocab), wanted = e->shape.borrowed ? 1 : 1.0 / 3;
    return spread > wanted ? wanted / spread : 1;
}

/* Random matrices and mask, norms 1; norm and output are the target's. DFlash drafts only through its attention: there
 * the last matrices of layers start as large as the others. */
static void blocks_begin(const void *head, hn_real *w) {
    const blocks *e = head;
    const double ends = e->shape.kind == HN_BLOCK_DFLASH ? 1 : 0.2, gain = gain_of(e);
    uint64_t x = e->s.o->seed + 1;
    for (int part = 0; part < blocks_parts(e); part++) {
        const hn_mat m = blocks_part(e, part, w);
        if (part == HN_BLOCK_MARKOV_OUT || part == HN_BLOCK_BIAS_OUT) { /* initially it adds nothing */
            for (size_t i = 0; i < (size_t)m.rows * (size_t)m.cols; i++) m.p[i] = 0;
            continue;
        }
        if (m.rows > 1) hn_learn_random(m, (ends_layer(part) ? ends : 1) / sqrt(m.cols), &x);
        if (part == HN_BLOCK_MASK) hn_learn_random(m, 1, &x);
        for (int k = 0; part != HN_BLOCK_MASK && m.rows == 1 && k < m.cols; k++) m.p[k] = 1;
    }
    if (e->shape.kind != HN_BLOCK_DFLASH) pass_tap_on(e, w);
    const hn_mat norm = blocks_part(e, HN_BLOCK_NORM, w), output = blocks_part(e, HN_BLOCK_HEAD, w);
    const double of_norm = e->shape.borrowed ? gain : 1, of_output = e->shape.borrowed ? 1 : gain;
    for (int i = 0; i < norm.cols; i++) norm.p[i] = (hn_real)(of_norm * (double)e->s.rows->norm[i]);
    for (size_t i = 0; i < (size_t)output.rows * (size_t)output.cols; i++)
        output.p[i] = (hn_real)(of_output * (double)e->s.rows->output[i]);
}

/* The share of the block's own logits in the loss falls to none in the first half of the steps, as SpecForge's usual. */
static double base_share(double done) {
    return done < 0.5 ? 1 - 2 * done : 0;
}

static double blocks_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    hn_net_batch own = *b;
    own.base_share = base_share(b->done);
    return hn_block_net_loss(((blocks *)head)->net, weights, &own, gradient, losses);
}

/* ---- config.json --------------------------------------------------------------------------------------------------------- */

static json_t *layer_config(const blocks *e, const char *type) {
    json_t *c = hn_config_layers(&e->s, &e->shape.sizes, type, e->shape.layers);
    hn_config_put(&c, "rope_parameters", json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", e->shape.theta));
    hn_config_put(&c, "attention_bias", json_false());
    return c;
}

static json_t *speculators_config(const blocks *e, const char *name, const char *architecture, const char *taps,
                                  const char *type) {
    return json_pack("{s:[s], s:s, s:s, s:o, s:i, s:i, s:o, s:i, s:b, s:s, s:o}", "architectures", architecture,
                     "speculators_model_type", name, "speculators_version", "0.9.0", "transformer_layer_config",
                     layer_config(e, type), "draft_vocab_size", e->shape.vocab, "target_hidden_size",
                     e->s.target->hidden, taps, hn_config_taps(&e->s), "mask_token_id", e->shape.mask_token, "tie_word_embeddings",
                     0, "torch_dtype", "bfloat16", "speculators_config",
                     hn_config_speculators(&e->s, name, e->shape.drafts));
}

static json_t *peagle_config(const void *head) {
    json_t *c = speculators_config(head, "peagle", "PEagleDraftModel", "eagle_aux_hidden_state_layer_ids", "llama");
    static const char *const off[] = {"norm_before_residual", "norm_before_fc", "norm_output", "fc_norm",
                                      "embed_requires_grad"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) hn_config_put(&c, off[i], json_false());
    return c;
}

static json_t *block_config(const blocks *e, const char *name, const char *architecture) {
    json_t *c = speculators_config(e, name, architecture, "aux_hidden_state_layer_ids", "qwen3");
    json_t *layer = json_incref(json_object_get(c, "transformer_layer_config"));
    hn_config_put(&layer, "layer_types", hn_config_layer_types(e->shape.layers));
    hn_config_put(&layer, "use_sliding_window", json_false());
    hn_config_put(&c, "transformer_layer_config", layer);
    hn_config_put(&c, "block_size", json_integer(e->shape.drafts + 1));
    hn_config_put(&c, "sample_from_anchor", json_false());
    hn_config_put(&c, "sliding_window_non_causal", json_false());
    return c;
}

static json_t *dflash_config(const void *head) {
    return block_config(head, "dflash", "DFlashDraftModel");
}

static json_t *dspark_config(const void *head) {
    json_t *c = block_config(head, "dspark", "DSparkDraftModel");
    hn_config_put(&c, "markov_head_type", json_string("vanilla"));
    hn_config_put(&c, "markov_rank", json_integer(((const blocks *)head)->shape.markov_rank));
    hn_config_put(&c, "enable_confidence_head", json_false());
    return c;
}

/* The layout of the kinds that release it, which lists outputs of layers: those of states are one less. own: keys of the kind, taken. */
static json_t *release_config(const blocks *e, const char *architecture, json_t *own) {
    json_t *c = layer_config(e, "qwen3"), *outputs = json_array();
    for (int i = 0; i < e->s.n_taps; i++) hn_config_append(&outputs, json_integer(e->s.taps[i] - 1));
    hn_config_put(&own, "mask_token_id", json_integer(e->shape.mask_token));
    hn_config_put(&own, "target_layer_ids", outputs);
    hn_config_put(&c, "architectures", json_pack("[s]", architecture));
    hn_config_put(&c, "dflash_config", own);
    hn_config_put(&c, "block_size", json_integer(e->shape.drafts + 1));
    hn_config_put(&c, "draft_vocab_size", json_integer(e->shape.vocab));
    hn_config_put(&c, "num_target_layers", json_integer(e->s.target->layers));
    hn_config_put(&c, "layer_types", hn_config_layer_types(e->shape.layers));
    hn_config_put(&c, "use_sliding_window", json_false());
    hn_config_put(&c, "torch_dtype", json_string("bfloat16"));
    return c;
}

static json_t *jetspec_config(const void *head) {
    return release_config(head, "DFlashDraftModel", json_pack("{s:b}", "causal_head", 1));
}

static json_t *domino_config(const void *head) {
    const hn_prefix_shape *p = &((const blocks *)head)->shape.prefix;
    json_t *own = json_pack("{s:s, s:i, s:i, s:i, s:b}", "projector_type", "domino", "emb_dim", p->width, "gru_hidden_dim", p->state,
                            "pure_draft_prefix_len", p->plain, "shift_label", p->shifted);
    return release_config(head, "DominoDraftModel", own);
}

/* The release always reads the states 2, L/2 and L - 3; a list that begins with 1 would be one of outputs, except with vLLM's key. */
static json_t *dart_config(const void *head) {
    const blocks *e = head;
    json_t *c = layer_config(e, "llama");
    hn_config_put(&c, "architectures", json_pack("[s]", "LlamaForCausalLMDart"));
    hn_config_put(&c, "draft_vocab_size", json_integer(e->shape.vocab));
    hn_config_put(&c, "draft_length", json_integer(e->shape.drafts - 1));
    hn_config_put(&c, "eagle_aux_hidden_state_layer_ids", hn_config_taps(&e->s));
    if (e->s.taps[0] == 1) hn_config_put(&c, "ptd_token_id", json_integer(e->shape.mask_token));
    hn_config_put(&c, "torch_dtype", json_string("bfloat16"));
    return c;
}

#define SHARED                                                                                                         \
    .reads_layers = true, .own_output = true, .close = blocks_close, .count = blocks_count, .parts = blocks_parts,     \
    .part = blocks_part, .part_name = blocks_part_name, .read = blocks_read, .begin = blocks_begin,                    \
    .loss = blocks_loss

const hn_learn_kind hn_learn_peagle = {.name = "peagle",
                                       .others = "vLLM's speculators",
                                       .others_need_embedding = true,
                                       .layered = true,
                                       .usual = peagle_usual,
                                       .ones = peagle_ones,
                                       .open = peagle_open,
                                       .config = peagle_config,
                                       SHARED};
const hn_learn_kind hn_learn_dart = {.name = "dart",
                                     .others = "DART's release",
                                     .usual = dart_usual,
                                     .open = dart_open,
                                     .config = dart_config,
                                     SHARED};
const hn_learn_kind hn_learn_dflash = {.name = "dflash",
                                       .others = "vLLM's speculators",
                                       .layered = true,
                                       .usual = dflash_usual,
                                       .open = dflash_open,
                                       .config = dflash_config,
                                       SHARED};
const hn_learn_kind hn_learn_dspark = {.name = "dspark",
                                       .others = "vLLM's speculators",
                                       .layered = true,
                                       .usual = dflash_usual,
                                       .open = dspark_open,
                                       .config = dspark_config,
                                       SHARED};
const hn_learn_kind hn_learn_jetspec = {.name = "jetspec",
                                        .others = "JetSpec's release",
                                        .layered = true,
                                        .usual = jetspec_usual,
                                        .open = jetspec_open,
                                        .config = jetspec_config,
                                        SHARED};
const hn_learn_kind hn_learn_domino = {.name = "domino",
                                       .others = "SpecForge",
                                       .layered = true,
                                       .shifts = true,
                                       .usual = dflash_usual,
                                       .open = domino_open,
                                       .config = domino_config,
                                       SHARED};
