/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_api.c - grammars of answers: compiled once for a model, and shared by the texts that obey them. A model keeps the newest ones, so
 * a program that sends the same schema with every request compiles it once, and its masks stay known. They have a budget of memory, with
 * those that texts use: of the others those that were not used for longest go, and no new one is made while the texts' alone exceed it. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/least.h"
#include "base/mem.h"
#include "engine/session.h"
#include "grammar/grammar_build.h"

enum { USUAL_BYTES = 256 << 20 };

struct hunch_grammar {
    hn_matcher *matcher;
    const hunch_model *model;
    bool has_end; /* its vocabulary has a token that ends texts */
    atomic_int users;
    char *key; /* [n_key] under which its model keeps it */
    size_t n_key;
};

/* A model's. */
typedef struct hn_grammars {
    pthread_mutex_t lock;
    hn_vocab_trie *trie;       /* NULL until the first grammar */
    hunch_grammar **kept;      /* [n] the one that was used last first */
    size_t n, cap;
    size_t budget;             /* bytes of all, but that one stays in any case, and those that texts use */
    bool bounded;              /* these have it, too */
    int64_t counted;           /* in the model's account */
    hn_account *account;
} grammars;

hunch_status hn_grammars_open(hunch_model *m, uint64_t bytes, hunch_error *err) {
    m->grammars = hn_zalloc(1, sizeof *m->grammars);
    if (!m->grammars) return hn_fail_memory(err, "a model's grammars", sizeof *m->grammars);
    pthread_mutex_init(&m->grammars->lock, NULL);
    m->grammars->account = &m->account;
    m->grammars->bounded = bytes > 0;
    m->grammars->budget = bytes == 0 ? USUAL_BYTES : bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
    hn_account_add(&m->account, HN_ACCOUNT_GRAMMARS, (int64_t)hn_least_size((size_t)bytes, m->grammars->budget), 0);
    return HUNCH_OK;
}

void hn_grammars_close(hunch_model *m) {
    grammars *g = m->grammars;
    if (!g) return;
    for (size_t i = 0; i < g->n; i++) hunch_grammar_close(&g->kept[i]);
    hn_free(g->kept);
    hn_vocab_trie_close(&g->trie);
    pthread_mutex_destroy(&g->lock);
    hn_free(g);
    m->grammars = NULL;
}

/* ---- users -------------------------------------------------------------------------------------------------------------- */

hunch_grammar *hn_grammar_use(hunch_grammar *g) {
    if (g) atomic_fetch_add(&g->users, 1);
    return g;
}

void hunch_grammar_close(hunch_grammar **gp) {
    hunch_grammar *g = gp ? *gp : NULL;
    if (!g) return;
    *gp = NULL;
    if (atomic_fetch_sub(&g->users, 1) > 1) return;
    hn_matcher_close(&g->matcher);
    hn_free(g->key);
    hn_free(g);
}

const char *hunch_grammar_ignored(const hunch_grammar *g) {
    return g ? hn_grammar_ignored(hn_matcher_grammar(g->matcher)) : NULL;
}

hn_matcher *hn_grammar_matcher(const hunch_grammar *g) {
    return g->matcher;
}

bool hn_grammar_has_end(const hunch_grammar *g) {
    return g->has_end;
}

bool hn_grammar_fits(const hunch_grammar *g, const hunch_model *m) {
    return !g || g->model == m;
}

/* ---- the thinking before an answer ---------------------------------------------------------------------------------------- */

static hn_expr few_blanks(hn_builder *b) {
    static const uint32_t blank[] = {'\t', '\n', '\r', '\r', ' ', ' '};
    return hn_expr_repeat(b, hn_expr_class(b, blank, 3, false), 0, 4);
}

static hn_expr seq(hn_builder *b, const hn_expr *part, size_t n) {
    return hn_expr_seq(b, part, n);
}
#define SEQ(b, ...) seq(b, (const hn_expr[]){__VA_ARGS__}, sizeof((const hn_expr[]){__VA_ARGS__}) / sizeof(hn_expr))

static hn_expr maybe(hn_builder *b, hn_expr e) {
    return hn_expr_repeat(b, e, 0, 1);
}

/* Messages of other channels, each with its header and end, then the header of the final one. */
static hn_expr before_final(hn_builder *b) {
    const hn_expr start = SEQ(b, hn_expr_special(b, "<|start|>"), hn_expr_text(b, "assistant"));
    const hn_expr names[] = {hn_expr_text(b, "analysis"), hn_expr_text(b, "commentary")};
    const hn_expr other = SEQ(b, hn_expr_special(b, "<|channel|>"), hn_expr_alt(b, names, 2), hn_expr_special(b, "<|message|>"),
                              hn_expr_until(b, "<|end|>", false, false), start);
    const hn_expr json = SEQ(b, maybe(b, hn_expr_text(b, " ")), hn_expr_special(b, "<|constrain|>"), hn_expr_text(b, "json"));
    return SEQ(b, hn_expr_repeat(b, other, 0, -1), hn_expr_special(b, "<|channel|>"), hn_expr_text(b, "final"), maybe(b, json),
               hn_expr_special(b, "<|message|>"));
}

static hn_expr after_thinking(hn_builder *b, const hunch_model *m, hunch_grammar_start start, hn_expr answer) {
    if (start == HUNCH_GRAMMAR_AT_ONCE || !m->may_think) return answer;
    if (m->think_channels) return SEQ(b, before_final(b), answer);
    const hn_expr rest = SEQ(b, hn_expr_until(b, m->think_end, true, false), few_blanks(b));
    if (start == HUNCH_GRAMMAR_IN_THINKING) return SEQ(b, rest, answer);
    return SEQ(b, maybe(b, SEQ(b, few_blanks(b), hn_expr_special(b, m->think_begin), rest)), answer);
}

/* ---- those that a model keeps -------------------------------------------------------------------------------------------- */

/* The vocabulary's trie, made when it is first needed. */
static hunch_status trie_of(const hunch_model *m, const hn_vocab_trie **out, hunch_error *err) {
    grammars *g = m->grammars;
    const int vocab = m->text_only ? hn_tokenizer_vocab(m->tokenizer) : m->target.arch.vocab;
    hunch_status st = HUNCH_OK;
    pthread_mutex_lock(&g->lock);
    if (!g->trie) st = hn_vocab_trie_open(&g->trie, m->tokenizer, vocab, err);
    *out = g->trie;
    pthread_mutex_unlock(&g->lock);
    return st;
}

/* A grammar's handle for a model. Takes the grammar, also on failure. */
static hunch_status handle_of(hunch_grammar **out, const hunch_model *m, hn_grammar **grammar, hunch_error *err) {
    const hn_vocab_trie *trie;
    hunch_status st = trie_of(m, &trie, err);
    hunch_grammar *g = st ? NULL : hn_zalloc(1, sizeof *g);
    if (!st && !g) st = hn_fail_memory(err, "a grammar", sizeof *g);
    if (!st) st = hn_matcher_open(&g->matcher, grammar, trie, err);
    hn_grammar_close(grammar);
    if (st) {
        hn_free(g);
        return st;
    }
    hn_matcher_prepare(g->matcher);
    g->model = m;
    for (int id = 0; id < hn_tokenizer_vocab(m->tokenizer) && !g->has_end; id++) g->has_end = hn_tokenizer_is_end(m->tokenizer, id);
    atomic_init(&g->users, 1);
    *out = g;
    return HUNCH_OK;
}

static bool is_of(const hunch_grammar *g, const char *key, size_t n) {
    return g && g->n_key == n && memcmp(g->key, key, n) == 0 && !hn_matcher_is_full(g->matcher);
}

/* The one of this key, which becomes the newest; NULL: none. */
static hunch_grammar *find_kept(const hunch_model *m, const char *key, size_t n) {
    grammars *all = m->grammars;
    hunch_grammar *found = NULL;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->n && !found; i++) {
        if (!is_of(all->kept[i], key, n)) continue;
        found = hn_grammar_use(all->kept[i]);
        memmove(all->kept + 1, all->kept, i * sizeof *all->kept);
        all->kept[0] = found;
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

static size_t bytes_of(const hunch_grammar *g) { return sizeof *g + g->n_key + hn_matcher_memory(g->matcher); }

/* Under the lock: of those that no text uses the last ones leave the list, as many as are beyond the budget. Returns the bytes of those
 * that texts use. */
static size_t shorten(grammars *all) {
    size_t sum = 0, used = 0, n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const size_t bytes = bytes_of(all->kept[i]);
        sum += bytes;
        if (atomic_load(&all->kept[i]->users) > 1) used += bytes;
    }
    for (size_t i = all->n; i-- > 1 && sum > all->budget;) {
        if (atomic_load(&all->kept[i]->users) > 1) continue;
        sum -= bytes_of(all->kept[i]);
        hunch_grammar_close(&all->kept[i]);
    }
    for (size_t i = 0; i < all->n; i++)
        if (all->kept[i]) all->kept[n++] = all->kept[i];
    all->n = n;
    hn_account_add(all->account, HN_ACCOUNT_GRAMMARS, 0, (int64_t)sum - all->counted);
    all->counted = (int64_t)sum;
    return used;
}

/* They grow as texts go on, so they are counted at every use. */
static size_t used_bytes(const hunch_model *m) {
    grammars *all = m->grammars;
    pthread_mutex_lock(&all->lock);
    const size_t used = shorten(all);
    pthread_mutex_unlock(&all->lock);
    return used;
}

/* Without memory for the list it is not kept. */
static void keep(const hunch_model *m, hunch_grammar *g) {
    grammars *all = m->grammars;
    pthread_mutex_lock(&all->lock);
    if (hn_grow((void **)&all->kept, &all->cap, all->n + 1, sizeof *all->kept)) {
        memmove(all->kept + 1, all->kept, all->n++ * sizeof *all->kept);
        all->kept[0] = hn_grammar_use(g);
        shorten(all);
    }
    pthread_mutex_unlock(&all->lock);
}

hunch_status hn_grammar_shared(hunch_grammar **out, const hunch_model *m, const char *key, size_t n, hn_grammar_maker *make,
                               const void *source, hunch_error *err) {
    hn_grammar *grammar = NULL;
    hunch_grammar *g = *out = find_kept(m, key, n);
    const size_t used = used_bytes(m), most = m->grammars->budget;
    if (g) return HUNCH_OK;
    if (m->grammars->bounded && used > most)
        return hn_fail(err, HUNCH_NO_MEMORY, "the grammars of texts that run or wait take %zu MiB, which may be %zu: there may be room "
                       "later", used >> 20, most >> 20);
    hunch_status st = make(&grammar, m, source, err);
    if (!st) st = handle_of(&g, m, &grammar, err);
    if (st) return st;
    g->n_key = n;
    g->key = hn_strndup(key, n);
    if (!g->key) {
        hunch_grammar_close(&g);
        return hn_fail_memory(err, "a grammar's source", n);
    }
    keep(m, g);
    *out = g;
    return HUNCH_OK;
}

/* ---- opening -------------------------------------------------------------------------------------------------------------- */

typedef struct source {
    hunch_grammar_kind kind;
    hunch_grammar_start start;
    const char *text;
    size_t len;
} source;

static hn_expr answer_of(hn_builder *b, const source *s) {
    static const char object[] = "{\"type\":\"object\"}";
    switch (s->kind) {
    case HUNCH_GRAMMAR_JSON_SCHEMA_LOOSE: hn_builder_loosen(b, true); return hn_expr_json_schema(b, s->text, s->len, "");
    case HUNCH_GRAMMAR_JSON_SCHEMA: return hn_expr_json_schema(b, s->text, s->len, "");
    case HUNCH_GRAMMAR_JSON_OBJECT: return hn_expr_json_schema(b, object, sizeof object - 1, "");
    case HUNCH_GRAMMAR_REGEX: return hn_expr_regex(b, s->text, s->len, false);
    default: return hn_expr_gbnf(b, s->text, s->len);
    }
}

static hunch_status compile(hn_grammar **out, const hunch_model *m, const void *from, hunch_error *err) {
    const source *s = from;
    hn_builder *b = hn_builder_open(err);
    if (!b) return HUNCH_NO_MEMORY;
    return hn_grammar_finish(out, &b, after_thinking(b, m, s->start, answer_of(b, s)), err);
}

hunch_status hunch_grammar_open(hunch_grammar **out, const hunch_model *m, hunch_grammar_kind kind, const char *text, size_t len,
                                hunch_grammar_start start, hunch_error *err) {
    if (out) *out = NULL;
    const bool needs_text = kind != HUNCH_GRAMMAR_JSON_OBJECT;
    const hn_argument needed[] = {{"out", out}, {"m", m}, {"text", needs_text ? text : ""}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (!st) st = hn_need_tokenizer(m, err);
    if (st) return st;
    if ((unsigned)kind > HUNCH_GRAMMAR_JSON_SCHEMA_LOOSE || (unsigned)start > HUNCH_GRAMMAR_IN_THINKING)
        return hn_fail(err, HUNCH_USAGE, "grammar of kind %d, start %d: expected one of enum hunch_grammar_kind and hunch_grammar_start",
                       (int)kind, (int)start);
    if (!needs_text) text = "", len = 0;
    const source s = {kind, start, text, len};
    char *key = len < SIZE_MAX - 2 ? hn_alloc(len + 2) : NULL;
    if (!key) return hn_fail_memory(err, "a grammar's source", len);
    key[0] = (char)kind;
    key[1] = (char)start;
    memcpy(key + 2, text, len);
    st = hn_grammar_shared(out, m, key, len + 2, compile, &s, err);
    hn_free(key);
    return st;
}
