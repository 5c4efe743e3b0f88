/* SPDX-License-Identifier: Apache-2.0 */
/* outputs.c - see outputs.h. Files are compared by device and inode, so that links and other spellings of a path are found. */
#include "train/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <hunch/hunch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_out.h"
#include "base/folder_lock.h"
#include "base/mem.h"
#include "engine/program_files.h"
#include "draft/shape/ngram_trie.h"
#include "format/find_caches.h"
#include "train/data/features.h"
#include "train/data/identity.h"

enum { MOST = 12, ROOM = PATH_MAX, LONGEST = 2900 };

static const char *const head_files[] = {"model.safetensors", "config.json", "tokens.json"};
enum { HEAD_FILES = sizeof head_files / sizeof *head_files };

typedef struct outputs {
    const hn_train_options *o;
    char path[MOST][ROOM]; /* the files that are written */
    int n;
    const char *reader; /* the flag whose files are compared with them */
    hunch_status status;
    hunch_error *err;
} outputs;

bool hn_train_head_is_file(const hn_train_options *o) {
    return o->format ? !strcmp(o->format, "gguf") : hn_ends_with(o->output, ".gguf");
}

HN_PRINTF(2, 3) static const char *add(outputs *w, const char *format, ...) {
    char *to = w->path[w->n++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(to, ROOM, format, args);
    va_end(args);
    return to;
}

static void add_head_files(outputs *w, const char *folder, const char *within) {
    for (int i = 0; i < HEAD_FILES; i++) (void)add(w, "%s%s/%s", folder, within, head_files[i]);
}

/* ---- no output is an input ------------------------------------------------------------------------------------------------ */

static void compare(void *user, const char *input) {
    outputs *w = user;
    for (int i = 0; i < w->n && !w->status; i++) {
        char partial[ROOM + 8];
        snprintf(partial, sizeof partial, "%s.partial", w->path[i]);
        const bool first = hn_same_file(input, partial); /* its name until it is complete */
        if (first || hn_same_file(input, w->path[i]))
            w->status = hn_fail(w->err, HUNCH_USAGE, "%s would be written over a file that the training reads (%s): expected another -o",
                                first ? partial : w->path[i], w->reader);
    }
}

static void compare_model(outputs *w, const char *reader, const char *model) {
    w->reader = reader;
    if (!model || w->status) return;
    const hunch_status st = hn_model_files(model, compare, w, w->err);
    if (!w->status) w->status = st;
}

static void compare_list(outputs *w, const char *reader, const tool_texts *list) {
    w->reader = reader;
    for (int i = 0; i < list->n; i++) {
        char texts[ROOM];
        if (snprintf(texts, sizeof texts, "%s/texts.jsonl", list->items[i]) >= ROOM) continue; /* too long for the system, too */
        compare(w, hn_is_folder(list->items[i]) ? texts : list->items[i]);
    }
}

static hunch_status compare_inputs(outputs *w) {
    bool may_clash = false; /* headers of models are read only then */
    for (int i = 0; i < w->n; i++) {
        char partial[ROOM + 8];
        snprintf(partial, sizeof partial, "%s.partial", w->path[i]);
        may_clash = may_clash || hn_is_file(w->path[i]) || hn_is_file(partial);
    }
    if (!may_clash) return HUNCH_OK;
    compare_list(w, "-f", &w->o->files);
    compare_list(w, "--leave-out", &w->o->leave_out);
    compare_model(w, "MODEL", w->o->model);
    compare_model(w, "--init", w->o->init);
    compare_model(w, "--speaker", w->o->speaker);
    return w->status;
}

/* ---- what is there already ------------------------------------------------------------------------------------------------ */

/* An empty file or folder is nothing that can be lost. */
static bool holds_anything(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return false;
    if (!S_ISDIR(st.st_mode)) return S_ISREG(st.st_mode) && st.st_size > 0;
    DIR *d = opendir(path);
    bool any = d == NULL;
    for (const struct dirent *e; d && (e = readdir(d));) any = any || (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."));
    if (d) (void)closedir(d);
    return any;
}

static hunch_status not_ours(const char *path, hunch_error *err) {
    return hn_fail(err, HUNCH_USAGE, "%s is there already and is not of this training: expected another -o, or --force, which replaces it",
                   path);
}

static hunch_status expect_folder(const char *path, hunch_error *err) {
    return hn_exists(path) && !hn_is_folder(path) ? hn_fail(err, HUNCH_FAILED, "%s is not a folder: expected one, or a new name", path)
                                                  : HUNCH_OK;
}

static hunch_status expect_file(const char *path, hunch_error *err) {
    char *place;
    const hunch_status st = hn_out_resolve(path, &place, err);
    if (!st) hn_free(place);
    return st;
}

/* made.json is written before the texts: without it they are somebody else's. */
static hunch_status check_texts(const outputs *w, const char *folder) {
    char texts[ROOM];
    snprintf(texts, sizeof texts, "%.*s/texts.jsonl", LONGEST + 20, folder);
    return !w->o->force && holds_anything(texts) && !hn_folder_holds(folder, "made.json") ? not_ours(texts, w->err) : HUNCH_OK;
}

static hunch_status check_trie(const outputs *w) {
    hn_map map;
    const char *path = w->o->output;
    hunch_status st = expect_file(path, w->err);
    if (st || w->o->force || !holds_anything(path)) return st;
    st = hn_map_open(&map, path, w->err);
    if (st) return st;
    const bool trie = map.size >= 8 && !memcmp(map.data, HN_TRIE_MAGIC, 8);
    hn_map_close(&map);
    return trie ? HUNCH_OK : not_ours(path, w->err);
}

/* A training that wrote a record, or a checkpoint, is looked at when the model is known (hn_train_record_check). */
static hunch_status check_head(const outputs *w, const char *work, const char *picture) {
    char last[ROOM];
    const char *head = w->o->output;
    hunch_status st = hn_train_head_is_file(w->o) ? expect_file(head, w->err) : expect_folder(head, w->err);
    if (!st) st = expect_folder(work, w->err);
    if (!st) st = expect_file(picture, w->err);
    if (!st) st = check_texts(w, work);
    if (st || w->o->force || hn_folder_holds(work, "training.json") || hn_folder_holds(work, "checkpoint.bin")) return st;
    snprintf(last, sizeof last, "%.*s/last", LONGEST + 20, work);
    const char *const outs[] = {head, picture, last};
    for (int i = 0; i < 3; i++)
        if (holds_anything(outs[i])) return not_ours(outs[i], w->err);
    return HUNCH_OK;
}

static bool texts_are_made(const hn_train_options *o) {
    return o->files.n == 0 || !hn_is_folder(o->files.items[0]);
}

static hunch_status check_training(outputs *w) {
    char work[ROOM];
    snprintf(work, sizeof work, "%.*s.training", LONGEST, w->o->output);
    if (w->o->features && hn_same_file(w->o->features, work))
        return hn_fail(w->err, HUNCH_USAGE, "--features %s: is the training's own folder: expected another, or no --features",
                       w->o->features);
    const char *picture = add(w, "%s.svg", w->o->output);
    if (hn_train_head_is_file(w->o))
        (void)add(w, "%s", w->o->output);
    else
        add_head_files(w, w->o->output, "");
    add_head_files(w, work, "/last");
    (void)add(w, "%s/training.json", work);
    (void)add(w, "%s/checkpoint.bin", work);
    if (texts_are_made(w->o)) {
        (void)add(w, "%s/texts.jsonl", work);
        (void)add(w, "%s/made.json", work);
    }
    const hunch_status st = compare_inputs(w);
    return st ? st : check_head(w, work, picture);
}

static hunch_status check_data(outputs *w) {
    (void)add(w, "%s/texts.jsonl", w->o->output);
    (void)add(w, "%s/made.json", w->o->output);
    hunch_status st = compare_inputs(w);
    if (!st) st = expect_folder(w->o->output, w->err);
    return st ? st : check_texts(w, w->o->output);
}

hunch_status hn_train_outputs_check(const hn_train_options *o, const hn_learn_kind *kind, hunch_error *err) {
    if (strlen(o->output) > LONGEST)
        return hn_fail(err, HUNCH_USAGE, "-o: a path of %zu bytes, expected at most %d", strlen(o->output), LONGEST);
    outputs *w = hn_zalloc(1, sizeof *w);
    if (!w) return hn_fail_memory(err, "the names of files", sizeof *w);
    w->o = o;
    w->err = err;
    hunch_status st;
    if (kind) {
        st = check_training(w);
    } else if (!strcmp(o->positional, "data")) {
        st = check_data(w);
    } else {
        (void)add(w, "%s", o->output);
        st = compare_inputs(w);
        if (!st) st = check_trie(w);
    }
    hn_free(w);
    return st;
}

/* ---- the folder of a run -------------------------------------------------------------------------------------------------- */

hunch_status hn_train_folder_take(const char *folder, int *lock, hunch_error *err) {
    hn_lock got;
    *lock = -1;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", folder, strerror(errno));
    const hunch_status st = hn_folder_lock(folder, lock, &got, err);
    if (st || got != HN_LOCK_BUSY) return st; /* without locks of folders it is left to the user, as over some networks */
    hn_folder_unlock(lock);
    return hn_fail(err, HUNCH_REFUSED, "%s: another process writes there: expected it to end first, or another -o", folder);
}

static hunch_status remove_file(const char *path, bool *there, hunch_error *err) {
    *there = unlink(path) == 0;
    return *there || errno == ENOENT ? HUNCH_OK : hn_fail(err, HUNCH_FAILED, "%s: cannot be removed: %s", path, strerror(errno));
}

hunch_status hn_train_folder_clear(const char *folder, hunch_error *err) {
    static const char *const names[] = {"checkpoint.bin", "training.json", "texts.jsonl", "made.json"};
    hunch_status st = HUNCH_OK;
    bool there = true;
    for (size_t i = 0; !st && i < sizeof names / sizeof *names; i++) {
        char *path = hn_path_join(folder, names[i]);
        st = path ? remove_file(path, &there, err) : hn_fail_memory(err, folder, 0);
        hn_free(path);
    }
    there = true;
    for (size_t k = 0; !st && there; k++) {
        char *path = hn_features_shard_path(folder, k);
        st = path ? remove_file(path, &there, err) : hn_fail_memory(err, folder, 0);
        hn_free(path);
    }
    return st;
}

/* ---- its record ----------------------------------------------------------------------------------------------------------- */

hunch_status hn_train_json_write(const json_t *j, const char *path, hunch_error *err) {
    char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
    hn_out *out = NULL;
    hunch_status st = text ? hn_out_open(&out, path, false, err) : hn_fail_memory(err, path, 0);
    if (!st) st = hn_out_write(out, text, strlen(text), err);
    if (!st) st = hn_out_write(out, "\n", 1, err);
    if (!st)
        st = hn_out_finish(&out, err);
    else
        hn_out_abort(&out);
    free(text);
    return st;
}

static hunch_status other_training(const char *path, const char *kind, uint64_t model, hunch_error *err) {
    char number[HN_IDENTITY_ROOM];
    json_t *then = json_load_file(path, 0, NULL);
    const char *its = json_string_value(json_object_get(then, "kind")), *of = json_string_value(json_object_get(then, "model")),
               *name = json_string_value(json_object_get(then, "name"));
    hunch_status st = HUNCH_OK;
    if (!its || !of)
        st = hn_fail(err, HUNCH_REFUSED, "%s: not the record of a training: expected another name for the head, or --force", path);
    else if (strcmp(its, kind) != 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: a training of a head of kind %s: expected one of %s, another name for the head, or --force",
                     path, its, kind);
    else if (strcmp(of, hn_train_identity_text(model, number)) != 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: a training for another model (%s): expected the same, another name for the head, or --force",
                     path, name ? name : of);
    json_decref(then);
    return st;
}

hunch_status hn_train_record_check(const char *folder, const char *kind, uint64_t model, bool force, hunch_error *err) {
    char *path = hn_path_join(folder, "training.json");
    if (!path) return hn_fail_memory(err, folder, 0);
    hunch_status st = hn_is_file(path) ? other_training(path, kind, model, err) : HUNCH_OK;
    hn_free(path);
    return st == HUNCH_REFUSED && force ? hn_train_folder_clear(folder, err) : st;
}

hunch_status hn_train_record_write(const char *folder, const char *kind, uint64_t model, const char *name, hunch_error *err) {
    char number[HN_IDENTITY_ROOM];
    char *path = hn_path_join(folder, "training.json");
    json_t *j = json_pack("{s:s, s:s}", "kind", kind, "model", hn_train_identity_text(model, number));
    if (j) (void)json_object_set_new(j, "name", json_string(name)); /* left out where it is not UTF-8 */
    const hunch_status st = path ? hn_train_json_write(j, path, err) : hn_fail_memory(err, folder, 0);
    json_decref(j);
    hn_free(path);
    return st;
}
