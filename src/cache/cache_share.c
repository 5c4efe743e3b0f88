/* SPDX-License-Identifier: Apache-2.0 */
/* cache_share.c - texts and the prefix index: entering the pages of sequences, restoring sequences from it.
 *
 * Equal text gives equal rows, bit for bit (contract C2), so a sequence whose text is in the index replaces its own page by
 * the one there.
 *
 * See cache_index.c for what is where in the index. */
#include <assert.h>

#include "cache/cache_private.h"

/* ---- publish --------------------------------------------------------------------------------------------------- */

/* Enters a page of a table into its slot of a node, or replaces it by the page there. */
static void share_page(hn_cache *c, int32_t *mine, hn_prefix_node *b, int slot) {
    const int32_t there = b->page[slot];
    if (there == HN_NO_PAGE) {
        hn_page_enter(c, *mine, b, slot);
    } else if (there != *mine) {
        hn_page_take(c, there);
        hn_page_release(c, *mine);
        *mine = there;
    }
}

/* Enters page i of the sequence, which belongs to node b; a released page is skipped. */
static void enter_page(hn_cache *c, hn_seq *s, int group, int i, hn_prefix_node *b) {
    if (i >= s->first[group]) share_page(c, &s->pages[group][i], b, hn_slot_of_page(c, group, i));
    s->published[group]++;
}

/* A full page that several tables share since the index was cleared does not create a node: only one of these tables would
 * have the pages of the nodes before it, and hn_cache_evict relies on all having them. */
static void publish_nodes(hn_cache *c, hn_seq *s, const int32_t *text, int rows) {
    const int node_rows = c->prefix.node_rows;
    while ((s->published[0] + 1) * node_rows <= rows) {
        const int i = s->published[0];
        const int32_t *token = text + (size_t)i * (size_t)node_rows;
        hn_prefix_node *b = hn_prefix_child(&c->prefix, s->salt, s->node, token);
        if (!b && (c->group[0].window || c->use[s->pages[0][i]].tables == 1))
            b = hn_prefix_add(&c->prefix, s->salt, s->node, token, node_rows);
        if (!b) return;
        enter_page(c, s, 0, i, b);
        hn_cache_set_last_node(c, s, b);
    }
}

/* The pages of a model's groups behind group 0, as far as the text's nodes go. */
static void publish_rows(hn_cache *c, hn_seq *s, int model_id, int rows) {
    bool path = false;
    int states = 0;
    rows = hn_least(hn_least(rows, s->committed[model_id]), s->published[0] * c->prefix.node_rows);
    for (int g = 1; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        if (c->group[g].kind == HN_CACHE_STATE) {
            if (states++ == 0) hn_state_publish(c, s, model_id);
            continue;
        }
        while ((s->published[g] + 1) * c->group[g].page_rows <= rows) {
            if (!path) hn_path_fill(c, s->node);
            path = true;
            const int i = s->published[g];
            enter_page(c, s, g, i, c->path[hn_node_of_page(c, g, i)]);
        }
    }
    hn_saved_update(c, s, model_id);
}

void hn_cache_publish(hn_cache *c, int seq, const int32_t *text, const int *valid) {
    hn_seq *s = &c->seq[seq];
    assert(s->live);
    publish_nodes(c, s, text, hn_least(valid[0], s->committed[0]));
    for (int model_id = 0; model_id <= c->group[c->n_groups - 1].model_id; model_id++) publish_rows(c, s, model_id, valid[model_id]);
}

void hn_cache_publish_rows(hn_cache *c, int seq, int model_id) {
    assert(c->seq[seq].live && model_id > 0);
    publish_rows(c, &c->seq[seq], model_id, c->seq[seq].committed[model_id]);
}

/* ---- the end of a text ---------------------------------------------------------------------------------------------- */

enum { MOST_LEAVES = 256 }; /* after one node: each is looked at when a text is restored */

/* Tables keep those of its pages that they use. */
static void leaf_drop(hn_cache *c, hn_prefix_node *b) {
    for (int i = 0; i < c->prefix.n_slots; i++) hn_node_drop_page(c, b, i);
    hn_prefix_remove(&c->prefix, b);
}

/* Enters the model's pages with rows after the last full node. */
static void leaf_fill(hn_cache *c, hn_seq *s, hn_prefix_node *b, int model_id, int rows) {
    const int begin = b->depth * c->prefix.node_rows;
    b->rows[model_id] = rows;
    for (int g = 0; g < c->n_groups && rows > begin; g++) {
        if (c->group[g].model_id != model_id) continue;
        const int first = begin / c->group[g].page_rows;
        for (int i = first > s->first[g] ? first : s->first[g]; i < hn_pages_of(c, g, rows); i++)
            hn_page_enter(c, s->pages[g][i], b, hn_slot_of_page(c, g, i));
    }
}

void hn_cache_publish_end(hn_cache *c, int seq, const int32_t *text, const int *valid) {
    hn_seq *s = &c->seq[seq];
    hn_cache_publish(c, seq, text, valid);
    const int rows = hn_least(valid[0], s->committed[0]), begin = s->published[0] * c->prefix.node_rows, n = rows - begin;
    int same;
    if (c->states[0] || n < 1 || n >= c->prefix.node_rows) return;
    if (!c->group[0].window && c->use[s->pages[0][s->published[0]]].tables > 1) return; /* as publish_nodes */
    hn_prefix_node *old = hn_prefix_leaf(&c->prefix, s->salt, s->node, text + begin, n, &same);
    if (old && same == n && old->n > n) return; /* the index has more */
    hn_prefix_node *b = hn_prefix_add(&c->prefix, s->salt, s->node, text + begin, n);
    if (!b) return;
    for (int model_id = 0; model_id <= c->group[c->n_groups - 1].model_id; model_id++)
        if (!c->states[model_id]) leaf_fill(c, s, b, model_id, hn_least(rows, hn_least(valid[model_id], s->committed[model_id])));
    if (old && same == old->n) leaf_drop(c, old); /* the new one has all of it */
    hn_prefix_node *oldest = hn_prefix_leaf_beyond(&c->prefix, s->salt, s->node, MOST_LEAVES);
    if (oldest) leaf_drop(c, oldest);
}

/* ---- restore --------------------------------------------------------------------------------------------------- */

void hn_cache_seq_salt(hn_cache *c, int seq, uint64_t salt) {
    assert(c->seq[seq].live && !c->seq[seq].node);
    c->seq[seq].salt = salt;
}

int hn_cache_node_rows(const hn_cache *c) {
    return c->prefix.node_rows;
}

int hn_cache_step(const hn_cache *c) {
    int step = 0;
    for (int g = 0; g < c->n_groups && c->group[g].model_id == 0; g++)
        step = c->group[g].page_rows > step ? c->group[g].page_rows : step;
    return step;
}

/* The nodes of the index which a text of this salt begins with, in c->path; returns how many of its tokens they have. */
static int find_path(hn_cache *c, uint64_t salt, const int32_t *text, int n) {
    const int node_rows = c->prefix.node_rows, most = hn_least(n, c->rows);
    hn_prefix_node *last = NULL;
    int rows = 0, same = 0;
    for (hn_prefix_node *b; rows + node_rows <= most; rows += node_rows, last = b) {
        b = hn_prefix_child(&c->prefix, salt, last, text + rows);
        if (!b) break;
        c->path[b->depth] = b;
    }
    c->leaf = rows < most ? hn_prefix_leaf(&c->prefix, salt, last, text + rows, most - rows, &same) : NULL;
    return rows + same;
}

int hn_cache_restore(hn_cache *c, int seq, const int32_t *text, int n) {
    hn_seq *s = &c->seq[seq];
    const int node_rows = c->prefix.node_rows, less = hn_cache_recompute(c);
    assert(s->live);
    for (int g = 0; g < c->n_groups; g++) assert(s->n_pages[g] == 0);
    const int rows = hn_target_rows_present(c, find_path(c, s->salt, text, n), less);
    for (int g = 0, model_id = -1; g < c->n_groups; g++) {
        if (c->group[g].model_id == model_id) continue;
        model_id = c->group[g].model_id;
        hn_take_rows(c, s, model_id, model_id ? hn_model_rows_present(c, model_id, rows, 0) : rows, model_id ? 0 : less);
    }
    hn_cache_set_last_node(c, s, rows >= node_rows ? c->path[rows / node_rows - 1] : NULL);
    if (hn_path_last(c, rows) == c->leaf) hn_prefix_touch(&c->prefix, c->leaf);
    return rows && less ? hn_cache_rewind(c, seq, 0, rows - less) : rows;
}

/* The pages of a group that a text continues from at the end of `rows` rows were used now, those of all rows by hn_prefix_touch. */
static void touch_pages(hn_cache *c, int group, int rows, int less) {
    const hn_prefix_node *last = hn_path_last(c, rows);
    const uint64_t now = ++c->prefix.clock;
    if (c->group[group].kind == HN_CACHE_STATE)
        for (int i = c->first_slot[group]; i < c->first_slot[group + 1]; i++) hn_page_idle_since(c, last->page[i], now);
    else if (c->group[group].window)
        for (int i = hn_first_page(c, group, hn_needed_from(c, group, rows, less)); i < hn_pages_of(c, group, rows); i++)
            hn_page_idle_since(c, hn_path_page(c, group, i), now);
}

void hn_cache_touch(hn_cache *c, uint64_t salt, const int32_t *text, int n) {
    const int less = hn_cache_recompute(c);
    const int all = hn_target_rows_present(c, find_path(c, salt, text, n), less);
    if (all > 0) hn_prefix_touch(&c->prefix, hn_path_last(c, all));
    for (int g = 0; g < c->n_groups; g++) {
        const int model_id = c->group[g].model_id, rows = model_id ? hn_model_rows_present(c, model_id, all, 0) : all;
        if (rows > 0) touch_pages(c, g, rows, model_id ? 0 : less);
    }
}

/* ---- clear ----------------------------------------------------------------------------------------------------- */

void hn_cache_index_clear(hn_cache *c) {
    for (int s = 0; s < c->max_seqs; s++) hn_cache_unpublish(c, &c->seq[s], 0, 0);
    for (hn_prefix_node *b = c->prefix.oldest; b; b = b->newer)
        for (int i = 0; i < c->prefix.n_slots; i++) hn_node_drop_page(c, b, i);
    hn_prefix_clear(&c->prefix);
}
