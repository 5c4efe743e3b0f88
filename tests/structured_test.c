/* SPDX-License-Identifier: Apache-2.0 */
/* structured_test.c - answers that obey a grammar, from a tiny trained model whose prompts ask for something else: each is complete, or a
 * beginning that its length has cut; for a seed the tokens are the same with every drafter, in a crowd, after preemption and with prefix
 * hits; the rules that fix a distribution alone keep to the grammar, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <regex.h>

#include "engine/session.h"
#include "fixture.h"
#include "preempt_for_tests.h"
#include "schema_for_tests.h"

enum { CONTEXT = 256, PAGE = 16, MOST = 48, SEEDS = 2 };
static char model_draft[600], eagle[600], eagle_tree[700];

static int setup(void **state) {
    (void)state;
    snprintf(model_draft, sizeof model_draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    snprintf(eagle, sizeof eagle, "eagle:%s", data_path("heads/stories-eagle"));
    snprintf(eagle_tree, sizeof eagle_tree, "%s,tree=dynamic", eagle);
    return 0;
}

static hunch_model *open_stories(void) {
    return open_model(data_path("models/stories260K/stories260K.f32.gguf"), NULL, test_threads(), HUNCH_PRECISION_NATIVE);
}

/* ---- grammars, and whether an answer is complete by another way than theirs ------------------------------------------------ */

typedef struct form {
    hunch_grammar_kind kind;
    const char *text;
    const char *posix; /* of regular expressions and GBNF: the same as a POSIX expression */
} form;
static const form forms[] = {
    {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":8},\"age\":{\"type\":"
     "\"integer\",\"minimum\":3,\"maximum\":120}},\"required\":[\"name\",\"age\"],\"additionalProperties\":false}", NULL},
    {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"type\":\"array\",\"items\":{\"enum\":[\"red\",\"green\",\"blue\",7,null]},\"minItems\":2,"
     "\"maxItems\":4}", NULL},
    {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"anyOf\":[{\"type\":\"boolean\"},{\"const\":\"perhaps\"},{\"type\":\"number\","
     "\"minimum\":-2.5}]}", NULL},
    {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":"
     "\"boolean\"},\"next\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/tree\"}]}},\"required\":[\"v\",\"next\"],"
     "\"additionalProperties\":false}}}", NULL},
    {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"type\":[\"string\",\"null\"],\"minLength\":3,\"maxLength\":6}", NULL},
    {HUNCH_GRAMMAR_JSON_OBJECT, "", NULL},
    {HUNCH_GRAMMAR_REGEX, "(Yes|No), (she|he) (was|is) [a-z]{3,9}\\.", "^(Yes|No), (she|he) (was|is) [a-z]{3,9}\\.$"},
    {HUNCH_GRAMMAR_REGEX, "[0-9]{4}-[01][0-9]", "^[0-9]{4}-[01][0-9]$"},
    {HUNCH_GRAMMAR_GBNF, "root ::= line+\nline ::= \"- \" word (\" \" word){1,2} \"\\n\"\nword ::= [a-z]{2,5}\n",
     "^(- [a-z]{2,5}( [a-z]{2,5}){1,2}\n)+$"},
    {HUNCH_GRAMMAR_GBNF, "root ::= \"(\" root? \")\" | [xy]", NULL},
};
enum { FORMS = sizeof forms / sizeof *forms };

static bool json_matches(const form *f, const char *text) {
    json_t *schema = json_loads(f->kind == HUNCH_GRAMMAR_JSON_OBJECT ? "{\"type\":\"object\"}" : f->text, JSON_DECODE_ANY, NULL);
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    const bool valid = schema && value && schema_valid(schema, schema, value);
    json_decref(schema);
    json_decref(value);
    return valid;
}

/* ( .. ( x ) .. ), or () in the middle. */
static bool nest_matches(const char *text) {
    size_t n = strlen(text), depth = 0;
    while (depth < n / 2 && text[depth] == '(' && text[n - 1 - depth] == ')') depth++;
    return n == 2 * depth ? depth > 0 : n == 2 * depth + 1 && (text[depth] == 'x' || text[depth] == 'y');
}

static bool matches(const form *f, const char *text) {
    regex_t r;
    if (f->kind < HUNCH_GRAMMAR_REGEX) return json_matches(f, text);
    if (!f->posix) return nest_matches(text);
    assert_int_equal(regcomp(&r, f->posix, REG_EXTENDED | REG_NOSUB), 0);
    const bool found = regexec(&r, text, 0, NULL, 0) == 0;
    regfree(&r);
    return found;
}

static hunch_grammar *grammar_of(const hunch_model *m, const form *f) {
    hunch_grammar *g = NULL;
    must(hunch_grammar_open(&g, m, f->kind, f->text, strlen(f->text), HUNCH_GRAMMAR_AT_ONCE, err));
    return g;
}

static void check_answer(const hunch_model *m, const form *f, const answer *a, const char *what) {
    hunch_grammar *g = grammar_of(m, f);
    hn_matcher *matcher = hn_grammar_matcher(g);
    const int32_t state = hn_matcher_bytes(matcher, hn_matcher_start(matcher), a->text, strlen(a->text));
    if (a->finish == HUNCH_FINISH_STOP ? !matches(f, a->text) || !hn_matcher_is_final(matcher, state)
                                       : a->finish != HUNCH_FINISH_LENGTH || state < 0)
        fail_msg("%s: %s: \"%s\" (finish %d)", what, f->text, a->text, (int)a->finish);
    hunch_grammar_close(&g);
}

/* ---- requests --------------------------------------------------------------------------------------------------------------- */

typedef struct asked {
    hunch_request r[2 * FORMS * SEEDS];
    hunch_token *prompt;
    size_t n_prompt;
    int n;
} asked;

/* Every form greedily and at temperature 1, each with some seeds. */
static void ask(asked *q, hunch_model *m) {
    static const char prompt[] = "Lily said: here is what is wrong: {\"name\": 12, [1, 2,, (x))";
    memset(q, 0, sizeof *q);
    must(hunch_tokenize(m, prompt, strlen(prompt), HUNCH_TEXT_ADD_SPECIAL, &q->prompt, &q->n_prompt, err));
    for (int i = 0; i < 2 * FORMS; i++)
        for (int seed = 0; seed < (i % 2 ? SEEDS : 1); seed++) {
            hunch_request *r = &q->r[q->n++];
            hunch_request_defaults(r, m);
            r->prompt = q->prompt;
            r->n_prompt = q->n_prompt;
            r->max_tokens = MOST;
            r->grammar = grammar_of(m, &forms[i / 2]);
            r->sampling = (hunch_sampling){.temperature = i % 2, .top_p = 1, .seed = (uint64_t)seed + 5};
        }
}

static const form *form_of(const asked *q, const hunch_model *m, int i) {
    for (int f = 0; f < FORMS; f++) {
        hunch_grammar *g = grammar_of(m, &forms[f]); /* the model returns the same one */
        const bool same = g == q->r[i].grammar;
        hunch_grammar_close(&g);
        if (same) return &forms[f];
    }
    fail_msg("the grammar is not kept by its model");
    return NULL;
}

static void asked_free(asked *q) {
    for (int i = 0; i < q->n; i++) hunch_grammar_close(&q->r[i].grammar);
    hunch_free(q->prompt);
}

static void answers_make(hunch_model *m, const asked *q, const char *draft, hunch_verify verify, int parallel, answer *out) {
    hunch_engine *e = open_drafting(m, draft, verify, parallel, PAGE, CONTEXT);
    run_requests(e, q->r, q->n, false, out);
    hunch_engine_close(&e);
}

/* The same tokens, whatever drafts; returns the rounds that they took. */
static uint64_t compare(const asked *q, const answer *plain, answer *a, const char *what) {
    uint64_t rounds = 0;
    for (int i = 0; i < q->n; i++) {
        assert_same(&plain[i], &a[i], what);
        assert_int_equal(plain[i].finish, a[i].finish);
        rounds += a[i].rounds;
        answer_free(&a[i]);
    }
    return rounds;
}

static void test_tokens(void **state) {
    (void)state;
    const char *const drafts[] = {"ngram", "suffix", "grammar", model_draft, eagle, eagle_tree, "forced,accept=.7,width=3,depth=5",
                                  "grammar+ngram+suffix", NULL};
    hunch_model *m = open_stories();
    answer plain[2 * FORMS * SEEDS] = {{0}};
    asked q;
    int complete = 0;
    uint64_t plain_rounds = 0;
    ask(&q, m);
    answers_make(m, &q, NULL, HUNCH_VERIFY_DEFAULT, 1, plain);
    for (int i = 0; i < q.n; i++) {
        check_answer(m, form_of(&q, m, i), &plain[i], "plain");
        complete += plain[i].finish == HUNCH_FINISH_STOP;
        plain_rounds += plain[i].rounds;
    }
    assert_true(complete > q.n / 2);
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        answer a[2 * FORMS * SEEDS] = {{0}};
        answers_make(m, &q, drafts[d], HUNCH_VERIFY_DEFAULT, d % 2 ? 4 : 1, a);
        const uint64_t rounds = compare(&q, plain, a, drafts[d] ? drafts[d] : "crowd");
        if (drafts[d] && !strncmp(drafts[d], "grammar", 7) && rounds >= plain_rounds)
            fail_msg("%s: %d rounds, plain %d", drafts[d], (int)rounds, (int)plain_rounds);
    }
    for (int i = 0; i < q.n; i++) answer_free(&plain[i]);
    asked_free(&q);
    hunch_model_close(&m);
}

static void test_preempted(void **state) {
    (void)state;
    hunch_model *m = open_stories();
    answer plain[2 * FORMS * SEEDS] = {{0}}, a[2 * FORMS * SEEDS] = {{0}};
    uint64_t preempted = 0;
    asked q;
    ask(&q, m);
    answers_make(m, &q, NULL, HUNCH_VERIFY_DEFAULT, 1, plain);
    hunch_engine *e = open_drafting(m, "auto", HUNCH_VERIFY_DEFAULT, 8, PAGE, CONTEXT);
    run_preempted_requests(e, q.r, q.n, a);
    hunch_engine_close(&e);
    for (int i = 0; i < q.n; i++) preempted += a[i].preempted;
    assert_true(preempted > 0);
    (void)compare(&q, plain, a, "preempted");
    for (int i = 0; i < q.n; i++) answer_free(&plain[i]);
    asked_free(&q);
    hunch_model_close(&m);
}

/* The other rules keep to the grammar. */
static void test_rules(void **state) {
    (void)state;
    static const struct {
        hunch_verify verify;
        const char *draft;
    } with[] = {{HUNCH_VERIFY_RATIO, model_draft},     {HUNCH_VERIFY_BLOCK, model_draft},          {HUNCH_VERIFY_TRAVERSAL, eagle},
                {HUNCH_VERIFY_RATIO, "ngram+grammar"}, {HUNCH_VERIFY_RATIO, "grammar"},            {HUNCH_VERIFY_DEFAULT, "grammar"}};
    hunch_model *m = open_stories();
    asked q;
    ask(&q, m);
    for (size_t d = 0; d < sizeof with / sizeof *with; d++) {
        answer a[2 * FORMS * SEEDS] = {{0}};
        answers_make(m, &q, with[d].draft, with[d].verify, 2, a);
        for (int i = 0; i < q.n; i++) {
            check_answer(m, form_of(&q, m, i), &a[i], with[d].draft);
            answer_free(&a[i]);
        }
    }
    asked_free(&q);
    hunch_model_close(&m);
}

/* A drafter that gives way does not keep others from a rule that takes one alone. */
static void test_grammar_gives_way(void **state) {
    (void)state;
    char draft[700];
    hunch_model *m = open_stories();
    answer a[2 * FORMS * SEEDS] = {{0}};
    asked q;
    snprintf(draft, sizeof draft, "grammar+%s", model_draft);
    ask(&q, m);
    answers_make(m, &q, draft, HUNCH_VERIFY_BLOCK, 1, a);
    for (int i = 0; i < q.n; i++) {
        check_answer(m, form_of(&q, m, i), &a[i], draft);
        answer_free(&a[i]);
    }
    asked_free(&q);
    hunch_model_close(&m);
}

/* ---- limits --------------------------------------------------------------------------------------------------------------- */

/* min_tokens and ignore_eos neither lengthen nor break an answer that is complete. */
static void test_ends(void **state) {
    (void)state;
    hunch_model *m = open_stories();
    hunch_engine *e = open_drafting(m, "grammar", HUNCH_VERIFY_DEFAULT, 2, PAGE, CONTEXT);
    asked q;
    ask(&q, m);
    for (int i = 0; i < q.n; i++) {
        answer a = {0};
        q.r[i].min_tokens = i % 3 ? MOST : 0;
        q.r[i].ignore_eos = i % 2;
        run_requests(e, &q.r[i], 1, false, &a);
        check_answer(m, form_of(&q, m, i), &a, "min_tokens");
        answer_free(&a);
    }
    hunch_engine_close(&e);
    asked_free(&q);
    hunch_model_close(&m);
}

/* A grammar whose states outgrow their bound ends the answer: its text so far stays, that of the model without a
 * grammar here, and the error says at which token; the grammar is as good as new for the next one. */
static void test_too_many_states(void **state) {
    (void)state;
    static const char many[] = "((.|\n)*[a-z ](.|\n){400}){2}", prompt[] = "Once upon a time";
    static const char *const drafts[] = {NULL, "ngram"};
    hunch_model *m = open_stories();
    hunch_request r;
    hunch_token *ids;
    answer plain = {0};
    hunch_request_defaults(&r, m);
    must(hunch_tokenize(m, prompt, strlen(prompt), HUNCH_TEXT_ADD_SPECIAL, &ids, &r.n_prompt, err));
    r.prompt = ids;
    r.max_tokens = 240;
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        hunch_engine *e = open_drafting(m, drafts[d], HUNCH_VERIFY_DEFAULT, 1, PAGE, CONTEXT);
        hunch_session *s;
        hunch_session_state st;
        char at[40];
        r.grammar = NULL;
        if (d == 0) run_requests(e, &r, 1, false, &plain);
        must(hunch_grammar_open(&r.grammar, m, HUNCH_GRAMMAR_REGEX, many, strlen(many), HUNCH_GRAMMAR_AT_ONCE, err));
        must(hunch_session_open(&s, e, &r, err));
        while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
        hunch_session_get(s, &st);
        assert_int_equal(st.finish, HUNCH_FINISH_GRAMMAR);
        assert_in_range(st.n_tokens, 20, plain.n - 1);
        assert_memory_equal(st.tokens, plain.token, st.n_tokens * sizeof *st.tokens);
        assert_memory_equal(st.text, plain.text, st.text_len);
        snprintf(at, sizeof at, "too many states at position %zu:", r.n_prompt + st.n_tokens);
        if (st.error.status != HUNCH_NO_MEMORY || !strstr(st.error.message, at))
            fail_msg("%s: %s", at, st.error.message);
        hunch_session_close(&s);
        hunch_grammar_close(&r.grammar);
        hunch_engine_close(&e);
    }
    answer_free(&plain);
    hunch_free(ids);
    hunch_model_close(&m);
}

/* Behind thinking, if the template has marks for it or channels. */
static void test_thinking(void **state) {
    (void)state;
    enum { NONE, MARKS, CHANNELS };
    static const struct {
        int template;
        hunch_grammar_start start;
        const char *text;
        bool complete;
    } cases[] = {
        {NONE, HUNCH_GRAMMAR_AFTER_THINKING, "[1]", true},
        {NONE, HUNCH_GRAMMAR_IN_THINKING, "[1]", true},
        {NONE, HUNCH_GRAMMAR_AFTER_THINKING, "<think>[</think>[1]", false},
        {MARKS, HUNCH_GRAMMAR_AT_ONCE, "<think>[</think>[1]", false},
        {MARKS, HUNCH_GRAMMAR_AFTER_THINKING, "[1]", true},
        {MARKS, HUNCH_GRAMMAR_AFTER_THINKING, "<think>\n[ or { </thin\n</think>\n\n[1]", true},
        {MARKS, HUNCH_GRAMMAR_AFTER_THINKING, "<think>[1]", false},
        {MARKS, HUNCH_GRAMMAR_AFTER_THINKING, "well</think>[1]", false},
        {MARKS, HUNCH_GRAMMAR_IN_THINKING, "well</think>[1]", true},
        {MARKS, HUNCH_GRAMMAR_IN_THINKING, "[1]", false},
        {CHANNELS, HUNCH_GRAMMAR_AFTER_THINKING, "[1]", false},
        {CHANNELS, HUNCH_GRAMMAR_AFTER_THINKING, "<|channel|>final<|message|>[1]", true},
        {CHANNELS, HUNCH_GRAMMAR_AFTER_THINKING, "<|channel|>final <|constrain|>json<|message|>[1]", true},
        {CHANNELS, HUNCH_GRAMMAR_AFTER_THINKING,
         "<|channel|>analysis<|message|>hm [<|end|><|start|>assistant<|channel|>final<|message|>[1]", true},
        {CHANNELS, HUNCH_GRAMMAR_AFTER_THINKING, "<|channel|>analysis<|message|>[1]", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hunch_model *m = open_stories();
        hunch_grammar *g = NULL;
        m->may_think = cases[i].template != NONE;
        m->think_channels = cases[i].template == CHANNELS;
        must(hunch_grammar_open(&g, m, HUNCH_GRAMMAR_REGEX, "\\[1\\]", 5, cases[i].start, err));
        hn_matcher *matcher = hn_grammar_matcher(g);
        const int32_t at = hn_matcher_bytes(matcher, hn_matcher_start(matcher), cases[i].text, strlen(cases[i].text));
        if ((at >= 0 && hn_matcher_is_final(matcher, at)) != cases[i].complete) fail_msg("case %zu: %s", i, cases[i].text);
        hunch_grammar_close(&g);
        hunch_model_close(&m);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        hunch_grammar_kind kind;
        const char *text, *says;
    } bad[] = {{HUNCH_GRAMMAR_JSON_SCHEMA, "{\"type\":\"array\",\"uniqueItems\":true,\"prefixItems\":[{}]}", "uniqueItems"},
               {HUNCH_GRAMMAR_JSON_SCHEMA, "{\"properties\":{\"a\":{\"not\":{\"format\":\"date\"}}}}", "not"},
               {HUNCH_GRAMMAR_JSON_SCHEMA, "{", ""},
               {HUNCH_GRAMMAR_REGEX, "a(?=b)", ""},
               {HUNCH_GRAMMAR_GBNF, "root ::= rest", "rest"},
               {(hunch_grammar_kind)9, "", "kind"}};
    hunch_model *m = open_stories(), *other = open_stories();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hunch_grammar *g = NULL;
        hunch_error err = {0};
        const size_t n = strlen(bad[i].text);
        assert_int_equal(hunch_grammar_open(&g, m, bad[i].kind, bad[i].text, n, HUNCH_GRAMMAR_AT_ONCE, &err), HUNCH_USAGE);
        assert_null(g);
        if (!strstr(err.message, bad[i].says)) fail_msg("%s: %s", bad[i].text, err.message);
    }
    hunch_engine *e = open_drafting(other, NULL, HUNCH_VERIFY_DEFAULT, 1, PAGE, CONTEXT);
    hunch_session *s = NULL;
    hunch_error err = {0};
    asked q;
    ask(&q, m);
    assert_int_equal(hunch_session_open(&s, e, &q.r[0], &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "another model"));
    hunch_engine_close(&e);
    asked_free(&q);
    hunch_model_close(&m);
    hunch_model_close(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens),   cmocka_unit_test(test_preempted),
                                       cmocka_unit_test(test_rules),    cmocka_unit_test(test_grammar_gives_way),
                                       cmocka_unit_test(test_ends),     cmocka_unit_test(test_too_many_states),
                                       cmocka_unit_test(test_thinking), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
