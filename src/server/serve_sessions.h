/* SPDX-License-Identifier: Apache-2.0 */
/* serve_sessions.h - the calls whose sessions are open, on the engine's thread: opening them, what came out of a round, clients that have
 * gone. */
#ifndef HN_SERVE_SESSIONS_H
#define HN_SERVE_SESSIONS_H

#include "server/serve_call.h"
#include "server/serve_metrics.h"

typedef struct serve_sessions serve_sessions;

serve_sessions *serve_sessions_new(hunch_engine *e, int parallel, serve_metrics *m);
/* Ends what is open. */
void serve_sessions_free(serve_sessions *s);
bool serve_sessions_room(const serve_sessions *s); /* more sessions may be opened */
int serve_sessions_open(const serve_sessions *s);  /* sessions and choices that are not done, 0: nothing to do */
/* Takes over the reference of the queue, and opens sessions of its choices, as many as there is room for. */
void serve_sessions_take(serve_sessions *s, serve_call *c);
/* Whether nobody waits for the call: the server abandoned it, or its connection is closed. Wakes streams that were silent for long. */
bool serve_sessions_look(serve_call *c);
/* Ends the sessions of calls for which nobody waits, and opens more of those that have choices left. */
void serve_sessions_sweep(serve_sessions *s);
/* After a round: what has ended is over, and connections with news are woken. */
void serve_sessions_report(serve_sessions *s);
/* What has a place then, [parallel]. */
const serve_place *serve_sessions_places(const serve_sessions *s);
/* The engine cannot continue: every call ends with this error. */
void serve_sessions_fail(serve_sessions *s, const hunch_error *err);
/* Ends a call that was never opened: gone, or the server ends. Releases the reference of the queue. */
void serve_sessions_refuse(serve_sessions *s, serve_call *c);

#endif
