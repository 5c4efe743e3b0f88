/* SPDX-License-Identifier: Apache-2.0 */
/* serve_log.c - see serve_log.h. */
#include "server/serve_log.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "server/serve_answer.h"

/* Of all choices together. */
typedef struct sums {
    uint64_t answer, drafted, accepted, cached;
    const char *finish;
} sums;

static sums sum(const serve_call *c) {
    sums s = {.finish = "abort"};
    for (int i = 0; i < c->n_choices; i++) {
        const hunch_session_state *st = &c->choices[i].state;
        s.answer += c->choices[i].n_tokens;
        s.drafted += st->drafted;
        s.accepted += st->accepted;
        s.cached += st->n_restored;
        if (st->finish == HUNCH_FINISH_FAILED) s.finish = "error";
        else if (st->finish != HUNCH_FINISH_CANCELLED) s.finish = st->finish == HUNCH_FINISH_LENGTH ? "length" : "stop";
    }
    return s;
}

static json_t *call_json(const serve_settings *s, serve_call *c) {
    pthread_mutex_lock(&c->lock);
    const sums all = sum(c);
    json_t *value = json_pack("{s:I,s:I,s:I,s:I,s:I,s:s,s:f}", "prompt_tokens", (json_int_t)serve_call_prompt_tokens(c), "cached_tokens",
                              (json_int_t)all.cached, "answer_tokens", (json_int_t)all.answer, "drafted", (json_int_t)all.drafted,
                              "accepted", (json_int_t)all.accepted, "finish", all.finish, "queued_s",
                              c->opened_s ? c->opened_s - c->received_s : 0.0);
    if (s->log_text && c->n_choices > 0) {
        const serve_choice *first = &c->choices[0];
        json_object_set_new(value, "prompt", serve_text_json(first->prompt->text.at, first->prompt->text.n));
        json_object_set_new(value, "answer", serve_text_json(first->text.at, first->text.n));
    }
    pthread_mutex_unlock(&c->lock);
    return value;
}

static void plain_write(const json_t *line, const json_t *call) {
    const char *text;
    char path[220];
    snprintf(path, sizeof path, "%s", json_string_value(json_object_get(line, "path")));
    fprintf(stderr, "%s %s %lld %.3f s", json_string_value(json_object_get(line, "method")), hn_utf8_mask(path, '?'),
            (long long)json_integer_value(json_object_get(line, "status")), json_real_value(json_object_get(line, "seconds")));
#define INT(name) (long long)json_integer_value(json_object_get(call, name))
    if (call)
        fprintf(stderr, ", prompt %lld (%lld cached), answer %lld, accepted %lld of %lld, %s", INT("prompt_tokens"), INT("cached_tokens"),
                INT("answer_tokens"), INT("accepted"), INT("drafted"), json_string_value(json_object_get(call, "finish")));
#undef INT
    fprintf(stderr, "%s %s\n", json_is_true(json_object_get(line, "completed")) ? "" : ", hung up",
            json_string_value(json_object_get(line, "id")));
    if ((text = json_string_value(json_object_get(call, "prompt")))) fprintf(stderr, "prompt: %s\n", text);
    if ((text = json_string_value(json_object_get(call, "answer")))) fprintf(stderr, "answer: %s\n", text);
}

void serve_log_request(const serve_settings *s, const char *method, const char *path, const char *id, int http, double seconds,
                       bool completed, serve_call *call) {
    if (s->quiet) return;
    json_t *line = json_pack("{s:I,s:s,s:s,s:o,s:i,s:f,s:b}", "time", (json_int_t)time(NULL), "id", id, "method", method, "path",
                             serve_text_json(path, strlen(path)), "status", http, "seconds", seconds, "completed", completed);
    json_t *what = call ? call_json(s, call) : NULL;
    if (s->log_json) {
        if (what) json_object_update(line, what);
        char *text = serve_json_dump(line, JSON_COMPACT);
        fprintf(stderr, "%s\n", text);
        hn_free(text);
    } else {
        flockfile(stderr);
        plain_write(line, what);
        funlockfile(stderr);
    }
    json_decref(what);
    json_decref(line);
}
