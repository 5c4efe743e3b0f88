/* SPDX-License-Identifier: Apache-2.0 */
/* output_rows_test.c - the results of the output matrix for rows: all logits, the best one, or none. Greedy texts write
 * no logits and are the same; a model whose logits are NaN gives the same errors; an output matrix over chosen tokens
 * has the logits of the whole one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/engine.h"
#include "fixture.h"
#include "goldens.h"
#include "model/head/reduced_output.h"

/* Of quantised, float and 16-bit weights; and of attention, by how their logits are made: tied and not, with and without scaled and with
 * capped ones. */
enum { ROWS = 24, BEST = 8, MESSAGE = 1000 };
static char models[2 + MOST_GOLDENS][GOLDEN_NAME];
static int n_models;

static int setup(void **state) {
    (void)state;
    snprintf(models[0], GOLDEN_NAME, "models/stories260K/stories260K.f32.gguf");
    snprintf(models[1], GOLDEN_NAME, "models/babyllama105/babyllama105.q8_0.gguf");
    n_models = 2 + golden_apart(golden_attends, GOLDEN_OUTPUTS, models + 2);
    return 0;
}

static uint64_t rng = 7;
static int below(int n) { return (int)(hn_splitmix(&rng) % (uint64_t)n); }

/* The argmax as the sampler defines it. */
static int32_t best_of(const float *l, int n) {
    int32_t best = -1;
    for (int i = 0; i < n; i++)
        if (l[i] > (best < 0 ? -INFINITY : l[best])) best = i;
    return best;
}

/* The best outputs of a row by the whole of its logits: the likeliest first, ties to the lower id. */
static void check_best_list(const hn_runner *r, int row, int n) {
    const float *l = hn_pass_logits(r, row), *value;
    const int32_t *id = hn_pass_best(r, row, &value);
    for (int k = 0; k < BEST; k++) {
        assert_true(value[k] == l[id[k]]);
        if (k > 0) assert_true(value[k] < value[k - 1] || (value[k] == value[k - 1] && id[k] > id[k - 1]));
    }
    int better = 0;
    for (int i = 0; i < n; i++) better += l[i] > value[BEST - 1];
    assert_true(better < BEST);
}

/* One pass of a fresh cache; keeps the lists of the best, and the logits of rows that have them. */
static void run_pass(const hn_model *m, const hn_row *row, int32_t (*best)[BEST], float *logits) {
    static const hn_pass_sizes most = {HN_MAX_ROWS, HN_MAX_ROWS, HN_MAX_ROWS, BEST};
    hn_cache_group g[HN_MODEL_GROUPS];
    const int groups = hn_kv_groups(m->run, HN_F32, g, NULL), seq = 0;
    hn_cache *cache = NULL;
    hn_runner *r = NULL;
    g[0].page_rows = 16;
    must(hn_cache_open(&cache, m->backend, g, groups, 1, 64, 0, err));
    must(hn_runner_open_for(&r, m, cache, 0, 64, &most, NULL, err));
    hn_cache_seq_begin(cache, seq);
    must(hn_pass_run(r, row, ROWS, &seq, 1, err));
    for (int i = 0; i < ROWS; i++) {
        if (row[i].logits == HN_LOGITS_NONE) continue;
        const float *l = hn_pass_logits(r, i);
        assert_true((l != NULL) == (row[i].logits == HN_LOGITS_ALL));
        const float *value;
        memcpy(best[i], hn_pass_best(r, i, &value), sizeof best[i]);
        assert_int_equal(hn_pass_argmax(r, i), best[i][0]);
        if (l) check_best_list(r, i, m->arch.vocab);
        if (l) memcpy(logits + i * m->arch.vocab, l, (size_t)m->arch.vocab * sizeof *l);
    }
    hn_runner_close(&r);
    hn_cache_close(&cache);
}

static void test_rows_among_others(void **state) {
    (void)state;
    for (int f = 0; f < n_models; f++) {
        hunch_model *m = open_model(data_path(models[f]), "best", test_threads(), HUNCH_PRECISION_NATIVE);
        const int vocab = m->target.arch.vocab;
        float *all = malloc(sizeof *all * (size_t)(ROWS * vocab)), *some = malloc(sizeof *some * (size_t)(ROWS * vocab));
        hn_row row[ROWS];
        int32_t want[ROWS][BEST], have[ROWS][BEST];
        for (int i = 0; i < ROWS; i++) row[i] = (hn_row){.token = below(vocab), .parent = (int16_t)(i - 1), .logits = HN_LOGITS_ALL};
        run_pass(&m->target, row, want, all);
        for (int i = 0; i < ROWS; i++) assert_int_equal(want[i][0], best_of(all + i * vocab, vocab));
        for (int round = 0; round < 6; round++) {
            for (int i = 0; i < ROWS; i++) row[i].logits = round ? (hn_logits)below(3) : HN_LOGITS_BEST;
            run_pass(&m->target, row, have, some);
            for (int i = 0; i < ROWS; i++) {
                if (row[i].logits != HN_LOGITS_NONE) assert_memory_equal(have[i], want[i], sizeof want[i]);
                if (row[i].logits == HN_LOGITS_ALL)
                    assert_memory_equal(some + i * vocab, all + i * vocab, sizeof *all * (size_t)vocab);
            }
        }
        free(all);
        free(some);
        hunch_model_close(&m);
    }
}

static hunch_request ask(const hunch_model *m, const hunch_token *prompt, size_t n) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = n;
    r.max_tokens = 40;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    return r;
}

static void test_greedy_writes_no_logits(void **state) {
    (void)state;
    static const hunch_token prompt[] = {1, 43, 47, 61, 78};
    static const char *const drafts[] = {NULL, "forced,accept=0.6,depth=5"};
    for (int f = 0; f < n_models; f++) {
        hunch_model *m = open_model(data_path(models[f]), "best", test_threads(), HUNCH_PRECISION_NATIVE);
        const hunch_request r = ask(m, prompt, sizeof prompt / sizeof *prompt);
        for (int d = 0; d < 2; d++) {
            hunch_engine *e = open_engine(m, drafts[d], 2, 64, HUNCH_KV_DEFAULT, 64, 128);
            answer shown = {0}, silent[2] = {{0}}, warm = {0};
            run_requests(e, &r, 1, true, &shown);
            assert_non_null(hn_pass_logits(e->runner, 0));
            run_requests(e, (hunch_request[]){r, r}, 2, false, silent);
            assert_null(hn_pass_logits(e->runner, 0));
            assert_same(&shown, &silent[0], models[f]);
            assert_same(&shown, &silent[1], models[f]);
            hunch_request other[] = {r, r, r}; /* rows with a reader have all logits */
            other[0].sampling.temperature = 0.7;
            other[1].sampling.repetition_penalty = 1.2;
            other[2].logprobs = true;
            for (int i = 0; i < 3; i++) {
                run_requests(e, &other[i], 1, false, &warm);
                assert_true((hn_pass_logits(e->runner, 0) == NULL) == (i == 0 && m->target.backend->one_wait)); /* drawn where they are */
                answer_free(&warm);
            }
            answer_free(&shown);
            answer_free(&silent[0]);
            answer_free(&silent[1]);
            hunch_engine_close(&e);
        }
        hunch_model_close(&m);
    }
}

/* The error of a session whose every logit is a NaN. */
static void failure(hunch_engine *e, const hunch_request *r, char message[MESSAGE]) {
    hunch_session *s = NULL;
    hunch_session_state st;
    must(hunch_session_open(&s, e, r, err));
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    hunch_session_get(s, &st);
    assert_int_equal(st.finish, HUNCH_FINISH_FAILED);
    assert_int_equal(st.n_tokens, 0);
    snprintf(message, MESSAGE, "%s", st.error.message);
    hunch_session_close(&s);
}

static void ignore_logits(void *user, size_t index, const float *logits, int vocab) {
    (void)user, (void)index, (void)logits, (void)vocab;
}

static void test_no_numbers(void **state) {
    (void)state;
    static const hunch_token prompt[] = {1, 43, 47};
    hunch_model *m = open_model(data_path(models[0]), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    const float nan = NAN;
    char silent[MESSAGE], shown[MESSAGE];
    hn_model *t = &m->target;
    for (int i = 0; i < t->arch.hidden; i++)
        t->backend->write(t->backend, hn_at(t->output_norm.w, sizeof nan * (size_t)i), &nan, sizeof nan);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 128);
    hunch_request r = ask(m, prompt, 3);
    failure(e, &r, silent);
    r.on_logits = ignore_logits;
    failure(e, &r, shown);
    assert_string_equal(silent, shown);
    assert_non_null(strstr(silent, "every logit is NaN"));
    assert_non_null(strstr(silent, "stories260K.f32.gguf: ")); /* of which model */
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* ---- chosen tokens -------------------------------------------------------------------------------------------------- */

enum { CHOSEN = 90, TOP = 7, INPUTS = 3 };

typedef struct chosen {
    const hn_model *m;
    hn_reduced_output reduced;
    hn_buf x, logits;
    hn_act act;
    hn_top top;
} chosen;

static void choose(const hn_exec *ex, const void *arg) {
    const chosen *c = arg;
    const hn_ops *o = ex->ops;
    const hn_count n = hn_number(INPUTS);
    const int vocab = c->m->arch.vocab;
    const int hidden = c->m->arch.hidden;
    const hn_output_rows all = {1, c->m->arch.logit_cap, n, {c->logits, vocab, vocab}}, none = {.scale = 1, .cap = all.cap};
    hn_top whole = c->top;
    whole.map = (hn_buf){NULL, 0};
    o->quantise(ex, n, (hn_matrix){c->x, hidden, hidden}, c->act);
    o->linear_top(ex, n, c->act, &c->m->output, &all, &whole);
    o->linear_top(ex, n, c->act, &c->reduced.w, &none, &c->top);
}

static hn_buf room(const hn_model *m, size_t bytes) {
    hn_buf b = {NULL, 0};
    must(m->backend->mem_create(m->backend, HN_MEM_READBACK, bytes, &b.mem, err));
    return b;
}

static void check_chosen(const hn_model *m) {
    const int hidden = m->arch.hidden, vocab = m->arch.vocab;
    chosen c = {.m = m, .x = room(m, sizeof(float) * (size_t)(INPUTS * hidden)),
                .logits = room(m, sizeof(float) * (size_t)(INPUTS * vocab)),
                .act = {room(m, m->backend->act_bytes(hidden, INPUTS)), hidden, INPUTS, m->output_forms},
                .top = {.k = TOP, .id = room(m, 4 * INPUTS * TOP), .value = room(m, 4 * INPUTS * TOP),
                        .scratch = room(m, m->backend->top_scratch(m->backend, INPUTS, TOP))}};
    int32_t ids[CHOSEN];
    uint8_t *is = calloc(1, (size_t)vocab);
    for (int i = 0; i < CHOSEN;) {
        const int id = below(vocab);
        if (!is[id]++) ids[i++] = id;
    }
    for (int i = 0; i < INPUTS * hidden; i++) {
        const float v = (float)below(2001) * 1e-3f - 1;
        m->backend->write(m->backend, hn_at(c.x, sizeof v * (size_t)i), &v, sizeof v);
    }
    must(hn_reduce_output(m, &m->output, ids, CHOSEN, &c.reduced, err));
    c.top.map = c.reduced.ids;
    hn_backend *b = m->backend;
    const hn_ticket t = b->submit(b, choose, &c);
    b->wait(b, t);
    const float *logits = b->read(b, t, c.logits, sizeof *logits * (size_t)(INPUTS * vocab));
    const float *value = b->read(b, t, c.top.value, 4 * INPUTS * TOP);
    const int32_t *best = b->read(b, t, c.top.id, 4 * INPUTS * TOP);
    for (int r = 0; r < INPUTS; r++, logits += vocab) {
        memset(is, 0, (size_t)vocab);
        for (int k = 0; k < TOP; k++) { /* the next best chosen token of the whole row */
            int32_t want = -1;
            for (int i = 0; i < CHOSEN; i++)
                if (!is[ids[i]] && (want < 0 || logits[ids[i]] > logits[want] ||
                                    (logits[ids[i]] == logits[want] && ids[i] < want)))
                    want = ids[i];
            assert_int_equal(best[r * TOP + k], want);
            assert_true(value[r * TOP + k] == logits[want]);
            is[want] = 1;
        }
    }
    free(is);
    hn_reduced_output_free(m, &c.reduced);
    const hn_buf all[] = {c.x, c.logits, c.act.data, c.top.id, c.top.value, c.top.scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) m->backend->mem_free(m->backend, all[i].mem);
}

static void test_chosen_tokens(void **state) {
    (void)state;
    for (int i = 0; i < 2 * n_models; i++) {
        hunch_model_options o;
        hunch_model *m = NULL;
        hunch_model_options_defaults(&o);
        o.threads = test_threads();
        o.mapped = i % 2;
        must(hunch_model_open(&m, data_path(models[i / 2]), &o, err));
        check_chosen(&m->target);
        hunch_model_close(&m);
    }
}

/* Factors of 8-bit floats belong to 128 consecutive rows. */
static void test_shared_factors(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(models[0]), "best", 1, HUNCH_PRECISION_NATIVE);
    const int32_t ids[] = {1, 2};
    hn_model other = m->target;
    hn_reduced_output out;
    hunch_error why = {0};
    other.output.dtype = HN_F8_E4M3;
    assert_int_equal(hn_reduce_output(&other, &other.output, ids, 2, &out, &why), HUNCH_REFUSED);
    assert_non_null(strstr(why.message, "F8_E4M3"));
    assert_null(out.mem);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_among_others), cmocka_unit_test(test_greedy_writes_no_logits),
                                       cmocka_unit_test(test_no_numbers), cmocka_unit_test(test_chosen_tokens),
                                       cmocka_unit_test(test_shared_factors)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
