/* SPDX-License-Identifier: Apache-2.0 */
/* serve_answer.h - what a call gave, as OpenAI's objects: a whole answer, and the parts that
 * other protocols share. Under the lock of the call. */
#ifndef HN_SERVE_ANSWER_H
#define HN_SERVE_ANSWER_H

#include "server/serve_server.h"

/* The error of a call that failed: the first choice's that did. False: none failed. */
bool serve_answer_failed(const serve_call *c, serve_error *err);
/* chat.completion or text_completion; every choice is done. */
json_t *serve_answer_json(const serve_server *s, serve_call *c);

/* ---- parts ---- */

/* What of a choice is the answer: of a chat without its thinking, unless the call wants it whole. */
const serve_bytes *serve_choice_answer(const serve_choice *c);
/* Whether it ended at a limit, not by itself; its state is known. */
bool serve_is_cut(const serve_choice *c);
/* Whether a stop string or a stop token of the request ended it. */
bool serve_is_stopped(const serve_choice *c);
/* null while it runs. */
json_t *serve_finish_json(const serve_choice *c);
/* What ended it, "stop_reason"; null: an end-of-sequence token, or its length. */
json_t *serve_stop_json(const serve_choice *c);
json_t *serve_usage_json(const serve_call *c);
/* Tokens [from, to) of a choice, as a chat's or a completion's "logprobs". With echo the tokens of the prompt come first. before: bytes of
 * text before the first of them. */
json_t *serve_logprobs_json(const serve_choice *c, size_t from, size_t to, size_t before);
json_t *serve_tokens_json(const serve_choice *c, size_t from, size_t to); /* the same as a chat's list, whatever the call is */
size_t serve_echoed(const serve_choice *c); /* tokens of the prompt that an answer begins with */
size_t serve_thinking_tokens(const serve_choice *c); /* tokens before the end of its thinking */
json_t *serve_ids_json(const hunch_token *ids, size_t n);
json_t *serve_text_json(const char *bytes, size_t n); /* what is not UTF-8 becomes U+FFFD */
json_t *serve_timings_json(const serve_choice *c); /* as llama.cpp's server: milliseconds */
/* Adds "metrics" and "timings" to an answer or its last event, if the call wants them. */
void serve_figures_add(json_t *to, const serve_call *c);

#endif
