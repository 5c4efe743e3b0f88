/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary_fit.c - see vocabulary_fit.h.
 *
 * Compared is what an id stands for, not its kind: the same tokenizer has other tokens marked as control tokens in a folder and in a GGUF
 * file, and a base model and its chat model end their texts differently. Drafts are always verified, so neither can change the
 * text. */
#include "draft/vocabulary_fit.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 24, QUOTED_BYTES = 4 * SHOWN + 16 };

/* The piece of an id for a message: quoted, on one line, truncated. */
static const char *quote(const hn_tokenizer *t, int32_t id, char out[QUOTED_BYTES]) {
    size_t len = 0;
    const char *piece = hn_tokenizer_piece(t, id, &len);
    if (!piece || !len) return "nothing";
    char *at = out;
    *at++ = '"';
    for (size_t i = 0; i < len && i < SHOWN; i++) {
        const unsigned char c = (unsigned char)piece[i];
        if (c < 0x20 || c >= 0x7F || c == '"' || c == '\\')
            at += sprintf(at, "\\x%02X", c);
        else
            *at++ = (char)c;
    }
    strcpy(at, len > SHOWN ? "...\"" : "\"");
    return out;
}

static bool same_token(const hn_tokenizer *a, const hn_tokenizer *b, int32_t id) {
    size_t n_a = 0, n_b = 0;
    const char *p_a = hn_tokenizer_piece(a, id, &n_a), *p_b = hn_tokenizer_piece(b, id, &n_b);
    if (p_a && p_b && n_a == n_b && !memcmp(p_a, p_b, n_a)) return true;
    return hn_tokenizer_is_padding(a, id) && hn_tokenizer_is_padding(b, id);
}

/* "target stories260K (512 tokens)" */
static const char *describe(const char *part, const hn_vocabulary *v, char out[200]) {
    const bool named = v->name && v->name[0];
    const int n = v->tokenizer ? hn_tokenizer_vocab(v->tokenizer) : v->size;
    snprintf(out, 200, "%s%s%.100s (%d tokens%s)", part, named ? " " : "", named ? v->name : "", n,
             v->tokenizer ? "" : ", no tokenizer");
    return out;
}

hunch_status hn_vocabulary_fit(const hn_vocabulary *target, const hn_vocabulary *draft, hunch_error *err) {
    const hn_tokenizer *t = target->tokenizer, *d = draft->tokenizer;
    char a[200], b[200], q[QUOTED_BYTES], r[QUOTED_BYTES];
    describe("target", target, a);
    describe("draft", draft, b);
    if (!t || !d) {
        if (target->size == draft->size) return HUNCH_OK;
        return hn_fail(err, HUNCH_REFUSED, "the vocabularies of %s and %s differ in size", a, b);
    }
    const int most = hn_tokenizer_vocab(t) > hn_tokenizer_vocab(d) ? hn_tokenizer_vocab(t) : hn_tokenizer_vocab(d);
    for (int32_t id = 0; id < most; id++)
        if (!same_token(t, d, id))
            return hn_fail(err, HUNCH_REFUSED,
                           "the vocabularies of %s and %s differ: token %d is %s in the target, %s in the draft", a, b,
                           id, quote(t, id, q), quote(d, id, r));
    return HUNCH_OK;
}
