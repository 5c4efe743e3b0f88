/* SPDX-License-Identifier: Apache-2.0 */
/* serve_address_test.c - addresses of texts and of sockets: what is one, which are the same, of whom they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "server/http/serve_address.h"

static void test_texts(void **state) {
    static const struct {
        const char *text, *as; /* NULL: none */
        bool loopback, private;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1", true, false},      {"127.9.9.9", "127.9.9.9", true, false},
        {"::1", "::1", true, false},                  {"[::1]", "::1", true, false},
        {"::ffff:127.0.0.1", "127.0.0.1", true, false}, {"[::ffff:10.1.2.3]", "10.1.2.3", false, true},
        {"172.16.0.1", "172.16.0.1", false, true},    {"172.32.0.1", "172.32.0.1", false, false},
        {"192.168.1.1", "192.168.1.1", false, true},  {"100.64.0.1", "100.64.0.1", false, true},
        {"100.128.0.1", "100.128.0.1", false, false}, {"169.254.1.1", "169.254.1.1", false, true},
        {"fe80::1%eth0", "fe80::1", false, true},     {"[fd00::2]", "fd00::2", false, true},
        {"2001:DB8::5", "2001:db8::5", false, false}, {"8.8.8.8", "8.8.8.8", false, false},
        {"", NULL, false, false},                     {"localhost", NULL, false, false},
        {"127.1", NULL, false, false},                {"1.2.3.4.5", NULL, false, false},
        {"::1::", NULL, false, false},                {"[", NULL, false, false},
        {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", NULL, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const serve_address a = serve_address_read(cases[i].text);
        char text[INET6_ADDRSTRLEN + 1];
        serve_address_text(&a, text);
        if (strcmp(text, cases[i].as ? cases[i].as : "") != 0) fail_msg("%s: is %s", cases[i].text, text);
        if (serve_address_is_loopback(&a) != cases[i].loopback || serve_address_is_private(&a) != cases[i].private)
            fail_msg("%s: loopback, private", cases[i].text);
        const serve_address again = serve_address_read(text);
        assert_true(serve_address_same(&a, &again) == (cases[i].as != NULL));
    }
}

/* A socket that takes both kinds says IPv4 in IPv6: the same client. */
static void test_sockets(void **state) {
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const struct sockaddr other = {.sa_family = AF_UNIX};
    (void)state;
    inet_pton(AF_INET, "192.0.2.7", &four.sin_addr);
    inet_pton(AF_INET6, "::ffff:192.0.2.7", &six.sin6_addr);
    const serve_address a = serve_address_of((const struct sockaddr *)&four), b = serve_address_of((const struct sockaddr *)&six),
                        c = serve_address_of(&other), d = serve_address_read("192.0.2.8");
    assert_true(serve_address_same(&a, &b));
    assert_false(serve_address_same(&a, &d) || serve_address_same(&c, &c) || c.family);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_sockets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
