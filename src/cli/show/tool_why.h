/* SPDX-License-Identifier: Apache-2.0 */
/* tool_why.h - records and shows what the controller considered in each round of a session, and the round's tree (`run --why`,
 * `--trees`). */
#ifndef HN_TOOL_WHY_H
#define HN_TOOL_WHY_H

#include "app/tool_output.h"

typedef struct tool_why {
    hunch_round_report *rounds; /* each owns its lists */
    size_t n, cap;
} tool_why;

void tool_why_add(void *why, const hunch_round_report *report); /* a hunch_request.on_round */
void tool_why_fini(tool_why *w);
/* "drafter" of each choice is an index into the run's "drafters", -1 for plain decoding, -2 for several together. */
json_t *tool_why_json(const tool_why *w);
json_t *tool_why_trees_json(const tool_why *w); /* tool_tree.h, one per round */
/* Why the chosen alternative does not have the best numbers; NULL: it has. */
const char *tool_why_reason(hunch_reason reason);
/* All rounds and the answer, as one HTML file (tool_why_html.c). 0, or an exit code after a message. */
int tool_why_html(const char *path, const tool_why *w, const hunch_model *m, const hunch_engine *e, const hunch_session_state *st);
/* One line per round on standard error, and its tree if that branches. */
void tool_why_print(const tool_why *w, const hunch_model *m, const hunch_engine *e, bool color);

#endif
