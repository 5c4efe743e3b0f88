/* SPDX-License-Identifier: Apache-2.0 */
/* load_http.c - one request a connection, without waiting: sends it, reads the head and the chunks of the answer, and hands on the events
 * of its stream. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

enum { STATUS, HEAD, MARK, CHUNK, CHUNK_END, PLAIN, OVER };

static int socket_open(const load_options *o, bool waits) {
    static struct addrinfo *found;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    if (!found && getaddrinfo(o->host, o->port, &hints, &found)) load_fail("%s: no such host", o->host);
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0), one = 1;
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS) return fd;
    close(fd);
    return -1;
}

bool load_connect(load_run *r, load_connection *c) {
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
    c->fd = socket_open(&r->o, false);
    c->sent = c->n_in = c->n_line = c->left = 0;
    c->chunked = false;
    c->state = STATUS;
    return c->fd >= 0 && epoll_ctl(r->epoll, EPOLL_CTL_ADD, c->fd, &e) == 0;
}

void load_close(load_run *r, load_connection *c) {
    (void)r;
    if (c->fd >= 0) close(c->fd); /* and leaves the epoll */
    c->fd = -1;
}

bool load_send(load_run *r, load_connection *c) {
    const load_request *q = c->answer.asked;
    while (c->sent < q->length) {
        const ssize_t n = send(c->fd, q->body + c->sent, q->length - c->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return true;
        if (n < 0) return snprintf(c->answer.why, sizeof c->answer.why, "sending: %s", strerror(errno)), false;
        c->sent += (size_t)n;
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    return epoll_ctl(r->epoll, EPOLL_CTL_MOD, c->fd, &e) == 0;
}

/* Hands on the events that are complete. */
static void events_take(load_run *r, load_connection *c) {
    size_t from = 0;
    char *end;
    while ((end = memmem(c->in + from, c->n_in - from, "\n\n", 2))) {
        *end = 0;
        if (strncmp(c->in + from, "data: ", 6) == 0) load_event(r, &c->answer, c->in + from + 6);
        from = (size_t)(end - c->in) + 2;
    }
    memmove(c->in, c->in + from, c->n_in - from);
    c->n_in -= from;
}

static void body_add(load_run *r, load_connection *c, const char *p, size_t n) {
    load_grow(&c->in, &c->room_in, c->n_in + n + 1);
    memcpy(c->in + c->n_in, p, n);
    c->n_in += n;
    c->in[c->n_in] = 0;
    if (!c->answer.failed) events_take(r, c);
}

/* A line of the head, or the mark before a chunk. */
static void line_read(load_connection *c) {
    load_answer *a = &c->answer;
    if (c->state == STATUS) {
        a->failed = strncmp(c->line, "HTTP/1.1 200", 12) != 0;
        if (a->failed) snprintf(a->why, sizeof a->why, "%.150s", c->line);
        c->state = HEAD;
    } else if (c->state == HEAD) {
        c->chunked |= strncasecmp(c->line, "transfer-encoding: chunked", 26) == 0;
        if (!*c->line) c->state = c->chunked ? MARK : PLAIN;
    } else if (c->state == CHUNK_END) {
        c->state = MARK;
    } else {
        c->left = strtoul(c->line, NULL, 16);
        c->state = c->left ? CHUNK : OVER;
    }
}

static void bytes_read(load_run *r, load_connection *c, const char *p, size_t n) {
    for (size_t i = 0; i < n && c->state != OVER;) {
        if (c->state == PLAIN || c->state == CHUNK) {
            const size_t take = c->state == PLAIN || n - i < c->left ? n - i : c->left;
            body_add(r, c, p + i, take);
            i += take;
            if (c->state == CHUNK && (c->left -= take) == 0) c->state = CHUNK_END;
        } else if (p[i++] == '\n') {
            c->line[c->n_line] = 0;
            c->n_line = 0;
            line_read(c);
        } else if (p[i - 1] != '\r' && c->n_line + 1 < sizeof c->line) {
            c->line[c->n_line++] = p[i - 1];
        }
    }
}

bool load_receive(load_run *r, load_connection *c) {
    static char buffer[1 << 16];
    for (;;) {
        const ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
        if (n < 0 && errno == EAGAIN) return true;
        if (n < 0) snprintf(c->answer.why, sizeof c->answer.why, "reading: %s", strerror(errno));
        if (n <= 0) return false;
        bytes_read(r, c, buffer, (size_t)n);
        if (c->answer.ended || c->state == OVER) return false;
    }
}

static double counter_of(const char *page, const char *name) {
    const char *p = page;
    const size_t n = strlen(name);
    while ((p = strstr(p, name)) && !((p == page || p[-1] == '\n') && (p[n] == ' ' || p[n] == '{'))) p += n;
    if (p) p = strchr(p, ' ');
    return p ? atof(p) : -1;
}

void load_counters_read(const load_options *o, double counter[LOAD_COUNTERS]) {
    static const char get[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char *const names[LOAD_COUNTERS] = {
        [LOAD_DRAFTED] = "vllm:spec_decode_num_draft_tokens_total", [LOAD_ACCEPTED] = "vllm:spec_decode_num_accepted_tokens_total",
        [LOAD_PREEMPTED] = "vllm:num_preemptions_total", [LOAD_RESTORED] = "vllm:prefix_cache_hits_total"};
    const int fd = socket_open(o, true);
    char *page = NULL;
    size_t n = 0, room = 0;
    ssize_t got = fd >= 0 ? send(fd, get, sizeof get - 1, MSG_NOSIGNAL) : -1;
    do {
        load_grow(&page, &room, n + 65536);
        got = got > 0 ? recv(fd, page + n, 65535, 0) : 0;
        n += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    page[n] = 0;
    if (fd >= 0) close(fd);
    for (int k = 0; k < LOAD_COUNTERS; k++) counter[k] = counter_of(page, names[k]);
    free(page);
}
