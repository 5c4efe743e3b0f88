/* SPDX-License-Identifier: Apache-2.0 */
/* serve_address.h - addresses of the internet, as sockets and texts have them. IPv4 in IPv6 is IPv4, so that one client has one address. */
#ifndef HN_SERVE_ADDRESS_H
#define HN_SERVE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

typedef struct serve_address {
    int family; /* AF_INET, AF_INET6; 0: none */
    unsigned char byte[16]; /* those behind the address are 0 */
} serve_address;

/* Of a number with dots, or one with colons, with or without brackets, and perhaps a zone. Family 0: it is none. */
serve_address serve_address_read(const char *text);
serve_address serve_address_of(const struct sockaddr *from);
void serve_address_text(const serve_address *a, char to[INET6_ADDRSTRLEN + 1]); /* "" of none */
bool serve_address_same(const serve_address *a, const serve_address *b);        /* false of none */
bool serve_address_is_loopback(const serve_address *a);
bool serve_address_is_private(const serve_address *a); /* of a network that is not routed: RFC 1918, 4193, 3927, 6598 */

#endif
