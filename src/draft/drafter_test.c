/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_test.c - the text form of drafters: which specs are accepted, which are refused, and the messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/fault.h"
#include "draft/drafter.h"

static const hn_target_info TARGET = {.vocab = 100, .hidden = 8, .layers = 2, .context = 256};

static void test_parse(void **state) {
    (void)state;
    hn_spec s;
    assert_int_equal(hn_spec_parse(&s, "model:/a/b:c.gguf,depth=3,accept=.5,form=hf", NULL), HUNCH_OK);
    assert_string_equal(s.text, "model:/a/b:c.gguf,depth=3,accept=.5,form=hf");
    assert_string_equal(s.kind, "model");
    assert_string_equal(s.path, "/a/b:c.gguf");
    assert_int_equal(s.n, 3);
    static const char *const forms[] = {"pld", "hf", NULL};
    long n;
    double x;
    int c;
    assert_int_equal(hn_spec_int(&s, "depth", 1, 9, 5, &n, NULL), HUNCH_OK);
    assert_int_equal(n, 3);
    assert_int_equal(hn_spec_int(&s, "absent", 1, 9, 5, &n, NULL), HUNCH_OK);
    assert_int_equal(n, 5);
    assert_int_equal(hn_spec_double(&s, "accept", 0, 1, 1, &x, NULL), HUNCH_OK);
    assert_true(x == .5);
    hunch_error err;
    assert_int_equal(hn_spec_all_used(&s, &err), HUNCH_USAGE); /* form was not read yet */
    assert_non_null(strstr(err.message, "'form'"));
    assert_int_equal(hn_spec_choice(&s, "form", forms, 0, &c, NULL), HUNCH_OK);
    assert_int_equal(c, 1);
    assert_int_equal(hn_spec_all_used(&s, NULL), HUNCH_OK);
    assert_int_equal(hn_spec_no_path(&s, NULL), HUNCH_USAGE);
    hn_spec_fini(&s);
    assert_int_equal(hn_spec_parse(&s, "eagle:/a\\,b\\c,ids=d\\,e,depth=2", NULL), HUNCH_OK);
    assert_string_equal(s.path, "/a,b\\c");
    assert_string_equal(hn_spec_string(&s, "ids"), "d,e");
    assert_string_equal(s.keys, ",ids=d\\,e,depth=2");
    hn_spec_fini(&s);
    hunch_error comma;
    assert_int_equal(hn_spec_parse(&s, "eagle:/a,b.gguf", &comma), HUNCH_USAGE);
    assert_non_null(strstr(comma.message, "a comma in a PATH or a value is written \\,"));
    assert_int_equal(hn_spec_parse(&s, "ngram", NULL), HUNCH_OK);
    assert_null(s.path);
    assert_int_equal(s.n, 0);
    hn_spec_fini(&s);
}

/* Opening `spec` fails as wrong usage and the message contains `word`. */
static void expect_usage(const char *spec, const char *word) {
    hn_drafter d;
    hunch_error err = {0};
    if (hn_drafter_open(&d, spec, 0, 1, &TARGET, &err) != HUNCH_USAGE) fail_msg("'%s' opened", spec);
    if (!strstr(err.message, word)) fail_msg("'%s': \"%s\" does not say \"%s\"", spec, err.message, word);
    if (!strstr(err.message, spec)) fail_msg("'%s': \"%s\" does not name the spec", spec, err.message);
    assert_null(d.ops);
    assert_null(d.name);
}

static void test_refused(void **state) {
    (void)state;
    expect_usage("", "no kind");
    expect_usage(",depth=3", "no kind");
    expect_usage("NGRAM", "no kind");
    expect_usage("eagle9", "ngram, cache, suffix, prediction, grammar, recycle, lookahead, model, eagle");
    expect_usage("ngram:", "no path after");
    expect_usage("ngram:x", "takes no path");
    expect_usage("forced:x", "takes no path");
    expect_usage("ngram,", "key=value");
    expect_usage("ngram,depth", "key=value");
    expect_usage("ngram,depth=", "key=value");
    expect_usage("ngram,=3", "key=value");
    expect_usage("ngram,depth=3,depth=4", "given twice");
    expect_usage("ngram,width=3", "'width'");
    expect_usage("ngram,depth=0", "from 1 to 63");
    expect_usage("ngram,depth=64", "depth=64");
    expect_usage("ngram,depth=3x", "whole number");
    expect_usage("ngram,depth= 3", "whole number");
    expect_usage("ngram,depth=99999999999999999999", "whole number");
    expect_usage("ngram,form=best", "recent, pld, hf, longest, simple, map-k, map-k4v, mod");
    expect_usage("ngram,min=4,max=3", "min=4 is more than max=3");
    expect_usage("ngram,form=simple,min=3,max=5", "min=3 contradicts max=5");
    expect_usage("ngram,form=map-k,min=5,max=3", "min=5 is more than max=3");
    expect_usage("ngram,form=map-k4v,min=2,max=3", "one length");
    expect_usage("ngram,form=map-k,max=33", "from 1 to 32");
    expect_usage("ngram,form=mod,min=9,depth=8", "shortest draft");
    expect_usage("ngram,form=mod,depth=64", "from 1 to 63");
    expect_usage("ngram,form=mod,grow=1", "'grow'");
    expect_usage("cache,mib=0", "from 1 to");
    expect_usage("cache,depth=64", "from 1 to 63");
    expect_usage("cache,form=hf", "'form'");
    expect_usage("prediction,window=0", "from 1 to 1024");
    expect_usage("prediction,depth=0", "from 1 to 63");
    expect_usage("prediction,min=2", "'min'");
    expect_usage("prediction:/nowhere", "needs a tokenizer");
    expect_usage("ngram,grow=0", "from 0.1 to 63");
    expect_usage("ngram,form=hf,grow=2", "'grow'");
    expect_usage("forced,accept=1.5", "from 0 to 1");
    expect_usage("forced,accept=nan", "expected a number");
    expect_usage("forced,accept=0x1", "expected a number");
    expect_usage("forced,width=0", "from 1 to 16");
    expect_usage("forced,seed=-1", "seed=-1");
    expect_usage("forced,cost_us=-1", "cost_us=-1");
    expect_usage("forced,tree=round", "shaped, random");
    expect_usage("k,a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1", "more than 16 keys");
}

static void test_open(void **state) {
    (void)state;
    static const char *const good[] = {"ngram",
                                       "ngram,form=pld,min=1,max=4,depth=63",
                                       "ngram,min=12",
                                       "ngram,max=1",
                                       "ngram,form=simple,max=3",
                                       "ngram,form=simple,min=3",
                                       "ngram,form=map-k",
                                       "ngram,form=map-k4v,min=4,max=4",
                                       "ngram,form=mod",
                                       "ngram,form=mod,depth=8",
                                       "ngram,form=mod,max=32,min=1,depth=1",
                                       "cache",
                                       "cache,mib=1,depth=63",
                                       "prediction",
                                       "prediction,depth=8,window=16",
                                       "forced",
                                       "forced,accept=.8,depth=8,width=3,seed=4,cost_us=0.5",
                                       "forced,tree=random,accept=1e-1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        hn_drafter d;
        hunch_error err = {0};
        if (hn_drafter_open(&d, good[i], 2, 3, &TARGET, &err)) fail_msg("%s", err.message);
        assert_string_equal(d.name, good[i]);
        assert_int_equal(d.index, 2);
        assert_in_range(d.needs.max_depth, 1, 63);
        assert_int_equal(d.needs.oracle, good[i][0] == 'f');
        hn_drafter_close(&d);
        assert_null(d.ops);
        hn_drafter_close(&d); /* a closed one is fine */
    }
    hn_drafter d;
    const hn_target_info one = {.vocab = 1};
    assert_int_equal(hn_drafter_open(&d, "forced", 0, 1, &one, NULL), HUNCH_USAGE);
}

/* Every allocation of an open fails in turn: out of memory is an ordinary error and leaks nothing (ASan). */
static void test_no_memory(void **state) {
    (void)state;
    static const char *const specs[] = {"ngram", "ngram,form=mod", "cache", "prediction", "forced,depth=3"};
    for (int i = 0; i < 5; i++)
        for (int after = 0;; after++) {
            hn_drafter d;
            hn_fault_arm(HN_FAULT_ALLOC, after, false);
            hunch_status st = hn_drafter_open(&d, specs[i], 0, 2, &TARGET, NULL);
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            if (!st) {
                assert_true(after >= 4);
                hn_drafter_close(&d);
                break;
            }
            assert_int_equal(st, HUNCH_NO_MEMORY);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
