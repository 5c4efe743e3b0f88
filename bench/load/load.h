/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - a client of completion servers that measures them: load_server.c has options and the loop, load_http.c one connection,
 * load_prompts.c what is asked and when, load_report.c the figures. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct load_options {
    const char *host, *port, *prompts, *arrivals, *more, *texts, *same;
    int clients, requests, tokens, warm, long_prompt, cut; /* long_prompt, cut: 0: none */
    double rate, temperature;
    bool json, lengths, twice;
} load_options;

/* What is asked, and when. */
typedef struct load_request {
    char *body;
    size_t length;
    int prompt; /* its number in the file; -1: of the trace's length, or the long one */
    double at;  /* seconds after the start; in a closed loop 0 */
    bool measured, apart; /* apart: no row of it is kept for others */
} load_request;

typedef struct load_numbers {
    double *of;
    size_t n, room;
} load_numbers;

/* An answer while it comes: from the request to the last event. */
typedef struct load_answer {
    const load_request *asked;
    double due, first, newest; /* seconds; 0: not yet */
    int events, tokens;        /* tokens: what the server counts, else its events */
    char *text;
    size_t n_text, room_text;
    bool failed, ended;
    char why[160];
} load_answer;

typedef struct load_connection {
    int fd; /* -1: none */
    load_answer answer;
    size_t sent;
    char *in; /* of the body, without the marks of chunks: an event that is not complete */
    size_t n_in, room_in;
    char line[512]; /* of the head, or the mark of a chunk */
    size_t n_line;
    int state;
    size_t left; /* of a chunk */
    bool chunked;
} load_connection;

typedef struct load_run {
    load_options o;
    load_request *request;
    int n_requests, n_before; /* of them answered before the clock starts */
    load_connection *connection;
    int n_connections, epoll;
    double start, end;
    double long_from, long_to; /* while the long prompt was read; 0: never */
    int answered, failed, same, compared;
    long tokens;
    json_t *expected; /* answers by number; NULL */
    FILE *texts;
    load_numbers first, gap, long_gap, token, whole; /* seconds: to the first event; between two; these while a long prompt is read; of a
                                                        token; of an answer, from when it was due */
    char failure[160];
} load_run;

/* ---- load_http.c: false: errno or answer.why says why ---- */
bool load_connect(load_run *r, load_connection *c);
/* Sends, or reads events, as far as it goes without waiting. False: the connection is to be closed. */
bool load_send(load_run *r, load_connection *c);
bool load_receive(load_run *r, load_connection *c);
void load_close(load_run *r, load_connection *c);
/* Counters that a server has by vllm's names; below 0: it has not. */
enum { LOAD_DRAFTED, LOAD_ACCEPTED, LOAD_PREEMPTED, LOAD_RESTORED, LOAD_COUNTERS };
void load_counters_read(const load_options *o, double counter[LOAD_COUNTERS]);

/* ---- load_prompts.c ---- */
void load_requests_make(load_run *r);

/* ---- load_report.c ---- */
void load_number_add(load_numbers *x, double v);
void load_event(load_run *r, load_answer *a, const char *json); /* one event of a stream */
void load_answered(load_run *r, load_answer *a);
void load_report(load_run *r, double cpu_s, const double before[LOAD_COUNTERS], const double after[LOAD_COUNTERS]);

/* Ends the program. */
_Noreturn void load_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *load_alloc(size_t n);
void load_grow(char **p, size_t *room, size_t need);
#endif
