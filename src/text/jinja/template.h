/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - chat templates: a Jinja subset of our own, set up as Hugging Face does (trim_blocks, lstrip_blocks, loop
 * controls, raise_exception, strftime_now, tojson). Anything outside the subset is a clear error with its line; depth,
 * steps, memory and output are limited (template_private.h), so that no template runs longer than a second or two. */
#ifndef HN_TEMPLATE_H
#define HN_TEMPLATE_H
#include <jansson.h>
#include "base/status.h"

typedef struct hn_template hn_template;
/* HUNCH_REFUSED, with the line, for text that does not parse or is outside the subset. */
hunch_status hn_template_parse(hn_template **out, const char *text, size_t len, hunch_error *err);
void hn_template_free(hn_template *t);
/* vars: an object. now: "YYYY-MM-DD HH:MM:SS" or NULL (the clock). *out: hn_alloc'ed, NUL-terminated.
 * HUNCH_USAGE: the template raised an error, or needs a variable that vars lacks. */
hunch_status hn_template_render(const hn_template *t, const json_t *vars, const char *now, char **out, size_t *len,
                                hunch_error *err);
/* The same, with the parts of the text that the template wrote itself and those that it copied from the variables, in order, together
 * as long as the text; hn_alloc'ed, NULL if there are none. Of the variables in own[n_own], those that are strings count as the
 * template's. Bytes that a filter made of others (upper case, escapes) are never the template's. */
hunch_status hn_template_render_pieces(const hn_template *t, const json_t *vars, const char *now, const char *const *own, size_t n_own,
                                       char **out, size_t *len, hunch_piece **pieces, size_t *n_pieces, hunch_error *err);
#endif
