/* SPDX-License-Identifier: Apache-2.0 */
/* template_loops.c - for loops: their elements, what loop.NAME is in them, their bodies.
 *
 * The condition of a loop (`for x in y if z`) is evaluated when an element is reached or asked for, since what the body does
 * before may change it. */
#include "text/jinja/template_run.h"

/* ---- elements ---- */

/* Evaluates the loop's condition until n elements have passed it. False: there are fewer, or an error is set. */
static bool loop_filter(trun *r, tloop *l, size_t n) {
    int line = r->line;
    while (l->n < n && l->frame && l->n_tested < l->items->n) {
        tvalue item = l->items->items[l->n_tested++];
        tframe frame = {.parent = l->frame};
        if (!tassign(r, l->node->a, item, &frame)) return false;
        tvalue keep = teval(r, l->node->c, &frame);
        if (keep.kind == TV_ERROR) return false;
        if (tv_truth(keep)) l->kept[l->n++] = item;
        tscope_end(r, &frame);
    }
    r->line = line;
    return l->n >= n;
}

static tloop *loop_begin(trun *r, const tnode *n, tvalue items, tframe *f) {
    tloop *l = ta_alloc(&r->arena, sizeof *l);
    if (l) *l = (tloop){.snapshot = *items.list, .items = &l->snapshot, .kept = items.list->items, .n = items.list->n};
    if (l && n->c) {
        l->node = n;
        l->frame = f;
        l->n = 0;
        l->kept = ta_alloc(&r->arena, items.list->n * sizeof *l->kept);
    }
    if (!l || !l->kept) return trun_fail_memory(r), NULL;
    return l;
}

tvalue tloop_attribute(trun *r, tloop *l, tstr name) {
    static const struct {
        const char *name;
        char what;
        size_t ahead; /* following elements that must be known */
    } known[] = {{"index", 'i', 0},    {"index0", '0', 0},           {"first", 'f', 0},
                 {"last", 'l', 1},     {"length", 'n', SIZE_MAX},    {"revindex", 'r', SIZE_MAX},
                 {"depth", 'd', 0},    {"revindex0", 'R', SIZE_MAX}, {"depth0", 'D', 0},
                 {"previtem", 'p', 0}, {"nextitem", 'x', 1}};
    size_t k = 0;
    while (k < sizeof known / sizeof *known && !ts_equal(name, known[k].name)) k++;
    if (k == sizeof known / sizeof *known) return tv_undefined(name.s, name.n);
    if (known[k].ahead) loop_filter(r, l, known[k].ahead == SIZE_MAX ? SIZE_MAX : l->index + 1 + known[k].ahead);
    if (r->status) return tv_error();
    int64_t i = (int64_t)l->index, n = (int64_t)l->n;
    switch (known[k].what) {
    case 'i': return tv_int(i + 1);
    case '0': return tv_int(i);
    case 'f': return tv_bool(i == 0);
    case 'l': return tv_bool(i + 1 >= n);
    case 'n': return tv_int(n);
    case 'r': return tv_int(n - i);
    case 'R': return tv_int(n - i - 1);
    case 'd': return tv_int(1); /* of loops that call themselves alone */
    case 'D': return tv_int(0);
    case 'p': return i > 0 && i <= n ? l->kept[i - 1] : tv_undefined("previtem", 8);
    default: return i + 1 < n ? l->kept[i + 1] : tv_undefined("nextitem", 8);
    }
}

/* ---- the statement ---- */

/* Runs the body of a for statement in a scope of its own. loop: NULL for its else, if it had no element. */
static toutcome run_inner(trun *r, const tnode *n, const tnode *body, tframe *f, tloop *loop) {
    tframe own, *frame = tscope_begin(r, &own, f, body->op);
    bool ok = frame != NULL;
    if (ok && loop)
        ok = tassign_name(r, frame, (tstr){"loop", 4}, (tvalue){.kind = TV_LOOP, .loop = loop}) &&
             tassign(r, n->a, loop->kept[loop->index], frame);
    toutcome o = ok ? trun_statements(r, body, frame) : TRUN_STOP;
    tscope_end(r, &own);
    return o;
}

toutcome trun_for(trun *r, const tnode *n, tframe *f) {
    tvalue items = teval(r, n->b, f);
    if (items.kind != TV_ERROR) items = tv_iterate(r, items);
    tloop *loop = items.kind == TV_ERROR ? NULL : loop_begin(r, n, items, f);
    if (!loop) return TRUN_STOP;
    toutcome o = TRUN_ON;
    for (size_t i = 0; o != TRUN_BREAK && o != TRUN_STOP && loop_filter(r, loop, i + 1); i++) {
        loop->index = i;
        o = run_inner(r, n, n->items[0], f, loop);
    }
    loop->frame = NULL;
    if (r->status) return TRUN_STOP;
    if (loop->n == 0 && n->items[1]) return run_inner(r, n, n->items[1], f, NULL);
    return o == TRUN_STOP ? TRUN_STOP : TRUN_ON;
}
