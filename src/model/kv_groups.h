/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.h - the cache groups of a model: its layers grouped by the rows that they keep (contract C7). The only
 * place that determines which rows of which group a layer reads. */
#ifndef HN_KV_GROUPS_H
#define HN_KV_GROUPS_H
#include "cache/cache.h"
#include "model/arch/arch.h"
#include "ops/delta.h"

enum { HN_MODEL_GROUPS = 4 }; /* of one model */

typedef struct hn_layer_place {
    int16_t group; /* index among the model's */
    int16_t index; /* index of the layer in it */
} hn_layer_place;

/* Sets name, layers, kv_heads, head_dim, type and window of the model's groups, and kind and units of gated delta nets;
 * full ones come first. place: [layers], may be NULL. Returns the number of groups, 0: more than HN_MODEL_GROUPS. */
int hn_kv_groups(const hn_arch *a, hn_dtype type, hn_cache_group group[HN_MODEL_GROUPS], hn_layer_place *place);

/* Sizes of a gated delta net; its weights are not set. */
hn_delta hn_layer_delta_sizes(const hn_layer_desc *d);
size_t hn_layer_delta_bytes(const hn_delta *d); /* of its inputs in a row of the cache */
/* Scale, window and sinks of a layer's attention. */
hn_attention_params hn_layer_how(const hn_layer_desc *d);
/* What the attention of all layers and the gated delta nets read and compute for a chain of n rows after `committed`
 * ones of a sequence. Elements of gated delta nets are not counted. */
typedef struct hn_kv_work {
    uint64_t elements; /* numbers of K and V */
    double bytes, macs;
} hn_kv_work;
bool hn_model_is_recurrent(const hn_arch *a); /* some layer is */
/* Bytes of this kind for a text, over all layers: a state, or a row of inputs; 0: there are none. (K and V: hn_model_row_bytes.) */
uint64_t hn_model_group_bytes(const hn_arch *a, hn_cache_kind kind);
/* Bytes of K and V of a token in layers that keep all rows; *window: in those that keep the rows of a window. */
uint64_t hn_model_row_bytes(const hn_arch *a, hn_dtype type, uint64_t *window);
hn_kv_work hn_model_kv_work(const hn_arch *a, hn_dtype type, int committed, int n);
#endif
