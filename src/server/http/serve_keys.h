/* SPDX-License-Identifier: Apache-2.0 */
/* serve_keys.h - the API keys that the server accepts, from a file with one a line; empty lines and those that begin
 * with # are none; such a line directly above a key is its name. */
#ifndef HN_SERVE_KEYS_H
#define HN_SERVE_KEYS_H

#include "base/status.h"

typedef struct serve_keys serve_keys;

/* A file without a key is an error. */
hunch_status serve_keys_read(serve_keys **out, const char *path, hunch_error *err);
void serve_keys_free(serve_keys *k);
/* A number that stands for the key, if `authorization` is "Bearer KEY" with one of them, or x_api_key is one; else 0. Both are values of
 * headers, NULL if there is none; the first one comes first. Takes the same time for every wrong key of one length. */
uint64_t serve_keys_fit(const serve_keys *k, const char *authorization, const char *x_api_key);

/* What stands in the comment above the key that has this number, else "key N": for the log. */
const char *serve_keys_name(const serve_keys *k, uint64_t number);

#endif
