/* SPDX-License-Identifier: Apache-2.0 */
/* serve_head_test.c - heads with two meanings, names in Host and origins of pages, case by case. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/http/serve_head.h"

/* A head of lines with "\n" between them, as "Name:value". Whether it is clear. */
static bool is_clear(const char *lines, bool old) {
    static char text[20][100];
    serve_head h = {0};
    serve_error err = {0};
    int n = 0;
    for (const char *at = lines; *at; n++) {
        const size_t len = strcspn(at, "\n"), name = strcspn(at, ":");
        assert_true(n < 20 && len - name - 1 < sizeof text[n]);
        memcpy(text[n], at + name + 1, len - name - 1);
        text[n][len - name - 1] = 0;
        serve_head_line(&h, at, name, text[n], len - name - 1);
        at += len + (at[len] == '\n');
    }
    const bool clear = serve_head_clear(&h, old, &err);
    assert_int_equal(err.http, clear ? 0 : 400);
    assert_true(clear || err.message[0]);
    return clear;
}

static void test_heads_have_one_meaning(void **state) {
    (void)state;
    static const char *const clear[] = {"Host:a", "host:a\nContent-Length:0",
                                        "Host:[::1]:80\nTransfer-Encoding:CHUNKED", "Host:a:80\nX-Y:a\tb",
                                        "Host:a\nOrigin:null", "Host:a\nContent-Length:0040"};
    static const char *const odd[] = {"", "X:y", "Host:a\nHost:a", "Host:", "Host:a b", "Host:a/b", "Host:u@a", "Host:a,b",
                                      "Host:a\nContent-Length:5\nContent-Length:5", "Host:a\nContent-Length:5\nTransfer-Encoding:chunked",
                                      "Host:a\nContent-Length:+5", "Host:a\nContent-Length:-5",
                                      "Host:a\nContent-Length:5,5", "Host:a\nContent-Length:",
                                      "Host:a\nContent-Length:0x5", "Host:a\nContent-Length :40", "Host:a\n:x",
                                      "Host:a\nX(Y):z", "Host:a\nX Y:z",
                                      "Host:a\nTransfer-Encoding:xchunked", "Host:a\nTransfer-Encoding:chunked, identity",
                                      "Host:a\nTransfer-Encoding:gzip, chunked",
                                      "Host:a\nTransfer-Encoding:chunked\nTransfer-Encoding:chunked",
                                      "Host:a\nX:a\rb", "Host:a\nX:a\001b", "Host:a\nX:a\177b", "Host:a\nOrigin:http://a\nOrigin:http://a"};
    for (size_t i = 0; i < sizeof clear / sizeof *clear; i++) assert_true(is_clear(clear[i], false));
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        if (is_clear(odd[i], false)) fail_msg("taken: %s", odd[i]);
    }
    assert_true(is_clear("X:y", true) && is_clear("Host:a", true));
    assert_false(is_clear("Host:a\nTransfer-Encoding:chunked", true));
    serve_head h = {0};
    serve_error err = {0};
    serve_head_line(&h, "Host", 4, "a", 1);
    serve_head_line(&h, "X", 1, "a\0b", 3);
    assert_false(serve_head_clear(&h, false, &err));
}

static bool may(const serve_callers *c, const char *host, const char *origin) {
    const serve_head h = {.hosts = host != NULL, .host = host, .origins = origin != NULL, .origin = origin};
    serve_error err = {0};
    const bool ok = serve_callers_admit(c, &h, &err);
    assert_int_equal(err.http, ok ? 0 : 403);
    return ok;
}

static void test_names_of_this_machine(void **state) {
    (void)state;
    static const char *const name = "Llm.Example.org.";
    static const char *const ours[] = {"localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1:1", "127.9.9.9",
                                       "[::1]:8080", "[::ffff:127.0.0.1]",
                                       "a.localhost:80", "box.local", "host.docker.internal:8080", "10.0.0.1",
                                       "172.31.1.1:80", "192.168.1.2",
                                       "169.254.0.1", "100.64.1.1", "[fd00::1]", "[fe80::1%25eth0]", "llm.example.org:8080"};
    static const char *const foreign[] = {"evil.example:8080", "evil.org", "localhost.evil.org", "127.0.0.1.evil.org", "local", "internal",
                                          ".local", "notlocalhost", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2001:db8::1]", "[::2]", "x",
                                          "llm.example.org.evil.org", "localhost:x", "localhost:80:80", "[::1", "2130706433", "0x7f000001"};
    hunch_error err = {0};
    serve_callers *c, *open;
    assert_int_equal(serve_callers_new(&c, NULL, 0, &name, 1, true, &err), HUNCH_OK);
    assert_int_equal(serve_callers_new(&open, NULL, 0, NULL, 0, false, &err), HUNCH_OK);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!may(c, ours[i], NULL)) fail_msg("refused: %s", ours[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (may(c, foreign[i], NULL)) fail_msg("taken: %s", foreign[i]);
        assert_true(may(open, foreign[i], NULL));
    }
    assert_true(may(c, NULL, NULL));
    serve_callers_free(c);
    serve_callers_free(open);
}

static void test_origins(void **state) {
    (void)state;
    static const char *const cors[] = {"https://chat.example.org, app://obsidian.md ,vscode-webview://1a2b", "null",
                                       "http://b.example:81/"};
    hunch_error err = {0};
    serve_callers *c, *none, *any;
    assert_int_equal(serve_callers_new(&c, cors, 3, NULL, 0, true, &err), HUNCH_OK);
    assert_int_equal(serve_callers_new(&none, NULL, 0, NULL, 0, false, &err), HUNCH_OK);
    assert_int_equal(serve_callers_new(&any, (const char *[]){"*"}, 1, NULL, 0, true, &err), HUNCH_OK);
    static const char *const listed[] = {"https://chat.example.org", "https://CHAT.example.org:443",
                                         "app://obsidian.md", "vscode-webview://1a2b",
                                         "null", "http://b.example:81"};
    static const char *const others[] = {"http://chat.example.org", "https://chat.example.org:444", "https://chat.example.org.evil.com",
                                         "https://evil.org", "https://evilchat.example.org", "app://other",
                                         "http://b.example", "http://b.example:810",
                                         "", "chat.example.org", "NULL", "file://", "https://chat.example.org/x",
                                         "https://a@chat.example.org"};
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        assert_true(may(c, "localhost:8080", listed[i]));
        assert_string_equal(serve_callers_allowed(c, listed[i]), listed[i]);
        assert_false(may(none, "localhost:8080", listed[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (may(c, "localhost:8080", others[i])) fail_msg("taken: %s", others[i]);
        assert_null(serve_callers_allowed(c, others[i]));
        assert_true(may(any, "localhost:8080", others[i]));
        assert_string_equal(serve_callers_allowed(any, others[i]), "*");
    }
    assert_true(may(none, "localhost:8080", "http://localhost:8080") && may(none, "localhost:8080", "https://localhost:8080"));
    assert_true(may(none, "llm.example.org", "https://llm.example.org") && may(none, "llm.example.org:443", "https://llm.example.org"));
    assert_true(may(none, "LLM.example.org", "https://llm.EXAMPLE.org:443") && may(none, "[::1]:80", "http://[::1]"));
    assert_false(may(none, "localhost:8080", "http://localhost") || may(none, "localhost:8080", "http://localhost:8081"));
    assert_false(may(none, "localhost:8080", "app://localhost:8080") || may(none, "localhost:8080", "http://127.0.0.1:8080"));
    assert_false(may(any, "evil.org", "http://evil.org"));
    assert_null(serve_callers_allowed(c, NULL));
    serve_callers_free(c);
    serve_callers_free(none);
    serve_callers_free(any);
}

static void test_flags_that_name_nobody(void **state) {
    (void)state;
    static const char *const cors[] = {"", ",", "https://a,", "a.example.org", "https://", "https://a/b",
                                       "https://a?b", "https://*.a", "a b", "https://a:x",
                                       "https://a:99999", "http:/a", "://a", "**", "https://a\nb",
                                       "https://b\xC3\xBC" "cher.de", "https://a\xff"};
    static const char *const names[] = {"", "a:80", "a b", "http://a", "a/b", "a,b", "*.a", "a\n", "b\xC3\xBC" "cher.de", "a|b", "[::1"};
    for (size_t i = 0; i < sizeof cors / sizeof *cors; i++) {
        serve_callers *c;
        hunch_error err = {0};
        if (serve_callers_new(&c, &cors[i], 1, NULL, 0, true, &err) != HUNCH_USAGE) fail_msg("taken: --cors %s", cors[i]);
        assert_non_null(strstr(err.message, "--cors"));
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        serve_callers *c;
        hunch_error err = {0};
        if (serve_callers_new(&c, NULL, 0, &names[i], 1, true, &err) != HUNCH_USAGE) fail_msg("taken: --host-name %s", names[i]);
        assert_non_null(strstr(err.message, "--host-name"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads_have_one_meaning), cmocka_unit_test(test_names_of_this_machine), cmocka_unit_test(test_origins),
        cmocka_unit_test(test_flags_that_name_nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
