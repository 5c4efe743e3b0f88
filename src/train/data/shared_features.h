/* SPDX-License-Identifier: Apache-2.0 */
/* shared_features.h - a folder of stored features that several trainings read: of the same target, level and texts, whatever the kind
 * of head. It keeps the states of the training that came first; one that reads some of these states alone reads it too. */
#ifndef HN_TRAIN_SHARED_FEATURES_H
#define HN_TRAIN_SHARED_FEATURES_H
#include "train/data/features.h"

/* Takes what is missing in the folder, and opens it for a training that reads the given states; f->header is that of those states alone,
 * as if they were stored by themselves. Waits while another process takes features there. Other errors as hn_features_make and
 * hn_features_open; HUNCH_REFUSED, too: a state that the folder lacks. */
hunch_status hn_features_share(hn_features_read *f, const hn_model *target, uint64_t identity, const hn_train_texts *texts,
                               const int *states, int n_states, const char *folder, hunch_progress progress, void *user,
                               const volatile int *stop, hunch_error *err);
#endif
