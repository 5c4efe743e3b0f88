/* SPDX-License-Identifier: Apache-2.0 */
/* family_deepseek.c - DeepSeek: R1 and V3 write "function", the name on the mark's line and the arguments in a fence of Markdown; V3.1 the
 * name, then the arguments. One reader for both: models meet templates of the other version. */
#include "calls/call_families.h"

#define BAR "\xEF\xBD\x9C" /* U+FF5C */
#define LOW "\xE2\x96\x81" /* U+2581 */
#define MARK(name) "<" BAR "tool" LOW name BAR ">"

static const char *const opens[] = {MARK("calls" LOW "begin"), MARK("call" LOW "begin"), NULL};
static const char *const closes[] = {MARK("call" LOW "end"), MARK("calls" LOW "end"), NULL};
static const char *const drops[] = {MARK("call" LOW "end"), MARK("calls" LOW "end"), NULL};
static const hn_marked how = {.inner = MARK("call" LOW "begin"),
                              .separator = MARK("sep"),
                              .inner_end = MARK("call" LOW "end"),
                              .outer_end = MARK("calls" LOW "end"),
                              .type = "function"};

static bool fits_any(const char *text, size_t len) {
    return hn_has(text, len, opens[0]);
}

static bool fits_r1(const char *text, size_t len) {
    return fits_any(text, len) && hn_has(text, len, "```json");
}

const hn_call_family hn_calls_deepseek_r1 = {.name = "deepseek-r1",
                                             .opens = opens,
                                             .closes = closes,
                                             .drops = drops,
                                             .fits = fits_r1,
                                             .grammar = hn_grammar_deepseek_r1,
                                             .read = hn_read_marked,
                                             .how = &how};
const hn_call_family hn_calls_deepseek_v31 = {.name = "deepseek-v3.1",
                                              .opens = opens,
                                              .closes = closes,
                                              .drops = drops,
                                              .fits = fits_any,
                                              .grammar = hn_grammar_deepseek_v31,
                                              .read = hn_read_marked,
                                              .how = &how};
