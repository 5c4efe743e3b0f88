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
HELPER bool golden_windows(const hn_arch *a) {
    bool windows = false;
    for (int i = 0; i < a->layers; i++) windows |= hn_layer_attends(&a->layer[i]) && a->layer[i].window > 0;
    return windows;
}
/* All layers have grouped-query attention alone, with keys and values of their own. */
HELPER bool golden_attends(const hn_arch *a) {
    bool all = true;
    for (int i = 0; i < a->layers; i++) all &= hn_layer_is(&a->layer[i], &hn_mixer_attention) && a->layer[i].kv_back == 0;
    return all;
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
#endif
