/* SPDX-License-Identifier: Apache-2.0 */
/* online.h - features that are not stored: the target computes them for each batch, with the same bits. */
#ifndef HN_TRAIN_ONLINE_H
#define HN_TRAIN_ONLINE_H
#include "train/data/features.h"

/* As hn_features_make and hn_features_open together, but nothing is computed yet, and nothing is written. The texts and the target are
 * borrowed. */
hunch_status hn_features_online(hn_features_read *f, const hn_model *target, uint64_t identity,
                                const hn_train_texts *texts, const int *states, int n_states, hunch_error *err);

typedef struct hn_features_wanted {
    uint32_t text;
    int rows; /* number of its first rows */
} hn_features_wanted;

/* To be called before states are read; these are valid until the next call. (Stored ones always are.) */
hunch_status hn_features_need(const hn_features_read *f, const hn_features_wanted *wanted, size_t n, hunch_error *err);

/* Whether so many bytes of features can be stored in the folder, leaving as much free space. Also true if some are
 * stored already. HUNCH_FAILED: the free space is unknown. */
hunch_status hn_features_fit(const char *folder, uint64_t bytes, bool *fit, hunch_error *err);

void hn_online_close(struct hn_online **o); /* hn_features_close does it; NULL is fine */
#endif
