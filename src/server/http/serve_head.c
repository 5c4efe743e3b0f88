/* SPDX-License-Identifier: Apache-2.0 */
/* serve_head.c - see serve_head.h. Syntax of heads: RFC 9112, of origins: RFC 6454. */
#include "server/http/serve_head.h"

#include <ctype.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/http/serve_address.h"
#include "server/http/serve_bytes.h"

/* ---- one meaning --------------------------------------------------------------------------------------------- */

static bool is_token(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !(s[i] && strchr("!#$%&'*+-.^_`|~", s[i]))) return false;
    return n > 0;
}

static bool is_named(const char *name, size_t n, const char *word) {
    return n == strlen(word) && strncasecmp(name, word, n) == 0;
}

void serve_head_line(serve_head *h, const char *name, size_t n_name, const char *value, size_t n_value) {
    if (!is_token(name, n_name)) h->odd_name = true;
    for (size_t i = 0; i < n_value; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f) h->odd_value = true;
    if (is_named(name, n_name, "Host")) h->hosts++, h->host = value;
    if (is_named(name, n_name, "Origin")) h->origins++, h->origin = value;
    if (is_named(name, n_name, "Content-Length")) h->lengths++, h->length = value;
    if (is_named(name, n_name, "Transfer-Encoding")) h->codings++, h->coding = value;
    if (is_named(name, n_name, "X-Forwarded-For")) h->forwarded = value;
}

/* A host may have a port behind it, and nothing that belongs to another part of an address. */
static bool is_host(const char *host) {
    return host[0] && !strpbrk(host, "/\\?#@, \t\"<>");
}

bool serve_head_clear(const serve_head *h, bool old, serve_error *err) {
    if (h->odd_name)
        return serve_fail(err, 400, NULL, "the name of a header is no token of letters, digits and !#$%%&'*+-.^_`|~");
    if (h->odd_value) return serve_fail(err, 400, NULL, "the value of a header has a control character");
    if (h->hosts > 1 || (h->hosts == 0 && !old))
        return serve_fail(err, 400, NULL, "the head has %zu Host headers, expected one", h->hosts);
    if (h->hosts && !is_host(h->host)) return serve_fail(err, 400, NULL, "the header Host is not a name or an address");
    if (h->origins > 1)
        return serve_fail(err, 400, NULL, "the head has %zu Origin headers, expected at most one", h->origins);
    if (h->lengths > 1)
        return serve_fail(err, 400, NULL, "the head has %zu Content-Length headers, expected at most one", h->lengths);
    if (h->lengths && h->codings)
        return serve_fail(err, 400, NULL,
                          "the head has both Content-Length and Transfer-Encoding, expected one of them");
    if (h->lengths && (!*h->length || strspn(h->length, "0123456789") != strlen(h->length)))
        return serve_fail(err, 400, NULL, "the header Content-Length is not a number");
    if (h->codings > 1 || (h->codings && strcasecmp(h->coding, "chunked") != 0))
        return serve_fail(err, 400, NULL, "the header Transfer-Encoding is not chunked, which alone is supported");
    return !(h->codings && old) || serve_fail(err, 400, NULL, "HTTP/1.0 has no Transfer-Encoding");
}

/* Whether it is of an interface of this machine. */
static bool is_own(const serve_address *a) {
    struct ifaddrs *all, *i;
    bool own = false;
    if (getifaddrs(&all)) return false;
    for (i = all; i && !own; i = i->ifa_next) {
        const serve_address other = i->ifa_addr ? serve_address_of(i->ifa_addr) : (serve_address){0};
        own = serve_address_same(&other, a);
    }
    freeifaddrs(all);
    return own;
}

/* ---- names --------------------------------------------------------------------------------------------------- */

/* A host and its port, of Host or of an origin. */
typedef struct place {
    char host[256]; /* in small letters, without brackets or a last dot */
    int port;       /* -1: none is named */
} place;

/* As browsers write it: names of other alphabets are in Punycode, and none has a wildcard. */
static bool is_of_host(char c, bool brackets) {
    return isascii((unsigned char)c) && (isalnum((unsigned char)c) || strchr("-._~", c) || (brackets && strchr(":%", c)));
}

/* "name:80", "[::1]:80", "1.2.3.4"; false: none of these. */
static bool place_read(place *p, const char *text) {
    const bool brackets = *text == '[';
    const char *end = brackets ? strchr(text, ']') : text + strcspn(text, ":");
    char *after;
    if (!end) return false;
    size_t n = (size_t)(end - text) - brackets;
    const char *port = brackets ? end + 1 : end;
    if (n == 0 || n >= sizeof p->host) return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_of_host(text[i + brackets], brackets)) return false;
        p->host[i] = (char)tolower((unsigned char)text[i + brackets]);
    }
    if (!brackets && p->host[n - 1] == '.') n--;
    p->host[n] = 0;
    p->port = -1;
    if (!*port) return n > 0;
    if (*port != ':' || (port[1] && !isdigit((unsigned char)port[1]))) return false;
    const long number = strtol(port + 1, &after, 10);
    if (*after || number > 65535) return false;
    if (port[1]) p->port = (int)number;
    return n > 0;
}

static bool ends_with(const char *s, const char *end) {
    const size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

/* An origin: a scheme, "://", a place. The port that the scheme has by default is none. */
typedef struct origin {
    char scheme[64];
    place at;
} origin;

static int default_port(const char *scheme) {
    return strcmp(scheme, "http") == 0 ? 80 : strcmp(scheme, "https") == 0 ? 443 : -1;
}

static bool origin_read(origin *o, const char *text) {
    const char *sep = strstr(text, "://");
    const size_t n = sep ? (size_t)(sep - text) : 0;
    char rest[300];
    if (!n || n >= sizeof o->scheme || !isalpha((unsigned char)*text)) return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("+-.", text[i])) return false;
        o->scheme[i] = (char)tolower((unsigned char)text[i]);
    }
    o->scheme[n] = 0;
    size_t m = strlen(sep + 3);
    if (m >= sizeof rest) return false;
    memcpy(rest, sep + 3, m + 1);
    if (m && rest[m - 1] == '/') rest[--m] = 0; /* as addresses are copied */
    o->at = (place){.port = -1};
    if (m == 0 && default_port(o->scheme) < 0) return true; /* app:// */
    if (!place_read(&o->at, rest)) return false;
    if (o->at.port == default_port(o->scheme)) o->at.port = -1;
    return true;
}

static bool same_place(const place *a, const place *b) {
    return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

/* ---- who may call -------------------------------------------------------------------------------------------- */

struct serve_callers {
    origin *origins; /* [n] */
    size_t n, cap;
    bool any, null; /* "*", "null" */
    char **names;   /* [n_names], in small letters */
    size_t n_names;
    char hostname[256];
    bool private;
};

static hunch_status origin_add(serve_callers *c, const char *text, hunch_error *err) {
    origin o;
    if (strcmp(text, "*") == 0) return c->any = true, HUNCH_OK;
    if (strcmp(text, "null") == 0) return c->null = true, HUNCH_OK;
    if (!origin_read(&o, text))
        return hn_fail(err, HUNCH_USAGE,
                       "--cors %.200s: expected SCHEME://HOST[:PORT] as browsers write it, such as "
                       "https://app.example.org, null or *",
                       text);
    if (!hn_grow((void **)&c->origins, &c->cap, c->n + 1, sizeof o)) return hn_fail_memory(err, "--cors", (c->n + 1) * sizeof o);
    c->origins[c->n++] = o;
    return HUNCH_OK;
}

static hunch_status origins_add(serve_callers *c, const char *list, hunch_error *err) {
    char one[512];
    hunch_status st = HUNCH_OK;
    for (const char *at = list; !st; at++) {
        while (*at == ' ') at++;
        const size_t n = strcspn(at, ",");
        size_t kept = n;
        while (kept && at[kept - 1] == ' ') kept--;
        if (kept == 0 || kept >= sizeof one)
            return hn_fail(err, HUNCH_USAGE, "--cors %.200s: an origin in it is %s", list, kept ? "too long" : "empty");
        memcpy(one, at, kept);
        one[kept] = 0;
        st = origin_add(c, one, err);
        at += n;
        if (!*at) break;
    }
    return st;
}

static hunch_status name_add(serve_callers *c, const char *name, hunch_error *err) {
    place p;
    if (!place_read(&p, name) || p.port >= 0)
        return hn_fail(err, HUNCH_USAGE,
                       "--host-name %.200s: expected a name as clients write it in an address, without a port", name);
    c->names[c->n_names] = serve_alloc(strlen(p.host) + 1, 1);
    memcpy(c->names[c->n_names++], p.host, strlen(p.host));
    return HUNCH_OK;
}

hunch_status serve_callers_new(serve_callers **out, const char *const *cors, int n_cors, const char *const *names,
                               int n_names, bool private, hunch_error *err) {
    serve_callers *c = serve_alloc(1, sizeof *c);
    hunch_status st = HUNCH_OK;
    c->private = private;
    c->names = serve_alloc((size_t)n_names + 1, sizeof *c->names);
    if (gethostname(c->hostname, sizeof c->hostname - 1)) c->hostname[0] = 0;
    for (char *s = c->hostname; *s; s++) *s = (char)tolower((unsigned char)*s);
    for (int i = 0; i < n_cors && !st; i++) st = origins_add(c, cors[i], err);
    for (int i = 0; i < n_names && !st; i++) st = name_add(c, names[i], err);
    if (!st) return *out = c, HUNCH_OK;
    serve_callers_free(c);
    return st;
}

void serve_callers_free(serve_callers *c) {
    if (!c) return;
    for (size_t i = 0; i < c->n_names; i++) hn_free(c->names[i]);
    hn_free(c->names);
    hn_free(c->origins);
    hn_free(c);
}

/* Names that lead to this machine, or to its network, whoever asks. */
static bool is_ours(const serve_callers *c, const char *host) {
    static const char *const within[] = {".localhost", ".local", ".internal"};
    const serve_address a = serve_address_read(host);
    if (a.family) return serve_address_is_loopback(&a) || serve_address_is_private(&a) || is_own(&a);
    for (size_t i = 0; i < sizeof within / sizeof *within; i++)
        if (ends_with(host, within[i])) return true;
    for (size_t i = 0; i < c->n_names; i++)
        if (strcmp(host, c->names[i]) == 0) return true;
    return strcmp(host, "localhost") == 0 || strcmp(host, c->hostname) == 0;
}

const char *serve_callers_allowed(const serve_callers *c, const char *text) {
    origin o;
    if (!text) return NULL;
    if (c->any) return "*";
    if (strcmp(text, "null") == 0) return c->null ? text : NULL;
    if (!origin_read(&o, text)) return NULL;
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(o.scheme, c->origins[i].scheme) == 0 && same_place(&o.at, &c->origins[i].at)) return text;
    return NULL;
}

/* Whether a page of this server asks: the scheme is another behind a proxy that has TLS. */
static bool is_same_origin(const serve_head *h) {
    origin o;
    place host;
    if (!h->host || !origin_read(&o, h->origin) || default_port(o.scheme) < 0 || !place_read(&host, h->host))
        return false;
    if (host.port == default_port(o.scheme)) host.port = -1;
    return same_place(&o.at, &host);
}

bool serve_callers_admit(const serve_callers *c, const serve_head *h, serve_error *err) {
    place p;
    if (c->private && h->host && (!place_read(&p, h->host) || !is_ours(c, p.host)))
        return serve_fail(
            err, 403, NULL,
            "the name %.100s in Host is not known to be this machine's: hunch serve --host-name allows it", h->host);
    if (!h->origin || serve_callers_allowed(c, h->origin) || is_same_origin(h)) return true;
    return serve_fail(err, 403, NULL, "pages of the origin %.200s may not call: hunch serve --cors allows it",
                      h->origin);
}
