/* SPDX-License-Identifier: Apache-2.0 */
/* tool_prompts.h - reads prompts and texts from the command line, text files, JSON lines and token files.
 *
 * Reading happens before the model is loaded, so that a missing file is reported at once; tool_render.h turns texts into token ids.
 * Functions return 0, or the exit code after a message. */
#ifndef HN_TOOL_PROMPTS_H
#define HN_TOOL_PROMPTS_H

#include "app/tool_options.h"

typedef struct tool_prompt {
    json_t *id;       /* as in the file, else the number of its line; 1 without lines */
    char *group;      /* "" if none */
    const char *path; /* of its file, as messages name it; NULL: from the command line or a token file */
    int line;         /* of the row in the file; 0: the file is a text */
    char *text;       /* NULL: ids or messages were given */
    size_t len;
    json_t *messages; /* of a row that is a conversation; NULL: none */
    json_t *tools;    /* of a row with messages or a text; NULL: none */
    json_t *settings; /* keys of a row that have a flag: tool_row_keys.h; NULL: none */
    const char **stops; /* stop strings among them; their texts belong to settings */
    int n_stops;
    hunch_token *stop_tokens; /* [n_stop_tokens] among them */
    size_t n_stop_tokens;
    const char **drafters; /* names of those that may propose, likewise; NULL: not given */
    int n_drafters;
    hunch_token *ids; /* of a token file or row, or made by tool_prompt_ids */
    size_t n_ids;
    char *prediction; /* text that a row expects as the answer; NULL: none */
    size_t prediction_len;
    hunch_token *prediction_ids; /* made by tool_prompt_ids */
    size_t n_prediction;
    bool chat, thinks; /* set by tool_prompt_ids: a template made it; which has opened a <think> block that the answer begins in */
} tool_prompt;

typedef struct tool_prompts {
    tool_prompt *items;
    size_t n, cap;
    bool rows;       /* they come from JSON rows, not one text */
    json_t *unknown; /* unknown keys, each with its first line; NULL: none */
} tool_prompts;

/* Limits in bytes: of a text for one context, far above any real one; and of any file that is read into memory. */
enum { TOOL_MOST_TEXT = 64 << 20, TOOL_MOST_FILE = 1 << 30 };

/* A whole file ("-": standard input), NUL-terminated, to be freed with hn_free. Cannot be read: HUNCH_FAILED; more than
 * TOOL_MOST_FILE: HUNCH_USAGE. */
int tool_file_read(const char *path, char **data, size_t *len);
/* The JSON of a file, read with these flags of jansson. Not JSON: HUNCH_USAGE, with the line and `wrong`. */
int tool_json_read(const char *path, size_t flags, const char *wrong, json_t **out);
/* Calls take for every line of data that is not blank, until one returns an exit code, and returns that. path: for messages. A line that is
 * not JSON: HUNCH_USAGE. */
typedef int (*tool_row_taker)(void *user, json_t *row, const char *path, int line);
int tool_rows_each(const char *data, size_t len, size_t flags, const char *path, tool_row_taker take, void *user);
/* A JSON array of ids. Not one: HUNCH_USAGE, and `where` names it. */
int tool_tokens_from_json(const json_t *list, const char *where, hunch_token **ids, size_t *n);
int tool_tokens_read(const char *path, hunch_token **ids, size_t *n);

/* Prompts of -p, -f and --tokens, at most one of which may be given; without any, of standard input unless that is a
 * terminal. Files may hold JSON lines; a byte order mark before them or before a text is dropped. */
int tool_prompts_read(tool_prompts *p, const tool_options *o);
tool_prompt *tool_prompt_add(tool_prompts *p); /* an empty one */
/* One text of -p or -f, unchanged (for `score` without a file's last newline), or the ids of --tokens. */
int tool_text_read(tool_prompt *p, const tool_options *o);
void tool_prompts_fini(tool_prompts *p);
void tool_prompt_fini(tool_prompt *p);
void tool_prompt_ids_drop(tool_prompt *p); /* frees the ids of its text, conversation and prediction */
/* The beginning of messages about a prompt: "FILE:LINE: ", "FILE: " or nothing. Returns out. */
const char *tool_prompt_where(const tool_prompt *p, char *out, size_t size);

#endif
