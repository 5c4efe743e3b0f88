/* SPDX-License-Identifier: Apache-2.0 */
/* regex_parse.c - reads a regular expression of ECMAScript. What needs memory of the text, look-around, references to groups and word
 * boundaries, is refused by name. Lazy repeats match the same texts as greedy ones. */
#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "grammar/regex.h"

enum { MAX_GROUPS = 60 };

typedef struct reader {
    hn_regex *r;
    const char *text;
    size_t at, len;
    int32_t *parts; /* of what is being read: a stack */
    size_t n_parts, cap_parts;
} reader;

static int32_t wrong(reader *x, const char *what) {
    return hn_builder_fail(x->r->b, HUNCH_USAGE, "%s%sthe regular expression, at byte %zu: %s", x->r->where,
                           x->r->where[0] ? ": " : "", x->at, what);
}

static int32_t no_memory(hn_regex *r) {
    return hn_builder_no_memory(r->b);
}

/* ---- the tree ---- */

int32_t hn_regex_put(hn_regex *r, hn_regex_node node) {
    if (r->b->failed) return -1;
    if (r->n_nodes >= HN_GRAMMAR_MAX_EXPRS)
        return hn_builder_fail(r->b, HUNCH_USAGE, "%s%sa regular expression that is too long", r->where, r->where[0] ? ": " : "");
    if (!hn_grow((void **)&r->nodes, &r->cap_nodes, r->n_nodes + 1, sizeof *r->nodes)) return no_memory(r);
    r->nodes[r->n_nodes] = node;
    return (int32_t)r->n_nodes++;
}

int32_t hn_regex_list(hn_regex *r, hn_regex_kind kind, const int32_t *part, size_t n) {
    hn_regex_node node = {.kind = (uint8_t)kind, .a = (int32_t)r->n_parts, .b = (int32_t)n};
    if (r->b->failed) return -1;
    if (n == 1) return part[0];
    if (n == 0 && kind == HN_RE_SEQ) node.kind = HN_RE_EMPTY;
    for (size_t i = 0; i < n; i++) node.anchors |= r->nodes[part[i]].anchors;
    if (!hn_grow((void **)&r->parts, &r->cap_parts, r->n_parts + n, sizeof *r->parts)) return no_memory(r);
    if (n) memcpy(r->parts + r->n_parts, part, n * sizeof *part);
    r->n_parts += n;
    return hn_regex_put(r, node);
}

int32_t hn_regex_set(hn_regex *r, hn_ranges *set) {
    if (r->b->failed || !hn_grow((void **)&r->sets, &r->cap_sets, r->n_sets + 1, sizeof *r->sets)) {
        hn_ranges_fini(set);
        return no_memory(r);
    }
    r->sets[r->n_sets] = *set;
    *set = (hn_ranges){0};
    return hn_regex_put(r, (hn_regex_node){.kind = HN_RE_CLASS, .a = (int32_t)r->n_sets++});
}

void hn_regex_fini(hn_regex *r) {
    for (size_t i = 0; i < r->n_sets; i++) hn_ranges_fini(&r->sets[i]);
    hn_free(r->nodes);
    hn_free(r->parts);
    hn_free(r->sets);
}

/* ---- characters ---- */

static int peek(const reader *x) {
    return x->at < x->len ? (unsigned char)x->text[x->at] : -1;
}

static bool take(reader *x, const char *word) {
    const size_t n = strlen(word);
    if (x->len - x->at < n || memcmp(x->text + x->at, word, n) != 0) return false;
    x->at += n;
    return true;
}

static bool one(reader *x, uint32_t *cp) {
    const int n = hn_utf8_decode(x->text + x->at, x->len - x->at, cp);
    if (n == 0) return wrong(x, x->at < x->len ? "it is not valid UTF-8" : "it ends too early"), false;
    x->at += (size_t)n;
    return true;
}

static bool hex(reader *x, int digits, uint32_t *cp) {
    *cp = 0;
    for (int i = 0; i < digits; i++, x->at++) {
        const int d = hn_hex_digit(peek(x));
        if (d < 0) return wrong(x, "expected hexadecimal digits: two behind \\x, four behind \\u"), false;
        *cp = *cp << 4 | (uint32_t)d;
    }
    return true;
}

/* Behind \u: four digits, two halves of a pair, or {digits}. */
static bool unicode(reader *x, uint32_t *cp) {
    uint32_t low;
    if (take(x, "{")) {
        *cp = 0;
        for (int d; (d = hn_hex_digit(peek(x))) >= 0; x->at++) {
            *cp = *cp << 4 | (uint32_t)d;
            if (*cp > HN_LAST_CODE_POINT) return wrong(x, "a character above \\u{10FFFF}"), false;
        }
        if (!take(x, "}")) return wrong(x, "expected } behind \\u{"), false;
    } else if (!hex(x, 4, cp)) {
        return false;
    }
    if (*cp < 0xD800 || *cp > 0xDFFF) return true;
    if (*cp > 0xDBFF || !take(x, "\\u") || !hex(x, 4, &low) || low < 0xDC00 || low > 0xDFFF)
        return wrong(x, "half of a surrogate pair"), false;
    *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

/* An escape of one character, behind its \. False with *other: the letter begins something else. */
static bool escaped(reader *x, uint32_t *cp, bool *other) {
    static const char letters[] = "nrtfv0", codes[] = "\n\r\t\f\v";
    const int c = peek(x);
    const char *found = c > 0 ? strchr(letters, c) : NULL;
    *other = false;
    if (found) {
        x->at++;
        *cp = (unsigned char)codes[found - letters];
        if (c == '0' && peek(x) >= '0' && peek(x) <= '9') return wrong(x, "an octal escape, which is not supported"), false;
        return true;
    }
    if (take(x, "x")) return hex(x, 2, cp);
    if (take(x, "u")) return unicode(x, cp);
    if (c == 'c' && x->at + 1 < x->len && ((x->text[x->at + 1] | 32) >= 'a' && (x->text[x->at + 1] | 32) <= 'z')) {
        *cp = (unsigned char)x->text[x->at + 1] & 31;
        x->at += 2;
        return true;
    }
    *other = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    return !*other && one(x, cp);
}

/* Behind a \: a set by its letter. *known: it was one. */
static bool shorthand(reader *x, hn_ranges *to, bool wide, bool *known) {
    const char c = x->text[x->at++];
    size_t from = x->at, len = 0;
    if (c == 'p' || c == 'P') {
        if (!take(x, "{")) return wrong(x, "expected { behind \\p"), false;
        from = x->at;
        while (peek(x) >= 0 && peek(x) != '}') x->at++;
        len = x->at - from;
        if (!take(x, "}")) return wrong(x, "expected } behind \\p{"), false;
    }
    if (!hn_regex_shorthand(x->r->b, to, c, x->text + from, len, wide, known)) return no_memory(x->r), false;
    return true;
}

static int32_t refuse_escape(reader *x) {
    static const struct { char letter; const char *what; } known[] = {
        {'b', "\\b, the boundary of a word, is not supported"}, {'B', "\\B, no boundary of a word, is not supported"},
        {'k', "\\k, a reference to a group, is not supported"}, {'p', "this property \\p{..} is not supported"},
        {'P', "this property \\P{..} is not supported"}};
    const int c = peek(x);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (c == known[i].letter) return wrong(x, known[i].what);
    if (c >= '1' && c <= '9') return wrong(x, "a reference to a group, \\1 to \\9, is not supported");
    return wrong(x, "an unknown escape");
}

/* ---- classes ---- */

/* A member of a class that is one character, or a set that is added: then *set. */
static bool member(reader *x, hn_ranges *to, bool negated, uint32_t *cp, bool *set) {
    bool other, known = false;
    *set = false;
    if (!take(x, "\\")) return one(x, cp);
    if (take(x, "b")) return *cp = '\b', true;
    if (take(x, "-")) return *cp = '-', true;
    if (escaped(x, cp, &other)) return true;
    if (!other || x->r->b->failed) return false;
    const size_t letter = x->at;
    if (!shorthand(x, to, negated != x->r->without, &known)) return false;
    *set = known;
    x->at = known ? x->at : letter;
    return known || refuse_escape(x) >= 0;
}

static bool members(reader *x, hn_ranges *to, bool negated) {
    while (!take(x, "]")) {
        uint32_t first = 0, last = 0;
        bool set, last_set = false;
        if (!member(x, to, negated, &first, &set)) return false;
        const bool range = peek(x) == '-' && x->at + 1 < x->len && x->text[x->at + 1] != ']';
        if (!range || set) {
            if (!set && !hn_ranges_add(to, first, first)) return no_memory(x->r), false;
            continue;
        }
        x->at++;
        if (!member(x, to, negated, &last, &last_set)) return false;
        if (!last_set && last < first) return wrong(x, "the ends of a range of characters are in the wrong order"), false;
        const bool ok = last_set ? hn_ranges_add(to, first, first) && hn_ranges_add(to, '-', '-') : hn_ranges_add(to, first, last);
        if (!ok) return no_memory(x->r), false;
    }
    return true;
}

static int32_t class_put(reader *x, hn_ranges *set, bool ok, bool negated) {
    hn_ranges_sort(set);
    if (ok && negated && !hn_ranges_invert(set)) ok = no_memory(x->r) >= 0;
    if (ok) return hn_regex_set(x->r, set);
    hn_ranges_fini(set);
    return no_memory(x->r); /* unless there is a failure already */
}

static int32_t class_of(reader *x) {
    hn_ranges set = {0};
    const bool negated = take(x, "^");
    return class_put(x, &set, members(x, &set, negated), negated);
}

static int32_t single(reader *x, uint32_t cp) {
    hn_ranges set = {0};
    return class_put(x, &set, hn_ranges_add(&set, cp, cp), false);
}

/* . : all but the ends of lines, of which Python knows one */
static int32_t dot(reader *x) {
    hn_ranges set = {0};
    bool ok = hn_ranges_add(&set, '\n', '\n');
    if (!x->r->without) ok = ok && hn_ranges_add(&set, '\r', '\r') && hn_ranges_add(&set, 0x2028, 0x2029);
    return class_put(x, &set, ok, true);
}

static int32_t escape(reader *x) {
    uint32_t cp;
    bool other, known = false;
    hn_ranges set = {0};
    if (peek(x) < 0) return wrong(x, "it ends too early");
    if (escaped(x, &cp, &other)) return single(x, cp);
    if (!other || x->r->b->failed) return -1;
    const size_t letter = x->at;
    const bool ok = shorthand(x, &set, x->r->without, &known);
    if (ok && !known) {
        x->at = letter;
        refuse_escape(x);
    }
    return class_put(x, &set, ok && known, false);
}

/* ---- expressions ---- */

static int32_t alternatives(reader *x, int groups);

/* {m}, {m,} or {m,n}; false: it is none, and the { is a character. */
static bool counts(reader *x, int32_t *min, int32_t *max) {
    size_t i = x->at + 1;
    int64_t v[2] = {0, -1};
    for (int k = 0; k < 2; k++, i++) {
        const size_t from = i;
        int64_t n = 0;
        for (; i < x->len && x->text[i] >= '0' && x->text[i] <= '9'; i++)
            if (n < (int64_t)1 << 40) n = 10 * n + (x->text[i] - '0');
        if (i > from)
            v[k] = n;
        else if (k == 0)
            return false;
        if (k == 0 && i < x->len && x->text[i] == '}') v[1] = v[0];
        if (i < x->len && x->text[i] == '}') break;
        if (k == 1 || i >= x->len || x->text[i] != ',') return false;
    }
    x->at = i + 1;
    *min = v[0] > HN_GRAMMAR_MAX_REPEAT ? -2 : (int32_t)v[0];
    *max = v[1] > HN_GRAMMAR_MAX_REPEAT ? -2 : (int32_t)v[1];
    return true;
}

static int32_t repeats(reader *x, int32_t e) {
    int32_t min = 0, max = -1;
    if (take(x, "*"))
        min = 0;
    else if (take(x, "+"))
        min = 1;
    else if (take(x, "?"))
        max = 1;
    else if (peek(x) != '{' || !counts(x, &min, &max))
        return e;
    take(x, "?");
    if (min == -2 || max == -2) return wrong(x, "more repeats than 2^30");
    if (max >= 0 && max < min) return wrong(x, "the bounds of a repeat are in the wrong order");
    if (peek(x) == '*' || peek(x) == '+' || peek(x) == '?') return wrong(x, "nothing to repeat");
    const bool anchors = x->r->nodes[e].anchors;
    return hn_regex_put(x->r, (hn_regex_node){.kind = HN_RE_REPEAT, .anchors = anchors, .a = e, .min = min, .max = max});
}

static int32_t group(reader *x, int groups) {
    if (groups == MAX_GROUPS) return wrong(x, "groups are nested deeper than 60");
    if (take(x, "?=") || take(x, "?!")) return wrong(x, "look-ahead, (?= and (?!, is not supported");
    if (take(x, "?<=") || take(x, "?<!")) return wrong(x, "look-behind, (?<= and (?<!, is not supported");
    if (take(x, "?<") || take(x, "?P<")) {
        while (peek(x) > ' ' && peek(x) != '>') x->at++;
        if (!take(x, ">")) return wrong(x, "a group's name has no >");
    } else if (!take(x, "?:") && peek(x) == '?') {
        return wrong(x, "this kind of group, (?, is not supported");
    }
    const int32_t e = alternatives(x, groups + 1);
    if (e >= 0 && !take(x, ")")) return wrong(x, "a group has no )");
    return e;
}

static int32_t item(reader *x, int groups) {
    uint32_t cp;
    if (take(x, "(")) return group(x, groups);
    if (take(x, "[")) return class_of(x);
    if (take(x, ".")) return dot(x);
    if (take(x, "\\")) return escape(x);
    if (peek(x) == '*' || peek(x) == '+' || peek(x) == '?') return wrong(x, "nothing to repeat");
    return one(x, &cp) ? single(x, cp) : -1;
}

static bool put_part(reader *x, int32_t e) {
    if (e < 0) return false;
    if (!hn_grow((void **)&x->parts, &x->cap_parts, x->n_parts + 1, sizeof *x->parts)) return no_memory(x->r) >= 0;
    x->parts[x->n_parts++] = e;
    return true;
}

static int32_t sequence(reader *x, int groups) {
    const size_t first = x->n_parts;
    while (!x->r->b->failed && peek(x) >= 0 && peek(x) != '|' && peek(x) != ')') {
        int32_t e;
        if (take(x, "^"))
            e = hn_regex_put(x->r, (hn_regex_node){.kind = HN_RE_START, .anchors = true});
        else if (take(x, "$"))
            e = hn_regex_put(x->r, (hn_regex_node){.kind = HN_RE_END, .anchors = true});
        else if ((e = item(x, groups)) >= 0)
            e = repeats(x, e);
        if (!put_part(x, e)) return -1;
    }
    const int32_t e = hn_regex_list(x->r, HN_RE_SEQ, x->n_parts > first ? x->parts + first : NULL, x->n_parts - first);
    x->n_parts = first;
    return e;
}

static int32_t alternatives(reader *x, int groups) {
    const size_t first = x->n_parts;
    do {
        if (!put_part(x, sequence(x, groups))) return -1;
    } while (take(x, "|"));
    const int32_t e = hn_regex_list(x->r, HN_RE_ALT, x->n_parts > first ? x->parts + first : NULL, x->n_parts - first);
    x->n_parts = first;
    return e;
}

static bool parse(hn_regex *r, const char *text, size_t len, bool search) {
    reader x = {.r = r, .text = text, .len = len};
    if (r->b->failed) return false;
    if (len > HN_GRAMMAR_MAX_SOURCE) return wrong(&x, "it is longer than 64 MiB") >= 0;
    r->root = alternatives(&x, 0);
    if (r->root >= 0 && x.at < len) r->root = wrong(&x, "a ) without a (");
    hn_free(x.parts);
    if (r->root >= 0) r->root = hn_regex_anchor(r, search);
    return r->root >= 0;
}

bool hn_regex_open(hn_regex *r, hn_builder *b, const char *where, const char *text, size_t len, bool search) {
    *r = (hn_regex){.b = b, .where = where, .any = -1, .root = -1};
    return parse(r, text, len, search);
}

bool hn_regex_open_without(hn_regex *r, hn_builder *b, const char *text, size_t len) {
    *r = (hn_regex){.b = b, .where = "", .any = -1, .root = -1, .without = true};
    return parse(r, text, len, true);
}
