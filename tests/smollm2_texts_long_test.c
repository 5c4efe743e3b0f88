/* SPDX-License-Identifier: Apache-2.0 */
/* smollm2_texts_long_test.c - 256 texts at once of a real model, 64 tokens each: the bits of each alone, plain and with `auto`; and texts
 * whose rows have only their best token hold no memory of logits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "model/pass_private.h"
#include "engine/engine.h"
#include "smollm2.h"

enum { TEXTS = 256, TOKENS = 64, CONTEXT = 128 };

static hunch_model *model;
static hunch_token *prompt[TEXTS];
static hunch_request request[TEXTS];
static answer want[TEXTS];

static int setup(void **state) {
    (void)state;
    static const char *const asked[] = {"Tell a story about a number: %d.", "What is the capital of country %d?", "Count from %d on:",
                                        "%d is"};
    model = open_model(smollm2_path(), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(model, NULL, 1, 0, HUNCH_KV_DEFAULT, 64, CONTEXT);
    for (int i = 0; i < TEXTS; i++) {
        char text[100];
        hunch_request *r = &request[i];
        snprintf(text, sizeof text, asked[i % 4], i);
        hunch_request_defaults(r, model);
        must(hunch_tokenize(model, text, strlen(text), 0, &prompt[i], &r->n_prompt, err));
        r->prompt = prompt[i];
        r->max_tokens = TOKENS;
        r->ignore_eos = true;
        r->sampling = (hunch_sampling){.temperature = i % 3 ? 0 : 0.8, .top_p = 1, .seed = (uint64_t)i};
        run_requests(e, r, 1, false, &want[i]);
    }
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        hunch_free(prompt[i]);
        answer_free(&want[i]);
    }
    hunch_model_close(&model);
    return 0;
}

static void test_as_alone(void **state) {
    (void)state;
    static const char *const drafts[] = {NULL, "ngram,min=1+suffix", "auto"};
    static answer got[TEXTS];
    for (int d = 0; d < 3; d++) {
        hunch_engine *e = open_engine(model, drafts[d], TEXTS, 0, HUNCH_KV_DEFAULT, 64, CONTEXT);
        run_requests(e, request, TEXTS, false, got);
        for (int i = 0; i < TEXTS; i++) {
            assert_same(&want[i], &got[i], drafts[d] ? drafts[d] : "plain");
            answer_free(&got[i]);
        }
        hunch_engine_close(&e);
    }
}

/* Bytes of the memory for logits that the system has given. */
static size_t resident(const hn_runner *r) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof(float) * (size_t)r->out.max_logits * (size_t)r->out.logits.ld;
    const uintptr_t at = (uintptr_t)r->m->backend->read(r->m->backend, (hn_ticket){0}, r->out.logits.at, 1);
    const uintptr_t first = (at + page - 1) / page * page;
    unsigned char *in = malloc(bytes / page + 1);
    size_t n = 0, pages = (at + bytes - first) / page;
    assert_int_equal(mincore((void *)first, pages * page, in), 0);
    for (size_t i = 0; i < pages; i++) n += in[i] & 1;
    free(in);
    return n * page;
}

static void test_memory_of_logits(void **state) {
    (void)state;
    enum { HUGE = 2 << 20, WHOLE = 64 };
    static answer got[TEXTS];
    static hunch_request greedy[TEXTS];
    hunch_engine *e = open_engine(model, NULL, TEXTS, 0, HUNCH_KV_DEFAULT, 64, CONTEXT);
    for (int i = 0; i < TEXTS; i++) {
        greedy[i] = request[i];
        greedy[i].sampling.temperature = 0;
        greedy[i].max_tokens = 3;
    }
    run_requests(e, greedy, TEXTS, false, got);
    for (int i = 0; i < TEXTS; i++) answer_free(&got[i]);
    assert_in_range(resident(e->runner), 0, 2 * HUGE); /* what shares a huge page with its neighbours */
    for (int i = 0; i < WHOLE; i++) greedy[i].logprobs = true;
    run_requests(e, greedy, TEXTS, false, got);
    for (int i = 0; i < TEXTS; i++) answer_free(&got[i]);
    assert_in_range(resident(e->runner), WHOLE * sizeof(float) * 49152 - HUGE, WHOLE * sizeof(float) * 49152 + 2 * HUGE);
    hunch_engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_of_logits), cmocka_unit_test(test_as_alone)};
    return smollm2_path() ? cmocka_run_group_tests(tests, setup, teardown) : SKIPPED;
}
