/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gemma4.c - Gemma 4 (text; folders with vision and audio too): Gemma 3's block with plain norm weights, attention of scale 1, a
 * norm of v, and heads of two sizes. Layers with full attention rotate the first pairs of their heads only, and may have fewer kv
 * heads and no product of v. The last layers may read the keys and values of the last ones of their kind before them. E models have an
 * input of each token for every layer (layer_input.c), 26B-A4B has experts beside the dense half of every layer. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch/arch.h"

#define KEY(suffix) "gemma4." suffix
#define PATTERN KEY("attention.sliding_window_pattern")
enum { USUAL_PERIOD = 6, USUAL_WINDOW = 512, UNIFIED_WINDOW = 1024, USUAL_FULL_HEAD = 512, USUAL_INPUT = 256, MOST_HEAD = 512 };
enum { OF_FULL, OF_LOCAL }; /* the rotations */
static const double local_theta = 1e4, full_part = 0.25;
#define FULL_THETA 1e6
static const float least_divisor = 1e29f; /* of pairs that a GGUF does not rotate */

static bool is_gguf(const hn_source *src) {
    return hn_source_get_kind(src) == HN_SOURCE_GGUF;
}

/* 12B's configuration, which has no keys for experts and for tokens' inputs of layers. */
static bool is_unified(const hn_source *src) {
    const char *type = json_string_value(hn_source_config(src, "model_type"));
    return type && !strncmp(type, "gemma4_unified", strlen("gemma4_unified"));
}

/* ---- heads -------------------------------------------------------------------------------------------------------------- */

static hunch_status check_own_keys(const hn_source *src, int layer, const json_t *own, hunch_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)own, key, value) {
        if (strcmp(key, "head_dim") && strcmp(key, "num_key_value_heads"))
            return hn_fail(err, HUNCH_REFUSED, "%s: per_layer_config.%d.%.40s: expected head_dim and num_key_value_heads alone",
                           hn_source_path(src), layer, key);
    }
    return HUNCH_OK;
}

/* A layer's own sizes, or the usual ones. */
static hunch_status own_sizes_of(const hn_source *src, int layer, int usual_dim, int usual_heads, int *dim, int *heads,
                                 hunch_error *err) {
    char at[40], dim_at[80], heads_at[80];
    snprintf(at, sizeof at, "per_layer_config.%d", layer);
    snprintf(dim_at, sizeof dim_at, "%s.head_dim", at);
    snprintf(heads_at, sizeof heads_at, "%s.num_key_value_heads", at);
    const hn_key dims = {NULL, dim_at, 2, MOST_HEAD, usual_dim}, few = {NULL, heads_at, 1, 1024, usual_heads};
    hunch_status st = check_own_keys(src, layer, hn_source_config(src, at), err);
    if (!st) st = hn_key_int(src, &dims, dim, err);
    return st ? st : hn_key_int(src, &few, heads, err);
}

hunch_status hn_gemma4_own_sizes(const hn_arch *a, const hn_source *src, int usual_dim, int usual_heads, hn_kinds_of_heads *h,
                                 hunch_error *err) {
    const bool described = json_is_object(hn_source_config(src, "per_layer_config"));
    bool seen[2] = {false, false};
    for (int i = 0; described && i < a->layers; i++) {
        const int kind = a->layer[i].window > 0 ? OF_LOCAL : OF_FULL;
        int dim = 0, heads = 0;
        const hunch_status st = own_sizes_of(src, i, usual_dim, usual_heads, &dim, &heads, err);
        if (st) return st;
        if (seen[kind] && (dim != h->dim[kind] || heads != h->kv_heads[kind]))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: per_layer_config: layer %d has %d key heads of %d, expected the %d of %d of other layers of its kind",
                           hn_source_path(src), i, heads, dim, h->kv_heads[kind], h->dim[kind]);
        seen[kind] = true;
        h->dim[kind] = dim;
        h->kv_heads[kind] = heads;
    }
    return HUNCH_OK;
}

static hunch_status read_head_sizes(const hn_arch *a, const hn_source *src, bool v_is_k, hn_kinds_of_heads *h, hunch_error *err) {
    const bool gguf = is_gguf(src);
    const hn_layer_desc *l = &a->layer[0];
    const hn_key other = {KEY("attention.key_length_swa"), "global_head_dim", 2, MOST_HEAD, gguf ? (double)NAN : USUAL_FULL_HEAD},
                 value = {KEY("attention.value_length_swa"), NULL, 2, MOST_HEAD, l->head_dim},
                 few = {NULL, "num_global_key_value_heads", 1, 1024, l->kv_heads};
    int values = 0;
    h->dim[OF_FULL] = h->dim[OF_LOCAL] = l->head_dim; /* a GGUF's key_length is of full attention, a folder's head_dim is not */
    h->kv_heads[OF_FULL] = h->kv_heads[OF_LOCAL] = l->kv_heads;
    hunch_status st = hn_key_int(src, &other, &h->dim[gguf ? OF_LOCAL : OF_FULL], err);
    if (!st && gguf) st = hn_key_int(src, &value, &values, err);
    if (!st && v_is_k) st = hn_key_int(src, &few, &h->kv_heads[OF_FULL], err);
    if (!st) st = hn_gemma4_own_sizes(a, src, l->head_dim, l->kv_heads, h, err);
    if (!st && (h->dim[OF_FULL] % 2 || h->dim[OF_LOCAL] % 2 || (gguf && values != h->dim[OF_LOCAL])))
        st = hn_fail(err, HUNCH_REFUSED, "%s: heads of %d and %d (values %d): expected even and equal sizes", hn_source_path(src),
                     h->dim[OF_FULL], h->dim[OF_LOCAL], gguf ? values : h->dim[OF_LOCAL]);
    return st;
}

/* Which layers have full attention, and the heads of each. */
static hunch_status read_heads(hn_arch *a, const hn_source *src, bool v_is_k, hunch_error *err) {
    const bool gguf = is_gguf(src);
    const hn_key period = {PATTERN, NULL, 1, 1024, USUAL_PERIOD};
    hn_layer_desc *last = &a->layer[a->layers - 1];
    hn_kinds_of_heads h;
    hunch_status st = hn_family_windows(a, src, &period, a->layer[0].window, err);
    if (!st && !gguf && !hn_source_config(src, "layer_types")) last->window = 0;
    if (!st && last->window > 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s: the last layer has a window, expected full attention", hn_source_path(src),
                     gguf ? PATTERN : "layer_types");
    if (!st) st = read_head_sizes(a, src, v_is_k, &h, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        const int kind = l->window > 0 ? OF_LOCAL : OF_FULL;
        l->head_dim = h.dim[kind];
        if (!gguf) l->kv_heads = h.kv_heads[kind]; /* which has a number of each layer */
        l->rotation = kind;
        l->v_is_k = v_is_k && kind == OF_FULL;
        if (gguf) l->v_is_k = kind == OF_FULL && !hn_arch_find_tensor(a, src, HN_ROLE_V, i);
        if (l->heads % l->kv_heads)
            return hn_fail(err, HUNCH_REFUSED, "%s: layer %d: %d heads do not share %d key heads evenly", hn_source_path(src), i, l->heads,
                         l->kv_heads);
    }
    return st;
}

/* The last layers have the keys and values of the last layer of their kind that is not one of them; such layers may be twice as wide. */
static hunch_status share_keys(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key shared = {KEY("attention.shared_kv_layers"), "num_kv_shared_layers", 0, a->layers - 1, 0};
    int n = 0;
    bool wide = false, found;
    hunch_status st = hn_key_int(src, &shared, &n, err);
    if (!st && !is_gguf(src)) st = hn_source_bool(src, "use_double_wide_mlp", &wide, &found, err);
    for (int i = a->layers - n; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        int from = a->layers - n - 1;
        while (from >= 0 && a->layer[from].window != l->window) from--;
        if (from < 0 || a->layer[from].kv_heads != l->kv_heads)
            return hn_fail(err, HUNCH_REFUSED, "%s: %s is %d: layer %d would read keys of %d heads, %s", hn_source_path(src),
                           is_gguf(src) ? shared.gguf : shared.hf, n, i, l->kv_heads,
                           from < 0 ? "and no layer of its kind before these has any" : "and the last such layer before these has others");
        l->kv_back = i - from;
        l->v_is_k = false;
        if (wide) l->ffn_width *= 2;
    }
    return st;
}

/* ---- rotations ------------------------------------------------------------------------------------------------------------ */

/* A folder's rotation of one kind of layers: "proportional" rotates the first pairs of the whole head's frequencies. */
static hunch_status folder_rotation(hn_arch *a, const hn_source *src, int kind, int dims, hunch_error *err) {
    static const char *const names[] = {"full_attention", "sliding_attention"}, *const types[] = {"proportional", "default"};
    char type_at[80], theta_at[80], part_at[80], factor_at[80];
    const char *type = types[kind];
    snprintf(type_at, sizeof type_at, "rope_parameters.%s.rope_type", names[kind]);
    snprintf(theta_at, sizeof theta_at, "rope_parameters.%s.rope_theta", names[kind]);
    snprintf(part_at, sizeof part_at, "rope_parameters.%s.partial_rotary_factor", names[kind]);
    snprintf(factor_at, sizeof factor_at, "rope_parameters.%s.factor", names[kind]);
    const bool described = hn_source_config(src, "rope_parameters") != NULL;
    const hn_key theta = {NULL, theta_at, 1, 1e12, kind == OF_FULL ? FULL_THETA : local_theta},
                 part = {NULL, part_at, 0, 1, described ? 1 : full_part}, factor = {NULL, factor_at, 1, 1, 1};
    hn_scaling s = {.factor = 1};
    double rotated = 1, by = 1;
    bool found;
    hunch_status st = hn_source_str(src, type_at, &type, NULL, &found, err);
    if (!st && strcmp(type, types[1]) != 0 && (kind == OF_LOCAL || strcmp(type, types[0]) != 0))
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected %s", hn_source_path(src), type_at, type,
                     kind == OF_LOCAL ? "default" : "proportional or default");
    if (!st) st = hn_key_real(src, &theta, &s.theta, err);
    if (!st) st = hn_key_real(src, &part, &rotated, err);
    if (!st) st = hn_key_real(src, &factor, &by, err);
    s.pairs = strcmp(type, types[0]) == 0 ? (int)(rotated * dims / 2) : dims / 2;
    if (kind == OF_FULL) s.kind = HN_SCALING_PART; /* a GGUF has its table, also if all pairs are rotated */
    return st ? st : hn_rope_add(a, dims, &s, err);
}

hunch_status hn_gemma4_pairs(const hn_source *src, const hn_tensor *t, int half, int *pairs, hunch_error *err) {
    *pairs = 0;
    if (!t || !t->known || t->dtype != HN_F32 || t->n_dims != 1 || t->dims[0] != (uint64_t)half)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor rope_freqs.weight: expected F32 [%d]", hn_source_path(src), half);
    for (int i = 0; i < half; i++) {
        float d;
        const hunch_status st = hn_source_read(src, t, (size_t)i * sizeof d, sizeof d, &d, err);
        if (st) return st;
        if (*pairs == i && d == 1)
            (*pairs)++;
        else if (!(d >= least_divisor))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: value %g at %d, expected 1 at the pairs that are rotated, then 1e30",
                           hn_source_path(src), t->name, (double)d, i);
    }
    return HUNCH_OK;
}

/* A GGUF's keys about rotations that have one possible value. */
static hunch_status check_gguf_rotations(const hn_source *src, const int dims[2], hunch_error *err) {
    const hn_key fixed[] = {{KEY("rope.dimension_count"), NULL, dims[OF_FULL], dims[OF_FULL], dims[OF_FULL]},
                            {KEY("rope.dimension_count_swa"), NULL, dims[OF_LOCAL], dims[OF_LOCAL], dims[OF_LOCAL]}},
                 factor = {KEY("rope.scaling.factor"), NULL, 1, 1, 1};
    const char *type = "none";
    double by;
    int n;
    bool found;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < 2; i++) st = hn_key_int(src, &fixed[i], &n, err);
    if (!st) st = hn_key_real(src, &factor, &by, err);
    if (!st) st = hn_source_str(src, KEY("rope.scaling.type"), &type, NULL, &found, err);
    if (!st && strcmp(type, "none"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected none", hn_source_path(src), KEY("rope.scaling.type"), type);
    return st;
}

static hunch_status gguf_rotations(hn_arch *a, hn_source *src, const int dims[2], hunch_error *err) {
    const hn_key full = {KEY("rope.freq_base"), NULL, 1, 1e12, FULL_THETA}, local = {KEY("rope.freq_base_swa"), NULL, 1, 1e12, local_theta};
    hn_scaling s = {.factor = 1}, plain = {.factor = 1};
    hunch_status st = check_gguf_rotations(src, dims, err);
    if (!st) st = hn_gemma4_pairs(src, hn_source_take(src, "rope_freqs.weight"), dims[OF_FULL] / 2, &s.pairs, err);
    if (!st) st = hn_key_real(src, &full, &s.theta, err);
    if (!st) st = hn_key_real(src, &local, &plain.theta, err);
    s.kind = HN_SCALING_PART;
    if (!st) st = hn_rope_add(a, dims[OF_FULL], &s, err);
    return st ? st : hn_rope_add(a, dims[OF_LOCAL], &plain, err);
}

static hunch_status read_rotations(hn_arch *a, hn_source *src, hunch_error *err) {
    int dims[2] = {0}, i = 0;
    dims[OF_FULL] = dims[OF_LOCAL] = a->layer[a->layers - 1].head_dim;
    for (; i < a->layers && a->layer[i].window == 0; i++) {}
    if (i < a->layers) dims[OF_LOCAL] = a->layer[i].head_dim;
    if (is_gguf(src)) return gguf_rotations(a, src, dims, err);
    const hunch_status st = folder_rotation(a, src, OF_FULL, dims[OF_FULL], err);
    return st ? st : folder_rotation(a, src, OF_LOCAL, dims[OF_LOCAL], err);
}

/* ---- the rest --------------------------------------------------------------------------------------------------------------- */

/* The width of each token's input of a layer. */
static hunch_status read_input(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const bool none = is_gguf(r->src) || is_unified(r->src) || hn_source_is_null(r->src, k->folder);
    const hn_key width = {KEY("embedding_length_per_layer_input"), k->folder, 0, 1 << 16, none ? 0 : USUAL_INPUT};
    int n = 0;
    const hunch_status st = hn_key_int(r->src, &width, &n, err);
    *v = n;
    return st;
}

static hunch_status check_inputs(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key tokens = {NULL, "vocab_size_per_layer_input", 0, 1 << 24, a->vocab};
    const int n = a->layer[0].token_input;
    int rows = 0;
    hunch_status st = n > 0 ? hn_key_int(src, &tokens, &rows, err) : HUNCH_OK;
    if (!st && n > 0 && rows != a->vocab)
        st = hn_fail(err, HUNCH_REFUSED, "%s: vocab_size_per_layer_input is %d, expected the vocabulary's %d", hn_source_path(src), rows,
                     a->vocab);
    if (!st && (double)n * a->layers > 1 << 24)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %d, expected at most %d for %d layers", hn_source_path(src),
                     is_gguf(src) ? KEY("embedding_length_per_layer_input") : "hidden_size_per_layer_input", n, (1 << 24) / a->layers,
                     a->layers);
    return st;
}

/* Images may see each other ("vision"); text never sees ahead. */
static hunch_status check_direction(const hn_source *src, hunch_error *err) {
    const json_t *ahead = hn_source_config(src, "use_bidirectional_attention");
    const char *word = json_string_value(ahead);
    if (is_gguf(src) || !ahead || json_is_null(ahead) || json_is_false(ahead) || (word && !strcmp(word, "vision"))) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "%s: use_bidirectional_attention is %.20s, expected null or \"vision\"", hn_source_path(src),
                   word ? word : "no word");
}

static hunch_status read_rest(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool gguf = is_gguf(src);
    bool v_is_k = false, found;
    hunch_status st = check_direction(src, err);
    if (!st && !gguf) st = hn_source_bool(src, "attention_k_eq_v", &v_is_k, &found, err);
    if (!st) st = read_heads(a, src, v_is_k, err);
    if (!st) st = share_keys(a, src, err);
    if (!st) st = check_inputs(a, src, err);
    a->embed_scale = sqrtf((float)a->hidden);
    for (int i = 0; !st && i < a->layers; i++) a->layer[i].scaled = !gguf || hn_arch_find_tensor(a, src, HN_ROLE_LAYER_SCALE, i);
    return st ? st : read_rotations(a, src, err);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------- */

static double usual_kv_heads(const hn_arch *a, const hn_layer_desc *l) { return a->files.form == HN_SOURCE_HF ? 4 : l->heads; }
static double usual_head(const hn_arch *a, const hn_layer_desc *l) { return a->files.form == HN_SOURCE_HF ? 256 : a->hidden / l->heads; }

static hunch_status read_window(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const double usual = is_gguf(r->src) ? (double)NAN : is_unified(r->src) ? UNIFIED_WINDOW : USUAL_WINDOW;
    const hn_key window = {KEY("attention.sliding_window"), k->folder, 1, 1 << 24, usual};
    int n = 0;
    const hunch_status st = hn_key_int(r->src, &window, &n, err);
    *v = n;
    return st;
}

static bool full_dims(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = a->rotation[OF_FULL].dims;
    return true;
}
static bool local_dims(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = a->rotation[OF_LOCAL].dims;
    return true;
}
static bool n_shared(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    for (int i = 0; i < a->layers; i++) *v += a->layer[i].kv_back > 0;
    return true;
}
/* Other programs need the key even if no layer has one. */
static bool no_windows(const hn_arch *a, const hn_key_row *k, double *v) {
    const bool any = hn_any_window(a, k, v);
    *v = USUAL_WINDOW;
    return !any;
}

#define WRITTEN(type, name, value) {HN_BESIDE(type), name, .how = HN_LATER, .written = value}
static const hn_key_row keys[] = {
    {HN_MODEL(INT, context), "context_length", "max_position_embeddings", 1, 1 << 24, {NAN, 131072}, HN_NOT_NULL},
    {HN_LAYER(INT, heads), "attention.head_count", "num_attention_heads", 1, 1024, {NAN, 8}, HN_NOT_NULL},
    {HN_LAYER(INT, head_dim), "attention.key_length", "head_dim", 2, MOST_HEAD, .how = HN_NEVER_WRITTEN, .follows = usual_head},
    {HN_MODEL(INT, files.value_dim), "attention.value_length", NULL, 2, MOST_HEAD, .how = HN_NEVER_WRITTEN,
     .follows = hn_usual_value_dim},
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", .read = read_window, .written = hn_any_window},
    HN_EPS(NAN, 1e-6), HN_THETA(FULL_THETA), HN_TIED(1),
    {HN_LAYER(WORD, ffn), NULL, "hidden_activation", HN_FFN_GEGLU, HN_FFN_GEGLU, {HN_FFN_GEGLU, HN_FFN_GEGLU}, 0, "silu gelu_pytorch_tanh"},
    HN_ALWAYS(HN_LAYER(BOOL, post_norms), 1), HN_ALWAYS(HN_LAYER(BOOL, v_norm), 1), HN_ALWAYS(HN_LAYER(FLOAT, attention_scale), 1),
    {HN_BESIDE(CLAIM), NULL, "use_bidirectional_attention"},

    {HN_LAYER(LIST, window), "attention.sliding_window_pattern", .how = HN_BEHIND, .each = hn_layer_slides},
    WRITTEN(INT, "attention.sliding_window", no_windows),
    WRITTEN(INT, "attention.key_length", full_dims), WRITTEN(INT, "attention.value_length", full_dims),
    WRITTEN(INT, "attention.key_length_swa", local_dims), WRITTEN(INT, "attention.value_length_swa", local_dims),
    WRITTEN(INT, "rope.dimension_count_swa", local_dims), WRITTEN(INT, "attention.shared_kv_layers", n_shared),
    {HN_LAYER(INT, token_input), "embedding_length_per_layer_input", "hidden_size_per_layer_input", .read = read_input},
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, .how = HN_EACH | HN_BEHIND,
     .follows = usual_kv_heads},
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "intermediate_size", 1, 1 << 20, {NAN, NAN}, HN_EACH | HN_BEHIND | HN_NOT_NULL},
    {HN_MODEL(REAL, rotation[OF_LOCAL].scaling.theta), "rope.freq_base_swa", .how = HN_LATER},
    {HN_MODEL(FLOAT, logit_cap), "final_logit_softcapping", "final_logit_softcapping", 0, 1e9, {30, 0}},
    HN_ROWS_END};
static const hn_key_row sparse[] = {
    {HN_LAYER(INT, experts.used), "expert_used_count", "top_k_experts", 1, HN_MAX_USED, {NAN, NAN}}, HN_ROWS_END};

static hunch_status heads_beside(hn_arch *a, hn_layer_desc *l, const hn_source *src, hunch_error *err) {
    l->ffn = HN_FFN_BESIDE;
    return hn_family_heads(a, l, src, err);
}

static const hn_role_other names_with_experts[] = {{HN_ROLE_ROUTER, NULL, NULL, "model.layers.%d.router.proj.weight"},
                                                   {HN_ROLE_EXPERT_GATE_UP, NULL, NULL, "model.layers.%d.experts.gate_up_proj"},
                                                   {HN_ROLE_EXPERT_DOWN, NULL, NULL, "model.layers.%d.experts.down_proj"},
                                                   {HN_ROLES, NULL, NULL, NULL}};
static const hn_family with_experts = {.gguf_name = "gemma4", .hf_type = "gemma4", .names = names_with_experts, .own_rotations = true,
                                       .keys = {hn_norms_of_heads, hn_moe_keys, hn_moe_normalised, sparse, keys},
                                       .heads = heads_beside, .finish = read_rest};

/* Whether every layer has experts. */
static hunch_status which(const hn_family **f, const hn_source *src, hunch_error *err) {
    const hn_key count = {KEY("expert_count"), NULL, 0, HN_MAX_EXPERTS, 0};
    int n = 0;
    bool experts = false, found;
    const hunch_status st =
        is_gguf(src) ? hn_key_int(src, &count, &n, err) : hn_source_bool(src, "enable_moe_block", &experts, &found, err);
    if (experts || n > 0) *f = &with_experts;
    return st;
}

#define FAMILY(type) {.gguf_name = "gemma4", .hf_type = type, .own_rotations = true, .keys = {hn_norms_of_heads, keys}, .which = which, \
                      .finish = read_rest}
const hn_family hn_family_gemma4 = FAMILY("gemma4");
const hn_family hn_family_gemma4_text = FAMILY("gemma4_text");
const hn_family hn_family_gemma4_unified = FAMILY("gemma4_unified");
const hn_family hn_family_gemma4_unified_text = FAMILY("gemma4_unified_text");
