/* SPDX-License-Identifier: Apache-2.0 */
/* json_load.c - see json_load.h. */
#include "format/json_load.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"

/* The largest real documents (tokenizers of 260,000 tokens and 500,000 merges) need half of it. */
static const size_t MAX_BYTES = (size_t)640 << 20;

/* Bytes that the parser allocates at most for the value that a character begins: an array and its table, an object and its
 * buckets, an element, a key, a string. Measured with jansson 2.14 and glibc; other builds differ by little. */
static const unsigned short COST[256] = {['['] = 128, ['{'] = 224, [','] = 56, [':'] = 112, ['"'] = 80};

static size_t bytes_estimate(const char *text, size_t size) {
    size_t bytes = size; /* of all strings together */
    bool inside = false; /* of a string */
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (!inside)
            bytes += COST[c];
        if (c == '"')
            inside = !inside;
        else if (c == '\\' && inside)
            i++;
    }
    return bytes;
}

/* malloc may set ENOMEM and still succeed (glibc, if the heap cannot grow in place). If as much memory as the document needs
 * can be allocated once more, no allocation failed. */
static bool has_room(const char *text, size_t size) {
    void *again = hn_alloc(bytes_estimate(text, size));
    const bool has = again != NULL;
    hn_free(again);
    return has;
}

json_t *hn_json_load(const char *text, size_t size, size_t flags, json_error_t *where) {
    errno = 0;
    json_t *out = json_loadb(text, size, flags, where);
    if (errno != ENOMEM || has_room(text, size))
        return out;
    json_decref(out); /* bytes of a key, a string or a number may be missing */
    where->text[JSON_ERROR_TEXT_LENGTH - 1] = (char)json_error_out_of_memory; /* read by json_error_code */
    return NULL;
}

/* Writes to a buffer of known size: json_dumps, too, drops bytes if its buffer cannot grow. */
char *hn_json_dump(const json_t *json, size_t flags) {
    const size_t size = json_dumpb(json, NULL, 0, flags);
    char *text = size > 0 ? hn_alloc(size + 1) : NULL;
    if (text == NULL || json_dumpb(json, text, size, flags) != size) {
        hn_free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

json_t *hn_json_parse(const char *text, size_t size, size_t *held, json_error_t *where) {
    *where = (json_error_t){.line = 1};
    const size_t bytes = bytes_estimate(text, size);
    if (bytes > MAX_BYTES - *held) {
        snprintf(where->text, sizeof where->text, "it would take %zu MiB of memory; expected at most %zu", bytes >> 20,
                 (MAX_BYTES - *held) >> 20);
        return NULL;
    }
    json_t *out = hn_json_load(text, size, JSON_REJECT_DUPLICATES, where);
    if (out == NULL && json_error_code(where) == json_error_numeric_overflow)
        out = hn_json_load(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, where);
    if (out != NULL)
        *held += bytes;
    return out;
}
