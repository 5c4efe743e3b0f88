/* SPDX-License-Identifier: Apache-2.0 */
/* tool_result.h - a session from its rounds to its report: the rounds themselves, the `run` object, the summary. */
#ifndef HN_TOOL_RESULT_H
#define HN_TOOL_RESULT_H

#include "tool_show.h"
#include "tool_why.h"

/* Sessions of one engine that run together. */
typedef struct tool_rounds {
    hunch_engine *engine;
    hunch_session **session; /* [n]; NULL entries are skipped */
    int n;
    tool_stream *stream;   /* shows session[0] as it comes; NULL: nothing is shown */
    int answers, reported; /* to be given in all, and given already */
    int most;              /* tokens of an answer at most, for the bar */
    tool_progress reading, answering; /* bars: while prompts are read; while answers are made that nobody sees come */
} tool_rounds;
void tool_rounds_begin(tool_rounds *r, const char *label); /* what is read, for the bar */
void tool_rounds_end(tool_rounds *r);
/* One round, or, after Ctrl-C or when standard output is closed, the cancellation of all. 0, or an exit code after a
 * message. */
int tool_rounds_step(tool_rounds *r);

/* What a report needs beside the session's state. */
typedef struct tool_result {
    const hunch_engine *engine;
    const hunch_model *model;
    double load_s;
    uint64_t seed;
    const tool_why *why, *trees; /* NULL: not asked for */
    int logprobs;        /* as tool_options has it */
} tool_result;
json_t *tool_result_json(const tool_result *r, const hunch_session_state *st); /* NULL: out of memory */
/* Several lines on standard error. */
void tool_result_summary(const tool_result *r, const hunch_session_state *st, bool color);
/* One line: how many tokens came from whom, each in its colour. */
void tool_sources_print(const hunch_engine *e, const hunch_session_state *st, bool color);
/* What about the rule of verification a reader must know, as part of a line that has begun; "" if nothing. Writes to
 * `text` [200]. */
const char *tool_law_note(hunch_verify verify, const hunch_lossy *lossy, char *text);

const char *tool_finish_name(hunch_finish f);
double tool_tau(const hunch_session_state *st);          /* NAN without rounds */
double tool_decode_speed(const hunch_session_state *st); /* tokens a second behind the first; 0 if unknown */
json_t *tool_lossy_json(const hunch_lossy *lossy);       /* null if it is none */

#endif
