/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - a Hugging Face folder of a model as a GGUF file: the order of keys and tensors, and the refusal of a folder
 * that has more.
 *
 * The folder is read through the same description that the model is loaded with (arch.h), so what opens converts. What is
 * written: key_write.c, convert_keys.c, convert_tokenizer.c, convert_tensors.c; draft heads: convert_head.c.
 */
#include "convert/convert_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "convert/convert_tokenizer.h"
#include "model/ffns.h"
#include "model/head/head.h"
#include "model/mixers.h"

/* ---- what a GGUF has no place for ---- */

/* The layer of a folder's tensor, by its name; -1: none. */
static int layer_of(const hn_conversion *c, const char *name) {
    static const char layers[] = "layers.";
    const size_t body = strlen(c->arch.files.body), all = body + sizeof layers - 1;
    return strncmp(name, c->arch.files.body, body) == 0 && strncmp(name + body, layers, sizeof layers - 1) == 0 ? atoi(name + all) : -1;
}

/* Whether its name, or that below the body, begins like one of those that nothing reads of the family; "+": it is of a layer behind the
 * last. */
static bool family_leaves(const hn_conversion *c, const char *name) {
    const char *list = c->arch.family->unread ? c->arch.family->unread : "";
    const size_t body = strlen(c->arch.files.body);
    for (size_t n; *list; list += n + (list[n] == ' ')) {
        n = strcspn(list, " ");
        if (n == 1 && *list == '+' ? layer_of(c, name) >= c->arch.layers
                                   : strncmp(name, list, n) == 0 ||
                                         (strncmp(name, c->arch.files.body, body) == 0 && strncmp(name + body, list, n) == 0))
            return true;
    }
    return false;
}

/* Tensors that are not converted: blocks after the layers, which predict further tokens; rotary tables of old files
 * (they follow from the keys); the copy of a tied head; other parts of a model (vision). */
static bool tensor_may_stay(const hn_conversion *c, const char *name) {
    static const char table[] = ".rotary_emb.inv_freq";
    const size_t len = strlen(name), tail = sizeof table - 1;
    char head[128];
    hn_arch_tensor_name(&c->arch, HN_ROLE_OUTPUT, 0, head);
    if (c->arch.files.next_layers > 0 && (strstr(name, ".embed_tokens.") != NULL || strstr(name, ".shared_head.head.") != NULL) &&
        c->own.files.first_block > 0)
        return true; /* copies in a draft block */
    if ((len > tail && strcmp(name + len - tail, table) == 0) || (c->arch.tied && strcmp(name, head) == 0))
        return true;
    if (hn_family_drafts(c->arch.family) && layer_of(c, name) >= c->arch.layers)
        return true;
    if (hn_arch_is_unread(&c->arch, name) || family_leaves(c, name))
        return true;
    return strcmp(c->arch.files.body, "model.") != 0 && strncmp(name, c->arch.files.body, strlen(c->arch.files.body)) != 0;
}

/* Any other tensor that is not written would change what the model computes, unless it has no values. */
static hunch_status leftovers_check(const hn_conversion *c) {
    for (size_t i = 0; i < hn_source_tensor_count(c->src); i++) {
        const hn_tensor *t = hn_source_tensor(c->src, i);
        if (!t->used && t->bytes > 0 && !tensor_may_stay(c, t->name))
            return hn_fail(
                c->err, HUNCH_REFUSED,
                "%s: tensor %s has no place in a %s GGUF file (other biases and additions are not converted)",
                hn_source_path(c->src), t->name, c->arch.architecture);
    }
    return HUNCH_OK;
}

/* Experts and weights of some mixers are written as they are stored. */
static hunch_status type_check(const hn_conversion *c) {
    for (int i = 0; c->convert && i < c->arch.layers; i++) {
        const hn_layer_desc *l = &c->arch.layer[i];
        const char *what = hn_ffn_of(l) ? hn_ffn_of(l)->as_stored : NULL;
        for (int k = 0; k < hn_layer_mixers(l); k++)
            if (l->mixer[k].kind->as_stored) what = l->mixer[k].kind->as_stored;
        if (what)
            return hn_fail(c->err, HUNCH_REFUSED, "%s: layer %d has %s, which are converted as stored alone: expected no type",
                           hn_source_path(c->src), i, what);
    }
    return HUNCH_OK;
}

/* ---- the file ---- */

static hunch_status keys_write(hn_conversion *c) {
    hunch_status status =
        hn_gguf_put_str(c->w, "general.architecture", c->arch.architecture, strlen(c->arch.architecture), c->err);
    if (!status)
        status = hn_conversion_put_name(c);
    if (!status)
        status = hn_conversion_put_sizes(c);
    if (!status)
        status = hn_conversion_put_sampling(c);
    return status ? status : hn_convert_tokenizer(c->w, c->src, c->arch.vocab, c->err);
}

static hunch_status tensors_write(hn_conversion *c) {
    hunch_status status = hn_conversion_visit(c, false);
    if (!status)
        status = leftovers_check(c);
    return status ? status : hn_conversion_visit(c, true);
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

/* The model's modules of multi-token prediction, if it has some. */
static hunch_status find_own(hn_conversion *c) {
    hn_head_names names;
    if (!hn_head_find_own(c->src, &c->arch, &names)) return HUNCH_OK;
    const hunch_status status = hn_head_read_own(&c->own, c->src, &names, &c->arch, c->err);
    c->arch.files.next_layers = c->own.layers;
    return status;
}

static hunch_status conversion_run(hn_conversion *c, const char *out_path) {
    hunch_status status = hn_arch_read(&c->arch, c->src, c->err);
    if (!status)
        status = type_check(c);
    if (!status)
        status = find_own(c);
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
