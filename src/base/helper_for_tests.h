/* SPDX-License-Identifier: Apache-2.0 */
/* helper_for_tests.h - HELPER: a function of a header for tests, of which not every test uses all. */
#ifndef HN_HELPER_FOR_TESTS_H
#define HN_HELPER_FOR_TESTS_H

#define HELPER __attribute__((unused)) static

#endif
