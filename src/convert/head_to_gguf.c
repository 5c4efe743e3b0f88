/* SPDX-License-Identifier: Apache-2.0 */
/* head_to_gguf.c - see head_to_gguf.h. A head is described (draft/head/open/head_alone.h), and written from that description
 * (convert_head.c). */
#include "convert/head_to_gguf.h"

#include <string.h>

#include "base/mem.h"
#include "convert/convert.h"
#include "draft/head/open/head_alone.h"

bool hn_head_is(const char *kind) {
    return kind && strcmp(kind, "model") != 0;
}

hunch_status hn_head_to_gguf(hn_source *src, const char *kind, const char *target, hn_dtype type, const char *out_path,
                             hunch_progress progress, void *user, hunch_error *err) {
    hn_head_alone h;
    int32_t *ids = NULL, *order = NULL;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF)
        return hn_fail(err, HUNCH_USAGE, "%s: is a GGUF file, expected a folder or file of a draft head to convert", hn_source_path(src));
    hunch_status st = hn_head_describe_alone(&h, src, kind, target, err);
    const hn_arch *a = &h.arch;
    const bool whole = !st && hn_head_is_whole(&a->draft_head);
    if (!st && !whole) st = hn_head_read_ids(src, &h.names, a->vocab, h.target.vocab, &ids, err);
    if (!st) st = hn_head_read_order(src, &h.names, a, &order, err);
    const hn_head_written written = {kind, a, h.states ? h.taps.boundary : NULL, ids, order, whole ? a->vocab : h.target.vocab, type};
    if (!st) st = hn_convert_head(src, &written, out_path, progress, user, err);
    hn_free(ids);
    hn_free(order);
    hn_head_alone_fini(&h);
    return st;
}
