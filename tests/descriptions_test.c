/* SPDX-License-Identifier: Apache-2.0 */
/* descriptions_test.c - what every golden folder and GGUF is described as, member by member, is what tests/data/descriptions.txt says: a
 * change of the readers shows in its diff. Members that are 0, or as those of the layer before, are not named; of a GGUF that convert wrote
 * those lines that differ from its folder's. After a change that is meant: descriptions_test --write tests/data/descriptions.txt */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <unistd.h>

#include "base/mem.h"
#include "convert/convert.h"
#include "convert/head_to_gguf.h"
#include "draft/head/head_drafter.h"
#include "draft/head/open/head_form.h"
#include "draft/head/open/head_kind.h"
#include "fixture.h"
#include "model/mixers.h"

/* ---- members ------------------------------------------------------------------------------------------------------------ */

typedef struct member {
    const char *name;
    size_t at;
    enum { INT = 1, BOOL, FLOAT, REAL, TEXT } type;
} member;
#define OF(T, type, field) {#field, offsetof(T, field), type}
#define MODEL(type, field) OF(hn_arch, type, field)
#define LAYER(type, field) OF(hn_layer_desc, type, field)
#define TURNS(type, field) OF(hn_rotation, type, field)
#define HEAD(type, field) OF(hn_head_desc, type, field)

static const member of_model[] = {
    MODEL(INT, layers), MODEL(INT, hidden), MODEL(INT, vocab), MODEL(INT, context), MODEL(FLOAT, norm_eps), MODEL(FLOAT, embed_scale),
    MODEL(FLOAT, residual_scale), MODEL(FLOAT, logit_scale), MODEL(FLOAT, logit_cap), MODEL(BOOL, tied), MODEL(INT, rotations),
    MODEL(BOOL, rope_interleaved), MODEL(TEXT, files.body), MODEL(TEXT, files.head), MODEL(INT, files.first_block),
    MODEL(TEXT, files.first_layer), MODEL(BOOL, files.rows_in_pairs), MODEL(BOOL, files.norms_less_one), MODEL(BOOL, files.shared_modules),
    MODEL(INT, files.next_layers), MODEL(INT, files.steps.resblocks), MODEL(INT, files.steps.first_resblock),
    MODEL(INT, files.steps.resblock_stride), MODEL(BOOL, files.steps.inside), MODEL(BOOL, files.steps.fused_gates),
    MODEL(INT, files.shared_experts), MODEL(INT, files.first_experts), MODEL(INT, files.sparse_step), MODEL(INT, files.gating),
    MODEL(INT, files.choice), MODEL(REAL, files.logit_divisor), MODEL(BOOL, files.yarn_exact), MODEL(BOOL, files.yarn_scores),
    MODEL(REAL, sampling.temperature), MODEL(INT, sampling.top_k), MODEL(REAL, sampling.top_p), MODEL(REAL, sampling.min_p),
    MODEL(REAL, sampling.repetition_penalty), MODEL(INT, norms), MODEL(BOOL, norm_biases), MODEL(BOOL, output_bias),
    {0}};
static const member of_layer[] = {
    LAYER(FLOAT, mixer[0].times), LAYER(FLOAT, mixer[1].times), LAYER(INT, input), LAYER(INT, heads), LAYER(INT, kv_heads),
    LAYER(INT, head_dim), LAYER(INT, window), LAYER(INT, first), LAYER(BOOL, ahead), LAYER(FLOAT, attention_scale), LAYER(BOOL, qkv_bias),
    LAYER(BOOL, o_bias), LAYER(BOOL, qk_norm), LAYER(BOOL, v_norm), LAYER(BOOL, v_is_k), LAYER(INT, kv_back), LAYER(BOOL, sinks),
    LAYER(INT, rotation), LAYER(BOOL, fused_qkv), LAYER(BOOL, post_norms), LAYER(BOOL, gate.in_q), LAYER(BOOL, gate.of_numbers),
    LAYER(BOOL, gate.of_heads), LAYER(BOOL, gate.softplus), LAYER(INT, plain_unit), LAYER(INT, ffn_input),
    LAYER(FLOAT, query_scale.times), LAYER(INT, query_scale.span), LAYER(INT, query_scale.more), LAYER(BOOL, hybrid), LAYER(INT, ffn),
    LAYER(FLOAT, ffn_times), LAYER(INT, ffn_width), LAYER(BOOL, fused_gate_up), LAYER(BOOL, gate_up_bias), LAYER(BOOL, down_bias),
    LAYER(INT, token_input), LAYER(BOOL, scaled), LAYER(INT, experts.count), LAYER(INT, experts.used), LAYER(INT, experts.width),
    LAYER(BOOL, experts.sigmoid), LAYER(BOOL, experts.normalised), LAYER(BOOL, experts.bias), LAYER(INT, experts.groups),
    LAYER(INT, experts.groups_used), LAYER(BOOL, experts.largest), LAYER(FLOAT, experts.scale), LAYER(INT, experts.shared_width),
    LAYER(BOOL, experts.shared_gate), LAYER(BOOL, experts.stacked), LAYER(BOOL, experts.biases), LAYER(FLOAT, experts.limit),
    LAYER(FLOAT, experts.alpha), LAYER(BOOL, experts.single), LAYER(FLOAT, experts.sum_more), LAYER(FLOAT, experts.score_cap),
    LAYER(BOOL, experts.shared_bias), LAYER(BOOL, experts.stacks), LAYER(INT, narrow), LAYER(BOOL, norm_rows), LAYER(BOOL, norm_late),
    LAYER(FLOAT, ffn_limit), LAYER(FLOAT, expert_limit), {0}};
static const member of_rotation[] = {
    TURNS(INT, first), TURNS(INT, dims), TURNS(INT, scaling.kind), TURNS(REAL, scaling.theta), TURNS(REAL, scaling.factor),
    TURNS(REAL, scaling.original), TURNS(REAL, scaling.low), TURNS(REAL, scaling.high), TURNS(REAL, scaling.fast),
    TURNS(REAL, scaling.slow), TURNS(BOOL, scaling.whole), TURNS(REAL, scaling.mscale), TURNS(REAL, scaling.mscale_all),
    TURNS(REAL, scaling.amplitude), TURNS(INT, scaling.pairs), TURNS(FLOAT, scale), {0}};
static const member of_head[] = {
    HEAD(INT, input.stream), HEAD(INT, input.features), HEAD(INT, input.feature_width), HEAD(INT, input.embeddings),
    HEAD(BOOL, input.own_embedding), HEAD(INT, rows.kind), HEAD(INT, output.kind), HEAD(INT, output.norm), HEAD(BOOL, output.own),
    HEAD(REAL, min_p), {0}};
/* Of the kinds of each stage that have more. */
static const member of_input[][4] = {
    [HN_STREAM_JOINT] = {HEAD(BOOL, input.joint.fc_bias), HEAD(BOOL, input.joint.norms), HEAD(BOOL, input.joint.scaled)},
    [HN_STREAM_FEATURE] = {HEAD(BOOL, input.feature.fc_bias), HEAD(BOOL, input.feature.norm_all), HEAD(BOOL, input.feature.norm_each)},
    [HN_STREAM_CONTEXT] = {HEAD(BOOL, input.context.fc_bias), HEAD(BOOL, input.context.scaled)},
    [HN_STREAM_SUM] = {HEAD(BOOL, input.sum.fc_bias), HEAD(FLOAT, input.sum.scale)},
    [HN_STREAM_STATE] = {HEAD(INT, input.state.offset)}};
static const member of_rows[][9] = {
    [HN_ROWS_SPAN] = {HEAD(INT, rows.span)},
    [HN_ROWS_MASKS] = {HEAD(INT, rows.masks.input), HEAD(INT, rows.masks.levels), HEAD(INT, rows.masks.token)},
    [HN_ROWS_BLOCK] = {HEAD(INT, rows.block.n), HEAD(INT, rows.block.levels), HEAD(BOOL, rows.block.root_drafts),
                       HEAD(BOOL, rows.block.windows_of_root), HEAD(BOOL, rows.block.mask_row), HEAD(INT, rows.block.mask_token),
                       HEAD(INT, rows.block.conv.taps), HEAD(INT, rows.block.conv.group)},
    [HN_ROWS_STEPS] = {HEAD(INT, rows.steps.kind), HEAD(INT, rows.steps.n), HEAD(BOOL, rows.steps.one_output),
                       HEAD(BOOL, rows.steps.output_bias)},
    [HN_ROWS_BORROWED] = {HEAD(INT, rows.borrowed.position), HEAD(INT, rows.borrowed.window_layer), HEAD(INT, rows.borrowed.full_layer)}};
static const member of_resblocks[] = {HEAD(INT, rows.steps.resblocks.n), HEAD(BOOL, rows.steps.resblocks.bias), {0}},
    of_own_state[] = {HEAD(INT, rows.steps.own_state.width), HEAD(BOOL, rows.steps.own_state.tied),
                      HEAD(BOOL, rows.steps.own_state.scale_input), {0}};
static const member of_output[][5] = {
    [HN_OUTPUT_CLUSTERS] = {HEAD(INT, output.clusters.n), HEAD(INT, output.clusters.used)},
    [HN_OUTPUT_MARKOV] = {HEAD(INT, output.markov.kind), HEAD(INT, output.markov.rank), HEAD(INT, output.markov.confidence)},
    [HN_OUTPUT_SELECTOR] = {HEAD(INT, output.selector.rank), HEAD(INT, output.selector.candidates)},
    [HN_OUTPUT_PREFIX] = {HEAD(INT, output.prefix.state), HEAD(INT, output.prefix.width), HEAD(INT, output.prefix.plain),
                          HEAD(INT, output.prefix.pool)}};

/* ---- in words ----------------------------------------------------------------------------------------------------------- */

static void value_of(const member *m, const void *of, char out[100]) {
    const char *at = (const char *)of + m->at, *text = NULL;
    int n = 0;
    bool is = false;
    float f = 0;
    double v = 0;
    switch (m->type) {
    case INT: memcpy(&n, at, sizeof n), snprintf(out, 100, "%d", n); break;
    case BOOL: memcpy(&is, at, sizeof is), snprintf(out, 100, "%d", is); break;
    case FLOAT: memcpy(&f, at, sizeof f), snprintf(out, 100, "%.7g", (double)f); break;
    case REAL: memcpy(&v, at, sizeof v), snprintf(out, 100, "%.10g", v); break;
    case TEXT: memcpy(&text, at, sizeof text), snprintf(out, 100, "%s", text ? text : "0"); break;
    }
}

/* A line of members, those that are others than `before` (NULL: than 0); no line: there are none. */
static void put_members(FILE *f, const char *what, const member *m, const void *of, const void *before) {
    bool begun = false;
    for (; m->type; m++) {
        char value[100], other[100] = "0";
        value_of(m, of, value);
        if (before) value_of(m, before, other);
        if (!strcmp(value, other)) continue;
        fprintf(f, "%s %s=%s", begun ? "" : what, m->name, value);
        begun = true;
    }
    if (begun) fputc('\n', f);
}

static const char *name_of(const hn_mixer_kind *kind) {
#define NAMED(NAME) \
    if (kind == &hn_mixer_##NAME) return #NAME;
    HN_MIXERS(NAMED)
    return NULL;
}

static void put_mixers(FILE *f, const hn_layer_desc *l, const hn_layer_desc *before) {
    for (int k = 0; k < hn_layer_mixers(l); k++) {
        const hn_mixer_desc *x = &l->mixer[k];
        if (before && !memcmp(x, &before->mixer[k], sizeof *x)) continue;
        fprintf(f, "  mixer %s", name_of(x->kind));
        for (int i = 0; i < HN_MIXER_NUMBERS; i++) fprintf(f, " %d", x->own[i]);
        fputc('\n', f);
    }
}

/* Sums: libraries differ in a power's last bit. */
static void put_rotation(FILE *f, const hn_rotation *r) {
    double sum = 0, sum_long = 0;
    put_members(f, " rotation", of_rotation, r, NULL);
    for (int i = 0; i < r->dims / 2; i++) sum += r->freq[i], sum_long += r->freq_long ? r->freq_long[i] : 0;
    fprintf(f, "  frequencies %.9g %.9g\n", sum, sum_long);
}

static void put_head(FILE *f, const hn_head_desc *d, const hn_head_taps *taps) {
    const hn_steps_desc *steps = hn_head_steps(d);
    put_members(f, " head", of_head, d, NULL);
    put_members(f, "  input", of_input[d->input.stream], d, NULL);
    put_members(f, "  rows", of_rows[d->rows.kind], d, NULL);
    if (steps && hn_steps_resblocks(steps)) put_members(f, "  steps", of_resblocks, d, NULL);
    if (steps && hn_steps_own_state(steps)) put_members(f, "  steps", of_own_state, d, NULL);
    put_members(f, "  output", of_output[d->output.kind], d, NULL);
    if (taps->n) fputs("  states", f);
    for (int i = 0; i < taps->n; i++) fprintf(f, " %d%s", taps->boundary[i], i == taps->n - 1 ? "\n" : "");
}

static char *description(const hn_arch *a, const hn_head_taps *taps) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    put_members(f, " model", of_model, a, NULL);
    for (int i = 0; i < a->rotations; i++) put_rotation(f, &a->rotation[i]);
    for (int i = 0; i < a->layers && a->layer; i++) {
        char what[40];
        snprintf(what, sizeof what, " layer %d", i);
        put_members(f, what, of_layer, &a->layer[i], i ? &a->layer[i - 1] : NULL);
        put_mixers(f, &a->layer[i], i ? &a->layer[i - 1] : NULL);
    }
    if (hn_arch_is_head(a)) put_head(f, &a->draft_head, taps);
    fclose(f);
    return text;
}

/* ---- files -------------------------------------------------------------------------------------------------------------- */

static char *model_description(const char *path) {
    hn_source *src;
    hn_arch a;
    must(hn_source_open(&src, path, err));
    must(hn_arch_read(&a, src, err));
    char *text = description(&a, &(hn_head_taps){0});
    hn_arch_fini(&a);
    hn_source_close(&src);
    return text;
}

static char *head_description(const char *path, const char *kind, const hn_arch *target) {
    const hn_target_info info = {
        .vocab = target->vocab, .hidden = target->hidden, .layers = target->layers, .context = target->context};
    char nothing[] = "";
    hn_spec spec = {.text = nothing, .kind = kind, .path = path};
    hn_head_taps taps = {0};
    hn_source *src;
    hn_arch a = {0};
    must(hn_source_open_head(&src, path, err));
    const hn_head_names names = hn_head_find_names(src);
    must(hn_head_read(&a, src, &names, target, err));
    must(hn_drafter_named(kind)->head->describe(&a, src, &names, &spec, &info, &taps, err));
    char *text = description(&a, &taps);
    hn_arch_fini(&a);
    hn_source_close(&src);
    return text;
}

/* A folder's description, and the lines of its GGUF's (NULL: convert refuses it) that it does not have. */
static void put_pair(FILE *f, const char *name, char *folder, char *gguf) {
    fprintf(f, "%s\n%s in GGUF%s\n", name, folder, gguf ? "" : ": none");
    char *rest = gguf;
    for (char *line; rest && *rest && (line = strsep(&rest, "\n"));) {
        char whole[4000];
        snprintf(whole, sizeof whole, "%s\n", line);
        if (!strstr(folder, whole)) fputs(whole, f);
    }
    free(folder);
    free(gguf);
}

static void put_model(FILE *f, const char *name, const char *out) {
    char path[300];
    snprintf(path, sizeof path, "%s", data_path(name));
    const bool converted = hn_convert(path, out, NULL) == HUNCH_OK;
    put_pair(f, name, model_description(path), converted ? model_description(out) : NULL);
}

static void target_read(hn_arch *a, const char *path) {
    hn_source *src;
    must(hn_source_open(&src, path, err));
    must(hn_arch_read(a, src, err));
    hn_source_close(&src);
}

static void put_head_of(FILE *f, const char *name, const char *path, const char *whose, const char *out) {
    const char *kind;
    hn_source *src;
    hn_arch target;
    target_read(&target, whose);
    must(hn_source_open_head(&src, path, err));
    must(hn_head_kind(src, &kind, err));
    kind = hn_drafter_named(kind)->name;
    must(hn_head_to_gguf(src, kind, whose, HN_WEIGHT_TYPES, out, NULL, NULL, err));
    hn_source_close(&src);
    put_pair(f, name, head_description(path, kind, &target), head_description(out, kind, &target));
    hn_arch_fini(&target);
}

static void put_golden_head(FILE *f, const char *name, const char *out) {
    char path[600], whose[600], file[300];
    snprintf(file, sizeof file, "%s/golden.json", name);
    json_t *golden = json_load_file(data_path(file), 0, NULL);
    snprintf(path, sizeof path, "%s/%s", data_path(name), json_string_value(json_object_get(golden, "head")));
    snprintf(whose, sizeof whose, "%s/%s", data_path(name), json_string_value(json_object_get(golden, "target")));
    put_head_of(f, name, path, whose, out);
    json_decref(golden);
}

/* The blocks in a model's own file, or none. */
static char *own_description(const char *path) {
    hn_source *src;
    hn_arch target, a = {0};
    hn_head_names names;
    char *text = NULL;
    must(hn_source_open(&src, path, err));
    must(hn_arch_read(&target, src, err));
    if (hn_head_find_own(src, &target, &names)) {
        must(hn_head_read_own(&a, src, &names, &target, err));
        text = description(&a, &(hn_head_taps){0});
    }
    hn_arch_fini(&a);
    hn_arch_fini(&target);
    hn_source_close(&src);
    return text;
}

/* A model, with what its own file has of a draft head; or an assistant of the one whose name it begins with. */
static void put_golden(FILE *f, const char *name, const char *out) {
    char path[300], whose[300];
    const char *end = strstr(name, "-assistant");
    snprintf(path, sizeof path, "%s", data_path(name));
    snprintf(whose, sizeof whose, "%.*s", (int)(strlen(path) - strlen("-assistant")), path);
    if (end) {
        put_head_of(f, name, path, whose, out);
        return;
    }
    put_model(f, name, out);
    char *own = own_description(path), title[300];
    snprintf(title, sizeof title, "%s: its draft head", name);
    if (own) put_pair(f, title, own, own_description(out));
}

static int in_order(const void *a, const void *b) { return strcmp(a, b); }

/* Everything, in the order of names. */
static void put_all(FILE *f) {
    static const char *const folders[] = {"goldens", "goldens-heads"},
        *const files[] = {"cases/ollama-qwen35/model.gguf", "models/babyllama105/babyllama105.q8_0.gguf",
                          "models/stories260K/stories260K.f16.gguf"};
    char out[] = "/tmp/hunch_descriptions_XXXXXX";
    close(mkstemp(out));
    for (int k = 0; k < 2; k++) {
        char names[120][100];
        int n = 0;
        DIR *all = opendir(data_path(folders[k]));
        assert_non_null(all);
        for (struct dirent *entry; (entry = readdir(all));) {
            snprintf(names[n], sizeof *names, "%s/%.60s", folders[k], entry->d_name);
            char file[120];
            snprintf(file, sizeof file, k ? "%s/golden.json" : "%s/config.json", names[n]);
            if (access(data_path(file), F_OK) == 0) assert_true(++n < 120);
        }
        closedir(all);
        qsort(names, (size_t)n, sizeof *names, in_order);
        for (int i = 0; i < n; i++) (k ? put_golden_head : put_golden)(f, names[i], out);
    }
    unlink(out);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text = model_description(data_path(files[i]));
        fprintf(f, "%s\n%s", files[i], text);
        free(text);
    }
}

static void test_descriptions(void **state) {
    (void)state;
    char *text = NULL, line[4000], title[4000] = "";
    size_t size;
    FILE *f = open_memstream(&text, &size), *expected = fopen(data_path("descriptions.txt"), "r");
    assert_non_null(expected);
    put_all(f);
    fclose(f);
    for (char *rest = text, *is; (is = strsep(&rest, "\n")) && *is;) {
        if (!fgets(line, sizeof line, expected)) *line = '\0';
        line[strcspn(line, "\n")] = '\0';
        if (*is != ' ') snprintf(title, sizeof title, "%s", is);
        if (strcmp(is, line) != 0)
            fail_msg("%s:\nis       %s\nexpected %s\nif it is meant: descriptions_test --write FILE", title, is, line);
    }
    assert_null(fgets(line, sizeof line, expected));
    fclose(expected);
    free(text);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_descriptions)};
    if (argc != 3 || strcmp(argv[1], "--write") != 0) return cmocka_run_group_tests(tests, NULL, NULL);
    FILE *f = fopen(argv[2], "w");
    if (!f) return 1;
    put_all(f);
    return fclose(f) != 0;
}
