/* SPDX-License-Identifier: Apache-2.0 */
/* session_test.c - where a text ends: stop strings, end-of-sequence tokens and limits cut an accepted block exactly where
 * plain decoding stops; invalid requests are refused and leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"

static hunch_model *model, *bare;
static const hunch_token prompt[] = {1, 403, 407, 261, 378};

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    bare = open_model(data_path("goldens/llama-tied"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hunch_model_close(&model);
    hunch_model_close(&bare);
    return 0;
}

static hunch_request request(int max_tokens) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = max_tokens;
    return r;
}

static answer run_one(const char *draft, const hunch_request *r) {
    answer a = {0};
    hunch_engine *e = open_engine(model, draft, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
    run_requests(e, r, 1, false, &a);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    return a;
}

static const char *const perfect = "forced,accept=1,depth=9";

static void test_stop_strings(void **state) {
    (void)state;
    hunch_request r = request(120);
    answer whole = run_one(NULL, &r);
    const size_t len = strlen(whole.text);
    assert_true(len > 100);
    for (size_t at = 3; at + 6 < len; at += 5)
        for (size_t n = 1; n <= 6; n += 5) {
            char stop[8] = {0};
            memcpy(stop, whole.text + at, n);
            const char *const stops[] = {"never in it", stop};
            const size_t first = (size_t)(strstr(whole.text, stop) - whole.text);
            r.stop = stops;
            r.n_stop = 2;
            answer plain = run_one(NULL, &r), drafted = run_one(perfect, &r);
            assert_int_equal(plain.finish, HUNCH_FINISH_STOP);
            assert_int_equal(strlen(plain.text), first);
            assert_memory_equal(plain.text, whole.text, first);
            assert_same(&plain, &drafted, stop);
            assert_string_equal(plain.text, drafted.text);
    /* the last token completed the stop string */
            char *before;
            size_t before_len;
            must(hunch_detokenize(model, plain.token, plain.n - 1, &before, &before_len, err));
            assert_null(strstr(before, stop));
            hunch_free(before);
            answer_free(&plain);
            answer_free(&drafted);
        }
    answer_free(&whole);
}

/* The text shown so far never shrinks and is always a prefix of the final text. */
static void test_shown_text_grows(void **state) {
    (void)state;
    const char *const stops[] = {"xyzzy", ". The"};
    hunch_request r = request(150);
    r.stop = stops;
    r.n_stop = 2;
    hunch_engine *e = open_engine(model, "forced,accept=0.8,depth=5", 1, 64, HUNCH_KV_DEFAULT, 64, 256);
    hunch_session *s = NULL;
    hunch_session_state st;
    char shown[4096];
    size_t len = 0;
    must(hunch_session_open(&s, e, &r, err));
    do {
        must(hunch_engine_round(e, err));
        hunch_session_get(s, &st);
        assert_true(st.text_len >= len);
        assert_memory_equal(st.text, shown, len);
        memcpy(shown, st.text, st.text_len);
        len = st.text_len;
    } while (st.finish == HUNCH_RUNNING);
    assert_null(memmem(shown, len, ". The", 5));
    hunch_session_close(&s);
    hunch_engine_close(&e);
}

static void test_limits(void **state) {
    (void)state;
    for (int n = 1; n <= 24; n++) {
        hunch_request r = request(n);
        answer plain = run_one(NULL, &r), drafted = run_one(perfect, &r);
        assert_int_equal(plain.n, n);
        assert_int_equal(drafted.finish, HUNCH_FINISH_LENGTH);
        assert_same(&plain, &drafted, "limit");
        if (n > 2) assert_true(drafted.rounds < plain.rounds);
        answer_free(&plain);
        answer_free(&drafted);
    }
}

/* A bias makes the model repeat one token for ever. The answer ends with the token that completes the fourth occurrence, also in the
 * middle of an accepted block; with fewer occurrences it continues to its limit. */
static void test_loops(void **state) {
    (void)state;
    const hunch_bias bias = {.token = 300, .bias = 1000};
    for (int tokens = 1; tokens <= 9; tokens += 2) {
        hunch_request r = request(60);
        r.sampling.bias = &bias;
        r.sampling.n_bias = 1;
        r.loop_tokens = tokens;
        answer plain = run_one(NULL, &r), drafted = run_one(perfect, &r);
        assert_int_equal(plain.n, 4 * tokens);
        assert_int_equal(plain.finish, HUNCH_FINISH_LOOP);
        assert_int_equal(drafted.finish, HUNCH_FINISH_LOOP);
        assert_same(&plain, &drafted, "loop");
        assert_string_equal(plain.text, drafted.text);
        answer_free(&plain);
        answer_free(&drafted);
        r.max_tokens = 4 * tokens - 1;
        answer shorter = run_one(perfect, &r);
        assert_int_equal(shorter.finish, HUNCH_FINISH_LENGTH);
        answer_free(&shorter);
        r.max_tokens = 60;
        r.loop_tokens = 0;
        answer on = run_one(perfect, &r);
        assert_int_equal(on.n, 60);
        answer_free(&on);
    }
    hunch_request r = request(1);
    r.loop_tokens = -1;
    hunch_engine *e = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 64);
    hunch_session *s = NULL;
    hunch_error err = {0};
    assert_int_equal(hunch_session_open(&s, e, &r, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "loop_tokens is -1"));
    hunch_engine_close(&e);
}

static void test_context_end(void **state) {
    (void)state;
    hunch_request r = request(0);
    r.ignore_eos = true;
    for (int context = 5; context < 40; context += 3) {
        answer a[2] = {{0}};
        for (int d = 0; d < 2; d++) {
            hunch_engine *e = open_engine(model, d ? perfect : NULL, 1, 64, HUNCH_KV_DEFAULT, 16, context);
            run_requests(e, &r, 1, false, &a[d]);
            hunch_engine_close(&e);
        }
        assert_int_equal(a[0].n, context > 5 ? context - 5 : 1);
        assert_int_equal(a[0].finish, HUNCH_FINISH_LENGTH);
        assert_same(&a[0], &a[1], "context end");
        answer_free(&a[0]);
        answer_free(&a[1]);
    }
}

/* This model ends its stories with BOS, which its file marks as a control token but not as an end; EOS is 2. Sampling is repeated until
 * an end token comes. */
static void test_end_of_sequence(void **state) {
    (void)state;
    int ended = 0;
    for (uint64_t seed = 0; seed < 60 && ended < 3; seed++) {
        hunch_request r = request(200);
        r.sampling = (hunch_sampling){.temperature = 8, .top_p = 1, .seed = seed};
        answer plain = run_one(NULL, &r), drafted = run_one(perfect, &r);
        assert_same(&plain, &drafted, "end of sequence");
        assert_int_equal(plain.finish, drafted.finish);
        if (plain.finish == HUNCH_FINISH_STOP) {
            ended++;
            assert_int_equal(plain.token[plain.n - 1], 2);
            r.ignore_eos = true;
            answer on = run_one(perfect, &r);
            assert_true(on.n > plain.n);
            answer_free(&on);
        }
        answer_free(&plain);
        answer_free(&drafted);
    }
    assert_true(ended > 0);
}

static void refuse(hunch_engine *e, const hunch_request *r, hunch_status want, const char *word) {
    hunch_session *s = NULL;
    hunch_error err = {0};
    assert_int_equal(hunch_session_open(&s, e, r, &err), want);
    assert_null(s);
    assert_non_null(strstr(err.message, word));
    assert_null(strchr(err.message, '\n'));
    assert_true(hn_cache_valid(e->cache));
}

static void test_bad_requests(void **state) {
    (void)state;
    hunch_engine *e = open_engine(model, "ngram", 1, 64, HUNCH_KV_DEFAULT, 64, 32),
                 *n = open_engine(bare, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 32);
    static hunch_token many[33] = {0};
    const hunch_token outside[] = {1, 512}, negative[] = {-1};
    const char *const stops[] = {"x", ""};
    hunch_request r = request(4);
    r.n_prompt = 0;
    refuse(e, &r, HUNCH_USAGE, "empty");
    r = request(4);
    r.prompt = many;
    r.n_prompt = 33;
    refuse(e, &r, HUNCH_USAGE, "33 tokens");
    r = request(4);
    r.prompt = outside;
    r.n_prompt = 2;
    refuse(e, &r, HUNCH_USAGE, "512");
    r.prompt = negative;
    r.n_prompt = 1;
    refuse(e, &r, HUNCH_USAGE, "-1");
    r = request(4);
    r.stop = stops;
    r.n_stop = 2;
    refuse(e, &r, HUNCH_USAGE, "stop string 1");
    r.n_stop = 1;
    refuse(n, &r, HUNCH_USAGE, "tokenizer");
    r = request(4);
    r.sampling.temperature = -1;
    refuse(e, &r, HUNCH_USAGE, "temperature");
    r.sampling.temperature = NAN;
    refuse(e, &r, HUNCH_USAGE, "temperature");
    r = request(4);
    const hunch_bias unknown = {512, 1};
    r.sampling.bias = &unknown;
    r.sampling.n_bias = 1;
    refuse(e, &r, HUNCH_USAGE, "512");
    r = request(4);
    r.prediction = outside;
    r.n_prediction = 2;
    refuse(e, &r, HUNCH_USAGE, "prediction token 1");
    r = request(4);
    r.sampling.dry_multiplier = 1;
    r.sampling.dry_breakers = stops;
    r.sampling.n_dry_breakers = 1;
    hunch_request of_bare = r;
    refuse(n, &of_bare, HUNCH_USAGE, "tokenizer");
    r.sampling.n_dry_breakers = 2;
    refuse(e, &r, HUNCH_USAGE, "breaker");
    r = request(4);
    r.n_stop = 1;
    refuse(e, &r, HUNCH_USAGE, "stop string 0");
    const char *crowd[HUNCH_MOST_STOPS + 1];
    char longest[HUNCH_MOST_STOP_BYTES + 2] = {0};
    memset(longest, 'x', sizeof longest - 1);
    for (int i = 0; i <= HUNCH_MOST_STOPS; i++) crowd[i] = "y";
    r = request(4);
    r.stop = crowd;
    r.n_stop = HUNCH_MOST_STOPS + 1;
    refuse(e, &r, HUNCH_USAGE, "65 stop strings");
    crowd[1] = longest;
    r.n_stop = 2;
    refuse(e, &r, HUNCH_USAGE, "stop string 1 has 1025 bytes");
    r = request(4);
    r.sampling.dry_multiplier = 1;
    r.sampling.dry_breakers = crowd;
    r.sampling.n_dry_breakers = 2;
    refuse(e, &r, HUNCH_USAGE, "breaker 1 has 1025 bytes");
    r.sampling.n_dry_breakers = HUNCH_MOST_BREAKERS + 1;
    refuse(e, &r, HUNCH_USAGE, "17 DRY breakers");
    hunch_session *s = NULL;
    r = request(4);
    must(hunch_session_open(&s, e, &r, err));
    hunch_session_cancel(s);
    hunch_session_state st;
    hunch_session_get(s, &st);
    assert_int_equal(st.finish, HUNCH_FINISH_CANCELLED);
    hunch_session_close(&s);
    hunch_engine_close(&e);
    hunch_engine_close(&n);
}

/* A sampler has 8 bytes a token of the vocabulary and more: a text that waits, or has ended, has none. What it is made of was copied. */
static void test_samplers(void **state) {
    (void)state;
    enum { N = 3 };
    hunch_bias bias[] = {{403, 50}};
    const char *breakers[] = {"a", "e"};
    answer want = {0};
    hunch_request r = request(12);
    hunch_session *s[N];
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = 0.9, .top_p = 1, .seed = 4, .bias = bias, .n_bias = 1, .dry_multiplier = 3,
                                  .dry_breakers = breakers, .n_dry_breakers = 2};
    hunch_engine *e = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
    run_requests(e, &r, 1, false, &want);
    for (int i = 0; i < N; i++) must(hunch_session_open(&s[i], e, &r, err));
    memset(bias, 0, sizeof bias);
    memset(breakers, 0, sizeof breakers);
    for (bool more = true; more;) {
        for (int i = 0; i < N; i++) assert_int_equal(s[i]->sampler.id != NULL, s[i]->id >= 0);
        more = hunch_engine_running(e) > 0;
        if (more) must(hunch_engine_round(e, err));
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(hn_session_emitted(s[i]), want.n);
        assert_memory_equal(s[i]->text.token + s[i]->text.n_prompt, want.token, want.n * sizeof *want.token);
        hunch_session_close(&s[i]);
    }
    answer_free(&want);
    hunch_engine_close(&e);
}

/* Rules, drafters and pools that cannot be combined are refused when the engine opens, with their names; so are numbers that a caller
 * in another language may send. */
static void test_bad_engines(void **state) {
    (void)state;
    static char self[600], other[600];
    snprintf(self, sizeof self, "model:%s", data_path("models/stories260K/stories260K.f16.gguf"));
    snprintf(other, sizeof other, "model:%s", data_path("models/babyllama105/babyllama105.q8_0.gguf"));
    const struct {
        const char *drafts[2];
        hunch_verify verify;
        hunch_lossy lossy;
        hunch_status want;
        const char *word;
        hunch_kv kv;
    } bad[] = {
        {{"ngram", NULL}, HUNCH_VERIFY_BLOCK, {0}, HUNCH_USAGE, "ngram", HUNCH_KV_DEFAULT},
        {{"suffix", NULL}, HUNCH_VERIFY_TRAVERSAL, {0}, HUNCH_USAGE, "suffix", HUNCH_KV_DEFAULT},
        {{self, "ngram"}, HUNCH_VERIFY_RATIO, {0}, HUNCH_USAGE, "ngram", HUNCH_KV_DEFAULT},
        {{"ngram", NULL}, HUNCH_VERIFY_MATCH, {HUNCH_LOSSY_TOP_M, 2, 0}, HUNCH_USAGE, "lossy", HUNCH_KV_DEFAULT},
        {{"ngram", NULL}, HUNCH_VERIFY_DEFAULT, {HUNCH_LOSSY_LENIENCE, 0, 0}, HUNCH_USAGE, "lenience", HUNCH_KV_DEFAULT},
        {{"ngram", NULL}, HUNCH_VERIFY_DEFAULT, {HUNCH_LOSSY_TOP_M, 0, 0}, HUNCH_USAGE, "top-m", HUNCH_KV_DEFAULT},
        {{other, NULL}, HUNCH_VERIFY_DEFAULT, {0}, HUNCH_REFUSED, "105", HUNCH_KV_DEFAULT},
        {{"model", NULL}, HUNCH_VERIFY_DEFAULT, {0}, HUNCH_USAGE, "model", HUNCH_KV_DEFAULT},
        {{"model:/nowhere/x.gguf", NULL}, HUNCH_VERIFY_DEFAULT, {0}, HUNCH_REFUSED, "/nowhere/x.gguf", HUNCH_KV_DEFAULT},
        {{"oracle", NULL}, HUNCH_VERIFY_DEFAULT, {0}, HUNCH_USAGE, "suffix", HUNCH_KV_DEFAULT},
        {{"ngram", NULL}, HUNCH_VERIFY_DEFAULT, {0}, HUNCH_REFUSED, "multiple of 32, not of 8", HUNCH_KV_Q8_0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hunch_engine_options o;
        hunch_engine *e = NULL;
        hunch_error err = {0};
        hunch_engine_options_defaults(&o);
        o.drafts = bad[i].drafts;
        o.n_drafts = bad[i].drafts[1] ? 2 : 1;
        o.verify = bad[i].verify;
        o.lossy = bad[i].lossy;
        o.kv = bad[i].kv;
        o.context = 64;
        if (hunch_engine_open(&e, model, &o, &err) != bad[i].want || !strstr(err.message, bad[i].word))
            fail_msg("case %zu: status %d, '%s'", i, err.status, err.message);
        assert_null(e);
    }
}

/* Invalid numbers are refused with an error, not accepted as others nor left to an assertion. */
static void test_bad_options(void **state) {
    (void)state;
    static const char *const none[] = {NULL};
    const struct {
        size_t at; /* of an int of hunch_engine_options */
        int value;
        const char *word;
    } bad[] = {{offsetof(hunch_engine_options, pool_rows), -1, "pool_rows -1"},
               {offsetof(hunch_engine_options, kv), -1, "cache type -1"},
               {offsetof(hunch_engine_options, kv), 5, "cache type 5"},
               {offsetof(hunch_engine_options, chunk), -1, "chunk -1"},
               {offsetof(hunch_engine_options, parallel), 257, "parallel 257"},
               {offsetof(hunch_engine_options, context), -1, "context -1"},
               {offsetof(hunch_engine_options, page_rows), 48, "page rows 48"},
               {offsetof(hunch_engine_options, verify), -1, "verify -1"},
               {offsetof(hunch_engine_options, verify), 6, "verify 6"},
               {offsetof(hunch_engine_options, lossy.rule), -1, "rule -1"},
               {offsetof(hunch_engine_options, lossy.rule), 4, "rule 4"},
               {offsetof(hunch_engine_options, n_drafts), 2, "2 drafters"}};
    hunch_engine *e = NULL;
    hunch_error err = {0};
    hunch_engine_options o;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hunch_engine_options_defaults(&o);
        memcpy((char *)&o + bad[i].at, &bad[i].value, sizeof(int));
        if (hunch_engine_open(&e, model, &o, &err) != HUNCH_USAGE || !strstr(err.message, bad[i].word))
            fail_msg("case %zu: status %d, '%s'", i, err.status, err.message);
        assert_null(e);
    }
    hunch_engine_options_defaults(&o);
    o.drafts = none;
    o.n_drafts = 1;
    assert_int_equal(hunch_engine_open(&e, model, &o, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "drafter 0"));
}

static void test_what_a_row_reads(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("goldens/gemma3_text-local"), "best", 1, HUNCH_PRECISION_NATIVE);
    const hn_arch *a = &m->target.arch;
    uint64_t all = 0, windows = 0;
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        *(d->window ? &windows : &all) += 2 * (uint64_t)d->kv_heads * (uint64_t)d->head_dim;
    }
    assert_true(all > 0 && windows > 0);
    assert_int_equal(hunch_model_kv_elements(m, 3), 3 * (all + windows));
    assert_int_equal(hunch_model_kv_elements(m, 1000), 1000 * all + (uint64_t)a->layer[0].window * windows);
    hunch_model_close(&m);
}

/* Room for as much again as the prompt, at most the model's context. */
static void test_context_for(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("goldens/gemma3_text-local"), "best", 1, HUNCH_PRECISION_NATIVE);
    m->target.arch.context = 32768; /* as the published models have it */
    assert_int_equal(hunch_model_context_for(m, 1), 2);
    assert_int_equal(hunch_model_context_for(m, 4097), 16384);
    assert_int_equal(hunch_model_context_for(m, 8193), 32768);
    assert_int_equal(hunch_model_context_for(m, 32768), 32768);
    assert_int_equal(hunch_model_context_for(m, 32769), 0);
    m->target.arch.context = 3000; /* no power of two */
    assert_int_equal(hunch_model_context_for(m, 2000), 3000);
    assert_int_equal(hunch_model_context_for(m, SIZE_MAX), 0);
    hunch_model_close(&m);
}

static void test_text_alone(void **state) {
    (void)state;
    hunch_model_options o;
    hunch_error err = {0};
    hunch_model *m = NULL;
    hunch_engine *e = NULL;
    hunch_engine_options eo;
    hunch_meter *meter;
    hunch_model_info info;
    hunch_token *ids = NULL;
    size_t n = 0;
    hunch_model_options_defaults(&o);
    o.text_only = true;
    assert_int_equal(hunch_model_open(&m, data_path("models/stories260K/stories260K.f32.gguf"), &o, &err), HUNCH_OK);
    hunch_model_get_info(m, &info);
    assert_int_equal(info.vocab, 512);
    assert_true(info.weight_bytes == 0);
    assert_int_equal(hunch_tokenize(m, "Once upon", 9, HUNCH_TEXT_ADD_SPECIAL, &ids, &n, &err), HUNCH_OK);
    assert_true(n >= 3 && ids[0] == prompt[0] && ids[1] == prompt[1] && ids[2] == prompt[2]);
    hunch_free(ids);
    hunch_engine_options_defaults(&eo);
    assert_int_equal(hunch_engine_open(&e, m, &eo, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "weights"));
    assert_int_equal(hunch_meter_open(&meter, m, &o, &err), HUNCH_USAGE);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_alone),       cmocka_unit_test(test_what_a_row_reads),
                                       cmocka_unit_test(test_context_for),      cmocka_unit_test(test_bad_engines),
                                       cmocka_unit_test(test_stop_strings),     cmocka_unit_test(test_shown_text_grows),
                                       cmocka_unit_test(test_limits),           cmocka_unit_test(test_loops),
                                       cmocka_unit_test(test_context_end),      cmocka_unit_test(test_end_of_sequence),
                                       cmocka_unit_test(test_bad_requests),     cmocka_unit_test(test_bad_options),
                                       cmocka_unit_test(test_samplers)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
