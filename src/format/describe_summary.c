/* SPDX-License-Identifier: Apache-2.0 */
/* describe_summary.c - a summary of a source, for `hunch inspect`: bytes by type, its tokenizer and whether it has a chat
 * template. From names, shapes and metadata alone: no tensor is read, no tokenizer opened.
 *
 *     {"elements": n, "quantisation": "Q4_K_M" or null, "types": [{"type", "tensors", "elements", "bytes"}, …],
 *      "tokenizer": {"kind", "pre" or null, "tokens"} or null, "chat_template": bool}
 * and of a folder with packed integers
 *     "packed": {"method", "bits": [..], "groups": [..], "types": [..], "matrices": n, "act_order": n, "floats": [names], "plain": [names]}
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "format/source_private.h"

/* ---- types ------------------------------------------------------------------------------------------------------ */

typedef struct type_sum {
    const char *name;
    uint64_t tensors, elements, bytes;
} type_sum;

static int sum_compare(const void *a, const void *b) {
    const type_sum *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1; /* most bytes first */
    return strcmp(x->name, y->name);
}

static type_sum *sum_of(type_sum *sums, size_t *n, const char *name) {
    for (size_t i = 0; i < *n; i++)
        if (strcmp(sums[i].name, name) == 0)
            return &sums[i];
    sums[*n] = (type_sum){.name = name};
    return &sums[(*n)++];
}

/* Dimensions were multiplied without overflow when the tensor was read. */
static uint64_t elements_of(const hn_tensor *t) {
    uint64_t n = 1;
    for (int i = 0; i < t->n_dims; i++)
        n *= t->dims[i];
    return n;
}

static json_t *types_describe(const hn_source *s, uint64_t *elements) {
    enum { TYPES_MAX = 64 }; /* more than exist; any further ones are added to the last */
    type_sum sums[TYPES_MAX];
    size_t n = 0;
    *elements = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const hn_tensor *t = &s->tensors[i];
        type_sum *sum = sum_of(sums, &n, n < TYPES_MAX - 1 ? t->type_name : "other");
        sum->tensors++;
        sum->elements += elements_of(t);
        sum->bytes += t->bytes;
        *elements += elements_of(t);
    }
    qsort(sums, n, sizeof *sums, sum_compare);
    json_t *list = json_array();
    for (size_t i = 0; i < n && list != NULL; i++)
        if (json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I}", "type", sums[i].name, "tensors",
                                                  (json_int_t)sums[i].tensors, "elements", (json_int_t)sums[i].elements,
                                                  "bytes", (json_int_t)sums[i].bytes)) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* ---- packed integers --------------------------------------------------------------------------------------------- */

/* Adds a value to a list that does not have it; takes it. */
static void add_once(json_t *list, json_t *value) {
    size_t i;
    const json_t *other;
    bool there = false;
    json_array_foreach (list, i, other)
        there = there || json_equal(other, value);
    if (there)
        json_decref(value);
    else
        json_array_append_new(list, value);
}

/* How the matrices of a folder were packed, and which were not. NULL: none were, or no memory. */
static json_t *packed_describe(const hn_source *s) {
    json_t *bits = json_array(), *groups = json_array(), *types = json_array(), *plain = json_array(),
           *floats = json_array();
    json_int_t matrices = 0, act_order = 0;
    const char *method = NULL;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const hn_tensor *t = &s->tensors[i];
        if (t->view == NULL || t->view->packed == NULL) {
            if (t->n_dims > 1)
                json_array_append_new(plain, json_string(t->name));
            continue;
        }
        const hn_packed_info info = hn_packed_get_info(t->view->packed);
        method = info.method;
        matrices++;
        act_order += info.act_order;
        add_once(bits, json_integer(info.bits));
        add_once(groups, json_integer((json_int_t)info.group));
        add_once(types, json_string(t->type_name));
        if (t->dtype == HN_F32)
            json_array_append_new(floats, json_string(t->name));
    }
    json_t *packed = json_pack("{s:s?, s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "method", method, "bits", bits, "groups", groups, "types",
                               types, "matrices", matrices, "act_order", act_order, "floats", floats, "plain", plain);
    if (matrices > 0)
        return packed;
    json_decref(packed);
    return NULL;
}

/* The name of a GGUF file's type or mixture of types (general.file_type); NULL: none or unknown. */
static const char *quantisation_of(const hn_source *s) {
    static const char *const mixtures[] = {
        [11] = "Q3_K_S",  [12] = "Q3_K_M", [13] = "Q3_K_L", [14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S",
        [17] = "Q5_K_M",  [19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS", [23] = "IQ3_XXS",
        [24] = "IQ1_S",   [26] = "IQ3_S",  [27] = "IQ3_M",  [28] = "IQ2_S",  [29] = "IQ2_M",  [31] = "IQ1_M",
        [36] = "TQ1_0",   [37] = "TQ2_0"};
    uint64_t type;
    bool found;
    if (s->kind != HN_SOURCE_GGUF || hn_source_u64(s, "general.file_type", &type, &found, NULL) != HUNCH_OK || !found)
        return NULL;
    if (type < sizeof mixtures / sizeof *mixtures && mixtures[type]) return mixtures[type];
    for (int t = 0; t < HN_WEIGHT_TYPES; t++)
        if (hn_types[t].file == type && type != HN_NO_NUMBER) return hn_types[t].name;
    return NULL;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

/* NULL: no memory; else a description or null. */
static json_t *gguf_tokenizer(const hn_source *s) {
    static const char *const kinds[][2] = {
        {"gpt2", "BPE"}, {"llama", "SentencePiece BPE"}, {"t5", "Unigram"}, {"bert", "WordPiece"}};
    const char *model, *pre;
    bool found, has_pre;
    const hn_array *tokens;
    if (hn_source_str(s, "tokenizer.ggml.model", &model, NULL, &found, NULL) != HUNCH_OK || !found)
        return json_null();
    if (hn_source_str(s, "tokenizer.ggml.pre", &pre, NULL, &has_pre, NULL) != HUNCH_OK || !has_pre)
        pre = NULL;
    if (hn_source_array(s, "tokenizer.ggml.tokens", &tokens, NULL) != HUNCH_OK)
        tokens = NULL;
    const char *kind = "another kind";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(model, kinds[i][0]) == 0)
            kind = kinds[i][1];
    json_t *name = pre != NULL && hn_utf8_check(pre, strlen(pre)) == strlen(pre) ? json_string(pre) : json_null();
    return json_pack("{s:s, s:o, s:I}", "kind", kind, "pre", name, "tokens",
                     (json_int_t)(tokens ? hn_array_count(tokens) : 0));
}

static json_t *hf_tokenizer(const hn_source *s) {
    const json_t *file = s->documents[HN_HF_TOKENIZER], *model = json_object_get(file, "model");
    const json_t *vocab = json_object_get(model, "vocab"), *added = json_object_get(file, "added_tokens"), *token;
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!json_is_object(model))
        return json_null();
    json_int_t tokens = (json_int_t)(json_is_object(vocab) ? json_object_size(vocab) : json_array_size(vocab));
    size_t i;
    json_array_foreach (added, i, token) {
        json_int_t id = json_integer_value(json_object_get(token, "id"));
        if (id >= tokens && id < INT32_MAX)
            tokens = id + 1;
    }
    bool falls_back = json_is_true(json_object_get(model, "byte_fallback"));
    const char *kind = type && strcmp(type, "BPE") != 0 ? type : falls_back ? "SentencePiece BPE" : "BPE";
    return json_pack("{s:s, s:n, s:I}", "kind", kind, "pre", "tokens", tokens);
}

/* Whether it has a chat template; one that cannot be read does not count. NULL: no memory. */
static json_t *template_describe(const hn_source *s) {
    char *text;
    size_t len;
    hunch_status status = hn_source_chat_template(s, HN_CHAT_DEFAULT, &text, &len, NULL);
    json_t *found = status == HUNCH_NO_MEMORY ? NULL : json_boolean(!status && text != NULL);
    hn_free(text);
    return found;
}

json_t *hn_describe_summary(const hn_source *s) {
    uint64_t elements;
    json_t *types = types_describe(s, &elements);
    json_t *tokenizer = s->kind == HN_SOURCE_GGUF ? gguf_tokenizer(s) : hf_tokenizer(s);
    return json_pack("{s:I, s:s?, s:o, s:o, s:o, s:o*}", "elements", (json_int_t)elements, "quantisation", quantisation_of(s),
                     "types", types, "tokenizer", tokenizer, "chat_template", template_describe(s),
                     "packed", packed_describe(s));
}
