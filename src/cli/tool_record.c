/* SPDX-License-Identifier: Apache-2.0 */
/* tool_record.c - see tool_record.h. The rounds of such an answer emit one token each, so the tree of a round is what its drafters
 * propose at that position; which of its drafts are right is read from the plain text. */
#include "cli/tool_record.h"

#include <math.h>
#include <string.h>

#include "app/tool_file.h"

int tool_record_begin(tool_options *o) {
    if (o->drafts.n == 0)
        return tool_usage("--record: give each drafter a --draft: auto calls a drafter only where it pays");
    if (o->json || o->show || o->repeat != TOOL_UNSET || !isnan(o->until_width))
        return tool_usage("--record: the answers are recorded once, so there is no --json, --show, --repeat or --until-width");
    if (o->depth == TOOL_UNSET)
        o->depth = TOOL_RECORD_DEPTH;
    return tool_file_check(o->record);
}

/* The drafts of a position: [depth, parent, token, estimate, right], parents first; right: the plain text goes on with its path. */
static json_t *drafts_json(const hunch_round_report *r, const tool_answer *plain, size_t position) {
    json_t *list = json_array();
    bool right[HUNCH_MAX_ROWS];
    for (int i = 0; i < r->rows - 1; i++) {
        const hunch_draft_node *x = &r->node[i];
        const size_t at = position + (size_t)x->depth;
        right[i] = at < plain->n && (x->parent < 0 || right[x->parent]) && plain->tokens[at] == x->token;
        json_array_append_new(list, json_pack("[i,i,i,f,b]", x->depth, x->parent, (int)x->token, x->estimate, (int)right[i]));
    }
    return list;
}

static void line_write(tool_file *f, json_t *line) {
    char *text = line ? tool_json_dump(line, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(line);
    if (!text) {
        f->error.status = HUNCH_NO_MEMORY;
        snprintf(f->error.message, sizeof f->error.message, "out of memory while recording");
        return;
    }
    tool_file_write(f, text, strlen(text));
    tool_file_write(f, "\n", 1);
    hn_free(text);
}

/* A line a position: its root is the token there, and its drafts are about the tokens after it. */
static void answer_write(tool_file *f, const tool_comparison *c, int variant, size_t prompt) {
    const tool_answer *plain = tool_answer_of(c, 0, prompt), *drafted = tool_answer_of(c, variant, prompt);
    const tool_prompt *p = &c->prompts.items[prompt];
    for (size_t k = 0; k < drafted->recorded.n; k++) {
        const hunch_round_report *r = &drafted->recorded.rounds[k];
        line_write(f, json_pack("{s:O,s:o,s:i,s:i,s:i,s:f,s:f,s:o}", "prompt", p->id, "draft",
                                tool_json_name(c->variants[variant].method.text), "position",
                                (int)k, "root", (int)r->root, "context", r->context, "draft_s", r->draft_s, "draft_pass_s",
                                r->draft_pass_s, "drafts", drafts_json(r, plain, k)));
    }
}

int tool_record_write(const tool_comparison *c) {
    tool_file f;
    size_t positions = 0;
    const int code = tool_file_begin(&f, c->o.record);
    for (int variant = 1; !code && variant < c->n_variants; variant++)
        for (size_t i = 0; i < c->n_done; i++) {
            answer_write(&f, c, variant, i);
            positions += tool_answer_of(c, variant, i)->recorded.n;
        }
    if (!code)
        tool_message("%s: %zu positions, by %d method%s", c->o.record, positions, c->n_variants - 1, c->n_variants > 2 ? "s" : "");
    return tool_file_end(&f, code);
}
