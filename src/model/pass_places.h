/* SPDX-License-Identifier: Apache-2.0 */
/* pass_places.h - what the files share that compute the places of a block one after another (pass.h, "after a block"): pass_places.c, and
 * a file for each kind of output. Their buffers are allocated separately from the runner's. */
#ifndef HN_PASS_PLACES_H
#define HN_PASS_PLACES_H
#include <stddef.h>

#include "model/pass_private.h"

typedef struct hn_place_image {
    int32_t n; /* rows */
    int32_t token[HN_MAX_ROWS], place[HN_MAX_ROWS], from[HN_MAX_ROWS], to[HN_MAX_ROWS];
} hn_place_image;

/* A kind of output, whose places begin with hn_places, zeroed. */
typedef struct hn_places_kind {
    size_t bytes;                                        /* of its places */
    void (*list)(const hn_runner *r, hn_buf_room *room); /* takes its buffers */
    hunch_status (*open)(hn_runner *r, hunch_error *err); /* what is no buffer; NULL: nothing is */
    void (*close)(hn_runner *r);                         /* the same */
    void (*begin)(hn_runner *r, int blocks);             /* after the pass of so many blocks; NULL: nothing is to be done */
    void (*describe)(hn_runner *r, const hn_place *places); /* before run, when the image is known; NULL: the same */
    void (*run)(const hn_exec *ex, const hn_runner *r);  /* computes the rows of the image: called by every rank */
    void (*finish)(hn_runner *r);                        /* behind run; NULL: nothing is left */
    hn_place_result (*result)(const hn_runner *r, int i);
} hn_places_kind;
extern const hn_places_kind hn_places_markov, hn_places_prefix, hn_places_selector;

struct hn_places {
    const hn_places_kind *kind;
    hn_buf_room buffers;
    hn_place_image image;
    hn_buf image_buf;
    hn_ticket ticket; /* of the rows that were submitted last */
    int n, states; /* rows of the image; states of drafts, the first of which is zero, for the begin of a block */
};

static inline hn_buf hn_place_at(const hn_places *k, size_t offset) {
    return hn_at(k->image_buf, offset);
}
static inline hn_count hn_place_count(const hn_places *k) {
    return (hn_count){hn_place_at(k, offsetof(hn_place_image, n)), k->n};
}
/* Room for the best of HN_MAX_ROWS rows of so many outputs. */
hn_top hn_place_top(const hn_runner *r, hn_buf_room *room, int outputs);
/* y = W x of n rows; x is quantised into `room`. */
void hn_place_product(const hn_exec *ex, hn_count n, hn_matrix x, hn_act room, const hn_weight *w, hn_matrix y);
/* Row `row` of results, `width` numbers of `size` bytes each. */
const void *hn_place_read(const hn_runner *r, hn_buf at, size_t size, int width, int row);
/* The result of row i, from its logits of so many outputs and its best ones. */
hn_place_result hn_place_of(const hn_runner *r, int i, hn_matrix logits, const hn_top *best);
#endif
