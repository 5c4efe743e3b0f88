/* SPDX-License-Identifier: Apache-2.0 */
/* trimmed_head_test.c - weights that a draft head borrows from its target, and heads that draft only the likeliest tokens (vocab=N): their
 * logits of these equal the full head's, bit for bit. Ranks of tokens: token_ranks_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/head/kinds/eagle3_head.h"
#include "draft/head/open/head_form.h"
#include "ops/pack.h"
#include "heads.h"
#include "command.h"

#include "random_head.h"

/* ---- borrowed weights ------------------------------------------------------------------------------------------------- */

/* The model of an EAGLE-3 head; chosen[trim]: the tokens that it drafts. */
static void load_trimmed(hn_model *head, const char *from, const hunch_model *m, const int32_t *chosen, int trim) {
    const hn_model *t = &m->target;
    const hn_target_info target = {.model = t, .vocab = t->arch.vocab, .hidden = t->arch.hidden, .layers = t->arch.layers};
    const hn_head_load load = {.target = t, .convert = true, .weights = HN_Q8_0, .trim = trim};
    hn_spec spec;
    hn_source *src = NULL;
    hn_arch a = {0};
    hn_head_taps taps;
    int32_t *ids = NULL;
    must(hn_spec_parse(&spec, "eagle3:head", err));
    must(hn_source_open_head(&src, from, err));
    const hn_head_names names = hn_head_find_names(src);
    must(hn_head_read(&a, src, &names, &t->arch, err));
    must(hn_eagle3_describe(&a, src, &names, &spec, &target, &taps, err));
    must(hn_head_read_ids(src, &names, a.vocab, t->arch.vocab, &ids, err));
    must(hn_head_open(head, src, &a, &load, trim ? chosen : ids, err));
    hn_free(ids);
    hn_source_close(&src);
    hn_spec_fini(&spec);
}

static void load_head(hn_model *head, const head_form *f, const hunch_model *m) {
    load_trimmed(head, head_write_form(f, test_path("head")), m, NULL, 0);
}

/* Rows that a head borrows from a mapped model, even if only the embedding's, are in the model's files: a pass checks that those have
 * not changed. A head with all matrices of its own has no such files. */
static void test_borrowed_files(void **state) {
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        hunch_model *m = open_model_as(STORIES, NULL, 1, HUNCH_PRECISION_NATIVE, mapped);
        hn_model head;
        assert_int_equal(m->target.files != NULL, mapped);
        load_head(&head, &STORIES_EAGLE3, m);
        assert_true(head.arch.draft_head.output.own && !head.arch.draft_head.input.own_embedding);
        assert_ptr_equal(head.files, m->target.files);
        hn_model_close(&head);
        load_head(&head, &STORIES_PEAGLE, m);
        assert_true(head.arch.draft_head.output.own && head.arch.draft_head.input.own_embedding);
        assert_null(head.files);
        hn_model_close(&head);
        hunch_model_close(&m);
    }
}

/* A head with its own output and embedding, or its target's. */
static const char *write_full(const head_form *f, bool own_embedding, bool own_output) {
    random_head h;
    head_form full = *f;
    full.outputs = full.vocab;
    head_make(&h, &full);
    if (own_embedding) head_floats(&h, "", "embed_tokens.weight", full.vocab, full.hidden);
    if (!own_output) head_drop(&h, "lm_head.weight");
    head_write(&h, test_path("full"));
    head_free(&h);
    return test_path("full");
}

static uint64_t bytes_of(const hn_model *m, int outputs) {
    return m->backend->matrix_bytes(m->backend, m->output.dtype, outputs, m->output.in);
}

/* A step reads and multiplies only the chosen rows; they are in the head's own memory; and files are no longer needed if the embedding is
 * not in them either. */
static void check_costs(bool mapped, bool own_embedding, bool own_output) {
    static const int32_t ids[] = {1, 5, 9, 77, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 300, 511};
    enum { N = sizeof ids / sizeof *ids };
    hunch_model *m = open_model_as(STORIES, NULL, test_threads(), HUNCH_PRECISION_NATIVE, mapped);
    const char *from = write_full(&STORIES_EAGLE3, own_embedding, own_output);
    hn_model full, few;
    load_trimmed(&full, from, m, NULL, 0);
    load_trimmed(&few, from, m, ids, N);
    assert_int_equal(full.arch.vocab, 512);
    assert_int_equal(few.arch.vocab, N);
    assert_true(full.weight_bytes - few.weight_bytes == bytes_of(&full, 512) - bytes_of(&few, N));
    assert_true(full.macs_per_row - few.macs_per_row == 64.0 * (512 - N));
    assert_true(few.bytes.memory - full.bytes.memory == bytes_of(&few, N) + sizeof ids);
    assert_null(few.output.stored.rows);
    assert_ptr_equal(full.files, own_embedding && own_output ? NULL : m->target.files);
    assert_ptr_equal(few.files, own_embedding ? NULL : m->target.files);
    hn_model_close(&few);
    hn_model_close(&full);
    hunch_model_close(&m);
}

static void test_costs(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) check_costs(i & 1, i & 2, i & 4);
}

/* ---- the same bits ------------------------------------------------------------------------------------------------------ */

enum { DEPTH = 4, N_TEXT = 11, N_LIST = 100 };
static const hunch_token text[N_TEXT] = {5, 77, 201, 9, 44, 260, 133, 8, 19, 202, 150};

typedef struct drafted {
    hunch_draft_result r;
    int vocab;
    float logits[DEPTH][HEADS_VOCAB];
} drafted;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    drafted *d = user;
    d->vocab = vocab;
    memcpy(d->logits[level], logits, (size_t)vocab * sizeof *logits);
}

/* A chain of this many levels. To be freed. */
static drafted *draft_with(hunch_model *m, const char *spec, int levels) {
    drafted *d = calloc(1, sizeof *d);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    must(hunch_draft(e, text, N_TEXT, levels, -1, NULL, take_logits, d, &d->r, err));
    assert_int_equal(d->r.n, levels);
    hunch_engine_close(&e);
    return d;
}

static void drafted_free(drafted *d) {
    hunch_free(d->r.node);
    free(d);
}

/* Writes N_LIST tokens, with `some` or without them, to a file and returns its name; in: the tokens in it. */
static const char *write_list(int vocab, const hunch_token *some, int n, bool with, bool in[HEADS_VOCAB]) {
    const char *path = test_path("ids.txt");
    FILE *f = fopen(path, "w");
    int listed = 0;
    for (int id = 0; id < HEADS_VOCAB; id++) in[id] = false;
    for (int i = 0; i < n; i++) in[some[i]] = true;
    for (int id = 0; with && id < vocab; id++)
        if (in[id]) listed++, fprintf(f, "%d\n", id);
    for (int k = 0; listed < N_LIST; k++) {
        const int id = 7 * k % vocab; /* no divisor of the vocabularies here */
        if (!in[id]) in[id] = true, listed++, fprintf(f, "%d ", id);
    }
    for (int i = 0; !with && i < n; i++) in[some[i]] = false;
    fclose(f);
    return path;
}

/* Checks a level's logits: the full head's for tokens in the list, -infinity for others. */
static void check_level(const char *what, const drafted *few, const drafted *full, const bool *in, int level) {
    for (int id = 0; id < full->vocab; id++) {
        const float want = in[id] ? full->logits[level][id] : -INFINITY;
        if (memcmp(&few->logits[level][id], &want, sizeof want) != 0)
            fail_msg("%s: level %d: logit of token %d is %g, expected %g", what, level, id, (double)few->logits[level][id], (double)want);
    }
}

static void check_levels(hunch_model *m, const char *spec, const char *what, int levels) {
    bool in[HEADS_VOCAB];
    char trimmed[1200];
    hunch_token token[DEPTH], best = -1;
    drafted *full = draft_with(m, spec, levels);
    for (int i = 0; i < levels; i++) token[i] = full->r.node[i].token;
    snprintf(trimmed, sizeof trimmed, "%s,vocab=%d,ids=%s", spec, N_LIST, write_list(full->vocab, token, levels, true, in));
    drafted *few = draft_with(m, trimmed, levels);
    for (int i = 0; i < levels; i++) {
        check_level(what, few, full, in, i);
        assert_int_equal(few->r.node[i].token, token[i]);
        if (!(few->r.node[i].q > full->r.node[i].q) && full->r.node[i].q < 1) /* the same share of fewer tokens */
            fail_msg("%s: level %d: q is %.9g of fewer tokens, %.9g of all", what, i, few->r.node[i].q, full->r.node[i].q);
    }
    drafted_free(few);
    write_list(full->vocab, token, 1, false, in);
    few = draft_with(m, trimmed, levels);
    check_level(what, few, full, in, 0);
    for (int id = 0; id < full->vocab; id++)
        if (in[id] && (best < 0 || full->logits[0][id] > full->logits[0][best])) best = id;
    assert_int_equal(few->r.node[0].token, best);
    drafted_free(few);
    drafted_free(full);
}

static void check_head(hunch_model *m, const char *spec, const char *what) {
    check_levels(m, spec, what, DEPTH);
}

/* With their own outputs and their target's, in memory and mapped. README: "`--mapped` gives the same bits as weights in memory." */
static void test_same_bits(void **state) {
    (void)state;
    static const char *const heads[2][12] = {
        {"eagle:@eagle1-bias-bin", "eagle:@eagle2-nobias-gqa,weights=q4_0", "eagle3:@eagle3spec-2layers",
         "eagle3:@eagle3spec-v31,weights=bf16", "medusa:@medusa-4heads", "mlp:@mlp-tied-5", "mlp:@mlp-arctic-lstm,weights=q4_0",
         "dflash:@dflashmask-zlab", "dspark:@dspark-windows", "dspark:@dspark-deepspec,weights=q4_0"},
        {"hass:@hass-bias", "eagle3:@eagle3-official-fullvocab", "mtp:@mtp-spec-qwen3,weights=f32",
         "medusa:@medusa-vllm-one-output", "hydra:@hydra-ungrounded", "mlp:@mlp-tied-scaled,weights=bf16", "domino:@domino-shifted"}};
    char peagle[600], what[700];
    head_form full = LLAMA_PEAGLE;
    full.outputs = full.vocab;
    snprintf(peagle, sizeof peagle, "peagle:%s", head_write_form(&full, test_path("peagle")));
    for (int i = 0; i < 8; i++) {
        hunch_model *m = open_model_as(data_path(i & 1 ? HEADS_QWEN : HEADS_LLAMA), NULL, 2,
                                       i & 2 ? HUNCH_PRECISION_F32 : HUNCH_PRECISION_NATIVE, i & 4);
        for (const char *const *h = heads[i & 1]; *h; h++) {
            snprintf(what, sizeof what, "%s%s%s", *h, i & 2 ? ", f32" : "", i & 4 ? ", mapped" : "");
            check_head(m, heads_spec(*h), what);
        }
        if (!(i & 1)) check_head(m, peagle, "peagle");
        hunch_model_close(&m);
    }
}

/* Meta's heads borrow the model's output, Hydra's have a row of biases that is trimmed too: two levels, and three. */
static void test_fewer_levels(void **state) {
    (void)state;
    static const struct {
        const char *target, *head;
    } all[] = {{HEADS_META, "meta-mtp:@meta-3tokens"}, {HEADS_LLAMA, "hydra:@hydra-prefix"}, {HEADS_LLAMA, "medusa:@medusa-blockwise"}};
    for (int i = 0; i < 6; i++) {
        hunch_model *m = open_model_as(data_path(all[i / 2].target), NULL, test_threads(), HUNCH_PRECISION_NATIVE, i & 1);
        check_levels(m, heads_spec(all[i / 2].head), all[i / 2].head, i / 2 ? 3 : 2);
        hunch_model_close(&m);
    }
}

/* ---- by a tokenizer ----------------------------------------------------------------------------------------------------- */

/* The special tokens are in the list, and the line about the head names the number of tokens that it drafts. */
static void test_special_tokens(void **state) {
    (void)state;
    char spec[600];
    hunch_model *m = open_model(STORIES, NULL, test_threads(), HUNCH_PRECISION_NATIVE);
    snprintf(spec, sizeof spec, "eagle:%s,vocab=300", head_write_form(&STORIES_EAGLE, test_path("head")));
    drafted *d = draft_with(m, spec, DEPTH);
    int inside = 0;
    for (int id = 0; id < 512; id++) {
        inside += isfinite(d->logits[0][id]);
        if (hn_tokenizer_is_special(m->tokenizer, id)) assert_true(isfinite(d->logits[0][id]));
    }
    assert_int_equal(inside, 300);
    assert_true(hn_tokenizer_is_special(m->tokenizer, 1) && hn_tokenizer_is_end(m->tokenizer, 2));
    drafted_free(d);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    if (!strstr(e->drafter[0].about, "; drafts 300 of 512 tokens with the model's embedding and output; "))
        fail_msg("%s", e->drafter[0].about);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* vocab=N with all tokens changes nothing. */
static void test_all(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(HEADS_LLAMA), NULL, 1, HUNCH_PRECISION_NATIVE);
    drafted *full = draft_with(m, heads_spec("eagle:@eagle1-bias-bin"), DEPTH),
            *all = draft_with(m, heads_spec("eagle:@eagle1-bias-bin,vocab=480"), DEPTH);
    assert_memory_equal(all->logits, full->logits, sizeof full->logits);
    drafted_free(all);
    drafted_free(full);
    hunch_model_close(&m);
}

/* ---- refused heads -------------------------------------------------------------------------------------------------------- */

static void refused_line(int code, const char *target, const char *spec, const char *says) {
    result r = command("draft", "-m", target, "--draft", spec, "--tokens", HUNCH_TEST_DATA "/goldens-heads/hass-bias/ids.json");
    const char *end = strchr(r.err, '\n'), *named = strstr(r.err, "drafter '");
    if (r.code != code || !strstr(r.err, says) || !named || strstr(named + 1, "drafter '") || !end || end[1] || r.out_len)
        fail_msg("%s: expected %d and one line with \"%s\", got %d and \"%s\"", spec, code, says, r.code, r.err);
    result_free(&r);
}

static void test_refused(void **state) {
    (void)state;
    char spec[900], file[300], llama[300];
    snprintf(llama, sizeof llama, "%s", data_path(HEADS_LLAMA));
    refused_line(2, llama, heads_spec("eagle3:@eagle3-official-d2t,vocab=50,ids=%even.json"), "reduced vocabulary already, 160 of 480");
    refused_line(2, llama, heads_spec("eagle3:@eagle3-official-d2t,vocab=5000"), "reduced vocabulary already");
    refused_line(2, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=0"), "vocab=0, expected a whole number from 1");
    refused_line(2, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=x"), "vocab=x, expected a whole number from 1");
    refused_line(2, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=9"), "no tokenizer, whose order would tell");
    refused_line(2, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=9,texts=%even.json"), "no tokenizer to count tokens with");
    refused_line(2, llama, heads_spec("eagle:@eagle1-bias-bin,ids=%even.json"), "is used only with vocab=N");
    refused_line(2, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=9,ids=%even.json,texts=x"), "ids and texts: expected one of them");
    refused_line(1, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=9,ids=%missing"), "token-lists/missing: no such file");
    refused_line(3, llama, heads_spec("eagle:@eagle1-bias-bin,vocab=300,ids=%even.json"), "240 tokens with the special ones");
    snprintf(file, sizeof file, "%s", test_path("bad.json"));
    test_file_write(file, "[1, 480]", 8);
    snprintf(spec, sizeof spec, "%s,vocab=2,ids=%s", heads_spec("eagle:@eagle1-bias-bin"), file);
    refused_line(3, llama, spec, "entry 2 is token 480, expected 0 to 479");
    snprintf(spec, sizeof spec, "eagle:%s,vocab=2", head_write_form(&STORIES_EAGLE, test_path("head")));
    refused_line(2, STORIES, spec, "vocab=2: this model has 3 special tokens");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_borrowed_files), cmocka_unit_test(test_costs),
                                       cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_fewer_levels),
                                       cmocka_unit_test(test_special_tokens), cmocka_unit_test(test_all),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
