/* SPDX-License-Identifier: Apache-2.0 */
/* serve_about.h - what is known of the model's file, for endpoints that describe it: /props and /slots of llama.cpp (serve_about.c), and
 * those of Ollama. Read once, before the first request; then any thread. */
#ifndef HN_SERVE_ABOUT_H
#define HN_SERVE_ABOUT_H

#include "server/serve_server.h"

/* Of a file or a folder, as for hunch_model_open: an object; NULL: it cannot be read any more. */
json_t *serve_about_read(const char *path);

enum { SERVE_TIME = 40 };
const char *serve_time(time_t at, char to[SERVE_TIME]); /* of UTC, "2026-11-26T03:20:00Z" */

/* A text of the file's metadata; "": it has none. */
const char *serve_about_text(const serve_server *s, const char *key);
/* The chat template: the one that was given to the server, else the model's own; "": none. */
const char *serve_about_template(const serve_server *s);
/* The metadata, but lists of tokens and the template: new. */
json_t *serve_about_metadata(const serve_server *s);
const char *serve_about_types(const serve_server *s); /* "Q4_K_M", "F32" */
const char *serve_about_format(const serve_server *s);
json_int_t serve_about_bytes(const serve_server *s);
/* Whether calls of tools are read from answers, and whether the template lets the model think. */
bool serve_about_calls(const serve_server *s, const hunch_model *m);
bool serve_about_thinks(const serve_server *s);
/* The text of the token that begins or ends a text ("bos_token", "eos_token"), as templates have it; empty: there is none. New. */
json_t *serve_about_token(const hunch_model *m, const char *name);

#endif
