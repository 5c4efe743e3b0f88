/* SPDX-License-Identifier: Apache-2.0 */
/* small_stack_test.c - the whole life of a text on a thread whose stack is small, as that of a thread of musl's or of another
 * language's may be: the library's requirement is in hunch.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "fixture.h"

enum { STACK = 128 << 10, PROMPT = 200, MANY = 256 };

typedef struct job {
    const char *path, *draft, *isa;
    hunch_precision precision;
    int texts; /* at once; 0: one */
    hunch_status st;
    hunch_error err;
} job;

/* No cmocka here: its failures jump to the stack of the test. */
static hunch_status generate(hunch_engine *e, hunch_model *m, int texts, hunch_error *err) {
    static hunch_session *s[MANY]; /* the caller's own */
    hunch_status st = HUNCH_OK;
    hunch_token prompt[PROMPT];
    hunch_request r;
    for (int i = 0; i < PROMPT; i++) prompt[i] = 1 + i * 7 % 40;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = texts == 1 ? PROMPT : 20;
    r.max_tokens = 20;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = 1, .top_p = 0.9, .top_k = 30, .seed = 3};
    for (int i = 0; !st && i < texts; i++) {
        prompt[0] = i;
        st = hunch_session_open(&s[i], e, &r, err);
    }
    if (!st) st = hunch_engine_run(e, err);
    for (int i = 0; i < texts; i++) hunch_session_close(&s[i]);
    return st;
}

static void *live(void *user) {
    job *j = user;
    const char *drafts[] = {j->draft};
    hunch_model *m = NULL;
    hunch_engine *e = NULL;
    hunch_model_options mo;
    hunch_engine_options eo;
    hunch_token *ids = NULL;
    size_t n;
    hunch_model_options_defaults(&mo);
    hunch_engine_options_defaults(&eo);
    mo.isa = j->isa;
    mo.threads = 2;
    mo.precision = j->precision;
    eo.drafts = drafts;
    eo.n_drafts = 1;
    eo.context = 256;
    if (j->texts) eo.parallel = j->texts;
    j->st = hunch_model_open(&m, j->path, &mo, &j->err);
    if (!j->st && !strcmp(j->draft, "auto")) j->st = hunch_tokenize(m, "Once upon a time", 16, 0, &ids, &n, &j->err);
    if (!j->st) j->st = hunch_engine_open(&e, m, &eo, &j->err);
    if (!j->st) j->st = generate(e, m, j->texts ? j->texts : 1, &j->err);
    hunch_free(ids);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return NULL;
}

static void run(job *j) {
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, live, j), 0);
    pthread_attr_destroy(&attr);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (j->st) fail_msg("%s, %s: %s", j->path, j->draft, j->err.message);
}

static void test_small_stack(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* it adds space between variables */
    static const char *const paths[] = {"models/stories260K/stories260K.f32.gguf", "models/babyllama105/babyllama105.q8_0.gguf",
                                        "models/stories260K/hf"};
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int i = 0; i < 6; i++)
            run(&(job){.path = data_path(paths[i / 2]), .draft = "auto", .isa = hn_isa_name(isa),
                       .precision = i % 2 ? HUNCH_PRECISION_F32 : HUNCH_PRECISION_NATIVE});
}

/* As many texts as an engine may have at once; trees of a model and of heads, the controller, drawn drafts. */
static void test_many_texts(void **state) {
    (void)state;
    if (SANITIZED) skip();
    static const char *const specs[] = {"auto", "model:%s/models/stories260K/stories260K.f16.gguf,depth=4",
                                        "eagle:%s/goldens-heads/eagle2-nobias-gqa/head,tree=dynamic,depth=3",
                                        "eagle:%s/goldens-heads/eagle2-nobias-gqa/head,tree=mc_sim_7b_63",
                                        "dspark:%s/goldens-heads/dspark-rnn/head"};
    for (int i = 0; i < (int)(sizeof specs / sizeof *specs); i++) {
        char draft[600];
        snprintf(draft, sizeof draft, specs[i], HUNCH_TEST_DATA);
        run(&(job){.path = data_path(i < 2 ? "models/stories260K/stories260K.f32.gguf" : "goldens-heads/targets/llama-a"), .draft = draft,
                   .isa = "best", .precision = HUNCH_PRECISION_NATIVE, .texts = MANY});
    }
}

/* Heads are opened, and draft, on the caller's stack too: pickles and safetensors, chains and trees. */
static void test_heads(void **state) {
    (void)state;
    if (SANITIZED) skip();
    static const char *const specs[] = {"eagle:%s/goldens-heads/eagle1-bias-bin/head,depth=6,force=0.7",
                                        "eagle:%s/goldens-heads/eagle2-nobias-gqa/head,tree=mc_sim_7b_63",
                                        "eagle3:%s/goldens-heads/eagle3-official-d2t/head,tree=dynamic,depth=5",
                                        "peagle:%s/goldens-heads/peagle-norms/head,depth=20,force=0.7",
                                        "peagle:%s/goldens-heads/peagle-vllm-4layers/head,tree=dynamic,depth=5",
                                        "mtp:%s/goldens-heads/mtp-untied-bias/head,tree=mc_sim_7b_63",
                                        "medusa:%s/goldens-heads/medusa-3blocks/head,tree=mc_sim_7b_63",
                                        "hydra:%s/goldens-heads/hydra-prefix/head,depth=3,force=0.7",
                                        "mlp:%s/goldens-heads/mlp-tied-5/head,tree=dynamic,topk=4,total=20",
                                        "mlp:%s/goldens-heads/mlp-arctic-rnn/head,tree=opt,topk=3,total=15",
                                        "meta-mtp:%s/goldens-heads/meta-3tokens/head,depth=2",
                                        "dflash:%s/goldens-heads/dflash-default-ids/head,tree=best",
                                        "dflash:%s/goldens-heads/dflashspec-windows/head,force=0.7",
                                        "dspark:%s/goldens-heads/dspark-rnn/head,force=0.7",
                                        "dspark:%s/goldens-heads/dspark-deepspec/head,tree=dynamic,depth=5",
                                        "domino:%s/goldens-heads/domino-early/head,pool=100,force=0.7",
                                        "dflash2:%s/goldens-heads/dflash2-zlab/head,tree=dynamic,depth=5",
                                        "dart:%s/goldens-heads/dart-d2t/head,tree=pruned",
                                        "falcon:%s/goldens-heads/falcon-k3/head,depth=20,force=0.7",
                                        "falcon:%s/goldens-heads/falcon-k2/head,tree=mc_sim_7b_63"};
    for (int i = 0; i < 2 * (int)(sizeof specs / sizeof *specs); i++) {
        char draft[600];
        snprintf(draft, sizeof draft, specs[i / 2], HUNCH_TEST_DATA);
        const char *target = strstr(draft, "meta-") ? "goldens-heads/targets/meta-b" : "goldens-heads/targets/llama-a";
        run(&(job){.path = data_path(target), .draft = draft, .isa = "best",
                   .precision = i % 2 ? HUNCH_PRECISION_F32 : HUNCH_PRECISION_NATIVE});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_stack), cmocka_unit_test(test_many_texts), cmocka_unit_test(test_heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
