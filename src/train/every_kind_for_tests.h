/* SPDX-License-Identifier: Apache-2.0 */
/* every_kind_for_tests.h - the kinds of heads that a test trains fully: three that differ most, and all kinds in the
 * *_long_test that includes the test with EVERY_KIND. */
#ifndef HN_EVERY_KIND_FOR_TESTS_H
#define HN_EVERY_KIND_FOR_TESTS_H
#include "train/learn_kind.h"

#ifndef EVERY_KIND
#define EVERY_KIND false
#endif

/* The test checks only that it runs. */
static inline bool brief(const hn_learn_kind *kind) {
    return light() || (!EVERY_KIND && kind != &hn_learn_eagle3 && kind != &hn_learn_dflash && kind != &hn_learn_medusa);
}
#endif
