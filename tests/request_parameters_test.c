/* SPDX-License-Identifier: Apache-2.0 */
/* request_parameters_test.c - every parameter, wherever it may be given, by the one table of them (base/request_parameters.h): flags, keys
 * of rows, settings of chats, fields of each protocol, and of numbers of sampling the library's check. Each is known there by its name,
 * takes its bounds, and is refused by that name beyond them. */
#include "command.h"

#include <limits.h>

#include "fixture.h"
#include "sample/sampler.h"
#include "server/protocols/serve_parameters.h"
#include "server/server_for_tests.h"

typedef struct row {
    const char *field, *key, *set, *served, *flag;
    bool whole, above;
    double least, most, served_least;
    size_t at;
} row;
#define KIND_REAL false, false
#define KIND_ABOVE false, true
#define KIND_INT true, false
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, USUAL, OFF, FLAG, ...) \
    {#ID, KEY, SET, SERVED, FLAG, KIND_##KIND, LEAST, MOST, NONE ? NONE : LEAST, offsetof(hunch_sampling, ID)},
static const row rows[] = {HN_SAMPLING_NUMBERS(ROW)};
#undef ROW
enum { ROWS = sizeof rows / sizeof *rows };

static double value_of(const hunch_sampling *p, const row *r) {
    const char *at = (const char *)p + r->at;
    return r->whole ? *(const int *)(const void *)at : *(const double *)(const void *)at;
}

static void value_set(hunch_sampling *p, const row *r, double x) {
    char *at = (char *)p + r->at;
    if (r->whole)
        *(int *)(void *)at = (int)x;
    else
        *(double *)(void *)at = x;
}

/* Beyond the bounds; false: no int is. */
static bool beyond(const row *r, bool below, double *x) {
    if (below) *x = r->above ? r->least : r->least - (r->whole ? 1 : 0.25);
    else *x = r->most * (r->whole ? 1 : 2) + 1;
    return *x <= INT_MAX;
}

static const char *shown(double x) {
    static char text[4][40];
    static int next;
    char *to = text[next++ & 3];
    snprintf(to, 40, "%.17g", x);
    return to;
}

/* With what the others need so that this one has an effect. */
static hunch_sampling usual(const row *r) {
    hunch_sampling p = {.top_p = 1};
    if (!strncmp(r->field, "dry_", 4)) p.dry_multiplier = 1;
    if (!strncmp(r->field, "xtc_", 4)) p.xtc_threshold = 0.1;
    return p;
}

static void test_library(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        hunch_error err;
        double x;
        for (int k = 0; k < 2; k++) {
            hunch_sampling p = usual(r);
            value_set(&p, r, k ? r->most : r->least);
            if (!(r->above && k == 0)) assert_int_equal(hn_sampling_check(&p, 0, &err), HUNCH_OK);
            if (!beyond(r, k == 0, &x) || (r->whole && x == 0)) continue; /* 0 of a number with another usual value is that */
            value_set(&p, r, x);
            if (hn_sampling_check(&p, 0, &err) != HUNCH_USAGE || !strstr(err.message, r->field)) fail_msg("%s=%g", r->field, x);
        }
    }
}

static void test_requests(void **state) {
    (void)state;
    hunch_model *m = open_model(STORIES, "best", 1, HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        row served = *r;
        serve_error err;
        double x;
        served.least = r->served_least;
        for (int k = 0; k < 2; k++) {
            hunch_request q;
            hunch_request_defaults(&q, m);
            json_t *body = json_pack("{s:f,s:f,s:f}", "dry_multiplier", 1.0, "xtc_probability", 0.5, "xtc_threshold", 0.2);
            const serve_view v = {.body = body};
            const double edge = k ? r->most : r->above ? r->most / 2 : r->least;
            json_object_set_new(body, r->served, r->whole ? json_integer((json_int_t)edge) : json_real(edge));
            if (!serve_parameters_read(&q, m, &v, &err)) fail_msg("%s: %s", r->served, err.message);
            const bool off = edge == 0 && !strncmp(r->field, "xtc_th", 6); /* without it there is the usual one */
            if (!off && edge != 0) assert_true(value_of(&q.sampling, r) == edge);
            if (beyond(&served, k == 0, &x)) {
                json_object_set_new(body, r->served, r->whole ? json_integer((json_int_t)x) : json_real(x));
                assert_false(serve_parameters_read(&q, m, &v, &err));
                assert_string_equal(err.param, r->served);
            }
            json_decref(body);
        }
    }
    hunch_model_close(&m);
}

static void test_commands(void **state) {
    (void)state;
    char sets[4000] = "";
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        char flag[100], text[200];
        double x;
        if (!beyond(r, true, &x)) continue;
        snprintf(flag, sizeof flag, "%s=%s", r->flag, shown(x));
        result ran = command("run", "-m", STORIES, "-p", "a", flag);
        if (ran.code != HUNCH_USAGE || !strstr(ran.err, r->flag)) fail_msg("%s: %d, %s", flag, ran.code, ran.err);
        result_free(&ran);
        snprintf(text, sizeof text, "{\"prompt\": \"a\", \"%s\": %s}\n", r->key, shown(x));
        ran = command("run", "-m", STORIES, "-f", text_write("row.jsonl", text), "--json-lines");
        if (ran.code != HUNCH_USAGE || !strstr(ran.err, r->key)) fail_msg("%s: %d, %s", text, ran.code, ran.err);
        result_free(&ran);
        snprintf(sets + strlen(sets), sizeof sets - strlen(sets), "/set %s %s\n", r->set, shown(x));
    }
    result chat = command_input(sets, "chat", "-m", STORIES, "--raw");
    for (int i = 0; i < ROWS; i++) {
        char what[100];
        double x;
        if (!beyond(&rows[i], true, &x)) continue;
        snprintf(what, sizeof what, "%s %s is not ", rows[i].set, shown(x));
        if (!strstr(chat.err, what)) fail_msg("/set %s: %s", rows[i].set, chat.err);
    }
    result_free(&chat);
}

/* ---- all parameters ---------------------------------------------------------------------------------------------- */

enum where { LISTED, BODY, OPTIONS };
static const struct parameter {
    const char *key, *set, *served, *flag;
    enum where where;
} all[] = {
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, USUAL, OFF, FLAG, ...) {KEY, SET, SERVED, FLAG, WHERE},
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
};
enum { ALL = sizeof all / sizeof *all };

/* A word of a text, between spaces, commas and ends of lines. */
static bool has_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || strchr(" \n", at[-1])) && strchr(" ,\n=[", at[n])) return true;
    return false;
}

static void test_names_of_commands(void **state) {
    (void)state;
    result help = command("run", "--help"), chat = command_input("/set\n", "chat", "-m", STORIES, "--raw");
    for (int i = 0; i < ALL; i++) {
        char text[200];
        if (!has_word(help.out, all[i].flag)) fail_msg("%s is not in the help of run", all[i].flag);
        if (all[i].set && !has_word(chat.err, all[i].set)) fail_msg("/set does not list %s", all[i].set);
        if (!all[i].key) continue;
        snprintf(text, sizeof text, "{\"prompt\": \"a\", \"%s\": {\"no\": 1}}\n", all[i].key);
        result ran = command("run", "-m", STORIES, "-f", text_write("row.jsonl", text), "--json-lines");
        if (ran.code != HUNCH_USAGE || !strstr(ran.err, all[i].key)) fail_msg("%s: %d, %s", text, ran.code, ran.err);
        result_free(&ran);
    }
    result_free(&help);
    result_free(&chat);
}

/* {"a": {"b": value}} of "a.b". */
static json_t *nested(const char *path, json_t *value) {
    const char *dot = strchr(path, '.');
    return dot ? json_pack("{s#:o}", path, (int)(dot - path), nested(dot + 1, value)) : json_pack("{s:O}", path, value);
}

static void refused_try(const char *path, const char *usual, const char *field, json_t *value) {
    serve_error err = {0};
    serve_reply r = {0};
    json_t *body = json_loads(usual, 0, NULL), *more = nested(field, value);
    assert_non_null(body);
    json_object_update(body, more);
    serve_http_request q = {.id = "id", .rest = "", .body = body};
    const serve_route *route = serve_route_find("POST", path, &err);
    assert_non_null(route);
    if (route->answer(&server, &q, &r, &err)) fail_msg("%s %s: a wrong value is not refused", path, field);
    if (err.http != 400 || strcmp(err.param, field) != 0) fail_msg("%s %s: %d %s", path, field, err.http, err.message);
    json_decref(body);
    json_decref(more);
}

/* A value that is none of any parameter is refused by each protocol that has it, by the name that it has there. */
static void test_fields_of_protocols(void **state) {
    static const struct {
        const char *path, *usual, *options;
    } protocols[] = {{"/v1/chat/completions", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", ""},
                     {"/v1/completions", "{\"prompt\": \"a\"}", ""},
                     {"/v1/responses", "{\"input\": \"a\"}", ""},
                     {"/v1/messages", "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", ""},
                     {"/completion", "{\"prompt\": \"a\"}", ""},
                     {"/api/chat", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "options."},
                     {"/api/generate", "{\"prompt\": \"a\"}", "options."}};
    json_t *wrong = json_pack("{s:i}", "no", 1);
    (void)state;
    test_server_start(1, 1, 256, NULL);
    for (int i = 0; i < ALL; i++)
        for (size_t k = 0; k < sizeof protocols / sizeof *protocols && all[i].served; k++) {
            char field[SERVE_NAME];
            snprintf(field, sizeof field, "%s%s", all[i].where == OPTIONS ? protocols[k].options : "", all[i].served);
            if (k < 2 || all[i].where != LISTED) refused_try(protocols[k].path, protocols[k].usual, field, wrong);
        }
    json_decref(wrong);
    test_server_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_library), cmocka_unit_test(test_requests), cmocka_unit_test(test_commands),
                                       cmocka_unit_test(test_names_of_commands), cmocka_unit_test(test_fields_of_protocols)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
