/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_tree.c - the trie of suffix_tree.h: growing by a token, removing windows, lookup.
 *
 * A window always ends where a label ends. So appending a token moves each of the at most D unfinished windows by one of
 * four steps (window_step), and removing a window walks down from the root and joins at most one pair of nodes after
 * itself. The rule that makes the shape unique: no node but the root has a single child with the same count.
 */
#include "draft/text/suffix_tree.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum { ROOT = 0, NONE = 0, MAX_KID_PATH = 34 };

/* ---- the children of one node: a digital search tree -------------------------------------------------------------- */

static int token_bit(int32_t token, int level) {
    return (int)(((uint32_t)token >> level) & 1);
}

static uint32_t kid_find(const hn_suffix_tree *t, uint32_t v, int32_t token) {
    uint32_t k = t->node[v].kids;
    for (int level = 0; k != NONE && t->node[k].token != token; level++) k = t->node[k].side[token_bit(token, level)];
    return k;
}

/* NONE unless v has exactly one child. */
static uint32_t kid_only(const hn_suffix_tree *t, uint32_t v) {
    uint32_t k = t->node[v].kids;
    return k != NONE && t->node[k].side[0] == NONE && t->node[k].side[1] == NONE ? k : NONE;
}

static void most_update(hn_suffix_tree *t, uint32_t k) {
    hn_suffix_node *n = &t->node[k];
    n->most = n->count;
    for (int s = 0; s < 2; s++)
        if (n->side[s] != NONE && t->node[n->side[s]].most > n->most) n->most = t->node[n->side[s]].most;
}

/* Replaces `old`, a child of v with the same token and no larger count, by k, whose token and count are set;
 * old NONE: adds k. */
static void kid_put(hn_suffix_tree *t, uint32_t v, uint32_t old, uint32_t k) {
    hn_suffix_node *n = &t->node[k];
    uint32_t *link = &t->node[v].kids;
    for (int level = 0; *link != old; level++) {
        hn_suffix_node *on = &t->node[*link];
        if (on->most < n->count) on->most = n->count;
        link = &on->side[token_bit(n->token, level)];
    }
    *link = k;
    n->parent = v;
    for (int s = 0; s < 2; s++) n->side[s] = old == NONE ? NONE : t->node[old].side[s];
    most_update(t, k);
}

/* One more window passes k. */
static void kid_raise(hn_suffix_tree *t, uint32_t k) {
    uint32_t on = t->node[t->node[k].parent].kids, count = ++t->node[k].count;
    for (int level = 0;; level++) {
        if (t->node[on].most < count) t->node[on].most = count;
        if (on == k) return;
        on = t->node[on].side[token_bit(t->node[k].token, level)];
    }
}

/* The nodes on the path to k in its parent's search tree, k last. */
static int kid_path(const hn_suffix_tree *t, uint32_t k, uint32_t path[MAX_KID_PATH]) {
    int n = 0;
    path[0] = t->node[t->node[k].parent].kids;
    for (; path[n] != k; n++) path[n + 1] = t->node[path[n]].side[token_bit(t->node[k].token, n)];
    return n + 1;
}

/* One window fewer passes k. */
static void kid_lower(hn_suffix_tree *t, uint32_t k) {
    uint32_t path[MAX_KID_PATH];
    int n = kid_path(t, k, path);
    t->node[k].count--;
    while (n-- > 0) most_update(t, path[n]);
}

/* Removes k; a leaf of the search tree below it replaces it. */
static void kid_remove(hn_suffix_tree *t, uint32_t k) {
    uint32_t path[MAX_KID_PATH], parent = t->node[k].parent, leaf = k;
    int at = kid_path(t, k, path) - 1, n = at + 1;
    for (;;) {
        const hn_suffix_node *l = &t->node[leaf];
        if (l->side[0] == NONE && l->side[1] == NONE) break;
        path[n++] = leaf = l->side[0] != NONE ? l->side[0] : l->side[1];
    }
    int32_t token = t->node[leaf].token; /* has the same bits as k's on the path to k */
    n--;
    *(n == 0 ? &t->node[parent].kids : &t->node[path[n - 1]].side[token_bit(token, n - 1)]) = NONE;
    if (leaf != k) {
        *(at == 0 ? &t->node[parent].kids : &t->node[path[at - 1]].side[token_bit(token, at - 1)]) = leaf;
        memcpy(t->node[leaf].side, t->node[k].side, sizeof t->node[leaf].side);
        path[at] = leaf;
    }
    while (n-- > 0) most_update(t, path[n]);
}

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

/* There is room: nodes were reserved for every stored token. */
static uint32_t node_new(hn_suffix_tree *t, uint32_t at, uint32_t len, uint32_t count) {
    uint32_t k = t->free;
    if (k != NONE) {
        t->free = t->node[k].parent;
        t->n_free--;
    } else {
        assert(t->n_nodes < t->node_size);
        k = t->n_nodes++;
    }
    t->node[k] = (hn_suffix_node){.at = at, .len = len, .token = hn_suffix_token(t, at), .count = count, .most = count};
    return k;
}

static void node_free(hn_suffix_tree *t, uint32_t k) {
    t->node[k].parent = t->free;
    t->free = k;
    t->n_free++;
}

/* Joins v with its only child, which has the same count: the child replaces v. */
static void node_join(hn_suffix_tree *t, uint32_t v) {
    uint32_t parent = t->node[v].parent, k = t->node[v].kids;
    hn_suffix_node *n = &t->node[k];
    n->at -= t->node[v].len;
    n->len += t->node[v].len;
    n->token = t->node[v].token;
    kid_put(t, parent, v, k);
    node_free(t, v);
}

static void node_normalize(hn_suffix_tree *t, uint32_t v) {
    uint32_t k = v == ROOT ? NONE : kid_only(t, v);
    if (k != NONE && t->node[k].count == t->node[v].count) node_join(t, v);
}

static void label_shorten(hn_suffix_tree *t, uint32_t k) {
    hn_suffix_node *n = &t->node[k];
    n->at++;
    n->len--;
    n->token = hn_suffix_token(t, n->at);
}

/* Makes a node for the first token of k's label, which the window at `at` enters; k becomes its child. */
static uint32_t node_split(hn_suffix_tree *t, uint32_t k, uint32_t at) {
    uint32_t upper = node_new(t, at, 1, t->node[k].count + 1);
    kid_put(t, t->node[k].parent, k, upper);
    label_shorten(t, k);
    kid_put(t, upper, NONE, k);
    return upper;
}

/* ---- growing ------------------------------------------------------------------------------------------------------- */

/* Extends the window that ended at v by the token at position `at`; returns its new end. */
static uint32_t window_step(hn_suffix_tree *t, uint32_t v, uint32_t at) {
    hn_suffix_node *n = &t->node[v];
    if (v != ROOT && n->count == 1) { /* no other window passes here: its label grows */
        n->len++;
        return v;
    }
    uint32_t k = kid_find(t, v, hn_suffix_token(t, at));
    if (k == NONE) {
        k = node_new(t, at, 1, 1);
        kid_put(t, v, NONE, k);
        return k;
    }
    if (t->node[k].len > 1) {
        if (v == ROOT || kid_only(t, v) != k || n->count != t->node[k].count + 1) return node_split(t, k, at);
        n->len++; /* only this window ended at v: moves the boundary between v and k */
        label_shorten(t, k);
        return v;
    }
    kid_raise(t, k);
    t->node[k].at = at;
    node_normalize(t, v);
    return k;
}

static bool nodes_reserve(hn_suffix_tree *t) {
    uint32_t need = 2 * (t->end - t->head) + 2;
    if (need > t->node_size) {
        uint32_t most = 2 * t->max_tokens + 2, size = t->node_size < most / 2 ? 2 * t->node_size : most;
        if (size < need) size = need;
        hn_suffix_node *node = hn_realloc(t->node, t->n_nodes * sizeof *node, size * sizeof *node);
        if (!node) return false;
        t->node = node;
        t->node_size = size;
    }
    if (t->n_nodes == 0) {
        t->node[ROOT] = (hn_suffix_node){0};
        t->n_nodes = 1;
    }
    return true;
}

bool hn_suffix_count(hn_suffix_tree *t) {
    return hn_suffix_count_some(t, t->end - t->open);
}

bool hn_suffix_count_some(hn_suffix_tree *t, uint32_t most) {
    if (!nodes_reserve(t)) return false;
    for (const uint32_t end = most < t->end - t->open ? t->open + most : t->end; t->open != end; t->open++) {
        uint32_t *active = t->active;
        for (uint32_t a = (uint32_t)t->n_active; a > 0; a--) { /* the longest first: no two end at the same node */
            uint32_t *v = &active[(t->open - a) % HN_SUFFIX_WINDOW];
            *v = window_step(t, *v, t->open);
        }
        active[t->open % HN_SUFFIX_WINDOW] = window_step(t, ROOT, t->open);
        if (t->n_active < t->window - 1) t->n_active++;
    }
    return true;
}

static bool ring_reserve(hn_suffix_tree *t, uint32_t need) {
    if (need <= t->ring_size) return true;
    uint32_t size = t->ring_size ? t->ring_size : 64;
    while (size < need) size *= 2;
    int32_t *ring = hn_alloc(size * sizeof *ring);
    if (!ring) return false;
    for (uint32_t p = t->head; p != t->end; p++) ring[p & (size - 1)] = hn_suffix_token(t, p);
    hn_free(t->ring);
    t->ring = ring;
    t->ring_size = size;
    return true;
}

bool hn_suffix_put(hn_suffix_tree *t, const int32_t *token, uint32_t n) {
    uint32_t stored = t->end - t->head;
    if (n > t->max_tokens - stored || !ring_reserve(t, stored + n)) return false;
    for (uint32_t i = 0; i < n; i++) t->ring[t->end++ & (t->ring_size - 1)] = token[i];
    return true;
}

void hn_suffix_break(hn_suffix_tree *t) {
    assert(t->open == t->end);
    t->n_active = 0;
}

/* ---- shrinking ----------------------------------------------------------------------------------------------------- */

void hn_suffix_init(hn_suffix_tree *t, int window, uint32_t max_tokens) {
    assert(window >= 1 && window <= HN_SUFFIX_WINDOW && max_tokens <= 1u << 30);
    *t = (hn_suffix_tree){.window = window, .max_tokens = max_tokens};
}

void hn_suffix_fini(hn_suffix_tree *t) {
    hn_free(t->ring);
    hn_free(t->node);
    *t = (hn_suffix_tree){.window = t->window, .max_tokens = t->max_tokens};
}

static void counts_clear(hn_suffix_tree *t) {
    t->n_nodes = t->n_free = 0; /* the root is created again by the first count */
    t->free = NONE;
    t->n_active = 0;
    t->open = t->head;
}

void hn_suffix_clear(hn_suffix_tree *t, uint32_t first) {
    t->head = t->end = first;
    counts_clear(t);
}

void hn_suffix_cut(hn_suffix_tree *t, uint32_t end) {
    assert(end - t->head <= t->end - t->head);
    if (end - t->head < t->open - t->head) counts_clear(t);
    t->end = end;
}

static void window_remove(hn_suffix_tree *t, uint32_t start, uint32_t len) {
    uint32_t v = ROOT;
    for (uint32_t done = 0; done < len; done += t->node[v].len) {
        v = kid_find(t, v, hn_suffix_token(t, start + done));
        assert(v != NONE && t->node[v].len <= len - done);
        kid_lower(t, v);
    }
    if (t->node[v].count == 0) {
        uint32_t parent = t->node[v].parent;
        kid_remove(t, v);
        node_free(t, v);
        v = parent;
    }
    node_normalize(t, v);
}

void hn_suffix_remove(hn_suffix_tree *t, uint32_t from, uint32_t to, uint32_t text_end) {
    for (; from != to; from++) {
        uint32_t left = text_end - from, window = (uint32_t)t->window;
        window_remove(t, from, left < window ? left : window);
    }
}

void hn_suffix_release(hn_suffix_tree *t, uint32_t head) {
    assert(head - t->head <= t->open - t->head);
    t->head = head;
}

/* ---- lookup -------------------------------------------------------------------------------------------------------- */

bool hn_suffix_find(const hn_suffix_tree *t, const int32_t *token, int n, hn_suffix_point *out) {
    if (t->n_nodes == 0) return false;
    uint32_t v = ROOT, used = 0;
    for (int i = 0; i < n; i++) {
        if (used == t->node[v].len) { /* the root's label is empty */
            v = kid_find(t, v, token[i]);
            if (v == NONE) return false;
            used = 1;
        } else {
            if (hn_suffix_token(t, t->node[v].at + used) != token[i]) return false;
            used++;
        }
    }
    *out = (hn_suffix_point){v, used};
    return true;
}

static bool node_before(const hn_suffix_tree *t, uint32_t a, uint32_t b) {
    const hn_suffix_node *x = &t->node[a], *y = &t->node[b];
    if (x->count != y->count) return x->count > y->count;
    return (int32_t)(x->at - y->at) < 0; /* positions may have wrapped; both are stored */
}

/* Inserts the nodes of one search tree into out[0..n) in order, the best `max` of them; returns n. */
static int kids_collect(const hn_suffix_tree *t, uint32_t k, uint32_t least, hn_suffix_next *out, int n, int max) {
    if (k == NONE || t->node[k].most < least || (n == max && t->node[k].most < out[n - 1].count)) return n;
    const hn_suffix_node *kid = &t->node[k];
    if (kid->count >= least && (n < max || node_before(t, k, out[n - 1].point.node))) {
        int i = n < max ? n++ : n - 1;
        for (; i > 0 && node_before(t, k, out[i - 1].point.node); i--) out[i] = out[i - 1];
        out[i] = (hn_suffix_next){kid->token, kid->count, {k, 1}};
    }
    n = kids_collect(t, kid->side[0], least, out, n, max);
    return kids_collect(t, kid->side[1], least, out, n, max);
}

int hn_suffix_follow(const hn_suffix_tree *t, hn_suffix_point p, uint32_t least, hn_suffix_next *out, int max) {
    const hn_suffix_node *n = &t->node[p.node];
    if (p.used == n->len) return kids_collect(t, n->kids, least, out, 0, max);
    if (n->count < least) return 0;
    out[0] = (hn_suffix_next){hn_suffix_token(t, n->at + p.used), n->count, {p.node, p.used + 1}};
    return 1;
}

/* ---- size and shape ------------------------------------------------------------------------------------------------ */

size_t hn_suffix_bytes(const hn_suffix_tree *t) {
    return t->ring_size * sizeof *t->ring + t->node_size * sizeof *t->node;
}

uint32_t hn_suffix_capacity(size_t bytes) {
    /* two nodes a token and two more; a ring of fewer than two places a token, or the smallest one */
    size_t fixed = 2 * sizeof(hn_suffix_node) + 64 * sizeof(int32_t);
    size_t tokens = bytes < fixed ? 0 : (bytes - fixed) / (2 * sizeof(hn_suffix_node) + 2 * sizeof(int32_t));
    return tokens < 1u << 30 ? (uint32_t)tokens : 1u << 30;
}

/* State of the walk over all nodes. */
typedef struct walk {
    const hn_suffix_tree *t;
    uint32_t nodes;
} walk;

static bool node_valid(walk *w, uint32_t v, uint32_t depth);

/* Checks the search tree below k: tokens with these `level` low bits. Adds the children's counts to *sum. */
static bool kids_valid(walk *w, uint32_t k, uint32_t parent, int level, uint32_t bits, uint32_t depth, uint64_t *sum) {
    const hn_suffix_tree *t = w->t;
    if (k == NONE) return true;
    if (k >= t->n_nodes || level > 32) return false;
    const hn_suffix_node *n = &t->node[k];
    uint32_t mask = level == 32 ? UINT32_MAX : (1u << level) - 1, most = n->count;
    if (n->parent != parent || ((uint32_t)n->token & mask) != bits) return false;
    for (int s = 0; s < 2; s++) {
        if (!kids_valid(w, n->side[s], parent, level + 1, bits | (uint32_t)s << (level & 31), depth, sum)) return false;
        if (n->side[s] != NONE && t->node[n->side[s]].most > most) most = t->node[n->side[s]].most;
    }
    *sum += n->count;
    return n->most == most && node_valid(w, k, depth);
}

static bool node_valid(walk *w, uint32_t v, uint32_t depth) {
    const hn_suffix_tree *t = w->t;
    const hn_suffix_node *n = &t->node[v];
    uint64_t sum = 0;
    w->nodes++;
    if (v != ROOT) {
        if (n->count == 0 || n->len == 0 || depth + n->len > (uint32_t)t->window) return false;
        if (n->at - depth - t->head >= t->open - t->head || t->open - n->at < n->len) return false;
        if (hn_suffix_token(t, n->at) != n->token) return false;
        uint32_t k = kid_only(t, v);
        if (k != NONE && t->node[k].count == n->count) return false;
    }
    return kids_valid(w, n->kids, v, 0, 0, depth + n->len, &sum) && (v == ROOT || sum <= n->count);
}

bool hn_suffix_valid(const hn_suffix_tree *t) {
    walk w = {t, 0};
    if (t->open - t->head > t->end - t->head || t->end - t->head > t->max_tokens) return false;
    if (t->n_nodes == 0) return t->open == t->head;
    if (!node_valid(&w, ROOT, 0) || w.nodes + t->n_free != t->n_nodes) return false;
    return w.nodes <= 2 * (t->open - t->head) + 1;
}
