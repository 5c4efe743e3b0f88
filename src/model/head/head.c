/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - opens a draft head: its description from its file, its tensors, and what it borrows from the target. */
#include "model/head/head.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/head/head_steps.h"
#include "model/head/reduced_output.h"
#include "ops/pack.h"

enum { MOST_LAYERS = 16 };

/* ---- the description ------------------------------------------------------------------------------------------------ */

bool hn_head_stages_fit(const hn_head_desc *d) {
    enum { JOINT = 1 << HN_STREAM_JOINT, LSTM = 1 << HN_STREAM_LSTM, FEATURE = 1 << HN_STREAM_FEATURE, CONTEXT = 1 << HN_STREAM_CONTEXT,
           SUM = 1 << HN_STREAM_SUM, STATE = 1 << HN_STREAM_STATE };
    static const int streams[] = {
        [HN_ROWS_CHAIN] = JOINT | LSTM | FEATURE, [HN_ROWS_TURNS] = JOINT,   [HN_ROWS_SPAN] = JOINT | LSTM,
        [HN_ROWS_MASKS] = FEATURE | SUM,          [HN_ROWS_BLOCK] = CONTEXT, [HN_ROWS_STEPS] = STATE,
        [HN_ROWS_BORROWED] = JOINT};
    const hn_rows_kind rows = d->rows.kind;
    if (!(streams[rows] >> d->input.stream & 1)) return false;
    if (d->output.norm == HN_NORM_CARRIED && d->input.stream != HN_STREAM_JOINT) return false; /* a feature beside a token */
    if (hn_head_in_order(d)) return rows == HN_ROWS_BLOCK;
    return d->output.kind == HN_OUTPUT_ALL || (rows != HN_ROWS_BLOCK && rows != HN_ROWS_STEPS);
}

/* Biases and norms are those in the first layer of the file. */
static void read_parts(hn_layer_desc *l, const hn_arch *a, const hn_source *src) {
    const bool pairs = !hn_head_form_blocks(a->files.head_form);
    l->fused_qkv = hn_arch_find_tensor(a, src, HN_ROLE_QKV, 0);
    l->qkv_bias = hn_arch_find_tensor(a, src, l->fused_qkv ? HN_ROLE_QKV_BIAS : HN_ROLE_Q_BIAS, 0);
    l->o_bias = hn_arch_find_tensor(a, src, HN_ROLE_O_BIAS, 0);
    l->qk_norm = hn_arch_find_tensor(a, src, HN_ROLE_Q_NORM, 0);
    l->sinks = hn_arch_find_tensor(a, src, HN_ROLE_SINKS, 0);
    l->gate_up_bias = hn_arch_find_tensor(a, src, HN_ROLE_GATE_BIAS, 0);
    l->down_bias = hn_arch_find_tensor(a, src, HN_ROLE_DOWN_BIAS, 0);
    l->first = pairs; /* slot 0 has no pair of feature and token */
}

/* Layers of speculators that differ from Llama's and Qwen3's: gated attention, norms around 1. */
static hunch_status refuse_other_layers(const hn_source *src, hunch_error *err) {
    const char *type = json_string_value(hn_source_config(src, "model_type"));
    return !type || (strncmp(type, "qwen3_next", 10) && strncmp(type, "qwen3_5", 7))
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: model_type is \"%.40s\", expected a draft head with layers of Llama or Qwen3",
                         hn_source_path(src), type);
}

/* Layers with windows are not supported: the head's cache does not keep their rows apart. */
static hunch_status refuse_windows(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const json_t *types = hn_source_config(src, "layer_types");
    for (int i = 0; i < a->layers && json_is_array(types); i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        if (!type || strcmp(type, "full_attention") != 0)
            return hn_fail(err, HUNCH_REFUSED, "%s: layer %d is of type %.40s, expected a draft head's to be full_attention",
                           hn_source_path(src), i, type ? type : "no name");
    }
    if (json_is_true(hn_source_config(src, "use_sliding_window")))
        return hn_fail(err, HUNCH_REFUSED, "%s: use_sliding_window is true, expected a draft head without windows", hn_source_path(src));
    uint64_t window = 0;
    const char *name;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_WINDOW, &window, &name, err);
    if (!st && window > 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected a draft head without windows", hn_source_path(src), name,
                     (unsigned long long)window);
    return st;
}

/* Checks the keys about the target beside the tensors: they reveal a head for another model. */
static hunch_status check_target_keys(const hn_arch *a, const hn_source *src, const hn_arch *target, hunch_error *err) {
    uint64_t said = 0;
    const char *name;
    hunch_status st = hn_head_expect(src, HN_HEAD_KEY_TARGET_WIDTH, target->hidden, "of this target", err);
    if (!st) st = hn_head_expect(src, HN_HEAD_KEY_OUTPUTS, a->vocab, "tokens of its output", err);
    if (!st) st = hn_head_u64(src, HN_HEAD_KEY_TOKENS, &said, &name, err);
    if (!st && name && said != (uint64_t)target->vocab && said != (uint64_t)a->vocab &&
        said != (uint64_t)a->draft_head.input.embeddings)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected the %d of this target", hn_source_path(src), name,
                     (unsigned long long)said, target->vocab);
    return st;
}

static hunch_status read_vocabularies(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target,
                                      hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    const hn_tensor *embedding = hn_head_find_tensor(src, names, HN_HEAD_EMBEDDING),
                    *output = hn_head_find_tensor(src, names, HN_HEAD_OUTPUT);
    if (hn_head_form_folder_blocks(names->form) && a->hidden == target->hidden) { /* copies of the target's matrices, if any */
        embedding = NULL;
        if (output && output->n_dims == 2 && output->dims[1] == (uint64_t)target->vocab) output = NULL;
    }
    d->input.own_embedding = embedding;
    d->output.own = output;
    d->input.embeddings = target->vocab;
    if (output && output->n_dims != 2)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has %d dimensions, expected 2", hn_source_path(src), output->name,
                       output->n_dims);
    a->vocab = output && output->dims[1] <= (uint64_t)target->vocab ? (int)output->dims[1] : target->vocab;
    if (embedding && (embedding->n_dims != 2 || embedding->dims[1] < (uint64_t)target->vocab))
        return hn_fail(err, HUNCH_REFUSED, "%s: an embedding of %llu tokens, expected the %d of the target", hn_source_path(src),
                       embedding->n_dims == 2 ? (unsigned long long)embedding->dims[1] : 0, target->vocab);
    if (embedding) d->input.embeddings = (int)embedding->dims[1];
    if (output && (output->dims[1] < 1 || output->dims[1] > (uint64_t)target->vocab))
        return hn_fail(err, HUNCH_REFUSED, "%s: an output of %llu tokens, expected at most the %d of the target",
                       hn_source_path(src), (unsigned long long)output->dims[1], target->vocab);
    if (a->hidden != target->hidden && (!embedding || !output))
        return hn_fail(err, HUNCH_REFUSED, "%s: hidden size %d, and no %s of its own: expected the target's %d",
                       hn_source_path(src), a->hidden, embedding ? "output" : "embedding", target->hidden);
    return check_target_keys(a, src, target, err);
}

static void set_names(hn_arch *a, const hn_head_names *names) {
    a->files.body = names->front;
    a->files.head = "";
    a->files.first_layer = names->first;
    a->files.head_form = names->form;
    snprintf(a->architecture, sizeof a->architecture, "head");
}

static hunch_status read_steps(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    const hn_step_form *form = names->form->steps;
    hn_steps_begin(a, src, names, target);
    hunch_status st = form->read_layers ? form->read_layers(a, src, target, err) : HUNCH_OK;
    if (!st && names->form == &hn_head_gguf_steps) st = refuse_windows(a, src, err);
    for (int i = 0; !st && i < a->layers; i++) read_parts(&a->layer[i], a, src);
    return st;
}

/* config.json of modules of multi-token prediction may have the target's number of layers. */
static hunch_status count_modules(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    if (names->form != &hn_head_mtp) return HUNCH_OK;
    if (names->modules > HN_MOST_HEAD_MODULES)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d modules of multi-token prediction or more, expected at most %d", hn_source_path(src),
                       names->modules, HN_MOST_HEAD_MODULES);
    if (names->modules > a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d modules of multi-token prediction, expected num_hidden_layers to be as many, not %d",
                       hn_source_path(src), names->modules, a->layers);
    a->layers = names->modules ? names->modules : 1;
    return HUNCH_OK;
}

hunch_status hn_head_read_layers(hn_arch *a, hn_source *src, const hn_head_names *names, int most, hunch_error *err) {
    const hn_family *family;
    hunch_status st = hn_head_find_family(src, &family, err);
    if (!st) st = refuse_other_layers(src, err);
    if (!st) st = hn_family_read_layers(a, src, family, err);
    if (!st) st = hn_head_read_rotation(a, src, err);
    if (!st) st = count_modules(a, src, names, err);
    if (!st && a->layers > most)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %d layers, expected a draft head of at most %d", hn_source_path(src), a->layers, most);
    if (!st && !hn_head_form_blocks(names->form)) st = refuse_windows(a, src, err);
    if (!st && !hn_head_form_blocks(names->form)) st = hn_head_refuse_cap(src, err);
    if (st) return st;
    set_names(a, names);
    a->files.rows_in_pairs = a->rope_interleaved; /* packed in a folder's order: a head drafts the same bits from either file */
    a->rope_interleaved = false;
    for (int i = 0; i < a->layers; i++) read_parts(&a->layer[i], a, src);
    return HUNCH_OK;
}

static hunch_status read_form(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    if (names->form->steps) return read_steps(a, src, names, target, err);
    if (names->form->read) {
        set_names(a, names);
        return names->form->read(a, src, names, target, err);
    }
    hunch_status st = hn_head_read_layers(a, src, names, MOST_LAYERS, err);
    if (!st) st = read_vocabularies(a, src, names, target, err);
    return st ? st : hn_head_read_clusters(a, src, names, err);
}

hunch_status hn_head_read(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    static const hn_head_key keys[] = {HN_HEAD_KEY_MIN_P, HN_HEAD_KEYS};
    const hunch_status st = read_form(a, src, names, target, err);
    return st ? st : hn_head_keys_read(a, src, keys, err);
}

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/* Tensors that must be used: in a folder those of its layers, for heads of blocks all but copies of the target's; in a
 * GGUF all but those that follow from keys or other tensors. */
static bool tensor_counts(const hn_source *src, const hn_arch *a, const char *name) {
    static const char *const layers[] = {"layers.", "midlayer.", "mtp_layers.", "blk."};
    static const char *const copies[] = {"embed_tokens.", "lm_head.", "d2t", "t2d", "verifier_norm.", "verifier_lm_head."};
    const hn_head_names names = hn_head_names_of(a);
    if (hn_head_form_own(a->files.head_form)) return hn_head_own_tensor(&names, name);
    const bool mtp = a->files.head_form == &hn_head_mtp;
    const size_t inner = strncmp(a->files.body, "model.", 6) ? 0 : 6, front = mtp ? inner : strlen(a->files.body);
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return strcmp(name, "t2d") != 0 && strncmp(name, "rope_", 5) != 0;
    if (hn_head_steps(&a->draft_head)) return hn_steps_counts(a, name);
    if (strstr(name, "rotary_emb.")) return false;
    if (hn_head_form_assistant(a->files.head_form)) return true;
    if (hn_head_form_folder_blocks(a->files.head_form)) { /* a tensor of other kinds of heads means that this head is another one */
        const size_t at = strncmp(name, "model.", 6) ? 0 : 6;
        for (size_t k = 0; k < sizeof copies / sizeof *copies; k++)
            if (!strncmp(name + at, copies[k], strlen(copies[k]))) return false;
        return true;
    }
    if (strncmp(name, a->files.body, front)) return false;
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++)
        if (!strncmp(name + front, layers[k], strlen(layers[k]))) return true;
    return false;
}

hunch_status hn_head_check_rest(hn_source *src, const hn_arch *a, hunch_error *err) {
    const hunch_status st = hn_steps_take_copies(src, a, err);
    if (st) return st;
    const hn_steps_desc *steps = hn_head_steps(&a->draft_head);
    const int parts = steps ? steps->n : a->layers;
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const hn_tensor *t = hn_source_tensor(src, i);
        if (!t->used && tensor_counts(src, a, t->name))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: heads of this kind, of %d %s%s, have none of that name",
                           hn_source_path(src), t->name, parts, steps ? "position" : "layer", parts == 1 ? "" : "s");
    }
    return HUNCH_OK;
}

static hunch_status plan_head(hn_plan *p, hn_model *m, hn_source *src, hunch_error *err) {
    const hn_arch *a = &m->arch;
    hunch_status st = hn_plan_all(p, m, src, err);
    if (st) return st;
    const hn_steps_desc *steps = hn_head_steps(&a->draft_head);
    const hn_own_state_desc *state = steps ? hn_steps_own_state(steps) : NULL;
    if (state && state->scale_input)
        m->head.root_half = (hn_norm){.kind = HN_RMS_NORM, .eps = HN_STEP_EPS,
                                      .w = {NULL, hn_plan_room(p, (size_t)a->draft_head.input.feature_width * sizeof(float))}};
    if (p->missing && p->missing->n)
        return hn_fail(err, HUNCH_REFUSED, "%s: %zu of its tensors %s missing: %s%s", hn_source_path(src), p->missing->n,
                       p->missing->n == 1 ? "is" : "are", p->missing->name[0], p->missing->n > 1 ? ", ..." : "");
    return hn_head_check_rest(src, a, err);
}

static void borrow(hn_model *m, const hn_model *target) {
    const hn_input_stage *in = &m->arch.draft_head.input;
    const bool embedding = !in->own_embedding, output = !m->arch.draft_head.output.own;
    if (embedding) m->embedding = target->embedding;
    if ((in->stream == HN_STREAM_CONTEXT && in->context.scaled) || (in->stream == HN_STREAM_JOINT && in->joint.scaled))
        m->arch.embed_scale = target->arch.embed_scale;
    if (embedding || output) m->files = target->files; /* which may hold their rows */
    if (m->arch.tied) m->output = m->embedding;
    if (output) m->output = target->output;
    if (output && m->arch.draft_head.output.kind != HN_OUTPUT_SELECTOR) { /* which has numbers of its own */
        m->arch.logit_scale = target->arch.logit_scale;
        m->arch.logit_cap = target->arch.logit_cap;
    }
    if (!output && !m->arch.tied) return;
    m->weight_bytes += hn_packed_bytes(m, &m->output);
    m->macs_per_row += (double)m->output.in * m->output.out;
}

static hunch_status load_ids(hn_model *m, const int32_t *ids, hunch_error *err) {
    const size_t bytes = (size_t)m->arch.vocab * sizeof *ids;
    if (!ids) return HUNCH_OK;
    hunch_status st = m->backend->mem_create(m->backend, HN_MEM_WEIGHTS, bytes, &m->head.table, err);
    if (st) return st;
    m->head.ids = (hn_buf){m->head.table, 0};
    m->backend->write(m->backend, m->head.ids, ids, bytes);
    return HUNCH_OK;
}

/* Replaces a matrix by its rows ids[n], in *mem. The head's own matrix stays in its block of memory, unread. */
static hunch_status trim_matrix(hn_model *m, hn_weight *w, const int32_t *ids, int n, hn_mem **mem, hunch_error *err) {
    hn_reduced_output r;
    const hunch_status st = hn_reduce_output(m, w, ids, n, &r, err);
    if (st) return st;
    *mem = r.mem;
    m->head.ids = r.ids;
    m->weight_bytes += hn_packed_bytes(m, &r.w) - hn_packed_bytes(m, w);
    m->macs_per_row += (double)r.w.in * (r.w.out - w->out);
    m->bytes.memory += r.bytes;
    *w = r.w;
    return HUNCH_OK;
}

/* The other matrix whose rows are those of the outputs; NULL: there is none. */
static hn_weight *bias_of_outputs(hn_model *m) {
    switch (m->arch.draft_head.output.kind) {
    case HN_OUTPUT_MARKOV: return &m->head.markov_out;
    case HN_OUTPUT_PREFIX: return &m->head.bias_out;
    case HN_OUTPUT_SELECTOR:
    case HN_OUTPUT_ALL:
    case HN_OUTPUT_CLUSTERS: break;
    }
    return NULL;
}

static hunch_status trim(hn_model *m, const hn_source *files, const int32_t *ids, int n, hunch_error *err) {
    hunch_status st = files ? hn_source_check(files, err) : HUNCH_OK; /* a truncated file cannot be read */
    if (!st) st = trim_matrix(m, &m->output, ids, n, &m->head.table, err);
    hn_weight *bias = bias_of_outputs(m);
    if (!st && bias) st = trim_matrix(m, bias, ids, n, &m->head.bias_rows, err);
    if (st) return st;
    m->arch.vocab = n;
    if (m->arch.draft_head.input.own_embedding) m->files = NULL;
    return files ? hn_source_check(files, err) : HUNCH_OK; /* nor is a file that was changed meanwhile the model */
}

/* The output's rows in the order of their clusters, of which a row reads few. ids: of each place; NULL: `order` itself. */
static hunch_status order_output(hn_model *m, const hn_source *files, const int32_t *order, const int32_t *ids, hunch_error *err) {
    const hn_output_stage *d = &m->arch.draft_head.output;
    const int n = m->arch.vocab;
    const hunch_status st = trim(m, files, order, n, err);
    if (st) return st;
    m->backend->write(m->backend, m->head.ids, ids, (size_t)n * sizeof *ids);
    m->weight_bytes -= hn_packed_bytes(m, &m->output) / (uint64_t)d->clusters.n * (uint64_t)(d->clusters.n - d->clusters.used);
    m->macs_per_row -= (double)m->output.in * (n - hn_arch_logits(&m->arch));
    return HUNCH_OK;
}

/* Sets up the outputs that a pass reads, from what was borrowed and loaded. */
static hunch_status finish_outputs(hn_model *m, const hn_head_load *load, const int32_t *ids, hunch_error *err) {
    if (hn_head_steps(&m->arch.draft_head)) {
        hn_steps_share(m);
        return load->trim ? hn_steps_trim(m, ids, load->trim, err) : load_ids(m, ids, err);
    }
    const hn_source *files = m->output.stored.rows ? m->files : NULL;
    if (load->order) return order_output(m, files, load->order, ids, err);
    return load->trim ? trim(m, files, ids, load->trim, err) : load_ids(m, ids, err);
}

static void share_modules(hn_model *m) {
    const hn_head *h = &m->head;
    for (int k = 1; k < hn_arch_modules(&m->arch) && m->arch.files.shared_modules; k++)
        m->head.further[k - 1] = (hn_head_module){h->fc, h->token_norm, h->stream_norm, m->output_norm};
}

/* The forms that inputs of the head's matrices must have. */
static void choose_forms(hn_model *m) {
    const hn_backend *o = m->backend;
    hn_head *h = &m->head;
    hn_model_choose_forms(m);
    share_modules(m);
    h->fc_forms = o->act_forms(o, h->fc.dtype);
    if (m->arch.draft_head.output.kind == HN_OUTPUT_CLUSTERS) m->output_forms |= o->act_forms(o, h->centroids.dtype);
    if (m->arch.draft_head.output.norm == HN_NORM_CARRIED) m->output_forms |= o->act_forms(o, h->carry.dtype);
    for (int k = 1; k < hn_arch_modules(&m->arch); k++) h->fc_forms |= o->act_forms(o, h->further[k - 1].fc.dtype);
    for (int k = 0; m->arch.draft_head.input.stream == HN_STREAM_LSTM && k < 2; k++) h->lstm_forms[k] = o->act_forms(o, h->lstm[k].dtype);
}

hunch_status hn_head_open(hn_model *m, hn_source *src, hn_arch *a, const hn_head_load *load, const int32_t *ids,
                          hunch_error *err) {
    const hn_model_load how = {.pool = load->target->pool};
    hn_plan p = {.convert = load->convert, .as = load->weights, .finite = true, .missing = load->missing};
    assert(hn_head_stages_fit(&a->draft_head));
    memset(m, 0, sizeof *m);
    m->arch = *a;
    m->pool = load->target->pool;
    m->isa = load->target->isa;
    m->backend = load->target->backend;
    hunch_status st = hn_model_check_operations(m, src, err);
    if (!st && load->trim && !m->backend->ops->pick_rows)
        st = hn_model_refuse(m, hn_source_path(src), "chosen outputs of a draft head", err);
    if (!st) st = plan_head(&p, m, src, err);
    if (!st) st = hn_plan_load(&p, &how, err);
    if (!st) st = hn_model_load_rotations(m, p.tables, err);
    if (!st) borrow(m, load->target);
    if (!st) st = finish_outputs(m, load, ids, err);
    if (!st) choose_forms(m);
    hn_plan_end(&p);
    if (st) hn_model_close(m);
    *a = (hn_arch){0};
    return st;
}
