/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - a Hugging Face folder of a dense family as a GGUF file: keys, tensor names, the order of Q and K rows.
 *
 * The folder is read through the same description that the model is loaded with (arch.h), so what opens converts. The
 * tokenizer's keys are convert_tokenizer.c's.
 */
#include "model/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/arch.h"
#include "model/sampling_keys.h"

/* general.file_type: the type of most weights. */
enum { FILE_TYPE_F32 = 0, FILE_TYPE_F16 = 1, FILE_TYPE_BF16 = 32 };

typedef struct conversion {
    hn_source *src;
    hn_arch arch;
    hn_gguf_writer *w;
    float *rope_divisors; /* [rope_dims / 2], or NULL: no rope_freqs.weight */
    double rope_factor;   /* 1: no linear scaling */
    double theta;
    hunch_error *err;
} conversion;

/* ---- RoPE ------------------------------------------------------------------------------------------------------ */

static hunch_status theta_read(conversion *c) {
    static const hn_key newer = {"", "rope_parameters.rope_theta", 1, 1e12, 0},
                        older = {"", "rope_theta", 1, 1e12, 10000};
    hunch_status status = hn_key_real(c->src, &newer, &c->theta, c->err);
    if (status == HUNCH_OK && c->theta < 1)
        status = hn_key_real(c->src, &older, &c->theta, c->err);
    return status;
}

/* The description holds finished frequencies; GGUF wants what the plain ones were divided by: one factor where all are
 * equal, else a tensor of them. */
static hunch_status rope_plan(conversion *c) {
    int half = c->arch.rope_dims / 2;
    hunch_status status = theta_read(c);
    if (status != HUNCH_OK)
        return status;
    c->rope_divisors = hn_zalloc((size_t)half, sizeof *c->rope_divisors);
    if (c->rope_divisors == NULL)
        return hn_fail_memory(c->err, "rope divisors", (size_t)half * sizeof *c->rope_divisors);
    bool equal = true;
    for (int i = 0; i < half; i++) {
        c->rope_divisors[i] = (float)(pow(c->theta, -2.0 * i / c->arch.rope_dims) / c->arch.rope_freq[i]);
        equal = equal && fabsf(c->rope_divisors[i] - c->rope_divisors[0]) <= 1e-6f * c->rope_divisors[0];
    }
    c->rope_factor = equal ? (double)c->rope_divisors[0] : 1;
    if (equal) {
        hn_free(c->rope_divisors);
        c->rope_divisors = NULL;
    }
    return HUNCH_OK;
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static const char *key_of(const conversion *c, const char *suffix, char key[96]) {
    hn_dense_key(c->arch.dense, suffix, key);
    return key;
}

/* general.name: what config.json calls the model, else the folder's name. */
static hunch_status name_write(conversion *c) {
    const char *name = NULL, *path = hn_source_path(c->src);
    size_t len = 0;
    bool found = false;
    hunch_status status = hn_source_str(c->src, "_name_or_path", &name, &len, &found, c->err);
    if (status != HUNCH_OK)
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

static hunch_status file_type_write(conversion *c) {
    char name[128];
    hn_arch_tensor_name(&c->arch, HN_ROLE_DOWN, 0, name);
    const hn_tensor *t = hn_source_take(c->src, name);
    uint32_t type = FILE_TYPE_F32;
    if (t != NULL && t->known && t->dtype == HN_F16)
        type = FILE_TYPE_F16;
    if (t != NULL && t->known && t->dtype == HN_BF16)
        type = FILE_TYPE_BF16;
    return hn_gguf_put_u32(c->w, "general.file_type", type, c->err);
}

static hunch_status dimensions_write(conversion *c) {
    const hn_arch *a = &c->arch;
    const hn_layer_desc *l = &a->layer[0];
    const struct {
        const char *key;
        int value;
    } numbers[] = {
        {"vocab_size", a->vocab},
        {"context_length", a->context},
        {"embedding_length", a->hidden},
        {"block_count", a->layers},
        {"feed_forward_length", l->ffn_width},
        {"attention.head_count", l->heads},
        {"attention.head_count_kv", l->kv_heads},
        {"rope.dimension_count", a->dense->no_rope_count ? 0 : a->rope_dims},
        {"attention.sliding_window", l->window},
        {"attention.key_length", l->head_dim * l->heads == a->hidden ? 0 : l->head_dim},
        {"attention.value_length", l->head_dim * l->heads == a->hidden ? 0 : l->head_dim},
    };
    char key[96];
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == HUNCH_OK; i++)
        if (numbers[i].value != 0) /* head sizes are written where they do not follow from the width */
            status = hn_gguf_put_u32(c->w, key_of(c, numbers[i].key, key), (uint32_t)numbers[i].value, c->err);
    return status;
}

static hunch_status rope_write(conversion *c) {
    char key[96];
    hunch_status status = hn_gguf_put_f32(c->w, key_of(c, "rope.freq_base", key), (float)c->theta, c->err);
    if (status != HUNCH_OK || fabs(c->rope_factor - 1) < 1e-6)
        return status;
    status = hn_gguf_put_str(c->w, key_of(c, "rope.scaling.type", key), "linear", strlen("linear"), c->err);
    return status == HUNCH_OK
               ? hn_gguf_put_f32(c->w, key_of(c, "rope.scaling.factor", key), (float)c->rope_factor, c->err)
               : status;
}

static hunch_status sampling_write(conversion *c) {
    const hunch_sampling *s = &c->arch.sampling;
    hunch_status status = HUNCH_OK;
    for (const hn_sampling_key *k = hn_sampling_keys; status == HUNCH_OK && (k->gguf || k->hf); k++) {
        const double v = hn_sampling_value(s, k);
        if (!k->gguf || v == k->off || (k->law && s->temperature == 0))
            continue;
        status = k->integer ? hn_gguf_put_u32(c->w, k->gguf, (uint32_t)v, c->err)
                            : hn_gguf_put_f32(c->w, k->gguf, (float)v, c->err);
    }
    return status;
}

static hunch_status multipliers_write(conversion *c) {
    const hn_arch *a = &c->arch;
    const struct {
        const char *key;
        float value;
    } all[] = {{"embedding_scale", a->embed_scale},
               {"residual_scale", a->residual_scale},
               {"logit_scale", 1 / a->logit_scale},
               {"attention.scale", a->layer[0].attention_scale}};
    char key[96];
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == HUNCH_OK && a->dense->multipliers; i++)
        status = hn_gguf_put_f32(c->w, key_of(c, all[i].key, key), all[i].value, c->err);
    return status;
}

static hunch_status keys_write(conversion *c) {
    char key[96];
    hunch_status status =
        hn_gguf_put_str(c->w, "general.architecture", c->arch.architecture, strlen(c->arch.architecture), c->err);
    if (status == HUNCH_OK)
        status = name_write(c);
    if (status == HUNCH_OK)
        status = file_type_write(c);
    if (status == HUNCH_OK)
        status = dimensions_write(c);
    if (status == HUNCH_OK)
        status = hn_gguf_put_f32(c->w, key_of(c, "attention.layer_norm_rms_epsilon", key), c->arch.norm_eps,
                                 c->err);
    if (status == HUNCH_OK)
        status = rope_write(c);
    if (status == HUNCH_OK)
        status = multipliers_write(c);
    if (status == HUNCH_OK)
        status = sampling_write(c);
    return status == HUNCH_OK ? hn_convert_tokenizer(c->w, c->src, c->arch.vocab, c->err) : status;
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* Norms and biases: written as F32. */
static bool role_is_vector(hn_role role) {
    return role == HN_ROLE_OUTPUT_NORM || role == HN_ROLE_ATTN_NORM || role == HN_ROLE_FFN_NORM ||
           (role > HN_ROLE_DOWN && role < HN_ROLE_QKV);
}

static bool role_is_there(const hn_layer_desc *l, hn_role role) {
    if (role == HN_ROLE_FFN_NORM)
        return !l->post_norms;
    if (role == HN_ROLE_QKV || role == HN_ROLE_GATE_UP)
        return l->fused;
    if (role == HN_ROLE_Q || role == HN_ROLE_K || role == HN_ROLE_V || role == HN_ROLE_GATE || role == HN_ROLE_UP)
        return !l->fused;
    if (role <= HN_ROLE_DOWN)
        return true;
    return role <= HN_ROLE_V_BIAS ? l->qkv_bias : role <= HN_ROLE_K_NORM ? l->qk_norm : l->post_norms;
}

/* dims in ggml order: inputs, outputs. A vector has outputs 1. */
static void role_shape(const hn_arch *a, hn_role role, int layer, uint64_t dims[2]) {
    const hn_layer_desc *l = &a->layer[layer];
    uint64_t hidden = (uint64_t)a->hidden, q = (uint64_t)l->heads * (uint64_t)l->head_dim;
    uint64_t kv = (uint64_t)l->kv_heads * (uint64_t)l->head_dim, ffn = (uint64_t)l->ffn_width;
    dims[0] = role == HN_ROLE_O || role == HN_ROLE_Q_BIAS                ? q
              : role == HN_ROLE_K_BIAS || role == HN_ROLE_V_BIAS         ? kv
              : role == HN_ROLE_Q_NORM || role == HN_ROLE_K_NORM         ? (uint64_t)l->head_dim
              : role == HN_ROLE_DOWN                                     ? ffn
                                                                         : hidden;
    switch (role) {
    case HN_ROLE_EMBEDDING:
    case HN_ROLE_OUTPUT: dims[1] = (uint64_t)a->vocab; break;
    case HN_ROLE_Q: dims[1] = q; break;
    case HN_ROLE_QKV: dims[1] = q + 2 * kv; break;
    case HN_ROLE_GATE_UP: dims[1] = 2 * ffn; break;
    case HN_ROLE_K:
    case HN_ROLE_V: dims[1] = kv; break;
    case HN_ROLE_O:
    case HN_ROLE_DOWN: dims[1] = hidden; break;
    case HN_ROLE_GATE:
    case HN_ROLE_UP: dims[1] = ffn; break;
    default: dims[1] = 1; break;
    }
}

static hunch_status role_need(conversion *c, hn_role role, int layer, hn_tensor **t) {
    char name[128];
    uint64_t dims[2];
    hn_arch_tensor_name(&c->arch, role, layer, name);
    role_shape(&c->arch, role, layer, dims);
    return hn_source_need(c->src, name, role_is_vector(role) ? 1 : 2, dims[0], dims[1], t, c->err);
}

static hunch_status role_declare(conversion *c, hn_role role, int layer) {
    char name[128];
    const hn_arch named = {.names = hn_dense_gguf_names};
    uint64_t dims[2];
    hn_tensor *t;
    hunch_status status = role_need(c, role, layer, &t);
    if (status != HUNCH_OK)
        return status;
    hn_arch_tensor_name(&named, role, layer, name);
    role_shape(&c->arch, role, layer, dims);
    if (role_is_vector(role))
        return hn_gguf_declare(c->w, name, HN_F32, 1, dims, c->err);
    return hn_gguf_declare(c->w, name, t->dtype, 2, dims, c->err);
}

/* Rows of each head from halves (i and i + d/2 turn together) to neighbours (2i and 2i + 1). */
static void rows_interleave(char *to, const char *from, int heads, int head_dim, size_t row) {
    for (int h = 0; h < heads; h++) {
        for (int i = 0; i < head_dim; i++) {
            int source = i % 2 == 0 ? i / 2 : head_dim / 2 + i / 2;
            memcpy(to + ((size_t)h * (size_t)head_dim + (size_t)i) * row,
                   from + ((size_t)h * (size_t)head_dim + (size_t)source) * row, row);
        }
    }
}

static hunch_status rotated_write(conversion *c, const hn_tensor *t, int heads, int head_dim) {
    char *copy = hn_alloc(t->bytes);
    if (copy == NULL)
        return hn_fail_memory(c->err, t->name, t->bytes);
    rows_interleave(copy, t->data, heads, head_dim, t->bytes / ((size_t)heads * (size_t)head_dim));
    hunch_status status = hn_gguf_data(c->w, copy, t->bytes, c->err);
    hn_free(copy);
    return status;
}

static hunch_status vector_write(conversion *c, const hn_tensor *t, float more) {
    size_t n = (size_t)t->dims[0];
    float *values = hn_zalloc(n, sizeof *values);
    if (values == NULL)
        return hn_fail_memory(c->err, t->name, n * sizeof *values);
    hn_dequantise(t->dtype, t->data, n, values);
    for (size_t i = 0; i < n && more != 0; i++)
        values[i] += more;
    hunch_status status = hn_gguf_data(c->w, values, n * sizeof *values, c->err);
    hn_free(values);
    return status;
}

static hunch_status role_write(conversion *c, hn_role role, int layer) {
    const hn_layer_desc *l = &c->arch.layer[layer];
    hn_tensor *t;
    hunch_status status = role_need(c, role, layer, &t);
    if (status != HUNCH_OK)
        return status;
    if (role_is_vector(role))
        status = vector_write(c, t, c->arch.norms_less_one ? 1 : 0); /* such families have no biases */
    else if (c->arch.dense->interleaved && (role == HN_ROLE_Q || role == HN_ROLE_K))
        status = rotated_write(c, t, role == HN_ROLE_Q ? l->heads : l->kv_heads, l->head_dim);
    else
        status = hn_gguf_data(c->w, t->data, t->bytes, c->err);
    hn_source_release(c->src, t);
    return status;
}

/* The tensors in the file's order, declared or written. */
static hunch_status tensors_visit(conversion *c, hunch_status (*visit)(conversion *c, hn_role role, int layer)) {
    hunch_status status = visit(c, HN_ROLE_EMBEDDING, 0);
    if (status == HUNCH_OK)
        status = visit(c, HN_ROLE_OUTPUT_NORM, 0);
    if (status == HUNCH_OK && !c->arch.tied)
        status = visit(c, HN_ROLE_OUTPUT, 0);
    for (int layer = 0; layer < c->arch.layers; layer++)
        for (int role = HN_ROLE_ATTN_NORM; role < HN_ROLES && status == HUNCH_OK; role++)
            if (role_is_there(&c->arch.layer[layer], (hn_role)role))
                status = visit(c, (hn_role)role, layer);
    return status;
}

/* A tensor that would be left behind changes what the model computes, with two exceptions: rotary tables that old files
 * carry (they follow from the keys), and the copy of a tied head. */
static hunch_status leftovers_check(const conversion *c) {
    static const char table[] = ".rotary_emb.inv_freq";
    for (size_t i = 0; i < hn_source_tensor_count(c->src); i++) {
        const hn_tensor *t = hn_source_tensor(c->src, i);
        size_t len = strlen(t->name), tail = sizeof table - 1;
        bool known = (len > tail && strcmp(t->name + len - tail, table) == 0) ||
                     (c->arch.tied && strcmp(t->name, c->arch.names[HN_ROLE_OUTPUT]) == 0);
        if (!t->used && !known)
            return hn_fail(
                c->err, HUNCH_REFUSED,
                "%s: tensor %s has no place in a %s GGUF file (other biases and additions are not converted)",
                hn_source_path(c->src), t->name, c->arch.architecture);
    }
    return HUNCH_OK;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static hunch_status tensors_write(conversion *c) {
    uint64_t half = (uint64_t)c->arch.rope_dims / 2;
    hunch_status status = tensors_visit(c, role_declare);
    if (status == HUNCH_OK && c->rope_divisors != NULL)
        status = hn_gguf_declare(c->w, "rope_freqs.weight", HN_F32, 1, &half, c->err);
    if (status == HUNCH_OK)
        status = leftovers_check(c);
    if (status == HUNCH_OK)
        status = tensors_visit(c, role_write);
    if (status == HUNCH_OK && c->rope_divisors != NULL)
        status = hn_gguf_data(c->w, c->rope_divisors, (size_t)half * sizeof *c->rope_divisors, c->err);
    return status;
}

/* What a folder can say of its layers and a GGUF of its family cannot. */
static hunch_status layers_check(const conversion *c) {
    const hn_dense *f = c->arch.dense;
    for (int i = 0; i < c->arch.layers; i++)
        if (c->arch.layer[i].window > 0 && !f->window_key)
            return hn_fail(c->err, HUNCH_REFUSED, "%s: sliding_window %d: a %s GGUF file has no place for it",
                           hn_source_path(c->src), c->arch.layer[i].window, c->arch.architecture);
    return f->fits_gguf ? f->fits_gguf(&c->arch, c->src, c->err) : HUNCH_OK;
}

static hunch_status conversion_run(conversion *c, const char *out_path) {
    hunch_status status = hn_arch_read(&c->arch, c->src, c->err);
    if (status == HUNCH_OK)
        status = layers_check(c);
    if (status == HUNCH_OK)
        status = rope_plan(c);
    if (status == HUNCH_OK)
        status = hn_gguf_writer_open(&c->w, out_path, c->err);
    if (status == HUNCH_OK)
        status = keys_write(c);
    if (status == HUNCH_OK)
        status = tensors_write(c);
    if (status == HUNCH_OK)
        return hn_gguf_writer_finish(&c->w, c->err);
    hn_gguf_writer_abort(&c->w);
    return status;
}

hunch_status hn_convert(const char *folder, const char *out_path, hunch_error *err) {
    conversion c = {.err = err};
    if (hn_exists(folder) && !hn_is_folder(folder))
        return hn_fail(err, HUNCH_USAGE, "%s: expected a Hugging Face folder to convert", folder);
    hunch_status status = hn_source_open(&c.src, folder, err);
    if (status != HUNCH_OK)
        return status;
    status = conversion_run(&c, out_path);
    hn_arch_fini(&c.arch);
    hn_free(c.rope_divisors);
    hn_source_close(&c.src);
    return status;
}
