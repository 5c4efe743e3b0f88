/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tokenizer.c - tokenizer.json as a GGUF file's tokenizer.* keys.
 *
 * Two kinds of BPE are supported; a tokenizer that neither expresses exactly is refused:
 * - byte-level BPE becomes "gpt2": tokens, merges in order, the name of the pre-tokenizer, and NFC under a key of ours;
 * - BPE over text with ▁ for spaces becomes "llama": tokens with scores in place of merges (convert_merges.c); Gemma 4's becomes "gemma4",
 *   which has merges (convert_lines.c).
 */
#include "convert/convert_tokenizer.h"

#include "base/mem.h"

hunch_status hn_tokenizer_refuse(const hn_tokenizer_conversion *c, const char *what) {
    return hn_fail(c->err, HUNCH_REFUSED, "%s: tokenizer.json: %s", hn_source_path(c->src), what);
}

static hunch_status text_write(const hn_tokenizer_conversion *c, const char *key, const char *text) {
    return hn_gguf_put_str(c->w, key, text, strlen(text), c->err);
}

static hunch_status byte_level_write(const hn_tokenizer_conversion *c, const char *pre, bool nfc, bool unlike, const hn_merge_list *m) {
    hunch_status status = text_write(c, "tokenizer.ggml.model", "gpt2");
    if (!status && nfc)
        status = hn_gguf_put_bool(c->w, "tokenizer.hunch.nfc", true, c->err);
    if (!status && unlike)
        status = hn_gguf_put_bool(c->w, "tokenizer.hunch.ignore_merges", json_is_true(json_object_get(c->model, "ignore_merges")), c->err);
    if (!status)
        status = text_write(c, "tokenizer.ggml.pre", pre);
    if (!status)
        status = hn_gguf_put_strings(c->w, "tokenizer.ggml.merges", (const char *const *)m->text, m->len, m->count, c->err);
    return status ? status : hn_gguf_put_bool(c->w, "tokenizer.ggml.add_space_prefix", false, c->err);
}

static hunch_status space_marks_write(const hn_tokenizer_conversion *c, bool prefix, const hn_merge_list *m) {
    hunch_status status = text_write(c, "tokenizer.ggml.model", "llama");
    if (!status)
        status = text_write(c, "tokenizer.ggml.pre", "default");
    if (!status)
        status = hn_scores_write(c, m);
    return status ? status : hn_gguf_put_bool(c->w, "tokenizer.ggml.add_space_prefix", prefix, c->err);
}

static bool is_gemma4(const hn_tokenizer_conversion *c) {
    const char *type = json_string_value(hn_source_config(c->src, "model_type"));
    return type != NULL && strncmp(type, "gemma4", strlen("gemma4")) == 0;
}

static hunch_status marked_merges_write(const hn_tokenizer_conversion *c, bool prefix, const hn_merge_list *m) {
    hunch_status status = hn_lines_check(c, m);
    if (!status && (prefix || json_is_true(json_object_get(c->model, "ignore_merges"))))
        status = hn_tokenizer_refuse(c, "ignore_merges, or a ▁ before each text: a GGUF of Gemma 4 has no place for it");
    if (!status)
        status = text_write(c, "tokenizer.ggml.model", "gemma4");
    if (!status)
        status = hn_gguf_put_strings(c->w, "tokenizer.ggml.merges", (const char *const *)m->text, m->len, m->count, c->err);
    return status ? status : hn_gguf_put_bool(c->w, "tokenizer.ggml.add_space_prefix", false, c->err);
}

static hunch_status kind_write(const hn_tokenizer_conversion *c, const hn_merge_list *m) {
    bool prefix = false, nfc, unlike;
    const char *pre = hn_pre_tokenizer_name(c, &nfc, &unlike);
    if (pre != NULL)
        return byte_level_write(c, pre, nfc, unlike, m);
    if (hn_space_marks_are_known(c, &prefix))
        return is_gemma4(c) ? marked_merges_write(c, prefix, m) : space_marks_write(c, prefix, m);
    return hn_tokenizer_refuse(c, "its normalizer and pre_tokenizer are none that GGUF names; expected SentencePiece's ▁ for "
                                  "spaces, or the byte-level steps of GPT-2, SmolLM, Llama 3, Qwen 2, GPT-4o, Tekken or DeepSeek 3");
}

static hunch_status template_write(const hn_tokenizer_conversion *c) {
    static const char *const keys[] = {[HN_CHAT_DEFAULT] = HN_CHAT_KEY, [HN_CHAT_TOOLS] = HN_CHAT_TOOLS_KEY};
    hunch_status status = HUNCH_OK;
    for (hn_chat_use use = HN_CHAT_DEFAULT; use <= HN_CHAT_TOOLS && !status; use++) {
        char *text;
        size_t len;
        status = hn_source_chat_template(c->src, use, &text, &len, c->err);
        if (!status && text) status = hn_gguf_put_str(c->w, keys[use], text, len, c->err);
        hn_free(text);
    }
    return status;
}

static hunch_status keys_write(hn_tokenizer_conversion *c) {
    hn_merge_list merges = {0};
    hunch_status status = hn_tokens_read(c);
    if (!status)
        status = hn_merges_read(c, &merges);
    if (!status)
        status = kind_write(c, &merges);
    hn_merges_free(&merges);
    if (!status)
        status = hn_gguf_put_strings(c->w, "tokenizer.ggml.tokens", c->text, c->len, (size_t)c->size, c->err);
    if (!status)
        status = hn_gguf_put_i32s(c->w, "tokenizer.ggml.token_type", c->type, (size_t)c->size, c->err);
    if (!status)
        status = hn_token_marks_write(c);
    if (!status)
        status = hn_special_ids_write(c);
    return status ? status : template_write(c);
}

hunch_status hn_convert_tokenizer(hn_gguf_writer *w, const hn_source *src, int vocab, hunch_error *err) {
    hn_tokenizer_conversion c = {.w = w, .src = src, .size = vocab, .err = err, .root = hn_source_json(src, "tokenizer.json")};
    if (c.root == NULL)
        return HUNCH_OK;
    c.model = json_object_get(c.root, "model");
    c.vocab = json_object_get(c.model, "vocab");
    c.merges = json_object_get(c.model, "merges");
    c.config = hn_source_json(src, "tokenizer_config.json");
    if (!hn_json_is_text(json_object_get(c.model, "type"), "BPE") || !json_is_object(c.vocab) || !json_is_array(c.merges))
        return hn_tokenizer_refuse(&c, "expected a model of type BPE with vocab and merges");
    size_t n = (size_t)vocab;
    c.text = hn_zalloc(n, sizeof *c.text);
    c.len = hn_zalloc(n, sizeof *c.len);
    c.type = hn_zalloc(n, sizeof *c.type);
    hunch_status status =
        c.text == NULL || c.len == NULL || c.type == NULL
            ? hn_fail_memory(err, "the vocabulary", n * (sizeof *c.text + sizeof *c.len + sizeof *c.type))
            : keys_write(&c);
    hn_free(c.text);
    hn_free(c.len);
    hn_free(c.type);
    hn_free(c.pads);
    return status;
}
