/* SPDX-License-Identifier: Apache-2.0 */
/* tool_tree.c - see tool_tree.h. */
#include "cli/show/tool_tree.h"

#include <stdlib.h>
#include <string.h>

#include "cli/show/tool_show.h"

enum { INDENT = 3, WIDTH = 100, LEAST_TOGETHER = 3 };

/* ---- drawing ------------------------------------------------------------------------------------------------- */

typedef struct drawing {
    const tool_tree *t;
    const char *margin;
    FILE *out;
    bool color;
    int columns;     /* up to the end of the widest token */
    bool has_child[HUNCH_MAX_DEPTH + 1], shares[HUNCH_MAX_DEPTH + 1]; /* shares a line */
} drawing;

/* The piece of a token as quoted text, or its id without a tokenizer. To be freed. */
static char *piece_text(const tool_tree *t, hunch_token id) {
    const char *bytes;
    size_t len;
    hunch_model_info info;
    hunch_model_get_info(t->model, &info);
    json_t *piece = info.has_tokenizer && hunch_token_piece(t->model, id, &bytes, &len, NULL, NULL) == HUNCH_OK
                        ? tool_json_piece(bytes, len)
                        : json_integer(id);
    char *text = json_dumps(piece, JSON_ENCODE_ANY);
    json_decref(piece);
    return text;
}

static int piece_columns(const tool_tree *t, hunch_token id) {
    char *text = piece_text(t, id);
    const int columns = text ? tool_columns(text) : 0;
    free(text);
    return columns;
}

/* Writes the text of a token, padded to `columns` (0: not padded). */
static void piece_print(const drawing *p, hunch_token id, int columns) {
    char *text = piece_text(p->t, id);
    const int left = text ? columns - tool_columns(text) : 0;
    fprintf(p->out, "%s%*s", text ? text : "", left > 0 ? left : 0, "");
    free(text);
}

/* The next sibling of a node, the first child of a parent (node: -1); -1: none. */
static int next_child(const tool_tree *t, int parent, int node) {
    for (int i = node < 0 ? (parent < 0 ? 0 : parent + 1) : node + 1; i < t->n; i++)
        if (t->node[i].parent == parent)
            return i;
    return -1;
}

static bool is_last(const tool_tree *t, int node) {
    return next_child(t, t->node[node].parent, node) < 0;
}

static bool is_bare(const drawing *p, int node) {
    return !p->has_child[node] && !(p->t->right && p->t->right[node]);
}

/* How many siblings from this one on share a line. */
static int together(const drawing *p, int node) {
    int n = 0;
    for (int i = node; i >= 0 && is_bare(p, i); i = next_child(p->t, p->t->node[node].parent, i))
        n++;
    return n >= LEAST_TOGETHER ? n : 1;
}

/* The lines left of a node at `parent`'s level, from the root on. */
static void rails_print(const drawing *p, int parent) {
    if (parent < 0) {
        fputs(p->margin, p->out);
        return;
    }
    rails_print(p, p->t->node[parent].parent);
    fputs(is_last(p->t, parent) ? "   " : "│  ", p->out);
}

/* The kind of a drafter, with a number if there are several of that kind. */
static void drafter_print(const drawing *p, int drafter) {
    const hunch_engine *e = p->t->engine;
    const char *name = hunch_engine_drafter_name(e, drafter);
    const size_t kind = strcspn(name, ":,");
    int alike = 0, number = 0;
    if (hunch_engine_drafters(e) < 2)
        return;
    for (int d = 0; d < hunch_engine_drafters(e); d++) {
        const char *other = hunch_engine_drafter_name(e, d);
        const bool same = strcspn(other, ":,") == kind && strncmp(other, name, kind) == 0;
        alike += same;
        number += same && d <= drafter;
    }
    fprintf(p->out, "  %s%.*s", tool_style(p->color, 'd'), (int)kind, name);
    if (alike > 1)
        fprintf(p->out, " %d", number);
    fputs(tool_style(p->color, '0'), p->out);
}

/* Siblings that share a line, wrapped at WIDTH below its beginning. */
static void together_print(const drawing *p, int node, int n) {
    const int parent = p->t->node[node].parent, begin = INDENT * p->t->node[node].depth;
    int at = begin, drafter = p->t->node[node].drafter;
    bool last = true;
    for (int k = 0, i = node; k < n; k++, i = next_child(p->t, parent, i))
        last = is_last(p->t, i);
    rails_print(p, parent);
    fputs(last ? "└─ " : "├─ ", p->out);
    for (int k = 0, i = node; k < n; k++, i = next_child(p->t, parent, i)) {
        const hunch_draft_node *x = &p->t->node[i];
        const int wide = piece_columns(p->t, x->token) + 6;
        if (k > 0 && at + 3 + wide > WIDTH) {
            fputc('\n', p->out);
            rails_print(p, parent);
            fputs(last ? "   " : "│  ", p->out);
            at = begin;
        } else if (k > 0) {
            fprintf(p->out, "%s · %s", tool_style(p->color, 'd'), tool_style(p->color, '0'));
            at += 3;
        }
        fputs(tool_color(p->color, x->drafter), p->out);
        piece_print(p, x->token, 0);
        fprintf(p->out, "%s %.0f %%", tool_style(p->color, '0'), 100 * x->estimate);
        if (x->drafter != drafter || k == n - 1)
            drafter_print(p, x->drafter);
        drafter = x->drafter;
        at += wide;
    }
    fputc('\n', p->out);
}

static void node_print(const drawing *p, int node) {
    const tool_tree *t = p->t;
    const hunch_draft_node *n = &t->node[node];
    rails_print(p, n->parent);
    fputs(is_last(t, node) ? "└─ " : "├─ ", p->out);
    fputs(tool_color(p->color, n->drafter), p->out);
    piece_print(p, n->token, p->columns - INDENT * n->depth);
    fprintf(p->out, "%s  %3.0f %%", tool_style(p->color, '0'), 100 * n->estimate);
    drafter_print(p, n->drafter);
    if (t->right && t->right[node])
        fprintf(p->out, "  %s✓%s", tool_style(p->color, 'g'), tool_style(p->color, '0'));
    fputc('\n', p->out);
}

static void children_print(const drawing *p, int parent) {
    for (int i = next_child(p->t, parent, -1); i >= 0;) {
        const int n = together(p, i);
        if (n > 1) {
            together_print(p, i, n);
        } else {
            node_print(p, i);
            children_print(p, i);
        }
        for (int k = 0; k < n && i >= 0; k++)
            i = next_child(p->t, parent, i);
    }
}

/* Width of the nodes that have a line of their own; and which do not. */
static void columns_find(drawing *p) {
    p->columns = piece_columns(p->t, p->t->root);
    for (int i = 0; i < p->t->n; i++) {
        const int parent = p->t->node[i].parent;
        if (parent >= 0)
            p->has_child[parent] = true;
    }
    for (int i = 0; i < p->t->n; i++) {
        const int columns = piece_columns(p->t, p->t->node[i].token) + INDENT * p->t->node[i].depth;
        const int n = p->shares[i] ? 1 : together(p, i);
        for (int m = 0, k = i; n > 1 && m < n; m++, k = next_child(p->t, p->t->node[i].parent, k))
            p->shares[k] = true;
        if (columns > p->columns && !p->shares[i])
            p->columns = columns;
    }
}

void tool_tree_print(const tool_tree *t, const char *note, const char *margin, FILE *out, bool color) {
    drawing p = {.t = t, .margin = margin, .out = out, .color = color};
    columns_find(&p);
    fprintf(out, "%s%s", margin, tool_style(color, 'b'));
    piece_print(&p, t->root, *note ? p.columns : 0);
    fputs(tool_style(color, '0'), out);
    if (*note)
        fprintf(out, "  %s%s%s", tool_style(color, 'd'), note, tool_style(color, '0'));
    fputc('\n', out);
    children_print(&p, -1);
}

bool tool_tree_branches(const hunch_draft_node *node, int n) {
    for (int i = 0; i < n; i++)
        if (node[i].parent != i - 1)
            return true;
    return false;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

json_t *tool_tree_json(hunch_token root, const hunch_draft_node *node, int n, const int *path, int accepted) {
    json_t *nodes = json_array(), *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(nodes, json_pack("{s:i,s:i,s:i,s:i,s:o,s:o,s:o}", "token", (int)node[i].token, "parent",
                                               node[i].parent, "drafter", node[i].drafter, "rank", node[i].rank,
                                               "estimate", tool_json_real(node[i].estimate), "margin",
                                               tool_json_real(node[i].margin), "entropy", tool_json_real(node[i].entropy)));
    for (int i = 0; i < accepted; i++)
        json_array_append_new(list, json_integer(path[i]));
    return json_pack("{s:i,s:o,s:o}", "root", (int)root, "nodes", nodes, "path", list);
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

void tool_ranks_add(tool_ranks *r, const hunch_round_report *round) {
    int row = -1;
    for (int depth = 0; depth <= round->accepted && depth < HUNCH_MAX_DEPTH; depth++) {
        const int next = depth < round->accepted ? round->path[depth] : -1;
        for (int i = 0; i < round->rows - 1; i++) {
            if (round->node[i].parent != row)
                continue;
            r->at[depth][round->node[i].rank].asked++;
            r->at[depth][round->node[i].rank].accepted += i == next;
        }
        row = next;
    }
}

json_t *tool_ranks_json(const tool_ranks *r) {
    json_t *list = json_array();
    int depths = 0;
    for (int d = 0; d < HUNCH_MAX_DEPTH; d++)
        for (int k = 0; k <= HUNCH_MAX_DEPTH; k++)
            if (r->at[d][k].asked)
                depths = d + 1;
    for (int d = 0; d < depths; d++) {
        json_t *asked = json_array(), *accepted = json_array();
        int ranks = 0;
        for (int k = 0; k <= HUNCH_MAX_DEPTH; k++)
            if (r->at[d][k].asked)
                ranks = k + 1;
        for (int k = 0; k < ranks; k++) {
            json_array_append_new(asked, json_integer((json_int_t)r->at[d][k].asked));
            json_array_append_new(accepted, json_integer((json_int_t)r->at[d][k].accepted));
        }
        json_array_append_new(list, json_pack("{s:o,s:o}", "asked", asked, "accepted", accepted));
    }
    return list;
}
