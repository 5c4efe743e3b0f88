/* SPDX-License-Identifier: Apache-2.0 */
/* head_own.c - the draft head in a model's own file: modules of multi-token prediction (2412.19437) of the model's own kind, usually one,
 * whose layers always have attention.
 *
 *   folder   mtp.fc, mtp.pre_fc_norm_*, mtp.norm, mtp.layers.0.*                Qwen3-Next, 3.5, 3.6
 *   folder   layers.N.eh_proj, enorm, hnorm, shared_head.norm, and a layer's    DeepSeek-V3, GLM-4.5: N follows the last layer
 *   folder   the same with final_layernorm in place of shared_head.norm        Hy3
 *   GGUF     blk.N.nextn.*, and a layer's                                       all of them; also in a file of its own beside the model's
 *
 * Embedding and output are the model's; copies of them in the module are not read. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/head/head.h"

static bool has(const hn_source *src, const char *front, const char *name, int module) {
    char text[160];
    snprintf(text, sizeof text, "%s", front);
    snprintf(text + strlen(text), sizeof text - strlen(text), name, module);
    return hn_source_find(src, text);
}

/* The number of consecutive modules from number `module` on, by a tensor that each of them has. */
static int count_modules(const hn_source *src, const char *front, const char *name, int module) {
    int n = 0;
    while (n <= HN_MOST_HEAD_MODULES && has(src, front, name, module + n)) n++;
    return n;
}

static hn_head_names own_names(const hn_head_form *form, const char *front, int module, int modules) {
    return (hn_head_names){.form = form, .front = front, .module = module, .modules = modules};
}

bool hn_head_find_own(const hn_source *src, const hn_arch *target, hn_head_names *names) {
    static const char *const fronts[] = {"mtp.", "model.mtp.", "model.language_model.mtp.", "language_model.mtp."};
    const int module = target->layers;
    if (target->family && target->family->unread) return false; /* its blocks are among what nothing reads */
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) {
        *names = own_names(&hn_head_own_gguf, "", module, target->files.next_layers);
        return target->files.next_layers > 0 && has(src, "", "blk.%d.nextn.eh_proj.weight", module);
    }
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        if (has(src, fronts[i], "fc.weight", 0)) {
            const int n = count_modules(src, fronts[i], "layers.%d.input_layernorm.weight", 0);
            *names = own_names(&hn_head_own, fronts[i], 0, n > 1 ? n : 1);
            return true;
        }
    *names = own_names(&hn_head_own_next, target->files.body ? target->files.body : "", module, 0);
    if (target->files.body) names->modules = count_modules(src, target->files.body, "layers.%d.eh_proj.weight", module);
    if (names->modules > 0 && has(src, names->front, "layers.%d.final_layernorm.weight", module)) names->form = &hn_head_own_final;
    return names->modules > 0;
}

hunch_status hn_head_find_side(const hn_source *src, const hn_arch *target, hn_head_names *names, bool *found, hunch_error *err) {
    const char *architecture = NULL;
    bool said = false;
    *found = false;
    if (hn_source_get_kind(src) != HN_SOURCE_GGUF || !target->family) return HUNCH_OK;
    const hunch_status st = hn_source_str(src, "general.architecture", &architecture, NULL, &said, err);
    if (st || !said || strcmp(architecture, target->family->gguf_name) != 0) return st;
    const int n = count_modules(src, "", "blk.%d.nextn.eh_proj.weight", target->layers);
    if (n == 0)
        return hn_fail(
            err, HUNCH_REFUSED,
            "%s: no tensor blk.%d.nextn.eh_proj.weight: expected a module of multi-token prediction after the %d layers "
            "of this target",
            hn_source_path(src), target->layers, target->layers);
    *names = own_names(&hn_head_own_gguf, "", target->layers, n);
    *found = true;
    return HUNCH_OK;
}

/* Copies of what the model has. */
static bool is_copy(const char *name) {
    return strstr(name, "embed_tokens.") || strstr(name, "shared_head.head.") || strstr(name, "shared_head.weight") ||
           strstr(name, "shared_head_head.") || strstr(name, "rotary_emb.");
}

/* Whether the tensor is of one of the modules, be it a copy. */
static bool of_modules(const hn_head_names *names, const char *name) {
    const size_t front = strlen(names->front);
    int module, end = 0;
    if (strncmp(name, names->front, front) != 0) return false;
    if (names->form == &hn_head_own) return true;
    if (sscanf(name + front, names->form == &hn_head_own_gguf ? "blk.%d.%n" : "layers.%d.%n", &module, &end) != 1 || end == 0)
        return false;
    return module >= names->module && module < names->module + names->modules;
}

bool hn_head_own_tensor(const hn_head_names *names, const char *name) {
    return of_modules(names, name) && !is_copy(name);
}

void hn_head_mark_own(hn_source *src, const hn_arch *target) {
    hn_head_names names;
    if (!hn_head_find_own(src, target, &names)) return;
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const char *name = hn_source_tensor(src, i)->name;
        if (of_modules(&names, name)) hn_source_take(src, name); /* copies are known, though not read */
    }
}

static hunch_status refuse_more(const hn_source *src, const hn_head_names *names, hunch_error *err) {
    return names->modules <= HN_MOST_HEAD_MODULES
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: %d modules of multi-token prediction or more, expected at most %d", hn_source_path(src),
                         names->modules, HN_MOST_HEAD_MODULES);
}

/* The target's rotation of the layer that all modules are like becomes their only one. */
static hunch_status copy_rotation(hn_arch *a, const hn_arch *target, hunch_error *err) {
    const int like = a->layer[0].rotation;
    if (like == HN_NO_ROTATION) return HUNCH_OK;
    for (int k = 0; k < a->layers; k++) a->layer[k].rotation = 0;
    return hn_rope_add_copy(a, &target->rotation[like], err);
}

/* As the target's last layer with full attention. */
static hunch_status copy_layers(hn_arch *a, const hn_source *src, const hn_arch *target, hunch_error *err) {
    int like = target->layers - 1;
    while (like >= 0 && (!hn_layer_attends(&target->layer[like]) || target->layer[like].window > 0)) like--;
    if (like < 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: no layer of the model attends to all rows, as its module of multi-token prediction would",
                       hn_source_path(src));
    a->layer = hn_zalloc((size_t)a->layers, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)a->layers * sizeof *a->layer);
    for (int k = 0; k < a->layers; k++) {
        a->layer[k] = target->layer[like];
        a->layer[k].first = k + 1; /* the slots below have no pair of feature and token */
    }
    return HUNCH_OK;
}

/* In a model with experts a module may be dense although the layer that it copies has experts, or the other way round:
 * its tensors show it. */
static void choose_ffn(hn_arch *a, const hn_source *src, const hn_arch *target, int module) {
    hn_layer_desc *l = &a->layer[module];
    int like = target->layers - 1;
    while (like >= 0 && target->layer[like].ffn != HN_FFN_EXPERTS) like--;
    if (like < 0) return;
    const hn_tensor *gate = hn_arch_find_tensor(a, src, HN_ROLE_GATE, module);
    if (hn_arch_find_tensor(a, src, HN_ROLE_ROUTER, module)) {
        l->ffn = HN_FFN_EXPERTS;
        l->experts = target->layer[like].experts;
    } else if (gate && gate->n_dims == 2 && gate->dims[1] >= 1 && gate->dims[1] <= 1 << 20) {
        l->ffn = HN_FFN_SWIGLU;
        l->ffn_width = (int)gate->dims[1];
    }
}

/* Names and layout of the module's own file, which may be of another form than the target's. A side file may have an
 * output for a part of the vocabulary. */
static hunch_status read_form(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    a->files.form = hn_source_get_kind(src);
    if (a->files.form == HN_SOURCE_HF) return HUNCH_OK;
    a->files.norms_less_one = false;
    const hn_tensor *output = hn_head_find_tensor(src, names, HN_HEAD_OUTPUT);
    if (!hn_source_find(src, "d2t") || !output) return HUNCH_OK;
    if (output->n_dims != 2 || output->dims[1] < 1 || output->dims[1] > (uint64_t)a->vocab)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: tensor %s: an output of %llu tokens, expected 1 to the %d of the target",
                       hn_source_path(src), output->name,
                       (unsigned long long)(output->n_dims == 2 ? output->dims[1] : 0), a->vocab);
    a->vocab = (int)output->dims[1];
    a->draft_head.output.own = true;
    return HUNCH_OK;
}

void hn_head_set_mtp(hn_arch *a, const hn_head_names *names, int width) {
    hn_head_desc *d = &a->draft_head;
    d->input.stream = HN_STREAM_JOINT;
    d->input.features = 1;
    d->input.feature_width = width;
    d->input.joint.norms = true;
    d->rows.kind = names->modules > 1 ? HN_ROWS_TURNS : HN_ROWS_CHAIN;
    d->output.norm = HN_NORM_READ;
}

hunch_status hn_head_read_own(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target,
                              hunch_error *err) {
    hunch_status st = refuse_more(src, names, err);
    if (st) return st;
    *a = *target;
    a->layer = NULL;
    a->rotations = 0;
    memset(a->rotation, 0, sizeof a->rotation);
    a->layers = names->modules;
    a->files.next_layers = 0;
    a->files.body = names->front;
    a->files.head = "";
    a->files.first_layer = NULL;
    a->files.first_block = names->module;
    a->files.head_form = names->form;
    a->files.shared_modules = names->form == &hn_head_own; /* Qwen's folders */
    a->draft_head = (hn_head_desc){.input.embeddings = target->vocab};
    hn_head_set_mtp(a, names, target->hidden);
    snprintf(a->architecture, sizeof a->architecture, "head");
    st = copy_layers(a, src, target, err);
    if (!st) st = read_form(a, src, names, err);
    for (int i = 0; !st && i < a->layers; i++) choose_ffn(a, src, target, i);
    if (!st) hn_moe_find_tensors(a, src);
    if (!st) hn_latent_find_tensors(a, src);
    return st ? st : copy_rotation(a, target, err);
}
