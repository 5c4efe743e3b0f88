/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.h - the cache groups of a model: what its layers' mixers keep, grouped by its shape (contract C7). The only place that
 * determines where in which group a layer's mixers find it. */
#ifndef HN_KV_GROUPS_H
#define HN_KV_GROUPS_H
#include "cache/cache.h"
#include "model/arch/arch.h"

enum { HN_MODEL_GROUPS = 8, HN_MOST_KEPT = 4 }; /* of one model; of the mixers of one layer */

typedef struct hn_kept_place {
    int16_t group; /* index among the model's */
    int16_t index; /* index of the layer in it */
} hn_kept_place;
/* Of what the layer's mixers keep, one mixer's after another's. */
typedef struct hn_layer_place {
    hn_kept_place kept[HN_MOST_KEPT];
    int8_t n[HN_LAYER_MIXERS]; /* of each mixer */
} hn_layer_place;

/* The layers that passes run: those of the file's description (hn_layers_of), or others. */
typedef struct hn_layers {
    const hn_layer_desc *at;
    int n;
} hn_layers;
static inline hn_layers hn_layers_of(const hn_arch *a) { return (hn_layers){a->layer, a->layers}; }

/* Sets what hn_cache_open needs of the model's groups but page_rows, model_id and limits; type: of keys and values. Groups without a window
 * come first, then states, unless a state would be the first. place: [layers], may be NULL. Returns the number of groups, 0: more than
 * HN_MODEL_GROUPS. */
int hn_kv_groups(hn_layers of, hn_dtype type, hn_cache_group group[HN_MODEL_GROUPS], hn_layer_place *place);

/* Scale, window and sinks of a layer's attention. */
hn_attention_params hn_layer_how(const hn_layer_desc *d);
/* Shape of the keys and values of such a group, without a place. */
hn_kv hn_group_kv(const hn_cache_group *g, hn_dtype type);
/* What the mixers of all layers read and compute for a chain of n rows after `committed` ones of a sequence. */
typedef struct hn_kv_work {
    uint64_t elements; /* numbers of K and V */
    double bytes, macs;
} hn_kv_work;
bool hn_model_is_recurrent(hn_layers of); /* some layer keeps a state */
/* Bytes of this kind for a text, over all layers: a state, or a row of inputs; 0: there are none. (K and V: hn_model_row_bytes.) */
uint64_t hn_model_group_bytes(hn_layers of, hn_cache_kind kind);
/* Bytes of K and V of a token in layers that keep all rows; *window: in those that keep the rows of a window. */
uint64_t hn_model_row_bytes(hn_layers of, hn_dtype type, uint64_t *window);
hn_kv_work hn_model_kv_work(hn_layers of, hn_dtype type, int committed, int n);
#endif
