/* SPDX-License-Identifier: Apache-2.0 */
/* tree_file.c - trees of a fixed shape from a JSON file (head_tree.h), in either form:
 *
 *   {"paths": [[0], [1], [0, 2]]}                 ranks from the root; or the list alone
 *   {"nodes": [{"parent": -1, "rank": 0}, ...]}   index of each node's parent in the list, in any order; -1: the root
 */
#include <jansson.h>

#include "base/file.h"
#include "base/mem.h"
#include "draft/shape/head_tree.h"
#include "base/json_load.h"

enum { MOST_NODES = HN_TREE_ROWS - 1, MOST_DEPTH = HN_TREE_ROWS - 1, MOST_RANK = 63, MOST_BYTES = 1 << 20 };

static bool read_number(const json_t *from, int least, int most, int *out) {
    if (!json_is_integer(from) || json_integer_value(from) < least || json_integer_value(from) > most) return false;
    *out = (int)json_integer_value(from);
    return true;
}

static bool read_path(const json_t *from, hn_tree_path *to) {
    const size_t n = json_array_size(from);
    int rank;
    if (!json_is_array(from) || n < 1 || n > MOST_DEPTH) return false;
    for (size_t i = 0; i < n; i++) {
        if (!read_number(json_array_get(from, i), 0, MOST_RANK, &rank)) return false;
        to->rank[to->n++] = (int16_t)rank;
    }
    return true;
}

static hunch_status read_paths(hn_shape *s, const json_t *paths, const char *file, hunch_error *err) {
    const size_t n = json_array_size(paths);
    hn_tree_path all[MOST_NODES] = {{0}};
    if (!json_is_array(paths) || n < 1 || n > MOST_NODES)
        return hn_fail(err, HUNCH_REFUSED, "%s: expected a list \"paths\" of 1 to %d paths, or \"nodes\"", file, (int)MOST_NODES);
    for (size_t i = 0; i < n; i++)
        if (!read_path(json_array_get(paths, i), &all[i]))
            return hn_fail(err, HUNCH_REFUSED, "%s: path %zu: expected a list of 1 to %d ranks, each 0 to %d", file, i,
                           (int)MOST_DEPTH, (int)MOST_RANK);
    return hn_shape_make(s, all, (int)n, file, err);
}

typedef struct link {
    int parent, rank;
} link;

/* The ranks from the root to node i; false: it does not reach the root. */
static bool path_of(const link *node, int n, int i, hn_tree_path *to) {
    for (int k = i; k >= 0; k = node[k].parent)
        if (++to->n > n) return false;
    for (int k = i, at = to->n; k >= 0; k = node[k].parent) to->rank[--at] = (int16_t)node[k].rank;
    return true;
}

static hunch_status read_nodes(hn_shape *s, const json_t *nodes, const char *file, hunch_error *err) {
    const size_t n = json_array_size(nodes);
    link node[MOST_NODES];
    hn_tree_path all[MOST_NODES] = {{0}};
    if (!json_is_array(nodes) || n < 1 || n > MOST_NODES)
        return hn_fail(err, HUNCH_REFUSED, "%s: \"nodes\": expected a list of 1 to %d nodes", file, (int)MOST_NODES);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(nodes, i);
        if (!read_number(json_object_get(one, "parent"), -1, (int)n - 1, &node[i].parent) ||
            !read_number(json_object_get(one, "rank"), 0, MOST_RANK, &node[i].rank))
            return hn_fail(err, HUNCH_REFUSED, "%s: node %zu: expected \"parent\", a node of 0 to %zu or -1, and \"rank\", 0 to %d", file,
                           i, n - 1, (int)MOST_RANK);
    }
    for (int i = 0; i < (int)n; i++)
        if (!path_of(node, (int)n, i, &all[i]))
            return hn_fail(err, HUNCH_REFUSED, "%s: node %d is its own ancestor: expected a path to the root", file, i);
    return hn_shape_make(s, all, (int)n, file, err);
}

hunch_status hn_shape_read_file(hn_shape *s, const char *file, hunch_error *err) {
    json_error_t where;
    char *text = NULL;
    size_t size, bytes = 0;
    hunch_status st = hn_file_read(file, MOST_BYTES, &text, &size, err);
    if (st) return st;
    json_t *root = hn_json_parse(text, size, &bytes, &where);
    hn_free(text);
    if (!root) return hn_fail(err, HUNCH_REFUSED, "%s: not readable as JSON: line %d: %s", file, where.line, where.text);
    const json_t *paths = json_is_object(root) ? json_object_get(root, "paths") : root, *nodes = json_object_get(root, "nodes");
    st = !paths && nodes ? read_nodes(s, nodes, file, err) : read_paths(s, paths, file, err);
    json_decref(root);
    return st;
}
