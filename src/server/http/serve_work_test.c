/* SPDX-License-Identifier: Apache-2.0 */
/* serve_work_test.c - who waits for whom: clients take turns, each one's tasks keep their order, what is short does not wait for what is
 * long; full queues; the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "server/http/serve_work.h"

enum { MOST = 3, TASKS = 8 };

typedef struct job {
    serve_task task;
    char name;
    bool waits; /* until it may end */
} job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[64];
static sem_t begun, may_end, done;

static void run(void *user, bool dropped) {
    job *j = user;
    if (j->waits && !dropped) sem_post(&begun), sem_wait(&may_end);
    pthread_mutex_lock(&lock);
    const size_t n = strlen(order);
    order[n] = dropped ? '-' : j->name;
    order[n + 1] = 0;
    pthread_mutex_unlock(&lock);
    sem_post(&done);
}

static void init(void) {
    order[0] = 0;
    sem_init(&begun, 0, 0);
    sem_init(&may_end, 0, 0);
    sem_init(&done, 0, 0);
}

static bool add(serve_work *w, job *j, const char *client, char name, bool is_long) {
    *j = (job){.task = {.run = run, .user = j, .is_long = is_long}, .name = name};
    return serve_work_add(w, client, &j->task);
}

/* A long task that runs until may_end. */
static void occupy(serve_work *w, job *j) {
    *j = (job){.task = {.run = run, .user = j, .is_long = true}, .name = '.', .waits = true};
    assert_true(serve_work_add(w, "busy", &j->task));
    sem_wait(&begun);
}

static void test_clients_take_turns(void **state) {
    job j[TASKS];
    (void)state;
    init();
    serve_work *w = serve_work_new(1, MOST);
    assert_non_null(w);
    occupy(w, &j[0]);
    for (int i = 0; i < MOST; i++) assert_true(add(w, &j[1 + i], "a", (char)('1' + i), true));
    assert_false(add(w, &j[6], "a", 'x', true)); /* full */
    assert_true(add(w, &j[4], "b", 'b', true));
    assert_true(add(w, &j[5], "c", 'c', true));
    assert_true(add(w, &j[7], "a", 's', false)); /* the queue for short ones is another */
    sem_wait(&done);
    assert_string_equal(order, "s");
    sem_post(&may_end);
    for (int i = 0; i < 6; i++) sem_wait(&done);
    assert_string_equal(order, "s.1bc23");
    serve_work_stop(w);
    serve_work_free(w);
}

/* What waits when the server ends is dropped, and what comes later, too. */
static void test_the_end(void **state) {
    job j[3];
    (void)state;
    init();
    serve_work *w = serve_work_new(1, MOST);
    assert_non_null(w);
    occupy(w, &j[0]);
    assert_true(add(w, &j[1], "a", 'a', true));
    sem_post(&may_end);
    serve_work_stop(w);
    assert_true(strcmp(order, ".-") == 0 || strcmp(order, ".a") == 0);
    assert_true(add(w, &j[2], "a", 'b', false));
    assert_true(strlen(order) == 3 && order[2] == '-');
    serve_work_free(w);
    serve_work_free(NULL);
}

static void test_threads(void **state) {
    (void)state;
    assert_true(serve_work_threads() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clients_take_turns), cmocka_unit_test(test_the_end),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
