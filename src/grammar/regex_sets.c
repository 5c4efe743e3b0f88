/* SPDX-License-Identifier: Apache-2.0 */
/* regex_sets.c - the sets of characters that have a letter. ECMAScript's \d and \w are of ASCII, Python's (which checks schemas most
 * often) of Unicode, and of white space each has characters that the other has not. A set has what both agree on, and so has its
 * opposite: what is written by one is matched by the other. */
#include <string.h>

#include "base/mem.h"
#include "grammar/regex.h"
#include "text/normal/characters.h"

static bool is_digit(uint32_t c) {
    return hn_char_is_digit(c);
}

static bool is_word(uint32_t c) {
    return c == '_' || hn_char_is_letter(c) || hn_char_is_number(c) || hn_char_is_mark(c);
}

static bool is_space(uint32_t c) {
    return hn_char_is_space(c) || c == 0xFEFF || (c >= 0x1C && c <= 0x1F);
}

/* Properties that are found by a look at every code point, once a builder. */
typedef enum property { DIGIT, WORD, SPACE, LETTER, NUMBER, MARK } property;
static bool (*const has_property[HN_PROPERTIES])(uint32_t) = {is_digit,         is_word,          is_space,
                                                              hn_char_is_letter, hn_char_is_number, hn_char_is_mark};

static bool find_all(hn_ranges *to, bool (*is)(uint32_t)) {
    for (uint32_t c = 0, from; c <= HN_LAST_CODE_POINT; c++) {
        if (!is(c)) continue;
        for (from = c; c < HN_LAST_CODE_POINT && is(c + 1);) c++;
        if (!hn_ranges_add(to, from, c)) return false;
    }
    return true;
}

static bool add_ranges(hn_ranges *to, const hn_ranges *set) {
    for (size_t i = 0; i < set->n; i++)
        if (!hn_ranges_add(to, set->at[i].first, set->at[i].last)) return false;
    return true;
}

/* Adds all characters of a property. */
static bool add_all(hn_builder *b, hn_ranges *to, property which) {
    hn_ranges **kept = &b->property[which];
    if (!*kept) {
        hn_ranges *found = hn_zalloc(1, sizeof *found);
        if (!found) return false;
        if (!find_all(found, has_property[which])) {
            hn_ranges_fini(found);
            hn_free(found);
            return false;
        }
        *kept = found;
    }
    return add_ranges(to, *kept);
}

void hn_regex_properties_free(hn_builder *b) {
    for (int i = 0; i < HN_PROPERTIES; i++) {
        if (b->property[i]) hn_ranges_fini(b->property[i]);
        hn_free(b->property[i]);
    }
}

static bool add_list(hn_ranges *to, const uint32_t *pairs, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!hn_ranges_add(to, pairs[2 * i], pairs[2 * i + 1])) return false;
    return true;
}

/* \d, \w or \s. */
static bool add_set(hn_builder *b, hn_ranges *to, char letter, bool wide) {
    static const uint32_t digits[] = {'0', '9'}, word[] = {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'},
                          spaces[] = {9,      13,     ' ',    ' ',    0xA0,   0xA0,   0x1680, 0x1680, 0x2000,
                                      0x200A, 0x2028, 0x2029, 0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000};
    if (wide) return add_all(b, to, letter == 'd' ? DIGIT : letter == 'w' ? WORD : SPACE);
    return letter == 'd'   ? add_list(to, digits, 1)
           : letter == 'w' ? add_list(to, word, 4)
                           : add_list(to, spaces, sizeof spaces / sizeof *spaces / 2);
}

static bool named(const char *name, size_t len, const char *a, const char *b) {
    return (len == strlen(a) && memcmp(name, a, len) == 0) || (len == strlen(b) && memcmp(name, b, len) == 0);
}

static bool add_property(hn_builder *b, hn_ranges *to, const char *name, size_t len, bool *known) {
    *known = true;
    if (named(name, len, "L", "Letter")) return add_all(b, to, LETTER);
    if (named(name, len, "N", "Number")) return add_all(b, to, NUMBER);
    if (named(name, len, "Nd", "Decimal_Number")) return add_all(b, to, DIGIT);
    if (named(name, len, "M", "Mark")) return add_all(b, to, MARK);
    *known = false;
    return true;
}

bool hn_regex_shorthand(hn_builder *b, hn_ranges *to, char cls, const char *name, size_t len, bool wide, bool *known) {
    const char letter = (char)(cls | 32);
    const bool opposite = cls != letter;
    hn_ranges set = {0};
    *known = letter == 'd' || letter == 'w' || letter == 's';
    bool ok = *known ? add_set(b, &set, letter, wide != opposite) : letter != 'p' || add_property(b, &set, name, len, known);
    if (ok && *known && opposite) ok = hn_ranges_invert(&set);
    if (ok && *known) ok = add_ranges(to, &set);
    hn_ranges_fini(&set);
    return ok;
}
