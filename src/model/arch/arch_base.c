/* SPDX-License-Identifier: Apache-2.0 */
/* arch_base.c - what all families share: the rows of their keys (RMSNorm, grouped-query attention with RoPE, SwiGLU), and what follows from
 * them: heads, vocabulary, windows. Tensors: roles.c; lists by layer: arch_lists.c; experts: arch_moe.c; rotations: arch_rope.c. The
 * differences of a family are in its own file (arch_llama.c, arch_qwen.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/quantised.h"
#include "model/arch/latent_desc.h"

/* ---- values that follow from others -------------------------------------------------------------------------------------- */

static double vocab_of(const hn_arch *a, const hn_layer_desc *l HN_UNUSED) { return a->vocab; }
static double heads_of(const hn_arch *a HN_UNUSED, const hn_layer_desc *l) { return l->heads; }
static double head_dim_of(const hn_arch *a, const hn_layer_desc *l) { return a->hidden / l->heads; }
double hn_usual_value_dim(const hn_arch *a, const hn_layer_desc *l) {
    return a->files.form == HN_SOURCE_HF ? l->head_dim : a->hidden / l->heads;
}
double hn_scale_of_heads(const hn_arch *a HN_UNUSED, const hn_layer_desc *l) { return (double)(1.0f / sqrtf((float)l->head_dim)); }

/* A folder's YaRN and longrope may give the context before scaling instead. */
static double factor_of(const hn_arch *a, const hn_layer_desc *l HN_UNUSED) {
    const hn_scaling *s = &a->rotation[0].scaling;
    return s->kind == HN_SCALING_YARN || s->kind == HN_SCALING_LONGROPE ? a->context / s->original : (double)NAN;
}

/* In a GGUF one matrix of gate and up is called up. */
hunch_status hn_read_gate_up(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err HN_UNUSED) {
    const hn_tensor *up = hn_source_find(r->src, "blk.0.ffn_up.weight");
    *v = k->usual[hn_source_get_kind(r->src)];
    if (hn_source_get_kind(r->src) == HN_SOURCE_GGUF)
        *v = !hn_source_find(r->src, "blk.0.ffn_gate.weight") && up && up->dims[1] == 2 * (uint64_t)r->l->ffn_width;
    return HUNCH_OK;
}

/* The number of key heads; in a list that has 0 for the layers without any, that of the others. */
hunch_status hn_read_kv_heads(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    hn_key_buf key;
    const double usual = k->usual[1] > 0 && hn_source_get_kind(r->src) == HN_SOURCE_HF ? k->usual[1] : r->l->heads;
    const hn_key *one = hn_family_key_of(&key, r->a->family, k->gguf, k->folder, k->least, k->most, usual);
    const char *path = hn_source_path(r->src);
    const hn_array *list = NULL;
    if (hn_source_get_kind(r->src) != HN_SOURCE_GGUF || hn_source_array(r->src, one->gguf, &list, NULL) || !list ||
        hn_array_is_strings(list)) {
        int n = 0;
        const hunch_status st = hn_key_int(r->src, one, &n, err);
        *v = n;
        return st;
    }
    for (size_t i = 0; i < hn_array_count(list); i++) {
        const double n = hn_array_number(list, i);
        if (n != 0 && (!(n >= k->least && n <= k->most) || n != floor(n) || (*v > 0 && n != *v)))
            return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g for layer %zu, expected 0 or one number of all other layers", path, one->gguf,
                           n, i);
        if (n > *v) *v = n;
    }
    return *v > 0 ? HUNCH_OK
                  : hn_fail(err, HUNCH_REFUSED, "%s: %s is a list of %zu without any number above 0, expected one of layers with attention",
                            path, one->gguf, hn_array_count(list));
}

/* Families whose folders may leave a key out, where null has another meaning. */
static hunch_status read_or_null(const hn_key_reading *r, const hn_key_row *k, const char *suffix, const char *path, double null, int *n,
                                 hunch_error *err) {
    hn_key_buf key;
    const bool gguf = hn_source_get_kind(r->src) == HN_SOURCE_GGUF;
    const double least = k->how & HN_ZERO_IS_NONE ? 0 : k->least, usual = gguf || hn_source_is_null(r->src, path) ? null : k->usual[1];
    return hn_key_int(r->src, hn_family_key_of(&key, r->a->family, suffix, path, least, k->most, usual), n, err);
}

hunch_status hn_read_head_dim(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    int n = 0;
    const hunch_status st = read_or_null(r, k, "attention.key_length", "head_dim", r->a->hidden / r->l->heads, &n, err);
    *v = n;
    return st;
}

hunch_status hn_read_usual_kv_heads(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    int n = 0;
    const hunch_status st = read_or_null(r, k, "attention.head_count_kv", "num_key_value_heads", r->l->heads, &n, err);
    *v = n;
    return st;
}

hunch_status hn_read_window(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    int n = 0;
    const hunch_status st = read_or_null(r, k, "attention.sliding_window", "sliding_window", 0, &n, err);
    *v = n;
    return st;
}

/* A folder's part of a head that is rotated: beside the other numbers of its rotation, else the older key. */
hunch_status hn_read_rotated(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const hn_key part = {NULL, "partial_rotary_factor", 0.01, 1, 0}, part_new = {NULL, "rope_parameters.partial_rotary_factor", 0.01, 1, 0};
    double old = 0, newer = 0;
    hunch_status st = hn_key_real(r->src, &part, &old, err);
    if (!st) st = hn_key_real(r->src, &part_new, &newer, err);
    const double said = newer > 0 ? newer : old;
    *v = said > 0 ? said : k->usual[hn_source_get_kind(r->src)];
    return st;
}

/* ---- what is written ------------------------------------------------------------------------------------------------------ */

static bool all_blocks(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v += a->files.next_layers;
    return true;
}

/* Head sizes are written only if they do not follow from the width. */
bool hn_unusual_heads(const hn_arch *a, const hn_key_row *k, double *v) {
    const hn_layer_desc *l = &a->layer[0];
    if (k->of == HN_OF_MODEL) *v = hn_layer_value_dim(l);
    return !hn_layer_is(l, &hn_mixer_attention) || l->head_dim * l->heads != a->hidden || l->narrow > 0;
}

bool hn_any_window(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = 0;
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].window > 0) *v = a->layer[i].window;
    return *v > 0;
}

int hn_layer_slides(const hn_layer_desc *l) {
    return l->window > 0;
}

bool hn_slides_otherwise(const hn_arch *a, const hn_key_row *k, double *v) {
    *v = k->type == HN_KEY_INT ? a->rotation[1].dims : a->rotation[1].scaling.theta;
    return a->rotations > 1;
}

static bool is_yarn(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) {
    return a->rotation[0].scaling.kind == HN_SCALING_YARN;
}
static bool has_factor(const hn_arch *a, const hn_key_row *k, double *v) {
    return a->rotation[0].scaling.kind == HN_SCALING_LINEAR || is_yarn(a, k, v);
}
static bool has_type(const hn_arch *a, const hn_key_row *k, double *v) {
    return a->rotation[0].scaling.kind == HN_SCALING_LONGROPE || has_factor(a, k, v);
}
static bool has_original(const hn_arch *a, const hn_key_row *k, double *v) {
    *v = a->rotation[0].scaling.original;
    return a->rotation[0].scaling.kind == HN_SCALING_LONGROPE || is_yarn(a, k, v);
}
static bool scales_scores(const hn_arch *a, const hn_key_row *k, double *v) {
    *v = a->rotation[0].scaling.mscale_all / 10;
    return a->files.yarn_scores && is_yarn(a, k, v) && *v > 0;
}
/* attn_factor multiplies YaRN's usual amplitude; for longrope it is the whole amplitude. */
static bool amplitude_times(const hn_arch *a, const hn_key_row *k, double *v) {
    const hn_rotation *r = &a->rotation[0];
    const double scores = a->files.yarn_scores ? r->scaling.mscale_all : 0;
    const hn_scaling plain = {
        .kind = r->scaling.kind, .factor = is_yarn(a, k, v) ? r->scaling.factor : 1, .mscale = scores, .mscale_all = scores};
    *v = (double)r->scale / hn_rope_usual_amplitude(&plain);
    return r->scaling.kind == HN_SCALING_LONGROPE || fabs(*v - 1) > 1e-6;
}

/* ---- the rows ------------------------------------------------------------------------------------------------------------- */

#define MUST {NAN, NAN}
#define CAP(name) {HN_BESIDE(REAL), name, name}
#define SCALING(type, field) HN_MODEL(type, rotation[0].scaling.field)
#define OFF(name) {HN_BESIDE(BOOL), NULL, name}
static const hn_key_row base[] = {
    /* properties that only families with rows for them have */
    {HN_BESIDE(INT), "expert_count", "num_local_experts num_experts n_routed_experts", .words = "experts a layer"},
    CAP("attn_logit_softcapping"), CAP("final_logit_softcapping"),
    OFF("attention_bias"), OFF("mlp_bias"), OFF("use_sliding_window"), OFF("use_bidirectional_attention"),

    {HN_MODEL(INT, vocab), "vocab_size", "vocab_size", 1, 1 << 24, .how = HN_LATER | HN_NOT_NULL, .follows = vocab_of},
    {HN_MODEL(INT, context), "context_length", "max_position_embeddings", 1, 1 << 24, MUST, HN_NOT_NULL},
    {HN_MODEL(INT, hidden), "embedding_length", "hidden_size", 1, 1 << 17, MUST, HN_NOT_NULL},
    {HN_MODEL(INT, layers), "block_count", "num_hidden_layers", 1, HN_MOST_LAYERS, MUST, HN_NOT_NULL | HN_FIRST, .written = all_blocks},
    {HN_MODEL(INT, files.next_layers), "nextn_predict_layers", .how = HN_GGUF_WRITTEN | HN_IF_SET},
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "intermediate_size", 1, 1 << 20, MUST, HN_NOT_NULL},
    {HN_LAYER(INT, heads), "attention.head_count", "num_attention_heads", 1, 1024, MUST, HN_NOT_NULL},
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, .follows = heads_of},
    {HN_MODEL(INT, rotation[0].dims), "rope.dimension_count", NULL, 2, 512, .how = HN_LATER},
    {HN_LAYER(INT, window), "attention.sliding_window", .how = HN_GGUF_WRITTEN, .written = hn_any_window},
    {HN_LAYER(INT, head_dim), "attention.key_length", "head_dim", 2, 512, .follows = head_dim_of, .written = hn_unusual_heads},
    {HN_MODEL(INT, files.value_dim), "attention.value_length", NULL, 2, 512, .follows = hn_usual_value_dim, .written = hn_unusual_heads},
    /* which layers have a window, if other programs have none for the family: they ignore both (docs/targets.md) */
    {HN_LAYER(LIST, window), "attention.sliding_window_pattern", .each = hn_layer_slides, .written = hn_any_window},
    {HN_LAYER(FLOAT, attention_scale), .follows = hn_scale_of_heads},
    HN_EPS(NAN, NAN),

    HN_THETA(10000),
    /* of a scaling, which arch_rope.c reads by its kind */
    {SCALING(REAL, factor), "rope.scaling.factor", "@factor", 1e-6, HN_MOST_SCALING, .how = HN_LATER, .follows = factor_of,
     .written = has_factor},
    {SCALING(REAL, low), NULL, "@low_freq_factor", 1e-6, 1e9, MUST, HN_LATER},
    {SCALING(REAL, high), NULL, "@high_freq_factor", 1e-6, 1e9, MUST, HN_LATER},
    {SCALING(REAL, fast), "rope.scaling.yarn_beta_fast", "@beta_fast", 1e-3, 1e6, {32, 32}, HN_LATER, .written = is_yarn},
    {SCALING(REAL, slow), "rope.scaling.yarn_beta_slow", "@beta_slow", 1e-3, 1e6, {1, 1}, HN_LATER, .written = is_yarn},
    {SCALING(BOOL, whole), NULL, "@truncate", 0, 1, {1, 1}, HN_LATER},
    {SCALING(REAL, mscale), NULL, "@mscale", 0, 1e3, .how = HN_LATER},
    {SCALING(REAL, mscale_all), "rope.scaling.yarn_log_multiplier", "@mscale_all_dim", 0, 1e3, .how = HN_LATER, .written = scales_scores},
    {SCALING(REAL, amplitude), "rope.scaling.attn_factor", "@attention_factor", 1e-3, 1e3, {1, 0}, HN_LATER, .written = amplitude_times},
    {SCALING(WORD, kind), "rope.scaling.type", .how = HN_LATER, .written = has_type,
     .words = "none linear llama3 divisors yarn longrope part"},
    {HN_BESIDE(INT), "rope.scaling.original_context_length", .how = HN_LATER, .written = has_original},
    HN_ROTATED(1),

    {HN_LAYER(WORD, ffn), NULL, "hidden_act", 0, 0, {HN_FFN_SWIGLU, HN_FFN_SWIGLU}, HN_NOT_NULL, "silu|swish gelu_pytorch_tanh"},
    HN_TIED(0),
    HN_ALWAYS(HN_MODEL(FLOAT, embed_scale), 1), HN_ALWAYS(HN_MODEL(FLOAT, residual_scale), 1), HN_ALWAYS(HN_MODEL(FLOAT, logit_scale), 1),
    HN_ALWAYS(HN_MODEL(INT, files.usual_scaling), HN_SCALING_LINEAR),
    /* what a GGUF's tensors show */
    {HN_LAYER(BOOL, fused_qkv), "?blk.0.attn_qkv.weight"},
    {HN_LAYER(BOOL, fused_gate_up), .read = hn_read_gate_up},
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias"},
    {HN_LAYER(BOOL, o_bias), "?blk.0.attn_output.bias"},
    {HN_LAYER(BOOL, gate_up_bias), "?blk.0.ffn_gate.bias"},
    {HN_LAYER(BOOL, down_bias), "?blk.0.ffn_down.bias"},
    HN_ROWS_END};

/* Rows that several families have. */
const hn_key_row hn_attention_bias_keys[] = {
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "attention_bias", 0, 1},
    {HN_LAYER(BOOL, o_bias), "?blk.0.attn_output.bias", "attention_bias", 0, 1}, HN_ROWS_END};
const hn_key_row hn_mlp_bias_keys[] = {
    {HN_LAYER(BOOL, gate_up_bias), HN_GATE_BIAS, "mlp_bias", 0, 1},
    {HN_LAYER(BOOL, down_bias), HN_DOWN_BIAS, "mlp_bias", 0, 1}, HN_ROWS_END};
const hn_key_row hn_norms_of_heads[] = {HN_ALWAYS(HN_LAYER(BOOL, qk_norm), 1), HN_ROWS_END};
const hn_key_row hn_slides[] = {{HN_BESIDE(CLAIM), NULL, "use_sliding_window"}, HN_ROWS_END};

static double below_layers(const hn_arch *a) { return a->layers - 1; }
const hn_key_row hn_next_layers[] = {
    {HN_MODEL(INT, files.next_layers), "nextn_predict_layers", .how = HN_IF_SET, .up_to = below_layers}, HN_ROWS_END};

hn_file_keys hn_family_keys(const hn_family *f) {
    hn_file_keys s = {.prefix = f->gguf_name, .list = {base}, .place = "rope_scaling"};
    memcpy(s.list + 1, f->keys, sizeof f->keys);
    return s;
}

bool hn_family_has(const hn_family *f, size_t field) {
    const hn_file_keys s = hn_family_keys(f);
    return hn_keys_row(&s, HN_OF_LAYER, field);
}

bool hn_family_drafts(const hn_family *f) {
    const hn_file_keys s = hn_family_keys(f);
    return hn_keys_reads(&s, HN_SOURCE_GGUF, "nextn_predict_layers") &&
           !(hn_keys_row(&s, HN_OF_MODEL, offsetof(hn_arch, files.next_layers))->how & HN_GGUF_WRITTEN);
}

void hn_family_key(const hn_family *f, const char *suffix, char out[96]) {
    snprintf(out, 96, "%s.%s", f->gguf_name, suffix);
}

const hn_key *hn_family_key_of(hn_key_buf *k, const hn_family *f, const char *suffix, const char *hf, double min, double max, double dflt) {
    hn_family_key(f, suffix, k->name);
    k->key = (hn_key){k->name, hf, min, max, dflt};
    return &k->key;
}

/* Of those with experts the first layer that has them. */
static int layer_of(const hn_arch *a, size_t at) {
    int i = 0;
    while (at >= offsetof(hn_layer_desc, experts) && i < a->layers - 1 && !hn_layer_has_experts(&a->layer[i])) i++;
    return i;
}

hunch_status hn_family_write(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const hn_file_keys s = hn_family_keys(a->family);
    const hn_key_row *count = hn_keys_row(&s, HN_OF_LAYER, offsetof(hn_layer_desc, experts.count));
    bool sparse = !count || count->least == 0; /* there may be none */
    for (int i = 0; i < a->layers; i++) sparse = sparse || hn_layer_has_experts(&a->layer[i]);
    if (!sparse) return hn_fail(err, HUNCH_REFUSED, "%s: no layer has experts: a GGUF of this family has no place for it", a->name);
    const hn_record from = {a, a->layer, sizeof *a->layer, a->layers, layer_of};
    return hn_keys_write(&s, &from, w, err);
}

/* ---- heads ---------------------------------------------------------------------------------------------------------------- */

/* Ollama's converter writes the width by heads in rope.dimension_count, whatever is rotated; beside Llama's attention.head_dim it is whole
 * heads. */
static hunch_status rotated_dims(hn_arch *a, const hn_layer_desc *l, const hn_source *src, int *dims, hunch_error *err) {
    hn_key_buf key;
    int dim = 0;
    const int usual = (int)(l->head_dim * a->files.rotated);
    hunch_status st = hn_key_int(src, hn_family_key_of(&key, a->family, "rope.dimension_count", NULL, 2, 512, usual), dims, err);
    if (st || hn_source_get_kind(src) != HN_SOURCE_GGUF) return st;
    st = hn_key_int(src, hn_family_key_of(&key, a->family, "attention.head_dim", NULL, 0, 1024, 0), &dim, err);
    if (!st && dim == l->head_dim) *dims = dim;
    if (a->files.dims_twice) *dims /= 2;
    return st;
}

hunch_status hn_family_heads(hn_arch *a, hn_layer_desc *l, const hn_source *src, hunch_error *err) {
    const int values = a->files.value_dim;
    int rotated = 0;
    const hunch_status st = rotated_dims(a, l, src, &rotated, err);
    a->rotation[0].dims = rotated;
    if (st) return st;
    if (l->heads % l->kv_heads)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d heads do not share %d key heads evenly", hn_source_path(src), l->heads, l->kv_heads);
    const bool narrow = values < l->head_dim && values >= 2 && values % 2 == 0 && hn_family_has(a->family, offsetof(hn_layer_desc, narrow));
    l->narrow = narrow ? values : 0;
    if (l->head_dim < 2 || l->head_dim % 2 || rotated < 2 || rotated % 2 || rotated > l->head_dim || (values != l->head_dim && !narrow))
        return hn_fail(err, HUNCH_REFUSED, "%s: head size %d (values %d, rotated %d): expected even and equal sizes", hn_source_path(src),
                       l->head_dim, values, rotated);
    return HUNCH_OK;
}

/* ---- names ----------------------------------------------------------------------------------------------------------- */

/* In a folder of several parts (text and vision) the language model's tensors have a prefix. */
static void find_body(hn_arch *a, hn_source *src) {
    static const char *const bodies[][2] = {
        {"model.", ""}, {"model.language_model.", ""}, {"language_model.model.", "language_model."}, {"backbone.", ""},
        {"model.backbone.", "model."}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char name[128];
        a->files.body = bodies[i][0];
        a->files.head = bodies[i][1];
        hn_arch_tensor_name(a, HN_ROLE_EMBEDDING, 0, name);
        if (hn_source_take(src, name)) return;
    }
    a->files.body = bodies[0][0];
    a->files.head = bodies[0][1];
}

static hn_tensor *take_role(const hn_arch *a, hn_source *src, hn_role role) {
    char name[128];
    hn_arch_tensor_name(a, role, 0, name);
    return hn_source_take(src, name);
}

static hunch_status read_name(hn_arch *a, const hn_source *src, hunch_error *err) {
    const char *name = NULL;
    bool found = false;
    hunch_status st = hn_source_str(src, hn_source_get_kind(src) == HN_SOURCE_GGUF ? "general.name" : "_name_or_path",
                                    &name, NULL, &found, err);
    if (!st) snprintf(a->name, sizeof a->name, "%s", found ? name : a->architecture);
    return st;
}

/* The vocabulary has the rows of the embedding; a file whose key differs is damaged. */
static hunch_status read_vocab(hn_arch *a, hn_source *src, const hn_key_reading *r, hunch_error *err) {
    char name[128];
    hn_arch_tensor_name(a, HN_ROLE_EMBEDDING, 0, name);
    const hn_tensor *t = hn_source_take(src, name);
    hunch_status st = t ? HUNCH_OK : hn_quantised_refuse(src, name, "is missing", err);
    if (st) return st;
    if (!t || t->n_dims != 2 || t->dims[0] != (uint64_t)a->hidden || t->dims[1] < 1 || t->dims[1] > 1 << 23)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: %s [%d, vocabulary]", hn_source_path(src), name,
                       t ? "expected the shape" : "is missing, expected", a->hidden);
    a->vocab = (int)t->dims[1];
    double said = 0;
    st = hn_keys_read_at(r, HN_OF_MODEL, offsetof(hn_arch, vocab), &said, err);
    if (!st && said != a->vocab)
        st = hn_fail(err, HUNCH_REFUSED, "%s: vocabulary of %d by its key, %d rows in tensor %s", hn_source_path(src),
                     (int)said, a->vocab, name);
    return st;
}

/* Whether the output is the embedding. Where a folder has both, the tensors decide, as in transformers 5: tie_word_embeddings only
 * says that they may be one stored twice. */
static hunch_status read_tied(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_tensor *output = take_role(a, src, HN_ROLE_OUTPUT);
    const bool tied = a->tied;
    hunch_status st = HUNCH_OK;
    a->tied = !output;
    if (!st && !output) {
        char name[128];
        hn_arch_tensor_name(a, HN_ROLE_OUTPUT, 0, name);
        st = hn_quantised_refuse(src, name, "is missing", err); /* a packed one is not the embedding */
    }
    if (st || !output || !tied || a->files.form != HN_SOURCE_HF) return st;
    return hn_source_same(src, take_role(a, src, HN_ROLE_EMBEDDING), output, &a->tied, err);
}

/* ---- layers ----------------------------------------------------------------------------------------------------------- */

hunch_status hn_family_short_windows(hn_arch *a, hn_source *src HN_UNUSED, hunch_error *err HN_UNUSED) {
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].window >= a->context) a->layer[i].window = 0;
    return HUNCH_OK;
}

hunch_status hn_family_sliding(const hn_source *src, int *window, hunch_error *err) {
    const hn_key k = {NULL, "sliding_window", 1, 1 << 24, 0};
    bool on = false, found;
    *window = 0;
    if (hn_source_get_kind(src) != HN_SOURCE_HF) return HUNCH_OK;
    hunch_status st = hn_source_bool(src, "use_sliding_window", &on, &found, err);
    return st || !on ? st : hn_key_int(src, &k, window, err);
}

/* What convert writes for a family whose GGUF files have no windows in other programs: the window, and which layers
 * have it. The window alone has no meaning there. */
static hunch_status read_written_windows(hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_key_buf rows, flags;
    const hn_array *list = NULL;
    int window;
    const hn_key *pattern = hn_family_key_of(&flags, a->family, "attention.sliding_window_pattern", NULL, 0, 0, 0);
    hunch_status st = hn_source_array(src, pattern->gguf, &list, err);
    if (st || !list) return st;
    st = hn_key_int(src, hn_family_key_of(&rows, a->family, "attention.sliding_window", NULL, 1, 1 << 24, NAN), &window, err);
    return st ? st : hn_family_listed_windows(a, src, list, window, err);
}

hunch_status hn_family_part(const hn_source *src, bool slides, double usual, double *part, hunch_error *err) {
    static const char *const paths[] = {"rope_parameters.full_attention.partial_rotary_factor",
                                        "rope_parameters.sliding_attention.partial_rotary_factor"};
    const hn_key k = {NULL, paths[slides], 0.01, 1, usual};
    return hn_key_real(src, &k, part, err);
}

hunch_status hn_family_rotation(hn_arch *a, hn_source *src, int dims, double theta, hunch_error *err) {
    const hn_file_keys s = hn_family_keys(a->family);
    return hn_rope_read(&(hn_key_reading){&s, a, &a->layer[0], src, NULL}, src, dims, theta, err);
}

hunch_status hn_family_check_heads(const hn_arch *a, const hn_source *src, hunch_error *err) {
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].heads % a->layer[i].kv_heads)
            return hn_fail(err, HUNCH_REFUSED, "%s: %d heads of layer %d do not share %d key heads evenly", hn_source_path(src),
                           a->layer[i].heads, i, a->layer[i].kv_heads);
    return HUNCH_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

/* The rows, and the shape of heads. */
static hunch_status read_stack(hn_arch *a, const hn_family *f, const hn_key_reading *r, hunch_error *err) {
    a->family = f;
    a->files.form = hn_source_get_kind(r->src);
    hunch_status st = hn_keys_read(r, err);
    if (!st) st = f->heads ? f->heads(a, r->l, r->src, err) : hn_family_heads(a, r->l, r->src, err);
    a->layers -= a->files.next_layers;
    return st;
}

static hunch_status read_rotation(const hn_key_reading *r, hn_source *src, hunch_error *err) {
    const hn_rotation said = r->a->rotation[0];
    return hn_rope_read(r, src, said.dims, said.scaling.theta, err);
}

static hunch_status layers_create(hn_arch *a, const hn_layer_desc *usual, hunch_error *err) {
    a->layer = hn_zalloc((size_t)a->layers, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)a->layers * sizeof *a->layer);
    for (int i = 0; i < a->layers; i++) a->layer[i] = *usual;
    return HUNCH_OK;
}

hunch_status hn_family_read_layers(hn_arch *a, hn_source *src, const hn_family *family, hunch_error *err) {
    hn_layer_desc usual = {.mixer = {{.kind = &hn_mixer_attention}}};
    const hn_file_keys s = hn_family_keys(family);
    const hn_key_reading r = {&s, a, &usual, src, NULL};
    hunch_status st = read_stack(a, family, &r, err);
    if (!st) st = read_rotation(&r, src, err);
    return st ? st : layers_create(a, &usual, err);
}

hunch_status hn_family_read(hn_arch *a, hn_source *src, const hn_family *f, hunch_error *err) {
    hn_layer_desc usual = {.mixer = {{.kind = &hn_mixer_attention}}};
    const hn_file_keys s = hn_family_keys(f);
    const hn_key_reading r = {&s, a, &usual, src, NULL};
    a->family = f;
    a->files.form = hn_source_get_kind(src);
    if (a->files.form == HN_SOURCE_HF) find_body(a, src);
    hunch_status st = read_stack(a, f, &r, err);
    if (!st) st = read_name(a, src, err);
    if (!st) st = read_vocab(a, src, &r, err);
    if (!st) st = read_tied(a, src, err);
    if (!st && !f->own_rotations) st = read_rotation(&r, src, err);
    if (!st) st = layers_create(a, &usual, err);
    for (int i = 0; !st && i < a->layers; i++) st = hn_keys_read_layer(&(hn_key_reading){&s, a, &a->layer[i], src, NULL}, i, err);
    const hn_key_row *window = hn_keys_row(&s, HN_OF_LAYER, offsetof(hn_layer_desc, window));
    if (!st && window->how & HN_GGUF_WRITTEN) st = read_written_windows(a, src, err);
    if (!st && hn_family_has(f, offsetof(hn_layer_desc, experts.count))) st = hn_moe_finish(a, src, err);
    return st || !f->finish ? st : f->finish(a, src, err);
}
