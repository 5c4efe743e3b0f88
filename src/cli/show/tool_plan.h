/* SPDX-License-Identifier: Apache-2.0 */
/* tool_plan.h - draws a plan (cmd_plan.c). */
#ifndef HN_TOOL_PLAN_H
#define HN_TOOL_PLAN_H

#include "app/tool_file.h"

/* Passes by rows with their limits, and each method's speed with the one that is recommended, as SVG. 0, or an exit code
 * after a message. */
int tool_plan_plot(const json_t *plan, const char *path);

#endif
