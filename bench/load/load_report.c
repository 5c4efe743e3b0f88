/* SPDX-License-Identifier: Apache-2.0 */
/* load_report.c - what events tell, and the figures of a run. */
#include <stdlib.h>
#include <string.h>

#include "../quantile.h"
#include "base/clock.h"
#include "load.h"

void load_number_add(load_numbers *x, double v) {
    if (x->n == x->room) {
        x->room = x->room ? 2 * x->room : 1024;
        x->of = realloc(x->of, x->room * sizeof *x->of);
        if (!x->of) load_fail("no memory");
    }
    x->of[x->n++] = v;
}

static void text_add(load_answer *a, const char *s) {
    const size_t n = s ? strlen(s) : 0;
    load_grow(&a->text, &a->room_text, a->n_text + n + 1);
    memcpy(a->text + a->n_text, s ? s : "", n);
    a->n_text += n;
    a->text[a->n_text] = 0;
}

/* Of a completion, a chat, or llama.cpp's own form. */
static const char *text_of(const json_t *event, bool *any) {
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0), *delta = json_object_get(choice, "delta");
    const json_t *text = json_object_get(choice, "text");
    if (!text) text = json_object_get(delta, "content");
    if (!text) text = json_object_get(event, "content");
    *any = text != NULL;
    return json_string_value(text);
}

static void times_take(load_run *r, load_answer *a, double now) {
    if (a->first == 0) {
        a->first = now;
        if (a->asked->measured && a->asked->prompt == -1 && r->o.long_prompt) r->long_to = now;
    } else if (a->asked->measured) {
        load_number_add(&r->gap, now - a->newest);
        if (r->long_from > 0 && a->newest > r->long_from - .001 && r->long_to == 0) load_number_add(&r->long_gap, now - a->newest);
    }
    a->newest = now;
    a->events++;
}

void load_event(load_run *r, load_answer *a, const char *json) {
    if (strcmp(json, "[DONE]") == 0) {
        a->ended = true;
        return;
    }
    json_error_t why;
    bool any;
    json_t *event = json_loads(json, 0, &why);
    const json_t *usage = json_object_get(event, "usage"), *tokens = json_object_get(usage, "completion_tokens");
    if (!event || json_object_get(event, "error")) {
        a->failed = a->ended = true;
        snprintf(a->why, sizeof a->why, "%.150s", json);
    } else {
        const char *text = text_of(event, &any);
        const int before = a->tokens;
        if (tokens) a->tokens = (int)json_integer_value(tokens);
        if (any && (tokens ? a->tokens > before : text && *text)) times_take(r, a, hn_now());
        text_add(a, text);
    }
    json_decref(event);
}

static void text_compare(load_run *r, const load_answer *a) {
    char key[32];
    snprintf(key, sizeof key, "%d", a->asked->prompt);
    const json_t *other = json_object_get(r->expected, key);
    if (other) r->compared++;
    r->same += other && a->text && strcmp(json_string_value(other), a->text) == 0;
}

void load_answered(load_run *r, load_answer *a) {
    if (a->tokens == 0) a->tokens = a->events;
    if (!a->ended && !a->failed && a->events == 0) a->failed = true;
    if (!a->asked->measured) {
        if (a->failed) load_fail("a first request failed: %s", a->why);
    } else if (a->failed) {
        r->failed++;
        snprintf(r->failure, sizeof r->failure, "%.150s", a->why);
    } else {
        r->answered++;
        r->tokens += a->tokens;
        load_number_add(&r->first, a->first - a->due);
        load_number_add(&r->whole, a->newest - a->due);
        if (a->tokens > 1) load_number_add(&r->token, (a->newest - a->first) / (a->tokens - 1));
        if (r->expected && a->asked->prompt >= 0) text_compare(r, a);
        if (r->texts && a->asked->prompt >= 0) {
            json_t *row = json_pack("{s:i,s:s}", "n", a->asked->prompt, "text", a->text ? a->text : "");
            json_dumpf(row, r->texts, JSON_COMPACT);
            fputc('\n', r->texts);
            json_decref(row);
        }
    }
    free(a->text);
    *a = (load_answer){0};
}

/* Milliseconds; -1: there are none. */
static double ms(load_numbers *x, double part) {
    return x->n ? 1e3 * quantile(x->of, x->n, part) : -1;
}

static double mean(const load_numbers *x) {
    double sum = 0;
    for (size_t i = 0; i < x->n; i++) sum += x->of[i];
    return x->n ? 1e3 * sum / (double)x->n : -1;
}

void load_report(load_run *r, double cpu_s, const double before[LOAD_COUNTERS], const double after[LOAD_COUNTERS]) {
    static const char *const counters[LOAD_COUNTERS] = {"drafted", "accepted", "preempted", "restored"};
    load_numbers *all[] = {&r->first, &r->gap, &r->token, &r->long_gap, &r->whole};
    const double wall = r->end - r->start;
    json_t *j = json_pack("{s:i,s:f,s:i,s:i,s:I,s:f,s:f,s:f}", "clients", r->o.clients, "rate", r->o.rate, "answered", r->answered,
                          "failed", r->failed, "tokens", (json_int_t)r->tokens, "seconds", wall, "tokens_s", (double)r->tokens / wall,
                          "requests_s", r->answered / wall);
    json_object_update_new(j, json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "first_p50_ms", ms(all[0], .5), "first_p99_ms",
                                        ms(all[0], .99), "between_p50_ms", ms(all[1], .5), "between_p99_ms",
                                        ms(all[1], .99), "token_p50_ms", ms(all[2], .5), "token_p99_ms",
                                        ms(all[2], .99), "client_cpu", cpu_s / wall));
    json_object_update_new(j, json_pack("{s:f,s:f,s:f}", "answer_mean_ms", mean(all[4]), "answer_p50_ms", ms(all[4], .5),
                                        "answer_p99_ms", ms(all[4], .99)));
    for (int k = 0; k < LOAD_COUNTERS; k++)
        if (after[k] >= 0) json_object_set_new(j, counters[k], json_real(after[k] - before[k]));
    if (r->expected) json_object_update_new(j, json_pack("{s:i,s:i}", "same", r->same, "compared", r->compared));
    if (r->long_to > 0)
        json_object_update_new(j, json_pack("{s:f,s:f,s:f}", "long_s", r->long_to - r->long_from, "between_long_p50_ms",
                                            ms(all[3], .5), "between_long_p99_ms", ms(all[3], .99)));
    if (r->failed) fprintf(stderr, "load_server: %d requests failed: %s\n", r->failed, r->failure);
    if (r->o.json) {
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
    } else {
        const char *key;
        json_t *value;
        json_object_foreach(j, key, value) printf("%-20s %.6g\n", key, json_number_value(value));
    }
    json_decref(j);
}
