/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_head_gguf_test.c - the command with draft heads in GGUF files that are damaged, contradict themselves, or were made for another
 * model: exit code 3 and one line that names the file and the error in it (hostile_limits.h). And convert on the command line. */
#include "command.h"

#include "hostile_limits.h"
#include "random_head.h"
#include "tiny_gguf.h"

#include "head_gguf.h"

#define HEADS HUNCH_TEST_DATA "/goldens-heads"
#define LLAMA HEADS "/targets/llama-a"
#define QWEN3 HEADS "/targets/qwen3-a"
#define IDS HEADS "/eagle2-nobias-gqa/ids.json"

static void spec_refused(int code, const char *target, const char *spec, const char *says) {
    result r = command("draft", "-m", target, "--draft", spec, "--tokens", IDS);
    const char *end = strchr(r.err, '\n');
    if (r.code != code || !strstr(r.err, says) || !strstr(r.err, "head.gguf") || !end || end[1] || r.out_len)
        fail_msg("%s: expected %d and one line that names the file and \"%s\", got %d and \"%s\", output \"%s\"", spec, code, says,
                 r.code, r.err, r.out);
    result_free(&r);
}

typedef enum form { EAGLE, EAGLE3, PEAGLE, MTP, DART } form;
static const head_form *const forms[] = {&LLAMA_EAGLE, &LLAMA_EAGLE3, &LLAMA_PEAGLE, &LLAMA_MTP, &LLAMA_DART};

static void make(tiny *t, form f) {
    random_head h;
    head_make(&h, forms[f]);
    head_gguf_open(t, &h, forms[f]);
    head_free(&h);
}

/* Writes the file and checks that it is refused. Closes t. */
static void assert_head_refused(tiny *t, form f, const char *says) {
    char spec[600];
    head_gguf_write(t, path_of("head.gguf"));
    tiny_close(t);
    snprintf(spec, sizeof spec, "%s:%s", head_kind_of(forms[f]), path_of("head.gguf"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec, says);
}

static void test_keys(void **state) {
    static const struct {
        form form;
        const char *key;
        uint32_t type;
        double value;     /* of a number, in its type; NAN: the key is dropped */
        const char *text; /* of a string */
        const char *says;
    } cases[] = {
        {EAGLE3, "general.architecture", STRING, 0, "llama",
         "general.architecture is \"llama\", expected a draft head's: eagle3, dflash, gemma4-assistant or"},
        {EAGLE3, "general.architecture", STRING, 0, "bloom", "general.architecture is \"bloom\""},
        {EAGLE3, "general.architecture", U32, 3, NULL, "general.architecture is"},
        {EAGLE3, "general.architecture", 0, NAN, NULL, "general.architecture is \"\""},
        {EAGLE3, "general.architecture", STRING, 0, "hunch-head", "key hunch-head.block_count is missing"},
        {EAGLE3, "hunch.head.kind", STRING, 0, "eagle", "hunch.head.kind is \"eagle\", expected eagle3"},
        {EAGLE3, "hunch.head.kind", U32, 3, NULL, "hunch.head.kind is 3; expected a string"},
        {EAGLE, "hunch.head.kind", STRING, 0, "mtp", "hunch.head.kind is \"mtp\", expected eagle"},
        {MTP, "hunch.head.kind", STRING, 0, "eagle", "hunch.head.kind is \"eagle\", expected mtp"},
        {EAGLE3, "eagle3.target_layers", 0, NAN, NULL, "key eagle3.target_layers is missing"},
        {EAGLE3, "eagle3.target_layers", U32, 3, NULL, "eagle3.target_layers is 3; expected an array"},
        {EAGLE3, "eagle3.target_layers", STRING, 0, "2,4,5", "eagle3.target_layers is a string"},
        {EAGLE3, "eagle3.target_hidden_size", U32, 4096, NULL, "eagle3.target_hidden_size is 4096, expected the 64 of this target"},
        {EAGLE3, "eagle3.vocab_size", U32, 481, NULL, "eagle3.vocab_size is 481, expected the 480 of this target"},
        {EAGLE3, "eagle3.norm_before_residual", U32, 1, NULL, "eagle3.norm_before_residual is 1; expected true or false"},
        {EAGLE3, "eagle3.norm_before_fc", BOOL, 1, NULL, "tensor enc.output_norm.weight is missing"},
        {EAGLE3, "hunch.head.fc_norm", BOOL, 1, NULL, "tensor fc_norm.0.weight is missing"},
        {EAGLE3, "hunch.head.norm_output", STRING, 0, "yes", "hunch.head.norm_output is"},
        {EAGLE3, "eagle3.block_count", U32, 0, NULL, "eagle3.block_count is 0"},
        {EAGLE3, "eagle3.block_count", U32, 2, NULL, "tensor blk.1.attn_q.weight is missing"},
        {EAGLE3, "eagle3.block_count", U32, 17, NULL, "17 layers, expected a draft head of at most 16"},
        {EAGLE3, "eagle3.block_count", 0, NAN, NULL, "key eagle3.block_count is missing"},
        {EAGLE3, "eagle3.attention.head_count", U32, 3, NULL, "3 heads do not share 2 key heads"},
        {EAGLE3, "eagle3.attention.key_length", U32, 15, NULL, "head size 15"},
        {EAGLE3, "eagle3.rope.dimension_count", U32, 7, NULL, "rotated 7"},
        {EAGLE3, "eagle3.attention.sliding_window", U32, 7, NULL, "eagle3.attention.sliding_window is 7, expected a draft head without"},
        {EAGLE3, "hunch.head.rope_frequencies", F32, 1, NULL, "hunch.head.rope_frequencies is 1; expected an array"},
        {EAGLE3, "hunch.head.rope_frequencies", ARRAY, 1, NULL, "hunch.head.rope_frequencies, expected a list of 8 numbers"},
        {EAGLE3, "hunch.head.rope_frequencies_long", ARRAY, 1, NULL, "hunch.head.rope_frequencies_long, expected a list of 0 numbers"},
        {EAGLE3, "hunch.head.rope_amplitude", F32, -1, NULL, "hunch.head.rope_amplitude is -1"},
        {PEAGLE, "hunch.head.mask_token_id", 0, NAN, NULL, "the mask token is not specified:"},
        {PEAGLE, "hunch.head.mask_token_id", U32, 480, NULL, "hunch.head.mask_token_id is 480, expected a token of 0 to 479"},
        {PEAGLE, "hunch.head.mask_token_id", STRING, 0, "x", "hunch.head.mask_token_id is a string"},
        {DART, "hunch.head.draft_length", 0, NAN, NULL, "the number of masks is not specified: expected a key hunch.head.draft_length"},
        {DART, "hunch.head.draft_length", U32, 63, NULL, "hunch.head.draft_length is 63, expected 1 to 62 masks"},
        {MTP, "hunch-head.nextn_predict_layers", U32, 3, NULL, "hunch-head.nextn_predict_layers is 3, expected 1 layer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t;
        make(&t, cases[i].form);
        if (isnan(cases[i].value))
            tiny_remove(&t, cases[i].key);
        else
            tiny_set(&t, cases[i].key, cases[i].type, (uint64_t)fabs(cases[i].value), cases[i].value, cases[i].text);
        assert_head_refused(&t, cases[i].form, cases[i].says);
    }
}

static void test_target_layers(void **state) {
    static const struct {
        uint32_t type;
        int n;
        double value[20];
        const char *says;
    } cases[] = {
        {I32, 0, {0}, "eagle3.target_layers: expected a list of 1 to 16 layers"},
        {I32, 17, {1, 2, 3, 4, 5, 6, 7}, "eagle3.target_layers: expected a list of 1 to 16 layers"},
        {I32, 2, {2, 4}, "fc.weight has other inputs, expected 2 states of the target"},
        {I32, 4, {1, 2, 4, 5}, "fc.weight has other inputs, expected 4 states of the target"},
        {I32, 3, {-1, 2, 4}, "eagle3.target_layers: expected layers of 0 to 256"},
        {I32, 3, {2, 4, 257}, "eagle3.target_layers: expected layers of 0 to 256"},
        {I32, 3, {2, 4, 9}, "reads the state at layer 9, expected 0 to 8 of this target"},
        {I32, 3, {2, 4, 4}, "reads the state at layer 4 twice"},
        {F32, 3, {2, 4, 4.5}, "eagle3.target_layers: expected layers of 0 to 256"},
        {F32, 3, {2, 4, NAN}, "eagle3.target_layers: expected layers of 0 to 256"},
        {STRING, 3, {0}, "eagle3.target_layers: expected a list of 1 to 16 layers"},
        {ARRAY, 1, {0}, "eagle3.target_layers is an array of arrays"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t;
        make(&t, EAGLE3);
        bytes *b = tiny_array(&t, "eagle3.target_layers", cases[i].type, (uint64_t)cases[i].n);
        for (int k = 0; k < cases[i].n; k++) {
            const float f = (float)cases[i].value[k];
            if (cases[i].type == STRING)
                bytes_text(b, "4");
            else if (cases[i].type == ARRAY)
                bytes_number(b, U8, 4), bytes_number(b, 3, 8), bytes_number(b, 0, 3);
            else if (cases[i].type == F32)
                bytes_put(b, &f, sizeof f);
            else
                bytes_number(b, (uint64_t)(int64_t)cases[i].value[k], 4);
        }
        assert_head_refused(&t, EAGLE3, cases[i].says);
    }
}

static void drop(tiny *t, const char *name) {
    tiny_tensor *x = tiny_tensor_of(t, name);
    free(x->data);
    *x = t->tensor[--t->n_tensors];
}

static void test_missing_tensors(void **state) {
    static const struct {
        form form;
        const char *name, *says;
    } cases[] = {
        {EAGLE, "fc.weight", "not a head of EAGLE-1 or -2: expected a tensor fc.weight of 128 inputs"},
        {EAGLE, "blk.0.ffn_norm.weight", "tensor blk.0.ffn_norm.weight is missing"},
        {EAGLE3, "fc.weight", "fc.weight is missing"},
        {EAGLE3, "blk.0.attn_norm.weight", "tensor blk.0.attn_norm.weight is missing"},
        {EAGLE3, "blk.0.attn_norm_2.weight", "tensor blk.0.attn_norm_2.weight is missing"},
        {EAGLE3, "blk.0.attn_k.weight", "tensor blk.0.attn_k.weight is missing"},
        {EAGLE3, "output_norm.weight", "tensor output_norm.weight is missing"},
        {EAGLE3, "output.weight", "a tensor d2t, and no output.weight: expected the output whose tokens it names"},
        {EAGLE3, "d2t", "160 draft tokens of 480, but no tensor d2t with their ids"},
        {PEAGLE, "mask_hidden", "tensor mask_hidden is missing: not a head of P-EAGLE"},
        {DART, "blk.0.mask_rep", "tensor mask_rep is missing: not a head of DART"},
        {PEAGLE, "blk.1.ffn_up.weight", "tensor blk.1.ffn_up.weight is missing"},
        {MTP, "blk.0.nextn.eh_proj.weight", "tensor blk.0.nextn.eh_proj.weight is missing"},
        {MTP, "blk.0.nextn.hnorm.weight", "tensor blk.0.nextn.hnorm.weight is missing"},
        {MTP, "blk.0.attn_norm.weight", "tensor blk.0.attn_norm.weight is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t;
        make(&t, cases[i].form);
        drop(&t, cases[i].name);
        assert_head_refused(&t, cases[i].form, cases[i].says);
    }
}

static void test_shapes_and_more(void **state) {
    static const struct {
        form form;
        const char *name;
        uint64_t cols, rows; /* of an existing tensor, or of an added one */
        const char *says;
    } cases[] = {
        {EAGLE3, "fc.weight", 64, 64, "fc.weight has other inputs"},
        {EAGLE3, "blk.0.attn_q.weight", 64, 64, "tensor blk.0.attn_q.weight has shape [64, 64]; expected [128, 64]"},
        {EAGLE3, "blk.0.attn_norm_2.weight", 32, 0, "tensor blk.0.attn_norm_2.weight has shape [32]"},
        {EAGLE3, "output.weight", 64, 481, "an output of 481 tokens, expected at most the 480 of the target"},
        {EAGLE3, "output.weight", 160, 0, "tensor output.weight has 1 dimensions"},
        {EAGLE3, "d2t", 318, 0, "tensor d2t has shape [159]; expected [160]"},
        {EAGLE3, "d2t", 160, 2, "tensor d2t has shape [80, 2]; expected [160]"},
        {EAGLE3, "token_embd.weight", 64, 479, "an embedding of 479 tokens, expected the 480 of the target"},
        {EAGLE3, "token_embd.weight", 32, 480, "tensor token_embd.weight has shape [32, 480]"},
        {EAGLE3, "mask_hidden", 192, 0, "tensor mask_hidden: a head of P-EAGLE"},
        {EAGLE3, "blk.0.mask_rep", 128, 0, "tensor blk.0.mask_rep: a head of DART"},
        {DART, "blk.0.mask_rep", 64, 0, "tensor blk.0.mask_rep has shape [64]; expected [128]"},
        {EAGLE3, "blk.1.attn_q.weight", 64, 64, "tensor blk.1.attn_q.weight: heads of this kind, of 1 layer, have none"},
        {EAGLE3, "blk.0.attn_qkv.weight", 64, 64, "tensor blk.0.attn_qkv.weight has shape"},
        {EAGLE3, "markov_w1.weight", 64, 64, "tensor markov_w1.weight: heads of this kind"},
        {EAGLE3, "rope_freqs.weight", 7, 0, "tensor rope_freqs.weight: expected F32 [8]"},
        {EAGLE, "output_norm.weight", 64, 0, "tensor output_norm.weight: heads of this kind"},
        {EAGLE, "blk.0.nextn.enorm.weight", 64, 0, "not a head of EAGLE-1 or -2"},
        {MTP, "blk.0.nextn.eh_proj.weight", 64, 64, "tensor blk.0.nextn.eh_proj.weight has shape [64, 64]; expected [128, 64]"},
        {MTP, "blk.1.nextn.enorm.weight", 64, 0, "tensor blk.1.nextn.enorm.weight: heads of this kind"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t;
        uint32_t type = 0;
        make(&t, cases[i].form);
        for (size_t k = 0; k < t.n_tensors; k++)
            if (!strcmp(t.tensor[k].name, cases[i].name)) type = t.tensor[k].type + 1;
        if (type) drop(&t, cases[i].name);
        tiny_add(&t, cases[i].name, cases[i].cols, cases[i].rows);
        if (type > 1) {
            tiny_tensor *x = &t.tensor[t.n_tensors - 1];
            x->type = type - 1;
            x->dims[0] /= 2; /* of 8 bytes each */
        }
        assert_head_refused(&t, cases[i].form, cases[i].says);
    }
}

static void test_draft_tokens(void **state) {
    static const struct {
        int at;
        int64_t id;
        const char *says;
    } cases[] = {
        {0, -1, "d2t: draft token 0 is token -1, expected 0 to 479"},
        {7, 480, "d2t: draft token 7 is token 480, expected 0 to 479"},
        {7, INT64_MIN, "element 7 of tensor d2t is -9223372036854775808"},
        {159, 3, "d2t: draft token 159 is token 3, as one before it is"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t;
        make(&t, EAGLE3);
        memcpy((char *)tiny_tensor_of(&t, "d2t")->data + (size_t)cases[i].at * 8, &cases[i].id, 8);
        assert_head_refused(&t, EAGLE3, cases[i].says);
    }
    tiny t;
    make(&t, EAGLE3);
    tiny_tensor_of(&t, "d2t")->type = 28; /* F64 */
    assert_head_refused(&t, EAGLE3, "tensor d2t has type F64; expected integers");
    make(&t, EAGLE3);
    tiny_tensor_of(&t, "blk.0.attn_k.weight")->data[17] = NAN;
    assert_head_refused(&t, EAGLE3, "tensor blk.0.attn_k.weight: a value is not finite");
}

static void test_cut(void **state) {
    (void)state;
    char spec[600];
    tiny t;
    make(&t, PEAGLE);
    head_gguf_place(&t);
    bytes b = tiny_bytes(&t);
    tiny_close(&t);
    snprintf(spec, sizeof spec, "%s", path_of("head.gguf"));
    for (size_t size = 0; size < b.size; size += b.size / 29) {
        test_file_write(path_of("head.gguf"), b.at, size);
        spec_refused(HUNCH_REFUSED, LLAMA, spec, "head.gguf");
    }
    test_file_write(path_of("head.gguf"), b.at, b.size);
    bytes_free(&b);
    spec_refused(HUNCH_REFUSED, QWEN3, spec, "an embedding of 480 tokens, expected the 512 of the target");
    make(&t, EAGLE);
    head_gguf_write(&t, path_of("head.gguf"));
    tiny_close(&t);
    snprintf(spec, sizeof spec, "eagle3:%s", path_of("head.gguf"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "hunch.head.kind is \"eagle\", expected eagle3");
    snprintf(spec, sizeof spec, "mtp:%s", path_of("head.gguf"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "hunch.head.kind is \"eagle\", expected mtp");
}

/* ---- convert on the command line ---------------------------------------------------------------------------------------------- */

static void test_convert(void **state) {
    const char *head = HEADS "/eagle3-official-d2t/head";
    char out[300], spec[400];
    (void)state;
    snprintf(out, sizeof out, "%s", path_of("converted.gguf"));
    refused(HUNCH_USAGE, "which layers of its model it reads: expected --target", "convert", head, "-o", out);
    refused(HUNCH_USAGE, "is no draft head, expected one beside --target", "convert", LLAMA, "--target", LLAMA, "-o", out);
    assert_int_equal(access(out, F_OK), -1);
    json_t *j = json_of("convert", head, "--target", LLAMA, "-o", out);
    assert_string_equal(text_of(j, "output"), out);
    json_decref(j);
    refused(HUNCH_USAGE, "--force replaces it", "convert", head, "--target", LLAMA, "-o", out);
    result r = command("inspect", out);
    assert_int_equal(r.code, HUNCH_OK);
    assert_non_null(strstr(r.out, "a draft head of kind eagle3"));
    assert_null(strstr(r.out, "unknown architecture"));
    result_free(&r);
    snprintf(spec, sizeof spec, "eagle3:%s", head);
    json_t *folder_draft = json_of("draft", "-m", LLAMA, "--tokens", IDS, "--draft", spec),
           *file_draft = json_of("draft", "-m", LLAMA, "--tokens", IDS, "--draft", out);
    assert_true(json_array_size(get(folder_draft, "tokens")) > 0);
    assert_true(json_equal(folder_draft, file_draft));
    json_decref(folder_draft);
    json_decref(file_draft);
    r = command("run", "-m", out, "-p", "x");
    assert_int_equal(r.code, HUNCH_REFUSED);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),          cmocka_unit_test(test_target_layers), cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_shapes_and_more), cmocka_unit_test(test_draft_tokens), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_convert),
    };
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
