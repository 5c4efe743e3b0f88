/* SPDX-License-Identifier: Apache-2.0 */
/* cache_states.c - states of recurrent layers in the prefix index: which are kept, and which a sequence holds.
 *
 * A running text holds the pages that it would continue from if it lost its place: the newest state of its text, and the rows that
 * this state needs. They are no idle pages, so other texts' rows do not replace them before this text is preempted; their room
 * is that of the group's `kept` states. Preempted texts have no sequence: hn_cache_touch says that they still wait.
 *
 *   states of a text   | 16 |        | 24 |   | 28 | 29 | 30 |     number of the node
 *                        idle, evicted as all idle pages    held
 */
#include <assert.h>

#include "cache/cache_private.h"

/* ---- states of nodes ----------------------------------------------------------------------------------------- */

static bool is_state(const hn_cache *c, int group, int model_id) {
    return c->group[group].model_id == model_id && c->group[group].kind == HN_CACHE_STATE;
}

/* The first group of a model's state, which stands for all; -1: it has none. */
static int state_group(const hn_cache *c, int model_id) {
    for (int g = 0; g < c->n_groups && c->states[model_id]; g++)
        if (is_state(c, g, model_id)) return g;
    return -1;
}

bool hn_node_has_state(const hn_cache *c, const hn_prefix_node *b, int model_id) {
    for (int g = 0; g < c->n_groups; g++)
        for (int i = c->first_slot[g]; i < c->first_slot[g + 1] && is_state(c, g, model_id); i++)
            if (b->page[i] == HN_NO_PAGE) return false;
    return c->states[model_id];
}

void hn_state_drop(hn_cache *c, hn_prefix_node *b, int model_id) {
    for (int g = 0; g < c->n_groups; g++)
        for (int i = c->first_slot[g]; i < c->first_slot[g + 1] && is_state(c, g, model_id); i++) hn_node_drop_page(c, b, i);
}

static bool state_in_use(const hn_cache *c, const hn_prefix_node *b, int model_id) {
    return c->use[b->page[c->first_slot[state_group(c, model_id)]]].tables > 0;
}

int hn_cache_states_kept(const hn_cache *c, int group) {
    return c->state_pages[group] / hn_pages_of(c, group, 1);
}

/* ---- held by a sequence --------------------------------------------------------------------------------------- */

int hn_saved_pages(const hn_cache *c, int group) {
    const hn_cache_group *d = &c->group[group];
    if (!c->states[d->model_id]) return 0;
    if (d->kind == HN_CACHE_STATE) return hn_pages_of(c, group, 1);
    return d->window ? (d->window - 1 + HN_MAX_ROWS + d->page_rows - 1) / d->page_rows + 1 : 0;
}

void hn_saved_release(hn_cache *c, hn_seq *s, int model_id, uint64_t since) {
    s->saved_node[model_id] = NULL;
    for (int g = 0; g < c->n_groups; g++) {
        while (c->group[g].model_id == model_id && s->n_saved[g] > 0) {
            const int32_t page = s->saved[g][--s->n_saved[g]];
            hn_page_release(c, page);
            hn_page_idle_since(c, page, since);
        }
    }
}

/* Collects the pages of a group which a text needs to continue at the end of node b. False: the index lacks one. */
static bool collect_saved(const hn_cache *c, hn_seq *s, int group, const hn_prefix_node *b) {
    const int model_id = c->group[group].model_id, end = (b->depth + 1) * c->prefix.node_rows;
    const int less = model_id ? 0 : hn_cache_recompute(c);
    int32_t *to = s->saved[group];
    int n = 0;
    if (c->group[group].kind == HN_CACHE_STATE)
        for (int i = c->first_slot[group]; i < c->first_slot[group + 1]; i++) to[n++] = b->page[i];
    else if (c->group[group].window)
        for (int i = end / c->group[group].page_rows - 1, first = hn_first_page(c, group, hn_least(b->absorbed[model_id], end - less));
             i >= first; i--) {
            while (b->depth > hn_node_of_page(c, group, i)) b = b->parent;
            assert(n < hn_saved_pages(c, group));
            to[n++] = b->page[hn_slot_of_page(c, group, i)];
        }
    for (int i = 0; i < n; i++)
        if (to[i] == HN_NO_PAGE) return false;
    s->n_saved[group] = n;
    return true;
}

/* Of b and the nodes before it. */
static void hold_newest(hn_cache *c, hn_seq *s, int model_id, hn_prefix_node *b) {
    bool all = true;
    while (b && b != s->saved_node[model_id] && !hn_node_has_state(c, b, model_id)) b = b->parent;
    if (!b || b == s->saved_node[model_id]) return;
    hn_saved_release(c, s, model_id, s->saved_since[model_id]);
    for (int g = 0; g < c->n_groups && all; g++)
        if (c->group[g].model_id == model_id) all = collect_saved(c, s, g, b);
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        if (!all) s->n_saved[g] = 0;
        for (int i = 0; i < s->n_saved[g]; i++) hn_page_take(c, s->saved[g][i]);
    }
    s->saved_node[model_id] = all ? b : NULL;
    s->saved_since[model_id] = ++c->prefix.clock;
}

void hn_cache_release_states(hn_cache *c, int seq) {
    hn_seq *s = &c->seq[seq];
    for (int model_id = 0; model_id <= c->group[c->n_groups - 1].model_id; model_id++)
        if (s->saved_node[model_id]) hn_saved_release(c, s, model_id, s->saved_since[model_id]);
}

/* Of the model's states the sequence that has held one longest gives it up. False: none is held. */
static bool release_oldest(hn_cache *c, int model_id) {
    hn_seq *oldest = NULL;
    for (int i = 0; i < c->max_seqs; i++) {
        hn_seq *s = &c->seq[i];
        if (s->saved_node[model_id] && (!oldest || s->saved_since[model_id] < oldest->saved_since[model_id])) oldest = s;
    }
    if (oldest) hn_saved_release(c, oldest, model_id, oldest->saved_since[model_id]);
    return oldest;
}

/* ---- publish -------------------------------------------------------------------------------------------------- */

/* Keeps of the states before node b those closer than twice the largest power of two that divides their number. */
static void states_thin(hn_cache *c, const hn_prefix_node *b, int model_id) {
    for (hn_prefix_node *e = b->parent; e; e = e->parent) {
        const int number = e->depth + 1, power = number & -number;
        if (b->depth - e->depth >= 2 * power && hn_node_has_state(c, e, model_id) && !state_in_use(c, e, model_id))
            hn_state_drop(c, e, model_id);
    }
}

/* The node whose state has been idle longest; NULL: all are in use. */
static hn_prefix_node *oldest_state(const hn_cache *c, int model_id) {
    for (int32_t page = c->idle[state_group(c, model_id)].oldest; page != HN_NO_PAGE; page = c->use[page].newer) {
        hn_prefix_node *b = c->use[page].node;
        if (hn_node_has_state(c, b, model_id) && !state_in_use(c, b, model_id)) return b;
    }
    return NULL;
}

/* Makes room for one more. False: the limit is reached, and all of them are in tables. */
static bool states_limit(hn_cache *c, int model_id) {
    const int group = state_group(c, model_id), most = c->group[group].kept;
    while (most > 0 && hn_cache_states_kept(c, group) >= most) {
        hn_prefix_node *b = oldest_state(c, model_id);
        if (!b && !release_oldest(c, model_id)) return false;
        if (!b) continue;
        hn_state_drop(c, b, model_id);
        hn_node_prune(c, b);
    }
    return true;
}

/* The last node that the model's rows fill. */
static hn_prefix_node *last_full(const hn_cache *c, const hn_seq *s, int model_id) {
    hn_prefix_node *b = s->node;
    while (b && (b->depth + 1) * c->prefix.node_rows > s->committed[model_id]) b = b->parent;
    return b;
}

void hn_state_publish(hn_cache *c, hn_seq *s, int model_id) {
    const int absorbed = s->absorbed[model_id];
    hn_prefix_node *b = last_full(c, s, model_id);
    const int end = b ? (b->depth + 1) * c->prefix.node_rows : 0;
    int pages = 0;
    bool shared = false;
    for (int g = 0; g < c->n_groups; g++) {
        if (!is_state(c, g, model_id)) continue;
        pages += s->n_pages[g];
        shared |= hn_state_shared(c, s, g);
    }
    if (!b || absorbed >= end || end - absorbed > HN_MAX_ROWS || pages == 0 || shared) return;
    if (hn_node_has_state(c, b, model_id)) return;
    hn_saved_release(c, s, model_id, s->saved_since[model_id]); /* of an older one, which is evicted rather than another text's newest */
    if (hn_cache_free_pages(c) < pages) return;
    hn_state_drop(c, b, model_id); /* the rest of an evicted one */
    if (!states_limit(c, model_id)) return;
    for (int g = 0; g < c->n_groups; g++) {
        if (!is_state(c, g, model_id)) continue;
        c->state_pages[g] += s->n_pages[g];
        for (int i = 0; i < s->n_pages[g]; i++) hn_page_enter(c, s->pages[g][i], b, c->first_slot[g] + i);
    }
    b->absorbed[model_id] = absorbed;
    states_thin(c, b, model_id);
}

void hn_saved_update(hn_cache *c, hn_seq *s, int model_id) {
    if (c->states[model_id]) hold_newest(c, s, model_id, last_full(c, s, model_id));
}
