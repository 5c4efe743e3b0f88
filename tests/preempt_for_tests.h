/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_for_tests.h - texts that lose their places though there are pages for all: admission makes a real shortage rare. Include after
 * cmocka and fixture.h. */
#ifndef HN_TEST_PREEMPT_H
#define HN_TEST_PREEMPT_H
#include "engine/engine.h"

/* Between rounds: the youngest of several placed texts loses its place. */
HELPER void preempt_youngest(hunch_engine *e) {
    hunch_session *youngest = NULL;
    int n = 0;
    for (int i = 0; i < e->parallel; i++) {
        hunch_session *s = e->session[i];
        if (!s) continue;
        n++;
        if (!youngest || s->admission > youngest->admission) youngest = s;
    }
    if (n > 1) hn_session_preempt(youngest);
}
#endif
