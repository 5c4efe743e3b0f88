/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h. */
#include "base/account.h"

void hn_account_add(hn_account *a, hn_account_part part, int64_t planned, int64_t taken) {
    if (!a) return;
    atomic_fetch_add(&a->planned[part], planned);
    atomic_fetch_add(&a->taken[part], taken);
}

int64_t hn_account_planned(const hn_account *a, hn_account_part part) { return a ? atomic_load(&a->planned[part]) : 0; }

int64_t hn_account_taken(const hn_account *a, hn_account_part part) { return a ? atomic_load(&a->taken[part]) : 0; }

size_t hn_account_left(const hn_account *a, size_t available) {
    uint64_t promised = 0;
    for (int i = 0; i < HN_ACCOUNT_PARTS; i++) {
        const int64_t more = hn_account_planned(a, i) - hn_account_taken(a, i);
        if (i != HN_ACCOUNT_STORES && more > 0) promised += (uint64_t)more;
    }
    return promised < available ? available - (size_t)promised : 0;
}
