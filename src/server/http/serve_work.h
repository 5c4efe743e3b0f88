/* SPDX-License-Identifier: Apache-2.0 */
/* serve_work.h - threads for what takes long: reading a request (JSON, templates, tokens, grammars), writing a large answer. Each client
 * has a queue of its own, of which the oldest goes first, and the clients take turns: whoever asks for much waits for itself. What is
 * short has a thread beside those for what is long, which would make it wait for the length of others' tasks. The threads are nicer than
 * the engine's, and those of sockets never wait for them. */
#ifndef HN_SERVE_WORK_H
#define HN_SERVE_WORK_H

#include <stdbool.h>

typedef struct serve_work serve_work; /* any thread */

/* A task, part of what it is about; its owner keeps it until it was done or dropped. */
typedef struct serve_task {
    void (*run)(void *user, bool dropped); /* dropped: the server ends, nothing is to be done any more */
    void *user;
    bool is_long;
    struct serve_task *next;
} serve_task;

enum { SERVE_CLIENT = 80 }; /* bytes of a client's name */

/* threads: for what is long, and what is short when there is none of that; there is one more for what is short alone. most: tasks of one
 * client that may wait. NULL: the system gives no thread. */
serve_work *serve_work_new(int threads, int most);
/* Puts a task at the end of the client's queue for what is as long. False: that is full. */
bool serve_work_add(serve_work *w, const char *client, serve_task *task);
/* Whether no long task waits. */
bool serve_work_rests(serve_work *w);
/* Waits for the tasks that run, and drops the others; later ones are dropped at once, on the thread that adds them. */
void serve_work_stop(serve_work *w);
void serve_work_free(serve_work *w); /* after it was stopped; NULL is fine */
/* One thread for four of the machine's cores, at least one. */
int serve_work_threads(void);

#endif
