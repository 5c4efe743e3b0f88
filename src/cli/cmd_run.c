/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `hunch run`: generates from one prompt. Streams the text, coloured by the drafter that proposed each token, and ends with a
 * summary; or, with --json, prints one object with all results.
 *
 * Several samples run as a window over their numbers: twice as many sessions are open as may run at once (the rest wait in the engine, so
 * that a free place is taken at once), and they are reported in order. tool_answers.c answers the rows of a file. */
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/tool_answers.h"
#include "cli/tool_calls.h"
#include "app/tool_commands.h"
#include "cli/tool_grammar.h"
#include "app/tool_open.h"
#include "cli/tool_render.h"
#include "cli/tool_result.h"
#include "cli/tool_row_keys.h"
#include "cli/tool_verify_exact.h"

enum { DEFAULT_TOKENS = 512 };

typedef struct run {
    tool_options o;
    tool_method method;
    tool_template template;
    tool_prompts prompts;
    tool_grammar grammar;
    hunch_model *model;
    hunch_engine *engine;
    hunch_model_info info;
    hunch_request request;
    hunch_tools *tools; /* of the prompt; NULL: none */
    hunch_token stops[HUNCH_MOST_STOPS]; /* of the request, with that of the tools */
    double load_s;
    bool json, color;
    bool by_row; /* one object per row of a file */
    tool_answers answers;
    tool_stream stream;
} run;

/* The window: sample i is in slot i % size. */
typedef struct window {
    hunch_session **session;    /* [size]; NULL: free */
    tool_why *why;              /* [size] */
    tool_verify_exact *twin;            /* [size]; zeroed without --verify-exact */
    int size, first, next, end; /* samples first .. next - 1 are open */
} window;

/* ---- samples ------------------------------------------------------------------------------------------------- */

static int twin_open(const run *r, tool_verify_exact *t, hunch_request *q) {
    hunch_engine_options o;
    tool_engine_options(&o, &r->o);
    o.context = hunch_engine_context(r->engine);
    return tool_verify_exact_open(t, r->model, &o, q);
}

static int sample_open(run *r, window *w) {
    int slot = w->next % w->size;
    hunch_error err = {0};
    hunch_request q = r->request;
    q.sampling.seed += (uint64_t)w->next;
    if (r->o.why || r->o.trees || r->o.why_html) {
        q.on_round = tool_why_add;
        q.on_round_user = &w->why[slot];
    }
    const int code = r->o.verify_exact ? twin_open(r, &w->twin[slot], &q) : 0;
    if (code)
        return code;
    if (tool_context_check(r->engine, r->model, q.n_prompt, &err) != HUNCH_OK ||
        hunch_session_open(&w->session[slot], r->engine, &q, &err) != HUNCH_OK)
        return tool_failed(&err);
    tool_drafters_note(r->engine);
    w->next++;
    return 0;
}

static int sample_report(run *r, const hunch_session_state *st, const tool_why *why, uint64_t seed) {
    tool_result result = {.engine = r->engine,
                          .model = r->model,
                          .load_s = r->load_s,
                          .seed = seed,
                          .logprobs = r->o.logprobs,
                          .chat = r->prompts.items[0].chat,
                          .thinks = r->prompts.items[0].thinks,
                          .tools = r->tools,
                          .stops = r->request.stop,
                          .why = r->o.why ? why : NULL,
                          .trees = r->o.trees ? why : NULL};
    const int code = r->o.why_html ? tool_why_html(r->o.why_html, why, r->model, r->engine, st) : 0;
    if (code)
        return code;
    if (r->json)
        return tool_print_json(tool_result_json(&result, st));
    printf("%s\n", tool_style(r->color, '0'));
    tool_flush();
    bool color = tool_colors(r->o.color, stderr);
    if (r->o.why) {
        fputc('\n', stderr);
        tool_why_print(why, r->model, r->engine, color);
    }
    if (!tool_quiet)
        tool_result_summary(&result, st, color);
    if (tool_context_full(r->engine, st)) {
        const size_t context = (size_t)hunch_engine_context(r->engine);
        char advice[80];
        tool_message("the answer ends here: the context of %zu rows is full; %s", context,
                     tool_context_advice(r->model, context + 1, "--context ", advice));
    }
    return tool_done(HUNCH_OK);
}

/* Lets the twins follow. */
static int twins_follow(const run *r, const window *w) {
    int code = 0;
    for (int i = w->first; i < w->next && !code && r->o.verify_exact; i++) {
        const int slot = i % w->size;
        code = tool_verify_exact_follow(&w->twin[slot], r->engine, w->session[slot]);
    }
    return code;
}

/* Reports and closes what has finished, in order. */
static int samples_report(run *r, window *w) {
    for (; w->first < w->next; w->first++) {
        int slot = w->first % w->size;
        hunch_session_state st;
        hunch_session_get(w->session[slot], &st);
        if (st.finish == HUNCH_RUNNING)
            return 0;
        int code = st.finish == HUNCH_FINISH_FAILED
                       ? tool_failed(&st.error)
                       : sample_report(r, &st, &w->why[slot], r->request.sampling.seed + (uint64_t)w->first);
        if (st.finish == HUNCH_FINISH_GRAMMAR)
            tool_message("the answer ends early: %s", st.error.message);
        if (!code && r->o.verify_exact)
            code = tool_verify_exact_finish(&w->twin[slot], r->engine, w->session[slot]);
        if (code)
            return code;
        tool_drafters_note(r->engine);
        hunch_session_close(&w->session[slot]);
        tool_verify_exact_close(&w->twin[slot]);
        tool_why_fini(&w->why[slot]);
    }
    return 0;
}

static int samples_generate(run *r, window *w) {
    tool_rounds rounds = {.engine = r->engine,
                          .session = w->session,
                          .n = w->size,
                          .stream = r->json ? NULL : &r->stream,
                          .answers = w->end,
                          .most = r->request.max_tokens};
    int code = 0;
    tool_rounds_begin(&rounds, "reading the prompt");
    while (!code && w->first < w->end && !(tool_interrupted && w->first == w->next)) {
        while (!code && !tool_interrupted && w->next < w->end && w->next - w->first < w->size)
            code = sample_open(r, w);
        if (!code && w->first < w->next)
            code = tool_rounds_step(&rounds);
        if (!code)
            code = twins_follow(r, w);
        if (!code)
            code = samples_report(r, w);
        rounds.reported = w->first;
    }
    tool_rounds_end(&rounds);
    return code ? code : tool_interrupted ? HUNCH_CANCELLED : 0;
}

static int samples_run(run *r, int parallel) {
    window w = {.end = r->o.samples == TOOL_UNSET ? 1 : r->o.samples};
    w.size = w.end < 2 * parallel ? w.end : 2 * parallel;
    w.session = tool_alloc((size_t)w.size, sizeof(hunch_session *));
    w.why = tool_alloc((size_t)w.size, sizeof *w.why);
    w.twin = tool_alloc((size_t)w.size, sizeof *w.twin);
    tool_interrupts_catch();
    int code = samples_generate(r, &w);
    for (int i = 0; i < w.size; i++) {
        hunch_session_close(&w.session[i]);
        tool_verify_exact_close(&w.twin[i]);
        tool_why_fini(&w.why[i]);
    }
    hn_free(w.session);
    hn_free(w.why);
    hn_free(w.twin);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

/* Checks the flags against the prompts. */
static int flags_check(const run *r) {
    const tool_options *o = &r->o;
    const char *from = o->file ? o->file : "standard input";
    if (r->prompts.n == 0)
        return tool_usage("%s: no prompt in it", from);
    if (o->samples > 1 && !o->json_lines)
        return tool_usage("--samples needs --json-lines");
    if (r->prompts.n > 1 && (!o->json_lines || o->samples > 1))
        return tool_usage("%s holds %zu prompts: %s", from, r->prompts.n,
                          o->samples > 1 ? "--samples takes one"
                                         : "--json-lines answers them all, hunch compare measures them");
    if (o->samples > 1 && o->seed > INT64_MAX - (o->samples - 1))
        return tool_usage("--seed %" PRId64 " is too large for %d samples with successive seeds, the largest is %" PRId64,
                          o->seed, o->samples, INT64_MAX);
    if (o->logprobs != TOOL_UNSET && !r->json)
        return tool_usage("--logprobs needs --json or --json-lines");
    if ((o->prompt_logprobs || o->pooling > 0) && !r->json)
        return tool_usage("%s needs --json or --json-lines", o->prompt_logprobs ? "--prompt-logprobs" : "--pooling");
    if (o->trees && !r->json)
        return tool_usage("--trees needs --json or --json-lines: without them --why shows the trees");
    if (o->why_html && (o->json_lines || o->samples > 1))
        return tool_usage("--why-html takes one answer, not --json-lines");
    if (o->verify_exact && o->json_lines && o->samples <= 1)
        return tool_usage("--verify-exact takes one prompt, or --samples, not rows of a file");
    if (o->output && (!o->json_lines || o->samples > 1))
        return tool_usage("-o takes the objects of --json-lines%s", o->samples > 1 ? ", but not --samples" : "");
    if (o->resume && (!o->output || strcmp(o->output, "-") == 0))
        return tool_usage("--resume needs -o FILE, where the answers are");
    return 0;
}

static int system_check(const run *r) {
    const char *system = r->o.system;
    if (system && hn_utf8_check(system, strlen(system)) < strlen(system))
        return tool_usage("--system is not valid UTF-8");
    if (system && r->o.raw)
        return tool_usage("--raw uses no template and contradicts --system");
    for (size_t i = 0; system && i < r->prompts.n; i++)
        if (!r->prompts.items[i].text && !r->prompts.items[i].messages) {
            char where[1100];
            return tool_usage("%stoken ids are taken as they are, and contradict --system",
                              tool_prompt_where(&r->prompts.items[i], where, sizeof where));
        }
    return 0;
}

static int inputs_read(run *r) {
    int code = tool_prompts_read(&r->prompts, &r->o);
    r->json = r->o.json || r->o.json_lines;
    if (code || (code = flags_check(r)) || (code = system_check(r)) || (code = tool_template_open(&r->template, &r->o)) ||
        (code = tool_grammar_read(&r->grammar, &r->o)))
        return code;
    r->template.system = r->o.system;
    r->o.pools = r->o.pooling > 0;
    for (size_t i = 0; i < r->prompts.n; i++)
        r->o.pools |= json_object_get(r->prompts.items[i].settings, "pooling") != NULL;
    r->by_row = r->o.json_lines && r->o.samples <= 1 && (r->prompts.rows || r->o.output);
    r->answers =
        (tool_answers){.o = &r->o, .prompts = &r->prompts, .template = &r->template, .grammar = &r->grammar, .default_n = DEFAULT_TOKENS};
    return r->by_row ? tool_answers_open(&r->answers) : 0;
}

static int model_open(run *r) {
    int code = tool_model_open(&r->model, &r->o, &r->load_s);
    if (code)
        return code;
    hunch_model_get_info(r->model, &r->info);
    if (r->o.stops.n && !r->info.has_tokenizer)
        return tool_usage("the model has no tokenizer: --stop cannot be used");
    if (r->o.system && !tool_template_used(&r->template, r->model))
        return tool_usage("--system: the model has no chat template, and no --chat-template-file was given");
    code = tool_template_check(&r->template, r->model);
    return code || r->by_row ? code : tool_prompt_ids(&r->prompts.items[0], r->model, &r->template);
}

static int rows_run(run *r, int parallel) {
    r->answers.model = r->model;
    r->answers.engine = r->engine;
    r->answers.load_s = r->load_s;
    r->answers.parallel = parallel;
    return tool_answers_run(&r->answers);
}

static int run_command(run *r) {
    int parallel = r->o.parallel == TOOL_UNSET ? 1 : r->o.parallel, code = inputs_read(r);
    if (code || (r->by_row && r->answers.left == 0) || (code = model_open(r)))
        return code;
    tool_method_init(&r->method, r->o.drafts.items, r->o.drafts.n);
    if ((code = tool_engine_open(&r->engine, r->model, &r->o, &r->method, 0, parallel)))
        return code;
    if (r->by_row)
        return rows_run(r, parallel);
    const tool_prompt *p = &r->prompts.items[0];
    tool_request_init(&r->request, r->model, &r->o, DEFAULT_TOKENS);
    tool_row_request(&r->request, p);
    r->request.special_text |= p->chat && hunch_marks_are_special(r->model);
    hunch_error err = {0};
    if (tool_row_drafters(&r->request, r->engine, &r->o, p, &err) ||
        tool_grammar_open(&r->request.grammar, &r->grammar, p->settings, r->model, p->chat, p->thinks, &err) ||
        tool_calls_open(&r->tools, &r->request, r->stops, &r->template, p, r->model, &r->o, &err))
        return tool_failed(&err);
    r->color = !r->json && tool_colors(r->o.color, stdout);
    r->stream = (tool_stream){.model = r->model, .color = r->color, .split.thinking = p->thinks};
    return samples_run(r, parallel);
}

int tool_run(int argc, char **argv) {
    run r = {0};
    int code = tool_options_parse(&r.o, TOOL_RUN, argc, argv);
    if (code >= 0)
        return code;
    code = run_command(&r);
    hunch_grammar_close(&r.request.grammar);
    hunch_engine_close(&r.engine);
    hunch_tools_close(&r.tools);
    hunch_model_close(&r.model);
    tool_ends_fini(&r.stream.ends);
    tool_method_fini(&r.method);
    tool_template_fini(&r.template);
    tool_grammar_fini(&r.grammar);
    tool_answers_fini(&r.answers);
    tool_prompts_fini(&r.prompts);
    tool_options_fini(&r.o);
    return code;
}
