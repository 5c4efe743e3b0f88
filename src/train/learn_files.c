/* SPDX-License-Identifier: Apache-2.0 */
/* learn_files.c - saves heads, and checkpoints of their training. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"
#include "train/learn_private.h"
#include "train/save_head.h"

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

static const char magic[8] = "HUNCHCK6";

typedef struct checkpoint {
    char magic[8], kind[16], level[HN_TRAIN_LEVEL_BYTES];
    hn_shard_header features;
    char made[800]; /* inputs and options that must be the same, as text */
    uint64_t count, at;
    int64_t adam_steps;
    int32_t step, epoch;
    hn_learn_note note;
} checkpoint;

static checkpoint checkpoint_of(const hn_learner *l) {
    const hn_arch *a = &l->model->target.arch;
    checkpoint c;
    memset(&c, 0, sizeof c); /* padding too: it is compared as bytes */
    memcpy(c.magic, magic, sizeof c.magic);
    snprintf(c.kind, sizeof c.kind, "%s", l->o.kind->name);
    snprintf(c.level, sizeof c.level, "%s", hn_isa_name(l->model->target.ops.isa));
    c.features = l->f->header;
    snprintf(
        c.made, sizeof c.made,
        "steps %d rows %d longest %d unroll %d decay %.17g rate %.17g clip %.17g vocab %d ffn %d norm %d seed %llu "
        "held out %d products %d hidden %d heads %d %d token share %.17g state share %.17g layers %d divergence %d "
        "cell %d clusters %d %d %d init %s",
        l->o.steps, l->o.rows, l->o.longest, l->o.unroll, l->o.decay, l->o.rate, l->o.clip, l->o.vocab, l->o.ffn,
        l->o.norm_before_residual, (unsigned long long)l->o.seed, l->o.held_out, (int)l->o.products, a->hidden,
        a->layer[0].heads, a->layer[0].kv_heads, l->o.token_share, l->o.state_share, l->o.layers, (int)l->o.divergence,
        l->o.cell, l->o.clusters, l->o.clusters_used, (int)l->o.cluster_start, l->o.init);
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
    const char *level = hn_isa_name(m->target.ops.isa);
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
        if (memchr(c.made, 0, sizeof c.made)) (void)sscanf(c.made, "steps %d", steps);
        st = check_kind(&c, kind, m, path, err);
    }
    hn_map_close(&map);
    return st;
}

hunch_status hn_learn_other_checkpoint(const char *path, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: a checkpoint of other texts or options: expected the same, or another name for the head", path);
}

hunch_status hn_learner_load(hn_learner *l, const char *path, hunch_error *err) {
    const checkpoint want = checkpoint_of(l);
    const size_t bytes = l->count * sizeof *l->w;
    checkpoint c;
    hn_map map;
    hunch_status st = hn_map_open(&map, path, err);
    if (st) return st;
    if (map.size < sizeof c || memcmp(map.data, want.magic, sizeof want.magic) != 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: no checkpoint", path);
    else {
        memcpy(&c, map.data, sizeof c);
        st = check_kind(&c, l->o.kind, l->model, path, err);
        if (!st && (memcmp(&c.features, &want.features, sizeof c.features) ||
                    memcmp(c.made, want.made, sizeof c.made) || c.count != want.count ||
                    map.size < sizeof c + 3 * bytes || c.at > l->n_all || !hn_run_history_is_whole(&c.note.past)))
            st = hn_learn_other_checkpoint(path, err);
    }
    if (!st) {
        memcpy(l->w, map.data + sizeof c, bytes);
        memcpy(l->adam.mean, map.data + sizeof c + bytes, bytes);
        memcpy(l->adam.square, map.data + sizeof c + 2 * bytes, bytes);
        l->adam.steps = (long)c.adam_steps;
        l->note = c.note;
        l->step = c.step;
        l->epoch = c.epoch;
        hn_learn_shuffle(l);
        l->at = (size_t)c.at;
        st = hn_on_policy_load(l, map.data + sizeof c + 3 * bytes, map.size - sizeof c - 3 * bytes, path, err);
    }
    hn_map_close(&map);
    return st;
}
