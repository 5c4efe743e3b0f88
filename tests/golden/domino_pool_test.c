/* SPDX-License-Identifier: Apache-2.0 */
/* domino_pool_test.c - the pool of a Domino head: the first drafts are those of all outputs; behind them as many tokens have logits as the
 * pool has, the same ones at each place, those of a smaller pool among those of a larger one, all with the bits that they have without a
 * pool after the same tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "golden/golden.h"
#include "model/folder_for_tests.h"

#define HEAD "goldens-heads/domino-early"
enum { DEPTH = 5, PLAIN = 2, VOCAB = 480, MOST_TEXT = 64 }; /* of that head */

typedef struct chain {
    int n;
    hunch_token token[DEPTH];
    float logits[DEPTH][VOCAB];
} chain;

static void take(void *user, int level, const float *logits, int vocab) {
    chain *l = user;
    assert_true(vocab == VOCAB && level == l->n && level < DEPTH);
    memcpy(l->logits[l->n++], logits, sizeof l->logits[0]);
}

static void draft(hunch_model *m, int pool, chain *l) {
    char spec[700];
    hunch_token ids[MOST_TEXT];
    hunch_draft_result r;
    json_t *golden = json_load_file(data_path(HEAD "/golden.json"), 0, NULL);
    const size_t n = ids_of(json_object_get(json_array_get(json_object_get(golden, "rounds"), 0), "context"), ids);
    snprintf(spec, sizeof spec, "domino:%s,pool=%d", data_path(HEAD "/head"), pool);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    *l = (chain){0};
    must(hunch_draft(e, ids, n, DEPTH, -1, NULL, take, l, &r, err));
    assert_true(r.n == DEPTH && l->n == DEPTH);
    for (int i = 0; i < DEPTH; i++) l->token[i] = r.node[i].token;
    hunch_free(r.node);
    hunch_engine_close(&e);
    json_decref(golden);
}

static void check_pool(const chain *all, const chain *larger, const chain *l, int pool) {
    assert_memory_equal(l->logits, all->logits, sizeof l->logits[0] * PLAIN);
    for (int k = PLAIN; k < DEPTH; k++) {
        int there = 0;
        bool same_before = true;
        for (int i = 0; i < k; i++) same_before &= l->token[i] == all->token[i];
        for (int i = 0; i < VOCAB; i++) {
            if (!(l->logits[k][i] > -INFINITY)) continue;
            there++;
            assert_true(larger->logits[k][i] > -INFINITY && l->logits[PLAIN][i] > -INFINITY);
            if (same_before) assert_true(l->logits[k][i] == all->logits[k][i]);
        }
        assert_int_equal(there, pool);
        assert_true(l->logits[k][l->token[k]] > -INFINITY);
    }
}

static void test_pools(void **state) {
    static chain all, many, few;
    (void)state;
    for (int f32 = 0; f32 < 2; f32++) {
        hunch_model *m = open_model(data_path("goldens-heads/targets/llama-a"), "best", 2,
                                    f32 ? HUNCH_PRECISION_F32 : HUNCH_PRECISION_NATIVE);
        draft(m, 1000, &all);
        draft(m, 200, &many);
        draft(m, 17, &few);
        for (int i = 0; i < VOCAB; i++) assert_true(all.logits[PLAIN][i] > -INFINITY);
        check_pool(&all, &all, &many, 200);
        check_pool(&all, &many, &few, 17);
        hunch_model_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pools)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
