/* SPDX-License-Identifier: Apache-2.0 */
/* template_test.c - renderings against Python's Jinja2 (tools/make_template_vectors.py), limits, and hostile templates. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/json_load.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/run_mode_for_tests.h"
#include "base/utf8.h"
#include "text/jinja/template.h"
#include "text/tokenizer/vectors_for_tests.h"

#define NOW "2026-01-02 03:04:05"

static hunch_status render(const char *text, size_t len, const json_t *vars, char **out, hunch_error *e) {
    hn_template *t;
    size_t n = 0;
    *out = NULL;
    hunch_status s = hn_template_parse(&t, text, len, e);
    if (s != HUNCH_OK) {
        assert_null(t);
        return s;
    }
    s = hn_template_render(t, vars, NOW, out, &n, e);
    assert_true(s == HUNCH_OK ? strlen(*out) == n && hn_utf8_check(*out, n) == n : *out == NULL);
    hn_template_free(t);
    return s;
}

/* ---- against Jinja2 ---- */

static void check_snippet(const json_t *row, void *user) {
    json_t **vars = user;
    if (!*vars) { /* the first row */
        *vars = json_deep_copy(json_object_get(row, "vars"));
        assert_true(json_is_object(*vars));
        return;
    }
    size_t len;
    const char *text = row_text(row, "template", &len), *want = row_text(row, "output", NULL);
    hunch_error e = {0};
    char *got;
    hunch_status s = render(text, len, *vars, &got, &e);
    if (want && s != HUNCH_OK) fail_msg("%s: %s", text, e.message);
    if (want && strcmp(got, want) != 0) fail_msg("%s gives \"%s\", expected \"%s\"", text, got, want);
    if (!want && s == HUNCH_OK)
        fail_msg("%s gives \"%s\", expected an error like \"%s\"", text, got, row_text(row, "error", NULL));
    if (!want &&
        (s != e.status || (s != HUNCH_USAGE && s != HUNCH_REFUSED) || !strstr(e.message, "chat template, line ")))
        fail_msg("%s: %d %s", text, s, e.message);
    hn_free(got);
}

static void test_snippets(void **state) {
    (void)state;
    json_t *vars = NULL;
    assert_in_range(each_row("templates/snippets.jsonl", check_snippet, &vars), 2800, 10000);
    json_decref(vars);
}

/* ---- without a reference in Jinja2 ---- */

static void check_text(const char *text, const char *vars, const char *want) {
    json_t *v = hn_json_load(vars, strlen(vars), 0, NULL);
    hunch_error e = {0};
    char *got;
    if (render(text, strlen(text), v, &got, &e) != HUNCH_OK) fail_msg("%s: %s", text, e.message);
    assert_string_equal(got, want);
    hn_free(got);
    json_decref(v);
}

static void check_error(const char *text, const char *vars, hunch_status status, const char *says) {
    json_t *v = hn_json_load(vars, strlen(vars), 0, NULL);
    hunch_error e = {0};
    char *got;
    hunch_status s = render(text, strlen(text), v, &got, &e);
    if (s != status || !strstr(e.message, says))
        fail_msg("%.80s: %d \"%s\", expected %d \"%s\"", text, s, e.message, status, says);
    hn_free(got);
    json_decref(v);
}

static void test_own(void **state) {
    (void)state;
    check_text("{% generation %}a{{ x }}{% endgeneration %}b", "{\"x\": 1}", "a1b"); /* Hugging Face's extension */
    check_text("{{ strftime_now('%B %d, %Y') }}", "{}", "January 02, 2026");
    check_text("{{ strftime_now('') }}|", "{}", "|");
    check_text("{% for k in o %}{{ k }}{% endfor %}", "{\"o\": {\"z\": 1, \"a\": 2, \"m\": 3}}",
               "zam"); /* their own order */
    check_text("{% macro m() %}{% macro inner() %}i{{ x }}{% endmacro %}{% set ns.f = inner %}{% endmacro %}{% set ns "
               "= namespace() %}{{ m() }}{{ ns.f() }}",
               "{\"x\": 1}", "i1"); /* a macro that outlives the one that defines it */
    check_text(
        "{% set ns = namespace() %}{% for i in [1, 2] %}{% macro m(a) %}{{ i }}{{ a }}{% endmacro %}{% set ns.f = m %}"
        "{% endfor %}{% for j in [3, 4] %}{{ j }}{% endfor %}{{ ns.f(5) }}",
        "{}", "3425"); /* or the loop */
}

/* A list's append and pop, also while a loop iterates over the list, and a list that is put into itself. */
static void test_lists_change(void **state) {
    (void)state;
    check_text("{% set l = [] %}{% for i in range(20) %}{% set _ = l.append(i) %}{% endfor %}{{ l.pop(0) }}{{ l.pop() "
               "}}{{ l|length }}",
               "{}", "01918");
    check_text("{% set l = [1, 2, 3] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}{{ l|join }}", "{}",
               "123123");
    check_text("{% set l = [1, 2, 3] %}{% for i in l if i != 2 %}{% set _ = l.append(i) %}{% endfor %}{{ l|join }}",
               "{}", "12313");
    check_text("{% set l = [1, 2, 3, 4] %}{% for i in l %}{% if l %}{% set _ = l.pop() %}{% endif %}{% endfor %}{{ "
               "l|length }}",
               "{}", "0");
    check_text("{% set l = [1] %}{% set m = l.copy() %}{% set _ = l.append(2) %}{{ m|length }}{{ l[1] }}", "{}", "12");
    check_error("{% set l = [] %}{{ l.pop() }}", "{}", HUNCH_USAGE, "no such item");
    check_error("{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}", "{}", HUNCH_USAGE, "nested deeper");
    check_error("{{ l.extend([1]) }}", "{\"l\": []}", HUNCH_USAGE, "unsafe");
}

static void test_errors_name_the_line(void **state) {
    (void)state;
    check_error("a\n{{ b }}\n{{ 'x' + 1 }}", "{}", HUNCH_USAGE, "line 3: str + int");
    check_error("a\n\n{% if x %}\n{{ 1 + }}{% endif %}", "{}", HUNCH_REFUSED, "line 4: expected a value, not }}");
    check_error("a\n{# one\ntwo #}\n{{ m.x.y }}", "{\"m\": {}}", HUNCH_USAGE, "line 4: 'x' is undefined");
    check_error("\n{{ raise_exception('no\nsystem') }}", "{}", HUNCH_USAGE, "line 2: no system"); /* one line, always */
    check_error("\n{{ 1|sha256 }}", "{}", HUNCH_REFUSED, "line 2: the filter \"sha256\" is not supported");
    check_error("{% macro f() %}\n{{ g() }}{% endmacro %}\n{{ f() }}", "{}", HUNCH_USAGE, "line 2: 'g' is undefined");
    check_error("\xFF", "{}", HUNCH_REFUSED, "UTF-8");
    check_error("x", "[]", HUNCH_USAGE, "expected a JSON object");
}

/* What Jinja or Python has and we have not: refused when the template is parsed, even where nothing would reach it, methods when they are
 * called; by name and line. A variable of the same name is one like any other. */
static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } parsed[] = {
        {"a\n{% if false %}\n{{ x|urlencode }}{% endif %}", "line 3: the filter \"urlencode\" is not supported"},
        {"\n{{ 1 if true else x|escape }}", "line 2: the filter \"escape\" is not supported"},
        {"{% if x %}\n{{ l|map('wordwrap')|list }}{% endif %}", "line 2: the filter \"wordwrap\" is not supported"},
        {"{% filter upper|xmlattr %}{% endfilter %}", "line 1: the filter \"xmlattr\" is not supported"},
        {"\n{% if false %}{{ x is escaped }}{% endif %}", "line 2: the test \"escaped\" is not supported"},
        {"{% if false %}{{ l|select('escaped')|list }}{% endif %}", "line 1: the test \"escaped\" is not supported"},
        {"\n\n{% if false %}{{ joiner(', ') }}{% endif %}", "line 3: the function \"joiner\" is not supported"},
        {"{% macro f() %}\n{{ cycler(1) }}{{ cycler(2) }}{% endmacro %}",
         "line 2: the function \"cycler\" is not supported"},
        {"{{ lipsum(3) }}", "line 1: the function \"lipsum\" is not supported"},
        {"{% if false %}\n{% for x in l recursive %}{% endfor %}{% endif %}",
         "line 2: the for loop that is \"recursive\""},
        {"{% if false %}\n{% include 'x' %}{% endif %}", "line 2: the statement \"include\" is not supported"},
        {"{% import 'x' as y %}", "the statement \"import\" is not supported"},
        {"{% from 'x' import y %}", "the statement \"from\" is not supported"},
        {"{% extends 'x' %}", "the statement \"extends\" is not supported"},
        {"{% block x %}{% endblock %}", "the statement \"block\" is not supported"},
        {"{% autoescape false %}{% endautoescape %}", "the statement \"autoescape\" is not supported"},
        {"{% do x %}", "the statement \"do\" is not supported"},
        {"\n{{ '\\N{CJK UNIFIED IDEOGRAPH-4E00}' }}",
         "line 2: the character named \\N{CJK UNIFIED IDEOGRAPH-4E00} is not known"},
        {"{% for x in l %}{% set y %}{% break %}{% endset %}{% endfor %}", "captured"},
    };
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++)
        check_error(parsed[i].text, "{\"l\": []}", HUNCH_REFUSED, parsed[i].says);
    check_error("\n{{ 'a'.encode() }}", "{}", HUNCH_USAGE, "line 2: the method \"encode\" of str is not supported");
    check_error("\n\n{{ (1.5).hex() }}", "{}", HUNCH_USAGE, "line 3: the method \"hex\" of float is not supported");
    check_error("{{ (5).to_bytes(2) }}", "{}", HUNCH_USAGE, "the method \"to_bytes\" of int is not supported");
    check_error("\n{% set j = joiner %}{{ j() }}", "{}", HUNCH_USAGE,
                "line 2: the function \"joiner\" is not supported");
    check_error("{{ joiner() }}{% for x in l %}{% set joiner = 1 %}{% endfor %}", "{\"l\": []}", HUNCH_USAGE,
                "\"joiner\" is not supported");
    check_text("{% if false %}{{ 'a'.encode() }}{% endif %}{{ 'a'.encode is defined }}", "{}", "True");
    check_text("{% macro joiner(x) %}[{{ x }}]{% endmacro %}{{ joiner(1) }}{% set cycler = joiner %}{{ cycler(2) }}",
               "{}", "[1][2]");
    check_text("{{ cycler }}{{ urlencode }}{{ escaped }}", "{\"cycler\": 1, \"urlencode\": 2, \"escaped\": 3}", "123");
}

static void test_now(void **state) {
    (void)state;
    hn_template *micros;
    static const char digits[] = "{{ strftime_now('%f')|length }}{{ strftime_now('%z%Z') }}";
    static const char text[] = "{{ strftime_now('%Y') }}";
    static const char *const bad[] = {"yesterday", "2026-01-02", "2026-01-02 03:04:05 x"};
    hn_template *t;
    char *out;
    size_t n;
    json_t *vars = json_object();
    assert_int_equal(hn_template_parse(&t, text, sizeof text - 1, NULL), HUNCH_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(hn_template_render(t, vars, bad[i], &out, &n, NULL), HUNCH_USAGE);
    assert_int_equal(hn_template_render(t, vars, NULL, &out, &n, NULL), HUNCH_OK);
    assert_int_equal(n, 4); /* this year */
    hn_free(out);
    hn_template_free(t);
    assert_int_equal(hn_template_parse(&micros, digits, sizeof digits - 1, NULL), HUNCH_OK);
    assert_int_equal(hn_template_render(micros, vars, NULL, &out, &n, NULL), HUNCH_OK);
    assert_string_equal(out, "6"); /* and no time zone, as in Python */
    hn_free(out);
    hn_template_free(micros);
    json_decref(vars);
}

/* ---- limits ---- */

static char *repeated(const char *head, const char *part, size_t times, const char *tail) {
    size_t n = strlen(part);
    char *s = malloc(strlen(head) + times * n + strlen(tail) + 1), *p = stpcpy(s, head);
    for (size_t i = 0; i < times; i++) p = stpcpy(p, part);
    strcpy(p, tail);
    return s;
}

static void test_limits(void **state) {
    (void)state;
    const struct {
        const char *head, *part;
        size_t times;
        const char *tail;
        hunch_status status;
        const char *says;
    } cases[] = {
        {"{{ ", "(", 100000, "", HUNCH_REFUSED, "nested deeper"},
        {"{{ ", "[", 100000, "", HUNCH_REFUSED, "nested deeper"},
        {"{{ ", "not ", 100000, "1 }}", HUNCH_REFUSED, "nested deeper"},
        {"{{ ", "-", 100000, "1 }}", HUNCH_REFUSED, "nested deeper"},
        {"", "{% if 1 %}", 100000, "", HUNCH_REFUSED, "nested deeper"},
        {"", "{% for x in y %}", 100000, "", HUNCH_REFUSED, "nested deeper"},
        {"{{ ", "1 if 1 else ", 100000, "1 }}", HUNCH_REFUSED, "nested deeper"},
        {"{% if 0 %}", "{% elif 0 %}", 100000, "{% endif %}", HUNCH_REFUSED, "nested deeper"},
        {"{{ 1", " + 1", 100000, " }}", HUNCH_USAGE, "nested deeper"},
        {"{{ 'a'", "|upper", 100000, " }}", HUNCH_USAGE, "nested deeper"},
        {"{{ x", ".x", 100000, " }}", HUNCH_USAGE, "nested deeper"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "", 0, "", HUNCH_USAGE, "nested deeper"},
        {"{% set ns = namespace(s='ab') %}", "{% set ns.s = ns.s + ns.s %}", 64, "", HUNCH_USAGE, "beyond"},
        {"{{ 'ab' * 1000000000 }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ [1, 2] * 1000000000 }}", "", 0, "", HUNCH_USAGE, "steps"},
        {"{{ 'a'|indent(1000000000000, true) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "", 0, "", HUNCH_USAGE,
         "steps"},
        {"{% set s = 'x' * 1000000 %}{% for a in range(100000) %}{{ s|length }}{% endfor %}", "", 0, "", HUNCH_USAGE,
         "steps"},
        {"{% for a in range(100000) %}{{ 'x' * 100000 }}{% endfor %}", "", 0, "", HUNCH_USAGE, "steps"},
        {"{{ range(100001) }}", "", 0, "", HUNCH_USAGE, "100000 elements"},
        {"{{ range(-9223372036854775807, 9223372036854775807, 4611686018427387904)|length }}{{ 1 + 9223372036854775807 "
         "}}",
         "", 0, "", HUNCH_USAGE, "64 bits"},
        {"{{ 9223372036854775807|round(-1) }}", "", 0, "", HUNCH_USAGE, "64 bits"},
        {"{{ 99999999999999999999 }}", "", 0, "", HUNCH_REFUSED, "64 bits"},
        {"{{ [1, [2]]|tojson(indent=1000000000) }}", "", 0, "", HUNCH_USAGE, "an indent of 0 to 100"},
        {"{% set n = namespace(x=[1]) %}{% for i in range(200) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "",
         0, "", HUNCH_USAGE, "nested deeper"},
        {"{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "", 0,
         "", HUNCH_USAGE, "beyond"},
        {"{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}", "", 0, "",
         HUNCH_USAGE, "steps"},
        {"{% set n = namespace(l=[1]) %}{% for i in range(100) %}{% set n.l = n.l + n.l %}{% endfor %}", "", 0, "",
         HUNCH_USAGE, "MiB"},
        {"{% set n = namespace(x=(1,)) %}{% for i in range(100000) %}{% set n.x = (n.x,) %}{% endfor %}{{ n.x in {} }}",
         "", 0, "", HUNCH_USAGE, "nested deeper"},
        {"{% set n = namespace(x=(1,)) %}{% for i in range(60) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ {n.x: 1} }}",
         "", 0, "", HUNCH_USAGE, "steps"},
        {"{{ '%1000000000d' % 5 }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '%30000000d%30000000d' % (5, 6) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '%.1000000000f' % 5 }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '%*d' % (1000000000, 5) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ 'x'.center(10 ** 9) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '-1'.zfill(10 ** 18) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ 'x'.rjust(30000000, '世') }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '\t'.expandtabs(9 * 10 ** 18) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '", "\t", 1000, "'.expandtabs(10 ** 6) }}", HUNCH_USAGE, "beyond"},
        {"{{ '{:1000000000}'.format(5) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '{:99999999999999999999}'.format('x') }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '{:030000000,}'.format(5) }}", "", 0, "", HUNCH_USAGE, "steps"},
        {"{{ '", "{:30000000}", 20, "'.format(*range(20)) }}", HUNCH_USAGE, "beyond"},
        {"{{ '{:.1000000000f}'.format(5.0) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ '", "{:{", 1000, "'.format(5) }}", HUNCH_USAGE, "format"},
        {"{{ 'x'|center(10 ** 9) }}", "", 0, "", HUNCH_USAGE, "beyond"},
        {"{{ [1]|batch(10 ** 9, 'x')|list }}", "", 0, "", HUNCH_USAGE, "steps"},
        {"{{ [1]|slice(10 ** 9)|list }}", "", 0, "", HUNCH_USAGE, "steps"},
        {"{{ dict(*", "[", 200, "", HUNCH_REFUSED, "nested"},
        {"{{ '", "\\N{BULLET}", 5000, "' }}", HUNCH_REFUSED, "too many"},
        {"", "{% with %}", 200, "", HUNCH_REFUSED, "nested"},
        {"", "{% filter upper %}", 200, "", HUNCH_REFUSED, "nested"},
        {"{% macro m() %}{{ caller() }}{% endmacro %}", "{% call m() %}", 200, "", HUNCH_REFUSED, "nested"},
        {"{% macro m() %}{{ m(*varargs) }}{% endmacro %}{{ m(1) }}", "", 0, "", HUNCH_USAGE, "nested deeper"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeated(cases[i].head, cases[i].part, cases[i].times, cases[i].tail);
        check_error(text, "{\"y\": [1]}", cases[i].status, cases[i].says);
        free(text);
    }
}

/* The work of one step is limited too: each of these is repeated until the limits end it. */
static void test_limits_inside_steps(void **state) {
    (void)state;
    static const char *const texts[] = {"s < q",       "q in s",    "s.strip('ba')",          "s.endswith(q)",
                                        "{s: 1}[q]",   "s.split()", "s.count('a')",           "s[-5]",
                                        "s.isalpha()", "s|lower",   "s.translate({97: 'b'})", "'{:>9}{}'.format(s, q)"};
    static const char *const lists[] = {"l|unique|list", "l|sum", "l == m", "l|select('odd')|list", "l|groupby(none)"};
    static const char *const others[] = {"n.a == n.b", "n.a < n.b", "n.d == n.e", "[0.1234567890123456] * 500000"};
    static const struct {
        const char *set;
        const char *const *what;
        size_t n;
    } groups[] = {
        {"{% set s = 'ab' * 1000 * 10000 %}{% set q = 'ab' * 1000 * 10000 %}", texts, sizeof texts / sizeof *texts},
        {"{% set l = range(100000)|list %}{% set m = range(100000)|list %}", lists, sizeof lists / sizeof *lists},
        {"{% set n = namespace(a=[1], b=[1], d={}, e={}) %}{% for i in range(40) %}{% set n.a = [n.a, n.a] %}"
         "{% set n.b = [n.b, n.b] %}{% set n.d = {1: n.d, 2: n.d} %}{% set n.e = {1: n.e, 2: n.e} %}{% endfor %}",
         others, sizeof others / sizeof *others},
    };
    for (size_t g = 0; g < 3; g++) {
        for (size_t i = 0; i < groups[g].n; i += test_light() ? 5 : 1) {
            char text[700];
            snprintf(text, sizeof text,
                     "%s{%% for i in range(1000) %%}{%% for j in range(1000) %%}{%% set z = (%s)|string %%}"
                     "{%% endfor %%}{%% endfor %%}",
                     groups[g].set, groups[g].what[i]);
            hunch_error e = {0};
            char *got;
            json_t *vars = json_object();
            hunch_status s = render(text, strlen(text), vars, &got, &e);
            if (s != HUNCH_USAGE ||
                (!strstr(e.message, "steps") && !strstr(e.message, "MiB") && !strstr(e.message, "beyond")))
                fail_msg("%s: %d \"%s\", expected a limit", groups[g].what[i], s, e.message);
            json_decref(vars);
        }
    }
}

static void test_deep_variables(void **state) {
    (void)state;
    json_t *deep = json_array();
    hunch_error e = {0};
    char *out;
    for (int i = 0; i < 500; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, deep);
        deep = outer;
    }
    json_t *vars = json_pack("{so}", "x", deep);
    assert_int_equal(render("{{ x|tojson }}", 14, vars, &out, &e), HUNCH_USAGE);
    assert_non_null(strstr(e.message, "nested deeper"));
    json_decref(vars);
}

/* Damaged templates: any result but a crash, and every error has a message. */
static void test_damage(void **state) {
    (void)state;
    char *good, *bad, *out;
    size_t len;
    uint64_t seed = 1;
    json_t *vars = json_loads(
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"tools\": [{\"function\": {\"name\": \"f\"}}]}",
        0, NULL);
    static const char bits[] = "{%}{{}}#-+ '\"|.()[],:ifelsendfor\n0~*";
    assert_int_equal(hn_file_read(HUNCH_TEST_TEMPLATES "/ibm-granite-granite-4.0.jinja", 1 << 20, &good, &len, NULL),
                     HUNCH_OK);
    bad = malloc(len);
    int parsed = 0;
    for (int round = 0; round < 2000; round++) {
        hunch_error e = {0};
        size_t n = hn_splitmix(&seed) % 4 ? len : hn_splitmix(&seed) % len;
        memcpy(bad, good, n);
        for (uint64_t k = hn_splitmix(&seed) % 5; n && k > 0; k--)
            bad[hn_splitmix(&seed) % n] = bits[hn_splitmix(&seed) % (sizeof bits - 1)];
        hunch_status s = render(bad, n, vars, &out, &e);
        assert_true(s == HUNCH_OK || (e.status == s && *e.message));
        parsed += s == HUNCH_OK;
        hn_free(out);
    }
    assert_in_range(parsed, 50, 1950); /* the damage breaks some templates, but not all */
    free(bad);
    hn_free(good);
    json_decref(vars);
}

static void test_no_memory(void **state) {
    (void)state;
    static const char text[] =
        "{% macro w(a) %}{% with b = a %}{{ caller(b, *varargs, **kwargs) }}{% endwith %}{% endmacro %}"
        "{% call(x, y, z=1) w(1, 2, z=3) %}{{ '{:>9,}{!r}'.format(x, y) ~ z }}{% endcall %}"
        "{% filter center(9) %}{{ 'abc'.translate({97: 'b'}).zfill(9) }}{% endfilter %}"
        "{{ messages|groupby('role')|batch(2, 0)|list|string ~ 'a,b'.partition(',') ~ '\\N{BULLET}' }}"
        "{% macro f(a) %}{{ a|upper }}{% endmacro %}{% set ns = namespace(x=[1]) %}{% for m in "
        "messages %}{% set ns.x = ns.x + [m.role] %}"
        "{{ f(m.content)|trim ~ m|tojson }}{{ m.content.split('a') }}{% endfor %}{{ "
        "ns.x|map('string')|sort|string + 'a' 'b\\n' }}";
    json_t *vars = json_loads("{\"messages\": [{\"role\": \"user\", \"content\": \"banana\"}]}", 0, NULL);
    int failed = 0;
    hunch_status s = HUNCH_NO_MEMORY;
    for (int64_t after = 0; s != HUNCH_OK; after++) {
        hunch_error e = {0};
        char *out;
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        s = render(text, sizeof text - 1, vars, &out, &e);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_true(s == HUNCH_OK || s == HUNCH_NO_MEMORY);
        failed += s != HUNCH_OK;
        hn_free(out);
    }
    assert_in_range(failed, 4, 100);
    json_decref(vars);
}

/* Ints beyond 64 bits are ints of Python's: as jinja2 3.1 and json render them. Floats beyond all are infinite. */
static void test_large_numbers(void **state) {
    (void)state;
    static const char vars[] = "{\"a\": 18446744073709551615, \"b\": -9223372036854775809, \"c\": 1e400, \"m\": 9223372036854775808, "
                               "\"t\": {\"n\": [1234567890123456789012345678901234567890, -1e999, 1.0, 9223372036854775807]}, "
                               "\"d\": 0.1000000000000000055511151231257827021181583404541015625, \"e\": 1E5, \"f\": -0}";
    check_text("{{ a }}|{{ a|tojson }}|{{ b }}|{{ b|tojson }}|{{ a ~ b }}|{{ a|string|length }}|{{ [a] }}|{{ {'k': a} }}", vars,
               "18446744073709551615|18446744073709551615|-9223372036854775809|-9223372036854775809|"
               "18446744073709551615-9223372036854775809|20|[18446744073709551615]|{'k': 18446744073709551615}");
    check_text("{{ t|tojson }}|{{ c }}|{{ c|tojson }}|{{ d }}|{{ e }}|{{ f }}", vars,
               "{\"n\": [1234567890123456789012345678901234567890, -Infinity, 1.0, 9223372036854775807]}|inf|Infinity|0.1|100000.0|0");
    check_text("{{ a is number }}{{ a is integer }}{{ a is float }}{{ a is string }}{{ a is odd }}{{ a is even }}{{ a is divisibleby 5 }}"
               "{{ b is divisibleby(-4) }}{{ not a }}{{ a is sameas a }}",
               vars, "TrueTrueFalseFalseTrueFalseTrueFalseFalseTrue");
    check_text("{{ a == a }}{{ a == b }}{{ a == 1 }}{{ a == 18446744073709551616.0 }}{{ m == 9223372036854775808.0 }}{{ a in [1, a] }}"
               "{{ {a: 1}[a] }}",
               vars, "TrueFalseFalseFalseTrueTrue1");
    check_text("{{ a > 5 }}{{ 5 < a }}{{ b < 5 }}{{ a < c }}{{ b > -c }}{{ a > 1.5 }}{{ a < 1e30 }}{{ b < a }}{{ a > m }}", vars,
               "TrueTrueTrueTrueTrueTrueTrueTrueTrue");
    check_text("{{ [a, 3, b, m, 1e19]|sort }}|{{ [a, b]|max }}", vars,
               "[-9223372036854775809, 3, 9223372036854775808, 1e+19, 18446744073709551615]|18446744073709551615");
    check_text("{{ -a }}|{{ -m }}|{{ +a }}|{{ b|abs }}|{{ a|int }}|{{ a|float }}|{{ a|round }}|{{ '%d' % a }}|"
               "{{ '%+21d' % b }}|{{ '%s' % a }}",
               vars,
               "-18446744073709551615|-9223372036854775808|18446744073709551615|9223372036854775809|18446744073709551615|"
               "1.8446744073709552e+19|18446744073709551615|18446744073709551615| -9223372036854775809|18446744073709551615");
    check_error("{{ a + 1 }}", vars, HUNCH_USAGE, "an integer beyond 64 bits");
    check_error("{{ 1.5 * b }}", vars, HUNCH_USAGE, "an integer beyond 64 bits");
    check_error("{{ '%x' % a }}", vars, HUNCH_USAGE, "an integer beyond 64 bits");
    check_text("{{ '{:,}|{:>25}|{:+d}|{:_}'.format(a, b, a, 5) }}", vars,
               "18,446,744,073,709,551,615|     -9223372036854775809|+18446744073709551615|5");
    check_error("{{ '{:x}'.format(a) }}", vars, HUNCH_USAGE, "an integer beyond 64 bits");
    check_error("{{ a|sum }}", vars, HUNCH_USAGE, "int");
    check_error("{{ 'a' * a }}", vars, HUNCH_USAGE, "not possible");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snippets),       cmocka_unit_test(test_own),
        cmocka_unit_test(test_lists_change),   cmocka_unit_test(test_errors_name_the_line),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_now),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_limits_inside_steps),
        cmocka_unit_test(test_deep_variables), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_large_numbers),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
