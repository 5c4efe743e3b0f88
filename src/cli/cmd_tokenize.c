/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tokenize.c - `hunch tokenize`: ids and pieces of texts, and chat templates rendered, with or without a model. */
#include <stdlib.h>
#include <string.h>

#include "app/tool_options.h"
#include "app/tool_open.h"
#include "cli/tool_prompts.h"
#include "cli/tool_render.h"

static json_t *pieces_json(const hunch_model *m, const hunch_token *ids, size_t n, hunch_error *err) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const char *bytes;
        size_t len;
        if (hunch_token_piece(m, ids[i], &bytes, &len, NULL, err) != HUNCH_OK) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, tool_json_piece(bytes, len));
    }
    return list;
}

static void ids_print(const hunch_token *ids, const json_t *pieces) {
    size_t i;
    const json_t *piece;
    json_array_foreach (pieces, i, piece) {
        char *quoted = json_dumps(piece, JSON_ENCODE_ANY);
        printf("%d\t%s\n", (int)ids[i], quoted ? quoted : "");
        free(quoted);
    }
}

static int text_tokenize(const hunch_model *m, const char *text, size_t len, int flags, bool json) {
    hunch_error err = {0};
    hunch_token *ids;
    size_t n;
    if (hunch_tokenize(m, text, len, flags, &ids, &n, &err) != HUNCH_OK)
        return tool_failed(&err);
    json_t *pieces = pieces_json(m, ids, n, &err);
    int code = 0;
    if (!pieces)
        code = tool_failed(&err);
    else if (json)
        code = tool_print_json(json_pack("{s:o,s:O}", "ids", tool_json_ids(ids, n), "pieces", pieces));
    else
        ids_print(ids, pieces);
    json_decref(pieces);
    hunch_free(ids);
    return code ? code : tool_done(HUNCH_OK);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* Flags of a row; without a key as for -p. */
static int row_flags(const json_t *row) {
    const json_t *parse = json_object_get(row, "parse_special"), *add = json_object_get(row, "add_special");
    return (parse && !json_is_true(parse) ? 0 : HUNCH_TEXT_PARSE_SPECIAL) |
           (json_is_true(add) ? HUNCH_TEXT_ADD_SPECIAL : 0);
}

static int row_tokenize(void *model, json_t *row, const char *path, int line) {
    const json_t *text = json_object_get(row, "text");
    return json_is_string(text)
               ? text_tokenize(model, json_string_value(text), json_string_length(text), row_flags(row), true)
               : tool_usage("%s:%d: expected an object with \"text\"", path, line);
}

static int rows_tokenize(hunch_model *m, const char *path) {
    char *data;
    size_t len;
    int code = tool_file_read(path, &data, &len);
    if (code)
        return code;
    code = tool_rows_each(data, len, JSON_ALLOW_NUL, path, row_tokenize, m);
    hn_free(data);
    return code;
}

/* ---- templates ----------------------------------------------------------------------------------------------- */

/* The variables as text of a JSON object; a list alone is the messages. NULL after a message, *code set. */
static char *vars_read(const char *path, int *code) {
    json_t *vars;
    if ((*code = tool_json_read(path, JSON_ALLOW_NUL, "not JSON", &vars)))
        return NULL;
    if (json_is_array(vars))
        vars = json_pack("{s:o}", "messages", vars);
    char *dump = tool_json_dump(vars, 0);
    json_decref(vars);
    if (!dump) {
        tool_message("out of memory for the variables of %s", path);
        *code = HUNCH_NO_MEMORY;
    }
    return dump;
}

static int template_file_render(const tool_options *o, const char *vars, char **text, size_t *len) {
    char *source;
    hunch_error err = {0};
    int code = tool_template_file_read(o->template_file, &source);
    if (code)
        return code;
    if (hunch_template_render(source, vars, o->now, text, len, &err) != HUNCH_OK)
        code = tool_failed(&err);
    hn_free(source);
    return code;
}

static int rendered_show(const tool_options *o, const hunch_model *m, const char *text, size_t len) {
    if (!o->text_only)
        return text_tokenize(m, text, len, HUNCH_TEXT_PARSE_SPECIAL, o->json);
    if (o->json)
        return tool_print_json(json_pack("{s:o}", "text", tool_json_text(text, len)));
    fwrite(text, 1, len, stdout);
    return tool_done(HUNCH_OK);
}

static int template_run(const tool_options *o) {
    hunch_model *m = NULL;
    hunch_error err = {0};
    char *text = NULL;
    size_t len = 0;
    int code = 0;
    if (!o->messages_file)
        return tool_usage("tokenize: --template needs --messages FILE");
    if (o->prompt || o->file || o->json_lines)
        return tool_usage("tokenize: --messages contradicts %s: give one of them",
                          o->file ? "-f" : o->prompt ? "a TEXT" : "--json-lines");
    if (o->now && !o->template_file)
        return tool_usage("tokenize: --now needs --template FILE");
    char *vars = vars_read(o->messages_file, &code);
    if (!code && (!o->template_file || !o->text_only))
        code = tool_text_open(&m, o);
    if (!code && o->template_file)
        code = template_file_render(o, vars, &text, &len);
    else if (!code && hunch_chat_render(m, vars, NULL, &text, &len, &err) != HUNCH_OK)
        code = tool_failed(&err);
    if (!code)
        code = rendered_show(o, m, text, len);
    hunch_free(text);
    hn_free(vars);
    hunch_model_close(&m);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int tokenize_text(const tool_options *o) {
    hunch_model *m = NULL;
    tool_prompt p = {0};
    if (o->json_lines && !o->file)
        return tool_usage("tokenize: --json-lines needs -f FILE");
    int code = o->json_lines ? 0 : tool_text_read(&p, o);
    if (!code)
        code = tool_text_open(&m, o);
    if (!code)
        code = o->json_lines ? rows_tokenize(m, o->file)
                             : text_tokenize(m, p.text, p.len, HUNCH_TEXT_PARSE_SPECIAL, o->json);
    tool_prompt_fini(&p);
    hunch_model_close(&m);
    return code;
}

int tool_tokenize(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_TOKENIZE, argc, argv);
    if (code >= 0)
        return code;
    if (o.text_only && !o.messages_file)
        code = tool_usage("tokenize: --text needs --messages FILE");
    else
        code = o.template_file || o.messages_file ? template_run(&o) : tokenize_text(&o);
    tool_options_fini(&o);
    return code;
}
