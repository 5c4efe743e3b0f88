/* SPDX-License-Identifier: Apache-2.0 */
/* tool_render.h - from texts and conversations to token ids: the chat template, BOS, predictions.
 *
 * Functions return 0, or the exit code after their message was shown. */
#ifndef HN_TOOL_RENDER_H
#define HN_TOOL_RENDER_H

#include "tool_prompts.h"

/* What turns messages into a text. Without a template (--raw, or the model has none) it is their contents in a row. */
typedef struct tool_template {
    bool raw;
    const char *path; /* --chat-template-file; NULL: the model's own */
    char *text;       /* of that file */
    json_t *args;     /* object of --template-arg and --tools */
    const char *tools;  /* the file of --tools; NULL: none */
    const char *system; /* said before every prompt that is not of ids; NULL: nothing */
} tool_template;

/* The text of a template, to be freed with free; one that holds a zero byte, which would cut it, is wrong usage. */
int tool_template_file_read(const char *path, char **text);
/* Reads what the flags name, before a model is there. */
int tool_template_open(tool_template *t, const tool_options *o);
void tool_template_fini(tool_template *t);
bool tool_template_used(const tool_template *t, const hunch_model *m);
/* Arguments for a template that is not there, and tools for one that has no place for them, are wrong usage. */
int tool_template_check(const tool_template *t, const hunch_model *m);

/* A conversation as ids, to be freed with free. */
typedef struct tool_rendered {
    hunch_token *ids;
    size_t n;
    bool thinks; /* the template has opened a <think> block that the answer begins in */
} tool_rendered;
/* messages: a JSON array of {"role","content"}. An empty text is wrong usage. The message is left in err. */
int tool_messages_render(tool_rendered *out, const tool_template *t, const hunch_model *m, json_t *messages, hunch_error *err);

/* Fills the ids of text and prediction. t NULL: text as it is (and no row has messages); else it is the one message of a
 * conversation. BOS is added iff the tokenizer says so. Empty text, invalid UTF-8, a model without tokenizer: HUNCH_USAGE. */
int tool_prompt_ids(tool_prompt *p, const hunch_model *m, const tool_template *t);
/* The same, with the message in err. */
int tool_prompt_render(tool_prompt *p, const hunch_model *m, const tool_template *t, hunch_error *err);

#endif
