/* SPDX-License-Identifier: Apache-2.0 */
/* serve_socket.c - see serve_socket.h. */
#include "server/http/serve_socket.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/status.h"
#include "server/http/serve_address.h"

enum { OWN_FILES = 128, BACKLOG = 1024, SEND_BUFFER = 128 << 10 };

/* As many as the limit of open files allows, which is raised as far as it may be. */
unsigned serve_socket_most(int wanted) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r)) return (unsigned)wanted;
    const rlim_t need = (rlim_t)wanted + OWN_FILES;
    if (r.rlim_cur < need) {
        r.rlim_cur = r.rlim_max < need ? r.rlim_max : need;
        setrlimit(RLIMIT_NOFILE, &r);
        getrlimit(RLIMIT_NOFILE, &r);
    }
    return r.rlim_cur < need ? (unsigned)(r.rlim_cur > 2 * OWN_FILES ? r.rlim_cur - OWN_FILES : OWN_FILES)
                             : (unsigned)wanted;
}

bool serve_host_is_local(const char *host) {
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    if (getaddrinfo(host, NULL, &hints, &list)) return false; /* socket_open says why */
    const serve_address a = serve_address_of(list->ai_addr);
    freeaddrinfo(list);
    return serve_address_is_loopback(&a);
}

hunch_status serve_socket_open(int *out, const serve_settings *s, char *url, hunch_error *err) {
    char port[8], number[64];
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list;
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    const int yes = 1, buffer = SEND_BUFFER; /* what a client does not read waits here, where it can be paused, not in the system */
    snprintf(port, sizeof port, "%d", s->port);
    const int code = getaddrinfo(s->host, port, &hints, &list);
    if (code) return hn_fail(err, HUNCH_USAGE, "--host %s: %s", s->host, gai_strerror(code));
    const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) == 0 &&
                    bind(fd, list->ai_addr, list->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 &&
                    getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
                    getnameinfo((struct sockaddr *)&own, size, NULL, 0, number, sizeof number, NI_NUMERICSERV) == 0;
    const int why = errno;
    freeaddrinfo(list);
    if (!ok) {
        if (fd >= 0) close(fd);
        return hn_fail(err, HUNCH_FAILED, "cannot listen at %s, port %d: %s", s->host, s->port, strerror(why));
    }
    snprintf(url, 300, strchr(s->host, ':') ? "http://[%.200s]:%s" : "http://%.200s:%s", s->host, number);
    *out = fd;
    return HUNCH_OK;
}

bool serve_socket_closed(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}
