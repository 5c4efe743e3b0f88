/* SPDX-License-Identifier: Apache-2.0 */
/* replay_test.c - a pass that was recorded once runs again for other rows: its operations, with the arguments that they had then, compute
 * from what is in the buffers by now. So a device needs no new recording for each pass. The recorder is a table of operations that keeps
 * each call; the next passes' functions are not called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"
#include "model/kv_groups.h"
#include "model/pass_private.h"

enum { CALLS = 400, OUTS = HN_MAX_LINEAR, ROWS = 64, MOST = 20, SEQS = 3 };

/* A call, and what its pointers pointed to that need not be there later. */
typedef struct call {
    void (*play)(const hn_exec *ex, const struct call *c);
    hn_count n;
    hn_matrix x, y;
    hn_act a, to;
    hn_norm norm;
    hn_buf from, at;
    float scale;
    int n_outs;
    bool add, turned;
    hn_glu unit;
    hn_linear_out out[OUTS];
    const hn_weight *gate, *up;
    hn_rows rows;
    hn_rope_table by;
    hn_kv kv;
    hn_qkv qkv;
    hn_head_fix fix;
    hn_attention_params how;
    hn_output_rows written;
    hn_top top;
} call;

static call recorded[CALLS];
static int n_calls;
static const hn_ops *real;
static hn_ops recorder;
static bool replaying;
static hn_ticket (*real_submit)(hn_backend *b, hn_record_fn *record, const void *arg);

static void keep(call c) {
    assert_true(n_calls < CALLS);
    recorded[n_calls++] = c;
}

#define PLAY(name, ...) \
    static void play_##name(const hn_exec *ex, const call *c) { real->name(ex, __VA_ARGS__); }
PLAY(embed, &c->rows, c->gate, c->scale, c->x)
PLAY(norm, c->n, c->x, &c->norm, c->a, c->y)
PLAY(quantise, c->n, c->x, c->a)
PLAY(linear, c->n, c->a, c->out, c->n_outs, c->add)
PLAY(linear_glu, c->n, c->a, c->gate, c->up, c->unit, c->to)
PLAY(linear_top, c->n, c->a, c->gate, &c->written, &c->top)
PLAY(rope_table, &c->rows, &c->by)
PLAY(fix_heads, c->n, &c->fix, &c->qkv)
PLAY(rope_store, &c->rows, c->turned ? &c->by : NULL, &c->kv, &c->qkv)
PLAY(attention, &c->rows, &c->kv, &c->how, c->x, c->y, c->a, c->at)
PLAY(gather, c->n, c->from, c->x, c->at, c->y)
PLAY(scale, c->n, c->x, c->scale)
PLAY(kv_move, &c->kv, c->n, c->from)

static void embed(const hn_exec *ex HN_UNUSED, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x) {
    keep((call){.play = play_embed, .rows = *rows, .gate = table, .scale = scale, .x = x});
}
static void norm(const hn_exec *ex HN_UNUSED, hn_count n, hn_matrix x, const hn_norm *by, hn_act a, hn_matrix y) {
    keep((call){.play = play_norm, .n = n, .x = x, .norm = *by, .a = a, .y = y});
}
static void quantise(const hn_exec *ex HN_UNUSED, hn_count n, hn_matrix x, hn_act a) {
    keep((call){.play = play_quantise, .n = n, .x = x, .a = a});
}
static void linear(const hn_exec *ex HN_UNUSED, hn_count n, hn_act a, const hn_linear_out *outs, int n_outs, bool add) {
    call c = {.play = play_linear, .n = n, .a = a, .n_outs = n_outs, .add = add};
    memcpy(c.out, outs, (size_t)n_outs * sizeof *outs);
    keep(c);
}
static void linear_glu(const hn_exec *ex HN_UNUSED, hn_count n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu unit,
                       hn_act y) {
    keep((call){.play = play_linear_glu, .n = n, .a = a, .gate = gate, .up = up, .unit = unit, .to = y});
}
static void linear_top(const hn_exec *ex HN_UNUSED, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out,
                       const hn_top *top) {
    keep((call){.play = play_linear_top, .n = n, .a = a, .gate = w, .written = *out, .top = *top});
}
static void rope_table(const hn_exec *ex HN_UNUSED, const hn_rows *rows, const hn_rope_table *to) {
    keep((call){.play = play_rope_table, .rows = *rows, .by = *to});
}
static void fix_heads(const hn_exec *ex HN_UNUSED, hn_count n, const hn_head_fix *fix, const hn_qkv *x) {
    keep((call){.play = play_fix_heads, .n = n, .fix = *fix, .qkv = *x});
}
static void rope_store(const hn_exec *ex HN_UNUSED, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x) {
    keep((call){.play = play_rope_store, .rows = *rows, .turned = by, .by = by ? *by : (hn_rope_table){0}, .kv = *kv, .qkv = *x});
}
static void attention(const hn_exec *ex HN_UNUSED, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q,
                      hn_matrix out, hn_act a, hn_buf scratch) {
    keep((call){.play = play_attention, .rows = *rows, .kv = *kv, .how = *how, .x = q, .y = out, .a = a, .at = scratch});
}
static void gather(const hn_exec *ex HN_UNUSED, hn_count n, hn_buf from, hn_matrix src, hn_buf to, hn_matrix dst) {
    keep((call){.play = play_gather, .n = n, .from = from, .x = src, .at = to, .y = dst});
}
static void scale(const hn_exec *ex HN_UNUSED, hn_count n, hn_matrix x, float by) {
    keep((call){.play = play_scale, .n = n, .x = x, .scale = by});
}
static void kv_move(const hn_exec *ex HN_UNUSED, const hn_kv *kv, hn_count n, hn_buf moves) {
    keep((call){.play = play_kv_move, .kv = *kv, .n = n, .from = moves});
}

static void play_all(const hn_exec *ex, const void *arg HN_UNUSED) {
    for (int i = 0; i < n_calls; i++) recorded[i].play(ex, &recorded[i]);
}

/* The first submission is recorded, by one rank as a device's would be; the others run what it recorded. */
static hn_ticket submit(hn_backend *b, hn_record_fn *record, const void *arg) {
    if (!replaying) {
        const hn_exec one = {&recorder, b, 0, 1};
        n_calls = 0;
        record(&one, arg);
    }
    replaying = true;
    return real_submit(b, play_all, NULL);
}

/* Trees of n rows in several texts, all of whose logits are wanted, but for those of which one is. */
static int below(uint64_t *seed, int n) {
    return (int)(hn_splitmix(seed) % (uint64_t)n);
}

static int make_rows(hn_row *row, int n, uint64_t *seed, int vocab) {
    int seqs = 0;
    for (int i = 0, first = 0; i < n; i++) {
        if (i > 0 && seqs < SEQS - 1 && below(seed, 4) == 0) seqs++, first = i;
        const int back = below(seed, i - first + 1);
        row[i] = (hn_row){.token = below(seed, vocab), .seq = (int16_t)seqs,
                          .parent = (int16_t)(back ? i - back : -1), .logits = i % 3 ? HN_LOGITS_ALL : HN_LOGITS_BEST};
    }
    return seqs + 1;
}

typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
} rig;

static rig rig_open(const hn_model *m, hn_cache_group *group, int groups) {
    rig r;
    must(hn_cache_open(&r.cache, m->backend, group, groups, SEQS, 512, 0, err));
    must(hn_runner_open(&r.runner, m, r.cache, 0, 512, NULL, err));
    for (int s = 0; s < SEQS; s++) hn_cache_seq_begin(r.cache, s);
    return r;
}

static void rig_close(rig *r) {
    hn_runner_close(&r->runner);
    hn_cache_close(&r->cache);
}

/* The last rows of each text's first and last branch are kept, so that rows move before the next pass. */
static void commit(rig *r, const hn_row *row, int n, int seqs) {
    for (int s = 0, first = 0; s < seqs; s++) {
        int last = first;
        while (last < n && row[last].seq == s) last++;
        int16_t path[ROWS], kept = 0;
        for (int i = last - 1; i >= 0; i = row[i].parent) path[kept++] = (int16_t)(i - first);
        for (int i = 0; i < kept / 2; i++) {
            const int16_t x = path[i];
            path[i] = path[kept - 1 - i];
            path[kept - 1 - i] = x;
        }
        hn_cache_commit(r->cache, s, 0, path, kept);
        first = last;
    }
}

static void check_model(const char *path) {
    static const int seqs[SEQS] = {0, 1, 2};
    hunch_model *m = open_model(data_path(path), "best", 2, HUNCH_PRECISION_NATIVE);
    hn_model *t = &m->target;
    hn_cache_group group[HN_MODEL_GROUPS];
    const int groups = hn_kv_groups(t->run, HN_BF16, group, NULL);
    group[0].page_rows = 16;
    rig plain = rig_open(t, group, groups), again = rig_open(t, group, groups);
    uint64_t seed = 7;
    hn_row row[ROWS];
    real = t->backend->ops;
    real_submit = t->backend->submit;
    recorder = (hn_ops){.embed = embed, .norm = norm, .quantise = quantise, .linear = linear, .linear_glu = linear_glu,
                        .linear_top = linear_top, .rope_table = rope_table, .fix_heads = fix_heads, .rope_store = rope_store,
                        .attention = attention, .gather = gather, .scale = scale, .kv_move = kv_move};
    replaying = false;
    for (int pass = 0; pass < 12; pass++) {
        const int n = pass ? 2 + below(&seed, MOST - 1) : MOST, n_seqs = make_rows(row, n, &seed, t->arch.vocab);
        must(hn_pass_run(plain.runner, row, n, seqs, n_seqs, err));
        hn_cache_flush(again.cache); /* so that all passes are of one kind */
        t->backend->submit = submit;
        must(hn_pass_run(again.runner, row, n, seqs, n_seqs, err));
        t->backend->submit = real_submit;
        for (int i = 0; i < n; i++) {
            const float *value, *want;
            assert_int_equal(*hn_pass_best(again.runner, i, &value), *hn_pass_best(plain.runner, i, &want));
            assert_true(*value == *want);
            if (row[i].logits == HN_LOGITS_ALL)
                assert_memory_equal(hn_pass_logits(again.runner, i), hn_pass_logits(plain.runner, i),
                                    (size_t)t->arch.vocab * sizeof(float));
        }
        commit(&plain, row, n, n_seqs);
        commit(&again, row, n, n_seqs);
    }
    assert_true(n_calls > 10);
    rig_close(&plain);
    rig_close(&again);
    hunch_model_close(&m);
}

static void test_replay(void **state) {
    (void)state;
    check_model("models/stories260K/stories260K.f32.gguf");
    check_model("goldens/llama-gqa");
    check_model("goldens/qwen3-dense");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
