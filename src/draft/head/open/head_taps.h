/* SPDX-License-Identifier: Apache-2.0 */
/* head_taps.h - the layers whose states a head reads, as its files and its SPEC list them. Each kind defines what their numbers mean. */
#ifndef HN_HEAD_TAPS_H
#define HN_HEAD_TAPS_H
#include "draft/head/head_drafter.h"

/* Key taps=LOW:MID:HIGH, any number of them. *found: it was given. HUNCH_USAGE. */
hunch_status hn_taps_of_spec(hn_spec *spec, hn_head_taps *taps, bool *found, hunch_error *err);
/* A list of a folder's config.json, called `key` in messages; outputs: of outputs of layers, -1 is the embedding. HUNCH_REFUSED: not 1 to
 * HN_MOST_HEAD_FEATURES layers of 0 to 256. */
hunch_status hn_taps_of_list(const json_t *list, const hn_source *src, const char *key, bool outputs, hn_head_taps *taps, hunch_error *err);
/* Of a GGUF, where the list is required. */
hunch_status hn_taps_of_gguf(const hn_source *src, hn_head_taps *taps, hunch_error *err);
#endif
