/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.c - layers with the same window and shape of rows form a group; the amount of data that attention reads. */
#include "model/kv_groups.h"

#include "ops/kv.h"

/* Whether a layer has rows of its own in the cache. */
static bool stores(const hn_layer_desc *d) {
    return hn_layer_attends(d) && d->kv_back == 0;
}

static bool keeps_the_same(const hn_cache_group *g, const hn_layer_desc *d) {
    return g->kind == HN_CACHE_KV && g->window == d->window && g->kv_heads == d->kv_heads && g->head_dim == d->head_dim &&
           g->v_in_k == hn_layer_value_in_key(d);
}

/* Adds the groups of full layers, or those of layers with a window. False: there are too many. */
static bool collect(const hn_arch *a, bool windows, hn_dtype type, hn_cache_group *group, int *n) {
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        int g = 0;
        if (!stores(d) || (d->window > 0) != windows) continue;
        while (g < *n && !keeps_the_same(&group[g], d)) g++;
        if (g == HN_MODEL_GROUPS) return false;
        if (g == *n)
            group[(*n)++] = (hn_cache_group){.name = windows ? "window" : "attention",
                                             .type = type,
                                             .kv_heads = d->kv_heads,
                                             .head_dim = d->head_dim,
                                             .v_in_k = hn_layer_value_in_key(d),
                                             .window = d->window};
        group[g].layers++;
    }
    return true;
}

hn_delta hn_layer_delta_sizes(const hn_layer_desc *d) {
    const hn_delta_desc *n = &d->delta;
    return (hn_delta){.key_heads = n->key_heads, .value_heads = n->value_heads, .key_dim = n->key_dim, .value_dim = n->value_dim,
                      .taps = n->taps, .tiled = n->tiled};
}

size_t hn_layer_delta_bytes(const hn_delta *d) {
    return sizeof(float) * (size_t)((hn_delta_inputs(d) + 15) & ~15);
}

/* The group of the states of all gated delta nets, or of the rows' inputs until they are absorbed into it. These layers have one shape. */
static bool collect_delta(const hn_arch *a, hn_cache_kind kind, hn_cache_group *group, int *n) {
    int first = 0, layers = 0;
    for (int i = 0; i < a->layers; i++)
        if (!hn_layer_attends(&a->layer[i]) && !layers++) first = i;
    if (layers == 0) return true;
    if (*n == HN_MODEL_GROUPS) return false;
    const hn_delta d = hn_layer_delta_sizes(&a->layer[first]);
    hn_cache_group *g = &group[(*n)++];
    *g = (hn_cache_group){.name = kind == HN_CACHE_STATE ? "state" : "inputs", .layers = layers, .kind = kind};
    if (kind == HN_CACHE_STATE) {
        g->units = layers * d.value_heads;
        g->unit_bytes = sizeof(float) * (size_t)hn_delta_state(&d);
        return true;
    }
    g->units = layers;
    g->unit_bytes = hn_layer_delta_bytes(&d);
    g->window = d.taps;
    g->back = HN_MAX_ROWS; /* rows that are committed and will be absorbed by the next pass */
    return true;
}

int hn_kv_groups(const hn_arch *a, hn_dtype type, hn_cache_group group[HN_MODEL_GROUPS], hn_layer_place *place) {
    int n = 0, next[HN_MODEL_GROUPS] = {0};
    if (!collect(a, false, type, group, &n) || !collect_delta(a, HN_CACHE_STATE, group, &n) ||
        !collect(a, true, type, group, &n) || !collect_delta(a, HN_CACHE_ROWS, group, &n))
        return 0;
    for (int i = 0; place && i < a->layers; i++) {
        int g = 0;
        if (a->layer[i].kv_back > 0) {
            place[i] = place[i - a->layer[i].kv_back];
            continue;
        }
        while (hn_layer_attends(&a->layer[i]) ? !keeps_the_same(&group[g], &a->layer[i]) : group[g].kind != HN_CACHE_ROWS) g++;
        place[i] = (hn_layer_place){(int16_t)g, (int16_t)next[g]++};
    }
    return n;
}

bool hn_model_is_recurrent(const hn_arch *a) {
    for (int i = 0; i < a->layers; i++)
        if (!hn_layer_attends(&a->layer[i])) return true;
    return false;
}

uint64_t hn_model_group_bytes(const hn_arch *a, hn_cache_kind kind) {
    hn_cache_group group[HN_MODEL_GROUPS];
    const int n = a->layers > 0 ? hn_kv_groups(a, HN_BF16, group, NULL) : 0;
    for (int g = 0; g < n; g++)
        if (group[g].kind == kind) return (uint64_t)group[g].units * group[g].unit_bytes;
    return 0;
}

uint64_t hn_model_row_bytes(const hn_arch *a, hn_dtype type, uint64_t *window) {
    uint64_t all = 0;
    *window = 0;
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        if (!stores(d)) continue;
        *(d->window > 0 ? window : &all) += (uint64_t)d->kv_heads * hn_kv_row_bytes(type, d->head_dim, hn_layer_value_in_key(d));
    }
    return all;
}

hn_attention_params hn_layer_how(const hn_layer_desc *d) {
    return (hn_attention_params){.heads = d->heads, .scale = d->attention_scale, .window = d->window, .first = d->first,
                              .ahead = d->ahead};
}

hn_kv_work hn_model_kv_work(const hn_arch *a, hn_dtype type, int committed, int n) {
    hn_kv_work w = {0};
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        if (!hn_layer_attends(d)) {
            const hn_delta net = hn_layer_delta_sizes(d); /* read and written; each number is used twice and then computed anew */
            const double state = (double)hn_delta_state(&net) * net.value_heads;
            w.bytes += 2 * state * (double)sizeof(float);
            w.macs += 3 * state * n;
            continue;
        }
        const hn_attention_params how = hn_layer_how(d);
        const hn_kv kv = {.type = type, .kv_heads = d->kv_heads, .head_dim = d->head_dim, .v_dim = hn_layer_value_dim(d),
                          .v_in_k = hn_layer_value_in_key(d) > 0};
        const int read = hn_kv_read(&how, committed, n);
        w.elements += hn_kv_elements(&kv, read);
        w.bytes += hn_kv_read_bytes(&kv, read);
        for (int r = 0; r < n; r++) w.macs += hn_kv_macs(&kv, &how, committed + r, committed + r);
    }
    return w;
}
