/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - which model something was made with, in one number: of the bytes of all its files. */
#ifndef HN_TRAIN_IDENTITY_H
#define HN_TRAIN_IDENTITY_H
#include "base/status.h"

/* Of the files of a model as hunch_model_files gives them. HUNCH_FAILED: one cannot be read. */
hunch_status hn_train_identity(const char *model, uint64_t *out, hunch_error *err);
#endif
