/* SPDX-License-Identifier: Apache-2.0 */
/* serve_blocks.h - an answer as its blocks, one after the other: thinking, text, calls of tools (serve_thinking.h). Every protocol writes
 * what it says of an answer from these, whole and as a stream, so both have the same. Under the lock of the call.
 *
 * A call that is not in its format is no block of a whole answer, whose text has it; in a stream it is one if it had begun by then. */
#ifndef HN_SERVE_BLOCKS_H
#define HN_SERVE_BLOCKS_H

#include "server/serve_call.h"

/* A block that is told. */
typedef struct serve_told_block {
    serve_block_kind kind;
    int index;              /* among those that are told */
    const char *text;       /* [n] so far; of a call its arguments */
    size_t n;
    const hunch_call *call; /* of a SERVE_BLOCK_CALL, else NULL; until the answer grows */
    const char *id;         /* of the call; once it was told it stays, although the model may write another behind the arguments */
    bool last;              /* the answer has ended with it */
} serve_told_block;

/* What is told; `to` is the caller's. Any may be NULL. */
typedef struct serve_block_events {
    void (*open)(void *to, serve_choice *one, const serve_told_block *b);
    void (*add)(void *to, serve_choice *one, const serve_told_block *b, const char *text, size_t n);
    void (*close)(void *to, serve_choice *one, const serve_told_block *b);
} serve_block_events;

/* Everything that was not told before. empty: an answer of nothing is one empty text. */
void serve_blocks_next(serve_choice *one, const serve_block_events *e, bool empty, void *to);
/* Whether there is anything that was not told. */
bool serve_blocks_wait(const serve_choice *one);
/* Arguments as an object; what of a cut call cannot be read is left out. NULL: they are none. */
json_t *serve_arguments_json(const serve_told_block *b);

#endif
