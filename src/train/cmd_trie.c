/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_trie.c - see cmd_trie.h. Texts begin and end like the model's: with its BOS, if it adds one, and its EOS. */
#include "train/cmd_trie.h"

#include <stdio.h>

#include "base/clock.h"
#include "draft/shape/ngram_trie.h"
#include "draft/text_tokens.h"
#include "engine/engine.h"
#include "train/data/dart_trie.h"
#include "train/progress_line.h"
#include "train/data/trie_build.h"

enum { ROOM = 1 << 23 };

typedef struct job {
    hn_trie_build *b;
    const hn_tokenizer *t;
    bool inside; /* a text */
    bool quiet;
    double start;
    const volatile int *stop;
} job;

static void show(job *j, bool last) {
    const double now = hn_now();
    const double millions = (double)hn_trie_build_tokens(j->b) / 1e6;
    if (j->quiet || now < j->start + 1) return;
    hn_progress_line(last, "%.1f million tokens, %.2f a second", millions, millions / (now - j->start));
}

static hunch_status take(void *user, const int32_t *ids, size_t n, bool ends, hunch_error *err) {
    job *j = user;
    const int32_t bos = hn_tokenizer_bos(j->t), eos = hn_tokenizer_eos(j->t);
    hunch_status st = HUNCH_OK;
    if (*j->stop) return hn_fail(err, HUNCH_CANCELLED, "ended before the trie was written");
    if (!j->inside && hn_tokenizer_adds_bos(j->t) && bos >= 0) st = hn_trie_build_add(j->b, &bos, 1, false, err);
    if (!st) st = hn_trie_build_add(j->b, ids, n, ends && eos < 0, err);
    if (!st && ends && eos >= 0) st = hn_trie_build_add(j->b, &eos, 1, true, err);
    j->inside = !ends;
    show(j, false);
    return st;
}

/* Adds a text, rows, or one of DART's tries. */
static hunch_status take_file(job *j, const char *path, hunch_error *err) {
    return hn_dart_trie_is(path) ? hn_dart_trie_add(j->b, path, hn_tokenizer_vocab(j->t), j->stop, err)
                                 : hn_text_tokens(path, j->t, take, j, err);
}

hunch_status hn_train_trie(hunch_model *m, const hn_train_options *o, const volatile int *stop, hunch_error *err) {
    job j = {.t = m->tokenizer, .quiet = o->quiet, .start = hn_now(), .stop = stop};
    if (!j.t) return hn_fail(err, HUNCH_REFUSED, "%s has no tokenizer: expected a model with one", o->model);
    if (o->files.n == 0) return hn_fail(err, HUNCH_USAGE, "no texts to count: expected files");
    hunch_status st = hn_trie_build_open(&j.b, o->output, hn_tokenizer_vocab(j.t), hn_trie_tokenizer(j.t), ROOM, err);
    for (int i = 0; !st && i < o->files.n; i++) st = take_file(&j, o->files.items[i], err);
    if (!st) show(&j, true);
    if (!st) st = hn_trie_build_finish(j.b, err);
    hn_trie_build_close(&j.b);
    return st;
}
