/* SPDX-License-Identifier: Apache-2.0 */
/* text_lists.c - the lists of the texts of a round, in memory of the engine: with as many texts as an engine may have they are too large
 * for the stack of a caller (hunch.h says how much of it a call needs). */
#include "base/mem.h"
#include "engine/scheduling.h"

static bool lists_create(hn_text_lists *l, size_t texts, size_t rows) {
    l->running = hn_zalloc(texts, sizeof *l->running);
    l->decoding = hn_zalloc(texts, sizeof *l->decoding);
    l->prompts = hn_zalloc(texts, sizeof *l->prompts);
    l->ended = hn_zalloc(texts, sizeof *l->ended);
    l->alike = hn_zalloc(texts, sizeof *l->alike);
    l->held = hn_zalloc(texts, sizeof *l->held);
    l->pass = hn_zalloc(texts, sizeof *l->pass);
    l->pass_seq = hn_zalloc(texts, sizeof *l->pass_seq);
    l->n_certain = hn_zalloc(texts, sizeof *l->n_certain);
    l->first_token = hn_zalloc(texts, sizeof *l->first_token);
    l->job = hn_zalloc(texts, sizeof *l->job);
    l->flush = hn_zalloc(texts, sizeof *l->flush);
    l->propose = hn_zalloc(texts, sizeof *l->propose);
    l->proposing = hn_zalloc(texts, sizeof *l->proposing);
    l->plan = hn_zalloc(texts, sizeof *l->plan);
    l->tree = hn_zalloc(texts, sizeof *l->tree);
    l->keep = hn_zalloc(texts, sizeof *l->keep);
    l->out = hn_zalloc(texts, sizeof *l->out);
    l->room = hn_zalloc(texts + 1, sizeof *l->room);
    l->match = hn_zalloc(texts, sizeof *l->match);
    l->draw = hn_zalloc(texts, sizeof *l->draw);
    l->row = hn_zalloc(rows, sizeof *l->row);
    l->source = hn_zalloc(rows, sizeof *l->source);
    l->feed = hn_zalloc(rows, sizeof *l->feed);
    return l->running && l->decoding && l->ended && l->alike && l->held && l->pass && l->pass_seq && l->n_certain && l->first_token &&
           l->job && l->flush && l->propose && l->proposing && l->plan && l->tree && l->keep && l->out && l->room && l->match &&
           l->draw && l->row && l->source && l->feed && l->prompts;
}

hunch_status hn_text_lists_open(hn_text_lists *l, int texts, int rows, hunch_error *err) {
    return lists_create(l, (size_t)texts, (size_t)rows) ? HUNCH_OK
                                                        : hn_fail_memory(err, "lists of texts", (size_t)texts * sizeof *l->propose);
}

void hn_text_lists_close(hn_text_lists *l) {
    void *const all[] = {l->running, l->decoding, l->ended, l->alike, l->held, l->pass, l->pass_seq, l->n_certain, l->first_token, l->job,
                         l->flush,   l->propose,  l->proposing, l->plan,  (void *)l->tree, l->keep, l->out, l->room, l->row, l->feed,
                         l->match, l->draw, l->source, l->prompts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hn_free(all[i]);
    *l = (hn_text_lists){0};
}
