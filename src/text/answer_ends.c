/* SPDX-License-Identifier: Apache-2.0 */
/* answer_ends.c - see answer_ends.h. */
#include "text/answer_ends.h"

#include <string.h>

enum { MOST_TEXTS = 32 };
/* usual: also in a folder that does not name it. */
static const struct {
    const char *text;
    bool usual;
} texts[] = {{"<|im_end|>", true},
             {"<|eot_id|>", true},
             {"<|eom_id|>", true},
             {"<end_of_turn>", true},
             {"<turn|>", true},
             {"<|tool_response>", false},
             {"<|endoftext|>", true},
             {"<|end_of_text|>", true},
             {"<|end|>", true},
             {"<|return|>", true},
             {"<|call|>", true},
             {"<|calls|>", false},
             {"<|flush|>", false},
             {"<EOT>", true},
             {"_<EOT>", false},
             {"[EOT]", false},
             {"[EOS]", false},
             {"<eos>", false},
             {"</s>", false},
             {"<end_of_utterance>", true},
             {"<｜end▁of▁sentence｜>", true},
             {"[e~[", false}};
_Static_assert(sizeof texts / sizeof *texts <= MOST_TEXTS, "a bit each");

static const char *const fills[HN_FILL_ENDS][6] = {
    {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", NULL},
    {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", NULL},
    {"<|file_sep|>", NULL}};

static bool same(const char *known, const char *text, size_t len) {
    return strlen(known) == len && memcmp(known, text, len) == 0;
}

/* All texts begin with one of these; nearly no token does. */
static bool may_be_known(const char *text, size_t len) {
    return len && (text[0] == '<' || text[0] == '[' || text[0] == '_');
}

static uint32_t bit_of(const char *text, size_t len) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts && may_be_known(text, len); i++)
        if (same(texts[i].text, text, len)) return 1u << i;
    return 0;
}

static bool has_text(const hn_answer_ends *e, const char *text) {
    return e->there & bit_of(text, strlen(text));
}

static bool is_fill(int kind, const char *text, size_t len) {
    for (const char *const *f = fills[kind]; *f; f++)
        if (same(*f, text, len)) return true;
    return false;
}

void hn_answer_ends_note(hn_answer_ends *e, int32_t id, const char *text, size_t len) {
    e->there |= bit_of(text, len);
    for (int k = 0; k < HN_FILL_ENDS && may_be_known(text, len); k++) {
        if (e->fill_named[k] || e->fill_there[k] || !is_fill(k, text, len)) continue;
        e->fill_there[k] = true;
        e->fill[k] = id;
    }
}

bool hn_answer_ends_spares(const hn_answer_ends *e, const char *text, size_t len) {
    const bool call = has_text(e, "<|call|>") || has_text(e, "<|calls|>");
    if (same("<|end|>", text, len)) return call && (has_text(e, "<|return|>") || has_text(e, "<|flush|>"));
    return same("</s>", text, len) && has_text(e, "<|tool_response>");
}

bool hn_answer_ends_has(const hn_answer_ends *e, int32_t id, const char *text, size_t len) {
    for (int k = 0; k < HN_FILL_ENDS; k++)
        if (e->fill_there[k] && e->fill[k] == id) return true;
    return bit_of(text, len) && !hn_answer_ends_spares(e, text, len);
}

void hn_answer_ends_mark(hn_tokenizer *t) {
    hn_answer_ends e = {0};
    int32_t ids[MOST_TEXTS];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t len = strlen(texts[i].text);
        ids[i] = hn_vocab_find_named(t, texts[i].text, len);
        if (ids[i] >= 0) hn_answer_ends_note(&e, ids[i], texts[i].text, len);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (ids[i] < 0 || !texts[i].usual || t->kinds[ids[i]] != HN_TOKEN_CONTROL) continue;
        if (!hn_answer_ends_spares(&e, texts[i].text, strlen(texts[i].text))) t->marks[ids[i]] |= HN_MARK_END;
    }
}
