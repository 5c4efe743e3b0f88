/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - thousands of answers in simulated time, for each policy: tokens a second, times to the first token and between tokens.
 * docs/benchmarks.md describes it.
 *
 *   simulate --record FILE --passes CSV [--clients 1,4,16,64] [--rates R,R] [--policies auto,plain,fixed,decode-only,goodput,tetris]
 *            [--depth 4] [--drafter NAME] [--capacity 64] [--answers 1000] [--tokens N] [--warm 4] [--shared N] [--max-pause MS]
 *            [--parallel 256] [--noise .04] [--rest .03] [--rest-text US] [--verify match]
 *
 * FILE is of hunch compare --record, CSV of hunch bench --csv. Closed loop: --clients, each of which asks again when it has its answer;
 * open loop: --rates, of requests a second. tokens: of an answer at most; warm: answers before the clock starts; shared: rows at the start
 * of every prompt that a server has from earlier ones. noise: standard deviation of a pass's time; rest: what a round takes besides, in
 * parts of its pass; rest-text: besides for each text whose tokens are sent, in microseconds: a server's threads share the cores.
 */
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../quantile.h"
#include "base/least.h"
#include "base/random.h"
#include "plan/tree_rows.h"
#include "simulate.h"

static const sim_policy *const policies[] = {&sim_auto, &sim_plain, &sim_fixed, &sim_decode_only, &sim_goodput, &sim_tetris};
enum { POLICIES = sizeof policies / sizeof *policies, MOST_PROMPT = 512, LEAST_PROMPT = 16 };

typedef struct world {
    sim_data data;
    sim_settings s;
    double max_pause, noise, rest, rest_text;
    int answers, tokens, warm, shared; /* tokens: 0: as recorded */
    uint64_t random;
    bool by_history;
} world;

typedef struct numbers {
    double *of;
    size_t n, room;
} numbers;

/* One run of a policy under a load. */
typedef struct run {
    const world *w;
    const sim_policy *p;
    void *state;
    sim_text text[SIM_TEXTS];
    int clients, asked, most, done; /* most: to be asked */
    double rate, now, due; /* of the next request of an open loop */
    uint64_t random, arrivals;
    numbers first, gap, token;
    double tokens, drafted, accepted, drafting;
} run;

void sim_fail(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fputs("simulate: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    exit(1);
}

void *sim_alloc(size_t n) {
    void *p = calloc(1, n ? n : 1);
    if (!p) sim_fail("no memory for %zu bytes", n);
    return p;
}

static void number_add(numbers *x, double v) {
    if (x->n == x->room) {
        x->room = x->room ? 2 * x->room : 4096;
        x->of = realloc(x->of, x->room * sizeof *x->of);
        if (!x->of) sim_fail("no memory");
    }
    x->of[x->n++] = v;
}

static double uniform(uint64_t *random) {
    return ((double)(hn_splitmix(random) >> 11) + 0.5) * 0x1p-53;
}

/* ---- texts ---- */

static void text_begin(run *r, int place, double due) {
    sim_text *t = &r->text[place];
    t->answer = &r->w->data.answer[r->asked++ % r->w->data.n_answers];
    t->read = hn_least(r->w->shared, t->answer->prompt - 1);
    t->at = 0;
    t->due = due;
    t->first = t->newest = -1;
    if (r->p->begin) r->p->begin(r->state, place);
}

/* Fills free places with requests that have come. */
static void texts_begin(run *r) {
    for (int i = 0; i < r->w->s.parallel && r->asked < r->most; i++) {
        if (r->text[i].answer) continue;
        if (r->rate > 0) {
            if (r->due > r->now) return;
            text_begin(r, i, r->due);
            r->due -= log(uniform(&r->arrivals)) / r->rate;
        } else if (i < r->clients) {
            text_begin(r, i, r->now);
        }
    }
}

static void emitted(run *r, sim_text *t, int n) {
    if (t->first < 0) {
        t->first = r->now;
        number_add(&r->first, r->now - t->due);
    } else {
        number_add(&r->gap, r->now - t->newest);
    }
    t->newest = r->now;
    r->tokens += n;
    if (t->at < t->answer->n - 1) return;
    if (t->answer->n > 1) number_add(&r->token, (t->newest - t->first) / (t->answer->n - 1));
    t->answer = NULL;
    r->done++;
}

/* ---- a round ---- */

/* Rows of prompts in the pass: as many as max_pause allows beside those that decode. */
static int prompt_budget(const run *r, int decoding, double context) {
    const sim_curve *c = &r->w->data.curve;
    if (decoding == 0) return MOST_PROMPT;
    const double left = r->w->max_pause - sim_pass(c, decoding, decoding, 0, context), each = c->prompt_row > 0 ? c->prompt_row : 1e-3;
    return hn_least(hn_most((int)(left / each), LEAST_PROMPT), MOST_PROMPT);
}

/* Those that read their prompts take `rows` of them, the oldest first; first: of which the last row is among them. */
static int prompts_read(run *r, int budget, bool take, bool *ends) {
    int rows = 0;
    for (;;) {
        int oldest = -1;
        for (int i = 0; i < r->w->s.parallel; i++)
            if (r->text[i].answer && r->text[i].read < r->text[i].answer->prompt && !ends[i] &&
                (oldest < 0 || r->text[i].due < r->text[oldest].due))
                oldest = i;
        if (oldest < 0 || rows == budget) return rows;
        sim_text *t = &r->text[oldest];
        const int n = hn_least(t->answer->prompt - t->read, budget - rows);
        rows += n;
        ends[oldest] = true; /* seen */
        if (take) t->read += n;
    }
}

static int accepted(const sim_text *t) {
    int n = 0;
    for (int row = 0; t->at + n + 2 < t->answer->n && (row = hn_tree_child(&t->tree, row, t->answer->token[t->at + n + 1])) >= 0;) n++;
    return n;
}

/* As the engine does without a controller: the likeliest rows that the passes take. */
static void trees_cut(sim_round *s) {
    static hn_plan_item list[SIM_TEXTS * HN_TREE_ROWS];
    static bool keep[SIM_TEXTS][HN_TREE_ROWS];
    const hn_tree *tree[SIM_TEXTS];
    int rows = 0;
    for (int i = 0; i < s->n; i++) rows += (tree[i] = &s->text[i]->tree)->n_rows;
    if (rows <= s->most_rows) return;
    hn_plan_cut_by_estimate(tree, s->n, s->most_rows - s->n, list, keep);
    for (int i = 0; i < s->n; i++) hn_tree_keep(&s->text[i]->tree, keep[i], NULL);
}

static void round_run(run *r) {
    const world *w = r->w;
    sim_round s = {.data = &w->data, .by_history = w->by_history};
    bool seen[SIM_TEXTS] = {false};
    double context = 0;
    int rows = 0;
    for (int i = 0; i < w->s.parallel; i++) {
        sim_text *t = &r->text[i];
        if (!t->answer || t->read < t->answer->prompt) continue;
        s.place[s.n] = i;
        s.text[s.n++] = t;
        context += t->answer->prompt + t->at;
        hn_tree_reset(&t->tree, t->answer->token[t->at], HN_TREE_ROWS);
    }
    if (s.n > 0) context /= s.n;
    const int budget = prompt_budget(r, s.n, context);
    s.prompt_rows = prompts_read(r, budget, false, seen);
    s.most_rows = s.n <= HN_TREE_ROWS / 2 ? HN_TREE_ROWS : s.n + HN_TREE_ROWS;
    if (s.n > 0) r->p->draft(r->state, &s);
    trees_cut(&s);
    for (int i = 0; i < s.n; i++) rows += s.text[i]->tree.n_rows;
    const double a = uniform(&r->random), gauss = sqrt(-2 * log(a)) * cos(6.283185307179586 * uniform(&r->random));
    const double pass = sim_pass(&w->data.curve, rows, s.n, s.prompt_rows, context) * (1 + w->rest) * exp(w->noise * gauss);
    r->now += pass + s.drafting + s.n * w->rest_text;
    r->drafting += s.drafting;
    for (int i = 0; i < s.n; i++) {
        s.text[i]->accepted = accepted(s.text[i]);
        r->drafted += s.text[i]->tree.n_rows - 1;
        r->accepted += s.text[i]->accepted;
    }
    if (s.n > 0 && r->p->passed) r->p->passed(r->state, &s, rows, pass);
    for (int i = 0; i < s.n; i++) {
        s.text[i]->at += s.text[i]->accepted + 1;
        emitted(r, s.text[i], s.text[i]->accepted + 1);
    }
    memset(seen, 0, sizeof seen);
    (void)prompts_read(r, budget, true, seen);
    for (int i = 0; i < w->s.parallel; i++)
        if (seen[i] && r->text[i].read == r->text[i].answer->prompt) emitted(r, &r->text[i], 1);
}

/* ---- runs ---- */

static double ms(numbers *x, double q) {
    return 1e3 * quantile(x->of, x->n, q);
}

/* Until all that are to be asked are answered. */
static void answers_run(run *r) {
    while (r->done < r->most) {
        int busy = 0;
        texts_begin(r);
        for (int i = 0; i < r->w->s.parallel; i++) busy += r->text[i].answer != NULL;
        if (busy == 0) r->now = r->due;
        else round_run(r);
    }
}

/* Before the clock starts: in a closed loop. */
static void warm_run(run *r, double rate) {
    r->most = r->w->warm;
    if (rate > 0) r->clients = r->w->warm;
    answers_run(r);
    r->rate = rate;
    r->most = r->w->answers;
    r->asked = r->done = 0;
    r->now = r->tokens = r->drafted = r->accepted = r->drafting = 0;
    r->first.n = r->gap.n = r->token.n = 0;
}

static void policy_run(const world *w, const sim_policy *p, int clients, double rate, double *base) {
    run *r = sim_alloc(sizeof *r);
    *r = (run){.w = w, .p = p, .clients = clients, .random = w->random, .arrivals = w->random};
    r->state = p->open(&w->data, &w->s);
    warm_run(r, rate);
    answers_run(r);
    const double speed = r->tokens / r->now;
    if (*base == 0) *base = speed;
    char load[32];
    snprintf(load, sizeof load, rate > 0 ? "%.3g/s" : "%.0f", rate > 0 ? rate : clients);
    printf("%-8s %-12s %9.1f %6.3f %8.0f %8.0f %7.1f %7.1f %7.1f %7.1f %7.2f %6.3f\n", load, p->name, speed, speed / *base,
           ms(&r->first, .5), ms(&r->first, .99), ms(&r->gap, .5), ms(&r->gap, .99), ms(&r->token, .5), ms(&r->token, .99),
           r->drafted > 0 ? r->accepted / r->drafted : 0, r->drafting / r->now);
    p->close(r->state);
    free(r->first.of), free(r->gap.of), free(r->token.of);
    free(r);
}

/* ---- options ---- */

static double number(const char *name, const char *value) {
    char *end;
    const double x = strtod(value, &end);
    if (*end || !(x >= 0)) sim_fail("--%s %s: expected a number", name, value);
    return x;
}

static int drafter_find(const sim_data *d, const char *name) {
    for (int i = 0; i < d->n_drafters; i++)
        if (!name || strstr(d->drafter[i], name)) return i;
    sim_fail("no drafter '%s' was recorded", name);
}

static const sim_policy *policy_find(const char *name, const char *rule) {
    for (int i = 0; i < POLICIES; i++) {
        if (strcmp(policies[i]->name, name) != 0) continue;
        if (!policies[i]->any_rule && strcmp(rule, "greedy") != 0 && strcmp(rule, "match") != 0)
            sim_fail("%s: under %s a cut by the drafted tokens' probabilities is not lossless", name, rule);
        return policies[i];
    }
    sim_fail("--policies: there is no '%s'", name);
}

typedef struct options {
    const char *record, *passes, *drafter, *rule;
    char *clients, *rates, *policies;
} options;

/* A flag and where its value goes: a text, or a number that is multiplied by `unit`. */
static void options_read(options *o, world *w, int argc, char **argv) {
    double depth = w->s.depth, parallel = w->s.parallel, answers = w->answers, warm = w->warm, tokens = 0, shared = 0;
    const struct {
        const char *name;
        const char **text;
        double *number, unit;
    } flag[] = {{"record", &o->record, NULL, 0},
                {"passes", &o->passes, NULL, 0},
                {"drafter", &o->drafter, NULL, 0},
                {"verify", &o->rule, NULL, 0},
                {"clients", (const char **)&o->clients, NULL, 0},
                {"rates", (const char **)&o->rates, NULL, 0},
                {"policies", (const char **)&o->policies, NULL, 0},
                {"depth", NULL, &depth, 1},
                {"capacity", NULL, &w->s.capacity, 1},
                {"answers", NULL, &answers, 1},
                {"tokens", NULL, &tokens, 1},
                {"warm", NULL, &warm, 1},
                {"shared", NULL, &shared, 1},
                {"parallel", NULL, &parallel, 1},
                {"max-pause", NULL, &w->max_pause, 1e-3},
                {"noise", NULL, &w->noise, 1},
                {"rest", NULL, &w->rest, 1},
                {"rest-text", NULL, &w->rest_text, 1e-6}};
    enum { FLAGS = sizeof flag / sizeof *flag };
    struct option known[FLAGS + 1] = {{0}};
    int k, i = 0;
    for (k = 0; k < FLAGS; k++) known[k] = (struct option){flag[k].name, required_argument, NULL, 'f'};
    while ((k = getopt_long(argc, argv, "", known, &i)) >= 0) {
        if (k != 'f') exit(2);
        if (flag[i].text) *flag[i].text = optarg;
        else *flag[i].number = number(flag[i].name, optarg) * flag[i].unit;
    }
    w->s.depth = (int)depth;
    w->s.parallel = (int)parallel;
    w->answers = (int)answers;
    w->tokens = (int)tokens;
    w->warm = (int)warm;
    w->shared = (int)shared;
    if (!o->record || !o->passes) sim_fail("expected --record FILE and --passes CSV");
    if (parallel < 1 || parallel > SIM_TEXTS) sim_fail("--parallel: expected 1 to %d", SIM_TEXTS);
}

/* All policies under each load of a list. */
static void loads_run(const world *w, const options *o, char *list, bool open) {
    char *save, *rest;
    for (char *load = strtok_r(list, ",", &save); load; load = strtok_r(NULL, ",", &save)) {
        char *names = strdup(o->policies);
        double base = 0;
        const double value = number(open ? "rates" : "clients", load);
        if (value <= 0 || (!open && value > w->s.parallel)) sim_fail("%s: expected a rate, or at most %d clients", load, w->s.parallel);
        for (char *p = strtok_r(names, ",", &rest); p; p = strtok_r(NULL, ",", &rest))
            policy_run(w, policy_find(p, o->rule), open ? 0 : (int)value, open ? value : 0, &base);
        free(names);
    }
}

int main(int argc, char **argv) {
    static char no_clients[1], no_rates[1], all[] = "plain,fixed,decode-only,goodput,tetris,auto";
    options o = {.rule = "match", .clients = no_clients, .rates = no_rates, .policies = all};
    world *w = sim_alloc(sizeof *w);
    *w = (world){.s = {.depth = 4, .parallel = SIM_TEXTS, .capacity = 64}, .max_pause = .1, .noise = .04, .rest = .03, .answers = 1000,
                 .warm = 4, .random = 48};
    options_read(&o, w, argc, argv);
    sim_record_read(&w->data, o.record);
    for (int i = 0; i < w->data.n_answers && w->tokens > 1; i++) w->data.answer[i].n = hn_least(w->data.answer[i].n, w->tokens);
    sim_curve_read(&w->data.curve, o.passes);
    w->s.drafter = drafter_find(&w->data, o.drafter);
    w->by_history = strcmp(o.rule, "greedy") != 0 && strcmp(o.rule, "match") != 0;
    printf("load     policy        tokens/s  ratio    first p50/99 ms  between p50/99  a token p50/99  accept  draft\n");
    loads_run(w, &o, o.clients, false);
    loads_run(w, &o, o.rates, true);
    return 0;
}
