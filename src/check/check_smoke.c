/* SPDX-License-Identifier: Apache-2.0 */
/* check_smoke.c - the smoke test of a draft head: the target continues a few texts, greedily and all in one batch, and the head drafts
 * real rounds. Its accuracy at the first position is compared with that of the best constant. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "check/head_check.h"
#include "engine/session.h"

enum { NEW_TOKENS = 192 * HN_CHECK_TEXTS, SECONDS = 20 }; /* of all texts together */

/* Prose, code, questions, lists, other languages: text unlike a head's training data gives little information, so there is some of each. */
static const char *const prompts[HN_CHECK_TEXTS] = {
    "Once upon a time there was a little girl who lived near a big forest. One day she",
    "Why is the sky blue? Explain it in a few sentences.",
    "def fibonacci(n):\n    \"\"\"Returns the n-th number of Fibonacci.\"\"\"\n",
    "List ten animals that live in the sea:\n1. whale\n2.",
    "Il était une fois un petit garçon qui voulait",
    "The old man took his boat and went out to the sea, because",
    "What is the difference between a list and a tuple in Python?",
    "Tom and Lily were best friends. They liked to play in the park. One sunny day",
    "Es war einmal ein König, der hatte drei Töchter. Die jüngste",
    "Write a short letter to a friend about your holiday at the lake.",
    "The cat and the dog were in the garden. The dog said",
    "#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 10; i++)",
    "How do I make a cake with apples? Give me the recipe step by step.",
    "Había una vez un perro que",
    "In 1969 people walked on the moon for the first time. This was",
    "Translate into French: The weather is nice today, and we want to go for a walk.",
};

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

void hn_smoke_fini(hn_smoke *s) {
    for (int i = 0; i < HN_CHECK_TEXTS; i++) hn_free(s->text[i].token);
    hn_free(s->first_token);
    *s = (hn_smoke){0};
}

/* Takes the ids. */
static void add_prompt(hn_smoke *s, int32_t *ids, size_t n, int most) {
    const int kept = n < (size_t)most ? (int)n : most;
    s->text[s->n++] = (hn_check_text){ids, kept, kept};
}

static hunch_status copy_prompt(hn_smoke *s, const hunch_model *m, const hunch_token *given, size_t n, hunch_error *err) {
    const int most = m->target.arch.context / 2;
    if (most < 1) return HUNCH_OK;
    int32_t *ids = hn_alloc(n * sizeof *ids);
    if (!ids) return hn_fail_memory(err, "a text", n * sizeof *ids);
    memcpy(ids, given, n * sizeof *ids);
    add_prompt(s, ids, n, most);
    return HUNCH_OK;
}

/* The prompts, through the chat template if there is one; those that the tokenizer cannot encode are left out. */
static hunch_status make_prompts(hn_smoke *s, const hunch_model *m, hunch_error *err) {
    const int most = m->target.arch.context / 2;
    for (int i = 0; i < HN_CHECK_TEXTS; i++) {
        const hunch_message message = {"user", prompts[i]};
        hunch_token *ids = NULL;
        size_t n = 0;
        hunch_error why = {0};
        hunch_status st = hunch_chat_tokens(m, &message, 1, &ids, &n, &why);
        if (st == HUNCH_REFUSED) /* a template that cannot be read */
            st = hunch_tokenize(m, prompts[i], strlen(prompts[i]), HUNCH_TEXT_ADD_SPECIAL, &ids, &n, &why);
        if (st == HUNCH_NO_MEMORY) return hn_fail(err, st, "%s", why.message);
        if (st || n == 0 || most < 1) {
            hn_free(ids);
            continue;
        }
        add_prompt(s, ids, n, most);
    }
    return HUNCH_OK;
}

static int new_tokens(const hn_smoke *s) {
    return NEW_TOKENS / s->n;
}

static hunch_status open_engine(hunch_engine **e, const hn_smoke *s, hunch_model *m, const char *spec, hunch_error *err) {
    hunch_engine_options o;
    int longest = 0;
    hunch_engine_options_defaults(&o);
    for (int i = 0; i < s->n; i++)
        if (s->text[i].n > longest) longest = s->text[i].n;
    longest += new_tokens(s) + 1;
    o.context = longest < m->target.arch.context ? longest : m->target.arch.context;
    o.parallel = s->n < HN_CHECK_AT_ONCE ? s->n : HN_CHECK_AT_ONCE;
    o.drafts = &spec;
    o.n_drafts = 1;
    const hunch_status st = hunch_engine_open(e, m, &o, err);
    if (!st) (*e)->keeps_wrong_heads = true;
    return st;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------------ */

typedef struct smoke_text {
    hn_smoke *smoke;
    hunch_session *session;
} smoke_text;

static void count_round(void *user, const hunch_round_report *r) {
    const smoke_text *l = user;
    hn_smoke *s = l->smoke;
    const size_t at = (size_t)r->context + 1; /* after the root */
    if (r->rows < 2 || at >= l->session->text.n) return;
    for (int level = 0; level + 1 < r->rows && level < HUNCH_MAX_DEPTH; level++) {
        s->drafted[level]++;
        s->accepted[level] += r->accepted > level;
    }
    if (hn_grow((void **)&s->first_token, &s->cap_first, s->n_first + 1, sizeof *s->first_token))
        s->first_token[s->n_first++] = l->session->text.token[at];
    else
        s->no_memory = true;
}

static hunch_status open_sessions(hn_smoke *s, hunch_engine *e, smoke_text *l, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < s->n; i++) {
        hunch_request r;
        hunch_request_defaults(&r, e->model);
        r.prompt = s->text[i].token;
        r.n_prompt = (size_t)s->text[i].n;
        r.max_tokens = new_tokens(s);
        r.sampling = (hunch_sampling){.top_p = 1};
        r.on_round = count_round;
        r.on_round_user = &l[i];
        l[i].smoke = s;
        st = hunch_session_open(&l[i].session, e, &r, err);
    }
    return st;
}

/* Replaces the prompts by the texts that were generated. */
static hunch_status keep_texts(hn_smoke *s, const smoke_text *l, hunch_error *err) {
    for (int i = 0; i < s->n; i++) {
        const hunch_session *from = l[i].session;
        if (from->stats.finish == HUNCH_FINISH_FAILED) return hn_fail(err, from->stats.error.status, "%s", from->stats.error.message);
        int32_t *text = hn_alloc(from->text.n * sizeof *text);
        if (!text) return hn_fail_memory(err, "a text", from->text.n * sizeof *text);
        memcpy(text, from->text.token, from->text.n * sizeof *text);
        hn_free(s->text[i].token);
        s->text[i] = (hn_check_text){text, (int)from->text.n, s->text[i].n_prompt};
    }
    return HUNCH_OK;
}

static hunch_status find_constant(hn_smoke *s, int vocab, hunch_error *err) {
    int *times = hn_zalloc((size_t)vocab, sizeof *times), most = 0;
    if (!times) return hn_fail_memory(err, "counts of tokens", (size_t)vocab * sizeof *times);
    for (size_t i = 0; i < s->n_first; i++)
        if (++times[s->first_token[i]] > most) most = times[s->first_token[i]];
    s->constant = s->n_first ? (double)most / (double)s->n_first : 0;
    hn_free(times);
    return HUNCH_OK;
}

hunch_status hn_smoke_run(hn_smoke *s, hunch_model *m, const char *spec, const hunch_token *given, size_t n_given, hn_check_progress p,
                          hunch_error *err) {
    smoke_text l[HN_CHECK_TEXTS] = {{0}};
    hunch_engine *e = NULL;
    const double start = hn_now();
    hunch_status st = n_given ? copy_prompt(s, m, given, n_given, err) : make_prompts(s, m, err);
    if (st || s->n == 0) return st;
    st = open_engine(&e, s, m, spec, err);
    if (!st) st = open_sessions(s, e, l, err);
    while (!st && s->drafted[0] < HN_CHECK_WANTED && hunch_engine_running(e) && !s->cut) {
        st = hunch_engine_round(e, err);
        s->cut = hn_now() - start > SECONDS;
        if (p.call) p.call(p.user, (uint64_t)s->drafted[0], 2 * HN_CHECK_WANTED); /* the second half is for other readings */
    }
    if (!st && s->no_memory) st = hn_fail_memory(err, "the tokens of a smoke test", s->n_first * sizeof *s->first_token);
    if (!st) st = keep_texts(s, l, err);
    for (int i = 0; i < s->n; i++) hunch_session_close(&l[i].session);
    hunch_engine_close(&e);
    if (!st) st = find_constant(s, m->target.arch.vocab, err);
    s->seconds = hn_now() - start;
    return st;
}

/* ---- the verdict ------------------------------------------------------------------------------------------------------- */

double hn_smoke_error(double share, int n) {
    return n > 0 ? sqrt(share * (1 - share) / n) : 1;
}

hn_smoke_verdict hn_smoke_judge(const hn_smoke *s) {
    const int n = s->drafted[0];
    const double share = n ? (double)s->accepted[0] / n : 0;
    if (n < HN_CHECK_MIN_ROUNDS) return HN_SMOKE_UNKNOWN;
    if (share > s->constant + HN_CHECK_ERRORS * hn_smoke_error(share, n)) return HN_SMOKE_GOOD;
    /* if the texts repeat one token over and over, nothing can be better than the constant */
    return s->constant + HN_CHECK_ERRORS * hn_smoke_error(s->constant, n) >= 1 ? HN_SMOKE_UNKNOWN : HN_SMOKE_BAD;
}
