/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - one number that identifies a model: a hash of the bytes of all its files. */
#ifndef HN_TRAIN_IDENTITY_H
#define HN_TRAIN_IDENTITY_H
#include "base/status.h"

enum { HN_IDENTITY_ROOM = 20 };

/* The files are those of hn_model_files. HUNCH_FAILED: one cannot be read. */
hunch_status hn_train_identity(const char *model, uint64_t *out, hunch_error *err);
/* As files have it; returns to. */
const char *hn_train_identity_text(uint64_t number, char to[HN_IDENTITY_ROOM]);
#endif
