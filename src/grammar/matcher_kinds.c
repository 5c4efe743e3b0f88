/* SPDX-License-Identifier: Apache-2.0 */
/* matcher_kinds.c - steps by whole kinds of characters: which lead all to one state, which all nowhere, and which from a state to some of a
 * few states, from each of which they lead to these again, so that every text of them is allowed wherever it leads. */
#include <string.h>

#include "base/mem.h"
#include "grammar/matcher_private.h"

/* Bytes of characters above ASCII: the first, and the range of the second; `left` bytes follow the first. */
static const struct wide { uint8_t first, last, low, high, left; } leads[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2}, {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2},
    {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3}, {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
enum { LEADS = sizeof leads / sizeof *leads };

/* Takes a state that a character leads to. False: that is enough. */
typedef bool taker(void *ctx, int32_t state);

/* Takes the states behind `left` more bytes of a character, the first of them in [low, high]. False: one leads nowhere, or it was
 * enough. */
static bool bytes_take(hn_automaton *a, int32_t state, unsigned low, unsigned high, int left, taker *take, void *ctx) {
    int last = -1;
    for (unsigned b = low; b <= high; b++) {
        if (a->class_of[b] == last) continue;
        last = a->class_of[b];
        const int32_t next = hn_automaton_byte(a, state, (unsigned char)b);
        if (next < 0 || !(left == 1 ? take(ctx, next) : bytes_take(a, next, 0x80, 0xBF, left - 1, take, ctx))) return false;
    }
    return true;
}

/* The same of all characters above ASCII. */
static bool wide_take(hn_automaton *a, int32_t state, taker *take, void *ctx) {
    for (size_t i = 0; i < LEADS; i++) {
        int last = -1;
        for (unsigned b = leads[i].first; b <= leads[i].last; b++) {
            if (a->class_of[b] == last) continue;
            last = a->class_of[b];
            const int32_t next = hn_automaton_byte(a, state, (unsigned char)b);
            if (next < 0 || !bytes_take(a, next, leads[i].low, leads[i].high, leads[i].left, take, ctx)) return false;
        }
    }
    return true;
}

/* ---- to one state, and nowhere ---- */

static bool is_same(void *ctx, int32_t state) {
    return state == *(const int32_t *)ctx;
}

uint64_t hn_kinds_to(hn_automaton *a, int32_t state, int32_t *to) {
    uint64_t not = 0;
    *to = hn_automaton_byte(a, state, 'a');
    if (*to < 0) return 0;
    for (unsigned c = 0; c < 128; c++)
        if (hn_automaton_byte(a, state, (unsigned char)c) != *to) not |= HN_KIND(hn_kind_of((unsigned char)c));
    if (not & HN_KIND(HN_KIND_LOWER)) return 0;
    if (!wide_take(a, state, is_same, to)) not |= HN_KIND(HN_KIND_WIDE);
    return ~not & (HN_KIND(HN_KINDS) - 1);
}

uint64_t hn_kinds_dead(hn_automaton *a, int32_t state) {
    uint64_t not = 0;
    for (unsigned c = 0; c < 128; c++)
        if (hn_automaton_byte(a, state, (unsigned char)c) >= 0) not |= HN_KIND(hn_kind_of((unsigned char)c));
    for (unsigned c = 0xC2; c <= 0xF4; c++)
        if (hn_automaton_byte(a, state, (unsigned char)c) >= 0) not |= HN_KIND(HN_KIND_WIDE);
    return ~not & (HN_KIND(HN_KINDS) - 1);
}

/* ---- to some of a few states ---- */

enum { MOST_STATES = 64, MOST_NEW = 400 /* of them that nobody has made yet */ };

typedef struct closure {
    hn_matcher *m;
    hn_automaton *a;
    uint64_t kinds; /* that all states so far allow */
    int32_t state[MOST_STATES];
    int n;
    bool many; /* there are more */
} closure;

hn_state_loop *hn_state_loop_of(hn_matcher *m, int32_t state) {
    if ((size_t)state >= m->cap_loops) {
        const size_t before = m->cap_loops;
        if (!hn_grow((void **)&m->loops, &m->cap_loops, (size_t)state + 1, sizeof *m->loops)) return NULL;
        memset(m->loops + before, 0, (m->cap_loops - before) * sizeof *m->loops);
    }
    return &m->loops[state];
}

static bool put_state(void *ctx, int32_t state) {
    closure *c = ctx;
    hn_state_loop *l = hn_state_loop_of(c->m, state);
    if (l && l->closure == c->m->closures) return true; /* it is there */
    if (l) l->closure = c->m->closures;
    c->many = c->many || !l || c->n == MOST_STATES;
    if (!c->many) c->state[c->n++] = state;
    return true;
}

/* Forgets the kinds that the state does not allow, and adds the states to which the others lead. */
static void state_look(closure *c, int32_t state) {
    hn_automaton *a = c->a;
    for (unsigned b = 0; b < 128; b++)
        if (hn_automaton_byte(a, state, (unsigned char)b) < 0) c->kinds &= ~HN_KIND(hn_kind_of((unsigned char)b));
    if ((c->kinds & HN_KIND(HN_KIND_WIDE)) && !wide_take(a, state, put_state, c)) c->kinds &= ~HN_KIND(HN_KIND_WIDE);
    for (unsigned b = 0; b < 128; b++)
        if (c->kinds & HN_KIND(hn_kind_of((unsigned char)b))) put_state(c, hn_automaton_byte(a, state, (unsigned char)b));
}

/* What is found holds for all its states; that nothing is, too, so that nobody looks again. */
uint64_t hn_kinds_closed(hn_matcher *m, int32_t state) {
    closure c = {.m = m, .a = m->states, .kinds = HN_KINDS_IN_STRING};
    hn_state_loop *l = hn_state_loop_of(m, state);
    const size_t before = m->states->n_states;
    if (!l || l->looked) return l ? l->closed : 0;
    m->closures++;
    put_state(&c, state);
    for (int i = 0; i < c.n && (c.kinds & HN_KIND(HN_KIND_LOWER)) && !c.many; i++) {
        state_look(&c, c.state[i]);
        c.many = c.many || m->states->n_states > before + MOST_NEW;
    }
    if (c.many || !(c.kinds & HN_KIND(HN_KIND_LOWER)) || m->states->full) c.kinds = 0;
    for (int i = 0; i < (c.many || c.kinds ? c.n : 1); i++) {
        l = hn_state_loop_of(m, c.state[i]);
        if (l && !l->looked) l->looked = true, l->closed = c.kinds;
    }
    return c.kinds;
}
