/* SPDX-License-Identifier: Apache-2.0 */
/* open_drafters.c - opens the drafters of an engine that are requested (`auto`: auto_drafters.c). Also the notes on them for the user. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/drafting.h"
#include "engine/machines.h"

/* ---- notes ------------------------------------------------------------------------------------------------------------- */

void hn_note(hunch_engine *e, const char *fmt, ...) {
    char text[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (size_t i = 0; i < e->notes.n; i++)
        if (!strcmp(e->notes.name[i], text)) return;
    (void)hn_name_list_add(&e->notes, text, NULL); /* lost without memory */
}

void hn_note_failures(hunch_engine *e) {
    for (int i = 0; i < e->n_drafters; i++) {
        hn_drafter *d = &e->drafter[i];
        if (!d->failure.status) continue; /* as in nearly every round */
        hn_note(e, "texts go on without drafts of %s, or with fewer: %s", d->name, d->failure.message);
        hn_error_clear(&d->failure);
    }
}

const char *hunch_engine_note(const hunch_engine *e, int index) {
    return e && index >= 0 && (size_t)index < e->notes.n ? e->notes.name[index] : NULL;
}

/* ---- opening ----------------------------------------------------------------------------------------------------------- */

/* Whether a label is this one, or this one with a number. */
static bool is_label(const char *label, const char *of) {
    const size_t n = strlen(of);
    return !strncmp(label, of, n) && (!label[n] || !strncmp(label + n, " (", 2));
}

/* Of drafters with one label all but the first get a number, "eagle3 (2)". */
static hunch_status label_count(const hunch_engine *e, hn_drafter *d, hunch_error *err) {
    const size_t room = strlen(d->label) + 16;
    int same = 1;
    for (int i = 0; i < d->index; i++) same += is_label(e->drafter[i].label, d->label);
    if (same == 1) return HUNCH_OK;
    char *counted = hn_alloc(room);
    if (!counted) return hn_fail_memory(err, "a drafter's name", room);
    snprintf(counted, room, "%s (%d)", d->label, same);
    hn_free(d->label);
    d->label = counted;
    return HUNCH_OK;
}

hunch_status hn_open_drafter(hunch_engine *e, const char *spec, const hn_target_info *info, hunch_error *err) {
    if (e->n_drafters == HN_MOST_DRAFTERS) return hn_fail(err, HUNCH_USAGE, "more than %d drafters together", HN_MOST_DRAFTERS);
    hn_drafter *d = &e->drafter[e->n_drafters];
    hunch_status st = hn_drafter_open(d, spec, e->n_drafters, e->parallel + 1, info, err);
    if (st) return st;
    e->n_drafters++;
    e->feeds |= d->ops->feed != NULL;
    return label_count(e, d, err);
}

hn_target_info hn_engine_target(const hunch_model *model, int context, hn_dtype kv, int depth) {
    const hn_model *m = &model->target;
    return (hn_target_info){.name = m->arch.name,
                            .path = model->path,
                            .model = m,
                            .vocab = m->arch.vocab,
                            .hidden = m->arch.hidden,
                            .layers = m->arch.layers,
                            .context = context,
                            .tokenizer = model->tokenizer,
                            .pool = m->pool,
                            .isa = m->isa,
                            .f32 = m->backend->f32,
                            .kv = kv,
                            .depth = depth,
                            .open_over_ranks = model->machines ? hn_machines_open_draft : NULL,
                            .machines = model->machines};
}

hunch_status hn_engine_open_drafters(hunch_engine *e, const hunch_engine_options *o, bool *controlled,
                                     hunch_error *err) {
    hn_target_info info = hn_engine_target(e->model, e->context, e->kv, o->draft_depth);
    e->drafter = hn_zalloc(HN_MOST_DRAFTERS, sizeof *e->drafter);
    if (!e->drafter) return hn_fail_memory(err, "drafters", HN_MOST_DRAFTERS * sizeof *e->drafter);
    hunch_status st = HUNCH_OK;
    for (int i = 0; i < o->n_drafts; i++) info.controlled |= !strcmp(o->drafts[i], "auto");
    for (int i = 0; !st && i < o->n_drafts; i++) {
        const bool is_auto = !strcmp(o->drafts[i], "auto");
        if (!strcmp(o->drafts[i], "none") || (is_auto && *controlled)) continue;
        *controlled |= is_auto;
        st = is_auto ? hn_open_auto(e, o, &info, err) : hn_open_drafter(e, o->drafts[i], &info, err);
    }
    return st || !*controlled ? st : hn_open_auto_without_head(e, o, &info, err);
}
