/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.c - layers with one window and one shape of rows make a group; what attention reads of them. */
#include "model/kv_groups.h"

#include "ops/kv.h"

static bool keeps_the_same(const hn_cache_group *g, const hn_layer_desc *d) {
    return g->window == d->window && g->kv_heads == d->kv_heads && g->head_dim == d->head_dim;
}

/* Adds the kinds of rows that full layers keep, or those of layers with a window. False: there are too many. */
static bool collect(const hn_arch *a, bool windows, hn_dtype type, hn_cache_group *group, int *n) {
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        int g = 0;
        if ((d->window > 0) != windows) continue;
        while (g < *n && !keeps_the_same(&group[g], d)) g++;
        if (g == HN_MODEL_GROUPS) return false;
        if (g == *n)
            group[(*n)++] = (hn_cache_group){.name = windows ? "window" : "attention",
                                             .type = type,
                                             .kv_heads = d->kv_heads,
                                             .head_dim = d->head_dim,
                                             .window = d->window};
        group[g].layers++;
    }
    return true;
}

int hn_kv_groups(const hn_arch *a, hn_dtype type, hn_cache_group group[HN_MODEL_GROUPS], hn_layer_place *place) {
    int n = 0, next[HN_MODEL_GROUPS] = {0};
    if (!collect(a, false, type, group, &n) || !collect(a, true, type, group, &n)) return 0;
    for (int i = 0; place && i < a->layers; i++) {
        int g = 0;
        while (!keeps_the_same(&group[g], &a->layer[i])) g++;
        place[i] = (hn_layer_place){(int16_t)g, (int16_t)next[g]++};
    }
    return n;
}

hn_attention_how hn_layer_how(const hn_layer_desc *d) {
    return (hn_attention_how){.heads = d->heads, .scale = d->attention_scale, .window = d->window, .first = d->first,
                              .ahead = d->ahead};
}

hn_kv_work hn_model_kv_work(const hn_arch *a, hn_dtype type, int committed, int n) {
    hn_kv_work w = {0};
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *d = &a->layer[i];
        const hn_attention_how how = hn_layer_how(d);
        const hn_kv kv = {.type = type, .kv_heads = d->kv_heads, .head_dim = d->head_dim, .v_dim = d->head_dim};
        const int read = hn_kv_read(&how, committed, n);
        w.elements += hn_kv_elements(&kv, read);
        w.bytes += hn_kv_read_bytes(&kv, read);
        for (int r = 0; r < n; r++) w.macs += hn_kv_macs(&kv, &how, committed + r, committed + r);
    }
    return w;
}
