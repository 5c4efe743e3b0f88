/* SPDX-License-Identifier: Apache-2.0 */
/* head_clusters.c - a draft head whose output's rows are in clusters of equal size, each with a centroid, as in the assistants of Gemma 4
 * ("ordered embeddings"): a row's logits are those of the few clusters whose centroids have the largest products with its state, so that
 * only their rows of the output are read. In memory the output's rows are in the order of the clusters. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/head/head.h"

static hunch_status check_pair(const hn_source *src, const hn_head_names *names, const hn_tensor *centroids, hunch_error *err) {
    char name[2][128];
    (void)hn_head_name(names, HN_HEAD_CENTROIDS, 0, name[0]);
    (void)hn_head_name(names, HN_HEAD_ORDER, 0, name[1]);
    return hn_fail(err, HUNCH_REFUSED, "%s: a tensor %s, and no %s: expected both, or none", hn_source_path(src), name[!centroids],
                   name[centroids != NULL]);
}

static hunch_status read_used(hn_output_stage *d, const hn_source *src, hunch_error *err) {
    const int most = d->clusters.n < HN_MAX_TOP ? d->clusters.n : HN_MAX_TOP;
    const hunch_status st = hn_head_expect(src, HN_HEAD_KEY_CLUSTERS, d->clusters.n, "rows of its centroids", err);
    return st ? st : hn_head_need(src, HN_HEAD_KEY_CLUSTERS_USED, 1, most, "how many clusters a row has logits of", " of its clusters",
                                  &d->clusters.used, err);
}

hunch_status hn_head_read_clusters(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    const hn_tensor *centroids = hn_head_find_tensor(src, names, HN_HEAD_CENTROIDS),
                    *order = hn_head_find_tensor(src, names, HN_HEAD_ORDER);
    if (!centroids && !order) return HUNCH_OK;
    if (!centroids || !order) return check_pair(src, names, centroids, err);
    const uint64_t n = centroids->n_dims == 2 ? centroids->dims[1] : 0, vocab = (uint64_t)a->vocab;
    if (n < 1 || n > vocab || vocab % n != 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has %llu rows, expected a divisor of the %d tokens that it drafts: clusters of "
                       "equal size", hn_source_path(src), centroids->name, (unsigned long long)n, a->vocab);
    a->draft_head.output.kind = HN_OUTPUT_CLUSTERS;
    a->draft_head.output.clusters.n = (int)n;
    return read_used(&a->draft_head.output, src, err);
}

static hunch_status check_order(const hn_source *src, const char *name, const int32_t *order, int n, hunch_error *err) {
    unsigned char *seen = hn_zalloc((size_t)n, 1);
    hunch_status st = seen ? HUNCH_OK : hn_fail_memory(err, name, (size_t)n);
    for (int i = 0; !st && i < n; i++)
        if (seen[order[i]]++)
            st = hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: entry %d is %d, as one before it is: expected each of 0 to %d once",
                         hn_source_path(src), name, i, order[i], n - 1);
    hn_free(seen);
    return st;
}

/* From the cluster of each output to the output of each place. */
static hunch_status place_outputs(const hn_source *src, const char *name, int32_t *list, int n, int clusters, hunch_error *err) {
    const int size = n / clusters;
    int *count = hn_zalloc((size_t)clusters, sizeof *count);
    int32_t *place = hn_alloc((size_t)n * sizeof *place);
    hunch_status st = count && place ? HUNCH_OK : hn_fail_memory(err, name, (size_t)n * sizeof *place);
    for (int i = 0; !st && i < n; i++) {
        const int c = list[i];
        if (count[c] == size)
            st = hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: output %d is in cluster %d, as %d before it are: expected clusters of %d",
                         hn_source_path(src), name, i, c, size, size);
        else
            place[c * size + count[c]++] = i;
    }
    if (!st) memcpy(list, place, (size_t)n * sizeof *list);
    hn_free(count);
    hn_free(place);
    return st;
}

/* The order's numbers; ik_llama.cpp's converter writes them as floats, as all vectors. */
static hunch_status read_numbers(const hn_source *src, const hn_tensor *t, size_t n, int most, int64_t *to, hunch_error *err) {
    if (t->dtype != HN_F32 || t->n_dims != 1 || t->dims[0] != n) return hn_source_read_integers(src, t, n, 0, most, to, err);
    for (size_t i = 0; i < n; i++) {
        float x;
        const hunch_status st = hn_source_read(src, t, i * sizeof x, sizeof x, &x, err);
        if (st) return st;
        if (!(x >= 0 && x <= (float)most && x == floorf(x)))
            return hn_fail(err, HUNCH_REFUSED, "%s: element %zu of tensor %s is %g; expected a whole number of 0 to %d",
                           hn_source_path(src), i, t->name, (double)x, most);
        to[i] = (int64_t)x;
    }
    return HUNCH_OK;
}

hunch_status hn_head_read_order(hn_source *src, const hn_head_names *names, const hn_arch *a, int32_t **order, hunch_error *err) {
    const size_t n = (size_t)a->vocab;
    char name[128];
    *order = NULL;
    if (a->draft_head.output.kind != HN_OUTPUT_CLUSTERS) return HUNCH_OK;
    hn_tensor *t = hn_source_take(src, hn_head_name(names, HN_HEAD_ORDER, 0, name));
    int64_t *stored = hn_alloc(n * sizeof *stored);
    int32_t *list = hn_alloc(n * sizeof *list);
    hunch_status st = stored && list ? read_numbers(src, t, n, a->vocab - 1, stored, err)
                                     : hn_fail_memory(err, name, n * sizeof *stored);
    const int clusters = a->draft_head.output.clusters.n;
    bool of_outputs = clusters < a->vocab;
    for (size_t i = 0; !st && i < n; i++) {
        list[i] = (int32_t)stored[i];
        of_outputs &= list[i] < clusters;
    }
    if (!st && of_outputs) st = place_outputs(src, t->name, list, a->vocab, clusters, err);
    if (!st) st = check_order(src, t->name, list, a->vocab, err);
    hn_free(stored);
    if (st) hn_free(list);
    *order = st ? NULL : list;
    return st;
}

hunch_status hn_head_order_ids(int32_t **ids, const int32_t *order, int n, hunch_error *err) {
    int32_t *ordered = hn_alloc((size_t)n * sizeof *ordered);
    if (!ordered) return hn_fail_memory(err, "draft tokens", (size_t)n * sizeof *ordered);
    for (int i = 0; i < n; i++) ordered[i] = *ids ? (*ids)[order[i]] : order[i];
    hn_free(*ids);
    *ids = ordered;
    return HUNCH_OK;
}
