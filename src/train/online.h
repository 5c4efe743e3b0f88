/* SPDX-License-Identifier: Apache-2.0 */
/* online.h - features that are not stored: the target takes them, the same bits, each time that a batch asks for them. */
#ifndef HN_TRAIN_ONLINE_H
#define HN_TRAIN_ONLINE_H
#include "train/features.h"

/* As hn_features_make and hn_features_open together, but nothing is taken yet, and nothing written. The texts and the target are
 * borrowed. */
hunch_status hn_features_online(hn_features_read *f, const hn_model *target, uint64_t identity,
                                const hn_train_texts *texts, const int *states, int n_states, hunch_error *err);

typedef struct hn_features_wanted {
    uint32_t text;
    int rows; /* the first so many */
} hn_features_wanted;

/* Before states are read: those are there until the next call. (Stored ones always are.) */
hunch_status hn_features_need(const hn_features_read *f, const hn_features_wanted *wanted, size_t n, hunch_error *err);

/* Could so many bytes of features be stored in the folder, with as much free behind them? Yes, too, where some are there. HUNCH_FAILED:
 * the system does not say. */
hunch_status hn_features_fit(const char *folder, uint64_t bytes, bool *fit, hunch_error *err);

void hn_online_close(struct hn_online **o); /* hn_features_close does it; NULL is fine */
#endif
