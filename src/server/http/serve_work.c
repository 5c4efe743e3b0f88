/* SPDX-License-Identifier: Apache-2.0 */
/* serve_work.c - see serve_work.h. Clients with tasks stand in a ring, one for long tasks and one for short ones; a thread takes the oldest
 * task of the first client, which goes to the ring's end. */
#include "server/http/serve_work.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/threads.h"
#include "server/http/serve_bytes.h"

enum { NICE = 10, CORES_A_THREAD = 4 };

typedef struct client {
    struct client *next; /* in the ring */
    char name[SERVE_CLIENT];
    serve_task *first, **end;
    int n;
} client;

struct serve_work {
    pthread_mutex_t lock;
    pthread_cond_t news; /* a task, or the end */
    pthread_t *thread;
    int threads, most;
    /* under the lock */
    client *ring[2]; /* those that have tasks: short ones, long ones */
    bool named;      /* the thread for short tasks is found */
    bool over;
};

int serve_work_threads(void) {
    const int n = hn_cores() / CORES_A_THREAD;
    return n > 1 ? n : 1;
}

/* Under the lock: the next task of a ring. The client goes behind the others, or away. */
static serve_task *task_take(client **ring) {
    client *c = *ring;
    serve_task *task = c->first;
    *ring = c->next;
    c->next = NULL;
    c->first = task->next;
    c->n--;
    if (!c->first) {
        hn_free(c);
        return task;
    }
    client **end = ring;
    while (*end) end = &(*end)->next;
    *end = c;
    return task;
}

static void *work(void *user) {
    serve_work *w = user;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE); /* of this thread alone */
    pthread_mutex_lock(&w->lock);
    const bool all = w->named;
    w->named = true;
    while (!w->over) {
        const int i = all && w->ring[1];
        if (!w->ring[i]) {
            pthread_cond_wait(&w->news, &w->lock);
            continue;
        }
        serve_task *task = task_take(&w->ring[i]);
        pthread_mutex_unlock(&w->lock);
        task->run(task->user, false);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

serve_work *serve_work_new(int threads, int most) {
    serve_work *w = serve_alloc(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->news, NULL);
    w->most = most;
    w->thread = serve_alloc((size_t)threads + 1, sizeof *w->thread);
    while (w->threads <= threads && pthread_create(&w->thread[w->threads], NULL, work, w) == 0) w->threads++;
    if (w->threads >= 2) return w; /* fewer than were wanted do it, too */
    serve_work_stop(w);
    serve_work_free(w);
    return NULL;
}

static client *client_of(client **at, const char *name) {
    while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    if (*at) return *at;
    *at = serve_alloc(1, sizeof **at);
    snprintf((*at)->name, sizeof (*at)->name, "%s", name);
    (*at)->end = &(*at)->first;
    return *at;
}

bool serve_work_add(serve_work *w, const char *name, serve_task *task) {
    task->next = NULL;
    pthread_mutex_lock(&w->lock);
    const bool over = w->over;
    client *c = over ? NULL : client_of(&w->ring[task->is_long], name);
    const bool ok = over || c->n < w->most;
    if (c && ok) {
        *c->end = task;
        c->end = &task->next;
        c->n++;
        pthread_cond_broadcast(&w->news); /* not every thread takes it */
    }
    pthread_mutex_unlock(&w->lock);
    if (over) task->run(task->user, true);
    return ok;
}

bool serve_work_rests(serve_work *w) {
    pthread_mutex_lock(&w->lock);
    const bool rests = !w->ring[1];
    pthread_mutex_unlock(&w->lock);
    return rests;
}

void serve_work_stop(serve_work *w) {
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_broadcast(&w->news);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->threads; i++) pthread_join(w->thread[i], NULL);
    w->threads = 0;
    for (int i = 0; i < 2; i++)
        while (w->ring[i]) {
            serve_task *task = task_take(&w->ring[i]);
            task->run(task->user, true);
        }
}

void serve_work_free(serve_work *w) {
    if (!w) return;
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->news);
    hn_free(w->thread);
    hn_free(w);
}
