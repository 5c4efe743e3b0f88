/* SPDX-License-Identifier: Apache-2.0 */
/* serve_thinking.h - what of a growing answer is thinking, between <think> and </think>, and what is the answer itself. */
#ifndef HN_SERVE_THINKING_H
#define HN_SERVE_THINKING_H

#include <stdbool.h>
#include <stddef.h>

/* Parts of a text; neither has the tags, nor line breaks at its beginning. */
typedef struct serve_parts {
    size_t thinking, n_thinking; /* where it begins, and its bytes */
    size_t answer, n_answer;
} serve_parts;

/* A prompt that ends with <think>, spaces and line breaks aside: its answer begins in thinking. */
bool serve_opens_thinking(const char *prompt, size_t n);
/* thinks: of its prompt. done: the text does not grow any more; else what may be the beginning of a tag is left out, so that both parts
 * only grow while the text does. A text that neither began in thinking nor begins with <think> is all answer. */
serve_parts serve_parts_of(const char *text, size_t n, bool thinks, bool done);

#endif
