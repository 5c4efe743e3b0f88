/* SPDX-License-Identifier: Apache-2.0 */
/* head_health.c - whether the draft heads and draft models of a text are what they seem: one that is nearly never right drafts no more for
 * it, and the user is told, as of a head that is right more often than heads are. Decided by past rounds, of first positions alone, so it
 * changes no text. */
#include "engine/drafting.h"
#include "engine/repeats.h"

enum { ENOUGH = 64, MANY = 256, PIECE = 16 };
static const double LEAST = 0.02, MOST = 0.995;

static void put_aside(hunch_session *s, int drafter, const hn_head_health *h) {
    hunch_engine *e = s->engine;
    const char *name = e->drafter[drafter].name;
    s->request.drafters &= ~(1u << drafter);
    if (e->told_wrong & 1u << drafter) return;
    e->told_wrong |= 1u << drafter;
    if (e->drafter[drafter].ops->feed)
        hn_note(e,
                "%s drafts no more for a text: %d of its first %d drafts were right; it may be for another model or tokenizer, or for "
                "texts of another template: hunch check %s --draft %s looks for the cause",
                name, h->right, h->drafted, e->model->path ? e->model->path : "MODEL", name);
    else
        hn_note(e,
                "%s drafts no more for a text: %d of its first %d drafts were right; it may have another vocabulary, or be for texts of "
                "another template",
                name, h->right, h->drafted);
}

/* Texts that repeat are easy: of others no head is so sure. */
static void note_too_good(hunch_session *s, int drafter, const hn_head_health *h) {
    const hn_session_text *t = &s->text;
    if ((s->engine->told_good & 1u << drafter) || hn_repeats(t->token + t->n_prompt, t->n - t->n_prompt, PIECE, 2))
        return;
    s->engine->told_good |= 1u << drafter;
    hn_note(s->engine,
            "%s was right in %d of %d rounds of a text that does not repeat: more than heads are; it may have been trained on it",
            s->engine->drafter[drafter].name, h->right, h->drafted);
}

void hn_watch_heads(hunch_session *s) {
    const hunch_engine *e = s->engine;
    for (int d = 0; d < e->n_drafters; d++) {
        const hn_round_drafter *r = &s->round.drafts.drafter[d];
        hn_head_health *h = &s->health[d];
        if (!e->drafter[d].ops->pass_s || e->drafter[d].needs.oracle || r->drafted_first == 0) continue;
        h->drafted++;
        h->right += (int)(r->accepted_at & 1);
        if (h->drafted >= ENOUGH && h->right < LEAST * h->drafted) put_aside(s, d, h);
        if (h->drafted == MANY && h->right > MOST * h->drafted && e->drafter[d].ops->feed) note_too_good(s, d, h);
    }
}
