/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - a head's acceptance in the engine, on texts that it was not trained on. */
#ifndef HN_TRAIN_MEASURE_H
#define HN_TRAIN_MEASURE_H
#include <hunch/hunch.h>

#include "train/data/texts.h"

enum { HN_TRAIN_MOST_DEPTH = 16 };

typedef struct hn_train_acceptance {
    uint64_t rounds, tokens;
    double position[HN_TRAIN_MOST_DEPTH]; /* share of rounds in which the draft at this depth was accepted */
    double tau;                           /* tokens per round */
    double round_s, plain_s;              /* seconds per round, and per token without drafts */
} hn_train_acceptance;

/* The target continues each text after its first `own` tokens by `tokens` tokens, at temperature 0, with spec and
 * without drafts. A text without a prompt is continued from its middle. */
hunch_status hn_train_measure(hunch_model *m, const char *spec, const hn_train_text *text, size_t n, int tokens,
                              hn_train_acceptance *out, hunch_error *err);
#endif
