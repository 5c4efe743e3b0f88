/* SPDX-License-Identifier: Apache-2.0 */
/* prediction_text.c - see prediction_text.h. Lists of equal hashes, linked in the order of the text. */
#include "draft/text/prediction_text.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

static uint32_t anchor_slot(const hn_prediction_text *x, const int32_t *anchor) {
    return (uint32_t)hn_hash_tokens(0, anchor, HN_ANCHOR) & x->mask;
}

hunch_status hn_prediction_text_init(hn_prediction_text *x, const int32_t *token, int n, hunch_error *err) {
    uint32_t heads = 64;
    while (heads < (uint32_t)n) heads *= 2;
    *x = (hn_prediction_text){.n = n, .mask = heads - 1};
    x->token = hn_alloc((size_t)n * sizeof *x->token);
    x->head = hn_alloc((size_t)heads * sizeof *x->head);
    x->next = hn_alloc(((size_t)n + 1) * sizeof *x->next);
    if (!x->token || !x->head || !x->next) {
        hn_prediction_text_fini(x);
        return hn_fail_memory(err, "a predicted text", ((size_t)n * 2 + heads) * sizeof(int32_t));
    }
    if (n > 0) memcpy(x->token, token, (size_t)n * sizeof *token);
    memset(x->head, 0xff, (size_t)heads * sizeof *x->head);
    for (int end = n; end >= HN_ANCHOR; end--) {
        int32_t *head = &x->head[anchor_slot(x, token + end - HN_ANCHOR)];
        x->next[end] = *head;
        *head = end;
    }
    return HUNCH_OK;
}

void hn_prediction_text_fini(hn_prediction_text *x) {
    hn_free(x->token);
    hn_free(x->head);
    hn_free(x->next);
    *x = (hn_prediction_text){0};
}

int hn_prediction_text_first(const hn_prediction_text *x, const int32_t anchor[HN_ANCHOR]) {
    return x->n >= HN_ANCHOR ? x->head[anchor_slot(x, anchor)] : -1;
}

int hn_prediction_text_next(const hn_prediction_text *x, int end) {
    return x->next[end];
}
