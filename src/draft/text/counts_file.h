/* SPDX-License-Identifier: Apache-2.0 */
/* counts_file.h - n-gram counts as llama.cpp's lookup-cache files hold them: until the end of the file
 *
 *   int32 × 4  the n-gram, -1 after its last token
 *   int32      number of pairs, at least 1
 *   int32 × 2  token, count; a pair
 * little endian.
 */
#ifndef HN_COUNTS_FILE_H
#define HN_COUNTS_FILE_H
#include "base/status.h"
#include "draft/text/ngram_counts.h"

/* Adds the counts of n-grams of min to max tokens; shorter and longer ones are checked but not added. Refuses damage,
 * ids outside 0..vocab-1 and duplicates (HUNCH_REFUSED, naming file and byte); x then has a part of the file. */
hunch_status hn_counts_read(hn_counts *x, const char *path, int min, int max, int vocab, hunch_error *err);
/* HUNCH_REFUSED: the file does not begin as a lookup cache does, of whatever vocabulary. Reads its first 64 KiB alone. */
hunch_status hn_counts_file_check(const char *path, hunch_error *err);
/* Writes the complete file or nothing (base/file_out.h); counts above INT32_MAX are written as INT32_MAX. On HUNCH_FAILED, naming the
 * path, an existing file is unchanged. */
hunch_status hn_counts_write(const hn_counts *x, const char *path, hunch_error *err);
#endif
