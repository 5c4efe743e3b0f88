/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.h - what an engine and its drafters count (engine_stats.c). */
#ifndef HN_STATISTICS_H
#define HN_STATISTICS_H
#include "engine/session.h"

/* ---- engine_stats.c ---- */

hunch_status hn_stats_open(hunch_engine *e, hunch_error *err);
void hn_stats_drafted(hunch_session *s);                           /* the drafts of its round were verified */
void hn_stats_accepted(hunch_session *s, int drafter, int depth); /* a candidate that was emitted */
#endif
