/* SPDX-License-Identifier: Apache-2.0 */
/* convert_merges.c - the merges of BPE, and the scores that a GGUF of model "llama" has in their place: a reader merges the
 * neighbours whose union has the highest score.
 *
 * Scores are not in tokenizer.json; they are made from the merges: the token that the first merge makes gets 0, the next new
 * one -1, and so on; tokens that no merge makes follow in the order of their ids. That is also how SentencePiece numbers a BPE
 * vocabulary. It encodes like the merges if each token's merges are adjacent and each pair of tokens whose union is a token is
 * a merge: both are checked. (Where two merges of one token overlap in a run such as ▁▁▁▁, scores take the left one, as
 * SentencePiece does; a list of merges takes its earlier one.) */
#include "convert/convert_tokenizer.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "format/name_index.h"

/* ---- the list ---- */

/* A merge is "left right" or ["left", "right"]; out gets it with one space. False: neither, or too long. */
static bool merge_text(const json_t *merge, char out[2 * HN_CONVERT_MAX_TOKEN + 2], size_t *left) {
    const json_t *a = json_array_get(merge, 0), *b = json_array_get(merge, 1);
    int len;
    if (json_is_string(merge))
        len = snprintf(out, 2 * HN_CONVERT_MAX_TOKEN + 2, "%s", json_string_value(merge));
    else if (json_array_size(merge) == 2 && json_is_string(a) && json_is_string(b))
        len = snprintf(out, 2 * HN_CONVERT_MAX_TOKEN + 2, "%s %s", json_string_value(a), json_string_value(b));
    else
        return false;
    const char *space = strchr(out, ' ');
    if (len < 0 || len > 2 * HN_CONVERT_MAX_TOKEN + 1 || space == NULL || strchr(space + 1, ' ') != NULL)
        return false;
    *left = (size_t)(space - out);
    return *left > 0 && space[1] != '\0';
}

void hn_merges_free(hn_merge_list *m) {
    for (size_t i = 0; i < m->count; i++)
        hn_free(m->text[i]);
    hn_free(m->text);
    hn_free(m->len);
    hn_free(m->left);
}

hunch_status hn_merges_read(const hn_tokenizer_conversion *c, hn_merge_list *m) {
    size_t n = json_array_size(c->merges);
    char text[2 * HN_CONVERT_MAX_TOKEN + 2];
    *m = (hn_merge_list){.text = hn_zalloc(n, sizeof *m->text),
                         .len = hn_zalloc(n, sizeof *m->len),
                         .left = hn_zalloc(n, sizeof *m->left)};
    if (m->text == NULL || m->len == NULL || m->left == NULL)
        return hn_fail_memory(c->err, "merges", n * 3 * sizeof *m->len);
    for (size_t i = 0; i < n; i++) {
        if (!merge_text(json_array_get(c->merges, i), text, &m->left[i]))
            return hn_fail(c->err, HUNCH_REFUSED, "%s: tokenizer.json: merge %zu is not two tokens without spaces",
                           hn_source_path(c->src), i);
        m->len[i] = strlen(text);
        m->text[i] = hn_strndup(text, m->len[i]);
        if (m->text[i] == NULL)
            return hn_fail_memory(c->err, "a merge", m->len[i]);
        m->count = i + 1;
    }
    return HUNCH_OK;
}

/* ---- scores ---- */

/* Id of the token that a merge makes; -1: its parts or its union are not tokens. */
static json_int_t merge_makes(const hn_tokenizer_conversion *c, const hn_merge_list *m, size_t i) {
    char left[HN_CONVERT_MAX_TOKEN + 1], both[2 * HN_CONVERT_MAX_TOKEN + 2];
    const char *right = m->text[i] + m->left[i] + 1;
    if (m->left[i] > HN_CONVERT_MAX_TOKEN)
        return -1;
    snprintf(left, sizeof left, "%.*s", (int)m->left[i], m->text[i]);
    snprintf(both, sizeof both, "%s%s", left, right);
    const json_t *id = json_object_get(c->vocab, both);
    if (id == NULL || json_object_get(c->vocab, left) == NULL || json_object_get(c->vocab, right) == NULL)
        return -1;
    return json_integer_value(id);
}

/* order[id]: 1 for the token of the first merge, ascending; 0 for tokens that no merge makes. */
static hunch_status merges_order(const hn_tokenizer_conversion *c, const hn_merge_list *m, int32_t *order, int32_t *count) {
    json_int_t last = -1;
    *count = 0;
    for (size_t i = 0; i < m->count; i++) {
        json_int_t id = merge_makes(c, m, i);
        if (id < 0)
            return hn_fail(c->err, HUNCH_REFUSED,
                           "%s: tokenizer.json: merge %zu (%.80s) does not make a token of two tokens",
                           hn_source_path(c->src), i, m->text[i]);
        if (order[id] == 0)
            order[id] = ++*count;
        else if (id != last)
            return hn_fail(c->err, HUNCH_REFUSED,
                           "%s: tokenizer.json: the merges of token %s are not adjacent; scores cannot express that",
                           hn_source_path(c->src), c->text[id]);
        last = id;
    }
    return HUNCH_OK;
}

static bool token_is_normal(const hn_tokenizer_conversion *c, const char *text) {
    const json_t *id = json_object_get(c->vocab, text);
    return id != NULL && c->type[json_integer_value(id)] == HN_TOKEN_NORMAL;
}

/* Every pair of tokens that together are a token must be a merge. */
static hunch_status pairs_check(const hn_tokenizer_conversion *c, const hn_name_index *merges) {
    char left[HN_CONVERT_MAX_TOKEN + 1], pair[HN_CONVERT_MAX_TOKEN + 2];
    for (int i = 0; i < c->size; i++) {
        if (c->type[i] != HN_TOKEN_NORMAL)
            continue;
        uint32_t cp;
        for (size_t at = 0, step; at < c->len[i]; at += step) {
            step = (size_t)hn_utf8_decode(c->text[i] + at, c->len[i] - at, &cp); /* JSON strings are valid UTF-8 */
            const char *right = c->text[i] + at + step;
            snprintf(left, sizeof left, "%.*s", (int)(at + step), c->text[i]);
            snprintf(pair, sizeof pair, "%s %s", left, right);
            if (*right != '\0' && token_is_normal(c, left) && token_is_normal(c, right) &&
                hn_name_index_find(merges, pair) < 0)
                return hn_fail(c->err, HUNCH_REFUSED,
                               "%s: tokenizer.json: %s is not a merge, but its union is a token; scores cannot express "
                               "that",
                               hn_source_path(c->src), pair);
        }
    }
    return HUNCH_OK;
}

static const char *merge_text_of(const void *items, size_t i) {
    return ((const hn_merge_list *)items)->text[i];
}

static hunch_status scores_make(const hn_tokenizer_conversion *c, const hn_merge_list *m, int32_t *order, float *scores) {
    int32_t next = 0;
    hn_name_index index;
    hunch_status status = merges_order(c, m, order, &next);
    if (status)
        return status;
    if (!hn_name_index_init(&index, m, m->count, merge_text_of))
        return hn_fail_memory(c->err, "the index of merges", m->count * sizeof(hn_name));
    status = pairs_check(c, &index);
    hn_name_index_fini(&index);
    for (int i = 0; i < c->size; i++) {
        if (c->type[i] != HN_TOKEN_NORMAL)
            continue;
        scores[i] = -(float)(order[i] > 0 ? order[i] - 1 : next);
        next += order[i] == 0;
    }
    return status;
}

hunch_status hn_scores_write(const hn_tokenizer_conversion *c, const hn_merge_list *m) {
    size_t n = (size_t)c->size;
    int32_t *order = hn_zalloc(n, sizeof *order);
    float *scores = hn_zalloc(n, sizeof *scores);
    hunch_status status = order == NULL || scores == NULL ? hn_fail_memory(c->err, "scores", n * sizeof *scores)
                                                          : scores_make(c, m, order, scores);
    if (!status)
        status = hn_gguf_put_f32s(c->w, "tokenizer.ggml.scores", scores, n, c->err);
    hn_free(order);
    hn_free(scores);
    return status;
}
