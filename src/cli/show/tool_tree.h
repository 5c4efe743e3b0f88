/* SPDX-License-Identifier: Apache-2.0 */
/* tool_tree.h - the tree of a round as a drawing and as JSON, and how often candidates of each rank were right. */
#ifndef HN_TOOL_TREE_H
#define HN_TOOL_TREE_H

#include <stdio.h>

#include "app/tool_output.h"

typedef struct tool_tree {
    const hunch_model *model;
    const hunch_engine *engine;
    hunch_token root;
    const hunch_draft_node *node; /* [n] parents first */
    int n;
    const bool *right;            /* [n] the model generates that node too; NULL: unknown */
} tool_tree;

/* One line per node with the drafter's estimate, below its parent; three or more successive siblings without children that are not right
 * share a line. `note` is printed beside the root, `margin` before every line. */
void tool_tree_print(const tool_tree *t, const char *note, const char *margin, FILE *out, bool color);
/* Whether a node has two children. */
bool tool_tree_branches(const hunch_draft_node *node, int n);

/* {"root", "nodes": [{"token", "parent", "drafter", "rank", "estimate", "margin", "entropy"}], "path"}: path: the nodes that were accepted,
 * in order. */
json_t *tool_tree_json(hunch_token root, const hunch_draft_node *node, int n, const int *path, int accepted);

/* Counts of one drafter, over rounds. */
typedef struct tool_ranks {
    struct {
        uint64_t asked, accepted;
    } at[HUNCH_MAX_DEPTH][HUNCH_MAX_DEPTH + 1]; /* by depth and rank: rows reached that had such a candidate; it was right */
} tool_ranks;
void tool_ranks_add(tool_ranks *r, const hunch_round_report *round);
json_t *tool_ranks_json(const tool_ranks *r); /* [{"asked": [...], "accepted": [...]}, ...] a depth */

#endif
