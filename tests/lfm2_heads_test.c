/* SPDX-License-Identifier: Apache-2.0 */
/* lfm2_heads_test.c - draft heads of targets with short convolutions: DSpark's as Liquid releases them for LFM2.5 (a Qwen3 shell whose
 * heads turn neighbouring numbers, keys nested, the model's tied output), and heads that hunch-train makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "engine/engine.h"
#include "fixture.h"
#include "random_head.h" /* last: it calls a type "bytes" */

#define TARGET "goldens/lfm2-conv"
enum { HEADS = 4, KV_HEADS = 2, HEAD = 16, HIDDEN = 64, VOCAB = 128, RANK = 16, BLOCK = 9 };
static const head_form form = {false, "layers.0.", HIDDEN, HEADS, KV_HEADS, 96, VOCAB, VOCAB, {1, 2}, 2, 127, .block = BLOCK, .rank = RANK};
static const char ids[] = "[5, 90, 17, 44, 3, 61, 29, 8, 77, 12, 5, 90, 17]";

static void must_run(const char *format, ...) {
    char command[4000], said[3000];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command - 8, format, list);
    va_end(list);
    strcat(command, " 2>&1");
    FILE *from = popen(command, "r");
    assert_non_null(from);
    const size_t n = fread(said, 1, sizeof said - 1, from);
    said[n] = 0;
    if (pclose(from)) fail_msg("%s: %s", command, said);
}

/* Rows of each head as neighbouring pairs have them -> as halves have them. */
static void to_halves(head_tensor *t) {
    const size_t row = sizeof(float) * (size_t)(t->cols ? t->cols : 1);
    unsigned char *at = (unsigned char *)t->data.at, *copy = malloc(t->data.size);
    memcpy(copy, at, t->data.size);
    for (int r = 0; r < t->rows; r++)
        memcpy(at + row * (size_t)r, copy + row * (size_t)(r - r % HEAD + hn_paired_row(r % HEAD, HEAD)), row);
    free(copy);
}

/* halves: 0: rows in pairs, and the file says so; 1: the same head in halves; 2: rows in pairs that the file says nothing of. */
static const char *write_head(int halves) {
    static const char *const turned[] = {"q_proj", "k_proj", "q_norm", "k_norm"};
    static char path[3][600];
    random_head h;
    head_make(&h, &form);
    for (int i = 0; i < 2; i++) {
        char front[40];
        snprintf(front, sizeof front, "layers.%d.self_attn.", i);
        head_floats(&h, front, "q_norm.weight", HEAD, 0);
        head_floats(&h, front, "k_norm.weight", HEAD, 0);
        for (int k = 0; k < 4 && halves == 1; k++) {
            char name[80];
            snprintf(name, sizeof name, "%s%s.weight", front, turned[k]);
            to_halves(head_find(&h, name));
        }
    }
    head_floats(&h, "", "confidence_head.proj.weight", 1, HIDDEN + RANK);
    head_floats(&h, "", "confidence_head.proj.bias", 1, 0);
    static const char *const none[] = {"aux_hidden_state_layer_ids", "mask_token_id", "speculators_model_type", "draft_vocab_size"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) json_object_del(h.config, none[i]);
    json_t *more = json_pack("{s:[s], s:s, s:i, s:f, s:i, s:b, s:{s:[i,i], s:i, s:i}}", "architectures", "Lfm2DSparkDraftModel",
                             "model_type", "qwen3", "head_dim", HEAD, "rope_theta", 1e7, "markov_rank", RANK, "enable_confidence_head", 1,
                             "dflash_config", "target_layer_ids", 0, 1, "num_target_layers", 3, "mask_token_id", 127);
    if (halves == 0) json_object_set_new(more, "rope_is_neox_style", json_false());
    json_object_update(h.config, more);
    json_decref(more);
    snprintf(path[halves], sizeof path[halves], "%s.%d", test_path("dspark"), halves);
    head_write(&h, path[halves]);
    head_free(&h);
    return path[halves];
}

/* The logits of a block after the text, by the command. */
static bytes drafted(const char *head) {
    char ids_at[600], out[600];
    snprintf(ids_at, sizeof ids_at, "%s", test_path("ids.json"));
    snprintf(out, sizeof out, "%s", test_path("drafted.safetensors"));
    test_file_write(ids_at, ids, sizeof ids - 1);
    must_run(HUNCH_COMMAND " draft %s -q --tokens %s --draft dspark:%s,weights=bf16 --depth %d --force -o %s", data_path(TARGET), ids_at,
             head, BLOCK, out);
    return test_file_read(out);
}

static bool same_bytes(const bytes *a, const bytes *b) { return a->size == b->size && !memcmp(a->at, b->at, a->size); }

static void test_release(void **state) {
    (void)state;
    char gguf[600];
    bytes pairs = drafted(write_head(0)), halves = drafted(write_head(1)), unsaid = drafted(write_head(2));
    assert_true(pairs.size > sizeof(float) * BLOCK * VOCAB); /* all rows of a block are proposed */
    assert_true(same_bytes(&pairs, &halves));
    assert_false(same_bytes(&pairs, &unsaid));
    snprintf(gguf, sizeof gguf, "%s", test_path("dspark.gguf"));
    must_run(HUNCH_COMMAND " convert %s --target %s -o %s", write_head(0), data_path(TARGET), gguf);
    bytes converted = drafted(gguf);
    assert_true(same_bytes(&pairs, &converted));
    bytes_free(&pairs);
    bytes_free(&halves);
    bytes_free(&unsaid);
    bytes_free(&converted);
}

static answer answer_of(hunch_model *m, const char *draft, double temperature) {
    const hunch_token prompt[] = {5, 90, 17, 44, 3, 61, 29, 8, 77, 12};
    hunch_request r;
    answer a = {0};
    hunch_engine *e = open_engine(m, draft, 1, 64, HUNCH_KV_BF16, 16, 128);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = 80;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature, .top_p = 1, .seed = 3};
    run_requests(e, &r, 1, true, &a);
    hunch_engine_close(&e);
    return a;
}

/* README: "By default tokens and logits are the same bits with and without drafting, at temperature 0 and with
 * sampling." */
static void test_same_bits(void **state) {
    (void)state;
    char draft[700];
    hunch_model *m = open_model(data_path(TARGET), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    snprintf(draft, sizeof draft, "dspark:%s,force=0.7", write_head(0));
    for (int i = 0; i < 2; i++) {
        answer want = answer_of(m, NULL, i * 0.8), got = answer_of(m, draft, i * 0.8);
        assert_same(&want, &got, draft);
        assert_true(got.accepted > 10);
        answer_free(&want);
        answer_free(&got);
    }
    hunch_model_close(&m);
}

/* Heads that are trained for such a model draft for it. */
static void test_trained(void **state) {
    (void)state;
    static const char *const kinds[] = {"eagle3", "dflash", "dspark"};
    static const char rows[] = "{\"prompt\": \"once upon a time\"}\n{\"prompt\": \"lily and ben\"}\n{\"prompt\": \"the sun\"}\n"
                               "{\"prompt\": \"tim had a dog\"}\n{\"prompt\": \"one day\"}\n{\"prompt\": \"mom said\"}\n";
    char folder[600], prompts[600], texts[600], head[600], draft[700];
    snprintf(folder, sizeof folder, "%s", test_path("target"));
    snprintf(prompts, sizeof prompts, "%s", test_path("rows.jsonl"));
    snprintf(texts, sizeof texts, "%s", test_path("texts"));
    must_run("cp -r %s %s", data_path(TARGET), folder);
    must_run("cp %s %s/", data_path("models/babyllama105/hf/tokenizer.json"), folder);
    must_run("cp %s %s/", data_path("models/babyllama105/hf/tokenizer_config.json"), folder);
    test_file_write(prompts, rows, sizeof rows - 1);
    must_run(HUNCH_COMMAND "-train data %s -f %s -n 30 -q -o %s", folder, prompts, texts);
    hunch_model *m = open_model(folder, "best", test_threads(), HUNCH_PRECISION_NATIVE);
    answer want = answer_of(m, NULL, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(head, sizeof head, "%s.trained.gguf", test_path(kinds[i]));
        must_run(HUNCH_COMMAND "-train %s %s -f %s -q --steps 2 --held-out 2 --taps 1:2:3 -o %s", kinds[i], folder, texts, head);
        snprintf(draft, sizeof draft, "%s:%s,force=0.7", kinds[i], head);
        answer got = answer_of(m, draft, 0);
        assert_same(&want, &got, draft);
        assert_true(got.accepted > 5);
        answer_free(&got);
    }
    answer_free(&want);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_release), cmocka_unit_test(test_same_bits), cmocka_unit_test(test_trained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
