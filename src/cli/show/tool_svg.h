/* SPDX-License-Identifier: Apache-2.0 */
/* tool_svg.h - writing SVG, and HTML. */
#ifndef HN_TOOL_SVG_H
#define HN_TOOL_SVG_H

#include "app/tool_file.h"

void tool_svg_put(tool_file *f, const char *fmt, ...) HN_PRINTF(2, 3);
/* Text between tags or in quotes; bytes that XML does not allow become question marks. */
void tool_svg_text(tool_file *f, const char *text);

#endif
