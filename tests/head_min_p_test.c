/* SPDX-License-Identifier: Apache-2.0 */
/* head_min_p_test.c - a head's min_p leaves out exactly the paths that are less probable: of chains, of fixed trees, of the likeliest
 * paths; and a head may have one of its own. Distributions of the text with it: heads_dist_test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "draft/head/open/head_options.h"
#include "heads.h"

enum { N_TEXT = 24, TEXTS = 5 };

static hunch_draft_result draft(hunch_model *m, const char *spec, int salt) {
    hunch_token token[N_TEXT];
    hunch_draft_result r;
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    heads_prompt(token, N_TEXT, 0, (uint64_t)salt);
    for (int i = 0; i < N_TEXT; i++) token[i] %= m->target.arch.vocab;
    must(hunch_draft(e, token, N_TEXT, 0, -1, NULL, NULL, NULL, &r, err));
    hunch_engine_close(&e);
    return r;
}

static hunch_draft_result draft_with(hunch_model *m, const char *spec, double min_p, int salt) {
    char text[900];
    snprintf(text, sizeof text, "%s,min_p=%.9g", heads_spec(spec), min_p);
    return draft(m, text, salt);
}

/* A probability between those of two of its paths, somewhere in the middle. */
static double between(const hunch_draft_result *r) {
    double below = 0, above = 1;
    const double middle = exp(r->node[r->n / 2].logp);
    for (int i = 0; i < r->n; i++) {
        const double p = exp(r->node[i].logp);
        if (p < middle && p > below) below = p;
        if (p > middle && p < above) above = p;
    }
    return below > 0 ? (middle + below) / 2 : (middle + above) / 2;
}

/* The remaining paths are those that are probable enough, in the same order. */
static void check(hunch_model *m, const char *spec) {
    int left_out = 0, kept = 0;
    for (int salt = 0; salt < TEXTS; salt++) {
        hunch_draft_result all = draft_with(m, spec, 0, salt);
        const double min_p = between(&all);
        hunch_draft_result some = draft_with(m, spec, min_p, salt);
        int n = 0;
        for (int i = 0; i < all.n; i++) {
            if (exp(all.node[i].logp) < min_p) {
                left_out++;
                continue;
            }
            if (n >= some.n) fail_msg("%s, min_p=%g, text %d: node %d is missing", spec, min_p, salt, i);
            assert_int_equal(some.node[n].token, all.node[i].token);
            assert_true(fabs(some.node[n].logp - all.node[i].logp) < 1e-12);
            n++;
        }
        if (n != some.n) fail_msg("%s, min_p=%g, text %d: %d nodes, expected %d", spec, min_p, salt, some.n, n);
        kept += n;
        hunch_free(all.node);
        hunch_free(some.node);
    }
    assert_true(left_out >= TEXTS && kept >= TEXTS);
}

static void test_left_out(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    check(m, "eagle:@eagle1-bias-bin,depth=5");
    check(m, "eagle3:@eagle3-official-d2t,depth=6");
    check(m, "eagle3:@eagle3-official-d2t,depth=4,tree=dynamic,topk=4,total=30");
    check(m, "eagle:@eagle2-nobias-gqa,tree=mc_sim_7b_63");
    check(m, "peagle:@peagle-spec-2layers,depth=5");
    check(m, "dflash:@dflashspec-d2t,depth=5");
    check(m, "dflash:@dflashmask-zlab,tree=best,topk=4,total=30");
    check(m, "dspark:@dspark-vanilla,depth=5");
    check(m, "dspark:@dspark-rnn,tree=mc_sim_7b_63");
    check(m, "dspark:@dspark-gated,depth=4,tree=dynamic,topk=3,total=20");
    check(m, "domino:@domino-early,depth=4,tree=dynamic,topk=3,total=20,pool=80");
    check(m, "dflash2:@dflash2-zlab,tree=mc_sim_7b_63");
    check(m, "dart:@dart-d2t,depth=5");
    check(m, "dart:@dart-d2t,tree=pruned,total=30");
    check(m, "falcon:@falcon-k2,depth=6");
    check(m, "falcon:@falcon-k3,tree=mc_sim_7b_63");
    check(m, "peagle:@peagle-spec-2layers,depth=4,tree=dynamic,topk=3,total=20");
    check(m, "medusa:@medusa-4heads,depth=4");
    check(m, "medusa:@medusa-4heads,tree=mc_sim_7b_63");
    check(m, "medusa:@medusa-vllm-map,depth=3,tree=best,topk=4,total=20");
    check(m, "hydra:@hydra-prefix,depth=3");
    check(m, "hydra:@hydra-offset,depth=2,tree=dynamic,topk=4,total=12");
    check(m, "mlp:@mlp-tied-5,depth=5");
    check(m, "mlp:@mlp-arctic-lstm,depth=4,tree=opt,topk=3,total=15,gain=0.05");
    hunch_model_close(&m);
    m = open_model(data_path(HEADS_META), "best", 1, HUNCH_PRECISION_NATIVE);
    check(m, "meta-mtp:@meta-3tokens,depth=2");
    hunch_model_close(&m);
}

/* All paths, and none. */
static void test_ends(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    const char *const specs[] = {"eagle3:@eagle3-official-d2t,depth=4", "eagle3:@eagle3-official-d2t,depth=4,tree=dynamic,topk=4,total=30"};
    for (int i = 0; i < 2; i++) {
        hunch_draft_result none = draft_with(m, specs[i], 1, 0), all = draft_with(m, specs[i], 1e-30, 0);
        assert_int_equal(none.n, 0);
        assert_int_equal(all.n, i ? 30 : 4);
        hunch_free(none.node);
        hunch_free(all.node);
    }
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_error why;
    const char *spec = heads_spec("eagle3:@eagle3-official-d2t,min_p=2");
    hunch_engine_options_defaults(&o);
    o.drafts = &spec;
    o.n_drafts = 1;
    assert_int_equal(hunch_engine_open(&e, m, &o, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "min_p"));
    hunch_model_close(&m);
}

/* A path in the temporary folder of test_of_head. */
static char folder[] = "/tmp/hunch-min-p-XXXXXX";
static const char *in_folder(const char *name) {
    static char path[4][200];
    static unsigned turn;
    snprintf(path[++turn % 4], sizeof path[0], "%s/%s", folder, name);
    return path[turn % 4];
}

/* The folder becomes the head's, but for draft_min_p in its config.json. */
static void set_min_p(const char *min_p) {
    char from[1100];
    snprintf(from, sizeof from, "%s/model.safetensors", heads_spec("@eagle3-official-d2t"));
    (void)unlink(in_folder("model.safetensors"));
    assert_int_equal(symlink(from, in_folder("model.safetensors")), 0);
    snprintf(from, sizeof from, "%s/config.json", heads_spec("@eagle3-official-d2t"));
    json_t *config = json_load_file(from, 0, NULL);
    assert_int_equal(json_object_set_new(config, "draft_min_p", json_loads(min_p, JSON_DECODE_ANY, NULL)), 0);
    assert_int_equal(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
}

/* Not between 0 and 1. */
static void refused_with(hunch_model *m, const char *min_p) {
    char text[100];
    const char *spec = text;
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_error why;
    set_min_p(min_p);
    snprintf(text, sizeof text, "eagle3:%s", folder);
    hunch_engine_options_defaults(&o);
    o.drafts = &spec;
    o.n_drafts = 1;
    assert_int_equal(hunch_engine_open(&e, m, &o, &why), HUNCH_REFUSED);
    assert_non_null(strstr(why.message, "draft_min_p"));
}

static void same_draft(hunch_model *m, const char *spec, const hunch_draft_result *want) {
    hunch_draft_result got = draft(m, spec, 0);
    assert_int_equal(got.n, want->n);
    for (int k = 0; k < got.n; k++) assert_int_equal(got.node[k].token, want->node[k].token);
    hunch_free(got.node);
}

/* A head's own min_p, in a folder and in a GGUF: of chains, where neither the spec has one nor auto decides. */
static void test_of_head(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(HEADS_LLAMA), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_draft_result all = draft_with(m, "eagle3:@eagle3-official-d2t,depth=6", 0, 0);
    const double min_p = between(&all);
    hunch_draft_result some = draft_with(m, "eagle3:@eagle3-official-d2t,depth=6", min_p, 0);
    hunch_draft_result tree = draft_with(m, "eagle3:@eagle3-official-d2t,depth=4,tree=dynamic,topk=4,total=30", 0, 0);
    assert_true(some.n < all.n);
    char number[40];
    snprintf(number, sizeof number, "%.17g", min_p);
    assert_non_null(mkdtemp(folder));
    set_min_p(number);
    const char *file = in_folder("head.gguf");
    hunch_convert_options how;
    hunch_convert_options_defaults(&how);
    how.target = data_path(HEADS_LLAMA);
    must(hunch_convert(folder, file, &how, err));
    const struct {
        const char *path, *more;
        const hunch_draft_result *want;
    } cases[] = {{folder, "", &some}, {file, "", &some}, {folder, ",min_p=0", &all}, {file, ",min_p=0", &all}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char spec[200];
        snprintf(spec, sizeof spec, "eagle3:%s,depth=6%s", cases[i].path, cases[i].more);
        same_draft(m, spec, cases[i].want);
    }
    set_min_p("1"); /* a chain would have nothing */
    char spec[200];
    snprintf(spec, sizeof spec, "eagle3:%s,depth=4,tree=dynamic,topk=4,total=30", folder);
    same_draft(m, spec, &tree);
    hunch_free(all.node);
    hunch_free(some.node);
    hunch_free(tree.node);
    refused_with(m, "1.5");
    refused_with(m, "-0.1");
    refused_with(m, "\"much\"");
    hunch_model_close(&m);
    assert_int_equal(unlink(in_folder("head.gguf")) + unlink(in_folder("config.json")) + unlink(in_folder("model.safetensors")), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* `auto` decides by itself how much pays: a head's own min_p is not for it, a spec's is. */
static void test_controlled(void **state) {
    (void)state;
    static const char *const specs[] = {"eagle3:head", "eagle3:head,min_p=0.25"};
    for (int i = 0; i < 4; i++) {
        const hn_target_info info = {.kv = HN_BF16, .controlled = i / 2};
        hn_head_options o = {0};
        hn_spec spec;
        must(hn_spec_parse(&spec, specs[i % 2], err));
        must(hn_head_options_read(&o, &spec, &info, err));
        assert_int_equal(o.min_p_given, i > 0);
        assert_true(o.min_p == (i % 2 ? 0.25 : 0));
        hn_spec_fini(&spec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_out), cmocka_unit_test(test_ends), cmocka_unit_test(test_of_head),
                                       cmocka_unit_test(test_controlled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
