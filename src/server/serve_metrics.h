/* SPDX-License-Identifier: Apache-2.0 */
/* serve_metrics.h - counters and histograms of the server, in Prometheus' text format under vLLM's names. Any thread. */
#ifndef HN_SERVE_METRICS_H
#define HN_SERVE_METRICS_H

#include "server/http/serve_bytes.h"
#include "server/serve_call.h"

typedef struct serve_metrics serve_metrics;

serve_metrics *serve_metrics_new(void);
void serve_metrics_free(serve_metrics *m);
/* The engine's own numbers, on its thread, after a round. */
void serve_metrics_engine(serve_metrics *m, const hunch_engine *e);
/* A call is over: its tokens, its times, how its choices ended. Under the call's lock. */
void serve_metrics_call(serve_metrics *m, const serve_call *c);
/* Seconds between two outputs of a choice. */
void serve_metrics_pause(serve_metrics *m, double seconds);
/* Answers that are paused now, for slow readers. */
void serve_metrics_paused(serve_metrics *m, int n);
/* Refused before there was a call, by status. */
void serve_metrics_refused(serve_metrics *m, int http);
/* queued: calls that wait before the engine. */
void serve_metrics_write(serve_metrics *m, const char *model_name, int queued, serve_bytes *out);

#endif
