/* SPDX-License-Identifier: Apache-2.0 */
/* head_force.c - see head_force.h. */
#include "draft/head_force.h"

#include <string.h>

#include "base/mem.h"

void hn_head_oracle_end(hn_head_oracle *o) {
    hn_free(o->token);
    o->token = NULL;
    o->n = 0;
}

hunch_status hn_head_oracle_begin(hn_head_oracle *o, const hn_begin *b, hunch_error *err) {
    hn_head_oracle_end(o);
    if (!b->oracle || b->n_oracle < 1) return HUNCH_OK;
    const size_t bytes = (size_t)b->n_oracle * sizeof *o->token;
    o->token = hn_alloc(bytes);
    if (!o->token) return hn_fail_memory(err, "the continuation that a forced head knows", bytes);
    memcpy(o->token, b->oracle, bytes);
    o->n = b->n_oracle;
    o->key.seed = b->seed;
    return HUNCH_OK;
}

static int32_t next_of(int32_t token, int vocab) {
    return (int32_t)((token + 1) % vocab);
}

bool hn_head_oracle_force(hn_head_oracle *o, const hn_propose *p, double accept, int drafter, int vocab, int depth,
                          int32_t *token, int n) {
    const int at = p->text.n - p->text.n_prompt + depth;
    const int32_t right = at >= 0 && at < o->n ? o->token[at] : -1;
    if (depth == 0) {
        o->key.position = (uint64_t)p->text.n - 1;
        o->key.purpose = HN_PURPOSE_FORCED;
        o->key.drafter = (uint32_t)drafter;
        o->key.number = 0;
    }
    const bool hit = hn_random_uniform(&o->key) < accept && right >= 0;
    o->key.number++;
    for (int i = 0; i < n; i++) {
        if (i > 0 && token[i] != right) continue;
        token[i] = next_of(token[i], vocab);
        if (token[i] == right) token[i] = next_of(right, vocab);
    }
    if (hit) token[0] = right;
    return hit;
}
