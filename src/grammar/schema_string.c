/* SPDX-License-Identifier: Apache-2.0 */
/* schema_string.c - strings: their length in characters, patterns and formats. */
#include <string.h>

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

static const struct { const char *name, *regex; } formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
    {"email", "^" ATOM "{1,20}(\\." ATOM "{1,20}){0,2}@(" LABEL "\\.){1,4}" LABEL "$"},
    {"ipv4", "^" OCTET "\\." OCTET "\\." OCTET "\\." OCTET "$"}};

static const char *format_regex(hn_schema *s, const json_t *format, int32_t path) {
    const char *name = json_string_value(format);
    if (!name) return hn_schema_fail(s, path, "format: expected a text"), NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].regex;
    hn_schema_fail(s, path, "format \"%.60s\" is not supported, expected date, time, date-time, uuid, email or ipv4", name);
    return NULL;
}

/* ---- strings ---- */

typedef struct patterns {
    hn_regex at[MAX_PATTERNS];
    int n;
} patterns;

static bool put_pattern(hn_schema *s, patterns *p, const char *text, size_t len, int32_t path) {
    if (p->n == MAX_PATTERNS) return hn_schema_fail(s, path, "more than %d patterns and formats of one string", MAX_PATTERNS) >= 0;
    if (hn_regex_open(&p->at[p->n++], s->b, "", text, len, true)) return true;
    if (s->b->failed == HUNCH_USAGE) { /* where it stands goes before what is wrong */
        hunch_error why = s->b->why;
        s->b->failed = HUNCH_OK;
        hn_schema_fail(s, path, "%s", why.message);
    }
    return false;
}

static bool patterns_take(hn_schema *s, patterns *p, const hn_schema_item *item) {
    const json_t *pattern = json_object_get(item->node, "pattern"), *format = json_object_get(item->node, "format");
    if (pattern) {
        const int32_t path = hn_schema_step(s, item->path, "pattern");
        if (!json_is_string(pattern)) return hn_schema_fail(s, path, "expected a text") >= 0;
        if (!put_pattern(s, p, json_string_value(pattern), json_string_length(pattern), path)) return false;
    }
    if (!format) return true;
    const int32_t path = hn_schema_step(s, item->path, "format");
    const char *regex = format_regex(s, format, path);
    return regex && put_pattern(s, p, regex, strlen(regex), path);
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

static hn_expr character(const hn_schema *s) {
    hn_range every = {0, HN_LAST_CODE_POINT};
    return s->plain ? plain_class(s->b, &(hn_ranges){.at = &every, .n = 1}) : hn_json_char(s->b);
}

hn_expr hn_schema_any(hn_schema *s) {
    return s->plain ? hn_expr_repeat(s->b, character(s), 0, -1) : hn_expr_json_value(s->b);
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
    if (!p->n && min == 0 && max < 0) return s->plain ? hn_schema_any(s) : hn_json_string(s->b);
    const hn_expr body = p->n ? hn_regex_all(s->b, p->at, p->n, min, max, s->plain ? plain_class : hn_json_class)
                              : hn_expr_repeat(s->b, character(s), (int)min, (int)max);
    return s->plain ? body : hn_json_quoted(s->b, body);
}

hn_expr hn_schema_string(hn_schema *s, const hn_schema_list *list) {
    patterns p = {.n = 0};
    const hn_expr e = string_of(s, list, &p);
    for (int i = 0; i < p.n; i++) hn_regex_fini(&p.at[i]);
    return e;
}
