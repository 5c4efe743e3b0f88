/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - a Hugging Face folder as a GGUF file: keys, tensor names, the order of Q and K rows.
 *
 * The folder is read through the same description that the model is loaded with (arch.h), so what opens converts. The
 * tokenizer's keys are convert_tokenizer.c's; experts: convert_experts.c; draft heads: convert_head.c.
 */
#include "convert/convert_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "convert/convert_tokenizer.h"
#include "model/arch/sampling_keys.h"

enum { QUANTISATION_VERSION = 2 }; /* of ggml's blocks as they are now */
/* general.file_type: the type of most weights. */
static const uint32_t file_type[HN_WEIGHT_TYPES] = {[HN_F32] = 0, [HN_F16] = 1, [HN_BF16] = 32, [HN_Q4_0] = 2, [HN_Q8_0] = 7};

/* ---- RoPE ------------------------------------------------------------------------------------------------------ */

/* The description holds finished frequencies; GGUF has a tensor of divisors of the plain ones. */
static hunch_status divisors_make(hn_conversion *c, const double *freq, float **out) {
    const int half = c->arch.rope_dims / 2;
    *out = hn_zalloc((size_t)half, sizeof **out);
    if (*out == NULL)
        return hn_fail_memory(c->err, "rope divisors", (size_t)half * sizeof **out);
    for (int i = 0; i < half; i++)
        (*out)[i] = (float)(pow(c->arch.scaling.theta, -2.0 * i / c->arch.rope_dims) / freq[i]);
    return HUNCH_OK;
}

hunch_status hn_conversion_plan_rotation(hn_conversion *c) {
    const hn_arch *a = &c->arch;
    const hn_scaling *s = &a->scaling;
    hunch_status status = HUNCH_OK;
    if (s->kind == HN_SCALING_LLAMA3) {
        c->table[0].name = "rope_freqs.weight";
        status = divisors_make(c, a->rope_freq, &c->table[0].values);
    }
    if (s->kind == HN_SCALING_LONGROPE) {
        c->table[0].name = "rope_factors_short.weight";
        c->table[1].name = "rope_factors_long.weight";
        status = divisors_make(c, a->rope_freq, &c->table[0].values);
        if (!status)
            status = divisors_make(c, a->rope_long, &c->table[1].values);
    }
    if (s->kind == HN_SCALING_YARN && !s->whole)
        status =
            hn_fail(c->err, HUNCH_REFUSED, "%s: rope scaling yarn with truncate false: a GGUF file has no place for it",
                    hn_source_path(c->src));
    return status;
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static const char *key_of(const hn_conversion *c, const char *suffix, char key[96]) {
    hn_dense_key(c->arch.dense, suffix, key);
    return key;
}

/* general.name: the name in config.json, else the folder's name. */
hunch_status hn_conversion_put_name(hn_conversion *c) {
    const char *name = NULL, *path = hn_source_path(c->src);
    size_t len = 0;
    bool found = false;
    hunch_status status = hn_source_str(c->src, "_name_or_path", &name, &len, &found, c->err);
    if (status)
        return status;
    if (!found || len == 0) {
        size_t end = strlen(path), start;
        while (end > 1 && path[end - 1] == '/')
            end--;
        for (start = end; start > 0 && path[start - 1] != '/';)
            start--;
        name = path + start;
        len = end - start;
    }
    return hn_gguf_put_str(c->w, "general.name", name, len, c->err);
}

hunch_status hn_conversion_put_type(hn_conversion *c, const hn_tensor *t) {
    const hn_dtype type = t != NULL && t->known && t->dtype < HN_WEIGHT_TYPES ? hn_conversion_type(c, t) : HN_F32;
    const hunch_status status = hn_gguf_put_u32(c->w, "general.file_type", file_type[type], c->err);
    return !status && hn_dtype_block(type) > 1
               ? hn_gguf_put_u32(c->w, "general.quantization_version", QUANTISATION_VERSION, c->err)
               : status;
}

static hunch_status dimensions_write(hn_conversion *c) {
    const hn_arch *a = &c->arch;
    const hn_layer_desc *l = &a->layer[0];
    int window = 0;
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].window > 0)
            window = a->layer[i].window;
    const struct {
        const char *key;
        int value;
    } numbers[] = {
        {"vocab_size", a->vocab},
        {"context_length", a->context},
        {"embedding_length", a->hidden},
        {"block_count", a->layers + a->next_layers},
        {"nextn_predict_layers", a->next_layers},
        {"feed_forward_length", l->ffn_width},
        {"attention.head_count", l->heads},
        {"attention.head_count_kv", l->kv_heads},
        {"rope.dimension_count", a->dense->no_rope_count ? 0 : a->rope_dims},
        {"attention.sliding_window", window},
        {"attention.key_length", l->head_dim * l->heads == a->hidden ? 0 : l->head_dim},
        {"attention.value_length", l->head_dim * l->heads == a->hidden ? 0 : l->head_dim},
    };
    char key[96];
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !status; i++)
        if (numbers[i].value != 0) /* head sizes are written only if they do not follow from the width */
            status = hn_gguf_put_u32(c->w, key_of(c, numbers[i].key, key), (uint32_t)numbers[i].value, c->err);
    /* if other programs have no windows for the family, also which layers have one: they ignore both (docs/targets.md) */
    if (!status && window > 0 && !a->dense->window_key)
        status = hn_dense_put_layers(a, c->w, key_of(c, "attention.sliding_window_pattern", key), hn_dense_slides, c->err);
    return status;
}

static hunch_status rope_write(hn_conversion *c) {
    static const char *const names[] = {
        [HN_SCALING_LINEAR] = "linear", [HN_SCALING_YARN] = "yarn", [HN_SCALING_LONGROPE] = "longrope"};
    const hn_arch *a = &c->arch;
    const hn_scaling *s = &a->scaling;
    const bool yarn = s->kind == HN_SCALING_YARN, longrope = s->kind == HN_SCALING_LONGROPE;
    const char *name = names[s->kind];
    /* attn_factor multiplies YaRN's usual amplitude; for longrope it is the whole amplitude */
    const hn_scaling plain = {.kind = s->kind, .factor = yarn ? s->factor : 1};
    const double times = (double)a->rope_scale / hn_rope_usual_amplitude(&plain);
    const struct {
        const char *key;
        double value;
        bool there;
    } reals[] = {{"rope.freq_base", s->theta, true},
                 {"rope.scaling.factor", s->factor, s->kind == HN_SCALING_LINEAR || yarn},
                 {"rope.scaling.yarn_beta_fast", s->fast, yarn},
                 {"rope.scaling.yarn_beta_slow", s->slow, yarn},
                 {"rope.scaling.attn_factor", times, longrope || fabs(times - 1) > 1e-6}};
    char key[96];
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof reals / sizeof *reals && !status; i++)
        if (reals[i].there)
            status = hn_gguf_put_f32(c->w, key_of(c, reals[i].key, key), (float)reals[i].value, c->err);
    if (!status && name != NULL)
        status = hn_gguf_put_str(c->w, key_of(c, "rope.scaling.type", key), name, strlen(name), c->err);
    if (!status && (yarn || longrope))
        status = hn_gguf_put_u32(c->w, key_of(c, "rope.scaling.original_context_length", key), (uint32_t)s->original,
                                 c->err);
    return status;
}

static hunch_status sampling_write(hn_conversion *c) {
    const hunch_sampling *s = &c->arch.sampling;
    hunch_status status = HUNCH_OK;
    for (const hn_sampling_key *k = hn_sampling_keys; !status && (k->gguf || k->hf); k++) {
        const double v = hn_sampling_value(s, k);
        if (!k->gguf || v == k->off || (k->dist && s->temperature == 0))
            continue;
        status = k->integer ? hn_gguf_put_u32(c->w, k->gguf, (uint32_t)v, c->err)
                            : hn_gguf_put_f32(c->w, k->gguf, (float)v, c->err);
    }
    return status;
}

hunch_status hn_conversion_put_sizes(hn_conversion *c) {
    char key[96], name[128];
    const int last = c->arch.layers - 1; /* the first layers of some models are dense */
    hn_arch_tensor_name(&c->arch, c->arch.layer[last].ffn == HN_FFN_EXPERTS ? HN_ROLE_EXPERT_DOWN : HN_ROLE_DOWN, last, name);
    hunch_status status = hn_conversion_put_type(c, hn_source_take(c->src, name));
    if (!status)
        status = dimensions_write(c);
    if (!status)
        status = hn_gguf_put_f32(c->w, key_of(c, "attention.layer_norm_rms_epsilon", key), c->arch.norm_eps,
                                 c->err);
    return status ? status : rope_write(c);
}

static hunch_status keys_write(hn_conversion *c) {
    hunch_status status =
        hn_gguf_put_str(c->w, "general.architecture", c->arch.architecture, strlen(c->arch.architecture), c->err);
    if (!status)
        status = hn_conversion_put_name(c);
    if (!status)
        status = hn_conversion_put_sizes(c);
    if (!status && c->arch.dense->moe)
        status = hn_moe_put(&c->arch, c->w, c->err);
    if (!status && c->arch.dense->put)
        status = c->arch.dense->put(&c->arch, c->w, c->err);
    if (!status)
        status = sampling_write(c);
    return status ? status : hn_convert_tokenizer(c->w, c->src, c->arch.vocab, c->err);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

static hunch_status role_need(hn_conversion *c, hn_role role, int layer, hn_tensor **t) {
    char name[128];
    uint64_t dims[2];
    hn_arch_tensor_name(&c->arch, role, layer, name);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    if (role == HN_ROLE_DELTA_CONV) return hn_source_need_shape(c->src, name, 3, (uint64_t[]){dims[0], 1, dims[1]}, t, c->err);
    return hn_source_need(c->src, name, hn_role_is_vector(role) ? 1 : 2, dims[0], dims[1], t, c->err);
}

hunch_status hn_conversion_declare(hn_conversion *c, const hn_tensor *t, const char *name, bool vector,
                                   const uint64_t dims[2]) {
    c->total += t->bytes;
    if (vector)
        return hn_gguf_declare(c->w, name, HN_F32, 1, dims, c->err);
    if (t->dtype == HN_F8_E4M3)
        return hn_fail(
            c->err, HUNCH_REFUSED,
            "%s: tensor %s: a GGUF has no 8-bit floats; expected another type, or run the folder as it is",
            hn_source_path(c->src), t->name);
    return hn_gguf_declare(c->w, name, hn_conversion_type(c, t), 2, dims, c->err);
}

hunch_status hn_conversion_declare_role(hn_conversion *c, hn_role role, int layer) {
    char name[128];
    const hn_arch named = {.form = HN_SOURCE_GGUF, .dense = c->arch.dense, .first_block = c->first_layer};
    uint64_t dims[2];
    hn_tensor *t;
    if (hn_role_of_experts(role))
        return hn_conversion_declare_experts(c, role, layer);
    hunch_status status = role_need(c, role, layer, &t);
    if (status)
        return status;
    hn_arch_tensor_name(&named, role, layer, name);
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    if (role == HN_ROLE_DELTA_CONV) {
        c->total += t->bytes;
        return hn_gguf_declare(c->w, name, HN_F32, 2, dims, c->err);
    }
    return hn_conversion_declare(c, t, name, hn_role_is_vector(role), dims);
}

/* Rows of each head, the rotated ones in neighbouring pairs. */
static void rows_pair(char *to, const char *from, int heads, int head_dim, int dims, size_t row) {
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < head_dim; i++)
            memcpy(to + ((size_t)h * (size_t)head_dim + (size_t)hn_paired_row(i, dims)) * row,
                   from + ((size_t)h * (size_t)head_dim + (size_t)i) * row, row);
}

/* Number of heads whose rows have another order in this family's GGUF; 0: the order stays. */
static int heads_to_turn(const hn_conversion *c, hn_role role, int layer) {
    uint64_t dims[2];
    if (!c->arch.dense->interleaved || !hn_role_is_rotated(role))
        return 0;
    hn_arch_tensor_shape(&c->arch, role, layer, dims);
    return (int)dims[hn_role_is_vector(role) ? 0 : 1] / c->arch.layer[layer].head_dim;
}

static hunch_status rows_write(hn_conversion *c, const void *data, size_t bytes, const char *name, int heads,
                               int head_dim) {
    if (heads == 0)
        return hn_gguf_data(c->w, data, bytes, c->err);
    char *copy = hn_alloc(bytes);
    if (copy == NULL)
        return hn_fail_memory(c->err, name, bytes);
    rows_pair(copy, data, heads, head_dim, c->arch.rope_dims, bytes / ((size_t)heads * (size_t)head_dim));
    hunch_status status = hn_gguf_data(c->w, copy, bytes, c->err);
    hn_free(copy);
    return status;
}

/* Reads its bytes; to be freed with hn_free. */
static hunch_status tensor_read(hn_conversion *c, const hn_tensor *t, void **out) {
    *out = hn_alloc(t->bytes);
    hunch_status status = *out == NULL ? hn_fail_memory(c->err, t->name, t->bytes)
                                       : hn_source_read(c->src, t, 0, t->bytes, *out, c->err);
    if (status) {
        hn_free(*out);
        *out = NULL;
    }
    return status;
}

static hunch_status vector_write(hn_conversion *c, const hn_tensor *t, float more, int heads, int head_dim) {
    size_t n = (size_t)t->dims[0];
    void *stored;
    hunch_status status = tensor_read(c, t, &stored);
    if (status)
        return status;
    float *values = hn_zalloc(n, sizeof *values);
    if (values != NULL) {
        hn_dequantise(t->dtype, stored, n, values);
        for (size_t i = 0; i < n && more != 0; i++)
            values[i] += more;
        status = rows_write(c, values, n * sizeof *values, t->name, heads, head_dim);
    } else {
        status = hn_fail_memory(c->err, t->name, n * sizeof *values);
    }
    hn_free(values);
    hn_free(stored);
    return status;
}

/* Copies a matrix through a small buffer; one whose rows are reordered or converted is read as a whole. */
static hunch_status matrix_write(hn_conversion *c, const hn_tensor *t, int heads, int head_dim) {
    enum { PIECE = 1 << 20 };
    const hn_dtype type = hn_conversion_type(c, t);
    void *stored = NULL;
    hunch_status status;
    if (type != t->dtype) {
        size_t bytes = 0;
        status = hn_conversion_read_as(c, t, type, &stored, &bytes);
        if (!status)
            status = rows_write(c, stored, bytes, t->name, heads, head_dim);
    } else if (heads > 0) {
        status = tensor_read(c, t, &stored);
        if (!status)
            status = rows_write(c, stored, t->bytes, t->name, heads, head_dim);
    } else if ((stored = hn_alloc(PIECE)) == NULL) {
        status = hn_fail_memory(c->err, t->name, PIECE);
    } else {
        status = hn_gguf_data_begin(c->w, t->bytes, c->err);
        for (size_t at = 0; !status && at < t->bytes; at += PIECE) {
            const size_t n = t->bytes - at < PIECE ? t->bytes - at : PIECE;
            status = hn_source_read(c->src, t, at, n, stored, c->err);
            if (!status)
                status = hn_gguf_data_piece(c->w, stored, n, c->err);
        }
    }
    hn_free(stored);
    return status;
}

static hunch_status tensor_done(hn_conversion *c, const hn_tensor *t, hunch_status status) {
    c->done += t->bytes;
    if (!status && c->progress != NULL)
        c->progress(c->user, c->done, c->total);
    return status;
}

/* Writes a matrix or vector; the rows of `heads` heads are reordered. */
static hunch_status tensor_write(hn_conversion *c, const hn_tensor *t, bool vector, float more, int heads, int head_dim) {
    hunch_status status = vector ? vector_write(c, t, more, heads, head_dim) : matrix_write(c, t, heads, head_dim);
    return tensor_done(c, t, status);
}

hunch_status hn_conversion_write(hn_conversion *c, const hn_tensor *t, bool vector) {
    return tensor_write(c, t, vector, 0, 0, 0);
}

hunch_status hn_conversion_write_vector(hn_conversion *c, const hn_tensor *t, float more) {
    return tensor_write(c, t, true, more, 0, 0);
}

hunch_status hn_conversion_write_role(hn_conversion *c, hn_role role, int layer) {
    hn_tensor *t;
    if (hn_role_of_experts(role))
        return hn_conversion_write_experts(c, role, layer);
    hunch_status status = role_need(c, role, layer, &t);
    if (!status && hn_conversion_has_heads(c, role, layer))
        return tensor_done(c, t, hn_conversion_write_heads(c, t, role, layer));
    return status ? status
                              : tensor_write(c, t, hn_role_is_vector(role), hn_arch_vector_more(&c->arch, role),
                                             heads_to_turn(c, role, layer), c->arch.layer[layer].head_dim);
}

/* Whether a GGUF of the model has it: there the experts' matrices of a kind are one tensor, gate and up separate. */
static bool role_written(const hn_conversion *c, hn_role role, int layer) {
    if (!hn_role_of_experts(role))
        return hn_arch_has(&c->arch, role, layer);
    return c->arch.layer[layer].ffn == HN_FFN_EXPERTS && role != HN_ROLE_EXPERT_GATE_UP;
}

hunch_status hn_conversion_visit_layers(hn_conversion *c, hn_visit_role visit) {
    hunch_status status = HUNCH_OK;
    for (int layer = 0; layer < c->arch.layers; layer++)
        for (int role = 0; role < HN_ROLES && !status; role++)
            if (hn_role_of_layer((hn_role)role) && role_written(c, (hn_role)role, layer))
                status = visit(c, (hn_role)role, layer);
    return status;
}

/* The tensors in the file's order, declared or written. */
static hunch_status tensors_visit(hn_conversion *c, hn_visit_role visit) {
    hunch_status status = HUNCH_OK;
    for (int role = 0; role < HN_ROLES && !status; role++)
        if (!hn_role_of_layer((hn_role)role) && hn_arch_has(&c->arch, (hn_role)role, 0))
            status = visit(c, (hn_role)role, 0);
    return status ? status : hn_conversion_visit_layers(c, visit);
}

hunch_status hn_conversion_visit_tables(hn_conversion *c, bool write) {
    const uint64_t half = (uint64_t)c->arch.rope_dims / 2;
    hunch_status status = HUNCH_OK;
    for (int i = 0; i < 2 && !status && c->table[i].name != NULL; i++)
        status = write ? hn_gguf_data(c->w, c->table[i].values, (size_t)half * sizeof *c->table[i].values, c->err)
                       : hn_gguf_declare(c->w, c->table[i].name, HN_F32, 1, &half, c->err);
    return status;
}

/* The layer of a folder's tensor, by its name; -1: none. */
static int layer_of(const hn_conversion *c, const char *name) {
    static const char layers[] = "layers.";
    const size_t body = strlen(c->arch.body), all = body + sizeof layers - 1;
    return strncmp(name, c->arch.body, body) == 0 && strncmp(name + body, layers, sizeof layers - 1) == 0 ? atoi(name + all) : -1;
}

/* Tensors that are not converted: blocks after the layers, which predict further tokens; rotary tables of old files
 * (they follow from the keys); the copy of a tied head; other parts of a model (vision). */
static bool tensor_may_stay(const hn_conversion *c, const char *name) {
    static const char table[] = ".rotary_emb.inv_freq";
    const size_t len = strlen(name), tail = sizeof table - 1;
    char head[128];
    hn_arch_tensor_name(&c->arch, HN_ROLE_OUTPUT, 0, head);
    if (c->arch.next_layers > 0 && (strstr(name, ".embed_tokens.") != NULL || strstr(name, ".shared_head.head.") != NULL) &&
        c->own.first_block > 0)
        return true; /* copies in a draft block */
    if ((len > tail && strcmp(name + len - tail, table) == 0) || (c->arch.tied && strcmp(name, head) == 0))
        return true;
    if (c->arch.dense->next_layers && layer_of(c, name) >= c->arch.layers)
        return true;
    return strcmp(c->arch.body, "model.") != 0 && strncmp(name, c->arch.body, strlen(c->arch.body)) != 0;
}

/* Any other tensor that is not written would change what the model computes. */
static hunch_status leftovers_check(const hn_conversion *c) {
    for (size_t i = 0; i < hn_source_tensor_count(c->src); i++) {
        const hn_tensor *t = hn_source_tensor(c->src, i);
        if (!t->used && !tensor_may_stay(c, t->name))
            return hn_fail(
                c->err, HUNCH_REFUSED,
                "%s: tensor %s has no place in a %s GGUF file (other biases and additions are not converted)",
                hn_source_path(c->src), t->name, c->arch.architecture);
    }
    return HUNCH_OK;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static hunch_status tensors_write(hn_conversion *c) {
    hunch_status status = tensors_visit(c, hn_conversion_declare_role);
    if (!status)
        status = hn_conversion_visit_own(c, false);
    if (!status)
        status = hn_conversion_visit_tables(c, false);
    if (!status)
        status = leftovers_check(c);
    if (!status)
        status = tensors_visit(c, hn_conversion_write_role);
    if (!status)
        status = hn_conversion_visit_own(c, true);
    return status ? status : hn_conversion_visit_tables(c, true);
}

hunch_status hn_conversion_finish(hn_conversion *c, hunch_status status) {
    if (!status)
        status = hn_source_check(c->src, c->err); /* everything was read from the same files */
    if (!status)
        status = hn_gguf_writer_finish(&c->w, c->err);
    else
        hn_gguf_writer_abort(&c->w);
    hn_free(c->table[0].values);
    hn_free(c->table[1].values);
    return status;
}

/* Experts and gated delta nets are written as they are stored. */
static hunch_status type_check(const hn_conversion *c) {
    for (int i = 0; c->convert && i < c->arch.layers; i++) {
        const hn_layer_desc *l = &c->arch.layer[i];
        if (l->ffn == HN_FFN_EXPERTS || l->mixer == HN_MIXER_DELTA)
            return hn_fail(c->err, HUNCH_REFUSED, "%s: layer %d has %s, which are converted as stored alone: expected no type",
                           hn_source_path(c->src), i, l->mixer == HN_MIXER_DELTA ? "a gated delta net's weights" : "experts");
    }
    return HUNCH_OK;
}

static hunch_status conversion_run(hn_conversion *c, const char *out_path) {
    hunch_status status = hn_arch_read(&c->arch, c->src, c->err);
    if (!status)
        status = type_check(c);
    if (!status)
        status = hn_conversion_find_own(c);
    if (!status)
        status = hn_conversion_plan_rotation(c);
    if (!status)
        status = hn_gguf_writer_open(&c->w, out_path, c->err);
    if (!status)
        status = keys_write(c);
    if (!status)
        status = tensors_write(c);
    return hn_conversion_finish(c, status);
}

hunch_status hn_convert_with(const char *folder, hn_dtype type, const char *out_path, hunch_progress progress, void *user,
                             hunch_error *err) {
    hn_conversion c = {.convert = type != HN_WEIGHT_TYPES, .as = type, .progress = progress, .user = user, .err = err};
    hunch_status status = hn_source_open(&c.src, folder, err);
    if (status)
        return status;
    if (hn_source_get_kind(c.src) == HN_SOURCE_HF)
        status = conversion_run(&c, out_path);
    else
        status = hn_fail(err, HUNCH_USAGE, "%s: is a GGUF file, expected a Hugging Face folder to convert", hn_source_path(c.src));
    hn_arch_fini(&c.arch);
    hn_arch_fini(&c.own);
    hn_source_close(&c.src);
    return status;
}

hunch_status hn_convert(const char *folder, const char *out_path, hunch_error *err) {
    return hn_convert_with(folder, HN_WEIGHT_TYPES, out_path, NULL, NULL, err);
}
