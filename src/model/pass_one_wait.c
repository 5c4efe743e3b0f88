/* SPDX-License-Identifier: Apache-2.0 */
/* pass_one_wait.c - rounds that wait once (hn_backend.one_wait): rows whose tokens earlier passes found and the host has not read, and
 * trees whose accepted paths are found where their logits are. Described before a pass like its rows, then written to the buffers.
 *
 *   earlier pass   best lists of its rows, in one of the runner's lists
 *   this pass      take_tokens · the layers · sample · verify_match → how many are accepted, the next token, the path */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "model/pass_private.h"

hunch_status hn_one_wait_open(hn_runner *r, hunch_error *err) {
    hn_pass_one_wait *a = &r->ahead;
    if (!r->m->backend->one_wait) return HUNCH_OK;
    const size_t draws = (size_t)r->out.max_logits;
    a->image = hn_zalloc(1, sizeof *a->image);
    a->draw = hn_zalloc(draws, sizeof *a->draw);
    return a->image && a->draw ? HUNCH_OK : hn_fail_memory(err, "row tables", sizeof *a->image + draws * sizeof *a->draw);
}

void hn_one_wait_close(hn_runner *r) {
    hn_free(r->ahead.image);
    hn_free(r->ahead.draw);
}

/* The target's passes are those that have trees. */
void hn_one_wait_list_buffers(hn_buf_room *room, hn_runner *r) {
    const hn_backend *b = r->m->backend;
    hn_pass_one_wait *a = &r->ahead;
    if (!b->one_wait) return;
    const size_t rows = (size_t)r->out.max_logits;
    const bool is_head = hn_arch_is_head(&r->m->arch);
    a->image_buf = hn_buf_room_take(room, sizeof(hn_one_wait_image));
    a->after = hn_buf_room_take(room, is_head ? 0 : sizeof(int32_t) * rows);
    a->draws = hn_buf_room_take(room, is_head ? 0 : sizeof(hn_draw) * rows);
    a->scratch = hn_buf_room_take(room, is_head ? 0 : b->sample_scratch(b, hn_arch_logits(&r->m->arch)));
    a->out = hn_buf_room_result(room, is_head ? 0 : sizeof(int32_t) * HN_MATCH_OUT * HN_MAX_TEXTS);
}

static hn_buf image_at(const hn_pass_one_wait *a, size_t offset) { return hn_at(a->image_buf, offset); }

/* ---- tokens that the host has not read ---------------------------------------------------------------------------------- */

hn_token_source hn_pass_source(const hn_runner *r, int row, int rank) {
    const int at = r->out.of_row[row];
    assert(r->m->backend->one_wait && at >= 0 && at < r->out.n_logits && rank < r->out.best.k);
    return (hn_token_source){r->out.best.id, at * r->out.best.k + rank};
}

static bool same_list(hn_buf a, hn_buf b) { return a.mem == b.mem && a.off == b.off; }

/* The rows of one list after those of another. */
static void describe_sources(hn_pass_one_wait *a, const hn_token_source *source, int n) {
    int m = 0;
    a->n_lists = 0;
    for (int i = 0; source && i < n; i++) {
        bool listed = !source[i].list.mem;
        for (int k = 0; !listed && k < a->n_lists; k++) listed = same_list(a->list[k].from, source[i].list);
        if (listed) continue;
        a->list[a->n_lists] = (hn_token_list){source[i].list, m, 0};
        for (int k = i; k < n; k++) {
            if (!source[k].list.mem || !same_list(source[k].list, source[i].list)) continue;
            a->image->from[m] = source[k].at;
            a->image->to[m++] = k;
        }
        a->list[a->n_lists].n = m - a->list[a->n_lists].first;
        a->n_lists++;
    }
}

void hn_one_wait_take(const hn_exec *ex, const hn_runner *r) {
    const hn_pass_one_wait *a = &r->ahead;
    for (int k = 0; k < a->n_lists; k++) {
        const size_t first = sizeof(int32_t) * (size_t)a->list[k].first;
        ex->ops->take_tokens(ex, hn_number(a->list[k].n), image_at(a, offsetof(hn_one_wait_image, from) + first), a->list[k].from,
                             image_at(a, offsetof(hn_one_wait_image, to) + first), r->rows.turned.token);
    }
}

/* ---- trees ---------------------------------------------------------------------------------------------------------------- */

static void describe_tree(hn_runner *r, const hn_row *rows, const hn_pass_tree *t) {
    hn_pass_one_wait *a = &r->ahead;
    const int32_t *position = r->rows.image->position;
    a->image->tree_first[a->n_trees] = t->first;
    a->image->tree_rows[a->n_trees++] = t->n;
    for (int i = t->first; i < t->first + t->n; i++) {
        assert(r->out.of_row[i] >= 0 && r->out.of_row[i] < r->out.n_logits && (i == t->first || rows[i].parent >= t->first));
        a->image->parent[i] = i == t->first ? -1 : rows[i].parent - t->first;
        a->image->of_row[i] = r->out.of_row[i];
        if (!t->draw) continue;
        assert(r->out.of_row[i] < r->out.n_full);
        a->draw[r->out.of_row[i]] = *t->draw;
        a->draw[r->out.of_row[i]].position += (uint64_t)(position[i] - position[t->first]);
    }
}

/* Results of passes before are there until all lists had others. */
static void next_list(hn_runner *r) {
    hn_pass_output *o = &r->out;
    if (!hn_arch_is_head(&r->m->arch) || o->n_logits == 0) return;
    o->list = (o->list + 1) % HN_KEPT_LISTS;
    const size_t at = (size_t)o->list * (size_t)o->max_logits * (size_t)o->lists.k;
    o->best.id = hn_at(o->lists.id, sizeof(int32_t) * at);
    o->best.value = hn_at(o->lists.value, sizeof(float) * at);
}

void hn_one_wait_describe(hn_runner *r, const hn_row *rows, int n, int n_seqs, const hn_pass_options *more) {
    hn_pass_one_wait *a = &r->ahead;
    hn_backend *b = r->m->backend;
    assert(a->image || (!more->source && !more->tree));
    a->n_trees = 0;
    a->host_out = a->host_token = NULL;
    if (!a->image) return;
    describe_sources(a, more->source, n);
    next_list(r);
    memset(a->draw, 0, sizeof *a->draw * (size_t)r->out.n_logits);
    for (int s = 0; s < n_seqs; s++) {
        a->tree_of[s] = more->tree && more->tree[s].n > 0 ? (int16_t)a->n_trees : -1;
        if (a->tree_of[s] >= 0) describe_tree(r, rows, &more->tree[s]);
    }
    a->image->n_trees = a->n_trees;
    if (a->n_lists > 0 || a->n_trees > 0) b->write(b, a->image_buf, a->image, sizeof *a->image);
    if (a->n_trees > 0) b->write(b, a->draws, a->draw, sizeof *a->draw * (size_t)r->out.n_logits);
}

void hn_one_wait_verify(const hn_exec *ex, const hn_runner *r) {
    const hn_pass_one_wait *a = &r->ahead;
    const hn_pass_output *o = &r->out;
    if (a->n_trees == 0) return;
    const hn_sample draws = {a->draws, o->best.id, o->best.value, o->best.k, o->logits, a->scratch, a->after};
    const hn_match trees = {.n = {image_at(a, offsetof(hn_one_wait_image, n_trees)), a->n_trees},
                            .first = image_at(a, offsetof(hn_one_wait_image, tree_first)),
                            .rows = image_at(a, offsetof(hn_one_wait_image, tree_rows)),
                            .parent = image_at(a, offsetof(hn_one_wait_image, parent)),
                            .token = r->rows.turned.token,
                            .after = a->after,
                            .of_row = image_at(a, offsetof(hn_one_wait_image, of_row)),
                            .out = a->out};
    ex->ops->sample(ex, hn_image_count(r, offsetof(hn_row_image, n_logits), o->n_logits), &draws);
    ex->ops->verify_match(ex, &trees);
}

/* ---- results -------------------------------------------------------------------------------------------------------------- */

void hn_one_wait_read(hn_runner *r) {
    hn_pass_one_wait *a = &r->ahead;
    hn_backend *b = r->m->backend;
    if (a->n_trees == 0) return;
    a->host_out = b->read(b, r->run.ticket, a->out, sizeof(int32_t) * HN_MATCH_OUT * (size_t)a->n_trees);
    a->host_token = b->read(b, r->run.ticket, r->rows.turned.token, sizeof(int32_t) * (size_t)r->rows.n);
}

hn_pass_path hn_pass_tree_path(const hn_runner *r, int seq) {
    const int32_t *out = r->ahead.host_out + HN_MATCH_OUT * r->ahead.tree_of[seq];
    assert(r->ahead.host_out && r->ahead.tree_of[seq] >= 0);
    return (hn_pass_path){out[0], out[1], out + 2};
}

int32_t hn_pass_token(const hn_runner *r, int row) {
    assert(r->ahead.host_token && row < r->rows.n);
    return r->ahead.host_token[row];
}
