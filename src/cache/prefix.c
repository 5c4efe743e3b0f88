/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.c - the trie of nodes: a hash table from (parent, tokens) to the node, and a list by last use. */
#include "cache/prefix.h"

#include <assert.h>
#include <string.h>

#include "base/keyed_hash.h"
#include "base/mem.h"

hunch_status hn_prefix_init(hn_prefix *x, int node_rows, int n_slots, int max_nodes, hunch_error *err) {
    *x = (hn_prefix){.node_rows = node_rows, .n_slots = n_slots, .n_buckets = 16};
    while (x->n_buckets < (size_t)max_nodes) x->n_buckets *= 2;
    hn_hash_key(x->key);
    x->bucket = hn_zalloc(x->n_buckets, sizeof *x->bucket);
    if (x->bucket) return HUNCH_OK;
    const size_t bytes = x->n_buckets * sizeof *x->bucket;
    x->n_buckets = 0;
    return hn_fail_memory(err, "prefix index", bytes);
}

void hn_prefix_clear(hn_prefix *x) {
    for (hn_prefix_node *b = x->oldest, *newer; b; b = newer) {
        newer = b->newer;
        hn_free(b);
    }
    x->newest = x->oldest = x->newest_end = x->oldest_end = NULL;
    x->n_blocks = 0;
    for (size_t i = 0; i < x->n_buckets; i++) x->bucket[i] = NULL;
}

void hn_prefix_fini(hn_prefix *x) {
    hn_prefix_clear(x);
    hn_free(x->bucket);
    *x = (hn_prefix){0};
}

/* ---- lookup ------------------------------------------------------------------------------------------------------ */

static size_t token_bytes(const hn_prefix *x) {
    return (size_t)x->node_rows * sizeof(int32_t);
}

/* The hash only selects the bucket: nodes are equal if their salts, parents and tokens are. The leaves of a parent are in one bucket,
 * because they are found by some of their tokens. */
static uint64_t text_hash(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, const int32_t *token, int n) {
    const uint64_t key[2] = {x->key[0], x->key[1] ^ (parent ? parent->hash : salt)};
    return hn_keyed_hash(key, token, n < x->node_rows ? 0 : token_bytes(x));
}

static hn_prefix_node **bucket_of(const hn_prefix *x, uint64_t hash) {
    return &x->bucket[hash & (x->n_buckets - 1)];
}

hn_prefix_node *hn_prefix_child(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, const int32_t *token) {
    const uint64_t hash = text_hash(x, salt, parent, token, x->node_rows);
    hn_prefix_node *b = *bucket_of(x, hash);
    while (b && !(b->hash == hash && b->salt == salt && b->parent == parent && b->n == x->node_rows &&
                  memcmp(b->token, token, token_bytes(x)) == 0))
        b = b->next;
    return b;
}

/* The first leaf of parent from b on in a bucket, which begins with the one that was added last. */
static hn_prefix_node *leaf_from(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, hn_prefix_node *b) {
    while (b && (b->salt != salt || b->parent != parent || b->n == x->node_rows)) b = b->next;
    return b;
}

static hn_prefix_node *first_leaf(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent) {
    return leaf_from(x, salt, parent, *bucket_of(x, text_hash(x, salt, parent, NULL, 0)));
}

hn_prefix_node *hn_prefix_leaf_beyond(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, int most) {
    hn_prefix_node *b = first_leaf(x, salt, parent);
    while (b && most-- > 0) b = leaf_from(x, salt, parent, b->next);
    return b;
}

hn_prefix_node *hn_prefix_leaf(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, const int32_t *token, int n, int *same) {
    hn_prefix_node *best = NULL;
    *same = 0;
    for (hn_prefix_node *b = first_leaf(x, salt, parent); b; b = leaf_from(x, salt, parent, b->next)) {
        int k = 0;
        while (k < n && k < b->n && b->token[k] == token[k]) k++;
        if (k > *same) *same = k, best = b;
    }
    return best;
}

/* ---- the order of use ------------------------------------------------------------------------------------------ */

static void unlink_node(hn_prefix *x, hn_prefix_node *b) {
    *(b->newer ? &b->newer->older : &x->newest) = b->older;
    *(b->older ? &b->older->newer : &x->oldest) = b->newer;
}

static void link_newest(hn_prefix *x, hn_prefix_node *b) {
    b->used = ++x->clock;
    b->newer = NULL;
    b->older = x->newest;
    *(x->newest ? &x->newest->newer : &x->oldest) = b;
    x->newest = b;
}

static void unlink_end(hn_prefix *x, hn_prefix_node *b) {
    *(b->newer_end ? &b->newer_end->older_end : &x->newest_end) = b->older_end;
    *(b->older_end ? &b->older_end->newer_end : &x->oldest_end) = b->newer_end;
    b->newer_end = b->older_end = NULL;
    b->is_end = false;
}

/* Its place by the time of use is near one of the ends of the list: a text's node was used with the one after it, which was the oldest, or
 * just now. */
static void link_end(hn_prefix *x, hn_prefix_node *b) {
    hn_prefix_node *newer = x->oldest_end, *older = x->newest_end;
    while (newer && newer->used < b->used && older->used > b->used) {
        newer = newer->newer_end;
        older = older->older_end;
    }
    if (newer && newer->used > b->used)
        older = newer->older_end;
    else
        newer = older ? older->newer_end : NULL;
    b->newer_end = newer;
    b->older_end = older;
    *(newer ? &newer->older_end : &x->newest_end) = b;
    *(older ? &older->newer_end : &x->oldest_end) = b;
    b->is_end = true;
}

/* After a change of its children or users. */
static void update_end(hn_prefix *x, hn_prefix_node *b) {
    const bool is_end = b->children == 0 && b->users == 0;
    if (is_end && !b->is_end) link_end(x, b);
    if (!is_end && b->is_end) unlink_end(x, b);
}

void hn_prefix_use(hn_prefix *x, hn_prefix_node *b, int more) {
    b->users += more;
    assert(b->users >= 0);
    update_end(x, b);
}

void hn_prefix_touch(hn_prefix *x, hn_prefix_node *b) {
    for (; b; b = b->parent) {
        unlink_node(x, b);
        link_newest(x, b);
        if (!b->is_end) continue;
        unlink_end(x, b);
        link_end(x, b);
    }
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

hn_prefix_node *hn_prefix_add(hn_prefix *x, uint64_t salt, hn_prefix_node *parent, const int32_t *token, int n) {
    assert(n > 0 && n <= x->node_rows && (!parent || (parent->n == x->node_rows && parent->salt == salt)));
    hn_prefix_node *b = hn_alloc(sizeof *b + token_bytes(x) + (size_t)x->n_slots * sizeof(int32_t));
    if (!b) return NULL;
    *b = (hn_prefix_node){.parent = parent,
                          .hash = text_hash(x, salt, parent, token, n),
                          .salt = salt,
                          .depth = parent ? parent->depth + 1 : 0,
                          .n = n};
    memcpy(b->token, token, (size_t)n * sizeof *token);
    b->page = b->token + x->node_rows;
    for (int i = 0; i < x->n_slots; i++) b->page[i] = HN_NO_PAGE;
    b->next = *bucket_of(x, b->hash);
    *bucket_of(x, b->hash) = b;
    link_newest(x, b);
    link_end(x, b);
    if (parent) {
        parent->children++;
        update_end(x, parent);
    }
    x->n_blocks++;
    return b;
}

void hn_prefix_remove(hn_prefix *x, hn_prefix_node *b) {
    assert(b->children == 0 && b->users == 0);
    hn_prefix_node **at = bucket_of(x, b->hash);
    while (*at != b) at = &(*at)->next;
    *at = b->next;
    unlink_node(x, b);
    unlink_end(x, b);
    if (b->parent) {
        b->parent->children--;
        update_end(x, b->parent);
    }
    x->n_blocks--;
    hn_free(b);
}

bool hn_prefix_valid(const hn_prefix *x) {
    int seen = 0, children = 0, with_parent = 0, ends = 0;
    for (const hn_prefix_node *b = x->oldest, *before = NULL; b; before = b, b = b->newer, seen++) {
        if (b->older != before || (!b->newer && b != x->newest) || seen >= x->n_blocks) return false;
        if (before && before->used >= b->used) return false;
        const hn_prefix_node *named = *bucket_of(x, b->hash);
        while (named && named != b) named = named->next;
        if (!named) return false;
        children += b->children;
        with_parent += b->parent != NULL;
        ends += b->is_end;
        if (b->is_end != (b->children == 0 && b->users == 0)) return false;
    }
    for (const hn_prefix_node *b = x->oldest_end, *before = NULL; b; before = b, b = b->newer_end, ends--)
        if (!b->is_end || b->older_end != before || (!b->newer_end && b != x->newest_end) || (before && before->used >= b->used))
            return false;
    if (ends != 0) return false;
    if (seen != x->n_blocks || children != with_parent) return false;
    for (const hn_prefix_node *b = x->oldest; b; b = b->newer) {
        const bool leaf = b->n < x->node_rows;
        int same = 0;
        if (leaf ? !hn_prefix_leaf(x, b->salt, b->parent, b->token, b->n, &same) || same != b->n || b->children || b->users
                 : hn_prefix_child(x, b->salt, b->parent, b->token) != b)
            return false;
        if (b->depth != (b->parent ? b->parent->depth + 1 : 0)) return false;
    }
    return true;
}
