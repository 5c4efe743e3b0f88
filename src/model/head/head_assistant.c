/* SPDX-License-Identifier: Apache-2.0 */
/* head_assistant.c - the description of an assistant of Gemma 4: a few layers like Gemma's, with queries alone, which read the keys and
 * values of two of the target's layers: the last one with a window and the last one without, of those that have their own. Folders
 * describe them in text_config; GGUF files are llama.cpp's (gemma4-assistant) or ik_llama.cpp's (gemma4_mtp). */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/head/head.h"

enum { MOST_LAYERS = 16, OF_FULL = 0, OF_WINDOW = 1, USUAL_FULL_HEAD = 512 }; /* the last layers' kinds index rotations, and arrays */
static const double USUAL_PART = 0.25;

typedef struct shape {
    hn_layer_desc usual; /* what layers of both kinds have */
    hn_kinds_of_heads kinds;
    double theta[2], part; /* part: of the full layers' heads that is rotated; 0: not known */
} shape;

/* ---- rows ----------------------------------------------------------------------------------------------------------------- */

/* In a GGUF a tensor shows it (read_pairs). */
static hunch_status read_share(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const hn_key part = {NULL, k->folder, k->least, k->most, hn_source_config(r->src, "rope_parameters") ? 1 : USUAL_PART};
    const char *type = json_string_value(hn_source_config(r->src, "rope_parameters.full_attention.rope_type"));
    if (hn_source_get_kind(r->src) == HN_SOURCE_GGUF) return HUNCH_OK;
    const hunch_status st = hn_key_real(r->src, &part, v, err);
    if (type && !strcmp(type, "default")) *v = 1; /* which has no part */
    return st;
}

#define MUST {NAN, NAN}
#define OFF(type, name) {HN_BESIDE(type), NULL, name}
static const hn_key_row rows[] = {
    OFF(BOOL, "attention_bias"), OFF(BOOL, "use_double_wide_mlp"), OFF(BOOL, "enable_moe_block"),
    OFF(REAL, "hidden_size_per_layer_input"), OFF(REAL, "final_logit_softcapping"), OFF(REAL, "num_experts"),
    {HN_BESIDE(WORD), NULL, "hidden_activation", .words = "gelu_pytorch_tanh"},
    {HN_BESIDE(WORD), NULL, "rope_parameters.sliding_attention.rope_type", .words = "default"},
    {HN_BESIDE(WORD), NULL, "rope_parameters.full_attention.rope_type", 0, 1, .words = "proportional default"},
    {HN_MODEL(INT, layers), "block_count", "num_hidden_layers", 1, MOST_LAYERS, MUST},
    {HN_MODEL(INT, hidden), "embedding_length", "hidden_size", 1, 1 << 17, MUST},
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "intermediate_size", 1, 1 << 20, MUST},
    {HN_LAYER(INT, heads), "attention.head_count", "num_attention_heads", 1, 1024, MUST},
    {HN_MODEL(INT, rotation[OF_WINDOW].dims), "attention.key_length_swa", "head_dim", 1, HN_MAX_HEAD_DIM, MUST},
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, MUST},
    {HN_MODEL(INT, context), "context_length", "max_position_embeddings", 1, 1 << 24, MUST},
    {HN_MODEL(INT, rotation[OF_FULL].dims), "attention.key_length", "global_head_dim", 1, HN_MAX_HEAD_DIM, {NAN, USUAL_FULL_HEAD}},
    {HN_MODEL(FLOAT, norm_eps), "attention.layer_norm_rms_epsilon", "rms_norm_eps", 1e-12, 1, MUST},
    {HN_MODEL(REAL, rotation[OF_FULL].scaling.theta), "rope.freq_base", "rope_parameters.full_attention.rope_theta", 1, 1e12, {1e6, 1e6}},
    {HN_MODEL(REAL, rotation[OF_WINDOW].scaling.theta), "rope.freq_base_swa", "rope_parameters.sliding_attention.rope_theta", 1, 1e12,
     {1e4, 1e4}},
    {HN_MODEL(REAL, files.rotated), NULL, "rope_parameters.full_attention.partial_rotary_factor", 0.01, 1, .read = read_share},
    HN_ROWS_END};

static hunch_status read_rows(hn_arch *a, const hn_source *src, shape *s, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const hn_file_keys keys = {gguf ? a->family->gguf_name : "assistant", {rows}, NULL};
    hunch_status st = hn_keys_read(&(hn_key_reading){&keys, a, &s->usual, src, NULL}, err);
    for (int kind = OF_FULL; kind <= OF_WINDOW; kind++) {
        s->kinds.dim[kind] = a->rotation[kind].dims;
        s->theta[kind] = a->rotation[kind].scaling.theta;
    }
    s->part = a->files.rotated;
    const json_t *ahead = hn_source_config(src, "use_bidirectional_attention");
    const char *word = json_string_value(ahead);
    if (!st && ahead && !json_is_false(ahead) && !(word && !strcmp(word, "vision"))) /* of images, which it does not read */
        st = hn_fail(err, HUNCH_REFUSED, "%s: use_bidirectional_attention is %.40s: assistants are read without", hn_source_path(src),
                     word ? word : "true");
    return st;
}

/* ---- keys of kinds of layers ---------------------------------------------------------------------------------------------- */

/* In a GGUF a number, or one of each layer; those of a kind of layer are equal. */
static hunch_status read_kv_heads(const hn_arch *a, const hn_source *src, shape *s, hunch_error *err) {
    hn_key_buf key;
    const hn_key *one = hn_family_key_of(&key, a->family, "attention.head_count_kv", "num_key_value_heads", 1, 1024, NAN);
    const hn_array *list = NULL;
    int both = 0;
    hunch_status st = HUNCH_OK;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF && !hn_source_array(src, one->gguf, &list, NULL) && list) {
        if (hn_array_is_strings(list) || hn_array_count(list) != (size_t)a->layers)
            return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected %d numbers", hn_source_path(src), one->gguf, a->layers);
        for (int i = 0; !st && i < a->layers; i++) {
            int *of = &s->kinds.kv_heads[a->layer[i].window > 0 ? OF_WINDOW : OF_FULL];
            const double n = hn_array_number(list, (size_t)i);
            if (!(n >= 1 && n <= 1024) || (*of > 0 && *of != (int)n))
                st = hn_fail(err, HUNCH_REFUSED, "%s: %s: %g in layer %d, expected the same number of 1 to 1024 in all layers of a kind",
                             hn_source_path(src), one->gguf, n, i);
            *of = (int)n;
        }
        return st;
    }
    bool k_is_v = false, found;
    st = hn_key_int(src, one, &both, err);
    s->kinds.kv_heads[OF_FULL] = s->kinds.kv_heads[OF_WINDOW] = both;
    if (st || hn_source_get_kind(src) == HN_SOURCE_GGUF) return st;
    const hn_key global = {NULL, "num_global_key_value_heads", 1, 1024, both};
    st = hn_source_bool(src, "attention_k_eq_v", &k_is_v, &found, err);
    if (!st && k_is_v) st = hn_key_int(src, &global, &s->kinds.kv_heads[OF_FULL], err);
    return st ? st : hn_gemma4_own_sizes(a, src, s->kinds.dim[OF_WINDOW], both, &s->kinds, err);
}

/* All layers share keys and values, if it is said how many. */
static hunch_status check_shared(const hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_key_buf key;
    const hn_key *k = hn_family_key_of(&key, a->family, "attention.shared_kv_layers", "num_kv_shared_layers", 0, 1 << 20, a->layers);
    int shared = 0;
    const hunch_status st = hn_key_int(src, k, &shared, err);
    if (st || shared == a->layers) return st;
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is %d, expected all %d layers of an assistant", hn_source_path(src),
                   hn_source_get_kind(src) == HN_SOURCE_GGUF ? k->gguf : k->hf, shared, a->layers);
}

/* ---- layers --------------------------------------------------------------------------------------------------------------- */

static hunch_status create_layers(hn_arch *a, const hn_source *src, const shape *s, hunch_error *err) {
    hn_key_buf key;
    const hn_key *flags = hn_family_key_of(&key, a->family, "attention.sliding_window_pattern", NULL, 0, 0, NAN);
    a->layer = hn_zalloc((size_t)a->layers, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)a->layers * sizeof *a->layer);
    return hn_family_windows(a, src, flags, s->usual.window, err);
}

static hunch_status describe_layers(hn_arch *a, const hn_source *src, const shape *s, hunch_error *err) {
    for (int i = 0; i < a->layers; i++) {
        const int kind = a->layer[i].window > 0 ? OF_WINDOW : OF_FULL;
        a->layer[i] = (hn_layer_desc){.mixer = {{.kind = &hn_mixer_attention}}, .heads = s->usual.heads,
                                      .kv_heads = s->kinds.kv_heads[kind], .head_dim = s->kinds.dim[kind],
                                      .window = a->layer[i].window, .attention_scale = 1, .qk_norm = true, .kv_back = 1,
                                      .rotation = kind, .post_norms = true, .ffn = HN_FFN_GEGLU,
                                      .ffn_width = s->usual.ffn_width, .scaled = true};
        if (s->usual.heads % s->kinds.kv_heads[kind] || s->kinds.dim[kind] % 2)
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: %d heads of %d numbers do not share %d key heads: expected an even size, and a multiple",
                           hn_source_path(src), s->usual.heads, s->kinds.dim[kind], s->kinds.kv_heads[kind]);
    }
    return HUNCH_OK;
}

static hunch_status read_pairs(hn_source *src, shape *s, hunch_error *err) {
    const int half = s->kinds.dim[OF_FULL] / 2;
    const hn_tensor *t = hn_source_take(src, "rope_freqs.weight");
    int pairs = 0;
    const hunch_status st = t ? hn_gemma4_pairs(src, t, half, &pairs, err) : HUNCH_OK;
    if (t) s->part = (double)pairs / half;
    return st;
}

/* The index is the kind of layer. Without a list of the pairs that are rotated they are the target's, or the usual quarter. */
static hunch_status add_rotations(hn_arch *a, const shape *s, const hn_rotation *of_target, hunch_error *err) {
    const int dims = s->kinds.dim[OF_FULL];
    const bool target_part = of_target && of_target->scaling.kind == HN_SCALING_PART;
    double part = s->part;
    if (!(part > 0)) part = !of_target ? USUAL_PART : target_part ? 2.0 * of_target->scaling.pairs / of_target->dims : 1;
    const hn_scaling full = {.kind = part < 1 ? HN_SCALING_PART : HN_SCALING_NONE,
                             .theta = s->theta[OF_FULL],
                             .factor = 1,
                             .pairs = (int)(dims * part / 2)},
                     window = {.theta = s->theta[OF_WINDOW], .factor = 1};
    const hunch_status st = hn_rope_add(a, dims, &full, err);
    return st ? st : hn_rope_add(a, s->kinds.dim[OF_WINDOW], &window, err);
}

/* ---- the target's layers --------------------------------------------------------------------------------------------------- */

/* The last layer of a kind that has keys and values of its own; -1: none. */
static int last_owner(const hn_arch *target, bool window) {
    int last = -1;
    for (int i = 0; i < target->layers; i++) {
        const hn_layer_desc *l = &target->layer[i];
        if (hn_layer_is(l, &hn_mixer_attention) && l->kv_back == 0 && (l->window > 0) == window) last = i;
    }
    return last;
}

static hunch_status check_number(const hn_source *src, const char *what, int said, int wanted, int layer, hunch_error *err) {
    return said == wanted ? HUNCH_OK
                          : hn_fail(err, HUNCH_REFUSED, "%s: %s of %d, expected the %d of layer %d of this target", hn_source_path(src),
                                    what, said, wanted, layer);
}

/* The same frequencies as the target's keys have. */
static hunch_status check_rotation(const hn_arch *a, const hn_source *src, const hn_rotation *own, const hn_rotation *of,
                                   hunch_error *err) {
    for (int i = 0; i < own->dims / 2; i++)
        if (own->dims != of->dims || !(fabs(own->freq[i] - of->freq[i]) <= 1e-6 * own->freq[0]))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: the rotation of %s layers turns pair %d by %g a position, expected the %g of this target's keys",
                           hn_source_path(src), own == &a->rotation[OF_FULL] ? "full" : "sliding", i, own->freq[i],
                           own->dims == of->dims ? of->freq[i] : 0);
    return HUNCH_OK;
}

static hunch_status find_layer(const hn_arch *a, const hn_source *src, const shape *s, const hn_arch *target, int kind, int *layer,
                               hunch_error *err) {
    *layer = last_owner(target, kind == OF_WINDOW);
    if (*layer < 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: layers with%s a window, expected a target that has such layers", hn_source_path(src),
                       kind == OF_WINDOW ? "" : "out");
    const hn_layer_desc *l = &target->layer[*layer];
    hunch_status st = check_number(src, "key heads", s->kinds.kv_heads[kind], l->kv_heads, *layer, err);
    if (!st) st = check_number(src, "heads", s->kinds.dim[kind], l->head_dim, *layer, err);
    if (!st && kind == OF_WINDOW) st = check_number(src, "a window", s->usual.window, l->window, *layer, err);
    if (!st && l->rotation == HN_NO_ROTATION)
        st = hn_fail(err, HUNCH_REFUSED, "%s: rotated queries, and layer %d of this target has none", hn_source_path(src), *layer);
    return st ? st : check_rotation(a, src, &a->rotation[kind], &target->rotation[l->rotation], err);
}

static hunch_status find_layers(hn_arch *a, const hn_source *src, const shape *s, const hn_arch *target, hunch_error *err) {
    hn_borrowed_desc *d = &a->draft_head.rows.borrowed;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < a->layers && target->layer; i++) { /* without a target it is not known, as when a folder is converted */
        const bool window = a->layer[i].window > 0;
        st = find_layer(a, src, s, target, window ? OF_WINDOW : OF_FULL, window ? &d->window_layer : &d->full_layer, err);
    }
    return st;
}

/* ---- its other sizes -------------------------------------------------------------------------------------------------------- */

/* The width of the target's states, and its tokens. */
static hunch_status check_target(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    hn_input_stage *in = &a->draft_head.input;
    const hn_tensor *output = hn_head_find_tensor(src, names, HN_HEAD_OUTPUT);
    char name[128];
    hunch_status st = hn_head_expect(src, HN_HEAD_KEY_TARGET_WIDTH, target->hidden, "of this target", err);
    if (st) return st;
    if (!output || output->n_dims != 2)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: expected one of %d inputs, an output for each token", hn_source_path(src),
                       hn_head_name(names, HN_HEAD_OUTPUT, 0, name), a->hidden);
    if (output->dims[1] != (uint64_t)target->vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: an output of %llu tokens, expected the %d of this target", hn_source_path(src),
                       (unsigned long long)output->dims[1], target->vocab);
    st = hn_head_expect(src, HN_HEAD_KEY_TOKENS, target->vocab, "of this target", err);
    a->vocab = target->vocab;
    in->feature_width = target->hidden;
    in->embeddings = target->vocab;
    return st;
}

static void set_stages(hn_arch *a) {
    hn_head_desc *d = &a->draft_head;
    d->input.stream = HN_STREAM_JOINT;
    d->input.features = 1;
    d->input.joint.scaled = true;
    d->rows.kind = HN_ROWS_BORROWED;
    d->output.norm = HN_NORM_CARRIED;
    d->output.own = true;
}

hunch_status hn_head_read_assistant(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    shape s = {0};
    hunch_status st = hn_head_find_family(src, &a->family, err);
    a->files.form = hn_source_get_kind(src);
    if (!st) st = read_rows(a, src, &s, err);
    if (!st) st = create_layers(a, src, &s, err);
    if (!st) st = read_kv_heads(a, src, &s, err);
    if (!st) st = check_shared(a, src, err);
    if (!st && a->files.form == HN_SOURCE_GGUF) st = read_pairs(src, &s, err);
    if (!st) st = describe_layers(a, src, &s, err);
    const int full = st || !target->layer ? -1 : last_owner(target, false);
    if (!st) st = add_rotations(a, &s, full >= 0 ? &target->rotation[target->layer[full].rotation] : NULL, err);
    if (st) return st;
    a->embed_scale = a->residual_scale = a->logit_scale = 1;
    set_stages(a);
    st = check_target(a, src, names, target, err);
    if (!st) st = find_layers(a, src, &s, target, err);
    return st ? st : hn_head_read_clusters(a, src, names, err);
}

/* ---- what a GGUF has ------------------------------------------------------------------------------------------------------- */

/* The last layer with a window, or the last one without; that of the other kind if there is none. */
static const hn_layer_desc *layer_of(const hn_arch *a, bool window) {
    const hn_layer_desc *l = &a->layer[0];
    for (int i = 0; i < a->layers; i++)
        if ((a->layer[i].window > 0) == window) l = &a->layer[i];
    return l;
}

#define VALUE(name, value)                                                                                                            \
    static bool name(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {                                                    \
        *v = value;                                                                                                                   \
        return true;                                                                                                                  \
    }
VALUE(all_layers, a->layers)
VALUE(full_ffn, layer_of(a, false)->ffn_width)
VALUE(full_head, layer_of(a, false)->head_dim)
VALUE(window_head, layer_of(a, true)->head_dim)
VALUE(rows_of_window, layer_of(a, true)->window)
VALUE(full_dims, a->rotation[layer_of(a, false)->rotation].dims)
VALUE(window_dims, a->rotation[layer_of(a, true)->rotation].dims)
VALUE(full_theta, a->rotation[layer_of(a, false)->rotation].scaling.theta)
VALUE(window_theta, a->rotation[layer_of(a, true)->rotation].scaling.theta)
static int kv_heads_of(const hn_layer_desc *l) { return l->kv_heads; }

#define WRITTEN(type, name, value) {HN_BESIDE(type), name, .how = HN_LATER, .written = value}
const hn_key_row hn_assistant_keys[] = {
    {HN_MODEL(INT, files.next_layers), "nextn_predict_layers", .written = all_layers},
    {HN_LAYER(INT, ffn_width), "feed_forward_length", .written = full_ffn},
    {HN_LAYER(INT, kv_heads), NULL}, {HN_LAYER(INT, window), NULL}, {HN_LAYER(INT, head_dim), NULL},
    {HN_MODEL(INT, rotation[0].dims), NULL}, {HN_MODEL(INT, files.value_dim), NULL}, {HN_MODEL(REAL, rotation[0].scaling.theta), NULL},
    WRITTEN(INT, "attention.key_length", full_head), WRITTEN(INT, "attention.value_length", full_head),
    WRITTEN(INT, "attention.key_length_swa", window_head), WRITTEN(INT, "attention.value_length_swa", window_head),
    WRITTEN(INT, "attention.sliding_window", rows_of_window), WRITTEN(INT, "attention.shared_kv_layers", all_layers),
    WRITTEN(INT, "rope.dimension_count", full_dims), WRITTEN(INT, "rope.dimension_count_swa", window_dims),
    {HN_LAYER(LIST, kv_heads), "attention.head_count_kv", .each = kv_heads_of},
    {HN_LAYER(LIST, window), "attention.sliding_window_pattern", .how = HN_BEHIND, .each = hn_layer_slides},
    {HN_MODEL(FLOAT, norm_eps), "attention.layer_norm_rms_epsilon", .how = HN_BEHIND},
    WRITTEN(REAL, "rope.freq_base", full_theta), WRITTEN(REAL, "rope.freq_base_swa", window_theta),
    HN_ROWS_END};
