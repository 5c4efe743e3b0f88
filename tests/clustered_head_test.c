/* SPDX-License-Identifier: Apache-2.0 */
/* clustered_head_test.c - draft heads whose outputs are in clusters: their logits are those of the same head without clusters, for the
 * tokens of the clusters whose centroids are best, which a head with the centroids as its output tells; with all clusters nothing differs.
 * Texts stay those of plain decoding, and a text drafts the same beside others as alone. Only the clusters' rows are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heads.h"
#include "command.h"

#include "random_head.h"

enum { SEQS = 6, TEXT = 24, MOST_OUTPUTS = 480 };
static const hunch_token text[TEXT] = {5, 77, 201, 9, 44, 260, 133, 8, 19, 202, 150, 3, 400, 31, 77, 5, 201, 60, 61, 62, 300, 9, 1, 44};
#define LLAMA HUNCH_TEST_DATA "/" HEADS_LLAMA

/* ---- the heads -------------------------------------------------------------------------------------------------------- */

typedef enum way { CLUSTERED, DENSE, CENTROIDS } way; /* the head; without clusters; with its centroids as outputs */

/* For the centroids' head the token of cluster c is 3 + c * 476 / clusters (random_head.h). */
static const char *write_way(const head_form *f, way as, bool own_output) {
    random_head h, scores;
    head_form form = *f;
    const char *to = test_path(as == CLUSTERED ? "clustered" : as == DENSE ? "dense" : "centroids");
    head_make(&h, f);
    if (as == DENSE) {
        head_drop(&h, "masked_embedding.centroids.weight");
        head_drop(&h, "masked_embedding.token_ordering");
    }
    if (as == CENTROIDS) {
        form.outputs = f->clusters;
        form.clusters = 0;
        head_make(&scores, &form);
        for (int i = 0; i < scores.n; i++) { /* the numbers of a random head depend on their place */
            head_tensor *t = &scores.tensor[i], *from = head_find(&h, t->name);
            if (!strcmp(t->name, "d2t")) continue;
            if (!strcmp(t->name, "lm_head.weight")) from = head_find(&h, "masked_embedding.centroids.weight");
            assert_int_equal(t->data.size, from->data.size);
            memcpy(t->data.at, from->data.at, t->data.size);
        }
        head_write(&scores, to);
        head_free(&scores);
        head_free(&h);
        return to;
    }
    if (!own_output) head_drop(&h, "lm_head.weight");
    head_write(&h, to);
    head_free(&h);
    return to;
}

typedef struct drafted {
    hunch_token token[4];
    double q[4];
    float logits[4][HEADS_VOCAB];
    int vocab;
} drafted;

static void take_logits(void *user, int level, const float *logits, int vocab) {
    drafted *d = user;
    d->vocab = vocab;
    memcpy(d->logits[level], logits, (size_t)vocab * sizeof *logits);
}

static void draft_after(drafted *d, hunch_model *m, const char *spec, int n, int levels) {
    hunch_draft_result r;
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    must(hunch_draft(e, text, (size_t)n, levels, -1, NULL, take_logits, d, &r, err));
    assert_int_equal(r.n, levels);
    for (int i = 0; i < levels; i++) d->token[i] = r.node[i].token, d->q[i] = r.node[i].q;
    hunch_free(r.node);
    hunch_engine_close(&e);
}

/* ---- by brute force --------------------------------------------------------------------------------------------------- */

static int token_of_cluster(const head_form *f, int cluster) {
    return f->clusters < f->vocab ? 3 + cluster * (f->vocab - 4) / f->clusters : cluster;
}

/* Whether a token is among those of the clusters whose centroids are best, of equal ones the first. */
static void find_inside(const head_form *f, const drafted *scores, bool inside[HEADS_VOCAB]) {
    const int size = f->outputs / f->clusters;
    bool taken[MOST_OUTPUTS] = {false};
    for (int i = 0; i < f->vocab; i++) inside[i] = false;
    for (int k = 0; k < f->clusters_used; k++) {
        int best = -1;
        for (int c = 0; c < f->clusters; c++) {
            const float *all = scores->logits[0];
            if (!taken[c] && (best < 0 || all[token_of_cluster(f, c)] > all[token_of_cluster(f, best)])) best = c;
        }
        taken[best] = true;
        for (int i = 0; i < size; i++) {
            const int output = (best * size + i) * 7 % f->outputs; /* as random_head.h orders them */
            inside[f->outputs < f->vocab ? 3 + output * (f->vocab - 4) / f->outputs : output] = true;
        }
    }
}

static void check_after(hunch_model *m, const head_form *f, const char *const spec[3], int n) {
    static drafted d, dense, scores;
    bool inside[HEADS_VOCAB];
    double sum = 0;
    int best = -1, count = 0;
    draft_after(&d, m, spec[CLUSTERED], n, 1);
    draft_after(&dense, m, spec[DENSE], n, 1);
    draft_after(&scores, m, spec[CENTROIDS], n, 1);
    find_inside(f, &scores, inside);
    for (int id = 0; id < f->vocab; id++) {
        const float want = inside[id] ? dense.logits[0][id] : -INFINITY;
        if (memcmp(&d.logits[0][id], &want, sizeof want) != 0)
            fail_msg("%s: after %d tokens the logit of %d is %g, expected %g", spec[0], n, id, (double)d.logits[0][id], (double)want);
        if (inside[id] && (best < 0 || want > d.logits[0][best])) best = id;
        sum += exp((double)want);
        count += inside[id];
    }
    assert_int_equal(count, f->outputs / f->clusters * f->clusters_used);
    assert_int_equal(d.token[0], best);
    assert_true(fabs(d.q[0] - exp((double)d.logits[0][best]) / sum) < 1e-5);
}

static void check_form(const head_form *f, bool own_output, const char *options, bool mapped) {
    char text_of[3][700];
    const char *spec[3];
    hunch_model *m = open_model_as(LLAMA, NULL, test_threads(), HUNCH_PRECISION_NATIVE, mapped);
    for (int as = 0; as < 3; as++) {
        snprintf(text_of[as], sizeof text_of[as], "eagle3:%s%s", write_way(f, (way)as, own_output), options);
        spec[as] = text_of[as];
    }
    for (int n = 3; n <= TEXT; n += 3) check_after(m, f, spec, n);
    hunch_model_close(&m);
}

static head_form full_form(int clusters, int used) {
    head_form f = LLAMA_CLUSTERS;
    f.outputs = f.vocab;
    f.clusters = clusters;
    f.clusters_used = used;
    return f;
}

/* Clusters of 8, of whole strips, of 15, of one; a single one. The output is its own or the target's. */
static void test_brute_force(void **state) {
    (void)state;
    const head_form strips = full_form(30, 4), odd = full_form(32, 5), single = full_form(1, 1), tokens = full_form(480, 64);
    check_form(&LLAMA_CLUSTERS, true, "", false);
    check_form(&LLAMA_CLUSTERS, true, ",weights=f32", false);
    check_form(&strips, true, ",weights=q4_0", false);
    check_form(&odd, true, ",weights=bf16", true);
    check_form(&odd, false, "", false);
    check_form(&odd, false, "", true);
    check_form(&single, true, "", false);
    check_form(&tokens, true, "", false);
}

/* All clusters of a row: the logits and drafts of the head without them, level after level. */
static void test_all_clusters(void **state) {
    (void)state;
    static drafted d, dense;
    char spec[2][700];
    head_form f = LLAMA_CLUSTERS;
    f.clusters_used = f.clusters;
    hunch_model *m = open_model(LLAMA, NULL, test_threads(), HUNCH_PRECISION_NATIVE);
    for (int as = 0; as < 2; as++) snprintf(spec[as], sizeof spec[as], "eagle3:%s", write_way(&f, (way)as, true));
    draft_after(&d, m, spec[CLUSTERED], 11, 4);
    draft_after(&dense, m, spec[DENSE], 11, 4);
    assert_memory_equal(d.token, dense.token, sizeof d.token);
    assert_memory_equal(d.logits, dense.logits, sizeof d.logits);
    for (int i = 0; i < 4; i++) assert_true(fabs(d.q[i] - dense.q[i]) < 1e-6);
    hunch_model_close(&m);
}

/* A pass reads the centroids, and of the output only as many rows as it computes. */
static void test_costs(void **state) {
    (void)state;
    uint64_t read[2], strip;
    double macs[2];
    const head_form f = full_form(30, 4); /* whole strips */
    hunch_model *m = open_model(LLAMA, NULL, 1, HUNCH_PRECISION_NATIVE);
    for (int as = 0; as < 2; as++) {
        char spec[700];
        snprintf(spec, sizeof spec, "eagle3:%s", write_way(&f, (way)as, true));
        hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
        const hn_head_passes *h = e->drafter[0].state;
        read[as] = h->model.weight_bytes;
        macs[as] = h->model.macs_per_row;
        strip = m->target.backend->matrix_bytes(m->target.backend, h->model.output.dtype, HN_STRIP, 64);
        hunch_engine_close(&e);
    }
    assert_int_equal(read[DENSE] - read[CLUSTERED], strip * (uint64_t)(30 - 4 - 2)); /* a cluster is a strip; 30 centroids are two */
    assert_true(macs[DENSE] - macs[CLUSTERED] == 64.0 * (480 - 64 - 30));
    hunch_model_close(&m);
}

/* ---- lossless, alone and in company ------------------------------------------------------------------------------------- */

static hunch_token prompt[SEQS][TEXT];

static void make_requests(hunch_request *r, const hunch_model *m, double temperature) {
    for (int i = 0; i < SEQS; i++) {
        for (int k = 0; k < TEXT; k++) prompt[i][k] = text[(k * (i + 1) + i) % TEXT];
        hunch_request_defaults(&r[i], m);
        r[i].prompt = prompt[i];
        r[i].n_prompt = (size_t)(2 + 3 * i);
        r[i].max_tokens = 20;
        r[i].ignore_eos = true;
        r[i].sampling = (hunch_sampling){.temperature = temperature, .top_p = 1, .seed = 70 + (uint64_t)i};
    }
}

/* parallel 1: one after the other. */
static uint64_t run(hunch_model *m, const char *spec, hunch_verify verify, double temperature, int parallel, answer out[SEQS]) {
    hunch_engine_options o;
    hunch_request r[SEQS];
    uint64_t accepted = 0;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = 128;
    o.page_rows = 16;
    o.verify = verify;
    hunch_engine *e = open_engine_with(m, spec, o);
    make_requests(r, m, temperature);
    for (int i = 0; i < SEQS; i += parallel) run_requests(e, r + i, parallel, true, out + i);
    for (int i = 0; i < SEQS; i++) accepted += out[i].accepted;
    hunch_engine_close(&e);
    return accepted;
}

static void same_answers(answer *want, answer *got, const char *what) {
    for (int i = 0; i < SEQS; i++) {
        assert_same(&want[i], &got[i], what);
        answer_free(&got[i]);
    }
}

/* The text and logits of plain decoding, whatever is drafted, for one text or several at a time. */
static void test_lossless(void **state) {
    (void)state;
    static const char *const options[] = {"depth=4,force=0.7", "depth=3,tree=dynamic,topk=3,total=9,force=0.6",
                                          "tree=mc_sim_7b_63,force=0.7", "depth=4,weights=q4_0+ngram,min=1"};
    const char *head = write_way(&LLAMA_CLUSTERS, CLUSTERED, true);
    hunch_model *m = open_model(LLAMA, NULL, test_threads(), HUNCH_PRECISION_NATIVE);
    for (int sampled = 0; sampled < 2; sampled++) {
        answer want[SEQS] = {{0}}, got[SEQS] = {{0}};
        const double temperature = sampled ? 0.9 : 0;
        (void)run(m, NULL, HUNCH_VERIFY_DEFAULT, temperature, 1, want);
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            for (int parallel = 1; parallel <= SEQS; parallel += SEQS - 1) {
                char spec[800];
                snprintf(spec, sizeof spec, "eagle3:%s,%s", head, options[i]);
                const uint64_t accepted = run(m, spec, HUNCH_VERIFY_DEFAULT, temperature, parallel, got);
                if (strstr(options[i], "force") && accepted < 5) fail_msg("%s: %d accepted", spec, (int)accepted);
                same_answers(want, got, spec);
            }
        for (int i = 0; i < SEQS; i++) answer_free(&want[i]);
    }
    hunch_model_close(&m);
}

/* Rules that need q, the head's distribution over its clusters: the text does not depend on the company, which would change it if q did.
 * At this temperature any token may come, and some drafts are accepted. */
static void test_company(void **state) {
    (void)state;
    static const struct {
        const char *options;
        hunch_verify verify;
    } cases[] = {{"depth=4", HUNCH_VERIFY_RATIO}, {"depth=3", HUNCH_VERIFY_BLOCK}, {"depth=3", HUNCH_VERIFY_TRAVERSAL}};
    const head_form f = full_form(32, 5);
    const char *head = write_way(&f, CLUSTERED, true);
    hunch_model *m = open_model(LLAMA, NULL, test_threads(), HUNCH_PRECISION_NATIVE);
    uint64_t accepted = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer alone[SEQS] = {{0}}, together[SEQS] = {{0}};
        char spec[800];
        snprintf(spec, sizeof spec, "eagle3:%s,%s", head, cases[i].options);
        accepted += run(m, spec, cases[i].verify, 20, 1, alone);
        (void)run(m, spec, cases[i].verify, 20, SEQS, together);
        same_answers(alone, together, spec);
        for (int k = 0; k < SEQS; k++) answer_free(&alone[k]);
    }
    assert_true(accepted > 5);
    hunch_model_close(&m);
}

/* ---- what is said of it ----------------------------------------------------------------------------------------------------- */

static void test_named(void **state) {
    (void)state;
    char spec[700];
    snprintf(spec, sizeof spec, "eagle3:%s", write_way(&LLAMA_CLUSTERS, CLUSTERED, true));
    hunch_model *m = open_model(LLAMA, NULL, 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, spec, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    if (!strstr(e->drafter[0].about, "; drafts 160 of 480 tokens, of each row those of 6 of 20 clusters, with the model's embedding; "))
        fail_msg("%s", e->drafter[0].about);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    result r = command("check", "-m", LLAMA, "--draft", spec, "--no-smoke");
    if (r.code != 0 || !strstr(r.out, "drafts 160, with the model's embedding and its own output, of each row those of 6 of 20 clusters\n"))
        fail_msg("%d: %s%s", r.code, r.out, r.err);
    result_free(&r);
    r = command("check", "-m", LLAMA, "--draft", spec, "--no-smoke", "--json");
    assert_non_null(strstr(r.out, "\"clusters\": 20"));
    assert_non_null(strstr(r.out, "\"clusters_used\": 6"));
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_brute_force), cmocka_unit_test(test_all_clusters),
                                       cmocka_unit_test(test_costs),       cmocka_unit_test(test_lossless),
                                       cmocka_unit_test(test_company),     cmocka_unit_test(test_named)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
