/* SPDX-License-Identifier: Apache-2.0 */
/* check_attention_test.c - attention over random caches, chains and trees: ref against double arithmetic; every level,
 * number of threads, page size and neighbourhood of a row against ref, bit for bit (C2). What no row may see is NaN. */
#include "check.h"

enum { SEQS = 3, SEQ_ROWS = 40, ROWS = 64, PATHS = ROWS * SEQ_ROWS };

/* What is computed, whatever the cache looks like: sequences with `committed` positions and a tree of rows on each.
 * The K and V of a slot are drawn once; row i of a sequence writes slot committed + i. */
typedef struct scene {
    hn_dtype type;
    int kv_heads, group, dim, window, seqs, n;
    float scale;
    int committed[SEQS], first[SEQS + 1], parent[ROWS]; /* parent: row, -1: the committed context */
    bool chain[SEQS];
    float *k[SEQS], *v[SEQS]; /* [slot][kv_head][dim], rounded to the type */
    float *q;                 /* [n][kv_heads * group * dim] */
} scene;

static int width(const scene *s) { return s->kv_heads * s->group * s->dim; }
static int slots(const scene *s, int seq) { return s->committed[seq] + s->first[seq + 1] - s->first[seq]; }
static size_t element_bytes(hn_dtype t) { return t == HN_F32 ? 4 : 2; }

static float round_to(hn_dtype t, float x) {
    if (t == HN_F16) return hn_f16_to_f32(hn_f32_to_f16(x));
    return t == HN_BF16 ? hn_bf16_to_f32(hn_f32_to_bf16(x)) : x;
}

static float *random_rows(const scene *s, int rows, int columns) {
    float *x = hn_alloc((size_t)(rows * columns) * sizeof *x);
    for (int i = 0; i < rows * columns; i++) x[i] = round_to(s->type, check_normal());
    return x;
}

static scene scene_create(int longest) {
    static const hn_dtype types[] = {HN_BF16, HN_F16, HN_F32};
    static const int dims[] = {8, 12, 16, 20, 64, 64, 80, 128};
    scene s = {.type = types[check_int(0, 2)], .kv_heads = check_int(1, 3), .group = check_int(1, 4),
               .dim = dims[check_int(0, 7)], .seqs = check_int(1, SEQS)};
    s.window = check_int(0, 2) ? 0 : check_int(1, 300);
    s.scale = 1.0f / sqrtf((float)s.dim);
    for (int seq = 0; seq < s.seqs; seq++) {
        int rows = check_int(0, 3) ? check_int(1, 9) : check_int(1, (ROWS - s.n - (s.seqs - 1 - seq) * 10) / 2);
        s.first[seq] = s.n;
        s.committed[seq] = check_int(0, 4) ? check_int(0, longest) : 0;
        s.chain[seq] = check_int(0, 1);
        for (int i = 0; i < rows && i < SEQ_ROWS; i++, s.n++) {
            s.parent[s.n] = i == 0 ? -1 : s.chain[seq] || check_int(0, 2) ? s.n - 1 : s.first[seq] + check_int(0, i - 1);
        }
        s.first[seq + 1] = s.n;
        s.k[seq] = random_rows(&s, slots(&s, seq), s.kv_heads * s.dim);
        s.v[seq] = random_rows(&s, slots(&s, seq), s.kv_heads * s.dim);
    }
    s.q = random_rows(&s, s.n, width(&s));
    return s;
}

static void scene_free(scene *s) {
    for (int seq = 0; seq < s->seqs; seq++) {
        hn_free(s->k[seq]);
        hn_free(s->v[seq]);
    }
    hn_free(s->q);
}

static int depth(const scene *s, int row) {
    int d = 0;
    while ((row = s->parent[row]) >= 0) d++;
    return d;
}

static int seq_of(const scene *s, int row) {
    int seq = 0;
    while (row >= s->first[seq + 1]) seq++;
    return seq;
}

/* The slot that a row sees at a position. */
static int slot_at(const scene *s, int row, int position) {
    int seq = seq_of(s, row), back = s->committed[seq] + depth(s, row) - position;
    if (position < s->committed[seq]) return position;
    while (back-- > 0) row = s->parent[row];
    return s->committed[seq] + row - s->first[seq];
}

/* ---- running a scene ------------------------------------------------------------------------------------------------------ */

/* How the same scene is run. */
typedef struct way {
    hn_isa isa;
    int threads, page_rows;
    int only;       /* a row to run alone, or -1 */
    bool no_direct; /* chains through path_slots like trees */
} way;

typedef struct pass {
    const scene *s;
    const way *w;
    check_ops c;
    hn_rows rows;
    hn_kv kv;
    hn_buf q, out, scratch;
    int ldq, ldo;
} pass;

/* Host copies of the row arrays. */
typedef struct arrays {
    int32_t position[ROWS], slot[ROWS], seq[ROWS], path_start[ROWS], path_slots[PATHS], seq_first[SEQS + 1];
    int32_t committed[SEQS], direct[SEQS], *pages;
    int n, n_seqs, n_paths, page_stride, max_position;
} arrays;

static void add_row(const scene *s, arrays *a, int row) {
    int seq = seq_of(s, row), committed = s->committed[seq], d = depth(s, row);
    a->position[a->n] = committed + d;
    a->slot[a->n] = committed + row - s->first[seq];
    a->seq[a->n] = a->n_seqs;
    a->path_start[a->n] = a->n_paths;
    for (int p = committed; p <= committed + d; p++) a->path_slots[a->n_paths++] = slot_at(s, row, p);
    if (committed + d > a->max_position) a->max_position = committed + d;
    a->n++;
}

/* One sequence (or one row of it) with its page table, pages in random order from *next_page on. */
static void add_seq(const scene *s, const way *w, arrays *a, int seq, int *next_page) {
    int pages = (slots(s, seq) + w->page_rows - 1) / w->page_rows;
    int32_t *table = a->pages + a->page_stride * a->n_seqs;
    a->seq_first[a->n_seqs] = a->n;
    a->committed[a->n_seqs] = s->committed[seq];
    a->direct[a->n_seqs] = s->chain[seq] && !w->no_direct;
    for (int i = 0; i < pages; i++) table[i] = (*next_page)++;
    for (int i = pages - 1; i > 0; i--) {
        int j = check_int(0, i), t = table[i];
        table[i] = table[j];
        table[j] = t;
    }
    for (int row = s->first[seq]; row < s->first[seq + 1]; row++) {
        if (w->only < 0 || w->only == row) add_row(s, a, row);
    }
    a->seq_first[++a->n_seqs] = a->n;
}

static void write_element(hn_dtype t, unsigned char *p, float x) {
    uint16_t h = t == HN_F16 ? hn_f32_to_f16(x) : hn_f32_to_bf16(x);
    memcpy(p, t == HN_F32 ? (const void *)&x : (const void *)&h, element_bytes(t));
}

/* Writes every slot that a row sees; the rest of the pool stays NaN. */
static void fill_cache(const pass *p, const arrays *a, int seq, int index) {
    const scene *s = p->s;
    size_t size = element_bytes(s->type), head = size * (size_t)(s->dim * p->w->page_rows);
    for (int slot = 0; slot < slots(s, seq); slot++) {
        int at = slot % p->w->page_rows;
        unsigned char *page = (unsigned char *)hn_host(p->kv.pool) +
                              p->kv.page_bytes * (size_t)a->pages[a->page_stride * index + slot / p->w->page_rows];
        for (int h = 0; h < s->kv_heads; h++) {
            for (int d = 0; d < s->dim; d++) {
                size_t from = (size_t)((slot * s->kv_heads + h) * s->dim + d);
                write_element(s->type, page + p->kv.k_off + head * (size_t)h + size * (size_t)(d * p->w->page_rows + at),
                              s->k[seq][from]);
                write_element(s->type, page + p->kv.v_off + head * (size_t)h + size * (size_t)(at * s->dim + d),
                              s->v[seq][from]);
            }
        }
    }
}

/* Pages that no row of the sequence sees are not in its table any more. */
static void forget_unseen(const pass *p, const arrays *a, int index) {
    int lowest = a->committed[index];
    for (int i = a->seq_first[index]; i < a->seq_first[index + 1]; i++) {
        int seen = p->s->window > 0 ? a->position[i] - p->s->window + 1 : 0;
        lowest = seen < lowest ? seen : lowest;
    }
    for (int page = 0; (page + 1) * p->w->page_rows <= lowest; page++) {
        a->pages[a->page_stride * index + page] = HN_NO_PAGE;
    }
}

static void pass_rank(void *arg, int rank, int ranks) {
    pass *p = arg;
    hn_exec ex = {&p->c.o, rank, ranks};
    p->c.o.attention(&ex, &p->rows, &p->kv, p->s->kv_heads * p->s->group, p->s->scale, p->s->window, p->q, p->ldq,
                     p->out, p->ldo, p->scratch);
}

static void pass_buffers(pass *p, const arrays *a) {
    const scene *s = p->s;
    const hn_ops *o = &p->c.o;
    p->rows = (hn_rows){.n = a->n, .n_seqs = a->n_seqs, .max_position = a->max_position, .page_stride = a->page_stride};
    p->rows.position = check_put(o, a->position, sizeof a->position);
    p->rows.slot = check_put(o, a->slot, sizeof a->slot);
    p->rows.seq = check_put(o, a->seq, sizeof a->seq);
    p->rows.path_start = check_put(o, a->path_start, sizeof a->path_start);
    p->rows.path_slots = check_put(o, a->path_slots, sizeof a->path_slots);
    p->rows.seq_first = check_put(o, a->seq_first, sizeof a->seq_first);
    p->rows.committed = check_put(o, a->committed, sizeof a->committed);
    p->rows.direct = check_put(o, a->direct, sizeof a->direct);
    p->rows.page_table = check_put(o, a->pages, (size_t)(a->page_stride * a->n_seqs) * sizeof *a->pages);
    p->ldq = width(s) + 3;
    p->ldo = width(s) + 2;
    p->q = check_mem(o, (size_t)(a->n * p->ldq) * sizeof(float));
    p->out = check_mem(o, (size_t)(a->n * p->ldo) * sizeof(float));
    int heads = s->kv_heads * s->group;
    p->scratch = check_mem(o, o->attention_scratch(a->n, heads, s->dim, a->max_position + 1));
    for (int i = 0; i < a->n; i++) {
        int row = p->w->only < 0 ? i : p->w->only;
        memcpy(hn_host_f32(p->q) + i * p->ldq, s->q + row * width(s), (size_t)width(s) * sizeof(float));
    }
}

static void pass_free(pass *p) {
    hn_buf all[] = {p->rows.position, p->rows.slot, p->rows.seq, p->rows.path_start, p->rows.path_slots,
                    p->rows.seq_first, p->rows.committed, p->rows.direct, p->rows.page_table, p->q, p->out, p->scratch,
                    p->kv.pool};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) p->c.o.mem_free(&p->c.o, all[i].mem);
    check_close(&p->c);
}

/* out: [rows run][width] */
static void scene_run(const scene *s, const way *w, float *out) {
    pass p = {.s = s, .w = w, .c = check_open(w->threads, w->isa, false)};
    arrays *a = hn_zalloc(1, sizeof *a);
    for (int seq = 0; seq < s->seqs; seq++) {
        int pages = (slots(s, seq) + w->page_rows - 1) / w->page_rows;
        if (pages > a->page_stride) a->page_stride = pages;
    }
    a->pages = hn_zalloc((size_t)(SEQS * a->page_stride), sizeof *a->pages);
    size_t plane = element_bytes(s->type) * (size_t)(s->kv_heads * s->dim * w->page_rows);
    p.kv = (hn_kv){.type = s->type, .page_bytes = 2 * plane + 192, .k_off = 64, .v_off = plane + 128,
                   .page_rows = w->page_rows, .kv_heads = s->kv_heads, .head_dim = s->dim};
    size_t pool = p.kv.page_bytes * (size_t)(SEQS * a->page_stride);
    p.kv.pool = check_mem(&p.c.o, pool);
    memset(hn_host(p.kv.pool), 0xff, pool); /* NaN in every type */
    for (int seq = 0, next_page = 0; seq < s->seqs; seq++) {
        if (w->only >= 0 && seq_of(s, w->only) != seq) continue;
        add_seq(s, w, a, seq, &next_page);
        fill_cache(&p, a, seq, a->n_seqs - 1);
        forget_unseen(&p, a, a->n_seqs - 1);
    }
    pass_buffers(&p, a);
    hn_pool_run(p.c.pool, pass_rank, &p);
    for (int i = 0; i < a->n; i++) {
        memcpy(out + i * width(s), hn_host_f32(p.out) + i * p.ldo, (size_t)width(s) * sizeof(float));
        for (int k = width(s); k < p.ldo; k++) assert_true(hn_host_f32(p.out)[i * p.ldo + k] == 0);
    }
    pass_free(&p);
    hn_free(a->pages);
    hn_free(a);
}

/* ---- the checks ----------------------------------------------------------------------------------------------------------- */

/* One output row and head by the definition, in double. */
static void check_exact(const scene *s, const float *out, int row, int head) {
    int seq = seq_of(s, row), position = s->committed[seq] + depth(s, row), kv_head = head / s->group;
    int lo = s->window > 0 && position - s->window + 1 > 0 ? position - s->window + 1 : 0;
    double *e = hn_zalloc((size_t)position + 1, sizeof *e), max = -INFINITY, sum = 0;
    for (int p = lo; p <= position; p++) {
        const float *k = s->k[seq] + (slot_at(s, row, p) * s->kv_heads + kv_head) * s->dim;
        for (int d = 0; d < s->dim; d++) e[p] += (double)s->q[row * width(s) + head * s->dim + d] * k[d];
        e[p] *= s->scale;
        max = fmax(max, e[p]);
    }
    for (int p = lo; p <= position; p++) sum += e[p] = exp(e[p] - max);
    for (int d = 0; d < s->dim; d++) {
        double want = 0;
        for (int p = lo; p <= position; p++) {
            want += e[p] / sum * s->v[seq][(slot_at(s, row, p) * s->kv_heads + kv_head) * s->dim + d];
        }
        double got = out[row * width(s) + head * s->dim + d];
        if (!(fabs(got - want) < 1e-5)) fail_msg("row %d head %d dim %d: %g, expected %g", row, head, d, got, want);
    }
    hn_free(e);
}

static void check_scene(const scene *s) {
    size_t size = (size_t)(s->n * width(s));
    float *want = hn_alloc(size * sizeof *want), *got = hn_alloc(size * sizeof *got);
    way w = {.isa = HN_ISA_REF, .threads = 1, .page_rows = 64, .only = -1};
    scene_run(s, &w, want);
    for (int i = 0; i < 6; i++) check_exact(s, want, check_int(0, s->n - 1), check_int(0, s->kv_heads * s->group - 1));
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        char what[100];
        snprintf(what, sizeof what, "%s %s dim %d group %d window %d", hn_isa_name(isa),
                 hn_dtype_name(s->type), s->dim, s->group, s->window);
        w = (way){.isa = isa, .threads = check_int(1, 4), .page_rows = 16 << check_int(0, 4), .only = -1};
        for (int no_direct = 0; no_direct < 2; no_direct++) {
            w.no_direct = no_direct;
            scene_run(s, &w, got);
            for (int i = 0; i < s->n; i++) check_same_row(got + i * width(s), want + i * width(s), width(s), what, i);
        }
        w.only = check_int(0, s->n - 1);
        w.threads = check_int(1, 4);
        w.no_direct = check_int(0, 1);
        scene_run(s, &w, got);
        check_same_row(got, want + w.only * width(s), width(s), what, w.only);
    }
    hn_free(want);
    hn_free(got);
}

static void short_test(void **state HN_UNUSED) {
    for (int round = 0; round < 20; round++) {
        scene s = scene_create(100);
        check_scene(&s);
        scene_free(&s);
    }
}

static void long_context_test(void **state HN_UNUSED) {
    for (int round = 0; round < 8; round++) {
        scene s = scene_create(1500);
        check_scene(&s);
        scene_free(&s);
    }
}

/* The kernels one by one with scores of every kind: infinities and NaN too. */
static void softmax_test(void **state HN_UNUSED) {
    _Alignas(64) float a[HN_KEY_BLOCK], b[HN_KEY_BLOCK];
    for (hn_isa isa = hn_isa_next(HN_ISA_REF); isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int round = 0; round < 200; round++) {
            int lo = check_int(0, HN_KEY_BLOCK - 1), hi = check_int(lo + 1, HN_KEY_BLOCK);
            if (round % 2) lo = 0;
            check_fill(a, HN_KEY_BLOCK, (enum check_kind)check_int(0, CHECK_KINDS - 1));
            memcpy(b, a, sizeof a);
            float m[2], l[2];
            hn_kernels_get(HN_ISA_REF)->softmax(a, lo, hi, &m[0], &l[0]);
            hn_kernels_get(isa)->softmax(b, lo, hi, &m[1], &l[1]);
            check_same_row(b, a, HN_KEY_BLOCK, hn_isa_name(isa), round);
            assert_true(m[0] == m[1]);
            check_same_row(&l[1], &l[0], 1, "sum", round);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_test),
        cmocka_unit_test(long_context_test),
        cmocka_unit_test(softmax_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
