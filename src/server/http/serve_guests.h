/* SPDX-License-Identifier: Apache-2.0 */
/* serve_guests.h - the open connections: from which address each comes, and how long it has been sending the head
 * or the body of a request. libmicrohttpd drops a connection that is silent; one that sends a byte now and then is
 * dropped here, by shutting its socket down: also where its bytes are none of the body (extensions of chunks,
 * lines behind the last one), which serve_http.c never sees. */
#ifndef HN_SERVE_GUESTS_H
#define HN_SERVE_GUESTS_H

#include <stdbool.h>
#include <sys/socket.h>

typedef struct serve_guests serve_guests; /* any thread */
typedef struct serve_guest serve_guest;   /* a connection */

/* head_s: what the first head of a connection may take from its start; a later one twice as long from the end of
 * the request before, half of which the connection may be silent; and what a body may take, plus a second, since a
 * body that comes too slowly is dropped with its reason if it can be. most: connections of an address, 0: any
 * number; never counted: loopback, and `proxy`, an address as text, or NULL. NULL: no thread for the clock. */
serve_guests *serve_guests_new(int head_s, int most, const char *proxy);
void serve_guests_free(serve_guests *g); /* when no connection is left */

/* Whether one more connection may come from an address. */
bool serve_guests_admit(serve_guests *g, const struct sockaddr *from);
serve_guest *serve_guest_come(serve_guests *g, int fd, const struct sockaddr *from);
void serve_guest_go(serve_guests *g, serve_guest *one); /* before its socket is closed */
void serve_guest_headed(serve_guests *g, serve_guest *one); /* a head is whole: a body may come */
void serve_guest_asked(serve_guests *g, serve_guest *one);  /* a body is whole, or its head has been answered */
void serve_guest_waits(serve_guests *g, serve_guest *one);  /* its request is answered: the next head may come */
const char *serve_guest_address(const serve_guest *one);    /* as text, without a port */
bool serve_guest_is_proxy(const serve_guests *g, const serve_guest *one);

#endif
