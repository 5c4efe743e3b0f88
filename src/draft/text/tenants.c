/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.c - see tenants.h. */
#include "draft/text/tenants.h"

enum { FIRST = 2 }; /* of the stores that salts take in turn */

int hn_tenants_enter(hn_tenants *t, uint64_t salt, bool *fresh) {
    int at = salt ? 0 : 1;
    *fresh = false;
    for (int i = FIRST; salt && i < HN_TENANT_STORES; i++) {
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

void hn_tenants_leave(hn_tenants *t, int *store) {
    if (*store) {
        t->store[*store].texts--;
        t->store[*store].left = ++t->clock;
    }
    *store = 0;
}
