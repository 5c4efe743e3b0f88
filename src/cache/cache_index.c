/* SPDX-License-Identifier: Apache-2.0 */
/* cache_index.c - the pages in the prefix index: which rows of a text it has, taking them into a table or back, leaving it, eviction.
 *
 * A node of the index is as long as a page of group 0 and exists as long as that page is in it. Pages of the other groups
 * belong to the node in which they end:
 *
 *   group 0      | node 0 | node 1 | node 2 | node 3 |
 *   larger page  |                              page 0   |     slot of node 3
 *   smaller      |  0 |  1 |  2 |  3 |  4 |  5 |  6 |  7 |     two slots in every node
 *
 * A leaf (prefix.h) has the pages with the rows after the last full node, also those that would end in a later one: at most one of a
 * group with pages larger than a node, which then may begin before the leaf.
 *
 * Pages of window groups are entered like all others, when they become full. When a table releases one, the index keeps it,
 * idle: a later text that branches from this one near there needs it. So the slots of window groups may be empty anywhere,
 * and if the target has only window groups so may whole nodes, which then represent their text only:
 *
 *   node        | 0 | 1 | 2 | 3 | 4 | 5 |     a text may continue from the end of node 5, and of node 1; not of 4,
 *   full group   | x | x | x | x | x | x |     where the window of 100 rows (nodes of 64) reaches back to node 3
 *   window group | x | x |   |   | x | x |
 */
#include <assert.h>

#include "cache/cache_private.h"

/* ---- rows of a text --------------------------------------------------------------------------------------------- */

void hn_path_fill(hn_cache *c, hn_prefix_node *b) {
    c->leaf = NULL;
    for (; b; b = b->parent) c->path[b->depth] = b;
}

int32_t hn_path_page(const hn_cache *c, int group, int i) {
    const int depth = hn_node_of_page(c, group, i), slot = hn_slot_of_page(c, group, i);
    return (c->leaf && depth >= c->leaf->depth ? c->leaf : c->path[depth])->page[slot];
}

hn_prefix_node *hn_path_last(const hn_cache *c, int rows) {
    const int nodes = rows / c->prefix.node_rows;
    if (c->leaf && rows > c->leaf->depth * c->prefix.node_rows) return c->leaf;
    return nodes > 0 ? c->path[nodes - 1] : NULL;
}

static bool page_present(const hn_cache *c, int group, int i) {
    return hn_path_page(c, group, i) != HN_NO_PAGE;
}

/* The row whose window a model needs at the end of its rows: the next one; for rows that are absorbed into a state, the one after
 * that state. */
int hn_needed_from(const hn_cache *c, int group, int rows, int less) {
    const int model_id = c->group[group].model_id, node_rows = c->prefix.node_rows;
    const bool absorbed = c->group[group].kind == HN_CACHE_ROWS && c->states[model_id];
    if (!absorbed || rows == 0 || rows % node_rows) return rows - less;
    const hn_prefix_node *b = c->path[rows / node_rows - 1];
    return hn_node_has_state(c, b, model_id) ? hn_least(b->absorbed[model_id], rows - less) : rows - less;
}

/* The last row, at `rows` at most, after which a text may continue: the end of a page; in a leaf each row that the model had, unless the
 * model computes several rows before it again, which must be in one page. */
static int last_boundary(const hn_cache *c, int group, int rows) {
    const int begin = c->leaf ? c->leaf->depth * c->prefix.node_rows : rows;
    if (rows > begin && c->leaf->rows[c->group[group].model_id] > begin) {
        rows = hn_least(rows, c->leaf->rows[c->group[group].model_id]);
        if (c->group[group].recompute <= 1) return rows;
    }
    return rows - rows % c->group[group].page_rows;
}

/* The last boundary, at `rows` at most, for which the index has all pages that the group needs to continue there, and those that the
 * row `less` before it sees. */
static int group_rows_present(const hn_cache *c, int group, int rows, int less) {
    if (c->group[group].kind == HN_CACHE_STATE) {
        int n = rows / c->prefix.node_rows;
        while (n > 0 && !hn_node_has_state(c, c->path[n - 1], c->group[group].model_id)) n--;
        return n * c->prefix.node_rows;
    }
    const int page_rows = c->group[group].page_rows;
    rows = last_boundary(c, group, rows);
    if (c->group[group].window) {
        for (int i = hn_pages_of(c, group, rows) - 1; i >= hn_first_page(c, group, hn_needed_from(c, group, rows, less)); i--)
            if (!page_present(c, group, i)) rows = i * page_rows;
        return rows;
    }
    int n = 0;
    while (n * page_rows < rows && page_present(c, group, n)) n++;
    return hn_least(rows, n * page_rows);
}

/* The same for all groups of a model, in the nodes of c->path. */
int hn_model_rows_present(const hn_cache *c, int model_id, int rows, int less) {
    for (int before = -1; before != rows;) {
        before = rows;
        for (int g = 0; g < c->n_groups; g++)
            if (c->group[g].model_id == model_id) rows = group_rows_present(c, g, rows, less);
    }
    return rows;
}

/* The same for the target and all models with `recompute`. */
int hn_target_rows_present(const hn_cache *c, int rows, int less) {
    for (int before = -1; before != rows;) {
        before = rows = hn_model_rows_present(c, 0, rows, less);
        for (int g = 0; g < c->n_groups; g++)
            if (c->group[g].recompute) rows = hn_model_rows_present(c, c->group[g].model_id, rows, 0);
    }
    return rows;
}

/* The table takes pages [first, end) of a group from the nodes of c->path. */
static void take_pages(hn_cache *c, hn_seq *s, int group, int first, int end) {
    for (int i = first; i < end; i++) {
        s->pages[group][i] = hn_path_page(c, group, i);
        hn_page_take(c, s->pages[group][i]);
    }
}

/* The table takes the state at the end of these rows. */
static void take_state(hn_cache *c, hn_seq *s, int group, int rows) {
    const hn_prefix_node *b = rows ? c->path[rows / c->prefix.node_rows - 1] : NULL;
    for (int i = 0; b && i < hn_pages_of(c, group, rows); i++) {
        s->pages[group][i] = b->page[c->first_slot[group] + i];
        hn_page_take(c, s->pages[group][i]);
    }
    s->n_pages[group] = hn_pages_of(c, group, rows);
    const int model_id = c->group[group].model_id;
    s->absorbed[model_id] = b ? b->absorbed[model_id] : 0;
}

void hn_take_rows(hn_cache *c, hn_seq *s, int model_id, int rows, int less) {
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        if (c->group[g].kind == HN_CACHE_STATE) {
            take_state(c, s, g, rows);
            continue;
        }
        const int first = hn_first_page(c, g, hn_needed_from(c, g, rows, less)), n = hn_pages_of(c, g, rows);
        const int in_nodes = c->leaf ? hn_least(rows, c->leaf->depth * c->prefix.node_rows) : rows;
        for (int i = 0; i < first; i++) s->pages[g][i] = HN_NO_PAGE;
        take_pages(c, s, g, first, n);
        s->first[g] = first;
        s->n_pages[g] = n;
        s->published[g] = in_nodes / c->group[g].page_rows;
    }
    s->committed[model_id] = rows;
}

int hn_cache_reclaim(hn_cache *c, hn_seq *s, int model_id, int rows) {
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].model_id == model_id && c->group[g].kind != HN_CACHE_STATE)
            rows = hn_least(rows, s->published[g] * c->group[g].page_rows);
    hn_path_fill(c, s->node);
    rows = hn_model_rows_present(c, model_id, rows, 0);
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        if (c->group[g].kind == HN_CACHE_STATE) {
            while (s->n_pages[g] > 0) hn_page_release(c, s->pages[g][--s->n_pages[g]]);
            take_state(c, s, g, rows);
            continue;
        }
        const int first = hn_first_page(c, g, hn_needed_from(c, g, rows, 0));
        if (first >= s->first[g]) continue;
        take_pages(c, s, g, first, hn_least(s->first[g], rows / c->group[g].page_rows));
        s->first[g] = first;
    }
    return rows;
}

/* ---- leaving the index ------------------------------------------------------------------------------------------ */

void hn_cache_unpublish(hn_cache *c, hn_seq *s, int model_id, int rows) {
    if (model_id == 0) rows -= rows % c->prefix.node_rows; /* the text may branch inside the node */
    for (int g = 0; g < c->n_groups; g++)
        if (model_id == 0 || c->group[g].model_id == model_id)
            s->published[g] = hn_least(s->published[g], rows / c->group[g].page_rows);
    for (int o = 0; o < HN_MAX_MODELS; o++)
        if (s->saved_node[o] && s->saved_node[o]->depth >= s->published[0])
            hn_saved_release(c, s, o, s->saved_since[o]);
    hn_prefix_node *b = s->node;
    while (b && b->depth >= s->published[0]) b = b->parent;
    hn_cache_set_last_node(c, s, b);
}

/* ---- eviction --------------------------------------------------------------------------------------------------- */

static bool is_idle(const hn_cache *c, int32_t page) {
    return page != HN_NO_PAGE && c->use[page].tables == 0;
}

/* Evicts the page of a slot, or all of the node (slot -1), and removes the node if it is empty. */
static void evict(hn_cache *c, hn_prefix_node *b, int slot) {
    for (int g = 0; g < c->n_groups && slot >= 0; g++) /* a state is evicted as a whole */
        if (c->group[g].kind == HN_CACHE_STATE && slot >= c->first_slot[g] && slot < c->first_slot[g + 1])
            hn_state_drop(c, b, c->group[g].model_id);
    for (int i = 0; i < c->prefix.n_slots; i++)
        if (slot < 0 || i == slot) hn_node_drop_page(c, b, i);
    hn_node_prune(c, b);
}

/* Ends of texts are evicted as whole nodes, if no table has their page of the target. */
static bool may_go(const hn_cache *c, const hn_prefix_node *b) {
    if (!b->is_end || (b->page[0] != HN_NO_PAGE && !is_idle(c, b->page[0]))) return false;
    for (int i = 0; i < c->prefix.n_slots; i++)
        if (is_idle(c, b->page[i])) return true;
    return false;
}

/* The end of a text that was used last the longest ago; NULL: none may go. */
static hn_prefix_node *oldest_end(const hn_cache *c) {
    hn_prefix_node *b = c->prefix.oldest_end;
    while (b && !may_go(c, b)) b = b->newer_end;
    return b;
}

/* Of a group's idle pages, since before a time, the one that has been idle longest, if it is not part of an end that may go as a whole. */
static int32_t oldest_page(const hn_cache *c, int group, uint64_t before) {
    int32_t page = c->idle[group].oldest;
    while (page != HN_NO_PAGE && c->use[page].idle_since < before && may_go(c, c->use[page].node)) page = c->use[page].newer;
    return page != HN_NO_PAGE && c->use[page].idle_since < before ? page : HN_NO_PAGE;
}

/* Of the pages that have been idle longest in each group the last of the text that was used longest ago. */
static int32_t last_of_drafters(const hn_cache *c) {
    int32_t best = HN_NO_PAGE;
    for (int g = 0; g < c->n_groups; g++) {
        const int32_t page = c->idle[g].oldest;
        const hn_page_use *u = page != HN_NO_PAGE ? &c->use[page] : NULL;
        if (u && (best == HN_NO_PAGE || u->node->used <= c->use[best].node->used)) best = page;
    }
    return best;
}

/* Least recently used first. So an ended text loses its end before its beginning, and before both the pages that its windows
 * had passed: these have been idle longer, unless other texts branched from this one there.
 *
 * If a node's full page of the target is idle, those after it are idle too (a table has all pages before its last), so every
 * such node becomes a leaf in its turn; a drafter that has not been rewound with the target yet keeps its own page there.
 * Other idle pages are full pages of drafters in nodes that a sequence uses. */
void hn_cache_evict(hn_cache *c) {
    hn_prefix_node *end = oldest_end(c);
    int32_t page = HN_NO_PAGE;
    for (int g = 0; g < c->n_groups; g++) { /* pages that windows have passed, and states */
        if (!c->group[g].window && c->group[g].kind != HN_CACHE_STATE) continue;
        const int32_t p = oldest_page(c, g, page != HN_NO_PAGE ? c->use[page].idle_since : end ? end->used : UINT64_MAX);
        if (p != HN_NO_PAGE) page = p;
    }
    if (!end && page == HN_NO_PAGE) page = last_of_drafters(c);
    assert((end || page != HN_NO_PAGE) && "no idle page");
    if (page != HN_NO_PAGE)
        evict(c, c->use[page].node, c->use[page].slot);
    else
        evict(c, end, -1);
}
