/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_gguf_test.c - the command with damaged or inconsistent GGUF files: it ends with the documented exit code and
 * one line that names the file and the error in it, never with a signal, within a gigabyte and seconds
 * (hostile_limits.h). The model is tiny_gguf.h's, one thing changed at a time. */
#include "command.h"

#include "fixture.h"
#include "hostile_limits.h"
#include "tiny_gguf.h"

static const char *tiny_write(const tiny *t) {
    bytes b = tiny_bytes(t);
    const char *path = file_write("model.gguf", b.at, b.size);
    bytes_free(&b);
    return path;
}

static void assert_refused(const char *path, const char *what, const char *says) {
    model_refused(path, "abc", what, says);
}

/* ---- keys --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    uint32_t type;
    uint64_t u;
    double f;
    const char *text, *says;
} LIES[] = {
    {"general.architecture", U32, 7, 0, NULL, "general.architecture is 7; expected a string"},
    {"general.architecture", STRING, 0, 0, "mamba\n\x1b[2J\xff", "unknown architecture"},
    {"general.name", ARRAY, 0, 0, NULL, "general.name is an array"},
    {"general.alignment", U32, 0, 0, NULL, "general.alignment is 0"},
    {"general.alignment", U32, 3, 0, NULL, "general.alignment is 3"},
    {"general.alignment", U32, 1u << 31, 0, NULL, "general.alignment is 2147483648"},
    {"general.alignment", STRING, 0, 0, "32", "general.alignment is a string"},
    {"llama.block_count", U32, 0, 0, NULL, "llama.block_count is 0"},
    {"llama.block_count", U32, 1000000000, 0, NULL, "llama.block_count is 1000000000"},
    {"llama.block_count", U64, (uint64_t)1 << 40, 0, NULL, "llama.block_count is 1099511627776"},
    {"llama.block_count", I32, (uint32_t)-1, 0, NULL, "llama.block_count is -1"},
    {"llama.block_count", F32, 0, 1.5, NULL, "llama.block_count is 1.5"},
    {"llama.block_count", F32, 0, NAN, NULL, "llama.block_count is nan"},
    {"llama.block_count", U32, 1000, 0, NULL, "blk.1."},
    {"llama.embedding_length", U32, 0, 0, NULL, "llama.embedding_length is 0"},
    {"llama.embedding_length", U64, (uint64_t)1 << 40, 0, NULL, "llama.embedding_length is"},
    {"llama.embedding_length", U32, 16, 0, NULL, "token_embd.weight"},
    {"llama.feed_forward_length", U32, 0, 0, NULL, "llama.feed_forward_length is 0"},
    {"llama.feed_forward_length", I64, UINT64_MAX, 0, NULL, "llama.feed_forward_length is -1"},
    {"llama.feed_forward_length", U32, 1 << 20, 0, NULL, "ffn_"},
    {"llama.attention.head_count", U32, 0, 0, NULL, "llama.attention.head_count is 0"},
    {"llama.attention.head_count", U32, 3, 0, NULL, "heads"},
    {"llama.attention.head_count", U32, 1024, 0, NULL, "head"},
    {"llama.attention.head_count_kv", U32, 0, 0, NULL, "llama.attention.head_count_kv is 0"},
    {"llama.attention.head_count_kv", U32, 4, 0, NULL, "heads"},
    {"llama.attention.head_count_kv", ARRAY, 0x010101, 0, NULL, "blk.0.attn_k.weight has shape"},
    {"llama.attention.head_count_kv", ARRAY, 0x020002, 0, NULL, "llama.attention.head_count_kv is a list, 2 of layer 0 and 0 of layer 1"},
    {"llama.attention.key_length", U32, 3, 0, NULL, "head size 3"},
    {"llama.attention.key_length", U32, 1u << 30, 0, NULL, "llama.attention.key_length is"},
    {"llama.attention.value_length", U32, 8, 0, NULL, "head size 4"},
    {"llama.context_length", U64, (uint64_t)1 << 40, 0, NULL, "llama.context_length is 1099511627776"},
    {"llama.context_length", U32, 0, 0, NULL, "llama.context_length is 0"},
    {"llama.attention.layer_norm_rms_epsilon", F32, 0, NAN, NULL, "layer_norm_rms_epsilon is nan"},
    {"llama.attention.layer_norm_rms_epsilon", F64, 0, INFINITY, NULL, "layer_norm_rms_epsilon is inf"},
    {"llama.attention.layer_norm_rms_epsilon", F32, 0, -1, NULL, "layer_norm_rms_epsilon is -1"},
    {"llama.attention.layer_norm_rms_epsilon", STRING, 0, 0, "1e-5", "layer_norm_rms_epsilon is a string"},
    {"llama.rope.freq_base", F32, 0, NAN, NULL, "llama.rope.freq_base is nan"},
    {"llama.rope.freq_base", F32, 0, -10000, NULL, "llama.rope.freq_base is -10000"},
    {"llama.rope.freq_base", F64, 0, 1e300, NULL, "llama.rope.freq_base is 1e+300"},
    {"llama.rope.freq_base", BOOL, 1, 0, NULL, "llama.rope.freq_base is a boolean"},
    {"llama.rope.dimension_count", U32, 3, 0, NULL, "rotated 3"},
    {"llama.rope.dimension_count", U32, 100, 0, NULL, "rotated 100"},
    {"llama.rope.scaling.type", STRING, 0, 0, "magic", "llama.rope.scaling.type"},
    {"llama.rope.scaling.type", STRING, 0, 0, "linear", "llama.rope.scaling.factor"},
    {"llama.vocab_size", U32, 16, 0, NULL, "vocabulary of 16"},
    {"llama.vocab_size", U32, 0, 0, NULL, "llama.vocab_size is 0"},
    {"llama.expert_count", U32, 8, 0, NULL, "llama.expert_used_count is missing"},
    {"llama.expert_count", U32, 100000, 0, NULL, "llama.expert_count is 100000"},
    {"split.count", U16, 2, 0, NULL, "split.no is missing"},
    {"split.count", I16, 0xffff, 0, NULL, "split.count is -1"},
    {"general.sampling.temp", F32, 0, NAN, NULL, "general.sampling.temp is nan"},
    {"general.sampling.temp", F32, 0, -1, NULL, "general.sampling.temp is -1"},
    {"general.sampling.top_k", I32, (uint32_t)-5, 0, NULL, "general.sampling.top_k is -5"},
    {"general.sampling.top_p", F32, 0, INFINITY, NULL, "general.sampling.top_p is inf"},
    {"tokenizer.ggml.model", STRING, 0, 0, "wordpiece\xff", "tokenizer.ggml.model"},
    {"tokenizer.ggml.model", U8, 1, 0, NULL, "tokenizer.ggml.model is 1"},
    {"tokenizer.ggml.tokens", ARRAY, 0, 0, NULL, "tokenizer.ggml.tokens"},
    {"tokenizer.ggml.tokens", STRING, 0, 0, "a", "tokenizer.ggml.tokens is a string"},
    {"tokenizer.ggml.token_type", ARRAY, 0x010101, 0, NULL, "tokenizer.ggml.token_type"},
    {"tokenizer.ggml.scores", ARRAY, 0, 0, NULL, "tokenizer.ggml.scores"},
    {"tokenizer.ggml.bos_token_id", U32, TINY_VOCAB, 0, NULL, "tokenizer.ggml.bos_token_id is 15"},
    {"tokenizer.ggml.eos_token_id", U64, UINT64_MAX, 0, NULL, "tokenizer.ggml.eos_token_id is 18446744073709551615"},
    {"tokenizer.ggml.eot_token_id", I32, (uint32_t)-2, 0, NULL, "tokenizer.ggml.eot_token_id is -2"},
    {"tokenizer.ggml.unknown_token_id", F32, 0, INFINITY, NULL, "tokenizer.ggml.unknown_token_id is inf"},
    {"tokenizer.ggml.add_bos_token", U8, 1, 0, NULL, "tokenizer.ggml.add_bos_token is 1"},
    {"tokenizer.chat_template", U32, 1, 0, NULL, "tokenizer.chat_template is 1"},
};

/* README: "A model file that is damaged, inconsistent or unknown is refused with one line that says why; it crashes
 * nothing." */
static void test_keys_that_lie(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    model_runs(tiny_write(&t), "abc");
    tiny_close(&t);
    for (size_t i = 0; i < sizeof LIES / sizeof *LIES; i++) {
        char what[200];
        tiny_open(&t);
        tiny_set(&t, LIES[i].key, LIES[i].type, LIES[i].u, LIES[i].f, LIES[i].text);
        snprintf(what, sizeof what, "%s of type %u, %llu, %g", LIES[i].key, (unsigned)LIES[i].type,
                 (unsigned long long)LIES[i].u, LIES[i].f);
        assert_refused(tiny_write(&t), what, LIES[i].says);
        tiny_close(&t);
    }
}

static void test_keys_that_are_missing(void **state) {
    (void)state;
    static const char *const needed[] = {"general.architecture",
                                         "llama.block_count",
                                         "llama.embedding_length",
                                         "llama.feed_forward_length",
                                         "llama.attention.head_count",
                                         "llama.context_length",
                                         "llama.attention.layer_norm_rms_epsilon",
                                         "tokenizer.ggml.tokens",
                                         "tokenizer.ggml.scores"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        tiny t;
        tiny_open(&t);
        tiny_remove(&t, needed[i]);
        assert_refused(tiny_write(&t), needed[i], needed[i]);
        tiny_close(&t);
    }
}

/* Every key of the file as every type: it runs, or the key is named. In this process, there are hundreds. */
static void test_keys_of_every_type(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    const size_t n_keys = t.n_keys;
    int refused_ones = 0;
    for (size_t k = 0; k < n_keys; k++) {
        for (uint32_t type = 0; type < KEY_TYPES; type++) {
            char name[80];
            hunch_model *m = NULL;
            hunch_model_options o;
            hunch_error err = {0};
            tiny_close(&t);
            tiny_open(&t);
            snprintf(name, sizeof name, "%s", t.key[k].name);
            tiny_set(&t, name, type, 1, 1, "1");
            hunch_model_options_defaults(&o);
            o.threads = 1;
            const char *path = tiny_write(&t);
            const hunch_status st = hunch_model_open(&m, path, &o, &err);
            if (st != HUNCH_OK && (st != HUNCH_REFUSED || !strstr(err.message, path)))
                fail_msg("%s as type %u: %d, %s", name, (unsigned)type, st, err.message);
            refused_ones += st != HUNCH_OK;
            hunch_model_close(&m);
        }
    }
    tiny_close(&t);
    assert_true(refused_ones > 100);
}

/* ---- the tokenizer's arrays --------------------------------------------------------------------------------------- */

static void test_tokenizers(void **state) {
    (void)state;
    static const float no_number = NAN;
    tiny t;
    tiny_open(&t);
    bytes *b = tiny_array(&t, "tokenizer.ggml.scores", F32, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) bytes_put(b, &no_number, sizeof no_number);
    assert_refused(tiny_write(&t), "scores that are no numbers", "tokenizer.ggml.scores[0]");
    tiny_close(&t);
    tiny_open(&t);
    b = tiny_array(&t, "tokenizer.ggml.token_type", I32, TINY_VOCAB);
    for (int i = 0; i < TINY_VOCAB; i++) bytes_number(b, (uint64_t)i + 1, 4);
    assert_refused(tiny_write(&t), "types that do not exist", "tokenizer.ggml.token_type[");
    tiny_close(&t);
    tiny_open(&t);
    b = tiny_array(&t, "tokenizer.ggml.tokens", STRING, TINY_VOCAB + 1);
    for (int i = 0; i <= TINY_VOCAB; i++) bytes_text(b, "\xff\xfe");
    assert_refused(tiny_write(&t), "more tokens than types", "tokenizer.ggml.token_type");
    tiny_close(&t);
    tiny_open(&t); /* more tokens than the model has rows */
    tiny_remove(&t, "tokenizer.ggml.token_type");
    b = tiny_array(&t, "tokenizer.ggml.tokens", STRING, 40);
    for (int i = 0; i < 40; i++) bytes_text(b, "x");
    b = tiny_array(&t, "tokenizer.ggml.scores", F32, 40);
    bytes_zeros(b, 40 * 4);
    assert_refused(tiny_write(&t), "more tokens than rows", "tokenizer of 40 tokens, model of 15");
    tiny_close(&t);
    tiny_open(&t);
    tiny_text(&t, "tokenizer.ggml.model", "gpt2");
    b = tiny_array(&t, "tokenizer.ggml.merges", STRING, 1);
    bytes_text(b, "no such");
    assert_refused(tiny_write(&t), "SentencePiece's tokens as bytes", "spaces in tokenizer.ggml.tokens are U+2581");
    tiny_text(&t, "tokenizer.ggml.pre", "nobody's");
    assert_refused(tiny_write(&t), "an unknown pre-tokenizer", "tokenizer.ggml.pre");
    tiny_close(&t);
}

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

static void test_tensors(void **state) {
    (void)state;
    static const struct {
        const char *what, *says;
        uint64_t dim0, dim1, offset;
        uint32_t n_dims, type;
    } cases[] = {
        {"sizes that multiply past 2^64", "attn_q.weight", (uint64_t)1 << 40, (uint64_t)1 << 40, 0, 2, 0},
        {"bytes that multiply past 2^64", "attn_q.weight", (uint64_t)1 << 40, (uint64_t)1 << 22, 0, 2, 0},
        {"nothing in it", "attn_q.weight has shape [0, 8]", 0, 8, 0, 2, 0},
        {"five dimensions", "attn_q.weight has 5 dimensions", 8, 8, 0, 5, 0},
        {"2^31 dimensions", "attn_q.weight has 2147483648 dimensions", 8, 8, 0, 1u << 31, 0},
        {"past the end", "attn_q.weight needs 256 bytes at offset 1048576", 8, 8, 1 << 20, 2, 0},
        {"at the end of the address space", "attn_q.weight needs 256 bytes", 8, 8, UINT64_MAX - 31, 2, 0},
        {"out of line", "attn_q.weight starts at offset 17", 8, 8, 17, 2, 0},
        {"another's bytes", "overlap", 8, 8, 32, 2, 0},
        {"an unknown type", "attn_q.weight has type type 1000", 8, 8, 0, 2, 1000},
        {"half a block", "attn_q.weight has rows of 8", 8, 8, 0, 2, 8},
        {"another shape", "attn_q.weight has shape [64, 1]", 64, 1, 0, 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny t;
        tiny_open(&t);
        tiny_tensor *q = tiny_tensor_of(&t, "blk.0.attn_q.weight");
        q->dims[0] = cases[i].dim0, q->dims[1] = cases[i].dim1;
        for (int d = 2; d < 8; d++) q->dims[d] = 1;
        q->n_dims = cases[i].n_dims;
        q->type = cases[i].type;
        q->offset = cases[i].offset ? cases[i].offset : q->offset;
        assert_refused(tiny_write(&t), cases[i].what, cases[i].says);
        tiny_close(&t);
    }
}

static void test_names_and_counts(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    snprintf(tiny_tensor_of(&t, "blk.0.attn_q.weight")->name, 80, "blk.0.attn_k.weight");
    assert_refused(tiny_write(&t), "a tensor twice", "tensor blk.0.attn_k.weight appears twice");
    snprintf(t.tensor[0].name, 80, "a\x1b[2Jb");
    assert_refused(tiny_write(&t), "a name that moves the cursor", "not printable");
    t.tensor[0].name[0] = '\0';
    assert_refused(tiny_write(&t), "a tensor without a name", "the name of tensor 0");
    tiny_close(&t);
    tiny_open(&t);
    snprintf(tiny_find(&t, "llama.block_count")->name, 80, "llama.context_length");
    assert_refused(tiny_write(&t), "a key twice", "llama.context_length appears twice");
    tiny_close(&t);
    static const uint64_t more[] = {1, 1u << 30, UINT64_MAX / 2};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        tiny_open(&t);
        t.more_keys = more[i];
        assert_refused(tiny_write(&t), "keys that are not there", "");
        t.more_keys = 0;
        t.more_tensors = more[i];
        assert_refused(tiny_write(&t), "tensors that are not there", "");
        tiny_close(&t);
        tiny_open(&t);
        tiny_array(&t, "tokenizer.ggml.tokens", STRING, more[i] * 64);
        assert_refused(tiny_write(&t), "an array that is not there", "key tokenizer.ggml.tokens");
        bytes_number(tiny_put(&t, "general.name", STRING), more[i] * 100000, 8);
        assert_refused(tiny_write(&t), "a string that is not there", "key general.name");
        tiny_close(&t);
    }
    static const uint32_t versions[] = {0, 1, 4, 0x01000000, 0x03000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        tiny_open(&t);
        t.version = versions[i];
        assert_refused(tiny_write(&t), "a version",
                       versions[i] > 4 && versions[i] != UINT32_MAX ? "big-endian" : "version");
        tiny_close(&t);
    }
}

/* A file truncated anywhere is reported; in this process byte by byte, by the command at some lengths. */
static void test_truncated(void **state) {
    (void)state;
    tiny t;
    tiny_open(&t);
    bytes b = tiny_bytes(&t);
    tiny_close(&t);
    const size_t step = light() ? 7 : 1;
    for (size_t n = 0; n < b.size; n += step) {
        hunch_model *m = NULL;
        hunch_model_options o;
        hunch_error err = {0};
        const char *path = file_write("cut.gguf", b.at, n);
        hunch_model_options_defaults(&o);
        o.threads = 1;
        if (hunch_model_open(&m, path, &o, &err) != HUNCH_REFUSED || !strstr(err.message, path))
            fail_msg("%zu of %zu bytes: %s", n, b.size, err.message);
    }
    for (size_t n = 0; n < b.size; n += b.size / 8 + 1) assert_refused(file_write("cut.gguf", b.at, n), "cut", "");
    bytes_free(&b);
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

/* All logits are NaN: the answer ends with an error, greedy or sampled, with drafts or without. */
static void test_weights_that_are_no_numbers(void **state) {
    (void)state;
    static const char *const tensors[] = {"output_norm.weight", "blk.0.attn_v.weight", "token_embd.weight",
                                          "blk.0.ffn_down.weight"};
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 4; i++) {
        for (size_t v = 0; v < 3; v++) {
            tiny t;
            tiny_open(&t);
            tiny_tensor *x = tiny_tensor_of(&t, tensors[i]);
            for (size_t k = 0; k < x->n; k++) x->data[k] = values[v];
            const char *path = tiny_write(&t);
            for (int how = 0; how < 3; how++) {
                const char *const draft = how == 2 ? "ngram" : "none", *const heat = how == 1 ? "1" : "0";
                result r = command("run", "-m", path, "-p", "abc", "--raw", "-n", "4", "--ignore-eos", "--draft", draft,
                                   "--temperature", heat);
                if (r.code != HUNCH_FAILED || !strstr(r.err, "every logit is NaN or -inf"))
                    fail_msg("%s of %g, %d: %d, \"%s\", output \"%s\"", tensors[i], (double)values[v], how, r.code,
                             r.err, r.out);
                result_free(&r);
            }
            tiny_close(&t);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_that_lie),
        cmocka_unit_test(test_keys_that_are_missing),
        cmocka_unit_test(test_keys_of_every_type),
        cmocka_unit_test(test_tokenizers),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_names_and_counts),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_weights_that_are_no_numbers),
    };
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
