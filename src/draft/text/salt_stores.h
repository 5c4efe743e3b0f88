/* SPDX-License-Identifier: Apache-2.0 */
/* salt_stores.h - which store a text learns from and adds to: texts of different salts (hunch_request) share none, so that what one user
 * wrote is never drafted for another. Stores are the drafter's; here are their numbers.
 *
 * Texts without a salt share store 1. Each other salt has one of HN_SALTS more while texts of it live, and after that until another
 * salt needs it: then the one that has been idle longest is emptied and given to it. */
#ifndef HN_TENANTS_H
#define HN_TENANTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_SALTS = 16, HN_SALT_STORES = HN_SALTS + 2, HN_SALT_SHARE = 4 }; /* stores: [0] is not used */

typedef struct hn_salt_stores {
    struct {
        uint64_t salt, left; /* left: when its last text did, by the clock */
        int texts;           /* that live */
    } store[HN_SALT_STORES];
    uint64_t clock;
} hn_salt_stores;

/* The store of a text that begins: 1 to HN_SALTS + 1; *fresh: empty it first. 0: so many salts live that there is none for it. */
int hn_salt_stores_enter(hn_salt_stores *t, uint64_t salt, bool *fresh);
/* The text ends. Sets *store to 0; does nothing if it is 0. */
void hn_salt_stores_leave(hn_salt_stores *t, int *store);
/* Bytes of a store, if that of texts without a salt has this many. */
static inline size_t hn_salt_stores_bytes(int store, size_t bytes) {
    return store == 1 ? bytes : bytes / HN_SALT_SHARE;
}
#endif
