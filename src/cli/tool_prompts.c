/* SPDX-License-Identifier: Apache-2.0 */
/* tool_prompts.c - see tool_prompts.h. */
#include "cli/tool_prompts.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/nearest.h"
#include "app/tool_open.h"
#include "cli/tool_rows.h"

/* ---- files --------------------------------------------------------------------------------------------------- */

/* The name in the same folder that is nearest to the path's; "" if none is near. */
static void near_file(const char *path, char *out, size_t size) {
    enum { MOST = 2000 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *names[MOST], *folder = slash ? tool_strndup(path, (size_t)(name - path)) : tool_strdup("./");
    size_t n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && n < MOST && (e = readdir(d));)
        if (e->d_name[0] != '.')
            names[n++] = tool_strdup(e->d_name);
    const char *near = hn_nearest(name, (const char *const *)names, n);
    out[0] = 0;
    if (near)
        snprintf(out, size, ", did you mean %s%s?", slash ? folder : "", near);
    while (n > 0)
        hn_free(names[--n]);
    if (d)
        closedir(d);
    hn_free(folder);
}

static int file_failed(const char *path, int error) {
    char hint[400] = "";
    if (error == ENOENT)
        near_file(path, hint, sizeof hint);
    if (error == EISDIR)
        tool_message("%s is a folder, expected a file", path);
    else
        tool_message("%s: %s%s", path, strerror(error), hint);
    return HUNCH_FAILED;
}

/* -1 if so many bytes are allowed; *most grows if they are rows, each of which is a separate text. Without a limit an endless input (a
 * device, a pipe) would use all memory before any other check. */
static int amount_check(const char *path, const char *begin, size_t len, size_t *most) {
    if (len > *most && *most < TOOL_MOST_FILE && tool_rows_begin(path, begin))
        *most = TOOL_MOST_FILE;
    if (len <= *most)
        return -1;
    const char *name = tool_is_standard(path) ? "standard input" : path;
    if (*most < TOOL_MOST_FILE)
        return tool_usage(
            "%s: more than %zu MiB, a text that no context holds: cut it, or read it in windows with hunch score", name,
            *most >> 20);
    return tool_usage("%s: more than %zu MiB, expected no more in one file: give it in parts", name, *most >> 20);
}

static int file_read(const char *path, size_t most, char **data, size_t *len) {
    bool standard = tool_is_standard(path);
    FILE *f = standard ? stdin : fopen(path, "rb");
    if (!f)
        return file_failed(path, errno);
    char *buffer = NULL;
    size_t cap = 0, n = 0, got = 1;
    struct stat st;
    int code = -1;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > TOOL_MOST_FILE) /* fails before reading */
        code = amount_check(path, "", (size_t)st.st_size, &most);
    while (got > 0 && code < 0) {
        buffer = tool_grow(buffer, &cap, n + 65536 + 1, 1);
        got = fread(buffer + n, 1, 65536, f);
        n += got;
        buffer[n] = 0;
        code = amount_check(path, buffer, n, &most);
    }
    int error = ferror(f) ? errno : 0;
    if (!standard)
        fclose(f);
    if (error || code >= 0) {
        hn_free(buffer);
        return error ? file_failed(path, error) : code;
    }
    *data = buffer;
    *len = n;
    return 0;
}

int tool_file_read(const char *path, char **data, size_t *len) {
    return file_read(path, TOOL_MOST_FILE, data, len);
}

int tool_json_read(const char *path, size_t flags, const char *wrong, json_t **out) {
    char *data;
    size_t len;
    int code = tool_file_read(path, &data, &len);
    if (code)
        return code;
    json_error_t je;
    *out = hn_json_load(data, len, flags, &je);
    hn_free(data);
    return *out ? 0 : tool_usage("%s:%d: %s: %s", path, je.line, wrong, je.text);
}

/* A byte order mark, which some editors write before a text, is not part of it. */
static size_t mark_len(const char *data, size_t len) {
    static const char mark[] = "\xEF\xBB\xBF";
    return len >= sizeof mark - 1 && memcmp(data, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
}

int tool_rows_each(const char *data, size_t len, size_t flags, const char *path, tool_row_taker take, void *user) {
    int number = 0, code = 0;
    for (const char *at = data + mark_len(data, len), *stop = data + len; at < stop && !code;) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        size_t n = (size_t)((end ? end : stop) - at);
        number++;
        if (strspn(at, " \t\r") < n) {
            json_error_t je;
            json_t *row = hn_json_load(at, n, flags, &je);
            code = row ? take(user, row, path, number)
                       : tool_usage("%s:%d: not a line of JSON: %s", path, number, je.text);
            json_decref(row);
        }
        at += n + 1;
    }
    return code;
}

int tool_tokens_from_json(const json_t *list, const char *where, hunch_token **ids, size_t *n) {
    if (!json_is_array(list))
        return tool_usage("%s: expected a JSON array of token ids", where);
    char shown[100];
    size_t count = json_array_size(list);
    if (count == 0)
        return tool_usage("%s: the list of token ids is empty", where);
    *ids = tool_alloc(count, sizeof **ids);
    *n = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id > INT32_MAX) {
            hn_free(*ids);
            *ids = NULL;
            return tool_usage("%s: entry %zu is not a token id (a whole number from 0 to %d), it is %s", where, i, INT32_MAX,
                              hn_json_show(item, shown, sizeof shown));
        }
        (*ids)[i] = (hunch_token)id;
    }
    return 0;
}

int tool_tokens_read(const char *path, hunch_token **ids, size_t *n) {
    json_t *list;
    int code = tool_json_read(path, JSON_DECODE_ANY, "expected a JSON array of token ids", &list);
    if (code)
        return code;
    code = tool_tokens_from_json(list, path, ids, n);
    json_decref(list);
    return code;
}

/* ---- prompts ------------------------------------------------------------------------------------------------- */

tool_prompt *tool_prompt_add(tool_prompts *p) {
    p->items = tool_grow(p->items, &p->cap, p->n + 1, sizeof *p->items);
    p->items[p->n] = (tool_prompt){.group = tool_strdup("")};
    return &p->items[p->n++];
}

/* Without any prompt, standard input is read as by -p -, but not from a terminal, which would seem to hang. */
static int source_choose(const tool_options *o, const char **file) {
    int given = (o->prompt != NULL) + (o->file != NULL) + (o->tokens_file != NULL);
    *file = o->file ? o->file : o->prompt && tool_is_standard(o->prompt) ? "-" : NULL;
    if (given > 1)
        return tool_usage("several prompts: give one of TEXT (-p), -f FILE and --prompt-tokens FILE");
    if (given == 1)
        return 0;
    if (!o->model)
        return tool_model_missing();
    if (strchr(o->model, ' ') && !hn_exists(o->model)) /* a text in place of MODEL */
        return tool_usage("no model: MODEL comes before the text \"%s\" (hunch help models)", o->model);
    if (tool_is_terminal(stdin))
        return tool_usage("no prompt: give TEXT, -f FILE or --prompt-tokens FILE, or talk with hunch chat %s",
                          o->model);
    *file = "-";
    return 0;
}

/* Editors end files with one; it is not part of a prompt, nor of a text that is scored like one. */
static void last_newline_drop(tool_prompt *p) {
    if (p->len && p->text[p->len - 1] == '\n')
        p->text[--p->len] = 0;
}

int tool_text_read(tool_prompt *p, const tool_options *o) {
    *p = (tool_prompt){0};
    int code = source_choose(o, &p->path);
    if (code)
        return code;
    if (o->tokens_file)
        return tool_tokens_read(o->tokens_file, &p->ids, &p->n_ids);
    if (p->path) {
        const bool in_windows = o->command & (TOOL_SCORE | TOOL_TOKENIZE); /* of any length */
        code = file_read(p->path, in_windows ? TOOL_MOST_FILE : TOOL_MOST_TEXT, &p->text, &p->len);
        if (tool_is_standard(p->path))
            p->path = "standard input";
        if (!code && p->len == 0 && !o->file && !o->prompt)
            code = tool_usage("no prompt: standard input is empty; give TEXT, -f FILE or --prompt-tokens FILE");
        if (!code && (o->command & TOOL_SCORE))
            last_newline_drop(p);
        return code;
    }
    p->len = strlen(o->prompt);
    p->text = tool_strndup(o->prompt, p->len);
    return 0;
}

int tool_prompts_read(tool_prompts *p, const tool_options *o) {
    *p = (tool_prompts){0};
    tool_prompt one;
    int code = tool_text_read(&one, o);
    if (code) {
        tool_prompt_fini(&one);
        return code;
    }
    const bool from_file = one.path != NULL;
    if (from_file) {
        size_t mark = mark_len(one.text, one.len);
        one.len -= mark;
        memmove(one.text, one.text + mark, one.len + 1);
    }
    if (from_file && (code = tool_rows_read(p, one.text, one.len, one.path)) >= 0) {
        tool_prompt_fini(&one);
        return code;
    }
    if (from_file)
        last_newline_drop(&one);
    one.id = json_integer(1);
    one.group = tool_strdup("");
    hn_free(tool_prompt_add(p)->group);
    p->items[0] = one;
    return 0;
}

const char *tool_prompt_where(const tool_prompt *p, char *out, size_t size) {
    out[0] = 0;
    if (p->line)
        snprintf(out, size, "%.1000s:%d: ", p->path, p->line);
    else if (p->path)
        snprintf(out, size, "%.1000s: ", p->path);
    return out;
}

void tool_prompt_ids_drop(tool_prompt *p) {
    const bool given = !p->text && !p->messages;
    if (!given) {
        hn_free(p->ids);
        p->ids = NULL;
        p->n_ids = 0;
    }
    hn_free(p->prediction_ids);
    p->prediction_ids = NULL;
    p->n_prediction = 0;
}

void tool_prompt_fini(tool_prompt *p) {
    json_decref(p->id);
    json_decref(p->messages);
    json_decref(p->tools);
    json_decref(p->settings);
    hn_free(p->stops);
    hn_free(p->stop_tokens);
    hn_free(p->drafters);
    hn_free(p->group);
    hn_free(p->text);
    hn_free(p->ids);
    hn_free(p->prediction);
    hn_free(p->prediction_ids);
    *p = (tool_prompt){0};
}

void tool_prompts_fini(tool_prompts *p) {
    for (size_t i = 0; i < p->n; i++)
        tool_prompt_fini(&p->items[i]);
    hn_free(p->items);
    json_decref(p->unknown);
    *p = (tool_prompts){0};
}
