/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - opening a draft head: its description from a folder, its tensors, what it borrows of the target. */
#include "model/head.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/reduced_output.h"
#include "model/weights.h"
#include "ops/pack.h"

enum { OWN_TENSORS = 10 + HN_MOST_HEAD_FEATURES, MOST_LAYERS = 16 };

/* ---- the description ------------------------------------------------------------------------------------------------ */

/* A tensor of layer 0, by what follows "layers.0.". */
static const hn_tensor *look_first(const hn_source *src, const hn_head_names *names, const char *what) {
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", names->front, names->first, what);
    return hn_source_look(src, name);
}

/* Biases and norms are what the file has. */
static void read_parts(hn_layer_desc *l, const hn_source *src, const hn_head_names *names) {
    l->qkv_bias = look_first(src, names, "self_attn.q_proj.bias");
    l->o_bias = look_first(src, names, "self_attn.o_proj.bias");
    l->qk_norm = look_first(src, names, "self_attn.q_norm.weight");
    l->gate_up_bias = look_first(src, names, "mlp.gate_proj.bias");
    l->down_bias = look_first(src, names, "mlp.down_proj.bias");
    l->first = 1; /* slot 0 holds no pair of feature and token */
}

/* Layers that speculators may write beside Llama's and Qwen3's: gated attention, norms around 1. */
static hunch_status refuse_other_layers(const hn_source *src, hunch_error *err) {
    const char *type = json_string_value(hn_source_config(src, "model_type"));
    return !type || (strncmp(type, "qwen3_next", 10) && strncmp(type, "qwen3_5", 7))
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: model_type is \"%.40s\", expected a draft head with layers of Llama or Qwen3",
                         hn_source_path(src), type);
}

/* A layer that sees a window of the text only would need rows that the head's cache does not tell apart. */
static hunch_status refuse_windows(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const json_t *types = hn_source_config(src, "layer_types");
    for (int i = 0; i < a->layers && json_is_array(types); i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        if (!type || strcmp(type, "full_attention") != 0)
            return hn_fail(err, HUNCH_REFUSED, "%s: layer %d is of type %.40s, expected a draft head's to be full_attention",
                           hn_source_path(src), i, type ? type : "no name");
    }
    return HUNCH_OK;
}

/* What a folder says of its model beside what its tensors show: a head for another one is seen by it. */
static hunch_status check_said(const hn_arch *a, const hn_source *src, const hn_arch *target, hunch_error *err) {
    uint64_t said = 0;
    bool found = false;
    hunch_status st = hn_source_u64(src, "target_hidden_size", &said, &found, err);
    if (!st && found && said != (uint64_t)target->hidden)
        st = hn_fail(err, HUNCH_REFUSED, "%s: target_hidden_size is %llu, expected the %d of this target", hn_source_path(src),
                     (unsigned long long)said, target->hidden);
    found = false;
    if (!st) st = hn_source_u64(src, "draft_vocab_size", &said, &found, err);
    if (!st && found && said != (uint64_t)a->vocab)
        st = hn_fail(err, HUNCH_REFUSED, "%s: draft_vocab_size is %llu, expected the %d tokens of its output",
                     hn_source_path(src), (unsigned long long)said, a->vocab);
    found = false;
    if (!st) st = hn_source_u64(src, "vocab_size", &said, &found, err);
    if (!st && found && said != (uint64_t)target->vocab && said != (uint64_t)a->vocab &&
        said != (uint64_t)a->draft_head.embeddings)
        st = hn_fail(err, HUNCH_REFUSED, "%s: vocab_size is %llu, expected the %d of this target", hn_source_path(src),
                     (unsigned long long)said, target->vocab);
    return st;
}

static hunch_status read_vocabularies(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target,
                                      hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    const hn_tensor *embedding = hn_head_look(src, names, HN_HEAD_EMBEDDING), *output = hn_head_look(src, names, HN_HEAD_OUTPUT);
    d->own_embedding = embedding;
    d->own_output = output;
    d->embeddings = target->vocab;
    if (output && output->n_dims != 2)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor lm_head.weight has %d dimensions, expected 2", hn_source_path(src),
                       output->n_dims);
    a->vocab = output && output->dims[1] <= (uint64_t)target->vocab ? (int)output->dims[1] : target->vocab;
    if (embedding && (embedding->n_dims != 2 || embedding->dims[1] < (uint64_t)target->vocab))
        return hn_fail(err, HUNCH_REFUSED, "%s: an embedding of %llu tokens, expected the %d of the target", hn_source_path(src),
                       embedding->n_dims == 2 ? (unsigned long long)embedding->dims[1] : 0, target->vocab);
    if (embedding) d->embeddings = (int)embedding->dims[1];
    if (output && (output->dims[1] < 1 || output->dims[1] > (uint64_t)target->vocab))
        return hn_fail(err, HUNCH_REFUSED, "%s: an output of %llu tokens, expected at most the %d of the target",
                       hn_source_path(src), (unsigned long long)output->dims[1], target->vocab);
    if (a->hidden != target->hidden && (!embedding || !output))
        return hn_fail(err, HUNCH_REFUSED, "%s: hidden size %d, and no %s of its own: expected the target's %d",
                       hn_source_path(src), a->hidden, embedding ? "output" : "embedding", target->hidden);
    return check_said(a, src, target, err);
}

hunch_status hn_head_read(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    static const hn_dense family = {.prefix = "head",
                                    .attention_bias = true, /* of those that the file has, see read_parts */
                                    .mlp_bias = true,
                                    .theta = 10000,
                                    .usual = {.context = 1 << 24, .eps = 1e-6}};
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF)
        return hn_fail(err, HUNCH_REFUSED, "%s: a GGUF file, expected a draft head: a folder, a .safetensors, .bin, .pt or .pth",
                       hn_source_path(src));
    if (!hn_source_json(src, "config.json"))
        return hn_fail(err, HUNCH_REFUSED, "%s: no config.json with its weights, expected one that says what its layers are",
                       hn_source_path(src));
    hunch_status st = refuse_other_layers(src, err);
    if (!st) st = hn_dense_read_layers(a, src, &family, err);
    if (st) return st;
    if (names->form == HN_HEAD_MTP) a->layers = 1; /* config.json may carry the target's number */
    if (a->layers > MOST_LAYERS)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d layers, expected a draft head of at most %d", hn_source_path(src), a->layers,
                       MOST_LAYERS);
    st = refuse_windows(a, src, err);
    if (st) return st;
    a->body = names->front;
    a->head = "";
    a->first_layer = names->first;
    a->draft_head.form = names->form;
    for (int i = 0; i < a->layers; i++) read_parts(&a->layer[i], src, names);
    snprintf(a->architecture, sizeof a->architecture, "head");
    return read_vocabularies(a, src, names, target, err);
}

/* ---- the reduced vocabulary ------------------------------------------------------------------------------------------ */

static hunch_status check_ids(const hn_source *src, const int32_t *ids, int n, int vocab, hunch_error *err) {
    unsigned char *seen = hn_zalloc((size_t)vocab, 1);
    hunch_status st = seen ? HUNCH_OK : hn_fail_memory(err, "draft tokens", (size_t)vocab);
    for (int i = 0; !st && i < n; i++) {
        if (ids[i] < 0 || ids[i] >= vocab)
            st = hn_fail(err, HUNCH_REFUSED, "%s: d2t: draft token %d is token %d, expected 0 to %d", hn_source_path(src), i,
                         ids[i], vocab - 1);
        else if (seen[ids[i]]++)
            st = hn_fail(err, HUNCH_REFUSED, "%s: d2t: draft token %d is token %d, as one before it is", hn_source_path(src), i,
                         ids[i]);
    }
    hn_free(seen);
    return st;
}

hunch_status hn_head_read_ids(hn_source *src, const hn_head_names *names, int n, int vocab, int32_t **ids, hunch_error *err) {
    char name[128];
    *ids = NULL;
    hn_tensor *t = hn_source_take(src, hn_head_name(names, HN_HEAD_IDS, 0, name));
    if (!t) t = hn_source_take(src, "d2t");
    if (!t && n < vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d draft tokens of %d, and no tensor d2t that says which", hn_source_path(src), n,
                       vocab);
    if (!t) return HUNCH_OK;
    if (!hn_head_look(src, names, HN_HEAD_OUTPUT))
        return hn_fail(err, HUNCH_REFUSED, "%s: a tensor %s, and no lm_head.weight: expected the output whose tokens it names",
                       hn_source_path(src), t->name);
    int64_t *offset = hn_alloc((size_t)n * sizeof *offset);
    int32_t *list = hn_alloc((size_t)n * sizeof *list);
    hunch_status st = offset && list ? hn_source_read_integers(src, t, (size_t)n, -(int64_t)vocab, vocab, offset, err)
                                     : hn_fail_memory(err, "draft tokens", (size_t)n * sizeof *offset);
    for (int i = 0; !st && i < n; i++) list[i] = (int32_t)(i + offset[i]);
    if (!st) st = check_ids(src, list, n, vocab, err);
    hn_free(offset);
    if (st) hn_free(list);
    *ids = st ? NULL : list;
    return st;
}

/* ---- weights --------------------------------------------------------------------------------------------------------- */

static hn_head_names names_of(const hn_arch *a) {
    return (hn_head_names){(hn_head_form)a->draft_head.form, a->body, a->first_layer};
}

static hunch_status plan_part(hn_plan *p, hn_head_part part, int k, int count, hn_buf *to, hunch_error *err) {
    const hn_head_names names = names_of(&p->m->arch);
    char name[128];
    if (!hn_head_name(&names, part, k, name))
        return hn_fail(err, HUNCH_REFUSED, "%s: a head of this form has no such norms as its folder asks for", hn_source_path(p->src));
    return hn_plan_named_vector(p, name, count, to, err);
}

static hunch_status plan_part_matrix(hn_plan *p, hn_head_part part, int in, int out, hn_weight *w, hunch_error *err) {
    const hn_head_names names = names_of(&p->m->arch);
    char name[128];
    return hn_plan_named_matrix(p, hn_head_name(&names, part, 0, name), in, out, w, err);
}

static hunch_status plan_input(hn_plan *p, hn_model *m, hunch_error *err) {
    const hn_arch *a = &m->arch;
    const hn_head_desc *d = &a->draft_head;
    hn_head *h = &m->head;
    const int feature = d->features * d->feature_width;
    hunch_status st = plan_part_matrix(p, HN_HEAD_FC, d->joint ? a->hidden + feature : feature, a->hidden, &h->fc, err);
    if (!st && d->fc_bias) st = plan_part(p, HN_HEAD_FC_BIAS, 0, a->hidden, &h->fc_bias, err);
    if (!st && d->norm_before_fc) st = plan_part(p, HN_HEAD_FEATURE_NORM, 0, feature, &h->feature_norm, err);
    for (int k = 0; !st && d->fc_norms && k < d->features; k++)
        st = plan_part(p, HN_HEAD_STATE_NORM, k, d->feature_width, &h->fc_norm[k], err);
    if (!st && d->mask) st = plan_part(p, HN_HEAD_MASK, 0, feature, &h->mask, err);
    if (st || (a->layer[0].input != HN_INPUT_PAIR && !d->joint_norms)) return st;
    st = plan_part(p, HN_HEAD_TOKEN_NORM, 0, a->hidden, &h->token_norm, err);
    return st ? st : plan_part(p, HN_HEAD_STREAM_NORM, 0, d->joint_norms ? feature : a->hidden, &h->stream_norm, err);
}

/* A tensor of its layers that nobody took: the head is of another kind, or has more layers than its folder says. */
static hunch_status check_rest(const hn_plan *p, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    for (size_t i = 0; i < hn_source_tensor_count(p->src); i++) {
        const hn_tensor *t = hn_source_tensor(p->src, i);
        const size_t front = a->draft_head.form == HN_HEAD_FOLDER ? strlen(a->body) : strncmp(a->body, "model.", 6) ? 0 : 6;
        if (t->used || strncmp(t->name, a->body, front) || strstr(t->name, "rotary_emb.")) continue;
        static const char *const layers[] = {"layers.", "midlayer.", "mtp_layers.", "blk."};
        for (size_t k = 0; k < sizeof layers / sizeof *layers; k++)
            if (!strncmp(t->name + front, layers[k], strlen(layers[k])))
                return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: heads of this kind, of %d layer%s, have none of that name",
                               hn_source_path(p->src), t->name, a->layers, a->layers == 1 ? "" : "s");
    }
    return HUNCH_OK;
}

static hunch_status plan_head(hn_plan *p, hn_model *m, hn_source *src, const hn_head_load *load, hunch_error *err) {
    const hn_arch *a = &m->arch;
    hunch_status st = hn_plan_begin(p, m, src, false, (size_t)a->layers * HN_MOST_LAYER_TENSORS + OWN_TENSORS, err);
    if (st) return st;
    p->convert = load->convert;
    p->as = load->weights;
    p->finite = true;
    m->layer = hn_zalloc((size_t)a->layers, sizeof *m->layer);
    if (!m->layer) return hn_fail_memory(err, "layers", (size_t)a->layers * sizeof *m->layer);
    if (a->draft_head.own_embedding)
        st = plan_part_matrix(p, HN_HEAD_EMBEDDING, a->hidden, a->draft_head.embeddings, &m->embedding, err);
    m->weight_bytes = 0; /* a pass reads a row of it */
    m->macs_per_row = 0;
    if (!st) st = plan_input(p, m, err);
    for (int i = 0; !st && i < a->layers; i++) st = hn_plan_layer(p, i, err);
    if (!st && !a->draft_head.no_norm) st = plan_part(p, HN_HEAD_OUTPUT_NORM, 0, a->hidden, &m->output_norm, err);
    if (!st && a->draft_head.own_output) st = hn_plan_matrix(p, HN_ROLE_OUTPUT, 0, (hn_part){0, 0}, false, &m->output, err);
    hn_plan_rotation(p);
    return st ? st : check_rest(p, err);
}

static uint64_t packed_bytes(const hn_model *m, const hn_weight *w) {
    return (uint64_t)m->ops.strip_bytes(w->dtype, w->in) * (uint64_t)hn_strips(w->out);
}

static void borrow(hn_model *m, const hn_model *target) {
    const bool embedding = !m->arch.draft_head.own_embedding, output = !m->arch.draft_head.own_output;
    if (embedding) m->embedding = target->embedding;
    if (embedding || output) m->files = target->files; /* where their rows may lie */
    if (!output) return;
    m->output = target->output;
    m->arch.logit_scale = target->arch.logit_scale;
    m->arch.logit_cap = target->arch.logit_cap;
    m->weight_bytes += packed_bytes(m, &m->output);
    m->macs_per_row += (double)m->output.in * m->output.out;
}

static hunch_status load_ids(hn_model *m, const int32_t *ids, hunch_error *err) {
    const size_t bytes = (size_t)m->arch.vocab * sizeof *ids;
    if (!ids) return HUNCH_OK;
    hunch_status st = m->ops.mem_create(&m->ops, bytes, &m->head.table, err);
    if (st) return st;
    m->head.ids = (hn_buf){m->head.table, 0};
    m->ops.write(&m->ops, m->head.ids, ids, bytes);
    return HUNCH_OK;
}

/* In the place of the output matrix the rows of ids[n] alone. Its own whole one stays in its block of memory, unread. */
static hunch_status trim(hn_model *m, const hn_source *files, const int32_t *ids, int n, hunch_error *err) {
    hn_reduced_output r;
    hunch_status st = files ? hn_source_check(files, err) : HUNCH_OK; /* what was cut off cannot be read */
    if (!st) st = hn_reduce_output(&m->ops, &m->output, ids, n, &r, err);
    if (st) return st;
    m->head.table = r.mem;
    m->head.ids = r.ids;
    m->weight_bytes += packed_bytes(m, &r.w) - packed_bytes(m, &m->output);
    m->macs_per_row += (double)r.w.in * (r.w.out - m->output.out);
    m->bytes.memory += r.bytes;
    m->output = r.w;
    m->arch.vocab = n;
    if (m->arch.draft_head.own_embedding) m->files = NULL;
    return files ? hn_source_check(files, err) : HUNCH_OK; /* nor is what was written meanwhile the model */
}

hunch_status hn_head_open(hn_model *m, hn_source *src, hn_arch *a, const hn_head_load *load, const int32_t *ids,
                          hunch_error *err) {
    const hn_model_load how = {.pool = load->target->pool};
    hn_plan p = {0};
    memset(m, 0, sizeof *m);
    m->arch = *a;
    m->pool = load->target->pool;
    m->ops = load->target->ops;
    hunch_status st = plan_head(&p, m, src, load, err);
    if (!st) st = hn_plan_load(&p, &how, err);
    if (!st) st = hn_model_load_rotation(m, p.tables, err);
    if (!st) borrow(m, load->target);
    if (!st) st = load->trim ? trim(m, m->output.stored.rows ? m->files : NULL, ids, load->trim, err) : load_ids(m, ids, err);
    if (!st) {
        hn_model_choose_forms(m);
        m->head.fc_forms = m->ops.act_forms(&m->ops, m->head.fc.dtype);
    }
    hn_plan_end(&p);
    if (st) hn_model_close(m);
    *a = (hn_arch){0};
    return st;
}
