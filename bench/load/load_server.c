/* SPDX-License-Identifier: Apache-2.0 */
/* load_server.c - clients of a server that speaks OpenAI's completions, in one thread with epoll: tokens a second, times to the first
 * token and between tokens, for one program as for another. docs/benchmarks.md describes it.
 *
 *   load_server --clients N [OPTIONS] HOST:PORT PROMPTS.jsonl      closed loop: each client asks again when it has its answer
 *   load_server --rate R [OPTIONS] HOST:PORT PROMPTS.jsonl         open loop: R requests a second on average, whatever is answered
 *
 *     --requests N      measured: default 3 x the clients, at least 16
 *     --warm N          answered before (default: 4)
 *     --twice           all are answered before, too, with another cache_salt, so that no row of them is kept: for servers that look the
 *                       answers up, to draft what is right with a given probability (forced)
 *     --tokens N        of an answer at most (default 128)
 *     --temperature T   default 0
 *     --more JSON       fields of every request
 *     --arrivals FILE   of the open loop: a trace's times, scaled to the rate (bench/traces); else they are even
 *     --lengths         prompts and answers have the trace's lengths, of random tokens; --cut N: at most N of each
 *     --long N          after a third of the requests comes one with a prompt of N tokens; gaps until it is read are reported, too
 *     --texts FILE      writes the answers
 *     --same FILE       counts answers that are equal to those of FILE
 *     --json
 *
 * Of a server with vllm's metrics also tokens drafted and accepted, texts that were preempted, rows of prompts that were restored.
 * The answers' tokens are those that the server counts in its events (continuous_usage_stats), else its events. Of the client: its time on
 * a processor, in parts of one (client_cpu).
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "load.h"

void load_fail(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fputs("load_server: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    exit(1);
}

void *load_alloc(size_t n) {
    void *p = calloc(1, n ? n : 1);
    if (!p) load_fail("no memory for %zu bytes", n);
    return p;
}

void load_grow(char **p, size_t *room, size_t need) {
    if (need <= *room) return;
    *room = need < 2 * *room ? 2 * *room : need < 4096 ? 4096 : need;
    *p = realloc(*p, *room);
    if (!*p) load_fail("no memory for %zu bytes", *room);
}

/* ---- the loop ---- */

static void ask(load_run *r, load_connection *c, const load_request *q, double due) {
    c->answer = (load_answer){.asked = q, .due = due};
    if (q->measured && q->prompt == -1 && r->o.long_prompt) r->long_from = due;
    if (!load_connect(r, c)) load_fail("%s:%s: cannot connect", r->o.host, r->o.port);
}

static load_connection *idle(load_run *r) {
    for (int i = 0; i < r->n_connections; i++)
        if (r->connection[i].fd < 0) return &r->connection[i];
    return NULL;
}

/* Milliseconds until the next request is due, having begun those that are; -1: none is to come. */
static int requests_begin(load_run *r, int *next, int end, bool open) {
    load_connection *c;
    while (*next < end && (c = idle(r))) {
        const load_request *q = &r->request[*next];
        const double now = hn_now(), due = open ? r->start + q->at : now;
        if (due > now) return (int)(1e3 * (due - now)) + 1;
        (*next)++;
        ask(r, c, q, due);
    }
    return -1;
}

/* Whether its request has ended. */
static bool connection_step(load_run *r, const struct epoll_event *e) {
    load_connection *c = e->data.ptr;
    bool stays = true;
    if (e->events & EPOLLOUT) stays = load_send(r, c);
    if (stays && e->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) stays = load_receive(r, c);
    if (stays) return false;
    load_close(r, c);
    load_answered(r, &c->answer);
    return true;
}

/* The requests from `next` to `end`. */
static void requests_run(load_run *r, int next, int end, bool open) {
    struct epoll_event event[64];
    for (int left = end - next; left > 0;) {
        const int wait = requests_begin(r, &next, end, open), n = epoll_wait(r->epoll, event, 64, wait);
        for (int i = 0; i < n; i++) left -= connection_step(r, &event[i]);
    }
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void run(load_run *r) {
    double before[LOAD_COUNTERS], after[LOAD_COUNTERS];
    const bool open = r->o.rate > 0;
    if ((r->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) load_fail("no epoll");
    r->n_connections = open ? r->n_requests : r->o.clients;
    r->connection = load_alloc((size_t)r->n_connections * sizeof *r->connection);
    for (int i = 0; i < r->n_connections; i++) r->connection[i].fd = -1;
    requests_run(r, 0, r->n_before, false);
    load_counters_read(&r->o, before);
    const double cpu = cpu_seconds();
    r->start = hn_now();
    requests_run(r, r->n_before, r->n_requests, open);
    r->end = hn_now();
    const double used = cpu_seconds() - cpu;
    load_counters_read(&r->o, after);
    load_report(r, used, before, after);
}

/* ---- options ---- */

static json_t *answers_read(const char *path) {
    static char line[1 << 20];
    FILE *f = fopen(path, "r");
    json_t *all = json_object();
    if (!f) load_fail("%s: cannot be opened", path);
    while (fgets(line, sizeof line, f)) {
        json_t *row = json_loads(line, 0, NULL);
        char key[32];
        snprintf(key, sizeof key, "%d", (int)json_integer_value(json_object_get(row, "n")));
        json_object_set(all, key, json_object_get(row, "text"));
        json_decref(row);
    }
    fclose(f);
    return all;
}

static int whole(const char *name, const char *value, int least) {
    char *end;
    const long n = strtol(value, &end, 10);
    if (*end || n < least || n > 1000000) load_fail("--%s %s: expected a whole number of %d or more", name, value, least);
    return (int)n;
}

static double number(const char *name, const char *value) {
    char *end;
    const double x = strtod(value, &end);
    if (*end || !(x >= 0)) load_fail("--%s %s: expected a number", name, value);
    return x;
}

static void options_read(load_options *o, int argc, char **argv) {
    static const struct option known[] = {
        {"clients", 1, 0, 'c'},  {"rate", 1, 0, 'r'}, {"requests", 1, 0, 'n'},    {"warm", 1, 0, 'w'},     {"tokens", 1, 0, 't'},
        {"more", 1, 0, 'm'},     {"long", 1, 0, 'l'}, {"temperature", 1, 0, 'T'}, {"arrivals", 1, 0, 'a'}, {"lengths", 0, 0, 'L'},
        {"cut", 1, 0, 'C'},      {"same", 1, 0, 's'}, {"texts", 1, 0, 'x'},       {"json", 0, 0, 'j'},     {"twice", 0, 0, '2'},
        {0}};
    int k, i = 0;
    while ((k = getopt_long(argc, argv, "", known, &i)) >= 0) {
        const char *name = k == '?' ? "" : known[i].name;
        if (k == 'c') o->clients = whole(name, optarg, 1);
        else if (k == 'r') o->rate = number(name, optarg);
        else if (k == 'n') o->requests = whole(name, optarg, 1);
        else if (k == 'w') o->warm = whole(name, optarg, 0);
        else if (k == 't') o->tokens = whole(name, optarg, 1);
        else if (k == 'T') o->temperature = number(name, optarg);
        else if (k == 'C') o->cut = whole(name, optarg, 1);
        else if (k == 'l') o->long_prompt = whole(name, optarg, 1);
        else if (k == 'm') o->more = optarg;
        else if (k == 'a') o->arrivals = optarg;
        else if (k == 'x') o->texts = optarg;
        else if (k == 's') o->same = optarg;
        else if (k == 'L') o->lengths = true;
        else if (k == '2') o->twice = true;
        else if (k == 'j') o->json = true;
        else exit(2);
    }
    char *colon = optind < argc ? strrchr(argv[optind], ':') : NULL;
    if (!colon || argc - optind != (o->lengths ? 1 : 2)) load_fail("expected HOST:PORT and, without --lengths, a file of prompts");
    if (!o->clients == !(o->rate > 0)) load_fail("expected one of --clients and --rate");
    if (o->lengths && !o->arrivals) load_fail("--lengths: expected --arrivals FILE");
    *colon = 0;
    o->host = argv[optind];
    o->port = colon + 1;
    o->prompts = o->lengths ? NULL : argv[optind + 1];
    if (!o->requests) o->requests = 3 * o->clients < 16 ? 16 : 3 * o->clients;
}

int main(int argc, char **argv) {
    load_run r = {.o = {.tokens = 128, .warm = 4}};
    options_read(&r.o, argc, argv);
    if (r.o.same) r.expected = answers_read(r.o.same);
    if (r.o.texts && !(r.texts = fopen(r.o.texts, "w"))) load_fail("%s: cannot be written", r.o.texts);
    load_requests_make(&r);
    run(&r);
    if (r.texts && fclose(r.texts)) load_fail("%s: cannot be written", r.o.texts);
    return r.failed ? 1 : 0;
}
