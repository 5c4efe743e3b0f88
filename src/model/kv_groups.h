/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.h - the cache groups of a model: its layers put together by what they keep (contract C7). The one place that
 * says which rows of which group a layer reads. */
#ifndef HN_KV_GROUPS_H
#define HN_KV_GROUPS_H
#include "cache/cache.h"
#include "model/arch.h"
#include "ops/delta.h"

enum { HN_MODEL_GROUPS = 4 }; /* of one model */

typedef struct hn_layer_place {
    int16_t group; /* among the model's */
    int16_t index; /* of the layer in it */
} hn_layer_place;

/* Fills in name, layers, kv_heads, head_dim, type and window of the model's groups, of gated delta nets their kind and units;
 * full ones come first. place: [layers],
 * NULL: not asked for. Returns how many groups there are, 0: more than HN_MODEL_GROUPS. */
int hn_kv_groups(const hn_arch *a, hn_dtype type, hn_cache_group group[HN_MODEL_GROUPS], hn_layer_place *place);

/* Sizes of a gated delta net; its weights are left out. */
hn_delta hn_layer_delta_sizes(const hn_layer_desc *d);
/* How attention weighs what a layer's rows see. */
hn_attention_how hn_layer_how(const hn_layer_desc *d);
/* What the attention of all layers reads and computes, and gated delta nets beside (whose elements do not count), for a chain of n rows behind `committed` ones of a sequence. */
typedef struct hn_kv_work {
    uint64_t elements; /* numbers of K and V */
    double bytes, macs;
} hn_kv_work;
bool hn_model_is_recurrent(const hn_arch *a); /* some layer is */
/* What a text has of this kind, over all layers: a state, or a row of inputs; 0: there are none. (Of K and V: the next one.) */
uint64_t hn_model_group_bytes(const hn_arch *a, hn_cache_kind kind);
/* Bytes that K and V of a token take in layers that keep all rows; *window: in those that keep a window's. */
uint64_t hn_model_row_bytes(const hn_arch *a, hn_dtype type, uint64_t *window);
hn_kv_work hn_model_kv_work(const hn_arch *a, hn_dtype type, int committed, int n);
#endif
