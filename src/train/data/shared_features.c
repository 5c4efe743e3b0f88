/* SPDX-License-Identifier: Apache-2.0 */
/* shared_features.c - see shared_features.h. */
#include "train/data/shared_features.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/folder_lock.h"
#include "base/mem.h"
#include "model/pass.h"

enum { LOOK_AGAIN_NS = 100 * 1000 * 1000 };

/* Alone in the folder: a second writer would go on behind the same record. *fd: for hn_folder_unlock. */
static hunch_status lock_folder(const char *folder, int *fd, const volatile int *stop, hunch_error *err) {
    hn_lock got = HN_LOCK_BUSY;
    hunch_status st;
    while (!(st = hn_folder_lock(folder, fd, &got, err)) && got == HN_LOCK_BUSY) {
        const struct timespec pause = {0, LOOK_AGAIN_NS};
        hn_folder_unlock(fd);
        if (stop && *stop) return hn_fail(err, HUNCH_CANCELLED, "interrupted while another process takes features in %s", folder);
        (void)nanosleep(&pause, NULL);
    }
    return st || got == HN_LOCK_HELD
               ? st
               : hn_fail(err, HUNCH_FAILED, "%s: cannot be locked: expected a folder on a file system that has locks", folder);
}

/* The header of the first shard; it stays as it is where there is none, or none that is whole. */
static hunch_status read_header(const char *path, hn_shard_header *have, hunch_error *err) {
    hn_map map;
    if (!hn_is_file(path)) return HUNCH_OK;
    const hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    if (map.size >= sizeof *have) memcpy(have, map.data, sizeof *have);
    hn_map_close(&map);
    return HUNCH_OK;
}

static void name_state(int boundary, char out[24]) {
    if (boundary == HN_FEATURE_POST_NORM)
        snprintf(out, 24, "the last one");
    else
        snprintf(out, 24, "%d", boundary);
}

/* columns [n_states]: where among those of `have` each state is. */
static hunch_status find_states(const hn_shard_header *have, const int *states, int n_states, int32_t *columns,
                                const char *folder, hunch_error *err) {
    for (int i = 0; i < n_states; i++) {
        uint32_t k = 0;
        while (k < have->n_states && have->boundary[k] != states[i]) k++;
        columns[i] = (int32_t)k;
        if (k < have->n_states) continue;
        char wanted[24], kept[24 * HN_TRAIN_MOST_STATES] = "";
        name_state(states[i], wanted);
        for (k = 0; k < have->n_states; k++) {
            const size_t at = strlen(kept);
            if (k) snprintf(kept + at, sizeof kept - at, ", ");
            name_state(have->boundary[k], kept + strlen(kept));
        }
        return hn_fail(err, HUNCH_REFUSED, "%s: features of the states of layers %s: expected %s, too, or another folder",
                       folder, kept, wanted);
    }
    return HUNCH_OK;
}

/* Opens what is there, of which a training reads some states; HUNCH_REFUSED also where it is not whole yet. */
static hunch_status open_states(hn_features_read *f, const hn_model *target, uint64_t identity, const hn_train_texts *texts,
                                const int *states, int n_states, const char *folder, hunch_error *err) {
    const hn_shard_header want = hn_features_header(target, identity, texts, states, n_states);
    hunch_status st = hn_features_open(f, folder, err);
    if (!st && (f->n != texts->n || f->header.model != want.model || f->header.texts != want.texts ||
                memcmp(f->header.level, want.level, sizeof want.level)))
        st = hn_fail(err, HUNCH_REFUSED, "%s: not the features of these texts", folder);
    if (!st) st = find_states(&f->header, states, n_states, f->column, folder, err);
    if (st) {
        hn_features_close(f);
        return st;
    }
    f->kept = f->header.n_states;
    f->header = want;
    return HUNCH_OK;
}

/* What is missing, with the states that were begun, if any were. */
static hunch_status take_missing(const hn_model *target, uint64_t identity, const hn_train_texts *texts, const int *states,
                                 int n_states, const char *folder, hunch_progress progress, void *user,
                                 const volatile int *stop, hunch_error *err) {
    hn_shard_header have = {.n_states = 0};
    int32_t columns[HN_TRAIN_MOST_STATES];
    int kept[HN_TRAIN_MOST_STATES];
    char *first = hn_features_shard_path(folder, 0);
    hunch_status st = first ? read_header(first, &have, err) : hn_fail_memory(err, "a path", 0);
    hn_free(first);
    if (st) return st;
    if (have.n_states < 1 || have.n_states > HN_TRAIN_MOST_STATES) have = hn_features_header(target, identity, texts, states, n_states);
    for (uint32_t i = 0; i < have.n_states; i++) kept[i] = have.boundary[i];
    st = find_states(&have, states, n_states, columns, folder, err);
    return st ? st
              : hn_features_make(target, identity, texts, kept, (int)have.n_states, folder, progress, user, stop, err);
}

hunch_status hn_features_share(hn_features_read *f, const hn_model *target, uint64_t identity, const hn_train_texts *texts,
                               const int *states, int n_states, const char *folder, hunch_progress progress, void *user,
                               const volatile int *stop, hunch_error *err) {
    hunch_error partial;
    int fd;
    if (open_states(f, target, identity, texts, states, n_states, folder, &partial) == HUNCH_OK) return HUNCH_OK;
    hunch_status st = lock_folder(folder, &fd, stop, err);
    if (!st) st = take_missing(target, identity, texts, states, n_states, folder, progress, user, stop, err);
    hn_folder_unlock(&fd);
    return st ? st : open_states(f, target, identity, texts, states, n_states, folder, err);
}
