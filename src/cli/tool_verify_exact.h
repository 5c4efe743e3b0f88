/* SPDX-License-Identifier: Apache-2.0 */
/* tool_verify_exact.h - `--verify-exact`: a second session, in an engine of its own without drafters, decodes plainly beside a session,
 * with pages of its own and no prefix that was computed before. Tokens, and the logits that decided them, must be the same bits (rules
 * greedy and match). */
#ifndef HN_TOOL_VERIFY_EXACT_H
#define HN_TOOL_VERIFY_EXACT_H

#include "app/tool_output.h"

/* Logits of a token of the session that its twin has not reached. */
typedef struct tool_verify_exact_row {
    float *logits; /* [vocab] */
    size_t index;  /* of the token */
} tool_verify_exact_row;

typedef struct tool_verify_exact {
    const hunch_model *model;
    hunch_engine *engine;
    hunch_session *session;
    tool_verify_exact_row *rows; /* [n_rows] */
    size_t n_rows, cap_rows;
    float *ours, *plain; /* [vocab] logits of the newest token that both have */
    int vocab;
    size_t checked; /* tokens */
    /* the first difference in logits: */
    bool differs;
    size_t at;         /* of the token that they decided */
    hunch_token token; /* whose logit differs most */
} tool_verify_exact;

/* Makes the twin, and lets the request record its logits, so a session is opened with it next; o: of the session's engine. 0, or an exit
 * code after a message. */
int tool_verify_exact_open(tool_verify_exact *t, hunch_model *m, const hunch_engine_options *o, hunch_request *r);
/* Lets the twin follow as far as the session has come. HUNCH_FAILED after a message on the first difference. */
int tool_verify_exact_follow(tool_verify_exact *t, const hunch_engine *e, const hunch_session *s);
/* The same at the session's end, with a line on what was checked. */
int tool_verify_exact_finish(tool_verify_exact *t, const hunch_engine *e, const hunch_session *s);
void tool_verify_exact_close(tool_verify_exact *t); /* a zeroed one is fine */

#endif
