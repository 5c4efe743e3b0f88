/* SPDX-License-Identifier: Apache-2.0 */
/* tool_answers_file.c - see tool_answers_file.h. */
#include "cli/tool_answers_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/tool_rows.h"

char *tool_answers_key(const json_t *id) {
    return tool_json_dump(id, JSON_ENCODE_ANY);
}

/* ---- the existing file --------------------------------------------------------------------------------------- */

typedef struct scan {
    const char *path;
    bool resume;       /* for the message */
    const json_t *ids; /* first reading: finds the rows with an answer; NULL: none is asked for */
    bool *answered;
    tool_file *to; /* second reading: copies the answers there; NULL in the first */
} scan;

static bool is_answer_line(const json_t *row) {
    const json_t *id = json_object_get(row, "id");
    return tool_row_id_fits(id) &&
           (json_is_string(json_object_get(row, "finish")) || json_is_string(json_object_get(row, "error")));
}

static void answer_take(const scan *s, const json_t *row, const char *line, size_t len) {
    if (s->to) {
        tool_file_write(s->to, line, len);
        if (line[len - 1] != '\n')
            tool_file_write(s->to, "\n", 1);
        return;
    }
    char *key = tool_answers_key(json_object_get(row, "id"));
    const json_t *at = json_object_get(s->ids, key);
    if (at)
        s->answered[json_integer_value(at)] = true;
    hn_free(key);
}

/* A last line without a line break that begins as an answer does: its process ended while it wrote it. */
static bool is_cut_off(const char *line, size_t len) {
    static const char begin[] = "{\"id\": ";
    return line[len - 1] != '\n' && strncmp(line, begin, len < sizeof begin - 1 ? len : sizeof begin - 1) == 0;
}

/* A line that was cut off is left out. Any other line that is not an answer means that the file is not one of answers. */
static int line_take(scan *s, const char *line, size_t len, int number) {
    if (strspn(line, " \t\r\n") == len)
        return 0;
    json_t *row = hn_json_load(line, len, JSON_ALLOW_NUL, NULL);
    const bool ours = is_answer_line(row);
    if (ours && !json_object_get(row, "error"))
        answer_take(s, row, line, len);
    json_decref(row);
    if (ours || is_cut_off(line, len))
        return 0;
    return tool_usage("%s:%d: not an answer, so %s leaves the file alone: expected an object with \"id\", and "
                      "\"finish\" or \"error\"%s",
                      s->path, number, s->resume ? "--resume" : "-o", s->resume ? "" : "; --force replaces it");
}

static int file_scan(scan *s) {
    FILE *f = fopen(s->path, "rb");
    if (!f && errno == ENOENT)
        return 0;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = 0;
    int code = 0, number = 0;
    while (f && !code && (n = getline(&line, &cap, f)) > 0)
        code = line_take(s, line, (size_t)n, ++number);
    if (!code && (!f || ferror(f))) {
        tool_message("%s: %s", s->path, strerror(errno));
        code = HUNCH_FAILED;
    }
    if (f)
        fclose(f);
    free(line);
    return code;
}

int tool_answers_file_check(tool_answers_file *f, const json_t *ids, bool *answered) {
    if (!f->path)
        return 0;
    if (f->resume && hn_exists(f->path) && !hn_is_file(f->path))
        return tool_usage("%s is not a file: --resume cannot read what was answered", f->path);
    const int code = tool_file_check(f->path);
    const bool there = hn_is_file(f->path);
    scan s = {.path = f->path, .resume = f->resume, .ids = f->resume ? ids : NULL, .answered = answered};
    return code || !there || (f->force && !f->resume) ? code : file_scan(&s);
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* A resumed file is rewritten without failed rows and a cut-off last line; the new file then replaces the old one. */
static int file_begin(tool_answers_file *f) {
    int code = tool_file_begin(&f->file, f->path);
    f->begun = true;
    if (code || !f->resume)
        return code;
    scan s = {.path = f->path, .resume = true, .to = &f->file};
    return (code = file_scan(&s)) ? code : tool_file_publish(&f->file);
}

int tool_answers_file_write(tool_answers_file *f, json_t *value) {
    if (!f->path || !value)
        return tool_print_json(value);
    int code = f->begun ? 0 : file_begin(f);
    char *line = code ? NULL : tool_json_dump(value, JSON_REAL_PRECISION(10));
    json_decref(value);
    if (!line)
        return code ? code : HUNCH_NO_MEMORY;
    tool_interrupts_hold(); /* a line is written whole or not at all */
    tool_file_write(&f->file, line, strlen(line));
    tool_file_write(&f->file, "\n", 1);
    code = tool_file_publish(&f->file);
    tool_interrupts_resume();
    hn_free(line);
    return code;
}

int tool_answers_file_end(tool_answers_file *f, int code) {
    const bool begun = f->begun;
    f->begun = false;
    return begun ? tool_file_end(&f->file, code) : code;
}
