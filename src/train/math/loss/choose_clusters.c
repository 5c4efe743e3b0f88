/* SPDX-License-Identifier: Apache-2.0 */
/* choose_clusters.c - see choose_clusters.h. Spherical k-means on the rows less their mean, which all logits share: centres are unit
 * vectors, and similarity is the cosine. In each round every cluster takes equally many rows, those that would lose most by another choice
 * first; at the end rows of two clusters are exchanged as long as the similarities' sum increases. */
#include "train/math/loss/choose_clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "train/math/layers/layers_back.h"

enum { ROUNDS = 16, EXCHANGES = 8 };

static const char *const names[] = {"kmeans", "random", "frequency"};

const char *hn_cluster_start_name(hn_cluster_start start) {
    return names[start];
}

bool hn_cluster_start_named(const char *name, hn_cluster_start *out) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) {
            *out = (hn_cluster_start)i;
            return true;
        }
    return false;
}

typedef struct by_margin {
    double margin;
    int row;
} by_margin;

typedef struct kmeans {
    hn_workers *workers;
    int n, clusters, size;
    hn_mat unit, centre, near; /* [n][d] rows less their mean, of length 1; [clusters][d]; cosines [n][clusters] */
    by_margin *queue;          /* [n] */
    int *of, *count, *member;  /* [n] the cluster of each row; [clusters]; [n] rows by cluster */
} kmeans;

static void normalise(hn_real *x, int n) {
    double square = 0;
    for (int i = 0; i < n; i++) square += (double)x[i] * (double)x[i];
    const hn_real scale = square > 0 ? (hn_real)(1 / sqrt(square)) : 0;
    for (int i = 0; i < n; i++) x[i] *= scale;
}

static void make_units(kmeans *k, hn_mat rows) {
    for (int c = 0; c < rows.cols; c++) {
        double mean = 0;
        for (int r = 0; r < k->n; r++) mean += (double)hn_mat_row(rows, r)[c] / k->n;
        for (int r = 0; r < k->n; r++) hn_mat_row(k->unit, r)[c] = hn_mat_row(rows, r)[c] - (hn_real)mean;
    }
    for (int r = 0; r < k->n; r++) normalise(hn_mat_row(k->unit, r), rows.cols);
}

static void shuffle(int *list, int n, uint64_t *seed) {
    for (int i = 0; i < n; i++) list[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(hn_splitmix(seed) % (uint64_t)(i + 1)), kept = list[i];
        list[i] = list[j];
        list[j] = kept;
    }
}

/* The first centres: different rows. */
static void begin_centres(kmeans *k, uint64_t seed) {
    shuffle(k->member, k->n, &seed);
    for (int c = 0; c < k->clusters; c++)
        memcpy(hn_mat_row(k->centre, c), hn_mat_row(k->unit, k->member[c]), (size_t)k->unit.cols * sizeof(hn_real));
}

/* The larger margin first, then the lower row. */
static int more_urgent(const void *a, const void *b) {
    const by_margin *x = a, *y = b;
    if (x->margin != y->margin) return x->margin > y->margin ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The best cluster that has room; *margin: how much better it is than the next one. */
static int best_with_room(const kmeans *k, int row, double *margin) {
    const hn_real *near = hn_mat_row(k->near, row);
    int best = -1, next = -1;
    for (int c = 0; c < k->clusters; c++) {
        if (k->count[c] == k->size) continue;
        if (best < 0 || near[c] > near[best]) {
            next = best;
            best = c;
        } else if (next < 0 || near[c] > near[next])
            next = c;
    }
    *margin = next < 0 ? 0 : (double)near[best] - (double)near[next];
    return best;
}

/* Returns whether a row changed its cluster. */
static bool assign(kmeans *k) {
    bool changed = false;
    double margin;
    hn_linear(k->workers, k->unit, k->centre, NULL, k->near);
    memset(k->count, 0, (size_t)k->clusters * sizeof *k->count);
    for (int r = 0; r < k->n; r++) {
        (void)best_with_room(k, r, &margin);
        k->queue[r] = (by_margin){margin, r};
    }
    qsort(k->queue, (size_t)k->n, sizeof *k->queue, more_urgent);
    for (int i = 0; i < k->n; i++) {
        const int row = k->queue[i].row, cluster = best_with_room(k, row, &margin);
        changed |= cluster != k->of[row];
        k->of[row] = cluster;
        k->count[cluster]++;
    }
    return changed;
}

static void move_centres(kmeans *k) {
    memset(k->centre.p, 0, (size_t)k->clusters * k->centre.ld * sizeof(hn_real));
    for (int r = 0; r < k->n; r++) {
        hn_real *to = hn_mat_row(k->centre, k->of[r]);
        const hn_real *from = hn_mat_row(k->unit, r);
        for (int i = 0; i < k->unit.cols; i++) to[i] += from[i];
    }
    for (int c = 0; c < k->clusters; c++) normalise(hn_mat_row(k->centre, c), k->centre.cols);
}

/* The rows of each cluster, ascending. */
static void list_members(const int *of, int n, int clusters, int *count, int *member) {
    memset(count, 0, (size_t)clusters * sizeof *count);
    for (int r = 0; r < n; r++) member[of[r] * (n / clusters) + count[of[r]]++] = r;
}

/* Exchanges a row with the one of another cluster with which the sum of similarities increases most, if there is one. */
static bool exchange(kmeans *k, int row) {
    const hn_real *mine = hn_mat_row(k->near, row);
    const int own = k->of[row];
    double most = 1e-6;
    int place = -1;
    for (int c = 0; c < k->clusters; c++) {
        if (!(mine[c] > mine[own])) continue;
        for (int i = c * k->size; i < (c + 1) * k->size; i++) {
            const hn_real *other = hn_mat_row(k->near, k->member[i]);
            const double gain = (double)mine[c] - (double)mine[own] + (double)other[own] - (double)other[c];
            if (gain > most) most = gain, place = i;
        }
    }
    if (place < 0) return false;
    const int other = k->member[place];
    for (int i = own * k->size; i < (own + 1) * k->size; i++)
        if (k->member[i] == row) k->member[i] = other;
    k->member[place] = row;
    k->of[row] = k->of[other];
    k->of[other] = own;
    return true;
}

static void run(kmeans *k, hn_mat rows, uint64_t seed) {
    bool changed = true;
    make_units(k, rows);
    begin_centres(k, seed);
    for (int r = 0; r < k->n; r++) k->of[r] = -1;
    for (int round = 0; changed && round < ROUNDS; round++) {
        changed = assign(k);
        move_centres(k);
    }
    hn_linear(k->workers, k->unit, k->centre, NULL, k->near);
    list_members(k->of, k->n, k->clusters, k->count, k->member);
    changed = true;
    for (int pass = 0; changed && pass < EXCHANGES; pass++) {
        changed = false;
        for (int r = 0; r < k->n; r++) changed |= exchange(k, r);
    }
}

static hunch_status by_kmeans(hn_workers *t, hn_mat rows, int clusters, uint64_t seed, int *order, hunch_error *err) {
    const size_t n = (size_t)rows.rows, c = (size_t)clusters, d = (size_t)rows.cols;
    kmeans k = {.workers = t, .n = rows.rows, .clusters = clusters, .size = rows.rows / clusters};
    hn_real *memory = hn_alloc((n * d + c * d + n * c) * sizeof *memory);
    k.queue = hn_alloc(n * sizeof *k.queue);
    k.of = hn_alloc(n * sizeof *k.of);
    k.count = hn_alloc(c * sizeof *k.count);
    k.member = order;
    hunch_status st = HUNCH_OK;
    if (!memory || !k.queue || !k.of || !k.count)
        st = hn_fail_memory(err, "clusters of tokens", (n * d + c * d + n * c) * sizeof *memory);
    else {
        k.unit = hn_mat_of(memory, rows.rows, rows.cols);
        k.centre = hn_mat_of(memory + n * d, clusters, rows.cols);
        k.near = hn_mat_of(memory + n * d + c * d, rows.rows, clusters);
        run(&k, rows, seed);
        list_members(k.of, k.n, clusters, k.count, order);
    }
    hn_free(memory);
    hn_free(k.queue);
    hn_free(k.of);
    hn_free(k.count);
    return st;
}

static int by_number(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

hunch_status hn_clusters_choose(hn_workers *t, hn_cluster_start start, hn_mat rows, int clusters, const int *first, uint64_t seed,
                                int *order, hunch_error *err) {
    const int size = rows.rows / clusters;
    if (start == HN_CLUSTERS_KMEANS) return by_kmeans(t, rows, clusters, seed, order, err);
    if (start == HN_CLUSTERS_RANDOM)
        shuffle(order, rows.rows, &seed);
    else
        memcpy(order, first, (size_t)rows.rows * sizeof *order);
    for (int c = 0; c < clusters; c++) qsort(order + c * size, (size_t)size, sizeof *order, by_number);
    return HUNCH_OK;
}

void hn_clusters_means(hn_mat rows, const int *order, hn_mat means) {
    const int size = rows.rows / means.rows;
    for (int c = 0; c < means.rows; c++)
        for (int i = 0; i < means.cols; i++) {
            double sum = 0;
            for (int r = c * size; r < (c + 1) * size; r++) sum += (double)hn_mat_row(rows, order[r])[i];
            hn_mat_row(means, c)[i] = (hn_real)(sum / size);
        }
}
