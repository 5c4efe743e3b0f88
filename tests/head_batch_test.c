/* SPDX-License-Identifier: Apache-2.0 */
/* head_batch_test.c - eight texts draft together: a level is one pass of the head (for P-EAGLE all levels are one pass, or as many as
 * their rows fill), rows pending since the previous round are in the first of them, and each text gets the same drafts as alone, with
 * the same probabilities, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/head/head_passes.h"
#include "engine/engine.h"
#include "fixture.h"
#include "random_head.h"

enum { SEQS = 8, DEPTH = 4, MOST_DEPTH = 20, CONTEXT = 128, TOKENS = 40, MOST_VERIFIED = HN_MAX_ROWS / SEQS - 1 };
#define TARGET "goldens-heads/targets/llama-a"

static const hn_drafter_ops *real;
static void (*real_embed)(const hn_exec *, const hn_rows *, const hn_weight *, float, hn_matrix);
static void (*real_top)(const hn_exec *, hn_count, hn_act, const hn_weight *, const hn_output_rows *, const hn_top *);
static int passes; /* since the last check */
static bool by_top; /* for heads that embed no token, or one for each gate; those here have one output matrix for all positions */

static void count_tops(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top) {
    if (ex->rank == 0 && by_top) passes++;
    real_top(ex, n, a, w, out, top);
}

/* A pass of a head embeds its rows' tokens once. */
static void count_passes(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x) {
    if (ex->rank == 0 && !by_top) passes++;
    real_embed(ex, rows, table, scale, x);
}

/* The drafts after a text of this many tokens. */
typedef struct draft_record {
    int n;
    int32_t token[MOST_DEPTH];
    float p[MOST_DEPTH];
} draft_record;
static draft_record (*records)[CONTEXT]; /* [sequence][tokens] */
static int together; /* levels at which all texts drafted */
static int full;     /* passes beyond the first of a level */

/* Rows of a block: all, unless none of them sees later ones. */
static int block_rows(const hn_arch *a, int depth) {
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].ahead) return a->draft_head.rows.block.n;
    return hn_head_in_order(&a->draft_head) ? a->draft_head.rows.block.n : depth + !a->draft_head.rows.block.root_drafts;
}

/* Checks the passes of a call: one; for blocks as many as they fill; if a pass drafts k tokens, one for each k
 * of them; with masks the rows of all texts, those of a text's masks in the pass of its root. */
static void check_passes(const hn_head_passes *h, int texts, int rows, int depth, int added) {
    const hn_head_desc *is = &h->model.arch.draft_head;
    const int k = h->span > 1 ? h->span : depth;
    if (is->rows.kind == HN_ROWS_BLOCK) {
        const int each = HN_MAX_ROWS / block_rows(&h->model.arch, depth);
        const int tokens_read = hn_head_in_order(is) ? 2 * depth + 1 : 0; /* what was drafted before each place, and once the candidates */
        assert_true(passes >= (added > 0) && passes <= (texts + each - 1) / each + tokens_read);
        return;
    }
    if (is->rows.kind != HN_ROWS_MASKS || rows <= HN_MAX_ROWS) {
        assert_true(passes >= (added > 0) && passes <= (added > 0 ? (depth + k - 1) / k : 0)); /* fewer where a text ends */
        return;
    }
    const int least = (rows + HN_MAX_ROWS - 1) / HN_MAX_ROWS, room = HN_MAX_ROWS - depth;
    assert_true(passes >= least && passes <= (rows + room - 1) / room);
    full += passes - 1;
}

/* Rows of the roots' pass. */
static int rows_to_run(const hn_head_passes *h, const hn_propose *p, int n, int depth) {
    int rows = 0;
    for (int i = 0; i < n; i++) rows += h->seq[p[i].seq].n_pending + (p[i].depth < depth ? p[i].depth : depth) - 1;
    return rows;
}

static int record_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    int before[HN_MAX_ROWS];
    for (int i = 0; i < n; i++) before[i] = p[i].tree->n_candidates;
    const hn_head_passes *head = d->state; /* the state of every head begins with it */
    const hn_head_desc *is = &head->model.arch.draft_head;
    const hn_steps_desc *steps = hn_head_steps(is);
    const bool masks = is->rows.kind == HN_ROWS_MASKS;
    const bool at_once = masks || (steps && hn_steps_at_once(steps)) || is->rows.kind == HN_ROWS_BLOCK || head->span > 1;
    const int depth = d->needs.max_depth, rows = masks && level == 0 ? rows_to_run(head, p, n, depth) : 0;
    passes = 0;
    const int added = real->propose(d, p, n, level);
    check_passes(head, n, rows, depth, added);
    const int each = at_once ? depth : 1;
    together += n == SEQS && added == SEQS * each ? each : 0;
    for (int i = 0; i < n; i++) {
        draft_record *h = &records[p[i].seq][p[i].text.n];
        if (level == 0) *h = (draft_record){0};
        for (int k = before[i]; k < p[i].tree->n_candidates; k++, h->n++) {
            if (!at_once) assert_int_equal(h->n, level); /* a chain: one a level */
            h->token[h->n] = p[i].tree->candidate[k].token;
            h->p[h->n] = p[i].tree->candidate[k].estimate;
        }
    }
    return added;
}

static void make_request(hunch_request *r, hunch_model *m, hunch_token prompt[16], int i) {
    const int n = 2 + i; /* all prompts together fit a pass */
    for (int k = 0; k < n; k++) prompt[k] = 3 + (i * 61 + k * 97) % (m->target.arch.vocab - 10);
    hunch_request_defaults(r, m);
    r->prompt = prompt;
    r->n_prompt = (size_t)n;
    r->max_tokens = TOKENS;
    r->ignore_eos = true;
    r->sampling = (hunch_sampling){.top_p = 1};
}

static hunch_engine *open_listening(hunch_model *m, const char *spec, int parallel, hn_drafter_ops *listening) {
    hunch_engine *e = open_engine(m, spec, parallel, 64, HUNCH_KV_DEFAULT, 16, CONTEXT);
    real = e->drafter[0].ops;
    *listening = *real;
    listening->propose = record_propose;
    e->drafter[0].ops = listening;
    return e;
}

/* Returns their number. few: the likeliest of all texts were verified, so a round may begin elsewhere, near the text's end. */
static int same_drafts(const draft_record *many, const draft_record *alone, bool few) {
    const int n = !few || alone->n < many->n ? alone->n : many->n;
    if (!few) assert_int_equal(many->n, alone->n);
    assert_memory_equal(many->token, alone->token, (size_t)n * sizeof *alone->token);
    assert_memory_equal(many->p, alone->p, (size_t)n * sizeof *alone->p);
    return n;
}

static void check_with(const char *target, const char *kind, const char *folder, int depth) {
    static draft_record all[SEQS][CONTEXT], alone[1][CONTEXT];
    static hunch_token prompt[SEQS][16];
    char spec[600];
    hn_drafter_ops listening;
    hunch_request r[SEQS];
    answer a[SEQS] = {0}, b = {0};
    hunch_model *m = open_model(data_path(target), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hn_ops counting = *m->target.backend->ops;
    real_embed = counting.embed;
    counting.embed = count_passes;
    real_top = counting.linear_top;
    counting.linear_top = count_tops;
    m->target.backend->ops = &counting; /* heads have the target's backend */
    snprintf(spec, sizeof spec, "%s:%s,depth=%d", kind, *folder == '/' ? folder : data_path(folder), depth);
    for (int i = 0; i < SEQS; i++) make_request(&r[i], m, prompt[i], i);
    memset(all, 0, sizeof all);
    records = all;
    together = full = 0;
    hunch_engine *e = open_listening(m, spec, SEQS, &listening);
    run_requests(e, r, SEQS, false, a);
    hunch_engine_close(&e);
    assert_true(together >= 4 * depth);
    records = alone;
    for (int i = 0; i < SEQS; i++) {
        int compared = 0;
        memset(alone, 0, sizeof alone);
        e = open_listening(m, spec, 1, &listening);
        run_requests(e, &r[i], 1, false, &b);
        assert_same(&b, &a[i], "eight together");
        for (int n = 0; n < CONTEXT; n++) compared += same_drafts(&all[i][n], &alone[0][n], depth > MOST_VERIFIED);
        assert_true(compared > TOKENS);
        answer_free(&b);
        hunch_engine_close(&e);
    }
    for (int i = 0; i < SEQS; i++) answer_free(&a[i]);
    hunch_model_close(&m);
}

static void check(const char *kind, const char *folder, int depth) {
    check_with(TARGET, kind, folder, depth);
}

static void test_eagle(void **state) {
    (void)state;
    check("eagle", "goldens-heads/eagle2-nobias-gqa/head", DEPTH);
}

static void test_eagle3(void **state) {
    (void)state;
    check("eagle3", "goldens-heads/eagle3-official-d2t/head", DEPTH);
}

/* Each row of a pass has clusters of its own. */
static void test_clusters(void **state) {
    (void)state;
    check("eagle3", head_write_form(&LLAMA_CLUSTERS, test_path("clusters")), DEPTH);
}

static void test_mtp(void **state) {
    (void)state;
    check("mtp", "goldens-heads/mtp-untied-bias/head", DEPTH);
}

/* All levels of eight texts in one pass, unless rows of their prompts are pending too. */
static void test_peagle(void **state) {
    (void)state;
    check("peagle", "goldens-heads/peagle-spec-2layers/head", 3);
    assert_true(full <= 1);
}

/* Eight roots with 15 masks each are two passes' rows. */
static void test_more_than_a_pass(void **state) {
    (void)state;
    check("peagle", "goldens-heads/peagle-norms/head", 16);
    assert_true(full > 4);
}

/* Blocks are run as a whole: eight blocks of eight rows are one pass, of sixteen rows two. JetSpec's are as short as the drafts: three need
 * four rows of its sixteen. */
static void test_blocks(void **state) {
    (void)state;
    check("dflash", "goldens-heads/dflashspec-windows/head", 3);
    check("dflash", "goldens-heads/dflash-default-ids/head", 3);
    check("jetspec", "goldens-heads/jetspec-automodel/head", 3);
    check("dspark", "goldens-heads/dspark-rnn/head", 3);
    check("dspark", "goldens-heads/dspark-deepspec/head", 3);
    check("domino", "goldens-heads/domino-early/head", 3);
    check("dflash2", "goldens-heads/dflash2spec-windows/head", 3);
    check("dart", "goldens-heads/dart-d2t/head", 3);
    check("pard", "goldens-heads/pard-llama-tied/head", 3);
    check("falcon", "goldens-heads/falcon-k3/head", DEPTH);
}

static void test_steps(void **state) {
    (void)state;
    check("hydra", "goldens-heads/hydra-prefix/head", 3);
    check("mlp", "goldens-heads/mlp-tied-5/head", DEPTH);
    by_top = true;
    check("mlp", "goldens-heads/mlp-arctic-lstm/head", DEPTH); /* each of its gates begins with the embedding */
    check("medusa", "goldens-heads/medusa-blockwise/head", 3); /* all positions of eight texts in one pass */
    check_with("goldens-heads/targets/meta-b", "meta-mtp", "goldens-heads/meta-3tokens/head", 2);
    by_top = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_eagle), cmocka_unit_test(test_eagle3),
                                       cmocka_unit_test(test_clusters), cmocka_unit_test(test_mtp),
                                       cmocka_unit_test(test_peagle), cmocka_unit_test(test_more_than_a_pass),
                                       cmocka_unit_test(test_blocks), cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
