/* SPDX-License-Identifier: Apache-2.0 */
/* hold_out.c - see hold_out.h. */
#include "train/data/hold_out.h"

#include <string.h>

#include "base/least.h"

enum { MOST = 64, OF_A_TEXT = 16 }; /* compared tokens of a prompt; of texts without a prompt */

/* Compares up to the end of the shorter prompt: a later turn begins with the prompt of the first. */
static bool begin_alike(const hn_feature_text *a, const hn_feature_text *b) {
    const int prompt = hn_least(a->own, b->own), n = hn_least(prompt > 0 ? prompt : OF_A_TEXT, MOST);
    return a->n >= n && b->n >= n && memcmp(a->ids, b->ids, sizeof *a->ids * (size_t)n) == 0;
}

static void take_back(hn_text_role *role, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (role[i] == HN_TEXT_LEARNED) return;
    for (size_t i = 0; i < n; i++)
        if (role[i] == HN_TEXT_LEFT_OUT) role[i] = HN_TEXT_LEARNED;
}

void hn_hold_out(const hn_feature_text *text, size_t n, int wanted, hn_text_role *role) {
    const size_t every = wanted > 0 ? n / (size_t)wanted : 0;
    for (size_t i = 0; i < n; i++) role[i] = every > 0 && i % every == every / 2 ? HN_TEXT_HELD_OUT : HN_TEXT_LEARNED;
    for (size_t held = every / 2; every > 0 && held < n; held += every)
        for (size_t i = 0; i < n; i++)
            if (role[i] == HN_TEXT_LEARNED && begin_alike(&text[held], &text[i])) role[i] = HN_TEXT_LEFT_OUT;
    take_back(role, n);
}
