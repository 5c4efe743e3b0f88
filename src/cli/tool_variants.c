/* SPDX-License-Identifier: Apache-2.0 */
/* tool_variants.c - see tool_variants.h. */
#include "cli/tool_variants.h"

#include <string.h>

#include "base/clock.h"

void tool_answer_fini(tool_answer *a) {
    hn_free(a->tokens);
    hn_free(a->drafter_of);
    hn_free(a->text);
    tool_trace_fini(&a->trace);
    tool_why_fini(&a->recorded);
    *a = (tool_answer){0};
}

void tool_variant_fini(tool_variant *l) {
    tool_variant_end(l, NULL);
    hunch_engine_close(&l->engine);
    tool_method_fini(&l->method);
    hn_free(l->ranks);
}

static void round_record(void *user, const hunch_round_report *report) {
    tool_recorder *h = user;
    tool_ranks_add(h->ranks, report);
    if (h->trees)
        tool_why_add(&h->recorded, report);
}

static bool reads_prompt(const hunch_session_state *st) {
    return st->finish == HUNCH_RUNNING && st->n_prefilled < st->n_prompt;
}

int tool_variant_begin(tool_variant *l, const hunch_request *requests, int n) {
    l->session = tool_alloc((size_t)n, sizeof(hunch_session *));
    l->trace = tool_alloc((size_t)n, sizeof *l->trace);
    l->recorder = tool_alloc((size_t)n, sizeof *l->recorder);
    l->n = n;
    l->batch_s = 0;
    if (l->method.text && !l->ranks)
        l->ranks = tool_alloc(1, sizeof *l->ranks);
    for (int i = 0; i < n; i++) {
        hunch_error err = {0};
        hunch_request q = requests[i];
        l->recorder[i] = (tool_recorder){.ranks = l->ranks, .trees = l->trees};
        q.on_round = l->ranks ? round_record : NULL;
        q.on_round_user = &l->recorder[i];
        if (hunch_session_open(&l->session[i], l->engine, &q, &err) != HUNCH_OK)
            return tool_failed(&err);
    }
    return 0;
}

/* After a timed round: extends each trace. After another: restarts the traces. */
static int round_account(tool_variant *l, bool timed, double seconds) {
    l->batch_s += timed ? seconds : 0;
    l->timed_s += timed ? seconds : 0;
    for (int i = 0; i < l->n; i++) {
        hunch_session_state st;
        hunch_session_get(l->session[i], &st);
        if (st.finish == HUNCH_FINISH_FAILED)
            return tool_failed(&st.error);
        tool_trace *t = &l->trace[i];
        double before = t->n ? t->tokens[t->n - 1] : 0, now = (double)st.n_tokens;
        if (!timed)
            t->n = 0;
        else if (now == before)
            continue; /* it had finished earlier */
        else
            l->timed_tokens += now - before;
        tool_trace_add(t, now, l->batch_s);
    }
    return 0;
}

static int variant_round(tool_variant *l) {
    bool timed = true;
    for (int i = 0; i < l->n; i++) {
        hunch_session_state st;
        hunch_session_get(l->session[i], &st);
        timed = timed && !reads_prompt(&st);
    }
    hunch_error err = {0};
    double begun = hn_now();
    hunch_status status = hunch_engine_round(l->engine, &err);
    double seconds = hn_now() - begun;
    return status == HUNCH_OK ? round_account(l, timed, seconds) : tool_failed(&err);
}

bool tool_variant_finished(const tool_variant *l) {
    return hunch_engine_running(l->engine) == 0;
}

size_t tool_variant_tokens(const tool_variant *l) {
    size_t fewest = SIZE_MAX, most = 0;
    for (int i = 0; i < l->n; i++) {
        hunch_session_state st;
        hunch_session_get(l->session[i], &st);
        if (st.finish == HUNCH_RUNNING && st.n_tokens < fewest)
            fewest = st.n_tokens;
        if (st.n_tokens > most)
            most = st.n_tokens;
    }
    return fewest == SIZE_MAX ? most : fewest;
}

int tool_variant_advance(tool_variant *l, size_t tokens) {
    while (!tool_variant_finished(l) && tool_variant_tokens(l) < tokens) {
        if (tool_interrupted)
            return HUNCH_CANCELLED;
        int code = variant_round(l);
        if (code)
            return code;
    }
    return 0;
}

static void answer_take(tool_answer *a, const hunch_session *s, tool_trace *trace, tool_recorder *h) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    *a = (tool_answer){.tokens = tool_alloc(st.n_tokens, sizeof *a->tokens),
                       .drafter_of = tool_alloc(st.n_tokens, sizeof *a->drafter_of),
                       .n = st.n_tokens,
                       .rounds = st.rounds,
                       .drafted = st.drafted,
                       .accepted = st.accepted,
                       .depth_drafted = st.depth_drafted,
                       .verify = st.verify,
                       .lossy = st.lossy,
                       .trace = *trace,
                       .recorded = h->recorded};
    *trace = (tool_trace){0};
    h->recorded = (tool_why){0};
    if (st.n_tokens) {
        memcpy(a->tokens, st.tokens, st.n_tokens * sizeof *a->tokens);
        memcpy(a->drafter_of, st.drafter_of, st.n_tokens * sizeof *a->drafter_of);
    }
    if (st.text) {
        a->text = tool_strndup(st.text, st.text_len);
        a->text_len = st.text_len;
    }
}

void tool_variant_end(tool_variant *l, tool_answer *answers) {
    for (int i = 0; i < l->n; i++) {
        if (answers)
            answer_take(&answers[i], l->session[i], &l->trace[i], &l->recorder[i]);
        tool_why_fini(&l->recorder[i].recorded);
        tool_trace_fini(&l->trace[i]);
        hunch_session_close(&l->session[i]);
    }
    hn_free(l->session);
    hn_free(l->trace);
    hn_free(l->recorder);
    l->session = NULL;
    l->trace = NULL;
    l->recorder = NULL;
    l->n = 0;
}
