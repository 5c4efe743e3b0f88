/* SPDX-License-Identifier: Apache-2.0 */
/* learn_student_test.c - the initial weights of a draft model: the numbers of its file under transformers' names,
 * layers spread over all of them; models that cannot be trained are refused with the reason; missing memory gives a
 * message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/mem.h"
#include "fixture.h"
#include "train/learn/learn_student_file.h"

enum { VOCAB = 512, LONGEST = 512 };
static const int32_t ids[] = {3, 17, 511};

/* Part `part` of the student is the tensor of the same name, of layer `from`. */
static void same_part(hn_source *src, const hn_student *s, int part, int from) {
    char name[80], of[120];
    uint16_t stored[LONGEST];
    float want[LONGEST];
    const hn_mat m = hn_student_part_of(&s->shape, part, s->begin);
    if (m.rows == 0) return;
    hn_student_part_name(&s->shape, part, name);
    const char *dot = strchr(name + strlen("model.layers."), '.');
    if (strncmp(name, "model.layers.", strlen("model.layers.")) != 0)
        snprintf(of, sizeof of, "%s", name);
    else
        snprintf(of, sizeof of, "model.layers.%d%s", from, dot);
    hn_tensor *t = hn_source_take(src, of);
    if (!t) fail_msg("no tensor %s", of);
    assert_int_equal(t->dtype, HN_BF16);
    assert_int_equal(t->dims[0], m.cols);
    assert_true(m.cols <= LONGEST);
    for (int r = 0; r < m.rows; r++) {
        must(hn_source_read(src, t, (size_t)r * (size_t)m.cols * 2, (size_t)m.cols * 2, stored, err));
        hn_dequantise(HN_BF16, stored, (size_t)m.cols, want);
        for (int c = 0; c < m.cols; c++) assert_true(hn_mat_row(m, r)[c] == want[c]);
    }
}

/* from: the file's layer of each kept one. */
static void check_read(const char *folder, int layers, const int *from, bool head_norms) {
    hn_student s;
    hn_source *src;
    must(hn_student_read(&s, data_path(folder), layers, VOCAB, ids, 3, err));
    must(hn_source_open(&src, data_path(folder), err));
    assert_int_equal(s.shape.layers, layers);
    assert_int_equal(s.shape.head_norms, head_norms);
    for (int part = 0; part < hn_student_parts(&s.shape); part++)
        same_part(src, &s, part, part / HN_STUDENT_LAYER_PARTS < layers ? from[part / HN_STUDENT_LAYER_PARTS] : 0);
    assert_int_equal(s.rows.kept, 3);
    assert_int_equal(s.whole.output != NULL, !s.shape.tied);
    hn_source_close(&src);
    hn_student_free(&s);
}

static void test_read(void **state) {
    (void)state;
    hn_arch a = {0};
    hn_source *src;
    must(hn_source_open(&src, data_path("goldens/qwen3-dense"), err));
    must(hn_arch_read(&a, src, err));
    const int ends[] = {0, a.layers - 1}, all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    assert_in_range(a.layers, 2, 8);
    check_read("goldens/qwen3-dense", 2, ends, true);
    check_read("goldens/qwen3-dense", a.layers, all, true);
    hn_arch_fini(&a);
    hn_source_close(&src);
}

static void refused(const char *folder, int layers, int vocab, const char *says) {
    hn_student s;
    hunch_error why;
    assert_int_equal(hn_student_read(&s, data_path(folder), layers, vocab, ids, 3, &why), HUNCH_REFUSED);
    if (!strstr(why.message, says) || !strstr(why.message, folder)) fail_msg("%s: %s", folder, why.message);
    assert_null(s.begin);
}

static void test_refused(void **state) {
    (void)state;
    refused("goldens/qwen2-bias", 1, VOCAB, "biases");
    refused("goldens/gemma3_text-local", 1, VOCAB, "a model with");
    refused("goldens/granite-mults", 1, VOCAB, "scaled embeddings, branches or logits");
    refused("goldens/mistral-sliding", 1, VOCAB, "windows");
    refused("goldens/mixtral-top2", 1, VOCAB, "layers that are not attention and SwiGLU");
    refused("goldens/qwen3-yarn", 1, VOCAB, "a rotation that is scaled");
    refused("goldens/qwen3-dense", 1, VOCAB + 1, "expected the target's 513");
    refused("goldens/qwen3-dense", 60, VOCAB, "expected --layers of at most");
}

static void test_without_memory(void **state) {
    (void)state;
    hn_student s;
    hunch_error why;
    int64_t calls = 0;
    int failures = 0;
    for (int64_t at = -1; at < calls; at++) { /* the first run counts them */
        hn_fault_arm(HN_FAULT_ALLOC, at < 0 ? INT64_MAX : at, false);
        const hunch_status st = hn_student_read(&s, data_path("goldens/qwen3-dense"), 2, VOCAB, ids, 3, &why);
        if (at < 0) calls = (int64_t)hn_fault_count(HN_FAULT_ALLOC);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        failures += st != HUNCH_OK;
        if (st) assert_null(s.begin);
        hn_student_free(&s);
    }
    assert_true(failures >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
