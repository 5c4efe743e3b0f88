/* SPDX-License-Identifier: Apache-2.0 */
/* serve_guests.c - see serve_guests.h. */
#include "server/serve_guests.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/serve_bytes.h"
#include "server/serve_head.h"

enum { TICK_MS = 250, BODY_MORE_S = 1 };

struct serve_guest {
    serve_guest *next, *before;
    int fd;
    double until_s; /* when its head, or body, has to be whole; 0: it is */
    char address[INET6_ADDRSTRLEN + 1];
};

struct serve_guests {
    pthread_mutex_t lock;
    pthread_cond_t end;
    pthread_t clock;
    bool over;
    int head_s, most;
    char proxy[INET6_ADDRSTRLEN + 1];
    serve_guest *first;
};

/* IPv4 in IPv6 as IPv4, so that one client has one name. */
static void address_text(const struct sockaddr *from, char to[INET6_ADDRSTRLEN + 1]) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    to[0] = 0;
    if (from->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr, to, INET6_ADDRSTRLEN);
    } else if (from->sa_family == AF_INET6) {
        const unsigned char *b = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr.s6_addr;
        if (memcmp(b, mapped, sizeof mapped) == 0)
            inet_ntop(AF_INET, b + 12, to, INET6_ADDRSTRLEN);
        else
            inet_ntop(AF_INET6, b, to, INET6_ADDRSTRLEN);
    }
}

/* A text of an address as the sockets' addresses are written here. */
static void address_same(const char *text, char to[INET6_ADDRSTRLEN + 1]) {
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        address_text((const struct sockaddr *)&four, to);
    else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
        address_text((const struct sockaddr *)&six, to);
}

static void *watch(void *user) {
    serve_guests *g = user;
    pthread_mutex_lock(&g->lock);
    while (!g->over) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
        pthread_cond_timedwait(&g->end, &g->lock, &until);
        const double now = hn_now();
        for (serve_guest *one = g->first; one; one = one->next) {
            if (one->until_s == 0 || now < one->until_s) continue;
            shutdown(one->fd, SHUT_RDWR); /* libmicrohttpd sees its end, and closes it */
            one->until_s = 0;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

serve_guests *serve_guests_new(int head_s, int most, const char *proxy) {
    serve_guests *g = serve_alloc(1, sizeof *g);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    g->head_s = head_s;
    g->most = most;
    if (proxy) address_same(proxy, g->proxy);
    if (pthread_create(&g->clock, NULL, watch, g) == 0) return g;
    pthread_cond_destroy(&g->end);
    pthread_mutex_destroy(&g->lock);
    hn_free(g);
    return NULL;
}

void serve_guests_free(serve_guests *g) {
    if (!g) return;
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->end);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->clock, NULL);
    pthread_cond_destroy(&g->end);
    pthread_mutex_destroy(&g->lock);
    hn_free(g);
}

bool serve_guests_admit(serve_guests *g, const struct sockaddr *from) {
    char address[INET6_ADDRSTRLEN + 1];
    int n = 0;
    if (!g->most) return true;
    address_text(from, address);
    if (!address[0] || serve_address_is_loopback(address) || strcmp(address, g->proxy) == 0) return true;
    pthread_mutex_lock(&g->lock);
    for (const serve_guest *one = g->first; one; one = one->next) n += strcmp(one->address, address) == 0;
    pthread_mutex_unlock(&g->lock);
    return n < g->most;
}

serve_guest *serve_guest_come(serve_guests *g, int fd, const struct sockaddr *from) {
    serve_guest *one = serve_alloc(1, sizeof *one);
    one->fd = fd;
    one->until_s = hn_now() + g->head_s;
    address_text(from, one->address);
    pthread_mutex_lock(&g->lock);
    one->next = g->first;
    if (g->first) g->first->before = one;
    g->first = one;
    pthread_mutex_unlock(&g->lock);
    return one;
}

void serve_guest_go(serve_guests *g, serve_guest *one) {
    if (!one) return;
    pthread_mutex_lock(&g->lock);
    if (one->before)
        one->before->next = one->next;
    else
        g->first = one->next;
    if (one->next) one->next->before = one->before;
    pthread_mutex_unlock(&g->lock);
    hn_free(one);
}

static void until_set(serve_guests *g, serve_guest *one, double until_s) {
    if (!one) return;
    pthread_mutex_lock(&g->lock);
    one->until_s = until_s;
    pthread_mutex_unlock(&g->lock);
}

void serve_guest_headed(serve_guests *g, serve_guest *one) {
    until_set(g, one, hn_now() + g->head_s + BODY_MORE_S);
}

void serve_guest_asked(serve_guests *g, serve_guest *one) {
    until_set(g, one, 0);
}

void serve_guest_waits(serve_guests *g, serve_guest *one) {
    until_set(g, one, hn_now() + 2.0 * g->head_s);
}

const char *serve_guest_address(const serve_guest *one) {
    return one && one->address[0] ? one->address : "unknown";
}

bool serve_guest_is_proxy(const serve_guests *g, const serve_guest *one) {
    return one && g->proxy[0] && strcmp(one->address, g->proxy) == 0;
}
