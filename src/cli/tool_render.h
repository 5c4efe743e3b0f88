/* SPDX-License-Identifier: Apache-2.0 */
/* tool_render.h - from texts and conversations to token ids: the chat template, BOS, predictions.
 *
 * Functions return 0, or the exit code after a message. */
#ifndef HN_TOOL_RENDER_H
#define HN_TOOL_RENDER_H

#include "cli/tool_prompts.h"

/* Turns messages into a text. Without a template (--raw, or the model has none) the text is their contents,
 * concatenated. */
typedef struct tool_template {
    bool raw;
    const char *path; /* --chat-template-file; NULL: the model's own */
    char *text;       /* of that file */
    json_t *args;     /* object of --template-arg and --tools */
    const char *tools;  /* the file of --tools; NULL: none */
    bool no_calls;      /* --tool-choice none: it is given no tools */
    const char *system; /* system message of every prompt not given as ids; NULL: none */
} tool_template;

/* The text of a template, to be freed with hn_free; a zero byte, which would truncate it, is wrong usage. */
int tool_template_file_read(const char *path, char **text);
/* Reads the files that the flags name; needs no model. */
int tool_template_open(tool_template *t, const tool_options *o);
void tool_template_fini(tool_template *t);
bool tool_template_used(const tool_template *t, const hunch_model *m);
/* The model's marks around thinking become those of the template's file. Arguments without a template, and tools for a template that
 * ignores them, are wrong usage. */
int tool_template_check(const tool_template *t, hunch_model *m);

/* A conversation as ids, to be freed with hn_free. */
typedef struct tool_rendered {
    hunch_token *ids;
    size_t n;
    bool chat, thinks; /* a template made it; which has opened a <think> block that the answer begins in */
} tool_rendered;
/* messages: a JSON array of {"role","content"}. An empty text is wrong usage. The message is left in err. */
int tool_messages_render(tool_rendered *out, const tool_template *t, const hunch_model *m, json_t *messages,
                         hunch_error *err);

/* Fills the ids of text and prediction. t NULL: text as it is (and no row has messages); else it is the only message of a conversation. BOS
 * is added iff the tokenizer specifies it. Empty text, invalid UTF-8, a model without tokenizer: HUNCH_USAGE. */
int tool_prompt_ids(tool_prompt *p, const hunch_model *m, const tool_template *t);
/* The same, with the message in err. */
int tool_prompt_render(tool_prompt *p, const hunch_model *m, const tool_template *t, hunch_error *err);

#endif
