/* SPDX-License-Identifier: Apache-2.0 */
/* vulkan_passes.c - a model on a device: whether its bits are those of any number of rows, and seconds of passes and of kernels.
 *
 *   vulkan_passes MODEL DEVICE [bits] [f32] [profile] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "vulkan/vk_device.h"

enum { TOKENS = 300, REPS = 12 };

typedef struct kept {
    float *logits;
    size_t rows;
    int differ; /* the first row that does; -1 */
    bool compare;
    double worst;
} kept;

static int fail(const hunch_error *err) {
    printf("FAILED: %s\n", err->message);
    return 1;
}

static void row(void *user, size_t position, const float *logits, int vocab) {
    kept *k = user;
    const size_t n = (size_t)vocab;
    if (!k->logits) k->logits = calloc(n * TOKENS, sizeof *k->logits);
    float *mine = k->logits + n * position;
    if (k->compare && memcmp(mine, logits, n * sizeof *mine)) {
        if (k->differ < 0) k->differ = (int)position;
        for (size_t i = 0; i < n; i++) {
            const double d = (double)mine[i] - (double)logits[i];
            if (d * d > k->worst * k->worst || d != d) k->worst = d;
        }
    }
    if (!k->compare) memcpy(mine, logits, n * sizeof *mine);
    k->rows = position + 1;
}

static hunch_status open_engine(hunch_engine **e, hunch_model *m, int chunk, hunch_error *err) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.chunk = chunk;
    o.context = m->target.arch.context < 2048 ? m->target.arch.context : 2048;
    o.parallel = 1;
    return hunch_engine_open(e, m, &o, err);
}

static int bits(hunch_model *m) {
    static const int chunks[] = {64, 1, 2, 3, 5, 8, 16, 33, 300};
    hunch_token token[TOKENS];
    kept k = {.differ = -1};
    hunch_error err;
    const int n = m->target.arch.context < TOKENS ? m->target.arch.context : TOKENS;
    int bad = 0;
    for (int i = 0; i < n; i++) token[i] = (i * 7919 + 13) % m->target.arch.vocab;
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        hunch_engine *e;
        k.compare = c > 0;
        k.differ = -1;
        k.worst = 0;
        if (open_engine(&e, m, chunks[c], &err) || hunch_evaluate(e, token, (size_t)n, row, &k, &err)) return fail(&err);
        hunch_engine_close(&e);
        if (k.differ >= 0) printf("BITS of chunks of %d differ from row %d on, by up to %g\n", chunks[c], k.differ, k.worst);
        bad |= k.differ >= 0;
    }
    uint64_t h = 0xCBF29CE484222325u;
    double sum = 0;
    for (size_t i = 0; i < k.rows * (size_t)m->target.arch.vocab; i++) {
        uint32_t u;
        memcpy(&u, &k.logits[i], sizeof u);
        h = (h ^ u) * 0x100000001B3u;
        sum += (double)k.logits[i] * (double)k.logits[i];
    }
    printf("bits: %s; logits of %d tokens: hash %016" PRIx64 ", mean square %.6g\n", bad ? "WRONG" : "the same for any number of rows", n,
           h, sum / ((double)k.rows * m->target.arch.vocab));
    free(k.logits);
    return bad;
}

static int by_seconds(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int passes(hunch_model *m, bool profile) {
    static const int rows[] = {1, 2, 3, 4, 8, 16, 32, 64};
    hunch_engine *e;
    hunch_error err;
    double s[REPS];
    vk_device *d = vk_of(m->target.backend)->d;
    if (open_engine(&e, m, 512, &err)) return fail(&err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int context = 0; context <= 1024; context += 1024) {
            if (context + 64 > e->context) continue;
            if (hunch_measure_pass(e, rows[i], context, REPS, s, &err)) return fail(&err);
            qsort(s, REPS, sizeof *s, by_seconds);
            printf(
                "pass of %2d rows after %4d: %.3f ms (least %.3f), %d dispatches, %d barriers, recorded in %.0f us, %.1f MB, %.0f GB/s\n",
                rows[i], context, s[REPS / 2] * 1e3, s[0] * 1e3, d->last_counts.dispatches, d->last_counts.barriers, d->recorded * 1e6,
                d->last_counts.bytes / 1e6, d->last_counts.bytes / s[REPS / 2] / 1e9);
        }
    for (int i = 0; i < 3 && e->context >= 1024; i++) {
        double p;
        if (hunch_measure_prefill(e, 512, &p, &err)) return fail(&err);
        printf("prompt of 512: %.2f ms, %.0f tokens/s\n", p * 1e3, 512 / p);
    }
    double p = 0;
    const int before = e->context >= 1024 ? 512 : 0, behind = e->context >= 2048 ? 1024 : 0;
    if (hunch_measure_decode(e, 64, before, &p, &err)) return fail(&err);
    printf("greedy after %d: %.1f tokens/s\n", before, 64 / p);
    for (int k = 0; k < (behind ? 3 : 2) && profile; k++) {
        static const int which[] = {1, 8, 512};
        hn_vk_profile_begin(d);
        if (which[k] < 512 ? hunch_measure_pass(e, which[k], behind, 2, s, &err) : hunch_measure_prefill(e, 512, &p, &err))
            return fail(&err);
        printf("kernels of %s of %d rows:\n", which[k] < 512 ? "two passes" : "a prompt", which[k]);
        hn_vk_profile_end(d, stdout);
    }
    hunch_engine_close(&e);
    return 0;
}

int main(int argc, char **argv) {
    hunch_model_options o;
    hunch_model *m;
    hunch_error err;
    bool want_bits = false, profile = false;
    if (argc < 3) return 2;
    hunch_model_options_defaults(&o);
    o.device = argv[2];
    for (int i = 3; i < argc; i++) {
        want_bits |= !strcmp(argv[i], "bits");
        profile |= !strcmp(argv[i], "profile");
        if (!strcmp(argv[i], "f32")) o.precision = HUNCH_PRECISION_F32;
    }
    const double begun = hn_now();
    if (hunch_model_open(&m, argv[1], &o, &err)) return fail(&err);
    printf("%s opened in %.2f s\n", argv[1], hn_now() - begun);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int bad = want_bits ? bits(m) : 0;
    if (!want_bits || profile) bad |= passes(m, profile);
    hunch_model_close(&m);
    return bad;
}
