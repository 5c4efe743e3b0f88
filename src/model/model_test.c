/* SPDX-License-Identifier: Apache-2.0 */
/* model_test.c - a model with one matrix of a type that has no kernels: refused by name when it is loaded and when it
 * is inspected. Results of loaded models are tested in tests/. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/model.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

#define TINY HUNCH_TEST_DATA "/models/babyllama105/babyllama105.q8_0.gguf"
#define MATRIX "blk.2.ffn_down.weight"

/* The tiny model with another number in its matrix's type. Every type here needs fewer bytes than Q8_0. */
static hn_source *retyped_open(uint32_t ggml_type) {
    char *file;
    size_t size, name = sizeof MATRIX - 1;
    assert_int_equal(hn_file_read(TINY, 1 << 24, &file, &size, NULL), HUNCH_OK);
    char *at = memmem(file, size, MATRIX, name);
    assert_non_null(at);
    at += name + 4 + 2 * 8; /* after the name: count of dimensions, two of them */
    assert_int_equal(*at, 8);
    memcpy(at, &ggml_type, sizeof ggml_type);
    test_file_write(test_path("retyped.gguf"), file, size);
    hn_free(file);
    hn_source *s = NULL;
    hunch_error err = {0};
    if (hn_source_open(&s, test_path("retyped.gguf"), &err) != HUNCH_OK) fail_msg("%s", err.message);
    return s;
}

static hunch_status load(hn_source *s, hunch_error *err) {
    const hn_model_load how = {.threads = 1, .isa = HN_ISA_REF};
    hn_model m = {0};
    hunch_status status = hn_model_open(&m, s, &how, err);
    if (status == HUNCH_OK) hn_model_close(&m);
    return status;
}

static void test_types_without_kernels_are_refused(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
    } cases[] = {{16, "IQ2_XXS"}, {24, "I8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[200];
        hunch_error err = {0};
        hn_arch arch;
        snprintf(want, sizeof want, "tensor " MATRIX " has type %s; models run with weights of these types: F32, F16, ",
                 cases[i].name);
        hn_source *s = retyped_open(cases[i].type);
        assert_int_equal(load(s, &err), HUNCH_REFUSED);
        if (!strstr(err.message, want)) fail_msg("expected \"%s\", got \"%s\"", want, err.message);
        err = (hunch_error){0};
        assert_int_equal(hn_model_mark(s, &arch, NULL, &err), HUNCH_REFUSED);
        assert_non_null(strstr(err.message, want));
        hn_source_close(&s);
    }
}

/* The same file loads with the supported types. */
static void test_types_with_kernels_load(void **state) {
    (void)state;
    static const uint32_t types[] = {2, 3, 6, 7, 8, 20, 39}; /* all that have blocks of 32: Q4_0 to MXFP4 */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hunch_error err = {0};
        hn_source *s = retyped_open(types[i]);
        if (load(s, &err) != HUNCH_OK) fail_msg("type %u: %s", types[i], err.message);
        hn_source_close(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_without_kernels_are_refused),
        cmocka_unit_test(test_types_with_kernels_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
