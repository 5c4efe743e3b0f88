/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_regex.c - a regular expression, and a text that is matched with it. */
#include "fuzz_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_grammar(hn_grammar_regex, data, size);
}
