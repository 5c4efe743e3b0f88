/* SPDX-License-Identifier: Apache-2.0 */
/* serve_error.c - see serve_error.h. */
#include "server/protocols/serve_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(serve_error *e, int http, const char *code, const char *param, const char *fmt, va_list list) {
    *e = (serve_error){.http = http, .code = code};
    snprintf(e->param, sizeof e->param, "%s", param ? param : "");
    vsnprintf(e->message, sizeof e->message, fmt, list);
}

bool serve_fail(serve_error *e, int http, const char *param, const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    fill(e, http, NULL, param, fmt, list);
    va_end(list);
    return false;
}

bool serve_fail_code(serve_error *e, int http, const char *code, const char *param, const char *fmt, ...) {
    va_list list;
    va_start(list, fmt);
    fill(e, http, code, param, fmt, list);
    va_end(list);
    return false;
}

bool serve_fail_hunch(serve_error *e, const char *param, const hunch_error *err) {
    const int http = err->status == HUNCH_USAGE ? 400 : err->status == HUNCH_NO_MEMORY ? 503 : 500;
    serve_fail(e, http, param, "%s", err->message);
    e->retry_after = http == 503;
    return false;
}

static const char *type_of(int http) {
    return http == 401   ? "authentication_error"
           : http == 403 ? "permission_error"
           : http == 404 ? "not_found_error"
           : http == 429 ? "rate_limit_error"
           : http >= 500 ? "server_error"
                         : "invalid_request_error";
}

/* A text that clients sent, and messages quote, may be cut within a character. */
json_t *serve_error_text(const char *message) {
    json_t *text = json_string(message);
    char plain[sizeof((serve_error *)0)->message + sizeof((serve_error *)0)->param + 2];
    if (text) return text;
    snprintf(plain, sizeof plain, "%s", message);
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 128) *c = '?';
    return json_string(plain);
}

json_t *serve_error_named(const serve_error *e) {
    char named[sizeof e->message + sizeof e->param + 2];
    if (!e->param[0] || strstr(e->message, e->param)) return serve_error_text(e->message);
    snprintf(named, sizeof named, "%s: %s", e->param, e->message);
    return serve_error_text(named);
}

json_t *serve_error_json(const serve_error *e, const char *id) {
    (void)id;
    return json_pack("{s:{s:o,s:s,s:o,s:s?}}", "error", "message", serve_error_text(e->message), "type", type_of(e->http), "param",
                     e->param[0] ? serve_error_text(e->param) : json_null(), "code", e->code);
}
