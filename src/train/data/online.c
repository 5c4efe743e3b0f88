/* SPDX-License-Identifier: Apache-2.0 */
/* online.c - see online.h. */
#include "train/data/online.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/mem.h"

typedef struct hn_online {
    hn_states *states;
    uint16_t *memory; /* states of the texts of the last request */
    hn_states_text *take;
    uint32_t *text; /* [n] their numbers */
    size_t memory_cap, take_cap, text_cap, n;
} hn_online;

hunch_status hn_features_online(hn_features_read *f, const hn_model *target, uint64_t identity,
                                const hn_train_texts *texts, const int *states, int n_states, hunch_error *err) {
    const int longest = hn_train_texts_longest(texts);
    *f = (hn_features_read){.header = hn_features_header(target, identity, texts, states, n_states)};
    if (longest == 0) return hn_fail(err, HUNCH_USAGE, "no texts to learn from");
    f->online = hn_zalloc(1, sizeof *f->online);
    f->text = hn_zalloc(texts->n, sizeof *f->text);
    if (!f->online || !f->text) return hn_fail_memory(err, "texts", texts->n * sizeof *f->text);
    for (size_t i = 0; i < texts->n; i++) {
        const hn_train_text *t = &texts->item[i];
        f->text[f->n++] = (hn_feature_text){.ids = t->ids, .n = t->n, .own = t->own};
        f->tokens += (uint64_t)t->n;
    }
    return hn_states_open(&f->online->states, target, states, n_states, longest, err);
}

/* Pieces of one text are computed once, with the rows of the longest. */
static hunch_status gather(hn_online *o, const hn_features_read *f, const hn_features_wanted *wanted, size_t n,
                           size_t *rows, hunch_error *err) {
    if (!hn_grow((void **)&o->take, &o->take_cap, n, sizeof *o->take) ||
        !hn_grow((void **)&o->text, &o->text_cap, n, sizeof *o->text))
        return hn_fail_memory(err, "texts of a batch", n * sizeof *o->take);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < o->n && o->text[k] != wanted[i].text) k++;
        if (k == o->n) {
            o->text[o->n] = wanted[i].text;
            o->take[o->n++] = (hn_states_text){.ids = f->text[wanted[i].text].ids};
        }
        if (wanted[i].rows <= o->take[k].n) continue;
        *rows += (size_t)(wanted[i].rows - o->take[k].n);
        o->take[k].n = wanted[i].rows;
    }
    return HUNCH_OK;
}

hunch_status hn_features_need(const hn_features_read *f, const hn_features_wanted *wanted, size_t n, hunch_error *err) {
    hn_online *o = f->online;
    const size_t row = (size_t)f->header.n_states * f->header.width;
    size_t rows = 0;
    if (!o) return HUNCH_OK;
    for (; o->n > 0; o->n--) f->text[o->text[o->n - 1]].states = NULL;
    hunch_status st = gather(o, f, wanted, n, &rows, err);
    if (st) return st;
    if (!hn_grow((void **)&o->memory, &o->memory_cap, rows * row, sizeof *o->memory))
        return hn_fail_memory(err, "states of a batch", rows * row * sizeof *o->memory);
    uint16_t *at = o->memory;
    for (size_t i = 0; i < o->n; i++) {
        f->text[o->text[i]].states = o->take[i].to = at;
        at += (size_t)o->take[i].n * row;
    }
    return hn_states_compute(o->states, o->take, o->n, err);
}

hunch_status hn_features_fit(const char *folder, uint64_t bytes, bool *fit, hunch_error *err) {
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0) return hn_fail(err, HUNCH_FAILED, "%s: %s", folder, strerror(errno));
    *fit = (double)disk.f_bavail * (double)disk.f_frsize > 2 * (double)bytes ||
           hn_folder_holds(folder, "features-0000.bin");
    return HUNCH_OK;
}

void hn_online_close(hn_online **op) {
    hn_online *o = *op;
    *op = NULL;
    if (!o) return;
    hn_states_close(&o->states);
    hn_free(o->memory);
    hn_free(o->take);
    hn_free(o->text);
    hn_free(o);
}
