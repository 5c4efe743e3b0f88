/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_draft.c - one draft for each match length, the best of them. See suffix_draft.h. */
#include "draft/text/suffix_draft.h"

#include <math.h>
#include <string.h>

/* A token that could be drafted next. */
typedef struct open_path {
    hn_suffix_next next;
    int16_t parent;
    double p, step;
} open_path;

/* Tokens that may still be drafted, the most probable first, of equal ones the earlier. No more are kept than the
 * draft has tokens left: later tokens are no more probable than those that they continue, so the rest is never taken. */
typedef struct frontier {
    int n;
    open_path path[HN_SUFFIX_DEPTH];
} frontier;

static void frontier_add(frontier *f, const open_path *path, int room) {
    if (f->n >= room) {
        f->n = room;
        if (path->p <= f->path[room - 1].p) return;
        f->n--;
    }
    int i = f->n++;
    for (; i > 0 && f->path[i - 1].p < path->p; i--) f->path[i] = f->path[i - 1];
    f->path[i] = *path;
}

static open_path frontier_take(frontier *f) {
    open_path first = f->path[0];
    memmove(f->path, f->path + 1, (size_t)--f->n * sizeof *f->path);
    return first;
}

/* The smallest count whose share of total is not below min_p; at least 1. */
static uint32_t count_least(double min_p, uint32_t total) {
    double least = floor(min_p * total);
    while (least / total < min_p) least++;
    return least < 1 ? 1 : (uint32_t)least;
}

/* Drafts `next` after the token `parent`. Returns its index in the draft. */
static int16_t draft_add(hn_suffix_draft *d, const open_path *path) {
    int16_t i = (int16_t)d->n++;
    d->token[i] = path->next.token;
    d->parent[i] = path->parent;
    d->p[i] = path->p;
    d->step[i] = path->step;
    d->score += path->p;
    return i;
}

static void draft_path(const hn_suffix_tree *t, hn_suffix_point match, uint32_t least, int budget,
                       hn_suffix_draft *out) {
    const double total = hn_suffix_total(t, match);
    double above = total;
    open_path path = {.parent = -1, .next.point = match, .p = 1};
    while (out->n < budget && hn_suffix_follow(t, path.next.point, least, &path.next, 1)) {
        const double count = path.next.count;
        path.step = 1;
        if (count != above) { /* else p is unchanged */
            path.step = count / above;
            path.p = count / total;
            above = count;
        }
        path.parent = draft_add(out, &path);
    }
}

static void draft_tree(const hn_suffix_tree *t, hn_suffix_point match, uint32_t least, int budget,
                       hn_suffix_draft *out) {
    const double total = hn_suffix_total(t, match);
    hn_suffix_point tip = match;
    frontier f;
    f.n = 0;
    for (int16_t parent = -1; out->n < budget;) {
        hn_suffix_next next[HN_SUFFIX_DEPTH];
        const int room = budget - out->n, n = hn_suffix_follow(t, tip, least, next, room);
        const double above = hn_suffix_total(t, tip);
        for (int i = 0; i < n; i++)
            frontier_add(&f, &(open_path){next[i], parent, next[i].count / total, next[i].count / above}, room);
        if (f.n == 0) return;
        const open_path best = frontier_take(&f);
        parent = draft_add(out, &best);
        tip = best.next.point;
    }
}

static int match_budget(const hn_suffix_rules *rules, int m) {
    double budget = floor(m * rules->factor + rules->offset + 1e-6);
    return budget < 0 ? 0 : budget > rules->depth ? rules->depth : (int)budget;
}

/* The longest of up to `most` last tokens that occur. The ends of a string occur wherever it does, so lengths are searched by doubling,
 * then halving. */
static int match_longest(const hn_suffix_tree *t, const int32_t *text_end, int most) {
    hn_suffix_point p;
    int found = 0, not_found = most + 1;
    while (found + 1 < not_found) {
        int m = found <= most / 2 ? 2 * found : most;
        if (not_found <= most)
            m = (found + not_found) / 2;
        else if (found == 0)
            m = 1;
        if (hn_suffix_find(t, text_end - m, m, &p))
            found = m;
        else
            not_found = m;
    }
    return found;
}

void hn_suffix_best(const hn_suffix_tree *t, const hn_suffix_rules *rules, const int32_t *text_end, int most,
                    hn_suffix_draft *out) {
    hn_suffix_draft one;
    out->score = 0;
    out->match = out->n = 0;
    for (int m = text_end ? match_longest(t, text_end, most) : most; m >= 1; m--) {
        const int budget = match_budget(rules, m);
        if (budget <= out->score) return; /* no token adds more than 1, and shorter matches have no more tokens */
        hn_suffix_point match;
        if (!text_end)
            match = hn_suffix_tail(t, (uint32_t)m);
        else
            hn_suffix_find(t, text_end - m, m, &match);
        const uint32_t least = count_least(rules->min_p, hn_suffix_total(t, match));
        one.n = 0;
        one.score = 0;
        (rules->tree ? draft_tree : draft_path)(t, match, least, budget, &one);
        if (one.score <= out->score) continue;
        one.match = m;
        *out = one;
    }
}
