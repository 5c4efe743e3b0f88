/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_mask.c - the tokens that a state allows: a walk of the vocabulary's trie, kept by state, as many as HN_MASK_BYTES are.
 *
 * Inside a string nearly all tokens are allowed, and a walk would visit nearly all nodes. So it is asked first whether all characters of
 * some kinds lead to one state, and from there again, for a few characters, or else to some of a few states (matcher_kinds.c); the tokens
 * that this explains come from a table, the others are walked.
 */
#include <string.h>

#include "base/mem.h"
#include "grammar/matcher_private.h"

enum { MAX_THREADS = 512, /* of a state whose mask is found when it is needed */
       MOST_PREPARED = 24 << 20, /* bytes of states, after which nothing is prepared any more */
       MAX_CHAIN = 16, ENDLESS = UINT16_MAX, OFTEN = 50 /* visits that pay for a look at all characters */ };

/* ---- chains ---- */

/* Kinds of which so many characters may follow each other; exact: and no more. */
typedef struct chain {
    uint64_t kinds;
    int chars;
    bool exact;
} chain;

static chain chain_find(hn_automaton *a, int32_t state) {
    chain c = {0};
    int32_t to;
    for (int n = 1; n <= MAX_CHAIN; n++, state = to) {
        const uint64_t step = hn_kinds_to(a, state, &to);
        if (!step || (n > 1 && (c.kinds & ~step))) {
            c.exact = n > 1 && (c.kinds & ~hn_kinds_dead(a, state)) == 0;
            break;
        }
        if (n == 1) c.kinds = step;
        c.chars = n;
        if (to == state) {
            c.chars = ENDLESS;
            break;
        }
    }
    return c;
}

/* ---- the walk ---- */

static inline void set_bit(uint64_t *bits, int32_t id) {
    bits[id / 64] |= (uint64_t)1 << id % 64;
}

/* Tokens are in the order of the nodes: those below a node are a range. */
static void set_below(const hn_vocab_trie *v, size_t node, int chars, uint64_t *bits) {
    const uint32_t next = v->nodes[node].skip;
    const size_t end = next < v->n_nodes ? v->nodes[next].token : v->n_tokens;
    for (size_t k = v->nodes[node].token; k < end; k++)
        if (v->chars[k] <= chars) set_bit(bits, v->tokens[k]);
}

/* The kinds of characters that stay in a state: found when walks have come to it often. */
static uint64_t loop_kinds(hn_matcher *m, int32_t state) {
    int32_t to;
    hn_state_loop *l = hn_state_loop_of(m, state);
    if (!l || l->visits == OFTEN) return l ? l->kinds : 0;
    if (++l->visits < OFTEN) return 0;
    const uint64_t kinds = hn_kinds_to(m->states, state, &to);
    l->kinds = to == state ? kinds : 0;
    return l->kinds;
}

/* A walk of some nodes, each step by the automaton. False: it is full. */
static bool walk(hn_matcher *m, int32_t state, const hn_trie_node *nodes, size_t n, uint64_t *bits) {
    hn_automaton *a = m->states;
    int32_t *at = m->walk;
    at[0] = state;
    for (size_t i = 0; i < n;) {
        const hn_trie_node *x = &nodes[i];
        const int32_t to = hn_automaton_byte(a, at[x->depth], x->byte);
        if (to < 0) {
            if (to == HN_STATE_FULL) return false;
            i = x->skip;
            continue;
        }
        at[x->depth + 1] = to;
        for (uint32_t k = 0; k < x->n_tokens; k++) set_bit(bits, m->vocab->tokens[x->token + k]);
        i++;
    }
    return true;
}

/* A walk of all nodes without those whose tokens are known: by the chain from the first state, or as all their characters stay in one. */
static bool walk_all(hn_matcher *m, int32_t state, const chain *c, uint64_t *bits) {
    const hn_vocab_trie *v = m->vocab;
    const int all = c->exact ? ENDLESS : c->chars;
    int32_t *at = m->walk;
    uint64_t *stay = m->stay;
    at[0] = state;
    stay[0] = 0;
    for (size_t i = 0; i < v->n_nodes;) {
        const hn_trie_node *x = &v->nodes[i];
        const bool chained = hn_vocab_covered(v, i, c->kinds, all);
        if (chained || (v->below[i] & ~stay[x->depth]) == 0) {
            set_below(v, i, chained ? c->chars : ENDLESS, bits);
            i = x->skip;
            continue;
        }
        const int32_t to = hn_automaton_byte(m->states, at[x->depth], x->byte);
        if (to < 0) {
            if (to == HN_STATE_FULL) return false;
            i = x->skip;
            continue;
        }
        at[x->depth + 1] = to;
        stay[x->depth + 1] = x->skip > i + 1 ? loop_kinds(m, to) : 0;
        for (uint32_t k = 0; k < x->n_tokens; k++) set_bit(bits, v->tokens[x->token + k]);
        i++;
    }
    return !m->states->full;
}

static bool text_tokens(hn_matcher *m, int32_t state, uint64_t *bits) {
    const hn_vocab_trie *v = m->vocab;
    chain c = chain_find(m->states, state);
    if (!c.exact && (c.chars != ENDLESS || (HN_KINDS_IN_STRING & ~c.kinds))) {
        const uint64_t closed = hn_kinds_closed(m, state);
        if (closed) c = (chain){closed, ENDLESS, false};
    }
    if (m->states->full) return false;
    if (c.chars != ENDLESS || (HN_KINDS_IN_STRING & ~c.kinds)) return walk_all(m, state, &c, bits);
    memcpy(bits, v->in_string, ((size_t)v->vocab + 63) / 64 * sizeof *bits);
    return walk(m, state, v->beside, v->n_beside, bits);
}

static void control_tokens(hn_matcher *m, int32_t state, uint64_t *bits) {
    const hn_automaton *a = m->states;
    const hn_state s = a->states[state];
    for (uint32_t i = 0; i < s.n; i++) {
        const hn_instr *c = &a->g->code[a->threads[s.first + i].pc];
        if (c->op == HN_OP_TOKEN) set_bit(bits, m->control_of[c->x]);
        for (size_t k = 0; c->op == HN_OP_CONTROLS && k < m->vocab->n_controls; k++)
            if (m->vocab->controls[k] != m->control_of[c->x]) set_bit(bits, m->vocab->controls[k]);
    }
    for (size_t k = 0; s.final && k < m->vocab->n_ends; k++) set_bit(bits, m->vocab->ends[k]);
}

/* ---- masks that are kept ---- */

/* The place of the mask that was not used for longest, roughly (a clock). */
static hn_kept_mask *place_take(hn_matcher *m, size_t words) {
    for (;; m->hand = (m->hand + 1) % m->n_masks) {
        hn_kept_mask *k = &m->masks[m->hand];
        if (k->state >= 0 && k->used) {
            k->used = false;
            continue;
        }
        if (!k->bits) {
            k->bits = hn_alloc(words * sizeof *k->bits);
            if (!k->bits) return NULL;
            m->n_bits++;
        }
        if (k->state >= 0) m->mask_of[k->state] = 0;
        k->state = -1;
        memset(k->bits, 0, words * sizeof *k->bits);
        return k;
    }
}

static bool numbers_grow(hn_matcher *m) {
    const size_t before = m->cap_mask_of;
    if (!hn_grow((void **)&m->mask_of, &m->cap_mask_of, m->states->n_states, sizeof *m->mask_of)) return false;
    if (m->cap_mask_of > before) memset(m->mask_of + before, 0, (m->cap_mask_of - before) * sizeof *m->mask_of);
    return true;
}

const uint64_t *hn_matcher_bits(hn_matcher *m, int32_t state, int *count) {
    const size_t words = ((size_t)m->vocab->vocab + 63) / 64;
    state = hn_automaton_near(m->states, state);
    if (state < 0 || !numbers_grow(m)) return NULL;
    if (m->mask_of[state]) {
        hn_kept_mask *k = &m->masks[m->mask_of[state] - 1];
        k->used = true;
        *count = k->count;
        return k->bits;
    }
    hn_kept_mask *k = place_take(m, words);
    if (!k || !text_tokens(m, state, k->bits)) return NULL;
    control_tokens(m, state, k->bits);
    k->count = 0;
    for (size_t i = 0; i < words; i++) k->count += __builtin_popcountll(k->bits[i]);
    k->state = state;
    k->used = true;
    m->mask_of[state] = (int32_t)(k - m->masks) + 1;
    *count = k->count;
    return k->bits;
}

/* States of many threads, and those that come of them, which are behind them. */
void hn_matcher_prepare(hn_matcher *m) {
    hn_automaton *a = m->states;
    int count;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < a->n_states && hn_automaton_bytes(a) < MOST_PREPARED; i++)
        if (a->states[i].n > MAX_THREADS && !hn_matcher_bits(m, (int32_t)i, &count)) break;
    pthread_mutex_unlock(&m->lock);
}
