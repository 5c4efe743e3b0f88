/* SPDX-License-Identifier: Apache-2.0 */
/* auto_heads_test.c - `auto` opens a file beside the model as a head, the first by name that fits; files that do not fit are noted; and a
 * head whose drafts are all wrong is noted, once. The block in a model's file is opened once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "fixture.h"
#include "random_head.h"
#include "random_steps.h"

static void link_to(const char *data, const char *name) {
    (void)unlink(test_path(name));
    assert_int_equal(symlink(data_path(data), test_path(name)), 0);
}

static int setup(void **state) {
    (void)state;
    assert_int_equal(mkdir(test_path("folder"), 0700), 0);
    assert_int_equal(mkdir(test_path("folder/heads"), 0700), 0);
    return 0;
}

static void check(const char *model, const char *head, const char *note) {
    hunch_model *m = open_model(test_path(model), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    assert_int_equal(hunch_engine_drafters(e), 4);
    assert_non_null(strstr(hunch_engine_left_out(e, 0), head ? "recycle and lookahead" : "lookahead"));
    assert_null(hunch_engine_left_out(e, 1));
    if (!head) assert_string_equal(hunch_engine_drafter_name(e, 3), "recycle");
    if (head) { /* its name is short, and its path is in the line about it */
        assert_null(strchr(hunch_engine_drafter_name(e, 3), '/'));
        assert_non_null(strstr(hunch_engine_drafter_about(e, 3), test_path(head)));
    }
    if (note) {
        assert_non_null(hunch_engine_note(e, 0));
        if (!strstr(hunch_engine_note(e, 0), note)) fail_msg("%s", hunch_engine_note(e, 0));
        assert_null(hunch_engine_note(e, 1));
    } else {
        assert_null(hunch_engine_note(e, 0));
    }
    assert_null(hunch_engine_note(e, -1));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* A whole model is a drafter as well. */
static void test_beside(void **state) {
    (void)state;
    link_to("models/stories260K/stories260K.f32.gguf", "m.gguf");
    check("m.gguf", NULL, NULL);
    test_file_write(test_path("m.head.gguf"), "no head", 7);
    check("m.gguf", NULL, "the draft head beside the model is not used: drafter");
    (void)unlink(test_path("m.head.gguf"));
    link_to("models/stories260K/stories260K.f32.gguf", "m.head.gguf");
    check("m.gguf", "m.head.gguf", NULL);
    check("m.head.gguf", NULL, NULL); /* a head has none beside it */
    (void)unlink(test_path("m.head.gguf"));
    must(hunch_convert(data_path("heads/stories-eagle"), test_path("m.head.gguf"), NULL, err));
    check("m.gguf", "m.head.gguf", NULL);
    link_to("models/stories260K/stories260K.f32.gguf", "a,b.gguf"); /* a comma in a name */
    must(hunch_convert(data_path("heads/stories-eagle"), test_path("a,b.head.gguf"), NULL, err));
    check("a,b.gguf", "a,b.head.gguf", NULL);
}

static void test_folder(void **state) {
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char from[100], to[100];
        snprintf(from, sizeof from, "goldens-heads/targets/llama-a/%s", files[i]);
        snprintf(to, sizeof to, "folder/%s", files[i]);
        link_to(from, to);
    }
    check("folder", NULL, NULL);
    test_file_write(test_path("folder/heads/b.gguf"), "no head", 7);
    test_file_write(test_path("folder/heads/a.txt"), "no head", 7);
    check("folder", NULL, "folder/heads/b.gguf");
    link_to("models/stories260K/stories260K.f32.gguf", "folder/head.gguf"); /* of another vocabulary */
    hunch_model *m = open_model(test_path("folder"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    assert_int_equal(hunch_engine_drafters(e), 4); /* recycle is the last */
    assert_non_null(strstr(hunch_engine_note(e, 0), "folder/head.gguf"));
    assert_non_null(strstr(hunch_engine_note(e, 1), "folder/heads/b.gguf"));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* The block in the model's file is opened once, with the user's options if there are some. */
static void test_own_block(void **state) {
    (void)state;
    static const struct {
        const char *drafts, *name;
        int place;
    } of[] = {{"auto", "mtp", 3}, {"auto+mtp,depth=2", "mtp,depth=2", 3}, {"mtp,depth=2+auto", "mtp,depth=2", 0}};
    hunch_model *m = open_model(data_path("goldens/deepseek_v3-yarn"), "best", 1, HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < 3; i++) {
        hunch_engine *e = open_engine(m, of[i].drafts, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
        assert_int_equal(hunch_engine_drafters(e), 4);
        assert_string_equal(hunch_engine_drafter_name(e, of[i].place), of[i].name);
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

static void test_useless(void **state) {
    (void)state;
    char spec[700];
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    snprintf(spec, sizeof spec, "eagle:%s,depth=1", head_write_form(&STORIES_EAGLE, test_path("useless")));
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = 5;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    uint64_t before = 0;
    for (int i = 0; i < 3; i++) {
        answer a = {0};
        hunch_engine_stats stats;
        r.max_tokens = i ? 150 : 40;
        run_requests(e, &r, 1, false, &a);
        if (i == 0) assert_null(hunch_engine_note(e, 0)); /* not 64 yet */
        hunch_engine_get_stats(e, &stats);
        assert_in_range(stats.drafter[0].drafted - before, i ? 64 : 38, i ? 120 : 38); /* then it drafts no more */
        before = stats.drafter[0].drafted;
        answer_free(&a);
    }
    assert_non_null(hunch_engine_note(e, 0));
    assert_non_null(strstr(hunch_engine_note(e, 0), " drafts no more for a text: "));
    assert_null(hunch_engine_note(e, 1));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* ---- random heads under auto ------------------------------------------------------------------------------------------------ */

typedef struct head_rounds {
    int rounds, of_head; /* rounds of the text's second half, and those in which a head's pass ran */
} head_rounds;

static void count_head_rounds(void *user, const hunch_round_report *r) {
    head_rounds *k = user;
    if (r->context < 128) return;
    k->rounds++;
    k->of_head += r->draft_pass_s > 0;
}

static void write_text(hunch_model *m, const char *draft, answer *a, head_rounds *k) {
    static const hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_engine *e = open_engine(m, draft, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = 240;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    r.on_round = count_head_rounds;
    r.on_round_user = k;
    run_requests(e, &r, 1, true, a);
    hunch_engine_close(&e);
}

/* A worthless head, with weights for each position or with several tokens a pass: the text and its logits are the plain ones, and the
 * head is given up. */
static void test_worthless(void **state) {
    static const struct {
        const char *kind;
        const head_form *form;
    } of_passes[] = {{"dflash", &STORIES_DFLASH}, {"dspark", &STORIES_DSPARK}, {"jetspec", &STORIES_JETSPEC},
                     {"dart", &STORIES_DART}, {"falcon", &STORIES_FALCON}};
    (void)state;
    char spec[700];
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    answer plain = {0};
    head_rounds none = {0};
    write_text(m, NULL, &plain, &none);
    assert_true(none.rounds > 100 && none.of_head == 0);
    for (int i = 0; i < N_STEPS_KINDS; i++)
        for (int tree = 0; tree < 2; tree++) {
            answer got = {0};
            head_rounds k = {0};
            snprintf(spec, sizeof spec, "auto+%s:%s%s", steps_kinds[i].kind, steps_write(steps_kinds[i].kind, test_path("useless")),
                     tree ? ",tree=mc_sim_7b_63" : "");
            write_text(m, spec, &got, &k);
            assert_same(&plain, &got, spec);
            if (k.of_head > k.rounds / 4) fail_msg("%s: called in %d of %d rounds", spec, k.of_head, k.rounds);
            answer_free(&got);
        }
    for (size_t i = 0; i < sizeof of_passes / sizeof *of_passes; i++) {
        answer got = {0};
        head_rounds k = {0};
        snprintf(spec, sizeof spec, "auto+%s:%s", of_passes[i].kind, head_write_form(of_passes[i].form, test_path(of_passes[i].kind)));
        write_text(m, spec, &got, &k);
        assert_same(&plain, &got, spec);
        if (k.of_head > k.rounds / 4) fail_msg("%s: called in %d of %d rounds", spec, k.of_head, k.rounds);
        answer_free(&got);
    }
    answer_free(&plain);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside), cmocka_unit_test(test_folder), cmocka_unit_test(test_own_block),
                                       cmocka_unit_test(test_useless), cmocka_unit_test(test_worthless)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
