/* SPDX-License-Identifier: Apache-2.0 */
/* target_rows_test.c - a trainer reads the same matrices of a model that a head's drafter borrows: the embedding as
 * stored, the output times the model's logit scale, the norm with its addend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/dtype.h"
#include "engine/engine.h"
#include "fixture.h"
#include "train/data/target_rows.h"

static void same_numbers(hn_source *src, const char *name, int32_t row, double scale, double more, const float *got,
                         int n) {
    hn_tensor *t;
    uint16_t stored[256];
    float want[256];
    t = hn_source_take(src, name);
    assert_non_null(t);
    assert_int_equal(t->dtype, HN_BF16);
    must(hn_source_read(src, t, (size_t)row * (size_t)n * 2, (size_t)n * 2, stored, err));
    hn_dequantise(HN_BF16, stored, (size_t)n, want);
    for (int i = 0; i < n; i++)
        assert_true(fabs((double)want[i] * scale + more - (double)got[i]) <= 1e-6 * (1 + fabs((double)got[i])));
}

static void check(const char *folder, bool scaled_embedding, bool scaled_logits, double norm_more) {
    static const int32_t ids[] = {3, 17, 511};
    hunch_model *m = open_model(data_path(folder), "best", 1, HUNCH_PRECISION_NATIVE);
    const hn_arch *a = &m->target.arch;
    hn_target_rows r;
    hn_source *src;
    must(hn_target_rows_read(&r, data_path(folder), a, ids, 3, err));
    must(hn_source_open(&src, data_path(folder), err));
    assert_int_equal((double)a->embed_scale != 1.0, scaled_embedding);
    assert_int_equal((double)a->logit_scale != 1.0, scaled_logits);
    assert_true(a->tied && a->hidden <= 256);
    for (int i = 0; i < 3; i++) {
        same_numbers(src, "model.embed_tokens.weight", ids[i], 1, 0, r.embedding + ids[i] * a->hidden, a->hidden);
        same_numbers(src, "model.embed_tokens.weight", ids[i], (double)a->logit_scale, 0, r.output + i * a->hidden,
                     a->hidden);
    }
    same_numbers(src, "model.norm.weight", 0, 1, norm_more, r.norm, a->hidden);
    hn_source_close(&src);
    hn_target_rows_free(&r);
    hunch_model_close(&m);
}

static void test_rows(void **state) {
    (void)state;
    check("goldens/gemma3_text-local", true, false, 1);
    check("goldens/granite-mults", true, true, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
