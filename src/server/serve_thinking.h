/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.h - what of a growing answer is thinking, and what is the answer itself: two texts that only grow while it does. The
 * model's own marks tell them apart (hunch_split_next), and are in neither. */
#ifndef HN_SERVE_THINKING_H
#define HN_SERVE_THINKING_H

#include "hunch/hunch.h"
#include "server/serve_bytes.h"

typedef struct serve_parts {
    hunch_split split; /* .thinking is set before the first text */
    hunch_calls *calls; /* that reads calls of tools; NULL: they are text */
    size_t fed;         /* bytes that it was given */
    serve_bytes thinking, answer; /* without line breaks at their beginnings */
    size_t thinking_end; /* bytes of the whole text up to the end of the newest thinking */
} serve_parts;

/* Adds what is new in the whole text. done: it does not grow any more. False: no memory. */
bool serve_parts_grow(serve_parts *p, const hunch_model *m, const char *text, size_t n, bool done);
void serve_parts_free(serve_parts *p);

#endif
