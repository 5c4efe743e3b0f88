/* SPDX-License-Identifier: Apache-2.0 */
/* tree_shape.c - trees of a fixed shape: the published ones by name (head_tree.h); those of a file: tree_file.c.
 *
 * A node is written as the ranks on its path: "021" is the second-best token after the third-best after the best. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "draft/shape/head_tree.h"

/* Of the releases of Medusa (FasterDecoding/Medusa) and EAGLE-1 (SafeAILab/EAGLE), both Apache-2.0. */
static const struct {
    const char *name, *paths;
} published[] = {
    {"mc_sim_7b_63",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 20 21 22 30 31 40 50 60 70 80 90 "
     "000 001 002 003 004 005 006 007 008 009 010 011 012 020 021 030 040 050 060 070 100 101 200 0000 0001"},
    {"vicuna_7b_stage2",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 20 21 30 31 40 50 60 70 000 001 002 003 "
     "004 005 006 007 008 010 011 012 013 020 021 030 040 050 100 101 102 110 200 0000 0001 0002 0003 0010 "
     "0020 0100"},
    {"vicuna_7b_stage1_ablation",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 20 21 30 31 40 50 60 000 001 002 003 004 "
     "005 006 007 008 009 010 011 012 013 020 021 030 040 050 100 101 102 110 200 300 0000 0001 0002 0003 0010 "
     "0020 0100"},
    {"vicuna_7b_stage1",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 20 21 22 23 30 31 32 40 41 50 51 "
     "60 70 80 90 000 001 002 003 004 005 006 007 008 010 011 012 020 021 030 040 050 100 101 200 0000"},
    {"vicuna_13b_stage2",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 20 21 30 40 50 000 001 002 003 004 005 006 "
     "007 008 009 010 011 012 013 020 021 030 040 050 100 101 102 110 200 300 0000 0001 0002 0003 0010 0011 "
     "0020 0100 1000"},
    {"vicuna_13b_stage1",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 20 21 22 23 30 31 40 41 50 60 70 "
     "80 000 001 002 003 004 005 006 007 008 009 010 011 012 013 020 021 030 040 050 100 101 110 200 0000"},
    {"vicuna_33b_stage2",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 20 21 22 30 31 40 50 60 70 000 001 002 "
     "003 004 005 006 007 008 009 010 011 012 013 020 021 030 040 050 100 101 102 110 200 0000 0001 0002 0010 "
     "0100"},
    {"vicuna_33b_stage1",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 20 21 22 23 24 30 31 32 40 41 "
     "50 51 60 70 80 90 000 001 002 003 004 005 006 007 008 010 011 012 020 021 030 040 100 101 200"},
    {"zephyr_stage2",
     "0 1 2 3 4 5 6 7 8 9 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 20 21 22 23 30 31 40 41 50 60 70 000 "
     "001 002 003 004 005 006 007 008 009 010 011 012 013 020 021 030 040 050 100 101 110 200 0000 0001 0010"},
    {"eagle_mc_sim_7b_63",
     "0 1 2 3 00 01 02 10 11 20 21 30 000 001 002 010 011 020 021 100 0000 0001 0002 00000 00001"},
};
enum { N_PUBLISHED = sizeof published / sizeof *published };

static int by_depth_then_rank(const void *a, const void *b) {
    const hn_tree_path *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    for (int i = 0; i < x->n; i++)
        if (x->rank[i] != y->rank[i]) return x->rank[i] < y->rank[i] ? -1 : 1;
    return 0;
}

/* The node of a path's first n ranks; -1: the root; -2: none. */
static int node_of(const hn_tree_path *all, int n_all, const hn_tree_path *p, int n) {
    if (n == 0) return -1;
    for (int i = 0; i < n_all; i++)
        if (all[i].n == n && memcmp(all[i].rank, p->rank, (size_t)n * sizeof *p->rank) == 0) return i;
    return -2;
}

static void measure(hn_shape *s) {
    for (int i = 0; i < s->n; i++) {
        int expanded = 0;
        if (s->node[i].rank >= s->widest) s->widest = s->node[i].rank + 1;
        s->depth = s->node[i].depth;
        for (int k = 0; k < s->n; k++) {
            bool has_child = false;
            for (int c = 0; c < s->n; c++) has_child |= s->node[c].parent == k;
            expanded += has_child && s->node[k].depth == s->node[i].depth;
        }
        if (expanded > s->most_expanded) s->most_expanded = expanded;
    }
}

/* Appends the children of a node of `from`, by rank; `at` is the index of that node in the sorted order. */
static void add_children(hn_shape *s, const hn_shape *from, int node, int at, int *origin) {
    const int first = s->n;
    for (int k = 0; k < from->n; k++) {
        if (from->node[k].parent != node) continue;
        int to = s->n++;
        for (; to > first && s->node[to - 1].rank > from->node[k].rank; to--) {
            s->node[to] = s->node[to - 1];
            origin[to] = origin[to - 1];
        }
        s->node[to] = (hn_shape_node){(int16_t)at, from->node[k].rank, from->node[k].depth};
        origin[to] = k;
    }
}

void hn_shape_finish(hn_shape *s) {
    const hn_shape from = *s;
    int origin[HN_TREE_ROWS];
    *s = (hn_shape){0};
    add_children(s, &from, -1, -1, origin);
    for (int i = 0; i < s->n; i++) add_children(s, &from, origin[i], i, origin);
    measure(s);
}

/* "[0, 2, 1]" */
static char *path_text(const hn_tree_path *p, char out[256]) {
    size_t at = 0;
    for (int i = 0; i < p->n; i++) at += (size_t)snprintf(out + at, 256 - at, "%s%d", i ? ", " : "[", p->rank[i]);
    snprintf(out + at, 256 - at, "]");
    return out;
}

hunch_status hn_shape_make(hn_shape *s, hn_tree_path *all, int n, const char *name, hunch_error *err) {
    char text[256];
    qsort(all, (size_t)n, sizeof *all, by_depth_then_rank);
    *s = (hn_shape){.n = n};
    for (int i = 0; i < n; i++) {
        const int parent = node_of(all, n, &all[i], all[i].n - 1);
        if (parent == -2)
            return hn_fail(err, HUNCH_REFUSED, "tree %s: path %s has no parent, expected a path of its first %d rank%s too", name,
                           path_text(&all[i], text), all[i].n - 1, all[i].n == 2 ? "" : "s");
        if (i > 0 && by_depth_then_rank(&all[i - 1], &all[i]) == 0)
            return hn_fail(err, HUNCH_REFUSED, "tree %s: path %s is there twice", name, path_text(&all[i], text));
        s->node[i] = (hn_shape_node){(int16_t)parent, all[i].rank[all[i].n - 1], (int16_t)all[i].n};
    }
    measure(s);
    return HUNCH_OK;
}

static int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static hunch_status make_published(hn_shape *s, int which, hunch_error *err) {
    hn_tree_path all[HN_TREE_ROWS - 1] = {{0}};
    int n = 0;
    for (const char *c = published[which].paths; *c; c++)
        if (*c == ' ')
            n++;
        else
            all[n].rank[all[n].n++] = (int16_t)digit(*c);
    return hn_shape_make(s, all, n + 1, published[which].name, err);
}

static hunch_status fail_name(const char *name, hunch_error *err) {
    char known[512] = "";
    for (int i = 0; i < N_PUBLISHED; i++) {
        if (i) strcat(known, ", ");
        strcat(known, published[i].name);
    }
    return hn_fail(err, HUNCH_USAGE,
                   "tree '%s': no such file, and no tree of that name: chain, dynamic, opt, best, expanded, pruned, fitted, sequoia, %s",
                   name,
                   known);
}

bool hn_shape_is_published(const char *name) {
    for (int i = 0; i < N_PUBLISHED; i++)
        if (!strcmp(published[i].name, name)) return true;
    return false;
}

hunch_status hn_shape_read(hn_shape *s, const char *name, hunch_error *err) {
    bool is_file;
    for (int i = 0; i < N_PUBLISHED; i++)
        if (!strcmp(published[i].name, name)) return make_published(s, i, err);
    hunch_status st = hn_file_probe(name, &is_file, err);
    if (!st && !is_file) st = fail_name(name, err);
    return st ? st : hn_shape_read_file(s, name, err);
}
