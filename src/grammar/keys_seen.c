/* SPDX-License-Identifier: Apache-2.0 */
/* keys_seen.c - facts, each kept once: a letter is its byte and the letters before it, so that equal keys are equal numbers; a set is a key
 * and the set before it; an open object or array has its set and what it is in. */
#include "grammar/keys_seen.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/number_index.h"

enum { LETTER = 1, SET, OPEN, STATE };
enum { VALUE, KEY_START, KEY, KEY_ESCAPE, STRING, STRING_ESCAPE, ITEM, ITEM_STRING, ITEM_ESCAPE };
enum { OBJECT = 1, ANY_KEYS = 2 /* it, or one that it is in, has keys */, UNIQUE = 4 /* an array that has no item twice */ };
enum { MAX_FACTS = 2 << 20, FIRST = 256 };

void hn_keys_seen_fini(hn_keys_seen *k) {
    hn_free(k->facts);
    hn_free(k->index);
    *k = (hn_keys_seen){0};
}

size_t hn_keys_seen_bytes(const hn_keys_seen *k) {
    return k->cap * sizeof *k->facts + k->cap_index * sizeof *k->index;
}

static uint64_t hash_fact(const hn_keys_fact *f) {
    return hn_hash_word(hn_hash_word((uint64_t)(uint32_t)f->kind << 32 | (uint32_t)f->a, (uint32_t)f->b), (uint32_t)f->c);
}

static uint64_t hash_of_fact(const void *of, size_t i) {
    const hn_keys_seen *k = of;
    return hash_fact(&k->facts[i]);
}

/* Its number, added if `add`; HN_KEYS_FULL, or without `add` -1: there is none. */
static int32_t fact_of(hn_keys_seen *k, hn_keys_fact f, bool add) {
    if (!k->cap_index && !add) return -1;
    if (add && 2 * (k->n + 2) > k->cap_index && !hn_number_index_grow(&k->index, &k->cap_index, FIRST, 1, k->n, hash_of_fact, k))
        return HN_KEYS_FULL;
    size_t at = hash_fact(&f) & (k->cap_index - 1);
    for (; k->index[at]; at = (at + 1) & (k->cap_index - 1)) {
        const hn_keys_fact *x = &k->facts[k->index[at] - 1];
        if (x->kind == f.kind && x->a == f.a && x->b == f.b && x->c == f.c) return k->index[at] - 1;
    }
    if (!add) return -1;
    if (k->n >= MAX_FACTS || !hn_grow((void **)&k->facts, &k->cap, k->n + 2, sizeof *k->facts)) return HN_KEYS_FULL;
    if (k->n == 0) k->facts[k->n++] = (hn_keys_fact){STATE, 0, VALUE, 0}; /* number 0: nothing, and the first state */
    k->facts[k->n] = f;
    k->index[at] = (int32_t)k->n + 1;
    return (int32_t)k->n++;
}

/* ---- states ---- */

typedef struct place {
    int32_t open, mode, letters;
} place;

static place place_of(const hn_keys_seen *k, int32_t state) {
    if (state == 0) return (place){0, VALUE, 0};
    const hn_keys_fact *f = &k->facts[state];
    return (place){f->a, f->b, f->c};
}

static int32_t state_of(hn_keys_seen *k, place p) {
    if (p.open < 0 || p.letters < 0) return HN_KEYS_FULL;
    if (p.open == 0 && p.mode == VALUE) return 0;
    return fact_of(k, (hn_keys_fact){STATE, p.open, p.mode, p.letters}, true);
}

static int32_t outer(const hn_keys_seen *k, int32_t open) {
    return open ? k->facts[open].a : 0;
}

static int32_t set_of(const hn_keys_seen *k, int32_t open) {
    return open ? k->facts[open].b : 0;
}

static bool is_object(const hn_keys_seen *k, int32_t open) {
    return open && (k->facts[open].c & OBJECT);
}

static bool any_keys(const hn_keys_seen *k, int32_t open) {
    return open && (k->facts[open].c & ANY_KEYS);
}

/* marks: OBJECT, UNIQUE or none. */
static int32_t open_of(hn_keys_seen *k, int32_t before, int32_t set, int32_t marks) {
    if (set || any_keys(k, before)) marks |= ANY_KEYS;
    return fact_of(k, (hn_keys_fact){OPEN, before, set, marks}, true);
}

static bool has_key(const hn_keys_seen *k, int32_t set, int32_t key) {
    for (; set; set = k->facts[set].a)
        if (k->facts[set].b == key) return true;
    return false;
}

/* The open object with one more key; keys without letters are number 0, so their sets count from one. */
static int32_t key_put(hn_keys_seen *k, int32_t open, int32_t key) {
    const int32_t set = fact_of(k, (hn_keys_fact){SET, set_of(k, open), key, 0}, true);
    return set < 0 ? HN_KEYS_FULL : open_of(k, outer(k, open), set, k->facts[open].c & (OBJECT | UNIQUE));
}

/* A byte outside of strings. */
static void structure(hn_keys_seen *k, place *p, unsigned char byte, bool unique) {
    if (byte == '"') {
        p->mode = p->mode == KEY_START ? KEY : STRING;
    } else if (byte == '{' || byte == '[') {
        p->open = open_of(k, p->open, 0, byte == '{' ? OBJECT : unique ? UNIQUE : 0);
        p->mode = byte == '{' ? KEY_START : unique ? ITEM : VALUE;
    } else if (byte == '}' || byte == ']') {
        p->open = outer(k, p->open);
        p->mode = VALUE;
    } else if (byte == ',') {
        p->mode = is_object(k, p->open) ? KEY_START : VALUE;
    }
}

static void letter(hn_keys_seen *k, place *p, unsigned char byte) {
    p->letters = fact_of(k, (hn_keys_fact){LETTER, p->letters, byte, 0}, true);
}

/* A byte of an array that has no item twice. False: it ends one that is there. */
static bool item_byte(hn_keys_seen *k, place *p, unsigned char byte, bool unique) {
    const bool ends = p->mode == ITEM && (byte == ',' || byte == ']');
    if (ends && p->letters) {
        if (has_key(k, set_of(k, p->open), p->letters)) return false;
        p->open = key_put(k, p->open, p->letters);
        p->letters = 0;
    }
    if (ends) {
        if (byte == ']' && p->open >= 0) *p = (place){outer(k, p->open), VALUE, 0};
    } else if (p->mode == ITEM && (byte == '[' || byte == '{')) { /* another way of reading the text, in which it is an array like others */
        p->open = open_of(k, outer(k, p->open), 0, 0);
        if (p->open >= 0) structure(k, p, byte, unique);
        p->letters = 0;
    } else if (!(p->mode == ITEM && byte == ' ' && !p->letters)) {
        if (p->mode == ITEM_ESCAPE)
            p->mode = ITEM_STRING;
        else if (p->mode == ITEM_STRING)
            p->mode = byte == '"' ? ITEM : byte == '\\' ? ITEM_ESCAPE : ITEM_STRING;
        else if (byte == '"')
            p->mode = ITEM_STRING;
        letter(k, p, byte);
    }
    return true;
}

int32_t hn_keys_seen_next(hn_keys_seen *k, int32_t state, unsigned char byte, bool unique) {
    place p = place_of(k, state);
    switch (p.mode) {
    case ITEM:
    case ITEM_STRING:
    case ITEM_ESCAPE:
        if (!item_byte(k, &p, byte, unique)) return HN_KEYS_TWICE;
        break;
    case STRING:
        if (byte != '"' && byte != '\\') return state;
        p.mode = byte == '"' ? VALUE : STRING_ESCAPE;
        break;
    case STRING_ESCAPE: p.mode = STRING; break;
    case KEY:
        if (byte == '"') {
            if (has_key(k, set_of(k, p.open), p.letters)) return HN_KEYS_TWICE;
            p = (place){key_put(k, p.open, p.letters), VALUE, 0};
            break;
        }
        p.mode = byte == '\\' ? KEY_ESCAPE : KEY;
        letter(k, &p, byte);
        break;
    case KEY_ESCAPE:
        p.mode = KEY;
        letter(k, &p, byte);
        break;
    default: structure(k, &p, byte, unique);
    }
    return state_of(k, p);
}

int hn_keys_seen_quotes(const hn_keys_seen *k, int32_t state) {
    const place p = place_of(k, state);
    if (!any_keys(k, p.open)) return 0;
    return p.mode == KEY || p.mode == KEY_ESCAPE ? 1 : 2;
}

/* ---- what a text would do ---- */

/* All bytes, with what they add. */
static int twice_by_steps(hn_keys_seen *k, int32_t state, const char *bytes, size_t len) {
    for (size_t i = 0; i < len && state >= 0; i++) state = hn_keys_seen_next(k, state, (unsigned char)bytes[i], false);
    return state == HN_KEYS_FULL ? HN_KEYS_FULL : state == HN_KEYS_TWICE;
}

/* A byte outside of strings; *deeper: the text itself opened an object (*object) or an array. */
static void look_structure(const hn_keys_seen *k, place *p, int *deeper, bool *object, unsigned char byte) {
    if (byte == '"') {
        p->mode = p->mode == KEY_START ? KEY : STRING;
        p->letters = 0;
    } else if (byte == '{' || byte == '[') {
        ++*deeper;
        *object = byte == '{';
        p->mode = *object ? KEY_START : VALUE;
    } else if (byte == '}' || byte == ']') {
        if (*deeper)
            --*deeper;
        else
            p->open = outer(k, p->open);
        p->mode = VALUE;
    } else if (byte == ',') {
        p->mode = (*deeper ? *object : is_object(k, p->open)) ? KEY_START : VALUE;
    }
}

/* Of what the text itself opens only one level is looked at, and of keys one: more are rare, and all steps know them. */
int hn_keys_seen_twice(hn_keys_seen *k, int32_t state, const char *bytes, size_t len) {
    place p = place_of(k, state);
    int deeper = 0, keys = 0;
    bool object = false;
    for (size_t i = 0; i < len; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        switch (p.mode) {
        case STRING:
            if (byte == '"') p.mode = VALUE;
            if (byte == '\\') p.mode = STRING_ESCAPE;
            break;
        case STRING_ESCAPE: p.mode = STRING; break;
        case KEY:
        case KEY_ESCAPE:
            if (p.mode == KEY && byte == '"') {
                if (++keys > 1) return twice_by_steps(k, state, bytes, len);
                if (!deeper && p.letters >= 0 && has_key(k, set_of(k, p.open), p.letters)) return 1;
                p.mode = VALUE;
                break;
            }
            p.mode = p.mode == KEY && byte == '\\' ? KEY_ESCAPE : KEY;
            if (p.letters >= 0) p.letters = fact_of(k, (hn_keys_fact){LETTER, p.letters, byte, 0}, false);
            break;
        default:
            if (deeper && (byte == '{' || byte == '[')) return twice_by_steps(k, state, bytes, len);
            look_structure(k, &p, &deeper, &object, byte);
        }
    }
    return 0;
}

/* ---- what is left ---- */

hn_keys_left hn_keys_seen_place(const hn_keys_seen *k, int32_t state) {
    const place p = place_of(k, state);
    if (!set_of(k, p.open)) return HN_KEYS_ELSEWHERE;
    switch (p.mode) {
    case KEY_START: return HN_KEYS_BEFORE;
    case ITEM: return p.letters ? HN_KEYS_ITEM : HN_KEYS_BEFORE;
    case KEY:
    case KEY_ESCAPE:
    case ITEM_STRING:
    case ITEM_ESCAPE: return HN_KEYS_INSIDE;
    default: return HN_KEYS_ELSEWHERE;
    }
}

bool hn_keys_seen_in_string(const hn_keys_seen *k, int32_t state) {
    const int mode = place_of(k, state).mode;
    return mode == STRING || mode == STRING_ESCAPE;
}

/* Whether the letters are the first ones of a key. */
static bool key_begins(const hn_keys_seen *k, int32_t key, int32_t letters) {
    while (key && key != letters) key = k->facts[key].a;
    return key == letters;
}

bool hn_keys_seen_begins(const hn_keys_seen *k, int32_t state, unsigned char byte) {
    const place p = place_of(k, state);
    /* a look-up alone adds nothing, and leaves it as it is */
    const int32_t letters = fact_of((hn_keys_seen *)(uintptr_t)k, (hn_keys_fact){LETTER, p.letters, byte, 0}, false);
    for (int32_t set = set_of(k, p.open); letters > 0 && set; set = k->facts[set].a)
        if (key_begins(k, k->facts[set].b, letters)) return true;
    return false;
}

int hn_keys_seen_rest(const hn_keys_seen *k, int32_t state, int32_t *after, char *bytes, int cap) {
    const place p = place_of(k, state);
    int32_t set = *after ? k->facts[*after].a : set_of(k, p.open);
    while (set && !key_begins(k, k->facts[set].b, p.letters)) set = k->facts[set].a;
    if (!set) return -1;
    *after = set;
    int n = 0;
    for (int32_t key = k->facts[set].b; key != p.letters; key = k->facts[key].a) n++;
    int at = n;
    for (int32_t key = k->facts[set].b; key != p.letters; key = k->facts[key].a)
        if (--at < cap) bytes[at] = (char)k->facts[key].b;
    return n < cap ? n : cap;
}

void hn_keys_seen_forget(hn_keys_seen *k, size_t n) {
    while (k->n > n && k->n > 1) {
        const int32_t last = (int32_t)k->n;
        size_t at = hash_fact(&k->facts[last - 1]) & (k->cap_index - 1);
        while (k->index[at] != last) at = (at + 1) & (k->cap_index - 1);
        k->index[at] = 0; /* the one that was put last: none was put behind it */
        k->n--;
    }
}
