/* SPDX-License-Identifier: Apache-2.0 */
/* states.h - the target's passes over texts: what it makes of each token, in the numerics that are deployed, as bf16. Texts share
 * passes, which are as full as a pass can be; what a row gets does not depend on what else is in its pass (contract C2). */
#ifndef HN_TRAIN_STATES_H
#define HN_TRAIN_STATES_H
#include "model/model.h"

enum { HN_TRAIN_MOST_STATES = 16 };
typedef struct hn_states hn_states;

/* boundary [n], n up to HN_TRAIN_MOST_STATES: of each state the layer that it enters, rising, HN_FEATURE_POST_NORM last, if asked
 * for. longest: rows of a text at most. The target is borrowed. HUNCH_REFUSED: its layers keep too many kinds of rows. */
hunch_status hn_states_open(hn_states **out, const hn_model *target, const int32_t *boundary, int n, int longest,
                            hunch_error *err);
void hn_states_close(hn_states **s);

typedef struct hn_states_text {
    const int32_t *ids;
    int n;
    uint16_t *to; /* [n][states][hidden] bf16 */
} hn_states_text;

/* All rows of n texts, each of which has some. */
hunch_status hn_states_take(hn_states *s, const hn_states_text *text, size_t n, hunch_error *err);
#endif
