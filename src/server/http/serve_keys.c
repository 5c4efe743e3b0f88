/* SPDX-License-Identifier: Apache-2.0 */
/* serve_keys.c - see serve_keys.h. */
#include "server/http/serve_keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "server/http/serve_bytes.h"

enum { MOST_BYTES = 1 << 20 };

typedef struct named_key {
    char *key, *name;
} named_key;

struct serve_keys {
    named_key *of; /* [n], with room for as many as the file has lines */
    size_t n;
};

enum { MOST_NAME = 60 };

static char *text_copy(const char *text, size_t n) {
    char *to = serve_alloc(n + 1, 1);
    memcpy(to, text, n);
    return to;
}

/* above: the line before it if that is a comment, [n_above]. */
static void key_add(serve_keys *k, const char *line, size_t n, const char *above, size_t n_above) {
    char number[32];
    while (n && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
    while (n && (*line == ' ' || *line == '\t')) line++, n--;
    if (n == 0 || *line == '#') return;
    while (n_above && strchr("# \t", *above)) above++, n_above--;
    while (n_above && strchr(" \t\r", above[n_above - 1])) n_above--;
    snprintf(number, sizeof number, "key %zu", k->n + 1);
    k->of[k->n++] = (named_key){
        text_copy(line, n),
        n_above ? text_copy(above, n_above < MOST_NAME ? n_above : MOST_NAME) : text_copy(number, strlen(number))};
}

hunch_status serve_keys_read(serve_keys **out, const char *path, hunch_error *err) {
    char *text = NULL;
    size_t size;
    const hunch_status st = hn_file_read(path, MOST_BYTES, &text, &size, err);
    if (st) return st;
    serve_keys *k = serve_alloc(1, sizeof *k);
    const char *above = NULL;
    size_t n_above = 0, lines = 1;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    k->of = serve_alloc(lines, sizeof *k->of);
    for (char *line = text, *end; line < text + size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) end = text + size;
        key_add(k, line, (size_t)(end - line), above, n_above);
        n_above = line < end && *line == '#' ? (size_t)(end - line) : 0;
        above = line;
    }
    memset(text, 0, size);
    hn_free(text);
    if (k->n) return *out = k, HUNCH_OK;
    serve_keys_free(k);
    return hn_fail(err, HUNCH_USAGE, "%s: no key in it, expected one a line", path);
}

void serve_keys_free(serve_keys *k) {
    if (!k) return;
    for (size_t i = 0; i < k->n; i++) hn_free(k->of[i].key), hn_free(k->of[i].name);
    hn_free(k->of);
    hn_free(k);
}

/* Every byte is compared, so that the time does not tell how many are right. */
static bool is_same(const char *key, const char *given, size_t n) {
    volatile unsigned char differ = 0;
    for (size_t i = 0; i < n; i++) differ = (unsigned char)(differ | (key[i] ^ given[i]));
    return differ == 0;
}

uint64_t serve_keys_fit(const serve_keys *k, const char *authorization, const char *x_api_key) {
    uint64_t found = 0;
    if (authorization && strncasecmp(authorization, "Bearer ", 7) != 0) return 0;
    const char *given = authorization ? authorization + 7 + strspn(authorization + 7, " ") : x_api_key;
    if (!given) return 0;
    const size_t n = strlen(given);
    for (size_t i = 0; i < k->n; i++)
        if (strlen(k->of[i].key) == n && is_same(k->of[i].key, given, n)) found = i + 1;
    return found;
}

const char *serve_keys_name(const serve_keys *k, uint64_t number) { return k && number && number <= k->n ? k->of[number - 1].name : NULL; }
