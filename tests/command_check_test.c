/* SPDX-License-Identifier: Apache-2.0 */
/* command_check_test.c - `hunch check`: heads trained for a tiny model (tools/train_tiny_head.py) pass; each fault planted into a copy is
 * named, with the key that repairs it; a head that does not fit gives a report, and bad usage one line. */
#include "base/run_mode_for_tests.h"
#include "command.h"
#include "random_head.h"

#define HEADS HUNCH_TEST_DATA "/heads/"
#define GOLDENS HUNCH_TEST_DATA "/goldens-heads/"

/* The report, whatever the exit code. */
static json_t *check_args(int code, const char *const *args) {
    result r = command_args(args);
    json_t *j = json_loads(r.out, 0, NULL);
    if (r.code != code || !j)
        fail_msg("%s: expected %d and JSON, got %d, \"%.400s\", \"%s\"", args[3], code, r.code, r.out, r.err);
    result_free(&r);
    return j;
}
#define check(code, model, head, ...) \
    check_args(code, (const char *const[]){"check", model, "--draft", head, "--json", "-q", __VA_ARGS__, NULL})
#define check_stories(code, head) check(code, STORIES, head, "--threads", "1")

/* ---- copies with a fault ---------------------------------------------------------------------------------------------- */

/* A copy of a trained head; change: changes its weights, or NULL. Returns its folder. */
static const char *plant(const char *name, const char *from, const char *key, json_t *value,
                         void (*change)(unsigned char *data, const json_t *header)) {
    char path[400];
    snprintf(path, sizeof path, HEADS "%s/config.json", from);
    json_t *config = json_load_file(path, 0, NULL);
    assert_non_null(config);
    if (key) json_object_set_new(config, key, value);
    snprintf(path, sizeof path, HEADS "%s/model.safetensors", from);
    bytes b = test_file_read(path);
    uint64_t len;
    memcpy(&len, b.at, 8);
    json_t *header = json_loadb((const char *)b.at + 8, len, 0, NULL);
    assert_non_null(header);
    if (change) change(b.at + 8 + len, header);
    const char *to = path_of(name);
    (void)mkdir(to, 0700);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    test_file_write(path, b.at, b.size);
    snprintf(path, sizeof path, "%s/config.json", to);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(header);
    json_decref(config);
    bytes_free(&b);
    return to;
}

static json_t *list_of(int a, int b, int c) {
    return json_pack("[iii]", a, b, c);
}

static uint16_t *values_of(unsigned char *data, const json_t *tensor) {
    return (uint16_t *)(void *)(data + json_integer_value(json_array_get(get(tensor, "data_offsets"), 0)));
}

static size_t dim_of(const json_t *tensor, size_t k) {
    return (size_t)json_integer_value(json_array_get(get(tensor, "shape"), k));
}

/* Makes the head one of a model whose hidden units have another order: permutes the inputs of fc. */
static void of_another_model(unsigned char *data, const json_t *header) {
    enum { HIDDEN = 64 };
    const json_t *fc = get(header, "fc.weight");
    const size_t in = dim_of(fc, 1), begin = in == 2 * HIDDEN ? HIDDEN : 0; /* EAGLE-1: the embedding is first */
    for (size_t row = 0; row < HIDDEN; row++)
        for (size_t at = begin; at < in; at += HIDDEN) {
            uint16_t was[HIDDEN], *now = values_of(data, fc) + row * in + at;
            memcpy(was, now, sizeof was);
            for (size_t i = 0; i < HIDDEN; i++) now[i] = was[(i * 29 + 17) % HIDDEN];
        }
}

static void at_random(unsigned char *data, const json_t *header) {
    const char *name;
    json_t *t;
    uint64_t seed = 7;
    json_object_foreach ((json_t *)(uintptr_t)header, name, t) {
        if (json_array_size(json_object_get(t, "shape")) != 2) continue;
        uint16_t *v = values_of(data, t);
        for (size_t i = 0; i < dim_of(t, 0) * dim_of(t, 1); i++)
            v[i] = (uint16_t)((hn_splitmix(&seed) & 0x83FF) | 0x2C00); /* 1/16 to 1/8 */
    }
}

/* ---- what a report has ---------------------------------------------------------------------------------------------------- */

static void same_keys(const json_t *o, const char *const *keys, size_t n) {
    for (size_t i = 0; i < n; i++) get(o, keys[i]);
    assert_int_equal(json_object_size(o), n);
}
#define KEYS(o, ...)                                                                                                   \
    same_keys(o, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void report_shape(const json_t *j) {
    KEYS(j, "model", "draft", "passes", "fits", "reason", "kind", "about", "taps", "outputs", "target_layers", "layers",
         "hidden", "target_hidden", "vocabulary", "tensors", "smoke", "skipped");
    KEYS(get(j, "vocabulary"), "target", "tokenizer", "padding", "drafts", "embeddings", "own_embedding", "own_output",
         "clusters", "clusters_used");
    KEYS(get(j, "tensors"), "used", "unused", "missing");
    assert_true(json_is_boolean(get(j, "fits")) && json_is_boolean(get(j, "passes")));
    assert_true(json_is_true(get(j, "fits")) ? json_is_null(get(j, "reason")) : json_is_string(get(j, "reason")));
    assert_int_equal(json_array_size(get(j, "taps")), json_array_size(get(j, "outputs")));
    assert_true(json_is_null(get(j, "smoke")) == json_is_string(get(j, "skipped")));
}

static double first_acceptance(const json_t *j) {
    return json_number_value(json_array_get(get(get(j, "smoke"), "acceptance"), 0));
}

static void smoke_shape(const json_t *j) {
    const json_t *s = get(j, "smoke");
    const double a = first_acceptance(j);
    size_t i;
    json_t *t;
    KEYS(s, "positions", "acceptance", "drafted", "error", "constant", "verdict", "cause", "repair", "tried",
         "complete", "seconds");
    assert_true(int_of(s, "positions") >= 200 &&
                json_integer_value(json_array_get(get(s, "drafted"), 0)) == int_of(s, "positions"));
    assert_int_equal(json_array_size(get(s, "acceptance")), 5);
    near(real_of(s, "error"), sqrt(a * (1 - a) / (double)int_of(s, "positions")), 1e-4);
    assert_string_equal(text_of(s, "verdict"),
                        a > real_of(s, "constant") + 3 * real_of(s, "error") ? "better" : "not better");
    assert_true(real_of(s, "constant") > 0.01 && real_of(s, "constant") < 0.2);
    json_array_foreach (get(s, "tried"), i, t) {
        KEYS(t, "reading", "option", "positions", "acceptance");
        assert_true(int_of(t, "positions") >= 100 && real_of(t, "acceptance") <= 1);
    }
    assert_true(i >= 4 && json_is_true(get(s, "complete")));
}

/* ---- heads that are right --------------------------------------------------------------------------------------------------- */

static void test_trained_heads_pass(void **state) {
    (void)state;
    static const char *const heads[] = {HEADS "stories-eagle", HEADS "stories-eagle3", "hass:" HEADS "stories-eagle"};
    for (int i = 0; i < 3; i++) {
        json_t *j = check_stories(0, heads[i]);
        report_shape(j);
        smoke_shape(j);
        assert_true(json_is_true(get(j, "passes")) && json_is_null(get(get(j, "smoke"), "cause")) &&
                    json_is_null(get(get(j, "smoke"), "repair")));
        assert_true(first_acceptance(j) > 0.4);
        /* lockstep reading and rounds agree: other positions of the texts, the same head */
        assert_true(
            fabs(real_of(json_array_get(get(get(j, "smoke"), "tried"), 0), "acceptance") - first_acceptance(j)) < 0.1);
        json_decref(j);
    }
}

/* Not a dynamic tree, or one of few tokens, nor what its file finds likely, but the head's chain is compared with a constant guess. */
static void test_tree_is_left_out(void **state) {
    (void)state;
    json_t *chain = check_stories(0, HEADS "stories-eagle"),
           *tree = check_stories(0, HEADS "stories-eagle,tree=dynamic,vocab=100"),
           *likely = check_stories(0, plant("likely", "stories-eagle", "draft_min_p", json_real(0.5), NULL));
    assert_true(json_equal(get(get(chain, "smoke"), "acceptance"), get(get(tree, "smoke"), "acceptance")));
    assert_true(json_equal(get(get(chain, "smoke"), "acceptance"), get(get(likely, "smoke"), "acceptance")));
    json_decref(likely);
    json_decref(chain);
    json_decref(tree);
}

static void test_goldens_fit(void **state) {
    (void)state;
    static const char *const names[] = {
        "eagle1-bias-bin", "eagle2-nobias-gqa", "eagle2-qkv-bias", "eagle3-narrow", "eagle3-official-d2t",
        "eagle3-official-fullvocab", "eagle3-outputs", "eagle3spec-2layers", "eagle3spec-biases",
        "eagle3spec-norm-before-residual", "eagle3spec-plain", "eagle3spec-qwen3-mqa", "eagle3spec-v31", "hass-bias",
        "mtp-spec-qwen3", "mtp-untied-bias", "peagle-spec-2layers", "peagle-vllm-4layers", "peagle-norms",
        "peagle-biases", "dart-d2t", "dart-7masks", "dflash-zlab", "dflash-default-ids", "dflashmask-zlab",
        "dflashwin-zlab", "dflashspec-d2t", "dflashspec-windows", "dflashspec-ahead-anchor", "dspark-vanilla",
        "dspark-gated", "dspark-rnn", "dspark-windows", "jetspec-official", "domino-shifted", "domino-early",
        "dflash2-zlab", "dflash2spec-windows", "pard-qwen2-padded", "pard-2-qwen3", "falcon-k2", "falcon-k3-none"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char head[400], target[400];
        snprintf(head, sizeof head, GOLDENS "%s/golden.json", names[i]);
        json_t *golden = json_load_file(head, 0, NULL);
        assert_non_null(golden);
        snprintf(head, sizeof head, "%s:" GOLDENS "%s/head", text_of(golden, "kind"), names[i]);
        snprintf(target, sizeof target, GOLDENS "%s/%s", names[i], text_of(golden, "target"));
        json_t *j = check(0, target, head, "--threads", "1");
        report_shape(j);
        assert_true(json_is_true(get(j, "fits")) && json_is_null(get(j, "smoke")));
        assert_string_equal(text_of(j, "skipped"), "no tokenizer");
        assert_string_equal(text_of(j, "kind"), text_of(golden, "kind"));
        assert_int_equal(json_array_size(get(get(j, "tensors"), "missing")), 0);
        assert_true(int_of(get(j, "tensors"), "used") >= 8);
        json_decref(j);
        json_decref(golden);
    }
}

/* Both numberings of the layers; a state before or after the final norm; padding. */
static void test_what_was_found(void **state) {
    (void)state;
    json_t *j = check(0, STORIES, HEADS "stories-eagle3,taps=0:3:5", "--no-smoke", "--threads", "1"),
           *want = json_pack("[iii]", 0, 3, 5);
    assert_true(json_equal(get(j, "taps"), want));
    json_decref(want);
    want = json_pack("[nii]", 2, 4);
    assert_true(json_equal(get(j, "outputs"), want));
    assert_string_equal(text_of(j, "skipped"), "not asked for");
    assert_int_equal(int_of(j, "target_layers"), 5);
    assert_int_equal(int_of(get(j, "vocabulary"), "drafts"), 512);
    assert_int_equal(int_of(get(j, "vocabulary"), "tokenizer"), 512);
    assert_true(json_is_false(get(get(j, "vocabulary"), "own_embedding")) &&
                json_is_true(get(get(j, "vocabulary"), "own_output")));
    json_decref(want);
    json_decref(j);
    j = check(0, STORIES, HEADS "stories-eagle", "--no-smoke");
    assert_string_equal(json_string_value(json_array_get(get(j, "taps"), 0)), "post_norm");
    json_decref(j);
    j = check(0, STORIES, HEADS "stories-eagle,last=raw", "--no-smoke");
    assert_int_equal(json_integer_value(json_array_get(get(j, "taps"), 0)), 5);
    json_decref(j);
    /* norms that are left out are left over */
    j = check(0, GOLDENS "targets/llama-a", GOLDENS "eagle3spec-v31/head,fc_norms=off", "--no-smoke");
    assert_true(json_array_size(get(get(j, "tensors"), "unused")) >= 3);
    json_decref(j);
}

static void test_words(void **state) {
    (void)state;
    result r = command("check", STORIES, "--draft", HEADS "stories-eagle3", "--threads", "1");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "states entering layers 1, 3 and 5, outputs of layers 0, 2 and 4"));
    assert_non_null(strstr(r.out, "13 used, 0 left over, 0 missing"));
    assert_non_null(strstr(r.out, "better than a constant guess"));
    result_free(&r);
    r = command("check", NO_TOKENIZER, "--draft", HEADS "stories-eagle3");
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.out, "no: "));
    result_free(&r);
    r = command("check", GOLDENS "targets/qwen3-a", "--draft", GOLDENS "hass-bias/head");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "smoke test skipped: no tokenizer (--tokens FILE gives it a text)"));
    result_free(&r);
}

/* Of the model, of its own, and none: heads that read states alone. */
static void test_whose_embedding(void **state) {
    (void)state;
    static const struct {
        const char *golden, *says;
    } row[] = {{"hass-bias", ", with the model's embedding and the model's output"},
               {"eagle3-narrow", ", with its own embedding and its own output"},
               {"medusa-4heads", ", with no embedding and its own output"},
               {"hydra-ungrounded", ", with no embedding and its own output"},
               {"hydra-2blocks", ", with the model's embedding and its own output"},
               {"mlp-tied-5", ", with its own embedding and its own output"},
               {"mlp-arctic-lstm", ", with its own embedding and its own output"},
               {"meta-3tokens", ", with no embedding and the model's output"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char head[400], target[400];
        snprintf(head, sizeof head, GOLDENS "%s/golden.json", row[i].golden);
        json_t *golden = json_load_file(head, 0, NULL);
        assert_non_null(golden);
        snprintf(head, sizeof head, "%s:" GOLDENS "%s/head", text_of(golden, "kind"), row[i].golden);
        snprintf(target, sizeof target, GOLDENS "%s/%s", row[i].golden, text_of(golden, "target"));
        result r = command("check", target, "--draft", head, "--threads", "1");
        if (!strstr(r.out, row[i].says)) fail_msg("%s: \"%s\", expected \"%s\"", row[i].golden, r.out, row[i].says);
        result_free(&r);
        json_decref(golden);
    }
}

/* The blocks in a model's own file, without a path, or with the model's: other tensors of the file are the model's. */
static void test_own_block(void **state) {
    (void)state;
    static const char *const models[] = {HUNCH_TEST_DATA "/goldens/qwen3_5-dense", HUNCH_TEST_DATA "/goldens/glm4_moe-3blocks",
                                          HUNCH_TEST_DATA "/goldens/deepseek_v3-mtp2"};
    for (int i = 0; i < 3; i++) {
        char spec[400];
        snprintf(spec, sizeof spec, "mtp:%s", models[i]);
        json_t *j[] = {check(0, models[i], "mtp", "--no-smoke"), check(0, models[i], spec, "--no-smoke")};
        for (int k = 0; k < 2; k++) {
            report_shape(j[k]);
            assert_true(json_is_true(get(j[k], "fits")) && int_of(get(j[k], "tensors"), "used") >= 15);
            assert_int_equal(json_array_size(get(get(j[k], "tensors"), "unused")), 0);
        }
        json_object_del(j[0], "draft"), json_object_del(j[1], "draft");
        json_object_del(j[0], "about"), json_object_del(j[1], "about");
        assert_true(json_equal(j[0], j[1]));
        json_decref(j[0]), json_decref(j[1]);
    }
}

/* An assistant fits the model that it was made for, with its clusters; beside one of other heads it does not. */
static void test_assistants(void **state) {
    (void)state;
#define OF(name) HUNCH_TEST_DATA "/goldens/gemma4-" name
    json_t *j = check(0, OF("mixture"), "assistant:" OF("mixture-assistant"), "--no-smoke");
    report_shape(j);
    assert_true(json_is_true(get(j, "fits")) && int_of(get(j, "tensors"), "used") == 50);
    assert_int_equal(json_array_size(get(get(j, "tensors"), "unused")), 0);
    json_decref(j);
    j = check(0, OF("keqv"), OF("keqv-assistant"), "--no-smoke"); /* its kind is found */
    assert_string_equal(text_of(j, "kind"), "assistant");
    json_decref(j);
    j = check(3, OF("keqv"), OF("mixture-assistant"), "--no-smoke");
    assert_non_null(strstr(text_of(j, "reason"), "key heads of 4, expected the 2 of layer 4 of this target"));
    json_decref(j);
#undef OF
}

/* A model without a tokenizer: ids are continued, as many as a verdict needs, and other readings are tried on them. */
static void test_ids_instead_of_texts(void **state) {
    (void)state;
    static const char ids[] = "[1, 403, 407, 261, 378, 200, 31, 7]";
    test_file_write(path_of("ids.json"), ids, sizeof ids - 1);
    char path[400];
    snprintf(path, sizeof path, "%s", path_of("ids.json"));
    json_t *j = check(3, GOLDENS "targets/qwen3-a", GOLDENS "hass-bias/head", "--threads", "1", "--tokens", path);
    report_shape(j);
    const json_t *s = get(j, "smoke");
    assert_true(int_of(s, "positions") >= 200);
    assert_string_equal(text_of(s, "verdict"), "not better");
    assert_non_null(strstr(text_of(s, "cause"), "or not trained"));
    assert_true(int_of(json_array_get(get(s, "tried"), 0), "positions") >= 200);
    json_decref(j);
    j = check(0, STORIES, HEADS "stories-eagle", "--threads", "1", "--tokens", path); /* also with a tokenizer */
    assert_string_equal(text_of(get(j, "smoke"), "verdict"), "better");
    json_decref(j);
    test_file_write(path_of("ids.json"), "[1, 512]", 8);
    refused(2, "token 1 of the text is 512, expected one of the model's, 0 to 511", "check", GOLDENS "targets/qwen3-a", "--draft",
            GOLDENS "hass-bias/head", "--tokens", path);
    test_file_write(path_of("ids.json"), "[]", 2);
    refused(2, "the list of token ids is empty", "check", STORIES, "--draft", HEADS "stories-eagle", "--tokens", path);
}

/* ---- faults ----------------------------------------------------------------------------------------------------------------- */

static void found(const char *head, const char *cause, const char *repair) {
    json_t *j = check_stories(3, head);
    const json_t *s = get(j, "smoke");
    report_shape(j);
    smoke_shape(j);
    assert_true(json_is_true(get(j, "fits")) && json_is_false(get(j, "passes")));
    if (!strstr(text_of(s, "cause"), cause)) fail_msg("%s: \"%s\", expected \"%s\"", head, text_of(s, "cause"), cause);
    assert_true(repair ? json_is_string(get(s, "repair")) : json_is_null(get(s, "repair")));
    if (!repair) {
        json_decref(j);
        return;
    }
    assert_string_equal(text_of(s, "repair"), repair);
    char spec[500];
    snprintf(spec, sizeof spec, "%s,%s", head, repair);
    json_t *repaired = check_stories(0, spec);
    assert_true(first_acceptance(repaired) > first_acceptance(j));
    json_decref(repaired);
    json_decref(j);
}

static void test_wrong_taps(void **state) {
    (void)state;
    static const int lists[][3] = {{5, 3, 1}, {3, 1, 5}, {1, 5, 3}};
    for (int i = 0; i < (test_light() ? 1 : 3); i++)
        found(plant("order", "stories-eagle3", "eagle_aux_hidden_state_layer_ids",
                    list_of(lists[i][0], lists[i][1], lists[i][2]), NULL),
              "taps: in another order: taps=1:3:5 accepts 0.", "taps=1:3:5");
    found(plant("order", "stories-eagle3", "eagle_aux_hidden_state_layer_ids", list_of(0, 2, 4), NULL),
          "taps: one layer higher: taps=1:3:5", "taps=1:3:5");
}

static void test_norm_left_out(void **state) {
    (void)state;
    found(plant("norm", "stories-eagle3", "norm_before_residual", json_false(), NULL), "norm: the residual normed",
          "residual=normed");
    found(HEADS "stories-eagle-raw", "norm: the last state before the final norm", "last=raw");
}

#define UNTRAINED "trained for another model or on other pairs of state and token, or not trained"

/* The second was trained on the state of the position behind, from which a head without training drafts as well. */
static void test_shifted(void **state) {
    (void)state;
    found(HEADS "stories-eagle-shifted", "alignment: the state of the position before", NULL);
    found(HEADS "stories-eagle3-shifted", UNTRAINED, NULL);
}

static void test_trained_for_another_model(void **state) {
    (void)state;
    found(plant("other", "stories-eagle3", NULL, NULL, of_another_model), UNTRAINED, NULL);
    found(plant("other", "stories-eagle", NULL, NULL, of_another_model), UNTRAINED, NULL);
    found(plant("other", "stories-eagle3", NULL, NULL, at_random), UNTRAINED, NULL);
    found(plant("other", "stories-eagle", NULL, NULL, at_random), UNTRAINED, NULL);
}

/* ---- what does not fit --------------------------------------------------------------------------------------------------------- */

static json_t *misfit(const char *model, const char *head, const char *reason) {
    json_t *j = check(3, model, head, "--no-smoke");
    report_shape(j);
    assert_true(json_is_false(get(j, "fits")) && json_is_false(get(j, "passes")));
    if (!strstr(text_of(j, "reason"), reason))
        fail_msg("%s: \"%s\", expected \"%s\"", head, text_of(j, "reason"), reason);
    return j;
}

#define OFFICIAL "../goldens-heads/eagle3-official-d2t/head"

static unsigned char *mask_of(unsigned char *data, const json_t *header) {
    return data + json_integer_value(json_array_get(get(get(header, "t2d"), "data_offsets"), 0));
}

/* Token number k of those that t2d marks, or does not mark. */
static size_t token_of(const unsigned char *mask, size_t k, bool marked) {
    size_t i = 0;
    for (;; i++)
        if ((mask[i] != 0) == marked && k-- == 0) return i;
}

static void unmark_one(unsigned char *data, const json_t *header) {
    unsigned char *mask = mask_of(data, header);
    mask[token_of(mask, 5, true)] = 0;
}

static void mark_another(unsigned char *data, const json_t *header) {
    unsigned char *mask = mask_of(data, header);
    mask[token_of(mask, 3, false)] = 1;
}

static void mark_by_two(unsigned char *data, const json_t *header) {
    unsigned char *mask = mask_of(data, header);
    mask[token_of(mask, 0, true)] = 2;
}

/* Other tokens, as many as before: neither number of the file is wrong. */
static void move_mark(unsigned char *data, const json_t *header) {
    unmark_one(data, header);
    mark_another(data, header);
}

/* The first two draft tokens change places, so that d2t does not ascend. */
static void swap_ids(unsigned char *data, const json_t *header) {
    int64_t *d2t = (int64_t *)(void *)values_of(data, get(header, "d2t")), first = d2t[0];
    d2t[0] = d2t[1] + 1;
    d2t[1] = first - 1;
}

/* d2t, the tokens that a head drafts, and t2d, which marks them, are the same: check, run and convert refuse a head that has others. */
static void test_masks(void **state) {
    (void)state;
    static const char target[] = GOLDENS "targets/llama-a";
    static const struct {
        const char *name, *words;
        void (*change)(unsigned char *data, const json_t *header);
    } bad[] = {{"unmarked", "d2t: draft token 5 is token ", unmark_one},
               {"marked", "which is none of the 160 of d2t", mark_another},
               {"moved", "which t2d does not mark", move_mark},
               {"two", "of tensor t2d is 2; expected 0 to 1", mark_by_two}};
    char ids[400], made[400], spec[400];
    snprintf(ids, sizeof ids, "%s", path_of("ids.json"));
    snprintf(made, sizeof made, "%s", path_of("never.gguf"));
    test_file_write(ids, "[1]", 3);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(spec, sizeof spec, "eagle3:%s", plant(bad[i].name, OFFICIAL, NULL, NULL, bad[i].change));
        json_decref(misfit(target, spec, bad[i].words));
        refused(3, bad[i].words, "run", target, "--prompt-tokens", ids, "-n", "1", "--draft", spec);
        refused(3, bad[i].words, "convert", strchr(spec, ':') + 1, "-o", made, "--target", target);
    }
    result r = command("check", target, "--draft", spec, "--no-smoke");
    assert_true(r.code == 3 && strstr(r.out, "t2d") && strstr(r.err, "t2d"));
    result_free(&r);
    json_decref(check(0, target, plant("swapped", OFFICIAL, NULL, NULL, swap_ids), "--no-smoke"));
    json_decref(check(0, target, plant("right", OFFICIAL, NULL, NULL, NULL), "--no-smoke"));
}

/* All missing tensors of every part are named, and all that are left over. */
static void test_missing_tensors(void **state) {
    (void)state;
    static const char *const gone[] = {"fc.weight", "midlayer.mlp.up_proj.weight", "midlayer.self_attn.q_proj.weight",
                                       "norm.weight"};
    random_head h;
    head_make(&h, &STORIES_EAGLE3);
    for (int i = 0; i < 4; i++) head_drop(&h, gone[i]);
    head_floats(&h, "", "something", 3, 4);
    head_write(&h, path_of("missing"));
    head_free(&h);
    json_t *j = misfit(STORIES, path_of("missing"), "4 of its tensors are missing"), *tensors = get(j, "tensors");
    assert_int_equal(json_array_size(get(tensors, "missing")), 4);
    for (int i = 0; i < 4; i++) {
        size_t k, n = 0;
        json_t *name;
        json_array_foreach (get(tensors, "missing"), k, name) n += !strcmp(json_string_value(name), gone[i]);
        assert_int_equal(n, 1);
    }
    assert_int_equal(json_array_size(get(tensors, "unused")), 1);
    assert_string_equal(json_string_value(json_array_get(get(tensors, "unused"), 0)), "something");
    assert_true(int_of(tensors, "used") >= 8);
    json_decref(j);
}

static void test_other_kinds(void **state) {
    (void)state;
    random_head h = {.config = json_pack("{s:s, s:s}", "model_type", "llama", "speculators_model_type", "xpress")};
    head_floats(&h, "", "refiner_head.mix_l", 64, 64);
    head_write(&h, path_of("xpress"));
    json_t *j = misfit(STORIES, path_of("xpress"), "a kind that has no drafter here yet: xpress");
    assert_string_equal(text_of(j, "kind"), "xpress");
    json_decref(j);
    json_object_del(h.config, "speculators_model_type");
    snprintf(h.tensor[0].name, sizeof h.tensor[0].name, "a.thing");
    head_write(&h, path_of("thing"));
    head_free(&h);
    j = misfit(STORIES, path_of("thing"), "neither a draft head that is known nor a model");
    assert_true(json_is_null(get(j, "kind")));
    json_decref(j);
    json_decref(misfit(STORIES, "eagle:" HEADS "stories-eagle3", "not a head of EAGLE-1 or -2"));
    json_decref(misfit(STORIES, GOLDENS "eagle3spec-plain/head", ""));
    j = misfit(STORIES, HEADS "stories-eagle3,taps=1:3:9", "reads the state at layer 9");
    assert_int_equal(json_array_size(get(j, "taps")), 3);
    json_decref(j);
}

static void test_bad_usage(void **state) {
    (void)state;
    refused(2, "which head?", "check", STORIES);
    refused(2, "expected one --draft", "check", STORIES, "--draft", "ngram", "--draft", "suffix");
    refused(2, "expected a draft head", "check", STORIES, "--draft", "ngram");
    refused(2, "expected a draft head", "check", STORIES, "--draft", "auto");
    refused(2, "expected a draft head", "check", STORIES, "--draft", "eagle,depth=2");
    refused(2, "a language model, expected a draft head", "check", STORIES, "--draft", STORIES_HF);
    refused(2, "expected a spec without it", "check", STORIES, "--draft", HEADS "stories-eagle,force=1");
    refused(2, "last=behind", "check", STORIES, "--draft", HEADS "stories-eagle,last=behind");
    refused(2, "unknown key 'residual'", "check", STORIES, "--draft", HEADS "stories-eagle,residual=plain");
    refused(2, "holds no block of multi-token prediction", "check", STORIES, "--draft", "mtp");
    refused(2, "unknown kind 'eagel'", "check", STORIES, "--draft", "eagel:" HEADS "stories-eagle");
    refused(2, "MODEL is missing", "check", "--draft", HEADS "stories-eagle");
    refused(2, "fc_norms=yes, expected one of off, on", "check", STORIES, "--draft",
            HEADS "stories-eagle3,fc_norms=yes");
    char path[400];
    snprintf(path, sizeof path, "%s/nowhere", folder);
    result r = command("check", STORIES, "--draft", path);
    assert_true(r.code != 0 && r.out_len == 0 && strchr(r.err, '\n') && !strchr(r.err, '\n')[1]);
    result_free(&r);
    (void)mkdir(path_of("damaged"), 0700);
    snprintf(path, sizeof path, "%s/damaged/model.safetensors", folder);
    test_file_write(path, "not at all", 10);
    r = command("check", STORIES, "--draft", path_of("damaged"));
    assert_true(r.code == 3 && r.out_len == 0 && strchr(r.err, '\n') && !strchr(r.err, '\n')[1]);
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trained_heads_pass), cmocka_unit_test(test_tree_is_left_out),
        cmocka_unit_test(test_goldens_fit),
        cmocka_unit_test(test_what_was_found), cmocka_unit_test(test_words), cmocka_unit_test(test_whose_embedding),
        cmocka_unit_test(test_own_block),
        cmocka_unit_test(test_assistants), cmocka_unit_test(test_ids_instead_of_texts), cmocka_unit_test(test_wrong_taps),
        cmocka_unit_test(test_norm_left_out), cmocka_unit_test(test_shifted),
        cmocka_unit_test(test_trained_for_another_model),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_missing_tensors), cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_bad_usage)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
