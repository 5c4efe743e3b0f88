/* SPDX-License-Identifier: Apache-2.0 */
/* command_interrupts_test.c - Ctrl-C in `hunch chat` at random moments on a busy processor: nothing that is typed is lost. */
#include "chat_interrupts.h"

static void test_some_moments(void **state) {
    (void)state;
    interrupts_tried(16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_some_moments)};
    return cmocka_run_group_tests(tests, interrupts_begin, folder_remove);
}
