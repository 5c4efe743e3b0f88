/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_advice.c - what to use, why, and what would help most, in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "forecast/forecast.h"
#include "plan/speedup.h"

/* A method has to gain this much over what needs less: plain decoding, `auto`, no limit of depth. */
static const double WORTH = 1.03;

static void choose(const hn_forecast *f, int texts, hn_forecast_advice *a) {
    a->method = &f->method[0];
    a->cut = HN_FORECAST_UNCUT;
    a->speed = hn_forecast_plain(f, texts);
    for (int pass = 0; pass < 2; pass++) /* those with a controller first */
        for (int i = 1; i < f->n; i++) {
            const hn_forecast_method *m = &f->method[i];
            int cut;
            const double s = hn_forecast_best(f, m, texts, &cut);
            if (m->absent || m->controlled != (pass == 0) ||
                !(s > a->speed * (pass == 0 && a->method->controlled ? 1 : WORTH)))
                continue;
            a->method = m;
            a->cut = cut;
            a->speed = s;
        }
}

static void write_flags(const hn_forecast_method *m, int cut, hn_forecast_advice *a) {
    char depth[40] = "";
    if (cut != HN_FORECAST_UNCUT && !m->controlled)
        snprintf(depth, sizeof depth, " --draft-depth %d", HN_FORECAST_DEPTH[cut]);
    snprintf(a->flags, sizeof a->flags, "--draft %.300s%s", m->name, depth);
}

/* The drafter that is right most often, by its first draft. */
static const hn_forecast_method *likeliest(const hn_forecast *f) {
    const hn_forecast_method *best = NULL;
    for (int i = 1; i < f->n; i++)
        if (f->method[i].deepest > 0 && !f->method[i].absent && (!best || f->method[i].accepted[0] > best->accepted[0]))
            best = &f->method[i];
    return best;
}

static void write_no(const hn_forecast *f, int texts, hn_forecast_advice *a) {
    const double one = hn_forecast_pass(f, texts, texts), two = hn_forecast_pass(f, 2 * texts, texts) / one - 1;
    const hn_forecast_method *m = likeliest(f);
    int n = snprintf(a->why, sizeof a->why, "speculation cannot pay here because ");
    char *to = a->why + n;
    const size_t room = sizeof a->why - (size_t)n;
    if (!m) {
        snprintf(to, room, "no drafter proposed anything");
        return;
    }
    const double right = m->drafted[0] > 0 ? m->accepted[0] / m->drafted[0] : 0, cost = hn_forecast_cost(f, m, 0);
    if (two > right)
        snprintf(to, room,
                 "a draft adds %.2f of a pass to the pass that verifies it%s, and %.100s is right in %.2f of its first "
                 "drafts",
                 two, texts > 1 ? " (the machine computes as much as it can)" : "", m->name, right);
    else if (two + cost > right)
        snprintf(to, room,
                 "a draft of %.100s takes %.2f of a pass, its verification %.2f, and it is right in %.2f of its first "
                 "drafts",
                 m->name, cost, two, right);
    else
        snprintf(to, room, "drafts are right too seldom: %.100s in %.2f of its first ones, %.2f a round", m->name,
                 right, m->accepted[0]);
}

static void write_why(const hn_forecast *f, int texts, hn_forecast_advice *a) {
    const hn_forecast_method *m = a->method;
    const double plain = hn_forecast_plain(f, texts);
    if (m == &f->method[0]) {
        write_no(f, texts, a);
        return;
    }
    const int depth = hn_forecast_depth(m, a->cut);
    double tokens = 1;
    for (int i = 0; i < depth; i++) tokens += m->accepted[i];
    snprintf(a->why, sizeof a->why,
             "%.1f tokens a second%s instead of %.1f, %.2f times as many: %.2f tokens a round%s; a pass of %d rows "
             "takes %.2f times as long "
             "as one of %d%s",
             a->speed, texts > 1 ? " of all texts" : "", plain, a->speed / plain, tokens,
             m->measured ? " on these prompts" : "", 4 * texts,
             hn_forecast_pass(f, 4 * texts, texts) / hn_forecast_pass(f, texts, texts), texts,
             m->measured ? "" : " (acceptance is a published one: -f PROMPTS measures it)");
}

/* ---- what would help ------------------------------------------------------------------------------------------------------- */

typedef struct help {
    double speed;
    char text[300];
} help;

static void offer(help *best, double speed, const char *text) {
    if (!(speed > best->speed)) return;
    best->speed = speed;
    snprintf(best->text, sizeof best->text, "%s", text);
}

/* A head whose chains are as good as published ones. */
static void offer_head(const hn_forecast *f, int texts, double now, help *best) {
    hn_forecast_method head = {.name = "a head", .head = true};
    char text[300];
    int cut;
    for (int i = 1; i < f->n; i++)
        if (f->method[i].head && !f->method[i].absent) return;
    hn_forecast_assume(f, &head, "head");
    const double s = hn_forecast_best(f, &head, texts, &cut);
    snprintf(
        text, sizeof text,
        "a draft head (hunch train): with the acceptance of published ones %.1f tokens a second, %.2f times as many, "
        "%d drafts deep",
        s, s / now, HN_FORECAST_DEPTH[cut]);
    if (s > now * WORTH) offer(best, s, text);
}

static void offer_bits(const hn_forecast *f, int texts, double now, help *best) {
    const double few = 4.785;
    char text[300];
    if (!(f->bits > 1.15 * few)) return;
    const hn_figures_work w = {f->bytes, texts * f->macs, 0}, less = {f->bytes * few / f->bits, texts * f->macs, 0};
    const double gain = hn_figures_seconds(&f->machine, &w) / hn_figures_seconds(&f->machine, &less);
    snprintf(text, sizeof text,
             "fewer bits: the model has %.1f a weight, with Q4_K passes of few rows take about %.2f of their time, "
             "%.0f tokens a "
             "second; this changes the model",
             f->bits, 1 / gain, now * gain);
    if (gain > WORTH) offer(best, now * gain, text);
}

static void write_help(const hn_forecast *f, int texts, hn_forecast_advice *a) {
    help best = {0};
    offer_head(f, texts, a->speed, &best);
    offer_bits(f, texts, a->speed, &best);
    const bool reading = f->bytes / f->machine.bandwidth > texts * f->macs / f->machine.peak;
    const bool threads = f->few_gb_s > 0 && reading && f->few_gb_s * 1e9 > 0.97 * f->machine.bandwidth;
    const char *fewer = "half as many threads: they read as fast, and leave cores to others (--threads)";
    if (!*best.text)
        snprintf(a->help, sizeof a->help, "%s", threads ? fewer : "nothing that is known here");
    else
        snprintf(a->help, sizeof a->help, "%s%s%s", best.text, threads ? "; and " : "", threads ? fewer : "");
}

void hn_forecast_advise(const hn_forecast *f, int texts, hn_forecast_advice *out) {
    choose(f, texts, out);
    write_flags(out->method, out->cut, out);
    write_why(f, texts, out);
    write_help(f, texts, out);
}
