/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - (tree, target logits, sampler) → accepted path and one more token. Lossless rules only (contract C1).
 *
 * greedy: the argmax of each row, ties to the lowest id; match: the target's own draw of each position
 * (verification.md 3, 4, 8.2). Both walk from the root and follow the drawn token while a candidate carries it, so the
 * emitted tokens do not depend on the tree at all: it decides only how many of them one pass gives.
 */
#ifndef HN_VERIFY_H
#define HN_VERIFY_H
#include "draft/tree.h"
#include "sample/sampler.h"

typedef enum hn_rule { HN_RULE_GREEDY, HN_RULE_MATCH } hn_rule;
/* Resolves the option: default = greedy at temperature 0, else match; greedy with a temperature is HUNCH_USAGE. */
hunch_status hn_rule_choose(hunch_verify option, const hunch_sampling *p, hn_rule *out, hunch_error *err);
/* Can this rule verify this tree without loss? (Both here take any tree of one-hot candidates.) */
bool hn_rule_fits(hn_rule rule, const hn_tree *t);

typedef struct hn_verdict {
    int n_accepted;                    /* rows of the path behind the root */
    int16_t path[HN_TREE_ROWS];        /* their rows, in order */
    int16_t provenance[HN_TREE_ROWS];  /* drafter of each: highest estimate among its candidates, ties to the lower index */
    int32_t next;                      /* the target's token after them */
    int16_t next_row;                  /* the row whose logits drew it */
} hn_verdict;

/* logits(ctx, row): float [vocab] of a tree row, called once for each row the walk visits. greedy(ctx, row): its argmax
 * or -1 if unknown; may be NULL. root_position: position of the root token, so the first draw is for root_position + 1.
 * HUNCH_FAILED if a row has no drawable token. */
typedef struct hn_logits_source {
    const float *(*logits)(void *ctx, int row);
    int32_t (*greedy)(void *ctx, int row);
    void *ctx;
} hn_logits_source;
hunch_status hn_verify_tree(const hn_tree *t, hn_rule rule, hn_sampler *s, const hn_logits_source *src,
                            uint64_t root_position, hn_verdict *out, hunch_error *err);
#endif
