/* SPDX-License-Identifier: Apache-2.0 */
/* answer_ends.h - tokens that end an answer by their texts, whatever a GGUF says of their types: a converter that did not know a token as
 * special wrote it as a plain one, and the model was trained to end with it all the same. The texts are those of llama.cpp. */
#ifndef HN_ANSWER_ENDS_H
#define HN_ANSWER_ENDS_H
#include "text/tokenizer/tokenizer_private.h"

enum { HN_FILL_ENDS = 3 }; /* of fill-in-the-middle: padding, repository, file */

/* Which of the texts a vocabulary has. Zeroed at first. */
typedef struct hn_answer_ends {
    uint32_t there;              /* bit i: text i */
    bool fill_named[HN_FILL_ENDS]; /* the file names that token by its id: no text is looked for */
    bool fill_there[HN_FILL_ENDS];
    int32_t fill[HN_FILL_ENDS];  /* the first token with such a text */
} hn_answer_ends;

/* To be called for each token, before the questions below. text: as the file spells it. */
void hn_answer_ends_note(hn_answer_ends *e, int32_t id, const char *text, size_t len);
/* Whether the token ends an answer by its text. */
bool hn_answer_ends_has(const hn_answer_ends *e, int32_t id, const char *text, size_t len);
/* Whether it is one of two texts that end nothing beside others that do, also if an id names it: "<|end|>" ends each message of a turn in
 * formats that end the turn with "<|return|>" or "<|call|>", "</s>" is markup where "<|tool_response>" is an end. */
bool hn_answer_ends_spares(const hn_answer_ends *e, const char *text, size_t len);
/* In a folder, whose configuration names its ends: marks control tokens by the usual texts among these. */
void hn_answer_ends_mark(hn_tokenizer *t);
#endif
