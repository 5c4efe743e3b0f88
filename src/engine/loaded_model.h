/* SPDX-License-Identifier: Apache-2.0 */
/* loaded_model.h - the model behind hunch_model: what model_api.c loads, the templates and marks of its answers (chat_api.c,
 * answer_parts.c), the grammars that they obey (grammar_api.c), and the device that computes it (device_api.c). Owned by whoever opened it;
 * engines borrow it, and nothing of it changes while one is open but its account of memory and its grammars, which have locks. */
#ifndef HN_LOADED_MODEL_H
#define HN_LOADED_MODEL_H
#include "calls/calls.h"
#include "grammar/matcher.h"
#include "model/model.h"
#include "text/jinja/template.h"
#include "text/tokenizer/tokenizer.h"
#include "base/account.h"

struct hunch_model {
    hn_model target;
    hn_account account;        /* of its memory, and of the engines that are open on it */
    const char *level;         /* of its passes: of the CPU, or of a device; "" without weights */
    char *path;                /* its file or folder, for messages */
    hn_source *mapped;         /* the files that hold its matrices; NULL: they are in memory */
    hn_tokenizer *tokenizer;   /* NULL: none */
    hn_template *chat;         /* NULL: none */
    hn_template *chat_tools;   /* for conversations with tools; NULL: chat */
    char *chat_refused, *chat_tools_refused; /* why the file's templates are not used; NULL: they are, or there are none */
    const char *think_begin, *think_end; /* the template's marks around thinking */
    bool may_think;      /* the template has such marks, or channels */
    bool think_channels; /* answers are messages whose headers name channels (answer_parts.c) */
    bool think_special;  /* the marks are special tokens */
    int32_t *think_stop; /* [n_think_stop] tokens of the end mark; NULL: no tokenizer */
    int n_think_stop;
    const hn_call_family *calls, *calls_tools; /* how the two templates write calls of tools; NULL: no known format, or no template */
    struct hn_grammars *grammars; /* of its answers (grammar_api.c) */
    char *chat_bos, *chat_eos; /* names of those tokens for the template, "" if absent */
    int threads;
    double load_seconds;
    int n_unused;              /* tensors of the file that are not used, and the names of the first */
    char unused[200];
    hunch_precision precision;
    bool text_only; /* target is zeroed */
    struct hn_machines *machines; /* borrowed: those that run its passes with this one; NULL: none do */
};

/* ---- device_api.c ---- */

/* The backend of a device by its name (hunch_model_options.device); *out NULL: this CPU's own. */
hunch_status hn_device_open(hn_backend **out, const char *name, bool f32, hunch_error *err);

/* ---- model_api.c ---- */

hunch_status hn_need_tokenizer(const hunch_model *m, hunch_error *err); /* HUNCH_USAGE: the model has none */
hn_dtype hn_kv_type(const hunch_model *m, hunch_kv kv); /* of the cache; DEFAULT: that of the precision */
/* The error for a text (what: "prompt") of n tokens that does not fit the context; it names a context that is large enough, if
 * there is one. */
hunch_status hn_fail_context(const hunch_engine *e, const char *what, size_t n, hunch_error *err);

/* ---- answer_parts.c ---- */

/* Chooses the marks around thinking that a template has; NULL: the usual ones. */
hunch_status hn_think_marks(hunch_model *m, const char *template_text, size_t len, hunch_error *err);
/* As hunch_prompt_thinks, of tokens. */
bool hn_tokens_think(const hunch_model *m, const int32_t *token, size_t n);

/* ---- grammar_api.c ---- */

hunch_status hn_grammars_open(hunch_model *m, uint64_t bytes, hunch_error *err);
void hn_grammars_close(hunch_model *m);
/* The grammar that the model keeps under a key, which has all that it depends on; else the one that `make` makes of its source. */
typedef hunch_status hn_grammar_maker(hn_grammar **out, const hunch_model *m, const void *source, hunch_error *err);
hunch_status hn_grammar_shared(hunch_grammar **out, const hunch_model *m, const char *key, size_t n, hn_grammar_maker *make,
                               const void *source, hunch_error *err);
/* One more user, who closes it; NULL is fine. */
hunch_grammar *hn_grammar_use(hunch_grammar *g);
hn_matcher *hn_grammar_matcher(const hunch_grammar *g);
bool hn_grammar_has_end(const hunch_grammar *g); /* the vocabulary has a token that ends texts */
bool hn_grammar_fits(const hunch_grammar *g, const hunch_model *m); /* it was made for the model; NULL fits */
#endif
