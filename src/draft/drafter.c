/* SPDX-License-Identifier: Apache-2.0 */
/* drafter.c - the text form of a drafter (SPEC) and the list of kinds. Each drafter has a file of its own. */
#include "draft/drafter.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "draft/drafter_files.h"
#include "draft/head/open/head_kind.h"

/* Words that the engine replaces by drafters are SPECs as well. */
static const char *const BY_ENGINE[] = {"none", "auto"};
enum { N_BY_ENGINE = sizeof BY_ENGINE / sizeof BY_ENGINE[0] };
#define LISTED(NAME) &hn_drafter_##NAME,
static const hn_drafter_kind *const KINDS[] = {HN_DRAFTER_KINDS(LISTED)};
#undef LISTED
enum { N_KINDS = sizeof KINDS / sizeof KINDS[0] };

/* ---- SPEC ------------------------------------------------------------------------------------------------------ */

void hn_spec_fini(hn_spec *s) {
    hn_free(s->text);
    hn_free(s->words);
    memset(s, 0, sizeof *s);
}

static bool is_name(const char *s) {
    return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}

/* Splits "key=value" in place. */
static hunch_status pair_parse(hn_spec *s, char *pair, hunch_error *err) {
    const int most = (int)(sizeof s->key / sizeof s->key[0]);
    char *eq = strchr(pair, '=');
    if (eq) *eq = 0;
    if (!eq || !is_name(pair) || !eq[1])
        return hn_fail(err, HUNCH_USAGE,
                       "drafter '%s': '%s' is not key=value (expected KIND[:PATH][,key=value...]; a comma in a PATH or a value is "
                       "written \\,)", s->text, pair);
    if (s->n == most) return hn_fail(err, HUNCH_USAGE, "drafter '%s': more than %d keys", s->text, most);
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->key[i], pair))
            return hn_fail(err, HUNCH_USAGE, "drafter '%s': key '%s' is given twice", s->text, pair);
    s->key[s->n] = pair;
    s->value[s->n++] = eq + 1;
    return HUNCH_OK;
}

void hn_drafter_record(hn_drafter *d, const hunch_error *why) {
    if (why->status != HUNCH_NO_MEMORY && d->failure.status == HUNCH_OK) d->failure = *why;
}

const hn_drafter_help *hn_drafter_help_at(int i, const char **name) {
    const hn_drafter_kind *k = hn_drafter_kind_at(i);
    if (k) *name = k->name;
    return k ? k->help : NULL;
}

const hn_drafter_kind *hn_drafter_kind_at(int i) {
    return i < N_KINDS ? KINDS[i] : NULL;
}

const hn_drafter_kind *hn_drafter_named(const char *name) {
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(KINDS[i]->name, name)) return KINDS[i];
    return NULL;
}

static bool is_word(const char *text) {
    bool engine = false;
    for (int i = 0; i < N_BY_ENGINE; i++) engine |= !strcmp(BY_ENGINE[i], text);
    return engine || hn_drafter_named(text);
}

/* Whether it is a file's name without a kind before it. Kinds have precedence. */
static bool is_path(const char *text) {
    const size_t word = strcspn(text, ":");
    if (memchr(text, '/', word)) return true;
    return !text[word] && !is_word(text) && (hn_is_folder(text) || hn_is_file(text));
}

/* Ends the word at its first comma without a backslash before it, and drops the backslashes of the others. Returns what comes after; NULL:
 * nothing. */
static char *word_end(char *word) {
    char *to = word;
    for (const char *at = word; *at; at++) {
        if (*at == ',') {
            *to = 0;
            return word + (at - word) + 1;
        }
        if (at[0] == '\\' && at[1] == ',') at++;
        *to++ = *at;
    }
    *to = 0;
    return NULL;
}

static hunch_status spec_cut(hn_spec *s, hunch_error *err) {
    char *rest = word_end(s->words);
    s->keys = rest ? s->text + (rest - s->words) - 1 : "";
    const bool path = is_path(s->words);
    char *colon = path ? NULL : strchr(s->words, ':');
    if (path)
        s->path = s->words;
    else
        s->kind = s->words;
    if (colon) {
        *colon = 0;
        s->path = colon + 1;
        if (!*s->path) return hn_fail(err, HUNCH_USAGE, "drafter '%s': no path after ':'", s->text);
    }
    if (!path && !is_name(s->kind))
        return hn_fail(err, HUNCH_USAGE,
                       "drafter '%s': no kind at its start (expected KIND[:PATH][,key=value...], or PATH[,key=value...])", s->text);
    while (rest) {
        char *pair = rest;
        rest = word_end(pair);
        hunch_status st = pair_parse(s, pair, err);
        if (st) return st;
    }
    return HUNCH_OK;
}

hunch_status hn_spec_parse(hn_spec *out, const char *text, hunch_error *err) {
    memset(out, 0, sizeof *out);
    out->text = hn_strdup(text);
    out->words = hn_strdup(text);
    hunch_status st = out->text && out->words ? spec_cut(out, err) : hn_fail_memory(err, "a drafter's spec", strlen(text) + 1);
    if (st) hn_spec_fini(out);
    return st;
}

bool hn_spec_of_path(char *out, size_t size, const char *path) {
    size_t n = strchr(path, '/') ? 0 : 2;
    for (const char *at = path; *at; at++) n += *at == ',' ? 2 : 1;
    if (n + 1 > size) return false;
    if (!strchr(path, '/')) out = stpcpy(out, "./");
    for (; *path; path++) {
        if (*path == ',') *out++ = '\\';
        *out++ = *path;
    }
    *out = 0;
    return true;
}

/* The value of a key, which is marked as known; NULL: absent. */
static const char *spec_value(hn_spec *s, const char *key) {
    bool again = false;
    for (int i = 0; i < s->n_known; i++) again |= !strcmp(s->known_key[i], key);
    if (!again && s->n_known < (int)(sizeof s->known_key / sizeof s->known_key[0])) s->known_key[s->n_known++] = key;
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->key[i], key)) {
            s->used[i] = true;
            return s->value[i];
        }
    return NULL;
}

const char *hn_spec_string(hn_spec *s, const char *key) {
    return spec_value(s, key);
}

hunch_status hn_spec_int(hn_spec *s, const char *key, long min, long max, long dflt, long *out, hunch_error *err) {
    const char *v = spec_value(s, key);
    *out = dflt;
    if (!v) return HUNCH_OK;
    char *end;
    errno = 0;
    long x = strtol(v, &end, 10);
    if (strspn(v, "+-0123456789") != strlen(v) || end == v || *end || errno || x < min || x > max)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': %s=%s, expected a whole number from %ld to %ld", s->text, key, v, min, max);
    *out = x;
    return HUNCH_OK;
}

hunch_status hn_spec_double(hn_spec *s, const char *key, double min, double max, double dflt, double *out,
                            hunch_error *err) {
    const char *v = spec_value(s, key);
    *out = dflt;
    if (!v) return HUNCH_OK;
    char *end;
    locale_t before = hn_c_locale_begin();
    double x = strtod(v, &end);
    hn_c_locale_end(before);
    /* the character set excludes nan, inf, hexadecimal and leading blanks, which strtod accepts */
    if (strspn(v, "+-.0123456789eE") != strlen(v) || end == v || *end || !(x >= min && x <= max))
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': %s=%s, expected a number from %g to %g", s->text, key, v, min, max);
    *out = x;
    return HUNCH_OK;
}

/* "a, b, c" of a NULL-terminated list, truncated to the buffer. Returns the number of names. */
static int names_join(char *out, size_t size, const char *const *names) {
    size_t at = 0;
    int n = 0;
    out[0] = 0;
    for (; names[n]; n++) {
        size_t len = strlen(names[n]), need = len + (n ? 2 : 0);
        if (at + need + 1 > size) continue;
        if (n) memcpy(out + at, ", ", 2);
        memcpy(out + at + need - len, names[n], len + 1);
        at += need;
    }
    return n;
}

hunch_status hn_spec_choice(hn_spec *s, const char *key, const char *const *names, int dflt, int *out, hunch_error *err) {
    const char *v = spec_value(s, key);
    *out = dflt;
    if (!v) return HUNCH_OK;
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], v)) {
            *out = i;
            return HUNCH_OK;
        }
    char list[400], hint[100];
    const int n = names_join(list, sizeof list, names);
    return hn_fail(err, HUNCH_USAGE, "drafter '%s': %s=%s%s expected one of %s", s->text, key, v,
                   *hn_nearest_hint(hint, sizeof hint, v, names, (size_t)n) ? hint : ",", list);
}

hunch_status hn_spec_no_path(const hn_spec *s, hunch_error *err) {
    if (!s->path) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "drafter '%s': '%s' takes no path", s->text, s->kind);
}

hunch_status hn_spec_kv(hn_spec *s, hn_dtype dflt, hn_dtype *out, hunch_error *err) {
    static const char *const names[] = {"bf16", "f16", "f32", NULL};
    static const hn_dtype types[] = {HN_BF16, HN_F16, HN_F32};
    int kv = -1;
    hunch_status st = hn_spec_choice(s, "kv", names, -1, &kv, err);
    *out = kv < 0 ? dflt : types[kv];
    return st;
}

hunch_status hn_spec_all_used(const hn_spec *s, hunch_error *err) {
    const char *known[sizeof s->known_key / sizeof s->known_key[0] + 1] = {NULL};
    char list[200], hint[100];
    memcpy(known, s->known_key, (size_t)s->n_known * sizeof known[0]);
    for (int i = 0; i < s->n; i++) {
        if (s->used[i]) continue;
        names_join(list, sizeof list, known);
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': unknown key '%s' for this drafter and form%s it knows %s", s->text,
                       s->key[i], *hn_nearest_hint(hint, sizeof hint, s->key[i], known, (size_t)s->n_known) ? hint : ";",
                       list);
    }
    return HUNCH_OK;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static hunch_status kind_find(const hn_spec *s, const hn_drafter_kind **out, hunch_error *err) {
    const char *names[N_KINDS + N_BY_ENGINE + 1] = {NULL};
    *out = hn_drafter_named(s->kind);
    if (*out) return HUNCH_OK;
    for (int i = 0; i < N_KINDS; i++) names[N_BY_ENGINE + i] = KINDS[i]->name;
    memcpy(names, BY_ENGINE, sizeof BY_ENGINE);
    for (int i = 0; i < N_BY_ENGINE; i++)
        if (!strcmp(BY_ENGINE[i], s->kind))
            return hn_fail(err, HUNCH_USAGE, "drafter '%s': '%s' takes no keys and no path", s->text, s->kind);
    char list[400], hint[100];
    const int n = names_join(list, sizeof list, names);
    return hn_fail(err, HUNCH_USAGE, "drafter '%s': unknown kind '%s'%s expected one of %s", s->text, s->kind,
                   *hn_nearest_hint(hint, sizeof hint, s->kind, names, (size_t)n) ? hint : ",", list);
}

/* Finds the kind of a spec that is only a path. */
static hunch_status kind_of_path(hn_spec *s, hunch_error *err) {
    hn_source *src;
    const char *name = NULL;
    hunch_status st = hn_source_open_head(&src, s->path, err);
    if (!st) st = hn_head_kind(src, &name, err);
    if (st) {
        hn_error_prefix(err, "drafter '%s'", s->text);
        hn_source_close(&src);
        return st;
    }
    const hn_drafter_kind *kind = name ? hn_drafter_named(name) : NULL;
    if (kind && !kind->path_is_model) kind = NULL; /* no head has such a kind, whatever its folder specifies */
    if (!name)
        st = hn_fail(err, HUNCH_REFUSED, "drafter '%s': neither a draft head that is known nor a language model", s->text);
    else if (!kind)
        st = hn_fail(err, HUNCH_REFUSED, "drafter '%s': a head of kind %.40s, for which there is no drafter here", s->text, name);
    else
        s->kind = kind->name;
    hn_source_close(&src);
    return st;
}

/* Heads describe their files; of a draft model this says what its path was taken for. */
static hunch_status about_path(hn_drafter *d, const hn_spec *s, hunch_error *err) {
    const size_t room = strlen(s->kind) + strlen(s->path) + 40;
    d->about = hn_alloc(room);
    if (!d->about) return hn_fail_memory(err, "the description of a drafter", room);
    snprintf(d->about, room, "%s %s: a whole language model", s->kind, s->path);
    return HUNCH_OK;
}

static hunch_status label_make(hn_drafter *d, const hn_spec *s, bool by_kind) {
    const size_t room = strlen(s->text) + strlen(s->kind) + 1;
    d->label = hn_alloc(room);
    if (!d->label) return HUNCH_NO_MEMORY;
    if (by_kind)
        snprintf(d->label, room, "%s%s", s->kind, s->keys);
    else
        snprintf(d->label, room, "%s", s->text);
    return HUNCH_OK;
}

static hunch_status drafter_open(hn_drafter *d, hn_spec *s, const hn_target_info *target, hunch_error *err) {
    const hn_drafter_kind *kind = NULL;
    hunch_status st = s->kind ? HUNCH_OK : kind_of_path(s, err);
    if (!st) st = kind_find(s, &kind, err);
    if (st) return st;
    d->name = hn_strdup(s->text);
    if (!d->name || label_make(d, s, kind->path_is_model))
        return hn_fail_memory(err, "a drafter's name", strlen(s->text) + 1);
    st = kind->ops->open(d, s, target, &d->needs, err);
    if (st) return st;
    assert(d->needs.max_depth >= 1);
    d->ops = kind->ops; /* from here on there is something to close */
    st = hn_spec_all_used(s, err);
    return st || d->about || !kind->path_is_model || !s->path ? st : about_path(d, s, err);
}

hunch_status hn_drafter_open(hn_drafter *d, const char *spec, int index, int max_seqs, const hn_target_info *target,
                             hunch_error *err) {
    memset(d, 0, sizeof *d);
    d->index = index;
    d->max_seqs = max_seqs;
    hn_spec s;
    hunch_status st = hn_spec_parse(&s, spec, err);
    if (st) return st;
    st = drafter_open(d, &s, target, err);
    hn_spec_fini(&s);
    if (st) hn_drafter_close(d);
    return st;
}

void hn_drafter_close(hn_drafter *d) {
    if (d->ops) d->ops->close(d);
    hn_free(d->name);
    hn_free(d->label);
    hn_free(d->about);
    memset(d, 0, sizeof *d);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef void (*file_callback)(void *user, const char *file, hn_file_use use);

static hunch_status spec_files(hn_spec *s, file_callback each, void *user, hunch_error *err) {
    const hn_drafter_kind *kind = &hn_drafter_eagle3; /* for a path alone: all heads have the same keys of files */
    hunch_status st = s->kind ? kind_find(s, &kind, err) : HUNCH_OK;
    if (st) return st;
    const char *written = kind->writes ? spec_value(s, kind->writes) : NULL;
    if (s->path) each(user, s->path, kind->path_is_model ? HN_FILE_MODEL : HN_FILE_READ);
    if (written) each(user, written, HN_FILE_WRITTEN);
    for (const char *const *key = kind->reads; *key; key++) {
        const char *read = spec_value(s, *key);
        if (!read || (kind->reads_word && kind->reads_word(*key, read))) continue;
        /* a file that is both read and written loses nothing: its old contents are part of the new ones */
        if (!(written && hn_same_file(read, written))) each(user, read, HN_FILE_READ);
    }
    return HUNCH_OK;
}

hunch_status hn_drafter_files(const char *spec, file_callback each, void *user, hunch_error *err) {
    hn_spec s;
    for (int i = 0; i < N_BY_ENGINE; i++)
        if (!strcmp(BY_ENGINE[i], spec)) return HUNCH_OK;
    hunch_status st = hn_spec_parse(&s, spec, err);
    if (st) return st;
    st = spec_files(&s, each, user, err);
    hn_spec_fini(&s);
    return st;
}

static hunch_status written_check(hn_spec *s, hunch_error *err) {
    const hn_drafter_kind *kind = &hn_drafter_eagle3; /* a path alone is a head or a model, which write nothing */
    hunch_status st = s->kind ? kind_find(s, &kind, err) : HUNCH_OK;
    const char *written = !st && kind->writes ? spec_value(s, kind->writes) : NULL;
    return written && kind->check_written && hn_is_file(written) ? kind->check_written(written, err) : st;
}

hunch_status hn_drafter_check_written(const char *spec, hunch_error *err) {
    hn_spec s;
    for (int i = 0; i < N_BY_ENGINE; i++)
        if (!strcmp(BY_ENGINE[i], spec)) return HUNCH_OK;
    hunch_status st = hn_spec_parse(&s, spec, err);
    if (st) return st;
    st = written_check(&s, err);
    hn_spec_fini(&s);
    return st;
}

/* ---- proposing ------------------------------------------------------------------------------------------------------ */

bool hn_propose_has_room(const hn_propose *p, int row) {
    const hn_tree *t = p->tree;
    if (t->n_candidates == HN_TREE_CANDIDATES) return false;
    if (p->budget >= 1 && t->n_rows < t->max_rows) return true;
    return !p->drawn && t->first[row] >= 0;
}
