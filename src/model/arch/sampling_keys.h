/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_keys.h - a model's sampling defaults: generation_config.json in a folder, general.sampling.* in a GGUF. One
 * table for reading and for conversion. */
#ifndef HN_SAMPLING_KEYS_H
#define HN_SAMPLING_KEYS_H
#include "format/source.h"

typedef struct hn_sampling_key {
    const char *gguf, *hf; /* NULL: this format has none */
    size_t at;             /* of the field in hunch_sampling */
    bool integer, dist;     /* distribution: without effect at temperature 0 */
    double min, max, off;
} hn_sampling_key;
extern const hn_sampling_key hn_sampling_keys[]; /* ends with one that has neither name */

double hn_sampling_value(const hunch_sampling *p, const hn_sampling_key *k);
/* Without keys: temperature 0, the rest off. A folder samples only if do_sample is true. Out of range: HUNCH_REFUSED
 * naming the key. */
hunch_status hn_sampling_read(hunch_sampling *out, const hn_source *src, hunch_error *err);
#endif
