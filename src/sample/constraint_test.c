/* SPDX-License-Identifier: Apache-2.0 */
/* constraint_test.c - a constrained sampler is the plain one after logits of which the tokens that a grammar forbids are -inf: the same
 * distributions, draws and best tokens, with every processor, whatever text it saw before, and after a path as after the same tokens
 * committed. Which tokens are allowed is found here from the tokens' bytes, by two grammars that need no automaton. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "fixture.h"
#include "format/source.h"
#include "sample/constraint.h"
#include "sample/sampling_for_tests.h"

enum { VOCAB = 512, LONGEST = 40, N_PROMPT = 7 };
static const char LITERAL[] = "once upon a time, there was a girl";
static hn_source *source;
static hn_tokenizer *tokenizer;
static hn_vocab_trie *trie;

static int setup(void **state) {
    (void)state;
    must(hn_source_open(&source, data_path("models/stories260K/stories260K.f32.gguf"), err));
    must(hn_tokenizer_open(&tokenizer, source, err));
    must(hn_vocab_trie_open(&trie, tokenizer, VOCAB, err));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    hn_vocab_trie_close(&trie);
    hn_tokenizer_close(&tokenizer);
    hn_source_close(&source);
    return 0;
}

/* ---- two grammars --------------------------------------------------------------------------------------------------- */

/* LETTERS: small letters and spaces, ending anywhere. WORDS: a literal. `done`: bytes so far. */
typedef enum form { LETTERS, WORDS } form;

static hn_matcher *matcher_of(form f) {
    char regex[100];
    hn_grammar *g = NULL;
    hn_matcher *m = NULL;
    snprintf(regex, sizeof regex, "%s", f == LETTERS ? "[a-z ]*" : LITERAL);
    must(hn_grammar_regex(&g, regex, strlen(regex), err));
    must(hn_matcher_open(&m, &g, trie, err));
    return m;
}

static bool allows(form f, size_t done, int32_t token) {
    size_t n = 0;
    if (hn_tokenizer_is_end(tokenizer, token)) return f == LETTERS || done == strlen(LITERAL);
    const char *piece = hn_tokenizer_piece(tokenizer, token, &n);
    if (hn_tokenizer_is_special(tokenizer, token) || hn_tokenizer_is_padding(tokenizer, token) || !piece || n == 0) return false;
    if (f == WORDS) return n <= strlen(LITERAL) - done && memcmp(LITERAL + done, piece, n) == 0;
    for (size_t i = 0; i < n; i++)
        if (piece[i] != ' ' && (piece[i] < 'a' || piece[i] > 'z')) return false;
    return true;
}

/* A random text of the grammar after a prompt of any tokens; returns its length, and its bytes. */
static int text_make(uint64_t *seed, form f, int32_t *text, int most, size_t *done) {
    int n = 0;
    *done = 0;
    while (n < N_PROMPT) text[n++] = below(seed, VOCAB);
    for (int tries = 0; n < most && tries < 100000; tries++) {
        size_t bytes;
        const int32_t token = below(seed, VOCAB);
        if (hn_tokenizer_is_end(tokenizer, token) || !allows(f, *done, token)) continue;
        text[n++] = token;
        (void)hn_tokenizer_piece(tokenizer, token, &bytes);
        *done += bytes;
        if (f == WORDS && *done == strlen(LITERAL)) break;
    }
    return n;
}

/* ---- the law ---------------------------------------------------------------------------------------------------------- */

typedef struct pair {
    hn_sampler plain, constrained;
    hunch_bias bias[4];
    form f;
    hn_matcher *matcher;
} pair;

static void pair_open(pair *p, uint64_t *seed, form f) {
    hunch_sampling q = cuts_make(seed, VOCAB, 4);
    if (!below(seed, 4)) q.temperature = 0;
    if (!below(seed, 2)) q.repetition_penalty = .5 + unit(seed);
    if (!below(seed, 3)) q.presence_penalty = 3 * unit(seed) - 1;
    if (!below(seed, 3)) q.dry_multiplier = unit(seed);
    if (!below(seed, 2)) {
        for (int i = 0; i < 4; i++) p->bias[i] = (hunch_bias){i * 100 + below(seed, 100), 6 * unit(seed) - 3};
        q.bias = p->bias;
        q.n_bias = 4;
    }
    p->f = f;
    p->matcher = matcher_of(f);
    sampler_open(&p->plain, q, VOCAB);
    sampler_open(&p->constrained, q, VOCAB);
    must(hn_sampler_constrain(&p->constrained, p->matcher, err));
}

static void pair_close(pair *p) {
    hn_sampler_fini(&p->plain);
    hn_sampler_fini(&p->constrained);
    hn_matcher_close(&p->matcher);
}

static int32_t argmax(const float *l) {
    return hn_vocab_ops_best()->argmax(l, VOCAB);
}

static void compare(pair *p, uint64_t *seed) {
    static float l[VOCAB], masked[VOCAB];
    static double want[VOCAB], got[VOCAB];
    int32_t text[LONGEST];
    size_t done;
    const int n = text_make(seed, p->f, text, N_PROMPT + below(seed, LONGEST - N_PROMPT), &done);
    const int n_path = below(seed, n - N_PROMPT + 1);
    const hn_history h = {text, n - n_path, N_PROMPT, text + n - n_path, n_path};
    logits_make(seed, l, VOCAB, true);
    for (int i = 0; i < VOCAB; i++) masked[i] = allows(p->f, done, i) ? l[i] : -INFINITY;
    assert_int_equal(hn_sampler_draw(&p->constrained, l, &h, -1), hn_sampler_draw(&p->plain, masked, &h, -1));
    assert_int_equal(hn_sampler_draw(&p->constrained, l, &h, argmax(l)), hn_sampler_draw(&p->plain, masked, &h, argmax(masked)));
    const int in = dist_spread(&p->constrained, l, &h, got);
    assert_int_equal(in, dist_spread(&p->plain, masked, &h, want));
    assert_memory_equal(got, want, sizeof got);
    for (int i = 0; i < VOCAB; i++) assert_true(got[i] == 0 || allows(p->f, done, i));
}

static void test_law(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < (light() ? 10 : 60); round++) {
        pair p;
        pair_open(&p, &seed, round % 2 ? WORDS : LETTERS);
        for (int i = 0; i < 20; i++) compare(&p, &seed);
        pair_close(&p);
    }
}

/* Ends that are forbidden for now are drawn where the grammar allows nothing else, and only there. */
static void test_forbidden_ends(void **state) {
    (void)state;
    static float l[VOCAB];
    uint64_t seed = 3;
    pair p;
    pair_open(&p, &seed, WORDS);
    int32_t ends[VOCAB], text[LONGEST];
    int n_ends = 0;
    size_t done = 0;
    for (int i = 0; i < VOCAB; i++)
        if (hn_tokenizer_is_end(tokenizer, i)) ends[n_ends++] = i;
    assert_true(n_ends > 0);
    must(hn_sampler_forbid(&p.constrained, ends, n_ends, 1000, err));
    int n = text_make(&seed, WORDS, text, LONGEST, &done);
    assert_int_equal(done, strlen(LITERAL));
    const hn_history whole = {text, n, N_PROMPT, NULL, 0}, before = {text, n - 1, N_PROMPT, NULL, 0};
    for (int i = 0; i < 20; i++) {
        logits_make(&seed, l, VOCAB, false);
        assert_true(hn_tokenizer_is_end(tokenizer, hn_sampler_draw(&p.constrained, l, &whole, argmax(l))));
        assert_false(hn_tokenizer_is_end(tokenizer, hn_sampler_draw(&p.constrained, l, &before, argmax(l))));
    }
    pair_close(&p);
}

static void test_mask_at_every_level(void **state) {
    (void)state;
    static float l[VOCAB], want[VOCAB], got[VOCAB];
    uint64_t bits[VOCAB / 64], seed = 9;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa))
        for (int n = 1; n <= VOCAB; n += n < 140 ? 1 : 61) {
            logits_make(&seed, l, n, true);
            for (int w = 0; w < VOCAB / 64; w++) bits[w] = below(&seed, 3) ? hn_splitmix(&seed) : below(&seed, 2) ? 0 : UINT64_MAX;
            for (int i = 0; i < n; i++) want[i] = bits[i / 64] >> (i % 64) & 1 ? l[i] : -INFINITY;
            hn_vocab_ops_for(isa)->mask(l, bits, n, got);
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
            hn_vocab_ops_for(isa)->mask(l, bits, n, l);
            assert_memory_equal(l, want, (size_t)n * sizeof *l);
        }
}

static void test_no_memory(void **state) {
    (void)state;
    hn_matcher *m = matcher_of(LETTERS);
    int failed = 0;
    for (bool over = false; !over; failed++) {
        hn_sampler s;
        hunch_error err = {0};
        sampler_open(&s, (hunch_sampling){.top_p = 1}, VOCAB);
        hn_fault_arm(HN_FAULT_ALLOC, failed, false);
        const hunch_status st = hn_sampler_constrain(&s, m, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        hn_sampler_fini(&s);
        over = st == HUNCH_OK;
        assert_true(over || st == HUNCH_NO_MEMORY);
    }
    assert_true(failed > 3);
    hn_matcher_close(&m);
}

/* A text that only grows is not compared with what it was: that would be all of it for every row. Seen by tokens that are changed here, and
 * are looked at again only without that promise. */
static void test_growing_text(void **state) {
    (void)state;
    for (int grows = 0; grows < 2; grows++) {
        uint64_t seed = 5;
        hn_sampler s;
        const hunch_sampling p = {0};
        int32_t text[N_PROMPT + LONGEST];
        size_t done;
        must(hn_sampler_init(&s, &p, VOCAB, err));
        hn_matcher *m = matcher_of(WORDS);
        must(hn_sampler_constrain(&s, m, err));
        s.grows = grows;
        const int n = text_make(&seed, WORDS, text, N_PROMPT + LONGEST, &done);
        assert_true(n > N_PROMPT + 3);
        const int32_t before = hn_sampler_state(&s, &(hn_history){text, n - 1, N_PROMPT, NULL, 0});
        assert_true(before >= 0);
        for (int i = N_PROMPT; i < n - 1; i++) text[i] = 0;
        const int32_t after = hn_sampler_state(&s, &(hn_history){text, n, N_PROMPT, NULL, 0});
        assert_int_equal(after, grows ? hn_matcher_next(m, before, text[n - 1]) : HN_MATCH_NO);
        hn_sampler_fini(&s);
        hn_matcher_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_law), cmocka_unit_test(test_forbidden_ends),
                                       cmocka_unit_test(test_mask_at_every_level), cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_growing_text)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
