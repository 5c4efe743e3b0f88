/* SPDX-License-Identifier: Apache-2.0 */
/* every_kind_for_tests.h - the kinds of heads that a test trains fully: three that differ most, and all kinds in the
 * *_long_test that includes the test with EVERY_CASE. */
#ifndef HN_EVERY_KIND_FOR_TESTS_H
#define HN_EVERY_KIND_FOR_TESTS_H
#include "base/run_mode_for_tests.h"
#include "train/learn/learn_kind.h"

/* The three, or all in a long test. */
static inline bool in_full(const hn_learn_kind *kind) {
    return EVERY_CASE || kind == &hn_learn_eagle3 || kind == &hn_learn_dflash || kind == &hn_learn_medusa;
}

/* The test checks only that it runs. */
static inline bool brief(const hn_learn_kind *kind) { return test_light() || !in_full(kind); }
#endif
