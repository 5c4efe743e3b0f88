/* SPDX-License-Identifier: Apache-2.0 */
/* template_characters.c - characters as Python has them: their classes (isdigit, islower, ...), their cases, their names. By utf8proc's
 * categories, simple cases and foldings, and the tables of what these do not say (template_tables.h). */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/normal/characters.h"
#include "text/jinja/template_private.h"
#include "text/jinja/template_tables.h"

/* ---- classes ---- */

static bool in(tranges t, uint32_t cp) {
    size_t low = 0, high = t.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (t.at[middle].last < cp)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t.n && t.at[low].first <= cp;
}

static utf8proc_category_t category(uint32_t cp) {
    return utf8proc_category((utf8proc_int32_t)cp);
}

static bool is_upper(uint32_t cp) {
    return cp < 0x80 ? cp - 'A' < 26 : category(cp) == UTF8PROC_CATEGORY_LU || in(tother_upper, cp);
}

static bool is_lower(uint32_t cp) {
    return cp < 0x80 ? cp - 'a' < 26 : category(cp) == UTF8PROC_CATEGORY_LL || in(tother_lower, cp);
}

static bool is_title(uint32_t cp) {
    return cp >= 0x80 && category(cp) == UTF8PROC_CATEGORY_LT;
}

static bool is_cased(uint32_t cp) {
    return is_upper(cp) || is_lower(cp) || is_title(cp);
}

/* Characters inside and beside words that do not count when the letters around one are looked at: Unicode's Case_Ignorable. */
static bool is_beside_case(uint32_t cp) {
    static const uint16_t inside[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        if (cp == inside[i]) return true;
    }
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
    }
}

static bool begins_name(uint32_t cp) {
    bool letter = hn_char_is_letter(cp) || category(cp) == UTF8PROC_CATEGORY_NL;
    return letter ? !in(tname_start_not, cp) : in(tname_start_too, cp);
}

static bool is_in_name(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return !in(tname_part_not, cp);
    default: return hn_char_is_letter(cp) ? !in(tname_part_not, cp) : in(tname_part_too, cp);
    }
}

bool tchar_is(uint32_t cp, tchar_class class) {
    switch (class) {
    case TCHAR_LETTER: return hn_char_is_letter(cp);
    case TCHAR_DECIMAL: return hn_char_is_digit(cp);
    case TCHAR_DIGIT: return hn_char_is_digit(cp) || in(tother_digits, cp);
    case TCHAR_NUMBER: return hn_char_is_number(cp) || in(tother_numbers, cp);
    case TCHAR_LETTER_OR_NUMBER: return hn_char_is_letter(cp) || hn_char_is_number(cp);
    case TCHAR_SPACE: return ts_is_space(cp);
    case TCHAR_ASCII: return cp < 0x80;
    case TCHAR_PRINTABLE: return hn_char_is_printable(cp);
    case TCHAR_NAME_START: return begins_name(cp);
    default: return is_in_name(cp);
    }
}

bool ts_is_case(tstr s, char how) {
    bool cased = false, inside = false; /* inside a word, for 't' */
    uint32_t cp;
    for (size_t i = 0; i < s.n;) {
        i += (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        bool lower = is_lower(cp), upper = is_upper(cp), title = is_title(cp);
        if (how == 't' ? (inside ? upper || title : lower) : title || (how == 'u' ? lower : upper)) return false;
        inside = lower || upper || title;
        cased |= inside;
    }
    return cased;
}

/* ---- cases ---- */

static int compare_long(const void *key, const void *row) {
    const uint32_t a = *(const uint32_t *)key, b = ((const tlong_case *)row)->of;
    return a < b ? -1 : a > b;
}

/* The character in another case: 'u'pper, 'l'ower, 't'itle, 'f'olded. Returns how many characters that is. */
static int change(uint32_t cp, char how, int32_t out[4]) {
    if (how == 'f') {
        int boundary = UTF8PROC_BOUNDCLASS_START;
        return (int)utf8proc_decompose_char((int32_t)cp, out, 4, UTF8PROC_CASEFOLD, &boundary);
    }
    const tlong_case *row = NULL;
    if (how != 'l') row = bsearch(&cp, tlong_cases, tlong_cases_n, sizeof *row, compare_long);
    int n = 0;
    for (const uint32_t *to = !row ? NULL : how == 'u' ? row->upper : row->title; to && n < 3 && to[n]; n++)
        out[n] = (int32_t)to[n];
    if (n) return n;
    if (cp == 0x130 && how == 'l') return out[0] = 'i', out[1] = 0x307, 2;
    out[0] = (int32_t)cp;
    out[0] = how == 'u' ? utf8proc_toupper(out[0]) : how == 't' ? utf8proc_totitle(out[0]) : utf8proc_tolower(out[0]);
    return 1;
}

static void put_case(tbuf *b, uint32_t cp, char how) {
    int32_t to[4];
    char utf8[4];
    if (cp < 0x80) {
        utf8[0] = (char)(hn_char_is_letter(cp) ? how == 'l' || how == 'f' ? cp | 0x20 : cp & ~0x20u : cp);
        tbuf_put(b, utf8, 1);
        return;
    }
    const int n = change(cp, how, to);
    for (int i = 0; i < n; i++) tbuf_put(b, utf8, (size_t)hn_utf8_encode((uint32_t)to[i], utf8));
}

/* The next character to the left of `at`, or to the right, that counts for cases: is it cased? */
static bool cased_beside(trun *r, tstr s, size_t at, bool left) {
    uint32_t cp = 0;
    while ((left ? at > 0 : at < s.n) && trun_step(r, 1)) {
        size_t from = at, step = 1;
        if (left) {
            while (((unsigned char)s.s[at - step] & 0xC0) == 0x80) step++;
            from = at -= step;
        }
        step = (size_t)hn_utf8_decode(s.s + from, s.n - from, &cp);
        if (!left) at += step;
        if (!is_beside_case(cp)) return is_cased(cp);
    }
    return false;
}

/* In Jinja's filter title these characters begin a word, in Python's method all but cased ones. */
static bool begins_word(uint32_t cp) {
    return ts_is_space(cp) || cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<';
}

tvalue ts_change_case(trun *r, tstr s, char how) {
    tbuf b = {.arena = &r->arena};
    bool begins = true; /* a word; for 'c' the text */
    size_t word = 0;    /* for 'T' the start of what is lowered as a text of its own */
    uint32_t cp;
    for (size_t i = 0, step; i < s.n && !b.failed && !r->status; i += step) {
        step = (size_t)hn_utf8_decode(s.s + i, s.n - i, &cp);
        char to = how == 'u' || how == 'f' ? how : how == 'l' || !begins ? 'l' : how == 'T' ? 'u' : 't';
        if (how == 's') to = is_upper(cp) ? 'l' : is_lower(cp) ? 'u' : 0;
        if (how == 'T' && begins) word = i + step;
        begins = how == 't' ? !is_cased(cp) : how == 'T' && begins_word(cp);
        /* A capital sigma at the end of a word becomes the final one. */
        if (cp == 0x3A3 && to == 'l' && cased_beside(r, (tstr){s.s + word, s.n - word}, i - word, true) &&
            !cased_beside(r, s, i + step, false))
            tbuf_puts(&b, "ς");
        else if (to)
            put_case(&b, cp, to);
        else
            tbuf_put(&b, s.s + i, step);
    }
    return tv_buffer(r, &b);
}

/* ---- names ---- */

/* The code of a word of a name in tnames; its length, 0: no name has the word. */
static size_t word_code(const char *word, size_t n, char out[2]) {
    const int all = (int)strlen(tname_codes);
    int at = 0;
    for (const char *w = tname_words, *end; *w; w = end + 1, at++) {
        end = strchr(w, ' ');
        if ((size_t)(end - w) == n && memcmp(w, word, n) == 0) break;
        if (!end[1]) return 0;
    }
    if (at < tname_short_codes) return out[0] = tname_codes[at], 1;
    out[0] = tname_codes[tname_short_codes + (at - tname_short_codes) / all];
    out[1] = tname_codes[(at - tname_short_codes) % all];
    return 2;
}

bool tchar_named(tstr name, uint32_t *cp) {
    enum { LONGEST = 100 };
    char word[LONGEST], code[2 * LONGEST + 3] = " ";
    size_t n = 0, coded = 1, used;
    if (name.n == 0 || name.n > LONGEST) return false;
    for (size_t i = 0; i <= name.n; i++) {
        char c = i < name.n ? name.s[i] : ' ';
        if (c != ' ') {
            word[n++] = (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
            continue;
        }
        if (n == 0 || !(used = word_code(word, n, code + coded))) return false;
        coded += used;
        n = 0;
    }
    code[coded] = ' ';
    const char *found = strstr(tnames, code);
    if (!found) return false;
    uint32_t place = 0;
    for (const char *s = tnames; s < found; s++) place += *s == ' ';
    size_t run = 0;
    for (; run < tname_runs_n && place >= tname_runs[run].n; run++) place -= tname_runs[run].n;
    *cp = tname_runs[run].first + place;
    return true;
}
