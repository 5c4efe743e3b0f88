/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_gbnf.c - a grammar in GBNF, and a text that is matched with it. */
#include "fuzz_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_grammar(hn_grammar_gbnf, data, size);
}
