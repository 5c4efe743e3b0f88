/* SPDX-License-Identifier: Apache-2.0 */
/* head_store.c - the store of features of a draft head (head_passes.h), and its pending rows: committed tokens whose features are in it,
 * and whose rows are not computed yet. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head/head_passes_private.h"

/* ---- open and close ----------------------------------------------------------------------------------------------------- */

/* Which of the fed buffers is which state: they come in ascending order of boundaries, and that behind the final norm last. */
static void read_order(hn_head_passes *h, const int *boundaries, int n) {
    h->n_states = n;
    for (int k = 0; k < n; k++) {
        h->order[k] = 0;
        if (boundaries[k] == HN_FEATURE_POST_NORM)
            h->set.post_norm = true;
        else
            h->set.layers[boundaries[k] / 64] |= 1ull << (boundaries[k] % 64);
        for (int i = 0; i < n; i++)
            h->order[k] += boundaries[i] >= 0 && (boundaries[k] == HN_FEATURE_POST_NORM || boundaries[i] < boundaries[k]);
    }
}

hunch_status hn_head_store_open(hn_head_passes *h, const int *boundaries, int n_states, hunch_error *err) {
    enum { PLACES_A_SEQ = 8 };
    const size_t n = (size_t)h->n_seqs;
    read_order(h, boundaries, n_states);
    /* zeros, the mask's, the rows of a call, and beside these some of each sequence */
    h->room = 2 + HN_FEED_ROWS + PLACES_A_SEQ * h->n_seqs + (h->span > 1 ? h->span * h->n_seqs : 0);
    const size_t room = (size_t)h->room;
    h->seq = hn_zalloc(n, sizeof *h->seq);
    h->lists = hn_zalloc(2 * n * room, sizeof *h->lists);
    h->free_slot = hn_zalloc(room, sizeof *h->free_slot);
    if (!h->seq || !h->lists || !h->free_slot)
        return hn_fail_memory(err, "the tables of a draft head", 2 * n * room * sizeof *h->lists);
    for (size_t i = 0; i < n; i++) {
        h->seq[i].token = h->lists + 2 * i * room;
        h->seq[i].slot = h->seq[i].token + room;
    }
    for (int p = h->room - 1; p > HN_MASK_FEATURE; p--) h->free_slot[h->n_free++] = p;
    return HUNCH_OK;
}

void hn_head_store_close(hn_head_passes *h) {
    hn_free(h->free_slot);
    hn_free(h->lists);
    hn_free(h->seq);
}

void hn_head_store_mask(hn_head_passes *h) {
    const int width = h->model.arch.draft_head.input.feature_width, from = 0, to = HN_MASK_FEATURE;
    hn_buf state[HN_MOST_HEAD_FEATURES];
    for (int k = 0; k < h->n_states; k++) state[k] = hn_at(h->model.head.mask, sizeof(float) * (size_t)(k * width));
    hn_pass_store(h->runner, state, width, &from, &to, 1);
}

/* ---- pending rows ------------------------------------------------------------------------------------------------------- */

static void slot_free(hn_head_passes *h, int slot) {
    if (slot != HN_NO_FEATURE) h->free_slot[h->n_free++] = slot;
}

void hn_head_pending_add(hn_head_seq *s, int32_t token, int slot) {
    s->token[s->n_pending] = token;
    s->slot[s->n_pending++] = slot;
}

void hn_head_pending_drop(hn_head_passes *h, hn_head_seq *s, int n) {
    for (int i = 0; i < n; i++) slot_free(h, s->slot[i]);
    s->n_pending -= n;
    memmove(s->token, s->token + n, (size_t)s->n_pending * sizeof *s->token);
    memmove(s->slot, s->slot + n, (size_t)s->n_pending * sizeof *s->slot);
}

void hn_head_forget_root(hn_head_passes *h, hn_head_seq *s) {
    slot_free(h, s->root_slot);
    s->root_slot = HN_NO_FEATURE;
}

void hn_head_lose(hn_head_passes *h, hn_head_seq *s) {
    hn_head_pending_drop(h, s, s->n_pending);
    hn_head_forget_root(h, s);
    s->lost = true;
}

/* ---- feed --------------------------------------------------------------------------------------------------------------- */

static bool newest(const hn_feed_row *rows, int n, int i) {
    for (int k = i + 1; k < n; k++)
        if (rows[k].seq == rows[i].seq) return false;
    return true;
}

/* For a head without layers: the newest row of each sequence replaces the previous one. Returns how many features are stored, from rows
 * `from` of the fed ones to slots `to`. */
static int feed_newest(hn_head_passes *h, const hn_feed_row *rows, int n, int32_t *from, int32_t *to) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        hn_head_seq *s = &h->seq[rows[i].seq];
        if (!newest(rows, n, i)) continue;
        if (s->n_pending == 0) hn_head_pending_add(s, 0, h->free_slot[--h->n_free]);
        s->token[0] = rows[i].next_token;
        s->text_n = rows[i].position + 2;
        from[m] = rows[i].feature_row;
        to[m++] = s->slot[0];
    }
    return m;
}

/* The same for heads with rows: all that the cache does not have yet are pending. */
static int feed_pending(hn_head_passes *h, const hn_feed_row *rows, int n, int32_t *from, int32_t *to) {
    int m = 0;
    if (h->n_free < n) hn_head_evaluate(h, NULL, h->n_seqs); /* makes room in the store */
    for (int i = 0; i < n; i++) {
        hn_head_seq *s = &h->seq[rows[i].seq];
        const int next = hn_head_rows_held(h, rows[i].seq) + s->n_pending, slot = rows[i].position + !hn_head_is_block(h);
        if (s->lost || slot < next) continue; /* restored with a prefix */
        if (slot > next || h->n_free + (s->root_slot != HN_NO_FEATURE) == 0 || !hn_head_knows(h, rows[i].next_token)) {
            hn_head_lose(h, s);
            continue;
        }
        hn_head_forget_root(h, s);
        from[m] = rows[i].feature_row;
        to[m] = h->free_slot[--h->n_free];
        hn_head_pending_add(s, rows[i].next_token, to[m++]);
    }
    return m;
}

void hn_head_feed(hn_head_passes *h, const hn_feed_row *rows, int n, const hn_features *f) {
    int32_t from[HN_FEED_ROWS], to[HN_FEED_ROWS];
    hn_buf state[HN_MOST_HEAD_FEATURES];
    assert(n <= HN_FEED_ROWS && f->n >= (h->n_states > 0));
    const int m = hn_head_has_rows(h) ? feed_pending(h, rows, n, from, to) : feed_newest(h, rows, n, from, to);
    for (int k = 0; k < h->n_states; k++) state[k] = f->buffer[h->order[k]];
    if (m > 0 && h->n_states > 0) hn_pass_store(h->runner, state, f->ld, from, to, m);
}
