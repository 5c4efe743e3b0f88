/* SPDX-License-Identifier: Apache-2.0 */
/* one_wait_test.c - on a backend where a wait takes long (hn_backend.one_wait; here tests/hostile_backend.c) a round of greedy or match
 * waits once: drafters choose their tokens, and the target its path, where their logits are. The texts, and what fixed shapes draft, are
 * those of a backend where the host decides after each pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heads.h"
#include "random_assistant.h"
#include "smollm2.h"

extern uint64_t hn_hostile_waits;

enum { TEXTS = 4, CONTEXT = 160, ROUNDS = 400, NODES = 64 };
#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

/* What a round drafted and what was right. */
typedef struct seen_round {
    hunch_token root, token[NODES];
    int n, parent[NODES], accepted;
} seen_round;
typedef struct seen {
    int n;
    seen_round round[ROUNDS];
} seen;
static seen drafted[2][TEXTS]; /* by the host, and ahead */

static void on_round(void *user, const hunch_round_report *r) {
    seen *s = user;
    assert_true(s->n < ROUNDS);
    seen_round *to = &s->round[s->n++];
    *to = (seen_round){.root = r->root, .n = r->rows - 1, .accepted = r->accepted};
    for (int i = 0; i < to->n; i++) {
        to->token[i] = r->node[i].token;
        to->parent[i] = r->node[i].parent;
    }
}

typedef struct setting {
    double temperature;
    int top_k;
    double top_p, min_p;
} setting;
static const setting settings[] = {{.top_p = 1}, {0.8, 0, 1, 0}, {1.3, 20, 0.9, 0}, {3, 0, 0.95, 0.02}};

static hunch_request request(const hunch_model *m, int i, const setting *how) {
    static hunch_token prompt[TEXTS][40];
    static const size_t length[TEXTS] = {1, 16, 23, 40};
    hunch_request r;
    heads_prompt(prompt[i], length[i], 0, (uint64_t)i);
    for (size_t k = 0; k < length[i]; k++) prompt[i][k] %= m->target.arch.vocab;
    hunch_request_defaults(&r, m);
    r.prompt = prompt[i];
    r.n_prompt = length[i];
    r.max_tokens = light() ? 16 : 24;
    r.ignore_eos = true;
    r.sampling.temperature = how->temperature;
    r.sampling.top_k = how->top_k;
    r.sampling.top_p = how->top_p;
    r.sampling.min_p = how->min_p;
    r.sampling.seed = 100 + (uint64_t)i;
    return r;
}

/* Runs the texts, `at_once` of them together. Ahead: every pass of the target is waited for, and nothing else is. */
static uint64_t run(hunch_model *m, const char *draft, const setting *how, int at_once, bool ahead, const char *what, answer *out) {
    hunch_engine_options o;
    uint64_t accepted = 0;
    hunch_engine_options_defaults(&o);
    o.parallel = at_once;
    o.context = CONTEXT;
    o.page_rows = 16;
    m->target.backend->one_wait = ahead;
    hunch_engine *e = open_engine_with(m, draft, o);
    for (int i = 0; i < TEXTS; i++) drafted[ahead][i].n = 0;
    for (int first = 0; first < TEXTS; first += at_once) {
        hunch_session *s[TEXTS];
        const int n = TEXTS - first < at_once ? TEXTS - first : at_once;
        for (int i = 0; i < n; i++) {
            hunch_request r = request(m, first + i, how);
            r.on_round = on_round;
            r.on_round_user = &drafted[ahead][first + i];
            must(hunch_session_open(&s[i], e, &r, err));
        }
        while (hunch_engine_running(e) > 0) {
            const uint64_t waits = hn_hostile_waits, passes = e->stats.passes;
            must(hunch_engine_round(e, err));
            if (ahead && hn_hostile_waits - waits != e->stats.passes - passes)
                fail_msg("%s: %d waits in a round of %d passes", what, (int)(hn_hostile_waits - waits), (int)(e->stats.passes - passes));
        }
        for (int i = 0; i < n; i++) {
            keep_answer(&out[first + i], s[i]);
            accepted += out[first + i].accepted;
            hunch_session_close(&s[i]);
        }
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    m->target.backend->one_wait = true;
    return accepted;
}

static void same_drafts(const char *what) {
    for (int i = 0; i < TEXTS; i++) {
        const seen *want = &drafted[0][i], *got = &drafted[1][i];
        if (want->n != got->n) fail_msg("%s: text %d took %d rounds, expected %d", what, i, got->n, want->n);
        for (int k = 0; k < want->n; k++) {
            const seen_round *a = &want->round[k], *b = &got->round[k];
            if (a->root != b->root || a->n != b->n || a->accepted != b->accepted)
                fail_msg("%s: round %d of text %d drafted %d rows and %d were right, expected %d and %d", what, k, i, b->n, b->accepted,
                         a->n, a->accepted);
            for (int r = 0; r < a->n; r++)
                if (a->token[r] != b->token[r] || a->parent[r] != b->parent[r])
                    fail_msg("%s: round %d of text %d: draft %d is %d after %d, expected %d after %d", what, k, i, r, b->token[r],
                             b->parent[r], a->token[r], a->parent[r]);
        }
    }
}

/* One drafter, at each setting; `same`: under greedy it drafts what it drafts when the host decides. */
static uint64_t check(hunch_model *m, const char *draft, bool same) {
    uint64_t accepted = 0;
    static int turn; /* a light run: greedy, and one of the others */
    turn++;
    for (int k = 0; k < COUNT(settings); k++) {
        if (light() && k > 0 && k != 1 + turn % 3) continue;
        answer want[TEXTS] = {{0}}, got[TEXTS] = {{0}}, host[TEXTS] = {{0}};
        char what[500];
        const int at_once = k % 2 || (k == 0 && same && strstr(draft, "tree=")) ? 1 : TEXTS; /* together trees are cut, by estimates */
        snprintf(what, sizeof what, "%s at temperature %g", draft, settings[k].temperature);
        (void)run(m, NULL, &settings[k], 1, false, what, want);
        accepted += run(m, draft, &settings[k], at_once, true, what, got);
        for (int i = 0; i < TEXTS; i++) assert_same(&want[i], &got[i], what);
        if (same && settings[k].temperature == 0) {
            (void)run(m, draft, &settings[k], at_once, false, what, host);
            same_drafts(what);
        }
        for (int i = 0; i < TEXTS; i++) {
            answer_free(&want[i]);
            answer_free(&got[i]);
            answer_free(&host[i]);
        }
    }
    return accepted;
}

typedef struct drafter {
    const char *spec;
    bool same;
} drafter;

static void check_target(const char *target, const drafter *d, int n) {
    hunch_model *m = open_model(data_path(target), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < n; i++) printf("%s: %d accepted\n", d[i].spec, (int)check(m, heads_spec(d[i].spec), d[i].same));
    hunch_model_close(&m);
}

static void test_text_drafters(void **state) {
    (void)state;
    static const drafter of[] = {{"ngram,min=1", true}, {"suffix", true}, {"recycle", true}, {"lookahead", true},
                                 {"cache+ngram,min=1", true}, {"forced,accept=0.7,depth=5,tree=random,seed=3", true}};
    check_target(HEADS_LLAMA, of, COUNT(of));
}

static void test_heads(void **state) {
    (void)state;
    static const drafter of_llama[] = {
        {"eagle3:@eagle3-official-d2t,depth=5", true},
        {"eagle3:@eagle3spec-plain,tree=mc_sim_7b_63,min_p=0", true},
        {"eagle3:@eagle3-official-d2t,depth=4,tree=dynamic,topk=4,total=20", false},
        {"eagle:@eagle2-nobias-gqa,depth=5,tree=#fork.json,min_p=0", true},
        {"peagle:@peagle-spec-2layers,depth=6", true},
        {"dart:@dart-d2t,tree=pruned,total=20", false},
        {"dflash:@dflashspec-d2t", true},
        {"dflash:@dflashspec-windows,tree=mc_sim_7b_63,min_p=0", true},
        {"medusa:@medusa-4heads,depth=4", true},
        {"hydra:@hydra-prefix,depth=3", true},
        {"mlp:@mlp-arctic-lstm,depth=4", true},
        {"pard:@pard-llama-tied,depth=6", true},
        {"eagle3:@eagle3-official-d2t,depth=3+ngram,min=1", false},
        {"eagle3:@eagle3-official-d2t,depth=3+medusa:@medusa-4heads,depth=3", false},
        {"auto+eagle3:@eagle3-official-d2t,depth=3", false}};
    static const drafter of_qwen[] = {{"mtp:@mtp-spec-qwen3,depth=5", true}, {"mtp:@mtp-spec-qwen3,depth=3,tree=#fork.json,min_p=0", true},
                                      {"hass:@hass-bias,depth=4", true}, {"hydra:@hydra-2blocks,tree=mc_sim_7b_63,min_p=0", true}};
    static const drafter of_blocks[] = {{"mtp,depth=5", true}, {"mtp,tree=#fork.json,min_p=0", true}};
    check_target(HEADS_LLAMA, of_llama, COUNT(of_llama));
    check_target(HEADS_QWEN, of_qwen, COUNT(of_qwen));
    check_target("goldens/glm4_moe-3blocks", of_blocks, COUNT(of_blocks));
}

static void test_assistant(void **state) {
    (void)state;
    static const char *const options[] = {"depth=4", "tree=mc_sim_7b_63,position=step,min_p=0", "depth=6,output=full,position=last"};
    hunch_model *m = open_model(data_path("goldens/gemma4-keqv"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    const char *head = assistant_write(&CLUSTERED_ASSISTANT, &m->target.arch, test_path("assistant"));
    for (int i = 0; i < COUNT(options); i++) {
        char spec[800];
        snprintf(spec, sizeof spec, "assistant:%s,%s", head, options[i]);
        (void)check(m, spec, true);
    }
    hunch_model_close(&m);
}

/* A head that is often right: the model and the head of `make demo`. */
static void test_real(void **state) {
    (void)state;
    static const char *const forms[] = {"depth=4,min_p=0", "depth=4,tree=dynamic,topk=4,total=12"};
    const char *path = smollm2_path();
    if (!path) return; /* smollm2_test says that it is missing */
    hunch_model *m = open_model_as(path, "best", test_threads(), HUNCH_PRECISION_NATIVE, false);
    for (int f = 0; f < COUNT(forms); f++)
        for (int warm = 0; warm < 2; warm++) {
            if (light() && (f || warm)) continue;
            answer of[3] = {{0}};
            uint64_t accepted[3];
            for (int who = 0; who < 3; who++) { /* plain, drafted by the host, ahead */
                char spec[800];
                snprintf(spec, sizeof spec, "eagle3:%s,%s", data_path("../../heads/SmolLM2-135M-Instruct.Q4_1.head.gguf"), forms[f]);
                m->target.backend->one_wait = who == 2;
                hunch_engine *e = open_engine(m, who ? spec : NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
                hunch_request r;
                hunch_request_defaults(&r, m);
                hunch_token *ids;
                r.n_prompt = smollm2_tokens(m, 1, &ids);
                r.prompt = ids;
                r.max_tokens = light() ? 12 : 24;
                r.sampling.temperature = warm ? 0.7 : 0;
                r.sampling.seed = 5;
                run_requests(e, &r, 1, false, &of[who]);
                accepted[who] = of[who].accepted;
                hunch_free(ids);
                hunch_engine_close(&e);
                assert_same(&of[0], &of[who], spec);
            }
            printf("%s, temperature %g: %d accepted by the host, %d ahead\n", forms[f], warm ? 0.7 : 0, (int)accepted[1], (int)accepted[2]);
            if (f == 0 && !warm) assert_int_equal(accepted[1], accepted[2]);
            assert_true(accepted[2] > 2);
            for (int who = 0; who < 3; who++) answer_free(&of[who]);
        }
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_drafters), cmocka_unit_test(test_heads), cmocka_unit_test(test_assistant),
                                       cmocka_unit_test(test_real)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
