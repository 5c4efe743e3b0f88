/* SPDX-License-Identifier: Apache-2.0 */
/* tool_answers.h - answers all rows of a file with one engine, up to --parallel at once: one object per row, in the
 * order in which they finish. A row that cannot be answered gives an object {"id", "error"}, and the others
 * continue. */
#ifndef HN_TOOL_ANSWERS_H
#define HN_TOOL_ANSWERS_H

#include "cli/tool_answers_file.h"
#include "cli/tool_grammar.h"
#include "cli/tool_render.h"

typedef struct tool_answers {
    const tool_options *o;
    tool_prompts *prompts;
    const tool_template *template;
    const tool_grammar *grammar; /* of the flags */
    hunch_model *model;
    hunch_engine *engine;
    double load_s;
    int parallel, default_n; /* rows at once; tokens of an answer if neither row nor flag limits it */
    bool *answered;          /* by row: it has an answer already */
    size_t left, failed;     /* rows to answer; rows that failed */
    size_t done;             /* rows written, failed ones included */
    tool_answers_file file;
} tool_answers;

/* Called before the model is opened, with .o and .prompts set. Refuses an id that two rows have, and a file that cannot
 * be written or resumed. */
int tool_answers_open(tool_answers *a);
/* Answers the remaining rows, with all fields set. 0, or an exit code after a message; HUNCH_FAILED if a row failed. */
int tool_answers_run(tool_answers *a);
void tool_answers_fini(tool_answers *a);

#endif
