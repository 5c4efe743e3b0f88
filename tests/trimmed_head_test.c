/* SPDX-License-Identifier: Apache-2.0 */
/* trimmed_head_test.c - what a draft head borrows of its target, and heads that draft the likeliest tokens alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "draft/eagle3_head.h"
#include "engine/engine.h"
#include "fixture.h"

#include "random_head.h" /* last: it calls a type "bytes" */

#define STORIES "models/stories260K/stories260K.f16.gguf"

/* ---- what it borrows -------------------------------------------------------------------------------------------------- */

/* The model of an EAGLE-3 head. */
static void load_head(hn_model *head, const head_form *f, const hunch_model *m) {
    const hn_model *t = &m->target;
    const hn_target_info target = {.model = t, .vocab = t->arch.vocab, .hidden = t->arch.hidden, .layers = t->arch.layers};
    const hn_head_load load = {.target = t, .convert = true, .weights = HN_Q8_0};
    hn_spec spec;
    hn_source *src = NULL;
    hn_arch a = {0};
    hn_head_taps taps;
    int32_t *ids = NULL;
    must(hn_spec_parse(&spec, "eagle3:head", err));
    must(hn_source_open_head(&src, head_write_form(f, test_path("head")), err));
    const hn_head_names names = hn_head_find_names(src);
    must(hn_head_read(&a, src, &names, &t->arch, err));
    must(hn_eagle3_describe(&a, src, &names, &spec, &target, &taps, err));
    must(hn_head_read_ids(src, &names, a.vocab, t->arch.vocab, &ids, err));
    must(hn_head_open(head, src, &a, &load, ids, err));
    hn_free(ids);
    hn_source_close(&src);
    hn_spec_fini(&spec);
}

/* Rows that a head borrows of a mapped model lie in that one's files, be they the embedding's alone: a pass looks whether those
 * are still what they were. What has all matrices of its own does not. */
static void test_borrowed_files(void **state) {
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        hunch_model *m = open_model_as(data_path(STORIES), NULL, 1, HUNCH_PRECISION_NATIVE, mapped);
        hn_model head;
        assert_int_equal(m->target.files != NULL, mapped);
        load_head(&head, &STORIES_EAGLE3, m);
        assert_true(head.arch.draft_head.own_output && !head.arch.draft_head.own_embedding);
        assert_ptr_equal(head.files, m->target.files);
        hn_model_close(&head);
        load_head(&head, &STORIES_PEAGLE, m);
        assert_true(head.arch.draft_head.own_output && head.arch.draft_head.own_embedding);
        assert_null(head.files);
        hn_model_close(&head);
        hunch_model_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_borrowed_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
