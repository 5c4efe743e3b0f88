/* SPDX-License-Identifier: Apache-2.0 */
/* document_checks.h - for documents_test.c: checks of one text. link_leads: a link has a target; columns_check: widths;
 * names_check: names of files; identifiers_check, after identifiers_read: names of functions, types, keys and tests; places_check:
 * what a document says is in a file, or in a struct; keys_not_documented, keys_not_read: the rows of head_keys.c against
 * docs/formats.md. All but the first print errors and return their number. */
#ifndef HN_TESTS_DOCUMENT_CHECKS_H
#define HN_TESTS_DOCUMENT_CHECKS_H

#include "text.h"

#include <ctype.h>

enum { NAME = 300 };

static int line_of(const char *text, const char *at) {
    int n = 1;
    for (; text < at; text++) n += *text == '\n';
    return n;
}

/* ---- links, columns --------------------------------------------------------------------------------------------- */

/* Is `section` of n bytes ("how-it-works") the address of a heading of the document: its letters and digits in lower case, with '-'
 * for spaces. */
static bool has_section(const char *text, const char *section, size_t n) {
    bool code = false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        code ^= text_starts(line, "```");
        if (code || *line != '#') continue;
        const char *at = line + strspn(line, "# ");
        size_t k = 0;
        for (; *at && *at != '\n'; at++) {
            const char c = *at == ' ' ? '-' : (char)tolower((unsigned char)*at);
            if (!isalnum((unsigned char)c) && c != '-' && c != '_') continue;
            if (k >= n || c != section[k]) break;
            k++;
        }
        if (k == n && (!*at || *at == '\n')) return true;
    }
    return false;
}

/* "](target)" in a file: a path from its folder, perhaps with #section of a document; not an address. */
static bool link_leads(const char *file, const char *target, size_t n) {
    if (memchr(target, ':', n)) return true;
    const char *hash = memchr(target, '#', n);
    const size_t path_n = hash ? (size_t)(hash - target) : n;
    char path[2 * NAME];
    snprintf(path, sizeof path, "%.*s%.*s", (int)(text_base_name(file) - file), file, (int)path_n, target);
    if (path_n > 0 && !text_is_there(path)) return false;
    if (!hash) return true;
    char *text = text_read(path_n > 0 ? path : file);
    const bool found = text && has_section(text, hash + 1, n - path_n - 1);
    free(text);
    return found;
}

enum { COLUMNS = 140 };

/* Every line of C has at most COLUMNS characters, and so has prose; tables and code blocks of documents may be wider. */
static int columns_check(const char *file, const char *text, bool is_c) {
    int wrong = 0;
    bool code = false;
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        const char *first = line + strspn(line, " ");
        size_t characters = 0;
        for (size_t i = 0; i < n; i++) characters += (line[i] & 0xC0) != 0x80; /* of UTF-8 */
        code ^= text_starts(first, "```");
        if ((is_c || (!code && *first != '|')) && characters > COLUMNS) {
            print_error("%s:%d: %zu columns\n", file, line_of(text, line), characters);
            wrong++;
        }
        line += n + (line[n] == '\n');
    }
    return wrong;
}

/* ---- names of files --------------------------------------------------------------------------------------------- */

/* Files of others, headers of the system and of libraries, and the program that docs/library.md writes. */
static const char *const elsewhere[] = {"llama2.c",   "run.c",       "jansson.h",  "pcre2.h", "cmocka.h",  "answer.c", "ask.c",
                                        "utf8proc.h", "immintrin.h", "arm_neon.h", "llama.h", "ggml.h"};

static bool in_name(char c) {
    return isalnum((unsigned char)c) || (c && strchr("_./-", c));
}

/* Length of the name of a source file or document that begins here, or 0. Names with a variable part are none: x_test.c,
 * arch_NAME.c, *.md. */
static size_t name_read(const char *text, const char *at, char name[NAME]) {
    static const char *const ends[] = {".c", ".h", ".md", ".py", ".sh", ".cmake"};
    size_t n = 0, capitals = 0;
    while (in_name(at[n])) n++;
    const size_t all = n;
    while (n > 0 && (at[n - 1] == '.' || at[n - 1] == '-')) n--;
    if (n == 0 || n >= NAME) return 0;
    if (at[all] && strchr("*{}<>$~@%=", at[all])) return 0;
    if (at > text && strchr("*{}<>$~@%=\\", at[-1])) return 0;
    memcpy(name, at, n);
    name[n] = 0;
    bool fits = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        fits = fits || (text_ends(name, ends[i]) && n > strlen(ends[i]));
    const char *base = text_base_name(name);
    for (const char *p = base; p < name + n && *p != '.'; p++) {
        capitals = isupper((unsigned char)*p) ? capitals + 1 : 0;
        const bool real = text_starts(base, "README") || text_starts(base, "CONTRIB") || text_starts(base, "CHANGE");
        if (capitals >= 3 && !real) return 0;
    }
    const bool example = base[0] == 'x' && (base[1] == '.' || base[1] == '_');
    return fits && !example && name[0] != '/' && name[0] != '_' ? all : 0;
}

/* A name is that of a file, or the end of a path: "model/pass.c", "round.c". */
static bool name_is_known(const char *name) {
    while (text_starts(name, "../")) name += 3;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(name, elsewhere[i]) == 0) return true;
    for (int i = 0; i < n_text_files; i++) {
        if (!text_ends(text_file[i], name)) continue;
        const char *before = text_file[i] + strlen(text_file[i]) - strlen(name);
        if (before == text_file[i] || before[-1] == '/') return true;
    }
    return false;
}

/* Replaces everything but the comments of a C source by spaces (comments true), or only its comments. */
static void source_keep(char *text, bool comments) {
    char in = 0; /* '"' or '\'' in a literal, '*' in a comment */
    for (char *p = text; *p;) {
        int n = 1;
        bool comment = in == '*';
        if (comment) {
            if (p[0] == '*' && p[1] == '/') in = 0, n = 2;
        } else if (in) {
            if (*p == '\\' && p[1]) n = 2;
            else if (*p == in) in = 0;
        } else if (p[0] == '/' && p[1] == '*') {
            in = '*', comment = true, n = 2;
        } else if (*p == '"' || *p == '\'') {
            in = *p;
        }
        for (; n > 0; n--, p++)
            if (comment != comments && *p != '\n') *p = ' ';
    }
}

static int names_check(const char *file, const char *text, int *seen) {
    int wrong = 0;
    char name[NAME];
    for (const char *at = text; *at;) {
        size_t n = 0;
        if (!in_name(*at)) {
            at++;
            continue;
        }
        while (in_name(at[n])) n++;
        if (name_read(text, at, name)) {
            ++*seen;
            if (!name_is_known(name)) {
                print_error("%s:%d: there is no %s\n", file, line_of(text, at), name);
                wrong++;
            }
        }
        at += n;
    }
    return wrong;
}

/* ---- identifiers ------------------------------------------------------------------------------------------------ */

/* Names of transformers, of a chat template, of the kernel's statistics and of an option of gcc. */
static const char *const others_names[] = {"clean_up_tokenization_spaces", "reasoning_content", "thp_fault_fallback",
                                           "sapphire_rapids"};

static char **identifier; /* of the sources, each once, in order of strcmp */
static size_t n_identifiers;

static bool in_identifier(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files whose code and strings (keys of JSON, variables of the environment) documents may name; not the test of the documents. */
static bool has_identifiers(const char *file) {
    static const char *const ends[] = {".c", ".h", ".py", ".sh", ".cmake", "CMakeLists.txt"};
    const char *base = text_base_name(file);
    bool fits = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) fits = fits || text_ends(file, ends[i]);
    return fits && !text_starts(file, "tests/data/") && strcmp(base, "documents_test.c") != 0 &&
           strcmp(base, "document_checks.h") != 0;
}

/* Appends the identifiers of `text` with an underscore in them, and those that a parenthesis follows. */
static void identifiers_add(const char *text, size_t *room) {
    for (const char *at = text; *at;) {
        size_t n = 0;
        bool scored = false;
        for (; in_identifier(at[n]); n++) scored = scored || at[n] == '_';
        if (n > 0 && n < NAME && (scored || at[n] == '(')) {
            if (n_identifiers == *room) {
                *room = *room ? 2 * *room : 4096;
                identifier = realloc(identifier, *room * sizeof *identifier);
                assert_non_null(identifier);
            }
            identifier[n_identifiers] = strndup(at, n);
            assert_non_null(identifier[n_identifiers++]);
        }
        at += n + (n == 0);
    }
}

/* Reads all sources of the checkout, once. */
static void identifiers_read(void) {
    size_t room = 0, unique = 0;
    for (int i = 0; i < n_text_files; i++) {
        if (!has_identifiers(text_file[i])) continue;
        char *text = text_read(text_file[i]);
        if (text_ends(text_file[i], ".c") || text_ends(text_file[i], ".h")) source_keep(text, false);
        identifiers_add(text, &room);
        free(text);
    }
    qsort(identifier, n_identifiers, sizeof *identifier, by_name);
    for (size_t i = 0; i < n_identifiers; i++) {
        if (unique > 0 && strcmp(identifier[unique - 1], identifier[i]) == 0) free(identifier[i]);
        else identifier[unique++] = identifier[i];
    }
    n_identifiers = unique;
}

static void identifiers_free(void) {
    while (n_identifiers > 0) free(identifier[--n_identifiers]);
    free(identifier);
    identifier = NULL;
}

/* `name`, or as a prefix ("hunch_measure_*") one that begins with it. */
static bool identifier_is_known(const char *name, bool prefix) {
    size_t low = 0, high = n_identifiers;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (strcmp(identifier[middle], name) < 0) low = middle + 1;
        else high = middle;
    }
    const char *at = low < n_identifiers ? identifier[low] : "";
    if (prefix ? text_starts(at, name) : strcmp(at, name) == 0) return true;
    for (size_t i = 0; i < sizeof others_names / sizeof *others_names; i++)
        if (strcmp(others_names[i], name) == 0) return true;
    for (int i = 0; i < n_text_files; i++) { /* a program by the name of its file: `scheduler_test` */
        const char *base = text_base_name(text_file[i]);
        if (text_starts(base, name) && base[strlen(name)] == '.') return true;
    }
    return false;
}

/* Whether the identifier of n bytes at `at` must be in the sources: it has a prefix of hunch's names, or is alone
 * between two backticks, in lower case with an underscore, or is called in backticks, `f()`. */
static bool is_looked_up(const char *text, const char *at, size_t n) {
    static const char *const starts[] = {"hn_", "hunch_", "tool_", "test_", "HN_", "HUNCH_"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (text_starts(at, starts[i])) return true;
    if (at == text || isdigit((unsigned char)*at)) return false;
    const bool call = at[n] == '(' && at[n + 1] == ')' && at[n + 2] == '`';
    const bool alone = at[-1] == '`' && at[n] == '`' && islower((unsigned char)*at);
    return (call && strchr("`.>", at[-1])) || (alone && n > 4 && memchr(at, '_', n));
}

static int identifiers_check(const char *file, const char *text, int *seen) {
    int wrong = 0;
    char name[NAME];
    for (const char *at = text; *at;) {
        size_t n = 0;
        while (in_identifier(at[n])) n++;
        if (n > 0 && n < NAME && is_looked_up(text, at, n)) {
            snprintf(name, sizeof name, "%.*s", (int)n, at);
            ++*seen;
            if (!identifier_is_known(name, name[n - 1] == '_')) {
                print_error("%s:%d: no source has %s\n", file, line_of(text, at), name);
                wrong++;
            }
        }
        at += n + (n == 0);
    }
    return wrong;
}

/* ---- what is where ---------------------------------------------------------------------------------------------- */

/* Whether the code has the name as a whole word. */
static bool has_word(const char *code, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = code; (at = strstr(at, name)); at += n)
        if ((at == code || !in_identifier(at[-1])) && !in_identifier(at[n])) return true;
    return false;
}

/* The text of a file of the checkout named by its path or the end of it; of C without comments. NULL: there is none. */
static char *code_read(const char *name) {
    for (int i = 0; i < n_text_files; i++) {
        const size_t n = strlen(text_file[i]), m = strlen(name);
        if (!text_ends(text_file[i], name) || (n > m && text_file[i][n - m - 1] != '/')) continue;
        char *text = text_read(text_file[i]);
        if (text_ends(name, ".c") || text_ends(name, ".h")) source_keep(text, false);
        return text;
    }
    return NULL;
}

/* Whether a source defines `struct name { ... member ... }`. */
static bool struct_has(const char *name, const char *member) {
    char begins[NAME + 20];
    bool found = false;
    snprintf(begins, sizeof begins, "struct %s {", name);
    for (int i = 0; i < n_text_files && !found; i++) {
        const bool source = text_starts(text_file[i], "src/") || text_starts(text_file[i], "include/");
        if (!source || !(text_ends(text_file[i], ".h") || text_ends(text_file[i], ".c"))) continue;
        char *text = text_read(text_file[i]);
        char *at = strstr(text, begins); /* most files lack it, and reading comments takes longer */
        if (at) source_keep(text, false), at = strstr(text, begins);
        char *end = at ? strstr(at, "\n}") : NULL;
        if (end) {
            *end = 0;
            found = has_word(at, member);
        }
        free(text);
    }
    return found;
}

/* Reads an identifier, perhaps in backticks and with "()" after it. Returns its whole length, 0: there is none. */
static size_t mention_read(const char *at, char name[NAME]) {
    const size_t open = *at == '`';
    size_t n = 0;
    while (in_identifier(at[open + n])) n++;
    if (n == 0 || n >= NAME || isdigit((unsigned char)at[open])) return 0;
    snprintf(name, NAME, "%.*s", (int)n, at + open);
    size_t all = open + n;
    if (text_starts(at + all, "()")) all += 2;
    if (open && at[all] != '`') return 0;
    return all + open;
}

/* Reads the name of a file, perhaps in backticks. Returns its whole length, 0: there is none. */
static size_t file_mention_read(const char *at, char name[NAME]) {
    const size_t open = *at == '`';
    const size_t n = name_read(at, at + open, name);
    return n && (!open || at[open + n] == '`') ? n + 2 * open : 0;
}

static int place_wrong(const char *file, const char *text, const char *at, const char *name, const char *where) {
    char *code = code_read(where);
    const bool found = code && has_word(code, name);
    free(code);
    if (!found) print_error("%s:%d: %s is not in %s\n", file, line_of(text, at), name, where);
    return !found;
}

static int member_wrong(const char *file, const char *text, const char *at, const char *name, const char *member) {
    const bool found = struct_has(name, member);
    if (!found) print_error("%s:%d: %s has no %s\n", file, line_of(text, at), name, member);
    return !found;
}

/* "`name` (`file.c`", "`name` in `file.c`", "hn_name (file.c)", "`file.c` (`name`)", "hn_struct.member". */
static int prose_places_check(const char *file, const char *text, int *seen) {
    int wrong = 0;
    char name[NAME], where[NAME];
    for (const char *at = text; *at;) {
        const bool starts = *at == '`' || (in_identifier(*at) && text_starts(at, "hn_") && (at == text || !in_identifier(at[-1])));
        size_t n = starts ? mention_read(at, name) : 0;
        if (n > 0) {
            const char *next = at + n + strspn(at + n, " \n");
            const size_t join = *next == '(' ? 1 : text_starts(next, "in `") ? 3 : 0;
            if (next > at + n && join && file_mention_read(next + join, where)) {
                wrong += place_wrong(file, text, at, name, where);
                ++*seen;
            }
            if (*at != '`' && at[n] == '.' && islower((unsigned char)at[n + 1]) && mention_read(at + n + 1, where)) {
                wrong += member_wrong(file, text, at, name, where);
                ++*seen;
            }
        } else if (*at == '`' && (n = file_mention_read(at, where))) {
            const bool follows = text_starts(at + n, " (`") && mention_read(at + n + 2, name);
            if (follows && strchr(name, '_')) {
                wrong += place_wrong(file, text, at, name, where);
                ++*seen;
            }
        }
        at += n ? n : 1;
    }
    return wrong;
}

/* The identifiers of a cell that has nothing else, `a`, `b`, are in `where`: a file (is_file), or a struct. */
static int cell_check(const char *file, const char *text, const char *cell, const char *where, bool is_file, int *seen) {
    int wrong = 0;
    char name[NAME];
    for (const char *at = cell; *at != '|' && *at != '\n' && *at;) {
        const size_t n = *at == '`' ? mention_read(at, name) : 0;
        if (n > 0) {
            wrong += is_file ? place_wrong(file, text, at, name, where) : member_wrong(file, text, at, name, where);
            ++*seen;
        } else if (!strchr(" ,;", *at)) {
            return wrong;
        }
        at += n ? n : 1;
    }
    return wrong;
}

/* Tables: a row "| `name` | `file.c` |"; below a head "| of `hn_struct` |" the first cell of each row names members. */
static int table_places_check(const char *file, const char *text, int *seen) {
    int wrong = 0;
    char where[NAME], of[NAME] = "";
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (!text_starts(line, "| ")) of[0] = text_starts(line, "|--") ? of[0] : 0;
        if (!text_starts(line, "| ")) continue;
        if (text_starts(line, "| of `") && mention_read(line + 5, of)) continue;
        if (of[0]) {
            char member[NAME];
            for (const char *at = line; (at = strchr(at, '`')) && at < strchr(line + 1, '|');) {
                const size_t n = mention_read(at, member);
                if (!n) break;
                wrong += member_wrong(file, text, at, of, member);
                ++*seen;
                at += n;
            }
            continue;
        }
        const char *cell = strchr(line + 1, '|');
        const size_t n = cell && text_starts(cell, "| `") ? file_mention_read(cell + 2, where) : 0;
        if (n && text_starts(cell + 2 + n, " |")) wrong += cell_check(file, text, line + 2, where, true, seen);
    }
    return wrong;
}

static int places_check(const char *file, const char *text, int *seen) {
    return prose_places_check(file, text, seen) + table_places_check(file, text, seen);
}

/* ---- keys of draft heads -------------------------------------------------------------------------------------------- */

typedef struct keys_check {
    const char *section;
    char names[8000]; /* of files, each in quotes */
    int seen, wrong;
} keys_check;

/* Names that rows have and the section lacks. */
static void keys_not_documented(void *check, const char *gguf, const char *in_folder, const char *values HN_UNUSED) {
    keys_check *c = check;
    for (int form = 0; form < 2; form++)
        for (const char *at = form ? in_folder : gguf; *at; at += strcspn(at, ","), at += strspn(at, ", "), c->seen++) {
            const size_t n = strcspn(at, ","), len = strlen(c->names);
            snprintf(c->names + len, sizeof c->names - len, "`%.*s`", (int)n, at);
            const bool there = strstr(c->section, c->names + len);
            if (!there) print_error("docs/formats.md lacks the key %s of a draft head\n", c->names + len);
            c->wrong += !there;
        }
}

/* Keys in the section's tables that no row has; those of a folder's config.json may be read elsewhere. */
static int keys_not_read(const keys_check *c) {
    static const char *const starts[] = {"eagle3.", "dflash.", "hunch-head.", "hunch.head."};
    int wrong = 0;
    for (const char *line = c->section; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *end = line + strcspn(line, "\n");
        for (const char *at = line; *line == '|' && (at = memchr(at, '`', (size_t)(end - at)));) {
            const size_t n = strcspn(++at, "`\n");
            char quoted[NAME];
            bool key = false;
            for (size_t k = 0; k < sizeof starts / sizeof *starts; k++) key = key || text_starts(at, starts[k]);
            snprintf(quoted, sizeof quoted, "`%.*s`", (int)n, at);
            if (key && !strstr(c->names, quoted)) print_error("src/model/head/head_keys.c lacks the key %s\n", quoted);
            wrong += key && !strstr(c->names, quoted);
            at += n + 1;
            if (at > end) break;
        }
    }
    return wrong;
}

#endif
