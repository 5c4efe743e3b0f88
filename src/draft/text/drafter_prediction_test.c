/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_prediction_test.c - following a prediction through edits, losing and finding the position, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "draft/drafter_for_tests.h"

enum { PROMPT = 2, MOST = 1200 };

static void begin_with(hn_drafter *d, int seq, const int32_t *prediction, int n, hn_committed_text text) {
    const hn_begin b = {.seq = seq, .text = text, .prediction = prediction, .n_prediction = n};
    assert_int_equal(d->ops->begin(d, &b, 1, NULL), HUNCH_OK);
}

/* Results of generating `truth` after a prompt. */
typedef struct outcome {
    int rounds, drafted, accepted;
} outcome;

/* tree: branches are allowed. */
static outcome generate_as(hn_drafter *d, const int32_t *prediction, int n, const int32_t *truth, int n_truth, bool tree) {
    int32_t text[PROMPT + MOST + 64] = {901, 902};
    outcome o = {0, 0, 0};
    memcpy(text + PROMPT, truth, (size_t)n_truth * sizeof *truth);
    memset(text + PROMPT + n_truth, 0x7f, sizeof text - (size_t)(PROMPT + n_truth) * sizeof *text); /* no token */
    begin_with(d, 0, prediction, n, (hn_committed_text){text, PROMPT, PROMPT});
    for (int at = PROMPT; at < PROMPT + n_truth; o.rounds++) {
        hn_tree t;
        int32_t out[DEPTH];
        const hn_committed_text so_far = {text, at, PROMPT};
        if (tree)
            draft(d, 0, so_far, DEPTH, &t);
        else
            (void)chain_in(d, 0, so_far, DEPTH, out, &t);
        o.drafted += t.n_rows - 1;
        const int accepted = verify_chain(d, 0, &t, text + at);
        o.accepted += accepted;
        at += accepted + 1;
    }
    d->ops->end(d, 0);
    return o;
}

static outcome generate(hn_drafter *d, const int32_t *prediction, int n, const int32_t *truth, int n_truth) {
    return generate_as(d, prediction, n, truth, n_truth, false);
}

/* n tokens of a language of 200 words, some of them frequent; every text is different. */
static void prose(uint64_t *seed, int32_t *p, int n) {
    for (int i = 0; i < n; i++) {
        const uint64_t r = hn_splitmix(seed);
        p[i] = (int32_t)(r % 4 == 0 ? r / 8 % 4 : r / 8 % 200);
    }
}

/* ---- edits ------------------------------------------------------------------------------------------------------- */

static void test_as_predicted(void **state) {
    (void)state;
    uint64_t seed = 1;
    int32_t p[600];
    hn_drafter d;
    prose(&seed, p, 600);
    open_or_fail(&d, "prediction,depth=16", 1);
    const outcome o = generate(&d, p, 600, p, 600);
    assert_in_range(o.accepted + o.rounds, 600, 601);
    assert_int_equal(o.drafted, o.accepted); /* never wrong, never beyond the end */
    assert_in_range(o.rounds, 36, 40);       /* 17 a round, the first ones shorter */
    hn_drafter_close(&d);
}

/* Parts that begin alike, in another order than predicted: after the common tokens any of them may follow. The likeliest places are
 * proposed together, so fewer rounds are needed; with one place the draft stays a chain. */
static void test_places(void **state) {
    (void)state;
    enum { PARTS = 4, COMMON = 5, OWN = 7, PART = COMMON + OWN, TURNS = 12 };
    int32_t p[PARTS * PART], t[TURNS * PART];
    outcome one, all;
    hn_drafter d;
    uint64_t seed = 5;
    for (int i = 0; i < PARTS * PART; i++) p[i] = i % PART < COMMON ? i % PART : 100 + i;
    for (int k = 0; k < TURNS; k++) memcpy(t + k * PART, p + hn_splitmix(&seed) % PARTS * PART, PART * sizeof *p);
    open_or_fail(&d, "prediction", 1);
    assert_false(d.needs.branches);
    one = generate(&d, p, PARTS * PART, t, TURNS * PART);
    hn_drafter_close(&d);
    open_or_fail(&d, "prediction,places=4", 1);
    assert_true(d.needs.branches);
    all = generate_as(&d, p, PARTS * PART, t, TURNS * PART, true);
    hn_drafter_close(&d);
    if (all.rounds + 2 > one.rounds) fail_msg("%d rounds with branches, %d without", all.rounds, one.rounds);
}

static void expect_rounds(const char *what, const int32_t *p, int n, const int32_t *truth, int n_truth, int rounds,
                          int wasted) {
    hn_drafter d;
    open_or_fail(&d, "prediction,depth=16", 1);
    const outcome o = generate(&d, p, n, truth, n_truth);
    if (o.rounds > rounds || o.drafted - o.accepted > wasted)
        fail_msg("%s: %d rounds, %d drafted, %d accepted; expected at most %d rounds, %d in vain", what, o.rounds,
                 o.drafted, o.accepted, rounds, wasted);
    hn_drafter_close(&d);
}

/* One edit in the middle of 400 tokens that otherwise take 24 rounds: a few more rounds, a few wrong drafts. */
static void test_one_edit(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t s = seed;
        int32_t p[400], t[600];
        prose(&s, p, 400);
        memcpy(t, p, sizeof p);
        t[200] = 500; /* a token replaced */
        expect_rounds("replaced", p, 400, t, 400, 27, 30);
        memcpy(t + 200, p + 201, 199 * sizeof *p); /* a token deleted */
        expect_rounds("deleted", p, 400, t, 399, 28, 30);
        memcpy(t + 200, p + 300, 100 * sizeof *p); /* a hundred tokens deleted */
        expect_rounds("passage deleted", p, 400, t, 300, 26, 70);
        memcpy(t + 200, p, 30 * sizeof *p);
        prose(&s, t + 200, 30); /* thirty others inserted: these cost rounds */
        memcpy(t + 230, p + 200, 200 * sizeof *p);
        expect_rounds("sentence inserted", p, 400, t, 430, 24 + 30 + 5, 120);
        t[200] = 501, t[201] = 502, t[202] = 503; /* one token became three */
        memcpy(t + 203, p + 201, 199 * sizeof *p);
        expect_rounds("longer name", p, 400, t, 402, 30, 60);
        memcpy(t, p + 200, 200 * sizeof *p); /* halves exchanged */
        memcpy(t + 200, p, 200 * sizeof *p);
        expect_rounds("exchanged", p, 400, t, 400, 35, 60);
    }
}

/* A name that is replaced again and again by one of another length: after the first time it is drafted. */
static void test_rename(void **state) {
    (void)state;
    uint64_t seed = 4;
    int32_t p[700], t[900];
    int n = 0, m = 0, uses = 0;
    while (n < 600) {
        if (n % 12 == 6) {
            p[n++] = 300, p[n++] = 301;
            t[m++] = 310, t[m++] = 311, t[m++] = 312;
            uses++;
        } else {
            int32_t word;
            prose(&seed, &word, 1);
            p[n++] = t[m++] = word;
        }
    }
    assert_true(uses > 40);
    expect_rounds("rename", p, n, t, m, m / 17 + 6, 40);
    /* the old name stays from the middle on: the new one is drafted once, and never again */
    memcpy(t, p, 8 * sizeof *p);
    t[6] = 310, t[7] = 311;
    memcpy(t + 8, p + 8, (size_t)(n - 8) * sizeof *p);
    expect_rounds("one place renamed", p, n, t, n, n / 17 + 6, 60);
}

/* A part that is omitted again and again (a field of every record) is omitted from the drafts. */
static void test_left_out(void **state) {
    (void)state;
    int32_t p[900], t[900];
    int n = 0, m = 0;
    for (int record = 0; record < 50; record++) {
        static const int32_t before[] = {1, 2, 3, 4}, field[] = {1, 7, 3, 8, 9}, after[] = {1, 5, 3, 6};
        for (int k = 0; k < 4; k++) p[n++] = t[m++] = before[k];
        p[n++] = t[m++] = 100 + record;
        for (int k = 0; k < 5; k++) p[n++] = field[k];
        for (int k = 0; k < 4; k++) p[n++] = t[m++] = after[k];
    }
    expect_rounds("left out", p, n, t, m, m / 17 + 6, 30);
}

/* An entirely different text: the number of wrong drafts stays far below a chain a round. */
static void test_lost(void **state) {
    (void)state;
    uint64_t seed = 6;
    int32_t p[400], t[400];
    prose(&seed, p, 400);
    prose(&seed, t, 400);
    expect_rounds("another text", p, 400, t, 400, 400, 800);
    for (int i = 0; i < 400; i++) t[i] = 600 + i; /* no token in common */
    expect_rounds("another language", p, 400, t, 400, 400, 40);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static void test_by_hand(void **state) {
    (void)state;
    static const int32_t p[] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    int32_t text[32] = {901, 902};
    int32_t *e = text + PROMPT;
    hn_drafter d;
    hn_tree t;
    int32_t out[DEPTH];
    open_or_fail(&d, "prediction,depth=8", 1);
    begin_with(&d, 0, NULL, 0, (hn_committed_text){text, PROMPT, PROMPT});
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT, PROMPT}, DEPTH, out, &t), 0); /* nothing predicted */
    begin_with(&d, 0, p, 12, (hn_committed_text){text, PROMPT, PROMPT});
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT, PROMPT}, DEPTH, out, &t), 8);
    assert_memory_equal(out, p, 8 * sizeof *p);
    const float fresh = t.candidate[0].estimate;
    memcpy(e, p, 6 * sizeof *p);
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT + 6, PROMPT}, DEPTH, out, &t), 6); /* up to the end */
    assert_memory_equal(out, p + 6, 6 * sizeof *p);
    assert_true(t.candidate[0].estimate > fresh); /* it has agreed since */
    e[6] = 50; /* instead of 16: drafts with a low estimate follow */
    assert_true(chain_in(&d, 0, (hn_committed_text){text, PROMPT + 7, PROMPT}, DEPTH, out, &t) > 0);
    assert_memory_equal(out, p + 7, 2 * sizeof *p);
    assert_true(t.candidate[0].estimate < fresh);
    e[7] = 51;
    e[8] = 52; /* lost */
    chain_in(&d, 0, (hn_committed_text){text, PROMPT + 8, PROMPT}, DEPTH, out, &t);
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT + 9, PROMPT}, DEPTH, out, &t), 0);
    e[9] = 17; /* and found */
    assert_true(chain_in(&d, 0, (hn_committed_text){text, PROMPT + 10, PROMPT}, DEPTH, out, &t) > 0);
    assert_int_equal(out[0], 18);
    /* begun anew with the text before the difference */
    begin_with(&d, 0, p, 12, (hn_committed_text){text, PROMPT + 6, PROMPT});
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT + 6, PROMPT}, DEPTH, out, &t), 6);
    memcpy(e, p, sizeof p);
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT + 12, PROMPT}, DEPTH, out, &t), 0); /* the end */
    begin_with(&d, 0, p, 2, (hn_committed_text){text, PROMPT, PROMPT}); /* shorter than an anchor */
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT, PROMPT}, DEPTH, out, &t), 2);
    begin_with(&d, 0, p, 0, (hn_committed_text){text, PROMPT, PROMPT}); /* empty */
    assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, PROMPT, PROMPT}, DEPTH, out, &t), 0);
    hn_drafter_close(&d);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char path[] = "/tmp/hunch-prediction-test-XXXXXX";

static void write_file(const char *data, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static void expect_refused(const hn_target_info *target, const char *data, size_t size, const char *words) {
    char spec[80];
    hn_drafter d;
    hunch_error err = {0};
    snprintf(spec, sizeof spec, "prediction:%s", path);
    write_file(data, size);
    assert_int_equal(hn_drafter_open(&d, spec, 0, 1, target, &err), HUNCH_USAGE);
    if (!strstr(err.message, words) || !strstr(err.message, path))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

/* The file stands in for a request's own prediction, in the target's own tokens. */
static void test_file(void **state) {
    (void)state;
    static const char story[] = "Once upon a time, there was a little girl named Lily.";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    hn_source *source;
    hn_tokenizer *tokenizer;
    int32_t *id, out[DEPTH], text[80] = {1};
    size_t n;
    hn_tree t;
    hn_drafter d;
    hunch_error err = {0};
    char spec[80], data[100];
    assert_int_equal(hn_source_open(&source, HUNCH_TEST_DATA "/models/stories260K/stories260K.f32.gguf", NULL),
                     HUNCH_OK);
    assert_int_equal(hn_tokenizer_open(&tokenizer, source, NULL), HUNCH_OK);
    const hn_target_info target = {.vocab = hn_tokenizer_vocab(tokenizer), .tokenizer = tokenizer};
    assert_int_equal(hn_tokenizer_encode(tokenizer, story, strlen(story), 0, &id, &n, NULL), HUNCH_OK);
    assert_in_range(n, 10, 60);
    snprintf(data, sizeof data, "\xEF\xBB\xBF%s", story); /* with the byte-order mark that editors add */
    snprintf(spec, sizeof spec, "prediction:%s,depth=63", path);
    for (int mark = 0; mark < 2; mark++) {
        write_file(mark ? data : story, strlen(story) + (mark ? 3 : 0));
        if (hn_drafter_open(&d, spec, 0, 1, &target, &err)) fail_msg("%s", err.message);
        begin(&d, 0, text, 1);
        memcpy(text + 1, id, n * sizeof *id);
        int got = chain_in(&d, 0, (hn_committed_text){text, 1 + 5, 1}, DEPTH, out, &t);
        assert_int_equal(got, n - 5);
        assert_memory_equal(out, id + 5, (n - 5) * sizeof *id);
        begin_with(&d, 0, (const int32_t[]){5, 6, 7}, 3, (hn_committed_text){text, 1, 1}); /* a request's own comes first */
        assert_int_equal(chain_in(&d, 0, (hn_committed_text){text, 1, 1}, DEPTH, out, &t), 3);
        assert_int_equal(out[0], 5);
        hn_drafter_close(&d);
    }
    expect_refused(&target, "Once \xE9t\xE9", 8, "byte 5");       /* Latin-1 */
    expect_refused(&target, "\xFF\xFEO\0n\0", 6, "byte 0");       /* UTF-16 with its mark */
    expect_refused(&target, "O\0n\0c\0e\0", 8, "byte 1");         /* and without */
    expect_refused(&target, "Once upon \xE2\x82", 12, "byte 10"); /* cut off */
    hn_target_info none = target;
    none.tokenizer = NULL;
    expect_refused(&none, story, strlen(story), "tokenizer");
    none = target;
    none.vocab = 100;
    expect_refused(&none, story, strlen(story), "vocabulary of 100");
    unlink(path);
    assert_int_equal(hn_drafter_open(&d, spec, 0, 1, &target, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, path));
    hn_free(id);
    hn_tokenizer_close(&tokenizer);
    hn_source_close(&source);
}

/* ---- properties -------------------------------------------------------------------------------------------------- */

/* An edited copy: parts taken over, replaced, omitted, inserted, repeated. */
static int edited(uint64_t *seed, const int32_t *p, int n, int32_t *t, int most) {
    int m = 0;
    for (int i = 0; i < n && m < most - 40;) {
        const int len = 1 + (int)(hn_splitmix(seed) % 20);
        const int how = (int)(hn_splitmix(seed) % 8);
        if (how == 0) prose(seed, t + m, len / 3);
        if (how == 1) i += len;
        if (how == 2 && i > 50) i -= len;
        for (int k = how == 0 ? len / 3 : 0; k < len && i < n; k++, i++) t[m + k] = p[i];
        m += how == 0 && len / 3 > len ? len / 3 : len;
        if (i >= n) break;
    }
    return m < most ? m : most;
}

/* Shown token by token, in jumps, or begun anew with the whole text: the draft after a text is the same.
 * Nothing after the committed text is read. */
static void test_incremental_is_rebuilt(void **state) {
    (void)state;
    uint64_t seed = 8;
    for (int round = 0; round < cases(40); round++) {
        static int32_t p[400], text[PROMPT + 700], seen[PROMPT + 700];
        hn_drafter d;
        prose(&seed, p, 400);
        memset(text, 0, sizeof text);
        const int n = edited(&seed, p, 400, text + PROMPT, 600);
        open_or_fail(&d, "prediction,window=20", 2);
        begin_with(&d, 0, p, 400, (hn_committed_text){text, PROMPT, PROMPT});
        for (int at = PROMPT; at <= PROMPT + n; at += 1 + (int)(hn_splitmix(&seed) % 6)) {
            int32_t a[DEPTH], b[DEPTH];
            hn_tree t;
            for (int i = 0; i < PROMPT + 700; i++) seen[i] = i < at ? text[i] : POISON;
            const int budget = 1 + (int)(hn_splitmix(&seed) % 20);
            const int len = chain_in(&d, 0, (hn_committed_text){seen, at, PROMPT}, budget, a, &t);
            begin_with(&d, 1, p, 400, (hn_committed_text){seen, at, PROMPT});
            assert_int_equal(chain_in(&d, 1, (hn_committed_text){seen, at, PROMPT}, budget, b, &t), len);
            assert_memory_equal(a, b, (size_t)len * sizeof *a);
            for (int i = 0; i < len; i++) assert_in_range(a[i], 0, 999);
        }
        hn_drafter_close(&d);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    static const int32_t p[] = {1, 2, 3, 4};
    for (int after = 0;; after++) {
        hn_drafter d;
        const hn_begin b = {.seq = 0, .text = {p, 1, 1}, .prediction = p, .n_prediction = 4};
        open_or_fail(&d, "prediction", 1);
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        const hunch_status st = d.ops->begin(&d, &b, 1, NULL);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (st) {
            int32_t out[DEPTH];
            assert_int_equal(st, HUNCH_NO_MEMORY);
            assert_int_equal(chain(&d, 0, p, 1, DEPTH, out), 0); /* nothing was left behind */
        }
        hn_drafter_close(&d);
        if (!st) {
            assert_int_equal(after, 3);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places), cmocka_unit_test(test_as_predicted), cmocka_unit_test(test_one_edit),
        cmocka_unit_test(test_rename),       cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_lost),         cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_file),         cmocka_unit_test(test_incremental_is_rebuilt),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
