/* SPDX-License-Identifier: Apache-2.0 */
/* cache_share.c - pages in more than one place: what enters the prefix index, what a new sequence takes from it, what
 * is evicted.
 *
 * A block of the index is as long as a page of group 0 and lives as long as that page is in it. Pages of the other
 * groups hang on the block in which they end:
 *
 *   group 0      | block 0 | block 1 | block 2 | block 3 |
 *   larger page  |                              page 0   |     slot of block 3
 *   smaller      |  0 |  1 |  2 |  3 |  4 |  5 |  6 |  7 |     two slots in every block
 *
 * Equal text gives equal rows, bit for bit (contract C2), so a sequence that finds its text in the index drops its own
 * page for the one there.
 */
#include <assert.h>

#include "cache/cache_private.h"

/* ---- where a page hangs ---------------------------------------------------------------------------------------- */

/* Depth of the block in which page i of a group ends. */
static int block_of_page(const hn_cache *c, int group, int i) {
    return ((i + 1) * c->group[group].page_rows - 1) / c->prefix.block_rows;
}

static int slot_of_page(const hn_cache *c, int group, int i) {
    const int in_block = c->prefix.block_rows / c->group[group].page_rows;
    return c->first_slot[group] + (in_block > 1 ? i % in_block : 0);
}

static void fill_path(hn_cache *c, hn_block *b) {
    for (; b; b = b->parent) c->path[b->depth] = b;
}

/* ---- publish --------------------------------------------------------------------------------------------------- */

/* Page i of the sequence enters its slot of the block, or gives way to the page there. */
static void enter_page(hn_cache *c, hn_seq *s, int group, int i, hn_block *b) {
    int32_t *mine = &s->pages[group][i], *there = &b->page[slot_of_page(c, group, i)];
    if (*there == HN_NO_PAGE) {
        c->use[*mine].blocks++;
        *there = *mine;
    } else if (*there != *mine) {
        hn_page_take(c, *there);
        hn_page_release(c, *mine);
        *mine = *there;
    }
    s->published[group]++;
}

/* A page that several tables share since the index was emptied founds no block: only one of these tables would hold the
 * pages of the blocks before it, and hn_cache_evict counts on all doing so. */
static void publish_blocks(hn_cache *c, hn_seq *s, const int32_t *text, int rows) {
    const int block_rows = c->prefix.block_rows;
    while ((s->published[0] + 1) * block_rows <= rows) {
        const int i = s->published[0];
        const int32_t *token = text + (size_t)i * (size_t)block_rows;
        hn_block *b = hn_prefix_child(&c->prefix, s->block, token);
        if (!b && c->use[s->pages[0][i]].tables == 1) b = hn_prefix_add(&c->prefix, s->block, token);
        if (!b) return;
        enter_page(c, s, 0, i, b);
        s->block = b;
    }
}

static int at_most(int a, int b) {
    return a < b ? a : b;
}

void hn_cache_publish(hn_cache *c, int seq, const int32_t *text, const int *valid) {
    hn_seq *s = &c->seq[seq];
    bool path = false;
    assert(s->live);
    publish_blocks(c, s, text, at_most(valid[0], s->committed[0]));
    for (int g = 1; g < c->n_groups; g++) {
        const int owner = c->group[g].owner, page_rows = c->group[g].page_rows;
        const int rows = at_most(at_most(valid[owner], s->committed[owner]), s->published[0] * c->prefix.block_rows);
        while ((s->published[g] + 1) * page_rows <= rows) {
            if (!path) fill_path(c, s->block);
            path = true;
            const int i = s->published[g];
            enter_page(c, s, g, i, c->path[block_of_page(c, g, i)]);
        }
    }
}

void hn_cache_unpublish(hn_cache *c, hn_seq *s, int owner, int rows) {
    if (owner == 0) rows -= rows % c->prefix.block_rows; /* the text may part inside the block */
    for (int g = 0; g < c->n_groups; g++)
        if (owner == 0 || c->group[g].owner == owner)
            s->published[g] = at_most(s->published[g], rows / c->group[g].page_rows);
    while (s->block && s->block->depth >= s->published[0]) s->block = s->block->parent;
}

/* ---- restore --------------------------------------------------------------------------------------------------- */

/* Rows that all groups of an owner have in the blocks of c->path, `rows` at most. */
static int rows_there(const hn_cache *c, int owner, int rows) {
    for (int g = 0; g < c->n_groups; g++) {
        const int page_rows = c->group[g].page_rows;
        int i = 0;
        if (c->group[g].owner != owner) continue;
        while ((i + 1) * page_rows <= rows &&
               c->path[block_of_page(c, g, i)]->page[slot_of_page(c, g, i)] != HN_NO_PAGE)
            i++;
        rows = i * page_rows;
    }
    /* A later group may have ended inside a page of an earlier one. */
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].owner == owner) rows -= rows % c->group[g].page_rows;
    return rows;
}

static void take_rows(hn_cache *c, hn_seq *s, int owner, int rows) {
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].owner != owner) continue;
        const int n = rows / c->group[g].page_rows;
        for (int i = 0; i < n; i++) {
            s->pages[g][i] = c->path[block_of_page(c, g, i)]->page[slot_of_page(c, g, i)];
            hn_page_take(c, s->pages[g][i]);
        }
        s->n_pages[g] = s->published[g] = n;
    }
    s->committed[owner] = rows;
}

int hn_cache_restore(hn_cache *c, int seq, const int32_t *text, int n) {
    hn_seq *s = &c->seq[seq];
    const int block_rows = c->prefix.block_rows, most = at_most(n, c->rows) / block_rows;
    int depth = 0, rows = 0;
    assert(s->live);
    for (int g = 0; g < c->n_groups; g++) assert(s->n_pages[g] == 0);
    for (hn_block *b = NULL; depth < most; c->path[depth++] = b) {
        b = hn_prefix_child(&c->prefix, b, text + (size_t)depth * (size_t)block_rows);
        if (!b) break;
    }
    rows = rows_there(c, 0, depth * block_rows);
    for (int g = 0, owner = -1; g < c->n_groups; g++) {
        if (c->group[g].owner == owner) continue;
        owner = c->group[g].owner;
        take_rows(c, s, owner, owner ? rows_there(c, owner, rows) : rows);
    }
    s->block = rows ? c->path[rows / block_rows - 1] : NULL;
    return rows;
}

/* ---- eviction -------------------------------------------------------------------------------------------------- */

static void leave_page(hn_cache *c, hn_block *b, int slot) {
    const int32_t page = b->page[slot];
    b->page[slot] = HN_NO_PAGE;
    if (page == HN_NO_PAGE) return;
    if (--c->use[page].blocks || c->use[page].tables) return;
    c->n_idle--;
    hn_page_free(c, page);
}

static void evict_block(hn_cache *c, hn_block *b) {
    for (int i = 0; i < c->prefix.n_slots; i++) leave_page(c, b, i);
    hn_prefix_remove(&c->prefix, b);
}

static bool is_idle(const hn_cache *c, int32_t page) {
    return page != HN_NO_PAGE && c->use[page].tables == 0;
}

/* Whole blocks first. Where a block's target page is idle those behind it are idle too (a table holds all pages before
 * its last), so every such block is a leaf in its turn; a drafter that has not yet been rewound after the target keeps
 * its page there for itself. What is idle then are pages of drafters on blocks that a sequence uses. */
void hn_cache_evict(hn_cache *c) {
    for (hn_block *b = c->prefix.oldest; b; b = b->newer)
        if (b->children == 0 && is_idle(c, b->page[0])) {
            evict_block(c, b);
            return;
        }
    for (hn_block *b = c->prefix.oldest; b; b = b->newer)
        for (int i = c->prefix.n_slots - 1; i > 0; i--)
            if (is_idle(c, b->page[i])) {
                leave_page(c, b, i);
                return;
            }
    assert(!"no idle page");
}

void hn_cache_forget(hn_cache *c) {
    for (int s = 0; s < c->max_seqs; s++) hn_cache_unpublish(c, &c->seq[s], 0, 0);
    for (hn_block *b = c->prefix.oldest; b; b = b->newer)
        for (int i = 0; i < c->prefix.n_slots; i++) leave_page(c, b, i);
    hn_prefix_clear(&c->prefix);
}
