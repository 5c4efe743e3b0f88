/* SPDX-License-Identifier: Apache-2.0 */
/* pass_told.c - passes over ranks (docs/machines.md). The leader describes its rows as for itself; what it has written, as far as it
 * differs from the pass before, and the numbers that the host keeps are the message to the others, which write the same to their buffers
 * and submit the same work. They export no features: drafters are the leader's. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "model/pass_private.h"
#include "model/pass_told.h"

enum { LINE = 64, IMAGE = -1, STEPS = -2, FIRST = -3, FRESH = -4, NEXT = HN_MODEL_GROUPS };

/* HN_TOLD_RUNNER */
typedef struct told_runner {
    hn_told told;
    uint32_t cache, model;
    int32_t first_group;
    int32_t max_context, rows, texts, logits, best;
} told_runner;

/* HN_TOLD_PASS; then pieces; then, with `moves`, what hn_cache_put_moves has put. */
typedef struct told_pass {
    hn_told told;
    int32_t n, n_seqs, n_path, most_seen, n_full, n_logits;
    int32_t pieces, moves;
    hn_layer_set layers;
} told_pass;

/* Bytes [at, at + bytes) of the row image, of a walk's steps, first ones or fresh states, or of the page table of a group; from NEXT on of
 * the table of a group's next states. They follow. */
typedef struct told_piece {
    int32_t of, at, bytes;
} told_piece;

struct hn_pass_told {
    uint32_t id;
    hn_row_image *sent; /* owned: what the others have */
    unsigned char *message; /* owned */
    size_t n, room;
    int32_t pieces;
};

/* ---- of the leader ------------------------------------------------------------------------------------------------------------ */

/* The most that a pass may need. */
static size_t most_bytes(const hn_runner *r) {
    const size_t lines = hn_image_bytes(r->rows.path_room) / LINE + 1;
    size_t bytes = sizeof(told_pass) + lines * (sizeof(told_piece) + LINE) + hn_cache_most_told(r->groups.cache);
    for (int g = 0; g < r->groups.n; g++)
        bytes += 2 * (size_t)r->rows.max_texts * (sizeof(told_piece) + sizeof(int32_t) * (size_t)r->rows.group[g].page_stride);
    if (r->walk.step)
        bytes += 3 * sizeof(told_piece) + hn_walk_most_steps(r) * sizeof *r->walk.step + sizeof r->walk.first + sizeof r->walk.fresh;
    return bytes;
}

hunch_status hn_told_open(hn_runner *r, hunch_error *err) {
    hn_link *l = r->m->backend->link;
    if (!r->m->split || !hn_link_leads(l)) return HUNCH_OK;
    r->told = hn_zalloc(1, sizeof *r->told);
    if (!r->told) return hn_fail_memory(err, "runner", sizeof *r->told);
    r->told->room = most_bytes(r);
    r->told->sent = hn_zalloc(1, hn_image_bytes(r->rows.path_room));
    r->told->message = hn_alloc(r->told->room);
    if (!r->told->sent || !r->told->message) return hn_fail_memory(err, "a message to ranks", r->told->room);
    r->told->id = ++l->next_id;
    const told_runner m = {{HN_TOLD_RUNNER, r->told->id}, hn_cache_told_id(r->groups.cache), r->m->told_id, r->groups.first, r->max_context,
                           r->rows.max, r->rows.max_texts, r->out.max_logits, r->out.best.k};
    l->send(l, &m, sizeof m);
    return hn_link_agree(l, HUNCH_OK, err);
}

void hn_told_close(hn_runner *r) {
    if (!r->told) return;
    const hn_told m = {HN_TOLD_RUNNER_END, r->told->id};
    if (r->told->id > 0) r->m->backend->link->send(r->m->backend->link, &m, sizeof m);
    hn_free(r->told->sent);
    hn_free(r->told->message);
    hn_free(r->told);
    r->told = NULL;
}

static void put(struct hn_pass_told *t, const void *from, size_t bytes) {
    assert(t->n + bytes <= t->room);
    memcpy(t->message + t->n, from, bytes);
    t->n += bytes;
}

static void put_piece(struct hn_pass_told *t, int of, size_t at, const void *from, size_t bytes) {
    const told_piece p = {of, (int32_t)at, (int32_t)bytes};
    put(t, &p, sizeof p);
    put(t, from, bytes);
    t->pieces++;
}

void hn_told_begin(hn_runner *r) {
    if (!r->told) return;
    r->told->n = sizeof(told_pass);
    r->told->pieces = 0;
}

void hn_told_table(const hn_runner *r, const int32_t *kept, int n) {
    if (!r->told) return;
    for (int g = 0; g < 2 * r->groups.n; g++) {
        const int of = g % r->groups.n;
        const int32_t *table = g == of ? r->rows.table[of] : r->walk.next_table[of];
        const size_t all = (size_t)r->rows.max_texts * (size_t)r->rows.group[of].page_stride;
        if (!table || kept < table || kept >= table + all) continue;
        put_piece(r->told, g == of ? of : NEXT + of, sizeof *kept * (size_t)(kept - table), kept, sizeof *kept * (size_t)n);
    }
}

void hn_told_walk(const hn_runner *r, int n_seqs) {
    if (!r->told) return;
    put_piece(r->told, STEPS, 0, r->walk.step, sizeof *r->walk.step * (size_t)r->walk.first[n_seqs]);
    put_piece(r->told, FIRST, 0, r->walk.first, sizeof *r->walk.first * ((size_t)n_seqs + 1));
    put_piece(r->told, FRESH, 0, r->walk.fresh, sizeof *r->walk.fresh * (size_t)n_seqs);
}

/* Lines of the image that are others than before. */
static void put_image(hn_runner *r) {
    const unsigned char *now = (const unsigned char *)r->rows.image;
    unsigned char *sent = (unsigned char *)r->told->sent;
    const size_t bytes = hn_image_bytes(r->rows.n_path);
    for (size_t at = 0, end; at < bytes; at = end) {
        for (end = at; end < bytes; end += LINE) {
            const size_t n = bytes - end < LINE ? bytes - end : LINE;
            if (memcmp(now + end, sent + end, n) == 0) break;
        }
        if (end > bytes) end = bytes;
        if (end == at) {
            end += LINE;
            continue;
        }
        memcpy(sent + at, now + at, end - at);
        put_piece(r->told, IMAGE, at, now + at, end - at);
    }
}

void hn_told_send(hn_runner *r) {
    struct hn_pass_told *t = r->told;
    if (!t) return;
    put_image(r);
    if (r->run.moves) t->n += hn_cache_put_moves(r->groups.cache, t->message + t->n);
    const told_pass head = {{HN_TOLD_PASS, t->id}, r->rows.n, r->rows.n_seqs, r->rows.n_path, r->rows.group[0].most_seen,
                            r->out.n_full, r->out.n_logits, t->pieces, r->run.moves, r->rows.layers};
    memcpy(t->message, &head, sizeof head);
    r->m->backend->link->send(r->m->backend->link, t->message, t->n);
}

/* ---- of the others ---------------------------------------------------------------------------------------------------------------- */

static hunch_status other_form(hunch_error *err) { return hn_fail(err, HUNCH_FAILED, "a message of another form"); }

hunch_status hn_runner_cache_told(const void *message, size_t bytes, uint32_t *cache, uint32_t *model, hunch_error *err) {
    told_runner m;
    if (bytes != sizeof m) return other_form(err);
    memcpy(&m, message, sizeof m);
    *cache = m.cache;
    *model = m.model;
    return HUNCH_OK;
}

hunch_status hn_runner_open_told(hn_runner **out, const hn_model *m, hn_cache *cache, const void *message, hunch_error *err) {
    told_runner t;
    memcpy(&t, message, sizeof t);
    const hn_pass_sizes most = {.rows = t.rows, .texts = t.texts, .logits = t.logits, .best = t.best};
    return hn_runner_open_for(out, m, cache, t.first_group, t.max_context, &most, NULL, err);
}

/* A buffer that pieces are of, and its bytes; none of another form. */
static hn_buf buffer_of(const hn_runner *r, int of, size_t *bytes) {
    const int g = of % NEXT;
    const hn_walk_step *step = r->walk.step;
    *bytes = step ? of == STEPS ? hn_walk_most_steps(r) * sizeof *step : of == FIRST ? sizeof r->walk.first : sizeof r->walk.fresh : 0;
    if (of < 0) return of == STEPS ? r->walk.at.step : of == FIRST ? r->walk.at.first : r->walk.at.fresh;
    *bytes = g < r->groups.n && of < 2 * NEXT ? sizeof(int32_t) * (size_t)r->rows.max_texts * (size_t)r->rows.group[g].page_stride : 0;
    return of < NEXT ? r->rows.group[g].page_table : r->walk.next_state[g];
}

static bool take_piece(hn_runner *r, const told_piece *p, const unsigned char *from) {
    size_t all = hn_image_bytes(r->rows.path_room);
    if (p->of < FRESH || p->of >= 2 * NEXT || p->at < 0 || p->bytes < 0) return false;
    const hn_buf to = p->of == IMAGE ? (hn_buf){NULL, 0} : buffer_of(r, p->of, &all);
    if ((size_t)p->at + (size_t)p->bytes > all || (p->of != IMAGE && !to.mem)) return false;
    if (p->of == IMAGE)
        memcpy((unsigned char *)r->rows.image + p->at, from, (size_t)p->bytes);
    else
        r->m->backend->write(r->m->backend, hn_at(to, (size_t)p->at), from, (size_t)p->bytes);
    return true;
}

/* Returns where the pieces end; NULL: they have another form. */
static const unsigned char *take_pieces(hn_runner *r, int pieces, const unsigned char *at, const unsigned char *end) {
    for (int i = 0; i < pieces; i++) {
        told_piece p;
        if ((size_t)(end - at) < sizeof p) return NULL;
        memcpy(&p, at, sizeof p);
        at += sizeof p;
        if (p.bytes < 0 || end - at < p.bytes || !take_piece(r, &p, at)) return NULL;
        at += p.bytes;
    }
    return at;
}

/* Without features, and without outputs that they alone need. */
static void take_numbers(hn_runner *r, const told_pass *m) {
    hn_row_image *im = r->rows.image;
    r->rows.n = m->n;
    r->rows.n_seqs = m->n_seqs;
    r->rows.n_path = m->n_path;
    r->rows.layers = m->layers;
    r->out.n = r->out.n_logits = m->n_logits;
    r->out.n_full = r->out.n_host = m->n_full;
    im->n_out = m->n_logits;
    im->n_features = im->n_masks = im->n_stored = 0;
    hn_pass_counts(r, m->most_seen);
}

hunch_status hn_pass_follow(hn_runner *r, const void *message, size_t bytes, hunch_error *err) {
    const unsigned char *at = message, *end = at + bytes;
    told_pass m;
    if (bytes < sizeof m) return other_form(err);
    memcpy(&m, message, sizeof m);
    at = take_pieces(r, m.pieces, at + sizeof m, end);
    const bool fits = m.n >= 1 && m.n <= r->rows.max && m.n_seqs >= 1 && m.n_seqs <= r->rows.max_texts && m.n_path >= 0 &&
                      m.n_path <= r->rows.path_room && m.n_full >= 0 && m.n_full <= m.n_logits && m.n_logits <= r->out.max_logits;
    if (!at || !fits) return other_form(err);
    take_numbers(r, &m);
    r->run.moves = m.moves;
    if (m.moves && !hn_cache_take_moves(r->groups.cache, at, (size_t)(end - at))) return other_form(err);
    r->m->backend->write(r->m->backend, r->rows.image_buf, r->rows.image, hn_image_bytes(r->rows.n_path));
    return hn_pass_run_followed(r, err);
}
