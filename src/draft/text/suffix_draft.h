/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_draft.h - from places in a suffix tree to the draft with the best score (model-free suffix decoding,
 * arXiv 2411.04975 and Arctic Inference).
 *
 * The last m tokens of the text, for every m, lead to a place in the tree. The rules make a draft after each; its score
 * is the expected number of its tokens that are accepted: the sum of count(match and path) / count(match) over them.
 */
#ifndef HN_SUFFIX_DRAFT_H
#define HN_SUFFIX_DRAFT_H
#include "draft/text/suffix_tree.h"
#include "draft/tree.h"

enum { HN_SUFFIX_DEPTH = HN_TREE_ROWS - 1 };

typedef struct hn_suffix_rules {
    bool tree;      /* the most probable tokens in a tree, else the chain of the most frequent ones */
    int depth;      /* most tokens of a draft, <= HN_SUFFIX_DEPTH */
    double factor;  /* a match of m tokens drafts floor(factor m + offset) of them */
    double offset;
    double min_p;   /* least probability of a token, given the match */
} hn_suffix_rules;

typedef struct hn_suffix_draft {
    double score;
    int match;                        /* tokens that matched; 0: no draft */
    int n;
    int32_t token[HN_SUFFIX_DEPTH];
    int16_t parent[HN_SUFFIX_DEPTH];  /* an earlier one of the draft, -1: the text's end */
    double p[HN_SUFFIX_DEPTH];        /* of the path, given the match; never increases along the draft */
    double step[HN_SUFFIX_DEPTH];     /* of the token, given its parent */
} hn_suffix_draft;

/* Over the matches of the last 1..most tokens of a text that occur in the tree. text_end: after the newest
 * of at least `most` tokens; NULL: the text that the tree is storing, all of it counted, most <= n_active.
 * The highest score wins, of equal ones the longest match. Of equally probable tokens those come first that could be
 * drafted earlier, among siblings the tree's order decides. */
void hn_suffix_best(const hn_suffix_tree *t, const hn_suffix_rules *rules, const int32_t *text_end, int most,
                    hn_suffix_draft *out);
#endif
