/* SPDX-License-Identifier: Apache-2.0 */
/* kept_text.c - see kept_text.h. */
#include "draft/text/kept_text.h"

#include <string.h>

#include "base/mem.h"

void hn_kept_text_fini(hn_kept_text *k) {
    hn_free(k->token);
    *k = (hn_kept_text){0};
}

bool hn_kept_text_show(hn_kept_text *k, const hn_committed_text *t) {
    if (k->confirmed > t->n) k->confirmed = t->n;
    k->n = k->confirmed;
    k->whole = hn_grow((void **)&k->token, &k->cap, (size_t)t->n, sizeof *k->token);
    if (!k->whole) return false;
    if (t->n > k->confirmed) memcpy(k->token + k->confirmed, t->token + k->confirmed, (size_t)(t->n - k->confirmed) * sizeof *k->token);
    k->n = k->confirmed = t->n;
    return true;
}

void hn_kept_text_observe(hn_kept_text *k, const hn_observe *o) {
    const size_t need = (size_t)k->confirmed + (size_t)o->n_accepted + 1;
    if (!k->whole || !hn_grow((void **)&k->token, &k->cap, need, sizeof *k->token)) return;
    k->whole = false;
    for (int i = 0; i < o->n_accepted; i++) k->token[k->n++] = o->tree->token[o->path[i]];
    k->token[k->n++] = o->next_token;
}
