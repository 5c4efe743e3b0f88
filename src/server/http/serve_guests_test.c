/* SPDX-License-Identifier: Apache-2.0 */
/* serve_guests_test.c - how many connections an address may have, and that a socket whose head is late is shut down. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/serve_guests.h"

static struct sockaddr_storage address(const char *text) {
    struct sockaddr_storage a = {0};
    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)(void *)&a)->sin_addr) == 1) a.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)(void *)&a)->sin6_addr) == 1) a.ss_family = AF_INET6;
    return a;
}

static bool admit(serve_guests *g, const char *text) {
    const struct sockaddr_storage a = address(text);
    return serve_guests_admit(g, (const struct sockaddr *)&a);
}

static serve_guest *come(serve_guests *g, const char *text) {
    const struct sockaddr_storage a = address(text);
    return serve_guest_come(g, -1, (const struct sockaddr *)&a);
}

static void test_connections_of_an_address(void **state) {
    (void)state;
    serve_guests *g = serve_guests_new(60, 2, "::FFFF:10.0.0.9");
    serve_guest *first = come(g, "10.0.0.1"), *second = come(g, "::ffff:10.0.0.1"), *six = come(g, "2001:db8::1");
    assert_string_equal(serve_guest_address(second), "10.0.0.1");
    assert_false(admit(g, "10.0.0.1") || admit(g, "::ffff:10.0.0.1"));
    assert_true(admit(g, "10.0.0.2") && admit(g, "2001:db8::1"));
    serve_guest_go(g, first);
    assert_true(admit(g, "10.0.0.1"));
    serve_guest_go(g, second);
    serve_guest_go(g, six);
    for (int i = 0; i < 3; i++) {
        static const char *const never[] = {"127.0.0.1", "::1", "10.0.0.9"};
        serve_guest *one = come(g, never[i]), *two = come(g, never[i]), *three = come(g, never[i]);
        assert_true(admit(g, never[i]));
        assert_int_equal(serve_guest_is_proxy(g, one), i == 2);
        serve_guest_go(g, one), serve_guest_go(g, three), serve_guest_go(g, two);
    }
    serve_guests_free(g);
}

static void test_late_heads(void **state) {
    (void)state;
    int late[2], slow[2], asked[2];
    serve_guests *g = serve_guests_new(1, 0, NULL);
    const struct sockaddr_storage a = address("10.0.0.1");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, late), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, slow), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, asked), 0);
    serve_guest *one = serve_guest_come(g, late[0], (const struct sockaddr *)&a);
    serve_guest *two = serve_guest_come(g, slow[0], (const struct sockaddr *)&a);
    serve_guest *three = serve_guest_come(g, asked[0], (const struct sockaddr *)&a);
    serve_guest_headed(g, two);
    serve_guest_headed(g, three);
    serve_guest_asked(g, three);
    struct pollfd wait = {late[1], POLLIN, 0};
    char byte;
    assert_int_equal(poll(&wait, 1, 20000), 1);
    assert_int_equal(read(late[1], &byte, 1), 0);
    wait.fd = slow[1]; /* whose body never comes to its end */
    assert_int_equal(poll(&wait, 1, 0), 0);
    assert_int_equal(poll(&wait, 1, 20000), 1);
    assert_int_equal(read(slow[1], &byte, 1), 0);
    wait.fd = asked[1];
    assert_int_equal(poll(&wait, 1, 0), 0);
    serve_guest_go(g, one);
    serve_guest_go(g, two);
    serve_guest_go(g, three);
    serve_guests_free(g);
    for (int i = 0; i < 2; i++) close(late[i]), close(slow[i]), close(asked[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_connections_of_an_address), cmocka_unit_test(test_late_heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
