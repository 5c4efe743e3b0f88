/* SPDX-License-Identifier: Apache-2.0 */
/* load_prompts.c - the requests of a run: prompts of a file in turn, or of a trace's lengths, at the times of a trace that are scaled to
 * a rate. When the prompts have all been asked, they are asked again with a number before them, so that no server has computed them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "load.h"

enum { MOST_PROMPTS = 4096, MOST_ARRIVALS = 100000, FIRST_ID = 1000, IDS = 20000 };

typedef struct trace {
    int n;
    double *at; /* seconds, from 0 */
    int *prompt, *answer;
} trace;

static json_t *prompts_read(const char *path) {
    static char line[1 << 20];
    FILE *f = fopen(path, "r");
    json_t *all = json_array();
    if (!f) load_fail("%s: cannot be opened", path);
    while (fgets(line, sizeof line, f)) {
        json_t *row = json_loads(line, 0, NULL), *prompt = json_object_get(row, "prompt");
        if (!json_is_string(prompt)) load_fail("%s: row %zu has no prompt", path, json_array_size(all) + 1);
        json_array_append(all, prompt);
        json_decref(row);
    }
    fclose(f);
    if (!json_array_size(all)) load_fail("%s: no prompt in it", path);
    return all;
}

/* Lines of milliseconds, tokens of the prompt, tokens of the answer. */
static trace trace_read(const char *path) {
    char line[256];
    FILE *f = fopen(path, "r");
    trace t = {0, load_alloc(MOST_ARRIVALS * sizeof *t.at), load_alloc(MOST_ARRIVALS * sizeof *t.prompt),
               load_alloc(MOST_ARRIVALS * sizeof *t.answer)};
    if (!f) load_fail("%s: cannot be opened", path);
    while (t.n < MOST_ARRIVALS && fgets(line, sizeof line, f)) {
        double ms;
        if (sscanf(line, "%lf,%d,%d", &ms, &t.prompt[t.n], &t.answer[t.n]) == 3) t.at[t.n++] = ms / 1000;
    }
    fclose(f);
    if (t.n < 2) load_fail("%s: expected lines of milliseconds,prompt tokens,answer tokens", path);
    return t;
}

/* The k-th of n arrivals, of a mean rate of one a second over these; beyond the trace's end it begins again. */
static double arrival(const trace *t, int k, int n) {
    const int used = n < t->n ? n : t->n;
    const double all = t->at[used - 1] - t->at[0], mean = used > 1 ? all / (used - 1) : 0;
    return mean > 0 ? (t->at[k % used] - t->at[0] + (all + mean) * (k / used)) / mean : k;
}

static json_t *ids(int n, uint64_t seed) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer((json_int_t)(FIRST_ID + hn_splitmix(&seed) % IDS)));
    return list;
}

static void request_write(const load_options *o, load_request *q, json_t *prompt, int tokens, bool whole) {
    json_t *body = json_pack("{s:o,s:i,s:f,s:i,s:b,s:{s:b,s:b}}", "prompt", prompt, "max_tokens", tokens, "temperature", o->temperature,
                             "seed", 1, "stream", 1, "stream_options", "include_usage", 1, "continuous_usage_stats", 1);
    json_t *more = o->more ? json_loads(o->more, 0, NULL) : NULL;
    if (o->more && !json_is_object(more)) load_fail("--more: expected a JSON object");
    if (whole) json_object_set_new(body, "ignore_eos", json_true());
    if (q->apart) json_object_set_new(body, "cache_salt", json_string("before"));
    if (more) json_object_update(body, more);
    json_decref(more);
    char *text = json_dumps(body, JSON_COMPACT);
    const size_t n = strlen(text), room = n + 256;
    json_decref(body);
    q->body = load_alloc(room);
    q->length = (size_t)snprintf(q->body, room, "POST /v1/completions HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: application/json\r\n"
                                 "Content-Length: %zu\r\nConnection: close\r\n\r\n%s", o->host, o->port, n, text);
    free(text);
}

/* The number stands in the user's text if the prompt has marks of a template, else before it. */
static json_t *repeated(const char *prompt, int times) {
    if (times == 0) return json_string(prompt);
    const char *user = strstr(prompt, "user\n");
    const int before = user ? (int)(user - prompt) + 5 : 0;
    return json_sprintf("%.*s(%d) %s", before, prompt, times, prompt + before);
}

/* The k-th request; below 0: one that is answered before and is none of those that are measured. */
static void request_make(const load_options *o, const json_t *prompts, const trace *t, int k, bool measured, load_request *q) {
    const int n_prompts = (int)json_array_size(prompts), again = k < 0 ? 1000 - k : o->lengths ? 0 : k / n_prompts;
    *q = (load_request){.prompt = k, .measured = measured, .apart = !measured && k >= 0};
    if (o->rate > 0 && measured) q->at = (t->n ? arrival(t, k, o->requests) : k) / o->rate;
    if (o->long_prompt > 0 && k == o->requests / 3) {
        q->prompt = -1;
        request_write(o, q, ids(o->long_prompt, 77), 2, true);
    } else if (o->lengths) {
        const int j = (k + o->warm) % t->n, most = o->cut > 0 ? o->cut : 1 << 30;
        const int prompt = t->prompt[j] < most ? t->prompt[j] : most, answer = t->answer[j] < most ? t->answer[j] : most;
        q->prompt = -1;
        request_write(o, q, ids(prompt, (uint64_t)(k + o->warm)), answer, true);
    } else {
        const int of = (k % n_prompts + n_prompts) % n_prompts;
        request_write(o, q, repeated(json_string_value(json_array_get(prompts, (size_t)of)), again), o->tokens, false);
    }
}

/* First those that are answered before the clock starts: some others, then perhaps all. */
void load_requests_make(load_run *r) {
    const load_options *o = &r->o;
    json_t *prompts = o->lengths ? NULL : prompts_read(o->prompts);
    const trace t = o->arrivals ? trace_read(o->arrivals) : (trace){0};
    r->n_before = o->warm + (o->twice ? o->requests : 0);
    r->n_requests = r->n_before + o->requests;
    r->request = load_alloc((size_t)r->n_requests * sizeof *r->request);
    for (int i = 0; i < r->n_requests; i++) {
        const bool measured = i >= r->n_before;
        request_make(o, prompts, &t, i - (measured ? r->n_before : o->warm), measured, &r->request[i]);
    }
    json_decref(prompts);
}
