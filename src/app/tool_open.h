/* SPDX-License-Identifier: Apache-2.0 */
/* tool_open.h - opens a model and an engine and makes requests by the flags. Functions that open return 0, or the exit
 * code after a message. */
#ifndef HN_TOOL_OPEN_H
#define HN_TOOL_OPEN_H

#include "app/tool_options.h"

int tool_model_missing(void); /* prints a message; returns HUNCH_USAGE */
/* Opens --model with a progress bar; an error if it is missing. *load_s: seconds it took (may be NULL). */
int tool_model_open(hunch_model **out, const tool_options *o, double *load_s);

/* The same, but only its tokenizer and chat template. */
int tool_text_open(hunch_model **out, const tool_options *o);

/* One drafting method: the SPECs that draft together. */
typedef struct tool_method {
    char *text;          /* as given, SPECs joined by + */
    char *copy;          /* storage of the parts */
    const char **drafts; /* one SPEC each; point into copy */
    int n_drafts;
} tool_method;
/* Joins all of `specs`, each a SPEC or SPEC+SPEC. n = 0: the default, auto. */
void tool_method_init(tool_method *m, const char *const *specs, int n);
void tool_method_fini(tool_method *m);

hunch_lossy tool_lossy(const tool_options *o);
/* By the flags: all but the drafters, and how many sequences run at once. */
void tool_engine_options(hunch_engine_options *eo, const tool_options *o);
/* method NULL: plain decoding with its own rule. context 0: --context, or the engine's own. parallel: sequences at once. */
int tool_engine_open(hunch_engine **out, hunch_model *m, const tool_options *o, const tool_method *method, int context,
                     int parallel);

/* Prints what was found in drafters' files and the engine's notes, each once, however many engines open. Call it when nothing can be
 * refused any more (a refusal is one line), and again after an answer. */
void tool_drafters_note(const hunch_engine *e);

uint64_t tool_random_seed(void);
/* Advice for a text of so many tokens: "--context N makes room" with a way of "--context ", or the model's limit. Writes to `text` [80]. */
const char *tool_context_advice(const hunch_model *m, size_t tokens, const char *way, char *text);
/* Whether a prompt of n tokens fits the engine's context; if not, HUNCH_USAGE with that advice. */
hunch_status tool_context_check(const hunch_engine *e, const hunch_model *m, size_t n, hunch_error *err);

/* The model's defaults, overridden by the sampling and limits of the flags; the prompt is left to the caller. default_n
 * 0: as many as the context holds. Without --seed a random one is drawn. Lists belong to o. */
void tool_request_init(hunch_request *r, const hunch_model *m, const tool_options *o, int default_n);
/* Checks, before the first prompt, that a request with these settings is accepted. 0, or an exit code after a
 * message. */
int tool_request_try(hunch_engine *e, const hunch_request *r);

#endif
