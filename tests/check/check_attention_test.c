/* SPDX-License-Identifier: Apache-2.0 */
/* check_attention_test.c - attention over random caches, chains, trees and blocks whose rows see later ones, in every
 * type of cache, with sinks, with values narrower than keys, and of texts that begin with the same pages: ref against
 * double arithmetic; every level, number of threads, page size and set of other rows against ref, bit for bit (C2). Slots
 * that no row may see are NaN. The same of the spans' shares of the softmax. */
#include "base/run_mode_for_tests.h"
#include "check.h"
#include "check_forms.h"

enum { SEQS = 3, SEQ_ROWS = 40, ROWS = 64, PATHS = ROWS * SEQ_ROWS };

/* The input, for any layout of the cache: sequences with `committed` positions and a tree of rows on each. The K and V
 * of a slot are drawn once; row i of a sequence writes slot committed + i. */
typedef struct scene {
    hn_dtype type;
    bool f32; /* the precision */
    int kv_heads, group, dim, v_dim, window, from, seqs, n; /* from: the first position that is seen */
    float scale, *sinks; /* NULL: none */
    int committed[SEQS], first[SEQS + 1], parent[ROWS]; /* parent: row, -1: the committed context */
    int shared; /* first positions that all sequences have in the same pages: whole spans */
    bool ahead, of_block;             /* rows see to the end of their block; windows count from its first row */
    int before[ROWS], behind[ROWS];   /* rows of its block before and after a row, each of which continues the one before */
    bool chain[SEQS];
    bool v_in_k;              /* values are the first dims of keys */
    float *k[SEQS], *v[SEQS]; /* [slot][kv_head][dim or v_dim], rounded to the type */
    float *k_scale[SEQS], *v_scale[SEQS]; /* Q8_0: one for each 32 of them */
    float *q;                 /* [n][kv_heads * group * dim] */
} scene;

static int q_width(const scene *s) { return s->kv_heads * s->group * s->dim; }
static int width(const scene *s) { return s->kv_heads * s->group * s->v_dim; }
/* Of a result: the row, then the share of each span, of each kv head. */
enum { SPANS = 20 };
static int result(const scene *s) { return width(s) + s->kv_heads * SPANS; }
static int slots(const scene *s, int seq) { return s->committed[seq] + s->first[seq + 1] - s->first[seq]; }
static float round_to(hn_dtype t, float x) {
    if (t == HN_F16) return hn_f16_to_f32(hn_f32_to_f16(x));
    return t == HN_BF16 ? hn_bf16_to_f32(hn_f32_to_bf16(x)) : x;
}

static float *random_rows(const scene *s, int rows, int columns) {
    float *x = hn_alloc((size_t)(rows * columns) * sizeof *x);
    for (int i = 0; i < rows * columns; i++) x[i] = round_to(s->type, check_normal());
    return x;
}

/* Rounds x to bytes times a scale, by 32; the scales. */
static float *scaled_rows(float *x, int count) {
    float *scales = hn_zalloc((size_t)count / 32 + 1, sizeof *scales);
    for (int b = 0; b < count / 32; b++) {
        float most = 0;
        for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(x[32 * b + i]));
        scales[b] = most / 127;
        for (int i = 0; i < 32; i++) x[32 * b + i] = rintf(x[32 * b + i] / scales[b]) * scales[b];
    }
    return scales;
}

static void draw_slots(scene *s, int seq) {
    const int n = slots(s, seq);
    s->k[seq] = random_rows(s, n, s->kv_heads * s->dim);
    s->v[seq] = random_rows(s, n, s->kv_heads * s->v_dim);
    if (s->type != HN_Q8_0) return;
    s->k_scale[seq] = scaled_rows(s->k[seq], n * s->kv_heads * s->dim);
    s->v_scale[seq] = scaled_rows(s->v[seq], n * s->kv_heads * s->v_dim);
}

/* Blocks of rows that follow each other. */
static void draw_blocks(scene *s) {
    for (int row = 0, n; row < s->n; row += n) {
        const int most = check_int(0, 2) ? check_int(1, 16) : 1;
        for (n = 1; n < most && row + n < s->n && s->parent[row + n] == row + n - 1; n++) continue;
        for (int i = 0; i < n; i++) {
            s->before[row + i] = i;
            s->behind[row + i] = n - 1 - i;
        }
    }
    s->ahead = check_int(0, 1);
    s->of_block = check_int(0, 1);
}

/* Sequences of random length, and rows on them. */
static void draw_rows(scene *s, int longest) {
    s->scale = 1.0f / sqrtf((float)s->dim);
    if (check_int(0, 1)) {
        s->sinks = hn_alloc((size_t)(s->kv_heads * s->group) * sizeof *s->sinks);
        for (int i = 0; i < s->kv_heads * s->group; i++) s->sinks[i] = check_normal() * 3;
    }
    for (int seq = 0; seq < s->seqs; seq++) {
        int rows = check_int(0, 3) ? check_int(1, 9) : check_int(1, (ROWS - s->n - (s->seqs - 1 - seq) * 10) / 2);
        s->first[seq] = s->n;
        s->committed[seq] = check_int(0, 4) ? check_int(0, longest) : 0;
        if (longest == HN_KEY_SPAN) s->committed[seq] = HN_KEY_SPAN + check_int(-20, 40);
        s->chain[seq] = check_int(0, 1);
        for (int i = 0; i < rows && i < SEQ_ROWS; i++, s->n++) {
            bool next = i == 0 || s->chain[seq] || check_int(0, 2);
            s->parent[s->n] = i == 0 ? -1 : next ? s->n - 1 : s->first[seq] + check_int(0, i - 1);
        }
        s->first[seq + 1] = s->n;
        draw_slots(s, seq);
    }
    draw_blocks(s);
    s->q = random_rows(s, s->n, q_width(s));
}

static scene scene_create(int longest) {
    static const hn_dtype types[] = {HN_BF16, HN_BF16, HN_F16, HN_F32, HN_Q8_0};
    static const int dims[] = {8, 12, 16, 20, 64, 64, 80, 128};
    scene s = {.type = types[check_int(0, 4)], .f32 = check_int(0, 2) == 0, .kv_heads = check_int(1, 3),
               .group = check_int(1, 4), .dim = dims[check_int(0, 7)], .seqs = check_int(1, SEQS)};
    if (s.type == HN_Q8_0) s.dim = 32 * check_int(1, 4);
    s.v_dim = check_int(0, 3) ? s.dim : s.type == HN_Q8_0 ? 32 * check_int(1, 4) : dims[check_int(0, 7)];
    s.window = check_int(0, 2) ? 0 : check_int(1, check_int(0, 1) ? 300 : 40);
    s.from = check_int(0, 2) ? 0 : check_int(1, 20);
    draw_rows(&s, longest);
    return s;
}

/* Sequences that begin with the same pages. */
static scene shared_create(void) {
    scene s = scene_create(2 * HN_KEY_SPAN);
    s.window = 0; /* no page is forgotten */
    s.shared = s.seqs > 1 ? 1500 : 0;
    for (int seq = 0; seq < s.seqs; seq++) s.shared = s.committed[seq] < s.shared ? s.committed[seq] : s.shared;
    s.shared -= s.shared % HN_KEY_SPAN;
    for (int seq = 1; seq < s.seqs; seq++) {
        const size_t keys = (size_t)(s.shared * s.kv_heads * s.dim), values = (size_t)(s.shared * s.kv_heads * s.v_dim);
        memcpy(s.k[seq], s.k[0], keys * sizeof(float));
        memcpy(s.v[seq], s.v[0], values * sizeof(float));
        if (s.type != HN_Q8_0) continue;
        memcpy(s.k_scale[seq], s.k_scale[0], keys / 32 * sizeof(float));
        memcpy(s.v_scale[seq], s.v_scale[0], values / 32 * sizeof(float));
    }
    return s;
}

/* Many queries of one kv head over many positions: too many partial results to keep all. */
static scene waves_create(void) {
    scene s = {.type = HN_F32, .kv_heads = 1, .group = 28, .dim = 8, .v_dim = 512, .seqs = 1, .n = 10, .scale = 0.3f};
    s.committed[0] = 18 * HN_KEY_SPAN - 5;
    s.first[1] = s.n;
    for (int i = 0; i < s.n; i++) s.parent[i] = i < 4 ? i - 1 : check_int(0, i - 1);
    draw_slots(&s, 0);
    s.q = random_rows(&s, s.n, q_width(&s));
    return s;
}

/* Latent attention: one kv head for all, values that are the first dims of keys: DeepSeek's sizes, or others. */
static scene latent_create(hn_dtype type) {
    const int any = type == HN_Q8_0 ? 32 * check_int(1, 9) : 2 * check_int(1, 99), values = check_int(0, 1) ? 512 : any;
    const int more = type == HN_Q8_0 ? 32 : 2 * check_int(1, 32);
    scene s = {.type = type, .kv_heads = 1, .group = check_int(5, 30), .dim = values + more, .v_dim = values, .seqs = 1, .v_in_k = true};
    draw_rows(&s, 300);
    for (int slot = 0; slot < slots(&s, 0); slot++) {
        memcpy(s.v[0] + slot * values, s.k[0] + slot * s.dim, (size_t)values * sizeof(float));
        if (type == HN_Q8_0)
            memcpy(s.v_scale[0] + slot * values / 32, s.k_scale[0] + slot * s.dim / 32, (size_t)(values / 32) * sizeof(float));
    }
    return s;
}

static void scene_free(scene *s) {
    for (int seq = 0; seq < s->seqs; seq++) {
        hn_free(s->k[seq]);
        hn_free(s->v[seq]);
        hn_free(s->k_scale[seq]);
        hn_free(s->v_scale[seq]);
    }
    hn_free(s->sinks);
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

static int position_of(const scene *s, int row) { return s->committed[seq_of(s, row)] + depth(s, row); }
/* The last position that a row sees, and the one that its window is counted back from. */
static int last_of(const scene *s, int row) { return position_of(s, row) + (s->ahead ? s->behind[row] : 0); }
static int from_of(const scene *s, int row) { return position_of(s, row) - (s->of_block ? s->before[row] : 0); }

/* The slot that a row sees at a position. */
static int slot_at(const scene *s, int row, int position) {
    int seq = seq_of(s, row), back = position_of(s, row) - position;
    if (position < s->committed[seq]) return position;
    if (back < 0) row -= back;
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
    bool v_apart;   /* values that are in keys are stored beside them too */
    bool q8_as_bf16; /* ref as the reference of levels that multiply a Q8_0 cache in pairs */
    bool tiles;      /* sums of tiles, at ref and at levels without them */
} way;

typedef struct pass {
    const scene *s;
    const way *w;
    struct hn_kernels kernels;
    check_ops c;
    hn_rows rows;
    hn_kv kv;
    hn_buf q, out, scratch, sinks;
    hn_span_mass mass;
    hn_act act; /* input of the products after attention */
    int ldq, ldo;
} pass;

/* Host copies of the row arrays. */
typedef struct arrays {
    int32_t position[ROWS], last[ROWS], from[ROWS], slot[ROWS], seq[ROWS], path_start[ROWS], path_slots[PATHS], seq_first[SEQS + 1];
    int32_t committed[SEQS], direct[SEQS], *pages;
    int n, n_seqs, n_paths, page_stride, max_position;
} arrays;

static void add_row(const scene *s, arrays *a, int row) {
    int seq = seq_of(s, row), committed = s->committed[seq], last = position_of(s, row) + s->behind[row];
    a->position[a->n] = position_of(s, row);
    a->last[a->n] = last; /* not read if rows do not see ahead */
    a->from[a->n] = from_of(s, row);
    a->slot[a->n] = committed + row - s->first[seq];
    a->seq[a->n] = a->n_seqs;
    a->path_start[a->n] = a->n_paths;
    for (int p = committed; p <= last; p++) a->path_slots[a->n_paths++] = slot_at(s, row, p);
    if (last > a->max_position) a->max_position = last;
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
    if (a->n_seqs > 0) memcpy(table, a->pages, (size_t)(s->shared / w->page_rows) * sizeof *table);
    for (int row = s->first[seq]; row < s->first[seq + 1]; row++) {
        if (w->only < 0 || w->only == row) add_row(s, a, row);
    }
    a->seq_first[++a->n_seqs] = a->n;
}

/* Writes K or V of one head and slot: in `scales` of 32 where there are any. */
static void write_row(const pass *p, const hn_kv_row *r, unsigned char *page, const float *x, int dim, const float *scales) {
    const hn_dtype t = p->s->type;
    for (int d = 0; d < dim; d++) {
        const uint16_t half = t == HN_F16 ? hn_f32_to_f16(x[d]) : hn_f32_to_bf16(x[d]);
        const int8_t code = t == HN_Q8_0 ? (int8_t)lrintf(x[d] / scales[d / 32]) : 0;
        const void *from = t == HN_F32 ? (const void *)&x[d] : t == HN_Q8_0 ? (const void *)&code : &half;
        memcpy(page + hn_kv_element(&p->kv, r, d), from, hn_kv_element_bytes(t));
    }
    for (int i = 0; i < r->scales; i++) memcpy(page + r->scale_at + r->scale_step * (size_t)i, scales + i, sizeof *scales);
}

/* Writes every slot that a row sees; the rest of the pool stays NaN. */
static void fill_cache(const pass *p, const arrays *a, int seq, int index) {
    const scene *s = p->s;
    const bool scaled = s->type == HN_Q8_0;
    for (int slot = 0; slot < slots(s, seq); slot++) {
        int at = slot % p->w->page_rows;
        unsigned char *page = (unsigned char *)hn_host(p->kv.pool) +
                              p->kv.page_bytes * (size_t)a->pages[a->page_stride * index + slot / p->w->page_rows];
        for (int h = 0; h < s->kv_heads; h++) {
            const hn_kv_row k = hn_kv_key_row(&p->kv, h, at), v = hn_kv_value_row(&p->kv, h, at);
            const int head = slot * s->kv_heads + h;
            write_row(p, &k, page, s->k[seq] + head * s->dim, s->dim, scaled ? s->k_scale[seq] + head * s->dim / 32 : NULL);
            if (p->kv.v_in_k) continue;
            write_row(p, &v, page, s->v[seq] + head * s->v_dim, s->v_dim,
                      scaled ? s->v_scale[seq] + head * s->v_dim / 32 : NULL);
        }
    }
}

/* Pages that no row of the sequence sees are not in its table any more. */
static void forget_unseen(const pass *p, const arrays *a, int index) {
    int lowest = a->committed[index];
    for (int i = a->seq_first[index]; i < a->seq_first[index + 1]; i++) {
        int seen = p->s->window > 0 ? a->from[i] - p->s->window + 1 : 0;
        lowest = seen < lowest ? seen : lowest;
    }
    for (int page = 0; (page + 1) * p->w->page_rows <= lowest; page++) {
        a->pages[a->page_stride * index + page] = HN_NO_PAGE;
    }
}

static void pass_rank(void *arg, int rank, int ranks) {
    pass *p = arg;
    hn_exec ex = {p->c.o->ops, p->c.o, rank, ranks};
    const hn_attention_params how = {.heads = p->s->kv_heads * p->s->group, .scale = p->s->scale, .window = p->s->window,
                                     .sinks = p->sinks, .first = p->s->from, .ahead = p->s->ahead, .mass = p->mass};
    const hn_matrix q = {p->q, q_width(p->s), p->ldq}, out = {p->out, width(p->s), p->ldo};
    p->c.o->ops->attention(&ex, &p->rows, &p->kv, &how, q, out, p->act, p->scratch);
}

static void pass_buffers(pass *p, const arrays *a) {
    const scene *s = p->s;
    hn_backend *o = p->c.o;
    p->rows = (hn_rows){.n = check_number(a->n), .n_seqs = check_number(a->n_seqs), .page_stride = a->page_stride};
    p->rows.position = check_put(o, a->position, sizeof a->position);
    p->rows.last = check_put(o, a->last, sizeof a->last);
    p->rows.from = check_put(o, a->from, sizeof a->from);
    p->rows.slot = check_put(o, a->slot, sizeof a->slot);
    p->rows.seq = check_put(o, a->seq, sizeof a->seq);
    p->rows.path_start = check_put(o, a->path_start, sizeof a->path_start);
    p->rows.path_slots = check_put(o, a->path_slots, sizeof a->path_slots);
    p->rows.seq_first = check_put(o, a->seq_first, sizeof a->seq_first);
    p->rows.committed = check_put(o, a->committed, sizeof a->committed);
    p->rows.direct = check_put(o, a->direct, sizeof a->direct);
    p->rows.page_table = check_put(o, a->pages, (size_t)(a->page_stride * a->n_seqs) * sizeof *a->pages);
    p->ldq = q_width(s) + 3;
    p->ldo = width(s) + 2;
    p->q = check_mem(o, (size_t)(a->n * p->ldq) * sizeof(float));
    p->out = check_mem(o, (size_t)(a->n * p->ldo) * sizeof(float));
    int heads = s->kv_heads * s->group;
    p->scratch = check_mem(o, o->attention_scratch(o, a->n, heads, &p->kv, a->max_position + 1));
    p->mass = (hn_span_mass){check_put_random(o, a->n * s->kv_heads * SPANS), SPANS, check_put_random(o, a->n * heads * SPANS * 2)};
    p->act = (hn_act){check_mem(o, o->act_bytes(width(s), a->n)), width(s), a->n, HN_ACT_F32 | HN_ACT_Q8};
    if (s->sinks) p->sinks = check_put(o, s->sinks, (size_t)heads * sizeof(float));
    for (int i = 0; i < a->n; i++) {
        int row = p->w->only < 0 ? i : p->w->only;
        memcpy(hn_host_f32(p->q) + i * p->ldq, s->q + row * q_width(s), (size_t)q_width(s) * sizeof(float));
    }
}

static void pass_free(pass *p) {
    hn_buf all[] = {p->rows.position, p->rows.last, p->rows.from, p->rows.slot, p->rows.seq, p->rows.path_start, p->rows.path_slots,
                    p->rows.seq_first, p->rows.committed, p->rows.direct, p->rows.page_table, p->q, p->out, p->scratch,
                    p->kv.pool, p->sinks, p->act.data, p->mass.to, p->mass.partial};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) p->c.o->mem_free(p->c.o, all[i].mem);
    check_close(&p->c);
}

/* The rows in these forms have the bits of `quantise`. */
static void check_act(const pass *p, int row) {
    const float *x = hn_host_f32(p->out) + row * p->ldo;
    const unsigned char *act = hn_host(p->act.data), *q8 = act + hn_act_q8_off(p->act.in, row);
    check_same_row((const float *)(const void *)(act + hn_act_f32_off(p->act.in, p->act.max_rows, row)), x, p->act.in,
                   "its form in f32", row);
    const int groups = hn_act_groups(p->act.in);
    hn_q8_group *want = hn_zalloc((size_t)groups, sizeof *want);
    hn_q8_parts *parts = hn_zalloc((size_t)groups, sizeof *parts);
    check_ref()->quantise(x, p->act.in, want, parts);
    assert_memory_equal(q8, want, (size_t)groups * sizeof *want);
    assert_memory_equal(q8 + hn_act_parts_off(p->act.in), parts, (size_t)groups * sizeof *parts);
    hn_free(want);
    hn_free(parts);
}

/* Sums of tiles: ref's, or a level's over tiles in plain C. */
static void use_tiles(struct hn_kernels *k, hn_isa isa) {
    if (isa == HN_ISA_REF) hn_kernels_ref_sums_of_tiles(k);
#if defined(__x86_64__)
    if (isa != HN_ISA_REF && !k->sums_of_tiles) check_form_attention_tiles(k);
#endif
}

/* out: [rows run][result] */
static void scene_run(const scene *s, const way *w, float *out) {
    pass p = {.s = s, .w = w, .c = check_open(w->threads, w->isa, s->f32), .kernels = *hn_kernels_get(w->isa)};
    p.kernels.q8_as_bf16 |= w->q8_as_bf16;
    if (w->tiles) use_tiles(&p.kernels, w->isa);
    ((hn_cpu_backend *)(void *)p.c.o)->kernels = &p.kernels;
    arrays *a = hn_zalloc(1, sizeof *a);
    for (int seq = 0; seq < s->seqs; seq++) {
        int pages = (slots(s, seq) + w->page_rows - 1) / w->page_rows;
        if (pages > a->page_stride) a->page_stride = pages;
    }
    a->pages = hn_zalloc((size_t)(SEQS * a->page_stride), sizeof *a->pages);
    size_t keys = hn_kv_bytes(s->type, s->dim, w->page_rows) * (size_t)s->kv_heads,
           values = hn_kv_bytes(s->type, s->v_dim, w->page_rows) * (size_t)s->kv_heads;
    p.kv = (hn_kv){.type = s->type, .page_bytes = keys + values + 192, .k_off = 64, .v_off = keys + 128,
                   .page_rows = w->page_rows, .kv_heads = s->kv_heads, .head_dim = s->dim, .v_dim = s->v_dim,
                   .v_in_k = s->v_in_k && !w->v_apart};
    size_t pool = p.kv.page_bytes * (size_t)(SEQS * a->page_stride);
    p.kv.pool = check_mem(p.c.o, pool);
    memset(hn_host(p.kv.pool), 0xff, pool); /* NaN in every type: of bytes their scales */
    for (int seq = 0, next_page = 0; seq < s->seqs; seq++) {
        if (w->only >= 0 && seq_of(s, w->only) != seq) continue;
        add_seq(s, w, a, seq, &next_page);
        fill_cache(&p, a, seq, a->n_seqs - 1);
        forget_unseen(&p, a, a->n_seqs - 1);
    }
    pass_buffers(&p, a);
    hn_pool_run(p.c.pool, pass_rank, &p);
    for (int i = 0; i < a->n; i++) {
        float *to = out + i * result(s);
        memcpy(to, hn_host_f32(p.out) + i * p.ldo, (size_t)width(s) * sizeof(float));
        memcpy(to + width(s), hn_host_f32(p.mass.to) + i * s->kv_heads * SPANS, (size_t)(s->kv_heads * SPANS) * sizeof(float));
        for (int k = width(s); k < p.ldo; k++) assert_true(hn_host_f32(p.out)[i * p.ldo + k] == 0);
        check_act(&p, i);
    }
    pass_free(&p);
    hn_free(a->pages);
    hn_free(a);
}

/* ---- the checks ----------------------------------------------------------------------------------------------------------- */

/* One output row and head by the definition, in double. Products of bf16 round the weights of values, and a Q8_0 cache. */
static void check_exact(const scene *s, const float *out, int row, int head, bool q8_as_bf16) {
    int seq = seq_of(s, row), last = last_of(s, row), from = from_of(s, row), kv_head = head / s->group;
    int lo = s->window > 0 && from - s->window + 1 > 0 ? from - s->window + 1 : 0;
    if (from >= s->from && lo < s->from) lo = s->from;
    double *e = hn_zalloc((size_t)last + 1, sizeof *e), max = -INFINITY, sum = 0;
    double most = !s->f32 && (s->type == HN_BF16 || q8_as_bf16) ? 2e-2 : 1e-5;
    for (int p = lo; p <= last; p++) {
        const float *k = s->k[seq] + (slot_at(s, row, p) * s->kv_heads + kv_head) * s->dim;
        for (int d = 0; d < s->dim; d++) e[p] += (double)s->q[row * q_width(s) + head * s->dim + d] * k[d];
        e[p] *= s->scale;
        max = fmax(max, e[p]);
    }
    for (int p = lo; p <= last; p++) sum += e[p] = exp(e[p] - max);
    if (s->sinks) sum += exp(s->sinks[head] - max);
    for (int d = 0; d < s->v_dim; d++) {
        double want = 0;
        for (int p = lo; p <= last; p++) {
            want += e[p] / sum * s->v[seq][(slot_at(s, row, p) * s->kv_heads + kv_head) * s->v_dim + d];
        }
        double got = out[row * result(s) + head * s->v_dim + d];
        if (!(fabs(got - want) < most)) fail_msg("row %d head %d dim %d: %g, expected %g", row, head, d, got, want);
    }
    hn_free(e);
}

/* The shares of a row's spans, of a kv head, by the definition, in double. */
static void check_mass(const scene *s, const float *out, int row, int kv_head, bool q8_as_bf16) {
    int seq = seq_of(s, row), last = last_of(s, row), from = from_of(s, row);
    int lo = s->window > 0 && from - s->window + 1 > 0 ? from - s->window + 1 : 0;
    if (from >= s->from && lo < s->from) lo = s->from;
    double share[SPANS] = {0}, *e = hn_zalloc((size_t)last + 1, sizeof *e);
    const double most = !s->f32 && (s->type == HN_BF16 || q8_as_bf16) ? 2e-2 : 1e-5;
    for (int head = kv_head * s->group; head < (kv_head + 1) * s->group; head++) {
        double max = s->sinks ? s->sinks[head] : -INFINITY, sum = 0;
        for (int p = lo; p <= last; p++) {
            const float *k = s->k[seq] + (slot_at(s, row, p) * s->kv_heads + kv_head) * s->dim;
            e[p] = 0;
            for (int d = 0; d < s->dim; d++) e[p] += (double)s->q[row * q_width(s) + head * s->dim + d] * k[d];
            e[p] *= s->scale;
            max = fmax(max, e[p]);
        }
        for (int p = lo; p <= last; p++) sum += e[p] = exp(e[p] - max);
        if (s->sinks) sum += exp(s->sinks[head] - max);
        for (int p = lo; p <= last; p++) share[p / HN_KEY_SPAN] += e[p] / sum / s->group;
    }
    for (int i = 0; i < SPANS; i++) {
        const double got = out[row * result(s) + width(s) + kv_head * SPANS + i];
        if (!(fabs(got - share[i]) < most)) fail_msg("row %d kv head %d span %d: %g, expected %g", row, kv_head, i, got, share[i]);
    }
    hn_free(e);
}

/* ref's results: of f32, or of bf16, products over a Q8_0 cache; sums of pairs or of tiles. */
static float *reference(const scene *s, bool q8_as_bf16, bool tiles) {
    float *out = hn_alloc((size_t)(s->n * result(s)) * sizeof *out);
    const way w = {
        .isa = HN_ISA_REF, .threads = 1, .page_rows = 64, .only = -1, .v_apart = true, .q8_as_bf16 = q8_as_bf16, .tiles = tiles};
    scene_run(s, &w, out);
    for (int i = 0; i < s->n; i++) check_exact(s, out, i, check_int(0, s->kv_heads * s->group - 1), q8_as_bf16);
    check_mass(s, out, check_int(0, s->n - 1), check_int(0, s->kv_heads - 1), q8_as_bf16);
    return out;
}

/* A level in every way that its work may be split, against ref. tiles: over emulated ones, if it has none. */
static void check_level(const scene *s, hn_isa isa, bool tiles, const float *want) {
    float *got = hn_alloc((size_t)(s->n * result(s)) * sizeof *got);
    char what[150];
    snprintf(what, sizeof what, "%s%s %s%s dim %d, %d group %d window %d from %d%s%s", hn_isa_name(isa), tiles ? " tiles" : "",
             hn_dtype_name(s->type), s->f32 ? " f32" : "", s->dim, s->v_dim, s->group, s->window, s->from,
             s->ahead ? " ahead" : "", s->of_block ? " of blocks" : "");
    way w = {.isa = isa, .threads = check_int(1, 4), .page_rows = 16 << check_int(0, 4), .only = -1, .tiles = tiles};
    for (int no_direct = 0; no_direct < 2; no_direct++) {
        w.no_direct = no_direct;
        scene_run(s, &w, got);
        for (int i = 0; i < s->n; i++) check_same_row(got + i * result(s), want + i * result(s), result(s), what, i);
    }
    w.only = check_int(0, s->n - 1);
    w.threads = check_int(1, 4);
    w.no_direct = check_int(0, 1);
    scene_run(s, &w, got);
    check_same_row(got, want + w.only * result(s), result(s), what, w.only);
    hn_free(got);
}

static void check_scene(const scene *s) {
    const bool coded = s->type == HN_Q8_0, bf16 = !s->f32 && (coded || s->type == HN_BF16);
    float *plain = reference(s, false, false), *in_pairs = coded ? reference(s, true, false) : plain;
    float *in_tiles = bf16 ? reference(s, coded, true) : plain;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        const struct hn_kernels *k = hn_kernels_get(isa);
        check_level(s, isa, false, k->sums_of_tiles ? in_tiles : k->q8_as_bf16 ? in_pairs : plain);
    }
    if (hn_isa_has(HN_ISA_AVX512BF16) && bf16 && check_int(1, test_every(1, 3)) == 1) check_level(s, HN_ISA_AVX512BF16, true, in_tiles);
    if (in_pairs != plain) hn_free(in_pairs);
    if (in_tiles != plain) hn_free(in_tiles);
    hn_free(plain);
}

static void short_test(void **state HN_UNUSED) {
    for (int round = 0; round < 20 / test_every(1, 4); round++) {
        scene s = scene_create(100);
        check_scene(&s);
        scene_free(&s);
    }
}

static void long_context_test(void **state HN_UNUSED) {
    for (int round = 0; round < 8 / test_every(1, 8); round++) {
        scene s = scene_create(1500);
        check_scene(&s);
        scene_free(&s);
    }
}

/* Rows, their blocks and their windows on both sides of the start of a block of positions. */
static void edge_test(void **state HN_UNUSED) {
    for (int round = 0; round < 40 / test_every(1, 6); round++) {
        scene s = scene_create(HN_KEY_SPAN);
        check_scene(&s);
        scene_free(&s);
    }
}

/* The kernels one by one with scores of every kind: infinities and NaN too. */
static void softmax_test(void **state HN_UNUSED) {
    _Alignas(64) float a[HN_KEY_SPAN], b[HN_KEY_SPAN];
    for (hn_isa isa = hn_isa_next(HN_ISA_REF); isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int round = 0; round < 200 / test_every(1, 4); round++) {
            int lo = check_int(0, HN_KEY_SPAN - 1), hi = check_int(lo + 1, HN_KEY_SPAN);
            if (round % 2) lo = 0;
            check_fill(a, HN_KEY_SPAN, (enum check_kind)check_int(0, CHECK_KINDS - 1));
            memcpy(b, a, sizeof a);
            float m[2], l[2];
            hn_kernels_get(HN_ISA_REF)->softmax(a, lo, hi, &m[0], &l[0]);
            hn_kernels_get(isa)->softmax(b, lo, hi, &m[1], &l[1]);
            check_same_row(b, a, HN_KEY_SPAN, hn_isa_name(isa), round);
            assert_true(m[0] == m[1]);
            check_same_row(&l[1], &l[0], 1, "sum", round);
        }
    }
}

/* Rows of several texts may be computed together where their pages are the same, and only there. */
static void shared_test(void **state HN_UNUSED) {
    int sharing = 0;
    for (int round = 0; round < 12 / test_every(1, 3) || sharing == 0; round++) {
        scene s = shared_create();
        sharing += s.shared > 0;
        check_scene(&s);
        scene_free(&s);
    }
}

/* More partial results than are kept at a time: they are merged in waves. */
static void waves_test(void **state HN_UNUSED) {
    scene s = waves_create();
    const int size = s.n * result(&s);
    float *want = hn_alloc((size_t)size * sizeof *want), *got = hn_alloc((size_t)size * sizeof *got);
    way w = {.isa = hn_isa_best(), .threads = 1, .page_rows = 64, .only = -1};
    scene_run(&s, &w, want);
    check_exact(&s, want, s.n - 1, 3, false);
    for (w.threads = 2; w.threads < 5; w.threads++) {
        scene_run(&s, &w, got);
        check_same_row(got, want, size, "threads", w.threads);
    }
    hn_free(want);
    hn_free(got);
    scene_free(&s);
}

static void latent_test(void **state HN_UNUSED) {
    static const hn_dtype types[] = {HN_BF16, HN_F16, HN_Q8_0, HN_F32};
    for (int i = 0; i < 4; i++) {
        scene s = latent_create(types[i]);
        check_scene(&s);
        scene_free(&s);
    }
}

/* Every element at its place (ops/kv.h), and nothing behind the last. */
static void check_keys_as_values(const struct hn_kernels *k, hn_dtype type, int dim, int page_rows) {
    const hn_kv keys = {.type = type, .kv_heads = 1, .head_dim = dim, .v_dim = dim, .page_rows = page_rows};
    const hn_kv values = {.type = type, .kv_heads = 1, .head_dim = dim, .v_dim = dim, .page_rows = HN_KEY_CHUNK};
    const size_t size = hn_kv_element_bytes(type), page = size * (size_t)(dim * page_rows), chunk = size * (size_t)(dim * HN_KEY_CHUNK);
    unsigned char *from = hn_alloc(page), *to = hn_alloc(chunk + 64);
    const hn_kv_row first = hn_kv_key_row(&keys, 0, 0);
    for (size_t i = 0; i < page; i++) from[i] = (unsigned char)check_int(0, 255);
    memset(to, 7, chunk + 64);
    (type == HN_BF16 ? k->keys_to_values_bf16 : k->keys_to_values_q8)(from, first.step, dim, to);
    for (int p = 0; p < HN_KEY_CHUNK; p++) {
        const hn_kv_row row = hn_kv_key_row(&keys, 0, p), value = hn_kv_value_row(&values, 0, p);
        for (int d = 0; d < dim; d++)
            if (memcmp(from + hn_kv_element(&keys, &row, d), to + value.at + value.step * (size_t)d, size))
                fail_msg("%s: %d dims, pages of %d: dim %d of row %d", hn_dtype_name(type), dim, page_rows, d, p);
    }
    for (int i = 0; i < 64; i++) assert_int_equal(to[chunk + (size_t)i], 7);
    hn_free(from);
    hn_free(to);
}

static void keys_as_values_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int i = 0; i < 12; i++) {
            check_keys_as_values(hn_kernels_get(isa), HN_BF16, i ? 2 * check_int(1, 256) : 512, 16 << check_int(0, 4));
            check_keys_as_values(hn_kernels_get(isa), HN_Q8_0, i ? 32 * check_int(1, 16) : 512, 16 << check_int(0, 4));
        }
}

/* ---- products of bf16: numbers of every kind --------------------------------------------------------------------- */

enum { DIM = 44, QUERIES = HN_QUERIES };

typedef struct block {
    uint16_t k[HN_KEY_CHUNKS][DIM / 2][HN_KEY_CHUNK][2], v[HN_KEY_CHUNKS][HN_KEY_CHUNK / 2][DIM][2];
    uint16_t q[QUERIES][DIM], e[QUERIES][HN_KEY_SPAN];
    float s[QUERIES][HN_KEY_SPAN], o[QUERIES][DIM];
    hn_keys keys;
    const uint16_t *rows[QUERIES];
} block;

static void fill_bf16(uint16_t *x, size_t n, enum check_kind kind) {
    for (size_t i = 0; i < n; i++) x[i] = hn_f32_to_bf16(check_value(kind));
}

static void block_draw(block *b, enum check_kind kind) {
    fill_bf16(&b->k[0][0][0][0], sizeof b->k / 2, kind);
    fill_bf16(&b->v[0][0][0][0], sizeof b->v / 2, kind);
    fill_bf16(&b->q[0][0], sizeof b->q / 2, kind);
    for (int i = 0; i < QUERIES; i++) {
        check_fill(b->o[i], DIM, check_int(0, 1) ? ZERO : kind == DENORMAL ? TINY : kind);
        check_fill(b->s[i], HN_KEY_SPAN, kind);
        for (int p = 0; p < HN_KEY_SPAN; p++) b->e[i][p] = hn_f32_to_bf16((float)exp(-check_unit() * 90));
    }
}

static void block_point(block *b) {
    for (int c = 0; c < HN_KEY_CHUNKS; c++) {
        b->keys.k[c] = b->k[c];
        b->keys.v[c] = b->v[c];
        b->keys.k_stride[c] = HN_KEY_CHUNK;
    }
    b->keys.ahead = NULL;
    for (int i = 0; i < QUERIES; i++) b->rows[i] = b->q[i];
}

/* Scores of some chunks, softmax of some positions, values of others. */
static void block_run(block *b, const struct hn_kernels *k, int lo, int hi, int nq, float m[QUERIES], float l[QUERIES]) {
    const int c1 = (hi + HN_KEY_CHUNK - 1) / HN_KEY_CHUNK;
    block_point(b);
    k->values_bf16(&b->keys, lo, hi, b->e[0], nq, DIM, b->o[0], DIM); /* e as drawn, in pairs that [lo, hi) may halve */
    k->scores_bf16(&b->keys, lo / HN_KEY_CHUNK, c1, b->rows, nq, DIM, 0.3f, b->s[0]);
    for (int i = 0; i < nq; i++) k->softmax_bf16(b->s[i], lo, hi, &m[i], &l[i], b->e[i]);
}

static void check_same_halves(const uint16_t *a, const uint16_t *b, int n) {
    for (int i = 0; i < n; i++) assert_true(check_same(hn_bf16_to_f32(a[i]), hn_bf16_to_f32(b[i])));
}

/* The levels' kernels, ref's first, then those with sums of tiles: ref's, the level's that has them, and over emulated tiles. */
typedef struct kernels {
    const char *name;
    struct hn_kernels k;
} kernels;

static int all_kernels(kernels out[HN_ISA_COUNT + 2], int *tiles) {
    int n = 0;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        if (!hn_kernels_get(isa)->sums_of_tiles) out[n++] = (kernels){hn_isa_name(isa), *hn_kernels_get(isa)};
    *tiles = n;
    out[n] = (kernels){"ref of tiles", *check_ref()};
    use_tiles(&out[n++].k, HN_ISA_REF);
    if (hn_isa_has(HN_ISA_AMX)) out[n++] = (kernels){hn_isa_name(HN_ISA_AMX), *hn_kernels_get(HN_ISA_AMX)};
    if (!hn_isa_has(HN_ISA_AVX512BF16)) return n;
    out[n] = (kernels){"emulated tiles", *hn_kernels_get(HN_ISA_AVX512BF16)};
    use_tiles(&out[n++].k, HN_ISA_AVX512BF16);
    return n;
}

/* README: "Every kernel of every instruction level computes the bits of the plain C reference of its operation and level." */
static void bf16_test(void **state HN_UNUSED) {
    block *want = hn_alloc(sizeof *want), *got = hn_alloc(sizeof *got), *drawn = hn_alloc(sizeof *drawn);
    kernels *all = hn_alloc((HN_ISA_COUNT + 2) * sizeof *all);
    int tiles;
    const int n = all_kernels(all, &tiles);
    for (int round = 0; round < 40 / test_every(1, 4); round++) {
        const int lo = check_int(0, HN_KEY_SPAN - 1), hi = check_int(lo + 1, HN_KEY_SPAN), nq = check_int(1, QUERIES);
        float m[2][QUERIES] = {{0}}, l[2][QUERIES] = {{0}};
        block_draw(drawn, check_any_kind());
        for (int i = 0; i < n; i++) {
            block *now = i == 0 || i == tiles ? want : got;
            *now = *drawn;
            block_run(now, &all[i].k, lo, hi, nq, m[now == got], l[now == got]);
            if (now == want) continue;
            check_same_row(got->o[0], want->o[0], QUERIES * DIM, all[i].name, round);
            check_same_row(got->s[0], want->s[0], QUERIES * HN_KEY_SPAN, all[i].name, round);
            for (int k = 0; k < nq; k++) assert_true(m[1][k] == m[0][k]); /* zeros of either sign */
            check_same_row(l[1], l[0], nq, "sum", round);
            for (int k = 0; k < QUERIES; k++) check_same_halves(got->e[k], want->e[k], HN_KEY_SPAN);
        }
    }
    hn_free(all);
    hn_free(want);
    hn_free(got);
    hn_free(drawn);
}

static void round_test(void **state HN_UNUSED) {
    for (hn_isa isa = hn_isa_next(HN_ISA_REF); isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int round = 0; round < 100 / test_every(1, 4); round++) {
            const int n = 2 * check_int(1, 40);
            check_buf x_buf, got_buf = check_alloc((size_t)n * 2, 2 * (size_t)check_int(0, 31));
            float *x = check_guarded(&x_buf, n);
            uint16_t want[80];
            check_fill(x, n, check_any_kind());
            check_ref()->round_bf16(x, n, want);
            hn_kernels_get(isa)->round_bf16(x, n, (uint16_t *)(void *)got_buf.p);
            assert_memory_equal(got_buf.p, want, (size_t)n * 2);
            check_free(&x_buf);
            check_free(&got_buf);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_test),  cmocka_unit_test(long_context_test), cmocka_unit_test(shared_test),
        cmocka_unit_test(waves_test),  cmocka_unit_test(latent_test),       cmocka_unit_test(edge_test),
        cmocka_unit_test(keys_as_values_test),
        cmocka_unit_test(softmax_test), cmocka_unit_test(bf16_test),        cmocka_unit_test(round_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
