/* SPDX-License-Identifier: Apache-2.0 */
/* learn_student_file.c - see learn_student_file.h. */
#include "train/learn/learn_student_file.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/mem.h"

/* ---- supported models ------------------------------------------------------------------------------------------------ */

static const char *odd_model(const hn_arch *a) {
    if (a->rotation[0].scaling.kind != HN_SCALING_NONE || a->rotation[0].freq_long) return "a rotation that is scaled";
    if (a->rotation[0].dims != a->layer[0].head_dim) return "a rotation of parts of a head";
    if (a->embed_scale != 1 || a->residual_scale != 1 || a->logit_scale != 1 || a->logit_cap != 0)
        return "scaled embeddings, branches or logits";
    return NULL;
}

static const char *odd_layer(const hn_layer_desc *l, const hn_layer_desc *first) {
    if (!hn_layer_is(l, &hn_mixer_attention) || l->ffn != HN_FFN_SWIGLU) return "layers that are not attention and SwiGLU";
    if (l->window || l->rotation != 0) return "layers with windows, or without a rotation";
    if (l->qkv_bias || l->o_bias || l->gate_up_bias || l->down_bias) return "biases";
    if (l->post_norms || hn_gate_is(&l->gate) || l->fused_qkv || l->fused_gate_up) return "more norms, gates or fused matrices";
    if (l->heads != first->heads || l->kv_heads != first->kv_heads || l->head_dim != first->head_dim ||
        l->ffn_width != first->ffn_width || l->qk_norm != first->qk_norm)
        return "layers of several shapes";
    return fabs(l->attention_scale * sqrt(l->head_dim) - 1) > 1e-5 ? "another scale of attention" : NULL;
}

static hunch_status check_plain(const hn_arch *a, const char *path, int layers, int vocab, hunch_error *err) {
    const char *odd = odd_model(a);
    for (int i = 0; !odd && i < a->layers; i++) odd = odd_layer(&a->layer[i], &a->layer[0]);
    if (odd)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a model with %s cannot be trained to draft: expected one of Llama's or Qwen3's kind", path,
                       odd);
    if (a->vocab != vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: a vocabulary of %d tokens, expected the target's %d", path, a->vocab,
                       vocab);
    if (layers > a->layers || layers > HN_STACK_MOST_LAYERS || (!layers && a->layers > HN_STACK_MOST_LAYERS))
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: %d layers, of which %d are to be trained: expected --layers of at most %d", path, a->layers,
                       layers ? layers : a->layers,
                       a->layers < HN_STACK_MOST_LAYERS ? a->layers : HN_STACK_MOST_LAYERS);
    return HUNCH_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/* Reorders the rows of each head from pairs, as in a GGUF of Llama, to halves, as in a folder. */
static void to_halves(hn_mat m, int head_dim, hn_real *room) {
    const size_t cols = (size_t)m.cols, bytes = cols * sizeof *m.p;
    for (int first = 0; first < m.rows; first += head_dim) {
        hn_real *head = hn_mat_row(m, first);
        for (int i = 0; i < head_dim; i++)
            memcpy(room + (size_t)(i % 2 * (head_dim / 2) + i / 2) * cols, head + (size_t)i * cols, bytes);
        memcpy(head, room, (size_t)head_dim * bytes);
    }
}

static hunch_status read_part(hn_source *src, const hn_arch *a, hn_role role, int layer, hn_mat to, float *room,
                              hunch_error *err) {
    char name[128];
    hn_tensor *t;
    size_t bytes;
    const bool vector = to.rows == 1;
    hn_arch_tensor_name(a, role, layer, name);
    hunch_status st = hn_source_need(src, name, vector ? 1 : 2, (uint64_t)to.cols, (uint64_t)to.rows, &t, err);
    if (st) return st;
    if (t->dtype == HN_F8_E4M3 || !hn_dtype_row_bytes(t->dtype, t->dims[0], &bytes))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s of type %s: expected a type whose rows can be read one by "
                                           "one",
                       hn_source_path(src), name, hn_dtype_name(t->dtype));
    void *stored = hn_alloc(bytes);
    if (!stored) return hn_fail_memory(err, name, bytes);
    for (int r = 0; !st && r < to.rows; r++) {
        st = hn_source_read(src, t, (size_t)r * bytes, bytes, stored, err);
        if (st) break;
        hn_dequantise(t->dtype, stored, (size_t)to.cols, room);
        for (int c = 0; c < to.cols; c++)
            hn_mat_row(to, r)[c] = (hn_real)(room[c] + (vector ? hn_arch_vector_more(a, role) : 0));
    }
    hn_free(stored);
    return st;
}

/* Reads the file's layer `from` as layer `i` of the student. */
static hunch_status read_layer(hn_student *s, hn_source *src, const hn_arch *a, int i, int from, float *room,
                               hn_real *head, hunch_error *err) {
    static const hn_role roles[HN_STUDENT_LAYER_PARTS] = {
        HN_ROLE_ATTN_NORM, HN_ROLE_Q,        HN_ROLE_K,    HN_ROLE_V,  HN_ROLE_Q_NORM, HN_ROLE_K_NORM,
        HN_ROLE_O,         HN_ROLE_FFN_NORM, HN_ROLE_GATE, HN_ROLE_UP, HN_ROLE_DOWN};
    hunch_status st = HUNCH_OK;
    for (int part = 0; !st && part < HN_STUDENT_LAYER_PARTS; part++) {
        const hn_mat to = hn_student_part_of(&s->shape, i * HN_STUDENT_LAYER_PARTS + part, s->begin);
        if (to.rows > 0) st = read_part(src, a, roles[part], from, to, room, err);
        if (!st && to.rows > 1 && (a->files.rows_in_pairs || a->rope_interleaved) && hn_role_is_rotated(roles[part]))
            to_halves(to, s->shape.head_dim, head);
    }
    return st;
}

static hunch_status read_layers(hn_student *s, hn_source *src, const hn_arch *a, hunch_error *err) {
    const hn_student_shape *h = &s->shape;
    const int n = h->layers, q = h->heads * h->head_dim, widest = h->ffn > h->hidden ? h->ffn : h->hidden;
    float *room = hn_alloc((size_t)(widest > q ? widest : q) * sizeof *room);
    hn_real *head = hn_alloc((size_t)h->head_dim * (size_t)h->hidden * sizeof *head);
    s->begin = hn_alloc(hn_student_count(h) * sizeof *s->begin);
    hunch_status st = HUNCH_OK;
    if (!room || !head || !s->begin) st = hn_fail_memory(err, "a draft model", hn_student_count(h) * sizeof *s->begin);
    for (int i = 0; !st && i < n; i++)
        st = read_layer(s, src, a, i, n > 1 ? (i * (a->layers - 1) + (n - 1) / 2) / (n - 1) : 0, room, head, err);
    hn_free(room);
    hn_free(head);
    return st;
}

static hn_student_shape shape_of_arch(const hn_arch *a, int layers) {
    const hn_layer_desc *l = &a->layer[0];
    return (hn_student_shape){.hidden = a->hidden,
                              .heads = l->heads,
                              .kv_heads = l->kv_heads,
                              .head_dim = l->head_dim,
                              .ffn = l->ffn_width,
                              .layers = layers ? layers : a->layers,
                              .vocab = a->vocab,
                              .eps = (double)a->norm_eps,
                              .theta = a->rotation[0].scaling.theta,
                              .head_norms = l->qk_norm,
                              .tied = a->tied};
}

static hunch_status read_frozen(hn_student *s, const char *path, const hn_arch *a, const int32_t *ids, int kept,
                                hunch_error *err) {
    hunch_status st = hn_target_rows_read(&s->rows, path, a, ids, kept, err);
    if (st || a->tied) return st;
    int32_t *every = hn_alloc((size_t)a->vocab * sizeof *every);
    for (int i = 0; every && i < a->vocab; i++) every[i] = i;
    st = every ? hn_target_rows_read(&s->whole, path, a, every, a->vocab, err)
               : hn_fail_memory(err, "a draft model", (size_t)a->vocab * sizeof *every);
    hn_free(every);
    return st;
}

hunch_status hn_student_read(hn_student *s, const char *path, int layers, int vocab, const int32_t *ids, int kept,
                             hunch_error *err) {
    hn_source *src = NULL;
    hn_arch a = {0};
    *s = (hn_student){0};
    hunch_status st = hn_source_open(&src, path, err);
    if (!st) st = hn_arch_read(&a, src, err);
    if (!st) st = check_plain(&a, path, layers, vocab, err);
    if (!st) s->shape = shape_of_arch(&a, layers);
    if (!st) st = read_layers(s, src, &a, err);
    if (!st) st = read_frozen(s, path, &a, ids, kept, err);
    if (!st) {
        const hn_mat norm = hn_student_part_of(&s->shape, hn_student_parts(&s->shape) - 1, s->begin);
        for (int i = 0; i < norm.cols; i++) norm.p[i] = (hn_real)s->rows.norm[i];
    }
    hn_arch_fini(&a);
    hn_source_close(&src);
    if (st) hn_student_free(s);
    return st;
}

void hn_student_free(hn_student *s) {
    hn_free(s->begin);
    hn_target_rows_free(&s->rows);
    hn_target_rows_free(&s->whole);
    *s = (hn_student){0};
}
