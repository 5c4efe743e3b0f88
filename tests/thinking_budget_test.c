/* SPDX-License-Identifier: Apache-2.0 */
/* thinking_budget_test.c - answers that may think for so many tokens: what they are is put together here of answers without a budget, one
 * up to it and one of a prompt that has the end mark, too; the tokens are the same with every drafter, in a crowd and after preemption. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"
#include "preempt_for_tests.h"

enum { CONTEXT = 256, PAGE = 16, MOST = 40, BUDGETS = 4 };
static const int budgets[BUDGETS] = {1, 2, 7, 20};
static const char END[] = "</think>", TEMPLATE[] = "{# <think></think> #}";
static char model_draft[600], eagle[600], eagle_tree[700];

static int setup(void **state) {
    (void)state;
    snprintf(model_draft, sizeof model_draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    snprintf(eagle, sizeof eagle, "eagle:%s", data_path("heads/stories-eagle"));
    snprintf(eagle_tree, sizeof eagle_tree, "%s,tree=dynamic", eagle);
    return 0;
}

static hunch_model *open_thinking(const char *template_text) {
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), NULL, test_threads(), HUNCH_PRECISION_NATIVE);
    must(hunch_model_set_marks(m, template_text, err));
    return m;
}

/* ---- requests -------------------------------------------------------------------------------------------------------------- */

typedef struct asked {
    hunch_request r[4 * BUDGETS];
    hunch_token *in, *before; /* prompts that end in thinking, and before it */
    size_t n_in, n_before;
    hunch_grammar *grammar;   /* that writes the mark */
    int n;
} asked;

static void request_add(asked *q, const hunch_model *m, bool in, int budget, double temperature) {
    hunch_request *r = &q->r[q->n++];
    hunch_request_defaults(r, m);
    r->prompt = in ? q->in : q->before;
    r->n_prompt = in ? q->n_in : q->n_before;
    r->grammar = in ? NULL : q->grammar;
    r->max_tokens = MOST;
    r->thinking_budget = budget;
    r->sampling = (hunch_sampling){.temperature = temperature, .top_p = 1, .seed = (uint64_t)budget};
}

/* Each budget greedily and at temperature 1, of a prompt that ends in thinking, and of answers that begin it themselves. */
static void ask(asked *q, const hunch_model *m) {
    static const char in[] = "Once upon a time, there was a girl. Once upon a time, there was <think>\n";
    static const char before[] = "Lily and Tom saw a big dog.";
    static const char gbnf[] = "root ::= \"<think>\" any* \"</think>\" any*\nany ::= [^<]\n";
    memset(q, 0, sizeof *q);
    must(hunch_tokenize(m, in, strlen(in), HUNCH_TEXT_ADD_SPECIAL, &q->in, &q->n_in, err));
    must(hunch_tokenize(m, before, strlen(before), HUNCH_TEXT_ADD_SPECIAL, &q->before, &q->n_before, err));
    must(hunch_grammar_open(&q->grammar, m, HUNCH_GRAMMAR_GBNF, gbnf, strlen(gbnf), HUNCH_GRAMMAR_AT_ONCE, err));
    for (int i = 0; i < 4 * BUDGETS; i++) request_add(q, m, i % 4 < 2, budgets[i / 4], i % 2);
}

static void asked_free(asked *q) {
    hunch_grammar_close(&q->grammar);
    hunch_free(q->in);
    hunch_free(q->before);
}

static void answers_make(hunch_model *m, const asked *q, const char *draft, hunch_verify verify, int parallel, answer *out) {
    hunch_engine *e = open_drafting(m, draft, verify, parallel, PAGE, CONTEXT);
    run_requests(e, q->r, q->n, false, out);
    hunch_engine_close(&e);
}

/* ---- what it has to be ------------------------------------------------------------------------------------------------------ */

/* Of a prompt that ends in thinking: an answer up to the budget, the mark, and the answer of a prompt that has both. */
static void check_composed(hunch_model *m, hunch_request r, const answer *got) {
    hunch_token text[CONTEXT], *made, *mark;
    size_t n_mark, n = r.n_prompt, blank;
    answer first = {0}, rest = {0};
    hunch_engine *e = open_drafting(m, NULL, HUNCH_VERIFY_DEFAULT, 1, PAGE, CONTEXT);
    must(hunch_tokenize(m, END, strlen(END), HUNCH_TEXT_PARSE_SPECIAL, &made, &n_mark, err));
    blank = *hn_tokenizer_piece(m->tokenizer, *made, &n) == ' '; /* as this tokenizer begins a text */
    assert_int_equal(n, 1);
    mark = made + blank;
    n_mark -= blank;
    n = r.n_prompt;
    memcpy(text, r.prompt, n * sizeof *text);
    r.max_tokens = r.thinking_budget;
    r.thinking_budget = 0;
    run_requests(e, &r, 1, false, &first);
    assert_int_equal(first.finish, HUNCH_FINISH_LENGTH);
    memcpy(text + n, first.token, first.n * sizeof *text);
    memcpy(text + n + first.n, mark, n_mark * sizeof *text);
    r.prompt = text;
    r.n_prompt = n + first.n + n_mark;
    r.max_tokens = MOST - (int)(first.n + n_mark);
    run_requests(e, &r, 1, false, &rest);
    assert_int_equal(got->n, first.n + n_mark + rest.n);
    assert_memory_equal(got->token, text + n, (first.n + n_mark) * sizeof *text);
    assert_memory_equal(got->token + first.n + n_mark, rest.token, rest.n * sizeof *text);
    answer_free(&first);
    answer_free(&rest);
    hunch_free(made);
    hunch_engine_close(&e);
}

/* Whether the tokens between the marks are no more than the budget; *spent: they are just as many. */
static void check_held(const hunch_model *m, const hunch_request *r, const answer *a, bool *spent, const char *what) {
    const char *begin = r->grammar ? "<think>" : "", *from = strstr(a->text, begin), *to = strstr(a->text, END);
    int inside = 0;
    if (!from || !to) fail_msg("%s: budget %d: no marks in \"%s\"", what, r->thinking_budget, a->text);
    const size_t first = (size_t)(from - a->text) + strlen(begin);
    const size_t last = (size_t)(to - a->text);
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++) {
        size_t len = 0;
        const char *piece = hn_tokenizer_piece(m->tokenizer, a->token[i], &len);
        if (i == 0 && len && *piece == ' ') len--; /* a text's first blank is left out */
        if (at >= first && at + len <= last) inside++;
        at += len;
    }
    if (inside > r->thinking_budget)
        fail_msg("%s: %d tokens of thinking, expected at most %d: \"%s\"", what, inside, r->thinking_budget, a->text);
    *spent = inside == r->thinking_budget;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------- */

static void compare(const asked *q, const answer *plain, answer *a, const char *what) {
    for (int i = 0; i < q->n; i++) {
        assert_same(&plain[i], &a[i], what);
        assert_int_equal(plain[i].finish, a[i].finish);
        answer_free(&a[i]);
    }
}

static void test_tokens(void **state) {
    (void)state;
    const char *const drafts[] = {"ngram", "suffix", "lookahead", "recycle", "grammar+ngram", model_draft, eagle, eagle_tree,
                                  "forced,accept=.9,width=3,depth=6", "auto", NULL};
    hunch_model *m = open_thinking(TEMPLATE);
    answer plain[4 * BUDGETS] = {{0}};
    uint64_t accepted = 0;
    int spent = 0;
    asked q;
    ask(&q, m);
    answers_make(m, &q, NULL, HUNCH_VERIFY_DEFAULT, 1, plain);
    for (int i = 0; i < q.n; i++) {
        bool all;
        check_held(m, &q.r[i], &plain[i], &all, "plain");
        if (!q.r[i].grammar) check_composed(m, q.r[i], &plain[i]);
        spent += all;
    }
    assert_true(spent > q.n / 2);
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        answer a[4 * BUDGETS] = {{0}};
        answers_make(m, &q, drafts[d], HUNCH_VERIFY_DEFAULT, d % 2 ? 1 : 4, a);
        for (int i = 0; i < q.n; i++) accepted += a[i].accepted;
        compare(&q, plain, a, drafts[d] ? drafts[d] : "crowd");
    }
    assert_true(accepted > 0);
    for (int i = 0; i < q.n; i++) answer_free(&plain[i]);
    asked_free(&q);
    hunch_model_close(&m);
}

static void test_preempted(void **state) {
    (void)state;
    hunch_model *m = open_thinking(TEMPLATE);
    answer plain[4 * BUDGETS] = {{0}}, a[4 * BUDGETS] = {{0}};
    uint64_t preempted = 0;
    asked q;
    ask(&q, m);
    answers_make(m, &q, NULL, HUNCH_VERIFY_DEFAULT, 1, plain);
    hunch_engine *e = open_drafting(m, "auto", HUNCH_VERIFY_DEFAULT, 8, PAGE, CONTEXT);
    run_preempted_requests(e, q.r, q.n, a);
    hunch_engine_close(&e);
    for (int i = 0; i < q.n; i++) preempted += a[i].preempted;
    assert_true(preempted > 0);
    compare(&q, plain, a, "preempted");
    for (int i = 0; i < q.n; i++) answer_free(&plain[i]);
    asked_free(&q);
    hunch_model_close(&m);
}

/* The rules that fix a distribution alone hold it, too. */
static void test_rules(void **state) {
    (void)state;
    static const struct {
        hunch_verify verify;
        const char *draft;
    } with[] = {{HUNCH_VERIFY_RATIO, model_draft},
                {HUNCH_VERIFY_BLOCK, model_draft},
                {HUNCH_VERIFY_TRAVERSAL, eagle},
                {HUNCH_VERIFY_RATIO, "ngram"}};
    hunch_model *m = open_thinking(TEMPLATE);
    asked q;
    ask(&q, m);
    for (size_t d = 0; d < sizeof with / sizeof *with; d++) {
        answer a[4 * BUDGETS] = {{0}};
        answers_make(m, &q, with[d].draft, with[d].verify, 2, a);
        for (int i = 0; i < q.n; i++) {
            bool all;
            check_held(m, &q.r[i], &a[i], &all, with[d].draft);
            answer_free(&a[i]);
        }
    }
    asked_free(&q);
    hunch_model_close(&m);
}

/* A form that does not allow the mark yet lets it wait, and then has it at once. */
static void test_waits(void **state) {
    (void)state;
    static const char regex[] = "[a-z]{30}[a-z]*</think>[a-z]{3}";
    const char *const drafts[] = {NULL, "ngram+grammar", model_draft};
    hunch_model *m = open_thinking(TEMPLATE);
    asked q;
    ask(&q, m);
    hunch_grammar_close(&q.grammar);
    must(hunch_grammar_open(&q.grammar, m, HUNCH_GRAMMAR_REGEX, regex, strlen(regex), HUNCH_GRAMMAR_AT_ONCE, err));
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++)
        for (int temperature = 0; temperature < 2; temperature++) {
            answer a = {0};
            hunch_request r = q.r[temperature];
            r.grammar = q.grammar;
            r.thinking_budget = 2;
            r.max_tokens = 100;
            hunch_engine *e = open_drafting(m, drafts[d], HUNCH_VERIFY_DEFAULT, 1, PAGE, CONTEXT);
            run_requests(e, &r, 1, false, &a);
            const char *to = strstr(a.text, END);
            if (a.finish != HUNCH_FINISH_STOP || !to || to - a.text < 30 || to - a.text > 30 + 20)
                fail_msg("%s: \"%s\" (finish %d)", drafts[d] ? drafts[d] : "plain", a.text, (int)a.finish);
            answer_free(&a);
            hunch_engine_close(&e);
        }
    asked_free(&q);
    hunch_model_close(&m);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *template_text;
        int budget;
        const char *says;
    } cases[] = {{TEMPLATE, -1, "thinking_budget is -1"}, {"{{ messages }}", 5, "no marks around thinking"}, {TEMPLATE, 5, NULL}};
    static const hunch_token any[] = {1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hunch_model *m = open_thinking(cases[i].template_text);
        hunch_engine *e = open_drafting(m, NULL, HUNCH_VERIFY_DEFAULT, 1, PAGE, CONTEXT);
        hunch_session *s = NULL;
        hunch_error err = {0};
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = any;
        r.n_prompt = 1;
        r.thinking_budget = cases[i].budget;
        assert_int_equal(hunch_session_open(&s, e, &r, &err), cases[i].says ? HUNCH_USAGE : HUNCH_OK);
        if (cases[i].says && !strstr(err.message, cases[i].says)) fail_msg("%s", err.message);
        hunch_session_close(&s);
        hunch_engine_close(&e);
        hunch_model_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens), cmocka_unit_test(test_preempted), cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_waits),  cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
