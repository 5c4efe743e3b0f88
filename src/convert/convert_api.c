/* SPDX-License-Identifier: Apache-2.0 */
/* convert_api.c - hunch_convert: whether it is a model or a draft head, and the options. */
#include <string.h>

#include "convert/convert.h"
#include "convert/head_to_gguf.h"
#include "draft/head/open/head_kind.h"

void hunch_convert_options_defaults(hunch_convert_options *o) {
    if (o) memset(o, 0, sizeof *o);
}

static hunch_status convert(const char *path, const char *out_path, const hunch_convert_options *o, hn_dtype type, hunch_error *err) {
    hn_source *src = NULL;
    hunch_status st = hn_source_open_head(&src, path, err);
    const char *kind = NULL;
    const hunch_status known = st ? HUNCH_OK : hn_head_kind(src, &kind, err);
    if (known)
        st = known;
    else if (hn_head_is(kind))
        st = hn_head_to_gguf(src, kind, o->target, type, out_path, o->progress, o->progress_user, err);
    else if (o->target && !st)
        st = hn_fail(err, HUNCH_USAGE, "%s: is no draft head, expected one beside --target", path);
    else if (!o->target && st != HUNCH_NO_MEMORY && st != HUNCH_FAILED) /* also if it did not open as a head: gives the reason */
        st = hn_convert_with(path, type, out_path, o->progress, o->progress_user, err);
    hn_source_close(&src);
    return st;
}

hunch_status hunch_convert(const char *path, const char *out_path, const hunch_convert_options *o, hunch_error *err) {
    const hn_argument needed[] = {{"path", path}, {"out_path", out_path}, {0}};
    if (hn_check_arguments(__func__, needed, err)) return HUNCH_USAGE;
    const hunch_convert_options defaults = {0};
    hn_dtype type;
    if (!o) o = &defaults;
    const hunch_status st = hn_convert_type(o->type, &type, err);
    return st ? st : convert(path, out_path, o, type, err);
}
