/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_data.c - see cmd_data.h. */
#include "train/cmd_data.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/folder_lock.h"
#include "base/mem.h"
#include "draft/vocabulary_fit.h"
#include "engine/engine.h"
#include "train/data/identity.h"
#include "train/data/make_texts.h"
#include "train/outputs.h"
#include "train/progress_line.h"

static const double usual_temperatures[] = {0, 0.7};
static const char MADE[] = "made.json";

static void show(void *user, size_t done, size_t of, uint64_t tokens, double seconds) {
    const hn_train_options *o = user;
    if (o->quiet || seconds < 1) return;
    /* rows of earlier runs took no time: the rate is that of the tokens of this one */
    hn_progress_line(done == of, "%zu of %zu rows, %.0f tokens/s", done, of, (double)tokens / seconds);
}

/* ---- the inputs of a run ------------------------------------------------------------------------------------------------ */

/* {"model": number, ...}: what must be the same to continue a run. */
static json_t *describe(uint64_t model, uint64_t speaker, const hn_train_rows *rows, const hn_train_make *how) {
    json_t *t = json_array();
    char number[HN_IDENTITY_ROOM];
    for (int i = 0; i < how->n_temperatures; i++) json_array_append_new(t, json_real(how->temperature[i]));
    json_t *made = json_pack("{s:s, s:I, s:o, s:i, s:i, s:I}", "model", hn_train_identity_text(model, number), "rows",
                             (json_int_t)rows->n, "temperatures", t, "tokens", how->max_tokens, "context", how->context, "seed",
                             (json_int_t)how->seed);
    if (how->speaker) json_object_set_new(made, "speaker", json_string(hn_train_identity_text(speaker, number)));
    return made;
}

/* Compares the description with that of an earlier run. */
static hunch_status compare_made(const char *path, json_t *now, hunch_error *err) {
    json_t *then = json_load_file(path, 0, NULL);
    hunch_status st = HUNCH_OK;
    const char *key;
    json_t *value;
    if (!then) return hn_fail(err, HUNCH_REFUSED, "%s: not JSON: expected the file of an earlier run, or another folder", path);
    json_object_foreach(now, key, value) {
        if (!st && !json_equal(value, json_object_get(then, key)))
            st = hn_fail(err, HUNCH_REFUSED, "%s: made with another %s: expected the same, or another folder", path,
                         strcmp(key, "rows") ? key : "number of rows");
    }
    if (!st && json_object_get(then, "speaker") && !json_object_get(now, "speaker"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: made with a --speaker: expected the same, or another folder", path);
    json_decref(then);
    return st;
}

/* Compares the description, or writes it, for a new run. Owns `now`. */
static hunch_status check_made(const hn_train_options *o, const char *folder, json_t *now, hunch_error *err) {
    char *path = hn_path_join(folder, MADE);
    hunch_status st = path && now ? HUNCH_OK : hn_fail_memory(err, folder, 0);
    const bool learned = hn_folder_holds(folder, "checkpoint.bin"); /* from the texts of this folder: --force does not drop it */
    bool begins = !st && !hn_is_file(path);
    if (!st && !begins) {
        st = compare_made(path, now, err);
        begins = st == HUNCH_REFUSED && o->force && !learned;
    }
    if (begins) {
        st = o->force && !learned ? hn_train_folder_clear(folder, err) : HUNCH_OK; /* what there is besides is of other texts */
        (void)json_object_set_new(now, "name", json_string(o->model)); /* for messages; left out where it is not UTF-8 */
        if (!st) st = hn_train_json_write(now, path, err);
    }
    json_decref(now);
    hn_free(path);
    return st;
}

hunch_status hn_train_data_check_model(const char *folder, const char *model, uint64_t identity, hunch_error *err) {
    char number[HN_IDENTITY_ROOM];
    char *path = hn_path_join(folder, MADE);
    if (!path) return hn_fail_memory(err, folder, 0);
    json_t *made = hn_is_file(path) ? json_load_file(path, 0, NULL) : NULL;
    const char *its = json_string_value(json_object_get(made, "model")), *name = json_string_value(json_object_get(made, "name"));
    const bool other = its && strcmp(its, hn_train_identity_text(identity, number)) != 0;
    hunch_status st = HUNCH_OK;
    if (other)
        st = hn_fail(err, HUNCH_REFUSED,
                     "%s: texts of another model, %s: expected those that %s made (hunch train data), or --force to learn from these",
                     folder, name ? name : its, model);
    json_decref(made);
    hn_free(path);
    return st;
}

/* Opens the model that answers instead of m, in m's tokens. */
static hunch_status open_speaker(const hunch_model *m, const hn_train_options *o, hn_train_make *how, uint64_t *identity,
                                 hunch_error *err) {
    hunch_model_options mo;
    hunch_model_info info;
    if (!o->speaker) return HUNCH_OK;
    hunch_model_options_defaults(&mo);
    mo.threads = o->threads > 0 ? o->threads : 0;
    mo.isa = o->isa;
    hunch_status st = hunch_model_open(&how->speaker, o->speaker, &mo, err);
    if (!st) st = hn_train_identity(o->speaker, identity, err);
    if (st) return st;
    hunch_model_get_info(how->speaker, &info);
    if (how->context > info.context) how->context = info.context;
    const hn_vocabulary ours = {o->model, m->target.arch.vocab, m->tokenizer};
    const hn_vocabulary its = {o->speaker, how->speaker->target.arch.vocab, how->speaker->tokenizer};
    return hn_vocabulary_fit(&ours, &its, err);
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

static hunch_status read_rows(hunch_model *m, const hn_train_options *o, hn_train_rows *rows, const hn_train_make *how,
                              hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < o->leave_out.n; i++) st = hn_train_rows_leave_out(rows, o->leave_out.items[i], err);
    for (int i = 0; !st && i < o->files.n; i++) st = hn_train_rows_read(rows, o->files.items[i], err);
    if (!st && o->self > 0) st = hn_train_rows_of_model(m, rows, (size_t)o->self, how, err);
    if (!st && rows->n == 0)
        st = hn_fail(err, HUNCH_USAGE, "no rows to learn from: expected -f FILE with some, or --self N");
    if (!st && !o->quiet && rows->doubles + rows->near > 0)
        fprintf(stderr, "left out: %zu repeated rows, %zu similar to --leave-out\n", rows->doubles,
                rows->near);
    return st;
}

hunch_status hn_train_data_make(hunch_model *m, const hn_train_options *o, const char *folder, const volatile int *stop,
                                hunch_error *err) {
    const bool usual = o->temperatures.n == 0;
    hn_train_make how = {.temperature = usual ? usual_temperatures : o->temperatures.items,
                         .n_temperatures = usual ? 2 : o->temperatures.n,
                         .max_tokens = o->n > 0 ? o->n : 320,
                         .seed = o->seed > 0 ? (uint64_t)o->seed : 0,
                         .parallel = o->parallel > 0 ? o->parallel : 24,
                         .progress = show,
                         .user = (void *)(uintptr_t)o,
                         .stop = stop};
    hn_train_rows rows = {0};
    hunch_model_info info;
    uint64_t model = 0, speaker = 0;
    hunch_model_get_info(m, &info);
    if (!info.has_tokenizer)
        return hn_fail(err, HUNCH_REFUSED, "%s has no tokenizer: expected a model with one",
                       o->model);
    how.context = o->context > 0 ? o->context : 2048;
    if (how.context > info.context) how.context = info.context;
    char *texts = hn_path_join(folder, "texts.jsonl");
    hunch_status st = texts ? HUNCH_OK : hn_fail_memory(err, folder, 0);
    if (!st) st = open_speaker(m, o, &how, &speaker, err);
    if (!st) st = read_rows(m, o, &rows, &how, err);
    if (!st) st = hn_train_identity(o->model, &model, err);
    if (!st) st = check_made(o, folder, describe(model, speaker, &rows, &how), err);
    if (!st) st = hn_train_texts_make(m, &rows, &how, texts, err);
    hn_train_rows_fini(&rows);
    hunch_model_close(&how.speaker);
    hn_free(texts);
    return st;
}

hunch_status hn_train_data(hunch_model *m, const hn_train_options *o, const volatile int *stop, hunch_error *err) {
    int lock;
    hunch_status st = hn_train_folder_take(o->output, &lock, err);
    if (!st) st = hn_train_data_make(m, o, o->output, stop, err);
    hn_folder_unlock(&lock);
    return st;
}
