/* SPDX-License-Identifier: Apache-2.0 */
/* serve_engine.h - the one thread that owns the engine, and the queue of calls in front of it.
 *
 * Other threads submit calls and abandon them; the thread looks at both between two rounds. What becomes of a call: serve_call.h. */
#ifndef HN_SERVE_ENGINE_H
#define HN_SERVE_ENGINE_H

#include "server/serve_call.h"
#include "server/protocols/serve_error.h"
#include "server/serve_metrics.h"

typedef struct serve_engine serve_engine;

typedef struct serve_engine_options {
    int parallel; /* sessions at once */
    int queue;    /* calls that may wait; more are refused */
    serve_metrics *metrics;
    /* Opens model and engine, on the thread, after a message if it fails; an exit code. */
    int (*open)(void *user, hunch_model **m, hunch_engine **e);
    /* The thread ends: the code of open, or of the engine's failure; 0: it was stopped. */
    void (*ended)(void *user, int code);
    void (*ready)(void *user, hunch_model *m, hunch_engine *e); /* on the thread, before the first call can be submitted */
    void (*ready_say)(void *user, hunch_model *m, hunch_engine *e); /* once it can; NULL: nobody is told */
    void *user;
} serve_engine_options;

typedef enum serve_phase { SERVE_LOADING, SERVE_READY, SERVE_DRAINING, SERVE_ENDED } serve_phase;

serve_engine *serve_engine_new(const serve_engine_options *o); /* loading; before its thread starts nothing else happens */
bool serve_engine_start(serve_engine *e);                       /* false: the system gave no thread */
serve_phase serve_engine_phase(serve_engine *e);
/* The model: any thread may use it while the server is not loading. NULL: it is. */
hunch_model *serve_engine_model(serve_engine *e);
int serve_engine_context(serve_engine *e);
/* Puts a call into the queue. False: it is refused, *err says why (429: the queue is full; 503: not ready). */
bool serve_engine_submit(serve_engine *e, serve_call *c, serve_error *err);
/* Nobody waits for a call any more. Any thread; the call may be over already. */
void serve_engine_abandon(serve_engine *e, serve_call *c);
/* The reader of a paused stream has taken what waited for it. Any thread. */
void serve_engine_look(serve_engine *e);
/* New calls are refused from now on; those that are there are answered. */
void serve_engine_drain(serve_engine *e);
bool serve_engine_idle(serve_engine *e); /* no call is queued or running */
/* Ends every call, and the thread. Closes engine and model. */
void serve_engine_stop(serve_engine *e);
/* After the last use of the handle by any thread. */
void serve_engine_free(serve_engine *e);

typedef struct serve_load {
    int queued, running; /* calls that wait, sessions that are open */
} serve_load;
serve_load serve_engine_load(serve_engine *e);
/* What runs in place i, counted from 0, after the newest round. */
serve_place serve_engine_place(serve_engine *e, int i);

#endif
