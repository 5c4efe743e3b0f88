/* SPDX-License-Identifier: Apache-2.0 */
/* vulkan_pass_test.c - passes on a device: their barriers, texts against this CPU's, what is refused, a device that is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "fixture.h"
#include "vulkan/vk_device.h"

static const char stories[] = "models/stories260K/stories260K.f32.gguf";

static hunch_model *open_on(const char *name, const char *device, hunch_precision precision) {
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_model_options_defaults(&o);
    o.device = device;
    o.precision = precision;
    must(hunch_model_open(&m, data_path(name), &o, err));
    return m;
}

/* Rows of a tree and of another text. */
static void run_pass(hn_runner *r, hn_cache *cache) {
    const int seqs[] = {0, 1};
    static const int16_t parent[] = {-1, 0, 0, 1, 2, -1, 5};
    hn_row row[7];
    (void)cache;
    for (int i = 0; i < 7; i++) row[i] = (hn_row){.token = 3 + i, .seq = i >= 5, .parent = parent[i], .logits = HN_LOGITS_ALL};
    must(hn_pass_run(r, row, 7, seqs, 2, err));
}

/* Every barrier of a recorded pass is needed, and none is missing. */
static void test_barriers(void **state) {
    (void)state;
    hunch_model *m = open_on(stories, "vulkan:0", HUNCH_PRECISION_NATIVE);
    const hn_model *t = &m->target;
    vk_device *d = vk_of(t->backend)->d;
    hn_cache_group g[HN_MODEL_GROUPS];
    const int groups = hn_kv_groups(hn_layers_of(&t->arch), HN_BF16, g, NULL);
    hn_cache *cache = NULL;
    hn_runner *r = NULL;
    vk_log log = {0};
    for (int i = 0; i < groups; i++) g[i].page_rows = 16;
    must(hn_cache_open(&cache, t->backend, g, groups, 2, 128, 0, err));
    must(hn_runner_open(&r, t, cache, 0, 128, NULL, err));
    hn_cache_seq_begin(cache, 0);
    hn_cache_seq_begin(cache, 1);
    d->log = &log;
    run_pass(r, cache);
    d->log = NULL;
    int barriers = 0, kernels = 0;
    assert_int_equal(hn_vk_log_fault(&log, -1), -1);
    for (int i = 0; i < log.n; i++) {
        kernels += !log.note[i].barrier && log.note[i].n > 1;
        if (!log.note[i].barrier) continue;
        barriers++;
        if (hn_vk_log_fault(&log, i) < 0) fail_msg("barrier %d, behind note %d, is not needed", barriers, i);
    }
    assert_true(barriers > 5 * t->arch.layers && kernels > 10 * t->arch.layers);
    hn_free(log.note);
    hn_runner_close(&r);
    hn_cache_close(&cache);
    hunch_model_close(&m);
}

static void ask(hunch_model *m, const char *draft, double temperature, uint64_t seed, answer *a) {
    static const hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_engine *e = open_engine(m, draft, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = 60;
    r.sampling = (hunch_sampling){.top_p = 1, .temperature = (float)temperature, .seed = seed};
    run_requests(e, &r, 1, false, a);
    hunch_engine_close(&e);
}

static void same_answer(const answer *a, const answer *b) {
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) assert_int_equal(a->token[i], b->token[i]);
}

/* Plain, drafted and drawn texts of a device; greedy ones are this CPU's. */
static void test_texts(void **state) {
    (void)state;
    hunch_model *on = open_on(stories, "vulkan", HUNCH_PRECISION_F32), *here = open_on(stories, "cpu", HUNCH_PRECISION_F32);
    answer plain = {0}, cpu = {0}, drafted = {0}, drawn = {0}, again = {0};
    ask(here, NULL, 0, 1, &cpu);
    ask(on, NULL, 0, 1, &plain);
    ask(on, "ngram+suffix", 0, 1, &drafted);
    ask(on, NULL, 0.8, 7, &drawn);
    ask(on, "ngram", 0.8, 7, &again);
    same_answer(&plain, &cpu);
    same_answer(&plain, &drafted);
    same_answer(&drawn, &again);
    answer_free(&plain), answer_free(&cpu), answer_free(&drafted), answer_free(&drawn), answer_free(&again);
    hunch_model_close(&on);
    hunch_model_close(&here);
}

static void refused(const char *model, const char *device, hunch_status status, const char *says) {
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.device = device;
    assert_int_equal(hunch_model_open(&m, data_path(model), &o, &err), status);
    if (!strstr(err.message, says)) fail_msg("%s does not say %s", err.message, says);
}

static void test_refused(void **state) {
    (void)state;
    refused(stories, "vulkan:9", HUNCH_USAGE, "there is no such device");
    refused(stories, "cuda", HUNCH_USAGE, "device cuda: expected cpu, auto, vulkan or vulkan:N");
    refused(stories, "vulkan:x", HUNCH_USAGE, "expected cpu");
    refused("goldens/qwen3_5-dense", "vulkan:0", HUNCH_REFUSED, "a gated delta net");
    refused("goldens/mamba2-plain", "vulkan:0", HUNCH_REFUSED, "a state space layer");
    refused("goldens/granitemoehybrid-dense", "vulkan:0", HUNCH_REFUSED, "a state space layer");
    refused("goldens/deepseek_v2-lite", "vulkan:0", HUNCH_REFUSED, "latent attention");
    refused("goldens/mixtral-top2", "vulkan:0", HUNCH_REFUSED, "experts");
    refused("goldens/qwen3-fp8", "vulkan:0", HUNCH_REFUSED, "has type F8_E4M3");
    hunch_model *m = open_on(stories, "auto", HUNCH_PRECISION_NATIVE); /* lavapipe is no GPU */
    assert_non_null(m);
    hunch_model_close(&m);
}

/* A device that is lost ends the texts, which keep what they have, and one that waits; nothing else opens on it, and what was opened can be
 * closed. */
static void test_lost(void **state) {
    (void)state;
    enum { TEXTS = 3 };
    hunch_model *m = open_on(stories, "vulkan:0", HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, NULL, TEXTS - 1, 64, HUNCH_KV_DEFAULT, 64, 256), *other = NULL;
    hunch_engine_options o;
    hunch_session *s[TEXTS];
    hunch_session_state now[TEXTS] = {{0}};
    static const hunch_token prompt[] = {1, 403, 407};
    hunch_request r;
    hunch_error err = {0};
    hunch_request_defaults(&r, m);
    hunch_engine_options_defaults(&o);
    r.prompt = prompt;
    r.n_prompt = 3;
    r.max_tokens = 50;
    for (int i = 0; i < TEXTS; i++) assert_int_equal(hunch_session_open(&s[i], e, &r, &err), HUNCH_OK);
    while (now[0].n_tokens < 10) {
        assert_int_equal(hunch_engine_round(e, &err), HUNCH_OK);
        hunch_session_get(s[0], &now[0]);
    }
    vk_of(m->target.backend)->d->lost = true;
    assert_int_equal(hunch_engine_round(e, &err), HUNCH_DEVICE_LOST);
    assert_int_equal(hunch_engine_running(e), 0);
    for (int i = 0; i < TEXTS; i++) {
        hunch_session_get(s[i], &now[i]);
        assert_int_equal(now[i].finish, HUNCH_FINISH_FAILED);
        assert_int_equal(now[i].error.status, HUNCH_DEVICE_LOST);
        assert_non_null(strstr(now[i].error.message, "the device was lost"));
        hunch_session_close(&s[i]);
    }
    assert_true(now[0].n_tokens >= 10 && now[0].text_len > 0 && now[TEXTS - 1].n_tokens == 0);
    assert_int_equal(hunch_engine_open(&other, m, &o, &err), HUNCH_DEVICE_LOST);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    hunch_device list[HUNCH_DEVICES];
    hunch_error err = {0};
    int n = 0;
    if (hunch_devices(list, &n, &err) || n == 0) {
        printf("skipped: %s\n", n == 0 && !err.message[0] ? "no device" : err.message);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_barriers), cmocka_unit_test(test_texts), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
