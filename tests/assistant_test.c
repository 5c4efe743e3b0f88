/* SPDX-License-Identifier: Apache-2.0 */
/* assistant_test.c - draft heads whose layers read their target's keys and values (Gemma 4's assistants): texts are those of plain
 * decoding, alone and in company, as chains and trees, after prefix hits and preemptions and across windows' edges; drafts do not depend
 * on the company, on pages, chunks or threads, and are the same from a folder and from a GGUF. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"
#include "levels_as_best.h"
#include "command.h"
#include "preempt_for_tests.h"
#include "random_assistant.h"

enum { SEQS = 8, TEXT = 60, TOKENS = 24 };

/* Layers with windows alone; one full layer before layers with windows; Gemma 4's with shared keys and values, and with K = V. */
static const char *const families[] = {"goldens/mistral-sliding", "goldens/qwen2-window", "goldens/gemma4-e", "goldens/gemma4-keqv"};
enum { FAMILIES = sizeof families / sizeof *families };

static hunch_token prompt[SEQS][TEXT];

static hunch_model *open_family(int f, const char *isa) {
    return open_model(data_path(families[f]), isa, test_threads(), HUNCH_PRECISION_NATIVE);
}

/* Prompts before, at and behind the edge of a window of 16. */
static void make_requests(hunch_request *r, const hunch_model *m, double temperature) {
    static const size_t length[SEQS] = {1, 2, 13, 15, 16, 17, 33, TEXT};
    for (int i = 0; i < SEQS; i++) {
        for (int k = 0; k < TEXT; k++) prompt[i][k] = (k * (i + 3) + 5 * i) % 200 + 1;
        hunch_request_defaults(&r[i], m);
        r[i].prompt = prompt[i];
        r[i].n_prompt = length[i];
        r[i].max_tokens = TOKENS;
        r[i].ignore_eos = true;
        r[i].sampling = (hunch_sampling){.temperature = temperature, .top_p = 1, .seed = 70 + (uint64_t)i};
    }
}

static hunch_engine_options options_of(int parallel) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = 256;
    o.page_rows = 16;
    return o;
}

/* parallel 1: one after the other. Returns how many drafts were accepted. */
static uint64_t run(hunch_model *m, const char *spec, hunch_engine_options o, double temperature, answer out[SEQS]) {
    hunch_request r[SEQS];
    uint64_t accepted = 0;
    hunch_engine *e = open_engine_with(m, spec, o);
    make_requests(r, m, temperature);
    for (int i = 0; i < SEQS; i += o.parallel) run_requests(e, r + i, o.parallel, true, out + i);
    for (int i = 0; i < SEQS; i++) accepted += out[i].accepted;
    hunch_engine_close(&e);
    return accepted;
}

static void free_answers(answer *a) {
    for (int i = 0; i < SEQS; i++) answer_free(&a[i]);
}

static void same_answers(answer *want, answer *got, const char *what) {
    for (int i = 0; i < SEQS; i++) assert_same(&want[i], &got[i], what);
    free_answers(got);
}

/* Chains and trees, each position of the queries, with centroids and without, one text and eight at a time. */
static void test_lossless(void **state) {
    (void)state;
    static const char *const options[] = {"depth=4,force=0.7", "depth=3,tree=dynamic,topk=3,total=9,force=0.6,position=step",
                                          "tree=mc_sim_7b_63,force=0.7,position=last", "depth=20,output=full,position=step,kv=f32",
                                          "depth=3,tree=opt,topk=3,total=9+ngram,min=1"};
    for (int f = 0; f < FAMILIES; f++) {
        hunch_model *m = open_family(f, "best");
        const char *head = assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant"));
        for (int sampled = 0; sampled < 2; sampled++) {
            answer want[SEQS] = {{0}}, got[SEQS] = {{0}};
            (void)run(m, NULL, options_of(1), sampled ? 0.9 : 0, want);
            for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
                char spec[800];
                snprintf(spec, sizeof spec, "assistant:%s,%s", head, options[i]);
                const uint64_t accepted = run(m, spec, options_of(i % 2 ? 1 : SEQS), sampled ? 0.9 : 0, got);
                if (strstr(options[i], "force") && accepted < 20) fail_msg("%s: %d accepted", spec, (int)accepted);
                same_answers(want, got, spec);
            }
            free_answers(want);
        }
        hunch_model_close(&m);
    }
}

/* Rules that need q: the text does not depend on the company, which would change it if q did. Any token may come at this temperature. */
static void test_company(void **state) {
    (void)state;
    static const struct {
        const char *options;
        hunch_verify verify;
    } cases[] = {{"depth=4", HUNCH_VERIFY_RATIO}, {"depth=3,output=full", HUNCH_VERIFY_BLOCK}, {"depth=3", HUNCH_VERIFY_TRAVERSAL}};
    hunch_model *m = open_family(1, "best");
    const char *head = assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant"));
    uint64_t accepted = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer alone[SEQS] = {{0}}, together[SEQS] = {{0}};
        char spec[800];
        hunch_engine_options o = options_of(1);
        o.verify = cases[i].verify;
        snprintf(spec, sizeof spec, "assistant:%s,%s", head, cases[i].options);
        accepted += run(m, spec, o, 20, alone);
        o.parallel = SEQS;
        (void)run(m, spec, o, 20, together);
        same_answers(alone, together, spec);
        free_answers(alone);
    }
    assert_true(accepted > 5);
    hunch_model_close(&m);
}

/* ---- drafts themselves ---------------------------------------------------------------------------------------------------- */

typedef struct drafts {
    hunch_token token[8];
    float logits[8][512];
    int n;
} drafts;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    drafts *d = user;
    memcpy(d->logits[level], logits, (size_t)vocab * sizeof *logits);
    d->n = level + 1;
}

static drafts draft_after(hunch_model *m, const char *spec, const hunch_token *text, size_t n, int page_rows, int chunk, hunch_kv kv) {
    drafts d = {.n = 0};
    hunch_draft_result r;
    hunch_engine *e = open_engine(m, spec, 1, chunk, kv, page_rows, 256);
    must(hunch_draft(e, text, n, 4, -1, NULL, take_logits, &d, &r, err));
    assert_int_equal(r.n, 4);
    for (int i = 0; i < 4; i++) d.token[i] = r.node[i].token;
    hunch_free(r.node);
    hunch_engine_close(&e);
    return d;
}

static void same_drafts(const drafts *a, const drafts *b, const char *what) {
    for (int i = 0; i < 4; i++)
        if (a->token[i] != b->token[i] || memcmp(a->logits[i], b->logits[i], sizeof a->logits[i])) fail_msg("%s: level %d", what, i);
}

static void test_same_drafts(void **state) {
    (void)state;
    static hunch_token text[100];
    for (int i = 0; i < 100; i++) text[i] = i * 7 % 190 + 2;
    for (int f = 0; f < FAMILIES; f++) {
        hunch_model *m = open_family(f, "best");
        char own[700], gguf[700];
        snprintf(own, sizeof own, "assistant:%s", assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant")));
        must(hunch_convert(test_path("assistant"), test_path("assistant.gguf"), NULL, err));
        snprintf(gguf, sizeof gguf, "%s", test_path("assistant.gguf")); /* its kind is found */
        for (size_t n = 1; n <= 100; n += n < 30 ? 7 : 35) {
            const drafts want = draft_after(m, own, text, n, 16, 64, HUNCH_KV_DEFAULT);
            const drafts of_gguf = draft_after(m, gguf, text, n, 64, 64, HUNCH_KV_DEFAULT);
            const drafts chunks = draft_after(m, own, text, n, 32, 5, HUNCH_KV_DEFAULT);
            same_drafts(&want, &of_gguf, "from a GGUF, pages of 64");
            same_drafts(&want, &chunks, "chunks of 5, pages of 32");
        }
        hunch_model_close(&m);
    }
}

/* The positions of the queries make a difference, and agree where they are the same. */
static void test_positions(void **state) {
    (void)state;
    static hunch_token text[40];
    for (int i = 0; i < 40; i++) text[i] = i * 7 % 190 + 2;
    hunch_model *m = open_family(1, "best");
    const char *head = assistant_write(&SMALL_ASSISTANT, &m->target.arch, test_path("assistant"));
    drafts d[3];
    static const char *const names[] = {"root", "last", "step"};
    for (int i = 0; i < 3; i++) {
        char spec[800];
        snprintf(spec, sizeof spec, "assistant:%s,position=%s", head, names[i]);
        d[i] = draft_after(m, spec, text, 40, 16, 64, HUNCH_KV_F32);
    }
    const size_t size = sizeof d[0].logits[0];
    assert_memory_equal(d[0].logits[0], d[2].logits[0], size); /* n at the first level */
    assert_memory_not_equal(d[0].logits[0], d[1].logits[0], size);
    assert_memory_not_equal(d[0].logits[1], d[2].logits[1], size);
    hunch_model_close(&m);
}

/* ---- prefixes and preemption ------------------------------------------------------------------------------------------------- */

/* A prompt that another text left: its rows are restored, and the first round drafts. */
static void test_prefix(void **state) {
    (void)state;
    hunch_model *m = open_family(1, "best");
    char spec[700];
    answer first = {0}, again = {0};
    hunch_request r[SEQS];
    snprintf(spec, sizeof spec, "assistant:%s,depth=4,force=1",
             assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant")));
    hunch_engine *e = open_engine_with(m, spec, options_of(1));
    make_requests(r, m, 0);
    run_requests(e, &r[7], 1, true, &first);
    run_requests(e, &r[7], 1, true, &again);
    assert_true(again.restored >= TEXT - 16);
    assert_same(&first, &again, "after a prefix");
    assert_int_equal(again.rounds, first.rounds); /* none without drafts */
    assert_int_equal(again.rounds, (TOKENS - 1 + 4) / 5);
    answer_free(&first);
    answer_free(&again);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void run_plain(hunch_model *m, int tokens, answer *out) {
    hunch_request r[SEQS];
    hunch_engine *e = open_engine_with(m, NULL, options_of(SEQS));
    make_requests(r, m, 0);
    for (int i = 0; i < SEQS; i++) r[i].max_tokens = tokens;
    run_requests(e, r, SEQS, true, out);
    hunch_engine_close(&e);
}

/* Texts that lose their places continue later, with the same text. */
static void test_preemption(void **state) {
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        hunch_model *m = open_family(f, "best");
        char spec[700];
        answer want[SEQS] = {{0}}, got[SEQS] = {{0}};
        uint64_t preempted = 0;
        snprintf(spec, sizeof spec, "assistant:%s,depth=2,force=0.6",
                 assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant")));
        hunch_engine_options o = options_of(SEQS);
        run_plain(m, 4 * TOKENS, want);
        hunch_request r[SEQS];
        hunch_engine *e = open_engine_with(m, spec, o);
        make_requests(r, m, 0);
        for (int i = 0; i < SEQS; i++) r[i].max_tokens = 4 * TOKENS;
        run_preempted_requests(e, r, SEQS, got);
        hunch_engine_close(&e);
        for (int i = 0; i < SEQS; i++) preempted += got[i].preempted;
        assert_true(preempted > 2);
        same_answers(want, got, "preempted");
        free_answers(want);
        hunch_model_close(&m);
    }
}

/* Every level with the same sums gives the same text and the same drafts. */
static void test_levels(void **state) {
    (void)state;
    static const char *const levels[] = {"ref", "avx2", "best"};
    static hunch_token text[50];
    drafts want = {.n = 0};
    for (int i = 0; i < 50; i++) text[i] = i * 11 % 190 + 2;
    for (int i = 0; i < 3; i++) {
        hn_isa isa;
        must(hn_isa_parse(levels[i], &isa, err));
        if (!hn_isa_has(isa) || !sums_as_best(isa)) continue;
        hunch_model *m = open_family(1, levels[i]);
        char spec[700];
        snprintf(spec, sizeof spec, "assistant:%s", assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant")));
        const drafts d = draft_after(m, spec, text, 50, 16, 64, HUNCH_KV_DEFAULT);
        if (want.n) same_drafts(&want, &d, levels[i]);
        want = d;
        hunch_model_close(&m);
    }
}

/* A model with a table of tokens' inputs, which stays in its file, drafts for another one, or for itself. */
static void test_draft_model(void **state) {
    (void)state;
    char spec[600];
    hunch_model *m = open_family(2, "best");
    answer want[SEQS] = {{0}}, got[SEQS] = {{0}};
    snprintf(spec, sizeof spec, "model:%s,depth=3", data_path(families[2]));
    run(m, NULL, options_of(1), 0, want);
    const uint64_t accepted = run(m, spec, options_of(SEQS), 0, got);
    for (int i = 0; i < SEQS; i++) {
        assert_same(&want[i], &got[i], spec);
        answer_free(&want[i]);
        answer_free(&got[i]);
    }
    assert_true(accepted >= SEQS * (TOKENS - TOKENS / 4 - 3)); /* of itself every draft is right */
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lossless),  cmocka_unit_test(test_company),
                                       cmocka_unit_test(test_same_drafts),
                                       cmocka_unit_test(test_positions), cmocka_unit_test(test_prefix),
                                       cmocka_unit_test(test_preemption),
                                       cmocka_unit_test(test_levels), cmocka_unit_test(test_draft_model)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
