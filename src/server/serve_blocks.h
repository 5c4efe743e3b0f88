/* SPDX-License-Identifier: Apache-2.0 */
/* serve_blocks.h - an answer as blocks one after the other, as protocols with typed events have it: thinking, text, calls of tools. The
 * blocks of a growing answer and of a whole one are the same but where they change kind within one round. Under the lock of the call. */
#ifndef HN_SERVE_BLOCKS_H
#define HN_SERVE_BLOCKS_H

#include "server/serve_call.h"

/* What is told of blocks; `to` is the caller's. Of the block itself: one->block. For whole answers open and add may be NULL. */
typedef struct serve_block_events {
    void (*open)(void *to, serve_choice *one);
    void (*add)(void *to, serve_choice *one, const char *text, size_t n);
    void (*close)(void *to, serve_choice *one); /* its whole text: serve_block_text */
} serve_block_events;

/* Everything that is new. Once the choice is done the last block is closed; an answer of nothing is one empty text. */
void serve_blocks_next(serve_choice *one, const serve_block_events *e, void *to);
/* The text of the block so far; of a call its arguments. */
const char *serve_block_text(const serve_choice *one, size_t *n);
/* The call of a SERVE_BLOCK_CALL: until the answer grows. */
const hunch_call *serve_block_call(const serve_choice *one);

#endif
