/* SPDX-License-Identifier: Apache-2.0 */
/* tool_open.h - from flags to an open model, engine and request. Functions that open return 0, or the exit code after
 * their message was shown. */
#ifndef HN_TOOL_OPEN_H
#define HN_TOOL_OPEN_H

#include "tool_options.h"

int tool_model_missing(void); /* says so; HUNCH_USAGE */
/* Needs a model; shows a bar while loading. *load_s: seconds it took (may be NULL). */
int tool_model_open(hunch_model **out, const tool_options *o, double *load_s);

/* Needs a model; its tokenizer and chat template alone. */
int tool_text_open(hunch_model **out, const tool_options *o);

/* One drafting method: the SPECs that draft together. */
typedef struct tool_method {
    char *text;          /* as given, SPECs joined by + */
    char *copy;          /* storage of the parts */
    const char **drafts; /* one SPEC each; point into copy */
    int n_drafts;
} tool_method;
/* All of `specs` together, each a SPEC or SPEC+SPEC. n = 0: the default, auto. */
void tool_method_init(tool_method *m, const char *const *specs, int n);
void tool_method_fini(tool_method *m);

hunch_lossy tool_lossy(const tool_options *o);
/* method NULL: plain, by the rule that plain decoding has. context 0: --context, or the engine's own. parallel: sequences
 * at once. */
int tool_engine_open(hunch_engine **out, hunch_model *m, const tool_options *o, const tool_method *method, int context,
                     int parallel);

/* Says what was found in drafters' files and what the engine has noted, each once, however many engines open. Called when nothing
 * will be refused any more (a refusal is one line), and again behind an answer. */
void tool_drafters_note(const hunch_engine *e);

uint64_t tool_random_seed(void);
/* What makes place for a text of so many tokens: "--context N makes room", or that nothing does. Writes to `text` [80]. */
const char *tool_context_cure(const hunch_model *m, size_t tokens, char *text);

/* What the flags say of sampling, over what stands there. Without --seed a random one is drawn. Lists belong to o. */
void tool_sampling_set(hunch_sampling *s, const tool_options *o);
/* Sampling and limits from flags over the model's defaults; the prompt is left to the caller. default_n 0: as many as
 * the context holds. Stop strings belong to o. */
void tool_request_init(hunch_request *r, const hunch_model *m, const tool_options *o, int default_n);
/* Whether any prompt could be answered so; if not, that is known before the first one. */
int tool_request_try(hunch_engine *e, const hunch_request *r);

#endif
