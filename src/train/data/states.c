/* SPDX-License-Identifier: Apache-2.0 */
/* states.c - see states.h. */
#include "train/data/states.h"

#include <assert.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "cache/cache.h"
#include "model/kv_groups.h"
#include "model/pass.h"

enum { SEQS = 8, PAGE = 64 }; /* SEQS: texts of a pass */

struct hn_states {
    const hn_model *target;
    int boundary[HN_TRAIN_MOST_STATES], n;
    hn_cache *cache;
    hn_runner *runner;
};

/* A pass: consecutive rows of texts; for each the part [from, from + rows). */
typedef struct part {
    const hn_states_text *text;
    int seq, from, rows;
} part;

typedef struct pass {
    part part[SEQS];
    int n, rows;
} pass;

static hunch_status passes_open(hn_states *s, const int32_t *boundary, int longest, hunch_error *err) {
    hn_cache_group group[HN_MAX_GROUPS];
    hn_feature_set set = {{0}, false};
    const hn_model *m = s->target;
    const int groups = hn_kv_groups(m->run, HN_BF16, group, NULL);
    if (groups == 0) return hn_fail(err, HUNCH_REFUSED, "layers with more than %d kinds of rows", HN_MODEL_GROUPS);
    for (int i = 0; i < s->n; i++) {
        const int b = s->boundary[i] = boundary[i];
        if (b == HN_FEATURE_POST_NORM)
            set.post_norm = true;
        else
            set.layers[b / 64] |= 1ull << (b % 64);
    }
    group[0].page_rows = PAGE;
    hunch_status st = hn_cache_open(&s->cache, m->backend, group, groups, SEQS, longest, longest + SEQS * PAGE, err);
    return st ? st : hn_runner_open(&s->runner, m, s->cache, 0, longest, &set, err);
}

hunch_status hn_states_open(hn_states **out, const hn_model *target, const int32_t *boundary, int n, int longest,
                            hunch_error *err) {
    hn_states *s = hn_zalloc(1, sizeof *s);
    *out = NULL;
    assert(n >= 1 && n <= HN_TRAIN_MOST_STATES && longest >= 1);
    if (!s) return hn_fail_memory(err, "states of texts", sizeof *s);
    s->target = target;
    s->n = n;
    hunch_status st = passes_open(s, boundary, longest, err);
    if (st)
        hn_states_close(&s);
    else
        *out = s;
    return st;
}

void hn_states_close(hn_states **sp) {
    hn_states *s = *sp;
    *sp = NULL;
    if (!s) return;
    hn_runner_close(&s->runner);
    hn_cache_close(&s->cache);
    hn_free(s);
}

static void keep_rows(const hn_states *s, const pass *p) {
    const size_t width = (size_t)s->target->arch.hidden;
    for (int i = 0, row = 0; i < p->n; i++) {
        uint16_t *to = p->part[i].text->to + (size_t)p->part[i].from * (size_t)s->n * width;
        for (int end = row + p->part[i].rows; row < end; row++)
            for (int k = 0; k < s->n; k++, to += width)
                hn_quantise(HN_BF16, hn_pass_feature(s->runner, s->boundary[k], row), width, to);
    }
}

/* Runs a pass; finished texts release their sequence. */
static hunch_status run(hn_states *s, const pass *p, hunch_error *err) {
    hn_row rows[HN_MAX_ROWS];
    int seq[SEQS], at = 0;
    for (int i = 0; i < p->n; i++) {
        const part *x = &p->part[i];
        seq[i] = x->seq;
        for (int k = 0; k < x->rows; k++, at++)
            rows[at] = (hn_row){.token = x->text->ids[x->from + k],
                                .seq = (int16_t)i,
                                .parent = (int16_t)(k ? at - 1 : -1),
                                .logits = HN_LOGITS_NONE,
                                .feature = true};
    }
    hunch_status st = hn_pass_run(s->runner, rows, at, seq, p->n, err);
    if (st) return st;
    keep_rows(s, p);
    for (int i = 0; i < p->n; i++) {
        const part *x = &p->part[i];
        hn_cache_commit(s->cache, x->seq, 0, NULL, x->rows);
        if (x->from + x->rows == x->text->n) hn_cache_seq_end(s->cache, x->seq);
    }
    return HUNCH_OK;
}

hunch_status hn_states_compute(hn_states *s, const hn_states_text *text, size_t n, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    pass p = {.n = 0};
    int from = 0, seq = 0;
    for (size_t i = 0; !st && i < n;) {
        const int left = text[i].n - from, room = HN_MAX_ROWS - p.rows, rows = left < room ? left : room;
        if (from == 0) hn_cache_seq_begin(s->cache, seq);
        p.part[p.n++] = (part){&text[i], seq, from, rows};
        p.rows += rows;
        from += rows;
        if (from == text[i].n) {
            i++;
            from = 0;
            seq = (seq + 1) % SEQS;
        }
        if (p.rows < HN_MAX_ROWS && p.n < SEQS && i < n) continue;
        st = run(s, &p, err);
        p = (pass){.n = 0};
    }
    for (int i = 0; st && i < SEQS; i++) hn_cache_seq_end(s->cache, i);
    return st;
}
