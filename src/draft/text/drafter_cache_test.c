/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_cache_test.c - golden vectors, the three levels compared with plain recounting, state that outlives a sequence, and
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "draft/text/counts_file.h"
#include "draft/drafter_for_tests.h"

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/hunch-cache-test-XXXXXX";

static const char *path_of(const char *name) {
    static char path[4][64];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static const char *spec_of(const char *format, const char *path) {
    static char spec[4][160];
    static int next;
    char *s = spec[next++ & 3];
    snprintf(s, sizeof spec[0], format, path);
    return s;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    static const char *const names[] = {"static", "dynamic", "a", "b", "bad"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unlink(path_of(names[i]));
    return rmdir(folder); /* fails if anything else was left */
}

/* ---- golden vectors ---------------------------------------------------------------------------------------------- */

static void test_golden(void **state) {
    (void)state;
    static const struct {
        int32_t text[16];
        int n;
        int32_t draft[8];
    } golden[] = {
        {TEXT_A, {4, 1, 2, 3, 5, 1, 2, 3}}, {TEXT_B, {9, 7, 8, 1, 7, 8, 9, 2}}, {TEXT_C, {6, 5, 6, 5, 6, 5, 6, 5}}};
    for (int i = 0; i < 3; i++)
        for (int first = 1; first <= golden[i].n; first++) { /* in any steps */
            hn_drafter d;
            int32_t out[DEPTH];
            open_or_fail(&d, "cache,depth=8", 1);
            begin(&d, 0, golden[i].text, first);
            for (int n = first; n < golden[i].n; n++) chain(&d, 0, golden[i].text, n, 63, out);
            expect_chain(&d, 0, golden[i].text, golden[i].n, golden[i].draft, 8);
            d.ops->end(&d, 0);
            hn_drafter_close(&d);
        }
}

static void test_arbitration(void **state) {
    (void)state;
    static const int32_t h[] = {1, 2, 3, 1, 2, 4, 1, 2}, record[] = {1, 2, -1, -1, 2, 3, 1, 4, 5}, no_static[] = {3, 1},
                         weighted[] = {4, 1};
    hn_drafter d;
    open_or_fail(&d, "cache,depth=2", 1);
    begin(&d, 0, h, 8);
    expect_chain(&d, 0, h, 8, no_static, 2);
    hn_drafter_close(&d);
    write_file(path_of("static"), record, sizeof record);
    open_or_fail(&d, spec_of("cache:%s,depth=2", path_of("static")), 1);
    begin(&d, 0, h, 8);
    expect_chain(&d, 0, h, 8, weighted, 2);
    /* the static level alone: 5 of 6 */
    static const int32_t alone[] = {9, 1, 2};
    begin(&d, 0, alone, 3);
    expect_chain(&d, 0, alone, 3, weighted, 1);
    hn_drafter_close(&d);
}

/* The dynamic level has stricter thresholds than the context: a pair of tokens seen three times, two thirds of them the same. */
static void test_dynamic_is_strict(void **state) {
    (void)state;
    static const int32_t now[] = {9, 1, 2}, want[] = {3, 4};
    hn_drafter d;
    open_or_fail(&d, "cache,depth=2", 1);
    for (int times = 0; times < 5; times++) {
        begin(&d, 0, now, 3);
        expect_chain(&d, 0, now, 3, want, times < 3 ? 0 : 2); /* the 3-gram 2 3 needs 2, the 2-gram 1 2 needs 3 */
        d.ops->end(&d, 0); /* counts nothing: no token follows 1 2 in it */
        const int32_t once[] = {10 + times, 1, 2, 3, 4};
        begin(&d, 0, once, 5);
        d.ops->end(&d, 0);
    }
    d.ops->forget(&d);
    begin(&d, 0, now, 3);
    expect_chain(&d, 0, now, 3, want, 0);
    hn_drafter_close(&d);
}

/* ---- plain recounting -------------------------------------------------------------------------------------------- */

typedef struct stretch {
    const int32_t *token; /* the tokens at from..to-1 are counted */
    int from, to;
} stretch;

typedef struct tally {
    int32_t token[TEXT];
    int count[TEXT], n, sum;
} tally;

static void tally_gram(tally *t, const stretch *s, int n_stretches, const int32_t *gram, int n) {
    t->n = t->sum = 0;
    for (int k = 0; k < n_stretches; k++)
        for (int i = s[k].from > n ? s[k].from : n; i < s[k].to; i++) {
            if (memcmp(s[k].token + i - n, gram, (size_t)n * sizeof *gram)) continue;
            int j = 0;
            while (j < t->n && t->token[j] != s[k].token[i]) j++;
            if (j == t->n) {
                t->token[t->n] = s[k].token[i];
                t->count[t->n++] = 0;
            }
            t->count[j]++;
            t->sum++;
        }
}

static bool plain_find(const stretch *s, int n_stretches, const int32_t *end, int n, const int *samples,
                      const int *percent, const tally *corpus, int32_t *out) {
    tally t;
    tally_gram(&t, s, n_stretches, end - n, n);
    if (t.sum == 0 || t.sum < samples[n]) return false;
    int best = -1, most = 0;
    for (int j = 0; j < t.n; j++) {
        int weight = 1;
        for (int c = 0; c < corpus->n; c++)
            if (corpus->token[c] == t.token[j]) weight = 100 * corpus->count[c];
        if (t.count[j] * weight > most) {
            most = t.count[j] * weight;
            best = j;
        }
    }
    *out = t.token[best];
    return 100 * t.count[best] >= percent[n] * t.sum;
}

static int plain_draft(const int32_t *h, int n, const stretch *dynamic, int n_dynamic, const stretch *corpus, int K,
                       int32_t *out) {
    static const int lax[2][5] = {{0, 2, 2, 1, 1}, {0, 66, 50, 50, 50}},
                     strict[2][5] = {{0, 4, 3, 2, 2}, {0, 75, 66, 66, 66}},
                     alone[2][5] = {{0, 0, 2, 0, 0}, {0, 0, 50, 0, 0}};
    static const tally nothing;
    int32_t text[TEXT + 64];
    memcpy(text, h, (size_t)n * sizeof *h);
    const stretch own = {h, 0, n};
    for (int len = 0; len < K; len++) {
        const int32_t *end = text + n + len;
        tally c = {.n = 0};
        if (n + len >= 2) tally_gram(&c, corpus, 1, end - 2, 2);
        bool found = false;
        for (int k = 4; k >= 1 && !found; k--)
            found = n + len >= k && plain_find(&own, 1, end, k, lax[0], lax[1], &c, &out[len]);
        for (int k = 4; k >= 1 && !found; k--)
            found = n + len >= k && plain_find(dynamic, n_dynamic, end, k, strict[0], strict[1], &c, &out[len]);
        if (!found) found = n + len >= 2 && plain_find(corpus, 1, end, 2, alone[0], alone[1], &nothing, &out[len]);
        if (!found) return len;
        text[n + len] = out[len];
    }
    return K;
}

/* The 2-grams of a text as a file. */
static void write_corpus(const char *path, const int32_t *h, int n) {
    int32_t record[5 + 2 * TEXT];
    const stretch s = {h, 0, n};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 2; i < n; i++) {
        bool before = false;
        for (int j = 2; j < i && !before; j++) before = !memcmp(h + j - 2, h + i - 2, 2 * sizeof *h);
        if (before) continue;
        tally t;
        tally_gram(&t, &s, 1, h + i - 2, 2);
        memcpy(record, (int32_t[]){h[i - 2], h[i - 1], -1, -1, t.n}, 5 * sizeof *record);
        for (int j = 0; j < t.n; j++) {
            record[5 + 2 * j] = t.token[j];
            record[6 + 2 * j] = t.count[j];
        }
        fwrite(record, sizeof *record, (size_t)(5 + 2 * t.n), f);
    }
    fclose(f);
}

/* Texts one after the other, each shown in random steps: every prefix gives the same as counting from the start. */
static void test_against_plain_counting(void **state) {
    (void)state;
    uint64_t seed = 77;
    for (int round = 0; round < cases(4); round++) {
        enum { TEXTS = 4 };
        static int32_t h[TEXTS][TEXT], corpus[TEXT];
        stretch dynamic[TEXTS], c = {corpus, 0, 150};
        int32_t seen[TEXT], out[DEPTH], want[DEPTH];
        hn_drafter d;
        text_make(&seed, corpus);
        write_corpus(path_of("static"), corpus, c.to);
        open_or_fail(&d, spec_of("cache:%s,depth=12", path_of("static")), 2);
        for (int k = 0; k < TEXTS; k++) {
            text_make(&seed, h[k]);
            int n = 1;
            begin(&d, k % 2, h[k], n);
            while (n < 150) {
                for (int i = 0; i < TEXT; i++) seen[i] = i < n ? h[k][i] : POISON;
                const int budget = 1 + (int)(hn_splitmix(&seed) % 20);
                const int len = chain(&d, k % 2, seen, n, budget, out);
                const int plain = plain_draft(h[k], n, dynamic, k, &c, 12, want);
                assert_int_equal(len, plain < budget ? plain : budget);
                assert_memory_equal(out, want, (size_t)len * sizeof *out);
                n += 1 + (int)(hn_splitmix(&seed) % 9);
            }
            chain(&d, k % 2, h[k], n, 1, out);
            d.ops->end(&d, k % 2);
            dynamic[k] = (stretch){h[k], 0, n};
        }
        hn_drafter_close(&d);
    }
}

static void test_periodic(void **state) {
    (void)state;
    hn_drafter d;
    open_or_fail(&d, "cache,depth=20", 1);
    for (int period = 1; period <= 40; period++) {
        int32_t h[TEXT];
        for (int i = 0; i < TEXT; i++) h[i] = i % period;
        begin(&d, 0, h, 1);
        for (int n = period + 3; n < period * 2 + 10; n++) expect_chain(&d, 0, h, n, h + n, 20);
        d.ops->end(&d, 0);
        d.ops->forget(&d);
    }
    hn_drafter_close(&d);
}

/* ---- state that outlives a sequence ---------------------------------------------------------------------------------- */

static void expect_same_file(const char *a, const char *b) {
    char *x, *y;
    size_t n, m;
    assert_int_equal(hn_file_read(a, 1 << 20, &x, &n, NULL), HUNCH_OK);
    assert_int_equal(hn_file_read(b, 1 << 20, &y, &m, NULL), HUNCH_OK);
    assert_true(n > 1000);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    hn_free(x);
    hn_free(y);
}

/* Runs the rounds that emit h[from..to): drafts are accepted if they match the text. */
static void run_rounds(hn_drafter *d, int seq, const int32_t *h, int from, int to) {
    for (int n = from; n < to;) {
        hn_tree t;
        int32_t out[DEPTH];
        chain_in(d, seq, (hn_committed_text){h, n, 1}, to - n, out, &t);
        if (t.n_rows - 1 == to - n) hn_tree_reset(&t, h[n - 1], 1); /* the last token is the target's own */
        n += verify_chain(d, seq, &t, h + n) + 1;
    }
}

/* A preempted sequence, and a chat that continues from all its earlier text, count each position once; the end of the text
 * that no round showed any more is counted too. */
static void test_each_position_once(void **state) {
    (void)state;
    uint64_t seed = 3;
    int32_t h[TEXT];
    hn_drafter d;
    text_make(&seed, h);
    open_or_fail(&d, spec_of("cache,save=%s", path_of("a")), 2);
    begin(&d, 0, h, 40);
    run_rounds(&d, 0, h, 40, 300);
    d.ops->end(&d, 0);
    hn_drafter_close(&d);
    open_or_fail(&d, spec_of("cache,save=%s", path_of("b")), 2);
    const int stops[] = {40, 90, 91, 91, 150, 300};
    for (int i = 0; i + 1 < 6; i++) {
        begin(&d, i % 2, h, stops[i]);
        run_rounds(&d, i % 2, h, stops[i], stops[i + 1]);
        d.ops->end(&d, i % 2);
    }
    hn_drafter_close(&d);
    expect_same_file(path_of("a"), path_of("b"));
    /* forgotten and begun again, the whole text is counted; so are sequences that live when the engine closes */
    open_or_fail(&d, spec_of("cache,save=%s", path_of("b")), 2);
    begin(&d, 0, h, 200);
    d.ops->end(&d, 0);
    begin(&d, 1, h, 250);
    d.ops->forget(&d);
    run_rounds(&d, 1, h, 250, 300);
    hn_drafter_close(&d);
    expect_same_file(path_of("a"), path_of("b"));
    /* a saved file is loaded and continued */
    open_or_fail(&d, spec_of("cache,save=%s", path_of("b")), 2);
    begin(&d, 0, h, 300);
    d.ops->end(&d, 0);
    begin(&d, 0, h + 60, 90);
    d.ops->end(&d, 0);
    hn_drafter_close(&d);
    char spec[160];
    snprintf(spec, sizeof spec, "cache,dynamic=%s,save=%s", path_of("a"), path_of("a"));
    open_or_fail(&d, spec, 2);
    begin(&d, 0, h + 60, 90);
    hn_drafter_close(&d);
    expect_same_file(path_of("a"), path_of("b"));
    open_or_fail(&d, spec, 2);
    hn_drafter_close(&d); /* no text: nothing to write */
    expect_same_file(path_of("a"), path_of("b"));
}

/* ---- bad files --------------------------------------------------------------------------------------------------- */

static void expect_refused(const int32_t *data, size_t size, const char *format, const char *words) {
    hn_drafter d;
    hunch_error err = {0};
    write_file(path_of("bad"), data, size);
    if (hn_drafter_open(&d, spec_of(format, path_of("bad")), 0, 1, &TARGET, &err) != HUNCH_REFUSED)
        fail_msg("opened: %s", words);
    if (!strstr(err.message, words) || !strstr(err.message, path_of("bad")))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_null(d.ops);
}

static void test_damage(void **state) {
    (void)state;
    static const int32_t good[] = {1, 2, -1, -1, 2, 3, 1, 4, 5, 7, -1, -1, -1, 1, 7, 1};
    for (int level = 0; level < 2; level++) {
        const char *f = level ? "cache,dynamic=%s" : "cache:%s";
        hn_drafter d;
        write_file(path_of("bad"), good, sizeof good);
        open_or_fail(&d, spec_of(f, path_of("bad")), 1);
        hn_drafter_close(&d);
        for (size_t cut = 1; cut < sizeof good; cut++)
            if (cut != 36) expect_refused(good, cut, f, cut < 20 || cut > 36 ? "at byte" : "more pairs");
        static const struct {
            int at;
            int32_t value;
            const char *words;
        } damage[] = {{0, -1, "hole at byte 4"},
                      {0, 1000, "outside the vocabulary at byte 0"},
                      {1, -2, "vocabulary at byte 4"},
                      {3, 8, "hole at byte 12"},
                      {4, 0, "nothing follows at byte 16"},
                      {4, -3, "nothing follows"},
                      {4, INT32_MAX, "more pairs"},
                      {4, 3, "below 1 at byte 40"},
                      {5, -1, "vocabulary at byte 20"},
                      {5, 1000, "vocabulary"},
                      {6, 0, "below 1 at byte 24"},
                      {8, -5, "below 1"},
                      {9, -1, "without tokens at byte 36"},
                      {9, INT32_MIN, "vocabulary at byte 36"}};
        for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
            int32_t bad[16];
            memcpy(bad, good, sizeof bad);
            bad[damage[i].at] = damage[i].value;
            expect_refused(bad, sizeof bad, f, damage[i].words);
        }
        static const int32_t twice[] = {1, 2, -1, -1, 1, 3, 1, 1, 2, -1, -1, 1, 4, 1},
                             same[] = {1, 2, -1, -1, 2, 3, 1, 3, 1};
        expect_refused(twice, sizeof twice, f, "twice at byte 28");
        expect_refused(same, sizeof same, f, "twice at byte 28");
    }
    hn_drafter d;
    hunch_error err = {0};
    assert_int_equal(hn_drafter_open(&d, "cache:/nowhere/x", 0, 1, &TARGET, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "/nowhere/x"));
    assert_int_equal(hn_drafter_open(&d, "cache,save=/nowhere/x", 0, 1, &TARGET, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "/nowhere/x"));
    assert_int_equal(hn_drafter_open(&d, "cache,save=/tmp", 0, 1, &TARGET, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "folder"));
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    assert_int_equal(hn_drafter_open(&d, spec_of("cache,save=%s", path_of("pipe")), 0, 1, &TARGET, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "regular file")); /* it would be replaced */
    assert_int_equal(unlink(path_of("pipe")), 0);
}

static hunch_status look(const void *data, size_t size) {
    write_file(path_of("bad"), data, size);
    hunch_error err = {0};
    const hunch_status st = hn_counts_file_check(path_of("bad"), &err);
    assert_true(st == HUNCH_OK || (st == HUNCH_REFUSED && strstr(err.message, "bad: not a lookup cache")));
    return st;
}

/* Which files are lookup caches, of whatever vocabulary, by their first 64 KiB. */
static void test_kind_of_file(void **state) {
    (void)state;
    enum { PAIRS = 10000, LONG = 5 + 2 * PAIRS, SHORT = 7 };
    static int32_t big[LONG + SHORT] = {500000, 3, -1, -1, PAIRS};
    for (int i = 0; i < PAIRS; i++) big[5 + 2 * i] = i, big[6 + 2 * i] = 1;
    const int32_t after[SHORT] = {1, 2, 3, 4, 1, 9, 1};
    memcpy(big + LONG, after, sizeof after);
    assert_int_equal(look(big, sizeof big), HUNCH_OK);
    assert_int_equal(look(big, 70000), HUNCH_REFUSED); /* more pairs than it holds */
    assert_int_equal(look(after, sizeof after), HUNCH_OK);
    for (size_t n = 1; n < sizeof after; n++) assert_int_equal(look(after, n), HUNCH_REFUSED);
    assert_int_equal(look("", 0), HUNCH_OK);
    assert_int_equal(look("a text of some length, in which there are no n-grams at all", 58), HUNCH_REFUSED);
    static const char zeros[100];
    assert_int_equal(look(zeros, sizeof zeros), HUNCH_REFUSED);
    assert_int_equal(hn_counts_file_check(path_of("nowhere"), NULL), HUNCH_FAILED);
}

/* Any bytes: read or refused. */
static void test_random_damage(void **state) {
    (void)state;
    uint64_t seed = 5;
    int32_t h[TEXT], read = 0;
    text_make(&seed, h);
    write_corpus(path_of("static"), h, 60);
    char *data;
    size_t size;
    assert_int_equal(hn_file_read(path_of("static"), 1 << 20, &data, &size, NULL), HUNCH_OK);
    for (int i = 0; i < cases(400); i++) {
        hn_drafter d;
        const size_t at = hn_splitmix(&seed) % size;
        const char was = data[at];
        data[at] = (char)(was ^ (1 << hn_splitmix(&seed) % 8));
        write_file(path_of("bad"), data, size);
        data[at] = was;
        const hunch_status st = hn_drafter_open(&d, spec_of("cache,dynamic=%s", path_of("bad")), 0, 1, &TARGET, NULL);
        assert_true(st == HUNCH_OK || st == HUNCH_REFUSED);
        read += st == HUNCH_OK;
        hn_drafter_close(&d);
    }
    assert_in_range(read, 1, 399);
    hn_free(data);
}

/* Every allocation fails in turn: open fails or works; a running text continues, with fewer drafts. */
static void test_no_memory(void **state) {
    (void)state;
    uint64_t seed = 9;
    int32_t h[TEXT], opened = 0;
    text_make(&seed, h);
    write_corpus(path_of("static"), h, 20);
    char spec[160];
    snprintf(spec, sizeof spec, "cache:%s,save=%s", path_of("static"), path_of("a"));
    for (int after = 0; after < 60; after++) {
        hn_drafter d;
        hn_fault_arm(HN_FAULT_ALLOC, after, true);
        const hunch_status st = hn_drafter_open(&d, spec, 0, 1, &TARGET, NULL);
        if (!st) {
            begin(&d, 0, h, 30);
            run_rounds(&d, 0, h, 30, 200);
            d.ops->end(&d, 0);
            opened++;
        }
        hn_drafter_close(&d);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (st) assert_int_equal(st, HUNCH_NO_MEMORY);
    }
    assert_in_range(opened, 1, 58);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_arbitration),
        cmocka_unit_test(test_dynamic_is_strict),
        cmocka_unit_test(test_against_plain_counting),
        cmocka_unit_test(test_periodic),
        cmocka_unit_test(test_each_position_once),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_kind_of_file),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
