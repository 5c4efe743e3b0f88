/* SPDX-License-Identifier: Apache-2.0 */
/* command_interrupts_long_test.c - Ctrl-C in `hunch chat` at 200 random moments on a busy processor. */
#include "chat_interrupts.h"

static void test_many_moments(void **state) {
    (void)state;
    interrupts_tried(200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_moments)};
    return cmocka_run_group_tests(tests, interrupts_begin, folder_remove);
}
