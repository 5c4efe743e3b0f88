/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c - JSON: what is read is written, and read again as the same values, large numbers by their digits. */
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "calls/json_scan.h"
#include "fuzz.h"

/* Every large number is one of JSON that jansson refuses. */
static void numbers_check(json_t *value) {
    const char *digits = hn_json_digits(value), *key;
    json_t *one;
    size_t i;
    if (digits) {
        FUZZ_MUST(hn_json_is_number(value) && !hn_json_is_object(value) &&
                  strspn(digits, "-+.eE0123456789") == strlen(digits));
        FUZZ_MUST(!json_loads(digits, JSON_DECODE_ANY, NULL));
        return;
    }
    json_array_foreach(value, i, one) numbers_check(one);
    json_object_foreach(value, key, one) numbers_check(one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_ANY;
    json_error_t why;
    json_t *first = hn_json_load((const char *)data, size, flags, &why);
    if (!first) {
        FUZZ_MUST(why.text[0]);
        return 0;
    }
    /* What takes the place of a number joins nothing beside it. (jansson ends at a byte 0.) */
    FUZZ_MUST(memchr(data, 0, size) || hn_json_is_value((const char *)data, size));
    numbers_check(first);
    char *text = hn_json_dump(first, JSON_ENCODE_ANY);
    FUZZ_MUST(text);
    json_t *second = hn_json_load(text, strlen(text), flags, &why);
    FUZZ_MUST(second && json_equal(first, second));
    char *again = hn_json_dump(second, JSON_ENCODE_ANY);
    FUZZ_MUST(again && strcmp(text, again) == 0);
    hn_free(text);
    hn_free(again);
    json_decref(first);
    json_decref(second);
    return 0;
}
