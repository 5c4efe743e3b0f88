/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tokens.c - sources of the tokens that a draft head drafts: a list of ids (JSON, numbers, torch.save), a text, rows of JSON;
 * with the tokenizer of a tiny model. */
#include "base/mem.h"
#include "draft/token_ranks.h"
#include "fuzz.h"
#include "fuzz_tiny.h"

enum { WANTED = 9 };

static hn_tokenizer *tiny_tokenizer(void) {
    hn_tokenizer *t = NULL;
    hn_source *src = NULL;
    FUZZ_MUST(hn_source_open(&src, fuzz_tiny_model(5), NULL) == HUNCH_OK && hn_tokenizer_open(&t, src, NULL) == HUNCH_OK && t);
    hn_source_close(&src);
    return t;
}

static void choose(const hn_tokenizer *t, int vocab, const hn_token_selection *wish) {
    hunch_error err = {0};
    int32_t *out;
    int n;
    const hunch_status st = hn_tokens_choose(wish, t, vocab, &out, &n, &err);
    fuzz_check(st, &err, wish->ids ? wish->ids : wish->texts);
    FUZZ_MUST(st ? !out && n == 0 : n >= 1 && n <= wish->n);
    for (int i = 0; i < n; i++) FUZZ_MUST(out[i] > (i ? out[i - 1] : -1) && out[i] < vocab);
    hn_free(out);
}

/* A name with the extension of rows, for the file of that number. */
static const char *rows_file(int number, fuzz_bytes b) {
    static char path[1200];
    fuzz_folder_file("rows.jsonl", number, b, false);
    snprintf(path, sizeof path, "%s/rows.jsonl", fuzz_folder());
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static hn_tokenizer *t;
    fuzz_bytes rest = {data, size}, ids = fuzz_part(&rest), text = fuzz_part(&rest);
    if (!t) t = tiny_tokenizer();
    const int vocab = hn_tokenizer_vocab(t);
    choose(t, vocab, &(hn_token_selection){WANTED, fuzz_file(0, ids), NULL});
    choose(NULL, vocab + 3, &(hn_token_selection){WANTED, fuzz_file(0, ids), NULL});
    choose(t, vocab, &(hn_token_selection){WANTED, NULL, fuzz_file(1, text)});
    choose(t, vocab, &(hn_token_selection){WANTED, NULL, rows_file(2, rest)});
    return 0;
}
