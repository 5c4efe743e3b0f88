/* SPDX-License-Identifier: Apache-2.0 */
/* matcher.c - steps of a matcher: a token's bytes, or the symbol that a control token is. Masks: matcher_mask.c. */
#include "grammar/matcher.h"

#include <string.h>

#include "base/mem.h"
#include "grammar/matcher_private.h"


static bool names_find(hn_matcher *m) {
    const size_t n = m->grammar->n_names;
    m->is_control = hn_zalloc(n, 1);
    m->control_of = hn_alloc(n * sizeof *m->control_of);
    if (!m->is_control || !m->control_of) return false;
    for (size_t i = 0; i < n; i++) {
        m->control_of[i] = hn_vocab_control(m->vocab, m->grammar->names[i]);
        m->is_control[i] = m->control_of[i] >= 0;
    }
    return true;
}

static bool masks_init(hn_matcher *m) {
    const size_t words = ((size_t)m->vocab->vocab + 63) / 64, bytes = words * sizeof(uint64_t);
    m->n_masks = HN_MASK_BYTES / bytes;
    if (m->n_masks < HN_MASKS_LEAST) m->n_masks = HN_MASKS_LEAST;
    if (m->n_masks > 4096) m->n_masks = 4096;
    m->masks = hn_zalloc(m->n_masks, sizeof *m->masks);
    m->walk = hn_alloc((size_t)(m->vocab->max_bytes + 1) * sizeof *m->walk);
    m->stay = hn_alloc((size_t)(m->vocab->max_bytes + 1) * sizeof *m->stay);
    for (size_t i = 0; m->masks && i < m->n_masks; i++) m->masks[i].state = -1;
    return m->masks && m->walk && m->stay;
}

hunch_status hn_matcher_open(hn_matcher **out, hn_grammar **g, const hn_vocab_trie *v, hunch_error *err) {
    hn_matcher *m = hn_zalloc(1, sizeof *m);
    *out = NULL;
    if (!m || pthread_mutex_init(&m->lock, NULL) != 0) {
        hn_free(m);
        hn_grammar_close(g);
        return hn_fail_memory(err, "a grammar's matcher", sizeof *m);
    }
    m->grammar = *g;
    m->vocab = v;
    *g = NULL;
    hunch_status s = names_find(m) && masks_init(m) ? HUNCH_OK : hn_fail_memory(err, "a grammar's matcher", sizeof *m);
    if (!s) s = hn_automaton_open(&m->states, m->grammar, m->is_control, v->n_controls > 0, v->max_bytes, err);
    if (!s) m->start = hn_joint_number(m, (hn_joint){m->states->start, 0});
    if (!s && m->start < 0) s = hn_fail_memory(err, "a grammar's matcher", sizeof *m);
    if (s)
        hn_matcher_close(&m);
    else
        *out = m;
    return s;
}

const hn_grammar *hn_matcher_grammar(const hn_matcher *m) {
    return m->grammar;
}

void hn_matcher_close(hn_matcher **out) {
    hn_matcher *m = *out;
    if (!m) return;
    hn_automaton_close(&m->states);
    hn_grammar_close(&m->grammar);
    for (size_t i = 0; m->masks && i < m->n_masks; i++) hn_free(m->masks[i].bits);
    hn_keys_seen_fini(&m->keys);
    hn_free(m->joints);
    hn_free(m->joint_index);
    hn_free(m->masks);
    hn_free(m->mask_of);
    hn_free(m->walk);
    hn_free(m->stay);
    hn_free(m->loops);
    hn_free(m->is_control);
    hn_free(m->control_of);
    pthread_mutex_destroy(&m->lock);
    hn_free(m);
    *out = NULL;
}

size_t hn_matcher_memory(hn_matcher *m) {
    const hn_grammar *g = m->grammar;
    const size_t words = ((size_t)m->vocab->vocab + 63) / 64;
    pthread_mutex_lock(&m->lock);
    size_t sum = sizeof *m + g->cap_code * sizeof *g->code + g->cap_targets * sizeof *g->targets + g->cap_procs * sizeof *g->procs +
                 g->n_sets * sizeof *g->sets + g->n_names * sizeof *g->names;
    sum += hn_automaton_bytes(m->states) + hn_keys_seen_bytes(&m->keys) + m->cap_joints * sizeof *m->joints;
    sum += m->cap_joint_index * sizeof *m->joint_index + m->cap_loops * sizeof *m->loops + m->cap_mask_of * sizeof *m->mask_of;
    sum += m->n_masks * sizeof *m->masks + m->n_bits * words * sizeof *m->masks->bits;
    pthread_mutex_unlock(&m->lock);
    return sum;
}

bool hn_matcher_is_full(hn_matcher *m) {
    pthread_mutex_lock(&m->lock);
    const bool full = m->states->full || m->joints_full;
    pthread_mutex_unlock(&m->lock);
    return full;
}

int32_t hn_matcher_start(hn_matcher *m) {
    return m->start;
}

/* ---- steps, under the lock ---- */

static int32_t step_bytes(hn_matcher *m, int32_t number, const char *bytes, size_t len) {
    hn_joint j = hn_joint_of(m, number);
    for (size_t i = 0; i < len && j.state >= 0; i++) j = hn_joint_byte(m, j, (unsigned char)bytes[i]);
    return hn_joint_number(m, j);
}

static int32_t step_control(hn_matcher *m, int32_t number, int32_t token) {
    int32_t name = -1;
    for (size_t i = 0; i < m->grammar->n_names; i++)
        if (m->control_of[i] == token) name = (int32_t)i;
    return hn_joint_number(m, (hn_joint){hn_automaton_control(m->states, hn_joint_of(m, number).state, name), 0});
}

static int32_t step_token(hn_matcher *m, int32_t number, int32_t token) {
    const hn_tokenizer *t = m->vocab->tokenizer;
    size_t len = 0;
    if (token < 0 || token >= m->vocab->vocab || hn_tokenizer_is_padding(t, token)) return HN_MATCH_NO;
    if (hn_tokenizer_is_end(t, token)) return m->states->states[hn_joint_of(m, number).state].final ? HN_MATCH_ENDED : HN_MATCH_NO;
    if (hn_tokenizer_is_special(t, token)) return step_control(m, number, token);
    const char *bytes = hn_tokenizer_piece(t, token, &len);
    return len ? step_bytes(m, number, bytes, len) : HN_MATCH_NO;
}

/* A state that a step may begin in. */
static bool goes_on(int32_t state) {
    return state >= 0 && state != HN_MATCH_ENDED;
}

int32_t hn_matcher_next(hn_matcher *m, int32_t state, int32_t token) {
    if (!goes_on(state)) return state == HN_MATCH_FULL ? HN_MATCH_FULL : HN_MATCH_NO;
    pthread_mutex_lock(&m->lock);
    const int32_t to = step_token(m, state, token);
    pthread_mutex_unlock(&m->lock);
    return to;
}

int32_t hn_matcher_bytes(hn_matcher *m, int32_t state, const char *bytes, size_t len) {
    if (!goes_on(state)) return state == HN_MATCH_FULL ? HN_MATCH_FULL : HN_MATCH_NO;
    pthread_mutex_lock(&m->lock);
    const int32_t to = step_bytes(m, state, bytes, len);
    pthread_mutex_unlock(&m->lock);
    return to;
}

bool hn_matcher_is_final(hn_matcher *m, int32_t state) {
    if (!goes_on(state)) return state == HN_MATCH_ENDED;
    pthread_mutex_lock(&m->lock);
    const bool final = m->states->states[hn_joint_of(m, state).state].final;
    pthread_mutex_unlock(&m->lock);
    return final;
}

int hn_matcher_mask(hn_matcher *m, int32_t state, uint64_t *mask) {
    const size_t words = ((size_t)m->vocab->vocab + 63) / 64;
    int count = 0;
    if (!goes_on(state)) {
        memset(mask, 0, words * sizeof *mask);
        return state == HN_MATCH_FULL ? HN_MATCH_FULL : 0;
    }
    pthread_mutex_lock(&m->lock);
    const hn_joint j = hn_joint_of(m, state);
    const uint64_t *bits = hn_matcher_bits(m, j.state, &count);
    if (bits) memcpy(mask, bits, words * sizeof *mask);
    const bool ok = bits && hn_joint_filter(m, j, mask, &count);
    pthread_mutex_unlock(&m->lock);
    return ok ? count : HN_MATCH_FULL;
}

/* ---- what must come ---- */

/* The one byte that a state's threads wait for; -1: there are several, or a control token may come. */
static int only_byte(const hn_automaton *a, int32_t state) {
    const hn_state s = a->states[state];
    hn_byte_set all = {{0}};
    int n = 0, byte = -1;
    if (s.final) return -1;
    for (uint32_t i = 0; i < s.n; i++) {
        const hn_instr *c = &a->g->code[a->threads[s.first + i].pc];
        if (c->op != HN_OP_SET) return -1;
        for (int w = 0; w < 4; w++) all.bits[w] |= a->g->sets[c->x].bits[w];
    }
    for (int w = 0; w < 4; w++) {
        n += __builtin_popcountll(all.bits[w]);
        if (all.bits[w]) byte = 64 * w + __builtin_ctzll(all.bits[w]);
    }
    return n == 1 ? byte : -1;
}

size_t hn_matcher_forced(hn_matcher *m, int32_t state, char *bytes, size_t cap) {
    size_t n = 0;
    if (!goes_on(state)) return 0;
    pthread_mutex_lock(&m->lock);
    state = hn_joint_of(m, state).state;
    for (int byte; n < cap && state >= 0 && (byte = only_byte(m->states, state)) >= 0;) {
        bytes[n++] = (char)byte;
        state = hn_automaton_byte(m->states, state, (unsigned char)byte);
    }
    pthread_mutex_unlock(&m->lock);
    return n;
}
