/* SPDX-License-Identifier: Apache-2.0 */
/* roles_test.c - the table of tensors is sound for every description: all have names in both kinds of files, different
 * for the tensors of a model; a matrix exists in one form, with biases and norms of its width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "model/arch/delta_desc.h"

enum { FLAGS = 11 };

/* A layer and a model with the properties of the bits of `flags`. */
static hn_arch described(unsigned flags, hn_layer_desc *l) {
    *l = (hn_layer_desc){.mixer = {{.kind = &hn_mixer_attention}}, .heads = 6, .kv_heads = 3, .head_dim = 10, .ffn_width = 70,
                         .fused_qkv = flags & 1, .qkv_bias = flags & 2, .qk_norm = flags & 4, .o_bias = flags & 8,
                         .post_norms = flags & 16, .fused_gate_up = flags & 32, .gate_up_bias = flags & 64,
                         .down_bias = flags & 128, .input = flags & 256 ? HN_INPUT_PAIR : HN_INPUT_NORMED};
    return (hn_arch){.layers = 1, .layer = l, .hidden = 50, .vocab = 900, .tied = flags & 512,
                     .draft_head.output.norm = flags & 1024 ? HN_NORM_NONE : HN_NORM_ONCE};
}

static uint64_t length(const hn_arch *a, hn_role matrix_or_vector) {
    uint64_t dims[2];
    hn_arch_tensor_shape(a, matrix_or_vector, 0, dims);
    if (hn_role_is_vector(matrix_or_vector)) assert_int_equal(dims[1], 1);
    return hn_role_is_vector(matrix_or_vector) ? dims[0] : dims[1];
}

static void check_names(const hn_arch *a) {
    for (int form = HN_SOURCE_GGUF; form <= HN_SOURCE_HF; form++)
        for (int i = 0; i < HN_ROLES_OF_MODELS; i++) {
            const char *name = hn_role_name((hn_role)i, (hn_source_kind)form);
            if (!hn_role_exists((hn_role)i)) continue;
            assert_non_null(name);
            assert_int_equal(strstr(name, "%d") != NULL, hn_role_of_layer((hn_role)i));
            for (int j = 0; j < i; j++)
                if (hn_arch_has(a, (hn_role)i, 0) && hn_arch_has(a, (hn_role)j, 0))
                    assert_string_not_equal(name, hn_role_name((hn_role)j, (hn_source_kind)form));
        }
}

/* Either the one, or all of the others. */
static void check_forms(const hn_arch *a, hn_role one, const hn_role *parts, int n, bool there) {
    uint64_t sum = 0, whole[2], part[2];
    hn_arch_tensor_shape(a, one, 0, whole);
    for (int i = 0; i < n; i++) {
        hn_arch_tensor_shape(a, parts[i], 0, part);
        if (!hn_role_is_vector(one)) assert_int_equal(part[0], whole[0]);
        sum += length(a, parts[i]);
        assert_int_equal(hn_arch_has(a, parts[i], 0), there && !hn_arch_has(a, one, 0));
    }
    assert_int_equal(length(a, one), sum);
}

static void check_matrices(const hn_arch *a, const hn_layer_desc *l) {
    static const hn_role qkv[] = {HN_ROLE_Q, HN_ROLE_K, HN_ROLE_V}, gate_up[] = {HN_ROLE_GATE, HN_ROLE_UP},
                         biases[] = {HN_ROLE_Q_BIAS, HN_ROLE_K_BIAS, HN_ROLE_V_BIAS};
    static const hn_role bias_of[][2] = {{HN_ROLE_Q_BIAS, HN_ROLE_Q},       {HN_ROLE_K_BIAS, HN_ROLE_K},
                                         {HN_ROLE_V_BIAS, HN_ROLE_V},       {HN_ROLE_QKV_BIAS, HN_ROLE_QKV},
                                         {HN_ROLE_O_BIAS, HN_ROLE_O},       {HN_ROLE_GATE_BIAS, HN_ROLE_GATE},
                                         {HN_ROLE_UP_BIAS, HN_ROLE_UP},     {HN_ROLE_DOWN_BIAS, HN_ROLE_DOWN}};
    check_forms(a, HN_ROLE_QKV, qkv, 3, true);
    check_forms(a, HN_ROLE_QKV_BIAS, biases, 3, l->qkv_bias);
    check_forms(a, HN_ROLE_GATE_UP, gate_up, 2, true);
    assert_int_equal(hn_arch_has(a, HN_ROLE_QKV, 0), l->fused_qkv);
    assert_int_equal(hn_arch_has(a, HN_ROLE_QKV_BIAS, 0), l->fused_qkv && l->qkv_bias);
    assert_int_equal(hn_arch_has(a, HN_ROLE_GATE_UP, 0), l->fused_gate_up);
    for (size_t i = 0; i < sizeof bias_of / sizeof *bias_of; i++) {
        assert_int_equal(length(a, bias_of[i][0]), length(a, bias_of[i][1]));
        const bool ends = bias_of[i][1] == HN_ROLE_O || bias_of[i][1] == HN_ROLE_DOWN;
        assert_int_equal(hn_role_ends_branch(bias_of[i][0]), ends);
    }
    uint64_t q[2], o[2], down[2];
    hn_arch_tensor_shape(a, HN_ROLE_Q, 0, q);
    hn_arch_tensor_shape(a, HN_ROLE_O, 0, o);
    hn_arch_tensor_shape(a, HN_ROLE_DOWN, 0, down);
    assert_true(q[0] == (l->input == HN_INPUT_PAIR ? 100 : 50) && q[1] == 60 && o[0] == 60 && o[1] == 50);
    assert_true(down[0] == 70 && down[1] == 50 && length(a, HN_ROLE_OUTPUT) == 900);
}

/* One norm before each half; the 1 of norms that are stored less 1 is added only to norms. */
static void check_norms(hn_arch *a, const hn_layer_desc *l) {
    static const hn_role behind[] = {HN_ROLE_POST_ATTN_NORM, HN_ROLE_POST_FFN_NORM, HN_ROLE_PRE_FFN_NORM};
    for (int i = 0; i < 3; i++) assert_int_equal(hn_arch_has(a, behind[i], 0), l->post_norms);
    assert_int_equal(hn_arch_has(a, HN_ROLE_FFN_NORM, 0), !l->post_norms);
    assert_int_equal(hn_arch_has(a, HN_ROLE_ATTN_NORM, 0), l->input == HN_INPUT_NORMED);
    assert_int_equal(hn_arch_has(a, HN_ROLE_Q_NORM, 0), l->qk_norm);
    assert_int_equal(hn_arch_has(a, HN_ROLE_OUTPUT_NORM, 0), a->draft_head.output.norm != HN_NORM_NONE);
    assert_int_equal(hn_arch_has(a, HN_ROLE_OUTPUT, 0), !a->tied);
    assert_true(length(a, HN_ROLE_K_NORM) == 10 && length(a, HN_ROLE_PRE_FFN_NORM) == 50);
    for (int less = 0; less < 2; less++) {
        a->files.norms_less_one = less;
        for (int i = 0; i < HN_ROLES_OF_MODELS; i++) {
            if (!hn_role_exists((hn_role)i)) continue;
            const char *name = hn_role_name((hn_role)i, HN_SOURCE_GGUF);
            /* that of a delta net is stored complete */
            const bool norm = strstr(name, "norm") && !strstr(name, "ssm_norm") && !strstr(name, "bias");
            if (hn_role_is_vector((hn_role)i))
                assert_true(hn_arch_vector_more(a, (hn_role)i) == (less && norm ? 1.f : 0.f));
            else
                assert_true(hn_role_phase((hn_role)i) != HN_PHASE_OTHER);
        }
    }
}

static void test_every_description(void **state) {
    (void)state;
    for (unsigned flags = 0; flags < 1u << FLAGS; flags++) {
        hn_layer_desc l;
        hn_arch a = described(flags, &l);
        check_names(&a);
        check_matrices(&a, &l);
        check_norms(&a, &l);
    }
}

/* A delta net replaces attention, with the tensors of one of its forms; gates make q twice as long. */
static void test_delta_net(void **state) {
    (void)state;
    hn_layer_desc l;
    hn_arch a = described(0, &l);
    uint64_t dims[2];
    l.gate.in_q = true;
    hn_arch_tensor_shape(&a, HN_ROLE_Q, 0, dims);
    assert_true(dims[1] == 120 && hn_arch_has(&a, HN_ROLE_Q, 0) && !hn_arch_has(&a, HN_ROLE_DELTA_OUT, 0));
    for (int form = 0; form < 4; form++) {
        hn_delta_desc *d = hn_delta_at(&l);
        l.mixer[0].kind = &hn_mixer_delta;
        *d = (hn_delta_desc){.key_heads = 2, .value_heads = 6, .key_dim = 5, .value_dim = 7, .taps = 4, .fused = form & 1,
                                  .fused_gates = form >> 1};
        assert_true(!hn_arch_has(&a, HN_ROLE_Q, 0) && !hn_arch_has(&a, HN_ROLE_O, 0) && hn_arch_has(&a, HN_ROLE_DELTA_OUT, 0));
        assert_int_equal(hn_arch_has(&a, HN_ROLE_DELTA_QKVZ, 0), d->fused);
        assert_int_equal(hn_arch_has(&a, HN_ROLE_DELTA_QKV, 0), !d->fused);
        assert_int_equal(hn_arch_has(&a, HN_ROLE_DELTA_Z, 0), !d->fused);
        assert_int_equal(hn_arch_has(&a, HN_ROLE_DELTA_BA, 0), d->fused_gates);
        assert_int_equal(hn_arch_has(&a, HN_ROLE_DELTA_A, 0) && hn_arch_has(&a, HN_ROLE_DELTA_B, 0), !d->fused_gates);
    }
    hn_arch_tensor_shape(&a, HN_ROLE_DELTA_QKVZ, 0, dims);
    assert_true(dims[0] == 50 && dims[1] == 2 * 10 + 2 * 42);
    hn_arch_tensor_shape(&a, HN_ROLE_DELTA_CONV, 0, dims);
    assert_true(dims[0] == 4 && dims[1] == 2 * 10 + 42);
}

/* A layer of experts has a router and the three matrices of each expert, gate and up as one if they are stacked; the
 * shared expert has three of its own; there are no tensors of a dense layer. */
static void test_experts(void **state) {
    (void)state;
    static const hn_role gate_up[] = {HN_ROLE_EXPERT_GATE, HN_ROLE_EXPERT_UP},
                         shared[] = {HN_ROLE_SHARED_GATE, HN_ROLE_SHARED_UP, HN_ROLE_SHARED_DOWN};
    for (int flags = 0; flags < 1 << 5; flags++) {
        hn_layer_desc l;
        hn_arch a = described(0, &l);
        uint64_t router[2], down[2];
        l.ffn = HN_FFN_EXPERTS;
        l.experts = (hn_expert_desc){.count = 12, .used = 3, .width = 20, .bias = flags & 1, .stacked = flags & 2,
                                     .shared_width = flags & 4 ? 30 : 0, .shared_gate = flags & 8};
        a.files.form = flags & 16 ? HN_SOURCE_HF : HN_SOURCE_GGUF;
        check_names(&a);
        check_forms(&a, HN_ROLE_EXPERT_GATE_UP, gate_up, 2, true);
        assert_int_equal(hn_arch_has(&a, HN_ROLE_EXPERT_GATE_UP, 0), l.experts.stacked);
        for (int i = HN_ROLE_GATE; i <= HN_ROLE_DOWN; i++) assert_false(hn_arch_has(&a, (hn_role)i, 0));
        assert_true(hn_arch_has(&a, HN_ROLE_ROUTER, 0) && hn_arch_has(&a, HN_ROLE_EXPERT_DOWN, 0) && hn_arch_has(&a, HN_ROLE_FFN_NORM, 0));
        assert_int_equal(hn_arch_has(&a, HN_ROLE_ROUTER_BIAS, 0), l.experts.bias);
        for (int i = 0; i < 3; i++) assert_int_equal(hn_arch_has(&a, shared[i], 0), l.experts.shared_width > 0);
        assert_int_equal(hn_arch_has(&a, HN_ROLE_SHARED_ROUTER, 0), l.experts.shared_width > 0 && l.experts.shared_gate);
        hn_arch_tensor_shape(&a, HN_ROLE_ROUTER, 0, router);
        hn_arch_tensor_shape(&a, HN_ROLE_EXPERT_DOWN, 0, down);
        assert_true(router[0] == 50 && router[1] == 12 && down[0] == 20 && down[1] == 50 && length(&a, HN_ROLE_ROUTER_BIAS) == 12);
        assert_int_equal(hn_arch_matrices(&a, HN_ROLE_EXPERT_DOWN, 0), a.files.form == HN_SOURCE_GGUF || l.experts.stacked ? 12 : 1);
        assert_int_equal(hn_arch_matrices(&a, HN_ROLE_ROUTER, 0), 1);
        l.ffn = HN_FFN_SWIGLU;
        for (int i = HN_ROLE_ROUTER; i <= HN_ROLE_SHARED_DOWN; i++) assert_false(hn_arch_has(&a, (hn_role)i, 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_description), cmocka_unit_test(test_delta_net),
                                       cmocka_unit_test(test_experts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
