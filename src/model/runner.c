/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c - opens and closes a runner: what it needs of the model and the cache, and the memory that its passes write. Its buffers:
 * runner_buffers.c; its passes: pass.c. */
#include <assert.h>
#include <string.h>

#include "base/least.h"
#include "base/mem.h"
#include "model/mixers.h"
#include "model/pass_private.h"

/* The page tables of group g of the model. */
static hunch_status open_table(hn_runner *r, int g, hunch_error *err) {
    assert(hn_cache_model_id(r->groups.cache, r->groups.first + g) == r->groups.model_id);
    r->rows.group[g].page_stride = hn_cache_table_stride(r->groups.cache, r->groups.first + g);
    const size_t table = (size_t)r->rows.group[g].page_stride * (size_t)r->rows.max_texts;
    r->rows.table[g] = hn_zalloc(table, sizeof *r->rows.table[g]);
    const bool states = hn_cache_kind_of(r->groups.cache, r->groups.first + g) == HN_CACHE_STATE;
    r->groups.kind[g] = hn_cache_kind_of(r->groups.cache, r->groups.first + g);
    if (states) r->walk.next_table[g] = hn_zalloc(table, sizeof *r->walk.next_table[g]);
    return r->rows.table[g] && (!states || r->walk.next_table[g])
               ? HUNCH_OK
               : hn_fail_memory(err, "page tables", table * sizeof *r->rows.table[g]);
}

/* Those of another model's groups that its layers read. */
static hunch_status open_borrowed(hn_runner *r, const hn_layer_place *place, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    r->groups.borrowed = true;
    for (int i = 0; i < r->m->run.n; i++) {
        const int window = r->m->run.at[i].window, group = place[i].kept[0].group;
        r->groups.place[i] = place[i];
        r->groups.read |= 1u << group;
        r->groups.n = hn_most(r->groups.n, group + 1);
        if (window > 0) r->groups.window = r->groups.window > 0 ? hn_least(r->groups.window, window) : window;
    }
    for (int g = 0; !st && g < r->groups.n; g++)
        if (r->groups.read >> g & 1) st = open_table(r, g, err);
    return st;
}

/* The lists of what its layers with states do: a walk, or states on a grid of positions. No model has both. */
static hunch_status open_states(hn_runner *r, hunch_error *err) {
    const size_t cells = (size_t)hn_grid_most_cells(r), steps = hn_walk_most_steps(r);
    bool grid = false;
    for (int i = 0; i < r->m->run.n; i++)
        for (int k = 0; k < hn_layer_mixers(&r->m->run.at[i]); k++) grid |= r->m->run.at[i].mixer[k].kind->grid;
    if (!grid) r->walk.step = hn_zalloc(steps, sizeof *r->walk.step);
    if (grid) r->grid.cell = hn_zalloc(cells, sizeof *r->grid.cell);
    if (grid) r->grid.slot = hn_zalloc(cells * HN_GRID, sizeof *r->grid.slot);
    if (grid) r->grid.row = hn_zalloc((size_t)r->rows.max, sizeof *r->grid.row);
    return (grid ? r->grid.cell && r->grid.slot && r->grid.row : r->walk.step != NULL)
               ? HUNCH_OK
               : hn_fail_memory(err, "a walk", grid ? cells * sizeof *r->grid.cell : steps * sizeof *r->walk.step);
}

/* The model's groups in the cache start at first_group, each with its own page table. place: NULL, or those of the layers of another model,
 * whose groups these are. */
static hunch_status open_tables(hn_runner *r, int first_group, const hn_layer_place *place, hunch_error *err) {
    hn_cache_group group[HN_MODEL_GROUPS];
    r->groups.place = hn_zalloc((size_t)r->m->arch.layers + 1, sizeof *r->groups.place); /* a head may have none */
    r->rows.image = hn_zalloc(1, hn_image_bytes(r->rows.path_room));
    if (!r->groups.place || !r->rows.image) return hn_fail_memory(err, "row tables", hn_image_bytes(r->rows.path_room));
    r->groups.first = first_group;
    if (place) r->groups.model_id = hn_cache_model_id(r->groups.cache, first_group);
    if (place) return open_borrowed(r, place, err);
    r->groups.n = hn_kv_groups(r->m->run, HN_F32, group, r->groups.place);
    assert(r->groups.n > 0 || r->m->arch.layers == 0);
    if (r->groups.n > 0) r->groups.model_id = hn_cache_model_id(r->groups.cache, first_group);
    for (int g = 0; g < r->groups.n; g++) {
        if (group[g].kind == HN_CACHE_ROWS) r->groups.taps = hn_most(r->groups.taps, group[g].window);
        hunch_status st = group[g].kind == HN_CACHE_STATE && !hn_runner_has_states(r) ? open_states(r, err) : HUNCH_OK;
        if (!st) st = open_table(r, g, err);
        if (st) return st;
    }
    return HUNCH_OK;
}

static const hn_pass_sizes usual_sizes = {HN_MAX_ROWS, HN_MAX_ROWS, HN_MAX_ROWS, 1};

/* Entries for the paths of a tree of HN_MAX_ROWS rows, including draft rows, or of one or more chains of max_rows rows in all. */
static int most_paths(int max_rows) {
    const int tree = HN_MAX_ROWS * HN_MAX_ROWS, chain = max_rows * (max_rows + 1) / 2;
    return hn_most(tree, chain);
}

/* What a runner is opened with beside its model and its cache. */
typedef struct runner_needs {
    int first_group, max_context;
    hn_pass_sizes most;
    const hn_feature_set *set;    /* NULL: none */
    hn_head_stores stores;
    const hn_layer_place *place;  /* of a runner that borrows; else NULL */
} runner_needs;

static hunch_status runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, const runner_needs *needs, hunch_error *err) {
    const hn_feature_set *set = needs->set;
    const hn_head_stores *stores = &needs->stores;
    *out = NULL;
    hn_runner *r = hn_zalloc(1, sizeof *r);
    if (!r) return hn_fail_memory(err, "runner", sizeof *r);
    r->m = m;
    r->groups.cache = cache;
    r->rows.max = needs->most.rows;
    r->rows.max_texts = needs->most.texts;
    r->out.max_logits = needs->most.logits;
    r->out.rows = (set && set->post_norm) || stores->features ? needs->most.rows : needs->most.logits;
    r->max_context = needs->max_context;
    r->rows.path_room = most_paths(needs->most.rows);
    r->head.store_rows = stores->features;
    r->head.output_rows = stores->outputs;
    r->out.best.k = stores->best;
    if (set) r->features.set = *set;
    for (int k = 0; k <= 256; k++)
        r->features.slot[k] = k <= m->arch.layers && hn_feature_wants(&r->features.set, k) ? r->features.n_boundaries++ : -1;
    hunch_status st = open_tables(r, needs->first_group, needs->place, err);
    if (!st) st = hn_one_wait_open(r, err);
    if (!st) st = hn_buf_room_open(&r->buffers, m->backend, hn_runner_list_buffers, r, err);
    if (st) {
        hn_runner_close(&r);
        return st;
    }
    for (int i = 0; i < HN_PASS_ROWS; i++) r->rows.image->each[i] = i;
    st = hn_told_open(r, err);
    if (st) {
        hn_runner_close(&r);
        return st;
    }
    *out = r;
    return HUNCH_OK;
}

hunch_status hn_runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                            const hn_feature_set *features, hunch_error *err) {
    return hn_runner_open_for(out, m, cache, first_group, max_context, &usual_sizes, features, err);
}

hunch_status hn_runner_open_for(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                                const hn_pass_sizes *most, const hn_feature_set *features, hunch_error *err) {
    const runner_needs needs = {first_group, max_context, *most, features, {0, 0, most->best}, NULL};
    assert(!hn_arch_is_head(&m->arch) && most->texts >= HN_MAX_ROWS && most->texts <= HN_MAX_TEXTS);
    assert(most->logits >= HN_MAX_ROWS && most->logits <= most->rows && most->rows <= HN_PASS_ROWS);
    assert(most->best >= 1 && most->best <= HN_MAX_TOP);
    return runner_open(out, m, cache, &needs, err);
}

hunch_status hn_runner_open_head(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                                 const hn_head_stores *stores, hunch_error *err) {
    assert(hn_arch_is_head(&m->arch) && stores->features > 0 && stores->outputs > 0 && stores->best > 0);
    const runner_needs needs = {first_group, max_context, usual_sizes, NULL, *stores, NULL};
    hunch_status st = runner_open(out, m, cache, &needs, err);
    if (!st) st = hn_places_open(*out, stores->outputs, err);
    if (st && *out) hn_runner_close(out);
    return st;
}

hunch_status hn_runner_open_borrowed(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, const hn_layer_place *place,
                                     const hn_head_stores *stores, int max_context, hunch_error *err) {
    const runner_needs needs = {first_group, max_context, usual_sizes, NULL, stores ? *stores : (hn_head_stores){0, 0, 1}, place};
    assert(m->arch.layers > 0 && hn_arch_is_head(&m->arch) == (stores != NULL));
    if (hn_cache_told_id(cache) > 0)
        return hn_fail(err, HUNCH_REFUSED, "drafts from keys and values of the model, which ranks divide: run it without mpirun");
    return runner_open(out, m, cache, &needs, err);
}

void hn_runner_set_ops(hn_runner *r, const hn_ops *o) {
    r->ops = o;
}

void hn_runner_close(hn_runner **rp) {
    hn_runner *r = *rp;
    *rp = NULL;
    if (!r) return;
    hn_told_close(r);
    hn_places_close(r);
    hn_one_wait_close(r);
    hn_buf_room_close(&r->buffers);
    for (int g = 0; g < HN_MODEL_GROUPS; g++) {
        hn_free(r->rows.table[g]);
        hn_free(r->walk.next_table[g]);
    }
    hn_free(r->walk.step);
    hn_free(r->grid.cell);
    hn_free(r->grid.slot);
    hn_free(r->grid.row);
    hn_free(r->rows.image);
    hn_free(r->groups.place);
    hn_free(r);
}
