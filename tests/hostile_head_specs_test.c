/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_head_specs_test.c - the command with invalid SPECs of draft heads: the documented exit code and one line. Valid heads run with
 * every kind of target, alone and together, whatever other tensors their files contain. */
#include "hostile_head.h"

/* ---- SPECs ------------------------------------------------------------------------------------------------------------- */

static void test_specs(void **state) {
    (void)state;
    static const struct {
        const char *rest, *says;
    } cases[] = {
        {",bogus=1", "unknown key 'bogus' for this drafter and form; it knows "},
        {",depht=1", "did you mean depth?"},
        {",depth=0", "depth=0, expected a whole number from 1 to 63"},
        {",depth=64", "depth=64, expected a whole number from 1 to 63"},
        {",depth=2,depth=3", "key 'depth' is given twice"},
        {",tree=dynamic,topk=17", "topk=17, expected a whole number from 1 to 16"},
        {",tree=dynamic,topk=0", "topk=0, expected a whole number from 1 to 16"},
        {",tree=dynamic,total=64", "total=64, expected a whole number from 1 to 63"},
        {",tree=dynamic,topk=16,depth=14", "depth 14 of 16 nodes a level: expected at most 192 in all"},
        {",topk=4", "topk is of tree=dynamic, opt, best and expanded alone"},
        {",tree=chain,total=4", "total is of tree=dynamic, opt, best, expanded, pruned, fitted and sequoia alone"},
        {",tree=mc_sim_7b_63,total=4", "total is of tree=dynamic, opt, best, expanded, pruned, fitted and sequoia alone"},
        {",tree=fitted,ranks=/nowhere,topk=3", "topk is of tree=dynamic, opt, best and expanded alone"},
        {",tree=dynamic,ranks=/nowhere", "ranks is of tree=fitted and sequoia alone"},
        {",ranks=/nowhere", "ranks is of tree=fitted and sequoia alone"},
        {",tree=fitted", "tree=fitted: fitted to which ranks? expected ranks=FILE"},
        {",tree=sequoia,total=9", "tree=sequoia: fitted to which ranks? expected ranks=FILE"},
        {",tree=sequoia,ranks=/nowhere", "ranks '/nowhere': no such file"},
        {",tree=fitted,ranks=/tmp", "ranks '/tmp': no such file"},
        {",tree=dynamic,gain=0.5", "gain is of tree=opt alone"},
        {",tree=opt,gain=-1", "gain=-1, expected a number from 0 to 64"},
        {",tree=opt,gain=nan", "gain=nan, expected a number"},
        {",tree=opt,topk=16,depth=14", "depth 14 of 16 nodes a level: expected at most 192 in all"},
        {",tree=best", "tree=best is of heads that draft all levels at once"},
        {",tree=/nowhere",
         "tree '/nowhere': no such file, and no tree of that name: chain, dynamic, opt, best, expanded, pruned, fitted, sequoia, "
         "mc_sim_7b_63, "},
        {",tree=/tmp", "tree '/tmp': no such file"},
        {",weights=q3", "weights=q3, expected one of q8_0, q4_0, bf16, f32"},
        {",kv=q8_0", "kv=q8_0, expected one of bf16, f16, f32"},
        {",force=2", "force=2, expected a number from 0 to 1"},
        {",taps=2:4:-1", "taps=2:4:-1: expected layers of 0 to 256 such as 2:16:29"},
        {",taps=2:4:5:", "taps=2:4:5:: expected layers"},
        {",taps=2:4:99999999999999999999", "expected layers of 0 to 256"},
        {",taps=0:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16", "expected layers of 0 to 256"},
    };
    head_write_form(&LLAMA_EAGLE3, path_of("head"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        spec_refused(HUNCH_USAGE, LLAMA, spec_at("eagle3", path_of("head"), cases[i].rest), cases[i].says);
    spec_refused(HUNCH_USAGE, LLAMA, "eagle3", "which head? (expected eagle3:PATH)");
    spec_refused(HUNCH_USAGE, LLAMA, "eagle3:", "no path after ':'");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",taps=2:4:9"), "reads the state at layer 9");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",taps=2:4"), "fc.weight has other inputs");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",taps=4:4:5"), "reads the state at layer 4 twice");
    head_write_form(&LLAMA_PEAGLE, path_of("masks"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("peagle", path_of("masks"), ",taps=2:4"), "fc.weight has other inputs");
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("peagle", path_of("masks"), ",tree=opt"), "tree=opt is of heads that draft a level at a time");
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("peagle", path_of("masks"), ",depth=64"), "depth=64, expected a whole number from 1 to 63");
    head_write_form(&LLAMA_MTP, path_of("mtp"));
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("mtp", path_of("mtp"), ",taps=2"), "unknown key 'taps' for this drafter");
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("mtp", path_of("mtp"), ",depth=0"), "depth=0, expected a whole number from 1 to 63");
}

/* The deepest chain that is allowed, and one deeper. */
static void test_deepest(void **state) {
    (void)state;
    static const form each[] = {PEAGLE, MTP};
    for (int i = 0; i < 2; i++) {
        const char *head = head_write_form(forms[each[i]], path_of("head"));
        json_t *j = json_of("draft", "-m", LLAMA, "--draft", spec_at(head_kind_of(forms[each[i]]), head, ""),
                            "--tokens", IDS, "--depth", "63");
        assert_int_equal(json_array_size(get(j, "tokens")), 63);
        json_t *again = json_of("draft", "-m", LLAMA, "--draft", spec_at(head_kind_of(forms[each[i]]), head, ",depth=63"), "--tokens", IDS,
                                "--accept", "63", "--depth", "63");
        assert_int_equal(json_array_size(get(again, "tokens")), 63);
        json_decref(j);
        json_decref(again);
        refused(HUNCH_USAGE, "64", "draft", "-m", LLAMA, "--draft", spec_at(head_kind_of(forms[each[i]]), head, ""),
                "--tokens", IDS, "--depth", "64");
    }
}

static void test_trees(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not readable as JSON"},
        {"7", "not readable as JSON"},
        {"{}", "expected a list \"paths\" of 1 to 63 paths, or \"nodes\""},
        {"[]", "expected a list \"paths\" of 1 to 63 paths"},
        {"{\"nodes\": [{\"parent\": 1, \"rank\": 0}, {\"parent\": 0, \"rank\": 0}]}", "node 0 is its own ancestor"},
        {"{\"paths\": 7}", "expected a list \"paths\""},
        {"[[]]", "path 0: expected a list of 1 to 63 ranks, each 0 to 63"},
        {"[[0], [64]]", "path 1: expected a list of 1 to 63 ranks"},
        {"[[-1]]", "path 0: expected a list"},
        {"[[\"0\"]]", "path 0: expected a list"},
        {"[[0.5]]", "path 0: expected a list"},
        {"[[1e300]]", "path 0: expected a list"},
        {"[[99999999999999999999999]]", "path 0: expected a list"},
        {"[[0], [0]]", "is there twice"},
        {"{\"paths\": [[0], [1, 0]]}", "path [1, 0] has no parent"},
        {"[[0]] x", "not readable as JSON"},
        {"[[\xff]]", "not readable as JSON"},
    };
    char rest[400], *deep = calloc(1, 100001);
    head_write_form(&LLAMA_EAGLE, path_of("head"));
    snprintf(rest, sizeof rest, ",tree=%s", path_of("tree.json"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_write("tree.json", cases[i].text);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), cases[i].says);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), "tree.json");
    }
    memset(deep, '[', 100000);
    text_write("tree.json", deep);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), "not readable as JSON");
    free(deep);
    for (int n = 63; n <= 64; n++) { /* a root with as many candidates as are allowed, and one more */
        json_t *paths = json_array();
        for (int i = 0; i < n; i++) json_array_append_new(paths, json_pack("[i]", i));
        json_write("tree.json", paths);
        json_decref(paths);
        if (n == 64) spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), "1 to 63 paths");
        json_t *j = n == 63 ? json_of("draft", "-m", LLAMA, "--draft", spec_at("eagle", path_of("head"), rest), "--tokens", IDS) : NULL;
        if (j) assert_int_equal(json_array_size(get(j, "nodes")), 63);
        json_decref(j);
    }
}

/* `hunch draft --depth K` with a head that drafts fewer levels: a usage error. */
static void test_depth(void **state) {
    (void)state;
    const char *head = head_write_form(&LLAMA_EAGLE, path_of("head"));
    static const char *const rests[] = {",tree=mc_sim_7b_63", ",depth=4", ",depth=4,tree=dynamic"};
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        const char *spec = spec_at("eagle", head, rests[i]);
        refused(HUNCH_USAGE, "depth 5: it drafts 4 levels", "draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS, "--depth", "5");
        json_decref(json_of("draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS, "--depth", "4"));
        json_decref(json_of("draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS));
    }
    const char *spec = spec_at("eagle", head, ",tree=dynamic");
    refused(HUNCH_USAGE, "expected at most 192 in all", "draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS, "--depth", "21");
}

/* ---- valid heads --------------------------------------------------------------------------------------------------------- */

/* Tables that some files contain, copies of the target's tensors, and tensors only for training change nothing. */
static void test_tensors_beside(void **state) {
    (void)state;
    static const form each[] = {EAGLE, SPECULATORS, PEAGLE, MTP};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        random_head h;
        make(&h, each[i]);
        head_write(&h, path_of("head"));
        json_t *plain = json_of("draft", "-m", LLAMA, "--draft",
                                spec_at(head_kind_of(forms[each[i]]), path_of("head"), ""), "--tokens", IDS);
        head_floats(&h, each[i] == MTP ? "mtp_layers.0." : "layers.0.", "self_attn.rotary_emb.inv_freq", 8, 0);
        head_floats(&h, "", "verifier_norm.weight", 64, 0);
        head_floats(&h, "", "verifier_lm_head.weight", 160, 64);
        head_floats(&h, "", "t2d", 480, 0);
        if (each[i] == MTP) head_floats(&h, "model.", "embed_tokens.weight", 480, 64);
        head_write(&h, path_of("head"));
        json_t *beside = json_of("draft", "-m", LLAMA, "--draft",
                                 spec_at(head_kind_of(forms[each[i]]), path_of("head"), ""), "--tokens", IDS);
        assert_true(json_array_size(get(plain, "tokens")) == 5 && json_equal(plain, beside));
        json_decref(plain);
        json_decref(beside);
        head_free(&h);
    }
}

/* All names begin with "model.", except the output and the list of its tokens. */
static void test_wrapped(void **state) {
    (void)state;
    static const form each[] = {EAGLE3, SPECULATORS, PEAGLE, MTP};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        random_head h;
        make(&h, each[i]);
        head_write(&h, path_of("head"));
        json_t *plain = json_of("draft", "-m", LLAMA, "--draft", path_of("head"), "--tokens", IDS);
        for (int k = 0; k < h.n; k++) {
            char name[80];
            snprintf(name, sizeof name, "model.%.70s", h.tensor[k].name);
            if (strcmp(h.tensor[k].name, "lm_head.weight") && strcmp(h.tensor[k].name, "d2t"))
                memcpy(h.tensor[k].name, name, sizeof name);
        }
        head_write(&h, path_of("head"));
        json_t *wrapped = json_of("draft", "-m", LLAMA, "--draft", path_of("head"), "--tokens", IDS);
        assert_true(json_array_size(get(plain, "tokens")) == 5 && json_equal(plain, wrapped));
        head_floats(&h, "", each[i] == MTP ? "model.mtp_layers.1.mlp.up_proj.weight" : "model.layers.7.mlp.up_proj.weight", 96, 64);
        assert_head_refused(&h, each[i],
                            each[i] == MTP ? "2 modules of multi-token prediction, expected num_hidden_layers to be as many, not 1"
                                           : "mlp.up_proj.weight: heads of this kind");
        json_decref(plain);
        json_decref(wrapped);
        head_free(&h);
    }
}

/* The same text as without drafts, for any storage of the target and any other drafters. */
static void drafts_same(const char *const *how, json_t *plain, const char *spec) {
    const char *args[20] = {"run", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--temperature", "0", "--json", "--draft", spec};
    int n = 12;
    for (int i = 0; how[i]; i++) args[n++] = how[i];
    json_t *j = json_args(args);
    tokens_equal(plain, j);
    assert_true(int_of(j, "drafted") > 0);
    json_decref(j);
}

static void test_heads_and_targets(void **state) {
    (void)state;
    static const char *const how[][3] = {{NULL}, {"--mapped", NULL}, {"--precision", "f32", NULL}};
    char one[400], three[400], spec[2000];
    snprintf(one, sizeof one, "%s", head_write_form(&STORIES_EAGLE, path_of("one")));
    snprintf(three, sizeof three, "%s", head_write_form(&STORIES_EAGLE3, path_of("three")));
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        const char *args[20] = {"run", "-m",            STORIES, "-p",     "Once upon a time", "-n",
                                "40",  "--temperature", "0",     "--json", "--draft",          "none"};
        for (int k = 0; how[i][k]; k++) args[12 + k] = how[i][k];
        json_t *plain = json_args(args);
        drafts_same(how[i], plain, spec_at("eagle", one, ""));
        drafts_same(how[i], plain, spec_at("eagle3", three, ",tree=dynamic"));
        drafts_same(how[i], plain, spec_at("eagle3", three, ",tree=mc_sim_7b_63,weights=q4_0,kv=f16"));
        snprintf(spec, sizeof spec, "eagle:%s+eagle3:%s", one, three);
        drafts_same(how[i], plain, spec);
        snprintf(spec, sizeof spec, "hass:%s+eagle:%s,depth=2", one, one); /* one file twice */
        drafts_same(how[i], plain, spec);
        snprintf(spec, sizeof spec, "eagle3:%s,tree=dynamic,topk=3,total=9+ngram+model:%s,depth=2", three, STORIES);
        drafts_same(how[i], plain, spec);
        json_decref(plain);
    }
}

/* force=1 makes every draft of a useless head right, force=0 every one wrong. */
static void test_forced(void **state) {
    (void)state;
    const char *head = head_write_form(&STORIES_EAGLE3, path_of("three"));
    for (int i = 0; i < 2; i++) {
        json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "41", "--temperature", "0", "--draft",
                            spec_at("eagle3", head, i ? ",depth=4,force=1" : ",depth=4,force=0"));
        if (i) near(real_of(j, "tau"), 5, 1e-9);
        else assert_int_equal(int_of(j, "accepted"), 0);
        json_decref(j);
    }
}

/* One line about each head on standard error, and in JSON; once, and none with --quiet. */
static void test_about(void **state) {
    (void)state;
    char one[400], about[900], both[1200];
    snprintf(one, sizeof one, "%s", head_write_form(&STORIES_EAGLE, path_of("one")));
    const char *three = head_write_form(&STORIES_EAGLE3, path_of("three"));
    snprintf(both, sizeof both, "eagle3:%s+ngram+eagle:%s,weights=q4_0", three, one);
    result r = command("run", "-m", STORIES, "-p", "Once", "-n", "3", "--draft", both);
    assert_int_equal(r.code, 0);
    snprintf(about, sizeof about,
             "eagle3 %s: 1 layer, 64 wide; reads the states entering layers 1, 2 and 3 (outputs of layers 0, 1 and 2); drafts 200"
             " of 512 tokens with the model's embedding; 0.1 MB as Q8_0\n", three);
    if (!strstr(r.err, about)) fail_msg("no \"%s\" in \"%s\"", about, r.err);
    snprintf(about, sizeof about,
             "eagle %s: 1 layer, 64 wide; reads the state behind the final norm; drafts 512 of 512 tokens with the model's"
             " embedding and output; 0.0 MB as Q4_0\n", one);
    if (!strstr(r.err, about)) fail_msg("no \"%s\" in \"%s\"", about, r.err);
    result_free(&r);
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "3", "--draft", both, "--quiet");
    about[strlen(about) - 1] = 0;
    assert_string_equal(json_string_value(json_array_get(get(j, "about"), 2)), about);
    assert_true(json_is_null(json_array_get(get(j, "about"), 1)));
    json_decref(j);
    refused(HUNCH_USAGE, "--context", "run", "-m", STORIES, "-p", "Once upon a time there was", "-n", "3", "--draft", both, "--context",
            "3");
    r = command("compare", "-m", STORIES, "-p", "Once", "-n", "8", "--draft", spec_at("eagle", one, ""), "--draft", both);
    assert_int_equal(r.code, 0);
    const char *first = strstr(r.err, "reads the state behind");
    assert_true(first && strstr(first + 1, "as Q4_0") && strstr(r.err, "eagle3 ")); /* one line for each method */
    result_free(&r);
    r = command("run", "-m", STORIES, "-p", "Once", "-n", "3", "--draft", both, "--quiet");
    assert_string_equal(r.err, "");
    result_free(&r);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specs),          cmocka_unit_test(test_trees),
        cmocka_unit_test(test_depth),          cmocka_unit_test(test_deepest),
        cmocka_unit_test(test_tensors_beside), cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_heads_and_targets), cmocka_unit_test(test_forced),
        cmocka_unit_test(test_about),
    };
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
