/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - tests make the n-th allocation, read or write of this process fail, or a pass wrong. Off unless armed; thread-safe. */
#ifndef HN_FAULT_H
#define HN_FAULT_H
#include <stdbool.h>
#include <stdint.h>
enum hn_fault_kind {
    HN_FAULT_ALLOC, /* allocating memory, mapping, starting a thread: out of memory */
    HN_FAULT_READ,  /* opening, stat or reading a file: EIO */
    HN_FAULT_WRITE, /* creating, writing, flushing, closing or renaming a file: ENOSPC */
    HN_FAULT_SHORT, /* no failure: a read or write is interrupted (EINTR) or partial */
    HN_FAULT_LOGIT, /* no failure: a logit of a pass with drafts is another (engine/round.c) */
    HN_FAULT_KINDS
};
/* The call number `after` (0 = the next one) and, if sticky, all later ones fail. after < 0 disarms.
 * Armed with INT64_MAX none fails and all are counted, so that a test can then make each of them fail. */
void hn_fault_arm(enum hn_fault_kind kind, int64_t after, bool sticky);
uint64_t hn_fault_count(enum hn_fault_kind kind); /* calls counted since it was last armed */
bool hn_fault_hit(enum hn_fault_kind kind);       /* used by base: counts one call, true if it must fail */
#endif
