/* SPDX-License-Identifier: Apache-2.0 */
/* head_ids.c - the tokens that a head of a reduced vocabulary drafts: d2t, and t2d, which says of each of the target's tokens whether it
 * is one of them. A file that has both was written with both; where they differ one is damaged, or of another head. */
#include "base/mem.h"
#include "model/head/head.h"

static hunch_status check_ids(const hn_source *src, const int32_t *ids, int n, int vocab, hunch_error *err) {
    unsigned char *seen = hn_zalloc((size_t)vocab, 1);
    hunch_status st = seen ? HUNCH_OK : hn_fail_memory(err, "draft tokens", (size_t)vocab);
    for (int i = 0; !st && i < n; i++) {
        if (ids[i] < 0 || ids[i] >= vocab)
            st = hn_fail(err, HUNCH_REFUSED, "%s: d2t: draft token %d is token %d, expected 0 to %d", hn_source_path(src), i,
                         ids[i], vocab - 1);
        else if (seen[ids[i]]++)
            st = hn_fail(err, HUNCH_REFUSED, "%s: d2t: draft token %d is token %d, as one before it is", hn_source_path(src), i,
                         ids[i]);
    }
    hn_free(seen);
    return st;
}

static hunch_status refuse_flag(const hn_source *src, int token, bool marked, int draft, hunch_error *err) {
    if (marked)
        return hn_fail(err, HUNCH_REFUSED, "%s: t2d marks token %d, which is none of the %d of d2t: expected the same tokens in both",
                       hn_source_path(src), token, draft);
    return hn_fail(err, HUNCH_REFUSED, "%s: d2t: draft token %d is token %d, which t2d does not mark: expected the same tokens in both",
                   hn_source_path(src), draft, token);
}

/* The first token on which both differ. With the whole vocabulary a mask that marks nothing was never filled, and need not be. */
static hunch_status compare(const hn_source *src, const int32_t *ids, int n, const int64_t *marks, int vocab, hunch_error *err) {
    int marked = 0;
    for (int i = 0; i < vocab; i++) marked += marks[i] != 0;
    if (n == vocab && marked == 0) return HUNCH_OK;
    for (int i = 0; i < n; i++)
        if (!marks[ids[i]]) return refuse_flag(src, ids[i], false, i, err);
    if (marked == n) return HUNCH_OK; /* as many as ids, all different, that are marked */
    unsigned char *named = hn_zalloc((size_t)vocab, 1);
    if (!named) return hn_fail_memory(err, "draft tokens", (size_t)vocab);
    for (int i = 0; i < n; i++) named[ids[i]] = 1;
    int first = 0;
    while (first < vocab && (!marks[first] || named[first])) first++;
    hn_free(named);
    return refuse_flag(src, first, true, n, err);
}

/* ids: of n draft tokens, checked. A t2d of floats is no mask, and left over as any tensor that nothing reads. */
static hunch_status check_mask(hn_source *src, const int32_t *ids, int n, int vocab, hunch_error *err) {
    const hn_tensor *t = hn_source_find(src, "t2d");
    if (!t || !hn_tensor_has_integers(t)) return HUNCH_OK;
    hn_source_take(src, t->name);
    int64_t *marks = hn_alloc((size_t)vocab * sizeof *marks);
    hunch_status st = marks ? hn_source_read_integers(src, t, (size_t)vocab, 0, 1, marks, err)
                            : hn_fail_memory(err, "the mask of draft tokens", (size_t)vocab * sizeof *marks);
    if (st == HUNCH_REFUSED) hn_error_prefix(err, "d2t and t2d");
    if (!st) st = compare(src, ids, n, marks, vocab, err);
    hn_free(marks);
    return st;
}

hunch_status hn_head_read_ids(hn_source *src, const hn_head_names *names, int n, int vocab, int32_t **ids, hunch_error *err) {
    char name[128];
    *ids = NULL;
    const bool has_name = hn_head_name(names, HN_HEAD_IDS, 0, name);
    hn_tensor *t = has_name ? hn_source_take(src, name) : NULL;
    const bool offsets = hn_source_get_kind(src) == HN_SOURCE_HF && !(t && names->form->lists_tokens);
    if (!t) t = hn_source_take(src, "d2t");
    if (!t && n < vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d draft tokens of %d, but no tensor %s with their ids", hn_source_path(src), n,
                       vocab, has_name ? name : "d2t");
    if (!t) return HUNCH_OK;
    if (!names->form->steps && !hn_head_find_tensor(src, names, HN_HEAD_OUTPUT))
        return hn_fail(err, HUNCH_REFUSED, "%s: a tensor %s, and no %s: expected the output whose tokens it names",
                       hn_source_path(src), t->name, hn_head_name(names, HN_HEAD_OUTPUT, 0, name));
    int64_t *stored = hn_alloc((size_t)n * sizeof *stored);
    int32_t *list = hn_alloc((size_t)n * sizeof *list);
    hunch_status st = stored && list ? hn_source_read_integers(src, t, (size_t)n, -(int64_t)vocab, vocab, stored, err)
                                     : hn_fail_memory(err, "draft tokens", (size_t)n * sizeof *stored);
    for (int i = 0; !st && i < n; i++) list[i] = (int32_t)(stored[i] + (offsets ? i : 0));
    if (!st) st = check_ids(src, list, n, vocab, err);
    if (!st) st = check_mask(src, list, n, vocab, err);
    hn_free(stored);
    if (st) hn_free(list);
    *ids = st ? NULL : list;
    return st;
}
