/* SPDX-License-Identifier: Apache-2.0 */
/* tool_record.h - `hunch compare --record FILE`: what every drafter proposes at every position of the plain text, as JSON lines
 * (docs/formats.md), so that another choice of drafts can be computed from it. */
#ifndef HN_TOOL_RECORD_H
#define HN_TOOL_RECORD_H

#include "cli/show/tool_compare.h"

enum { TOOL_RECORD_DEPTH = 8 }; /* of drafts, unless a drafter's own spec has another */

/* Checks and changes the options of a command that records: 0, or an exit code after a message. */
int tool_record_begin(tool_options *o);
/* Writes the file, from answers whose rounds emitted one token each. */
int tool_record_write(const tool_comparison *c);

#endif
