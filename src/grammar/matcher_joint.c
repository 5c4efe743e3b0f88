/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_joint.c - states of the automaton together with the keys that a JSON text has: a key that is written twice ends the threads
 * that are in JSON. A grammar with no JSON in it has nothing to join. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "grammar/matcher_private.h"

enum { MAX_JOINTS = 4 << 20, FIRST = 1024 };

hn_joint hn_joint_of(const hn_matcher *m, int32_t number) {
    return m->grammar->has_json ? m->joints[number] : (hn_joint){number, 0};
}

static uint64_t hash_joint(hn_joint j) {
    return hn_hash_word(0, (uint64_t)(uint32_t)j.state << 32 | (uint32_t)j.keys);
}

static bool index_grow(hn_matcher *m) {
    const size_t wide = m->cap_joint_index ? 2 * m->cap_joint_index : FIRST;
    int32_t *index = hn_zalloc(wide, sizeof *index);
    if (!index) return false;
    for (size_t i = 0; i < m->n_joints; i++) {
        size_t at = hash_joint(m->joints[i]) & (wide - 1);
        while (index[at]) at = (at + 1) & (wide - 1);
        index[at] = (int32_t)i + 1;
    }
    hn_free(m->joint_index);
    m->joint_index = index;
    m->cap_joint_index = wide;
    return true;
}

static int32_t fill(hn_matcher *m) {
    m->joints_full = true;
    return HN_STATE_FULL;
}

int32_t hn_joint_number(hn_matcher *m, hn_joint j) {
    if (j.state < 0 || !m->grammar->has_json) return j.state;
    if (2 * (m->n_joints + 1) > m->cap_joint_index && !index_grow(m)) return fill(m);
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

hn_joint hn_joint_byte(hn_matcher *m, hn_joint j, unsigned char byte) {
    hn_automaton *a = m->states;
    if (!a->states[j.state].json) return (hn_joint){hn_automaton_byte(a, j.state, byte), 0};
    int32_t keys = hn_keys_seen_next(&m->keys, j.keys, byte);
    if (keys == HN_KEYS_FULL) return (hn_joint){fill(m), 0};
    if (keys == HN_KEYS_TWICE) j.state = hn_automaton_without_json(a, j.state);
    if (j.state < 0) return (hn_joint){j.state, 0};
    const int32_t next = hn_automaton_byte(a, j.state, byte);
    if (keys == HN_KEYS_TWICE || next < 0 || !a->states[next].json) keys = 0;
    return (hn_joint){next, keys};
}

/* Whether the token is allowed by both, byte by byte. */
static bool token_allowed(hn_matcher *m, hn_joint j, const char *bytes, size_t len) {
    for (size_t i = 0; i < len && j.state >= 0; i++) j = hn_joint_byte(m, j, (unsigned char)bytes[i]);
    return j.state >= 0;
}

bool hn_joint_filter(hn_matcher *m, hn_joint j, uint64_t *mask, int *count) {
    const hn_vocab_trie *v = m->vocab;
    const hn_state s = m->states->states[j.state];
    if (!m->grammar->has_json || !s.json) return true;
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
