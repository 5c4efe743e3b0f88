/* SPDX-License-Identifier: Apache-2.0 */
/* token_scores.c - see token_scores.h. */
#include "text/tokenizer/token_scores.h"

#include <math.h>

#include "base/utf8.h"

/* Whether merges can make the token: a plain one of several characters. */
static bool is_made(const hn_tokenizer *t, int32_t id) {
    const hn_piece p = t->pieces[id];
    uint32_t cp;
    return t->kinds[id] == HN_TOKEN_NORMAL && p.len > 1 && (uint32_t)hn_utf8_decode(p.bytes, p.len, &cp) < p.len;
}

const char *hn_scores_fault(const hn_tokenizer *t, const double *scores) {
    enum { FEW = 4 }; /* so many may be in any order */
    int n = 0;
    bool equal = true, rising = true;
    double before = 0;
    for (int32_t id = 0; id < t->vocab; id++) {
        const double score = scores[id];
        if (!is_made(t, id)) continue;
        if (!(score <= 0)) return isnan(score) ? "that are not numbers" : "above 0";
        if (n++) {
            equal = equal && score == before;
            rising = rising && score > before;
        }
        before = score;
    }
    if (n < FEW || t->is_unigram) return NULL;
    return equal ? "that are all equal" : rising ? "that rise with the ids" : NULL;
}
