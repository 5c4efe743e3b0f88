/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - how often a head is right inside the engine: it drafts for texts that it has not learned from. */
#ifndef HN_TRAIN_MEASURE_H
#define HN_TRAIN_MEASURE_H
#include <hunch/hunch.h>

#include "train/texts.h"

enum { HN_TRAIN_MOST_DEPTH = 16 };

typedef struct hn_train_acceptance {
    uint64_t rounds, tokens;
    double position[HN_TRAIN_MOST_DEPTH]; /* rounds in which the draft at this depth was said, of all */
    double tau;                           /* tokens a round */
    double round_s, plain_s;              /* seconds a round, and a token without drafts */
} hn_train_acceptance;

/* The target goes on behind the first `own` tokens of each text, `tokens` tokens, at temperature 0, with spec and without drafts. A text
 * without a part that is not its own is taken up to its half. */
hunch_status hn_train_measure(hunch_model *m, const char *spec, const hn_train_text *text, size_t n, int tokens,
                              hn_train_acceptance *out, hunch_error *err);
#endif
