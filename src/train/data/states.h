/* SPDX-License-Identifier: Apache-2.0 */
/* states.h - the target's passes over texts: its states for each token, in the same numerics as the engine, as bf16.
 * Texts share passes, which are as full as possible; a row's states do not depend on other rows of its pass (contract
 * C2). */
#ifndef HN_TRAIN_STATES_H
#define HN_TRAIN_STATES_H
#include "model/model.h"

enum { HN_TRAIN_MOST_STATES = 16 };
typedef struct hn_states hn_states;

/* boundary [n], n up to HN_TRAIN_MOST_STATES: for each state the layer that it enters, ascending, HN_FEATURE_POST_NORM
 * last, if wanted. longest: the most rows of a text. The target is borrowed. HUNCH_REFUSED: its layers have too many
 * cache groups. */
hunch_status hn_states_open(hn_states **out, const hn_model *target, const int32_t *boundary, int n, int longest,
                            hunch_error *err);
void hn_states_close(hn_states **s);

typedef struct hn_states_text {
    const int32_t *ids;
    int n;
    uint16_t *to; /* [n][states][hidden] bf16 */
} hn_states_text;

/* Computes all rows of n texts, none of which is empty. */
hunch_status hn_states_compute(hn_states *s, const hn_states_text *text, size_t n, hunch_error *err);
#endif
