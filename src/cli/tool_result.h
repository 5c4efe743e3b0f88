/* SPDX-License-Identifier: Apache-2.0 */
/* tool_result.h - runs the rounds of sessions and reports on them: the `run` object, the summary. */
#ifndef HN_TOOL_RESULT_H
#define HN_TOOL_RESULT_H

#include "cli/show/tool_show.h"
#include "cli/show/tool_why.h"

/* Sessions of one engine that run together. */
typedef struct tool_rounds {
    hunch_engine *engine;
    hunch_session **session; /* [n]; NULL entries are skipped */
    int n;
    tool_stream *stream;   /* prints session[0] as it is generated; NULL: nothing */
    int answers, reported; /* in all; and finished already */
    int most;              /* maximum tokens of an answer, for the bar */
    tool_progress reading, answering; /* bars: while prompts are read; while answers are generated without a stream */
} tool_rounds;
void tool_rounds_begin(tool_rounds *r, const char *label); /* label: of the bar while prompts are read */
void tool_rounds_end(tool_rounds *r);
/* One round, or, after Ctrl-C or when standard output is closed, the cancellation of all. 0, or an exit code after a
 * message. */
int tool_rounds_step(tool_rounds *r);

/* Data of a report beside the session's state. */
typedef struct tool_result {
    const hunch_engine *engine;
    const hunch_model *model;
    double load_s;
    uint64_t seed;
    const tool_why *why, *trees; /* NULL: not wanted */
    int logprobs;        /* as in tool_options */
    bool chat, thinks;   /* as in tool_prompt */
    const hunch_tools *tools; /* that the answer may call; NULL: none */
    const char *const *stops; /* of the request; NULL: not known */
} tool_result;
json_t *tool_result_json(const tool_result *r, const hunch_session_state *st); /* NULL: out of memory */
/* An answer to a conversation in two texts; both hn_free'd. Marks are in neither, nor line breaks at their beginnings; calls of tools that
 * are parts of their own belong to what is said. */
typedef struct tool_apart {
    char *said, *thought;
    size_t n_said, n_thought;
} tool_apart;
tool_apart tool_answer_apart(const hunch_model *m, bool thinks, const char *text, size_t len);
void tool_apart_fini(tool_apart *a);
/* The text ends where the context does. */
bool tool_context_full(const hunch_engine *e, const hunch_session_state *st);
/* Several lines on standard error. */
void tool_result_summary(const tool_result *r, const hunch_session_state *st, bool color);
/* One line: the number of tokens from each drafter and the model, in its colour. */
void tool_sources_print(const hunch_engine *e, const hunch_session_state *st, bool color);
/* A warning about the rule of verification (lossy, or a seed that does not fix the text); "" if none. Writes to `text`
 * [200]. */
const char *tool_rule_note(hunch_verify verify, const hunch_lossy *lossy, char *text);

const char *tool_finish_name(hunch_finish f);
double tool_tau(const hunch_session_state *st);          /* NAN without rounds */
double tool_decode_speed(const hunch_session_state *st); /* tokens per second after the first; 0 if unknown */
json_t *tool_lossy_json(const hunch_lossy *lossy);       /* null if lossless */

#endif
