/* SPDX-License-Identifier: Apache-2.0 */
/* learn_files.c - saves heads, and checkpoints of their training. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"
#include "train/learn/learn_private.h"
#include "train/learn/save_head.h"

static hunch_status save_head(const hn_learner *l, const char *folder, bool with_embedding, hunch_error *err) {
    const hn_learn_kind *kind = l->o.kind;
    const int vocab = l->model->target.arch.vocab, parts = kind->parts(l->head);
    hn_saved_part *part = hn_zalloc((size_t)parts + 1, sizeof *part);
    if (!part) return hn_fail_memory(err, folder, ((size_t)parts + 1) * sizeof *part);
    hn_head_to_save h = {.part = part, .vocab = l->o.vocab, .target_vocab = vocab, .config = kind->config(l->head)};
    if (!kind->own_output && !kind->whole_model) h.commonest = l->tokens.first;
    if (kind->own_output && l->o.vocab < vocab) h.ids = l->tokens.ids;
    h.ids_name = kind->ids_name;
    h.order = kind->order ? kind->order(l->head) : NULL;
    for (int i = 0; i < parts; i++) {
        hn_saved_part *p = &part[h.n_parts];
        p->m = kind->part(l->head, i, l->w);
        p->ones = kind->ones ? kind->ones(l->head, i) : 0;
        p->turned = kind->turned ? kind->turned(l->head, i) : 0;
        kind->part_name(l->head, i, p->name);
        h.n_parts += p->m.rows > 0;
    }
    if (with_embedding)
        part[h.n_parts++] = (hn_saved_part){.name = "embed_tokens.weight", .m = hn_mat_of(l->target.embedding, vocab, l->target.hidden)};
    const hunch_status st = hn_head_save(&h, folder, err);
    json_decref(h.config);
    hn_free(part);
    return st;
}

hunch_status hn_learner_save_head(const hn_learner *l, const char *folder, hunch_error *err) {
    return save_head(l, folder, false, err);
}

hunch_status hn_learner_save_head_for_others(const hn_learner *l, const char *folder, hunch_error *err) {
    return save_head(l, folder, l->o.kind->others_need_embedding, err);
}

static const char magic[8] = "HUNCHCK7";

typedef struct checkpoint {
    char magic[8], kind[16], level[HN_TRAIN_LEVEL_BYTES];
    hn_shard_header features;
    char made[1600]; /* options as the command line has them, a line each, the steps first; the others must be the same */
    uint64_t count, at;
    int64_t adam_steps;
    int32_t step, epoch;
    hn_learn_note note;
} checkpoint;

/* ---- options as text ---------------------------------------------------------------------------------------------------- */

typedef struct lines {
    char *at;
    size_t left;
} lines;

static void put(lines *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(lines *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(to->at, to->left, format, list);
    va_end(list);
    const size_t written = n < 0 ? 0 : (size_t)n < to->left ? (size_t)n : to->left - 1;
    to->at += written;
    to->left -= written;
}

/* As short as names the number. */
static void put_number(lines *to, const char *name, double x) {
    char text[40];
    snprintf(text, sizeof text, "%.15g", x);
    if (strtod(text, NULL) != x) snprintf(text, sizeof text, "%.17g", x);
    put(to, "%s %s\n", name, text);
}

static void put_taps(lines *to, const hn_learner *l) {
    const hn_shard_header *h = &l->f->header;
    for (uint32_t i = 0; l->o.kind->reads_layers && i + 1 < h->n_states; i++) put(to, "%s%d", i ? ":" : "--taps ", (int)h->boundary[i]);
    put(to, "\n");
}

static void put_options_of_kinds(lines *to, const hn_learn_options *o) {
    put(to, "%s\n", o->cell ? "--cell" : "no --cell");
    if (o->kind->shifts) put(to, "%s\n--pure-prefix %d\n", o->shift_label ? "--shift-label" : "no --shift-label", o->plain);
    put(to, o->clusters ? "--centroids %d:%d\n" : "no --centroids\n", o->clusters, o->clusters_used);
    put(to, "--centroid-start %s\n", hn_cluster_start_name(o->cluster_start));
    put(to, "--divergence %s\n", hn_divergence_name(o->divergence));
    put(to, o->init[0] ? "--init %s\n" : "no --init\n", o->init);
    put_number(to, "--on-policy", o->on_policy);
    put_number(to, "--policy-temperature", o->on_policy > 0 ? o->policy_temperature : 0);
    put(to, "--refresh %d\n", o->on_policy > 0 ? o->refresh : 0);
}

static void put_options(lines *to, const hn_learner *l) {
    const hn_learn_options *o = &l->o;
    put(to, "--steps %d\n--batch %d\n--length %d\n--unroll %d\n", o->steps, o->rows, o->longest, o->unroll);
    put(to, "--vocab %d\n--ffn %d\n--layers %d\n", o->vocab, o->ffn, o->layers);
    put(to, "--seed %llu\n--held-out %d\n", (unsigned long long)o->seed, o->held_out);
    put_taps(to, l);
    put_number(to, "--rate", o->rate);
    put_number(to, "--token-share", o->token_share);
    put_number(to, "--state-share", o->state_share);
    put_options_of_kinds(to, o);
    put_number(to, "weights of later drafts of", o->decay);
    put_number(to, "a limit of gradients of", o->clip);
    put(to, "%s\n", o->norm_before_residual ? "a norm before the residual" : "no norm before the residual");
    put(to, "products of %s\n", o->products == HN_PRODUCTS_BF16 ? "bf16" : "f32");
}

static checkpoint checkpoint_of(const hn_learner *l) {
    checkpoint c;
    memset(&c, 0, sizeof c); /* padding too: the same training has the same file */
    memcpy(c.magic, magic, sizeof c.magic);
    snprintf(c.kind, sizeof c.kind, "%s", l->o.kind->name);
    snprintf(c.level, sizeof c.level, "%s", hn_isa_name(l->model->target.isa));
    c.features = l->f->header;
    put_options(&(lines){c.made, sizeof c.made}, l);
    c.count = l->count;
    c.at = l->at;
    c.note = l->note;
    c.step = l->step;
    c.epoch = l->epoch;
    c.adam_steps = l->adam.steps;
    return c;
}

hunch_status hn_learner_save(const hn_learner *l, const char *path, hunch_error *err) {
    const checkpoint c = checkpoint_of(l);
    const size_t bytes = l->count * sizeof *l->w;
    hn_out *out;
    hunch_status st = hn_out_open(&out, path, false, err);
    if (!st) st = hn_out_write(out, &c, sizeof c, err);
    if (!st) st = hn_out_write(out, l->w, bytes, err);
    if (!st) st = hn_out_write(out, l->adam.mean, bytes, err);
    if (!st) st = hn_out_write(out, l->adam.square, bytes, err);
    if (!st) st = hn_on_policy_save(l, out, err);
    if (!st) return hn_out_finish(&out, err);
    hn_out_abort(&out);
    return st;
}

static hunch_status check_kind(const checkpoint *c, const hn_learn_kind *kind, const hunch_model *m, const char *path,
                               hunch_error *err) {
    const char *level = hn_isa_name(m->target.isa);
    if (strncmp(c->kind, kind->name, sizeof c->kind) != 0)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a checkpoint of a head of kind %.16s: expected one of %s, or another name for the head",
                       path, c->kind, kind->name);
    if (strncmp(c->level, level, sizeof c->level) != 0)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a checkpoint of instruction level %.24s: expected one of %s, or another name for the head",
                       path, c->level, level);
    return HUNCH_OK;
}

static bool is_text(const checkpoint *c) {
    return memchr(c->made, 0, sizeof c->made) != NULL;
}

static int steps_of(const checkpoint *c) {
    int steps = 0;
    (void)sscanf(c->made, "--steps %d", &steps);
    return steps;
}

hunch_status hn_learner_planned(const char *path, const hn_learn_kind *kind, const hunch_model *m, int *steps,
                                hunch_error *err) {
    checkpoint c;
    hn_map map;
    *steps = 0;
    if (!hn_is_file(path)) return HUNCH_OK;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    if (map.size >= sizeof c && !memcmp(map.data, magic, sizeof magic)) {
        memcpy(&c, map.data, sizeof c);
        if (is_text(&c)) *steps = steps_of(&c);
        st = check_kind(&c, kind, m, path, err);
    }
    hn_map_close(&map);
    return st;
}

hunch_status hn_learn_damaged_checkpoint(const char *path, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: a damaged checkpoint: expected it as it was written, or another -o", path);
}

/* ---- continuing --------------------------------------------------------------------------------------------------------- */

static hunch_status other_option(const char *path, const char *has, const char *wanted, const char *more, hunch_error *err) {
    const int n = (int)strcspn(has, "\n");
    return hn_fail(err, HUNCH_REFUSED, "%s is of a training with %.*s, this one has %.*s: expected %.*s%s, or another -o", path, n, has,
                   (int)strcspn(wanted, "\n"), wanted, n, has, more);
}

/* The same options, and as many steps or more. */
static hunch_status check_options(const checkpoint *c, const checkpoint *want, const char *path, hunch_error *err) {
    const char *has = c->made, *wanted = want->made;
    if (steps_of(c) > steps_of(want)) return other_option(path, has, wanted, " or more", err);
    do {
        has += strcspn(has, "\n");
        wanted += strcspn(wanted, "\n");
        if (!*has || !*wanted) return *has == *wanted ? HUNCH_OK : hn_learn_damaged_checkpoint(path, err);
        has++, wanted++;
    } while (strcspn(has, "\n") == strcspn(wanted, "\n") && !strncmp(has, wanted, strcspn(has, "\n")));
    return other_option(path, has, wanted, "", err);
}

static hunch_status check_same(const checkpoint *c, const checkpoint *want, const hn_learner *l, const char *path, hunch_error *err) {
    hunch_status st = check_kind(c, l->o.kind, l->model, path, err);
    if (st) return st;
    if (!is_text(c)) return hn_learn_damaged_checkpoint(path, err);
    if (c->features.model != want->features.model)
        return hn_fail(err, HUNCH_REFUSED, "%s is of a training for another model: expected that one, or another -o", path);
    if (c->features.texts != want->features.texts)
        return hn_fail(err, HUNCH_REFUSED, "%s is of a training on other texts: expected the same -f, or another -o", path);
    st = check_options(c, want, path, err);
    const bool whole = !memcmp(&c->features, &want->features, sizeof c->features) && c->count == want->count && c->at <= l->n_all &&
                       c->step >= 0 && hn_run_history_is_whole(&c->note.past);
    return st || whole ? st : hn_learn_damaged_checkpoint(path, err);
}

static hunch_status take_checkpoint(hn_learner *l, const checkpoint *c, const char *data, size_t size, const char *path, hunch_error *err) {
    const size_t bytes = l->count * sizeof *l->w;
    memcpy(l->w, data, bytes);
    memcpy(l->adam.mean, data + bytes, bytes);
    memcpy(l->adam.square, data + 2 * bytes, bytes);
    l->adam.steps = (long)c->adam_steps;
    l->note = c->note;
    if (steps_of(c) < l->o.steps) l->note.worse = 0; /* who raises the steps wants them done */
    l->step = c->step;
    l->epoch = c->epoch;
    hn_learn_shuffle(l);
    l->at = (size_t)c->at;
    return hn_on_policy_load(l, data + 3 * bytes, size - 3 * bytes, path, err);
}

hunch_status hn_learner_load(hn_learner *l, const char *path, hunch_error *err) {
    const checkpoint want = checkpoint_of(l);
    checkpoint c;
    hn_map map;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    if (map.size < sizeof c || memcmp(map.data, want.magic, sizeof want.magic) != 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: no checkpoint", path);
    else {
        memcpy(&c, map.data, sizeof c);
        st = check_same(&c, &want, l, path, err);
        if (!st && map.size < sizeof c + 3 * l->count * sizeof *l->w) st = hn_learn_damaged_checkpoint(path, err);
    }
    if (!st) st = take_checkpoint(l, &c, (const char *)map.data + sizeof c, map.size - sizeof c, path, err);
    hn_map_close(&map);
    return st;
}
