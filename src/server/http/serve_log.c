/* SPDX-License-Identifier: Apache-2.0 */
/* serve_log.c - see serve_log.h. */
#include "server/http/serve_log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "server/protocols/serve_about.h"
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
        else if (st->finish != HUNCH_FINISH_CANCELLED) s.finish = serve_is_cut(&c->choices[i]) ? "length" : "stop";
    }
    return s;
}

static json_t *call_json(const serve_settings *s, serve_call *c) {
    pthread_mutex_lock(&c->lock);
    serve_call_collect(c);
    const double queued_s = c->opened_s ? c->opened_s - c->received_s : 0;
    pthread_mutex_unlock(&c->lock);
    serve_call_absorb(c);
    const sums all = sum(c);
    json_t *value = json_pack("{s:I,s:I,s:I,s:I,s:I,s:s,s:f}", "prompt_tokens", (json_int_t)serve_call_prompt_tokens(c), "cached_tokens",
                              (json_int_t)all.cached, "answer_tokens", (json_int_t)all.answer, "drafted", (json_int_t)all.drafted,
                              "accepted", (json_int_t)all.accepted, "finish", all.finish, "queued_s",
                              queued_s);
    if (s->log_text && c->n_choices > 0) {
        const serve_choice *first = &c->choices[0];
        json_object_set_new(value, "prompt", serve_text_json(first->prompt->text.at, first->prompt->text.n));
        json_object_set_new(value, "answer", serve_text_json(first->text.at, first->text.n));
    }
    return value;
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

/* Whether a terminal, or a reader of lines, could take a character for more than a character: controls, and marks of direction. */
static bool is_odd(uint32_t c) {
    return c < ' ' || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Text of clients on one line: what is odd, or no UTF-8, as escapes. */
static void text_put(serve_bytes *line, const char *text) {
    const char *end = text + strlen(text);
    while (text < end) {
        uint32_t c = 0;
        const int n = hn_utf8_decode(text, (size_t)(end - text), &c);
        if (n <= 0) serve_bytes_print(line, "\\x%02x", (unsigned char)*text);
        else if (c == '\\') serve_bytes_put(line, "\\\\");
        else if (c == '\n') serve_bytes_put(line, "\\n");
        else if (is_odd(c)) serve_bytes_print(line, "\\u{%x}", (unsigned)c);
        else serve_bytes_print(line, "%.*s", n, text);
        text += n > 0 ? n : 1;
    }
}

static void plain_make(serve_bytes *line, const serve_log_entry *e, const json_t *call) {
    const char *text;
    char now[SERVE_TIME];
    serve_bytes_print(line, "%s %s ", serve_time(time(NULL), now), e->client);
    text_put(line, e->key ? e->key : "-");
    serve_bytes_put(line, " ");
    text_put(line, e->method);
    serve_bytes_put(line, " ");
    text_put(line, e->path);
    serve_bytes_print(line, " %d %.3f s", e->http, e->seconds);
#define INT(name) (long long)json_integer_value(json_object_get(call, name))
    if (call)
        serve_bytes_print(line, ", prompt %lld (%lld cached), answer %lld, accepted %lld of %lld, %s", INT("prompt_tokens"),
                          INT("cached_tokens"), INT("answer_tokens"), INT("accepted"), INT("drafted"),
                          json_string_value(json_object_get(call, "finish")));
#undef INT
    if (e->ended) serve_bytes_print(line, ", %s", e->ended);
    serve_bytes_print(line, " %s", e->id);
    if (e->reason) serve_bytes_put(line, ": "), text_put(line, e->reason);
    serve_bytes_put(line, "\n");
    if ((text = json_string_value(json_object_get(call, "prompt")))) {
        serve_bytes_put(line, "prompt: "), text_put(line, text), serve_bytes_put(line, "\n");
    }
    if ((text = json_string_value(json_object_get(call, "answer")))) {
        serve_bytes_put(line, "answer: "), text_put(line, text), serve_bytes_put(line, "\n");
    }
}

static json_t *text_or_null(const char *text) { return text ? serve_text_json(text, strlen(text)) : json_null(); }

static void json_make(serve_bytes *line, const serve_log_entry *e, json_t *call) {
    json_t *all = json_pack("{s:I,s:s,s:s,s:o,s:o,s:o,s:i,s:f,s:b,s:o,s:o}", "time", (json_int_t)time(NULL), "id",
                            e->id, "client", e->client, "key", text_or_null(e->key), "method", text_or_null(e->method),
                            "path", text_or_null(e->path), "status", e->http, "seconds", e->seconds, "completed",
                            e->ended == NULL, "ended", text_or_null(e->ended), "reason", text_or_null(e->reason));
    if (call) json_object_update(all, call);
    char *text = serve_json_dump(all, JSON_COMPACT | JSON_ENSURE_ASCII);
    serve_bytes_put(line, text);
    serve_bytes_put(line, "\n");
    hn_free(text);
    json_decref(all);
}

/* ---- the thread ---------------------------------------------------------------------------------------------- */

enum { MOST_WAITING = 1 << 20, PIECE = 4096, LOOK_MS = 200, LAST_MS = 1000 };

struct serve_log {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t writer;
    int fd;
    serve_bytes waiting; /* whole lines */
    uint64_t lost;       /* lines, since this was last said */
    bool over;
    double last_s;       /* when it gives up after the end */
};

/* A pipe that is writable has room for PIECE bytes, so the write does not wait. False: nobody reads, and the server ends. */
static bool piece_write(serve_log *log, const char *at, size_t n) {
    while (n) {
        struct pollfd ready = {log->fd, POLLOUT, 0};
        if (poll(&ready, 1, LOOK_MS) > 0) {
            const ssize_t wrote = write(log->fd, at, n < PIECE ? n : PIECE);
            if (wrote < 0 && errno != EINTR && errno != EAGAIN) return true; /* as on a full disk: the lines are gone */
            if (wrote > 0) at += wrote, n -= (size_t)wrote;
            continue;
        }
        pthread_mutex_lock(&log->lock);
        const bool late = log->over && hn_now() > log->last_s;
        pthread_mutex_unlock(&log->lock);
        if (late) return false;
    }
    return true;
}

static void *write_all(void *user) {
    serve_log *log = user;
    bool read = true;
    pthread_mutex_lock(&log->lock);
    while (read && (!log->over || log->waiting.n || log->lost)) {
        if (log->waiting.n == 0 && log->lost == 0) {
            pthread_cond_wait(&log->news, &log->lock);
            continue;
        }
        serve_bytes now = log->waiting;
        const uint64_t lost = log->lost;
        log->waiting = (serve_bytes){0};
        log->lost = 0;
        pthread_mutex_unlock(&log->lock);
        if (lost) serve_bytes_print(&now, "%llu lines of the log are lost: nobody read standard error\n", (unsigned long long)lost);
        read = piece_write(log, now.at, now.n);
        serve_bytes_free(&now);
        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

serve_log *serve_log_new(int fd) {
    serve_log *log = serve_alloc(1, sizeof *log);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->news, NULL);
    log->fd = fd;
    if (pthread_create(&log->writer, NULL, write_all, log) == 0) return log;
    hn_free(log);
    return NULL;
}

void serve_log_end(serve_log *log) {
    if (!log) return;
    pthread_mutex_lock(&log->lock);
    const bool ended = log->over;
    log->over = true;
    log->last_s = hn_now() + LAST_MS / 1000.0;
    pthread_cond_signal(&log->news);
    pthread_mutex_unlock(&log->lock);
    if (!ended) pthread_join(log->writer, NULL);
}

void serve_log_free(serve_log *log) {
    if (!log) return;
    serve_log_end(log);
    pthread_cond_destroy(&log->news);
    pthread_mutex_destroy(&log->lock);
    serve_bytes_free(&log->waiting);
    hn_free(log);
}

void serve_log_line(serve_log *log, const char *line, size_t n) {
    pthread_mutex_lock(&log->lock);
    if ((log->waiting.n && log->waiting.n + n > MOST_WAITING) || !serve_bytes_add(&log->waiting, line, n)) log->lost++;
    pthread_cond_signal(&log->news);
    pthread_mutex_unlock(&log->lock);
}

void serve_log_request(serve_log *log, const serve_settings *s, const serve_log_entry *e) {
    if (s->quiet || !log) return;
    serve_bytes line = {0};
    json_t *what = e->call ? call_json(s, e->call) : NULL;
    if (s->log_json) json_make(&line, e, what);
    else plain_make(&line, e, what);
    json_decref(what);
    serve_log_line(log, line.at, line.n);
    serve_bytes_free(&line);
}
