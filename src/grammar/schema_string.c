/* SPDX-License-Identifier: Apache-2.0 */
/* schema_string.c - strings: their length in characters, patterns and formats. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

enum { MAX_PATTERNS = 8 };

/* ---- formats as regular expressions ---- */

/* Years from 0001 on; the 29th of February in leap years. */
#define YEAR "(\\d{3}[1-9]|\\d\\d[1-9]\\d|\\d[1-9]\\d\\d|[1-9]\\d{3})"
#define LEAP "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DAYS "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))"
#define DATE "(" YEAR "-" DAYS "|" LEAP "-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define ATOM "[A-Za-z0-9!#$%&'*+/=?_{|}~-]"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define HEX "[0-9a-fA-F]"

#define UUID(version) "^" HEX "{8}-" HEX "{4}-" version HEX "{3}-[89abAB]" HEX "{3}-" HEX "{12}$"
#define BASE64(marks) "^([A-Za-z0-9" marks "]{4}){0,5000}([A-Za-z0-9" marks "]{2}==|[A-Za-z0-9" marks "]{3}=)?$"
#define NAME "[A-Za-z0-9]{1,20}(-[A-Za-z0-9]{1,20}){0,2}"
#define HOST NAME "(\\." NAME "){0,2}"
#define SHORT HEX "{1,4}"
#define IPV6                                                                                                                    \
    "(" SHORT "(:" SHORT "){7}|(" SHORT ":){1,7}:|(" SHORT ":){1,6}:" SHORT "|(" SHORT ":){1,5}(:" SHORT "){2}|"                 \
    "(" SHORT ":){1,4}(:" SHORT "){1,3}|(" SHORT ":){1,3}(:" SHORT "){1,4}|(" SHORT ":){1,2}(:" SHORT "){1,5}|"                 \
    SHORT ":(:" SHORT "){1,6}|::(" SHORT "(:" SHORT "){0,6})?)"
#define IPV4 OCTET "\\." OCTET "\\." OCTET "\\." OCTET
/* Of an URI: a character of a path. The whole has at most 2083 characters, which pydantic asks of those of the web. */
#define PATH "([A-Za-z0-9._~!$&'()*+,;=:@-]|%" HEX "{2})"
#define BEHIND "(\\?(" PATH "|[/?]){0,100})?(#(" PATH "|[/?]){0,50})?"
#define PATHS "(/" PATH "{0,60}){0,5}"
#define URI "([a-z][a-z0-9+.-]{0,15}://" HOST "(:[1-9]\\d{0,3})?" PATHS BEHIND "|(mailto|urn|tel|data):" PATH "{1,100})"
/* A part follows the next larger one, as ISO 8601's notation in RFC 3339 says. */
#define COUNT "(0|[1-9]\\d{0,3})"
#define IN_DAY "T(" COUNT "H(" COUNT "M(" COUNT "S)?)?|" COUNT "M(" COUNT "S)?|" COUNT "S)"
#define DAYS_OF "(" COUNT "Y(" COUNT "M(" COUNT "D)?)?|" COUNT "M(" COUNT "D)?|" COUNT "D)"
#define DURATION "^P(" DAYS_OF "(" IN_DAY ")?|" IN_DAY "|" COUNT "W)$"

static const struct { const char *name, *regex; } formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", DURATION},
    {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
    {"uuid1", UUID("1")},
    {"uuid3", UUID("3")},
    {"uuid4", UUID("4")},
    {"uuid5", UUID("5")},
    {"email", "^" ATOM "{1,20}(\\." ATOM "{1,20}){0,2}@(" LABEL "\\.){1,4}" LABEL "$"},
    {"hostname", "^" HOST "$"},
    {"ipv4", "^" IPV4 "$"},
    {"ipv6", "^" IPV6 "$"},
    {"ipvanyaddress", "^(" IPV4 "|" IPV6 ")$"},
    {"uri", "^" URI "$"},
    {"uri-reference", "^(" URI "|(/" PATH "{1,60}" PATHS ")?" BEHIND "|[A-Za-z0-9._~-]{1,60}" PATHS BEHIND ")$"},
    {"json-pointer", "^(/([^/~]|~[01]){0,60}){0,20}$"},
    {"byte", BASE64("+/")},
    {"base64", BASE64("+/")},
    {"base64url", BASE64("_-")}};

/* Names that forbid no text; those of numbers say something of these alone (schema_not.c). */
static const char *const any_text[] = {"password", "binary", "path", "file-path", "directory-path", "float", "double", "int8", "uint8",
                                       "int16", "uint16", "int32", "uint32", "int64", "uint64"};

/* *regex NULL: any text. False: failed. */
static bool format_regex(hn_schema *s, const json_t *format, int32_t path, const char **regex) {
    const char *name = json_string_value(format);
    *regex = NULL;
    if (!name) return hn_schema_fail(s, path, "format: expected a text") >= 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return *regex = formats[i].regex, true;
    for (size_t i = 0; i < sizeof any_text / sizeof *any_text; i++)
        if (strcmp(any_text[i], name) == 0) return true;
    return hn_schema_refuse(s, path, "format \"%.60s\" is not supported, expected date, time, date-time, duration, uuid, email, hostname, "
                                     "ipv4, ipv6, uri, uri-reference, json-pointer, byte or base64", name);
}

/* ---- strings ---- */

typedef struct patterns {
    hn_regex at[MAX_PATTERNS];
    int n;
} patterns;

static bool refuse_more(hn_schema *s, int32_t path) {
    return hn_schema_refuse(s, path, "more than %d patterns and formats of one string", MAX_PATTERNS);
}

static bool put_regex(hn_schema *s, patterns *p, const char *text, size_t len, bool without, int32_t path) {
    if (p->n == MAX_PATTERNS) return refuse_more(s, path);
    hn_regex *r = &p->at[p->n];
    if (without ? hn_regex_open_without(r, s->b, text, len) : hn_regex_open(r, s->b, "", text, len, true)) return p->n++, true;
    hn_regex_fini(r);
    return hn_schema_refused(s, path);
}

/* The end of the alternatives that begin at a place, a ) or the text's end; *either: there are several. */
static const char *group_end(const char *at, bool *either) {
    int depth = 0;
    bool set = false;
    for (; *at; at++) {
        if (*at == '\\') {
            if (!*++at) break;
        } else if (set) {
            set = *at != ']';
        } else if (*at == '[') {
            set = true;
        } else if (*at == '(') {
            depth++;
        } else if (*at == ')' && depth-- == 0) {
            break;
        } else if (*at == '|' && depth == 0) {
            *either = true;
        }
    }
    return at;
}

/* What looks ahead at the beginning of the whole, as ^(?!..)(?=..).., is an expression of its own that must not match, or must; then *text
 * is what is left behind it and the ^. So zod and pydantic write addresses and decimals. False: failed. */
static bool put_ahead(hn_schema *s, patterns *p, const char **text, int32_t path) {
    const char *at = *text + 1, *end;
    bool either = false;
    if (**text == '^') group_end(*text, &either);
    while (**text == '^' && !either && (strncmp(at, "(?!", 3) == 0 || strncmp(at, "(?=", 3) == 0)) {
        end = group_end(at + 3, &(bool){0});
        if (!*end) break;
        const size_t n = (size_t)(end - at) + 4;
        char *whole = hn_alloc(n + 1);
        if (!whole) return hn_builder_no_memory(s->b) >= 0;
        snprintf(whole, n + 1, "^(?:%.*s)", (int)(end - at) - 3, at + 3);
        const bool ok = put_regex(s, p, whole, strlen(whole), at[2] == '!', path);
        hn_free(whole);
        if (!ok) return false;
        at = end + 1;
    }
    if (at > *text + 1) *text = at;
    return true;
}

/* zod's for durations, which looks ahead within: it allows what the format does, and more. */
static const char zod_duration[] = "^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)"
                                   "(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$";

static bool put_pattern(hn_schema *s, patterns *p, const json_t *pattern, bool without, int32_t path) {
    if (!json_is_string(pattern)) return hn_schema_fail(s, path, "expected a text") >= 0;
    const char *text = json_string_value(pattern), *rest = text;
    const size_t len = json_string_length(pattern);
    if (without || strlen(text) != len) return put_regex(s, p, text, len, without, path);
    if (strcmp(text, zod_duration) == 0) return put_regex(s, p, DURATION, strlen(DURATION), false, path);
    if (!put_ahead(s, p, &rest, path)) return false;
    if (rest == text) return put_regex(s, p, text, len, false, path);
    char *anchored = hn_alloc(len + 2);
    if (!anchored) return hn_builder_no_memory(s->b) >= 0;
    snprintf(anchored, len + 2, "^%s", rest);
    const bool ok = put_regex(s, p, anchored, strlen(anchored), false, path);
    hn_free(anchored);
    return ok;
}

/* What `not` leaves out: a pattern's texts, or some. */
static bool without_take(hn_schema *s, patterns *p, const hn_schema_item *item, const json_t *of) {
    const json_t *pattern = json_object_get(of, "pattern"), *one = json_object_get(of, "const"), *some = json_object_get(of, "enum");
    const int32_t path = hn_schema_step(s, item->path, "not");
    const size_t n = one ? 1 : json_array_size(some);
    if (pattern) return put_pattern(s, p, pattern, true, hn_schema_step(s, path, "pattern"));
    if (some && !json_is_array(some)) return hn_schema_fail(s, path, "enum: expected a list of values") >= 0;
    hn_word *word = hn_alloc((n + 1) * sizeof *word);
    size_t words = 0;
    if (!word) return hn_builder_no_memory(s->b) >= 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *x = one ? one : json_array_get(some, i);
        if (json_is_string(x)) word[words++] = (hn_word){json_string_value(x), json_string_length(x)};
    }
    bool ok = true;
    if (words && p->n == MAX_PATTERNS) {
        ok = refuse_more(s, path);
    } else if (words) {
        ok = hn_regex_words(&p->at[p->n], s->b, word, words, true);
        p->n++; /* to be closed in any case */
    }
    hn_free(word);
    return ok;
}

static bool patterns_take(hn_schema *s, patterns *p, const hn_schema_item *item) {
    const json_t *pattern = json_object_get(item->node, "pattern"), *format = json_object_get(item->node, "format");
    const json_t *without = hn_schema_not(item);
    if (without && !without_take(s, p, item, without)) return false;
    if (pattern && !put_pattern(s, p, pattern, false, hn_schema_step(s, item->path, "pattern"))) return false;
    if (!format) return true;
    const int32_t path = hn_schema_step(s, item->path, "format");
    const char *regex;
    return format_regex(s, format, path, &regex) && (!regex || put_regex(s, p, regex, strlen(regex), false, path));
}

/* ---- spellings ---- */

/* One character of a set that plain strings may have; a hn_regex_class. */
static hn_expr plain_class(hn_builder *b, const hn_ranges *set) {
    hn_ranges never = {0}, all = {0};
    bool ok = true;
    for (const char *c = b->never; *c && ok; c++) ok = hn_ranges_add(&never, (unsigned char)*c, (unsigned char)*c);
    ok = ok && hn_ranges_invert(&never);
    for (size_t i = 0; i < set->n && ok; i++)
        for (size_t k = 0; k < never.n && ok; k++) {
            const hn_range x = set->at[i], y = never.at[k];
            ok = hn_ranges_add(&all, x.first > y.first ? x.first : y.first, x.last < y.last ? x.last : y.last);
        }
    hn_ranges_sort(&all);
    const hn_expr e = !ok ? hn_builder_no_memory(b) : all.n ? hn_expr_ranges(b, &all) : hn_expr_nothing(b);
    hn_ranges_fini(&never);
    hn_ranges_fini(&all);
    return e;
}

static hn_expr character(const hn_schema *s, bool one_spelling) {
    hn_range every = {0, HN_LAST_CODE_POINT};
    const hn_ranges all = {.at = &every, .n = 1};
    return s->plain ? plain_class(s->b, &all) : one_spelling ? hn_json_class(s->b, &all) : hn_json_char(s->b);
}

hn_expr hn_schema_any(hn_schema *s) {
    return s->plain ? hn_expr_repeat(s->b, character(s, false), 0, -1) : hn_expr_json_value(s->b);
}

/* ---- all of a list ---- */

static hn_expr string_of(hn_schema *s, const hn_schema_list *list, patterns *p) {
    int64_t min = 0, max = -1;
    for (size_t i = 0; i < list->n; i++) {
        const hn_schema_item *x = &list->at[i];
        if (!hn_schema_count(s, x, "minLength", true, &min) || !hn_schema_count(s, x, "maxLength", false, &max) || !patterns_take(s, p, x))
            return -1;
    }
    if (max >= 0 && min > max) return hn_expr_nothing(s->b);
    if (max > HN_GRAMMAR_MAX_REPEAT) max = -1;
    if (min > HN_GRAMMAR_MAX_REPEAT) return hn_schema_fail(s, list->at[0].path, "minLength above 2^30");
    if (!p->n && min == 0 && max < 0 && !list->one_spelling) return s->plain ? hn_schema_any(s) : hn_json_string(s->b);
    const hn_expr body = p->n ? hn_regex_all(s->b, p->at, p->n, min, max, s->plain ? plain_class : hn_json_class)
                              : hn_expr_repeat(s->b, character(s, list->one_spelling), (int)min, (int)max);
    return s->plain ? body : hn_json_quoted(s->b, body);
}

hn_expr hn_schema_string(hn_schema *s, const hn_schema_list *list) {
    patterns p = {.n = 0};
    const hn_expr e = string_of(s, list, &p);
    for (int i = 0; i < p.n; i++) hn_regex_fini(&p.at[i]);
    return e;
}
