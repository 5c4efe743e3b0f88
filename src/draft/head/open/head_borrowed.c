/* SPDX-License-Identifier: Apache-2.0 */
/* head_borrowed.c - the passes of a draft head whose layers read the target's keys and values and store none (head_passes.h): each row is
 * of queries alone, and sees the committed rows of its text, never drafts. What a draft depends on is its token and the output of the row
 * before it, so the nodes of a level are rows of one pass, of however many paths, and nothing has to be kept or dropped after a round.
 *
 * During a pass a view holds the text's pages (cache.h); one that is not waited for has what later work writes there behind it. */
#include <assert.h>

#include "base/mem.h"
#include "draft/head/head_passes_private.h"
#include "model/kv_groups.h"

enum { TARGET = 0 }; /* its model_id, and its first group */

/* Where each layer's keys and values are in the target's groups; their mask. */
static unsigned find_places(const hn_head_passes *h, const hn_layer_place *of_target, hn_layer_place *place) {
    const hn_borrowed_desc *d = &h->model.arch.draft_head.rows.borrowed;
    unsigned groups = 0;
    for (int i = 0; i < h->model.arch.layers; i++) {
        place[i] = of_target[h->model.arch.layer[i].window > 0 ? d->window_layer : d->full_layer];
        groups |= 1u << place[i].kept[0].group;
    }
    return groups;
}

static hunch_status open_views(hn_head_passes *h, unsigned groups, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    h->view = hn_zalloc((size_t)h->n_seqs, sizeof(hn_cache_view *));
    if (!h->view) return hn_fail_memory(err, "the tables of a draft head", (size_t)h->n_seqs * sizeof(hn_cache_view *));
    for (int i = 0; !st && i < h->n_seqs; i++) st = hn_cache_view_open(h->cache, groups, &h->view[i], err);
    return st;
}

hunch_status hn_head_borrowed_attach(hn_head_passes *h, const hn_head_stores *stores, int context, hunch_error *err) {
    const size_t layers = (size_t)h->model.arch.layers, of_target = (size_t)h->target->layers;
    hn_cache_group group[HN_MODEL_GROUPS];
    hn_layer_place *place = hn_zalloc(layers + of_target, sizeof *place);
    if (!place) return hn_fail_memory(err, "the tables of a draft head", (layers + of_target) * sizeof *place);
    hn_kv_groups(hn_layers_of(h->target), HN_F32, group, place + layers);
    const unsigned groups = find_places(h, place + layers, place);
    hunch_status st = open_views(h, groups, err);
    if (!st) st = hn_runner_open_borrowed(&h->runner, &h->model, h->cache, TARGET, place, stores, context, err);
    hn_free(place);
    return st;
}

void hn_head_borrowed_close(hn_head_passes *h) {
    for (int i = 0; h->view && i < h->n_seqs; i++) hn_cache_view_close(h->cache, &h->view[i]);
    hn_free(h->view);
}

bool hn_head_borrowed_ready(const hn_head_passes *h, int seq, int text_n) {
    const int missing = text_n - 1 - hn_cache_committed(h->cache, seq, TARGET); /* a chain that is not committed yet */
    return text_n > 1 && (missing <= 0 || hn_cache_reserved(h->cache, seq, TARGET, missing));
}

/* The position of a level's rows, counted from the root's. */
static int shift_of(const hn_head_passes *h) {
    switch (h->model.arch.draft_head.rows.borrowed.position) {
    case HN_POSITION_ROOT: break;
    case HN_POSITION_LAST: return -1;
    case HN_POSITION_STEP: return h->level;
    }
    return 0;
}

hunch_status hn_head_borrowed_run(hn_head_passes *h, const hn_head_pass *p, const hn_pass_options *more, hunch_error *err) {
    const hn_cache_view *views[HN_MAX_ROWS];
    hn_pass_options options = *more;
    options.views = views;
    options.shift = shift_of(h);
    for (int i = 0; i < p->n_seqs; i++) {
        const int seq = p->cache_seq[i];
        hn_cache_view_take(h->cache, h->view[seq], seq, h->seq[seq].text_n - 1);
        views[i] = h->view[seq];
    }
    const hunch_status st = hn_head_pass_run(h, p, &options, err);
    for (int i = 0; i < p->n_seqs; i++) hn_cache_view_release(h->cache, h->view[p->cache_seq[i]]);
    return st;
}
