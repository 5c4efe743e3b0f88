/* SPDX-License-Identifier: Apache-2.0 */
/* command_help_test.c - the command's documentation: help, manual, completion, version. They are compared with each other and with what the
 * command and the library accept: every flag is in all of them and is parsed, every kind and key of a drafter is listed and opens, every
 * example runs. Shells and readers of man pages that are not installed are skipped. */
#include "model/arch/arch.h" /* first: command.h has a type bytes, which names of its parameters would hide */

#include "command.h"

#include "random_assistant.h"
#include "random_head.h"
#include "random_steps.h"

static const char *const commands[] = {"run",   "chat",    "compare", "bench", "inspect", "tokenize",   "logits",
                                       "serve", "draft", "check",   "score",   "convert", "train", "help",  "manual",
                                        "completion", "version", "plan", "devices"};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* ---- lists --------------------------------------------------------------------------------------------------- */

typedef struct list {
    char items[400][600]; /* long enough for paths of files of the checkout */
    int n;
} list;

static void list_add(list *l, const char *text, size_t len) {
    assert_true(l->n < 400 && len < sizeof l->items[0]);
    memcpy(l->items[l->n], text, len);
    l->items[l->n++][len] = 0;
}

static bool list_has(const list *l, const char *text) {
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->items[i], text) == 0)
            return true;
    return false;
}

static void same_lists(const list *a, const list *b, const char *what) {
    for (int i = 0; i < a->n; i++)
        if (!list_has(b, a->items[i]))
            fail_msg("%s: %s is missing in one of two lists", what, a->items[i]);
    assert_int_equal(a->n, b->n);
}

/* Completions of the last word, without their descriptions after tabs. */
static list query_args(const char *const *words) {
    const char *args[16] = {"completion", "--query"};
    list l = {.n = 0};
    for (int i = 0; words[i]; i++)
        args[i + 2] = words[i];
    result r = command_args(args);
    assert_int_equal(r.code, 0);
    for (const char *at = r.out; *at;) {
        list_add(&l, at, strcspn(at, "\t\n"));
        at = strchr(at, '\n') + 1;
    }
    result_free(&r);
    return l;
}
#define query(...) query_args((const char *const[]){__VA_ARGS__, NULL})

/* "a, b, c" after `before` in a message. */
static list list_in(const char *text, const char *before) {
    list l = {.n = 0};
    const char *at = strstr(text, before);
    if (!at)
        fail_msg("no \"%s\" in \"%s\"", before, text);
    for (at += strlen(before);; at += 2) {
        const size_t len = strcspn(at, ",\n");
        list_add(&l, at, len);
        at += len;
        if (*at != ',')
            return l;
    }
}

/* ---- help, manual, completion ---------------------------------------------------------------------------------- */

/* The flag as a word of its own. */
static bool names_flag(const char *text, const char *flag) {
    const size_t len = strlen(flag);
    for (const char *at = text; (at = strstr(at, flag)); at += len)
        if ((at == text || !strchr("-abcdefghijklmnopqrstuvwxyz", at[-1])) && (!at[len] || strchr(" ,\n[=\\", at[len])))
            return true;
    return false;
}

/* With \- for -. */
static char *roff_of(const char *flag, char out[120]) {
    char *to = out;
    for (; *flag; flag++) {
        if (*flag == '-')
            *to++ = '\\';
        *to++ = *flag;
    }
    *to = 0;
    return out;
}

/* README: "Help, manual pages and completion are made from one table, and name the same flags." */
static void test_flags_everywhere(void **state) {
    (void)state;
    size_t flags = 0;
    for (int i = 0; i < COMMANDS; i++) {
        list l = query(commands[i], "-");
        result help = command(commands[i], "--help"), man = command("manual", commands[i]);
        result brief = command(commands[i], "-h"), topic = command("help", commands[i]);
        assert_int_equal(help.code + man.code + brief.code + topic.code, 0);
        assert_string_equal(help.out, topic.out);
        assert_true(brief.out_len <= help.out_len);
        for (int k = 0; k < l.n; k++) {
            const char *flag = l.items[k];
            char roff[120];
            if (!names_flag(help.out, flag))
                fail_msg("hunch %s --help: no %s", commands[i], flag);
            if (!strstr(man.out, roff_of(flag, roff)))
                fail_msg("hunch manual %s: no %s", commands[i], flag);
            if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0)
                continue;
            result r = command(commands[i], flag, "--bogus-flag"); /* any message, but not that the flag is unknown */
            char unknown[160];
            snprintf(unknown, sizeof unknown, "unknown flag %.140s,", flag);
            assert_null(strstr(r.err, unknown));
            assert_true(r.code != 0);
            result_free(&r);
        }
        /* and each flag in help is in the others */
        for (const char *at = help.out; (at = strstr(at, "\n  -"));) {
            at += 3;
            const size_t len = strcspn(at, " ,[\n");
            char flag[64];
            snprintf(flag, sizeof flag, "%.*s", (int)len, at);
            if (!list_has(&l, flag))
                fail_msg("hunch completion: no %s of %s", flag, commands[i]);
        }
        flags += (size_t)l.n;
        result_free(&help);
        result_free(&man);
        result_free(&brief);
        result_free(&topic);
    }
    assert_true(flags > 200);
}

static int longest_line(const char *text) {
    int longest = 0, columns = 0;
    for (; *text; text++) {
        columns = *text == '\n' ? 0 : columns + (((unsigned char)*text & 0xC0) != 0x80);
        longest = columns > longest ? columns : longest;
    }
    return longest;
}

static void test_help(void **state) {
    (void)state;
    result all = command("--help"), none = command_args((const char *const[]){NULL}), help = command("help");
    assert_int_equal(all.code, 0);
    assert_int_equal(none.code, 2);
    assert_string_equal(all.out, none.out);
    assert_string_equal(all.out, help.out);
    assert_true(longest_line(all.out) <= 80);
    assert_null(strchr(all.out, 27));
    for (int i = 0; i < COMMANDS; i++) {
        char line[40];
        snprintf(line, sizeof line, "\n  %s ", commands[i]);
        assert_non_null(strstr(all.out, line));
    }
    list topics = query("help", "");
    for (int i = 0; i < topics.n; i++) {
        result r = command("help", topics.items[i]);
        assert_int_equal(r.code, 0);
        assert_true(r.out_len > 100);
        result_free(&r);
    }
    assert_int_equal(topics.n, COMMANDS + 4);
    result colored = command("help", "run", "--color", "always");
    assert_non_null(strstr(colored.out, "\033[1m--draft\033[0m"));
    refused(2, "did you mean drafts?", "help", "drfats");
    result_free(&colored);
    result_free(&all);
    result_free(&none);
    result_free(&help);
}

static void files_for_examples(void) {
    char line[2000];
    snprintf(line, sizeof line,
             "cd %s && ln -sf '%s' model.gguf && ln -sf '%s' small.gguf && ln -sfn '%s' folder && ln -sfn '%s' head && "
             "echo 'Once upon a time there was a dog. The dog ran.' > article.txt && "
             "echo '{\"prompt\": \"Once upon a time\"}' > prompts.jsonl && "
             "echo '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' > chat.jinja && "
             "echo '[{\"role\": \"user\", \"content\": \"hello\"}]' > talk.json",
             folder, STORIES, STORIES, STORIES_HF, HUNCH_TEST_DATA "/heads/stories-eagle3");
    assert_int_equal(system(line), 0);
}

/* Runs an example of a page in the folder of its files. Measurements are slow and tested elsewhere, and a server does not end; man may be
 * missing; sourced scripts are
 * tested below. */
static void example_run(const char *line, size_t len) {
    char command_line[1200], path[600];
    if (memmem(line, len, "hunch bench", 11) || memmem(line, len, "man -l", 6) || memmem(line, len, "source", 6) ||
        memmem(line, len, "hunch serve", 11))
        return;
    snprintf(path, sizeof path, "%s", HUNCH_COMMAND);
    *strrchr(path, '/') = 0;
    snprintf(command_line, sizeof command_line,
             "cd %s && PATH='%s':$PATH && exec < /dev/null > out.txt 2> err.txt && %.*s", folder, path, (int)len, line);
    if (system(command_line) != 0) {
        char *err = file_read(path_of("err.txt"), NULL);
        fail_msg("%.*s: %s", (int)len, line, err);
    }
}

static void test_examples_run(void **state) {
    (void)state;
    int n = 0;
    files_for_examples();
    for (int i = -1; i < COMMANDS; i++) {
        result r = i < 0 ? command("--help") : command(commands[i], "--help");
        const char *at = strstr(r.out, "\nExamples\n");
        assert_non_null(at);
        for (; (at = strstr(at, "\n    ")); n++) {
            at += 5;
            example_run(at, strcspn(at, "\n"));
        }
        result_free(&r);
    }
    assert_true(n >= 25);
}

/* ---- drafters -------------------------------------------------------------------------------------------------- */

static const char *assistant_for_stories(const char *to) {
    hn_source *src;
    hn_arch target = {0};
    hunch_error why;
    if (hn_source_open(&src, STORIES, &why) || hn_arch_read(&target, src, &why)) fail_msg("%s", why.message);
    assistant_write(&CLUSTERED_ASSISTANT, &target, to);
    hn_arch_fini(&target);
    hn_source_close(&src);
    return to;
}

static const char *spec_of(const char *kind, const char *rest) {
    static char spec[600];
    static const struct {
        const char *kind;
        const head_form *form;
    } heads[] = {{"eagle", &STORIES_EAGLE},   {"hass", &STORIES_EAGLE},   {"eagle3", &STORIES_EAGLE3},
                 {"peagle", &STORIES_PEAGLE}, {"mtp", &STORIES_MTP},     {"dart", &STORIES_DART},
                 {"dflash", &STORIES_DFLASH}, {"dspark", &STORIES_DSPARK}, {"jetspec", &STORIES_JETSPEC}, {"pard", &STORIES_PARD},
                 {"domino", &STORIES_DOMINO}, {"dflash2", &STORIES_DFLASH2},
                 {"falcon", &STORIES_FALCON}};
    const char *path = strcmp(kind, "model") == 0 ? STORIES : NULL;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strcmp(kind, heads[i].kind) == 0)
            path = head_write_form(heads[i].form, path_of(kind));
    if (strcmp(kind, "assistant") == 0) path = assistant_for_stories(path_of(kind));
    if (!path) path = steps_write(kind, path_of(kind));
    snprintf(spec, sizeof spec, "%s%s%s%s", kind, path ? ":" : "", path ? path : "", rest);
    return spec;
}

/* A word that the library accepts only with another key. */
static bool wants_more(const result *r) {
    return r->code == 2 && strstr(r->err, "fitted to which ranks?");
}

/* Every key that the library accepts is listed, and no other; every word of a key opens. */
static void keys_check(const char *kind) {
    char words[610];
    result r = command("draft", "-m", STORIES, "-p", "Once", "--draft", spec_of(kind, ",bogusbogus=1"));
    assert_int_equal(r.code, 2);
    list known = list_in(r.err, "it knows "), listed = {.n = 0};
    snprintf(words, sizeof words, "%s,", spec_of(kind, ""));
    list offered = query("run", "--draft", words);
    for (int i = 0; i < offered.n; i++) {
        const char *key = strrchr(offered.items[i], ',') + 1;
        list_add(&listed, key, strlen(key) - 1);
        list values = query("run", "--draft", offered.items[i]);
        for (int k = 0; k < values.n && values.items[k][0] != ':'; k++) {
            result opened = command("draft", "-m", STORIES, "-p", "Once", "--draft", values.items[k]);
            if (opened.code && !wants_more(&opened))
                fail_msg("%s: %s", values.items[k], opened.err);
            result_free(&opened);
        }
    }
    same_lists(&known, &listed, kind);
    result_free(&r);
}

static void test_drafts(void **state) {
    (void)state;
    result r = command("draft", "-m", STORIES, "-p", "Once", "--draft", "bogusbogus");
    list known = list_in(r.err, "expected one of "), listed = query("run", "--draft", "");
    result_free(&r);
    r = command("help", "drafts");
    for (int i = 0; i < listed.n; i++) {
        char *kind = listed.items[i], line[60];
        kind[strcspn(kind, ":")] = 0;
        snprintf(line, sizeof line, "\n  %.50s", kind);
        assert_non_null(strstr(r.out, line));
        result opened = command("draft", "-m", STORIES, "-p", "Once upon a time", "--draft", spec_of(kind, ""));
        if (opened.code)
            fail_msg("%s: %s", kind, opened.err);
        result_free(&opened);
        if (strcmp(kind, "none") != 0 && strcmp(kind, "auto") != 0)
            keys_check(kind);
    }
    const char *once = strstr(r.out, "published tree; or one of JSON"); /* what every head has is there once */
    assert_non_null(once);
    assert_null(strstr(once + 1, "published tree; or one of JSON"));
    same_lists(&known, &listed, "kinds of drafters");
    result_free(&r);
}

/* ---- version --------------------------------------------------------------------------------------------------- */

static void test_version(void **state) {
    (void)state;
    result r = command("--version"), same = command("version");
    json_t *j = json_of("--version");
    assert_string_equal(r.out, same.out);
    char first[40];
    snprintf(first, sizeof first, "hunch %s\n", text_of(j, "version"));
    assert_memory_equal(r.out, first, strlen(first));
    const json_t *levels = get(j, "levels");
    bool there = false;
    for (size_t i = 0; i < json_array_size(levels); i++)
        there |= strcmp(json_string_value(json_array_get(levels, i)), text_of(j, "isa")) == 0;
    assert_true(there);
    assert_non_null(strstr(r.out, text_of(j, "isa")));
    assert_non_null(strstr(text_of(j, "libraries"), "jansson 2."));
    assert_true(strstr(text_of(j, "compiler"), "gcc") || strstr(text_of(j, "compiler"), "clang"));
    json_decref(j);
    result_free(&r);
    result_free(&same);
}

/* ---- the manual ------------------------------------------------------------------------------------------------ */

static bool has_program(const char *name) {
    char line[100];
    snprintf(line, sizeof line, "command -v %s > /dev/null 2>&1", name);
    return system(line) == 0;
}

/* Nothing on standard output or error. */
static void silent(const char *program, const char *page) {
    char line[700];
    snprintf(line, sizeof line, "%s %s > %s 2>&1", program, page, path_of("said"));
    const int status = system(line);
    char *said = file_read(path_of("said"), NULL);
    if (status != 0 || *said)
        fail_msg("%s: %s", line, said);
    free(said);
}

static void test_manual(void **state) {
    (void)state;
    const bool mandoc = has_program("mandoc"), groff = has_program("groff");
    result names = command("manual", "--list");
    int n = 0;
    for (char *name = strtok(names.out, "\n"); name; name = strtok(NULL, "\n"), n++) {
        result r = command("manual", name);
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.out, "\n.SH NAME\n"));
        assert_non_null(strstr(r.out, "\n.SH SYNOPSIS\n"));
        assert_non_null(strstr(r.out, "\n.SH SEE ALSO\n"));
        const char *page = text_write("page.1", r.out);
        if (mandoc)
            silent("mandoc -Tlint -W warning", page);
        if (groff)
            silent("groff -man -ww -b -Tutf8 -z", page);
        result_free(&r);
    }
    assert_int_equal(n, COMMANDS + 1);
    result_free(&names);
    result r = command("manual");
    static const char *const sections[] = {"DESCRIPTION", "COMMANDS", "MODELS", "DRAFTS", "ENVIRONMENT", "EXIT STATUS",
                                           "FILES",
                                           "EXAMPLES"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        char line[40];
        snprintf(line, sizeof line, "\n.SH %s\n", sections[i]);
        assert_non_null(strstr(r.out, line));
    }
    result_free(&r);
    refused(2, "did you mean run?", "manual", "rnu");
    if (!mandoc || !groff)
        print_message("not here: %s%s\n", mandoc ? "" : "mandoc ", groff ? "" : "groff");
}

/* ---- completion ------------------------------------------------------------------------------------------------ */

static void completes(const char *out, const char *line, const char *with) {
    char wanted[300];
    snprintf(wanted, sizeof wanted, "[%s] %s\n", line, with);
    if (!strstr(out, wanted))
        fail_msg("no \"%s\" in \"%s\"", wanted, out);
}

/* The output of the script, run in the folder of the examples' files, with this `hunch` first in PATH. */
static char *shell_run(const char *shell, const char *script) {
    char line[1500], path[600];
    snprintf(path, sizeof path, "%s", HUNCH_COMMAND);
    *strrchr(path, '/') = 0;
    snprintf(line, sizeof line,
             "cd %s && HUNCH_CACHE=/nonexistent HOME=/nonexistent XDG_CACHE_HOME= PATH='%s':$PATH %s %s > %s 2>&1 < "
             "/dev/null",
             folder, path, shell, text_write("script", script), path_of("completed"));
    if (system(line) != 0)
        print_message("%s did not end well\n", shell);
    return file_read(path_of("completed"), NULL);
}

static void test_bash(void **state) {
    (void)state;
    if (!has_program("bash")) {
        print_message("no bash here\n");
        skip();
    }
    files_for_examples();
    char *out = shell_run(
        "bash",
        "source <(hunch completion bash)\n"
        "t() { COMP_WORDS=(hunch \"$@\"); COMP_CWORD=$#; COMPREPLY=(); _hunch; echo \"[$*] ${COMPREPLY[*]}\"; }\n"
        "t ru; t run --verif; t run --verify ''; t run --verify =; t run --verify = tra\n"
        "t run --draft ngram+su; t run --draft ngram,form =; t run --draft = ngram,form = lon\n"
        "t run --draft model : sma; t run mod; t run model.gguf hi --tempe; t convert fol; t help env\n"
        "t run -f art; t run model.gguf ''; t train fal; t train falcon model.gguf --divergence tv; complete -p hunch\n");
    completes(out, "ru", "run");
    completes(out, "run --verif", "--verify --verify-exact");
    completes(out, "run --verify ", "greedy match ratio block traversal");
    completes(out, "run --verify =", "greedy match ratio block traversal");
    completes(out, "run --verify = tra", "traversal");
    completes(out, "run --draft ngram+su", "ngram+suffix");
    completes(out, "run --draft ngram,form =", "recent pld hf longest simple map-k map-k4v mod");
    completes(out, "run --draft = ngram,form = lon", "longest");
    completes(out, "run --draft model : sma", "small.gguf");
    completes(out, "run mod", "model.gguf");
    completes(out, "run model.gguf hi --tempe", "--temperature");
    completes(out, "convert fol", "folder");
    completes(out, "help env", "environment");
    completes(out, "run -f art", "article.txt");
    completes(out, "run model.gguf ", "");
    completes(out, "train fal", "falcon");
    completes(out, "train falcon model.gguf --divergence tv", "tvd");
    assert_non_null(strstr(out, "complete -F _hunch hunch"));
    free(out);
}

static void test_fish(void **state) {
    (void)state;
    if (!has_program("fish")) {
        print_message("no fish here\n");
        skip();
    }
    files_for_examples();
    char *out =
        shell_run("fish --no-config", "hunch completion fish | source\n"
                                      "function t; echo \"[$argv] \"(string join -- ' ' (complete -C \"hunch $argv\" | "
                                      "string replace -r '\\t.*' ''));end\n"
                                      "t ru; t run --verify=tra; t run --draft ngram+su; t run --draft ngram,form=lon\n"
                                      "t run --draft model:sma; t run mod; t convert fol; t train fal\n");
    completes(out, "train fal", "falcon");
    completes(out, "ru", "run");
    completes(out, "run --verify=tra", "--verify=traversal");
    completes(out, "run --draft ngram+su", "ngram+suffix");
    completes(out, "run --draft ngram,form=lon", "ngram,form=longest");
    completes(out, "run --draft model:sma", "model:small.gguf");
    completes(out, "run mod", "model.gguf");
    completes(out, "convert fol", "folder/");
    free(out);
}

/* zsh completes only in its line editor, so a second zsh runs on a terminal of the first. */
static void test_zsh(void **state) {
    (void)state;
    if (!has_program("zsh")) {
        print_message("no zsh here\n");
        skip();
    }
    files_for_examples();
    char *out = shell_run(
        "zsh -f",
        "zmodload zsh/zpty || exit 1\n"
        "zpty z zsh -f -i\n"
        "zpty -w z 'PS1=; autoload -U compinit; compinit -u -D; source <(hunch completion zsh); echo RE''ADY'\n"
        "zpty -r -m z seen '*READY*'\n"
        "for l in 'ru' 'run --verify=tra' 'run --draft ngram+su' 'run --draft ngram,form=lon' 'run mod' 'convert fol' 'train fal'; "
        "do\n"
        "  zpty -w -n z \"hunch $l\"$'\\t\\x01'\"echo '<\"$'\\x05'\">'E''ND\"$'\\n'\n"
        "  zpty -r -m z seen '*>END*'\n"
        "  seen=${seen##*$'\\n'<hunch }; seen=${seen%>END*}; echo \"[$l] ${seen%%[ /]#}\"\n"
        "done\n"
        "zpty -d z\n");
    completes(out, "ru", "run");
    completes(out, "run --verify=tra", "run --verify=traversal");
    completes(out, "run --draft ngram+su", "run --draft ngram+suffix");
    completes(out, "run --draft ngram,form=lon", "run --draft ngram,form=longest");
    completes(out, "run mod", "run model.gguf");
    completes(out, "convert fol", "convert folder");
    completes(out, "train fal", "train falcon");
    free(out);
}

/* Names of downloads are offered as hunch_model_open takes them. */
static void test_downloads(void **state) {
    (void)state;
    char line[600];
    snprintf(line, sizeof line, "cd %s && mkdir -p own hub/models--org--tiny && ln -sf '%s' own/Stories-F32.gguf",
             folder, STORIES);
    assert_int_equal(system(line), 0);
    setenv("HUNCH_CACHE", path_of("own"), 1);
    setenv("HF_HUB_CACHE", path_of("hub"), 1);
    list l = query("run", "Sto"), all = query("inspect", ""), draft = query("run", "--draft", "model:org");
    assert_true(list_has(&l, "Stories-F32.gguf"));
    assert_true(list_has(&all, "org/tiny") && list_has(&all, ":models"));
    assert_true(list_has(&draft, "model:org/tiny"));
    result r = command("inspect", l.items[1]);
    assert_int_equal(r.code, 0);
    result_free(&r);
    unsetenv("HUNCH_CACHE");
    unsetenv("HF_HUB_CACHE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_everywhere), cmocka_unit_test(test_help),    cmocka_unit_test(test_examples_run),
        cmocka_unit_test(test_drafts),           cmocka_unit_test(test_version), cmocka_unit_test(test_manual),
        cmocka_unit_test(test_bash),             cmocka_unit_test(test_fish),    cmocka_unit_test(test_zsh),
        cmocka_unit_test(test_downloads),
    };
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
