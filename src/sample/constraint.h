/* SPDX-License-Identifier: Apache-2.0 */
/* constraint.h - a sampler whose texts are those of a grammar, or think for so long at most, or both. Where the committed answer is in
 * both is kept, and a drafted path is replayed from there, as penalties do, so a rejected draft has no effect. Internal to the sampler,
 * but for its state. */
#ifndef HN_CONSTRAINT_H
#define HN_CONSTRAINT_H
#include "grammar/matcher.h"
#include "sample/budget.h"
#include "sample/sampler.h"

/* The answer (what follows the prompt) obeys the matcher's grammar; borrowed. Once a sampler. HUNCH_NO_MEMORY. */
hunch_status hn_sampler_constrain(hn_sampler *s, hn_matcher *m, hunch_error *err);
/* The answer thinks for so long; borrowed. Where the grammar, if there is one, does not allow the end mark yet, it waits. Likewise. */
hunch_status hn_sampler_limit_thinking(hn_sampler *s, const hn_budget *b, hunch_error *err);
/* NULL: texts have no grammar. */
hn_matcher *hn_sampler_matcher(const hn_sampler *s);
/* The state after this history; negative: HN_MATCH_NO, HN_MATCH_FULL. Of a sampler with a grammar. */
int32_t hn_sampler_state(hn_sampler *s, const hn_history *h);
/* Whether the text is complete after this history, and nothing may follow. Of a sampler with a grammar. */
bool hn_sampler_is_complete(hn_sampler *s, const hn_history *h);
/* Its last distribution was empty because the matcher could not go on (HN_MATCH_FULL). */
bool hn_sampler_is_stuck(const hn_sampler *s);

void hn_constraint_fini(hn_sampler *s);
/* Finds the tokens that are allowed after this history; returns how many are, at most s->vocab: then all are, as they are behind a token
 * that ends the text. */
int hn_constraint_find(hn_sampler *s, const hn_history *h);
/* Whether hn_constraint_find's last history allows the token. A sampler without a constraint allows all. */
bool hn_constraint_allows(const hn_sampler *s, int32_t token);
/* Copies a row of logits, -inf for tokens that are not allowed. */
void hn_constraint_copy(const hn_sampler *s, const float *logits, float *to);
#endif
