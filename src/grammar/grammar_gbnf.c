/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_gbnf.c - reads GBNF, the notation of llama.cpp: rules `name ::= alternatives` of literals, classes of characters, references,
 * groups and repeats. What of it is read: docs/structured.md.
 */
#include <string.h>

#include "base/ascii.h"
#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "grammar/grammar_ranges.h"

enum { MAX_GROUPS = 60, MAX_NAME = 200 };

typedef struct rule_name {
    uint32_t from, len; /* in the text; len 0: none */
    hn_expr rule;
} rule_name;

typedef struct reader {
    hn_builder *b;
    const char *text;
    size_t at, len;
    rule_name *names; /* a hash table */
    size_t n_names, cap_names;
    uint64_t key[2]; /* of its hash */
    hn_expr *parts; /* of the sequences and alternatives that are being read: a stack */
    size_t n_parts, cap_parts;
} reader;

/* ---- errors, white space ---- */

static hn_expr wrong(reader *r, const char *what) {
    size_t line = 1;
    for (size_t i = 0; i < r->at; i++) line += r->text[i] == '\n';
    return hn_builder_fail(r->b, HUNCH_USAGE, "the grammar, line %zu: %s", line, what);
}

static int peek(const reader *r) {
    return r->at < r->len ? (unsigned char)r->text[r->at] : -1;
}

static bool take(reader *r, const char *word) {
    const size_t n = strlen(word);
    if (r->len - r->at < n || memcmp(r->text + r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

/* Spaces and comments, line ends too if `lines`. */
static void skip(reader *r, bool lines) {
    for (int c; (c = peek(r)) >= 0;) {
        if (c == '#')
            while (peek(r) >= 0 && peek(r) != '\n') r->at++;
        else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n'))
            r->at++;
        else
            return;
    }
}

/* ---- names ---- */

static bool is_name(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool names_grow(reader *r) {
    const size_t wide = r->cap_names ? 2 * r->cap_names : 64;
    rule_name *table = hn_zalloc(wide, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < r->cap_names; i++) {
        const rule_name *x = &r->names[i];
        if (!x->len) continue;
        size_t at = hn_keyed_hash(r->key, r->text + x->from, x->len) & (wide - 1);
        while (table[at].len) at = (at + 1) & (wide - 1);
        table[at] = *x;
    }
    hn_free(r->names);
    r->names = table;
    r->cap_names = wide;
    return true;
}

/* The rule of the name at [from, from + len). */
static hn_expr rule_of(reader *r, size_t from, size_t len) {
    char name[MAX_NAME + 1];
    if (len > MAX_NAME) return wrong(r, "a rule's name has more than 200 letters");
    if (2 * (r->n_names + 1) > r->cap_names && !names_grow(r)) return hn_builder_no_memory(r->b);
    size_t at = hn_keyed_hash(r->key, r->text + from, len) & (r->cap_names - 1);
    for (; r->names[at].len; at = (at + 1) & (r->cap_names - 1))
        if (r->names[at].len == len && memcmp(r->text + r->names[at].from, r->text + from, len) == 0) return r->names[at].rule;
    memcpy(name, r->text + from, len);
    name[len] = '\0';
    r->names[at] = (rule_name){(uint32_t)from, (uint32_t)len, hn_expr_rule(r->b, name)};
    r->n_names++;
    return r->names[at].rule;
}

static size_t name_length(const reader *r) {
    size_t n = 0;
    while (r->at + n < r->len && is_name((unsigned char)r->text[r->at + n])) n++;
    return n;
}

/* ---- characters ---- */

static bool hex(reader *r, int digits, uint32_t *cp) {
    *cp = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        const int d = hn_hex_digit(peek(r));
        if (d < 0) return wrong(r, "expected hexadecimal digits: two behind \\x, four behind \\u, eight behind \\U"), false;
        *cp = *cp << 4 | (uint32_t)d;
    }
    char bytes[4];
    if (hn_utf8_encode(*cp, bytes)) return true;
    return wrong(r, "an escape that is no character"), false;
}

static bool character(reader *r, uint32_t *cp) {
    static const char letters[] = "nrt\\\"[]-^", codes[] = "\n\r\t\\\"[]-^";
    if (!take(r, "\\")) {
        const int n = hn_utf8_decode(r->text + r->at, r->len - r->at, cp);
        if (n == 0) return wrong(r, r->at < r->len ? "the text is not valid UTF-8" : "the text ends too early"), false;
        r->at += (size_t)n;
        return true;
    }
    const int c = peek(r);
    if (c >= 0) r->at++;
    if (c == 'x') return hex(r, 2, cp);
    if (c == 'u') return hex(r, 4, cp);
    if (c == 'U') return hex(r, 8, cp);
    const char *found = c > 0 ? strchr(letters, c) : NULL;
    if (!found) return wrong(r, "an unknown escape, expected one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\x \\u \\U"), false;
    *cp = (unsigned char)codes[found - letters];
    return true;
}

static hn_expr literal(reader *r) {
    char *bytes = NULL;
    size_t n = 0, cap = 0;
    uint32_t cp;
    bool ok = true;
    while (ok && !take(r, "\"")) {
        ok = peek(r) != '\n' && character(r, &cp);
        if (ok && !hn_grow((void **)&bytes, &cap, n + 4, 1)) ok = hn_builder_no_memory(r->b) >= 0;
        if (ok) n += (size_t)hn_utf8_encode(cp, bytes + n);
    }
    if (!ok) wrong(r, "a literal does not end on its line");
    const hn_expr e = ok ? hn_expr_bytes(r->b, bytes, n) : -1;
    hn_free(bytes);
    return e;
}

static hn_expr class_of(reader *r) {
    hn_ranges set = {0};
    const bool negated = take(r, "^");
    bool ok = true;
    while (ok && !take(r, "]")) {
        uint32_t first = 0, last;
        ok = character(r, &first);
        last = first;
        if (ok && peek(r) == '-' && r->at + 1 < r->len && r->text[r->at + 1] != ']') {
            r->at++;
            ok = character(r, &last);
        }
        if (ok && last < first) ok = wrong(r, "the ends of a range of characters are in the wrong order") >= 0;
        if (ok && !hn_ranges_add(&set, first, last)) ok = hn_builder_no_memory(r->b) >= 0;
    }
    hn_ranges_sort(&set);
    if (ok && negated && !hn_ranges_invert(&set)) ok = hn_builder_no_memory(r->b) >= 0;
    const hn_expr e = ok ? hn_expr_ranges(r->b, &set) : -1;
    hn_ranges_fini(&set);
    return e;
}

/* <name>: a control token of this name, brackets and all. */
static hn_expr token(reader *r) {
    char name[MAX_NAME + 1];
    const size_t from = r->at;
    if (r->at + 1 < r->len && r->text[r->at + 1] == '[') return wrong(r, "tokens by number, <[...]>, are not supported: expected <name>");
    while (peek(r) > ' ' && peek(r) != '>') r->at++;
    if (!take(r, ">")) return wrong(r, "a token's name has no >");
    if (r->at - from > MAX_NAME) return wrong(r, "a token's name has more than 200 letters");
    memcpy(name, r->text + from, r->at - from);
    name[r->at - from] = '\0';
    return hn_expr_special(r->b, name);
}

/* ---- expressions ---- */

static hn_expr alternatives(reader *r, int groups);

static bool number(reader *r, int *out) {
    int64_t v = 0;
    const size_t from = r->at;
    for (int c; (c = peek(r)) >= '0' && c <= '9'; r->at++)
        if (v < (int64_t)1 << 40) v = 10 * v + (c - '0');
    if (r->at == from) return wrong(r, "expected a number of repeats"), false;
    if (v > HN_GRAMMAR_MAX_REPEAT) return wrong(r, "more repeats than 2^30"), false;
    *out = (int)v;
    return true;
}

/* {m}, {m,} or {m,n}, behind the bracket. */
static hn_expr counted(reader *r, hn_expr e) {
    int min, max;
    skip(r, false);
    if (!number(r, &min)) return -1;
    max = min;
    skip(r, false);
    if (take(r, ",")) {
        skip(r, false);
        max = -1;
        if (peek(r) != '}' && !number(r, &max)) return -1;
        skip(r, false);
    }
    if (!take(r, "}")) return wrong(r, "expected } behind a number of repeats");
    if (max >= 0 && max < min) return wrong(r, "the bounds of a repeat are in the wrong order");
    return hn_expr_repeat(r->b, e, min, max);
}

static hn_expr repeats(reader *r, hn_expr e) {
    for (;;) {
        if (r->b->failed) return -1;
        if (take(r, "*"))
            e = hn_expr_repeat(r->b, e, 0, -1);
        else if (take(r, "+"))
            e = hn_expr_repeat(r->b, e, 1, -1);
        else if (take(r, "?"))
            e = hn_expr_repeat(r->b, e, 0, 1);
        else if (take(r, "{"))
            e = counted(r, e);
        else
            return e;
    }
}

static hn_expr item(reader *r, int groups) {
    const size_t name = name_length(r);
    if (name) {
        r->at += name;
        return rule_of(r, r->at - name, name);
    }
    if (take(r, "\"")) return literal(r);
    if (take(r, "[")) return class_of(r);
    if (take(r, ".")) return hn_expr_class(r->b, NULL, 0, true);
    if (peek(r) == '<') return token(r);
    if (peek(r) == '!') return wrong(r, "negated tokens, !<...>, are not supported");
    if (!take(r, "(")) return wrong(r, "expected a literal, a class, a name or a group");
    if (groups == MAX_GROUPS) return wrong(r, "groups are nested deeper than 60");
    const hn_expr e = alternatives(r, groups + 1);
    if (e >= 0 && !take(r, ")")) return wrong(r, "a group has no )");
    return e;
}

static bool put_part(reader *r, hn_expr e) {
    if (e < 0) return false;
    if (!hn_grow((void **)&r->parts, &r->cap_parts, r->n_parts + 1, sizeof *r->parts)) return hn_builder_no_memory(r->b) >= 0;
    r->parts[r->n_parts++] = e;
    return true;
}

/* Whether the next line begins with |, and so goes on with the rule: *at is there. */
static bool goes_on(const reader *r) {
    reader ahead = *r;
    skip(&ahead, true);
    return peek(&ahead) == '|';
}

static bool at_end(reader *r, int groups) {
    skip(r, groups > 0 || goes_on(r));
    const int c = peek(r);
    return c < 0 || c == '|' || c == ')' || c == '\n';
}

static hn_expr sequence(reader *r, int groups) {
    const size_t first = r->n_parts;
    while (!r->b->failed && !at_end(r, groups)) {
        hn_expr e = item(r, groups);
        if (e >= 0) e = repeats(r, e);
        if (!put_part(r, e)) return -1;
    }
    const hn_expr e = hn_expr_seq(r->b, r->n_parts > first ? r->parts + first : NULL, r->n_parts - first);
    r->n_parts = first;
    return e;
}

static hn_expr alternatives(reader *r, int groups) {
    const size_t first = r->n_parts;
    do {
        skip(r, true);
        if (!put_part(r, sequence(r, groups))) return -1;
    } while (take(r, "|"));
    const hn_expr e = hn_expr_alt(r->b, r->n_parts > first ? r->parts + first : NULL, r->n_parts - first);
    r->n_parts = first;
    return e;
}

static void rule(reader *r) {
    const size_t from = r->at, len = name_length(r);
    if (!len) {
        wrong(r, "expected a rule: name ::= ...");
        return;
    }
    r->at += len;
    skip(r, false);
    if (!take(r, "::=")) {
        wrong(r, "expected ::= behind a rule's name");
        return;
    }
    const hn_expr e = rule_of(r, from, len), body = alternatives(r, 0);
    if (body < 0) return;
    if (peek(r) == ')') wrong(r, "a ) without a (");
    hn_expr_rule_set(r->b, e, body);
}

hn_expr hn_expr_gbnf(hn_builder *b, const char *text, size_t len) {
    reader r = {.b = b, .text = text, .len = len};
    if (len > HN_GRAMMAR_MAX_SOURCE) {
        hn_builder_fail(b, HUNCH_USAGE, "a grammar of %zu bytes, expected at most %d", len, HN_GRAMMAR_MAX_SOURCE);
        return -1;
    }
    hn_hash_key(r.key);
    for (skip(&r, true); !b->failed && r.at < len; skip(&r, true)) rule(&r);
    hn_expr root = -1;
    for (size_t i = 0; i < r.cap_names; i++)
        if (r.names[i].len == 4 && memcmp(text + r.names[i].from, "root", 4) == 0) root = r.names[i].rule;
    if (!b->failed && root < 0) hn_builder_fail(b, HUNCH_USAGE, "the grammar has no rule root");
    hn_free(r.names);
    hn_free(r.parts);
    return root;
}

hunch_status hn_grammar_gbnf(hn_grammar **out, const char *text, size_t len, hunch_error *err) {
    *out = NULL;
    hn_builder *b = hn_builder_open(err);
    return b ? hn_grammar_finish(out, &b, hn_expr_gbnf(b, text, len), err) : HUNCH_NO_MEMORY;
}
