/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - from rows to logits: describes the rows in buffers, then all workers walk the same layer code. */
#include "model/pass.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/kv_groups.h"
#include "model/layers.h"

/* Row descriptions as they are built on the host; one block, written to the device in one piece. Paths: a row's path is at
 * most HN_MAX_ROWS long. */
typedef struct row_image {
    int32_t token[HN_MAX_ROWS], position[HN_MAX_ROWS], slot[HN_MAX_ROWS], seq[HN_MAX_ROWS], path_start[HN_MAX_ROWS];
    int32_t path_slots[HN_MAX_ROWS * HN_MAX_ROWS];
    int32_t seq_first[HN_MAX_ROWS + 1], committed[HN_MAX_ROWS], direct[HN_MAX_ROWS];
    int32_t out[HN_MAX_ROWS], feature[HN_MAX_ROWS]; /* rows to gather */
    int32_t normed[HN_MAX_ROWS];                    /* of the feature rows, among the gathered ones */
} row_image;

struct hn_runner {
    const hn_model *m;
    const hn_ops *ops; /* that a pass calls: the model's, or another table over it */
    hn_cache *cache;
    int first_group, n_groups, owner; /* of the cache */
    hn_layer_place *place;            /* [layers] among these groups */
    hn_mem *buffers;
    hn_pass_buffers lanes;
    const hn_rope *rope; /* of layers that are not local */
    hn_rows rows[HN_MODEL_GROUPS]; /* the same rows; the page tables are each group's own */
    row_image *image;
    int32_t *table[HN_MODEL_GROUPS]; /* host copy of the page tables [HN_MAX_ROWS][stride] */
    hn_buf image_buf, out_x, out_norm, logits, features;
    hn_top best; /* one a row */
    hn_act out_act;
    hn_feature_set set;
    int feature_slot[257]; /* place of boundary k among the exported ones, -1: not exported */
    int n_boundaries;
    int n_out, n_full, n_logits, n_features;                      /* of this pass; n_full have all their logits */
    int16_t out_of_row[HN_MAX_ROWS], feature_of_row[HN_MAX_ROWS]; /* -1: none */
    int ld_logits;
    const float *host_logits, *host_features, *host_value;
    const int32_t *host_best;
};

static int pad16(int n) {
    return (n + 15) & ~15;
}

static bool wants_boundary(const hn_feature_set *s, int k) {
    return k < 256 && (s->layers[k / 64] >> (k % 64) & 1);
}

/* Takes the next bytes of the one block of buffers. */
static hn_buf take(size_t *total, size_t bytes) {
    const hn_buf b = {NULL, *total};
    *total += (bytes + 63) & ~(size_t)63;
    return b;
}

static hn_buf take_floats(size_t *total, int cols) {
    return take(total, sizeof(float) * HN_MAX_ROWS * (size_t)cols);
}

static hn_act take_act(size_t *total, const hn_ops *o, int in) {
    return (hn_act){take(total, o->act_bytes(in, HN_MAX_ROWS)), in, HN_MAX_ROWS};
}

/* Sizes every buffer; offsets only, the memory comes after. */
static size_t lay_out(hn_runner *r, int max_context) {
    const hn_model *m = r->m;
    const hn_arch *a = &m->arch;
    int q = 0, kv = 0, ffn = 0;
    size_t total = 0, scratch = 0;
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        const size_t s = m->ops.attention_scratch(&m->ops, HN_MAX_ROWS, d->heads, d->head_dim, max_context + HN_MAX_ROWS);
        if (d->heads * d->head_dim > q) q = d->heads * d->head_dim;
        if (d->kv_heads * d->head_dim > kv) kv = d->kv_heads * d->head_dim;
        if (d->ffn_width > ffn) ffn = d->ffn_width;
        if (s > scratch) scratch = s;
    }
    hn_pass_buffers *l = &r->lanes;
    l->ldx = pad16(a->hidden);
    l->ldqkv = pad16(q + 2 * kv);
    l->ldattended = pad16(q);
    l->ldhidden = pad16(ffn);
    r->ld_logits = pad16(a->vocab);
    l->x = take_floats(&total, l->ldx);
    l->in = take_act(&total, &m->ops, a->hidden);
    l->mixed = take_act(&total, &m->ops, q);
    l->gated = take_act(&total, &m->ops, ffn);
    l->qkv = take_floats(&total, l->ldqkv);
    l->attended = take_floats(&total, l->ldattended);
    l->gate = take_floats(&total, hn_ffn_in_steps(a, 0) ? l->ldhidden : 0);
    l->up = take_floats(&total, hn_ffn_in_steps(a, 0) ? l->ldhidden : 0);
    l->branch = take_floats(&total, a->layer[0].post_norms ? l->ldx : 0);
    l->rotation = take_floats(&total, pad16(a->rope_dims));
    l->rotation_local = take_floats(&total, a->rope_local ? pad16(a->rope_dims) : 0);
    l->scratch = take(&total, scratch);
    r->out_x = take_floats(&total, l->ldx);
    r->out_norm = take_floats(&total, l->ldx);
    r->out_act = take_act(&total, &m->ops, a->hidden);
    r->logits = take_floats(&total, r->ld_logits);
    r->best = (hn_top){.k = 1,
                       .id = take(&total, sizeof(int32_t) * HN_MAX_ROWS),
                       .value = take_floats(&total, 1),
                       .scratch = take(&total, m->ops.top_scratch(&m->ops, HN_MAX_ROWS, 1))};
    r->features = take(&total, sizeof(float) * HN_MAX_ROWS * (size_t)l->ldx * (size_t)(r->n_boundaries + 1));
    r->image_buf = take(&total, sizeof(row_image));
    for (int g = 0; g < r->n_groups; g++)
        r->rows[g].page_table = take(&total, sizeof(int32_t) * HN_MAX_ROWS * (size_t)r->rows[g].page_stride);
    return total;
}

static void bind(hn_runner *r) {
    hn_pass_buffers *l = &r->lanes;
    hn_buf *all[] = {&l->x,       &l->in.data,     &l->mixed.data,     &l->gated.data,
                     &l->qkv,     &l->attended,    &l->gate,           &l->up,
                     &l->branch,  &l->rotation,    &l->rotation_local, &l->scratch,
                     &r->out_x,   &r->out_norm,    &r->out_act.data,   &r->logits,
                     &r->best.id, &r->best.value,  &r->best.scratch,   &r->features,
                     &r->image_buf};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i]->mem = r->buffers;
    hn_rows *rows = &r->rows[0];
    const struct {
        hn_buf *b;
        size_t off;
    } part[] = {{&rows->token, offsetof(row_image, token)},
                {&rows->position, offsetof(row_image, position)},
                {&rows->slot, offsetof(row_image, slot)},
                {&rows->seq, offsetof(row_image, seq)},
                {&rows->path_start, offsetof(row_image, path_start)},
                {&rows->path_slots, offsetof(row_image, path_slots)},
                {&rows->seq_first, offsetof(row_image, seq_first)},
                {&rows->committed, offsetof(row_image, committed)},
                {&rows->direct, offsetof(row_image, direct)}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) *part[i].b = hn_at(r->image_buf, part[i].off);
    l->rows = rows;
    for (int g = 0; g < r->n_groups; g++) {
        const hn_buf table = {r->buffers, r->rows[g].page_table.off};
        const int stride = r->rows[g].page_stride;
        r->rows[g] = *rows;
        r->rows[g].page_table = table;
        r->rows[g].page_stride = stride;
    }
}

/* The model's groups stand in the cache from first_group on, each with a table of its own. */
static hunch_status open_tables(hn_runner *r, int first_group, hunch_error *err) {
    hn_cache_group group[HN_MODEL_GROUPS];
    r->place = hn_zalloc((size_t)r->m->arch.layers, sizeof *r->place);
    r->image = hn_zalloc(1, sizeof *r->image);
    if (!r->place || !r->image) return hn_fail_memory(err, "row tables", sizeof *r->image);
    r->first_group = first_group;
    r->n_groups = hn_kv_groups(&r->m->arch, HN_F32, group, r->place);
    r->owner = hn_cache_owner(r->cache, first_group);
    assert(r->n_groups > 0);
    for (int g = 0; g < r->n_groups; g++) {
        assert(hn_cache_owner(r->cache, first_group + g) == r->owner);
        r->rows[g].page_stride = hn_cache_table_stride(r->cache, first_group + g);
        const size_t table = (size_t)r->rows[g].page_stride * HN_MAX_ROWS;
        r->table[g] = hn_zalloc(table, sizeof *r->table[g]);
        if (!r->table[g]) return hn_fail_memory(err, "page tables", table * sizeof *r->table[g]);
    }
    return HUNCH_OK;
}

hunch_status hn_runner_open(hn_runner **out, const hn_model *m, hn_cache *cache, int first_group, int max_context,
                            const hn_feature_set *features, hunch_error *err) {
    *out = NULL;
    hn_runner *r = hn_zalloc(1, sizeof *r);
    if (!r) return hn_fail_memory(err, "runner", sizeof *r);
    r->m = m;
    r->ops = &m->ops;
    r->cache = cache;
    r->rope = hn_model_rope(m, max_context);
    if (features) r->set = *features;
    for (int k = 0; k <= 256; k++)
        r->feature_slot[k] = k <= m->arch.layers && wants_boundary(&r->set, k) ? r->n_boundaries++ : -1;
    hunch_status st = open_tables(r, first_group, err);
    if (!st) st = m->ops.mem_create(&m->ops, lay_out(r, max_context), &r->buffers, err);
    if (st) {
        hn_runner_close(&r);
        return st;
    }
    bind(r);
    *out = r;
    return HUNCH_OK;
}

void hn_runner_call(hn_runner *r, const hn_ops *o) {
    r->ops = o ? o : &r->m->ops;
}

void hn_runner_close(hn_runner **rp) {
    hn_runner *r = *rp;
    *rp = NULL;
    if (!r) return;
    r->m->ops.mem_free(&r->m->ops, r->buffers);
    for (int g = 0; g < HN_MODEL_GROUPS; g++) hn_free(r->table[g]);
    hn_free(r->image);
    hn_free(r->place);
    hn_free(r);
}

/* ---- describing the rows ------------------------------------------------------------------------------------------- */

/* Positions, slots and paths of the rows of one sequence: rows [first, last). Returns the next free path entry. */
static int describe_sequence(hn_runner *r, const hn_row *rows, int first, int last, int seq, int committed, int path) {
    row_image *im = r->image;
    int depth[HN_MAX_ROWS], *max_position = &r->rows[0].max_position;
    im->committed[seq] = committed;
    im->direct[seq] = 1;
    for (int i = first; i < last; i++) {
        const int parent = rows[i].parent;
        assert(parent < i && (parent < 0 || parent >= first));
        depth[i] = parent < 0 ? 0 : depth[parent] + 1;
        if (parent != (i == first ? -1 : i - 1)) im->direct[seq] = 0;
        im->token[i] = rows[i].token;
        im->seq[i] = seq;
        im->slot[i] = committed + (i - first);
        im->position[i] = committed + depth[i];
        im->path_start[i] = path;
        if (parent >= 0)
            memcpy(im->path_slots + path, im->path_slots + im->path_start[parent], (size_t)depth[i] * sizeof(int32_t));
        im->path_slots[path + depth[i]] = im->slot[i];
        path += depth[i] + 1;
        if (im->position[i] > *max_position) *max_position = im->position[i];
    }
    return path;
}

/* Puts the rows that want so much of the output matrix among those to gather. */
static void gather_wanting(hn_runner *r, const hn_row *rows, int n, hn_logits what) {
    for (int i = 0; i < n; i++)
        if (rows[i].logits == what) {
            r->out_of_row[i] = (int16_t)r->n_out;
            r->image->out[r->n_out++] = i;
        }
}

/* Rows to gather after the last layer: those with all logits first, those with their best one, then those that only want the
 * post-norm feature. */
static void describe_outputs(hn_runner *r, const hn_row *rows, int n) {
    r->n_out = r->n_features = 0;
    for (int i = 0; i < n; i++) r->out_of_row[i] = r->feature_of_row[i] = -1;
    gather_wanting(r, rows, n, HN_LOGITS_ALL);
    r->n_full = r->n_out;
    gather_wanting(r, rows, n, HN_LOGITS_BEST);
    r->n_logits = r->n_out;
    for (int i = 0; i < n; i++) {
        if (!rows[i].feature) continue;
        r->feature_of_row[i] = (int16_t)r->n_features;
        r->image->feature[r->n_features++] = i;
        if (r->set.post_norm && rows[i].logits == HN_LOGITS_NONE) {
            r->out_of_row[i] = (int16_t)r->n_out;
            r->image->out[r->n_out++] = i;
        }
        r->image->normed[r->n_features - 1] = r->out_of_row[i];
    }
}

/* Sequence `seq` of the pass has the tables of cache_seq. */
static void describe_tables(hn_runner *r, int seq, int cache_seq) {
    for (int g = 0; g < r->n_groups; g++) {
        int pages;
        const int32_t *t = hn_cache_pages(r->cache, cache_seq, r->first_group + g, &pages);
        memcpy(r->table[g] + (size_t)seq * (size_t)r->rows[g].page_stride, t, (size_t)pages * sizeof *t);
    }
}

static void write_description(hn_runner *r) {
    const hn_ops *o = &r->m->ops;
    const hn_rows *rows = &r->rows[0];
    o->write(o, r->image_buf, r->image, sizeof *r->image);
    for (int g = 0; g < r->n_groups; g++) {
        r->rows[g].n = rows->n;
        r->rows[g].n_seqs = rows->n_seqs;
        r->rows[g].max_position = rows->max_position;
        o->write(o, r->rows[g].page_table, r->table[g],
                 (size_t)rows->n_seqs * (size_t)r->rows[g].page_stride * sizeof(int32_t));
    }
}

static hunch_status describe(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs,
                             hunch_error *err) {
    int first = 0, path = 0;
    assert(n >= 1 && n <= HN_MAX_ROWS && n_seqs >= 1 && n_seqs <= n);
    r->rows[0].n = n;
    r->rows[0].n_seqs = n_seqs;
    r->rows[0].max_position = 0;
    for (int s = 0; s < n_seqs; s++) {
        int last = first;
        while (last < n && rows[last].seq == s) last++;
        assert(last > first);
        hunch_status st = hn_cache_reserve(r->cache, cache_seq[s], r->owner, last - first, err);
        if (st) return st;
        path = describe_sequence(r, rows, first, last, s, hn_cache_committed(r->cache, cache_seq[s], r->owner), path);
        describe_tables(r, s, cache_seq[s]);
        r->image->seq_first[s] = first;
        first = last;
    }
    assert(first == n);
    r->image->seq_first[n_seqs] = n;
    describe_outputs(r, rows, n);
    write_description(r);
    return HUNCH_OK;
}

/* ---- the pass ------------------------------------------------------------------------------------------------------- */

static hn_buf feature_block(const hn_runner *r, int place) {
    return hn_at(r->features, sizeof(float) * HN_MAX_ROWS * (size_t)r->lanes.ldx * (size_t)place);
}

/* Copies the chosen rows of the residual stream (or of its norm) to the block of a feature. */
static void export_rows(const hn_exec *ex, const hn_runner *r, size_t index, hn_buf from, int place) {
    const int ld = r->lanes.ldx;
    ex->ops->gather(ex, r->n_features, hn_at(r->image_buf, index), from, ld, feature_block(r, place), ld,
                    r->m->arch.hidden);
}

static void export_boundary(const hn_exec *ex, const hn_runner *r, int k) {
    if (r->n_features > 0 && k <= 256 && r->feature_slot[k] >= 0)
        export_rows(ex, r, offsetof(row_image, feature), r->lanes.x, r->feature_slot[k]);
}

static void forward(void *arg, int rank, int ranks) {
    const hn_runner *r = arg;
    const hn_model *m = r->m;
    const hn_pass_buffers *l = &r->lanes;
    const hn_ops *o = r->ops;
    const hn_exec ex = {o, rank, ranks};
    o->embed(&ex, l->rows, &m->embedding, m->arch.embed_scale, l->x, l->ldx);
    o->rope_table(&ex, l->rows, r->rope, l->rotation);
    if (m->arch.rope_local) o->rope_table(&ex, l->rows, &m->rope_local, l->rotation_local);
    for (int i = 0; i < m->arch.layers; i++) {
        const hn_layer_place place = r->place[i];
        const hn_kv kv = hn_cache_kv(r->cache, r->first_group + place.group, place.index);
        export_boundary(&ex, r, i);
        hn_layer_attention(&ex, m, i, &r->rows[place.group], &kv, l);
        hn_layer_ffn(&ex, m, i, l);
    }
    export_boundary(&ex, r, m->arch.layers);
    if (r->n_out == 0) return;
    o->gather(&ex, r->n_out, hn_at(r->image_buf, offsetof(row_image, out)), l->x, l->ldx, r->out_x, l->ldx,
              m->arch.hidden);
    o->rmsnorm(&ex, r->n_out, r->out_x, l->ldx, m->output_norm, m->arch.norm_eps, r->out_act, m->output_forms,
               r->set.post_norm ? r->out_norm : (hn_buf){NULL, 0}, l->ldx);
    if (r->set.post_norm && r->n_features > 0)
        export_rows(&ex, r, offsetof(row_image, normed), r->out_norm, r->n_boundaries);
    if (r->n_logits == 0) return;
    o->linear_top(&ex, r->n_logits, r->out_act, &m->output, m->arch.logit_scale, r->logits, r->ld_logits, r->n_full, &r->best);
}

hunch_status hn_pass_run(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, hunch_error *err) {
    /* of matrices in a file: before, since what was cut off cannot be read, and behind, since what was written meanwhile
     * is not the model */
    const hn_source *files = r->m->files;
    hunch_status st = files ? hn_source_check(files, err) : HUNCH_OK;
    if (!st) st = describe(r, rows, n, cache_seq, n_seqs, err);
    if (st) return st;
    const hn_ops *o = &r->m->ops;
    hn_pool_run(o->pool, forward, r);
    st = files ? hn_source_check(files, err) : HUNCH_OK;
    if (st) return st;
    r->host_logits = o->view(o, r->logits);
    r->host_features = o->view(o, r->features);
    r->host_best = o->view(o, r->best.id);
    r->host_value = o->view(o, r->best.value);
    return HUNCH_OK;
}

const float *hn_pass_logits(const hn_runner *r, int row) {
    assert(r->out_of_row[row] >= 0 && r->out_of_row[row] < r->n_logits);
    return r->out_of_row[row] < r->n_full ? r->host_logits + (size_t)r->out_of_row[row] * (size_t)r->ld_logits : NULL;
}

int32_t hn_pass_argmax(const hn_runner *r, int row) {
    const int at = r->out_of_row[row];
    return r->host_value[at] > -INFINITY ? r->host_best[at] : -1;
}

const float *hn_pass_feature(const hn_runner *r, int boundary, int row) {
    const int place = boundary == HN_FEATURE_POST_NORM ? r->n_boundaries : r->feature_slot[boundary];
    assert(r->feature_of_row[row] >= 0 && place >= 0);
    return r->host_features + ((size_t)place * HN_MAX_ROWS + (size_t)r->feature_of_row[row]) * (size_t)r->lanes.ldx;
}

int hn_pass_features(const hn_runner *r, hn_buf buffers[HN_MAX_FEATURES], int *ld) {
    const int n = r->n_boundaries + (r->set.post_norm ? 1 : 0);
    for (int i = 0; i < n; i++) buffers[i] = feature_block(r, i);
    *ld = r->lanes.ldx;
    return n;
}

int hn_pass_feature_row(const hn_runner *r, int row) {
    return r->feature_of_row[row];
}
