/* SPDX-License-Identifier: Apache-2.0 */
/* keyed_hash_test.c - the values of the reference implementation; a key is another one each time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/keyed_hash.h"

static void test_vectors(void **state) {
    (void)state;
    static const struct {
        size_t len;
        uint64_t hash;
    } known[] = {{0, 0x726FDB47DD0E0E31u}, {1, 0x74F839C593DC67FDu}, {8, 0x93F5F5799A932462u}, {15, 0xA129CA6149BE45E5u}};
    const uint64_t key[2] = {0x0706050403020100u, 0x0F0E0D0C0B0A0908u};
    unsigned char bytes[16];
    for (int i = 0; i < 16; i++) bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) assert_true(hn_keyed_hash(key, bytes, known[i].len) == known[i].hash);
}

static void test_keys(void **state) {
    (void)state;
    uint64_t a[2] = {0}, b[2] = {0};
    hn_hash_key(a);
    hn_hash_key(b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    assert_true(hn_keyed_hash(a, "text", 4) != hn_keyed_hash(b, "text", 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors), cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
