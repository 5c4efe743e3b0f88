/* SPDX-License-Identifier: Apache-2.0 */
/* tool_verify_exact.c - see tool_verify_exact.h. The twin runs rounds only while it has fewer tokens than the session, so logits are kept
 * for one round. */
#include "cli/tool_verify_exact.h"

#include <math.h>
#include <string.h>

/* ---- logits ------------------------------------------------------------------------------------------------------------------- */

/* of the session: on_logits. */
static void logits_keep(void *user, size_t index, const float *logits, int vocab) {
    tool_verify_exact *t = user;
    t->vocab = vocab;
    t->rows = tool_grow(t->rows, &t->cap_rows, t->n_rows + 1, sizeof *t->rows);
    float *copy = tool_alloc((size_t)vocab, sizeof *copy);
    memcpy(copy, logits, (size_t)vocab * sizeof *copy);
    t->rows[t->n_rows++] = (tool_verify_exact_row){copy, index};
}

static bool same_bits(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* The logit that differs most; one that is no number differs more than any other. */
static hunch_token most_different(const tool_verify_exact *t) {
    double most = -1;
    int at = 0;
    for (int i = 0; i < t->vocab; i++) {
        const double by = fabs((double)t->ours[i] - t->plain[i]), distance = isnan(by) ? INFINITY : by;
        if (same_bits(&t->ours[i], &t->plain[i], 1) || distance <= most) continue;
        most = distance;
        at = i;
    }
    return at;
}

static void last_drop(tool_verify_exact *t) {
    hn_free(t->ours);
    hn_free(t->plain);
    t->ours = t->plain = NULL;
}

/* of the twin: the session has decided this token already. */
static void logits_compare(void *user, size_t index, const float *logits, int vocab) {
    tool_verify_exact *t = user;
    for (size_t i = 0; i < t->n_rows && !t->differs; i++) {
        if (t->rows[i].index != index) continue;
        last_drop(t);
        t->ours = t->rows[i].logits;
        t->rows[i] = t->rows[--t->n_rows];
        t->plain = tool_alloc((size_t)vocab, sizeof *t->plain);
        memcpy(t->plain, logits, (size_t)vocab * sizeof *logits);
        t->differs = !same_bits(t->ours, t->plain, (size_t)vocab);
        t->at = index;
        if (t->differs) t->token = most_different(t);
        return;
    }
}

/* ---- the twin ------------------------------------------------------------------------------------------------------------------ */

int tool_verify_exact_open(tool_verify_exact *t, hunch_model *m, const hunch_engine_options *o, hunch_request *r) {
    hunch_engine_options plain = *o;
    hunch_request q = *r;
    hunch_error err = {0};
    *t = (tool_verify_exact){.model = m};
    plain.drafts = NULL;
    plain.n_drafts = 0;
    plain.parallel = 1;
    plain.pool_rows = plain.context;
    plain.no_prefix_reuse = true;
    q.drafters = HUNCH_ALL_DRAFTERS;
    q.prediction = NULL;
    q.n_prediction = 0;
    q.deadline_s = 0;
    q.logprobs = false;
    q.top_logprobs = 0;
    q.on_round = NULL;
    q.on_output = NULL;
    q.on_logits = logits_compare;
    q.on_logits_user = t;
    r->on_logits = logits_keep;
    r->on_logits_user = t;
    if (hunch_engine_open(&t->engine, m, &plain, &err) || hunch_session_open(&t->session, t->engine, &q, &err)) {
        tool_verify_exact_close(t);
        return tool_failed(&err);
    }
    return 0;
}

void tool_verify_exact_close(tool_verify_exact *t) {
    hunch_session_close(&t->session);
    hunch_engine_close(&t->engine);
    for (size_t i = 0; i < t->n_rows; i++) hn_free(t->rows[i].logits);
    hn_free(t->rows);
    last_drop(t);
    *t = (tool_verify_exact){0};
}

/* ---- what differs -------------------------------------------------------------------------------------------------------------- */

static const char *piece_of(const tool_verify_exact *t, hunch_token token, char *out, size_t size) {
    const char *bytes;
    size_t len;
    if (hunch_token_piece(t->model, token, &bytes, &len, NULL, NULL) != HUNCH_OK)
        snprintf(out, size, "%d", token);
    else
        snprintf(out, size, "%d \"%.*s\"", token, (int)(len < 40 ? len : 40), bytes);
    return out;
}

static const char *source_of(const hunch_engine *e, int drafter) {
    const char *name = drafter < 0 ? NULL : hunch_engine_drafter_name(e, drafter);
    return name ? name : "nobody, the model gave it itself";
}

/* "12 "a": 3.25 instead of 3.5": a token's logit here, and in plain decoding. */
static void logit_text(const tool_verify_exact *t, hunch_token token, char *out, size_t size) {
    char piece[100];
    piece_of(t, token, piece, sizeof piece);
    if (t->ours)
        snprintf(out, size, "%s: %.9g instead of %.9g", piece, (double)t->ours[token], (double)t->plain[token]);
    else
        snprintf(out, size, "%s: not known", piece);
}

static int logits_report(const tool_verify_exact *t, const hunch_engine *e, const hunch_session_state *st) {
    char logit[200];
    logit_text(t, t->token, logit, sizeof logit);
    tool_message("--verify-exact: the logits of token %zu of the answer are not those of plain decoding: that of token "
                 "%s; the token was "
                 "proposed by %s. This is a bug of hunch",
                 t->at + 1, logit, source_of(e, st->drafter_of[t->at]));
    return HUNCH_FAILED;
}

static int token_report(const tool_verify_exact *t, const hunch_engine *e, const hunch_session_state *st, hunch_token plain) {
    char here[200], there[200], name[100];
    const size_t at = t->checked;
    logit_text(t, st->tokens[at], here, sizeof here);
    logit_text(t, plain, there, sizeof there);
    tool_message("--verify-exact: token %zu of the answer is not that of plain decoding, %s; logits of %s, of %s; it "
                 "was proposed by %s. This "
                 "is a bug of hunch",
                 at + 1, piece_of(t, plain, name, sizeof name), here, there, source_of(e, st->drafter_of[at]));
    return HUNCH_FAILED;
}

/* Tokens that both have. */
static int tokens_compare(tool_verify_exact *t, const hunch_engine *e, const hunch_session_state *st,
                          const hunch_session_state *twin) {
    for (; t->checked < st->n_tokens && t->checked < twin->n_tokens; t->checked++) {
        if (st->tokens[t->checked] != twin->tokens[t->checked]) return token_report(t, e, st, twin->tokens[t->checked]);
        if (t->differs && t->at == t->checked) return logits_report(t, e, st);
    }
    return 0;
}

int tool_verify_exact_follow(tool_verify_exact *t, const hunch_engine *e, const hunch_session *s) {
    hunch_session_state st, twin;
    hunch_error err = {0};
    int code = 0;
    hunch_session_get(s, &st);
    hunch_session_get(t->session, &twin);
    while (!code && twin.n_tokens < st.n_tokens && twin.finish == HUNCH_RUNNING) {
        if (hunch_engine_round(t->engine, &err) != HUNCH_OK) return tool_failed(&err);
        hunch_session_get(t->session, &twin);
        code = twin.finish == HUNCH_FINISH_FAILED ? tool_failed(&twin.error) : tokens_compare(t, e, &st, &twin);
    }
    return code;
}

int tool_verify_exact_finish(tool_verify_exact *t, const hunch_engine *e, const hunch_session *s) {
    hunch_session_state st, twin;
    const int code = tool_verify_exact_follow(t, e, s);
    if (code) return code;
    hunch_session_get(s, &st);
    hunch_session_get(t->session, &twin);
    const bool early = st.finish == HUNCH_FINISH_CANCELLED || st.finish == HUNCH_FINISH_DEADLINE ||
                       st.finish == HUNCH_FINISH_GRAMMAR;
    if (twin.n_tokens != st.n_tokens || (!early && twin.finish != st.finish)) {
        tool_message(
            "--verify-exact: the answer ends after %zu tokens, plain decoding after %zu%s. This is a bug of hunch",
            st.n_tokens, twin.n_tokens, twin.finish == HUNCH_RUNNING ? " or more" : "");
        return HUNCH_FAILED;
    }
    if (!tool_quiet)
        tool_message("--verify-exact: all %zu tokens and their logits are those of plain decoding, bit for bit",
                     t->checked);
    return 0;
}
