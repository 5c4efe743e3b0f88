/* SPDX-License-Identifier: Apache-2.0 */
/* auto_drafters.c - what `auto` opens by itself, and what it leaves out and why. Among what is open the controller chooses in every
 * round. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "draft/text/lookahead_size.h"
#include "engine/drafting.h"
#include "engine/pass_costs.h"
#include "format/find_heads.h"

static void left_out(hunch_engine *e, const char *fmt, ...) HN_PRINTF(2, 3);

static void left_out(hunch_engine *e, const char *fmt, ...) {
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)hn_name_list_add(&e->left_out, text, NULL); /* lost without memory */
}

const char *hunch_engine_left_out(const hunch_engine *e, int index) {
    return e && index >= 0 && (size_t)index < e->left_out.n ? e->left_out.name[index] : NULL;
}

static const char OWN_HEAD[] = "mtp"; /* the block in the model's file */

/* Whether a drafter of this kind is requested by itself: then the user's options hold. */
static bool is_requested(const hunch_engine_options *o, const char *kind) {
    const size_t n = strlen(kind);
    for (int i = 0; i < o->n_drafts; i++)
        if (!strncmp(o->drafts[i], kind, n) && (!o->drafts[i][n] || o->drafts[i][n] == ',')) return true;
    return false;
}

/* ---- heads ------------------------------------------------------------------------------------------------------------- */

/* Opens a head if there is room for it. One that does not fit is noted, as `what`, and the caller tries the next one. */
static hunch_status try_head(hunch_engine *e, const char *spec, const char *what, const hn_target_info *info, bool *open,
                             hunch_error *err) {
    hunch_error why;
    if (e->n_drafters == HN_MOST_DRAFTERS) return HUNCH_OK;
    const hunch_status st = hn_open_drafter(e, spec, info, &why);
    *open = !st;
    if (st == HUNCH_NO_MEMORY) return hn_fail(err, st, "%s", why.message);
    if (st) hn_note(e, "%s is not used: %s", what, why.message);
    return HUNCH_OK;
}

static hunch_status try_beside(hunch_engine *e, const char *path, const hn_target_info *info, bool *open, hunch_error *err) {
    char spec[8200];
    if (hn_spec_of_path(spec, sizeof spec, path)) return try_head(e, spec, "the draft head beside the model", info, open, err);
    hn_note(e, "the draft head %.900s is not used: its path is too long", path);
    return HUNCH_OK;
}

/* The first head beside the model that fits it, else the one in its file, which is large and is not opened twice. */
static hunch_status open_head(hunch_engine *e, const hunch_engine_options *o, const hn_target_info *info, hunch_error *err) {
    hn_name_list heads = {0};
    bool open = false;
    hunch_status st = e->model->path ? hn_find_heads(e->model->path, &heads, err) : HUNCH_OK;
    for (size_t i = 0; !st && !open && i < heads.n; i++) st = try_beside(e, heads.name[i], info, &open, err);
    hn_name_list_fini(&heads);
    if (st || open || !info->path || !info->model->has_own_head || is_requested(o, OWN_HEAD)) return st;
    return try_head(e, OWN_HEAD, "the block that drafts in the model's file", info, &open, err);
}

/* Whether any is open, or a draft model, found here or requested. */
static bool has_head(const hunch_engine *e) {
    bool found = false;
    for (int i = 0; i < e->n_drafters; i++) found |= e->drafter[i].ops->pass_s != NULL;
    return found;
}

/* ---- drafters without a head ------------------------------------------------------------------------------------------- */

/* Lookahead with the window that suits the price of rows, if that is far enough ahead of a plain pass. */
static hunch_status open_lookahead(hunch_engine *e, const hn_target_info *info, hunch_error *err) {
    static const double least = 1.25; /* other drafters gain as much without rows in every pass */
    const hn_cost *cost = hn_curves_kept(e);
    hn_lookahead_size size;
    double seconds[HN_COST_ROWS + 1], optimistic[HN_COST_ROWS + 1];
    const hn_cost_round round = {.texts = 1, .reads = hn_reads(e, 0), .most = HN_COST_ROWS};
    if (!cost || !hn_cost_curve(cost, &round, seconds, optimistic, 0) ||
        !hn_lookahead_best_size(seconds, HN_COST_ROWS, &size)) {
        left_out(e, "auto leaves out lookahead: what rows cost here is measured in this run, and kept for the next one");
        return HUNCH_OK;
    }
    if (size.speed_up < least) {
        left_out(e, "auto leaves out lookahead: the best window here takes %.2f x the time of a plain pass, for about %.2f tokens",
                 size.tokens / size.speed_up, size.tokens);
        return HUNCH_OK;
    }
    char spec[80];
    snprintf(spec, sizeof spec, "lookahead,window=%d,ngram=%d,guess=%d", size.window, size.ngram, size.guess);
    return hn_open_drafter(e, spec, info, err);
}

static hunch_status open_kind(hunch_engine *e, const hunch_engine_options *o, const char *kind, const hn_target_info *info,
                              hunch_error *err) {
    return is_requested(o, kind) ? HUNCH_OK : hn_open_drafter(e, kind, info, err);
}

hunch_status hn_open_auto(hunch_engine *e, const hunch_engine_options *o, const hn_target_info *info, hunch_error *err) {
    static const char *const always[] = {"ngram", "suffix", "grammar"};
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof always / sizeof *always; i++) st = open_kind(e, o, always[i], info, err);
    return st ? st : open_head(e, o, info, err);
}

hunch_status hn_open_auto_without_head(hunch_engine *e, const hunch_engine_options *o, const hn_target_info *info, hunch_error *err) {
    if (has_head(e)) {
        left_out(e, "auto leaves out recycle and lookahead: beside a head they were measured to gain nothing");
        return HUNCH_OK;
    }
    const hunch_status st = open_kind(e, o, "recycle", info, err);
    return st || is_requested(o, "lookahead") ? st : open_lookahead(e, info, err);
}
