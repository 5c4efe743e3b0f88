/* SPDX-License-Identifier: Apache-2.0 */
/* serve_socket.h - the socket that the server listens at, and how many connections there may be. */
#ifndef HN_SERVE_SOCKET_H
#define HN_SERVE_SOCKET_H

#include <stdbool.h>

#include "server/serve_server.h"

/* Opens it; url: [300], what is listened at. */
hunch_status serve_socket_open(int *out, const serve_settings *s, char *url, hunch_error *err);
/* Whether an address or a name to listen at is of this machine alone. */
bool serve_host_is_local(const char *host);
/* A connection that its client has closed, or whose sending side it has. fd: -1: it is not known. */
bool serve_socket_closed(int fd);
/* Connections, as many as the limit of open files allows, which is raised as far as it may be. */
unsigned serve_socket_most(int wanted);

#endif
