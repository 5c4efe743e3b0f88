/* SPDX-License-Identifier: Apache-2.0 */
/* serve_engine.c - see serve_engine.h: the queue, and the thread's loop. What it does with calls in one round: serve_sessions.h. */
#include "server/serve_engine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/serve_sessions.h"

struct serve_engine {
    serve_engine_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* calls, the end */
    /* under the lock */
    serve_phase phase;
    bool stop;
    bool looked_for; /* something happened that the thread should look at, though nothing runs */
    hunch_model *model;
    int context;
    serve_call *first; /* the queue, in the order in which it is opened */
    int queued;
    serve_load load;
    serve_place *place; /* [o.parallel] */
    /* the thread */
    hunch_engine *engine;
    serve_sessions *sessions;
    serve_call **listed; /* [o.queue] */
};

/* ---- other threads ------------------------------------------------------------------------------------------- */

serve_phase serve_engine_phase(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    const serve_phase phase = e->phase;
    pthread_mutex_unlock(&e->lock);
    return phase;
}

hunch_model *serve_engine_model(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    hunch_model *m = e->model;
    pthread_mutex_unlock(&e->lock);
    return m;
}

int serve_engine_context(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    const int context = e->context;
    pthread_mutex_unlock(&e->lock);
    return context;
}

serve_load serve_engine_load(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    const serve_load load = {e->queued, e->load.running};
    pthread_mutex_unlock(&e->lock);
    return load;
}

serve_place serve_engine_place(serve_engine *e, int i) {
    pthread_mutex_lock(&e->lock);
    const serve_place place = e->place[i];
    pthread_mutex_unlock(&e->lock);
    return place;
}

/* Behind those of its priority. */
static void queue_insert(serve_engine *e, serve_call *c) {
    serve_call **at = &e->first;
    while (*at && (*at)->request.priority >= c->request.priority) at = &(*at)->next;
    c->next = *at;
    *at = c;
    e->queued++;
}

static bool refuse(serve_engine *e, serve_error *err) {
    if (e->phase == SERVE_LOADING) serve_fail(err, 503, NULL, "the model is still being loaded");
    else if (e->phase == SERVE_READY)
        serve_fail(err, 429, NULL, "%d requests wait already, and the queue holds no more", e->queued);
    else serve_fail(err, 503, NULL, "the server is shutting down");
    err->retry_after = 1;
    return false;
}

bool serve_engine_submit(serve_engine *e, serve_call *c, serve_error *err) {
    pthread_mutex_lock(&e->lock);
    const bool ok = e->phase == SERVE_READY && e->queued < e->o.queue;
    if (ok) {
        atomic_fetch_add(&c->references, 1);
        queue_insert(e, c);
        pthread_cond_signal(&e->news);
    } else refuse(e, err);
    pthread_mutex_unlock(&e->lock);
    return ok;
}

void serve_engine_abandon(serve_engine *e, serve_call *c) {
    pthread_mutex_lock(&c->lock);
    c->gone = true;
    c->wake = NULL;
    c->fd = -1;
    pthread_mutex_unlock(&c->lock);
    serve_engine_look(e);
}

void serve_engine_look(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    e->looked_for = true;
    pthread_cond_signal(&e->news);
    pthread_mutex_unlock(&e->lock);
}

void serve_engine_drain(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    if (e->phase == SERVE_READY) e->phase = SERVE_DRAINING;
    pthread_mutex_unlock(&e->lock);
}

bool serve_engine_idle(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    const bool idle = !e->first && e->load.running == 0;
    pthread_mutex_unlock(&e->lock);
    return idle;
}

void serve_engine_stop(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_signal(&e->news);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
}

void serve_engine_free(serve_engine *e) {
    hunch_model_close(&e->model);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->news);
    hn_free(e->listed);
    hn_free(e->place);
    hn_free(e);
}

/* ---- the thread ---------------------------------------------------------------------------------------------- */

/* The next call of the queue, or NULL. */
static serve_call *queue_take(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    serve_call *c = e->first;
    if (c) {
        e->first = c->next;
        c->next = NULL;
        e->queued--;
        e->load.running++; /* until the sessions are counted: it is never neither queued nor running */
    }
    pthread_mutex_unlock(&e->lock);
    return c;
}

/* The calls of the queue as they stand now. Only this thread takes calls out of it, so they stay. */
static int queue_list(serve_engine *e) {
    int n = 0;
    pthread_mutex_lock(&e->lock);
    for (serve_call *c = e->first; c; c = c->next) e->listed[n++] = c;
    pthread_mutex_unlock(&e->lock);
    return n;
}

static void queue_remove(serve_engine *e, const serve_call *c) {
    pthread_mutex_lock(&e->lock);
    serve_call **at = &e->first;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    e->queued--;
    pthread_mutex_unlock(&e->lock);
}

/* Calls of the queue whose clients have gone leave it. The lock of a call is never taken under that of the queue. */
static void queue_sweep(serve_engine *e) {
    const int n = queue_list(e);
    for (int i = 0; i < n; i++) {
        if (!serve_sessions_look(e->listed[i])) continue;
        queue_remove(e, e->listed[i]);
        serve_sessions_refuse(e->sessions, e->listed[i]);
    }
}

/* Under the lock, for a moment: clients of paused answers may hang up, and their deadlines pass. */
static void wait_a_moment(serve_engine *e) {
    enum { MOMENT_NS = 100000000, SECOND_NS = 1000000000 };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOMENT_NS;
    if (until.tv_nsec >= SECOND_NS) until.tv_sec++, until.tv_nsec -= SECOND_NS;
    pthread_cond_timedwait(&e->news, &e->lock, &until);
}

/* Sleeps until there is something to do. False: the end. */
static bool wait_for_news(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    e->load.running = serve_sessions_open(e->sessions);
    while (!e->stop && !e->first && e->load.running == 0) pthread_cond_wait(&e->news, &e->lock);
    if (!e->stop && !e->first && !e->looked_for && hunch_engine_running(e->engine) == 0) wait_a_moment(e); /* all are paused */
    e->looked_for = false;
    const bool go_on = !e->stop;
    pthread_mutex_unlock(&e->lock);
    return go_on;
}

/* What has a place, for those who ask. */
static void places_tell(serve_engine *e) {
    const serve_place *from = serve_sessions_places(e->sessions);
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->o.parallel; i++)
        if (from[i].taken) e->place[i] = from[i];
        else e->place[i].taken = false;
    pthread_mutex_unlock(&e->lock);
}

static int rounds(serve_engine *e) {
    hunch_error err = {0};
    while (wait_for_news(e)) {
        queue_sweep(e);
        serve_sessions_sweep(e->sessions);
        for (serve_call *c; serve_sessions_room(e->sessions) && (c = queue_take(e));) serve_sessions_take(e->sessions, c);
        if (hunch_engine_running(e->engine) && hunch_engine_round(e->engine, &err) != HUNCH_OK) {
            serve_sessions_fail(e->sessions, &err);
            return (int)err.status;
        }
        serve_sessions_report(e->sessions);
        places_tell(e);
    }
    return 0;
}

/* Whatever is queued when the thread ends is refused. */
static void end(serve_engine *e) {
    pthread_mutex_lock(&e->lock);
    e->phase = SERVE_ENDED;
    serve_call *left = e->first;
    e->first = NULL;
    e->queued = 0;
    e->load.running = 0;
    pthread_mutex_unlock(&e->lock);
    for (serve_call *next; left; left = next) {
        next = left->next;
        serve_sessions_refuse(e->sessions, left);
    }
}

static void *run(void *user) {
    serve_engine *e = user;
    hunch_model *m = NULL;
    int code = e->o.open(e->o.user, &m, &e->engine);
    if (!code) {
        e->sessions = serve_sessions_new(e->engine, e->o.parallel, e->o.metrics);
        e->o.ready(e->o.user, m, e->engine);
        pthread_mutex_lock(&e->lock);
        e->model = m;
        e->context = hunch_engine_context(e->engine);
        e->phase = SERVE_READY;
        pthread_mutex_unlock(&e->lock);
        if (e->o.ready_say) e->o.ready_say(e->o.user, m, e->engine);
        code = rounds(e);
    }
    end(e);
    serve_sessions_free(e->sessions);
    hunch_engine_close(&e->engine);
    if (e->model != m) hunch_model_close(&m);
    e->o.ended(e->o.user, code);
    return NULL;
}

serve_engine *serve_engine_new(const serve_engine_options *o) {
    serve_engine *e = serve_alloc(1, sizeof *e);
    e->o = *o;
    e->listed = serve_alloc((size_t)o->queue, sizeof(serve_call *));
    e->place = serve_alloc((size_t)o->parallel, sizeof *e->place);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->news, NULL);
    return e;
}

bool serve_engine_start(serve_engine *e) { return pthread_create(&e->thread, NULL, run, e) == 0; }
