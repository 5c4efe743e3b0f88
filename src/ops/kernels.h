/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - the inner functions of the CPU operations: one table per level.
 *
 * A table starts complete with ref/ (plain C, which defines every result); each level then overrides the functions that
 * it has faster, in ascending order. Every function gives the same bits at every level, NaN payloads aside; tests/check
 * tests it. What an operation computes is the same at every level but for q8_as_bf16 and sums_of_tiles. Splitting work over threads is
 * in cpu_*.c.
 */
#ifndef HN_KERNELS_H
#define HN_KERNELS_H
#include "base/cpu.h"
#include "ops/act.h"
#include "ops/delta.h"
#include "ops/kv.h"
#include "ops/pack.h"
#include "ops/ssm.h"

enum {
    HN_CALL_STRIPS = 4,                        /* most strips a call */
    HN_CALL_ROWS = 64,                         /* most rows a call */
    HN_KEY_CHUNK = 16,                         /* positions a chunk of keys */
    HN_KEY_CHUNKS = HN_KEY_SPAN / HN_KEY_CHUNK,
    HN_QUERIES = 24,                           /* most query rows (row x head of a group) a call */
    HN_CODE_QUERIES = 4                        /* of scores_q8_bf16 and values_q8_bf16 */
};

/* Memory that is read soon, in runs, in the order of reading: a kernel may prefetch from it as many lines as it reads. */
typedef struct hn_read_ahead {
    const unsigned char *at, *end; /* what is left of the run before `next` */
    int every; /* steps of a tile from one prefetch to the next, so that all tiles of a chunk take part */
    int next, count;
    struct {
        const unsigned char *at;
        size_t bytes;
    } run[2 * HN_KEY_CHUNKS];
} hn_read_ahead;

/* c[strip][row][16 outputs] = W x for up to HN_CALL_STRIPS strips of one type and n rows, up to HN_CALL_ROWS. */
typedef struct hn_strips_job {
    const unsigned char *w[HN_CALL_STRIPS]; /* strips */
    int strips, in, n;
    const unsigned char *x; /* row 0 in the form the function reads: hn_q8_group[], bf16 or float[] */
    size_t x_stride;        /* bytes between rows */
    float *c;               /* 64-byte aligned */
} hn_strips_job;
typedef void hn_strips_fn(const hn_strips_job *j);

/* The keys and values of one span of HN_KEY_SPAN logical positions, in chunks of 16 that may be anywhere, in the layout of ops/kv.h: k[i]
 * with k_stride[i] positions for page_rows, v[i] with 16 rows of v_dim elements. k_scale and v_scale: for Q8_0. */
typedef struct hn_keys {
    const void *k[HN_KEY_CHUNKS];
    const void *v[HN_KEY_CHUNKS];
    const float *k_scale[HN_KEY_CHUNKS];
    const float *v_scale[HN_KEY_CHUNKS];
    int k_stride[HN_KEY_CHUNKS];
    bool codes;           /* a Q8_0 cache as it is stored, for products of bf16 */
    hn_read_ahead *ahead; /* NULL: nothing */
} hn_keys;

struct hn_kernels {
    /* -- linear: q8 reads Q8 rows (block types only), f32 F32 rows (every type), bf16 BF16 rows (BF16 weights) -- */
    hn_strips_fn *linear_q8[HN_WEIGHT_TYPES];
    hn_strips_fn *linear_f32[HN_WEIGHT_TYPES];
    hn_strips_fn *linear_bf16;
    /* y[r][0..cols) = or += c[r][..]; cols 1..16; c [n][16] */
    void (*store)(const float *c, int n, float *y, int ldy, int cols, bool add);
    /* lanes[r]: bit o is set where c[r][o] >= least[r], o < cols; c [n][16]. Returns the OR of all. */
    unsigned (*at_least)(const float *c, int n, int cols, const float *least, uint16_t *lanes);
    /* y[r][0..cols) = silu(gate[r]) * up[r] */
    void (*store_glu)(const float *gate, const float *up, int n, float *y, int ldy, int cols);

    /* -- rows -- */
    float (*inverse_rms)(const float *x, int in, float eps); /* 1 / sqrt(mean of squares + eps) */
    void (*normalise)(const float *x, const float *w, int count, float r, float *y); /* y = x * r * w; y may be x */
    void (*add)(float *y, const float *x, int count);        /* y += x */
    void (*geglu)(float *gate, const float *up, int count);  /* gate = gelu(gate) * up, gelu in its tanh form */
    void (*softcap)(float *x, int count, float cap);         /* x = cap * tanh(x / cap); cap > 0 */
    void (*exps)(float *x, int count);                       /* x = exp(x) */
    float (*exp_sum)(const float *x, int count, float most); /* sum of exp(x - most) of the x that are `most` or below */
    float (*exp_moment)(const float *x, int count, float most); /* sum of d * exp(d), d = x - most from HN_EXP_LO to 0 */
    /* Inputs [0, count) of a row, from the start of a group: ceil(count / 64) groups and as many parts. */
    void (*quantise)(const float *x, int count, hn_q8_group *out, hn_q8_parts *parts);
    /* to nearest even, denormals to zero: a BF16 row, or its first inputs (an even number) */
    void (*round_bf16)(const float *x, int count, uint16_t *y);
    void (*rope)(float *x, const float *cs, int dims, bool interleaved); /* one head, in place */
    void (*to_cache)(hn_dtype t, const float *x, int count, void *dst);  /* rounds to F32, F16 or BF16 */

    /* -- gates and gated delta nets (delta.h) -- */
    void (*swiglu)(float *gate, const float *up, int count);      /* gate = gate / (1 + e^-gate) * up */
    void (*sigmoid_glu)(float *gate, const float *up, int count); /* gate = up / (1 + e^-gate) */
    /* gate = g / (1 + e^-(alpha g)) * (u + 1), g = min(gate, limit), u = up brought into [-limit, limit] */
    void (*clamped_glu)(float *gate, const float *up, int count, float alpha, float limit);
    /* y = silu(bias + sum of w[t][c] m[t][c], t ascending, each step an fma); m[t] NULL: zeros; bias NULL: 0. w [taps][ldw] */
    void (*convolve)(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y);
    /* y = y * (bias + the same sum) */
    void (*gated_taps)(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y);
    float (*dot)(const float *x, const float *y, int count); /* with the lanes of inverse_rms */
    void (*delta_step)(const hn_delta_step *s);

    /* -- state space layers (ssm.h) -- */
    void (*ssm_read)(const hn_ssm_read *r);
    void (*ssm_move)(const hn_ssm_move *m);
    /* y[j] += w[i] x[i][j], i ascending, each step an fma */
    void (*add_rows)(const float *w, const float *const *x, int n, int count, float *y);

    /* -- attention, on one span: products of f32, for every type of cache -- */
    /* s[i][p] = scale * sum_d q[i][d] k[p][d], d ascending, for all positions of chunks [c0, c1), i < nq <= HN_QUERIES.
     * s: [nq][HN_KEY_SPAN] */
    void (*scores)(hn_dtype t, const hn_keys *keys, int c0, int c1, const float *const *q, int nq, int dim, float scale,
                   float *s);
    /* Turns s[lo..hi) into e = exp(s - m), m their maximum, l the sum of e; 0 <= lo < hi <= HN_KEY_SPAN. */
    void (*softmax)(float *s, int lo, int hi, float *m, float *l);
    /* o[i][d] += e[i][p] v[p][d], p ascending in [lo, hi), i < nq. e: [nq][HN_KEY_SPAN], o: ldo floats apart; dim: of v */
    void (*values)(hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int nq, int dim, float *o, int ldo);
    /* -- and products of bf16, for a BF16 cache: pairs of dims, pairs of positions; docs/kernels.md -- */
    void (*scores_bf16)(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale,
                        float *s);
    /* As softmax, but e is rounded to bf16, before the sum: e[lo..hi), and zeros to the ends of chunks. s is not changed. */
    void (*softmax_bf16)(const float *s, int lo, int hi, float *m, float *l, uint16_t *e);
    /* Values of v outside of [lo, hi) do not affect results; the halves of pairs of e there are zero. */
    void (*values_bf16)(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo);
    /* Levels whose two functions above have the sums of tiles, of 32 dims of keys and of the 16 positions of a chunk; others have those of
     * pairs. Then lo and hi are multiples of HN_KEY_CHUNK, or what a row sees begins or ends there: e is zero in the rest of the chunk. */
    bool sums_of_tiles;
    /* -- of a head whose values are the first dims of its keys: 16 rows of K, `step` bytes from one piece to the next, as V without scales
     * (kv.h); a BF16 cache, and one of Q8_0, whose dim is a multiple of HN_KV_SCALED -- */
    void (*keys_to_values_bf16)(const unsigned char *k, size_t step, int dim, unsigned char *v);
    void (*keys_to_values_q8)(const unsigned char *k, size_t step, int dim, unsigned char *v);
    /* -- a Q8_0 cache at levels whose products of pairs are faster than those of f32 (q8_as_bf16): code * scale, rounded to bf16, denormals
     * to zero. Chunks [c0, c1) to BF16's layout in pages of one chunk (kv.h), without gaps: chunk c0 at `to`, 64-byte aligned -- */
    bool q8_as_bf16;
    void (*keys_q8_to_bf16)(const hn_keys *from, int c0, int c1, int dim, unsigned char *to);
    void (*values_q8_to_bf16)(const hn_keys *from, int c0, int c1, int dim, unsigned char *to);
    /* scores_bf16 and values_bf16 of the same numbers, for nq <= HN_CODE_QUERIES: too few to be worth a copy */
    void (*scores_q8_bf16)(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s);
    void (*values_q8_bf16)(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo);
    int value_rows; /* the fastest number of rows for `values` and `values_bf16` */
    /* O[d] = fma(o[d], b, O[d] * a) */
    void (*merge)(float *O, const float *o, int dim, float a, float b);
    /* y[d] = x[d] * a */
    void (*scale)(float *y, const float *x, int dim, float a);
};

/* Of a row that is centred: its mean, and 1 / sqrt(the mean of the squares of what is left + eps); sums have the lanes of inverse_rms.
 * The same function at every level. */
typedef struct hn_row_sums {
    float mean, inverse;
} hn_row_sums;
hn_row_sums hn_centred_sums(const float *x, int in, float eps);
/* y = (x - mean) * inverse * w + b; w NULL: 1, b NULL: 0; y may be x. */
void hn_centre(const float *x, const float *w, const float *b, int count, hn_row_sums sums, float *y);

/* y = x * w over the root of the mean of squares; y may be x. */
static inline void hn_rmsnorm(const struct hn_kernels *k, const float *x, const float *w, int in, float eps, float *y) {
    k->normalise(x, w, in, k->inverse_rms(x, in, eps), y);
}

/* The table of a level that this machine has. */
const struct hn_kernels *hn_kernels_get(hn_isa isa);

/* Each sets or overrides the entries of its part. */
void hn_kernels_ref_linear(struct hn_kernels *k);
void hn_kernels_ref_norm(struct hn_kernels *k);
void hn_kernels_ref_attention(struct hn_kernels *k);
void hn_kernels_ref_delta(struct hn_kernels *k);
void hn_kernels_ref_ssm(struct hn_kernels *k);
void hn_kernels_ref_sums_of_tiles(struct hn_kernels *k); /* the reference of levels that have them */
void hn_kernels_avx2_delta(struct hn_kernels *k);
void hn_kernels_avx2_ssm(struct hn_kernels *k);
void hn_kernels_avx512_delta(struct hn_kernels *k);
void hn_kernels_avx512_ssm(struct hn_kernels *k);
void hn_kernels_dotprod_delta(struct hn_kernels *k);
void hn_kernels_avx2_linear(struct hn_kernels *k);
void hn_kernels_avx2_rows(struct hn_kernels *k);
void hn_kernels_avx2_attention(struct hn_kernels *k);
void hn_kernels_avxvnni_linear(struct hn_kernels *k);
void hn_kernels_avx512_linear(struct hn_kernels *k);
void hn_kernels_avx512_rows(struct hn_kernels *k);
void hn_kernels_avx512_attention(struct hn_kernels *k);
void hn_kernels_avx512bf16_linear(struct hn_kernels *k);
void hn_kernels_amx_linear(struct hn_kernels *k);
void hn_kernels_amx_attention(struct hn_kernels *k);
void hn_kernels_dotprod_linear(struct hn_kernels *k);
void hn_kernels_dotprod_rows(struct hn_kernels *k);
void hn_kernels_dotprod_attention(struct hn_kernels *k);
void hn_kernels_i8mm_linear(struct hn_kernels *k);
void hn_kernels_avx2_attention_bf16(struct hn_kernels *k);
void hn_kernels_avx512_attention_bf16(struct hn_kernels *k);
void hn_kernels_avx512bf16_attention(struct hn_kernels *k);
void hn_kernels_avx512bf16_q8_cache(struct hn_kernels *k);

void hn_kernels_avx2_keys(struct hn_kernels *k);
void hn_kernels_avx512_keys(struct hn_kernels *k);

/* keys_to_values_bf16 in plain C, from pair of dims `first` on. */
void hn_keys_to_values_bf16(const unsigned char *k, size_t step, int dim, int first, unsigned char *v);

/* exp as every kernel computes it: within 2 ulp of e^x on [-87, 88], clamped outside, NaN for NaN. */
float hn_exp(float x);
#endif
