/* SPDX-License-Identifier: Apache-2.0 */
/* tool_file.c - see tool_file.h. */
#include "app/tool_file.h"

#include <unistd.h>

int tool_file_place(char **place, char **partial, const char *path) {
    hunch_error err = {0};
    *partial = *place = NULL;
    if (!tool_is_standard(path) && hn_out_resolve(path, place, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (*place)
        *partial = tool_joined(*place, HN_OUT_PARTIAL);
    tool_signals_remove(*partial);
    return 0;
}

int tool_file_begin(tool_file *f, const char *path) {
    char *place;
    *f = (tool_file){0};
    const int code = tool_file_place(&place, &f->partial, path);
    hn_free(place);
    if (code)
        return code;
    hunch_error err = {0};
    fflush(stdout);
    const hunch_status st = tool_is_standard(path) ? hn_out_open_descriptor(&f->out, STDOUT_FILENO, "standard output", &err)
                                                   : hn_out_open(&f->out, path, false, &err);
    return st ? tool_failed(&err) : 0;
}

int tool_file_check(const char *path) {
    tool_file f = {0};
    char *place;
    int code = tool_file_place(&place, &f.partial, path);
    const bool renamed = !code && place;
    hn_free(place);
    tool_file_end(&f, HUNCH_FAILED);
    if (!renamed)
        return code;
    code = tool_file_begin(&f, path);
    tool_file_end(&f, HUNCH_FAILED);
    return code;
}

void tool_file_write(tool_file *f, const void *data, size_t size) {
    if (!f->error.status)
        hn_out_write(f->out, data, size, &f->error);
}

static void partial_gone(tool_file *f) {
    tool_signals_remove(NULL);
    hn_free(f->partial);
    f->partial = NULL;
}

int tool_file_publish(tool_file *f) {
    if (!f->error.status && hn_out_publish(f->out, &f->error) == HUNCH_OK) {
        partial_gone(f);
        return 0;
    }
    return tool_failed(&f->error);
}

int tool_file_end(tool_file *f, int code) {
    if (!code && !f->error.status)
        hn_out_finish(&f->out, &f->error);
    if (!code && f->error.status)
        code = tool_failed(&f->error);
    hn_out_abort(&f->out);
    partial_gone(f);
    return code;
}
