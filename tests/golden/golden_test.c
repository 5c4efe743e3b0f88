/* SPDX-License-Identifier: Apache-2.0 */
/* golden_test.c - f32 precision against the results of the reference implementations: logits, greedy texts, the
 * residual stream at every layer boundary, and the log-likelihood of real stories. Their sources:
 * tests/data/README.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "engine/engine.h"
#include "goldens.h"
#include "golden/golden.h"
#include "model/arch/ssm_desc.h"
#include "model/pass_private.h"
#include "ops/cpu_mem.h"

typedef struct kept_rows {
    float *logits;
    size_t rows, vocab;
} kept_rows;

static void keep_row(void *user, size_t position, const float *logits, int vocab) {
    kept_rows *k = user;
    k->vocab = (size_t)vocab;
    k->rows = position + 1;
    k->logits = realloc(k->logits, k->rows * k->vocab * sizeof(float));
    memcpy(k->logits + position * k->vocab, logits, k->vocab * sizeof(float));
}

static size_t argmax(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void check_greedy(hunch_engine *e, hunch_model *m, const hunch_token *ids, size_t n, const json_t *want,
                         size_t limit, const char *text) {
    answer a = {0};
    hunch_request r;
    if (limit > (size_t)e->context - n) limit = (size_t)e->context - n; /* the reference goes one token further */
    hunch_request_defaults(&r, m);
    r.prompt = ids;
    r.n_prompt = n;
    r.max_tokens = (int)limit;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    run_requests(e, &r, 1, false, &a);
    assert_true(a.n >= limit);
    for (size_t i = 0; i < limit; i++) assert_int_equal(a.token[i], json_integer_value(json_array_get(want, i)));
    if (text && limit == json_array_size(want)) assert_string_equal(a.text, text);
    answer_free(&a);
}

/* What a mixer keeps of the row at a slot, in the group of its k-th kind. */
static const float *kept_row(const hn_runner *r, int layer, int k, int slot) {
    const hn_kept_place at = r->groups.place[layer].kept[k];
    const hn_plain_units units = hn_cache_units(r->groups.cache, r->groups.first + at.group, at.index);
    const unsigned char *page = (const unsigned char *)hn_host(hn_cache_pool(r->groups.cache)) +
                                hn_cache_page_bytes(r->groups.cache) * (size_t)r->rows.table[at.group][slot / units.page_rows];
    return (const float *)(const void *)(page + units.row_bytes * (size_t)(slot % units.page_rows) + units.off);
}

/* Of prompt 3: the last rows of a convolution's inputs, oldest first, within 1e-5 of their size. */
static void check_inputs(const hn_runner *r, hn_source *f, int layer, int k, int n) {
    char name[40];
    snprintf(name, sizeof name, "state.3.conv.%d", layer);
    const golden_tensor want = get_golden(f, name); /* [width][taps - 1] */
    double most = 0, worst = 0;
    for (size_t i = 0; i < want.n; i++) {
        const int slot = n - (int)want.cols + (int)(i % want.cols);
        most = fmax(most, fabs((double)want.data[i]));
        worst = fmax(worst, fabs((double)kept_row(r, layer, k, slot)[i / want.cols] - (double)want.data[i]));
    }
    if (!(worst <= 1e-5 * fmax(1, most))) fail_msg("%s is off by %g of %g", name, worst, most);
}

/* The state behind prompt 3 of a state space layer: that of the grid, which the cache has, and the rows since then, within 1e-4. */
static void check_state(hn_runner *r, hn_source *f, int layer, int n) {
    const hn_ssm_desc *d = hn_ssm_of(&r->m->run.at[layer].mixer[0]);
    const hn_ssm net = {.heads = d->heads, .head_dim = d->head_dim, .groups = d->groups, .state = d->state};
    const hn_kept_place at = r->groups.place[layer].kept[0];
    const int group = r->groups.first + at.group, units = hn_cache_page_units(r->groups.cache, group), width = hn_ssm_width(&net);
    const hn_plain_units u = hn_cache_units(r->groups.cache, group, at.index);
    const int held = hn_grid_of(hn_cache_absorbed(r->groups.cache, 0, 0)), inner = d->heads * d->head_dim;
    const float *decay = hn_host_f32(*(hn_buf *)hn_tensor_place((hn_model *)(uintptr_t)r->m, (hn_tensor_id){HN_ROLE_SSM_DECAY, layer, 0}));
    char name[40];
    snprintf(name, sizeof name, "state.3.ssm.%d", layer);
    const golden_tensor want = get_golden(f, name); /* [heads][head_dim][state] */
    double most = 0, worst = 0;
    int pages;
    assert_int_equal(held, HN_GRID);
    const int32_t *table = hn_cache_pages(r->groups.cache, 0, group, &pages);
    for (int h = 0; h < d->heads; h++) {
        const int unit = u.first + h, g = h / (d->heads / d->groups);
        const unsigned char *page = (const unsigned char *)hn_host(hn_cache_pool(r->groups.cache)) +
                                    hn_cache_page_bytes(r->groups.cache) * (size_t)table[unit / units];
        const float *s = (const float *)(const void *)(page + u.unit_bytes * (size_t)(unit % units));
        for (int p = 0; p < d->head_dim; p++)
            for (int k = 0; k < d->state; k++) {
                double v = (double)s[k * width + p];
                for (int i = held; i < n; i++) {
                    const float *row = kept_row(r, layer, 2, i);
                    const double step = (double)row[inner + d->groups * d->state + h];
                    v = v * exp((double)decay[h] * step) + step * (double)row[h * d->head_dim + p] * (double)row[inner + g * d->state + k];
                }
                const double w = (double)want.data[(size_t)((h * d->head_dim + p) * d->state + k)];
                most = fmax(most, fabs(w));
                worst = fmax(worst, fabs(v - w));
            }
    }
    if (!(worst <= 1e-4 * fmax(1, most))) fail_msg("%s is off by %g of %g", name, worst, most);
}

/* What layers keep of prompt 3 that are no attention. */
static void check_kept(hn_runner *r, hn_source *f, int n) {
    for (int i = 0; i < r->m->run.n; i++) {
        const hn_layer_desc *d = &r->m->run.at[i];
        char name[40];
        snprintf(name, sizeof name, "state.3.conv.%d", i);
        if (hn_layer_is(d, &hn_mixer_short_conv)) check_inputs(r, f, i, 0, n);
        if (hn_layer_is(d, &hn_mixer_ssm)) check_inputs(r, f, i, 1, n), check_state(r, f, i, n);
        if (!hn_layer_is(d, &hn_mixer_short_conv) && !hn_layer_is(d, &hn_mixer_ssm)) assert_null(hn_source_find(f, name));
    }
}

/* Every boundary of the residual stream for prompt 3, through the runner that drafters will use. */
static void check_taps(hunch_model *m, hn_source *f, const hunch_token *ids, int n) {
    const hn_model *t = &m->target;
    hn_cache_group g[HN_MODEL_GROUPS];
    const int groups = hn_kv_groups(t->run, HN_F32, g, NULL);
    const hn_feature_set set = {{(1u << (t->arch.layers + 1)) - 1, 0, 0, 0}, true};
    hn_cache *cache = NULL;
    hn_runner *r = NULL;
    hn_row rows[HN_MAX_ROWS];
    const int seq = 0;
    g[0].page_rows = 64;
    must(hn_cache_open(&cache, t->backend, g, groups, 1, 128, 0, err));
    must(hn_runner_open(&r, t, cache, 0, 128, &set, err));
    hn_cache_seq_begin(cache, seq);
    for (int i = 0; i < n; i++) rows[i] = (hn_row){.token = ids[i], .parent = (int16_t)(i - 1), .logits = i % 2 == 0, .feature = true};
    const hn_pass_options more = {.n_certain = &n};
    must(hn_pass_reserve(r, rows, n, &seq, 1, &more, err));
    must(hn_pass_run_with(r, rows, n, &seq, 1, &more, err));
    for (int k = -1; k <= t->arch.layers; k++) {
        char name[40];
        if (k < 0)
            snprintf(name, sizeof name, "taps.3.post_norm");
        else
            snprintf(name, sizeof name, "taps.3.b_%d", k);
        const golden_tensor want = get_golden(f, name);
        double square = 0;
        for (size_t i = 0; i < want.n; i++) square += (double)want.data[i] * (double)want.data[i];
        const double size = sqrt(square / (double)want.n);
        for (int i = 0; i < n; i++) {
            const double d = largest_difference(hn_pass_feature(r, k < 0 ? HN_FEATURE_POST_NORM : k, i),
                                                want.data + (size_t)i * want.cols, want.cols);
            if (!(d <= 5e-4 * size)) fail_msg("%s row %d is off by %g of %g", name, i, d, size);
        }
    }
    check_kept(r, f, n);
    hn_runner_close(&r);
    hn_cache_close(&cache);
}

/* The folder's weights, from the folder or from the GGUF file that it is converted to. */
static hunch_model *open_golden_model(const char *folder, const char *isa, bool converted) {
    if (!converted) return open_model(data_path(folder), isa, 1, HUNCH_PRECISION_F32);
    char path[] = "/tmp/hunch-golden-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    must(hunch_convert(data_path(folder), path, NULL, err));
    hunch_model *m = open_model(path, isa, 1, HUNCH_PRECISION_F32);
    unlink(path);
    return m;
}

static void check_golden(const char *folder, const char *isa, bool converted) {
    char name[200];
    hunch_token ids[256];
    hunch_model *m = open_golden_model(folder, isa, converted);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 256);
    snprintf(name, sizeof name, "%s/golden.safetensors", folder);
    hn_source *f = NULL;
    must(hn_source_open_safetensors(&f, data_path(name), err));
    snprintf(name, sizeof name, "%s/golden.json", folder);
    json_t *g = json_load_file(data_path(name), 0, NULL);
    const json_t *prompts = json_object_get(g, "prompts");
    const double std = json_number_value(json_object_get(g, "logits_std"));
    assert_int_equal(json_array_size(prompts), 5);
    assert_true(std > 0);
    for (size_t p = 0; p < json_array_size(prompts); p++) {
        const json_t *q = json_array_get(prompts, p), *best = json_object_get(q, "argmax");
        const size_t n = ids_of(json_object_get(q, "ids"), ids);
        kept_rows k = {0};
        must(hunch_evaluate(e, ids, n, keep_row, &k, err));
        assert_int_equal(k.rows, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(argmax(k.logits + i * k.vocab, k.vocab), json_integer_value(json_array_get(best, i)));
        if (p == 2 || p == 4) {
            snprintf(name, sizeof name, "logits.%zu", p);
            const golden_tensor want = get_golden(f, name);
            const double d = largest_difference(k.logits, want.data, want.n);
            assert_int_equal(want.n, n * k.vocab);
            if (!(d <= 5e-4 * std))
                fail_msg("%s at %s: logits of prompt %zu differ by %g, std %g", folder, isa, p, d, std);
        }
        const json_t *greedy = json_object_get(q, "greedy");
        check_greedy(e, m, ids, n, greedy, json_array_size(greedy), NULL);
        if (p == 3) check_taps(m, f, ids, (int)n);
        free(k.logits);
    }
    json_decref(g);
    hn_source_close(&f);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* One line of a JSON-lines file at a time. */
static json_t *next_line(FILE *f) {
    static char line[1 << 18];
    return fgets(line, sizeof line, f) ? json_loads(line, 0, NULL) : NULL;
}

static void check_story_model(const char *name, const char *file, const char *isa) {
    char path[200];
    hunch_token ids[600];
    hunch_model *m = open_model(data_path(file), isa, 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 0);
    snprintf(path, sizeof path, "models/%s/golden.jsonl", name);
    FILE *f = fopen(data_path(path), "r");
    int seen = 0;
    assert_non_null(f);
    for (json_t *q; (q = next_line(f)); json_decref(q), seen++) {
        const json_t *greedy = json_object_get(q, "greedy_ids"), *want = json_object_get(q, "logits_after_prompt");
        const size_t n = ids_of(json_object_get(q, "prompt_ids"), ids);
        kept_rows k = {0};
        must(hunch_evaluate(e, ids, n, keep_row, &k, err));
        for (size_t i = 0; want && i < k.vocab; i++) {
            const double d = fabs((double)k.logits[(n - 1) * k.vocab + i] - json_number_value(json_array_get(want, i)));
            if (!(d < 1e-3)) fail_msg("%s at %s: logit %zu off by %g", name, isa, i, d);
        }
        check_greedy(e, m, ids, n, greedy, light() ? 20 : json_array_size(greedy),
                     json_string_value(json_object_get(q, "greedy_text")));
        free(k.logits);
    }
    assert_int_equal(seen, 8);
    fclose(f);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void check_likelihood(const char *name, const char *file) {
    char path[200];
    hunch_token ids[2048];
    hunch_model *m = open_model(data_path(file), "best", test_threads(), HUNCH_PRECISION_F32);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 0);
    snprintf(path, sizeof path, "models/%s/nll.jsonl", name);
    FILE *f = fopen(data_path(path), "r");
    int seen = 0;
    assert_non_null(f);
    for (json_t *q; (q = next_line(f)); json_decref(q), seen++) {
        likelihood l = {ids, ids_of(json_object_get(q, "ids"), ids), 0, 0};
        const double want = json_number_value(json_object_get(q, "nll_sum"));
        assert_int_equal(json_integer_value(json_object_get(q, "n_scored")), l.n - 1);
        must(hunch_evaluate(e, ids, l.n, likelihood_row, &l, err));
        if (!(fabs(l.nll - want) < 1e-4 * want)) fail_msg("%s: nll %.6f, reference %.6f", name, l.nll, want);
    }
    assert_int_equal(seen, 5);
    fclose(f);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* What a device does not run yet it says. */
static bool device_refuses(const char *folder) {
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options_defaults(&o);
    o.device = getenv("HUNCH_TEST_DEVICE");
    o.precision = HUNCH_PRECISION_F32;
    const hunch_status st = hunch_model_open(&m, data_path(folder), &o, &err);
    if (st && !(st == HUNCH_REFUSED && strstr(err.message, "--device cpu"))) fail_msg("%s", err.message);
    hunch_model_close(&m);
    return st != HUNCH_OK;
}

/* 8-bit floats are no type of a GGUF. */
static bool has_no_gguf(const char *folder) {
    return strstr(folder, "-fp8");
}

/* README: "Logits in f32 precision are those of the reference implementation within 5e-4 of their standard
 * deviation." */
/* README: "`hunch convert` keeps a folder's weights, tokenizer, defaults and logits." */
static void test_transformers(void **state) {
    (void)state;
    const char *isa[HN_ISA_COUNT];
    static char folders[MOST_GOLDENS][GOLDEN_NAME];
    const int n_folders = golden_models(golden_any, folders);
    const char *device = getenv("HUNCH_TEST_DEVICE"), *only = getenv("HUNCH_TEST_ONLY");
    for (int n = levels(isa), i = 0; i < n; i++)
        for (int f = 0; f < n_folders; f++) {
            if (only && !strstr(folders[f], only)) continue;
            if (device && device_refuses(folders[f])) continue;
            if (light() && (device ? f % 4 != 0 : f % n != i)) continue; /* each at one level */
            check_golden(folders[f], isa[i], false);
            /* files are read in the same way at every level: once is enough */
            if (i == n - 1 && !has_no_gguf(folders[f]) && !device) check_golden(folders[f], isa[i], true);
        }
}

static void test_stories(void **state) {
    (void)state;
    const char *isa[HN_ISA_COUNT];
    for (int n = levels(isa), i = light() ? n - 1 : 0; i < n; i++) {
        check_story_model("stories260K", "models/stories260K/stories260K.f32.gguf", isa[i]);
        check_story_model("stories260K", "models/stories260K/hf", isa[i]);
        check_story_model("babyllama105", "models/babyllama105/babyllama105.f32.gguf", isa[i]);
    }
}

static void test_likelihood(void **state) {
    (void)state;
    check_likelihood("stories260K", "models/stories260K/stories260K.f32.gguf");
    check_likelihood("babyllama105", "models/babyllama105/hf");
}

int main(void) {
    const char *only = getenv("HUNCH_TEST_ONLY"); /* a part of a golden's name, or stories */
    const struct CMUnitTest one[] = {only && !strcmp(only, "stories") ? (struct CMUnitTest)cmocka_unit_test(test_stories)
                                                                       : (struct CMUnitTest)cmocka_unit_test(test_transformers)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_transformers), cmocka_unit_test(test_stories),
                                       cmocka_unit_test(test_likelihood)};
    if (only) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
