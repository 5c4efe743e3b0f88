/* SPDX-License-Identifier: Apache-2.0 */
/* json_build.h - JSON that is put together without a check at each step: where memory ends *to becomes NULL, and stays so; the value that
 * is added always belongs to the call. */
#ifndef HN_JSON_BUILD_H
#define HN_JSON_BUILD_H
#include <jansson.h>

static inline void hn_json_put(json_t **to, const char *key, json_t *value) {
    if (*to && value && json_object_set_new(*to, key, value) == 0) return;
    if (!*to) json_decref(value);
    json_decref(*to);
    *to = NULL;
}

static inline void hn_json_add(json_t **to, json_t *value) {
    if (*to && value && json_array_append_new(*to, value) == 0) return;
    if (!*to) json_decref(value);
    json_decref(*to);
    *to = NULL;
}
#endif
