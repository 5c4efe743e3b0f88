/* SPDX-License-Identifier: Apache-2.0 */
/* serve_address.c - see serve_address.h. */
#include "server/http/serve_address.h"

#include <arpa/inet.h>
#include <string.h>

static serve_address of_bytes(int family, const void *bytes) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    serve_address a = {.family = family};
    if (family == AF_INET6 && memcmp(bytes, mapped, sizeof mapped) == 0) {
        a.family = AF_INET;
        memcpy(a.byte, (const unsigned char *)bytes + sizeof mapped, 4);
    } else {
        memcpy(a.byte, bytes, family == AF_INET ? 4 : 16);
    }
    return a;
}

serve_address serve_address_read(const char *text) {
    char plain[INET6_ADDRSTRLEN + 1];
    unsigned char bytes[16];
    if (*text == '[') text++;
    const size_t n = strcspn(text, "]%");
    if (n >= sizeof plain) return (serve_address){0};
    memcpy(plain, text, n);
    plain[n] = 0;
    if (inet_pton(AF_INET, plain, bytes) == 1) return of_bytes(AF_INET, bytes);
    if (inet_pton(AF_INET6, plain, bytes) == 1) return of_bytes(AF_INET6, bytes);
    return (serve_address){0};
}

serve_address serve_address_of(const struct sockaddr *from) {
    if (from->sa_family == AF_INET) return of_bytes(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr);
    if (from->sa_family == AF_INET6) return of_bytes(AF_INET6, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr);
    return (serve_address){0};
}

void serve_address_text(const serve_address *a, char to[INET6_ADDRSTRLEN + 1]) {
    to[0] = 0;
    if (a->family) inet_ntop(a->family, a->byte, to, INET6_ADDRSTRLEN);
}

bool serve_address_same(const serve_address *a, const serve_address *b) {
    return a->family && a->family == b->family && memcmp(a->byte, b->byte, sizeof a->byte) == 0;
}

bool serve_address_is_loopback(const serve_address *a) {
    static const unsigned char one[16] = {[15] = 1};
    return a->family == AF_INET ? a->byte[0] == 127 : a->family == AF_INET6 && memcmp(a->byte, one, 16) == 0;
}

bool serve_address_is_private(const serve_address *a) {
    const unsigned char *b = a->byte;
    if (a->family == AF_INET)
        return b[0] == 10 || (b[0] == 172 && b[1] >> 4 == 1) || (b[0] == 192 && b[1] == 168) ||
               (b[0] == 169 && b[1] == 254) || (b[0] == 100 && b[1] >> 6 == 1);
    return a->family == AF_INET6 && ((b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && b[1] >> 6 == 2));
}
