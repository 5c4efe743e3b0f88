/* SPDX-License-Identifier: Apache-2.0 */
/* text_tokens.h - the tokens of a file of texts, in order, in bounded memory.
 *
 *   .jsonl, .ndjson   rows: each string that they have, at any depth, under one of text, content, prompt, completion, response,
 *                     answer, output, value is a text
 *   others            one text
 *
 * Long texts are tokenized in pieces that end with lines. Untrusted until checked.
 */
#ifndef HN_TEXT_TOKENS_H
#define HN_TEXT_TOKENS_H
#include "text/tokenizer/tokenizer.h"

/* Tokens that follow the previous ones; ends: the text ends after them, and the next ones begin another. */
typedef hunch_status (*hn_text_take)(void *user, const int32_t *ids, size_t n, bool ends, hunch_error *err);

/* HUNCH_REFUSED: not UTF-8, not JSON, a text that cannot be spelled with these tokens, a line of more than 64 MiB. HUNCH_FAILED. An error
 * of take ends it and is returned. */
hunch_status hn_text_tokens(const char *path, const hn_tokenizer *t, hn_text_take take, void *user, hunch_error *err);
bool hn_text_is_rows(const char *path); /* by its name */
#endif
