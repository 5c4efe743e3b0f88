/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_head_lines.c - heads of requests to the server: whether their lines have one meaning, and who may call. A head that is taken has at
 * most one of each line that decides, whatever the order; a name in Host that is taken is this machine's by a second, plainer rule, and a
 * page that may call is listed or is the server's own.
 *
 * Input: a character from 0 on, of bits (1: HTTP/1.0, 2: other machines can call), then a list of --cors, a name
 * of --host-name, an address, and behind the last 0xFF lines of a head, "name:value". */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fuzz.h"
#include "server/http/serve_address.h"
#include "server/http/serve_head.h"

enum { MOST_LINES = 64 };

typedef struct line {
    char *name, *value; /* each with a NUL behind it */
    size_t n_name, n_value;
} line;

typedef struct lines {
    line of[MOST_LINES];
    size_t n;
} lines;

static void lines_read(lines *l, fuzz_bytes text) {
    l->n = 0;
    for (size_t at = 0; at < text.size && l->n < MOST_LINES;) {
        const uint8_t *begin = text.at + at, *end = memchr(begin, '\n', text.size - at);
        const size_t len = end ? (size_t)(end - begin) : text.size - at;
        const uint8_t *colon = memchr(begin, ':', len);
        const size_t n = colon ? (size_t)(colon - begin) : len;
        l->of[l->n++] = (line){.name = fuzz_text((fuzz_bytes){begin, n}),
                               .value = fuzz_text((fuzz_bytes){begin + n + (n < len), len - n - (n < len)}),
                               .n_name = n,
                               .n_value = len - n - (n < len)};
        at += len + 1;
    }
}

static void lines_free(lines *l) {
    for (size_t i = 0; i < l->n; i++) free(l->of[i].name), free(l->of[i].value);
}

static size_t count(const lines *l, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) n += l->of[i].n_name == strlen(name) && strcasecmp(l->of[i].name, name) == 0;
    return n;
}

static bool head_read(serve_head *h, const lines *l, bool backwards, bool old) {
    serve_error err = {0};
    *h = (serve_head){0};
    for (size_t i = 0; i < l->n; i++) {
        const line *one = &l->of[backwards ? l->n - 1 - i : i];
        serve_head_line(h, one->name, one->n_name, one->value, one->n_value);
    }
    const bool clear = serve_head_clear(h, old, &err);
    FUZZ_MUST(clear ? !err.http && !err.message[0] : err.http == 400 && err.message[0]);
    return clear;
}

/* What no head that is taken has. */
static void clear_check(const lines *l, bool old) {
    FUZZ_MUST(count(l, "host") == 1 || (old && count(l, "host") == 0));
    FUZZ_MUST(count(l, "origin") <= 1 && count(l, "content-length") + count(l, "transfer-encoding") <= 1);
    FUZZ_MUST(!old || !count(l, "transfer-encoding"));
    for (size_t i = 0; i < l->n; i++) {
        const line *one = &l->of[i];
        FUZZ_MUST(one->n_name > 0 && strlen(one->name) == one->n_name && strlen(one->value) == one->n_value);
        for (size_t k = 0; k < one->n_name; k++)
            FUZZ_MUST(isgraph((unsigned char)one->name[k]) && !strchr("()[]{}<>@,;:\\\"/?=", one->name[k]));
        FUZZ_MUST(!strpbrk(one->value, "\r\n\x7f"));
        if (strcasecmp(one->name, "content-length") == 0)
            for (size_t k = 0; k == 0 || k < one->n_value; k++) FUZZ_MUST(isdigit((unsigned char)one->value[k]));
        if (strcasecmp(one->name, "transfer-encoding") == 0) FUZZ_MUST(strcasecmp(one->value, "chunked") == 0);
    }
}

/* The name in Host without its port, without brackets and a last dot. */
static void host_name(const char *host, char to[300]) {
    const bool brackets = *host == '[';
    size_t n = brackets ? strcspn(host, "]") - 1 : strcspn(host, ":");
    if (n > 298) n = 298;
    memcpy(to, host + brackets, n);
    if (n && to[n - 1] == '.' && !brackets) n--;
    to[n] = 0;
}

static bool ends(const char *text, const char *with) {
    const size_t n = strlen(text), m = strlen(with);
    return n > m && strcasecmp(text + n - m, with) == 0;
}

static void admitted_check(const serve_callers *c, const serve_head *h, bool private, const char *given) {
    char name[300] = "", machine[256] = "";
    if (h->host) host_name(h->host, name);
    if (private && h->host) {
        char allowed[300];
        gethostname(machine, sizeof machine - 1);
        host_name(given, allowed);
        FUZZ_MUST(serve_address_read(name).family || strcasecmp(name, "localhost") == 0 || ends(name, ".localhost") ||
                  ends(name, ".local") || ends(name, ".internal") || strcasecmp(name, machine) == 0 ||
                  strcasecmp(name, allowed) == 0);
    }
    if (!h->origin || serve_callers_allowed(c, h->origin)) return;
    const char *at = strstr(h->origin, "://");
    FUZZ_MUST(at && name[0] && strncasecmp(h->origin, "http", 4) == 0);
    at += 3 + (at[3] == '[');
    FUZZ_MUST(strncasecmp(at, name, strlen(name)) == 0 && strchr("]:./", at[strlen(name)]));
}

static void callers_check(const serve_callers *c, const serve_head *h, bool private, const char *cors,
                          const char *given) {
    serve_error err = {0};
    const bool may = serve_callers_admit(c, h, &err);
    const char *allowed = serve_callers_allowed(c, h->origin);
    FUZZ_MUST(may ? !err.http : err.http == 403 && err.message[0]);
    FUZZ_MUST(!allowed || strcmp(allowed, "*") == 0 || allowed == h->origin);
    if (allowed) FUZZ_MUST(strcmp(allowed, "*") == 0 ? strchr(cors, '*') != NULL : cors[0] != 0);
    if (may) admitted_check(c, h, private, given);
}

static void address_check(const char *text) {
    const serve_address a = serve_address_read(text);
    const bool near = serve_address_is_loopback(&a), ours = serve_address_is_private(&a);
    FUZZ_MUST(!(near && ours) && (!(near || ours) || a.family));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes rest = {data, size}, first = fuzz_part(&rest);
    const unsigned bits = first.size ? (unsigned)(first.at[0] - '0') : 0;
    const bool old = bits & 1, private = !(bits & 2);
    char *cors = fuzz_text(fuzz_part(&rest)), *name = fuzz_text(fuzz_part(&rest)),
         *address = fuzz_text(fuzz_part(&rest));
    const char *const list = cors, *const given = name;
    lines l;
    serve_head h, back;
    serve_callers *c = NULL;
    hunch_error err = {0};
    lines_read(&l, rest);
    const bool clear = head_read(&h, &l, false, old);
    FUZZ_MUST(head_read(&back, &l, true, old) == clear);
    if (clear) clear_check(&l, old);
    address_check(address);
    const hunch_status st = serve_callers_new(&c, &list, cors[0] != 0, &given, name[0] != 0, private, &err);
    fuzz_check(st, &err, NULL);
    FUZZ_MUST(!st || st == HUNCH_USAGE);
    if (!st && clear) callers_check(c, &h, private, cors, name);
    serve_callers_free(c);
    lines_free(&l);
    free(cors);
    free(name);
    free(address);
    return 0;
}
