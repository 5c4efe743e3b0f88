/* SPDX-License-Identifier: Apache-2.0 */
/* head_steps_check.c - compares the files of a head with weights for each position (head_steps.h) with the tensors that
 * were read: numbers in config.json or a GGUF's keys, copies of tensors that tied steps share, tensors that such a head
 * does not have. */
#include <string.h>

#include "model/head/head_steps.h"

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static hunch_status check_number(const hn_arch *a, const hn_source *src, const char *key, hn_step_fact is, int tokens, hunch_error *err) {
    static const char *const words[] = {"positions", "tokens at once", "resblocks a position", "tokens of its output",
                                        "tokens of this target"};
    const hn_steps_desc *d = &a->draft_head.rows.steps;
    const hn_resblocks_desc *blocks = hn_steps_resblocks(d);
    const int known[] = {d->n, d->n + 1, blocks ? blocks->n : 0, a->vocab, tokens};
    uint64_t value = 0;
    bool found = false;
    hunch_status st = hn_source_u64(src, key, &value, &found, err);
    if (st || !found || value == (uint64_t)known[is]) return st;
    if (is == HN_FACT_TOKENS && (value == (uint64_t)a->draft_head.input.embeddings || value == (uint64_t)a->vocab)) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %d, the %s", hn_source_path(src), key,
                   (unsigned long long)value, known[is], words[is]);
}

hunch_status hn_steps_check_keys(const hn_arch *a, const hn_source *src, const hn_head_names *names, int tokens, hunch_error *err) {
    const hn_step_form *form = names->form->steps;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && form->key[i].key; i++) st = check_number(a, src, form->key[i].key, form->key[i].is, tokens, err);
    return st;
}

hunch_status hn_steps_check_layers(const hn_arch *a, const hn_source *src, int most, hunch_error *err) {
    return a->layers <= most ? HUNCH_OK
                             : hn_fail(err, HUNCH_REFUSED, "%s: %d layer%s of attention, expected %s", hn_source_path(src), a->layers,
                                       a->layers == 1 ? "" : "s", most ? "at most 1 of such a head" : "a head without");
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------ */

enum { COMPARED = 4096 };

static hunch_status compare(const hn_source *src, const hn_tensor *copy, const hn_tensor *of, hunch_error *err) {
    unsigned char a[COMPARED], b[COMPARED];
    bool same = copy->bytes == of->bytes && copy->known && of->known && copy->dtype == of->dtype &&
                !memcmp(copy->dims, of->dims, sizeof of->dims);
    hunch_status st = HUNCH_OK;
    for (size_t at = 0; !st && same && copy->data != of->data && at < of->bytes; at += COMPARED) {
        const size_t n = of->bytes - at < COMPARED ? of->bytes - at : COMPARED;
        st = hn_source_read(src, copy, at, n, a, err);
        if (!st) st = hn_source_read(src, of, at, n, b, err);
        same = !st && !memcmp(a, b, n);
    }
    return st || same ? st
                      : hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: its weights are tied, expected a copy of %s",
                                hn_source_path(src), copy->name, of->name);
}

hunch_status hn_steps_take_copies(hn_source *src, const hn_arch *a, hunch_error *err) {
    const hn_steps_desc *d = hn_head_steps(&a->draft_head);
    const hn_own_state_desc *state = d ? hn_steps_own_state(d) : NULL;
    const hn_head_names names = hn_head_names_of(a);
    hn_arch untied = *a;
    hn_tensor_id t = {HN_ROLES_OF_STEPS, 0, -1};
    hunch_status st = HUNCH_OK;
    if (!state || !state->tied) return HUNCH_OK;
    untied.draft_head.rows.steps.own_state.tied = untied.draft_head.rows.steps.one_output = false;
    while (!st && hn_arch_next(&untied, &t)) {
        const hn_tensor_id shared = {t.role, hn_step_is_projection(t.role) && t.k > 0, 0};
        const hn_tensor *copy = hn_tensor_find(src, &names, t), *of = hn_tensor_find(src, &names, shared);
        char name[128];
        if (!copy || !of || copy->used) continue;
        st = compare(src, copy, of, err);
        hn_source_take(src, hn_tensor_name(&names, t, name));
    }
    return st;
}

/* ---- other tensors ------------------------------------------------------------------------------------------------------ */

bool hn_steps_counts(const hn_arch *a, const char *name) {
    if (strstr(name, "rotary_emb.") || !strncmp(name, "prefix_embeding_layer.embed_tokens.", 35)) return false;
    return !a->files.head_form->steps->in_model || !strncmp(name, a->files.body, strlen(a->files.body));
}
