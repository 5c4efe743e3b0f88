/* SPDX-License-Identifier: Apache-2.0 */
/* serve_guests.c - see serve_guests.h. */
#include "server/http/serve_guests.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/http/serve_address.h"
#include "server/http/serve_bytes.h"

enum { TICK_MS = 250, BODY_MORE_S = 1 };

struct serve_guest {
    serve_guest *next, *before;
    int fd;
    double until_s; /* when its head, or body, has to be whole; 0: it is */
    serve_address address;
    char text[INET6_ADDRSTRLEN + 1]; /* of the address */
};

struct serve_guests {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the first deadline has come to be, or the end */
    pthread_t clock;
    bool over;
    int head_s, most, waited_for; /* guests that have a deadline */
    serve_address proxy;
    serve_guest *first;
};

static void until_set_locked(serve_guests *g, serve_guest *one, double until_s) {
    g->waited_for += (until_s != 0) - (one->until_s != 0);
    one->until_s = until_s;
    if (until_s != 0 && g->waited_for == 1) pthread_cond_signal(&g->changed);
}

/* Sleeps while nobody has a deadline. */
static void *watch(void *user) {
    serve_guests *g = user;
    pthread_mutex_lock(&g->lock);
    while (!g->over) {
        struct timespec until;
        if (!g->waited_for) {
            pthread_cond_wait(&g->changed, &g->lock);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TICK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
        pthread_cond_timedwait(&g->changed, &g->lock, &until);
        const double now = hn_now();
        for (serve_guest *one = g->first; one; one = one->next) {
            if (one->until_s == 0 || now < one->until_s) continue;
            shutdown(one->fd, SHUT_RDWR); /* libmicrohttpd sees its end, and closes it */
            until_set_locked(g, one, 0);
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
    pthread_cond_init(&g->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    g->head_s = head_s;
    g->most = most;
    if (proxy) g->proxy = serve_address_read(proxy);
    if (pthread_create(&g->clock, NULL, watch, g) == 0) return g;
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    hn_free(g);
    return NULL;
}

void serve_guests_free(serve_guests *g) {
    if (!g) return;
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->clock, NULL);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    hn_free(g);
}

bool serve_guests_admit(serve_guests *g, const struct sockaddr *from) {
    const serve_address a = serve_address_of(from);
    int n = 0;
    if (!g->most || !a.family || serve_address_is_loopback(&a) || serve_address_same(&a, &g->proxy)) return true;
    pthread_mutex_lock(&g->lock);
    for (const serve_guest *one = g->first; one; one = one->next) n += serve_address_same(&one->address, &a);
    pthread_mutex_unlock(&g->lock);
    return n < g->most;
}

serve_guest *serve_guest_come(serve_guests *g, int fd, const struct sockaddr *from) {
    serve_guest *one = serve_alloc(1, sizeof *one);
    one->fd = fd;
    one->address = serve_address_of(from);
    serve_address_text(&one->address, one->text);
    pthread_mutex_lock(&g->lock);
    until_set_locked(g, one, hn_now() + g->head_s);
    one->next = g->first;
    if (g->first) g->first->before = one;
    g->first = one;
    pthread_mutex_unlock(&g->lock);
    return one;
}

void serve_guest_go(serve_guests *g, serve_guest *one) {
    if (!one) return;
    pthread_mutex_lock(&g->lock);
    until_set_locked(g, one, 0);
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
    until_set_locked(g, one, until_s);
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
    return one && one->text[0] ? one->text : "unknown";
}

bool serve_guest_is_proxy(const serve_guests *g, const serve_guest *one) {
    return one && serve_address_same(&one->address, &g->proxy);
}
