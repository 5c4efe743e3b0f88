/* SPDX-License-Identifier: Apache-2.0 */
/* family_markup.c - the families that write calls in tags: Qwen3-Coder (with Qwen 3.5 and Nemotron 3), Seed-OSS, GLM 4, MiniMax M2,
 * DeepSeek V3.2 and V4 (DSML), MiniCPM5. */
#include "calls/call_families.h"
#include "calls/call_markup.h"

#define LIST(...)                                                                                                      \
    (const char *const[]) {                                                                                            \
        __VA_ARGS__, NULL                                                                                              \
    }
#define BAR "\xEF\xBD\x9C" /* U+FF5C */
#define DSML BAR "DSML" BAR

static bool fits_qwen(const char *text, size_t len) {
    return hn_has(text, len, "<function=") && hn_has(text, len, "<tool_call>");
}

static bool fits_seed(const char *text, size_t len) {
    return hn_has(text, len, "<seed:tool_call>");
}

static bool fits_glm(const char *text, size_t len) {
    return hn_has(text, len, "<arg_key>");
}

static bool fits_minimax(const char *text, size_t len) {
    return hn_has(text, len, "<minimax:tool_call>") || hn_has(text, len, "minimax:tool_call");
}

static bool fits_dsml(const char *text, size_t len) {
    return hn_has(text, len, DSML);
}

static bool fits_dsml_v4(const char *text, size_t len) {
    return fits_dsml(text, len) && !hn_has(text, len, "function_calls>");
}

static bool fits_minicpm(const char *text, size_t len) {
    return hn_has(text, len, "<function name=");
}

/* The block's mark is often missing: a function's is enough. */
static const hn_markup qwen = {.name_open = "<function=",
                               .name_close = ">",
                               .param_open = "<parameter=",
                               .param_close = ">",
                               .value_close = "</parameter>",
                               .call_close = "</function>",
                               .close = "</tool_call>",
                               .gap = 'n',
                               .lines = true};
static const hn_markup seed = {.name_open = "<function=",
                               .name_close = ">",
                               .param_open = "<parameter=",
                               .param_close = ">",
                               .value_close = "</parameter>",
                               .call_close = "</function>",
                               .close = "</seed:tool_call>",
                               .gap = 'n'};
static const hn_markup glm = {.name_open = "",
                              .param_open = "<arg_key>",
                              .param_close = "</arg_key>",
                              .value_open = "<arg_value>",
                              .value_close = "</arg_value>",
                              .call_close = "</tool_call>",
                              .gap = 'o'};
static const hn_markup minimax = {.name_open = "<invoke name=\"",
                                  .name_close = "\">",
                                  .param_open = "<parameter name=\"",
                                  .param_close = "\">",
                                  .value_close = "</parameter>",
                                  .call_close = "</invoke>",
                                  .close = "</minimax:tool_call>",
                                  .gap = 'n',
                                  .many = true};
static const hn_markup dsml = {.name_open = "<" DSML "invoke name=\"",
                               .name_close = "\">",
                               .param_open = "<" DSML "parameter name=\"",
                               .param_close = ">",
                               .value_close = "</" DSML "parameter>",
                               .call_close = "</" DSML "invoke>",
                               .close = "</" DSML "function_calls>",
                               .close_too = "</" DSML "tool_calls>",
                               .gap = 'n',
                               .many = true,
                               .typed = true};
static const hn_markup dsml_v4 = {.name_open = "<" DSML "invoke name=\"",
                                  .name_close = "\">",
                                  .param_open = "<" DSML "parameter name=\"",
                                  .param_close = ">",
                                  .value_close = "</" DSML "parameter>",
                                  .call_close = "</" DSML "invoke>",
                                  .close = "</" DSML "tool_calls>",
                                  .close_too = "</" DSML "function_calls>",
                                  .gap = 'n',
                                  .many = true,
                                  .typed = true};
static const hn_markup minicpm = {.name_open = "<function name=\"",
                                  .name_close = "\">",
                                  .param_open = "<param name=\"",
                                  .param_close = "\">",
                                  .value_close = "</param>",
                                  .call_close = "</function>",
                                  .cdata = "]]></param>"};

const hn_call_family hn_calls_qwen3_coder = {.name = "qwen3-coder",
                                             .opens = LIST("<tool_call>", "<function="),
                                             .closes = LIST("</tool_call>"),
                                             .fits = fits_qwen,
                                             .read = hn_read_markup,
                                             .grammar = hn_grammar_markup,
                                             .may = hn_grammar_may_bare,
                                             .how = &qwen};
const hn_call_family hn_calls_seed = {.name = "seed-oss",
                                      .opens = LIST("<seed:tool_call>", "<function="),
                                      .closes = LIST("</seed:tool_call>"),
                                      .fits = fits_seed,
                                      .read = hn_read_markup,
                                      .grammar = hn_grammar_markup,
                                      .may = hn_grammar_may_bare,
                                      .how = &seed};
const hn_call_family hn_calls_glm4 = {.name = "glm4",
                                      .opens = LIST("<tool_call>"),
                                      .closes = LIST("</tool_call>"),
                                      .fits = fits_glm,
                                      .read = hn_read_markup,
                                      .grammar = hn_grammar_markup,
                                      .how = &glm};
const hn_call_family hn_calls_minimax = {.name = "minimax-m2",
                                         .opens = LIST("<minimax:tool_call>"),
                                         .closes = LIST("</minimax:tool_call>"),
                                         .fits = fits_minimax,
                                         .read = hn_read_markup,
                                         .grammar = hn_grammar_markup,
                                         .how = &minimax};
#define V32 "function_calls>"
#define V4 "tool_calls>"
const hn_call_family hn_calls_dsml = {.name = "dsml",
                                      .opens = LIST("<" DSML V32, "<" DSML V4),
                                      .closes = LIST("</" DSML V32, "</" DSML V4),
                                      .fits = fits_dsml,
                                      .read = hn_read_markup,
                                      .grammar = hn_grammar_markup,
                                      .how = &dsml};
const hn_call_family hn_calls_dsml_v4 = {.name = "dsml-v4",
                                         .opens = LIST("<" DSML V4, "<" DSML V32),
                                         .closes = LIST("</" DSML V4, "</" DSML V32),
                                         .fits = fits_dsml_v4,
                                         .read = hn_read_markup,
                                         .grammar = hn_grammar_markup,
                                         .how = &dsml_v4};
const hn_call_family hn_calls_minicpm5 = {.name = "minicpm5",
                                          .opens = LIST("<function name=\""),
                                          .closes = LIST("</function>"),
                                          .fits = fits_minicpm,
                                          .read = hn_read_markup,
                                          .grammar = hn_grammar_markup,
                                          .how = &minicpm};
