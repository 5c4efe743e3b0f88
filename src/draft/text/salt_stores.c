/* SPDX-License-Identifier: Apache-2.0 */
/* salt_stores.c - see salt_stores.h. */
#include "draft/text/salt_stores.h"

enum { FIRST = 2 }; /* of the stores that salts take in turn */

int hn_salt_stores_enter(hn_salt_stores *t, uint64_t salt, bool *fresh) {
    int at = salt ? 0 : 1;
    *fresh = false;
    for (int i = FIRST; salt && i < HN_SALT_STORES; i++) {
        if (t->store[i].salt == salt) {
            at = i;
            *fresh = false;
            break;
        }
        if (t->store[i].texts > 0 || (at && t->store[i].left >= t->store[at].left)) continue;
        at = i;
        *fresh = true;
    }
    if (at) t->store[at].salt = salt, t->store[at].texts++;
    return at;
}

void hn_salt_stores_leave(hn_salt_stores *t, int *store) {
    if (*store) {
        t->store[*store].texts--;
        t->store[*store].left = ++t->clock;
    }
    *store = 0;
}
