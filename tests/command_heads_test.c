/* SPDX-License-Identifier: Apache-2.0 */
/* command_heads_test.c - output of `hunch draft` for a draft head: the JSON of chains and trees, the round selected by --accept, logits in
 * the target's vocabulary; compared with the drafts of the reference implementations. And --draft PATH: the kind that is detected. */
#include "command.h"

#include "format/source.h"
#include "random_head.h"

#define HEADS HUNCH_TEST_DATA "/goldens-heads/"

typedef struct head_golden {
    json_t *json;
    char ids[400], target[400], draft[500], depth[8], accept[8];
    hn_source *tensors;
} head_golden;

static head_golden golden_open(const char *name) {
    head_golden g;
    char path[400];
    hunch_error err;
    snprintf(path, sizeof path, HEADS "%s/golden.json", name);
    g.json = json_load_file(path, 0, NULL);
    assert_non_null(g.json);
    snprintf(path, sizeof path, HEADS "%s/golden.safetensors", name);
    assert_int_equal(hn_source_open_safetensors(&g.tensors, path, &err), HUNCH_OK);
    snprintf(g.ids, sizeof g.ids, HEADS "%s/ids.json", name);
    snprintf(g.target, sizeof g.target, HEADS "%s/%s", name, json_string_value(json_object_get(g.json, "target")));
    snprintf(g.draft, sizeof g.draft, "%s:" HEADS "%s/head", json_string_value(json_object_get(g.json, "kind")), name);
    snprintf(g.depth, sizeof g.depth, "%d", (int)json_integer_value(json_object_get(g.json, "depth")));
    snprintf(g.accept, sizeof g.accept, "%d", (int)json_integer_value(json_object_get(g.json, "accept")));
    return g;
}

static void golden_close(head_golden *g) {
    json_decref(g->json);
    hn_source_close(&g->tensors);
}

static const json_t *round_of(const head_golden *g, int round) {
    return json_array_get(json_object_get(g->json, "rounds"), (size_t)round);
}

/* Two lists of numbers agree, each within limit. */
static void check_reals(const json_t *have, const json_t *want, double limit) {
    assert_int_equal(json_array_size(have), json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++)
        assert_true(fabs(json_number_value(json_array_get(have, i)) - json_number_value(json_array_get(want, i))) <=
                    limit);
}

/* The file holds one tensor: logits of the chain. */
static void check_logits(const head_golden *g, int round, const char *file) {
    hn_source *src = NULL;
    hunch_error err;
    char name[20];
    snprintf(name, sizeof name, "r%d.logits", round);
    assert_int_equal(hn_source_open_safetensors(&src, file, &err), HUNCH_OK);
    const hn_tensor *have = hn_source_take(src, "logits"), *want = hn_source_take(g->tensors, name);
    assert_int_equal(hn_source_tensor_count(src), 1);
    assert_true(have->dtype == HN_F32 && have->n_dims == 2 && have->dims[0] == want->dims[0] &&
                have->dims[1] == want->dims[1]);
    const float *h = have->data, *w = want->data;
    for (size_t i = 0; i < want->bytes / sizeof *w; i++)
        assert_true(isfinite(w[i]) ? fabs((double)h[i] - (double)w[i]) < 1e-2 : isinf(h[i]) && h[i] < 0);
    hn_source_close(&src);
}

static void check_chain(const head_golden *g, int round) {
    const char *file = path_of("logits.safetensors");
    const char *const args[] = {"draft", "-m", g->target, "--draft", g->draft, "--tokens", g->ids, "--depth", g->depth,
                                "--precision", "f32", "--json", "-o", file, round ? "--accept" : NULL, g->accept, NULL};
    const json_t *want = round_of(g, round);
    json_t *have = json_args(args);
    assert_true(json_equal(json_object_get(have, "root"), json_object_get(want, "root")));
    assert_true(json_equal(json_object_get(have, "tokens"), json_object_get(want, "tokens")));
    assert_true(json_equal(json_object_get(have, "parents"), json_object_get(want, "parents")));
    check_reals(json_object_get(have, "q"), json_object_get(want, "q"), 1e-3);
    check_logits(g, round, file);
    json_decref(have);
}

/* The tree, and the chain's logits to the depth of the tree. */
static void check_tree(const head_golden *g, int round) {
    const json_t *shape = json_object_get(g->json, "tree"), *want = round_of(g, round);
    const json_t *nodes = json_object_get(json_object_get(want, "tree"), "nodes"), *node;
    char tree[40], depth[8];
    const char *file = path_of("tree.safetensors");
    snprintf(tree, sizeof tree, "%d,%d", (int)json_integer_value(json_object_get(shape, "top_k")),
             (int)json_integer_value(json_object_get(shape, "total")));
    snprintf(depth, sizeof depth, "%d", (int)json_integer_value(json_object_get(shape, "levels")));
    const char *const args[] = {"draft", "-m", g->target, "--draft", g->draft, "--tokens", g->ids, "--depth", depth,
                                "--precision",
                                "f32", "--json", "-o", file, "--tree", tree, round ? "--accept" : NULL, g->accept,
                                NULL};
    json_t *have = json_args(args);
    size_t i;
    assert_true(json_equal(json_object_get(have, "root"), json_object_get(want, "root")));
    assert_int_equal(json_array_size(json_object_get(have, "nodes")), json_array_size(nodes));
    json_array_foreach (nodes, i, node) {
        const json_t *one = json_array_get(json_object_get(have, "nodes"), i);
        assert_true(json_equal(json_object_get(one, "token"), json_object_get(node, "token")));
        assert_true(json_equal(json_object_get(one, "parent"), json_object_get(node, "parent")));
        assert_true(fabs(json_number_value(json_object_get(one, "logp")) -
                         json_number_value(json_object_get(node, "logp"))) < 4e-3);
    }
    if (!strcmp(depth, g->depth)) check_logits(g, round, file);
    json_decref(have);
}

static void check_golden(const char *name, bool tree) {
    head_golden g = golden_open(name);
    for (int round = 0; round < 2; round++) {
        check_chain(&g, round);
        if (tree) check_tree(&g, round);
    }
    golden_close(&g);
}

static void test_reduced_vocabulary(void **state) {
    (void)state;
    check_golden("eagle3-official-d2t", true);
}

static void test_whole_vocabulary(void **state) {
    (void)state;
    check_golden("hass-bias", true);
}

/* --accept 0: the second round, after the root alone. */
static void test_none_accepted(void **state) {
    (void)state;
    head_golden g = golden_open("eagle3spec-biases");
    assert_string_equal(g.accept, "0");
    golden_close(&g);
    check_golden("eagle3spec-biases", false);
}

/* --draft PATH: the line on standard error begins with the kind that was found, and the drafts are those of KIND:PATH. */
static void check_found(const char *target, const char *path, const char *kind) {
    char spec[600], begin[700];
    snprintf(spec, sizeof spec, "%s:%s", kind, path);
    snprintf(begin, sizeof begin, "hunch: %s %s: ", kind, path);
    result r =
        command("draft", "-m", target, "--draft", path, "--tokens", HEADS "eagle2-nobias-gqa/ids.json", "--depth", "3");
    assert_int_equal(r.code, 0);
    const char *end = strchr(r.err, '\n');
    if (strncmp(r.err, begin, strlen(begin)) != 0 || !end || end[1])
        fail_msg("no line \"%s...\" but \"%s\"", begin, r.err);
    result named =
        command("draft", "-m", target, "--draft", spec, "--tokens", HEADS "eagle2-nobias-gqa/ids.json", "--depth", "3");
    assert_string_equal(r.out, named.out);
    result_free(&r);
    result_free(&named);
}

static void test_paths(void **state) {
    (void)state;
    static const char *const heads[][2] = {
        {"eagle1-bias-bin/head", "eagle"},      {"eagle1-bias-bin/head/pytorch_model.bin", "eagle"},
        {"eagle3-official-d2t/head", "eagle3"}, {"eagle3spec-plain/head/model.safetensors", "eagle3"},
        {"peagle-norms/head", "peagle"},        {"peagle-vllm-4layers/head", "peagle"},
        {"mtp-untied-bias/head", "mtp"},        {"dart-d2t/head", "dart"},
        {"dflashmask-zlab/head", "dflash"},     {"dflashspec-d2t/head", "dflash"},
        {"dspark-gated/head", "dspark"},        {"jetspec-automodel/head", "jetspec"},
        {"pard-llama-tied/head", "pard"},
        {"domino-early/head", "domino"},        {"dflash2-zlab/head", "dflash2"},
        {"falcon-k2/head", "falcon"},
        {"targets/llama-a", "model"}};
    char path[500];
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        snprintf(path, sizeof path, HEADS "%s", heads[i][0]);
        check_found(HEADS "targets/llama-a", path, heads[i][1]);
    }
    check_found(STORIES, STORIES, "model");
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "8", "--draft", STORIES, "--quiet");
    assert_string_equal(json_string_value(json_array_get(get(j, "about"), 0)),
                        "model " STORIES ": a whole language model");
    json_decref(j);
}

/* A path that is no head, or of an unsupported kind: one line that names the reason. */
static void test_other_paths(void **state) {
    (void)state;
    static const struct {
        const char *name, *config, *says;
    } kinds[] = {
        {"layers.0.x", "{\"speculators_model_type\": \"xpress\"}", "a head of kind xpress, for which"},
        {"refiner_head.readout.weight", "{}", "a head of kind xpress, for which"},
        {"layers.0.x", "{\"speculators_model_type\": \"a\\nb\"}", "for which there is no drafter here"},
        {"layers.0.x", "{\"speculators_model_type\": \"ngram\"}", "for which there is no drafter here"},
        {"bert.x", "{\"model_type\": \"bert\"}", "neither a draft head that is known nor a language model"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        random_head h = {.config = json_loads(kinds[i].config, 0, NULL)};
        head_floats(&h, "", kinds[i].name, 2, 2);
        head_write(&h, path_of("other"));
        head_free(&h);
        refused(HUNCH_REFUSED, kinds[i].says, "run", "-m", STORIES, "-p", "x", "--draft", path_of("other"));
    }
    (void)mkdir(path_of("empty"), 0700);
    refused(HUNCH_REFUSED, "neither model.safetensors nor", "run", "-m", STORIES, "-p", "x", "--draft",
            path_of("empty"));
    text_write("notes.txt", "hello");
    refused(HUNCH_REFUSED, "not a GGUF file", "run", "-m", STORIES, "-p", "x", "--draft", path_of("notes.txt"));
    text_write("cut.safetensors", "hello");
    refused(HUNCH_REFUSED, "cut.safetensors", "run", "-m", STORIES, "-p", "x", "--draft", path_of("cut.safetensors"));
    refused(HUNCH_REFUSED, "/nowhere: no such file or folder", "run", "-m", STORIES, "-p", "x", "--draft", "/nowhere");
    refused(HUNCH_USAGE, "unknown kind 'nowhere'", "run", "-m", STORIES, "-p", "x", "--draft", "nowhere");
}

/* A tree that is one path is still shown as a tree if one was requested. */
static void test_one_path(void **state) {
    (void)state;
    head_golden g = golden_open("eagle3-official-d2t");
    char spec[1400];
    const json_t *want = round_of(&g, 0), *node;
    size_t i;
    snprintf(spec, sizeof spec, "%s,tree=%s", g.draft, text_write("path.json", "[[0], [0, 0], [0, 0, 0]]"));
    json_t *have = json_of("draft", "-m", g.target, "--draft", spec, "--tokens", g.ids, "--precision", "f32");
    assert_null(json_object_get(have, "tokens"));
    assert_int_equal(json_array_size(json_object_get(have, "nodes")), 3);
    json_array_foreach (json_object_get(have, "nodes"), i, node) {
        assert_true(json_equal(json_object_get(node, "token"), json_array_get(json_object_get(want, "tokens"), i)));
        assert_int_equal(json_integer_value(json_object_get(node, "parent")), (int)i - 1);
    }
    json_decref(have);
    golden_close(&g);
}

/* A whole model with fewer rows in its embedding than the model has tokens: in a text with other tokens nothing is drafted. */
static void test_fewer_tokens(void **state) {
    (void)state;
    random_head h;
    head_make(&h, &LLAMA_PARD);
    head_shape(head_find(&h, "model.embed_tokens.weight"), 478, 64);
    head_write(&h, path_of("pard"));
    head_free(&h);
    static const struct {
        const char *ids, *begin;
    } cases[] = {{"[3, 4, 477, 5, 6]", "\"tokens\": ["}, {"[3, 4, 478, 5, 6]", "\"tokens\": []"}, {"[479, 4, 3, 5, 6]", "\"tokens\": []"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_write("ids.json", cases[i].ids);
        result r = command("draft", "-m", HEADS "targets/llama-a", "--draft", path_of("pard"), "--tokens", path_of("ids.json"), "--json");
        assert_int_equal(r.code, 0);
        if (!strstr(r.out, cases[i].begin) || (i == 0) == (strstr(r.out, "\"tokens\": []") != NULL))
            fail_msg("%s: %s", cases[i].ids, r.out);
        assert_non_null(strstr(r.err, "drafts 478 of 480 tokens"));
        result_free(&r);
    }
}

/* convert --type reports the types written. */
static void test_types(void **state) {
    (void)state;
    const char *const even = HEADS "eagle1-bias-bin/head", *const uneven = HEADS "hass-bias/head";
    result r = command("convert", even, "-o", path_of("even.gguf"), "--type", "q4_0");
    assert_int_equal(r.code, 0);
    if (!strstr(r.err, "even.gguf:") || !strstr(r.err, " Q4_0") || !strstr(r.err, " F32") || strstr(r.err, "BF16"))
        fail_msg("%s", r.err);
    result_free(&r);
    r = command("convert", uneven, "-o", path_of("uneven.gguf"), "--type", "q8_0");
    assert_int_equal(r.code, 0);
    if (!strstr(r.err, " BF16") || !strstr(r.err, "BF16 (rows that are not whole blocks of 32), "))
        fail_msg("%s", r.err);
    result_free(&r);
    r = command("convert", uneven, "-o", path_of("uneven.gguf"), "--type", "bf16", "--force");
    assert_null(strstr(r.err, "whole blocks"));
    result_free(&r);
    json_t *j = json_of("convert", even, "-o", path_of("even.gguf"), "--type", "q8_0", "--force");
    assert_string_equal(text_of(json_array_get(get(j, "types"), 0), "type"), "Q8_0");
    json_decref(j);
    refused(HUNCH_USAGE, "--type q9 is unknown", "convert", even, "-o", path_of("no.gguf"), "--type", "q9");
    r = command("convert", STORIES_HF, "-o", path_of("small.gguf"), "--type", "q8_0"); /* of a draft model */
    if (r.code || !strstr(r.err, " Q8_0")) fail_msg("%s", r.err);
    result_free(&r);
    char small[700];
    snprintf(small, sizeof small, "model:%s,depth=3", path_of("small.gguf"));
    j = json_of("run", STORIES, "--draft", small, "-p", "Once upon a time", "-n", "20", "--temperature", "0", "--json");
    assert_true(json_integer_value(get(j, "accepted")) > 0);
    json_decref(j);
    r = command("convert", even, "-o", "-", "--type", "q8_0"); /* which cannot be read again */
    assert_int_equal(r.code, 0);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_path), cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_paths), cmocka_unit_test(test_other_paths),
                                       cmocka_unit_test(test_reduced_vocabulary),
                                       cmocka_unit_test(test_whole_vocabulary), cmocka_unit_test(test_fewer_tokens),
                                       cmocka_unit_test(test_none_accepted)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
