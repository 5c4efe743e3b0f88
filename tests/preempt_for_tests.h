/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_for_tests.h - texts that lose their places though there are pages for all: admission makes a real shortage rare. Include after
 * cmocka and fixture.h. */
#ifndef HN_TEST_PREEMPT_H
#define HN_TEST_PREEMPT_H
#include "engine/session.h"

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

/* run_requests, with a place lost every few rounds. */
HELPER void run_preempted_requests(hunch_engine *e, const hunch_request *r, int n, answer *out) {
    enum { EVERY = 9 };
    hunch_session **s = calloc((size_t)n, sizeof *s);
    for (int i = 0; i < n; i++) {
        hunch_request q = r[i];
        q.on_logits = keep_logits;
        q.on_logits_user = &out[i];
        must(hunch_session_open(&s[i], e, &q, err));
    }
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        must(hunch_engine_round(e, err));
        if (round % EVERY == 0) preempt_youngest(e);
    }
    for (int i = 0; i < n; i++) {
        keep_answer(&out[i], s[i]);
        hunch_session_close(&s[i]);
    }
    free(s);
}
#endif
