/* SPDX-License-Identifier: Apache-2.0 */
/* chains.c - what chains of drafts are worth beside what their parts take alone: passes of one row and of a whole chain, the steps of each
 * drafter, and the speed of rounds whose drafts are right with a chosen probability (force=A).
 *
 *   build-test/chains MODEL THREADS CONTEXT DEPTH ROUNDS TURNS SPEC...
 *   build-test/chains gemma.gguf 2 1024 4 40 9 assistant:H,depth=4,force=0 assistant:H,depth=4,force=0.6
 *
 * A SPEC may be several drafters (auto+mtp,force=0.8); unlike in the command a + within a path ends one, too. The first SPEC is a chain of
 * DEPTH.
 *
 * Everything is opened and all prompts are read first; then each line of standard input, TURNS at most, is a turn: three passes of one row
 * and of DEPTH + 1 behind CONTEXT rows, and ROUNDS rounds of each SPEC's text. At the end of the input a line a SPEC, medians of the turns:
 *
 *   step       ms of a level, choosing its token included, and as a share of a pass of one row
 *   round      ms of a round; tau: tokens of it; tok/s
 *   of parts   tau / (a pass of DEPTH + 1 rows + DEPTH steps of the first SPEC), and what those parts are of a round; with force=A also
 *              the expected tokens, the sum of A^i for i of 0 to DEPTH, and what the speed is of these by the parts: the luck of the rounds
 *              is in it
 *   priced     what the controller said a round would take, by what it took, where one controls
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hunch/hunch.h"
#include "quantile.h"

enum { MOST_SPECS = 16, MOST_TURNS = 64, REPEATS = 3, MORE_TOKENS = 64, MOST_DRAFTERS = 8 };

typedef struct turn {
    double round_s, step_s, tau, priced; /* means of a round, or of a step */
} turn;

typedef struct chain {
    const char *spec;
    hunch_engine *e;
    hunch_session *s;
    double said_s, controlled_s; /* of controlled rounds: as the controller said, as they were */
    turn turn[MOST_TURNS];
} chain;

static chain chains[MOST_SPECS];
static double one_s[MOST_TURNS], whole_s[MOST_TURNS];

static void check(hunch_status st, const hunch_error *err) {
    if (!st) return;
    fprintf(stderr, "chains: %s\n", err->message);
    exit((int)st);
}

static void on_round(void *user, const hunch_round_report *r) {
    chain *c = user;
    if (!r->controlled || r->chosen < 0) return;
    c->said_s += r->considered[r->chosen].seconds;
    c->controlled_s += r->draft_s + r->pass_s;
}

/* spec: drafters with + between them; NULL: none. */
static hunch_engine *engine_open(hunch_model *m, int context, const char *spec) {
    hunch_engine_options o;
    hunch_engine *e;
    hunch_error err;
    const char *each[MOST_DRAFTERS];
    char *names = strdup(spec ? spec : "");
    if (!names) exit(1);
    hunch_engine_options_defaults(&o);
    o.context = context;
    o.drafts = each;
    for (char *name = strtok(names, "+"); name; name = strtok(NULL, "+")) {
        if (o.n_drafts == MOST_DRAFTERS) {
            fprintf(stderr, "chains: %s: expected at most %d drafters\n", spec, MOST_DRAFTERS);
            exit(HUNCH_USAGE);
        }
        each[o.n_drafts++] = name;
    }
    check(hunch_engine_open(&e, m, &o, &err), &err);
    free(names);
    return e;
}

/* Tokens of a round whose drafts are right with the SPEC's probability; without one, at most. */
static double expected_tokens(const char *spec, int depth) {
    const char *force = strstr(spec, "force=");
    const double a = force ? strtod(force + strlen("force="), NULL) : 1;
    double sum = 0;
    for (int i = 0; i <= depth; i++) sum += pow(a, i);
    return sum;
}

/* Opens a text of `context` arbitrary tokens and reads it. */
static void chain_open(chain *c, hunch_model *m, const char *spec, int context, int most) {
    hunch_model_info info;
    hunch_request r;
    hunch_error err;
    hunch_session_state now;
    hunch_token *prompt = malloc((size_t)context * sizeof *prompt);
    if (!prompt) exit(1);
    hunch_model_get_info(m, &info);
    for (int k = 0; k < context; k++) prompt[k] = (hunch_token)((unsigned)(k + 1) * 2654435761u % (unsigned)info.vocab);
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = (size_t)context;
    r.max_tokens = most;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = 0, .top_p = 1};
    r.on_round = on_round;
    r.on_round_user = c;
    c->spec = spec;
    c->e = engine_open(m, context + most + 64, spec);
    check(hunch_session_open(&c->s, c->e, &r, &err), &err);
    do {
        check(hunch_engine_round(c->e, &err), &err);
        hunch_session_get(c->s, &now);
    } while (now.rounds < 3); /* those that decode: the first ones are cold */
    free(prompt);
}

static void run_rounds(chain *c, int rounds, turn *to) {
    hunch_session_state before, after;
    hunch_error err;
    hunch_session_get(c->s, &before);
    c->said_s = c->controlled_s = 0;
    const double start = hn_now();
    for (int i = 0; i < rounds; i++) check(hunch_engine_round(c->e, &err), &err);
    const double all = hn_now() - start;
    hunch_session_get(c->s, &after);
    const double n = (double)(after.rounds - before.rounds), levels = (double)(after.depth_drafted - before.depth_drafted);
    if (n < rounds) fprintf(stderr, "chains: %s: a text ended: expected fewer rounds or turns\n", c->spec);
    *to = (turn){.round_s = all / n,
                 .step_s = levels > 0 ? (after.draft_s - before.draft_s) / levels : 0,
                 .tau = (double)(after.n_tokens - before.n_tokens) / n,
                 .priced = c->controlled_s > 0 ? c->said_s / c->controlled_s : 0};
}

static double pass_of(hunch_engine *plain, int rows, int context) {
    double seconds[REPEATS + 1];
    hunch_error err;
    check(hunch_measure_pass(plain, rows, context, REPEATS + 1, seconds, &err), &err);
    return median(seconds + 1, REPEATS);
}

static double median_of(const chain *c, int turns, double (*of)(const turn *)) {
    double x[MOST_TURNS];
    for (int t = 0; t < turns; t++) x[t] = of(&c->turn[t]);
    return median(x, (size_t)turns);
}

static double round_of(const turn *t) { return t->round_s; }
static double step_of(const turn *t) { return t->step_s; }
static double tau_of(const turn *t) { return t->tau; }
static double speed_of(const turn *t) { return t->tau / t->round_s; }
static double priced_of(const turn *t) { return t->priced; }

static void print_chain(const chain *c, int turns, int depth, double one, double parts_s) {
    const double tau = median_of(c, turns, tau_of), speed = median_of(c, turns, speed_of), step = median_of(c, turns, step_of),
                 round = median_of(c, turns, round_of);
    const double expected = expected_tokens(c->spec, depth);
    printf("%-52s step %7.3f ms %6.2f %% | round %8.3f ms tau %5.3f %7.3f tok/s | of parts %7.3f %5.3f", c->spec, 1e3 * step,
           100 * step / one, 1e3 * round, tau, speed, tau / parts_s, parts_s / round);
    if (strstr(c->spec, "force=")) printf(" expected %5.3f tokens %5.3f", expected, speed * parts_s / expected);
    if (median_of(c, turns, priced_of) > 0) printf(" | priced %5.3f", median_of(c, turns, priced_of));
    putchar('\n');
}

int main(int argc, char **argv) {
    hunch_error err;
    hunch_model *m;
    hunch_model_options mo;
    const int n = argc - 7;
    if (n < 1 || n > MOST_SPECS) return fprintf(stderr, "usage: chains MODEL THREADS CONTEXT DEPTH ROUNDS TURNS SPEC...\n"), HUNCH_USAGE;
    const int context = atoi(argv[3]), depth = atoi(argv[4]), rounds = atoi(argv[5]), most_turns = atoi(argv[6]);
    if (context < 1 || depth < 1 || depth >= HUNCH_MAX_DEPTH || rounds < 1 || most_turns < 1 || most_turns > MOST_TURNS)
        return fprintf(stderr, "chains: a context, a depth, rounds and turns (to %d) of 1 or more\n", MOST_TURNS), HUNCH_USAGE;
    hunch_model_options_defaults(&mo);
    mo.threads = atoi(argv[2]);
    check(hunch_model_open(&m, argv[1], &mo, &err), &err);
    hunch_engine *plain = engine_open(m, context + 64, NULL);
    for (int i = 0; i < n; i++) {
        const double tokens = 1.2 * rounds * most_turns * expected_tokens(argv[7 + i], depth);
        chain_open(&chains[i], m, argv[7 + i], context, (int)tokens + MORE_TOKENS);
    }
    (void)pass_of(plain, depth + 1, context);
    fprintf(stderr, "ready\n");
    int turns = 0;
    for (char line[256]; turns < most_turns && fgets(line, sizeof line, stdin); turns++) {
        one_s[turns] = pass_of(plain, 1, context);
        whole_s[turns] = pass_of(plain, depth + 1, context);
        for (int i = 0; i < n; i++) run_rounds(&chains[(turns + i) % n], rounds, &chains[(turns + i) % n].turn[turns]);
        fprintf(stderr, "turn %d\n", turns + 1);
    }
    if (turns < 1) return HUNCH_USAGE;
    const double one = median(one_s, (size_t)turns), whole = median(whole_s, (size_t)turns);
    printf("pass of 1 row %.3f ms (%.3f to %.3f), of %d %.3f (%.3f to %.3f), behind %d; %d turns\n", 1e3 * one, 1e3 * one_s[0],
           1e3 * one_s[turns - 1], depth + 1, 1e3 * whole, 1e3 * whole_s[0], 1e3 * whole_s[turns - 1], context, turns);
    const double parts_s = whole + depth * median_of(&chains[0], turns, step_of);
    for (int i = 0; i < n; i++) print_chain(&chains[i], turns, depth, one, parts_s);
    for (int i = 0; i < n; i++) {
        hunch_session_close(&chains[i].s);
        hunch_engine_close(&chains[i].e);
    }
    hunch_engine_close(&plain);
    hunch_model_close(&m);
    return 0;
}
