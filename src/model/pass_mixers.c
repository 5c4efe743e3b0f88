/* SPDX-License-Identifier: Apache-2.0 */
/* pass_mixers.c - the half of a layer in which rows read others: its input, its mixers one after another, and what follows their sum. */
#include "model/mixers.h"
#include "model/pass_private.h"

/* Where rows find what a mixer keeps. */
static hn_kept kept_at(const hn_runner *r, hn_kept_place place) {
    const hn_pass_groups *g = &r->groups;
    hn_kept k = {.rows = &r->rows.group[place.group]};
    const int group = g->first + place.group;
    const hn_cache_kind kind = g->kind[place.group];
    if (kind == HN_CACHE_KV) {
        k.kv = hn_cache_kv(g->cache, group, place.index);
        return k;
    }
    const hn_plain_units units = hn_cache_units(g->cache, group, place.index);
    const size_t page = hn_cache_page_bytes(g->cache);
    if (kind == HN_CACHE_ROWS)
        k.inputs = (hn_input_pages){hn_cache_pool(g->cache), k.rows->page_table, page, units.row_bytes, units.off, units.page_rows,
                                    k.rows->page_stride};
    else
        k.states = (hn_state_pages){hn_cache_pool(g->cache), k.rows->page_table, r->walk.next_state[place.group], page, units.unit_bytes,
                                    units.first, hn_cache_page_units(g->cache, group), k.rows->page_stride};
    return k;
}

/* The input of all mixers. */
static void input(const hn_exec *ex, const hn_runner *r, int i, const hn_head_conv *conv, hn_act in) {
    const hn_model *m = r->m;
    const hn_layer_desc *d = &m->run.at[i];
    const hn_pass_buffers *s = &r->buf;
    if (conv)
        hn_layer_conv_in(ex, m, conv, &m->layer[i].attn_norm, in, s);
    else
        hn_layer_read(ex, s->rows->n, hn_layer_reads_pair(d) ? s->pair : s->x, &m->layer[i].attn_norm, in);
}

void hn_pass_mix(const hn_exec *ex, const hn_runner *r, int i) {
    const hn_model *m = r->m;
    const hn_layer *l = &m->layer[i];
    const hn_layer_desc *d = &m->run.at[i];
    const hn_pass_buffers *s = &r->buf;
    const hn_layer_place *place = &r->groups.place[i];
    const hn_head_conv *conv = m->head.conv ? &m->head.conv[2 * i] : NULL;
    const int n = hn_layer_mixers(d);
    if (n == 0) return;
    const bool branch = d->post_norms || conv, context = r->head.context && d->mixer[0].kind->context;
    hn_mixing x;
    x.m = m;
    x.layer = i;
    x.d = d;
    x.in = hn_act_of(s->in, hn_layer_reads_pair(d) ? 2 * m->arch.hidden : m->arch.hidden, l->attn_forms);
    x.to = branch ? s->branch : s->x;
    x.add = !branch;
    x.walk = &r->walk.at;
    x.grid = &r->grid.at;
    x.s = s;
    if (!context) input(ex, r, i, conv, x.in);
    for (int k = 0, at = 0; k < n; k++, x.add = true) {
        x.own = &d->mixer[k];
        x.weights = l->own[k];
        x.times = hn_branch_times(&m->arch, x.own->times);
        for (int e = 0; e < place->n[k]; e++, at++) x.kept[e] = kept_at(r, place->kept[at]);
        (context ? x.own->kind->context : x.own->kind->run)(ex, &x);
    }
    if (context) return;
    if (conv) hn_layer_conv_out(ex, m, conv, s);
    if (d->post_norms) ex->ops->norm_add(ex, s->rows->n, s->branch, &l->post_attn_norm, 1, s->x);
}
