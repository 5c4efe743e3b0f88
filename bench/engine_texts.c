/* SPDX-License-Identifier: Apache-2.0 */
/* engine_texts.c - where the time of an engine's rounds goes with many texts: passes, drafting, verification with what it emits, the rest.
 *
 *   build-test/engine_texts MODEL THREADS TEXTS TOKENS TEMPERATURE [SPEC]      SPEC: a drafter; none without
 *
 * Texts begin with eight random tokens each; the first rounds, which read these, are not counted. One line: seconds of all rounds, and of
 * their parts, in total. With one thread drafting and verification are what they take on one worker.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hunch/hunch.h"

enum { MOST = 64, PROMPT = 8 };

static void check(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "engine_texts: %s\n", err->message);
    exit((int)st);
}

static hunch_session *text_open(hunch_engine *e, const hunch_model *m, int i, int tokens, double temperature) {
    hunch_model_info info;
    hunch_token prompt[PROMPT];
    hunch_request r;
    hunch_session *s;
    hunch_error err;
    hunch_model_get_info(m, &info);
    for (int k = 0; k < PROMPT; k++) prompt[k] = (hunch_token)((unsigned)(i * PROMPT + k + 1) * 2654435761u % (unsigned)info.vocab);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = PROMPT;
    r.max_tokens = tokens;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = temperature, .top_p = 1, .seed = (uint64_t)i};
    check(hunch_session_open(&s, e, &r, &err), &err);
    return s;
}

int main(int argc, char **argv) {
    hunch_error err;
    hunch_model *m;
    hunch_engine *e;
    hunch_session *s[MOST];
    hunch_model_options mo;
    hunch_engine_options eo;
    hunch_engine_stats before, after;
    if (argc < 6) return fprintf(stderr, "usage: engine_texts MODEL THREADS TEXTS TOKENS TEMPERATURE [SPEC]\n"), HUNCH_USAGE;
    const int texts = atoi(argv[3]), tokens = atoi(argv[4]);
    if (texts < 1 || texts > MOST || tokens < 2)
        return fprintf(stderr, "engine_texts: 1 to %d texts of 2 tokens or more\n", MOST), HUNCH_USAGE;
    hunch_model_options_defaults(&mo);
    mo.threads = atoi(argv[2]);
    check(hunch_model_open(&m, argv[1], &mo, &err), &err);
    hunch_engine_options_defaults(&eo);
    eo.parallel = texts;
    eo.context = PROMPT + tokens + 64;
    eo.drafts = (const char *const *)argv + 6;
    eo.n_drafts = argc > 6;
    check(hunch_engine_open(&e, m, &eo, &err), &err);
    for (int i = 0; i < texts; i++) s[i] = text_open(e, m, i, tokens, atof(argv[5]));
    do {
        check(hunch_engine_round(e, &err), &err);
        hunch_engine_get_stats(e, &before);
    } while (before.prompt_rows < (uint64_t)(texts * PROMPT));
    check(hunch_engine_run(e, &err), &err);
    hunch_engine_get_stats(e, &after);
    const double all = after.round_s - before.round_s, pass = after.pass_s - before.pass_s, draft = after.draft_s - before.draft_s,
                 verify = after.verify_s - before.verify_s;
    printf("%d texts, %d threads, %s: %llu rounds, %llu passes, %llu tokens, %llu of %llu drafts accepted: "
           "%.3f s = passes %.3f + drafting %.4f + verification %.4f + the rest %.4f\n",
           texts, mo.threads, argc > 6 ? argv[6] : "none", (unsigned long long)(after.rounds - before.rounds),
           (unsigned long long)(after.passes - before.passes), (unsigned long long)(after.tokens - before.tokens),
           (unsigned long long)after.accepted, (unsigned long long)after.drafted, all, pass, draft, verify, all - pass - draft - verify);
    for (int i = 0; i < texts; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return 0;
}
