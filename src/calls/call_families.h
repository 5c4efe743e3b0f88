/* SPDX-License-Identifier: Apache-2.0 */
/* call_families.h - the families, and what those that write JSON share. */
#ifndef HN_CALL_FAMILIES_H
#define HN_CALL_FAMILIES_H
#include "calls/call_reader.h"

/* Objects with names and arguments behind a mark: one after the other, or in a list. */
typedef struct hn_block {
    bool object, list;   /* what may stand behind the mark */
    bool needs_args;     /* an object without arguments is no call */
    const char *between; /* letters that may stand between objects outside a list */
    const char *close;   /* the mark behind them; NULL: none. It may be missing */
} hn_block;
hn_call_events hn_read_block(hn_call_reader *r); /* `how` of the family is a hn_block */

/* A name and arguments between marks. */
typedef struct hn_marked {
    const char *inner, *separator, *inner_end, *outer_end;
    const char *type; /* stands in the name's place, the name on a line behind the separator; NULL: never */
    void (*resolve)(const hn_call_reader *r, hn_span *name, hn_span *id); /* what stands in the name's place; NULL: the name */
} hn_marked;
hn_call_events hn_read_marked(hn_call_reader *r); /* `how` of the family is a hn_marked, its marks are the outer one and the inner one */

/* [name(key=value, ..), ..] in Python's spelling, from `at` on; r->step is to be 0 before. HN_CALL_CLOSED: it is whole. (call_python.c) */
hn_call_events hn_read_python(hn_call_reader *r);

/* Their grammars (call_grammars_json.c, call_grammars_other.c). */
int32_t hn_grammar_hermes(hn_call_grammar *g, bool opened),
    hn_grammar_llama3(hn_call_grammar *g, bool opened),
    hn_grammar_list(hn_call_grammar *g, bool opened),
    hn_grammar_mistral_json(hn_call_grammar *g, bool opened),
    hn_grammar_command(hn_call_grammar *g, bool opened),
    hn_grammar_kimi(hn_call_grammar *g, bool opened),
    hn_grammar_deepseek_r1(hn_call_grammar *g, bool opened),
    hn_grammar_deepseek_v31(hn_call_grammar *g, bool opened),
    hn_grammar_mistral_args(hn_call_grammar *g, bool opened),
    hn_grammar_functionary(hn_call_grammar *g, bool opened),
    hn_grammar_harmony(hn_call_grammar *g, bool opened),
    hn_grammar_markup(hn_call_grammar *g, bool opened),
    hn_grammar_python(hn_call_grammar *g, bool opened),
    hn_grammar_gemma(hn_call_grammar *g, bool opened);
/* Of answers that may call (call_grammars_may.c, call_grammars_json.c). */
int32_t hn_grammar_may_llama3(hn_call_grammar *g),
    hn_grammar_may_pythonic(hn_call_grammar *g),
    hn_grammar_may_functionary(hn_call_grammar *g),
    hn_grammar_may_bare(hn_call_grammar *g),
    hn_grammar_may_harmony(hn_call_grammar *g);

static inline bool hn_has(const char *text, size_t len, const char *part) {
    return memmem(text, len, part, strlen(part)) != NULL;
}

extern const hn_call_family hn_calls_hermes, hn_calls_llama3, hn_calls_llama_pythonic, hn_calls_lfm2, hn_calls_mistral_json,
    hn_calls_mistral_args, hn_calls_deepseek_r1, hn_calls_deepseek_v31, hn_calls_kimi, hn_calls_command_r7b, hn_calls_functionary,
    hn_calls_granite3, hn_calls_phi4, hn_calls_qwen3_coder, hn_calls_seed, hn_calls_glm4, hn_calls_minimax, hn_calls_dsml, hn_calls_dsml_v4,
    hn_calls_minicpm5, hn_calls_gemma4, hn_calls_harmony, hn_calls_none;
#endif
