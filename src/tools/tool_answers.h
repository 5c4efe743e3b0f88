/* SPDX-License-Identifier: Apache-2.0 */
/* tool_answers.h - answers to all rows of a file, by one engine and with as many at once as --parallel says: an object
 * a row, in the order in which they are done. A row that cannot be answered is an object {"id", "error"}, and the
 * others go on. */
#ifndef HN_TOOL_ANSWERS_H
#define HN_TOOL_ANSWERS_H

#include "tool_answers_file.h"
#include "tool_render.h"

typedef struct tool_answers {
    const tool_options *o;
    tool_prompts *prompts;
    const tool_template *template;
    hunch_model *model;
    hunch_engine *engine;
    double load_s;
    int parallel, default_n; /* rows at once; tokens of an answer where neither row nor flag says */
    bool *answered;          /* by row: it has an answer already */
    size_t left, failed;     /* rows to answer; without an answer of those that were tried */
    size_t done;             /* rows that have a line now */
    tool_answers_file file;
} tool_answers;

/* Begins as {.o, .prompts}: before there is a model. Refuses an id that two rows have, and a file that cannot be
 * written or resumed. */
int tool_answers_open(tool_answers *a);
/* The rest being there: answers what is left. 0, or an exit code after a message; HUNCH_FAILED if a row failed. */
int tool_answers_run(tool_answers *a);
void tool_answers_fini(tool_answers *a);

#endif
