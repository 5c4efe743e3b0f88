/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - the memory of a model and of all that is open on it, in one place: what each part may take at most, and what it has. What is
 * planned and not taken yet is promised: whoever plans asks hn_account_left for what is free beside it. Any thread. */
#ifndef HN_ACCOUNT_H
#define HN_ACCOUNT_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hn_account_part {
    HN_ACCOUNT_WEIGHTS,
    HN_ACCOUNT_PAGES,    /* of the cache */
    HN_ACCOUNT_STORES,   /* of drafters, for texts; a wish, which nobody promises */
    HN_ACCOUNT_SAMPLERS,
    HN_ACCOUNT_DISTS,    /* distributions of drafts */
    HN_ACCOUNT_GRAMMARS,
    HN_ACCOUNT_BUFFERS,  /* of passes */
    HN_ACCOUNT_PARTS
} hn_account_part;

typedef struct hn_account {
    _Atomic int64_t planned[HN_ACCOUNT_PARTS], taken[HN_ACCOUNT_PARTS];
} hn_account;

/* Changes of both, in bytes. a may be NULL, here and below: then nobody counts. */
void hn_account_add(hn_account *a, hn_account_part part, int64_t planned, int64_t taken);
int64_t hn_account_planned(const hn_account *a, hn_account_part part);
int64_t hn_account_taken(const hn_account *a, hn_account_part part);
/* Of bytes that the system has: those that are not promised. */
size_t hn_account_left(const hn_account *a, size_t available);
#endif
