/* SPDX-License-Identifier: Apache-2.0 */
/* arch_dense.c - the common part of the dense families: RMSNorm, grouped-query attention with RoPE, SwiGLU, and the
 * names of keys. Tensors: roles.c; experts: arch_moe.c. Each family's differences are in its own file (arch_llama.c,
 * arch_qwen.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/quantised.h"
#include "model/arch/arch.h"

typedef struct dense_keys {
    int layers, hidden, ffn, context, vocab;
    hn_head_sizes head;
    double eps, theta;
} dense_keys;

void hn_dense_key(const hn_dense *f, const char *suffix, char out[96]) {
    snprintf(out, 96, "%s.%s", f->prefix, suffix);
}

const hn_key *hn_dense_key_of(hn_dense_key_buf *k, const hn_dense *f, const char *suffix, const char *hf, double min,
                              double max, double dflt) {
    hn_dense_key(f, suffix, k->name);
    k->key = (hn_key){k->name, hf, min, max, dflt};
    return &k->key;
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

static hunch_status refuse_flags(const hn_source *src, const hn_dense *f, hunch_error *err) {
    const struct {
        const char *key;
        bool read;
    } flags[] = {{"attention_bias", f->attention_bias},
                 {"mlp_bias", f->mlp_bias},
                 {"use_sliding_window", f->may_slide},
                 {"use_bidirectional_attention", false}};
    const size_t n = sizeof flags / sizeof *flags - f->sees_images; /* then the last one is no flag */
    for (size_t i = 0; i < n; i++) {
        bool on = false, found;
        hunch_status st = hn_source_bool(src, flags[i].key, &on, &found, err);
        if (st) return st;
        if (on && !flags[i].read)
            return hn_fail(err, HUNCH_REFUSED, "%s: %s is true: %s models are read without", hn_source_path(src),
                           flags[i].key, f->prefix);
    }
    return HUNCH_OK;
}

/* null counts as absent for keys that are optional; for these it is an error. */
static hunch_status refuse_nulls(const hn_source *src, hunch_error *err) {
    static const char *const keys[] = {"vocab_size",          "hidden_size",         "intermediate_size",
                                       "num_hidden_layers",   "num_attention_heads", "max_position_embeddings",
                                       "tie_word_embeddings", "rms_norm_eps",        "hidden_act"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hn_source_is_null(src, keys[i]))
            return hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s is null, expected a value", hn_source_path(src), keys[i]);
    return HUNCH_OK;
}

/* Variants that these files can specify and hunch does not support. */
static hunch_status refuse_variants(const hn_source *src, const hn_dense *f, hunch_error *err) {
    static const char *const experts[] = {"num_local_experts", "num_experts", "n_routed_experts"},
                             *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    const int n_caps = f->logit_cap ? 1 : 2;
    hn_dense_key_buf key;
    hunch_status st = HUNCH_OK;
    for (int i = 0; i < 3 && !f->moe; i++) {
        int n = 0;
        st = hn_key_int(src, hn_dense_key_of(&key, f, "expert_count", experts[i], 0, 4096, 0), &n, err);
        if (st) return st;
        if (n > 0)
            return hn_fail(err, HUNCH_REFUSED, "%s: %d experts a layer: only dense %s models are read",
                           hn_source_path(src), n, f->prefix);
    }
    for (int i = 0; i < n_caps; i++) {
        double cap = 0;
        st = hn_key_real(src, hn_dense_key_of(&key, f, caps[i], caps[i], 0, 1e9, 0), &cap, err);
        if (st) return st;
        if (cap > 0)
            return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g: %s models are read without", hn_source_path(src), caps[i],
                           cap, f->prefix);
    }
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return HUNCH_OK;
    st = refuse_nulls(src, err);
    if (!st) st = refuse_flags(src, f, err);
    if (st) return st;
    const char *key_name = f->activation_key ? f->activation_key : "hidden_act",
               *wanted = f->activation ? f->activation : "silu", *act = wanted;
    bool found;
    st = hn_source_str(src, key_name, &act, NULL, &found, err);
    if (!st && strcmp(act, wanted))
        st =
            hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected %s", hn_source_path(src), key_name, act, wanted);
    return st;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------- */

/* The base of the rotation: a key of its own, or in rope_parameters (transformers 5), for Gemma by kind of layer. */
static hunch_status read_theta(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    static const char *const places[] = {"rope_parameters.full_attention.rope_theta", "rope_parameters.rope_theta",
                                         "rope_theta"};
    hn_dense_key_buf key;
    hunch_status st = HUNCH_OK;
    k->theta = 0;
    for (int i = 0; !st && k->theta < 1 && i < 3; i++)
        st = hn_key_real(src, hn_dense_key_of(&key, f, "rope.freq_base", places[i], 1, 1e12, 0), &k->theta, err);
    if (k->theta < 1) k->theta = f->theta > 0 ? f->theta : 10000;
    return st;
}

/* Does a folder name a rotation of another kind than the usual one? */
static bool scaled_rotation(const hn_source *src) {
    static const char *const keys[] = {"rope_parameters.rope_type", "rope_scaling.rope_type", "rope_scaling.type"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *type = json_string_value(hn_source_config(src, keys[i]));
        if (type && strcmp(type, "default") != 0) return true;
    }
    return false;
}

/* Ollama's converter writes the width by heads in rope.dimension_count, whatever is rotated. Beside Llama's attention.head_dim it is whole
 * heads, beside Phi's tables of divisors as many dims as these are for. */
static hunch_status rotated_by_ollama(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    const hn_tensor *table = f->rotated_by_table ? hn_source_find(src, "rope_factors_long.weight") : NULL;
    hn_dense_key_buf key;
    int dim = 0;
    if (hn_source_get_kind(src) != HN_SOURCE_GGUF) return HUNCH_OK;
    const hunch_status st = hn_key_int(src, hn_dense_key_of(&key, f, "attention.head_dim", NULL, 0, 1024, 0), &dim, err);
    if (!st && dim == k->head.head_dim) k->head.rope_dims = dim;
    if (table && table->n_dims == 1 && table->dims[0] > 0 && table->dims[0] < (uint64_t)k->head.rope_dims / 2)
        k->head.rope_dims = 2 * (int)table->dims[0];
    return st;
}

/* Number of rotated dims of a head: all, unless a folder specifies a part. */
static hunch_status read_rotated(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    const double usual = f->rotated > 0 && hn_source_get_kind(src) == HN_SOURCE_HF ? f->rotated : 1;
    const hn_key part = {NULL, "partial_rotary_factor", 0.01, 1, 0}, part_new = {NULL, "rope_parameters.partial_rotary_factor", 0.01, 1, 0};
    hn_dense_key_buf key;
    double old = 0, newer = 0;
    const bool whole = f->whole_heads && !scaled_rotation(src);
    hunch_status st = whole ? HUNCH_OK : hn_key_real(src, &part, &old, err);
    if (!st && !whole) st = hn_key_real(src, &part_new, &newer, err);
    const double said = old > 0 && (newer <= 0 || old < newer) ? old : newer;
    const int dims = (int)(k->head.head_dim * (said > 0 ? said : usual));
    if (!st)
        st = hn_key_int(src, hn_dense_key_of(&key, f, "rope.dimension_count", NULL, 2, 512, dims), &k->head.rope_dims,
                        err);
    return st ? st : rotated_by_ollama(k, src, f, err);
}

/* A size of all layers, or of the first one. */
static hunch_status size_read(const hn_source *src, const hn_dense *f, const hn_key *k, int *out, hunch_error *err) {
    return f->by_layer ? hn_key_of_layer(src, k, 0, out, err) : hn_key_int(src, k, out, err);
}

/* The number of key heads; in a list that has 0 for the layers without any, that of the others. */
static hunch_status kv_heads_read(const hn_source *src, const hn_dense *f, const hn_key *k, int *out,
                                  hunch_error *err) {
    const hn_array *list = NULL;
    double most = 0;
    if (!f->zero_kv || hn_source_get_kind(src) != HN_SOURCE_GGUF || hn_source_array(src, k->gguf, &list, NULL) ||
        !list || hn_array_is_strings(list))
        return size_read(src, f, k, out, err);
    for (size_t i = 0; i < hn_array_count(list); i++) {
        const double v = hn_array_number(list, i);
        if (v != 0 && (!(v >= k->min && v <= k->max) || v != floor(v) || (most > 0 && v != most)))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: %s is %g for layer %zu, expected 0 or one number of all other layers",
                           hn_source_path(src), k->gguf, v, i);
        if (v > most) most = v;
    }
    *out = (int)most;
    return most > 0
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED,
                         "%s: %s is a list of %zu without any number above 0, expected one of layers with attention",
                         hn_source_path(src), k->gguf, hn_array_count(list));
}

/* Numbers that have the same name in every family. */
static hunch_status read_sizes(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    const bool folder = hn_source_get_kind(src) == HN_SOURCE_HF;
    const struct {
        const char *suffix, *hf;
        double max;
        int usual, *out;
    } sizes[] = {{"block_count", "num_hidden_layers", 1024, 0, &k->layers},
                 {"embedding_length", "hidden_size", 1 << 17, 0, &k->hidden},
                 {"feed_forward_length", "intermediate_size", 1 << 20, f->no_ffn, &k->ffn},
                 {"attention.head_count", "num_attention_heads", 1024, f->usual.heads, &k->head.heads},
                 {"context_length", "max_position_embeddings", 1 << 24, f->usual.context, &k->context}};
    const double eps = f->usual.eps > 0 && (folder || f->usual_eps_too) ? f->usual.eps : NAN;
    hn_dense_key_buf key;
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof sizes / sizeof *sizes; i++)
        st = size_read(
            src, f,
            hn_dense_key_of(&key, f, sizes[i].suffix, sizes[i].hf,
                            !folder && sizes[i].out == &k->ffn && f->no_ffn ? 0 : 1, sizes[i].max,
                            (folder || sizes[i].out == &k->ffn) && sizes[i].usual ? (double)sizes[i].usual : NAN),
            sizes[i].out, err);
    if (st) return st;
    if (k->ffn == 0) k->ffn = f->no_ffn; /* as if the key was absent */
    return hn_key_real(src, hn_dense_key_of(&key, f, "attention.layer_norm_rms_epsilon", "rms_norm_eps", 0, 1, eps),
                       &k->eps, err);
}

/* The shape of heads follows from the sizes, unless the file specifies it. */
static hunch_status read_heads(dense_keys *k, const hn_source *src, const hn_dense *f, hunch_error *err) {
    const bool folder = hn_source_get_kind(src) == HN_SOURCE_HF;
    hn_dense_key_buf key;
    int value_dim = 0, usual = folder && f->usual.head_dim ? f->usual.head_dim : k->hidden / k->head.heads,
        kv_heads = folder && f->usual.kv_heads ? f->usual.kv_heads : k->head.heads;
    hunch_status st = kv_heads_read(
        src, f, hn_dense_key_of(&key, f, "attention.head_count_kv", "num_key_value_heads", 1, 1024, kv_heads),
        &k->head.kv_heads, err);
    if (!st)
        st = hn_key_int(src, hn_dense_key_of(&key, f, "attention.key_length", "head_dim", 2, 512, usual), &k->head.head_dim,
                        err);
    if (!st)
        st = hn_key_int(src, hn_dense_key_of(&key, f, "attention.value_length", "head_dim", 2, 512, usual), &value_dim,
                        err);
    if (!st) st = read_rotated(k, src, f, err);
    if (st) return st;
    if (k->head.heads % k->head.kv_heads)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d heads do not share %d key heads evenly", hn_source_path(src),
                       k->head.heads, k->head.kv_heads);
    const int dim = k->head.head_dim, rotated = k->head.rope_dims;
    if (dim < 2 || dim % 2 || rotated < 2 || rotated % 2 || rotated > dim || value_dim != dim)
        return hn_fail(err, HUNCH_REFUSED, "%s: head size %d (values %d, rotated %d): expected even and equal sizes",
                       hn_source_path(src), dim, value_dim, rotated);
    return HUNCH_OK;
}

static hunch_status read_keys(dense_keys *k, const hn_arch *a, const hn_source *src, const hn_dense *f, hunch_error *err) {
    hunch_status st = read_sizes(k, src, f, err);
    if (!st) st = read_theta(k, src, f, err);
    if (st) return st;
    return f->read_heads ? f->read_heads(&k->head, a, src, err) : read_heads(k, src, f, err);
}

/* ---- names ----------------------------------------------------------------------------------------------------------- */

/* In a folder of several parts (text and vision) the language model's tensors have a prefix. */
static void find_body(hn_arch *a, hn_source *src) {
    static const char *const bodies[][2] = {
        {"model.", ""}, {"model.language_model.", ""}, {"language_model.model.", "language_model."}};
    for (int i = 0; i < 3; i++) {
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
static hunch_status read_vocab(hn_arch *a, hn_source *src, const hn_dense *f, hunch_error *err) {
    char name[128];
    hn_arch_tensor_name(a, HN_ROLE_EMBEDDING, 0, name);
    const hn_tensor *t = hn_source_take(src, name);
    hunch_status st = t ? HUNCH_OK : hn_quantised_refuse(src, name, "is missing", err);
    if (st) return st;
    if (!t || t->n_dims != 2 || t->dims[0] != (uint64_t)a->hidden || t->dims[1] < 1 || t->dims[1] > 1 << 23)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: %s [%d, vocabulary]", hn_source_path(src), name,
                       t ? "expected the shape" : "is missing, expected", a->hidden);
    a->vocab = (int)t->dims[1];
    hn_dense_key_buf key;
    int said = 0;
    st =
        hn_key_int(src, hn_dense_key_of(&key, f, "vocab_size", "vocab_size", 1, 1 << 24, a->vocab), &said, err);
    if (!st && said != a->vocab)
        st = hn_fail(err, HUNCH_REFUSED, "%s: vocabulary of %d by its key, %d rows in tensor %s", hn_source_path(src),
                     said, a->vocab, name);
    return st;
}

/* Whether the output is the embedding. Where a folder has both, the tensors decide, as in transformers 5: tie_word_embeddings only
 * says that they may be one stored twice. */
static hunch_status read_tied(hn_arch *a, hn_source *src, const hn_dense *f, hunch_error *err) {
    const hn_tensor *output = take_role(a, src, HN_ROLE_OUTPUT);
    bool tied = f->tied, found;
    hunch_status st = a->files.form == HN_SOURCE_HF ? hn_source_bool(src, "tie_word_embeddings", &tied, &found, err) : HUNCH_OK;
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

/* Null, absent, 0 in a GGUF, or as long as the context: no window. */
static hunch_status read_window(const hn_arch *a, const hn_source *src, const hn_dense *f, int *window,
                                hunch_error *err) {
    hn_dense_key_buf key;
    hn_key k = *hn_dense_key_of(&key, f, "attention.sliding_window", "sliding_window", 0, 1 << 24, 0);
    if (!f->window_key) k.gguf = NULL;
    if (hn_source_get_kind(src) == HN_SOURCE_HF) k.min = 1;
    hunch_status st = hn_key_int(src, &k, window, err);
    if (*window >= a->context) *window = 0;
    return st;
}

hunch_status hn_dense_sliding(const hn_source *src, int *window, hunch_error *err) {
    const hn_key k = {NULL, "sliding_window", 1, 1 << 24, 0};
    bool on = false, found;
    *window = 0;
    if (hn_source_get_kind(src) != HN_SOURCE_HF) return HUNCH_OK;
    hunch_status st = hn_source_bool(src, "use_sliding_window", &on, &found, err);
    return st || !on ? st : hn_key_int(src, &k, window, err);
}

bool hn_dense_slides(const hn_layer_desc *l) {
    return l->window > 0;
}

hunch_status hn_dense_put_layers(const hn_arch *a, hn_gguf_writer *w, const char *key, bool (*is)(const hn_layer_desc *),
                                 hunch_error *err) {
    const size_t n = (size_t)a->layers;
    int32_t *flags = hn_alloc(n * sizeof *flags);
    if (!flags) return hn_fail_memory(err, "a list of layers", n * sizeof *flags);
    for (size_t i = 0; i < n; i++) flags[i] = is(&a->layer[i]);
    hunch_status st = hn_gguf_put_i32s(w, key, flags, n, err);
    hn_free(flags);
    return st;
}

hunch_status hn_dense_listed_windows(hn_arch *a, const hn_source *src, const hn_array *list, int window, hunch_error *err) {
    if (hn_array_is_strings(list) || hn_array_count(list) < (size_t)a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.attention.sliding_window_pattern, expected %d flags",
                       hn_source_path(src), a->dense->prefix, a->layers);
    for (int i = 0; i < a->layers; i++) a->layer[i].window = hn_array_number(list, (size_t)i) != 0 ? window : 0;
    return HUNCH_OK;
}

/* What convert writes for a family whose GGUF files have no windows in other programs: the window, and which layers
 * have it. The window alone has no meaning there. */
static hunch_status read_written_windows(hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_dense_key_buf rows, flags;
    const hn_array *list = NULL;
    int window;
    const hn_key *pattern = hn_dense_key_of(&flags, a->dense, "attention.sliding_window_pattern", NULL, 0, 0, 0);
    hunch_status st = hn_source_array(src, pattern->gguf, &list, err);
    if (st || !list) return st;
    st = hn_key_int(src, hn_dense_key_of(&rows, a->dense, "attention.sliding_window", NULL, 1, 1 << 24, NAN), &window, err);
    return st ? st : hn_dense_listed_windows(a, src, list, window, err);
}

hunch_status hn_dense_layer_types(hn_arch *a, const hn_source *src, int window, bool *found, hunch_error *err) {
    static const char full[] = "full_attention", sliding[] = "sliding_attention";
    const json_t *types = hn_source_config(src, "layer_types");
    *found = types != NULL;
    if (!types) return HUNCH_OK;
    bool good = json_is_array(types) && json_array_size(types) == (size_t)a->layers;
    for (int i = 0; good && i < a->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        good = type && (!strcmp(type, full) || !strcmp(type, sliding));
        a->layer[i].window = good && !strcmp(type, sliding) ? window : 0;
    }
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: config.json: layer_types, expected a list of %d names, %s or %s",
                          hn_source_path(src), a->layers, full, sliding);
}

hunch_status hn_dense_windows(hn_arch *a, const hn_source *src, const hn_key *period, int window, hunch_error *err) {
    const hn_array *list = NULL;
    bool said = false;
    int every = 1;
    hunch_status st = hn_dense_layer_types(a, src, window, &said, err);
    if (st || said) return st;
    if (!hn_source_array(src, period->gguf, &list, NULL) && list) return hn_dense_listed_windows(a, src, list, window, err);
    st = hn_key_int(src, period, &every, err);
    for (int i = 0; !st && i < a->layers; i++) a->layer[i].window = (i + 1) % every ? window : 0;
    return st;
}

/* Parts of a layer that a folder's keys specify; a GGUF shows them by its tensors. */
static hunch_status read_parts(hn_layer_desc *l, const hn_arch *a, hn_source *src, const hn_dense *f,
                               hunch_error *err) {
    bool attention = false, mlp = false, found;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) {
        l->fused_qkv = take_role(a, src, HN_ROLE_QKV);
        const hn_tensor *up = take_role(a, src, HN_ROLE_GATE_UP);
        l->fused_gate_up = !take_role(a, src, HN_ROLE_GATE) && up && up->dims[1] == 2 * (uint64_t)l->ffn_width;
        l->qkv_bias = f->qkv_bias || take_role(a, src, HN_ROLE_Q_BIAS) || take_role(a, src, HN_ROLE_QKV_BIAS);
        l->o_bias = take_role(a, src, HN_ROLE_O_BIAS);
        l->gate_up_bias = take_role(a, src, HN_ROLE_GATE_BIAS);
        l->down_bias = take_role(a, src, HN_ROLE_DOWN_BIAS);
        return HUNCH_OK;
    }
    hunch_status st = f->attention_bias ? hn_source_bool(src, "attention_bias", &attention, &found, err) : HUNCH_OK;
    if (!st && f->mlp_bias) st = hn_source_bool(src, "mlp_bias", &mlp, &found, err);
    l->fused_qkv = l->fused_gate_up = f->fused;
    l->qkv_bias = f->qkv_bias || attention;
    l->o_bias = attention && !f->no_o_bias;
    l->gate_up_bias = l->down_bias = mlp;
    return st;
}

static hunch_status read_stack(hn_arch *a, hn_source *src, const hn_dense *family, dense_keys *k, hn_layer_desc *usual,
                               hunch_error *err) {
    hunch_status st = refuse_variants(src, family, err);
    if (!st) st = read_keys(k, a, src, family, err);
    if (!st && family->next_layers) {
        hn_dense_key_buf key;
        st = hn_key_int(src, hn_dense_key_of(&key, family, "nextn_predict_layers", NULL, 0, k->layers - 1, 0), &a->files.next_layers, err);
        k->layers -= a->files.next_layers;
    }
    if (st) return st;
    a->layers = k->layers;
    a->hidden = k->hidden;
    a->context = k->context;
    a->norm_eps = (float)k->eps;
    a->embed_scale = a->residual_scale = a->logit_scale = 1;
    const hn_latent_desc *latent = &k->head.latent;
    const int width = latent->rank > 0 ? latent->nope + latent->rope : k->head.head_dim; /* of a query before it is made as wide as a row */
    *usual = (hn_layer_desc){.mixer = latent->rank > 0 ? HN_MIXER_LATENT : HN_MIXER_ATTENTION,
                             .latent = *latent,
                             .heads = k->head.heads,
                             .kv_heads = k->head.kv_heads,
                             .head_dim = k->head.head_dim,
                             .attention_scale = 1.0f / sqrtf((float)width),
                             .qk_norm = family->qk_norm,
                             .ffn = HN_FFN_SWIGLU,
                             .ffn_width = k->ffn};
    return HUNCH_OK;
}

static hunch_status layers_create(hn_arch *a, const hn_layer_desc *usual, hunch_error *err) {
    a->layer = hn_zalloc((size_t)a->layers, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)a->layers * sizeof *a->layer);
    for (int i = 0; i < a->layers; i++) a->layer[i] = *usual;
    return HUNCH_OK;
}

hunch_status hn_dense_read_layers(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err) {
    hn_layer_desc usual;
    dense_keys k = {0};
    a->dense = family;
    a->files.form = hn_source_get_kind(src);
    hunch_status st = read_stack(a, src, family, &k, &usual, err);
    if (!st) st = hn_rope_read(a, src, k.head.rope_dims, k.theta, err);
    return st ? st : layers_create(a, &usual, err);
}

hunch_status hn_dense_read(hn_arch *a, hn_source *src, const hn_dense *family, hunch_error *err) {
    dense_keys k = {0};
    hn_layer_desc usual;
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    a->dense = family;
    a->files.form = hn_source_get_kind(src);
    if (!gguf) find_body(a, src);
    hunch_status st = read_stack(a, src, family, &k, &usual, err);
    if (!st) st = read_name(a, src, err);
    if (!st) st = read_vocab(a, src, family, err);
    if (!st) st = read_tied(a, src, family, err);
    if (!st && !family->by_layer) st = hn_rope_read(a, src, k.head.rope_dims, k.theta, err);
    if (!st) st = read_parts(&usual, a, src, family, err);
    if (!st && family->windowed) st = read_window(a, src, family, &usual.window, err);
    if (!st) st = layers_create(a, &usual, err);
    if (!st && !family->window_key) st = read_written_windows(a, src, err);
    if (!st && family->moe) st = hn_moe_read(a, src, err);
    if (st) return st;
    return family->finish ? family->finish(a, src, err) : HUNCH_OK;
}
