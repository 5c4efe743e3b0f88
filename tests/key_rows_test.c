/* SPDX-License-Identifier: Apache-2.0 */
/* key_rows_test.c - the rows of all families: each is sound, no key is written twice, and what is written of a folder reads back as the
 * same description, member by member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>

#include "model/folder_for_tests.h"
#include "fixture.h"
#include "model/arch/delta_desc.h"
#include "model/arch/latent_desc.h"
#include "schema/key_order.h"

#define LISTED(NAME) &hn_family_##NAME,
static const hn_family *const families[] = {HN_FAMILIES(LISTED)};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static void check_row(const hn_family *f, const hn_key_row *k) {
    char word[96];
    const bool number = k->type == HN_KEY_INT || k->type == HN_KEY_FLOAT || k->type == HN_KEY_REAL || k->type == HN_KEY_BOOL;
    if (k->of == HN_OF_MODEL) assert_true(k->at + hn_key_bytes(k->type) <= sizeof(hn_arch));
    if (k->of == HN_OF_LAYER) assert_true(k->at + hn_key_bytes(k->type) <= sizeof(hn_layer_desc));
    assert_true((k->type == HN_KEY_LIST) == (k->each || k->fill) || !k->gguf);
    for (int form = 0; form < 2 && number && !k->follows && !k->up_to && !k->read && !(k->how & HN_LATER); form++) {
        const double usual = k->usual[form], most = k->most;
        const bool named = form == HN_SOURCE_GGUF ? k->gguf && *k->gguf != '?' && !(k->how & HN_GGUF_WRITTEN) : k->folder != NULL;
        if (named && usual != 0 && !(usual >= k->least && usual <= most) && !isnan(usual))
            fail_msg("%s: the usual value of %s is %g, outside of %g to %g", f->hf_type, k->gguf ? k->gguf : k->folder, usual, k->least,
                     most);
    }
    if (k->type == HN_KEY_WORD && !(k->how & HN_LATER)) assert_non_null(hn_keys_word(k->words, (int)k->most, word));
}

/* Two rows of one name: at most one of them is written of any description, or only reads it. */
static void check_names(const hn_family *f) {
    const hn_file_keys s = hn_family_keys(f);
    hn_keys_place at = {0, 0};
    int rows = 0;
    for (const hn_key_row *k; (k = hn_keys_next(&s, &at)); rows++) {
        hn_keys_place other = {0, 0};
        char own[96], name[96];
        check_row(f, k);
        if (!hn_keys_word(k->gguf, 0, own) || *own == '?' || k->how & HN_NEVER_WRITTEN || k->written || hn_keys_refuses(k)) continue;
        for (const hn_key_row *o; (o = hn_keys_next(&s, &other));)
            if (o != k && hn_keys_word(o->gguf, 0, name) && !strcmp(own, name) && !o->written && !(o->how & HN_NEVER_WRITTEN) &&
                !hn_keys_refuses(o))
                fail_msg("%s: two rows write %s", f->hf_type, own);
    }
    assert_true(rows > 40);
}

static void test_rows(void **state) {
    (void)state;
    for (int i = 0; i < N_FAMILIES; i++) check_names(families[i]);
}

/* Rows in place of others: where they are read. */
static void test_places(void **state) {
    (void)state;
    static const hn_key_row first[] = {{HN_MODEL(INT, layers), "a"}, {HN_MODEL(INT, hidden), "b"}, {HN_MODEL(INT, vocab), "c"},
                                         HN_ROWS_END},
                            second[] = {{HN_MODEL(INT, hidden), "B"}, {HN_MODEL(INT, context), "d"}, HN_ROWS_END},
                            third[] = {{HN_MODEL(INT, layers), "A", .how = HN_BEHIND}, {HN_MODEL(INT, hidden), "bb"}, HN_ROWS_END};
    const hn_file_keys s = {"x", {first, second, third}, NULL};
    static const char *const order[] = {"bb", "c", "d", "A"};
    hn_keys_place at = {0, 0};
    int n = 0;
    for (const hn_key_row *k; (k = hn_keys_next(&s, &at)); n++) assert_true(n < 4 && !strcmp(k->gguf, order[n]));
    assert_int_equal(n, 4);
    assert_string_equal(hn_keys_row(&s, HN_OF_MODEL, offsetof(hn_arch, hidden))->gguf, "bb");
    assert_null(hn_keys_row(&s, HN_OF_LAYER, 0));
    assert_true(hn_keys_reads(&s, HN_SOURCE_GGUF, "d") && !hn_keys_reads(&s, HN_SOURCE_GGUF, "a") && !hn_keys_reads(&s, HN_SOURCE_HF, "d"));
}

/* ---- a folder and the GGUF of it --------------------------------------------------------------------------------------------- */

/* What files of one form lay out differently, and what a GGUF's tensors show, becomes equal. */
static hn_layer_desc comparable(const hn_arch *folder, const hn_layer_desc *l) {
    hn_layer_desc c = *l;
    c.experts.stacked = c.experts.single = false;
    if (folder->files.gate_up_apart) c.fused_gate_up = false;
    if (c.mixer[0].kind == &hn_mixer_latent) hn_latent_at(&c)->split = 0;
    if (c.mixer[0].kind != &hn_mixer_latent) hn_delta_at(&c)->tiled = hn_delta_at(&c)->fused = 0;
    return c;
}

#define SAME(member) \
    if (memcmp(&a->member, &b->member, sizeof a->member)) fail_msg("%s: another " #member " in its GGUF", name)
static void check_layer(const char *name, const hn_arch *folder, const hn_layer_desc *x, const hn_layer_desc *y) {
    const hn_layer_desc cx = comparable(folder, x), cy = comparable(folder, y), *a = &cx, *b = &cy;
    SAME(mixer); SAME(input); SAME(ffn_input); SAME(heads); SAME(kv_heads); SAME(head_dim); SAME(window); SAME(first);
    SAME(attention_scale); SAME(qkv_bias); SAME(o_bias); SAME(qk_norm); SAME(v_norm); SAME(v_is_k); SAME(kv_back); SAME(sinks);
    SAME(rotation); SAME(fused_qkv); SAME(post_norms); SAME(gate); SAME(query_scale); SAME(hybrid);
    SAME(ffn); SAME(fused_gate_up); SAME(gate_up_bias);
    SAME(down_bias); SAME(token_input); SAME(scaled);
    SAME(experts.count); SAME(experts.used); SAME(experts.sigmoid); SAME(experts.normalised); SAME(experts.bias); SAME(experts.groups);
    SAME(experts.groups_used); SAME(experts.largest); SAME(experts.scale); SAME(experts.shared_width); SAME(experts.shared_gate);
    SAME(experts.biases); SAME(experts.limit); SAME(experts.alpha); SAME(experts.width);
    if (x->ffn != HN_FFN_EXPERTS) SAME(ffn_width);
}

static void check_model(const char *name, const hn_arch *a, const hn_arch *b) {
    SAME(layers); SAME(hidden); SAME(vocab); SAME(context); SAME(norm_eps); SAME(norms); SAME(norm_biases);
    SAME(embed_scale); SAME(residual_scale); SAME(logit_scale);
    SAME(logit_cap); SAME(tied); SAME(rotations);
    for (int i = 0; i < a->rotations; i++) {
        SAME(rotation[i].first); SAME(rotation[i].dims);
        for (int k = 0; k < a->rotation[i].dims / 2; k++)
            if (!(fabs(a->rotation[i].freq[k] - b->rotation[i].freq[k]) <= 1e-6 * a->rotation[i].freq[k]))
                fail_msg("%s: pair %d of rotation %d turns by %g, by %g in its GGUF", name, k, i, a->rotation[i].freq[k],
                         b->rotation[i].freq[k]);
    }
    for (int i = 0; i < a->layers; i++) check_layer(name, a, &a->layer[i], &b->layer[i]);
}

static void read_model(const char *path, hn_arch *a) {
    hn_source *src;
    must(hn_source_open(&src, path, err));
    must(hn_arch_read(a, src, err));
    hn_source_close(&src);
}

static void test_written(void **state) {
    (void)state;
    const char *const gguf = test_path("written.gguf");
    struct dirent *entry;
    DIR *goldens = opendir(data_path("goldens"));
    int n = 0;
    assert_non_null(goldens);
    while ((entry = readdir(goldens))) {
        char folder[512], config[600];
        hn_arch a, b;
        snprintf(folder, sizeof folder, "%s/%s", data_path("goldens"), entry->d_name);
        snprintf(config, sizeof config, "%s/config.json", folder);
        if (access(config, F_OK) != 0 || strstr(folder, "-assistant") || strstr(folder, "-fp8")) continue; /* no GGUF has 8-bit floats */
        must(hunch_convert(folder, gguf, NULL, err));
        read_model(folder, &a);
        read_model(gguf, &b);
        check_model(entry->d_name, &a, &b);
        hn_arch_fini(&a);
        hn_arch_fini(&b);
        unlink(gguf);
        n++;
    }
    closedir(goldens);
    assert_true(n > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_places), cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
