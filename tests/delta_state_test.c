/* SPDX-License-Identifier: Apache-2.0 */
/* delta_state_test.c - states of recurrent layers after thousands of random trees and accept patterns: every logit is that of plain
 * decoding, bit for bit. Mistakes that leave texts plausible (a stale input of the convolution, a row that is absorbed twice, the
 * gates of a sibling, a refused row that is kept) are injected, and detected. And texts that lose their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/cpu_mem.h"
#include "bits.h"
#include "ops/delta.h"
#include "engine/scheduling.h"

#define HYBRID "goldens/qwen3_5-dense"
enum { ROWS = 160, MOST_TREE = 12, PAGE = 16 };

/* ---- mistakes ------------------------------------------------------------------------------------------------------------- */

typedef enum mistake { NONE, STALE_INPUT, ABSORBED_TWICE, SIBLINGS_GATE, REFUSED_ROW, MISTAKES } mistake;
static const char *const names[] = {"none", "a stale input", "a row absorbed twice", "a sibling's gate", "a refused row"};
static mistake planted;
static const hn_ops *honest;

static float *inputs_at(const hn_delta_job *j, int slot) {
    const hn_input_pages *p = &j->inputs;
    const int32_t *table = hn_host_i32(p->table);
    return hn_host_f32(hn_at(p->pool, p->page_bytes * (size_t)table[slot / p->page_rows] +
                                                                    p->row_bytes * (size_t)(slot % p->page_rows) + p->off));
}

/* Gates of the next slot: in a chain the next row's, in a tree usually a sibling's. */
static void take_gates(const hn_delta_job *j, int slot) {
    const int channels = hn_delta_channels(j->net);
    memcpy(inputs_at(j, slot) + channels, inputs_at(j, slot + 1) + channels, 2 * (size_t)j->net->value_heads * sizeof(float));
}

/* One sequence, one thread. */
static void wrong_delta(const hn_exec *ex, const hn_delta_job *j) {
    hn_walk_step *step = hn_host(j->walk->step), kept[HN_WALK_STEPS];
    int32_t *first = hn_host(j->walk->first);
    const hn_exec right = {honest, ex->backend, ex->rank, ex->ranks};
    const int n = first[1];
    int absorbed = 0;
    memcpy(kept, step, sizeof *step * (size_t)n);
    while (absorbed < n && step[absorbed].row < 0) absorbed++;
    if (absorbed > 0 && planted == STALE_INPUT) step[absorbed - 1].before[0] = step[absorbed - 1].before[1];
    if (absorbed > 0 && planted == REFUSED_ROW) step[absorbed - 1].slot++;
    if (absorbed > 0 && planted == SIBLINGS_GATE) take_gates(j, step[absorbed - 1].slot);
    if (absorbed > 0 && planted == ABSORBED_TWICE) {
        first[1] = absorbed;
        honest->delta(&right, j);
        first[1] = n;
    }
    honest->delta(&right, j);
    memcpy(step, kept, sizeof *step * (size_t)n);
}

/* ---- random trees and accepted paths --------------------------------------------------------------------------------------- */

typedef struct rig {
    hn_cache *cache;
    hn_runner *runner;
    hn_row row[MOST_TREE];
    int16_t path[MOST_TREE];
    int n, n_path;
} rig;

/* A tree with the text's next rows as one of its paths; nodes are ordered by level or by branch. */
static void make_tree(bits *b, rig *r, int most) {
    const int left = b->n - b->at, length = 1 + bits_below(b, left < most ? left : most), wrong = bits_below(b, MOST_TREE - length + 1);
    int parent = -1, spare = wrong;
    r->n = r->n_path = 0;
    for (int i = 0; i < length; i++) {
        const int here = spare > 0 ? bits_below(b, spare + 1) : 0;
        for (int k = 0; k < here && i > 0; k++, spare--) /* the root has no siblings */
            r->row[r->n] = (hn_row){.token = bits_below(b, b->vocab),
                                    .parent = (int16_t)bits_below(b, r->n),
                                    .logits = HN_LOGITS_NONE},
            r->n++;
        r->path[r->n_path++] = (int16_t)r->n;
        r->row[r->n] = (hn_row){.token = b->token[b->at + i], .parent = (int16_t)parent, .logits = HN_LOGITS_ALL};
        parent = r->n++;
    }
}

/* So many of the first rows are certain to be committed. */
static int some_certain(bits *b, const rig *r) {
    int n = 0;
    while (n < r->n_path && r->path[n] == n) n++;
    return bits_below(b, n + 1);
}

/* The state has all committed rows and the certain ones but the last, or those before the last of a node: a text may continue there. */
static void check_absorbed(const rig *r, int committed, int n_certain, int node_rows) {
    const int end = committed + n_certain, full = end - end % node_rows, last = full > committed ? full : end;
    assert_int_equal(hn_cache_absorbed(r->cache, 0, 0), last > committed ? last - 1 : committed);
}

/* Now and then the last rows are dropped: those that are not in the state yet, or all, and the pages are used again. */
static void drop_rows(bits *b, hn_cache *c, int seq) {
    if (b->at < 10 || bits_below(b, 25)) return;
    const int rows = b->at - 1 - bits_below(b, 8), absorbed = hn_cache_absorbed(c, seq, 0);
    b->at = hn_cache_rewind(c, seq, 0, rows);
    assert_int_equal(b->at, rows < absorbed ? 0 : rows);
    assert_true(hn_cache_valid(c));
}

/* Passes until the text is read; returns their number; *wrong: rows with wrong bits. */
static int read_text(bits *b, const hunch_model *m, const hn_ops *table, int most, int *wrong) {
    hn_cache_group group[HN_MODEL_GROUPS];
    const int n_groups = hn_kv_groups(m->target.run, HN_BF16, group, NULL), seq = 0;
    int passes = 0;
    rig r = {0};
    group[0].page_rows = 16 << bits_below(b, 3);
    must(hn_cache_open(&r.cache, m->target.backend, group, n_groups, 1, b->context, 0, err));
    must(hn_runner_open(&r.runner, &m->target, r.cache, 0, b->context, NULL, err));
    if (table) hn_runner_set_ops(r.runner, table);
    hn_cache_seq_begin(r.cache, seq);
    for (b->at = 0, *wrong = 0; b->at < b->n; passes++) {
        make_tree(b, &r, most);
        const int n_certain = some_certain(b, &r);
        const hn_pass_options more = {.n_certain = &n_certain};
        must(hn_pass_reserve(r.runner, r.row, r.n, &seq, 1, &more, err));
        must(hn_pass_run_with(r.runner, r.row, r.n, &seq, 1, &more, err));
        for (int i = 0; i < r.n_path; i++)
            *wrong += memcmp(b->want + (size_t)(b->at + i) * (size_t)b->vocab, hn_pass_logits(r.runner, r.path[i]),
                             (size_t)b->vocab * sizeof(float)) != 0;
        check_absorbed(&r, b->at, n_certain, group[0].page_rows);
        const int least = n_certain > 0 ? n_certain : 1, kept = least + bits_below(b, r.n_path - least + 1);
        hn_cache_commit(r.cache, seq, 0, r.path, kept);
        assert_true(hn_cache_valid(r.cache));
        b->at += kept;
        drop_rows(b, r.cache, seq);
    }
    hn_runner_close(&r.runner);
    hn_cache_close(&r.cache);
    return passes;
}

static void test_patterns(void **state) {
    (void)state;
    const char *isa[HN_ISA_COUNT];
    for (int l = 0, n = levels(isa); l < n; l++) {
        hunch_model *m = open_model_as(data_path(HYBRID), isa[l], 1 + l % 2, HUNCH_PRECISION_NATIVE, l % 3 == 1);
        bits *b = bits_open(m, HUNCH_KV_BF16, ROWS);
        const int texts = light() ? 2 : EVERY_CASE ? 18 : 4;
        int passes = 0, wrong;
        for (int i = 0; i < texts; i++) {
            passes += read_text(b, m, NULL, 1 + (light() ? 4 * i + 3 : i) % 9, &wrong);
            if (wrong) fail_msg("%s: %d rows differ", isa[l], wrong);
        }
        assert_true(passes > texts * ROWS / 10);
        bits_free(b);
        hunch_model_close(&m);
    }
}

static void test_mistakes(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(HYBRID), "best", 1, HUNCH_PRECISION_NATIVE);
    bits *b = bits_open(m, HUNCH_KV_BF16, ROWS);
    hn_ops table = *m->target.backend->ops;
    honest = m->target.backend->ops;
    table.delta = wrong_delta;
    for (planted = NONE; planted < MISTAKES; planted++) {
        int wrong;
        read_text(b, m, &table, 6, &wrong);
        print_message("%s: %d rows differ\n", names[planted], wrong);
        assert_int_equal(wrong > 0, planted != NONE);
    }
    bits_free(b);
    hunch_model_close(&m);
}

/* A specification with the hybrid as draft model. */
static const char *draft_model(const char *before, const char *behind) {
    static char text[4][600];
    static int next;
    char *to = text[next++ % 4];
    snprintf(to, sizeof *text, "%smodel:%s%s", before, data_path(HYBRID), behind);
    return to;
}

/* ---- lost places ----------------------------------------------------------------------------------------------------------- */

static hunch_request request_of(const hunch_model *m, const hunch_token *ids, int n, int most, double temperature) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = ids;
    r.n_prompt = (size_t)n;
    r.max_tokens = most;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature, .top_p = 1, .seed = 3};
    return r;
}

static void run_alone(hunch_model *m, const hunch_request *r, answer *want, int n, int context) {
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 16, context);
    for (int i = 0; i < n; i++) run_requests(e, &r[i], 1, true, &want[i]);
    hunch_engine_close(&e);
}

static hunch_engine *open_few_pages(hunch_model *m, const char *draft, int parallel, int context, int states) {
    hunch_engine_options o;
    hunch_model_info info;
    hunch_engine_options_defaults(&o);
    hunch_model_get_info(m, &info);
    o.parallel = parallel;
    o.context = o.pool_rows = context;
    o.page_rows = PAGE;
    o.max_pause = 1000; /* prompts take the same rounds on every machine */
    o.state_bytes = info.state_bytes * (uint64_t)states;
    return open_engine_with(m, draft, o);
}

/* A sequence takes pages of these models until no more than `left` are free. */
static void take_pages(hunch_engine *e, int seq, int models, int left) {
    hn_cache_seq_begin(e->cache, seq);
    for (int model_id = models - 1; model_id >= 0; model_id--)
        while (hn_cache_free_pages(e->cache) > left && hn_cache_committed(e->cache, seq, model_id) < e->context - 2 &&
               !hn_cache_reserve(e->cache, seq, model_id, 1, NULL))
            hn_cache_commit(e->cache, seq, model_id, NULL, 1);
}

/* Nine texts, whose pages others take again and again: the youngest are read again from the beginning, states and all. */
static void test_preemption(void **state) {
    (void)state;
    enum { TEXTS = 9, TAKEN = 4, EVERY = 16, LEFT = 60, PROMPT = 400, ALL = 600 };
    hunch_model *m = open_model(data_path(HYBRID), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    const char *const drafts[] = {"forced,accept=0.6,depth=5,tree=random,seed=2", draft_model("", ",depth=3")};
    static hunch_token ids[TEXTS][PROMPT];
    hunch_request r[TEXTS];
    answer want[TEXTS] = {{0}}, got[TEXTS] = {{0}};
    uint64_t rng = 5;
    for (int i = 0; i < TEXTS; i++) {
        for (int k = 0; k < PROMPT; k++) ids[i][k] = (hunch_token)(hn_splitmix(&rng) % 512);
        r[i] = request_of(m, ids[i], PROMPT - 19 * i, 80, 0);
    }
    run_alone(m, r, want, TEXTS, ALL);
    for (int d = 0; d < 2; d++) {
        uint64_t preempted = 0;
        hunch_engine *e = open_few_pages(m, drafts[d], TEXTS + TAKEN, ALL, 1 + d); /* pages for more states would be there for rows */
        hunch_session *s[TEXTS];
        for (int i = 0; i < TEXTS; i++) must(hunch_session_open(&s[i], e, &r[i], err));
        for (int round = 0; hunch_engine_running(e) > 0; round++) {
            for (int seq = TEXTS; seq < TEXTS + TAKEN; seq++) { /* places that no session has */
                if (round % EVERY == EVERY / 2) take_pages(e, seq, 2, LEFT);
                if (round % EVERY == EVERY - 1) hn_cache_seq_end(e->cache, seq);
            }
            must(hunch_engine_round(e, err));
        }
        for (int i = 0; i < TEXTS; i++) {
            keep_answer(&got[i], s[i]);
            hunch_session_close(&s[i]);
            assert_same(&want[i], &got[i], "a text that lost its place");
            preempted += got[i].preempted;
            answer_free(&got[i]);
        }
        assert_true(preempted > 0);
        for (int seq = TEXTS; seq < TEXTS + TAKEN; seq++) hn_cache_seq_end(e->cache, seq);
        assert_true(hn_cache_valid(e->cache));
        hunch_engine_close(&e);
    }
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
    hunch_model_close(&m);
}

/* The oldest session wants pages for more rows than there are: the youngest loses its place, and gets one again. True: it continues from
 * the last end of a node. */
static bool lose_a_place(hunch_engine *e) {
    hunch_session *oldest = NULL, *youngest = NULL;
    for (int i = 0; i < e->parallel; i++) {
        hunch_session *s = e->session[i];
        if (s && (!oldest || s->admission < oldest->admission)) oldest = s;
        if (s && (!youngest || s->admission > youngest->admission)) youngest = s;
    }
    const int least = (hn_cache_committed(e->cache, youngest->id, 0) - 1) / PAGE * PAGE - 1; /* a head computes a row again */
    hn_admit(e);
    const int free = hn_cache_free_pages(e->cache);
    hn_cache_release_states(e->cache, oldest->id);
    assert_int_equal(hn_cache_free_pages(e->cache), free); /* it holds none */
    for (int seq = e->parallel - 1; seq <= e->parallel; seq++) take_pages(e, seq, 2, 2); /* places that no session has */
    int *rows = &oldest->round.n_rows;
    for (*rows = 1; youngest->id >= 0 && *rows <= HN_MAX_ROWS; ++*rows) assert_true(hn_make_room(oldest));
    hn_cache_rewind(e->cache, oldest->id, 0, hn_cache_committed(e->cache, oldest->id, 0)); /* it has no use for them */
    for (int seq = e->parallel - 1; seq <= e->parallel; seq++) hn_cache_seq_end(e->cache, seq);
    assert_int_equal(youngest->id, -1);
    hn_admit(e);
    assert_true(youngest->id >= 0);
    return hn_cache_committed(e->cache, youngest->id, 0) >= least;
}

/* Texts in places of their own, of which the youngest loses its own every few rounds. Returns how often it continued from its newest
 * state. */
static int run_preempted(hunch_engine *e, const hunch_request *wanted, int n, answer *out) {
    enum { EVERY = 12 };
    hunch_session *s[4];
    int continued = 0;
    assert_true(n < e->parallel && n <= 4);
    for (int i = 0; i < n; i++) {
        hunch_request r = wanted[i];
        r.on_logits = keep_logits;
        r.on_logits_user = &out[i];
        must(hunch_session_open(&s[i], e, &r, err));
    }
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        if (round % EVERY == 0 && hunch_engine_running(e) > 1) continued += lose_a_place(e);
        must(hunch_engine_round(e, err));
        assert_true(hn_cache_valid(e->cache));
    }
    for (int i = 0; i < n; i++) {
        keep_answer(&out[i], s[i]);
        hunch_session_close(&s[i]);
    }
    return continued;
}

/* Places that are lost in the middle of an answer, whatever drafts: greedy and drawn texts go on with the same bits. */
static void test_preempted_drafters(void **state) {
    (void)state;
    enum { TEXTS = 3, PROMPT = 120, ANSWER = 60, ALL = 2048 };
    const char *const drafts[] = {"mtp,depth=3,force=0.7", "mtp,depth=3,tree=dynamic,topk=2,total=6,force=0.7", "ngram", "suffix,mode=tree",
                                  "mtp+suffix", "recycle", "lookahead,window=3,ngram=3"};
    static const hunch_bias few[] = {{5, 200}, {6, 200}, {7, 200}}; /* answers of few tokens repeat themselves */
    static hunch_token ids[TEXTS][PROMPT];
    hunch_model *m = open_model(data_path(HYBRID), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_request r[TEXTS];
    answer want[TEXTS] = {{0}};
    uint64_t rng = 6;
    for (int i = 0; i < TEXTS; i++) {
        for (int k = 0; k < PROMPT; k++) ids[i][k] = k < 30 ? (hunch_token)(hn_splitmix(&rng) % 512) : ids[i][k - 30];
        r[i] = request_of(m, ids[i], PROMPT - 17 * i, ANSWER, i % 2 ? 0.6 : 0);
        r[i].sampling.bias = few;
        r[i].sampling.n_bias = sizeof few / sizeof *few;
    }
    run_alone(m, r, want, TEXTS, ALL);
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        answer got[TEXTS] = {{0}};
        uint64_t preempted = 0, drafted = 0, accepted = 0;
        hunch_engine *e = open_few_pages(m, drafts[d], TEXTS + 1, ALL, 8);
        const int continued = run_preempted(e, r, TEXTS, got);
        for (int i = 0; i < TEXTS; i++) {
            assert_same(&want[i], &got[i], drafts[d]);
            preempted += got[i].preempted;
            drafted += got[i].drafted;
            accepted += got[i].accepted;
            answer_free(&got[i]);
        }
        print_message("%s: %d places lost, after %d of these from the newest state, %d of %d drafts accepted\n", drafts[d],
                      (int)preempted, continued, (int)accepted, (int)drafted);
        assert_true(preempted > 1 && accepted > 0 && accepted < drafted);
        hunch_engine_close(&e);
    }
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
    hunch_model_close(&m);
}

static int rows_run; /* of all passes, once for each layer with a state */
static void counting_delta(const hn_exec *ex, const hn_delta_job *j) {
    const hn_walk_step *step = hn_host(j->walk->step);
    const int32_t *first = hn_host_i32(j->walk->first);
    const hn_exec right = {honest, ex->backend, ex->rank, ex->ranks};
    for (int i = 0; ex->rank == 0 && i < first[hn_cpu_number(j->n_seqs)]; i++) rows_run += step[i].row >= 0;
    honest->delta(&right, j);
}

/* Texts that outgrow their pages together: after some rounds there are few for more rows. Returns how many rows are computed again. */
static int rows_again(hunch_model *m, const hunch_request *r, const answer *want, int n, int rounds, int states, int *preempted) {
    hunch_session *s[4];
    int once = 0, layers = 0;
    hn_ops table = *m->target.backend->ops;
    hunch_engine *e = open_few_pages(m, NULL, n + 1, 480, states);
    for (int i = 0; i < m->target.arch.layers; i++) layers += !hn_layer_attends(&m->target.arch.layer[i]);
    honest = m->target.backend->ops;
    table.delta = counting_delta;
    hn_runner_set_ops(e->runner, &table);
    rows_run = *preempted = 0;
    for (int i = 0; i < n; i++) must(hunch_session_open(&s[i], e, &r[i], err));
    for (int round = 0; hunch_engine_running(e) > 0; round++) {
        must(hunch_engine_round(e, err));
        for (int seq = n; seq < n + 2 && round == rounds; seq++) take_pages(e, seq, 1, 8);
    }
    for (int seq = n; seq < n + 2; seq++) hn_cache_seq_end(e->cache, seq);
    for (int i = 0; i < n; i++) {
        answer got = {0};
        keep_answer(&got, s[i]);
        assert_same(&want[i], &got, "a text that continues from its newest state");
        once += (int)(r[i].n_prompt + got.n) - 1;
        *preempted += (int)got.preempted;
        answer_free(&got);
        hunch_session_close(&s[i]);
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
    return rows_run / layers - once;
}

/* A text that lost its place continues from the newest state that the index has of it, if there is one for each text; seldom not, when
 * pages are so few that others' rows take its own. */
static void test_resume(void **state) {
    (void)state;
    enum { TEXTS = 3, PROMPT = 100, ANSWER = 120 };
    static hunch_token ids[TEXTS][PROMPT];
    hunch_model *m = open_model(data_path(HYBRID), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_request r[TEXTS];
    answer want[TEXTS] = {{0}};
    uint64_t rng = 7;
    int from_newest = 0, cases = 0;
    for (int i = 0; i < TEXTS; i++) {
        for (int k = 0; k < PROMPT; k++) ids[i][k] = (hunch_token)(hn_splitmix(&rng) % 512);
        r[i] = request_of(m, ids[i], PROMPT - 7 * i, ANSWER + 20 * i, 0);
    }
    run_alone(m, r, want, TEXTS, 3 * ANSWER);
    for (int states = TEXTS - 1; states <= TEXTS + 3; states++)
        for (int rounds = 36; rounds <= 44; rounds += 4) {
            int lost;
            const int again = rows_again(m, r, want, TEXTS, rounds, states, &lost);
            print_message("%d states, after %d rounds: %d places lost, %d rows computed again\n", states, rounds, lost, again);
            assert_true(lost > 0);
            cases += states >= TEXTS;
            from_newest += states >= TEXTS && again <= lost * PAGE;
        }
    assert_in_range(from_newest, cases * 2 / 3, cases);
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
    hunch_model_close(&m);
}

/* ---- prefixes ----------------------------------------------------------------------------------------------------------------------- */

static int drafter_restored; /* rows of the first drafter's own, of all texts */
static hunch_status (*begin_watched)(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err);
static hunch_status begin_counted(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *why) {
    for (int i = 0; i < n; i++) drafter_restored += seqs[i].rows_restored;
    return begin_watched(d, seqs, n, why);
}

static void watch_drafter(hunch_engine *e) {
    static hn_drafter_ops ops;
    ops = *e->drafter[0].ops;
    begin_watched = ops.begin;
    ops.begin = begin_counted;
    e->drafter[0].ops = &ops;
    drafter_restored = 0;
}

/* Rounds until a session ends; the cache agrees after each. */
static void finish(hunch_engine *e, hunch_request *r, answer *out) {
    hunch_session *s = NULL;
    r->on_logits = keep_logits;
    r->on_logits_user = out;
    must(hunch_session_open(&s, e, r, err));
    while (hunch_engine_running(e) > 0) {
        must(hunch_engine_round(e, err));
        assert_true(hn_cache_valid(e->cache));
    }
    keep_answer(out, s);
    hunch_session_close(&s);
}

/* Texts with common prefixes, in turns that continue answers, and with room for few states: restored texts continue
 * with the same bits, and so do drafters. */
static void test_prefixes(void **state) {
    (void)state;
    enum { TURNS = 9, MOST = 700 };
    const char *const drafts[] = {NULL, "mtp,depth=4", "forced,accept=0.7,depth=6,tree=random,seed=3", "mtp+suffix,mode=tree",
                                  draft_model("", ",depth=4,precision=f32"), draft_model("mtp+", ",depth=3")};
    hunch_model *m = open_model(data_path(HYBRID), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (size_t d = 0; d < 6; d++)
        for (int small = 0; small < 2; small++) {
            static hunch_token ids[MOST];
            uint64_t rng = 17, restored = 0, accepted = 0;
            hunch_engine_options o;
            hunch_engine_options_defaults(&o);
            o.context = MOST;
            o.page_rows = small ? 16 : 64;
            o.chunk = d == 2 ? 23 : 64;
            o.pool_rows = small ? MOST : 0;
            hunch_engine *e = open_engine_with(m, drafts[d], o), *fresh = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, MOST);
            if (d == 4) watch_drafter(e);
            size_t n = 150;
            for (int turn = 0; turn < TURNS; turn++) {
                const size_t shared = turn == 0 ? 0 : turn % 3 == 2 ? n / 2 : n; /* sometimes another text branches off this one */
                answer want = {0}, got = {0};
                if (turn > 0) n = shared + 20 + (size_t)(hn_splitmix(&rng) % 40);
                for (size_t i = shared; i < n; i++) ids[i] = (hunch_token)(hn_splitmix(&rng) % 512);
                hunch_request r;
                hunch_request_defaults(&r, m);
                r.prompt = ids;
                r.n_prompt = n;
                r.max_tokens = 30;
                r.ignore_eos = true;
                r.sampling = (hunch_sampling){.temperature = turn % 2 ? 0.7 : 0, .top_p = 1, .seed = (uint64_t)turn};
                finish(fresh, &r, &want); /* its own prefixes are found too, by plain decoding */
                hunch_engine_forget(fresh);
                finish(e, &r, &got);
                assert_same(&want, &got, drafts[d] ? drafts[d] : "plain");
                assert_true(got.restored % (uint64_t)o.page_rows == 0 || d % 2); /* drafters that need one row less */
                restored += got.restored;
                accepted += got.accepted;
                for (size_t i = 0; i < got.n; i++) ids[n++] = got.token[i]; /* the next turn continues from here */
                answer_free(&want);
                answer_free(&got);
            }
            assert_true(restored > 100 && (!drafts[d] || accepted > 0));
            assert_true(d != 4 || drafter_restored > 100); /* the draft model's states are found, too */
            hunch_engine_close(&e);
            hunch_engine_close(&fresh);
        }
    hunch_model_close(&m);
}

/* ---- memory for states -------------------------------------------------------------------------------------------------- */

/* Different texts of 200 tokens each; the number of rows of text `i` that come from the index. */
static uint64_t rows_of_text(hunch_engine *e, const hunch_model *m, int i) {
    hunch_token ids[200];
    uint64_t rng = 1000 + (uint64_t)i;
    answer got = {0};
    hunch_request r;
    for (int k = 0; k < 200; k++) ids[k] = (hunch_token)(hn_splitmix(&rng) % 512);
    hunch_request_defaults(&r, m);
    r.prompt = ids;
    r.n_prompt = 200;
    r.max_tokens = 5;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    finish(e, &r, &got);
    const uint64_t restored = got.restored;
    answer_free(&got);
    return restored;
}

/* With a limit the index keeps only the most recently used states; without one all of these. */
static void test_limit(void **state) {
    (void)state;
    enum { TEXTS = 6 };
    hunch_model *m = open_model(data_path(HYBRID), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_model_info info;
    hunch_engine_options o;
    hunch_error err;
    hunch_model_get_info(m, &info);
    hunch_engine_options_defaults(&o);
    o.context = 512;
    o.pool_rows = 4096;
    o.state_bytes = info.state_bytes * 7 / 2;
    hunch_engine *e = open_engine_with(m, NULL, o);
    assert_int_equal(hunch_engine_states(e), 3);
    int group = 0;
    hn_cache_group groups[HN_MODEL_GROUPS];
    const int n = hn_kv_groups(m->target.run, HN_BF16, groups, NULL);
    while (group < n && groups[group].kind != HN_CACHE_STATE) group++;
    for (int i = 0; i < TEXTS; i++) {
        assert_int_equal(rows_of_text(e, m, i), 0);
        assert_in_range(hn_cache_states_kept(e->cache, group), 1, 3);
    }
    assert_int_equal(rows_of_text(e, m, TEXTS - 1), 192);
    assert_int_equal(rows_of_text(e, m, 0), 0); /* whose states have been idle longest */
    assert_in_range(hn_cache_states_kept(e->cache, group), 1, 3);
    hunch_engine_close(&e);
    o.state_bytes = 0;
    e = open_engine_with(m, NULL, o);
    assert_int_equal(hunch_engine_states(e), 16);
    for (int i = 0; i < TEXTS; i++) rows_of_text(e, m, i);
    for (int i = 0; i < TEXTS; i++) assert_int_equal(rows_of_text(e, m, i), 192);
    hunch_engine_close(&e);
    o.state_bytes = info.state_bytes - 1;
    assert_int_equal(hunch_engine_open(&e, m, &o, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "state_bytes"));
    const char *draft = draft_model("", ""); /* whose states count, too */
    o.drafts = &draft;
    o.n_drafts = 1;
    o.state_bytes = 2 * info.state_bytes - 1;
    assert_int_equal(hunch_engine_open(&e, m, &o, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "draft models"));
    o.state_bytes = info.state_bytes * 7;
    o.n_drafts = 0;
    e = open_engine_with(m, draft, o);
    assert_int_equal(hunch_engine_states(e), 3);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_patterns), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_preemption),
                                       cmocka_unit_test(test_preempted_drafters), cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_prefixes), cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
