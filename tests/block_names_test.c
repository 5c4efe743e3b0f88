/* SPDX-License-Identifier: Apache-2.0 */
/* block_names_test.c - a head that drafts blocks drafts the same bits under every name that its publishers give to its parts: fc and its
 * norm as an encoder's (vLLM), the first layer as the middle one, the mask token's row in a file of its own (MiMo's mask_embedding.pt),
 * the key of whether the root's row drafts (vLLM's dspark_bonus_anchor). A mask's file that is damaged, of another token or of another
 * width is refused by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"

#include "hostile_head.h"

#include "format/torch_for_tests.h"

enum { DEPTH = 4, VOCAB = 480, HIDDEN = 64 };
static const hunch_token prompt[] = {1, 8, 200, 10, 8, 9, 77, 210, 8, 200, 10, 8, 9, 23, 55, 8, 200, 10};

typedef struct drafted {
    hunch_token token[DEPTH];
    float logits[DEPTH][VOCAB];
} drafted;

static void keep(void *user, int level, const float *logits, int vocab) {
    drafted *d = user;
    assert_true(level < DEPTH && vocab == VOCAB);
    memcpy(d->logits[level], logits, sizeof d->logits[level]);
}

static void draft(drafted *out, hunch_model *m, const char *path) {
    hunch_engine *e = open_engine(m, path, 1, 64, HUNCH_KV_DEFAULT, 16, 128);
    hunch_draft_result r;
    memset(out, 0, sizeof *out);
    must(hunch_draft(e, prompt, sizeof prompt / sizeof *prompt, DEPTH, -1, NULL, keep, out, &r, err));
    assert_int_equal(r.n, DEPTH);
    for (int i = 0; i < DEPTH; i++) out->token[i] = r.node[i].token;
    hunch_free(r.node);
    hunch_engine_close(&e);
}

static void rename_all(random_head *h, const char *from, const char *to) {
    for (int i = 0; i < h->n; i++) {
        char *name = h->tensor[i].name, rest[80];
        if (strncmp(name, from, strlen(from))) continue;
        snprintf(rest, sizeof rest, "%s", name + strlen(from));
        snprintf(name, sizeof h->tensor[i].name, "%.30s%.45s", to, rest);
    }
}

static void test_names(void **state) {
    (void)state;
    static const char *const other[][2][2] = {
        {{"fc.", "encoder.fc."}, {"hidden_norm.", "encoder.output_norm_enc."}},
        {{"fc.", "model.encoder.fc."}, {"hidden_norm.", "model.encoder.output_norm_enc."}},
        {{"layers.0.", "midlayer."}, {"", ""}}};
    hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_NATIVE);
    static drafted want, got;
    draft(&want, m, head_write_form(&LLAMA_DFLASH, path_of("head")));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        random_head h;
        make(&h, DFLASH);
        for (int k = 0; k < 2; k++) rename_all(&h, other[i][k][0], other[i][k][1]);
        if (i == 1) rename_all(&h, "layers.", "model.layers."), rename_all(&h, "norm.", "model.norm.");
        if (i == 1) rename_all(&h, "d2t", "model.d2t");
        json_object_del(h.config, "speculators_model_type"); /* the kind is found by its tensors */
        json_object_set_new(h.config, "num_hidden_layers", json_integer(2));
        json_object_set(h.config, "eagle_aux_hidden_state_layer_ids", json_object_get(h.config, "aux_hidden_state_layer_ids"));
        head_write(&h, path_of("other"));
        head_free(&h);
        draft(&got, m, path_of("other"));
        if (memcmp(&want, &got, sizeof want)) fail_msg("%s in the place of %s: other drafts", other[i][0][1], other[i][0][0]);
    }
    hunch_model_close(&m);
}

/* vLLM's key of whether the root's row drafts too says the opposite of speculators'. */
static void test_root_names(void **state) {
    (void)state;
    hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_NATIVE);
    static drafted of[2][2];
    for (int root = 0; root < 2; root++)
        for (int other = 0; other < 2; other++) {
            random_head h;
            make(&h, DFLASH);
            json_object_del(h.config, "sample_from_anchor");
            json_object_set_new(h.config, other ? "dspark_bonus_anchor" : "sample_from_anchor", json_boolean(other ? !root : root));
            head_write(&h, path_of("root"));
            head_free(&h);
            draft(&of[root][other], m, path_of("root"));
        }
    for (int root = 0; root < 2; root++) assert_memory_equal(&of[root][0], &of[root][1], sizeof of[root][0]);
    assert_memory_not_equal(&of[0][0], &of[1][0], sizeof of[0][0]);
    hunch_model_close(&m);
}

/* ---- the mask's own row ----------------------------------------------------------------------------------------------------- */

/* A tensor alone, [1, n]; or, with a token, a dictionary as torch.save writes one. */
static void write_mask(const char *to, const float *row, int n, const int64_t *token, const char *key) {
    const pk_tensor tensor = {"FloatStorage", "0", n, 0, 2, {1, n}, {n, 1}};
    bytes pickle = {0};
    zip_builder z = {0};
    char path[700];
    pk_raw(&pickle, token ? PK_START : "\x80\x02");
    if (token) {
        pk_text(&pickle, "mask_token_id");
        pk_int(&pickle, *token);
        pk_text(&pickle, key);
    }
    pk_put_tensor(&pickle, &tensor);
    pk_raw(&pickle, token ? PK_END : ".");
    zip_add(&z, "a/data.pkl", pickle.at, pickle.size);
    zip_add(&z, "a/data/0", row, (size_t)n * sizeof *row);
    zip_finish(&z);
    snprintf(path, sizeof path, "%s/mask_embedding.pt", to);
    test_file_write(path, z.b.at, z.b.size);
    bytes_free(&pickle);
    bytes_free(&z.b);
}

static void test_mask_file(void **state) {
    (void)state;
    hunch_model *m = open_model(LLAMA, "best", 1, HUNCH_PRECISION_NATIVE);
    static drafted without, want, got;
    random_head h;
    float row[HIDDEN];
    char file[700];
    draft(&without, m, head_write_form(&LLAMA_DFLASH, path_of("head")));
    make(&h, DFLASH);
    head_floats(&h, "", "mask_embedding", HIDDEN, 0);
    memcpy(row, head_find(&h, "mask_embedding")->data.at, sizeof row);
    head_write(&h, path_of("head"));
    draft(&want, m, path_of("head"));
    assert_memory_not_equal(&want, &without, sizeof want);
    head_drop(&h, "mask_embedding");
    head_write(&h, path_of("masked"));
    const int64_t token = LLAMA_DFLASH.mask_token, other = token - 1, none = -3;
    for (int way = 0; way < 2; way++) {
        write_mask(path_of("masked"), row, HIDDEN, way ? &token : NULL, "embedding");
        draft(&got, m, path_of("masked"));
        assert_memory_equal(&want, &got, sizeof want);
        snprintf(file, sizeof file, "%s/model.safetensors", path_of("masked")); /* the file of its weights by name */
        draft(&got, m, file);
        assert_memory_equal(&want, &got, sizeof want);
    }
    result r = command("convert", path_of("masked"), "-o", path_of("masked.gguf"), "--target", LLAMA);
    if (r.code) fail_msg("%s", r.err);
    result_free(&r);
    draft(&got, m, path_of("masked.gguf"));
    assert_memory_equal(&want, &got, sizeof want);
    hunch_model_close(&m);
    const char *spec = spec_at("dflash", path_of("masked"), "");
    write_mask(path_of("masked"), row, HIDDEN, &other, "embedding");
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "mask_embedding.pt: it is of token 476, expected the mask_token_id 477 of config.json");
    write_mask(path_of("masked"), row, HIDDEN, &none, "embedding");
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "mask_embedding.pt: its mask_token_id is not a token");
    write_mask(path_of("masked"), row, HIDDEN, &token, "vector");
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "mask_embedding.pt: expected a tensor, or a dictionary with one under");
    write_mask(path_of("masked"), row, HIDDEN - 1, &token, "embedding");
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "tensor mask_embedding has shape [63]; expected [64]");
    write_mask(path_of("masked"), row, HIDDEN, &token, "embedding");
    snprintf(file, sizeof file, "%s/mask_embedding.pt", path_of("masked"));
    bytes b = test_file_read(file);
    test_file_write(file, b.at, b.size / 2);
    spec_refused(HUNCH_REFUSED, LLAMA, spec, "mask_embedding.pt");
    bytes_free(&b);
    head_free(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_root_names), cmocka_unit_test(test_mask_file)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
