/* SPDX-License-Identifier: Apache-2.0 */
/* cache_share.c - pages in more than one place: entering pages into the prefix index, restoring sequences from it, eviction.
 *
 * A block of the index is as long as a page of group 0 and exists as long as that page is in it. Pages of the other groups
 * belong to the block in which they end:
 *
 *   group 0      | block 0 | block 1 | block 2 | block 3 |
 *   larger page  |                              page 0   |     slot of block 3
 *   smaller      |  0 |  1 |  2 |  3 |  4 |  5 |  6 |  7 |     two slots in every block
 *
 * Equal text gives equal rows, bit for bit (contract C2), so a sequence whose text is in the index replaces its own page by
 * the one there.
 *
 * Pages of window groups are entered like all others, when they become full. When a table releases one, the index keeps it,
 * idle: a later text that branches from this one near there needs it. So the slots of window groups may be empty anywhere,
 * and if the target has only window groups so may whole blocks, which then represent their text only:
 *
 *   block        | 0 | 1 | 2 | 3 | 4 | 5 |     a text may continue from the end of block 5, and of block 1; not of 4,
 *   full group   | x | x | x | x | x | x |     where the window of 100 rows (blocks of 64) reaches back to block 3
 *   window group | x | x |   |   | x | x |
 */
#include <assert.h>

#include "cache/cache_private.h"

/* ---- the block of a page ---------------------------------------------------------------------------------------- */

static void fill_path(hn_cache *c, hn_block *b) {
    for (; b; b = b->parent) c->path[b->depth] = b;
}

void hn_block_prune(hn_cache *c, hn_block *b) {
    while (b && !b->children && !b->users) {
        hn_block *parent = b->parent;
        for (int i = 0; i < c->prefix.n_slots; i++)
            if (b->page[i] != HN_NO_PAGE) return;
        hn_prefix_remove(&c->prefix, b);
        b = parent;
    }
}

void hn_cache_set_last_block(hn_cache *c, hn_seq *s, hn_block *b) {
    hn_block *old = s->block;
    if (b) b->users++;
    s->block = b;
    if (!old) return;
    old->users--;
    hn_block_prune(c, old);
}

void hn_block_drop_page(hn_cache *c, hn_block *b, int slot) {
    const int32_t page = b->page[slot];
    b->page[slot] = HN_NO_PAGE;
    if (page == HN_NO_PAGE) return;
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].kind == HN_CACHE_STATE && slot >= c->first_slot[g] && slot < c->first_slot[g + 1])
            c->state_pages[g]--;
    if (--c->use[page].blocks || c->use[page].tables) return;
    c->n_idle--;
    hn_page_free(c, page);
}

/* ---- publish --------------------------------------------------------------------------------------------------- */

/* Enters a page of a table into its slot of a block, or replaces it by the page there. */
static void share_page(hn_cache *c, int32_t *mine, int32_t *there) {
    if (*there == HN_NO_PAGE) {
        c->use[*mine].blocks++;
        *there = *mine;
    } else if (*there != *mine) {
        hn_page_take(c, *there);
        hn_page_release(c, *mine);
        *mine = *there;
    }
}

/* Enters page i of the sequence, which belongs to block b; a released page is skipped. */
static void enter_page(hn_cache *c, hn_seq *s, int group, int i, hn_block *b) {
    if (i >= s->first[group]) share_page(c, &s->pages[group][i], &b->page[hn_slot_of_page(c, group, i)]);
    s->published[group]++;
}

/* A full page that several tables share since the index was cleared does not create a block: only one of these tables would
 * have the pages of the blocks before it, and hn_cache_evict relies on all having them. */
static void publish_blocks(hn_cache *c, hn_seq *s, const int32_t *text, int rows) {
    const int block_rows = c->prefix.block_rows;
    while ((s->published[0] + 1) * block_rows <= rows) {
        const int i = s->published[0];
        const int32_t *token = text + (size_t)i * (size_t)block_rows;
        hn_block *b = hn_prefix_child(&c->prefix, s->block, token);
        if (!b && (c->group[0].window || c->use[s->pages[0][i]].tables == 1))
            b = hn_prefix_add(&c->prefix, s->block, token);
        if (!b) return;
        enter_page(c, s, 0, i, b);
        hn_cache_set_last_block(c, s, b);
    }
}

/* The pages of an owner's groups behind group 0, as far as the text's blocks go. */
static void publish_rows(hn_cache *c, hn_seq *s, int owner, int rows) {
    bool path = false;
    rows = hn_at_most(hn_at_most(rows, s->committed[owner]), s->published[0] * c->prefix.block_rows);
    for (int g = 1; g < c->n_groups; g++) {
        if (c->group[g].owner != owner) continue;
        if (c->group[g].kind == HN_CACHE_STATE) {
            hn_state_publish(c, s, g);
            continue;
        }
        while ((s->published[g] + 1) * c->group[g].page_rows <= rows) {
            if (!path) fill_path(c, s->block);
            path = true;
            const int i = s->published[g];
            enter_page(c, s, g, i, c->path[hn_block_of_page(c, g, i)]);
        }
    }
    hn_saved_update(c, s, owner);
}

void hn_cache_publish(hn_cache *c, int seq, const int32_t *text, const int *valid) {
    hn_seq *s = &c->seq[seq];
    assert(s->live);
    publish_blocks(c, s, text, hn_at_most(valid[0], s->committed[0]));
    for (int owner = 0; owner <= c->group[c->n_groups - 1].owner; owner++) publish_rows(c, s, owner, valid[owner]);
}

void hn_cache_publish_rows(hn_cache *c, int seq, int owner) {
    assert(c->seq[seq].live && owner > 0);
    publish_rows(c, &c->seq[seq], owner, c->seq[seq].committed[owner]);
}

void hn_cache_unpublish(hn_cache *c, hn_seq *s, int owner, int rows) {
    if (owner == 0) rows -= rows % c->prefix.block_rows; /* the text may branch inside the block */
    for (int g = 0; g < c->n_groups; g++)
        if (owner == 0 || c->group[g].owner == owner)
            s->published[g] = hn_at_most(s->published[g], rows / c->group[g].page_rows);
    for (int o = 0; o < HN_MAX_OWNERS; o++)
        if (s->saved_block[o] && s->saved_block[o]->depth >= s->published[0])
            hn_saved_release(c, s, o, s->saved_since[o]);
    hn_block *b = s->block;
    while (b && b->depth >= s->published[0]) b = b->parent;
    hn_cache_set_last_block(c, s, b);
}

/* ---- restore --------------------------------------------------------------------------------------------------- */

static bool page_present(const hn_cache *c, int group, int i) {
    return c->path[hn_block_of_page(c, group, i)]->page[hn_slot_of_page(c, group, i)] != HN_NO_PAGE;
}

/* The row whose window an owner needs at the end of its rows: the next one; for rows that are folded into a state, the one after
 * that state. */
static int needed_from(const hn_cache *c, int group, int rows, int less) {
    const int owner = c->group[group].owner, block_rows = c->prefix.block_rows;
    const int state = c->group[group].kind == HN_CACHE_ROWS ? hn_state_group(c, owner) : -1;
    if (state < 0 || rows == 0 || rows % block_rows) return rows - less;
    const hn_block *b = c->path[rows / block_rows - 1];
    return hn_block_has_state(c, b, state) ? hn_at_most(b->folded[owner], rows - less) : rows - less;
}

/* The last end of a page, at `rows` at most, for which the index has all pages that the group needs to continue there, and those
 * that the row `less` before it sees. */
static int group_rows_present(const hn_cache *c, int group, int rows, int less) {
    if (c->group[group].kind == HN_CACHE_STATE) {
        int n = rows / c->prefix.block_rows;
        while (n > 0 && !hn_block_has_state(c, c->path[n - 1], group)) n--;
        return n * c->prefix.block_rows;
    }
    const int page_rows = c->group[group].page_rows, most = rows / page_rows;
    int n = most;
    if (c->group[group].window) {
        for (int i = most - 1; i >= hn_first_page(c, group, needed_from(c, group, n * page_rows, less)); i--)
            if (!page_present(c, group, i)) n = i;
    } else {
        for (n = 0; n < most && page_present(c, group, n);) n++;
    }
    return n * page_rows;
}

/* The same for all groups of an owner, in the blocks of c->path. */
static int owner_rows_present(const hn_cache *c, int owner, int rows, int less) {
    for (int before = -1; before != rows;) {
        before = rows;
        for (int g = 0; g < c->n_groups; g++)
            if (c->group[g].owner == owner) rows = group_rows_present(c, g, rows, less);
    }
    return rows;
}

/* The same for the target and all owners with `recompute`. */
static int target_rows_present(const hn_cache *c, int rows, int less) {
    for (int before = -1; before != rows;) {
        before = rows = owner_rows_present(c, 0, rows, less);
        for (int g = 0; g < c->n_groups; g++)
            if (c->group[g].recompute) rows = owner_rows_present(c, c->group[g].owner, rows, 0);
    }
    return rows;
}

/* The table takes pages [first, end) of a group from the blocks of c->path. */
static void take_pages(hn_cache *c, hn_seq *s, int group, int first, int end) {
    for (int i = first; i < end; i++) {
        s->pages[group][i] = c->path[hn_block_of_page(c, group, i)]->page[hn_slot_of_page(c, group, i)];
        hn_page_take(c, s->pages[group][i]);
    }
}

/* The table takes the state at the end of these rows. */
static void take_state(hn_cache *c, hn_seq *s, int group, int rows) {
    const hn_block *b = rows ? c->path[rows / c->prefix.block_rows - 1] : NULL;
    for (int i = 0; b && i < hn_pages_of(c, group, rows); i++) {
        s->pages[group][i] = b->page[c->first_slot[group] + i];
        hn_page_take(c, s->pages[group][i]);
    }
    s->n_pages[group] = hn_pages_of(c, group, rows);
    const int owner = c->group[group].owner;
    s->folded[owner] = b ? b->folded[owner] : 0;
}

static void take_rows(hn_cache *c, hn_seq *s, int owner, int rows, int less) {
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].owner != owner) continue;
        if (c->group[g].kind == HN_CACHE_STATE) {
            take_state(c, s, g, rows);
            continue;
        }
        const int first = hn_first_page(c, g, needed_from(c, g, rows, less)), n = rows / c->group[g].page_rows;
        for (int i = 0; i < first; i++) s->pages[g][i] = HN_NO_PAGE;
        take_pages(c, s, g, first, n);
        s->first[g] = first;
        s->n_pages[g] = s->published[g] = n;
    }
    s->committed[owner] = rows;
}

int hn_cache_reclaim(hn_cache *c, hn_seq *s, int owner, int rows) {
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].owner == owner && c->group[g].kind != HN_CACHE_STATE)
            rows = hn_at_most(rows, s->published[g] * c->group[g].page_rows);
    fill_path(c, s->block);
    rows = owner_rows_present(c, owner, rows, 0);
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].owner != owner) continue;
        if (c->group[g].kind == HN_CACHE_STATE) {
            while (s->n_pages[g] > 0) hn_page_release(c, s->pages[g][--s->n_pages[g]]);
            take_state(c, s, g, rows);
            continue;
        }
        const int first = hn_first_page(c, g, needed_from(c, g, rows, 0));
        if (first >= s->first[g]) continue;
        take_pages(c, s, g, first, hn_at_most(s->first[g], rows / c->group[g].page_rows));
        s->first[g] = first;
    }
    return rows;
}

int hn_cache_block_rows(const hn_cache *c) {
    return c->prefix.block_rows;
}

int hn_cache_step(const hn_cache *c) {
    int step = 0;
    for (int g = 0; g < c->n_groups && c->group[g].owner == 0; g++)
        step = c->group[g].page_rows > step ? c->group[g].page_rows : step;
    return step;
}

/* The blocks of the index which the text begins with, in c->path; returns their number. */
static int find_path(hn_cache *c, const int32_t *text, int n) {
    const int block_rows = c->prefix.block_rows, most = hn_at_most(n, c->rows) / block_rows;
    int depth = 0;
    for (hn_block *b = NULL; depth < most; c->path[depth++] = b) {
        b = hn_prefix_child(&c->prefix, b, text + (size_t)depth * (size_t)block_rows);
        if (!b) break;
    }
    return depth;
}

int hn_cache_restore(hn_cache *c, int seq, const int32_t *text, int n) {
    hn_seq *s = &c->seq[seq];
    const int block_rows = c->prefix.block_rows, less = hn_cache_recompute(c);
    assert(s->live);
    for (int g = 0; g < c->n_groups; g++) assert(s->n_pages[g] == 0);
    const int rows = target_rows_present(c, find_path(c, text, n) * block_rows, less);
    for (int g = 0, owner = -1; g < c->n_groups; g++) {
        if (c->group[g].owner == owner) continue;
        owner = c->group[g].owner;
        take_rows(c, s, owner, owner ? owner_rows_present(c, owner, rows, 0) : rows, owner ? 0 : less);
    }
    hn_cache_set_last_block(c, s, rows ? c->path[rows / block_rows - 1] : NULL);
    return rows && less ? hn_cache_rewind(c, seq, 0, rows - less) : rows;
}

/* The pages of a group that a text continues from at the end of `rows` rows were used now, those of all rows by hn_prefix_touch. */
static void touch_pages(hn_cache *c, int group, int rows, int less) {
    const hn_block *last = c->path[rows / c->prefix.block_rows - 1];
    const uint64_t now = ++c->prefix.clock;
    if (c->group[group].kind == HN_CACHE_STATE)
        for (int i = c->first_slot[group]; i < c->first_slot[group + 1]; i++) c->use[last->page[i]].idle_since = now;
    else if (c->group[group].window)
        for (int i = hn_first_page(c, group, needed_from(c, group, rows, less)); i < rows / c->group[group].page_rows; i++)
            c->use[c->path[hn_block_of_page(c, group, i)]->page[hn_slot_of_page(c, group, i)]].idle_since = now;
}

void hn_cache_touch(hn_cache *c, const int32_t *text, int n) {
    const int less = hn_cache_recompute(c);
    const int all = target_rows_present(c, find_path(c, text, n) * c->prefix.block_rows, less);
    if (all > 0) hn_prefix_touch(&c->prefix, c->path[all / c->prefix.block_rows - 1]);
    for (int g = 0; g < c->n_groups; g++) {
        const int owner = c->group[g].owner, rows = owner ? owner_rows_present(c, owner, all, 0) : all;
        if (rows > 0) touch_pages(c, g, rows, owner ? 0 : less);
    }
}

/* ---- eviction -------------------------------------------------------------------------------------------------- */

static bool is_idle(const hn_cache *c, int32_t page) {
    return page != HN_NO_PAGE && c->use[page].tables == 0;
}

/* Evicts the page of a slot, or all of the block (slot -1), and removes the block if it is empty. */
static void evict(hn_cache *c, hn_block *b, int slot) {
    for (int g = 0; g < c->n_groups && slot >= 0; g++) /* a state is evicted as a whole */
        if (c->group[g].kind == HN_CACHE_STATE && slot >= c->first_slot[g] && slot < c->first_slot[g + 1])
            hn_state_drop(c, b, g);
    for (int i = 0; i < c->prefix.n_slots; i++)
        if (slot < 0 || i == slot) hn_block_drop_page(c, b, i);
    hn_block_prune(c, b);
}

/* The candidate for eviction, idle longest: a page of a window group in a block (slot), or a whole block (slot -1). */
typedef struct victim {
    hn_block *block;
    int slot;
    uint64_t since;
} victim;

static void choose(victim *v, hn_block *b, int slot, uint64_t since) {
    if (!v->block || since < v->since) *v = (victim){b, slot, since};
}

/* Leaf blocks are evicted as a whole; of other blocks only pages of window groups. */
static void consider_block(const hn_cache *c, hn_block *b, victim *v) {
    const bool leaf = !b->children && !b->users && (b->page[0] == HN_NO_PAGE || is_idle(c, b->page[0]));
    for (int g = 0; g < c->n_groups; g++) {
        if (!leaf && !c->group[g].window && c->group[g].kind != HN_CACHE_STATE) continue;
        for (int i = c->first_slot[g]; i < c->first_slot[g + 1]; i++) {
            if (!is_idle(c, b->page[i])) continue;
            if (leaf)
                choose(v, b, -1, b->used);
            else
                choose(v, b, i, c->use[b->page[i]].idle_since);
        }
    }
}

/* Least recently used first. So an ended text loses its end before its beginning, and before both the pages that its windows
 * had passed: these have been idle longer, unless other texts branched from this one there.
 *
 * If a block's full page of the target is idle, those after it are idle too (a table has all pages before its last), so every
 * such block becomes a leaf in its turn; a drafter that has not been rewound with the target yet keeps its own page there.
 * Other idle pages are full pages of drafters in blocks that a sequence uses. */
void hn_cache_evict(hn_cache *c) {
    victim v = {NULL, -1, 0};
    for (hn_block *b = c->prefix.oldest; b && (c->windows || !v.block); b = b->newer) consider_block(c, b, &v);
    if (v.block) {
        evict(c, v.block, v.slot);
        return;
    }
    for (hn_block *b = c->prefix.oldest; b; b = b->newer)
        for (int i = c->prefix.n_slots - 1; i > 0; i--)
            if (is_idle(c, b->page[i])) {
                evict(c, b, i);
                return;
            }
    assert(false && "no idle page");
}

void hn_cache_index_clear(hn_cache *c) {
    for (int s = 0; s < c->max_seqs; s++) hn_cache_unpublish(c, &c->seq[s], 0, 0);
    for (hn_block *b = c->prefix.oldest; b; b = b->newer)
        for (int i = 0; i < c->prefix.n_slots; i++) hn_block_drop_page(c, b, i);
    hn_prefix_clear(&c->prefix);
}
