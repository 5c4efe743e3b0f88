/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.c - what mixers keep of a text with the same shape is a group; the amount of data that they read. */
#include "model/kv_groups.h"

#include <string.h>

#include "base/least.h"
#include "model/mixers.h"
#include "ops/kv.h"

/* What a layer keeps, in the order of its mixers; n: of each mixer. Nothing if its keys and values are those of an earlier layer. */
static int kept_by(const hn_layer_desc *d, hn_cache_group keep[HN_MOST_KEPT], int8_t n[HN_LAYER_MIXERS]) {
    int all = 0;
    for (int k = 0; k < hn_layer_mixers(d) && d->kv_back == 0; k++) {
        const hn_mixer_kind *kind = d->mixer[k].kind;
        n[k] = (int8_t)(kind->keeps ? kind->keeps(d, &d->mixer[k], keep + all) : 0);
        all += n[k];
    }
    return all;
}

/* The order of groups: rows that are all kept, states, keys and values of windows, other rows; a state is never the first, since a page of
 * the first is a node of the index of texts. */
static int turn_of(const hn_cache_group *g) {
    return g->kind == HN_CACHE_STATE ? 1 : g->kind == HN_CACHE_ROWS ? 3 : g->window > 0 ? 2 : 0;
}

static bool keeps_the_same(const hn_cache_group *g, const hn_cache_group *keep) {
    if (g->kind != keep->kind || g->window != keep->window) return false;
    if (g->kind == HN_CACHE_KV)
        return g->kv_heads == keep->kv_heads && g->head_dim == keep->head_dim && g->v_dim == keep->v_dim && g->v_in_k == keep->v_in_k;
    return g->unit_bytes == keep->unit_bytes && g->units == keep->units * g->layers;
}

/* Adds the groups of one turn. False: there are too many. */
static bool collect(hn_layers of, int turn, hn_dtype type, hn_cache_group *group, int *n) {
    for (int i = 0; i < of.n; i++) {
        hn_cache_group keep[HN_MOST_KEPT];
        int8_t each[HN_LAYER_MIXERS];
        const int all = kept_by(&of.at[i], keep, each);
        for (int k = 0, g; k < all; k++) {
            if (turn_of(&keep[k]) != turn) continue;
            for (g = 0; g < *n && !keeps_the_same(&group[g], &keep[k]);) g++;
            if (g == HN_MODEL_GROUPS) return false;
            if (g == *n) {
                group[(*n)++] = keep[k];
                group[g].units = 0;
                if (group[g].kind == HN_CACHE_KV) group[g].type = type;
            }
            group[g].layers++;
            group[g].units += keep[k].units;
        }
    }
    return true;
}

/* A state is not the first, and rows of a model with one are kept until the pass after that which commits them has absorbed them. */
static void finish(hn_cache_group *group, int n) {
    bool states = false;
    for (int g = 0; g < n; g++) states |= group[g].kind == HN_CACHE_STATE;
    for (int g = 0; g < n; g++)
        if (states && group[g].kind == HN_CACHE_ROWS) group[g].back = hn_most(group[g].back, HN_MAX_ROWS);
    for (int k = 0; k < n && group[0].kind == HN_CACHE_STATE; k++) { /* to the end */
        const hn_cache_group state = group[0];
        memmove(group, group + 1, (size_t)(n - 1) * sizeof *group);
        group[n - 1] = state;
    }
}

static void find_places(hn_layers of, const hn_cache_group *group, hn_layer_place *place) {
    int next[HN_MODEL_GROUPS] = {0};
    for (int i = 0; i < of.n; i++) {
        hn_cache_group keep[HN_MOST_KEPT];
        if (of.at[i].kv_back > 0) {
            place[i] = place[i - of.at[i].kv_back];
            continue;
        }
        place[i] = (hn_layer_place){0};
        const int all = kept_by(&of.at[i], keep, place[i].n);
        for (int k = 0, g; k < all; k++) {
            for (g = 0; !keeps_the_same(&group[g], &keep[k]);) g++;
            place[i].kept[k] = (hn_kept_place){(int16_t)g, (int16_t)next[g]};
            next[g]++;
        }
    }
}

int hn_kv_groups(hn_layers of, hn_dtype type, hn_cache_group group[HN_MODEL_GROUPS], hn_layer_place *place) {
    int n = 0;
    for (int turn = 0; turn < 4; turn++)
        if (!collect(of, turn, type, group, &n)) return 0;
    finish(group, n);
    if (place) find_places(of, group, place);
    return n;
}

bool hn_model_is_recurrent(hn_layers of) {
    return hn_model_group_bytes(of, HN_CACHE_STATE) > 0;
}

uint64_t hn_model_group_bytes(hn_layers of, hn_cache_kind kind) {
    uint64_t bytes = 0;
    for (int i = 0; i < of.n; i++) {
        hn_cache_group keep[HN_MOST_KEPT];
        int8_t each[HN_LAYER_MIXERS];
        const int all = kept_by(&of.at[i], keep, each);
        for (int k = 0; k < all; k++)
            if (keep[k].kind == kind) bytes += (uint64_t)keep[k].units * keep[k].unit_bytes;
    }
    return bytes;
}

hn_kv hn_group_kv(const hn_cache_group *g, hn_dtype type) {
    return (hn_kv){.type = type, .kv_heads = g->kv_heads, .head_dim = g->head_dim, .v_dim = hn_group_v_dim(g), .v_in_k = g->v_in_k > 0};
}

uint64_t hn_model_row_bytes(hn_layers of, hn_dtype type, uint64_t *window) {
    uint64_t all = 0;
    *window = 0;
    for (int i = 0; i < of.n; i++) {
        hn_cache_group keep[HN_MOST_KEPT];
        int8_t each[HN_LAYER_MIXERS];
        const int kept = kept_by(&of.at[i], keep, each);
        for (int k = 0; k < kept; k++) {
            const hn_kv kv = hn_group_kv(&keep[k], type);
            if (keep[k].kind == HN_CACHE_KV) *(keep[k].window > 0 ? window : &all) += (uint64_t)hn_kv_read_bytes(&kv, 1);
        }
    }
    return all;
}

hn_attention_params hn_layer_how(const hn_layer_desc *d) {
    return (hn_attention_params){.heads = d->heads, .scale = d->attention_scale, .window = d->window, .first = d->first,
                              .ahead = d->ahead};
}

hn_kv_work hn_model_kv_work(hn_layers of, hn_dtype type, int committed, int n) {
    hn_kv_work w = {0};
    for (int i = 0; i < of.n; i++)
        for (int k = 0; k < hn_layer_mixers(&of.at[i]); k++) {
            const hn_mixer_desc *mixer = &of.at[i].mixer[k];
            if (mixer->kind->work) mixer->kind->work(&of.at[i], mixer, type, committed, n, &w);
        }
    return w;
}

bool hn_layer_attends(const hn_layer_desc *l) {
    bool attends = false;
    for (int k = 0; k < hn_layer_mixers(l); k++) attends |= l->mixer[k].kind->attends;
    return attends;
}
