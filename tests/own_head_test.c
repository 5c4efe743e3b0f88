/* SPDX-License-Identifier: Apache-2.0 */
/* own_head_test.c - the example of a custom head in docs/writing-heads.md is drafter_middle.c, word for word; it opens, drafts according to
 * its formulas, and changes no text. */
#include "drafter_middle.c"

/* The list of kinds with this one in the place of hass: this program includes drafter.c, the library's is not linked. */
#include "draft/drafter.h"
#define hn_drafter_hass hn_drafter_middle
#include "draft/drafter.c"
#undef hn_drafter_hass

#include "text.h" /* last: tests call a type "bytes" */

#include "random_head.h"

#define LLAMA HUNCH_TEST_DATA "/goldens-heads/targets/llama-a"
enum { WIDE = 64, LAYERS = 8, LEVELS = 4, TOKENS = 40 };
static const hunch_token prompt[] = {97, 283, 471, 100, 133, 385, 242, 37, 177, 216, 368};
enum { PROMPT = sizeof prompt / sizeof *prompt };

/* ---- the document ------------------------------------------------------------------------------------------------------- */

static void test_document(void **state) {
    (void)state;
    char *doc = text_read("docs/writing-heads.md"), *code = text_read("tests/drafter_middle.c");
    const char *block = strstr(doc, "\n```c\n/* SPDX");
    assert_non_null(block);
    block += strlen("\n```c\n");
    const size_t n = strlen(code);
    if (strncmp(block, code, n) != 0 || !text_starts(block + n, "```")) {
        size_t same = 0;
        while (block[same] && block[same] == code[same]) same++;
        fail_msg("docs/writing-heads.md and tests/drafter_middle.c differ from here on: %.60s", code + same);
    }
    free(doc);
    free(code);
}

/* ---- the head ------------------------------------------------------------------------------------------------------------- */

static const float *values_of(random_head *h, const char *name, size_t *n) {
    const bytes *b = &head_find(h, name)->data;
    *n = b->size / sizeof(float);
    return (const float *)(const void *)b->at;
}

static void make_middle(random_head *h, int layer) {
    head_make(h, &LLAMA_EAGLE);
    head_floats(h, "", "layers.0.input_layernorm.weight", WIDE, 0);
    head_floats(h, "", "norm.weight", WIDE, 0);
    json_object_set_new(h->config, "reads_layer", json_integer(layer));
}

static void zero(random_head *h, const char *name) {
    bytes *b = &head_find(h, name)->data;
    memset(b->at, 0, b->size);
}

/* A head that returns its input feature: fc selects the feature, the layer adds nothing, the norm is the target's. */
static void make_passing(random_head *h, int layer) {
    size_t n;
    hn_source *src = NULL;
    hunch_error err = {0};
    make_middle(h, layer);
    zero(h, "fc.weight");
    zero(h, "layers.0.self_attn.o_proj.weight");
    zero(h, "layers.0.mlp.down_proj.weight");
    float *fc = (float *)(uintptr_t)values_of(h, "fc.weight", &n), *norm = (float *)(uintptr_t)values_of(h, "norm.weight", &n);
    for (int i = 0; i < WIDE; i++) fc[i * 2 * WIDE + WIDE + i] = 1; /* the embedding comes first */
    assert_int_equal(hn_source_open(&src, LLAMA, &err), HUNCH_OK);
    const hn_tensor *t = hn_source_find(src, "model.norm.weight");
    assert_non_null(t);
    assert_int_equal(t->bytes, WIDE * sizeof(float));
    assert_int_equal(hn_source_read(src, t, 0, t->bytes, norm, &err), HUNCH_OK);
    hn_source_close(&src);
}

static hunch_model *model_open(void) {
    hunch_model *m = NULL;
    hunch_model_options o;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.threads = 2;
    o.precision = HUNCH_PRECISION_F32;
    if (hunch_model_open(&m, LLAMA, &o, &err)) fail_msg("%s", err.message);
    return m;
}

static hunch_status engine_open(hunch_engine **e, hunch_model *m, const char *draft, hunch_error *err) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = 128;
    o.chunk = 4;
    o.drafts = &draft;
    o.n_drafts = draft != NULL;
    return hunch_engine_open(e, m, &o, err);
}

static const char *spec_of(random_head *h, const char *rest) {
    static char spec[1300];
    head_write(h, test_path("head"));
    snprintf(spec, sizeof spec, "middle:%s%s", test_path("head"), rest);
    return spec;
}

/* ---- drafts --------------------------------------------------------------------------------------------------------------- */

typedef struct last_row {
    float logits[LEVELS][480];
    size_t of; /* position of the target's */
} last_row;

static void keep_row(void *user, size_t position, const float *logits, int vocab) {
    last_row *l = user;
    assert_int_equal(vocab, 480);
    if (position == l->of) memcpy(l->logits[0], logits, sizeof l->logits[0]);
}

static void keep_level(void *user, int level, const float *logits, int vocab) {
    last_row *l = user;
    assert_true(vocab == 480 && level < LEVELS);
    memcpy(l->logits[level], logits, sizeof l->logits[0]);
}

/* A head that returns the last layer's state gives, at every level, the target's logits of the row before the root's; one that
 * returns another layer's does not. */
static void test_formulas(void **state) {
    (void)state;
    hunch_model *m = model_open();
    static last_row target, head;
    for (int layer = LAYERS; layer >= LAYERS - 1; layer--) {
        random_head h;
        hunch_engine *e = NULL;
        hunch_error err = {0};
        hunch_draft_result out;
        make_passing(&h, layer);
        if (engine_open(&e, m, spec_of(&h, ""), &err)) fail_msg("%s", err.message);
        target.of = PROMPT - 1;
        assert_int_equal(hunch_evaluate(e, prompt, PROMPT, keep_row, &target, &err), HUNCH_OK);
        assert_int_equal(hunch_draft(e, prompt, PROMPT, LEVELS, -1, NULL, keep_level, &head, &out, &err), HUNCH_OK);
        assert_int_equal(out.n, LEVELS);
        for (int level = 0; level < LEVELS; level++) {
            double worst = 0;
            for (int v = 0; v < 480; v++) worst = fmax(worst, fabs((double)head.logits[level][v] - (double)target.logits[0][v]));
            assert_true(layer == LAYERS ? worst < 1e-3 : worst > 0.1);
            if (layer == LAYERS) assert_int_equal(out.node[level].token, out.root);
        }
        hunch_free(out.node);
        hunch_engine_close(&e);
        head_free(&h);
    }
    hunch_model_close(&m);
}

/* ---- the text -------------------------------------------------------------------------------------------------------------- */

static uint64_t text_of(hunch_model *m, const char *draft, hunch_token out[TOKENS]) {
    hunch_engine *e = NULL;
    hunch_session *s = NULL;
    hunch_session_state state;
    hunch_request r;
    hunch_error err = {0};
    if (engine_open(&e, m, draft, &err)) fail_msg("%s", err.message);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = PROMPT;
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    assert_int_equal(hunch_session_open(&s, e, &r, &err), HUNCH_OK);
    while (hunch_engine_running(e) > 0) assert_int_equal(hunch_engine_round(e, &err), HUNCH_OK);
    hunch_session_get(s, &state);
    assert_int_equal(state.n_tokens, TOKENS);
    memcpy(out, state.tokens, TOKENS * sizeof *out);
    const uint64_t drafted = state.drafted;
    hunch_session_close(&s);
    hunch_engine_close(&e);
    return drafted;
}

static void test_text(void **state) {
    (void)state;
    static const char *const rests[] = {",depth=3", ",tree=dynamic,topk=3,total=9,depth=4", ",tree=mc_sim_7b_63,weights=q8_0"};
    hunch_model *m = model_open();
    hunch_token plain[TOKENS], drafted[TOKENS];
    random_head h;
    make_middle(&h, LAYERS / 2);
    text_of(m, NULL, plain);
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        assert_true(text_of(m, spec_of(&h, rests[i]), drafted) > TOKENS);
        assert_memory_equal(plain, drafted, sizeof plain);
    }
    head_free(&h);
    hunch_model_close(&m);
}

static void open_refused(hunch_model *m, random_head *h, const char *says) {
    hunch_engine *e = NULL;
    hunch_error err = {0};
    assert_int_equal(engine_open(&e, m, spec_of(h, ""), &err), HUNCH_REFUSED);
    if (!strstr(err.message, says)) fail_msg("%s", err.message);
}

static void test_refused(void **state) {
    (void)state;
    hunch_model *m = model_open();
    random_head h;
    make_middle(&h, LAYERS + 1);
    open_refused(m, &h, "reads the state at layer 9, expected 0 to 8");
    json_object_del(h.config, "reads_layer");
    open_refused(m, &h, "reads_layer: expected a layer");
    json_object_set_new(h.config, "reads_layer", json_string("4"));
    open_refused(m, &h, "reads_layer is a string");
    json_object_set_new(h.config, "reads_layer", json_integer(4));
    head_drop(&h, "layers.0.input_layernorm.weight");
    open_refused(m, &h, "tensor layers.0.input_layernorm.weight is missing");
    head_free(&h);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_document), cmocka_unit_test(test_formulas),
                                       cmocka_unit_test(test_text), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
