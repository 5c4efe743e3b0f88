/* SPDX-License-Identifier: Apache-2.0 */
/* tree_rates.c - measured rates of a head's candidates by depth and rank, from the output of `hunch compare --json` (head_tree.h).
 *
 * A rate is accepted / (asked + PRIOR_COUNT): a candidate that was verified twice and right both times does not count as certain. */
#include <jansson.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "draft/shape/head_tree.h"
#include "base/json_load.h"

enum { MOST_DEPTHS = HN_TREE_ROWS - 1, MOST_RANKS = HN_TREE_ROWS, PRIOR_COUNT = 2, MOST_BYTES = 256 << 20 };

/* The object's own "ranks", or those of the first of its "methods" that has some. */
static const json_t *find_ranks(const json_t *root) {
    const json_t *own = json_object_get(root, "ranks"), *method;
    size_t i;
    if (own) return own;
    json_array_foreach (json_object_get(root, "methods"), i, method)
        if (json_array_size(json_object_get(method, "ranks")) > 0) return json_object_get(method, "ranks");
    return NULL;
}

static bool read_count(const json_t *from, json_int_t most, double *out) {
    if (!json_is_integer(from) || json_integer_value(from) < 0 || json_integer_value(from) > most) return false;
    *out += (double)json_integer_value(from);
    return true;
}

/* Adds the counts of a depth; false: they cannot be counts. */
static bool read_depth(const json_t *depth, double *asked, double *accepted, int *ranks) {
    enum { MOST_ASKED = 1 << 30 };
    const json_t *a = json_object_get(depth, "asked"), *b = json_object_get(depth, "accepted");
    const size_t n = json_array_size(a);
    if (!json_is_array(a) || !json_is_array(b) || json_array_size(b) != n || n > MOST_RANKS) return false;
    for (size_t r = 0; r < n; r++) {
        if (!read_count(json_array_get(a, r), MOST_ASKED, &asked[r])) return false;
        if (!read_count(json_array_get(b, r), json_integer_value(json_array_get(a, r)), &accepted[r])) return false;
    }
    if ((int)n > *ranks) *ranks = (int)n;
    return true;
}

static hunch_status read_rates(hn_rank_rates *out, const json_t *root, const char *path, bool pooled, hunch_error *err) {
    double asked[MOST_RANKS] = {0}, accepted[MOST_RANKS] = {0}, right = 0;
    const json_t *ranks = find_ranks(root);
    const size_t n = json_array_size(ranks);
    memset(out, 0, sizeof *out);
    if (!json_is_array(ranks) || n < 1 || n > MOST_DEPTHS)
        return hn_fail(err, HUNCH_REFUSED, "%s: expected \"ranks\", a list of 1 to %d depths, as compare --json writes it", path,
                       (int)MOST_DEPTHS);
    out->depths = (int)n;
    for (size_t d = 0; d < n; d++) {
        if (!pooled) memset(asked, 0, sizeof asked), memset(accepted, 0, sizeof accepted);
        if (!read_depth(json_array_get(ranks, d), asked, accepted, &out->ranks))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: depth %zu of \"ranks\": expected lists \"asked\" and \"accepted\" of as many counts, at "
                           "most %d, none accepted more often than asked", path, d + 1, (int)MOST_RANKS);
        for (int r = 0; r < out->ranks; r++) {
            right += accepted[r];
            out->rate[d][r] = asked[r] > 0 ? accepted[r] / (asked[r] + PRIOR_COUNT) : 0;
        }
    }
    for (size_t d = 0; pooled && d + 1 < n; d++) memcpy(out->rate[d], out->rate[n - 1], sizeof out->rate[d]);
    return right > 0 ? HUNCH_OK : hn_fail(err, HUNCH_REFUSED, "%s: no candidate was ever right: no tree fits that", path);
}

hunch_status hn_rank_rates_read(hn_rank_rates *r, const char *path, bool pooled, hunch_error *err) {
    json_error_t where;
    char *text = NULL;
    size_t size, bytes = 0;
    bool is_file;
    hunch_status st = hn_file_probe(path, &is_file, err);
    if (!st && !is_file) st = hn_fail(err, HUNCH_USAGE, "ranks '%s': no such file", path);
    if (!st) st = hn_file_read(path, MOST_BYTES, &text, &size, err);
    if (st) return st;
    json_t *root = hn_json_parse(text, size, &bytes, &where);
    hn_free(text);
    if (!root) return hn_fail(err, HUNCH_REFUSED, "%s: not readable as JSON: line %d: %s", path, where.line, where.text);
    st = read_rates(r, root, path, pooled, err);
    json_decref(root);
    return st;
}
