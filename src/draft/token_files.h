/* SPDX-License-Identifier: Apache-2.0 */
/* token_files.h - files that specify which tokens are likely (their forms: token_ranks.h). Untrusted until checked. */
#ifndef HN_TOKEN_FILES_H
#define HN_TOKEN_FILES_H
#include "text/tokenizer/tokenizer.h"

/* A list of tokens below `vocab`, each once: id [vocab], *n of them, 1 or more. HUNCH_REFUSED, HUNCH_FAILED. */
hunch_status hn_token_file_ids(const char *path, int vocab, int32_t *id, int *n, hunch_error *err);
/* Adds to times [hn_tokenizer_vocab] how often each token occurs in a file of text. HUNCH_REFUSED: also if there are none. */
hunch_status hn_token_file_count(const char *path, const hn_tokenizer *t, uint64_t *times, hunch_error *err);
#endif
