/* SPDX-License-Identifier: Apache-2.0 */
/* tool_why_html.c - `run --why-html FILE`: the answer, coloured by who guessed each token, and every round below it: its tree, what was
 * considered, its time. One file without scripts or anything from elsewhere. */
#include <math.h>
#include <string.h>

#include "app/tool_file.h"
#include "cli/show/tool_svg.h"
#include "cli/show/tool_why.h"

/* Of drafters, in turn; the model's own tokens have none. */
static const char *const colors[] = {"#bfe3c8", "#c9dcf7", "#f6d9b8", "#e6cdf2",
                                     "#f3e6a4", "#f2c6cf", "#bfe5e8", "#d9d6cf"};
enum { COLORS = sizeof colors / sizeof *colors };

typedef struct page {
    tool_file *file;
    const tool_why *why;
    const hunch_model *model;
    const hunch_engine *engine;
    const hunch_session_state *answer;
} page;

static const char style[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width\">\n"
    "<title>hunch: how an answer was guessed</title>\n<style>\n"
    "body{font:16px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#111;background:#fff}\n"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin:0 0 .3em}.answer,.round{border:1px solid "
    "#ccc;border-radius:6px;padding:.8em;margin:1em 0}\n"
    ".answer{white-space:pre-wrap;font-size:1.1em}.t{border-radius:3px;padding:0 "
    "1px;text-decoration:none;color:inherit}\n"
    "ul.tree,ul.tree ul{list-style:none;margin:0;padding-left:1.4em;border-left:2px solid "
    "#ddd}ul.tree{border:0;padding-left:0}\n"
    ".n{display:inline-block;font-family:monospace;white-space:pre;border-radius:4px;padding:0 .4em;margin:1px "
    "0;opacity:.55;"
    "text-decoration:line-through}\n"
    ".n.ok{opacity:1;font-weight:bold;text-decoration:none}.n.root{background:#eee;opacity:1;text-decoration:none}\n"
    ".n.own{border:1px solid #777;opacity:1;font-weight:bold;text-decoration:none}.round:target{border-color:#1457a8;"
    "box-shadow:0 0 0 2px #1457a8}\n"
    ".p{color:#555;font-size:.85em}table{border-collapse:collapse;margin-top:.6em;font-size:.9em}td,th{padding:.1em "
    ".8em .1em 0;text-align:left}\n"
    "tr.chosen{font-weight:bold}.bar{display:inline-block;height:.7em;background:#1457a8;vertical-align:middle}.bar.d{"
    "background:#f0a030}\n"
    "summary{cursor:pointer}\n</style></head><body>\n";

/* breaks: line breaks are made, not shown. */
static void put_piece(const page *p, hunch_token id, bool breaks) {
    const char *bytes;
    size_t len;
    char number[16];
    if (hunch_token_piece(p->model, id, &bytes, &len, NULL, NULL) != HUNCH_OK) {
        snprintf(number, sizeof number, "[%d]", id);
        tool_svg_put(p->file, "%s", number);
        return;
    }
    json_t *piece = tool_json_piece(bytes, len);
    const char *text = json_string_value(piece);
    for (; text && *text; text++) {
        const char one[2] = {*text, 0};
        if (*text == '\n')
            tool_svg_put(p->file, "%s", breaks ? "\n" : "\u21b5");
        else
            tool_svg_text(p->file, one);
    }
    json_decref(piece);
}

static const char *name_of(const page *p, int drafter) {
    const char *name = drafter < 0 ? NULL : hunch_engine_drafter_name(p->engine, drafter);
    return name ? name : "the model";
}

static const char *color_of(int drafter) {
    return drafter < 0 ? "transparent" : colors[drafter % COLORS];
}

/* ---- the answer ----------------------------------------------------------------------------------------------------------------- */

/* Each token leads to its round: the first came with the prompt. */
static void put_answer(const page *p) {
    const hunch_session_state *st = p->answer;
    size_t at = 1, round = 0;
    tool_svg_put(p->file, "<div class=\"answer\">");
    for (size_t i = 0; i < st->n_tokens; i++) {
        const bool in_round = i >= 1 && round < p->why->n;
        tool_svg_put(p->file, "<a class=\"t\" style=\"background:%s\"", color_of(st->drafter_of[i]));
        if (in_round) tool_svg_put(p->file, " href=\"#r%zu\"", round + 1);
        tool_svg_put(p->file, " title=\"");
        tool_svg_text(p->file, name_of(p, st->drafter_of[i]));
        tool_svg_put(p->file, "\">");
        put_piece(p, st->tokens[i], true);
        tool_svg_put(p->file, "</a>");
        if (in_round && i == at + (size_t)p->why->rounds[round].accepted)
            at += (size_t)p->why->rounds[round++].accepted + 1;
    }
    tool_svg_put(p->file, "</div>\n");
}

static void put_legend(const page *p) {
    const hunch_session_state *st = p->answer;
    const double tau = st->rounds ? ((double)st->n_tokens - 1) / (double)st->rounds : 0;
    tool_svg_put(p->file, "<h1>How this answer was guessed</h1>\n<p>A language model writes a token (a piece of a "
                          "word) at a time, and each takes "
                          "it a whole pass over its weights. Here cheap <em>drafters</em> guess the next tokens, and "
                          "the model checks all "
                          "guesses in one pass. Guesses that are what it would have written are kept, the others are "
                          "dropped: the text is the "
                          "same, with fewer passes.</p>\n");
    tool_svg_put(p->file,
                 "<p><strong>%zu tokens in %llu passes, %.2f a pass</strong>; %llu of %llu guesses were right. Colours "
                 "say who guessed "
                 "a token, no colour is the model itself; a click leads to its round.</p>\n<p>",
                 st->n_tokens, (unsigned long long)st->rounds, tau, (unsigned long long)st->accepted,
                 (unsigned long long)st->drafted);
    for (int d = 0; d < hunch_engine_drafters(p->engine); d++) {
        tool_svg_put(p->file, "<span class=\"t\" style=\"background:%s\">&nbsp;", color_of(d));
        tool_svg_text(p->file, name_of(p, d));
        tool_svg_put(p->file, "&nbsp;</span> ");
    }
    tool_svg_put(p->file, "</p>\n");
}

/* What the rounds below show. */
static void put_key(const page *p) {
    tool_svg_put(p->file,
                 "<p>The rounds, in order. A line is a guess, below the token that it follows, with the probability that its "
                 "drafter's record gives it and the drafter (of one with a model how sure that was: the margin between its two likeliest "
                 "tokens, and the entropy): <span class=\"n ok\">right</span> <span class=\"n\">wrong</span> "
                 "<span class=\"n own\">what the model wrote itself</span>. Bars: <span class=\"bar d\" style=\"width:1em\"></span> "
                 "time of guessing, <span class=\"bar\" style=\"width:1em\"></span> of the model's pass.</p>\n");
}

/* ---- a round -------------------------------------------------------------------------------------------------------------------- */

/* own: the token that the model wrote itself after the guesses that were right, -1: none, for the answer ended before it. */
static void put_nodes(const page *p, const hunch_round_report *r, const bool *right, int parent, hunch_token own) {
    bool begun = false;
    if (own >= 0 && parent == (r->accepted > 0 ? r->path[r->accepted - 1] : -1)) {
        tool_svg_put(p->file, "<ul><li><span class=\"n own\">");
        put_piece(p, own, false);
        tool_svg_put(p->file, "</span> <span class=\"p\">the model itself</span></li>\n");
        begun = true;
    }
    for (int i = parent + 1; i < r->rows - 1; i++) {
        const hunch_draft_node *n = &r->node[i];
        if (n->parent != parent) continue;
        tool_svg_put(p->file, "%s<li><span class=\"n%s\" style=\"background:%s\">", begun ? "" : "<ul>",
                     right[i] ? " ok" : "", color_of(n->drafter));
        put_piece(p, n->token, false);
        tool_svg_put(p->file, "</span> <span class=\"p\">%.0f %% ", 100 * n->estimate);
        tool_svg_text(p->file, name_of(p, n->drafter));
        if (!isnan(n->margin)) tool_svg_put(p->file, ", margin %.2f, entropy %.2f", n->margin, n->entropy);
        tool_svg_put(p->file, "</span>");
        put_nodes(p, r, right, i, own);
        tool_svg_put(p->file, "</li>\n");
        begun = true;
    }
    if (begun) tool_svg_put(p->file, "</ul>");
}

static void put_tree(const page *p, const hunch_round_report *r, hunch_token own) {
    bool right[HUNCH_MAX_DEPTH + 1] = {false};
    for (int i = 0; i < r->accepted; i++) right[r->path[i]] = true;
    tool_svg_put(p->file, "<ul class=\"tree\"><li><span class=\"n root\">");
    put_piece(p, r->root, false);
    tool_svg_put(p->file, "</span> <span class=\"p\">the newest token before the round%s</span>",
                 r->rows > 1 ? "" : ": nothing was guessed");
    put_nodes(p, r, right, -1, own);
    tool_svg_put(p->file, "</li></ul>\n");
}

static void put_considered(const page *p, const hunch_round_report *r) {
    const char *reason = tool_why_reason(r->reason);
    if (!r->controlled || r->n_considered == 0) {
        tool_svg_put(p->file, "<p class=\"p\">%s</p>\n",
                     r->controlled ? "Nothing was timed yet." : "Every guess is checked: no controller chooses.");
        return;
    }
    tool_svg_put(p->file,
                 "<details><summary class=\"p\">what was "
                 "considered%s%s</summary><table><tr><th>who</th><th>guesses</th><th>depth</th>"
                 "<th>tokens expected</th><th>ms</th><th>tokens/s</th></tr>\n",
                 reason ? "; chosen although another has better numbers: " : "", reason ? reason : "");
    for (int i = 0; i < r->n_considered; i++) {
        const hunch_choice *c = &r->considered[i];
        tool_svg_put(p->file, "<tr%s><td>", i == r->chosen ? " class=\"chosen\"" : "");
        tool_svg_text(p->file, c->rows == 0     ? "none: plain decoding"
                               : c->drafter < 0 ? "several together"
                                                : name_of(p, c->drafter));
        tool_svg_put(p->file, "%s</td><td>%d</td><td>%d</td><td>%.2f</td><td>%.2f</td><td>%.0f</td></tr>\n",
                     i == r->chosen ? " (chosen)" : "", c->rows, c->depth, c->expected, 1e3 * c->seconds,
                     c->seconds > 0 ? c->expected / c->seconds : 0);
    }
    tool_svg_put(p->file, "</table></details>\n");
}

/* slowest: seconds, of all rounds, that the longest bar stands for. last: number of the token that the model wrote itself. */
static void put_round(const page *p, size_t i, size_t last, double slowest) {
    const hunch_round_report *r = &p->why->rounds[i];
    const double wide = slowest > 0 ? 20 / slowest : 0; /* em */
    tool_svg_put(p->file, "<div class=\"round\" id=\"r%zu\"><h2>Round %zu: %d of %d guesses right, %d token%s</h2>\n",
                 i + 1, i + 1, r->accepted, r->rows - 1, r->accepted + 1, r->accepted ? "s" : "");
    put_tree(p, r, last < p->answer->n_tokens ? p->answer->tokens[last] : -1);
    tool_svg_put(p->file,
                 "<p class=\"p\"><span class=\"bar d\" style=\"width:%.2fem\"></span><span class=\"bar\" "
                 "style=\"width:%.2fem\"></span> "
                 "guessing %.2f ms, the model's pass over %d row%s %.2f ms, after %d rows</p>\n",
                 wide * r->draft_s, wide * r->pass_s, 1e3 * r->draft_s, r->rows, r->rows == 1 ? "" : "s",
                 1e3 * r->pass_s, r->context);
    put_considered(p, r);
    tool_svg_put(p->file, "</div>\n");
}

int tool_why_html(const char *path, const tool_why *w, const hunch_model *m, const hunch_engine *e,
                  const hunch_session_state *st) {
    tool_file file;
    const page p = {&file, w, m, e, st};
    double slowest = 0;
    size_t last = 0; /* the first token came with the prompt */
    int code = tool_file_begin(&file, path);
    if (code) return tool_file_end(&file, code);
    tool_file_write(&file, style, sizeof style - 1);
    put_legend(&p);
    put_answer(&p);
    put_key(&p);
    for (size_t i = 0; i < w->n; i++) slowest = fmax(slowest, w->rounds[i].draft_s + w->rounds[i].pass_s);
    for (size_t i = 0; i < w->n; i++) {
        last += (size_t)w->rounds[i].accepted + 1;
        put_round(&p, i, last, slowest);
    }
    tool_svg_put(&file, "<p class=\"p\">hunch %s</p>\n</body></html>\n", hunch_version());
    return tool_file_end(&file, 0);
}
