/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_json_test.c - schemas with values that they allow and forbid (tests/data/structured, checked by jsonschema:
 * tools/check_structured.py), what is refused and how, and hostile schemas. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "grammar/grammar_for_tests.h"
#include "grammar/grammar_private.h"

static accepter schema_open(const json_t *schema, const char *name) {
    hunch_error err = {0};
    hn_grammar *g = NULL;
    char *text = hn_json_dump(schema, JSON_ENCODE_ANY);
    if (hn_grammar_json_schema(&g, text, strlen(text), &err) != HUNCH_OK) fail_msg("%s: %s", name, err.message);
    hn_free(text);
    return accepter_of(g, name);
}

static void test_values(void **state) {
    (void)state;
    FILE *f = fopen(HUNCH_TEST_DATA "/structured/schemas.jsonl", "r");
    static char line[65536];
    int n = 0, wrong = 0;
    assert_non_null(f);
    for (; fgets(line, sizeof line, f); n++) {
        json_t *j = hn_json_load(line, strlen(line), 0, NULL);
        assert_non_null(j);
        const char *name = json_string_value(json_object_get(j, "name"));
        accepter x = schema_open(json_object_get(j, "schema"), name);
        for (int valid = 0; valid < 2; valid++) {
            const json_t *list = json_object_get(j, valid ? "valid" : "invalid");
            assert_true(json_array_size(list) > 0);
            for (size_t i = 0; i < json_array_size(list); i++) {
                const char *text = json_string_value(json_array_get(list, i));
                if (accepts(&x, text) == valid) continue;
                print_error("%s: %s %s\n", name, valid ? "refuses" : "accepts", text);
                wrong++;
            }
        }
        accepter_close(&x);
        json_decref(j);
    }
    fclose(f);
    assert_true(n >= 60);
    assert_int_equal(wrong, 0);
}

/* Numbers that Python's validators take for infinite: bounds and constants are exact all the same. */
static void test_beyond_doubles(void **state) {
    (void)state;
    static const struct { const char *schema, *text; bool accepted; } cases[] = { /* # in the text: 400 zeros */
        {"{\"type\":\"integer\",\"minimum\":0,\"maximum\":1e400}", "1#", true},
        {"{\"type\":\"integer\",\"minimum\":0,\"maximum\":1e400}", "1#0", false},
        {"{\"type\":\"integer\",\"minimum\":0,\"maximum\":1e400}", "2#", false},
        {"{\"type\":\"integer\",\"minimum\":0,\"maximum\":1e400}", "0", true},
        {"{\"type\":\"integer\",\"exclusiveMaximum\":1E+400}", "1#", false},
        {"{\"type\":\"integer\",\"exclusiveMaximum\":1E+400}", "-5#0", true},
        {"{\"type\":\"integer\",\"minimum\":-1.5e401}", "-15#", true},
        {"{\"type\":\"integer\",\"minimum\":-1.5e401}", "-16#", false},
        {"{\"type\":\"number\",\"exclusiveMinimum\":1.5e401}", "16#", true},
        {"{\"type\":\"number\",\"exclusiveMinimum\":1.5e401}", "15#", false},
        {"{\"const\":1e400}", "1#", true},
        {"{\"const\":1e400}", "1#0", false},
        {"{\"enum\":[1e400, 5, -1.25e402],\"minimum\":-1}", "1#", true},
        {"{\"enum\":[1e400, 5, -1.25e402],\"minimum\":-1}", "-125#", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[500];
        const char *mark = strchr(cases[i].text, '#');
        const int before = (int)(mark ? mark - cases[i].text : (long)strlen(cases[i].text));
        snprintf(text, sizeof text, "%.*s%0*d%s", before, cases[i].text, mark ? 400 : 1, 0, mark ? mark + 1 : "");
        if (!mark) text[before] = 0;
        json_t *schema = hn_json_load(cases[i].schema, strlen(cases[i].schema), 0, NULL);
        accepter x = schema_open(schema, cases[i].schema);
        if (accepts(&x, text) != cases[i].accepted) fail_msg("%s: %s", cases[i].schema, cases[i].text);
        accepter_close(&x);
        json_decref(schema);
    }
}

static hunch_status loose_schema(hn_grammar **out, const char *text, size_t len, hunch_error *err) {
    *out = NULL;
    hn_builder *b = hn_builder_open(err);
    hn_builder_loosen(b, true);
    return hn_grammar_finish(out, &b, hn_expr_json_schema(b, text, len, ""), err);
}

static const grammar_refusal refusals[] = {
    {"{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"uniqueItems\":true}", "/uniqueItems: uniqueItems of arrays or objects"},
    {"{\"items\":{\"type\":\"array\",\"items\":{\"pattern\":\"^a?$\"},\"uniqueItems\":true,\"minItems\":2}}",
     "/items/uniqueItems: uniqueItems with minItems"},
    {"{\"prefixItems\":[{}],\"uniqueItems\":true}", "/uniqueItems: uniqueItems beside prefixItems"},
    {"{\"properties\":{\"a\":{\"not\":{\"format\":\"date\"}}}}", "/properties/a/not/format: the opposite of format is not supported"},
    {"{\"not\":{\"const\":[1]}}", "/not: not of an array or an object"},
    {"{\"not\":3}", "/not: expected a schema"},
    {"{\"allOf\":[{\"contains\":{}},{\"contains\":{}}]}", "/allOf/1/contains: a second contains"},
    {"{\"contains\":{\"type\":\"null\"},\"minItems\":300000}", "too many items for contains"},
    {"{\"type\":\"integer\",\"multipleOf\":10001}", "/multipleOf: a multiple, or several together, of more than 10000"},
    {"{\"type\":\"integer\",\"multipleOf\":199,\"allOf\":[{\"multipleOf\":197}]}", "/allOf/0/multipleOf: a multiple, or several together"},
    {"{\"type\":\"integer\",\"multipleOf\":0}", "/multipleOf: expected a number above 0"},
    {"{\"if\":{\"multipleOf\":2},\"then\":false}", "the opposite of multipleOf is not supported"},
    {"{\"type\":\"string\",\"not\":{\"maxLength\":\"x\"}}", "/not/maxLength: expected an integer of 0 or more"},
    {"{\"type\":\"array\",\"not\":{\"minItems\":1.5}}", "/not/minItems: expected an integer of 0 or more"},
    {"{\"type\":\"integer\",\"not\":{\"minimum\":\"x\"}}", "/not/minimum: expected a number"},
    {"{\"if\":{\"minProperties\":-1},\"then\":false}", "/minProperties: expected an integer of 0 or more"},
    {"{\"not\":{\"required\":[\"a\",3]}}", "/not/required: expected a list of names"},
    {"{\"not\":{\"required\":\"a\"}}", "/not/required: expected a list of names"},
    {"{\"dependentRequired\":{\"a\":[\"b\",3]}}", "/dependentRequired/a: expected a list of names or a schema"},
    {"{\"dependentRequired\":{\"a\":3}}", "/dependentRequired/a: expected a list of names or a schema"},
    {"{\"patternProperties\":{\"(?=a)\":{}}}", "pattern: the regular expression, at byte 3: look-ahead"},
    {"{\"patternProperties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{},\"e\":{}}}", "/patternProperties: more than 4 patterns"},
    {"{\"propertyNames\":{\"anyOf\":[{\"const\":\"a\"},{\"const\":\"b\"}]}}", "/propertyNames: anyOf of propertyNames"},
    {"{\"propertyNames\":{\"pattern\":\"^[ab]$\"},\"minProperties\":2}", "minProperties above 1 beside patternProperties"},
    {"{\"properties\":{\"a\":{\"type\":\"string\",\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"},{\"pattern\":\"c\"},"
     "{\"pattern\":\"d\"},{\"pattern\":\"e\"},{\"pattern\":\"f\"},{\"pattern\":\"g\"},{\"pattern\":\"h\"},{\"format\":\"date\"}]}}}",
     "/properties/a/allOf/8/format: more than 8 patterns and formats of one string"},
    {"{\"unevaluatedProperties\":false}", "/unevaluatedProperties"},
    {"{\"minLenght\":3}", "/minLenght: an unknown keyword, did you mean minLength?"},
    {"{\"type\":\"string\",\"format\":\"colour\"}", "format \"colour\" is not supported"},
    {"{\"type\":\"strin\"}", "/type: expected null, boolean"},
    {"{\"pattern\":\"(?=a)\"}", "/pattern: the regular expression, at byte 3: look-ahead"},
    {"{\"pattern\":\"^(?=a)b|c\"}", "/pattern: the regular expression, at byte 4: look-ahead"},
    {"{\"pattern\":\"^a(?!b)\"}", "/pattern: the regular expression, at byte 5: look-ahead"},
    {"{\"pattern\":\"^(?!(?=a))b\"}", "/pattern: the regular expression, at byte 7: look-ahead"},
    {"{\"pattern\":3}", "/pattern: expected a text"},
    {"{\"$ref\":\"#/$defs/x\"}", "leads nowhere"},
    {"{\"$ref\":\"other.json\"}", "only \"#\""},
    {"{\"$ref\":\"#\"}", "leads to itself"},
    {"{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "leads to itself"},
    {"{\"oneOf\":[{\"type\":\"string\"},{\"format\":\"date\"}]}", "/oneOf/0/allOf/1/not/format: the opposite of format is not supported"},
    {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":2},{\"minimum\":3},{\"minimum\":4},{\"minimum\":5},{\"minimum\":6},{\"minimum\":7},"
     "{\"minimum\":8},{\"minimum\":9}]}", "branches 0 and 1 of oneOf may both hold"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"a\":{}}}", "duplicate"},
    {"{\"type\":", "line 1"},
    {"[1]", "expected a schema"},
    {"{\"items\":[3]}", "/items/0: expected a schema"},
    {"{\"minLength\":-1}", "/minLength: expected an integer"},
    {"{\"minimum\":\"1\"}", "/minimum: expected a number"},
    {"{\"type\":\"integer\",\"maximum\":1e1024}", "/maximum: a bound of more than 1024 digits is not supported"},
    {"{\"type\":\"integer\",\"minimum\":-1e99999999999999999999}", "/minimum: a bound of more than 1024 digits"},
    {"{\"const\":1e4000}", "a constant of the JSON schema has more than 1024 digits"},
    {"{\"type\":\"integer\",\"multipleOf\":18446744073709551616}", "/multipleOf: a multiple"},
    {"{\"properties\":18446744073709551616}", "/properties: expected"},
    {"{\"items\":18446744073709551616}", "/items: expected a schema"},
    {"{\"type\":18446744073709551616}", "/type: expected null, boolean"},
    {"{\"type\":\"integer\",\"minimum\":18446744073709551616,\"maximum\":18446744073709551615}", "no text matches"},
    {"{\"enum\":3}", "/enum: expected a list"},
    {"{\"required\":[1],\"type\":\"object\"}", "/required: expected a list of names"},
    {"{\"anyOf\":[]}", "/anyOf: expected a list"},
    {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "no text matches the grammar, as none matches the JSON schema, its root"},
    {"{\"properties\":{\"x\":{\"enum\":[]},"
     "\"a\":{\"items\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":2},\"minItems\":1,\"type\":\"array\"}},"
     "\"required\":[\"a\"],\"type\":\"object\"}", "as none matches the JSON schema, /properties/a/items"},
    {"{\"type\":\"array\",\"items\":{\"enum\":[1,2,1.0]},\"uniqueItems\":true,\"minItems\":3}",
     "as none matches the JSON schema, its root"},
    {"{\"type\":\"array\",\"items\":{\"enum\":[1,2,3],\"minimum\":2},\"uniqueItems\":true,\"minItems\":3}",
     "as none matches the JSON schema, its root"},
    {"{\"type\":\"array\",\"items\":{\"const\":\"ab\",\"maxLength\":1},\"uniqueItems\":true,\"minItems\":2}",
     "as none matches the JSON schema, its root"},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":3},\"uniqueItems\":true,"
     "\"minItems\":3}", "as none matches the JSON schema, its root"},
    {"{\"type\":\"string\",\"not\":{\"type\":\"string\"}}", "as none matches the JSON schema, its root"},
    {"{\"$defs\":{\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"$ref\":\"#/$defs/a\"}},\"required\":[\"b\"]}},\"properties\":"
     "{\"c\":{\"$ref\":\"#/$defs/a\"}},\"required\":[\"c\"],\"type\":\"object\"}", "as none matches the JSON schema, "},
    {"false", "no text matches"},
    {"{\"enum\":[]}", "no text matches"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "no text matches"},
    {"{\"enum\":[[1],[2]],\"items\":{\"minimum\":2}}", "beside other keywords"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) grammar_refusal_check(hn_grammar_json_schema, &refusals[i]);
}

/* What one reader of an expression takes to match and another does not is written by neither the expression nor its opposite. */
static void test_readers(void **state) {
    (void)state;
    static const grammar_case cases[] = {
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"^a$\"}}", {"\"b\"", "\"ab\"", "\"\""}, {"\"a\"", "\"a\\n\""}}, /* Python's $ */
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"\\\\d\"}}", {"\"b\""}, {"\"1\"", "\"\xD9\xA3\""}},           /* Python's \d */
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"^[^\\\\w]\"}}", {"\"b\""}, {"\"-\"", "\"\xC3\xA9\""}},
        {"{\"type\":\"string\",\"not\":{\"pattern\":\"^.$\"}}", {"\"ab\""}, {"\"b\"", "\"\\r\""}},
        {"{\"type\":\"string\",\"pattern\":\"^.$\"}", {"\"b\""}, {"\"\\r\"", "\"ab\""}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) grammar_case_check(hn_grammar_json_schema, &cases[i]);
}

/* What is no schema at all is refused of one that is not strict, too. */
static void test_loose_refusals(void **state) {
    (void)state;
    static const grammar_refusal cases[] = {
        {"{\"multipleOf\":2,\"allOf\":[{\"minimum\":\"x\"}]}", "/allOf/0/minimum: expected a number"},
        {"{\"not\":{\"maxLength\":\"x\"}}", "/not/maxLength: expected an integer"},
        {"{\"multipleOf\":2,\"maximum\":1e1024}", "/maximum: a bound of more than 1024 digits"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) grammar_refusal_check(loose_schema, &cases[i]);
}

/* A schema that is not strict: what cannot be honoured is ignored, by name, and the rest holds. */
static void test_loose(void **state) {
    (void)state;
    static const struct { const char *schema, *ignored, *yes, *no; } cases[] = {
        {"{\"type\":\"integer\",\"minimum\":3}", NULL, "4", "2"},
        {"{\"type\":\"string\",\"format\":\"colour\",\"maxLength\":3}", "/format", "\"abc\"", "\"abcd\""},
        {"{\"type\":\"string\",\"pattern\":\"(?=a)\",\"maxLength\":3}", "/pattern", "\"abc\"", "\"abcd\""},
        {"{\"items\":{\"minLenght\":3,\"$anchor\":\"a\"},\"type\":\"array\"}", "/items/minLenght, /items/$anchor", "[\"a\"]", "\"a\""},
        {"{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":1}],\"uniqueItems\":true}", "/uniqueItems", "[1,1]", "[2]"},
        {"{\"type\":\"integer\",\"multipleOf\":123456,\"minimum\":3}", "/multipleOf", "5", "1"},
        {"{\"type\":\"string\",\"not\":{\"maxLength\":2,\"format\":\"date\"}}", "/not/format", "\"a\"", "5"},
        {"{\"enum\":[[1],[2]],\"items\":{\"minimum\":2}}", "its root", "[1]", "[3]"},
        {"{\"oneOf\":[{\"type\":\"string\"},{\"format\":\"date\"}]}", "/oneOf/0/allOf/1/not/format", "\"a\"", ""},
        {"{\"propertyNames\":{\"anyOf\":[{\"const\":\"a\"}],\"maxLength\":2}}", "/propertyNames", "{\"ab\":1}", "{\"abc\":1}"},
        {"{\"propertyNames\":{\"not\":{\"maxLength\":2},\"maxLength\":3}}", "/propertyNames", "{\"ab\":1}", "{\"abcd\":1}"},
        {"{\"patternProperties\":{\"^[ab]$\":{}},\"additionalProperties\":false,\"allOf\":[{\"minProperties\":2}]}",
         "/allOf/0/minProperties", "{\"a\":1}", "{}"},
        {"{\"type\":\"array\",\"contains\":{\"type\":\"null\"},\"minContains\":200000}", "/contains", "[1]", "1"},
        {"{\"type\":\"array\",\"prefixItems\":[{\"const\":1}],\"contains\":{},\"minContains\":200000}", "/contains", "[1,2]", "[2]"},
        {"{\"type\":\"string\",\"pattern\":\"^a\",\"allOf\":[{\"pattern\":\"^.\"},{\"pattern\":\"^.\"},{\"pattern\":\"^.\"},"
         "{\"pattern\":\"^.\"},{\"pattern\":\"^.\"},{\"pattern\":\"^.\"},{\"pattern\":\"^.\"},{\"pattern\":\"x\"},"
         "{\"not\":{\"const\":\"x\"}}]}",
         "/allOf/7/pattern, /allOf/8/not", "\"ab\"", "\"b\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hunch_error err = {0};
        hn_grammar *g = NULL;
        if (loose_schema(&g, cases[i].schema, strlen(cases[i].schema), &err)) fail_msg("%s: %s", cases[i].schema, err.message);
        const char *ignored = hn_grammar_ignored(g);
        if (!ignored != !cases[i].ignored || (ignored && strcmp(ignored, cases[i].ignored) != 0))
            fail_msg("%s: ignored %s, expected %s", cases[i].schema, ignored ? ignored : "nothing", cases[i].ignored);
        accepter x = accepter_of(g, cases[i].schema);
        if (!accepts(&x, cases[i].yes) || accepts(&x, cases[i].no)) fail_msg("%s", cases[i].schema);
        accepter_close(&x);
    }
}

/* What is ignored is named once, also beside what ends as it does, and not without an end. */
static void test_noted(void **state) {
    (void)state;
    enum { MOST = 1010 };
    hunch_error err = {0};
    hn_grammar *g = NULL;
    hn_builder *b = hn_builder_open(&err);
    assert_true(hn_builder_note(b, "", "/properties/a/if") && hn_builder_note(b, "", "/if") && hn_builder_note(b, "", "/if") &&
                hn_builder_note(b, "", "/properties/a/if"));
    assert_int_equal(hn_grammar_finish(&g, &b, hn_expr_text(b, "a"), &err), HUNCH_OK);
    assert_string_equal(hn_grammar_ignored(g), "/properties/a/if, /if");
    hn_grammar_close(&g);
    b = hn_builder_open(&err);
    for (int i = 0; i < 300; i++) {
        char pointer[64];
        snprintf(pointer, sizeof pointer, "/properties/a%d/%s", i, i % 2 ? "if" : "unevaluatedItems");
        assert_true(hn_builder_note(b, "", pointer));
    }
    assert_int_equal(hn_grammar_finish(&g, &b, hn_expr_text(b, "a"), &err), HUNCH_OK);
    const char *ignored = hn_grammar_ignored(g), *more = strstr(ignored, ", ...");
    if (!more || more[5] || strlen(ignored) > MOST) fail_msg("%zu bytes: %s", strlen(ignored), ignored);
    hn_grammar_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_beyond_doubles),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_loose),
                                       cmocka_unit_test(test_loose_refusals), cmocka_unit_test(test_noted),
                                       cmocka_unit_test(test_readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
