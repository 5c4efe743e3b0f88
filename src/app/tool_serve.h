/* SPDX-License-Identifier: Apache-2.0 */
/* tool_serve.h - the command line of the server, for `hunch serve` and for hunch-serve, the program that it starts. Flags are in the table
 * of all commands (tool_flags.c). */
#ifndef HN_TOOL_SERVE_H
#define HN_TOOL_SERVE_H

#include "app/tool_options.h"

/* As tool_options_parse; there is a model, --memory is a size, and flags that were not given have their defaults. */
int tool_serve_parse(tool_options *o, int argc, char **argv);
uint64_t tool_serve_memory(const tool_options *o); /* bytes of --memory; 0: not given */
/* Bytes of --kept-prefixes, -1: none are kept; 0: not given. Of --grammar-memory; 0: not given. */
int64_t tool_serve_kept(const tool_options *o);
uint64_t tool_serve_grammars(const tool_options *o);

#endif
