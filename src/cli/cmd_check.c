/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c - `hunch check`: whether a draft head fits a model and drafts better than a constant guess; prints the library's report as
 * text. */
#include <string.h>

#include "base/utf8.h"
#include "app/tool_open.h"
#include "cli/tool_prompts.h"

static const json_t *part(const json_t *j, const char *key) {
    return json_object_get(j, key);
}

static long long int_of(const json_t *j, const char *key) {
    return (long long)json_integer_value(json_object_get(j, key));
}

static void line(const char *name, bool color) {
    printf("  %s%-12s%s ", tool_style(color, 'd'), name, tool_style(color, '0'));
}

/* Masks control characters: text of a file must not send escape sequences to the terminal. */
static void text_print(const json_t *text) {
    const char *s = json_string_value(text);
    char *shown = hn_utf8_mask(tool_strdup(s), ' ');
    fputs(shown, stdout);
    hn_free(shown);
}

/* "2, 4 and 5" */
static void layers_print(const json_t *list) {
    size_t i;
    const json_t *k;
    json_array_foreach (list, i, k) {
        fputs(i == 0 ? "" : i + 1 < json_array_size(list) ? ", " : " and ", stdout);
        if (json_is_integer(k))
            printf("%lld", (long long)json_integer_value(k));
        else
            fputs(json_is_string(k) ? "the final norm" : "the embedding", stdout);
    }
}

static void taps_print(const json_t *d, bool color) {
    const json_t *taps = part(d, "taps"), *outputs = part(d, "outputs");
    if (json_array_size(taps) == 0)
        return;
    line("reads", color);
    if (json_array_size(taps) == 1 && json_is_string(json_array_get(taps, 0))) {
        puts("the last state, behind the final norm");
        return;
    }
    fputs(json_array_size(taps) == 1 ? "the state entering layer " : "states entering layers ", stdout);
    layers_print(taps);
    fputs(json_array_size(taps) == 1 ? ", the output of layer " : ", outputs of layers ", stdout);
    layers_print(outputs);
    printf(" (counted from 0, of %lld)\n", int_of(d, "target_layers"));
}

static void vocabulary_print(const json_t *d, bool color) {
    const json_t *v = part(d, "vocabulary");
    line("vocabulary", color);
    printf("the model's %lld", int_of(v, "target"));
    if (json_is_integer(part(v, "tokenizer"))) {
        printf(", the tokenizer's %lld", int_of(v, "tokenizer"));
        if (int_of(v, "padding") != 0)
            printf(" (%lld of padding)", int_of(v, "padding"));
    }
    if (json_is_integer(part(v, "drafts"))) {
        const json_t *own = part(v, "own_embedding"); /* null: it reads none */
        printf("; drafts %lld, with %s embedding", int_of(v, "drafts"),
               json_is_true(own) ? "its own" : json_is_false(own) ? "the model's" : "no");
        if (json_is_true(own) && int_of(v, "embeddings") != int_of(v, "target"))
            printf(" of %lld", int_of(v, "embeddings"));
        printf(" and %s output", json_is_true(part(v, "own_output")) ? "its own" : "the model's");
        if (int_of(v, "clusters") > 0)
            printf(", of each row those of %lld of %lld clusters", int_of(v, "clusters_used"), int_of(v, "clusters"));
    }
    putchar('\n');
}

static void names_print(const json_t *names, const char *what, char style, bool color) {
    enum { NAMED = 12 };
    size_t i;
    const json_t *name;
    if (json_array_size(names) == 0)
        return;
    line(what, color);
    fputs(tool_style(color, style), stdout);
    json_array_foreach (names, i, name) {
        if (i >= NAMED)
            continue;
        fputs(i ? ", " : "", stdout);
        text_print(name);
    }
    printf("%s%s\n", json_array_size(names) > NAMED ? ", ..." : "", tool_style(color, '0'));
}

static void fit_print(const json_t *d, bool color) {
    const bool fits = json_is_true(part(d, "fits"));
    line("kind", color);
    if (json_is_string(part(d, "kind")))
        text_print(part(d, "kind"));
    else
        fputs("none that is known", stdout);
    if (json_is_integer(part(d, "layers")))
        printf(", %lld layer%s, %lld wide; the model is %lld wide", int_of(d, "layers"),
               int_of(d, "layers") == 1 ? "" : "s", int_of(d, "hidden"), int_of(d, "target_hidden"));
    putchar('\n');
    taps_print(d, color);
    vocabulary_print(d, color);
    line("tensors", color);
    printf("%lld used, %zu left over, %zu missing\n", int_of(part(d, "tensors"), "used"),
           json_array_size(part(part(d, "tensors"), "unused")), json_array_size(part(part(d, "tensors"), "missing")));
    names_print(part(part(d, "tensors"), "unused"), "left over", 'y', color);
    names_print(part(part(d, "tensors"), "missing"), "missing", 'r', color);
    line("fits", color);
    fputs(fits ? "yes" : "no: ", stdout);
    if (!fits)
        text_print(part(d, "reason"));
    putchar('\n');
}

static void acceptance_print(const json_t *s, bool color) {
    size_t i;
    const json_t *a;
    line("acceptance", color);
    json_array_foreach (part(s, "acceptance"), i, a)
        printf("%s%.2f", i ? ", " : "", json_number_value(a));
    printf("%s over %lld first positions; the best constant guess %.2f\n",
           json_array_size(part(s, "acceptance")) ? " by position," : "nothing was drafted", int_of(s, "positions"),
           json_number_value(part(s, "constant")));
}

static void smoke_print(const json_t *d, bool color) {
    const json_t *s = part(d, "smoke"), *cause = part(s, "cause");
    const char *verdict = json_string_value(part(s, "verdict"));
    if (!json_is_object(s)) {
        if (json_is_true(part(d, "fits"))) {
            fputs("  smoke test skipped: ", stdout);
            text_print(part(d, "skipped"));
            puts(strcmp(json_string_value(part(d, "skipped")), "no tokenizer") == 0 ? " (--tokens FILE gives it a text)" : "");
        }
        return;
    }
    acceptance_print(s, color);
    line("smoke test", color);
    if (strcmp(verdict, "unknown") == 0)
        printf("no result: %s\n", json_is_true(part(s, "complete")) ? "too few positions, or texts of one token"
                                                                       : "there was no time for more");
    else
        printf("%s%s than a constant guess%s%s\n", tool_style(color, strcmp(verdict, "better") == 0 ? 'g' : 'r'),
               verdict, tool_style(color, '0'),
               json_is_true(part(s, "complete")) ? "" : "; not everything was tried, there was no time for more");
    if (json_is_string(cause)) {
        line("likely cause", color);
        text_print(cause);
        putchar('\n');
    }
}

/* Why a head does not fit is the command's error too, where a script that keeps the report elsewhere looks for it. */
static void reason_tell(const json_t *d) {
    const char *reason = json_string_value(part(d, "reason"));
    if (reason)
        tool_message("%s", reason);
}

static int check_show(const tool_options *o, const char *text) {
    const bool color = tool_colors(o->color, stdout);
    json_t *d = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (!d) {
        tool_message("the report of the check is not valid JSON");
        return HUNCH_FAILED;
    }
    const int code = json_is_true(part(d, "passes")) ? HUNCH_OK : HUNCH_REFUSED;
    reason_tell(d);
    if (o->json) {
        const int printed = tool_print_json(d);
        return printed ? printed : code;
    }
    fit_print(d, color);
    smoke_print(d, color);
    json_decref(d);
    return tool_done(code);
}

static int check_run(const tool_options *o) {
    hunch_error err = {0};
    hunch_model *m = NULL;
    char *text = NULL;
    hunch_check_options how;
    hunch_token *ids = NULL;
    tool_progress bar;
    if (o->drafts.n != 1)
        return tool_usage("check: %s: expected one --draft PATH, a head's folder or file",
                          o->drafts.n ? "several --draft" : "which head?");
    hunch_check_options_defaults(&how);
    int code = o->tokens_file ? tool_tokens_read(o->tokens_file, &ids, &how.n_tokens) : 0;
    if (!code)
        code = tool_model_open(&m, o, NULL);
    if (code) {
        hn_free(ids);
        return code;
    }
    how.tokens = ids;
    tool_progress_begin(&bar, "testing", NULL);
    how.smoke = !o->no_smoke;
    how.progress = tool_progress_bytes;
    how.progress_user = &bar;
    const hunch_status st = hunch_check_head(m, o->drafts.items[0], &how, &text, &err);
    tool_progress_end(&bar);
    code = st == HUNCH_OK ? check_show(o, text) : tool_failed(&err);
    hunch_free(text);
    hn_free(ids);
    hunch_model_close(&m);
    return code;
}

int tool_check(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_CHECK, argc, argv);
    if (code >= 0)
        return code;
    code = check_run(&o);
    tool_options_fini(&o);
    return code;
}
