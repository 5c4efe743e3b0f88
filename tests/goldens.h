/* SPDX-License-Identifier: Apache-2.0 */
/* goldens.h - the models of tests/data/goldens by what their descriptions have, so that a test of a property runs for every family that has
 * it, and for a new one without a line. Include after cmocka. */
#ifndef HN_TEST_GOLDENS_H
#define HN_TEST_GOLDENS_H
#include <dirent.h>
#include <unistd.h>

#include "engine/engine.h"
#include "fixture.h"

enum { MOST_GOLDENS = 80, GOLDEN_NAME = 64 };
typedef bool golden_has(const hn_arch *a);

HELPER bool golden_any(const hn_arch *a HN_UNUSED) { return true; }
/* Something of its texts is kept for the rows of a window alone; beside a state rows are kept until it has them. */
HELPER bool golden_windows(const hn_arch *a) {
    const hn_layers of = hn_layers_of(a);
    hn_cache_group group[HN_MODEL_GROUPS];
    bool windows = false;
    const int n = hn_kv_groups(of, HN_BF16, group, NULL);
    for (int g = 0; g < n; g++) windows |= group[g].window > 0 && (group[g].kind == HN_CACHE_KV || !hn_model_is_recurrent(of));
    return windows;
}
/* All layers have grouped-query attention alone, with keys and values of their own. */
HELPER bool golden_attends(const hn_arch *a) {
    bool all = true;
    for (int i = 0; i < a->layers; i++) all &= hn_layer_is(&a->layer[i], &hn_mixer_attention) && a->layer[i].kv_back == 0;
    return all;
}

HELPER bool golden_experts(const hn_arch *a) {
    bool experts = false;
    for (int i = 0; i < a->layers; i++) experts |= hn_layer_has_experts(&a->layer[i]);
    return experts;
}

/* What passes do for a model, a bit each: two with the same bits are run by the same code. The first are of its mixers. */
enum { GOLDEN_MIXERS = (1 << HN_MIXER_KINDS) - 1, GOLDEN_OUTPUTS_AT = 56 };
#define GOLDEN_OUTPUTS ((uint64_t)7 << GOLDEN_OUTPUTS_AT)
HELPER uint64_t golden_parts(const hn_arch *a) {
    static const hn_mixer_kind *const kinds[] = {
#define GOLDEN_LISTED(NAME) &hn_mixer_##NAME,
        HN_MIXERS(GOLDEN_LISTED)};
    uint64_t parts = 0;
    int at = 0;
#define GOLDEN_PART(has) parts |= (uint64_t)((has) ? 1 : 0) << at++
    for (int k = 0; k < HN_MIXER_KINDS; k++) {
        bool has = false;
        for (int i = 0; i < a->layers; i++) has |= hn_layer_mixer(&a->layer[i], kinds[k]) >= 0;
        GOLDEN_PART(has);
    }
    const int models = at;
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *l = &a->layer[i];
        const hn_expert_desc *e = &l->experts;
        at = models;
        for (int f = 0; f <= HN_FFN_NONE; f++) GOLDEN_PART((int)l->ffn == f);
        GOLDEN_PART(hn_layer_mixers(l) == 0); GOLDEN_PART(hn_layer_mixers(l) == 2); GOLDEN_PART(l->ffn_input != HN_INPUT_NORMED);
        GOLDEN_PART(l->window); GOLDEN_PART(l->qkv_bias); GOLDEN_PART(l->o_bias); GOLDEN_PART(l->qk_norm); GOLDEN_PART(l->v_norm);
        GOLDEN_PART(l->v_is_k); GOLDEN_PART(l->kv_back); GOLDEN_PART(l->sinks); GOLDEN_PART(l->rotation == HN_NO_ROTATION);
        GOLDEN_PART(l->post_norms); GOLDEN_PART(l->gate.in_q); GOLDEN_PART(l->gate.of_heads); GOLDEN_PART(l->gate.of_numbers);
        GOLDEN_PART(l->gate.softplus); GOLDEN_PART(l->query_scale.span); GOLDEN_PART(l->gate_up_bias); GOLDEN_PART(l->token_input);
        GOLDEN_PART(l->norm_rows); GOLDEN_PART(l->norm_late); GOLDEN_PART(l->narrow); GOLDEN_PART(l->ffn_limit != 0);
        if (!hn_layer_has_experts(l)) continue;
        GOLDEN_PART(e->sigmoid); GOLDEN_PART(e->groups > 1); GOLDEN_PART(e->shared_width); GOLDEN_PART(e->shared_gate);
        GOLDEN_PART(e->biases); GOLDEN_PART(e->stacked); GOLDEN_PART(e->limit != 0);
        GOLDEN_PART(e->score_cap != 0); GOLDEN_PART(l->expert_limit != 0);
    }
    at = GOLDEN_OUTPUTS_AT;
    GOLDEN_PART(a->logit_cap != 0); GOLDEN_PART(a->logit_scale != 1); GOLDEN_PART(a->tied);
    GOLDEN_PART(a->residual_scale != 1); GOLDEN_PART(a->norms == HN_LAYER_NORM);
    return parts;
}

HELPER int golden_order(const void *a, const void *b) { return strcmp(a, b); }

/* The paths below tests/data, sorted; targets with results of the reference alone. */
HELPER int golden_models(golden_has *has, char path[MOST_GOLDENS][GOLDEN_NAME]) {
    DIR *goldens = opendir(data_path("goldens"));
    int n = 0;
    assert_non_null(goldens);
    for (struct dirent *entry; (entry = readdir(goldens));) {
        char file[200];
        hn_source *src;
        hn_arch a;
        snprintf(file, sizeof file, "goldens/%.60s/golden.json", entry->d_name);
        if (access(data_path(file), F_OK) != 0) continue;
        assert_true(n < MOST_GOLDENS);
        snprintf(path[n], GOLDEN_NAME, "goldens/%.50s", entry->d_name);
        must(hn_source_open(&src, data_path(path[n]), err));
        must(hn_arch_read(&a, src, err));
        n += has(&a);
        hn_arch_fini(&a);
        hn_source_close(&src);
    }
    closedir(goldens);
    assert_true(n > 0);
    qsort(path, (size_t)n, GOLDEN_NAME, golden_order);
    return n;
}

HELPER uint64_t golden_parts_of(const char *path) {
    hn_source *src;
    hn_arch a;
    must(hn_source_open(&src, data_path(path), err));
    must(hn_arch_read(&a, src, err));
    const uint64_t parts = golden_parts(&a);
    hn_arch_fini(&a);
    hn_source_close(&src);
    return parts;
}

/* The first of those that have the same of these parts. */
HELPER int golden_apart(golden_has *has, uint64_t of, char path[MOST_GOLDENS][GOLDEN_NAME]) {
    uint64_t parts[MOST_GOLDENS];
    const int all = golden_models(has, path);
    int n = 0;
    for (int i = 0, k; i < all; i++) {
        parts[n] = golden_parts_of(path[i]) & of;
        for (k = 0; parts[k] != parts[n];) k++;
        if (k == n) memmove(path[n++], path[i], GOLDEN_NAME);
    }
    return n;
}
#endif
