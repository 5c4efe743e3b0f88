/* SPDX-License-Identifier: Apache-2.0 */
/* on_policy_test.c - a draft model that learns from its own texts: they are what the engine says with the folder of its weights, after
 * the stored prompts; their labels are the target's distributions of them; about the share of each batch is its own. The bits are the same
 * for any number of threads and interruptions, where features are read from, and after steps that failed; damaged checkpoints are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "model/kv_groups.h"
#include "model/pass.h"
#include "train/learn/learn_private.h"
#include "train/data/make_texts.h"
#include "train/learn/measure.h"
#include "train/data/shared_features.h"
#include "learner.h" /* last: it calls a type "bytes" */

enum { KEPT = 300, MOST = 160 };
static char folder[600];

/* The model's own stories; some prompts have several tokens. */
static int setup(void **state) {
    (void)state;
    static const double temperature[] = {0, 1};
    static const char *const begin[] = {"Once upon a time, there was a",
                                        "Lily and Ben",
                                        "The sun",
                                        "Tim had a dog",
                                        "One day, Mom said",
                                        "A big bird",
                                        "In the park",
                                        "Max"};
    const hn_train_make how = {
        .temperature = temperature, .n_temperatures = 2, .max_tokens = 60, .context = 128, .parallel = 8, .seed = 5};
    hn_train_rows rows = {0};
    model = open_model(data_path(STORIES), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < 8; i++) must(hn_train_rows_add_prompt(&rows, begin[i], err));
    must(hn_train_texts_make(model, &rows, &how, test_path("texts.jsonl"), err));
    open_features();
    hn_train_rows_fini(&rows);
    snprintf(folder, sizeof folder, "%s", test_path("spoken"));
    return 0;
}

/* Four batches an epoch or so, for three of which it speaks at once. */
static hn_learn_options options(double share) {
    hn_learn_options o = hn_learn_usual(&hn_learn_student, &model->target.arch, features.tokens);
    o.steps = 8;
    o.rows = 256;
    o.vocab = KEPT;
    o.held_out = 4;
    o.layers = 2;
    o.products = HN_PRODUCTS_F32;
    o.on_policy = share;
    o.refresh = 3;
    o.parallel = 5;
    o.spoken_in = folder;
    return o;
}

static void steps(hn_learner *l, int n) {
    double losses[HN_MOST_STEPS];
    int tokens;
    for (int i = 0; i < n; i++) must(hn_learner_step(l, losses, &tokens, err));
}

/* ---- what it learns from ------------------------------------------------------------------------------------------------ */

/* By the engine alone, one prompt at a time: a draft model's answer, cut at the target's end tokens. */
static int answered(hunch_engine *e, const int32_t *prompt, int n, int most, int32_t *out) {
    hunch_session *s = NULL;
    hunch_request r;
    hunch_session_state st;
    hunch_request_defaults(&r, model);
    r.prompt = prompt;
    r.n_prompt = (size_t)n;
    r.max_tokens = most;
    r.sampling = (hunch_sampling){.top_p = 1};
    must(hunch_session_open(&s, e, &r, err));
    must(hunch_engine_run(e, err));
    hunch_session_get(s, &st);
    int length = 0;
    while (length < (int)st.n_tokens && (length == 0 || !hn_tokenizer_is_end(model->tokenizer, out[length - 1]))) {
        out[length] = st.tokens[length];
        length++;
    }
    hunch_session_close(&s);
    return length;
}

/* The text in place of a piece: the stored prompt, then its own tokens within the piece; at temperature 0 those of the engine. */
static int check_said(const hn_learner *l, size_t place, hunch_engine *e) {
    const hn_learn_piece *p = &l->all[l->order[place]];
    const hn_feature_text *t = &features.text[p->text];
    const hn_train_text *said = &l->spoken.said.item[hn_on_policy_text(l, place)];
    const int prompt = t->own > p->from ? t->own : p->from + 1, behind = p->from + p->rows + 2,
              most = behind < t->n ? behind : t->n;
    int32_t want[MOST];
    assert_int_equal(said->own, t->own);
    assert_memory_equal(said->ids, t->ids, (size_t)prompt * sizeof *t->ids);
    assert_true(said->n > prompt && said->n <= most);
    for (int i = prompt; i + 1 < said->n; i++) assert_false(hn_tokenizer_is_end(model->tokenizer, said->ids[i]));
    if (e) {
        assert_int_equal(answered(e, t->ids, prompt, most - prompt, want), said->n - prompt);
        assert_memory_equal(want, said->ids + prompt, (size_t)(said->n - prompt) * sizeof *want);
    }
    return memcmp(said->ids, t->ids, (size_t)said->n * sizeof *t->ids) != 0;
}

static void check_all_said(double temperature, int longest) {
    hn_learn_options o = options(1);
    int others = 0;
    o.policy_temperature = temperature;
    o.longest = longest;
    hn_learner *l = open_learner_of(model, &features, &o);
    steps(l, 1); /* other weights than at the beginning */
    hn_on_policy_close(&l->spoken);
    must(hn_on_policy_speak(l, err));
    assert_true(l->spoken.from == l->at && l->spoken.to > l->at && l->spoken.said.n == l->spoken.to - l->at);
    must(hn_learner_save_head(l, test_path("present"), err));
    same_files(test_path("present/model.safetensors"), test_path("spoken/model.safetensors"));
    hunch_model *student = open_model(folder, "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine_options eo;
    hunch_engine_options_defaults(&eo);
    eo.context = MOST;
    hunch_engine *e = open_engine_with(student, "none", eo);
    for (size_t place = l->spoken.from; place < l->spoken.to; place++)
        others += check_said(l, place, temperature > 0 ? NULL : e);
    assert_true(others > (int)l->spoken.said.n / 2);
    hunch_engine_close(&e);
    hunch_model_close(&student);
    hn_learner_close(&l);
}

static void test_texts(void **state) {
    (void)state;
    check_all_said(0, 512);
    check_all_said(0, 24); /* pieces */
    check_all_said(1, 512);
}

/* The distribution of each token after ids[0] .. ids[n - 1] among the kept ones, by the target's own passes and logits: [n][KEPT]. */
static void dists_of(const int32_t *ids, int n, const int32_t *kept, double *dist) {
    hn_cache_group group[HN_MAX_GROUPS];
    const int groups = hn_kv_groups(model->target.run, HN_BF16, group, NULL), id = 0;
    hn_cache *cache;
    hn_runner *runner;
    group[0].page_rows = 16;
    must(hn_cache_open(&cache, model->target.backend, group, groups, 1, MOST, 0, err));
    must(hn_runner_open(&runner, &model->target, cache, 0, MOST, NULL, err));
    hn_cache_seq_begin(cache, id);
    for (int i = 0; i < n; i++, dist += KEPT) {
        const hn_row row = {.token = ids[i], .parent = -1, .logits = HN_LOGITS_ALL};
        double sum = 0;
        must(hn_pass_run(runner, &row, 1, &id, 1, err));
        const float *logits = hn_pass_logits(runner, 0);
        for (int c = 0; c < KEPT; c++) sum += dist[c] = exp((double)logits[kept[c]]);
        for (int c = 0; c < KEPT; c++) dist[c] /= sum;
        hn_cache_commit(cache, id, 0, NULL, 1);
    }
    hn_cache_seq_end(cache, id);
    hn_runner_close(&runner);
    hn_cache_close(&cache);
}

/* Rows [row, ..) of the batch are of this text from `from` on: tokens, weights, and labels, which are nobody else's: *far is the sum of
 * their distances to the distributions one place on. */
static void check_rows(const hn_learner *l, const hn_net_batch *b, int row, const int32_t *ids, int n, int own,
                       int from, int rows, int *labels, double *far) {
    static double dist[MOST * KEPT];
    dists_of(ids, n, l->tokens.ids, dist);
    for (int i = from; i < from + rows; i++, row++) {
        double near = 0, other = 0;
        assert_int_equal(b->token[row], ids[i + 1]);
        assert_int_equal(b->weight[row] > 0, i + 2 < n && i + 2 >= own);
        if (!(b->weight[row] > 0)) continue;
        const hn_real *p = hn_mat_row(b->dist, b->dist_row[row]);
        for (int c = 0; c < KEPT; c++) {
            near += fabs((double)p[c] - dist[(size_t)(i + 1) * KEPT + (size_t)c]) / 2;
            other += fabs((double)p[c] - dist[(size_t)i * KEPT + (size_t)c]) / 2;
        }
        if (!(near < 0.05)) fail_msg("row %d: a label %g from the target's distribution", row, near);
        ++*labels;
        *far += other;
    }
}

/* Batches of one epoch, some pieces its own and some not. */
static void check_labels(double share, int longest, double temperature) {
    hn_learn_options o = options(share);
    o.longest = longest;
    o.policy_temperature = temperature;
    int ended = 0, labels = 0, n_own = 0, n_all = 0;
    double far = 0;
    hn_learner *l = open_learner_of(model, &features, &o);
    while (l->at < l->n_all) {
        hn_learn_made made;
        hn_net_batch b;
        const size_t at = l->at;
        int own = 0;
        must(hn_learn_next_batch(l, &made, &b, err));
        assert_int_equal(b.texts, l->at - at);
        for (int k = 0; k < b.texts; k++) {
            const hn_learn_piece *p = &l->all[l->order[at + (size_t)k]];
            const hn_feature_text *t = &features.text[p->text];
            const int text = hn_on_policy_text(l, at + (size_t)k), rows = b.start[k + 1] - b.start[k];
            own += text >= 0;
            assert_int_equal(b.before[k], t->ids[p->from]);
            if (text < 0)
                check_rows(l, &b, b.start[k], t->ids, t->n, t->own, p->from, p->rows, &labels, &far);
            else {
                const hn_train_text *said = &l->spoken.said.item[text];
                assert_int_equal(rows, said->n - 1 - p->from < p->rows ? said->n - 1 - p->from : p->rows);
                check_rows(l, &b, b.start[k], said->ids, said->n, said->own, p->from, rows, &labels, &far);
                ended += rows < p->rows;
                for (int r = b.start[k]; r < b.start[k + 1]; r++) assert_int_equal(b.label[r], -1);
            }
        }
        assert_true(fabs(own - share * b.texts) < 1);
        n_own += own;
        n_all += b.texts;
    }
    assert_int_equal(ended > 0, temperature > 1);
    assert_true(labels > 100 && far / labels > 0.3);
    print_message("share %g, pieces of %d: %d of %d its own, %d ended early; %d labels, %.2f from those beside them\n",
                  share, longest, n_own, n_all, ended, labels, far / labels);
    hn_learner_close(&l);
}

static void test_labels(void **state) {
    (void)state;
    check_labels(1, 512, 1);
    check_labels(0.5, 512, 1);
    check_labels(0.3, 24, 1);
    check_labels(0, 512, 1);
    check_labels(1, 512, 10); /* end tokens occur, which are as likely as others */
}

/* It becomes able to draft what the target says. */
static void test_learns(void **state) {
    (void)state;
    hn_learn_options o = options(0.5);
    hn_train_acceptance before, behind;
    char spec[700];
    o.rate = 2e-3;
    o.steps = light() ? 10 : 120;
    o.refresh = 8;
    o.held_out = 0;
    o.vocab = 512;
    hn_learner *l = open_learner_of(model, &features, &o);
    snprintf(spec, sizeof spec, "model:%s,depth=3", test_path("student"));
    must(hn_learner_save_head(l, test_path("student"), err));
    must(hn_train_measure(model, spec, texts.item, 8, 50, &before, err));
    steps(l, o.steps);
    must(hn_learner_save_head(l, test_path("student"), err));
    must(hn_train_measure(model, spec, texts.item, 8, 50, &behind, err));
    print_message("accepted %.2f before, %.2f %.2f %.2f behind\n", before.position[0], behind.position[0],
                  behind.position[1], behind.position[2]);
    assert_true(behind.position[0] > before.position[0]);
    if (!light()) assert_true(before.position[0] < 0.3 && behind.position[0] > 0.7);
    hn_learner_close(&l);
}

/* ---- the same bits ------------------------------------------------------------------------------------------------------ */

static void save(hn_learner *l, const char *checkpoint) {
    must(hn_learner_save(l, test_path(checkpoint), err));
    hn_learner_close(&l);
}

static void test_same_bits(void **state) {
    (void)state;
    const hn_learn_options o = options(0.5);
    hn_learner *l = open_learner_of(model, &features, &o);
    steps(l, o.steps);
    assert_true(l->epoch > 0 && l->spoken.said.n > 0);
    save(l, "whole");
    for (int threads = 1; threads <= 3; threads += 2) {
        hunch_model *m = open_model(data_path(STORIES), "best", threads, HUNCH_PRECISION_NATIVE);
        hn_learn_options of = o;
        of.parallel = threads; /* nor do they depend on this */
        l = open_learner_of(m, &features, &of);
        steps(l, o.steps);
        save(l, "other");
        same_files(test_path("whole"), test_path("other"));
        hunch_model_close(&m);
    }
    for (int ended = 0; ended <= o.steps; ended += light() ? 4 : 1) {
        l = open_learner_of(model, &features, &o);
        steps(l, ended);
        must(hn_learner_save(l, test_path("checkpoint"), err));
        if (ended < o.steps) steps(l, 1); /* lost by the interruption */
        hn_learner_close(&l);
        l = open_learner_of(model, &features, &o);
        must(hn_learner_load(l, test_path("checkpoint"), err));
        steps(l, o.steps - ended);
        save(l, "other");
        same_files(test_path("whole"), test_path("other"));
    }
}

/* Wherever the states of the stored texts are; shared ones are among those of others. */
static void test_other_features(void **state) {
    (void)state;
    const hn_learn_options o = options(0.5);
    hn_features_read other[2];
    must(hn_features_online(&other[0], &model->target, 7, &texts, states, 4, err));
    (void)mkdir(test_path("shared"), 0700);
    static const int more[] = {1, 2, 3, 4, HN_FEATURE_POST_NORM};
    must(hn_features_share(&other[1], &model->target, 7, &texts, more, 5, test_path("shared"), NULL, NULL, NULL, err));
    hn_features_close(&other[1]);
    must(hn_features_share(&other[1], &model->target, 7, &texts, states, 4, test_path("shared"), NULL, NULL, NULL, err));
    for (int i = 0; i < 2; i++) {
        hn_learner *l = open_learner_of(model, &other[i], &o);
        steps(l, o.steps);
        save(l, "other");
        same_files(test_path("whole"), test_path("other"));
        hn_features_close(&other[i]);
    }
}

/* Stopped while it speaks it has done nothing, and continues. */
static void test_stopped(void **state) {
    (void)state;
    hn_learn_options o = options(0.5);
    double losses[HN_MOST_STEPS];
    int tokens, stop = 0;
    hunch_error why;
    o.stop = &stop;
    hn_learner *l = open_learner_of(model, &features, &o);
    hunch_status st = HUNCH_OK;
    int done = 0;
    while (!st && done < o.steps) {
        st = hn_learner_step(l, losses, &tokens, &why);
        done += !st;
        stop = done >= 2;
    }
    assert_int_equal(st, HUNCH_CANCELLED);
    assert_int_equal(hn_learner_step_number(l), done);
    assert_true(done >= 2);
    save(l, "stopped");
    stop = 0;
    l = open_learner_of(model, &features, &o);
    must(hn_learner_load(l, test_path("stopped"), err));
    steps(l, o.steps - done);
    save(l, "other");
    same_files(test_path("whole"), test_path("other"));
}

/* ---- errors ------------------------------------------------------------------------------------------------------------- */

/* A step that fails, or a checkpoint that cannot be read or written, says why; tried again it goes on, with the same bits. */
static int fails_at(enum hn_fault_kind what, int64_t at, int64_t *calls) {
    const hn_learn_options o = options(1);
    hunch_error why = {.message = ""};
    double losses[HN_MOST_STEPS];
    int tokens, failures = 0;
    hn_learner *l = open_learner_of(model, &features, &o);
    for (int step = 0; step < 2; step++) {
        hn_fault_arm(what, at < 0 ? INT64_MAX : at, false);
        const hunch_status st =
            step ? hn_learner_load(l, test_path("faults"), &why) : hn_learner_step(l, losses, &tokens, &why);
        if (at < 0) calls[step] = (int64_t)hn_fault_count(what);
        hn_fault_arm(what, -1, false);
        if (st && (at < 0 || !*why.message)) fail_msg("call %d of kind %d: %s", (int)at, (int)what, why.message);
        failures += st != HUNCH_OK;
        if (st && step) must(hn_learner_load(l, test_path("faults"), err));
        if (st && !step) {
            assert_int_equal(hn_learner_step_number(l), 0);
            steps(l, 1);
        }
        hn_fault_arm(what, at < 0 || step ? -1 : at, false);
        if (!hn_learner_save(l, test_path(step ? "faults.other" : "faults"), &why)) {
            hn_fault_arm(what, -1, false);
        } else {
            hn_fault_arm(what, -1, false);
            failures++;
            must(hn_learner_save(l, test_path("faults"), err));
        }
    }
    save(l, "faults.other");
    same_files(test_path("one.step"), test_path("faults.other"));
    return failures;
}

static void test_faults(void **state) {
    (void)state;
    static const enum hn_fault_kind all[] = {HN_FAULT_ALLOC, HN_FAULT_READ, HN_FAULT_WRITE};
    const hn_learn_options o = options(1);
    hn_learner *l = open_learner_of(model, &features, &o);
    steps(l, 1);
    save(l, "one.step");
    for (size_t f = 0; f < sizeof all / sizeof *all; f++) {
        int64_t calls[2] = {0}, most = light() ? 5 : 12;
        int failures = fails_at(all[f], -1, calls), tried = 0;
        assert_int_equal(failures, 0);
        for (int64_t at = 0; at < calls[0]; at += calls[0] / most + 1, tried++) failures += fails_at(all[f], at, NULL);
        for (int64_t at = 0; at < calls[1] && at < most; at++, tried++) failures += fails_at(all[f], at, NULL);
        print_message("kind %d: %d and %d calls, %d failures of %d\n", (int)all[f], (int)calls[0], (int)calls[1],
                      failures, tried);
        assert_true(failures >= tried / 2);
    }
}

static void refused(hn_learner *l, const char *path, const char *says) {
    hunch_error why;
    assert_int_equal(hn_learner_load(l, test_path(path), &why), HUNCH_REFUSED);
    if (!strstr(why.message, says)) fail_msg("%s", why.message);
}

/* Only the same share, temperature and time, and a tail that is whole and of these pieces. */
static void test_other_checkpoints(void **state) {
    (void)state;
    const hn_learn_options o = options(1);
    hn_learn_options other[] = {o, o, o, o};
    static const char *const says[] = {"has --on-policy 0: expected --on-policy 1,", "has --on-policy 0.75: expected --on-policy 1,",
                                       "has --policy-temperature 0.5: expected", "has --refresh 2: expected"};
    other[0].on_policy = 0;
    other[1].on_policy = 0.75;
    other[2].policy_temperature = 0.5;
    other[3].refresh = 2;
    hn_learner *l = open_learner_of(model, &features, &o);
    steps(l, 1);
    const size_t tail = 48 + (l->spoken.said.tokens + l->spoken.said.n) * 4,
                 last = (size_t)l->spoken.said.item[l->spoken.said.n - 1].n;
    save(l, "tail");
    for (int i = 0; i < 4; i++) {
        l = open_learner_of(model, &features, &other[i]);
        refused(l, "tail", says[i]);
        if (i == 0) save(l, "none");
        if (i > 0) hn_learner_close(&l);
    }
    l = open_learner_of(model, &features, &o);
    refused(l, "none", "with --on-policy 0, this one has --on-policy 1:");
    bytes b = test_file_read(test_path("tail"));
    unsigned char *at = (unsigned char *)(uintptr_t)b.at;
    for (size_t cut = 1; cut <= tail; cut += cut < 60 ? 1 : 37) {
        test_file_write(test_path("damaged"), at, b.size - cut);
        refused(l, "damaged", "a damaged checkpoint");
    }
    const size_t first = b.size - tail + 48; /* the first text's number of tokens */
    const size_t places[] = {b.size - 1,           first + 3, first, first + 4, b.size - tail + 32, b.size - tail + 40,
                             b.size - 4 * last - 4};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        at[places[i]] ^= 0x80;
        test_file_write(test_path("damaged"), at, b.size);
        refused(l, "damaged", "a damaged checkpoint");
        at[places[i]] ^= 0x80;
    }
    must(hn_learner_load(l, test_path("tail"), err));
    steps(l, 1);
    bytes_free(&b);
    hn_learner_close(&l);
}

static void test_only_draft_models(void **state) {
    (void)state;
    hunch_error why;
    for (int i = 0; hn_learn_kind_at(i); i++) {
        hn_learn_options o = options(0.5);
        hn_learner *l = NULL;
        o.kind = hn_learn_kind_at(i);
        if (o.kind == &hn_learn_student) continue;
        assert_int_equal(hn_learner_open(&l, model, data_path(STORIES), &features, &o, &why), HUNCH_USAGE);
        if (!strstr(why.message, "expected a draft model")) fail_msg("%s", why.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_labels),
                                       cmocka_unit_test(test_learns),
                                       cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_other_features),
                                       cmocka_unit_test(test_stopped),
                                       cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_other_checkpoints),
                                       cmocka_unit_test(test_only_draft_models)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
