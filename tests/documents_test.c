/* SPDX-License-Identifier: Apache-2.0 */
/* documents_test.c - the documents and the comments name only existing things: links have a target, files are in the checkout, functions
 * and keys in the sources, in the file or struct that is said to have them, flags in --help, JSON and draft heads have the keys that
 * docs/formats.md names, and the commands shown run, with a model of a megabyte instead of the named one.
 *
 * Documents are all *.md except those of others in tests/data. Their prose is not checked; README's promises are checked by
 * promises_test.c.
 */
#include "command.h"
#include "document_checks.h"
#include "model/head/head.h"
#include "random_head.h"
#include "engine/round.h"

static int setup(void **state) {
    text_files_find();
    return folder_make(state);
}

static int teardown(void **state) {
    text_files_forget();
    return folder_remove(state);
}

static bool is_document(const char *path) {
    return text_ends(path, ".md") && !text_starts(path, "tests/data/");
}

static bool is_source(const char *path) {
    return (text_ends(path, ".c") || text_ends(path, ".h")) && !text_starts(path, "tests/data/");
}

/* ---- links ------------------------------------------------------------------------------------------------------ */

static void test_links(void **state) {
    (void)state;
    int wrong = 0, seen = 0;
    for (int i = 0; i < n_text_files; i++) {
        if (!is_document(text_file[i])) continue;
        char *text = text_read(text_file[i]);
        for (const char *at = text; (at = strstr(at, "](")); seen++) {
            at += 2;
            size_t n = strcspn(at, ")\n");
            if (link_leads(text_file[i], at, n)) continue;
            print_error("%s:%d: %.*s is not there\n", text_file[i], line_of(text, at), (int)n, at);
            wrong++;
        }
        free(text);
    }
    assert_true(seen > 10 && link_leads("docs/a.md", "../README.md", 12) && !link_leads("docs/a.md", "README.md", 9));
    assert_true(link_leads("README.md", "#what-lossless-means-here", 25));
    assert_true(link_leads("docs/a.md", "../README.md#install", 20));
    assert_false(link_leads("README.md", "#what-lossless-means", 20));
    assert_false(link_leads("docs/a.md", "../README.md#installs", 21));
    assert_int_equal(wrong, 0);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static void test_names(void **state) {
    (void)state;
    int wrong = 0, seen = 0;
    for (int i = 0; i < n_text_files; i++) {
        const char *file = text_file[i];
        if (!is_document(file) && !is_source(file)) continue;
        char *text = text_read(file);
        if (is_source(file)) source_keep(text, true);
        wrong += names_check(file, text, &seen);
        free(text);
    }
    assert_true(seen > 100);
    assert_int_equal(wrong, 0);
}

static void test_the_names_check(void **state) {
    (void)state;
    int seen = 0;
    static const char right[] = "`model/pass.c`, pass.c; x_test.c or arch_NAME.c, *_avx2.c, docs/kernels.md.";
    assert_int_equal(names_check("a", right, &seen), 0);
    assert_int_equal(seen, 3);
    print_message("two that are not there:\n");
    assert_int_equal(names_check("a", "see model/nothing.c and ops/pass.c", &seen), 2);
    char source[] = "int a = '\"'; /* one.c */ f(\"/* two.c */\\\"\"); /* three.c */";
    source_keep(source, true);
    assert_non_null(strstr(source, "one.c"));
    assert_null(strstr(source, "two.c"));
    assert_non_null(strstr(source, "three.c"));
}

static void test_identifiers(void **state) {
    (void)state;
    int wrong = 0, seen = 0;
    identifiers_read();
    for (int i = 0; i < n_text_files; i++) {
        if (!is_document(text_file[i])) continue;
        char *text = text_read(text_file[i]);
        wrong += identifiers_check(text_file[i], text, &seen);
        free(text);
    }
    assert_true(seen > 300);
    seen = 0;
    static const char right[] = "hn_cache_commit; `hn_cache_*`, hunch_model_open(), `file_read()` and `scheduler_test`";
    static const char not_there[] = "hn_cache_comit, `hn_cashe_*`, `plan_no_layer` or `file_read_no()`, not `x.y_z`";
    assert_int_equal(identifiers_check("a", right, &seen), 0);
    assert_int_equal(seen, 5);
    print_message("four that are not there:\n");
    assert_int_equal(identifiers_check("a", not_there, &seen), 4);
    identifiers_free();
    assert_int_equal(wrong, 0);
}

/* A document that says in which file or struct a name is, is right. */
static void test_places(void **state) {
    (void)state;
    int wrong = 0, seen = 0;
    for (int i = 0; i < n_text_files; i++) {
        if (!is_document(text_file[i])) continue;
        char *text = text_read(text_file[i]);
        wrong += places_check(text_file[i], text, &seen);
        free(text);
    }
    assert_true(seen > 20);
    seen = 0;
    static const char right[] = "`hn_tree` (`draft/tree.h`), `hn_round` in `round.c`; hn_pass_run (model/pass.c), `pass.c` (`hn_pass_run`) "
                                "and `hn_needs.cost`\n"
                                "| of `hn_needs` | |\n|---|---|\n| `cost`, `branches` | |\n\n"
                                "| `hn_tree` | `src/draft/tree.h` |\n| the `x` of it | `src/draft/tree.h` |\n";
    static const char not_there[] = "`hn_tree` (`model/pass.c`), hn_needs.steps, `round.c` (`hn_gguf_put_str`)\n"
                                    "| of `hn_needs` | |\n|---|---|\n| `branches`, `steps` | |\n\n| `hn_round` | `pass.c` |\n";
    assert_int_equal(places_check("a", right, &seen), 0);
    assert_int_equal(seen, 8);
    print_message("five that are elsewhere:\n");
    assert_int_equal(places_check("a", not_there, &seen), 5);
    assert_int_equal(wrong, 0);
}

/* ---- keys of draft heads -------------------------------------------------------------------------------------------- */

/* What the rows of all forms of files have, beside the section. */
static keys_check keys_compare(const char *section) {
    keys_check c = {.section = section};
    const hn_family *all;
    hn_source *src;
    /* a folder may say what any GGUF does */
    assert_int_equal(hn_source_open(&src, HUNCH_TEST_DATA "/goldens-heads/eagle2-nobias-gqa/head", NULL), HUNCH_OK);
    assert_int_equal(hn_head_find_family(src, &all, NULL), HUNCH_OK);
    hn_head_keys_list(all, keys_not_documented, &c);
    hn_source_close(&src);
    assert_true(c.seen > 50);
    return c;
}

/* The tables of docs/formats.md have the keys that head_keys.c reads, and no others. */
static void test_head_keys(void **state) {
    (void)state;
    char *text = text_read("docs/formats.md"), *section = strstr(text, "\n### Draft heads\n");
    char *end = section ? strstr(section, "\n## ") : NULL;
    assert_non_null(end);
    *end = 0;
    keys_check c = keys_compare(section);
    assert_int_equal(c.wrong + keys_not_read(&c), 0);
    print_message("one that is not documented, one that is not read:\n");
    c.section = "| a | `eagle3.no_such` | `no_such` |\n";
    char *key = strstr(section, "`hunch.head.draft_length`");
    assert_non_null(key);
    key[2] = 'X';
    assert_int_equal(keys_compare(section).wrong, 1);
    assert_int_equal(keys_not_read(&c), 1);
    free(text);
}

/* ---- columns ---------------------------------------------------------------------------------------------------- */

static void test_columns(void **state) {
    (void)state;
    int wrong = 0;
    char wide[COLUMNS + 20];
    for (int i = 0; i < n_text_files; i++) {
        const bool source = is_source(text_file[i]);
        if (!is_document(text_file[i]) && !source) continue;
        char *text = text_read(text_file[i]);
        wrong += columns_check(text_file[i], text, source);
        free(text);
    }
    memset(wide, 'a', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    print_message("two that are too wide:\n");
    assert_int_equal(columns_check("a", wide, false), 1);
    wide[0] = '|';
    assert_int_equal(columns_check("a", wide, false), 0);
    assert_int_equal(columns_check("a", wide, true), 1);
    assert_int_equal(wrong, 0);
}

/* ---- flags ------------------------------------------------------------------------------------------------------ */

static const char *const commands[] = {"run",      "chat",   "compare", "draft", "bench", "inspect",
                                       "convert",  "tokenize", "logits", "score", "check", "train", "serve", "help",
                                       "manual",   "completion", "version", "plan"};
enum { COMMANDS = sizeof commands / sizeof *commands };
static char *help[COMMANDS];

/* Whether the text has the flag as a separate word. */
static bool has_flag(const char *text, const char *flag, size_t n) {
    for (const char *at = text; (at = strstr(at, "--")); at += 2)
        if (strncmp(at, flag, n) == 0 && !isalnum((unsigned char)at[n]) && at[n] != '-') return true;
    return false;
}

/* Flags of other programs: those that the repository's own scripts use or have. */
static bool is_of_a_script(const char *flag, size_t n) {
    static const char *const folders[] = {"scripts/", "bench/", "tools/", "cmake/", ".ci/", "tests/"};
    for (int i = 0; i < n_text_files; i++) {
        bool looked = strcmp(text_file[i], "Makefile") == 0;
        for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
            looked = looked || text_starts(text_file[i], folders[k]);
        if (text_starts(text_file[i], "tests/") && !text_ends(text_file[i], "_test.sh")) looked = false;
        if (!looked || text_ends(text_file[i], ".md")) continue;
        char *text = text_read(text_file[i]);
        const bool found = has_flag(text, flag, n);
        free(text);
        if (found) return true;
    }
    return false;
}

static bool flag_is_known(const char *flag, size_t n) {
    static const char *const top = "--help --version --lossy"; /* of hunch itself; a prefix of three flags */
    for (int i = 0; i < COMMANDS; i++)
        if (has_flag(help[i], flag, n)) return true;
    return has_flag(top, flag, n) || is_of_a_script(flag, n);
}

/* Flags of a line "hunch COMMAND ...": that command's own. */
static int command_line_check(const char *file, const char *line, size_t n) {
    int c = 0, wrong = 0;
    const char *name = line + strlen("hunch ");
    while (c < COMMANDS && (!text_starts(name, commands[c]) || isalnum((unsigned char)name[strlen(commands[c])]))) c++;
    for (const char *at = line; c < COMMANDS && at + 2 < line + n; at++) {
        if (at[0] != '-' || at[1] != '-' || at[-1] != ' ' || !islower((unsigned char)at[2])) continue;
        const size_t len = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        if (has_flag(help[c], at, len) || strncmp(at, "--lossy-", len) == 0) continue;
        print_error("%s: hunch %s has no %.*s\n", file, commands[c], (int)len, at);
        wrong++;
    }
    return wrong;
}

static int flags_check(const char *file, const char *text, int *seen) {
    int wrong = 0;
    for (const char *at = text; (at = strstr(at, "--"));) {
        const size_t n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const bool flag = n > 3 && (at == text || strchr(" `([|\n", at[-1]));
        *seen += flag;
        if (flag && !flag_is_known(at, n - (at[n - 1] == '-'))) {
            print_error("%s:%d: there is no flag %.*s\n", file, line_of(text, at), (int)n, at);
            wrong++;
        }
        at += n;
    }
    for (const char *at = text; (at = strstr(at, "hunch ")); at += 6) {
        const bool starts = at == text || strchr("\n `/", at[-1]);
        if (starts) wrong += command_line_check(file, at, strcspn(at, "\n`|"));
    }
    return wrong;
}

static void test_flags(void **state) {
    (void)state;
    int wrong = 0, seen = 0;
    for (int i = 0; i < COMMANDS; i++) {
        result r = command(commands[i], "--help");
        assert_int_equal(r.code, 0);
        help[i] = strdup(r.out);
        assert_non_null(help[i]);
        result_free(&r);
    }
    for (int i = 0; i < n_text_files; i++) {
        if (!is_document(text_file[i])) continue;
        char *text = text_read(text_file[i]);
        wrong += flags_check(text_file[i], text, &seen);
        free(text);
    }
    assert_true(seen > 50);
    print_message("two that are not there:\n");
    assert_int_equal(flags_check("a", "`hunch inspect MODEL --json` --temperature --no-such", &seen), 1);
    assert_int_equal(flags_check("a", "hunch inspect MODEL --temperature", &seen), 1);
    for (int i = 0; i < COMMANDS; i++) free(help[i]);
    assert_int_equal(wrong, 0);
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

/* Names of the user's files in the documents, and the files used here. */
static const struct { const char *is, *used; } stand_in[] = {
    {"SmolLM2-135M-Instruct.Q4_1.gguf", STORIES},
    {"MODEL.gguf", STORIES},
    {"FOLDER", STORIES_HF},
    {"MODEL", STORIES},
    {"1800", "1"}, /* seconds of training */
    {"scripts/demo-prompts.jsonl", HUNCH_TEST_DATA "/../../scripts/demo-prompts.jsonl"},
};

/* The command that starts at `at`, with replacements, to the end of its last line. *end: after it. False: a synopsis, or shortened. */
static bool shown_command(const char *at, char out[4000], const char **end) {
    size_t n = 0;
    bool quoted = false, right = true;
    for (; *at && (*at != '\n' || quoted || at[-1] == '\\') && n < 3000; at++) {
        size_t i = 0, k = sizeof stand_in / sizeof *stand_in;
        while (!quoted && i < k && !text_starts(at, stand_in[i].is)) i++;
        if (!quoted && i < k) {
            n += (size_t)sprintf(out + n, "'%s'", stand_in[i].used); /* a checkout may lie below any name */
            at += strlen(stand_in[i].is) - 1;
            continue;
        }
        quoted ^= *at == '\'' || *at == '"';
        if (!quoted && strchr("[|", *at)) right = false; /* a synopsis */
        if (!quoted && *at == '#' && at[-1] == ' ') {
            at += strcspn(at, "\n") - 1;
            continue;
        }
        out[n++] = *at;
    }
    out[n] = 0;
    *end = at;
    return right && !strstr(out, "…");
}

/* Runs it in the test's folder. Measuring takes longer than a test may; its flags were checked above. */
static bool shown_runs(const char *file, const char *shown) {
    char line[6000];
    snprintf(line, sizeof line,
             "cd '%s' && PATH=\"$(dirname '%s')\":$PATH && export PATH && %s > out.txt 2> err.txt < /dev/null", folder,
             HUNCH_COMMAND, shown);
    int code = system(line);
    if (code == 0) return true;
    char *err = file_read(path_of("err.txt"), NULL);
    print_error("%s: this command ends with %d: %s\n%s\n", file, code, shown, err);
    free(err);
    return false;
}

/* The output of the last command: an example of `hunch draft` shows a tree, with its legend. */
static bool shown_drafts(const char *file, const char *shown) {
    if (!text_starts(shown, "hunch draft")) return true;
    char *out = file_read(path_of("out.txt"), NULL);
    const bool drafted = strstr(out, "└─ ") && strstr(out, " %") && strstr(out, "\n%  the drafter's confidence");
    if (!drafted) print_error("%s: nothing is drafted by: %s\n", file, shown);
    free(out);
    return drafted;
}

/* README: "The commands, flags and files that the documents name exist, and the commands run." */
static void test_commands(void **state) {
    (void)state;
    text_write("prompts.jsonl",
               "{\"id\": \"a\", \"prompt\": \"Once upon\", \"prediction\": \"a time there was a girl\"}\n");
    assert_int_equal(symlink(HUNCH_TEST_DATA "/heads/stories-eagle3", path_of("HEAD")), 0); /* a head that passes `check` */
    head_write_form(&STORIES_EAGLE, path_of("EAGLE_HEAD"));
    head_write_form(&STORIES_DART, path_of("DART_HEAD"));
    text_write("corpus.txt", "Once upon a time there was a dog. The dog was big.\n");
    text_write("notes.txt", "Once upon a time there was a little girl.\n");
    int wrong = 0, ran = 0;
    for (int i = 0; i < n_text_files; i++) {
        if (!is_document(text_file[i])) continue;
        char *text = text_read(text_file[i]), shown[4000];
        bool inside = false;
        for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
            end = line + strcspn(line, "\n");
            inside ^= text_starts(line, "```");
            const char *at = line + (text_starts(line, "$ ") ? 2 : 0);
            if (!inside || !text_starts(at, "hunch ") || text_starts(at, "hunch bench") || text_starts(at, "hunch serve") ||
                text_starts(at, "hunch plan"))
                continue; /* take time, or do not end */
            if (!shown_command(at, shown, &end)) continue;
            if (text_starts(shown, "hunch train model ")) strcat(shown, " --steps 2"); /* all of its steps take longer than the rest */
            wrong += !shown_runs(text_file[i], shown) || !shown_drafts(text_file[i], shown);
            ran++;
        }
        free(text);
    }
    print_message("%d commands ran\n", ran);
    assert_true(ran > 10);
    assert_int_equal(wrong, 0);
    print_message("one that fails:\n");
    assert_false(shown_runs("a", "hunch run -m nothing.gguf -p a"));
}

/* The example that its help gives. */
static void test_drafts_of_help(void **state) {
    (void)state;
    static const char begins[] = "hunch draft model.gguf ";
    result r = command("draft", "--help");
    const char *at = strstr(r.out, begins);
    char shown[1000];
    assert_non_null(at);
    at += sizeof begins - 1;
    snprintf(shown, sizeof shown, "hunch draft '" STORIES "' %.*s", (int)strcspn(at, "\n"), at);
    assert_true(shown_runs("help", shown) && shown_drafts("help", shown));
    print_message("one that drafts nothing:\n");
    assert_true(shown_runs("a", "hunch draft '" STORIES "' Once --draft ngram"));
    assert_false(shown_drafts("a", "hunch draft"));
    result_free(&r);
}

/* ---- C ---------------------------------------------------------------------------------------------------------- */

/* A block of C is the part of a file after the public header. */
static bool block_compiles(const char *file, const char *block, size_t n) {
    char line[3000];
    const char *path = file_write("shown.c", block, n);
    snprintf(line, sizeof line,
             "cc -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I '%s/include' -include hunch/hunch.h "
             "-include stdio.h '%s'",
             text_root, path);
    if (system(line) == 0) return true;
    print_error("%s: this does not compile:\n%.*s", file, (int)n, block);
    return false;
}

static void test_c(void **state) {
    (void)state;
    if (system("command -v cc > /dev/null") != 0) skip();
    int wrong = 0, seen = 0;
    for (int i = 0; i < n_text_files; i++) {
        if (!is_document(text_file[i])) continue;
        char *text = text_read(text_file[i]);
        for (const char *at = text, *end; (at = strstr(at, "\n```c\n")); at = end, seen++) {
            at += 6;
            end = strstr(at, "\n```");
            assert_non_null(end);
            if (memmem(at, (size_t)(end - at), "#include \"draft/", 16)) continue; /* a part of hunch: own_head_test.c */
            wrong += !block_compiles(text_file[i], at, (size_t)(end + 1 - at));
        }
        free(text);
    }
    assert_true(seen > 0);
    assert_int_equal(wrong, 0);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* Is `key` in the first column of a section's table? Only first columns count: the others explain keys of keys. */
static bool is_documented(const char *section, const char *end, const char *key) {
    char quoted[100];
    snprintf(quoted, sizeof quoted, "`%s`", key);
    for (const char *line = section; line < end; line = strchr(line, '\n') + 1) {
        if (!text_starts(line, "| ")) continue;
        const char *column = strchr(line + 1, '|'), *at = strstr(line, quoted);
        if (at && at < column) return true;
    }
    return false;
}

/* Keys of the first column that the object lacks. */
static int documented_missing(const char *section, const char *end, const json_t *o, const char *name) {
    int wrong = 0;
    for (const char *line = section; line < end; line = strchr(line, '\n') + 1) {
        if (!text_starts(line, "| `")) continue;
        const char *column = strchr(line + 1, '|');
        for (const char *at = line; (at = memchr(at, '`', (size_t)(column - at)));) {
            char key[100];
            snprintf(key, sizeof key, "%.*s", (int)strcspn(at + 1, "`"), at + 1);
            if (!json_object_get(o, key)) print_error("docs/formats.md: %s has no key %s\n", name, key);
            wrong += !json_object_get(o, key);
            at += strlen(key) + 2;
        }
    }
    return wrong;
}

static void test_json(void **state) {
    (void)state;
    static const char *const run[][16] = {
        {"### `hunch run`", "run", "-m", STORIES, "-p", "Once", "-n", "8", "--logprobs=2", "--why", "--trees",
         "--prompt-logprobs", "--pooling=mean"},
        {"### `hunch compare`", "compare", "-m", STORIES, "-p", "Once", "-n", "8", "--draft", "ngram"},
        {"### `hunch plan`", "plan", "--machine", "bandwidth=1e9,peak=1e10", "--parameters", "1B"},
        {"### `hunch draft`", "draft", "-m", STORIES, "-p", "Once", "--draft", "ngram"},
        {"### `hunch tokenize`", "tokenize", "-m", STORIES, "-p", "Once"},
        {"### `hunch score`", "score", "-m", STORIES, "-p", "Once upon"},
        {"### `hunch logits`", "logits", "-m", STORIES, "-p", "Once", "-o", NULL},
        {"### `hunch convert`", "convert", "-m", STORIES_HF, "-o", NULL},
        {"### `hunch inspect`", "inspect", STORIES, "--draft", "ngram", "--schema"},
        {"### `hunch version`", "version"},
        {"### `hunch bench`", "bench", "-m", STORIES, "--quick", "--rows", "1,2", "--contexts", "8"},
    };
    char *text = text_read("docs/formats.md");
    int wrong = 0;
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        const char *args[17] = {NULL}, *section = strstr(text, run[i][0]), *key;
        int n = 0;
        for (int k = 1; k < 16 && run[i][k]; k++) args[n++] = run[i][k];
        if (strcmp(args[n - 1], "-o") == 0) unlink(args[n++] = path_of("made.gguf"));
        args[n++] = "--json";
        assert_non_null(section);
        const char *next = strstr(section + 4, "\n##"), *end = next ? next : section + strlen(section);
        result r = command_args(args);
        assert_int_equal(r.code, 0);
        json_t *o = json_loads(r.out, 0, NULL), *value;
        assert_non_null(o);
        json_object_foreach(o, key, value) {
            if (is_documented(section, end, key)) continue;
            print_error("docs/formats.md: %s lacks the key %s\n", run[i][0], key);
            wrong++;
        }
        wrong += documented_missing(section, end, o, run[i][0]);
        json_decref(o);
        result_free(&r);
    }
    free(text);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),   cmocka_unit_test(test_the_names_check), cmocka_unit_test(test_names),
        cmocka_unit_test(test_columns), cmocka_unit_test(test_identifiers),     cmocka_unit_test(test_flags),
        cmocka_unit_test(test_places),  cmocka_unit_test(test_head_keys),
        cmocka_unit_test(test_c),       cmocka_unit_test(test_commands),        cmocka_unit_test(test_drafts_of_help),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
