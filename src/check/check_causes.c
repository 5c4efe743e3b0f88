/* SPDX-License-Identifier: Apache-2.0 */
/* check_causes.c - a head that drafts badly may be read in a wrong way: other ways to read it are tried on known texts, through the
 * drafter's interface. Every text's rows are fed one by one, as the way specifies, and after each the head drafts one token, which is
 * compared with the text's.
 *
 * The target's rows come in windows of all texts; neighbouring windows share a row, so that the feature of the previous position exists
 * for every row that is fed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "check/head_check.h"

enum { POSITIONS = HN_CHECK_WANTED, UNKNOWN = -1 };

hunch_status hn_check_spec(char **out, const hn_spec *spec, const char *key, const char *value, hunch_error *err) {
    static const char *const left_out[] = {"tree", "topk", "total", "min_p", "vocab", "ids", "texts"};
    const char *path = spec->path ? spec->path : "";
    static const char all[] = ",min_p=0"; /* whatever the head's file says: unlikely tokens are judged too */
    size_t size = strlen(spec->kind) + strlen(path) + 4 + sizeof all + (key ? strlen(key) + strlen(value) : 0), at;
    for (int i = 0; i < spec->n; i++) size += strlen(spec->key[i]) + strlen(spec->value[i]) + 2;
    char *text = *out = hn_alloc(size);
    if (!text) return hn_fail_memory(err, "a drafter's spec", size);
    at = (size_t)snprintf(text, size, "%s%s%s%s", spec->kind, *path ? ":" : "", path, all);
    for (int i = 0; i < spec->n; i++) {
        bool keep = !key || strcmp(spec->key[i], key) != 0;
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++) keep &= strcmp(spec->key[i], left_out[k]) != 0;
        if (keep) at += (size_t)snprintf(text + at, size - at, ",%s=%s", spec->key[i], spec->value[i]);
    }
    if (key) snprintf(text + at, size - at, ",%s=%s", key, value);
    return HUNCH_OK;
}

/* ---- reading texts in one way --------------------------------------------------------------------------------------------- */

typedef struct reader {
    hunch_engine *e;
    hn_drafter *d;
    const hn_check_text *text; /* [n] */
    const hn_reading *way;
    int n, per_text; /* positions of each */
    int begin[HN_CHECK_AT_ONCE], rows[HN_CHECK_AT_ONCE]; /* the window of each: its first row, number of rows */
    int first[HN_CHECK_AT_ONCE];                         /* index of the first row in the pass */
    int fed[HN_CHECK_AT_ONCE], end[HN_CHECK_AT_ONCE];
    hn_sampler sampler;
    hn_tree *tree;             /* [n] */
    int8_t *hit;               /* [POSITIONS] */
} reader;

static bool reader_done(const reader *r) {
    for (int i = 0; i < r->n; i++)
        if (r->fed[i] < r->end[i]) return false;
    return true;
}

/* Computes the target's rows of the next windows. */
static hunch_status read_windows(reader *r, hunch_error *err) {
    hn_row row[HN_MAX_ROWS];
    int cache_seq[HN_CHECK_AT_ONCE], n = 0, live = 0, seqs = 0;
    for (int i = 0; i < r->n; i++) live += r->fed[i] < r->end[i];
    for (int i = 0; i < r->n; i++) {
        const int left = r->text[i].n - r->begin[i];
        r->rows[i] = 0;
        if (r->fed[i] >= r->end[i]) continue;
        r->first[i] = n;
        r->rows[i] = left < HN_MAX_ROWS / live ? left : HN_MAX_ROWS / live;
        for (int k = 0; k < r->rows[i]; k++, n++)
            row[n] = (hn_row){.token = r->text[i].token[r->begin[i] + k], .seq = (int16_t)seqs, .parent = (int16_t)(k ? n - 1 : -1),
                              .logits = HN_LOGITS_NONE, .feature = true};
        cache_seq[seqs++] = i;
    }
    return hn_pass_run(r->e->runner, row, n, cache_seq, seqs, err);
}

/* The row of the pass whose feature is used for position `at`. */
static int feature_of(const reader *r, int i, int at) {
    const int row = at + r->way->feature < 0 ? 0 : at + r->way->feature;
    return hn_pass_feature_row(r->e->runner, r->first[i] + row - r->begin[i]);
}

/* Whether a pass of the head failed: its misses would count as drafts that are wrong. */
static bool failed(const reader *r, hunch_status *st, hunch_error *err) {
    if (!*st && r->d->failure.status) *st = hn_fail(err, r->d->failure.status, "%s", r->d->failure.message);
    return *st;
}

/* Feeds one more row of every text whose window has one; due[i]: text i can be drafted for. false: no rows left. */
static bool feed_one(reader *r, bool *due, hunch_status *st, hunch_error *err) {
    hn_feed_row row[HN_CHECK_AT_ONCE];
    hn_buf buffers[HN_MAX_FEATURES];
    hn_features f = {.buffer = buffers};
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        const int at = r->fed[i], next = at + 1 + r->way->token;
        due[i] = false;
        if (at >= r->end[i] || at >= r->begin[i] + r->rows[i]) continue;
        row[n++] = (hn_feed_row){i, at, r->text[i].token[at], r->text[i].token[next], -1, feature_of(r, i, at)};
        due[i] = ++r->fed[i] >= r->text[i].n_prompt;
    }
    if (n == 0) return false;
    f.n = hn_pass_features(r->e->runner, &r->d->needs.features, buffers, &f.ld);
    r->d->ops->feed(r->d, row, n, &f);
    return !failed(r, st, err);
}

/* Drafts one token for each and compares it with the text's. */
static void draft_one(reader *r, const bool *due) {
    hn_propose p[HN_CHECK_AT_ONCE];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        const int text_n = r->fed[i] + 1;
        if (!due[i]) continue;
        hn_tree_reset(&r->tree[i], r->text[i].token[text_n - 1], 2);
        p[n++] = (hn_propose){.seq = i, .text = {r->text[i].token, text_n, r->text[i].n_prompt}, .tree = &r->tree[i], .budget = 1,
                              .depth = 1, .chain = true, .sampler = &r->sampler};
    }
    if (n > 0) r->d->ops->propose(r->d, p, n, 0);
    for (int i = 0; i < r->n; i++) {
        const int text_n = r->fed[i] + 1;
        if (due[i])
            r->hit[i * r->per_text + text_n - r->text[i].n_prompt - 1] =
                r->tree[i].n_rows > 1 && r->tree[i].token[1] == r->text[i].token[text_n];
    }
}

static hunch_status read_texts(reader *r, double until, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    bool due[HN_CHECK_AT_ONCE];
    for (int i = 0; !st && i < r->n; i++) {
        const hn_check_text *t = &r->text[i];
        const hn_begin b = {.seq = i, .text = {t->token, t->n_prompt + 1, t->n_prompt}};
        const int last = t->n_prompt + r->per_text - 1;
        r->end[i] = t->n - 2 < last ? t->n - 2 : last;
        hn_cache_seq_begin(r->e->cache, i);
        st = r->d->ops->begin(r->d, &b, 1, err);
    }
    while (!st && !reader_done(r) && hn_now() < until) {
        st = read_windows(r, err);
        while (!st && feed_one(r, due, &st, err)) {
            draft_one(r, due);
            (void)failed(r, &st, err);
        }
        for (int i = 0; !st && i < r->n; i++) {
            const int keep = r->fed[i] - 1 - r->begin[i];
            if (r->rows[i] == 0 || keep <= 0) continue;
            hn_cache_commit(r->e->cache, i, 0, NULL, keep);
            r->begin[i] += keep;
        }
    }
    return st;
}

static hunch_status reader_open(reader *r, hunch_model *m, const char *spec, hunch_error *err) {
    const hunch_sampling greedy = {.top_p = 1};
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    for (int i = 0; i < r->n; i++)
        if (r->text[i].n > o.context) o.context = r->text[i].n;
    o.context = o.context + 1 < m->target.arch.context ? o.context + 1 : m->target.arch.context;
    o.parallel = r->n;
    o.drafts = &spec;
    o.n_drafts = 1;
    o.no_prefix_reuse = true;
    hunch_status st = hunch_engine_open(&r->e, m, &o, err);
    if (!st) st = hn_sampler_init(&r->sampler, &greedy, m->target.arch.vocab, err);
    r->tree = st ? NULL : hn_zalloc((size_t)r->n, sizeof *r->tree);
    if (!st && !r->tree) st = hn_fail_memory(err, "draft trees", (size_t)r->n * sizeof *r->tree);
    r->d = st ? NULL : &r->e->drafter[0];
    return st;
}

/* Fills hit: for each position 1, 0 or UNKNOWN. */
static hunch_status try_reading(const hn_smoke *smoke, hunch_model *m, const hn_spec *spec, hn_reading *way, double until,
                             int8_t *hit, hunch_error *err) {
    reader r = {.text = smoke->text, .n = smoke->n < HN_CHECK_AT_ONCE ? smoke->n : HN_CHECK_AT_ONCE, .way = way, .hit = hit};
    char *text = NULL;
    r.per_text = POSITIONS / r.n;
    memset(hit, UNKNOWN, POSITIONS);
    hunch_status st = hn_check_spec(&text, spec, *way->key ? way->key : NULL, way->value, err);
    if (!st) st = reader_open(&r, m, text, err);
    if (!st) st = read_texts(&r, until, err);
    for (int i = 0; r.d && i < r.n; i++) {
        r.d->ops->end(r.d, i);
        hn_cache_seq_end(r.e->cache, i);
    }
    hn_free(r.tree);
    hn_sampler_fini(&r.sampler);
    hunch_engine_close(&r.e);
    hn_free(text);
    for (int i = 0; i < POSITIONS; i++) {
        way->n += hit[i] != UNKNOWN;
        way->hits += hit[i] == 1;
    }
    return st;
}

/* ---- the ways to read ------------------------------------------------------------------------------------------------------- */

static hn_reading *add(hn_causes *c, const char *what, const char *key, const char *value) {
    hn_reading *way = &c->reading[c->n < HN_MOST_READINGS ? c->n++ : HN_MOST_READINGS - 1];
    *way = (hn_reading){0};
    snprintf(way->what, sizeof way->what, "%s", what);
    snprintf(way->key, sizeof way->key, "%s", key);
    snprintf(way->value, sizeof way->value, "%s", value);
    return way;
}

/* Not the state of the next position: the text is the model's greedy one, so from that state alone the asked token was chosen, and even a
 * head that was never trained may draft it. */
static void add_alignment(hn_causes *c, bool pairs) {
    add(c, "alignment: the state of the position before", "", "")->feature = -1;
    if (pairs) add(c, "alignment: the token one earlier", "", "")->token = -1;
}

static void add_norms(hn_causes *c, const struct hn_head_report *r, int layers) {
    const hn_input_stage *in = &r->desc.input;
    const bool joint = hn_head_reads_tokens(&r->desc), normed = r->reads == HN_INPUT_PAIR_NORMED;
    const bool output = r->desc.output.norm == HN_NORM_READ;
    if (hn_head_borrows(&r->desc)) {
        add(c, "position: that of the last row", "position", "last");
        add(c, "position: one more at each level", "position", "step");
        return;
    }
    if (joint && r->taps.boundary[0] == HN_FEATURE_POST_NORM) add(c, "norm: the last state before the final norm", "last", "raw");
    if (joint && r->taps.boundary[0] == layers) add(c, "norm: the last state behind the final norm", "last", "normed");
    if (joint || r->desc.rows.kind == HN_ROWS_BLOCK) return;
    add(c, normed ? "norm: the residual plain" : "norm: the residual normed", "residual", normed ? "plain" : "normed");
    add(c, output ? "norm: drafts read the plain output" : "norm: drafts read the normed output", "output", output ? "plain" : "normed");
    if (in->stream == HN_STREAM_FEATURE && (in->feature.norm_all || in->feature.norm_each))
        add(c, "norm: none before fc", "fc_norms", "off");
}

/* Adds a list of taps, unless it is the file's own, has a layer outside the model or one twice, or was added before. */
static void add_list(hn_causes *c, const char *what, const hn_head_taps *own, const int *list, int layers) {
    char text[100] = "";
    size_t at = 0;
    bool same = true, fits = true;
    for (int i = 0; i < own->n; i++) {
        same &= list[i] == own->boundary[i];
        fits &= list[i] >= 0 && list[i] <= layers;
        for (int k = 0; k < i; k++) fits &= list[k] != list[i];
        if (at < sizeof text) at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? ":" : "", list[i]);
    }
    for (int i = 0; i < c->n; i++) same |= !strcmp(c->reading[i].value, text);
    if (fits && !same && at < sizeof text) add(c, what, "taps", text);
}

static void add_orders(hn_causes *c, const hn_head_taps *own, int *list, int from, int layers) {
    if (from == own->n) {
        add_list(c, "taps: in another order", own, list, layers);
        return;
    }
    for (int i = from; i < own->n; i++) {
        const int a = list[from], b = list[i];
        list[from] = b, list[i] = a;
        add_orders(c, own, list, from + 1, layers);
        list[from] = a, list[i] = b;
    }
}

static void add_taps(hn_causes *c, const hn_head_taps *own, int layers) {
    const int usual[] = {2, layers / 2, layers - 3};
    int list[HN_MOST_HEAD_FEATURES];
    for (int step = -1; step <= 1; step += 2) {
        for (int i = 0; i < own->n; i++) list[i] = own->boundary[i] + step;
        add_list(c, step < 0 ? "taps: one layer lower" : "taps: one layer higher", own, list, layers);
    }
    if (own->n == 3) add_list(c, "taps: the usual ones", own, usual, layers);
    memcpy(list, own->boundary, sizeof list);
    if (own->n <= 3) {
        add_orders(c, own, list, 0, layers);
        return;
    }
    for (int i = 0; i < own->n; i++) list[i] = own->boundary[own->n - 1 - i]; /* too many orders to try all */
    add_list(c, "taps: in the opposite order", own, list, layers);
}

/* ---- comparing ------------------------------------------------------------------------------------------------------------ */

/* Whether a way is clearly better than the file's own, at the positions that both have, and than a constant. */
static bool clearly_better(const hn_reading *way, const int8_t *hit, const int8_t *own, double constant) {
    double sum = 0, squares = 0;
    int n = 0;
    for (int i = 0; i < POSITIONS; i++) {
        if (hit[i] == UNKNOWN || own[i] == UNKNOWN) continue;
        sum += hit[i] - own[i];
        squares += abs(hit[i] - own[i]);
        n++;
    }
    if (n < HN_CHECK_MIN_ROUNDS) return false;
    const double mean = sum / n, error = sqrt((squares / n - mean * mean) / n), share = (double)way->hits / way->n;
    return mean > 0.05 && mean > HN_CHECK_ERRORS * error && share > constant + HN_CHECK_ERRORS * hn_smoke_error(share, way->n);
}

hunch_status hn_causes_find(hn_causes *c, hunch_model *m, const hn_spec *spec, const struct hn_head_report *report,
                            const hn_smoke *smoke, double seconds, hn_check_progress p, hunch_error *err) {
    int8_t own[POSITIONS], hit[POSITIONS];
    const double start = hn_now();
    const int layers = m->target.arch.layers;
    *c = (hn_causes){.best = -1};
    add(c, "as the file says", "", "");
    hunch_status st = try_reading(smoke, m, spec, &c->reading[0], start + seconds, own, err);
    if (st) return st;
    const bool whole = hn_head_is_whole(&report->desc); /* without states its files leave nothing open */
    if (report->taps.n > 0 || !whole)
        add_alignment(c, report->desc.rows.kind != HN_ROWS_BLOCK); /* rows of blocks consist of states alone */
    if (!whole) add_norms(c, report, layers);
    if (!whole && !hn_head_reads_tokens(&report->desc)) add_taps(c, &report->taps, layers);
    for (int i = 1; !st && i < c->n; i++) {
        hn_reading *way = &c->reading[i];
        if (p.call) p.call(p.user, (uint64_t)(HN_CHECK_WANTED + HN_CHECK_WANTED * i / c->n), 2 * HN_CHECK_WANTED);
        if (hn_now() - start > seconds) {
            c->cut = true;
            c->n = i;
            break;
        }
        st = try_reading(smoke, m, spec, way, start + seconds, hit, err);
        if (st == HUNCH_REFUSED || st == HUNCH_USAGE) st = HUNCH_OK; /* the head cannot be read in this way */
        way->better = !st && clearly_better(way, hit, own, smoke->constant);
        if (way->better && (c->best < 0 || way->hits > c->reading[c->best].hits)) c->best = i;
    }
    c->seconds = hn_now() - start;
    return st;
}
