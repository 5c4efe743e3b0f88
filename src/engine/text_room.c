/* SPDX-License-Identifier: Apache-2.0 */
/* text_room.c - whether there are pages for one more text, so that its place costs nobody another (scheduler.c asks before it gives one).
 *
 *   by and by   at every end of a text that is to be expected the texts that are there then have room. How long an answer becomes is
 *               guessed from the newest ones that ended, among those that were longer than it is now
 *   at first    until the text has its first tokens all have room, even if no guess is right and none ends
 * Texts that end give back the pages that no other one uses. */
#include "base/least.h"
#include "engine/round.h"
#include "engine/scheduling.h"

enum { LONG = 1024, MORE = 64, FIRST = 32, TAKEN_AS_LONG = 2 };

/* ---- how long answers become ------------------------------------------------------------------------------------------- */

/* An answer that was cut off at its limit might have become any longer. */
void hn_room_learn(hn_answer_lengths *l, size_t tokens, hunch_finish how) {
    if (how == HUNCH_FINISH_FAILED || how == HUNCH_FINISH_GRAMMAR) return;
    l->at[l->n++ % HN_ANSWERS_KEPT] = how == HUNCH_FINISH_LENGTH || how == HUNCH_FINISH_DEADLINE ? SIZE_MAX : tokens;
}

/* Tokens that an answer is expected to get beyond those that it has: by the mean of those that became longer. Before there are any two are
 * taken to have been long. */
static size_t expected_left(const hunch_session *s) {
    const hn_answer_lengths *l = &s->engine->lengths;
    const size_t has = hn_session_emitted(s), left = s->request.max_new - has, longer = hn_most_size(LONG, has + MORE);
    const int kept = l->n < HN_ANSWERS_KEPT ? (int)l->n : HN_ANSWERS_KEPT, taken = hn_least(TAKEN_AS_LONG, HN_ANSWERS_KEPT - kept);
    size_t sum = longer * (size_t)taken, n = (size_t)taken;
    for (int i = 0; i < kept; i++) {
        if (l->at[i] <= has) continue;
        sum += l->at[i] == SIZE_MAX ? longer : l->at[i];
        n++;
    }
    return hn_least_size(n ? sum / n - has : MORE, left);
}

/* ---- what texts hold --------------------------------------------------------------------------------------------------- */

static hn_text_room room_of(const hunch_session *s) {
    const hn_cache *c = s->engine->cache;
    const int held = s->id < 0 ? 0 : hn_cache_committed(c, s->id, 0);
    const double rounds = (double)s->stats.rounds, done = (double)hn_session_emitted(s);
    return (hn_text_room){.rows = (int)s->text.n,
                          .left = (int)hn_least_size(s->request.max_new - hn_session_emitted(s), (size_t)s->engine->context),
                          .more = (int)hn_least_size(expected_left(s), (size_t)s->engine->context),
                          .held = held > 0 ? hn_cache_pages_for(c, held) : 0,
                          .own = s->id < 0 ? 0 : hn_cache_own_pages(c, s->id),
                          .paused = s->stats.paused,
                          .rate = rounds > 0 ? hn_most_double(done / rounds, 1) : 1};
}

/* Pages that a text takes until it has so many more rows; a paused one stays as it is. */
static int64_t growth(const hunch_engine *e, const hn_text_room *r, int more) {
    return r->paused ? 0 : hn_cache_pages_for(e->cache, hn_least(r->rows + more, e->context)) - r->held;
}

/* Those that all take until so many tokens from now, when some have ended. */
static int64_t taken_after(const hunch_engine *e, const hn_text_room *list, int n, int tokens) {
    int64_t pages = 0;
    for (int i = 0; i < n; i++) pages += list[i].more < tokens && !list[i].paused ? -list[i].own : growth(e, &list[i], tokens);
    return pages;
}

static bool fits_by_and_by(const hunch_engine *e, const hn_text_room *list, int n) {
    const int64_t free = hn_cache_free_pages(e->cache);
    int64_t all = 0;
    for (int i = 0; i < n; i++) all += growth(e, &list[i], list[i].more);
    for (int i = 0; i < n && all > free; i++) /* else there is room even if none ends before the others */
        if (taken_after(e, list, n, list[i].more) > free) return false;
    return true;
}

/* Rounds until the newest of the texts has its first tokens: prompts are read one after the other. */
static double rounds_to_begin(const hunch_engine *e, const hunch_session *s, int placed) {
    size_t unread = hn_prefill_rows(s);
    for (int i = 0; i < e->parallel; i++) {
        if (!e->session[i]) continue;
        const size_t all = hn_prefill_rows(e->session[i]), done = (size_t)hn_cache_committed(e->cache, i, 0);
        unread += all > done ? all - done : 0;
    }
    return FIRST + (double)unread / hn_prompt_budget(e, placed);
}

static bool fits_at_first(const hunch_engine *e, const hunch_session *s, const hn_text_room *list, int n) {
    const double rounds = rounds_to_begin(e, s, n - 1);
    int64_t pages = growth(e, &list[n - 1], hn_least(list[n - 1].left, FIRST));
    for (int i = 0; i < n - 1; i++) {
        const double tokens = rounds * list[i].rate;
        pages += growth(e, &list[i], tokens < (double)list[i].left ? (int)tokens : list[i].left);
    }
    return pages <= hn_cache_free_pages(e->cache);
}

bool hn_has_room(const hunch_engine *e, const hunch_session *s) {
    hn_text_room *list = e->list.room;
    int n = 0;
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i]) list[n++] = room_of(e->session[i]);
    list[n++] = room_of(s);
    return fits_at_first(e, s, list, n) && fits_by_and_by(e, list, n);
}
