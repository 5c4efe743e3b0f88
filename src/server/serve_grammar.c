/* SPDX-License-Identifier: Apache-2.0 */
/* serve_grammar.c - see serve_grammar.h. Every field becomes one source of a grammar (hunch.h); two of them in one request contradict each
 * other. */
#include "server/serve_grammar.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/http/serve_bytes.h"
#include "server/protocols/serve_fields.h"

static bool twice(const serve_form *s, const char *field, serve_error *err) {
    return s->given ? !serve_fail(err, 400, field, "%s and %s: expected one of them", s->field, field) : false;
}

static bool add(serve_form *s, hunch_grammar_kind kind, const char *field, const char *text, size_t n, serve_error *err) {
    if (twice(s, field, err)) return false;
    s->given = true;
    s->kind = kind;
    s->field = field;
    return serve_bytes_add(&s->text, text, n) ? true : serve_fail(err, 503, NULL, "no memory for the request");
}

/* ---- kinds of values ----------------------------------------------------------------------------------------- */

bool serve_form_object(serve_form *s, const char *field, serve_error *err) {
    return add(s, HUNCH_GRAMMAR_JSON_OBJECT, field, "", 0, err);
}

static bool take_object(serve_form *s, const char *field, const json_t *value, serve_error *err) {
    if (!json_is_boolean(value)) return serve_fail(err, 400, field, "%s is not a boolean", field);
    return json_is_true(value) ? serve_form_object(s, field, err) : true;
}

bool serve_form_schema(serve_form *s, const char *field, const json_t *value, serve_error *err) {
    if (json_is_string(value))
        return add(s, HUNCH_GRAMMAR_JSON_SCHEMA, field, json_string_value(value), json_string_length(value), err);
    if (!hn_json_is_object(value) && !json_is_boolean(value)) return serve_fail(err, 400, field, "%s is not a JSON schema", field);
    char *text = serve_json_dump(value, JSON_ENCODE_ANY);
    const bool taken = add(s, HUNCH_GRAMMAR_JSON_SCHEMA, field, text, strlen(text), err);
    hn_free(text);
    return taken;
}

bool serve_form_strict(serve_form *s, const json_t *strict) {
    if (json_is_false(strict)) s->kind = HUNCH_GRAMMAR_JSON_SCHEMA_LOOSE;
    return true;
}

static bool take_text(serve_form *s, hunch_grammar_kind kind, const char *field, const json_t *value, serve_error *err) {
    if (json_string_length(value) == 0) return serve_fail(err, 400, field, "%s is not a text of at least one byte", field);
    return add(s, kind, field, json_string_value(value), json_string_length(value), err);
}

static bool take_regex(serve_form *s, const char *field, const json_t *value, serve_error *err) {
    return take_text(s, HUNCH_GRAMMAR_REGEX, field, value, err);
}

static bool take_grammar(serve_form *s, const char *field, const json_t *value, serve_error *err) {
    return take_text(s, HUNCH_GRAMMAR_GBNF, field, value, err);
}

/* A literal of GBNF. */
static bool literal_add(serve_bytes *to, const char *text, size_t n) {
    bool kept = serve_bytes_add(to, "\"", 1);
    for (size_t i = 0; i < n && kept; i++) {
        char hex[8];
        const bool plain = (unsigned char)text[i] >= ' ' && text[i] != '"' && text[i] != '\\' && text[i] != 127;
        snprintf(hex, sizeof hex, "\\x%02x", (unsigned)(unsigned char)text[i]);
        kept = plain ? serve_bytes_add(to, text + i, 1) : serve_bytes_add(to, hex, strlen(hex));
    }
    return kept && serve_bytes_add(to, "\"", 1);
}

/* One of these texts. */
static bool take_choice(serve_form *s, const char *field, const json_t *value, serve_error *err) {
    static const char root[] = "root ::= ", or[] = " | ";
    const size_t n = json_array_size(value);
    if (n == 0) return serve_fail(err, 400, field, "%s is not a list of at least one text", field);
    if (!add(s, HUNCH_GRAMMAR_GBNF, field, root, sizeof root - 1, err)) return false;
    bool kept = true;
    for (size_t i = 0; i < n && kept; i++) {
        const json_t *one = json_array_get(value, i);
        if (json_string_length(one) == 0) return serve_fail(err, 400, field, "%s[%zu] is not a text of at least one byte", field, i);
        if (i) kept = serve_bytes_add(&s->text, or, sizeof or - 1);
        kept = kept && literal_add(&s->text, json_string_value(one), json_string_length(one));
    }
    return kept ? true : serve_fail(err, 503, NULL, "no memory for the request");
}

/* ---- fields -------------------------------------------------------------------------------------------------- */

/* The fields of the body and, with their short names, of vLLM's structured_outputs. */
static const struct {
    const char *name, *in_structured;
    bool (*take)(serve_form *s, const char *field, const json_t *value, serve_error *err);
} fields[] = {
    {"guided_json", "structured_outputs.json", serve_form_schema},       {"guided_regex", "structured_outputs.regex", take_regex},
    {"guided_choice", "structured_outputs.choice", take_choice},   {"guided_grammar", "structured_outputs.grammar", take_grammar},
    {"guided_json_object", "structured_outputs.json_object", take_object}, {"json_schema", NULL, serve_form_schema},
    {"grammar", NULL, take_grammar}};
enum { FIELDS = sizeof fields / sizeof *fields, PREFIX = sizeof "structured_outputs." - 1 };

static bool structured_read(serve_form *s, const json_t *outputs, serve_error *err) {
    const char *key;
    json_t *value;
    if (!hn_json_is_object(outputs)) return serve_fail(err, 400, "structured_outputs", "structured_outputs is not an object");
    json_object_foreach((json_t *)(uintptr_t)outputs, key, value) {
        int at = 0;
        if (json_is_null(value)) continue;
        while (at < FIELDS && !(fields[at].in_structured && strcmp(fields[at].in_structured + PREFIX, key) == 0)) at++;
        if (at == FIELDS) return serve_fail(err, 400, "structured_outputs", "structured_outputs.%.60s is not supported", key);
        if (!fields[at].take(s, fields[at].in_structured, value, err)) return false;
    }
    return true;
}

static bool format_read(serve_form *s, const json_t *format, serve_error *err) {
    static const char name[] = "response_format", schema_name[] = "response_format.json_schema.schema";
    const char *type = json_string_value(json_object_get(format, "type"));
    const json_t *schema = json_object_get(format, "schema"); /* llama.cpp's place for it */
    if (!hn_json_is_object(format)) return serve_fail(err, 400, name, "response_format is not an object");
    if (type && strcmp(type, "text") == 0) return true;
    if (type && strcmp(type, "json_object") == 0)
        return schema ? serve_form_schema(s, "response_format.schema", schema, err) : serve_form_object(s, name, err);
    if (!type || strcmp(type, "json_schema") != 0)
        return serve_fail(err, 400, name, "response_format.type is none of text, json_object, json_schema");
    const json_t *named = json_object_get(format, "json_schema");
    if (!schema) schema = json_object_get(named, "schema");
    if (!schema) return serve_fail(err, 400, schema_name, "%s is missing", schema_name);
    return serve_form_schema(s, schema_name, schema, err) && serve_form_strict(s, json_object_get(named, "strict"));
}

static bool form_read(serve_form *s, const serve_view *v, serve_error *err) {
    const json_t *format = serve_field(v, "response_format"), *outputs = serve_field(v, "structured_outputs");
    if (format && !format_read(s, format, err)) return false;
    if (outputs && !structured_read(s, outputs, err)) return false;
    for (int i = 0; i < FIELDS; i++) {
        const json_t *value = serve_field(v, fields[i].name);
        if (!value || (json_is_string(value) && json_string_length(value) == 0)) continue; /* llama.cpp's clients send "" for none */
        if (!fields[i].take(s, fields[i].name, value, err)) return false;
    }
    return true;
}

bool serve_grammar_given(const json_t *body) {
    static const char *const others[] = {"response_format", "structured_outputs", "format", "text", "output_format", "output_config"};
    for (int i = 0; i < FIELDS; i++)
        if (serve_value(body, fields[i].name)) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (serve_value(body, others[i])) return true;
    return false;
}

bool serve_grammar_read(serve_call *c, const serve_view *v, serve_form *f, serve_error *err) {
    const bool thinks = c->n_prompts > 0 && c->prompts[0].thinks;
    const hunch_grammar_start start = !c->chat ? HUNCH_GRAMMAR_AT_ONCE : thinks ? HUNCH_GRAMMAR_IN_THINKING : HUNCH_GRAMMAR_AFTER_THINKING;
    hunch_error why = {0};
    if (!form_read(f, v, err)) return false;
    if (f->given && hunch_grammar_open(&c->request.grammar, c->model, f->kind, f->text.at, f->text.n, start, &why))
        return serve_fail_hunch(err, f->field, &why);
    return true;
}
