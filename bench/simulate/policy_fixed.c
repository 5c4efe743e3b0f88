/* SPDX-License-Identifier: Apache-2.0 */
/* policy_fixed.c - plain decoding, the same depth in every round, and the same but in rounds without rows of prompts. */
#include <stdlib.h>

#include "simulate.h"

static void *open(const sim_data *d, const sim_settings *s) {
    (void)d;
    sim_settings *own = sim_alloc(sizeof *own);
    *own = *s;
    return own;
}

static void draft_nothing(void *state, sim_round *r) {
    (void)state;
    (void)r;
}

static void draft_fixed(void *state, sim_round *r) {
    const sim_settings *s = state;
    for (int level = 0; level < s->depth && sim_propose(r, s->drafter, level) > 0; level++) {}
}

/* Perplexity's rule: a mixed batch samples plainly. */
static void draft_decode_only(void *state, sim_round *r) {
    if (r->prompt_rows == 0) draft_fixed(state, r);
}

const sim_policy sim_plain = {"plain", "no drafts", true, open, free, NULL, draft_nothing, NULL},
                 sim_fixed = {"fixed", "the same depth in every round", true, open, free, NULL, draft_fixed, NULL},
                 sim_decode_only = {"decode-only", "a fixed depth, unless rows of prompts are in the pass", true, open, free, NULL,
                                    draft_decode_only, NULL};
