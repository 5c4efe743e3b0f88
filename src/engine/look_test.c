/* SPDX-License-Identifier: Apache-2.0 */
/* look_test.c - looking at a draft where there is hardly room for one: at the end of the context, with every drafter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static const hunch_token prompt[] = {1, 403, 407, 261, 378, 432, 403, 407, 261, 378};
enum { N = sizeof prompt / sizeof *prompt };
static const char *const drafts[] = {"ngram,min=1", "ngram,form=mod,max=1,min=1", "suffix", "cache", "forced,accept=1,depth=8", "MODEL"};

/* A draft behind the whole prompt in a context of so many rows; the deepest node is given. */
static hunch_status look(hunch_model *m, const char *draft, int context, int accept, hunch_draft_result *out, int *deepest) {
    static char self[600];
    int depth[64];
    hunch_error why;
    snprintf(self, sizeof self, "model:%s,depth=8", data_path("models/stories260K/stories260K.f16.gguf"));
    hunch_engine *e = open_engine(m, strcmp(draft, "MODEL") ? draft : self, 1, 64, HUNCH_KV_DEFAULT, 64, context);
    const hunch_status st = hunch_draft(e, prompt, N, 8, accept, NULL, NULL, NULL, out, &why);
    *deepest = 0;
    for (int i = 0; i < out->n; i++) {
        depth[i] = 1 + (out->node[i].parent < 0 ? 0 : depth[out->node[i].parent]);
        if (depth[i] > *deepest) *deepest = depth[i];
    }
    hunch_engine_close(&e);
    return st;
}

/* Behind a prompt of N tokens and its root a context of N + 1 + d rows has places for d drafts. */
static void test_end_of_context(void **state) {
    (void)state;
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 2, HUNCH_PRECISION_NATIVE);
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        for (int context = N; context < N + 8; context++)
            for (int accept = 0; accept < 4; accept++) {
                hunch_draft_result out;
                int deepest;
                const int places = context - N - 1;
                const hunch_status st = look(m, drafts[i], context, accept, &out, &deepest);
                if (st) { /* fewer drafts than were to be accepted */
                    assert_int_equal(st, HUNCH_USAGE);
                    assert_true(accept > 0);
                } else {
                    assert_true(out.root >= 0 && out.root < 512);
                    assert_true(deepest <= (places > 0 ? places : 0));
                    if (i >= 4 && accept == 0 && places > 1) assert_true(deepest > 0); /* these two always have one */
                }
                hunch_free(out.node);
            }
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_end_of_context)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
