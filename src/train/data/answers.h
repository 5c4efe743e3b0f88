/* SPDX-License-Identifier: Apache-2.0 */
/* answers.h - answers of a model to many prompts, generated at once: jobs of one or several turns, started in order and
 * collected in the same order. An answer does not depend on what else runs. */
#ifndef HN_TRAIN_ANSWERS_H
#define HN_TRAIN_ANSWERS_H
#include "train/data/make_texts.h"

enum { HN_MOST_TURNS = 8 }; /* of a job */

/* The result of one turn of a job. */
typedef struct hn_answer {
    hunch_token *ids; /* prompt and answer */
    size_t n, own;    /* the answer starts at `own` */
    char *text;       /* the answer's; empty if the model has no tokenizer */
} hn_answer;

typedef struct hn_answers {
    hunch_model *model;       /* of the tokens: an answer ends at its end tokens */
    hunch_model *speaker;     /* the model that answers */
    const hn_train_make *how; /* max_tokens, context, parallel, progress, stop */
    const char *drafts;       /* of the speaker */
    void *user;
    /* The prompt of a job's next turn, after the earlier turns, as *ids (hn_free), and r's sampling and max_tokens. *ids NULL: there is
     * none. A prompt that leaves no room for an answer ends the job, too. */
    hunch_status (*ask)(void *user, size_t job, const hn_answer *said, int turns, hunch_token **ids, size_t *n,
                        hunch_request *r, hunch_error *err);
    hunch_status (*take)(void *user, size_t job, const hn_answer *said, int turns, hunch_error *err);
} hn_answers;

/* Jobs first .. n - 1. HUNCH_CANCELLED: stopped; of the jobs so far some were taken. */
hunch_status hn_answers_make(const hn_answers *a, size_t first, size_t n, hunch_error *err);
#endif
