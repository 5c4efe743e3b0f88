/* SPDX-License-Identifier: Apache-2.0 */
/* serve_error.h - what a request cannot have, as OpenAI's nested error object: {"error": {"message", "type", "param", "code"}}. */
#ifndef HN_SERVE_ERROR_H
#define HN_SERVE_ERROR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct serve_error {
    int http;          /* the status of the answer: 400, 404, 429, ... */
    const char *code;  /* static: "context_length_exceeded"; NULL: none */
    char param[80];    /* the field that is wrong, "messages[2].role"; "": none */
    char message[1000];
    const char *allow; /* the method that the path takes, static; NULL: no such header */
    int retry_after;   /* seconds; 0: no such header */
} serve_error;

/* Both return false: `return serve_fail(e, 400, "stop", "...")`. param NULL: none. */
bool serve_fail(serve_error *e, int http, const char *param, const char *fmt, ...) HN_PRINTF(4, 5);
bool serve_fail_code(serve_error *e, int http, const char *code, const char *param, const char *fmt, ...) HN_PRINTF(5, 6);
/* An error of the library: a request that cannot be served is 400, memory 503, everything else 500. */
bool serve_fail_hunch(serve_error *e, const char *param, const hunch_error *err);
/* The object; id, of the request, is not in it (serve_protocol.h). */
json_t *serve_error_json(const serve_error *e, const char *id);
json_t *serve_ollama_error_json(const serve_error *e, const char *id); /* as Ollama has it (serve_ollama.c) */
json_t *serve_error_named(const serve_error *e); /* the message, with the field before it if it does not name that */
json_t *serve_error_text(const char *message); /* a message as JSON: what of it was cut within a character is replaced */

#endif
