/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_joint.c - states of the automaton together with the keys that a JSON text has: a key that is written twice ends the threads
 * that are in JSON. A grammar with no JSON in it has nothing to join. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/number_index.h"
#include "grammar/matcher_private.h"

enum { MAX_JOINTS = 4 << 20, FIRST = 1024 };

hn_joint hn_joint_of(const hn_matcher *m, int32_t number) {
    return m->grammar->has_json ? m->joints[number] : (hn_joint){number, 0};
}

static uint64_t hash_joint(hn_joint j) {
    return hn_hash_word(0, (uint64_t)(uint32_t)j.state << 32 | (uint32_t)j.keys);
}

static uint64_t hash_of_joint(const void *matcher, size_t i) {
    const hn_matcher *m = matcher;
    return hash_joint(m->joints[i]);
}

static int32_t fill(hn_matcher *m) {
    m->joints_full = true;
    return HN_STATE_FULL;
}

int32_t hn_joint_number(hn_matcher *m, hn_joint j) {
    if (j.state < 0 || !m->grammar->has_json) return j.state;
    if (2 * (m->n_joints + 1) > m->cap_joint_index &&
        !hn_number_index_grow(&m->joint_index, &m->cap_joint_index, FIRST, 0, m->n_joints, hash_of_joint, m))
        return fill(m);
    size_t at = hash_joint(j) & (m->cap_joint_index - 1);
    for (; m->joint_index[at]; at = (at + 1) & (m->cap_joint_index - 1)) {
        const hn_joint *x = &m->joints[m->joint_index[at] - 1];
        if (x->state == j.state && x->keys == j.keys) return m->joint_index[at] - 1;
    }
    if (m->n_joints == MAX_JOINTS || !hn_grow((void **)&m->joints, &m->cap_joints, m->n_joints + 1, sizeof *m->joints)) return fill(m);
    m->joints[m->n_joints] = j;
    m->joint_index[at] = (int32_t)m->n_joints + 1;
    return (int32_t)m->n_joints++;
}

/* Whether a [ that the state allows is one of an array that has no item twice. */
static bool opens_unique(const hn_automaton *a, int32_t state) {
    const hn_state s = a->states[state];
    for (uint32_t i = 0; i < s.n; i++)
        if (a->g->code[a->threads[s.first + i].pc].unique) return true;
    return false;
}

/* By one byte, without a look at what may come then. */
static hn_joint step(hn_matcher *m, hn_joint j, unsigned char byte) {
    hn_automaton *a = m->states;
    if (!a->states[j.state].json) return (hn_joint){hn_automaton_byte(a, j.state, byte), 0};
    const bool unique = byte == '[' && m->grammar->looks_further && opens_unique(a, j.state);
    int32_t keys = hn_keys_seen_next(&m->keys, j.keys, byte, unique);
    if (keys == HN_KEYS_FULL) return (hn_joint){fill(m), 0};
    if (keys == HN_KEYS_TWICE) j.state = hn_automaton_without_json(a, j.state);
    if (j.state < 0) return (hn_joint){j.state, 0};
    const int32_t next = hn_automaton_byte(a, j.state, byte);
    if (keys == HN_KEYS_TWICE || next < 0 || !a->states[next].json) keys = 0;
    return (hn_joint){next, keys};
}

/* Whether every key or item that the text could go on with, in what it has of one, is there already: then it must not begin so. Only what
 * was written is followed, so this ends. */
static bool is_spent(hn_matcher *m, hn_joint j, int depth) {
    enum { DEEPEST = 300 };
    const hn_keys_left place = hn_keys_seen_place(&m->keys, j.keys);
    if (place == HN_KEYS_ELSEWHERE || m->states->states[j.state].other || depth == DEEPEST) return false;
    for (int byte = 0; byte < 256; byte++) {
        const int32_t to = hn_automaton_byte(m->states, j.state, (unsigned char)byte);
        if (to == HN_STATE_FULL) return false;
        if (to < 0) continue;
        const bool blank = place == HN_KEYS_BEFORE && (byte == ' ' || byte == '"');
        const bool begins = hn_keys_seen_begins(&m->keys, j.keys, (unsigned char)byte);
        const bool may_end = (place == HN_KEYS_INSIDE && byte == '"') || (place == HN_KEYS_ITEM && (byte == ',' || byte == ']'));
        if (!blank && !begins && !may_end) return false; /* a new one */
        const hn_joint next = step(m, j, (unsigned char)byte);
        if (next.state == HN_STATE_NONE) continue; /* it was there */
        const bool ended = may_end && hn_keys_seen_place(&m->keys, next.keys) != HN_KEYS_ITEM;
        if (next.state < 0 || ended || !is_spent(m, next, depth + 1)) return false;
    }
    return true;
}

hn_joint hn_joint_byte(hn_matcher *m, hn_joint j, unsigned char byte) {
    const hn_joint next = step(m, j, byte);
    if (next.state < 0 || !m->grammar->looks_further || !m->states->states[next.state].json || !is_spent(m, next, 0)) return next;
    return (hn_joint){HN_STATE_NONE, 0};
}

/* Whether the token is allowed by both, byte by byte. */
static bool token_allowed(hn_matcher *m, hn_joint j, const char *bytes, size_t len) {
    for (size_t i = 0; i < len && j.state >= 0; i++) j = hn_joint_byte(m, j, (unsigned char)bytes[i]);
    return j.state >= 0;
}

/* ---- where keys or items may be spent ---- */

static void take_out(int32_t id, uint64_t *mask, int *count) {
    if (!(mask[id / 64] >> id % 64 & 1)) return;
    mask[id / 64] &= ~((uint64_t)1 << id % 64);
    --*count;
}

/* Takes out the tokens that begin as bytes that were written do, from where these lead nowhere. */
static void filter_along(hn_matcher *m, hn_joint j, const char *bytes, int n, uint64_t *mask, int *count) {
    const hn_vocab_trie *v = m->vocab;
    size_t node = 0, end = v->n_nodes;
    for (int i = 0; i < n; i++) {
        while (node < end && v->nodes[node].byte != (uint8_t)bytes[i]) node = v->nodes[node].skip;
        if (node >= end) return;
        j = hn_joint_byte(m, j, (unsigned char)bytes[i]);
        const size_t next = v->nodes[node].skip;
        if (j.state < 0) {
            const size_t last = next < v->n_nodes ? v->nodes[next].token : v->n_tokens;
            for (size_t k = v->nodes[node].token; k < last; k++) take_out(v->tokens[k], mask, count);
            return;
        }
        end = next;
        node++;
    }
}

/* Tokens that end a key or an item, or go on as one that was written. */
static bool filter_spent(hn_matcher *m, hn_joint j, uint64_t *mask, int *count) {
    const hn_vocab_trie *v = m->vocab;
    const size_t known = m->keys.n, n = hn_keys_seen_in_string(&m->keys, j.keys) ? v->n_quoted : v->n_marked;
    char *rest = hn_alloc((size_t)v->max_bytes + 2);
    if (!rest) return fill(m) >= 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t id = v->quoted[i];
        size_t len = 0;
        if (!(mask[id / 64] >> id % 64 & 1)) continue;
        const char *bytes = hn_tokenizer_piece(v->tokenizer, id, &len);
        if (!token_allowed(m, j, bytes, len)) take_out(id, mask, count);
        hn_keys_seen_forget(&m->keys, known);
    }
    rest[0] = ' ';
    const hn_keys_left place = hn_keys_seen_place(&m->keys, j.keys);
    int32_t after = 0;
    for (int len; place != HN_KEYS_ELSEWHERE && (len = hn_keys_seen_rest(&m->keys, j.keys, &after, rest + 1, v->max_bytes)) >= 0;) {
        filter_along(m, j, rest + 1, len, mask, count);
        if (place == HN_KEYS_BEFORE) filter_along(m, j, rest, len + 1, mask, count);
        hn_keys_seen_forget(&m->keys, known);
    }
    hn_free(rest);
    return !m->joints_full && !m->states->full;
}

bool hn_joint_filter(hn_matcher *m, hn_joint j, uint64_t *mask, int *count) {
    const hn_vocab_trie *v = m->vocab;
    const hn_state s = m->states->states[j.state];
    if (!m->grammar->has_json || !s.json) return true;
    if (m->grammar->looks_further) return filter_spent(m, j, mask, count);
    const int quotes = hn_keys_seen_quotes(&m->keys, j.keys);
    const size_t n = quotes == 1 ? v->n_quoted : v->n_quoted_twice;
    for (size_t i = 0; i < n; i++) {
        const int32_t id = v->quoted[i];
        size_t len = 0;
        if (!(mask[id / 64] >> id % 64 & 1)) continue;
        const char *bytes = hn_tokenizer_piece(v->tokenizer, id, &len);
        const int twice = hn_keys_seen_twice(&m->keys, j.keys, bytes, len);
        if (twice == HN_KEYS_FULL) return fill(m) >= 0;
        if (!twice || token_allowed(m, j, bytes, len)) continue;
        mask[id / 64] &= ~((uint64_t)1 << id % 64);
        --*count;
    }
    return !m->joints_full && !m->states->full;
}
