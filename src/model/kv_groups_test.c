/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups_test.c - the group of each layer, and its index there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "model/arch/delta_desc.h"
#include "model/kv_groups.h"

enum { MOST = 12 };

/* A model of these kinds of layers, one letter each: lower case has a window; S and T are recurrent, P too beside attention, - has none. */
static hn_arch made_of(const char *kinds, hn_layer_desc layer[MOST]) {
    hn_arch a = {.layer = layer};
    for (; kinds[a.layers]; a.layers++) {
        const int kind = kinds[a.layers] | 0x20;
        const bool recurrent = strchr("STP", kinds[a.layers]);
        layer[a.layers] = (hn_layer_desc){.mixer = {{.kind = &hn_mixer_attention}},
                                          .heads = 8,
                                          .kv_heads = kind == 'n' ? 1 : 2,
                                          .head_dim = kind == 'd' ? 64 : 32,
                                          .window = kinds[a.layers] != kind ? 0
                                                    : kind == 'x'           ? 20
                                                                            : 10};
        if (kind == '-') layer[a.layers].mixer[0].kind = NULL;
        if (!recurrent) continue;
        const int m = kind == 'p'; /* beside attention */
        *(hn_delta_desc *)(void *)layer[a.layers].mixer[m].own =
            (hn_delta_desc){.key_heads = 1, .value_heads = kind == 't' ? 4 : 2, .key_dim = 8, .value_dim = 16, .taps = 4};
        layer[a.layers].mixer[m].kind = &hn_mixer_delta;
    }
    return a;
}

static void test_groups(void **state) {
    (void)state;
    static const struct {
        const char *kinds;
        int n, layers[HN_MODEL_GROUPS], window[HN_MODEL_GROUPS];
        const char *group, *index; /* of each layer */
    } cases[] = {{"AAAA", 1, {4}, {0}, "0000", "0123"},
                 {"aaaa", 1, {4}, {10}, "0000", "0123"},
                 {"aaaaaAaaaaaA", 2, {2, 10}, {0, 10}, "111110111110", "012340567891"},
                 {"axAxa", 3, {1, 2, 2}, {0, 10, 20}, "12021", "00011"},
                 {"NDNA", 3, {2, 1, 1}, {0, 0, 0}, "0102", "0010"},
                 {"adAD", 4, {1, 1, 1, 1}, {0, 0, 10, 10}, "2301", "0000"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        hn_layer_desc layer[MOST];
        hn_layer_place place[MOST];
        hn_cache_group g[HN_MODEL_GROUPS];
        const hn_arch a = made_of(cases[k].kinds, layer);
        assert_int_equal(hn_kv_groups(hn_layers_of(&a), HN_F16, g, place), cases[k].n);
        for (int i = 0; i < cases[k].n; i++) {
            assert_int_equal(g[i].layers, cases[k].layers[i]);
            assert_int_equal(g[i].window, cases[k].window[i]);
            assert_int_equal(g[i].type, HN_F16);
            assert_non_null(g[i].name);
        }
        for (int i = 0; i < a.layers; i++) {
            const hn_cache_group *of = &g[place[i].kept[0].group];
            assert_int_equal(place[i].kept[0].group, cases[k].group[i] - '0');
            assert_int_equal(place[i].kept[0].index, cases[k].index[i] - '0');
            assert_true(of->kv_heads == layer[i].kv_heads && of->head_dim == layer[i].head_dim);
        }
        assert_int_equal(hn_kv_groups(hn_layers_of(&a), HN_F16, g, NULL), cases[k].n);
    }
}

static void test_too_many_kinds(void **state) {
    (void)state;
    hn_layer_desc layer[MOST];
    hn_cache_group g[HN_MODEL_GROUPS];
    hn_arch a = made_of("aaaaaaaaa", layer);
    _Static_assert(HN_MODEL_GROUPS == 8, "one kind less than layers");
    for (int i = 0; i < a.layers; i++) layer[i].window = 10 + i;
    assert_int_equal(hn_kv_groups(hn_layers_of(&a), HN_F16, g, NULL), 0);
    a.layers--;
    assert_int_equal(hn_kv_groups(hn_layers_of(&a), HN_F16, g, NULL), HN_MODEL_GROUPS);
}

/* Recurrent layers of several shapes, beside attention or alone, in parallel with it, and layers that keep nothing. */
static void test_states(void **state) {
    (void)state;
    static const struct {
        const char *kinds;
        int n;
        const char *turns; /* of the groups: Attention, State, Window, Rows */
    } cases[] = {{"SASA", 3, "ASR"}, {"SaS", 3, "WRS"}, {"SS", 2, "RS"}, {"STA", 5, "ASSRR"}, {"STa-", 5, "WRRSS"}, {"A-P-", 3, "ASR"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        hn_layer_desc layer[MOST];
        hn_layer_place place[MOST];
        hn_cache_group g[HN_MODEL_GROUPS];
        int parts[HN_MODEL_GROUPS] = {0};
        const hn_arch a = made_of(cases[k].kinds, layer);
        const hn_layers of = hn_layers_of(&a);
        uint64_t bytes = 0;
        assert_int_equal(hn_kv_groups(of, HN_F16, g, place), cases[k].n);
        for (int i = 0; i < cases[k].n; i++) {
            const char turn = g[i].kind == HN_CACHE_STATE ? 'S' : g[i].kind == HN_CACHE_ROWS ? 'R' : g[i].window ? 'W' : 'A';
            assert_int_equal(turn, cases[k].turns[i]);
            if (turn == 'S') bytes += (uint64_t)g[i].units * g[i].unit_bytes;
            if (turn == 'R') assert_true(g[i].back == HN_MAX_ROWS && g[i].window == 4);
        }
        assert_true(hn_model_is_recurrent(of) && hn_model_group_bytes(of, HN_CACHE_STATE) == bytes);
        for (int i = 0; i < a.layers; i++) {
            int kept = 0;
            for (int m = 0; m < HN_LAYER_MIXERS; m++) kept += place[i].n[m];
            assert_int_equal(kept, cases[k].kinds[i] == '-' ? 0 : cases[k].kinds[i] == 'P' ? 3 : hn_layer_attends(&layer[i]) ? 1 : 2);
            for (int e = 0; e < kept; e++) assert_int_equal(place[i].kept[e].index, parts[place[i].kept[e].group]++);
        }
        for (int i = 0; i < cases[k].n; i++) assert_int_equal(parts[i], g[i].layers);
    }
}

/* Layers that read others' rows have their place, are not counted in their group, and read as much. */
static void test_shared(void **state) {
    (void)state;
    hn_layer_desc layer[MOST];
    hn_layer_place place[MOST];
    hn_cache_group g[HN_MODEL_GROUPS];
    uint64_t window, alone;
    hn_arch a = made_of("aaAaaA", layer);
    const hn_kv_work all = hn_model_kv_work(hn_layers_of(&a), HN_F32, 30, 2);
    layer[3].kv_back = 2;
    layer[4].kv_back = 3;
    layer[5].kv_back = 3;
    assert_int_equal(hn_kv_groups(hn_layers_of(&a), HN_F16, g, place), 2);
    assert_true(g[0].layers == 1 && g[1].layers == 2);
    assert_memory_equal(&place[3], &place[1], sizeof *place);
    assert_memory_equal(&place[4], &place[1], sizeof *place);
    assert_memory_equal(&place[5], &place[2], sizeof *place);
    assert_true(hn_model_kv_work(hn_layers_of(&a), HN_F32, 30, 2).elements == all.elements);
    const uint64_t row = hn_model_row_bytes(hn_layers_of(&a), HN_F32, &window);
    a = made_of("aaA", layer);
    assert_true(row == hn_model_row_bytes(hn_layers_of(&a), HN_F32, &alone) && window == alone);
}

/* Compared with counting the rows that see each position. */
static void test_work(void **state) {
    (void)state;
    static const int committed[] = {0, 1, 9, 10, 11, 300}, rows[] = {1, 2, 30}, firsts[] = {0, 1, 5};
    for (int f = 0; f < 3; f++)
        for (int c = 0; c < 6; c++)
            for (int r = 0; r < 3; r++) {
                hn_layer_desc layer[MOST];
                const hn_arch a = made_of("AaxNd", layer);
                const int end = committed[c] + rows[r];
                double elements = 0, macs = 0;
                for (int i = 0; i < a.layers; i++) {
                    layer[i].first = firsts[f];
                    const double width = 2.0 * layer[i].head_dim;
                    for (int at = 0; at < end; at++) {
                        int seen = 0;
                        for (int row = committed[c] > at ? committed[c] : at; row < end; row++)
                            seen += (!layer[i].window || row - at < layer[i].window) && (row < firsts[f] || at >= firsts[f]);
                        elements += seen > 0 ? width * layer[i].kv_heads : 0;
                        macs += width * layer[i].heads * seen;
                    }
                }
                const hn_kv_work w = hn_model_kv_work(hn_layers_of(&a), HN_F32, committed[c], rows[r]);
                assert_true((double)w.elements == elements);
                assert_true(w.bytes == 4 * elements && w.macs == macs);
                assert_true(hn_model_kv_work(hn_layers_of(&a), HN_Q8_0, committed[c], rows[r]).bytes == (double)w.elements * (1 + 4. / 32));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_too_many_kinds),
                                       cmocka_unit_test(test_states), cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
