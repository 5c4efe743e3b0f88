/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_score.c - `hunch score`: how likely a text is: mean negative log-likelihood of tokens 2 to T, in nats.
 *
 * A text longer than a window of C tokens is read in windows that start C/2 after each other; a window scores the
 * tokens that had no score yet, so that after the first window each has at least half a window of context. */
#include <math.h>

#include "base/least.h"
#include "app/tool_commands.h"
#include "app/tool_open.h"
#include "cli/tool_render.h"

enum { MOST_CONTEXT = 2048 };

typedef struct score {
    const tool_prompt *text;
    size_t begin, end; /* of the window that runs */
    size_t scored;     /* tokens before this one have a score (the first is never scored) */
    double nll;
    tool_progress bar;
} score;

/* -log softmax(logits)[id] */
static double token_nll(const float *logits, int vocab, hunch_token id) {
    double most = logits[0], sum = 0;
    for (int i = 1; i < vocab; i++)
        if (logits[i] > most)
            most = logits[i];
    for (int i = 0; i < vocab; i++)
        sum += exp(logits[i] - most);
    return most + log(sum) - logits[id];
}

static void row_score(void *user, size_t position, const float *logits, int vocab) {
    score *s = user;
    size_t next = s->begin + position + 1; /* the token that these logits predict */
    if (next < s->scored || next >= s->end)
        return;
    s->nll += token_nll(logits, vocab, s->text->ids[next]);
    s->scored = next + 1;
    tool_progress_at(&s->bar, (double)s->scored, (double)s->text->n_ids);
}

static int windows_run(score *s, hunch_engine *e, size_t window) {
    hunch_error err = {0};
    size_t total = s->text->n_ids, step = window / 2;
    for (s->begin = 0; s->scored < total; s->begin += step) {
        s->end = s->begin + hn_least_size(total - s->begin, window);
        if (hunch_evaluate(e, s->text->ids + s->begin, s->end - s->begin, row_score, s, &err) != HUNCH_OK)
            return tool_failed(&err);
    }
    return 0;
}

static int score_report(const tool_options *o, const score *s) {
    const size_t scored = s->text->n_ids - 1;
    const double mean = s->nll / (double)scored;
    if (o->json)
        return tool_print_json(json_pack("{s:I,s:I,s:o,s:o}", "tokens", (json_int_t)s->text->n_ids, "scored",
                                         (json_int_t)scored, "nll", tool_json_real(mean), "perplexity",
                                         tool_json_real(exp(mean))));
    printf("%zu tokens, %.6f nats a token over the %zu after the first, perplexity %.4f\n", s->text->n_ids, mean,
           scored, exp(mean));
    return tool_done(HUNCH_OK);
}

static int score_run(const tool_options *o, tool_prompt *p, hunch_model **m, hunch_engine **e) {
    int code = tool_text_read(p, o);
    if (code || (code = tool_model_open(m, o, NULL)) || (code = tool_prompt_ids(p, *m, NULL)))
        return code;
    if (p->n_ids < 2)
        return tool_usage("score: a text of %zu token has none to score, at least 2 are needed", p->n_ids);
    hunch_model_info info;
    hunch_model_get_info(*m, &info);
    int window = o->context != TOOL_UNSET ? o->context : hn_least(info.context, MOST_CONTEXT);
    if (window < 2)
        return tool_usage("score: --context %d is too small for a window, at least 2 are needed", window);
    if ((code = tool_engine_open(e, *m, o, NULL, window, 1)))
        return code;
    score s = {.text = p, .scored = 1};
    tool_progress_begin(&s.bar, "scoring", "tokens");
    code = windows_run(&s, *e, (size_t)window);
    tool_progress_end(&s.bar);
    return code ? code : score_report(o, &s);
}

int tool_score(int argc, char **argv) {
    tool_options o;
    tool_prompt p = {0};
    hunch_model *m = NULL;
    hunch_engine *e = NULL;
    int code = tool_options_parse(&o, TOOL_SCORE, argc, argv);
    if (code >= 0)
        return code;
    code = score_run(&o, &p, &m, &e);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    tool_prompt_fini(&p);
    tool_options_fini(&o);
    return code;
}
