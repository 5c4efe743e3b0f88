/* SPDX-License-Identifier: Apache-2.0 */
/* tool_check_files.c - see tool_check_files.h. Files are identified by device and inode; only regular files can be lost. */
#include "app/tool_check_files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file_out.h"
#include "base/mem.h"
#include "engine/program_files.h"
#include "app/tool_file.h"
#include "app/tool_flags.h"
#include "app/tool_open.h"

typedef struct identity {
    bool known;
    dev_t device;
    ino_t node;
} identity;

typedef struct written {
    const char *flag;
    char *path, *place;    /* place: path with its links followed; NULL: written directly */
    identity file, partial, folder; /* file, partial: unknown if it does not exist */
} written;

typedef struct file_check {
    const tool_options *o;
    const tool_command *c;
    tool_method method; /* all drafters named by the flags */
    written *items;
    size_t n, cap;
    const char *reader; /* flag whose files are being checked */
    int code;           /* -1: no clash so far */
} file_check;

static identity identity_of(const char *path, mode_t kind) {
    struct stat st;
    if (stat(path, &st) != 0 || (st.st_mode & S_IFMT) != kind)
        return (identity){0};
    return (identity){true, st.st_dev, st.st_ino};
}

static bool same(identity a, identity b) {
    return a.known && b.known && a.device == b.device && a.node == b.node;
}

/* ---- files written ----------------------------------------------------------------------------------------------- */

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Finds the file's identities. Errors are reported later, when the file is opened. */
static void places_find(written *w) {
    w->file = identity_of(w->path, S_IFREG);
    if (hn_out_resolve(w->path, &w->place, NULL) != HUNCH_OK || !w->place)
        return;
    char *name = tool_joined(w->place, HN_OUT_PARTIAL);
    w->partial = identity_of(name, S_IFREG);
    strcpy(name, w->place);
    name[base_of(name) - name] = 0;
    w->folder = identity_of(*name ? name : ".", S_IFDIR);
    hn_free(name);
}

static bool same_place(const written *a, const written *b) {
    if (!a->place || !b->place)
        return false;
    if (a->file.known || b->file.known)
        return same(a->file, b->file);
    return same(a->folder, b->folder) && strcmp(base_of(a->place), base_of(b->place)) == 0;
}

static void written_add(file_check *g, const char *flag, const char *path) {
    g->items = tool_grow(g->items, &g->cap, g->n + 1, sizeof *g->items);
    written *w = &g->items[g->n++];
    const char *name = tool_is_standard(path) ? "/dev/stdout" : path;
    *w = (written){.flag = flag, .path = tool_strdup(name)};
    places_find(w);
    for (written *other = g->items; other < w && g->code < 0; other++)
        if (same_place(other, w))
            g->code = tool_usage("%s: %s %s and %s %s are one file: expected two", g->c->name, other->flag, other->path,
                                 w->flag, w->path);
}

static void spec_written(void *user, const char *file, hn_file_use use) {
    if (use == HN_FILE_WRITTEN)
        written_add(user, "--draft: save", file);
}

/* ---- files read -------------------------------------------------------------------------------------------------- */

static void read_check(void *user, const char *file) {
    file_check *g = user;
    const identity id = identity_of(tool_is_standard(file) ? "/dev/stdin" : file, S_IFREG);
    for (const written *w = g->items; w < g->items + g->n && g->code < 0; w++) {
        const bool partial = same(id, w->partial);
        if (partial || same(id, w->file))
            g->code =
                tool_usage("%s: %s %s%s would be written over a file that the command reads (%s): expected another",
                           g->c->name, w->flag, w->path, partial ? ", " HN_OUT_PARTIAL " at first," : "", g->reader);
    }
}

static void note_error(file_check *g, hunch_status status, const hunch_error *err) {
    if (status != HUNCH_OK && g->code < 0)
        g->code = tool_failed(err);
}

static void model_check(file_check *g, const char *model) {
    hunch_error err = {0};
    note_error(g, hn_model_files(model, read_check, g, &err), &err);
}

static void spec_read(void *user, const char *file, hn_file_use use) {
    if (use == HN_FILE_READ)
        read_check(user, file);
    else if (use == HN_FILE_MODEL)
        model_check(user, file);
}

static bool is_called(const tool_flag *f, const char *value) {
    return f->value && strcmp(f->value, value) == 0;
}

/* The name of a flag in messages: its short one, if any. */
static const char *flag_text(const tool_flag *f) {
    return f->alias && strlen(f->alias) == 2 ? f->alias : f->name;
}

/* Whether standard input is the prompt. */
static bool input_is_read(const file_check *g) {
    const tool_options *o = g->o;
    if (g->c->bit == TOOL_CHAT || (o->prompt && tool_is_standard(o->prompt)))
        return true;
    return tool_flag_find("--prompt", strlen("--prompt"), g->c->bit) && !o->prompt && !o->file && !o->tokens_file;
}

/* ---- all flags --------------------------------------------------------------------------------------------------- */

typedef void (*flag_taker)(file_check *g, const tool_flag *f, const char *value);

static void flags_each(file_check *g, flag_taker take) {
    for (const tool_flag *f = tool_flags; f < tool_flags + tool_n_flags && g->code < 0; f++) {
        const bool text = (f->kind == TOOL_TEXT || f->kind == TOOL_PLACE) && (f->commands & g->c->bit);
        const char *value = text ? *(const char *const *)(const void *)((const char *)g->o + f->at) : NULL;
        if (value)
            take(g, f, value);
    }
}

static void specs_each(file_check *g, void (*each)(void *user, const char *file, hn_file_use use)) {
    hunch_error err = {0};
    for (int i = 0; i < g->method.n_drafts && g->code < 0; i++)
        note_error(g, hn_drafter_files(g->method.drafts[i], each, g, &err), &err);
}

static void flag_written(file_check *g, const tool_flag *f, const char *value) {
    if (tool_flag_writes(f))
        written_add(g, flag_text(f), value);
}

static void flag_read(file_check *g, const tool_flag *f, const char *value) {
    g->reader = flag_text(f);
    if (is_called(f, "MODEL") || is_called(f, "FOLDER"))
        model_check(g, value);
    else if (is_called(f, "FILE") && !tool_flag_writes(f))
        read_check(g, value);
}

/* A file that does not exist yet is not read: the headers of models are read only if an existing file would be overwritten. */
static bool may_clash(const file_check *g) {
    for (const written *w = g->items; w < g->items + g->n; w++)
        if (w->file.known || w->partial.known)
            return true;
    return false;
}

static void all_read(file_check *g) {
    flags_each(g, flag_read);
    g->reader = "--draft";
    specs_each(g, spec_read);
    g->reader = "standard input";
    if (input_is_read(g))
        read_check(g, "-");
}

/* A drafter's file that holds something else is replaced only with --force. */
static void written_check(file_check *g) {
    hunch_error err = {0};
    for (int i = 0; i < g->method.n_drafts && g->code < 0 && !g->o->force; i++) {
        const hunch_status st = hn_drafter_check_written(g->method.drafts[i], &err);
        if (st == HUNCH_REFUSED)
            g->code = tool_usage("%s: --draft: save=%s: expected an earlier one or a new file; --force replaces it", g->c->name,
                                 err.message);
        else
            note_error(g, st, &err);
    }
}

int tool_check_files(const tool_options *o, const tool_command *c) {
    file_check g = {.o = o, .c = c, .code = -1};
    if (o->drafts.n)
        tool_method_init(&g.method, o->drafts.items, o->drafts.n);
    flags_each(&g, flag_written);
    specs_each(&g, spec_written);
    if (g.code < 0 && may_clash(&g))
        all_read(&g);
    written_check(&g);
    for (written *w = g.items; w < g.items + g.n; w++) {
        hn_free(w->path);
        hn_free(w->place);
    }
    hn_free(g.items);
    tool_method_fini(&g.method);
    return g.code;
}
