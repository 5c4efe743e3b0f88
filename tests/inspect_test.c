/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_test.c - `hunch inspect` of files: a large one, of whose tensors no byte may be read, one with unused
 * tensors, one that does not run; and every caller that opens a file gets the list of unused tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "command.h"
#include "fixture.h"
#include "format/bytes_for_tests.h"

enum { GGUF_U32 = 4, GGUF_F32 = 6, GGUF_STRING = 8, TYPE_F32 = 0, TYPE_F16 = 1, TYPE_IQ1_S = 19 };

typedef struct llama {
    uint64_t width, ffn, vocab;
    int layers;
    uint32_t type;         /* of matrices */
    const char *const *extra; /* names of tensors that no model has, each of `width` */
    int n_extra;
} llama;

typedef struct builder {
    bytes head;
    uint64_t offset; /* of the next tensor */
    uint64_t n_tensors;
    llama l;
} builder;

static void key(bytes *b, const char *name, uint32_t type, const void *value, size_t n) {
    bytes_text(b, name);
    bytes_number(b, type, 4);
    if (type == GGUF_STRING)
        bytes_text(b, value);
    else
        bytes_put(b, value, n);
}

static void number(bytes *b, const char *name, uint32_t value) {
    key(b, name, GGUF_U32, &value, 4);
}

static void tensor(builder *b, const char *name, uint32_t type, uint64_t in, uint64_t out) {
    bytes_text(&b->head, name);
    bytes_number(&b->head, out ? 2 : 1, 4);
    bytes_number(&b->head, in, 8);
    if (out) bytes_number(&b->head, out, 8);
    bytes_number(&b->head, type, 4);
    bytes_number(&b->head, b->offset, 8);
    const uint64_t n = in * (out ? out : 1), size = type == TYPE_F32 ? 4 * n : type == TYPE_F16 ? 2 * n : n / 256 * 50;
    b->offset += (size + 31) / 32 * 32;
    b->n_tensors++;
}

static void layer(builder *b, int i) {
    static const struct {
        const char *name;
        char in, out; /* w: width, f: ffn; out 0: a vector */
    } parts[] = {{"attn_norm", 'w', 0},    {"attn_q", 'w', 'w'},   {"attn_k", 'w', 'w'},
                 {"attn_v", 'w', 'w'},     {"attn_output", 'w', 'w'}, {"ffn_norm", 'w', 0},
                 {"ffn_gate", 'w', 'f'},   {"ffn_up", 'w', 'f'},   {"ffn_down", 'f', 'w'}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", i, parts[k].name);
        const uint64_t in = parts[k].in == 'f' ? b->l.ffn : b->l.width;
        const uint64_t out = parts[k].out == 'f' ? b->l.ffn : parts[k].out ? b->l.width : 0;
        tensor(b, name, out ? b->l.type : TYPE_F32, in, out);
    }
}

/* A llama without a tokenizer; its weights are holes. Gives the bytes of the header. */
static size_t llama_write(const char *path, llama l) {
    builder b = {.l = l}, t = {.l = l};
    const float eps = 1e-5f;
    key(&b.head, "general.architecture", GGUF_STRING, "llama", 0);
    number(&b.head, "general.file_type", l.type);
    number(&b.head, "llama.block_count", (uint32_t)l.layers);
    number(&b.head, "llama.context_length", 4096);
    number(&b.head, "llama.embedding_length", (uint32_t)l.width);
    number(&b.head, "llama.feed_forward_length", (uint32_t)l.ffn);
    number(&b.head, "llama.attention.head_count", (uint32_t)(l.width / 32));
    key(&b.head, "llama.attention.layer_norm_rms_epsilon", GGUF_F32, &eps, 4);
    tensor(&t, "token_embd.weight", l.type, l.width, l.vocab);
    tensor(&t, "output_norm.weight", TYPE_F32, l.width, 0);
    for (int i = 0; i < l.layers; i++) layer(&t, i);
    for (int i = 0; i < l.n_extra; i++) tensor(&t, l.extra[i], TYPE_F32, l.width, 0);
    bytes all = {0};
    bytes_put(&all, "GGUF", 4);
    bytes_number(&all, 3, 4);
    bytes_number(&all, t.n_tensors, 8);
    bytes_number(&all, 8, 8);
    bytes_put(&all, b.head.at, b.head.size);
    bytes_put(&all, t.head.at, t.head.size);
    bytes_zeros(&all, -all.size & 31);
    test_file_write(path, all.at, all.size);
    const size_t head = all.size;
    assert_int_equal(truncate(path, (off_t)(head + t.offset)), 0);
    bytes_free(&all);
    bytes_free(&b.head);
    bytes_free(&t.head);
    return head;
}

/* The number of a file's pages after `from` that are in memory. */
static size_t pages_read(const char *path, size_t from) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    const size_t pages = ((size_t)st.st_size + page - 1) / page;
    unsigned char *in = malloc(pages);
    assert_int_equal(mincore(map, (size_t)st.st_size, in), 0);
    size_t n = 0;
    for (size_t i = (from + page - 1) / page; i < pages; i++) n += in[i] & 1;
    free(in);
    munmap(map, (size_t)st.st_size);
    close(fd);
    return n;
}

static json_t *inspect(const char *path) {
    char *text = NULL;
    must(hunch_inspect(path, &text, err));
    json_t *d = json_loads(text, 0, NULL);
    assert_non_null(d);
    hunch_free(text);
    return d;
}

/* 10 GB, as a sparse file. */
static void test_large(void **state) {
    (void)state;
    enum { READ_AHEAD = 1 << 20 }; /* the system may read ahead after the header */
    const char *path = test_path("large.gguf");
    const llama l = {.width = 4096, .ffn = 14336, .vocab = 32000, .layers = 20, .type = TYPE_F16};
    size_t head = llama_write(path, l);
    json_t *d = inspect(path), *model = json_object_get(d, "model");
    assert_true(json_is_true(json_object_get(d, "runs")));
    assert_true(json_integer_value(json_object_get(d, "tensor_bytes")) > 9900000000);
    assert_int_equal(json_integer_value(json_object_get(d, "elements")),
                     20 * (4 * 4096LL * 4096 + 3 * 4096LL * 14336 + 2 * 4096) + 32000 * 4096LL + 4096);
    assert_string_equal(json_string_value(json_object_get(d, "quantisation")), "F16");
    assert_string_equal(json_string_value(json_object_get(model, "architecture")), "llama");
    assert_int_equal(json_integer_value(json_object_get(model, "layers")), 20);
    assert_int_equal(json_integer_value(json_object_get(model, "vocab")), 32000);
    const long long mapped = 2 * (20 * (4 * 4096LL * 4096 + 3 * 4096LL * 14336) + 32000 * 4096LL);
    assert_int_equal(json_integer_value(json_object_get(model, "mapped_bytes")), mapped);
    assert_true(json_integer_value(json_object_get(model, "packed_bytes")) > mapped);
    assert_true(json_integer_value(json_object_get(model, "text_bytes")) >= 8 * 32000);
    assert_int_equal(json_array_size(json_object_get(d, "unused")), 0);
    assert_true(json_is_null(json_object_get(d, "tokenizer")));
    assert_true(json_is_false(json_object_get(d, "chat_template")));
    json_t *types = json_object_get(d, "types"), *first = json_array_get(types, 0);
    assert_int_equal(json_array_size(types), 2);
    assert_string_equal(json_string_value(json_object_get(first, "type")), "F16"); /* the most bytes */
    assert_int_equal(json_integer_value(json_object_get(first, "tensors")), 141);
    assert_int_equal(json_integer_value(json_object_get(first, "bytes")),
                     2 * json_integer_value(json_object_get(first, "elements")));
    assert_int_equal(pages_read(path, head + READ_AHEAD), 0);
    json_decref(d);
    unlink(path);
}

/* Unused tensors are listed, by inspect and to callers that open the file. */
static void test_unused(void **state) {
    (void)state;
    static const char *const extra[] = {"mm.0.weight", "v.patch_embd.weight", "a.blk.7.weight", "v.post_ln.weight"};
    const char *path = test_path("more.gguf"), *tokens = text_write("tokens.json", "[1, 2]");
    for (int n = 0; n <= 4; n += n == 1 ? 3 : 1) {
        hunch_model_info info;
        llama_write(path, (llama){.width = 64, .ffn = 64, .vocab = 40, .layers = 1, .extra = extra, .n_extra = n});
        json_t *d = inspect(path), *unused = json_object_get(d, "unused");
        assert_int_equal(json_array_size(unused), n);
        for (int i = 0; i < n; i++)
            assert_string_equal(json_string_value(json_array_get(unused, (size_t)i)), extra[i]);
        json_decref(d);
        hunch_model *m = open_model(path, "ref", 1, HUNCH_PRECISION_F32);
        hunch_model_get_info(m, &info);
        assert_int_equal(info.n_unused, n);
        assert_string_equal(info.unused, n == 0   ? ""
                                         : n == 1 ? "mm.0.weight"
                                                  : "mm.0.weight, v.patch_embd.weight, a.blk.7.weight, ...");
        hunch_model_close(&m);
        result r = command("run", "-m", path, "--tokens", tokens, "-n", "1", "--draft", "none", "--json");
        assert_int_equal(r.code, 0);
        const char *says = n == 1 ? "1 tensor is not used: mm.0.weight\n" : "4 tensors are not used: mm.0.weight, ";
        assert_true((strstr(r.err, "not used") != NULL) == (n > 0));
        assert_true(n == 0 || strstr(r.err, says) != NULL);
        result_free(&r);
        r = command("inspect", path);
        assert_non_null(strstr(r.out, n == 0   ? "none of the tensors"
                                      : n == 1 ? "1 of the tensors: mm.0.weight\n"
                                               : "4 of the tensors: mm.0.weight, v.patch_embd.weight, a.blk.7"));
        result_free(&r);
    }
}

/* A model that does not run is shown with the reason, without a list of used tensors. */
static void test_refused(void **state) {
    (void)state;
    const char *path = test_path("small.gguf");
    llama_write(path, (llama){.width = 256, .ffn = 256, .vocab = 40, .layers = 1, .type = TYPE_IQ1_S});
    json_t *d = inspect(path);
    assert_true(json_is_false(json_object_get(d, "runs")));
    assert_non_null(strstr(json_string_value(json_object_get(d, "refused")), "IQ1_S"));
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(d, "tensors"), 0), "used")));
    assert_null(json_object_get(d, "unused"));
    assert_null(json_object_get(d, "model"));
    json_decref(d);
    result r = command("inspect", path);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "  runs         no: "));
    assert_null(strstr(r.out, "not used"));
    result_free(&r);
}

/* A model can be given by its name everywhere: to the command, to a drafter. */
/* README: "A model that another program downloaded is found by its name." */
static void test_by_name(void **state) {
    (void)state;
    const char *tokens = text_write("ids.json", "[1, 2]");
    const char *old = getenv("HUNCH_CACHE");
    char *kept = old ? strdup(old) : NULL;
    llama_write(test_path("Named-F32.gguf"), (llama){.width = 64, .ffn = 64, .vocab = 40, .layers = 1});
    setenv("HUNCH_CACHE", test_root, 1);
    result r = command("run", "-m", "named-f32", "--tokens", tokens, "-n", "4", "--draft", "model:Named-F32", "--json");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\"tokens\""));
    result_free(&r);
    r = command("inspect", "Named-F32.gguf");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, test_path("Named-F32.gguf"))); /* where it lies */
    result_free(&r);
    r = command("run", "-m", "Name-F32", "--tokens", tokens);
    assert_int_equal(r.code, HUNCH_REFUSED);
    assert_non_null(strstr(r.err, "similar names: Named-F32.gguf;"));
    result_free(&r);
    r = command("run", "-m", "Named-F32", "--tokens", tokens, "--draft", "model:org/none:Q4_0");
    assert_int_equal(r.code, HUNCH_REFUSED);
    assert_non_null(strstr(r.err, "org/none:Q4_0: no such file or folder"));
    result_free(&r);
    if (kept)
        setenv("HUNCH_CACHE", kept, 1);
    else
        unsetenv("HUNCH_CACHE");
    free(kept);
}

/* "chat_template" shows the template that a conversation would use. */
static void test_chat_template(void **state) {
    (void)state;
    static const struct {
        const char *config;
        bool is;
        const char *calls; /* the format of calls; NULL: none is known */
    } cases[] = {{"{\"chat_template\": \"{{ 1 }}\"}", true, NULL},
                 {"{\"chat_template\": \"{{ tools }}<tool_call>\"}", true, "hermes"},
                 {"{\"chat_template\": [{\"name\": \"default\", \"template\": \"{{ 1 }}\"}, "
                  "{\"name\": \"tool_use\", \"template\": \"<minimax:tool_call>\"}]}", true, "minimax-m2"},
                 {"{\"chat_template\": null}", false, NULL},
                 {"{\"chat_template\": [{\"name\": \"other\", \"template\": \"{{ 1 }}\"}]}", false, NULL},
                 {"{}", false, NULL}};
    char to[600], jinja[600];
    assert_int_equal(mkdir(test_path("chat"), 0700), 0);
    snprintf(jinja, sizeof jinja, "%s/chat_template.jinja", test_path("chat"));
    snprintf(to, sizeof to, "%s/config.json", test_path("chat"));
    assert_int_equal(symlink(STORIES_HF "/config.json", to), 0);
    snprintf(to, sizeof to, "%s/model.safetensors", test_path("chat"));
    assert_int_equal(symlink(STORIES_HF "/model.safetensors", to), 0);
    snprintf(to, sizeof to, "%s/tokenizer_config.json", test_path("chat"));
    assert_int_equal(mkdir(jinja, 0700), 0); /* a folder is no template */
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        const bool file = i == sizeof cases / sizeof *cases;
        if (file)
            assert_int_equal(rmdir(jinja), 0);
        if (file)
            test_file_write(jinja, "{{ 1 }}", 7);
        else
            test_file_write(to, cases[i].config, strlen(cases[i].config));
        json_t *d = inspect(test_path("chat"));
        if (json_is_true(json_object_get(d, "chat_template")) != (file || cases[i].is))
            fail_msg("case %zu", i);
        const json_t *calls = json_object_get(d, "calls");
        const char *name = json_string_value(calls), *want = file ? NULL : cases[i].calls;
        if (!calls == (file || cases[i].is) || !name != !want || (name && strcmp(name, want) != 0)) fail_msg("case %zu: %s", i, name);
        json_decref(d);
    }
}

/* What a text costs in drafters: one with tables of n-grams, one with a tree of the text, a head, which keeps features of the target
 * (here eight places of 64 floats at least) and tables of its trees. */
static void test_text_in_drafters(void **state) {
    (void)state;
    char head[600];
    snprintf(head, sizeof head, "eagle:%s", data_path("goldens-heads/eagle2-nobias-gqa/head"));
    result r = command("inspect", data_path("goldens-heads/targets/llama-a"), "--draft", "ngram,min=2,max=4", "--draft", head, "--json");
    assert_int_equal(r.code, 0);
    json_t *d = json_loads(r.out, 0, NULL), *list = json_object_get(d, "drafters");
    assert_int_equal(json_array_size(list), 2);
    json_int_t cost[2][2];
    for (int i = 0; i < 2; i++) {
        json_t *one = json_array_get(list, (size_t)i);
        cost[i][0] = json_integer_value(json_object_get(one, "text_bytes"));
        cost[i][1] = json_integer_value(json_object_get(one, "full_text_bytes"));
    }
    const json_int_t context = json_integer_value(json_object_get(json_array_get(list, 0), "context"));
    json_int_t slots = 64;
    while (slots < 2 * context) slots *= 2;
    assert_int_equal(cost[0][1] - cost[0][0], 3 * 8 * slots); /* three lengths, eight bytes a slot, at most half of them used */
    assert_true(cost[1][0] > 8 * 64 * 4);
    assert_int_equal(cost[1][1], cost[1][0]);
    json_decref(d);
    result_free(&r);
    r = command("inspect", data_path("goldens-heads/targets/llama-a"), "--draft", "suffix");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "a text in drafters"));
    assert_non_null(strstr(r.out, "  suffix  "));
    result_free(&r);
    r = command("inspect", data_path("goldens-heads/targets/llama-a"), "--draft", "ngram,min=9,max=2");
    assert_int_equal(r.code, HUNCH_USAGE);
    result_free(&r);
}

static const json_t *row_of(const json_t *rows, const char *form, const char *name) {
    size_t i;
    const json_t *row;
    json_array_foreach (rows, i, row)
        if (!strcmp(json_string_value(json_object_get(row, form)), name)) return row;
    fail_msg("no row of %s", name);
    return NULL;
}

static void check_row(const json_t *rows, const char *gguf, const char *hf, const char *key, const char *says) {
    const json_t *row = row_of(rows, *gguf ? "gguf" : "folder", *gguf ? gguf : hf);
    assert_string_equal(json_string_value(json_object_get(row, "folder")), hf);
    assert_string_equal(json_string_value(json_object_get(row, key)), says);
}

/* The keys and tensors of a family: those of a folder, of the layers that have them, and what every tensor of the file is called. */
static void test_schema(void **state) {
    (void)state;
    result r = command("inspect", data_path("goldens/glm4_moe-groups"), "--schema", "--json");
    assert_int_equal(r.code, 0);
    json_t *d = json_loads(r.out, 0, NULL);
    const json_t *schema = json_object_get(d, "schema"), *keys = json_object_get(schema, "keys"),
                 *tensors = json_object_get(schema, "tensors"), *t;
    check_row(keys, "glm4moe.embedding_length", "hidden_size", "values", "1 to 131072, required");
    check_row(keys, "glm4moe.expert_group_count", "n_group", "values", "0 to 1024, 1 if absent");
    check_row(keys, "", "hidden_act", "values", "silu or swish");
    check_row(keys, "", "use_qk_norm", "values", "true or false, false if absent");
    check_row(tensors, "token_embd.weight", "model.embed_tokens.weight", "shape", "64 x 512");
    check_row(tensors, "blk.0.post_attention_norm.weight", "model.layers.0.post_attention_layernorm.weight", "shape", "64");
    check_row(tensors, "blk.2.ffn_gate_inp.weight", "model.layers.2.mlp.gate.weight", "shape", "64 x 16"); /* the first two are dense */
    assert_int_equal(json_integer_value(json_object_get(row_of(tensors, "gguf", "blk.2.ffn_gate_inp.weight"), "layers")), 3);
    json_decref(d);
    result_free(&r);
    r = command("inspect", data_path("goldens/llama-gqa"), "--schema", "--json");
    d = json_loads(r.out, 0, NULL);
    schema = json_object_get(d, "schema");
    size_t i;
    check_row(json_object_get(schema, "keys"), "llama.rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast", "values", "0.001 to 1000000");
    json_array_foreach (json_object_get(d, "tensors"), i, t) { /* every one that is read, of the first layer */
        const char *name = json_string_value(json_object_get(t, "name"));
        if (json_is_true(json_object_get(t, "used")) && (strstr(name, "layers.0.") || !strstr(name, "layers.")))
            (void)row_of(json_object_get(schema, "tensors"), "folder", name);
    }
    json_decref(d);
    result_free(&r);
    r = command("inspect", data_path("goldens-heads/eagle2-nobias-gqa/head"), "--schema", "--json"); /* of a draft head */
    assert_int_equal(r.code, 0);
    d = json_loads(r.out, 0, NULL);
    keys = json_object_get(json_object_get(d, "schema"), "keys");
    check_row(keys, "eagle3.norm_before_fc", "norm_before_fc", "values", "true or false");
    check_row(keys, "hunch-head.k_mask", "k_mask", "values", "a whole number");
    check_row(keys, "", "hidden_size", "values", "1 to 131072, required");
    check_row(keys, "dflash.conv_kernel_size", "dflash_config.conv_kernel_size, conv_kernel_size", "values", "a whole number");
    tensors = json_object_get(json_object_get(d, "schema"), "tensors");
    check_row(tensors, "fc.weight", "fc.weight", "shape", "128 x 64");
    check_row(tensors, "blk.0.attn_q.weight", "layers.0.self_attn.q_proj.weight", "shape", "64 x 64");
    json_array_foreach (json_object_get(d, "tensors"), i, t) /* every one but a copy of the target's embedding */
        if (!strstr(json_string_value(json_object_get(t, "name")), "embed"))
            (void)row_of(tensors, "folder", json_string_value(json_object_get(t, "name")));
    json_decref(d);
    result_free(&r);
    r = command("inspect", data_path("goldens-heads/hydra-prefix/head"), "--schema"); /* which only its target describes */
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "not known from these files alone"));
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schema), cmocka_unit_test(test_large), cmocka_unit_test(test_unused),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_by_name),
                                       cmocka_unit_test(test_chat_template), cmocka_unit_test(test_text_in_drafters)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
