/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the table of operations that layer code is written against, once for every backend.
 *
 * Ops take handles (hn_buf), never host pointers, and layer code never reads computed numbers: tokens, positions, slots,
 * parents and numbers of rows are in buffers. They are called by a function that was given to a backend's submit (backend.h). On a CPU
 * every worker of the pool calls the same op with its rank; each op ends in a barrier of all ranks. A device is rank 0 of 1 and enqueues.
 *
 * C2. The value of an output row depends only on that row's inputs, on the level and on the precision, never on n or on other rows:
 *   linear, quantised weights (native): the row is quantised per block of 32 to int8; per output, blocks ascending:
 *     acc = fmaf((float)isum * d_w, d_x, acc) with the exact int32 block sum isum of weight code and activation, offset
 *     removed exactly in integers; if weights have a minimum then acc = fmaf(m_w, d_x * (float)sum_x, acc). Types with
 *     a scale for every 16 weights add the two parts of a block, times their integer scales, in isum. ref/linear_ref.c
 *   linear, BF16 weights (native): the row is rounded to bf16; per output, pairs of inputs ascending:
 *     acc = fmaf(w0, x0, fmaf(w1, x1, acc)), where every operand and result smaller than 2^-126 is zero.
 *   linear, other float weights (and all weights under f32 precision, dequantised on the fly as hn_dequantise does): per
 *     output, inputs ascending: acc = fmaf(w, x, acc).
 *   norm: see ops/ref/norm.c for the fixed order of its sum.
 *   attention: spans of HN_KEY_SPAN logical positions from position 0, each from a fresh state, merged left to right.
 *     Over a BF16 cache (native) q and the weights of values are rounded to bf16 and multiplied in pairs; so is, at levels
 *     for which attention_in_bf16 says it, a Q8_0 cache; else all is f32.
 *   state space layers (Mamba-2): states at multiples of 16 rows, and two sums from there along the row's path (ssm.h): with a(t) =
 *     16 max(0, t / 16 - 1) and s(j) = the sum of decay d over the rows a(t) .. j,
 *     y(t) = e^s(t) S(a(t))^T C(t) + sum over j = a(t) .. t of e^(s(t) - s(j)) d(j) (B(j) . C(t)) x(j) + skip x(t);
 *     S(a + 16) from S(a) row by row, S' = e^(decay d) S + (d x) (x) B.
 * ref/ defines these results; every level gives the bits of the reference of its operation (NaN payloads aside). docs/kernels.md
 */
#ifndef HN_OPS_H
#define HN_OPS_H
#include "base/dtype.h"
#include "base/link.h"

/* ---- memory ------------------------------------------------------------------------------------------------- */

typedef struct hn_mem hn_mem; /* memory of one backend */
typedef struct hn_backend hn_backend; /* backend.h */
typedef struct hn_buf {
    hn_mem *mem;
    size_t off; /* bytes */
} hn_buf;
static inline hn_buf hn_at(hn_buf b, size_t behind) { return (hn_buf){b.mem, b.off + behind}; }

/* A number of rows. It is in a buffer, so that what was recorded for some rows can run again for others of the same kind. */
typedef struct hn_count {
    hn_buf at; /* int32, 0..most; mem NULL: the number is `most` */
    int most;
} hn_count;
static inline hn_count hn_number(int n) { return (hn_count){{NULL, 0}, n}; }

/* ---- sizes that the contracts depend on --------------------------------------------------------------------------- */

enum {
    HN_STRIP = 16,       /* outputs a weight strip */
    HN_KEY_SPAN = 256,  /* logical positions a span of attention (C2) */
    HN_PASS_ROWS = 512,  /* the most rows of a pass (contract C2: no bit depends on it) */
    HN_MAX_ROWS = 64,    /* rows of a drafter's pass, and of one text in a pass that is not its prompt */
    HN_MAX_TEXTS = 256,  /* texts of a pass, so also of an engine at once; each has a page table in the pass */
    HN_MAX_HEAD_DIM = 576, /* of attention; heads must be a multiple of kv_heads */
    HN_MAX_LINEAR = 4,   /* matrices that share an input in one call */
    HN_MAX_TOP = 64,     /* best outputs of a row in linear_top */
    HN_MAX_EXPERTS = 1024, /* of a layer */
    HN_MAX_USED = 32,    /* experts that a row uses */
    HN_RANK_STRIPS = 2   /* packed strips of stored weights that a rank has at a time */
};

/* ---- weights --------------------------------------------------------------------------------------------------- */

/* The purpose of an operation in a pass: the rows of a profile (profile.h). */
typedef enum hn_phase {
    HN_PHASE_OTHER,
    HN_PHASE_EMBED,
    HN_PHASE_NORM, /* norms, and conversion of rows to the form that a product reads */
    HN_PHASE_QKV,
    HN_PHASE_ROPE, /* rotation, biases and norms of heads, storing keys and values */
    HN_PHASE_ATTENTION,
    HN_PHASE_O,
    HN_PHASE_GATE_UP,
    HN_PHASE_DOWN,
    HN_PHASE_ROUTER, /* choice of a row's experts, and the sum of their results */
    HN_PHASE_OUTPUT, /* logits, and the best of them */
    HN_PHASES
} hn_phase;

/* Some rows of a tensor, one run after another. */
enum { HN_MOST_RUNS = 32 };
typedef struct hn_runs {
    int n, first[HN_MOST_RUNS], count[HN_MOST_RUNS];
} hn_runs;
/* The tensor's row of theirs; NULL: they are all. */
static inline int hn_run_row(const hn_runs *r, int row) {
    int i = 0;
    if (!r) return row;
    for (; row >= r->count[i]; i++) row -= r->count[i];
    return r->first[i] + row;
}

/* A matrix as its file stores it, in host memory (usually a mapped file). */
typedef struct hn_stored {
    const void *rows;     /* row 0 of the matrix, at any alignment; NULL: not stored */
    const hn_runs *runs;  /* its rows from there on, each of whole strips; NULL: one after another */
    size_t row_bytes;
    const float *factors; /* F8_E4M3: [blocks of rows][blocks of inputs] of the tensor that holds the matrix; else NULL */
    int first;            /* the matrix's row 0 in that tensor */
    const uint8_t *scales; /* MXFP4 in two parts: one scale a block, `rows` having codes alone (hn_mxfp4_join); else NULL */
    size_t scale_bytes;    /* from a row's scales to the next row's */
} hn_stored;

/* The factors of a row (and of its whole strip: strips do not cross a block of rows), one for each HN_F8_TILE inputs. */
static inline const float *hn_stored_factors(const hn_stored *s, int in, int row) {
    const size_t across = (size_t)(in + HN_F8_TILE - 1) / HN_F8_TILE;
    return s->factors ? s->factors + across * (size_t)((s->first + hn_run_row(s->runs, row)) / HN_F8_TILE) : NULL;
}

/* Where a backend keeps a matrix, or of one that stays in its file what it needs to read it: made by the backend's `place`, `pair` and
 * `place_stored`, and known to the backend alone. */
typedef struct hn_matrix_place {
    hn_buf at;
    size_t step;
} hn_matrix_place;

/* How columns are divided among ranks (base/link.h): rank r computes [first[r], first[r + 1]), or of stripes of first[ranks] columns
 * these of each, side by side where it computes them. Which they are is the same on all ranks. */
typedef struct hn_slices {
    int rank, ranks; /* this process's; of all */
    int stripes;     /* 1.. */
    bool groups;     /* each begins with a whole group of 64 (HN_GROUP) of a Q8 row */
    int first[HN_MOST_RANKS + 1];
} hn_slices;
static inline int hn_slice_count(const hn_slices *s, int rank) { return s->stripes * (s->first[rank + 1] - s->first[rank]); }
static inline int hn_own_first(const hn_slices *s) { return s->first[s->rank]; } /* of one stripe */
static inline int hn_own_count(const hn_slices *s) { return hn_slice_count(s, s->rank); }
static inline int hn_slices_width(const hn_slices *s) { return s->stripes * s->first[s->ranks]; } /* of all */

/* A matrix y = W x, [out, in], packed by the backend (the CPU's layout: docs/kernels.md, ops/pack.h); or as it is stored: then it is
 * packed part by part when it is needed, and gives the same bits. */
typedef struct hn_weight {
    hn_dtype dtype;
    int out, in;
    hn_matrix_place place;
    hn_stored stored;    /* rows NULL: packed, at its place */
    hn_phase phase;      /* purpose of its products */
    bool wide;           /* its products read F32 rows in native precision too */
    bool by_row;         /* it is a table that `embed` alone reads, and is stored whatever else is packed */
    int experts;         /* 0; or the number of matrices [out, in], of experts or heads */
    bool of_heads;       /* they are those of heads, which every row uses */
    const hn_stored *each; /* [experts] as they are stored, instead of `stored`; NULL: packed */
    /* Where ranks divide a model's matrices; NULL: this one is whole. outs: it has the own slice of outputs, which are joined; ins: what it
     * reads has to be joined before. */
    const hn_slices *outs, *ins;
    hn_buf order;        /* int32 [in]: its rows are sorted so (GPTQ's act order), and read what `permute` made; mem NULL: they are not */
} hn_weight;
static inline bool hn_is_stored(const hn_weight *w) { return w->stored.rows || w->each; }

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* A matrix of f32, a row for each row of the operation's n: row i begins ld floats behind row i - 1, and its first `cols` are the
 * matrix. It refers to a part of a buffer, and is passed by value. at.mem NULL: there is none. */
typedef struct hn_matrix {
    hn_buf at;
    int cols, ld;
} hn_matrix;
static const hn_matrix hn_no_matrix = {{NULL, 0}, 0, 0};
/* Columns [first, first + count), the same rows. */
static inline hn_matrix hn_columns(hn_matrix m, int first, int count) {
    return (hn_matrix){hn_at(m.at, sizeof(float) * (size_t)first), count, m.ld};
}
/* Rows from `first` on. */
static inline hn_matrix hn_rows_from(hn_matrix m, int first) {
    return (hn_matrix){hn_at(m.at, sizeof(float) * (size_t)first * (size_t)m.ld), m.cols, m.ld};
}

enum { HN_ACT_F32 = 1, HN_ACT_Q8 = 2, HN_ACT_BF16 = 4 }; /* forms of an activation row; a mask */
/* Rows of a matrix input. Their writer makes `forms`; a product reads the form that its matrix wants. Layout: ops/act.h. */
typedef struct hn_act {
    hn_buf data;
    int in, max_rows;
    int forms;
} hn_act;
/* The same buffer for rows of another width, in other forms. */
static inline hn_act hn_act_of(hn_act a, int in, int forms) { return (hn_act){a.data, in, a.max_rows, forms}; }

enum { HN_NO_PAGE = -1 };

/* ---- rows of a pass --------------------------------------------------------------------------------------------- */

/* All arrays are int32 buffers unless noted otherwise. Rows of one sequence are contiguous. The logical position of a
 * row's k-th own-path entry is committed + k: entry 0 is the root of the sequence's rows, the last one the row itself;
 * path_slots holds the cache slot of each (slot == position for chains and prefill). */
typedef struct hn_rows {
    hn_count n;        /* 1..HN_PASS_ROWS */
    hn_count n_seqs;
    hn_buf token;      /* [n] */
    hn_buf position;   /* [n] */
    hn_buf slot;       /* [n] cache slot that the row writes, in the sequence's page table; mem NULL: none, nothing is stored */
    hn_buf seq;        /* [n] 0..n_seqs-1, ascending */
    hn_buf path_start; /* [n] index into path_slots of the row's entry for position `committed` */
    hn_buf path_slots; /* [sum of path lengths]; row i's path covers positions committed[seq] .. last[i] */
    /* [n] the last position that a row sees if rows see ahead, position[i] .. max_position; positions up to it are
     * stored before attention reads them */
    hn_buf last;
    hn_buf from;       /* [n] the position that its window is counted back from, at most position[i] */
    hn_buf seq_first;  /* [n_seqs + 1] first row of each sequence */
    hn_buf committed;  /* [n_seqs] positions below it are committed: slot == position */
    hn_buf direct;     /* [n_seqs] 1: all rows of it form one chain, slot == position on every path */
    /* [n_seqs][page_stride] page number of slot / page_rows; HN_NO_PAGE if no row of the pass sees or writes any of its slots */
    hn_buf page_table;
    int page_stride;
    int most_seen; /* rows see no position from this on: how much is worth dividing; 0: nobody said it */
} hn_rows;

/* ---- keys and values ---------------------------------------------------------------------------------------------- */

/* The place of one layer's K and V in the pages of a cache group. Page p starts at pool + p * page_bytes. In it K of a
 * layer is at k_off and V at v_off, kv head after kv head; layout of a head: ops/kv.h. */
typedef struct hn_kv {
    hn_dtype type; /* HN_BF16 (head_dim and v_dim even), HN_F16, HN_F32, HN_Q8_0 (multiples of 32) */
    hn_buf pool;
    size_t page_bytes, k_off, v_off;
    int page_rows; /* power of two, 16..HN_KEY_SPAN */
    int kv_heads;
    int head_dim, v_dim; /* width of a query and its keys; of a value and the result */
    bool v_in_k;         /* V is the first v_dim dims of K, stored once (latent attention); v_off has no meaning */
} hn_kv;

/* A row of the cache that is copied: from a row of a page to one of another page, or of the same. */
typedef struct hn_row_move {
    int32_t from_page, from_row, to_page, to_row;
} hn_row_move;

/* ---- the table ------------------------------------------------------------------------------------------------------ */

/* What every op is called with. ops: the backend's table, or one that forwards to it. */
typedef struct hn_ops hn_ops;
typedef struct hn_exec {
    const hn_ops *ops;
    const hn_backend *backend;
    int rank, ranks;
} hn_exec;

typedef struct hn_linear_out {
    const hn_weight *w;
    hn_matrix y; /* [out] wide at least */
} hn_linear_out;

/* The inputs of an activation with a gate, both overwritten. */
typedef struct hn_glu_in {
    hn_matrix gate, up;
    hn_buf gate_bias, up_bias; /* f32 [cols]; mem NULL: none */
    float limit; /* of HN_SILU: as that of hn_expert_unit without alpha; 0: none */
} hn_glu_in;

/* What is computed of a row's outputs, and written: y = scale * (W a + bias), or cap * tanh(y / cap) if cap is not 0. Capped values may
 * tie although others do not: the best are those of y as it is written. */
typedef struct hn_output_rows {
    float scale, cap;
    hn_count n_written; /* the first of the rows that are written to y */
    hn_matrix y;
} hn_output_rows;

/* The best outputs of rows: value descending, ties to the lower id, NaN never among them. */
typedef struct hn_top {
    int k;          /* 1..HN_MAX_TOP */
    hn_buf id;      /* int32 [n][k]; -1 if a row has fewer numbers */
    hn_buf value;   /* f32 [n][k]; NaN there */
    hn_buf bias;    /* f32 [out], added to W a; mem NULL: none */
    int ld_bias;    /* 0: the same for all rows, else distance of its rows in floats, f32 [n][ld_bias] */
    hn_buf map;     /* int32 [out]: the outputs' ids, all different; mem NULL: their indices */
    hn_buf scratch; /* top_scratch bytes */
    hn_buf sums;    /* f32 [n_written][hn_sum_parts(out)]: the sum of e^(y - the row's best) over each HN_SUM_PART outputs;
                       mem NULL: not computed */
    hn_buf moments; /* f32, likewise: the sum of (y - the row's best) e^(y - the row's best), of which those below -87 are left out: the
                       entropy of the softmax is log(sum) - moment / sum; mem NULL: not computed */
} hn_top;
/* The outputs that a row chooses, in clusters: number c are the outputs [c * size, (c + 1) * size). */
typedef struct hn_clusters {
    int used, size; /* clusters of a row; outputs of each */
    hn_buf id;      /* int32 [n][used], all of a row different; -1: none, as in the ids of linear_top */
} hn_clusters;
enum { HN_SUM_PART = 4096 };
static inline int hn_sum_parts(int out) { return (out + HN_SUM_PART - 1) / HN_SUM_PART; }

/* A convolution over rows of blocks, with coefficients of each row. */
typedef struct hn_convolution {
    int block;       /* rows of a block; before its first row all are zero */
    int taps, group; /* columns that share a coefficient */
    hn_buf base;     /* f32 [taps][cols], added to the coefficients */
    hn_matrix coefficients; /* of each row [taps][cols / group] */
} hn_convolution;

/* The function of hn_ops.apply, and where its result goes. Those from HN_GELU_ERF on but the last are computed in double, so that every C
 * library gives the same float. */
typedef enum hn_function {
    HN_SAME,
    HN_SWISH,    /* x / (1 + e^-x): HN_SILU without a gate */
    HN_SIGMOID,  /* 1 / (1 + e^-x) */
    HN_GELU_ERF, /* x (1 + erf(x / sqrt 2)) / 2: 1606.08415 in its exact form */
    HN_TANH,
    HN_SOFTPLUS, /* ln(1 + e^x) */
    HN_RELU2     /* x^2, 0 below 0 */
} hn_function;
typedef enum hn_into { HN_INTO_SET, HN_INTO_ADD, HN_INTO_TIMES } hn_into;

typedef struct hn_rope {
    int first, dims;    /* dims [first, first + dims) of a head are rotated (both even), the rest is unchanged */
    bool interleaved;   /* pairs (2i, 2i+1) of them, else (i, i + dims/2) */
    float scale;        /* cos and sin are multiplied by it */
    hn_buf freq;        /* f32 [dims/2] radians a position, computed at load in double and rounded; 0: the pair is only scaled */
} hn_rope;

/* A rotation of a pass's rows. */
typedef struct hn_rope_table {
    const hn_rope *rope;
    hn_buf cs; /* f32 [n][dims]: dims/2 cosines, then dims/2 sines of each row, including scale */
} hn_rope_table;

typedef enum hn_glu { HN_SILU, HN_GELU, HN_GATE } hn_glu; /* x / (1 + e^-x); 1606.08415 in its tanh form; 1 / (1 + e^-x) */

/* How rows choose among the experts of a layer, by the router's product. The scores are its softmax, or the sigmoid of
 * each; the `used` largest of score + bias are chosen (DeepSeek-V3, 2412.19437, section 2.1.2), ties to the lower id.
 * With groups (neighbouring experts, the same number each) only those of the best groups, which are compared by the sum
 * of their two largest (DeepSeek-V2, 2405.04434: by their largest), ties to the lower. The weight of an expert is its score
 * (without the bias), divided by the sum of the chosen ones if `normalised`, times scale. NaN is less than all numbers. */
typedef struct hn_router {
    int experts, used;       /* 1..HN_MAX_EXPERTS; 1..HN_MAX_USED, at most the number in the used groups */
    bool sigmoid, normalised;
    int groups, groups_used; /* 0 or 1: one group */
    bool largest;            /* groups are compared by their largest alone */
    float scale;
    float sum_more;          /* added to the sum by which they are divided; 0: 1e-20 */
    hn_buf bias;             /* f32 [experts]; mem NULL: none */
    hn_buf expert_scale;     /* f32 [experts]: the weight of an expert is multiplied by its own at last; mem NULL: not at all */
} hn_router;

/* The experts that the rows of a pass use. A pair is a row and one of its experts; pairs are ordered by expert, then by row. */
typedef struct hn_routing {
    int experts, used, max_rows;
    hn_buf id;     /* int32 [n][used], ascending */
    hn_buf share;  /* f32 [n][used] weight of each */
    hn_buf pair;   /* int32 [n][used] number of the pair */
    hn_buf row;    /* int32 [n * used] row of each pair */
    hn_buf first;  /* int32 [experts + 1] first pair of each expert */
    hn_buf distinct;  /* int32 [1 + experts] number of experts with rows; their ids, ascending */
    hn_act gathered;  /* room for the input of each pair */
} hn_routing;

/* What an expert computes of its two products g and u: silu(g) * u; or with a limit, of g' = min(g + bias, limit) and
 * u' = u + bias, brought into [-limit, limit]: g' / (1 + e^(-alpha g')) * (u' + 1) (GPT-OSS); with alpha 0, of products without biases:
 * min(silu(g), limit) * u brought into [-limit, limit] (Step 3.7). */
typedef struct hn_expert_unit {
    bool gelu;          /* gelu(g) * u, in its tanh form, instead of the first */
    float limit, alpha; /* limit 0: the former two, which have no biases */
    hn_buf gate_bias, up_bias; /* f32, those of expert e from e * ld_bias on */
    int ld_bias;
} hn_expert_unit;

/* The result of the shared expert, added to those of a row's experts; mem NULL: none. */
typedef struct hn_shared {
    hn_matrix y;
    hn_matrix gate; /* column 0: y is multiplied by its sigmoid */
} hn_shared;

/* 1 + times * ln(1 + floor((position + more) / span)): what queries are multiplied by at a position, so that attention over long texts
 * stays as sharp (Llama 4, Ministral 3). span 0: nothing. Computed in double. */
typedef struct hn_position_scale {
    float times;
    int span, more;
} hn_position_scale;

/* The heads of a layer's queries, keys and values, side by side in a row each. */
typedef struct hn_qkv {
    hn_matrix q, k, v; /* q: [heads * head_dim] wide, 0: there are no queries; k and v 0: there are none */
    int head_dim;
} hn_qkv;

/* A norm of rows. HN_RMS_NORM: x / sqrt(mean of x^2 + eps) * w. HN_LAYER_NORM: m the mean of x, (x - m) / sqrt(mean of (x - m)^2 + eps)
 * * w + b; both sums as ops/ref/norm.c describes. */
typedef enum hn_norm_kind { HN_NO_NORM, HN_RMS_NORM, HN_LAYER_NORM } hn_norm_kind;
typedef struct hn_norm {
    hn_buf w, b; /* f32, as wide as a row; mem NULL: 1, and 0 */
    float eps;
    hn_norm_kind kind;
} hn_norm;

/* Biases and norms of the heads of q, k and v between their products and the rotation; mem NULL: none. */
typedef struct hn_head_fix {
    hn_buf q_bias, k_bias, v_bias; /* f32 [heads or kv_heads * head_dim], added */
    hn_norm q_norm, k_norm, v_norm; /* over each head [head_dim], after the bias */
} hn_head_fix;

/* How much of a row's softmax each span of HN_KEY_SPAN positions has: the mean over the heads of a kv head, in their order, of
 * l e^(m - M) / L, where m and l are the span's maximum and sum, M the greatest of all m, and L = the sum of l e^(m - M) over the spans,
 * ascending, and of e^(sink - M). A span of which the row sees nothing has 0. Rows of it add up to 1, or less what the sinks have. */
typedef struct hn_span_mass {
    hn_buf to;      /* f32 [n][kv_heads][spans]; mem NULL: it is not computed */
    int spans;      /* up to that of the last position that a row sees, or more */
    hn_buf partial; /* room of f32 [n][heads][spans][2] */
} hn_span_mass;

/* Parameters of an attention. */
typedef struct hn_attention_params {
    int heads;    /* of queries */
    float scale;  /* of the scores */
    int window;   /* 0, or the number of positions that a row sees, counted back from rows.from[i], including it */
    hn_buf sinks; /* f32 [heads]: a score of each head that takes part in the softmax and has no value; mem NULL: none */
    int first;    /* rows from this position on do not see those below it; less than HN_KEY_SPAN */
    bool ahead;   /* rows see up to rows.last[i], else up to their own position */
    hn_span_mass mass;
} hn_attention_params;

/* The columns of heads in a matrix of rows: those of head h begin with column h * step. */
typedef struct hn_head_columns {
    hn_matrix rows;
    int step;
} hn_head_columns;

/* ---- what the host decides elsewhere: tokens of later passes, draws, accepted paths ---- */

/* What the token after a row is drawn from, and the key of its noise (sample/sampler.h: temperature, top-k, top-p and min-p, then the race
 * of purpose HN_PURPOSE_TARGET). */
typedef struct hn_draw {
    uint64_t seed, position; /* of the token */
    double top_p, min_p;
    float scale;             /* 1 / temperature; 0: the best token is taken */
    int32_t top_k;           /* 0: off */
} hn_draw;

typedef struct hn_sample {
    hn_buf draw;      /* hn_draw [n] */
    hn_buf id, value; /* the best of each row: the first of k (hn_top) */
    int k;
    hn_matrix logits; /* [vocab] wide, of rows that are drawn; others are not read */
    hn_buf scratch;   /* sample_scratch bytes */
    hn_buf token;     /* int32 [n]; -1: no logit is above -infinity */
} hn_sample;

/* Draft trees whose rows are rows of a pass: tree t has the rows [first[t], first[t] + rows[t]), parents before children. */
typedef struct hn_match {
    hn_count n;     /* trees */
    hn_buf first, rows; /* int32 [n]; rows 1..HN_MAX_ROWS */
    hn_buf parent;  /* int32, of each row of the pass: the row that it continues, counted from the tree's first; -1: that is the root */
    hn_buf token;   /* int32, of each row of the pass */
    hn_buf after;   /* int32, the target's tokens: that after row i is after[of_row[i]]; -1: none can be drawn */
    hn_buf of_row;  /* int32, of each row of the pass */
    hn_buf out;     /* int32 [n][HN_MATCH_OUT]: how many rows after the root are accepted, the token after them, and these rows */
} hn_match;
enum { HN_MATCH_OUT = 2 + HN_MAX_ROWS };

/* A level of trees of likeliest paths (EAGLE-2, 2406.16858, 4.1): the successors of the parents of the level before are listed in the order
 * of their parents, and those of each in the order of `from`; the score of one is its parent's and the log of its probability, the share of
 * e^value in the row's sum. The `width` of greatest score are taken, of equal ones the earlier. */
typedef struct hn_beam_level {
    hn_count n;        /* trees */
    hn_buf first;      /* int32 [n + 1]: the parents of tree t are the rows [first[t], first[t + 1]) */
    hn_top from;       /* of these rows; their sums have sum_parts parts */
    int sum_parts;
    hn_buf score;      /* f32, of each parent: the sum of the logs along its path */
    int width;         /* 1..HN_MAX_TOP */
    hn_buf row, token; /* int32 [n][width]: the parent of each, -1: there are no more; its token */
    hn_buf path_score; /* f32 [n][width] */
} hn_beam_level;

/* Columns of one matrix of rows that are copied to the first columns of another: runs of columns at a stride. */
typedef struct hn_pick {
    hn_matrix src, dst; /* all of dst is written */
    int first, run, stride;
} hn_pick;

/* Cache rows of row_bytes bytes: slot s in page s / page_rows of a table. */
typedef struct hn_plain_rows {
    hn_buf pool;
    size_t page_bytes, row_bytes;
    int page_rows;
} hn_plain_rows;

struct hn_delta_job;
struct hn_ssm_job;
struct hn_short_conv;
struct hn_input_pages;
struct hn_ops {
    /* Operations on the first n rows, at most as many as the operands have room for. All ranks call them, each ends in a barrier. */

    /* x[i] = scale * row token[i] of the table, dequantised. */
    void (*embed)(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x);
    /* a[i] = norm(x[i]), a.in wide. y, if there is one, gets the normed row too (the post-norm feature). */
    void (*norm)(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, hn_act a, hn_matrix y);
    /* a[i] = x[i] */
    void (*quantise)(const hn_exec *ex, hn_count n, hn_matrix x, hn_act a);
    /* Row i of `to`, in its forms: the F32 row i of `from`, input order[k] (int32) in the place of input k. What a matrix reads whose
     * inputs have an order of their own (hn_weight.order): blocks of native precision are formed after it. NULL: no such matrices. */
    void (*permute)(const hn_exec *ex, hn_count n, hn_act from, hn_buf order, hn_act to);
    /* y_k = W_k a for up to HN_MAX_LINEAR matrices; add: y_k += W_k a (the residual). */
    void (*linear)(const hn_exec *ex, hn_count n, hn_act a, const hn_linear_out *outs, int n_outs, bool add);
    /* y = act(gate a) * (up a), act HN_SILU or HN_GELU: the bits of linear and glu. gate and up have equal shapes. */
    void (*linear_glu)(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu act, hn_act y);
    /* The best of each row of W a, and all outputs of the first rows. */
    void (*linear_top)(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top);
    /* linear_top of each row's clusters alone; no other strips of w are read. A row of y has the outputs of its clusters in
     * their order, used * size, -infinity instead of those of a cluster that is -1. top: without a bias; its map is of all
     * outputs of w, its sums and moments have hn_sum_parts(used * size) parts. */
    void (*clusters_top)(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_clusters *of, const hn_output_rows *out,
                         const hn_top *top);
    /* The router's choice for each row; scores, its product, are overwritten. */
    void (*route)(const hn_exec *ex, hn_count n, const hn_router *router, hn_matrix scores, const hn_routing *to);
    /* linear_glu for every pair, with the unit of experts: y[pair] from a[row of the pair] and the matrices of its expert. An
     * expert's weights are read once for all rows that use it. max_rows of y and by->gathered is at least n * used. */
    void (*experts_glu)(const hn_exec *ex, hn_count n, const hn_routing *by, hn_act a, const hn_weight *gate, const hn_weight *up,
                        const hn_expert_unit *unit, hn_act y);
    /* y[pair] = W of its expert times a[pair], for n * used rows */
    void (*experts_linear)(const hn_exec *ex, hn_count n, const hn_routing *by, hn_act a, const hn_weight *w, hn_matrix y);
    /* For each matrix W of w, one for each head: y's first w->out columns of the head = W times x's first w->in of it; the `rest`
     * columns of x behind them are copied behind those of y. room: rows of w->in inputs for w->experts heads, as many rows of the pass
     * at a time as it has. x and y do not overlap. */
    void (*heads_linear)(const hn_exec *ex, hn_count n, const hn_weight *w, hn_head_columns x, int rest, hn_act room, hn_head_columns y);
    /* x[i] = (add: +=) the sum of share times (result + bias) over the row's pairs, experts ascending, from 0 on by fmaf, plus the shared
     * expert's result. results: a row for each pair; bias: f32 [experts][x.cols], mem NULL: none. */
    void (*combine)(const hn_exec *ex, hn_count n, const hn_routing *by, hn_matrix results, hn_buf bias, const hn_shared *shared,
                    bool add, hn_matrix x);
    /* cs[i] = the rotation of row i at its position. Called once per pass (for each distinct rope of the model); every layer's
     * rope_store reads it. */
    void (*rope_table)(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *to);
    /* In place on all heads. */
    void (*fix_heads)(const hn_exec *ex, hn_count n, const hn_head_fix *fix, const hn_qkv *x);
    /* Rotates q and k in place, then stores k and v in the cache type at each row's slot. by: of the same rows; NULL: they are only
     * stored. k 0 columns wide: queries alone, and nothing is stored. */
    void (*rope_store)(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x);
    /* Attention of q [heads * head_dim] over each row's path to out [heads * v_dim], and the same to a (no forms: none).
     * scratch: attention_scratch bytes, 64-byte aligned. */
    void (*attention)(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q,
                      hn_matrix out, hn_act a, hn_buf scratch);
    /* dst[to[i]] = src[from[i]], both of the same width; from, to: int32 [n] buffers, mem of `to` NULL: row i. Rows of dst are not
     * repeated, and src and dst do not overlap. */
    void (*gather)(const hn_exec *ex, hn_count n, hn_buf from, hn_matrix src, hn_buf to, hn_matrix dst);
    /* y[i] = (y[i] + norm(x[i])) * times */
    void (*norm_add)(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, float times, hn_matrix y);
    /* y[i] = act(gate[i] + gate_bias) * (up[i] + up_bias) * scale */
    void (*glu)(const hn_exec *ex, hn_count n, hn_glu act, const hn_glu_in *in, float scale, hn_act y);
    /* x[i] += bias, in place. */
    void (*add_bias)(const hn_exec *ex, hn_count n, hn_matrix x, hn_buf bias);
    /* y[i] =, += or *= f(x[i] + bias); bias f32 [cols], mem NULL: none. x and y may be the same. */
    void (*apply)(const hn_exec *ex, hn_count n, hn_function f, hn_into into, hn_matrix x, hn_buf bias, hn_matrix y);
    /* A step of a GRU without biases: input and own, the products of its input and its state s, have three parts as wide as s, of reset,
     * update and new numbers. m = tanh(input_new + own_new / (1 + e^-reset)), s = m + (s - m) / (1 + e^-update), where reset and update
     * are the sums of both parts; tanh is that of a cap of 1. own is overwritten. */
    void (*gru)(const hn_exec *ex, hn_count n, hn_matrix input, hn_matrix own, hn_matrix s);
    /* y[i] = (add: +=) the sum over taps t, ascending from 0 on, of (base[t] + coefficients[i][t]) * x[i - t], products rounded. x and y
     * are as wide, and do not overlap. */
    void (*convolve)(const hn_exec *ex, hn_count n, const hn_convolution *c, hn_matrix x, bool add, hn_matrix y);
    /* x[i] *= a, in place. */
    void (*scale)(const hn_exec *ex, hn_count n, hn_matrix x, float a);
    /* x[i][c] *= by[i][c / each] */
    void (*scale_groups)(const hn_exec *ex, hn_count n, hn_matrix by, int each, hn_matrix x);
    /* x[i] is multiplied by the factor of its row's position. */
    void (*scale_by_position)(const hn_exec *ex, const hn_rows *rows, const hn_position_scale *by, hn_matrix x);
    /* For every part of row i: dst[i][c] = src[i][first + c / run * stride + c % run], for all columns c of dst. */
    void (*pick)(const hn_exec *ex, hn_count n, const hn_pick *parts, int n_parts);
    /* A layer of gated delta nets without its products: delta.h. */
    void (*delta)(const hn_exec *ex, const struct hn_delta_job *job);
    /* A layer of Mamba-2 without its products: ssm.h. */
    void (*ssm)(const hn_exec *ex, const struct hn_ssm_job *job);
    /* A layer of gated short convolutions without its products: short_conv.h. */
    void (*short_conv)(const hn_exec *ex, const hn_rows *rows, const struct hn_short_conv *c, const struct hn_input_pages *kept,
                       hn_matrix x);
    /* As kv_move, for rows of row_bytes bytes, page_rows per page. */
    void (*rows_move)(const hn_exec *ex, const hn_plain_rows *at, hn_count n, hn_buf moves);
    /* Copies cache rows of one layer's K and V: moves: hn_row_move [n], one after another, whatever the later ones overwrite. */
    void (*kv_move)(const hn_exec *ex, const hn_kv *kv, hn_count n, hn_buf moves);
    /* Rows ids[i] of the matrix w as the rows of `to`, both packed; ids: int32 [to->out], of F8_E4M3 rows with the same factors. */
    void (*pick_rows)(const hn_exec *ex, const hn_weight *w, hn_buf ids, const hn_weight *to);
    /* dst[to[i]] = src[from[i]], int32; 0 instead of a negative one: a row of a later pass gets a token that an earlier one found. */
    void (*take_tokens)(const hn_exec *ex, hn_count n, hn_buf from, hn_buf src, hn_buf to, hn_buf dst);
    /* The token after each row: its best one, or drawn. A CPU's are those of sample/sampler.h; a device's belong to its level. */
    void (*sample)(const hn_exec *ex, hn_count n, const hn_sample *s);
    /* Greedy and match (verify/verify.h): of the rows whose path the target would have said, the deepest, of equal ones the first. Several
     * rows may have the same path. A path ends at a row after which no token can be drawn: what follows it is -1. */
    void (*verify_match)(const hn_exec *ex, const hn_match *m);
    void (*beam)(const hn_exec *ex, const hn_beam_level *l);
    /* Of ranks alone, which call them together; NULL where there are none. room: join_room bytes. */

    /* All columns of rows, of which each rank has its slice. */
    void (*join)(const hn_exec *ex, hn_count n, const hn_slices *of, hn_matrix y, hn_buf room);
    /* The same for a product's input, n * each rows: own has the own slice, in F32 or, if slices begin with groups, in the forms of
     * `whole`. */
    void (*join_act)(const hn_exec *ex, hn_count n, int each, const hn_slices *of, hn_act own, hn_act whole, hn_buf room);
    /* The leader gets the best of each row, whose lists have those of the own slice, by their indices there; and the rows that are
     * written, of which each rank has its slice. top: without a map, sums and moments. */
    void (*join_top)(const hn_exec *ex, hn_count n, const hn_slices *of, const hn_output_rows *out, const hn_top *top, hn_buf room);
};
#endif
