/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - the public calls of the template engine: parse once, render many times, from any thread.
 *
 * The files of the engine are listed in template_private.h. A template may do what Hugging Face's sandbox permits; the
 * limits on its resources are in template_private.h as well.
 */
#include <assert.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/jinja/template_private.h"

/* Line ends become \n, and one at the end is removed, as in Jinja. */
static size_t normalise(char *out, const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool pair = text[i] == '\r' && i + 1 < len && text[i + 1] == '\n';
        if (!pair) out[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    return n && out[n - 1] == '\n' ? n - 1 : n;
}

hunch_status hn_template_parse(hn_template **out, const char *text, size_t len, hunch_error *err) {
    *out = NULL;
    if (len > HN_TPL_MAX_TEXT)
        return hn_fail(err, HUNCH_REFUSED, "a chat template of %zu bytes, at most %d are read", len, HN_TPL_MAX_TEXT);
    if (hn_utf8_check(text, len) < len) return hn_fail(err, HUNCH_REFUSED, "the chat template is not valid UTF-8");
    hn_template *t = hn_zalloc(1, sizeof *t);
    if (t) t->text = hn_alloc(len + 1);
    hunch_status s = t && t->text ? HUNCH_OK : hn_fail_memory(err, "the chat template", len);
    if (!s) {
        t->len = normalise(t->text, text, len);
        t->text[t->len] = '\0';
        locale_t before = hn_c_locale_begin();
        s = tparse(t, err);
        hn_c_locale_end(before);
    }
    if (!s)
        *out = t;
    else
        hn_template_free(t);
    return s;
}

void hn_template_free(hn_template *t) {
    if (!t) return;
    ta_fini(&t->arena);
    hn_free(t->text);
    hn_free(t);
}

/* The runs of equal marks. */
static hunch_status pieces_of(const tbuf *text, hunch_piece **pieces, size_t *n, hunch_error *err) {
    size_t cap = 0;
    for (size_t at = 0, end; at < text->n; at = end) {
        end = at + 1;
        while (end < text->n && text->mark[end] == text->mark[at]) end++;
        if (!hn_grow((void **)pieces, &cap, *n + 1, sizeof **pieces)) return hn_fail_memory(err, "the chat's pieces", text->n);
        (*pieces)[(*n)++] = (hunch_piece){end - at, text->mark[at]};
    }
    return HUNCH_OK;
}

/* marks NULL: without pieces. */
static hunch_status render(const hn_template *t, const json_t *vars, const char *now, const ta_marks *marks, char **out, size_t *len,
                           hunch_piece **pieces, size_t *n_pieces, hunch_error *err) {
    *out = NULL;
    *len = 0;
    if (!json_is_object(vars))
        return hn_fail(err, HUNCH_USAGE, "the chat template's variables: expected a JSON object");
    trun r = {.err = err, .now = now, .arena = {.marks = marks}};
    tbuf text = {.arena = &r.arena};
    r.out = &text;
    locale_t before = hn_c_locale_begin();
    hunch_status s = trun_body(&r, t->body, vars);
    hn_c_locale_end(before);
    if (!s && tv_buffer(&r, &text).kind == TV_ERROR) s = r.status;
    if (!s) {
        *out = hn_strndup(text.s ? text.s : "", text.n);
        *len = text.n;
        if (!*out) s = hn_fail_memory(err, "the chat's text", text.n);
    }
    if (!s && marks) s = pieces_of(&text, pieces, n_pieces, err);
    ta_fini(&r.arena);
    return s;
}

hunch_status hn_template_render(const hn_template *t, const json_t *vars, const char *now, char **out, size_t *len,
                                hunch_error *err) {
    return render(t, vars, now, NULL, out, len, NULL, NULL, err);
}

hunch_status hn_template_render_pieces(const hn_template *t, const json_t *vars, const char *now, const char *const *own, size_t n_own,
                                       char **out, size_t *len, hunch_piece **pieces, size_t *n_pieces, hunch_error *err) {
    enum { MOST_OWN = 4 };
    tstr strings[MOST_OWN];
    ta_marks marks = {.of = t, .own = strings};
    assert(n_own <= MOST_OWN);
    *pieces = NULL;
    *n_pieces = 0;
    for (size_t i = 0; i < n_own; i++) {
        const json_t *v = json_object_get(vars, own[i]);
        if (json_is_string(v)) strings[marks.n_own++] = (tstr){json_string_value(v), json_string_length(v)};
    }
    hunch_status s = render(t, vars, now, &marks, out, len, pieces, n_pieces, err);
    if (s) {
        hn_free(*out);
        hn_free(*pieces);
        *out = NULL;
        *pieces = NULL;
        *len = *n_pieces = 0;
    }
    return s;
}
