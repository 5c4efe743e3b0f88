/* SPDX-License-Identifier: Apache-2.0 */
/* tool_why.c - see tool_why.h. */
#include "cli/show/tool_why.h"

#include <math.h>
#include <string.h>

#include "cli/show/tool_tree.h"

static void *copy_of(const void *list, size_t n, size_t size) {
    void *copy = tool_alloc(n, size);
    if (n)
        memcpy(copy, list, n * size);
    return copy;
}

void tool_why_add(void *why, const hunch_round_report *report) {
    tool_why *w = why;
    w->rounds = tool_grow(w->rounds, &w->cap, w->n + 1, sizeof *w->rounds);
    hunch_round_report *r = &w->rounds[w->n++];
    *r = *report;
    r->considered = copy_of(report->considered, (size_t)r->n_considered, sizeof *r->considered);
    r->node = copy_of(report->node, (size_t)r->rows - 1, sizeof *r->node);
    r->path = copy_of(report->path, (size_t)r->accepted, sizeof *r->path);
}

void tool_why_fini(tool_why *w) {
    for (size_t i = 0; i < w->n; i++) {
        hn_free((void *)(uintptr_t)w->rounds[i].considered);
        hn_free((void *)(uintptr_t)w->rounds[i].node);
        hn_free((void *)(uintptr_t)w->rounds[i].path);
    }
    hn_free(w->rounds);
    *w = (tool_why){0};
}

const char *tool_why_reason(hunch_reason reason) {
    static const char *const text[] = {[HUNCH_REASON_TRIED] = "a drafter was tried",
                                       [HUNCH_REASON_DRAFTED] = "decided after drafting",
                                       [HUNCH_REASON_DRAWN] = "drawn drafts stay",
                                       [HUNCH_REASON_MEASURED] = "plain decoding is measured",
                                       [HUNCH_REASON_TEXTS] = "best for all texts",
                                       [HUNCH_REASON_NEAR] = "nearly as good",
                                       [HUNCH_REASON_UNCERTAIN] = "times still uncertain"};
    return text[reason];
}

static double choice_speed(const hunch_choice *c) {
    return c->seconds > 0 ? c->expected / c->seconds : NAN;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

static json_t *choice_json(const hunch_choice *c) {
    return json_pack("{s:i,s:i,s:i,s:o,s:o,s:o}", "drafter", c->drafter, "rows", c->rows, "depth", c->depth, "expected",
                     tool_json_real(c->expected), "ms", tool_json_real(c->seconds * 1e3), "tok_s",
                     tool_json_real(choice_speed(c)));
}

static json_t *round_json(const hunch_round_report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->n_considered; i++)
        json_array_append_new(list, choice_json(&r->considered[i]));
    return json_pack("{s:I,s:i,s:b,s:o,s:o,s:s?,s:i,s:i,s:o,s:o,s:o}", "round", (json_int_t)r->round, "context", r->context,
                     "controlled", (int)r->controlled, "considered", list, "chosen",
                     r->chosen < 0 ? json_null() : json_integer(r->chosen), "reason", tool_why_reason(r->reason),
                     "rows", r->rows, "accepted", r->accepted, "draft_ms", tool_json_real(r->draft_s * 1e3),
                     "draft_pass_ms", tool_json_real(r->draft_pass_s * 1e3), "pass_ms",
                     tool_json_real(r->pass_s * 1e3));
}

json_t *tool_why_json(const tool_why *w) {
    json_t *list = json_array();
    for (size_t i = 0; i < w->n; i++)
        json_array_append_new(list, round_json(&w->rounds[i]));
    return list;
}

json_t *tool_why_trees_json(const tool_why *w) {
    json_t *list = json_array();
    for (size_t i = 0; i < w->n; i++) {
        const hunch_round_report *r = &w->rounds[i];
        json_array_append_new(list, tool_tree_json(r->root, r->node, r->rows - 1, r->path, r->accepted));
    }
    return list;
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

static void choice_print(const hunch_choice *c, const hunch_engine *e) {
    const char *who = c->rows == 0 ? "none" : c->drafter < 0 ? "together" : hunch_engine_drafter_name(e, c->drafter);
    fputs(who, stderr);
    if (c->rows)
        fprintf(stderr, " %d row%s to depth %d", c->rows, c->rows == 1 ? "" : "s", c->depth);
    fprintf(stderr, ": %.2f in %.2f ms, %.0f/s", c->expected, c->seconds * 1e3, choice_speed(c));
}

static void round_print(const hunch_round_report *r, const hunch_engine *e, bool color) {
    fprintf(stderr, "round %llu at %d: ", (unsigned long long)r->round, r->context);
    if (!r->controlled)
        fputs("every draft is verified", stderr);
    for (int i = 0; r->controlled && i < r->n_considered; i++) {
        bool chosen = i == r->chosen;
        fprintf(stderr, "%s%s", i ? " · " : "", chosen ? tool_style(color, 'b') : "");
        fputs(chosen ? "-> " : "", stderr);
        choice_print(&r->considered[i], e);
        fputs(chosen ? tool_style(color, '0') : "", stderr);
    }
    const char *reason = tool_why_reason(r->reason);
    if (reason)
        fprintf(stderr, " (%s)", reason);
    fprintf(stderr, " | %d row%s, %d accepted, %.2f ms (drafting %.2f)\n", r->rows, r->rows == 1 ? "" : "s",
            r->accepted, (r->draft_s + r->pass_s) * 1e3, r->draft_s * 1e3);
}

static void tree_print(const hunch_round_report *r, const hunch_model *m, const hunch_engine *e, bool color) {
    bool right[HUNCH_MAX_DEPTH + 1] = {false};
    for (int i = 0; i < r->accepted; i++)
        right[r->path[i]] = true;
    const tool_tree tree = {m, e, r->root, r->node, r->rows - 1, right};
    tool_tree_print(&tree, "", "    ", stderr, color);
}

void tool_why_print(const tool_why *w, const hunch_model *m, const hunch_engine *e, bool color) {
    for (int i = 0; hunch_engine_left_out(e, i); i++)
        fprintf(stderr, "%s\n", hunch_engine_left_out(e, i));
    for (size_t i = 0; i < w->n; i++) {
        round_print(&w->rounds[i], e, color);
        if (tool_tree_branches(w->rounds[i].node, w->rounds[i].rows - 1))
            tree_print(&w->rounds[i], m, e, color);
    }
}
