/* SPDX-License-Identifier: Apache-2.0 */
/* model_parts_test.c - fused matrices and their biases load as their parts; a branch's last bias is scaled like its
 * product; unused tensors are refused by name; each rotation has its own frequencies; which stages of a draft head go together. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "format/gguf_writer.h"
#include "model/weights.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

enum { HIDDEN = 32, HEADS = 2, HEAD = 16, FFN = 48, VOCAB = 8, Q = HEADS * HEAD, KV = HEAD };

/* Tensors of a one-layer granite: rows of HIDDEN (down: FFN) numbers that count up from `first`. */
typedef struct part {
    const char *name;
    int rows, cols, first; /* rows 0: a vector */
} part;

static const part always[] = {{"token_embd.weight", VOCAB, HIDDEN, 0},   {"output_norm.weight", 0, HIDDEN, 1},
                              {"blk.0.attn_norm.weight", 0, HIDDEN, 2},  {"blk.0.attn_output.weight", HIDDEN, Q, 3},
                              {"blk.0.attn_output.bias", 0, HIDDEN, 4},  {"blk.0.ffn_norm.weight", 0, HIDDEN, 5},
                              {"blk.0.ffn_down.weight", HIDDEN, FFN, 6}, {NULL, 0, 0, 0}},
                  apart[] = {{"blk.0.attn_q.weight", Q, HIDDEN, 1000},
                             {"blk.0.attn_k.weight", KV, HIDDEN, 1000 + Q *HIDDEN},
                             {"blk.0.attn_v.weight", KV, HIDDEN, 1000 + (Q + KV) * HIDDEN},
                             {"blk.0.attn_q.bias", 0, Q, 70},
                             {"blk.0.attn_k.bias", 0, KV, 70 + Q},
                             {"blk.0.attn_v.bias", 0, KV, 70 + Q + KV},
                             {"blk.0.ffn_gate.weight", FFN, HIDDEN, 5000},
                             {"blk.0.ffn_up.weight", FFN, HIDDEN, 5000 + FFN *HIDDEN},
                             {NULL, 0, 0, 0}},
                  fused[] = {{"blk.0.attn_qkv.weight", Q + 2 * KV, HIDDEN, 1000},
                             {"blk.0.attn_qkv.bias", 0, Q + 2 * KV, 70},
                             {"blk.0.ffn_up.weight", 2 * FFN, HIDDEN, 5000},
                             {NULL, 0, 0, 0}};

static void declare(hn_gguf_writer *w, const part *p) {
    for (; p->name; p++) {
        const uint64_t dims[2] = {(uint64_t)p->cols, (uint64_t)p->rows};
        assert_int_equal(hn_gguf_declare(w, p->name, HN_F32, p->rows ? 2 : 1, dims, NULL), HUNCH_OK);
    }
}

static void put(hn_gguf_writer *w, const part *p) {
    static float values[(2 * FFN + Q) * HIDDEN];
    for (; p->name; p++) {
        const int n = (p->rows ? p->rows : 1) * p->cols;
        for (int i = 0; i < n; i++) values[i] = (float)(p->first + i);
        assert_int_equal(hn_gguf_data(w, values, (size_t)n * sizeof *values, NULL), HUNCH_OK);
    }
}

/* extra: one more tensor, or NULL. */
static hn_source *write_model(const part *parts, const part *extra) {
    static const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {{"granite.block_count", 1},
                 {"granite.embedding_length", HIDDEN},
                 {"granite.feed_forward_length", FFN},
                 {"granite.attention.head_count", HEADS},
                 {"granite.attention.head_count_kv", 1},
                 {"granite.context_length", 64}};
    char path[1200];
    hn_gguf_writer *w = NULL;
    hn_source *s = NULL;
    snprintf(path, sizeof path, "%s", test_path("parts.gguf"));
    assert_int_equal(hn_gguf_writer_open(&w, path, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_str(w, "general.architecture", "granite", strlen("granite"), NULL), HUNCH_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(hn_gguf_put_u32(w, sizes[i].key, sizes[i].value, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_f32(w, "granite.attention.layer_norm_rms_epsilon", 1e-5f, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_f32(w, "granite.residual_scale", 0.25f, NULL), HUNCH_OK);
    const part *const lists[] = {always, parts, extra};
    for (int i = 0; i < (extra ? 3 : 2); i++) declare(w, lists[i]);
    for (int i = 0; i < (extra ? 3 : 2); i++) put(w, lists[i]);
    assert_int_equal(hn_gguf_writer_finish(&w, NULL), HUNCH_OK);
    assert_int_equal(hn_source_open(&s, path, NULL), HUNCH_OK);
    return s;
}

static void load(const part *parts, hn_model *m) {
    const hn_model_load how = {.threads = 1, .isa = HN_ISA_REF, .f32 = true};
    hunch_error err = {0};
    hn_source *s = write_model(parts, NULL);
    if (hn_model_open(m, s, &how, &err) != HUNCH_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) assert_true(hn_source_tensor(s, i)->used);
    hn_source_close(&s);
}

static void assert_vector(const hn_model *m, hn_buf b, int n, float first, float step) {
    const float *values = m->backend->read(m->backend, (hn_ticket){0}, b, (size_t)n * sizeof *values);
    for (int i = 0; i < n; i++) assert_true(values[i] == first + step * (float)i);
}

/* Strip by strip: strips of a pair alternate. */
static void assert_same_matrix(const hn_model *a, const hn_weight *x, const hn_model *b, const hn_weight *y) {
    const size_t strip = a->backend->matrix_bytes(a->backend, x->dtype, HN_STRIP, x->in);
    const hn_ticket none = {0};
    assert_int_equal(x->out, y->out);
    assert_int_equal(x->in, y->in);
    for (int s = 0; s < x->out / HN_STRIP; s++)
        assert_memory_equal(a->backend->read(a->backend, none, hn_at(x->place.at, x->place.step * (size_t)s), strip),
                            b->backend->read(b->backend, none, hn_at(y->place.at, y->place.step * (size_t)s), strip), strip);
}

static void test_fused(void **state) {
    (void)state;
    hn_model a, b;
    load(apart, &a);
    load(fused, &b);
    const hn_layer *x = a.layer, *y = b.layer;
    const hn_weight *const ours[] = {&x->q, &x->k, &x->v, &x->gate, &x->up}, *const theirs[] = {&y->q, &y->k, &y->v,
                                                                                                &y->gate, &y->up};
    for (int i = 0; i < 5; i++) assert_same_matrix(&a, ours[i], &b, theirs[i]);
    const hn_model *const both[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        const hn_layer *l = both[i]->layer;
        assert_vector(both[i], l->heads.q_bias, Q, 70, 1);
        assert_vector(both[i], l->heads.k_bias, KV, 70 + Q, 1);
        assert_vector(both[i], l->heads.v_bias, KV, 70 + Q + KV, 1);
        assert_vector(both[i], l->o_bias, HIDDEN, 1, 0.25f); /* 4, 5, ... by a quarter */
        assert_vector(both[i], l->attn_norm.w, HIDDEN, 2, 1);
    }
    assert_true(a.parameters == b.parameters);
    hn_model_close(&a);
    hn_model_close(&b);
}

static void test_rest(void **state) {
    (void)state;
    static const struct {
        part extra[2];
        bool refused;
    } cases[] = {{{{"blk.0.attn_sinks.weight", 0, HEADS, 0}}, true},
                 {{{"blk.0.attn_post.bias", 0, HIDDEN, 0}}, true},
                 {{{"blk.1.attn_norm.weight", 0, HIDDEN, 0}}, true}, /* a layer more than by the keys */
                 {{{"output.bias", 0, VOCAB, 0}}, true},
                 {{{"blk.0.attn_rot_embd.weight", 0, HEAD, 0}}, false},
                 {{{"v.patch_embd.weight", 4, 4, 0}}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        hn_source *s = write_model(apart, cases[i].extra);
        const hunch_status st = hn_model_mark(s, &a, NULL, &err);
        if (st != (cases[i].refused ? HUNCH_REFUSED : HUNCH_OK) || (st && !strstr(err.message, cases[i].extra[0].name)))
            fail_msg("%s: %d '%s'", cases[i].extra[0].name, st, err.message);
        if (!st) hn_arch_fini(&a);
        hn_source_close(&s);
    }
}

/* Rotations of several widths, of a part of a head, of some of its pairs, and with frequencies for long texts. */
static void test_rotations(void **state) {
    (void)state;
    enum { SHORT_ROWS = 100 };
    static double half_turns[] = {1, 0.5, 0, 0}, others[] = {0.25, 0.125, 0.0625}, others_long[] = {0.75, 0.5, 0.375};
    hn_model m = {.arch = {.rotations = 2,
                           .rotation = {{.dims = 8, .freq = half_turns, .scale = 1},
                                        {.first = 10, .dims = 6, .scaling = {.original = SHORT_ROWS}, .freq = others,
                                         .freq_long = others_long, .scale = 1.5f}}}};
    hn_plan p = {.m = &m};
    hn_plan_room(&p, 12);
    hn_plan_rotations(&p);
    m.backend = hn_cpu_sizes();
    assert_int_equal(m.backend->mem_create(m.backend, HN_MEM_WEIGHTS, p.bytes, &m.weights, NULL), HUNCH_OK);
    assert_int_equal(hn_model_load_rotations(&m, p.tables, NULL), HUNCH_OK);
    const struct {
        const double *freq;
        int rotation, rows;
    } cases[] = {{half_turns, 0, SHORT_ROWS + 1}, {others, 1, SHORT_ROWS}, {others_long, 1, SHORT_ROWS + 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hn_rotation *want = &m.arch.rotation[cases[i].rotation];
        const hn_rope *r = hn_model_rope(&m, cases[i].rotation, cases[i].rows);
        const float *freq = m.backend->read(m.backend, (hn_ticket){0}, r->freq, 1);
        assert_true(r->first == want->first && r->dims == want->dims && r->scale == want->scale);
        assert_true(r->freq.off + (size_t)r->dims / 2 * sizeof *freq <= p.bytes);
        for (int k = 0; k < r->dims / 2; k++) assert_true((double)freq[k] == cases[i].freq[k]);
    }
    m.backend->mem_free(m.backend, m.weights);
}

/* The heads that head_desc.h lists, and what none of them is. */
static void test_stages(void **state) {
    static const struct {
        hn_stream stream;
        hn_rows_kind rows;
        hn_output_kind output;
        bool fit;
    } cases[] = {{HN_STREAM_JOINT, HN_ROWS_CHAIN, HN_OUTPUT_ALL, true},       {HN_STREAM_JOINT, HN_ROWS_TURNS, HN_OUTPUT_ALL, true},
                 {HN_STREAM_FEATURE, HN_ROWS_CHAIN, HN_OUTPUT_CLUSTERS, true}, {HN_STREAM_FEATURE, HN_ROWS_MASKS, HN_OUTPUT_ALL, true},
                 {HN_STREAM_LSTM, HN_ROWS_SPAN, HN_OUTPUT_ALL, true},          {HN_STREAM_CONTEXT, HN_ROWS_BLOCK, HN_OUTPUT_ALL, true},
                 {HN_STREAM_CONTEXT, HN_ROWS_BLOCK, HN_OUTPUT_MARKOV, true},   {HN_STREAM_STATE, HN_ROWS_STEPS, HN_OUTPUT_ALL, true},
                 {HN_STREAM_TOKEN, HN_ROWS_CHAIN, HN_OUTPUT_ALL, false},       {HN_STREAM_LSTM, HN_ROWS_TURNS, HN_OUTPUT_ALL, false},
                 {HN_STREAM_JOINT, HN_ROWS_BLOCK, HN_OUTPUT_ALL, false},       {HN_STREAM_STATE, HN_ROWS_CHAIN, HN_OUTPUT_ALL, false},
                 {HN_STREAM_FEATURE, HN_ROWS_CHAIN, HN_OUTPUT_MARKOV, false},  {HN_STREAM_STATE, HN_ROWS_STEPS, HN_OUTPUT_CLUSTERS, false},
                 {HN_STREAM_JOINT, HN_ROWS_BORROWED, HN_OUTPUT_ALL, true},
                 {HN_STREAM_JOINT, HN_ROWS_BORROWED, HN_OUTPUT_CLUSTERS, true},
                 {HN_STREAM_FEATURE, HN_ROWS_BORROWED, HN_OUTPUT_ALL, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_head_desc d = {.input.stream = cases[i].stream, .rows.kind = cases[i].rows, .output.kind = cases[i].output};
        assert_int_equal(hn_head_stages_fit(&d), cases[i].fit);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fused), cmocka_unit_test(test_rest), cmocka_unit_test(test_rotations),
                                       cmocka_unit_test(test_stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
