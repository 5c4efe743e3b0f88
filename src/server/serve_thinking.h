/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.h - what a growing answer is made of: thinking, text and calls of tools, each in a text of its own that only grows, and
 * the blocks in which they follow one another. The model's own marks tell thinking and answer apart (hunch_split_next), and are in neither.
 *
 * The blocks are the one description of an answer from which all protocols write, whole and as streams (serve_blocks.h). They do not
 * depend on how the answer was cut into pieces. */
#ifndef HN_SERVE_THINKING_H
#define HN_SERVE_THINKING_H

#include "hunch/hunch.h"
#include "server/http/serve_bytes.h"

typedef enum serve_block_kind { SERVE_BLOCK_NONE, SERVE_BLOCK_THINKING, SERVE_BLOCK_TEXT, SERVE_BLOCK_CALL } serve_block_kind;
typedef struct serve_block {
    serve_block_kind kind;
    size_t from, to; /* bytes of the thinking, or of the answer; of a call its number, and one more */
} serve_block;

typedef struct serve_parts {
    hunch_split split; /* .thinking is set before the first text */
    hunch_calls *calls; /* that reads calls of tools; NULL: they are text */
    size_t fed;         /* bytes that it was given */
    serve_bytes thinking, answer; /* without line breaks at their beginnings */
    size_t thinking_end; /* bytes of the whole text up to the end of the newest thinking */
    serve_block *block;  /* [n_blocks]; the last one may grow */
    size_t n_blocks, cap_blocks, n_calls; /* n_calls: blocks of calls */
    bool cut;            /* once it is whole: it ended so that a block may be a call that is cut */
} serve_parts;

/* Adds what is new in the whole text. done: it does not grow any more; cut: it ended at a limit or a stop string, so a call that is not
 * complete is cut, and else it is text. False: no memory. */
bool serve_parts_grow(serve_parts *p, const hunch_model *m, const char *text, size_t n, bool done, bool cut);
/* The same of an answer that is one text, with its thinking and calls in it. */
bool serve_parts_one(serve_parts *p, size_t n);
void serve_parts_free(serve_parts *p);

#endif
