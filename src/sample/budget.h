/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - how long a text may think: so many tokens between its model's marks, and then the end mark, whose tokens are forced one after
 * another. Where a text is depends on its tokens alone, so a draft's path is replayed, as in a grammar, and changes no text. The marks are
 * found by their bytes, as answers are split by them (hunch_split_next), whatever tokens they are written in. */
#ifndef HN_BUDGET_H
#define HN_BUDGET_H
#include "text/tokenizer/tokenizer.h"

typedef struct hn_budget {
    const hn_tokenizer *tokenizer;
    const char *mark[2];   /* that begins thinking, that ends it; not empty */
    const int32_t *end;    /* [n_end] tokens of the latter, at least one; all this is borrowed */
    int n_end;
    int most;              /* tokens of all thinking of an answer, without its marks; at least 1 */
    bool channels;         /* every special token ends thinking: it begins another message */
    bool begins;           /* the answer begins in thinking */
} hn_budget;

/* After a token of the answer. */
typedef struct hn_spent {
    bool thinking;
    int used;    /* tokens */
    int matched; /* bytes of the next mark that the text ends with; */
    int tail;    /* in thinking, tokens of `end` that it ends with */
} hn_spent;

hn_spent hn_budget_start(const hn_budget *b);
hn_spent hn_budget_next(const hn_budget *b, hn_spent s, int32_t token);
/* The one token that may come now; -1: any. */
int32_t hn_budget_forced(const hn_budget *b, hn_spent s);
#endif
