/* SPDX-License-Identifier: Apache-2.0 */
/* pass_rows.c - describes the rows of a pass: their slots in the cache, the rows that they see, the outputs that they need. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/least.h"
#include "model/pass_private.h"

/* The path of a draft row, from the root; returns its number of rows. */
static int draft_path(const hn_draft_rows *drafts, int row, int committed, int32_t *slots) {
    int n = 0;
    for (int k = row; k >= 0; k = drafts->parent[k]) {
        assert(k < drafts->n && drafts->parent[k] < k);
        n++;
    }
    assert(n < HN_MAX_ROWS);
    for (int k = row, i = n; k >= 0; k = drafts->parent[k]) slots[--i] = committed + k;
    return n;
}

/* Whether draft rows form a chain. Then rows after the last of them are in the order of their positions. */
static bool drafts_are_chain(const hn_draft_rows *drafts) {
    for (int k = 0; k < drafts->n; k++)
        if (drafts->parent[k] != k - 1) return false;
    return true;
}

/* The last position that row i sees, that of a later row of its block, and where its window begins. */
static void see_ahead(hn_row_image *im, const hn_row *rows, int i, int last) {
    const int n = rows[i].n_lookahead;
    assert(n >= 0 && i + n < last && rows[i].before >= 0);
    for (int k = 1; k <= n; k++) assert(rows[i + k].parent == i + k - 1);
    im->last[i] = im->position[i] + n;
    im->seen_from[i] = im->position[i] - rows[i].before;
    assert(im->seen_from[i] >= 0);
}

/* Whether rows [first, last) continue the draft rows, which form a chain, and each the one before it: then slot == position on every
 * path. */
static bool rows_are_chain(const hn_row *rows, int first, int last, const hn_draft_rows *drafts) {
    if (!drafts_are_chain(drafts)) return false;
    if (rows[first].parent != (drafts->n ? hn_draft_parent(drafts->n - 1) : -1)) return false;
    for (int i = first + 1; i < last; i++)
        if (rows[i].parent != i - 1) return false;
    return true;
}

/* The path of row i up to its parent, at entry `path`; returns its number of rows. */
static int path_before(hn_row_image *im, const hn_row *row, const int *depth, int committed, const hn_draft_rows *drafts, int path) {
    if (row->parent == -1) return 0;
    if (row->parent < 0) return draft_path(drafts, hn_draft_parent(row->parent), committed, im->path_slots + path);
    const int n = depth[row->parent] + 1;
    memcpy(im->path_slots + path, im->path_slots + im->path_start[row->parent], (size_t)n * sizeof(int32_t));
    return n;
}

/* Positions and slots of the rows of one sequence, rows [first, last), and their paths unless they form one chain, whose paths nothing
 * reads. Returns the next free path entry. */
static int describe_sequence(hn_runner *r, const hn_row *rows, int first, int last, int seq, int committed,
                             const hn_draft_rows *drafts, int path) {
    hn_row_image *im = r->rows.image;
    const bool direct = rows_are_chain(rows, first, last, drafts);
    int depth[HN_PASS_ROWS];
    im->committed[seq] = committed;
    im->direct[seq] = direct;
    for (int i = first; i < last; i++) {
        assert(rows[i].parent < i && (rows[i].parent < 0 || rows[i].parent >= first));
        im->path_start[i] = direct ? 0 : path;
        depth[i] = direct ? drafts->n + i - first : path_before(im, &rows[i], depth, committed, drafts, path);
        im->token[i] = rows[i].token;
        im->seq[i] = seq;
        im->slot[i] = committed + drafts->n + (i - first);
        im->position[i] = committed + depth[i];
        const int turned = im->position[i] + rows[i].rope_offset - r->m->run.at[0].first;
        im->turned[i] = turned > 0 ? turned : 0;
        see_ahead(im, rows, i, last);
        if (direct) continue;
        im->path_slots[path + depth[i]] = im->slot[i];
        path += depth[i] + 1;
        for (int k = 1; k <= rows[i].n_lookahead; k++) im->path_slots[path++] = im->slot[i] + k;
        assert(path - im->path_start[i] <= r->rows.max && path <= r->rows.path_room);
    }
    return path;
}

/* Adds the rows that need `what` of the output matrix to those to gather. */
static void gather_wanting(hn_runner *r, const hn_row *rows, int n, hn_logits what) {
    for (int i = 0; i < n; i++)
        if (rows[i].logits == what) {
            r->out.of_row[i] = (int16_t)r->out.n;
            r->rows.image->out[r->out.n++] = i;
        }
}

/* Rows to gather after the last layer: first those with all logits, the host's before the others, then those with their best one, then
 * those that need only the post-norm feature. */
static void describe_outputs(hn_runner *r, const hn_row *rows, int n, const hn_pass_options *more) {
    r->out.n = r->features.n = 0;
    for (int i = 0; i < n; i++) r->out.of_row[i] = r->features.of_row[i] = -1;
    gather_wanting(r, rows, n, HN_LOGITS_ALL);
    r->out.n_host = r->out.n;
    gather_wanting(r, rows, n, HN_LOGITS_DRAWN);
    r->out.n_full = r->out.n;
    gather_wanting(r, rows, n, HN_LOGITS_BEST);
    r->out.n_logits = r->out.n;
    assert(r->out.n_logits <= r->out.max_logits);
    for (int i = 0; i < n; i++) {
        if (!rows[i].feature) continue;
        r->features.of_row[i] = (int16_t)r->features.n;
        r->rows.image->feature[r->features.n++] = i;
        if (r->features.set.post_norm && rows[i].logits == HN_LOGITS_NONE) {
            r->out.of_row[i] = (int16_t)r->out.n;
            r->rows.image->out[r->out.n++] = i;
        }
        r->rows.image->normed[r->features.n - 1] = r->out.of_row[i];
    }
    for (int i = 0; more->output && i < n; i++) { /* stored normed outputs of rows without logits */
        if (more->output[i] < 0 || !hn_head_reads_normed(&r->m->arch.draft_head) || r->out.of_row[i] >= 0) continue;
        r->out.of_row[i] = (int16_t)r->out.n;
        r->rows.image->out[r->out.n++] = i;
    }
}

/* The same for a head with steps: outputs in the order of their steps. Further ones have numbers after the rows. */
static void describe_steps(hn_runner *r, const hn_row *rows, int n, const hn_pass_options *more) {
    const int steps = r->m->arch.draft_head.rows.steps.n;
    int next = n;
    r->out.n = r->features.n = 0;
    r->steps.first = more->step;
    for (int i = 0; i < n; i++) {
        r->out.of_row[i] = r->features.of_row[i] = -1;
        r->steps.further[i] = next;
        next += more->further ? more->further[i] : 0;
    }
    assert(next <= 2 * HN_MAX_ROWS);
    for (int k = 0; k <= steps; k++) {
        const int behind = k - more->step;
        r->steps.begin[k] = r->out.n;
        for (int i = 0; k < steps && behind >= 0 && i < n; i++) {
            if (rows[i].logits == HN_LOGITS_NONE || behind > (more->further ? more->further[i] : 0)) continue;
            assert(r->out.n < HN_MAX_ROWS);
            r->out.of_row[behind ? r->steps.further[i] + behind - 1 : i] = (int16_t)r->out.n;
            r->rows.image->out[r->out.n++] = i;
        }
    }
    r->out.n_host = r->out.n_full = r->out.n_logits = r->out.n;
    for (int k = 0; k < steps; k++) r->rows.image->n_step[k] = r->steps.begin[k + 1] - r->steps.begin[k];
}

/* A head's blocks: places of the features of the text's rows, or the masks of a block. */
static void describe_blocks(hn_runner *r, const hn_row *rows, int n, const hn_pass_options *more) {
    hn_row_image *im = r->rows.image;
    r->head.context = more->context;
    r->head.n_masks = 0;
    for (int i = 0; i < n; i++) {
        assert(!more->context || (more->feature[i] >= 0 && more->feature[i] < r->head.store_rows && rows[i].logits == HN_LOGITS_NONE));
        im->from[i] = more->context ? more->feature[i] : 0;
        if (!more->context && r->m->arch.draft_head.rows.block.mask_row && rows[i].parent >= 0) im->mask_row[r->head.n_masks++] = i;
    }
}

/* The places of the features of a head's rows, and the outputs that are stored. */
static void describe_head(hn_runner *r, const hn_row *rows, int n, const hn_pass_options *more) {
    hn_row_image *im = r->rows.image;
    const hn_head_desc *d = &r->m->arch.draft_head;
    const bool normed = hn_head_reads_normed(d), steps = d->rows.kind == HN_ROWS_STEPS;
    const bool pairs = d->rows.kind == HN_ROWS_MASKS && d->rows.masks.input == HN_MASK_PAIR;
    r->head.drafts = more->drafts;
    r->head.module = more->module;
    assert(r->head.module < hn_arch_modules(&r->m->arch));
    r->head.n_output_rows = r->head.n_masks = 0;
    for (int i = 0; i < n; i++) {
        assert(more->feature[i] >= (pairs ? -1 : 0));
        assert(more->feature[i] < (more->drafts ? r->head.output_rows : r->head.store_rows));
        im->from[i] = more->feature[i] < 0 ? 0 : more->feature[i]; /* a mask: any, it is not read */
        if (more->feature[i] < 0) im->mask_row[r->head.n_masks++] = i;
        if (more->output[i] < 0) continue;
        assert((rows[i].logits != HN_LOGITS_NONE || normed) && more->output[i] < r->head.output_rows);
        im->output_row[r->head.n_output_rows] = normed || steps ? r->out.of_row[i] : i;
        im->output_slot[r->head.n_output_rows++] = more->output[i];
    }
}

/* The entries of a table that are others than those of the pass before: what the buffer has of it is replaced there. */
void hn_table_write(const hn_runner *r, hn_buf to, int32_t *kept, const int32_t *table, int n) {
    hn_backend *b = r->m->backend;
    int first = 0, last = n;
    while (first < n && kept[first] == table[first]) first++;
    while (last > first && kept[last - 1] == table[last - 1]) last--;
    if (first == last) return;
    memcpy(kept + first, table + first, (size_t)(last - first) * sizeof *table);
    b->write(b, hn_at(to, sizeof *table * (size_t)first), kept + first, (size_t)(last - first) * sizeof *table);
    hn_told_table(r, kept + first, last - first);
}

/* Writes the page tables of cache_seq, or of a view, for sequence `seq` of the pass. */
static void describe_tables(hn_runner *r, int seq, int cache_seq, const hn_cache_view *view) {
    for (int g = 0; g < r->groups.n; g++) {
        const int group = r->groups.first + g;
        const size_t at = (size_t)seq * (size_t)r->rows.group[g].page_stride;
        int pages = 0;
        if (view && !(r->groups.read >> g & 1)) continue;
        const int32_t *t = view ? hn_cache_view_pages(view, group, &pages) : hn_cache_pages(r->groups.cache, cache_seq, group, &pages);
        hn_table_write(r, hn_at(r->rows.group[g].page_table, sizeof *t * at), r->rows.table[g] + at, t, pages);
    }
}

/* Rows [first, last) that see the rows of a view, and each other not. Far behind its last row their windows would be empty: then that row
 * is in them. */
static void describe_viewers(hn_runner *r, const hn_row *rows, int first, int last, int seq, const hn_cache_view *view, int shift) {
    hn_row_image *im = r->rows.image;
    const int n = hn_cache_view_rows(view), at = n + shift, farthest = n - 1 + r->groups.window - 1;
    assert(n > 0 && at >= 0);
    im->committed[seq] = n;
    im->direct[seq] = 1;
    for (int i = first; i < last; i++) {
        im->token[i] = rows[i].token;
        im->seq[i] = seq;
        im->position[i] = im->turned[i] = at;
        im->path_start[i] = 0;
        im->last[i] = n - 1;
        im->seen_from[i] = r->groups.window && at > farthest ? farthest : at;
    }
    describe_tables(r, seq, 0, view);
}

void hn_pass_counts(hn_runner *r, int most_seen) {
    r->rows.turned.n.most = r->rows.n;
    for (int g = 0; g < HN_MODEL_GROUPS; g++) {
        r->rows.group[g].n.most = r->rows.n;
        r->rows.group[g].n_seqs.most = r->rows.n_seqs;
        r->rows.group[g].most_seen = most_seen;
    }
}

/* The numbers of rows, for the host and in the image. */
static void write_description(hn_runner *r) {
    hn_backend *b = r->m->backend;
    hn_row_image *im = r->rows.image;
    im->n = r->rows.n;
    im->n_seqs = r->rows.n_seqs;
    im->n_out = r->out.n;
    im->n_full = r->out.n_full;
    im->n_logits = r->out.n_logits;
    im->n_features = r->features.n;
    im->n_masks = r->head.n_masks;
    im->n_stored = r->head.n_output_rows;
    int seen = 0;
    for (int i = 0; i < r->rows.n; i++) seen = hn_most(seen, hn_most(im->position[i], im->last[i]) + 1);
    hn_pass_counts(r, seen);
    b->write(b, r->rows.image_buf, im, hn_image_bytes(r->rows.n_path));
}

/* Rows that are not in the cache: only their tokens are needed. */
static void describe_tokens(hn_runner *r, const hn_row *rows, int first, int last, int seq) {
    for (int i = first; i < last; i++) {
        r->rows.image->token[i] = rows[i].token;
        r->rows.image->seq[i] = seq;
    }
}

/* Whether the rows of a pass have slots in the cache. */
static bool has_slots(const hn_runner *r, const hn_pass_options *more) {
    return r->groups.n > 0 && !r->groups.borrowed && !(r->m->arch.draft_head.rows.kind == HN_ROWS_STEPS && more->drafts);
}

bool hn_layer_set_fits(const hn_layer_set *s, hn_layers of) {
    if (of.n > 256) return false;
    for (int i = 0; i < of.n; i++)
        if (hn_layer_set_has(s, i) && of.at[i].kv_back > 0 && !hn_layer_set_has(s, i - of.at[i].kv_back)) return false;
    return true;
}

static int rows_of_sequence(const hn_row *rows, int n, int first, int seq) {
    int last = first;
    while (last < n && rows[last].seq == seq) last++;
    return last - first;
}

hunch_status hn_pass_reserve(const hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more,
                             hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int s = 0, first = 0; !st && has_slots(r, more) && s < n_seqs; s++) {
        const int own = rows_of_sequence(rows, n, first, s), kept = more->draft_rows ? more->draft_rows[s].n : 0;
        st = hn_cache_reserve(r->groups.cache, cache_seq[s], r->groups.model_id, kept + own, err);
        first += own;
    }
    return st;
}

void hn_pass_describe(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more) {
    const hn_draft_rows none = {0, NULL};
    const hn_rows_kind kind = r->m->arch.draft_head.rows.kind;
    const bool cached = has_slots(r, more);
    int first = 0, path = 0;
    assert(n >= 1 && n <= r->rows.max && n_seqs >= 1 && n_seqs <= n && n_seqs <= r->rows.max_texts);
    r->rows.n = n;
    r->rows.n_seqs = n_seqs;
    r->rows.layers = more->layers ? *more->layers : (hn_layer_set){{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    assert(!more->layers || (more->draft_rows && !hn_arch_is_head(&r->m->arch) && hn_layer_set_fits(more->layers, r->m->run)));
    for (int i = 0; i < n; i++) assert(rows[i].adapter == 0);
    hn_grid_begin(r);
    for (int s = 0; s < n_seqs; s++) {
        const int last = first + rows_of_sequence(rows, n, first, s);
        assert(last > first);
        const hn_draft_rows *drafts = more->draft_rows ? &more->draft_rows[s] : &none;
        if (r->groups.borrowed) {
            describe_viewers(r, rows, first, last, s, more->views[s], more->shift);
            r->rows.image->seq_first[s] = first;
            first = last;
            continue;
        }
        if (!cached) {
            describe_tokens(r, rows, first, last, s);
            first = last;
            continue;
        }
        assert(hn_cache_reserved(r->groups.cache, cache_seq[s], r->groups.model_id, drafts->n + last - first));
        const int committed = hn_cache_committed(r->groups.cache, cache_seq[s], r->groups.model_id);
        path = describe_sequence(r, rows, first, last, s, committed, drafts, path);
        describe_tables(r, s, cache_seq[s], NULL);
        const int n_certain = more->n_certain ? more->n_certain[s] : 0;
        if (r->walk.step) hn_walk_sequence(r, rows, first, last, s, cache_seq[s], drafts, n_certain, !more->draft_rows);
        if (r->grid.cell) hn_grid_sequence(r, first, last, s, cache_seq[s], drafts, n_certain, !more->draft_rows);
        r->rows.image->seq_first[s] = first;
        first = last;
    }
    assert(first == n);
    r->rows.image->seq_first[n_seqs] = n;
    r->rows.n_path = path;
    if (kind == HN_ROWS_STEPS)
        describe_steps(r, rows, n, more);
    else
        describe_outputs(r, rows, n, more);
    if (kind == HN_ROWS_BLOCK)
        describe_blocks(r, rows, n, more);
    else if (hn_arch_is_head(&r->m->arch))
        describe_head(r, rows, n, more);
    hn_one_wait_describe(r, rows, n, n_seqs, more);
    write_description(r);
    if (r->walk.step) hn_walk_write(r, n_seqs);
    if (r->grid.cell) hn_grid_write(r, n_seqs);
}
