/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - the public calls of the template engine: parse once, render many times, from any thread.
 *
 * The files of the engine are listed in template_private.h. A template may do what Hugging Face's sandbox permits; the
 * limits on its resources are in template_private.h as well.
 */
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

hunch_status hn_template_render(const hn_template *t, const json_t *vars, const char *now, char **out, size_t *len,
                                hunch_error *err) {
    *out = NULL;
    *len = 0;
    if (!json_is_object(vars))
        return hn_fail(err, HUNCH_USAGE, "the chat template's variables: expected a JSON object");
    trun r = {.err = err, .now = now};
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
    ta_fini(&r.arena);
    return s;
}
