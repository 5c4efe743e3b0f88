/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h - reads the results of reference implementations: golden.json and the tensors of golden.safetensors. Include after
 * cmocka and fixture.h. */
#ifndef HN_TESTS_GOLDEN_H
#define HN_TESTS_GOLDEN_H
#include <jansson.h>

#include "fixture.h"
#include "format/source.h"

/* A tensor of the file, f32 only. */
typedef struct golden_tensor {
    const float *data;
    size_t n, cols;
} golden_tensor;

HELPER golden_tensor get_golden(hn_source *f, const char *name) {
    const hn_tensor *t = hn_source_take(f, name);
    assert_non_null(t);
    assert_true(t->known && t->dtype == HN_F32);
    return (golden_tensor){t->data, t->bytes / sizeof(float), t->dims[0]};
}

HELPER size_t ids_of(const json_t *a, hunch_token *out) {
    for (size_t i = 0; i < json_array_size(a); i++) out[i] = (hunch_token)json_integer_value(json_array_get(a, i));
    return json_array_size(a);
}

HELPER double largest_difference(const float *a, const float *b, size_t n) {
    double d = 0;
    for (size_t i = 0; i < n; i++) d = fmax(d, fabs((double)a[i] - (double)b[i]));
    return d;
}
#endif
