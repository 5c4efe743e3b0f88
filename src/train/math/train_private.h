/* SPDX-License-Identifier: Apache-2.0 */
/* train_private.h - how operations of the trainer split their work. Results do not depend on it. */
#ifndef HN_TRAIN_PRIVATE_H
#define HN_TRAIN_PRIVATE_H

enum { HN_SOME_ROWS = 16, HN_SOME_COLS = 64 }; /* pieces of work: of row-wise operations, of sums over rows */

#endif
