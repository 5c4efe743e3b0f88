/* SPDX-License-Identifier: Apache-2.0 */
/* save_head_test.c - saving a head without memory or disk space, each allocation and each write in turn, those of its JSON too: the error
 * names the folder or file, a new folder is not left, and files of an older head are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "train/learn/save_head.h"
#include "learner.h" /* last: it calls a type "bytes" */

/* Texts of any tokens: what is learned from them does not matter here. */
static int setup(void **state) {
    (void)state;
    char line[600];
    bytes all = {0};
    model = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < 8; i++) {
        snprintf(line, sizeof line, "{\"id\": %d, \"own\": 2, \"ids\": [1, %d, 30, %d, 261, 77, 403, %d, 9, 500]}\n", i, 20 + i, 300 + i,
                 40 + 3 * i);
        bytes_put(&all, line, strlen(line));
    }
    test_file_write(test_path("texts.jsonl"), all.at, all.size);
    bytes_free(&all);
    open_features();
    return 0;
}

static const char *const head_files[] = {"model.safetensors", "tokens.json", "config.json"};
enum { HEAD_FILES = 3 };

typedef struct head_bytes {
    bytes file[HEAD_FILES]; /* at NULL: there is none */
} head_bytes;

static const char *file_in(const char *folder, int i, const char *more) {
    static char path[4][800];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s%s", folder, head_files[i], more);
    return p;
}

static head_bytes read_head(const char *folder) {
    head_bytes h = {0};
    for (int i = 0; i < HEAD_FILES; i++)
        if (access(file_in(folder, i, ""), F_OK) == 0) h.file[i] = test_file_read(file_in(folder, i, ""));
    return h;
}

static void free_head(head_bytes *h) {
    for (int i = 0; i < HEAD_FILES; i++) bytes_free(&h->file[i]);
}

/* jansson's memory is counted, too. */
static void *json_alloc(size_t size) {
    return hn_fault_hit(HN_FAULT_ALLOC) ? NULL : malloc(size);
}

/* A learner's head, or one made for the test. */
typedef struct to_save {
    const hn_learner *l;
    const hn_head_to_save *h;
} to_save;

static hunch_status save_with(const to_save *s, const char *folder, enum hn_fault_kind what, int64_t at, hunch_error *err) {
    json_set_alloc_funcs(json_alloc, free);
    hn_fault_arm(what, at, false);
    const hunch_status st = s->l ? hn_learner_save_head(s->l, folder, err) : hn_head_save(s->h, folder, err);
    if (at < INT64_MAX) hn_fault_arm(what, -1, false);
    json_set_alloc_funcs(malloc, free);
    return st;
}

static bool same_bytes(const bytes *a, const bytes *b) {
    return a->size == b->size && (a->size == 0 || !memcmp(a->at, b->at, a->size));
}

/* Into a folder that is not there: after an error it still is not. Into one with an older head: each file is the old or the new one. */
static int save_fails_at(const to_save *s, const head_bytes *old, const head_bytes *new, enum hn_fault_kind what, int64_t at) {
    hunch_error why = {.message = ""};
    const char *folder = test_path(old ? "older" : "fresh");
    for (int i = 0; i < HEAD_FILES; i++) {
        unlink(file_in(folder, i, ""));
        if (old && old->file[i].at) test_file_write(file_in(folder, i, ""), old->file[i].at, old->file[i].size);
    }
    if (!old) (void)rmdir(folder);
    const hunch_status st = save_with(s, folder, what, at, &why);
    head_bytes got = read_head(folder);
    for (int i = 0; i < HEAD_FILES; i++) {
        const bool is_new = same_bytes(&got.file[i], &new->file[i]), is_old = old && same_bytes(&got.file[i], &old->file[i]);
        assert_true(access(file_in(folder, i, ".partial"), F_OK) != 0);
        if (st == HUNCH_OK ? !is_new : old && !is_new && !is_old)
            fail_msg("%s: fault %d, call %d: %s is neither the old nor the new one", folder, (int)what, (int)at, head_files[i]);
    }
    if (st && !old && access(folder, F_OK) == 0) fail_msg("fault %d, call %d: a part of a head is left", (int)what, (int)at);
    if (st && !strstr(why.message, folder)) fail_msg("fault %d, call %d: \"%s\" names no file", (int)what, (int)at, why.message);
    free_head(&got);
    return st != HUNCH_OK;
}

/* old NULL: only into a new folder. */
static void check_faults(const to_save *s, const head_bytes *old, const head_bytes *new) {
    for (int f = 0; f < 2; f++) {
        int failures = 0, tries = 0;
        const enum hn_fault_kind what = f ? HN_FAULT_WRITE : HN_FAULT_ALLOC;
        must(save_with(s, test_path("new"), what, INT64_MAX, err));
        const int64_t calls = (int64_t)hn_fault_count(what);
        hn_fault_arm(what, -1, false);
        assert_true(calls > (f ? 5 : 20));
        for (int64_t at = 0; at < calls; at += light() ? 5 : 1) {
            failures += save_fails_at(s, NULL, new, what, at);
            if (old) failures += save_fails_at(s, old, new, what, at);
            tries += old ? 2 : 1;
        }
        assert_int_equal(failures, tries);
    }
}

static void check_saving(const hn_learn_options *o) {
    head_bytes head[2];
    hn_learner *l;
    double losses[HN_MOST_STEPS];
    int tokens;
    must(hn_learner_open(&l, model, data_path(STORIES), &features, o, err));
    for (int i = 0; i < 2; i++) {
        must(hn_learner_save_head(l, test_path(i ? "new" : "older"), err));
        head[i] = read_head(test_path(i ? "new" : "older"));
        if (!i) must(hn_learner_step(l, losses, &tokens, err));
    }
    assert_false(same_bytes(&head[0].file[0], &head[1].file[0]));
    check_faults(&(to_save){l, NULL}, &head[0], &head[1]);
    free_head(&head[0]);
    free_head(&head[1]);
    hn_learner_close(&l);
}

/* Each allocation and each write of saving fails once: with clusters and a reduced vocabulary, with a list of tokens, with lists in
 * config.json, with ids of the tokens. */
static void test_faults_of_saving(void **state) {
    (void)state;
    for (int i = 0; hn_learn_kind_at(i); i++) {
        const hn_learn_kind *kind = hn_learn_kind_at(i);
        hn_learn_options o = hn_learn_usual(kind, &model->target.arch, features.tokens);
        o.steps = 4;
        o.rows = 64;
        o.vocab = 300;
        o.held_out = 4;
        o.products = HN_PRODUCTS_F32;
        if (kind == &hn_learn_eagle3) o.clusters = 20;
        if (kind == &hn_learn_eagle3 || kind == &hn_learn_eagle || kind == &hn_learn_dspark || kind == &hn_learn_medusa) check_saving(&o);
    }
}

/* Lists that are longer than what is written at once, so that writing fails in each of them, and a matrix. */
static void test_faults_of_lists(void **state) {
    (void)state;
    enum { VOCAB = 40000, TARGET = 160000, ROWS = 300, COLS = 200 };
    static int32_t ids[VOCAB], order[VOCAB];
    static hn_real numbers[ROWS * COLS];
    const hn_saved_part part = {.name = "fc.weight", .m = hn_mat_of(numbers, ROWS, COLS)};
    for (int i = 0; i < VOCAB; i++) ids[i] = 4 * i, order[i] = (i * 7) % VOCAB;
    for (int i = 0; i < ROWS * COLS; i++) numbers[i] = (hn_real)(i % 91);
    json_t *config = json_pack("{s:s}", "model_type", "llama");
    for (int way = 0; way < 3; way++) {
        const hn_head_to_save h = {.part = &part, .n_parts = 1, .config = config, .ids = ids, .commonest = way == 1 ? ids : NULL,
                                   .ids_name = way == 2 ? "token_map" : NULL, .order = order, .vocab = VOCAB, .target_vocab = TARGET};
        must(hn_head_save(&h, test_path("new"), err));
        head_bytes new = read_head(test_path("new"));
        check_faults(&(to_save){NULL, &h}, NULL, &new);
        free_head(&new);
        unlink(file_in(test_path("new"), 1, ""));
    }
    json_decref(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults_of_saving), cmocka_unit_test(test_faults_of_lists)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
