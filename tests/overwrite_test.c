/* SPDX-License-Identifier: Apache-2.0 */
/* overwrite_test.c - a command refuses to write a file that it reads, for every flag, by any name and through links,
 * and nothing is lost; files that are updated by design are written; convert replaces a file only with --force. And the
 * library's lists of files. */
#include "engine/program_files.h"
#include "command.h"
#include "random_head.h"

#include "format/split_for_tests.h"
#include "hunch/hunch.h"

static const char *const parts[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                    "generation_config.json", "chat_template.jinja"};
enum { PARTS = sizeof parts / sizeof *parts };

static const char *copy_make(const char *from, const char *name) {
    bytes b = test_file_read(from);
    const char *path = file_write(name, b.at, b.size);
    bytes_free(&b);
    return path;
}

/* Everything that may be read, in the test's folder: model.gguf, hf/ with all that a folder may hold, texts and lists. */
static int files_make(void **state) {
    char name[60], from[600];
    if (folder_make(state))
        return -1;
    copy_make(STORIES, "model.gguf");
    mkdir(path_of("hf"), 0700);
    for (int i = 0; i < PARTS; i++) {
        snprintf(name, sizeof name, "hf/%s", parts[i]);
        snprintf(from, sizeof from, "%s/%s", STORIES_HF, parts[i]);
        if (test_file_exists(from))
            copy_make(from, name);
        else
            text_write(name, i == 4 ? "{}" : "{{ messages[0].content }}");
    }
    text_write("prompt.txt", "Once upon a time");
    text_write("ids.json", "[1, 403, 407, 261]");
    text_write("list.json", "[]");
    if (symlink("model.gguf", path_of("link")) || symlink("link", path_of("farther")) ||
        link(path_of("model.gguf"), path_of("hard")))
        return -1;
    char spec[400];
    snprintf(spec, sizeof spec, "cache,save=%s", path_of("counts"));
    result r = command("run", "-m", STORIES, "-p", "Once upon a time", "-n", "20", "--draft", spec);
    const int code = r.code;
    result_free(&r);
    return code;
}

/* A command line of words, in which % is the test's folder. */
static result words_run(const char *line) {
    static char words[30][400];
    const char *args[31] = {NULL};
    int n = 0;
    for (size_t at = 0; *line; line += strspn(line, " "), at = 0, args[n] = words[n], n++) {
        assert_true(n < 30);
        for (; *line && *line != ' '; line++)
            at += (size_t)snprintf(words[n] + at, sizeof words[n] - at, "%.*s", *line == '%' ? 300 : 1, *line == '%' ? folder : line);
    }
    return command_args(args);
}

/* The command is refused, and victim does not change. */
static void kept(const char *victim, const char *line, const char *says) {
    const char *path = path_of(victim);
    size_t before_len, after_len;
    char partial[400], *before = file_read(path, &before_len);
    snprintf(partial, sizeof partial, "%s.partial", path);
    result r = words_run(line);
    char *after = file_read(path, &after_len);
    if (r.code != 2 || !strstr(r.err, says) || r.out_len)
        fail_msg("%s: code %d, said \"%s\", expected 2 and \"%s\"", line, r.code, r.err, says);
    if (after_len != before_len || memcmp(before, after, after_len))
        fail_msg("%s: %s is not what it was", line, victim);
    assert_int_equal(access(partial, F_OK), -1);
    free(before);
    free(after);
    result_free(&r);
}

/* README: "A file that the command reads is never overwritten, by whatever name; `convert` replaces a file only with
 * `--force`." */
static void test_every_output(void **state) {
    (void)state;
    static const char reads[] = "that the command reads";
    static const char *const lines[] = {
        "logits %/model.gguf Once -o",
        "draft %/model.gguf Once --draft model:%/model.gguf -o",
        "bench %/model.gguf --quick --rows 1 --contexts 0 --csv",
        "bench %/model.gguf --quick --rows 1,2 --contexts 0 --svg",
        "bench -m %/model.gguf --quick --rows 1 --contexts 0 --json",
        "run %/model.gguf Once -n 3 --draft ngram+cache,save",
        "compare %/model.gguf Once -n 3 --draft ngram --draft cache,save",
        "chat %/model.gguf -n 3 --draft cache,save",
        "draft %/model.gguf Once --draft cache,save",
    };
    static const char *const names[] = {"model.gguf", "link", "farther", "hard", "hf/../model.gguf"};
    char line[400];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const bool apart = strstr(lines[i], "-o") || strstr(lines[i], "--svg");
            snprintf(line, sizeof line, "%s%s%%/%s", lines[i], apart ? " " : "=", names[k]);
            kept("model.gguf", line, reads);
        }
}

/* Every file of a folder, by every command that reads one and writes. */
static void test_folder(void **state) {
    (void)state;
    char line[400], victim[100];
    for (int i = 0; i < PARTS; i++) {
        snprintf(victim, sizeof victim, "hf/%s", parts[i]);
        snprintf(line, sizeof line, "convert %%/hf -o %%/%s --force", victim);
        kept(victim, line, "reads (-m)");
        snprintf(line, sizeof line, "logits %%/hf Once -o %%/%s", victim);
        kept(victim, line, "reads (-m)");
        snprintf(line, sizeof line, "run %%/model.gguf Once -n 3 --draft model:%%/hf+cache,save=%%/%s", victim);
        kept(victim, line, "reads (--draft)");
    }
}

/* What is read beside the model. */
static void test_other_inputs(void **state) {
    (void)state;
    kept("prompt.txt", "logits %/model.gguf -f %/prompt.txt -o %/prompt.txt", "reads (-f)");
    kept("ids.json", "logits %/model.gguf --tokens %/ids.json -o %/ids.json", "reads (--prompt-tokens)");
    kept("prompt.txt", "run %/model.gguf -f %/prompt.txt --draft cache,save=%/prompt.txt", "reads (-f)");
    kept("list.json", "run %/model.gguf Once --tools %/list.json --draft cache,save=%/list.json", "reads (--tools)");
    kept("prompt.txt", "run %/model.gguf Once --chat-template-file %/prompt.txt --draft cache,save=%/prompt.txt",
         "reads (--chat-template-file)");
    kept("prompt.txt", "run %/model.gguf Once --draft prediction:%/prompt.txt --draft cache,save=%/prompt.txt", "reads (--draft)");
    kept("counts", "run %/model.gguf Once --draft cache:%/counts,save=%/counts", "reads (--draft)");
    kept("counts", "run %/model.gguf Once --draft cache,dynamic=%/counts+cache,save=%/counts", "reads (--draft)");
    const int input = open(path_of("prompt.txt"), O_RDONLY);
    assert_true(input >= 0);
    input_fd = input;
    kept("prompt.txt", "logits %/model.gguf -o %/prompt.txt", "reads (standard input)");
    kept("prompt.txt", "logits %/model.gguf -p - -o %/prompt.txt", "reads (standard input)");
    result r = words_run("logits %/model.gguf Once -o %/prompt.txt"); /* which is not read here */
    input_fd = -1;
    close(input);
    assert_int_equal(r.code, 0);
    result_free(&r);
    text_write("prompt.txt", "Once upon a time");
}

/* The name of an incomplete output, and files that are appended to. */
static void test_other_names(void **state) {
    (void)state;
    copy_make(STORIES, "out.npy.partial");
    kept("out.npy.partial", "logits %/out.npy.partial Once -o %/out.npy", "reads (-m)");
    unlink(path_of("out.npy.partial"));
    const char *model = copy_make(STORIES, "appended.gguf");
    char line[900];
    snprintf(line, sizeof line, "'%s' logits '%s' Once -o /dev/stdout >> '%s' 2> '%s'", HUNCH_COMMAND, model, model, path_of("err"));
    assert_int_equal(WEXITSTATUS(system(line)), 2);
    struct stat was, is;
    assert_int_equal(stat(STORIES, &was) | stat(model, &is), 0);
    assert_int_equal(was.st_size, is.st_size);
}

static void test_parts(void **state) {
    (void)state;
    const char *first = split_file(STORIES, "parted", 3, true);
    char second[400], partial[500];
    snprintf(second, sizeof second, "%.*s2-of-00003.gguf", (int)(strlen(first) - strlen("1-of-00003.gguf")), first);
    snprintf(partial, sizeof partial, "%s.partial", second);
    size_t before, after;
    free(file_read(second, &before));
    refused(2, "reads (-m)", "logits", first, "Once", "-o", second);
    free(file_read(second, &after));
    assert_int_equal(before, after);
    assert_int_equal(access(partial, F_OK), -1);
}

static void test_two_outputs(void **state) {
    (void)state;
    kept("counts", "bench %/model.gguf --quick --json=%/counts --csv=%/counts", "are one file");
    kept("prompt.txt", "bench %/model.gguf --quick --json=%/new --csv=%/hf/../new", "are one file");
    kept("prompt.txt", "compare %/model.gguf Once --draft cache,save=%/new --draft cache,save=%/./new", "are one file");
    assert_int_equal(access(path_of("new"), F_OK), -1);
    refused(3, "nothing.gguf", "bench", "nothing.gguf", "--json=/dev/null", "--csv=/dev/null"); /* a device may be both */
}

static void test_update(void **state) {
    (void)state;
    size_t before, after;
    free(file_read(path_of("counts"), &before));
    result r = words_run("run %/model.gguf There -n 40 --draft cache,dynamic=%/counts,save=%/counts");
    if (r.code != 0)
        fail_msg("%s", r.err);
    result_free(&r);
    free(file_read(path_of("counts"), &after));
    assert_true(after > before);
}

static void test_force(void **state) {
    (void)state;
    const char *made = text_write("made.gguf", "old"), *other = path_of("other");
    kept("made.gguf", "convert %/hf -o %/made.gguf", "--force replaces it");
    assert_int_equal(symlink("made.gguf", other), 0);
    kept("made.gguf", "convert %/hf -o %/other", "--force replaces it");
    result r = words_run("convert %/hf -o %/other --force");
    if (r.code != 0)
        fail_msg("%s", r.err);
    result_free(&r);
    size_t len;
    free(file_read(made, &len));
    assert_true(len > 1000000);
    r = words_run("convert %/hf -o /dev/null"); /* nothing is lost there */
    assert_int_equal(r.code, 0);
    result_free(&r);
}

/* README: "`run -o`, `save=` of a drafter and `hunch train` replace a file that they did not write themselves only with `--force`." The
 * last: train_outputs_test. */
static void test_others(void **state) {
    (void)state;
    static const char *const texts[] = {"my notes\n", "my notes", "{\"id\": 1, \"about\": \"me\"}\n",
                                        "{\"id\": 1, \"finish\": \"eos\"}\nnotes\n"};
    char line[400];
    text_write("rows.jsonl", "{\"prompt\": \"Once\"}\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int resume = 0; resume < 2; resume++) {
            text_write("notes", texts[i]);
            snprintf(line, sizeof line, "run %%/model.gguf -f %%/rows.jsonl --json-lines -n 3 -o %%/notes%s", resume ? " --resume" : "");
            kept("notes", line, resume ? "so --resume leaves the file alone" : "--force replaces it");
        }
    static const char *const commands[] = {"run", "compare", "chat", "draft"};
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "%s %%/model.gguf %s --draft ngram+cache,save=%%/notes", commands[i], i == 2 ? "" : "Once");
        kept("notes", line, "not a lookup cache (n-grams and counts): expected an earlier one or a new file; --force replaces it");
    }
    kept("model.gguf", "run %/link Once -n 3 --draft cache,save=%/hf/../list.json --force -o %/model.gguf --json-lines", "reads (-m)");
    result r = words_run("run %/model.gguf -f %/rows.jsonl --json-lines -n 3 -o %/notes --force");
    assert_int_equal(r.code, 0);
    result_free(&r);
    r = words_run("run %/model.gguf -f %/rows.jsonl --json-lines -n 3 -o %/notes"); /* its own answers */
    assert_int_equal(r.code, 0);
    result_free(&r);
    r = words_run("run %/model.gguf Once -n 30 --draft cache,save=%/notes --force");
    assert_int_equal(r.code, 0);
    result_free(&r);
    r = words_run("run %/model.gguf Once -n 30 --draft cache,save=%/notes"); /* its own counts */
    assert_int_equal(r.code, 0);
    result_free(&r);
}

/* ---- the library's lists ----------------------------------------------------------------------------------------- */

static char listed[2000];

static void file_list(void *user, const char *file) {
    (void)user;
    strcat(strcat(listed, strrchr(file, '/') + 1), " ");
}

static void use_list(void *user, const char *file, hn_file_use use) {
    static const char *const names[] = {[HN_FILE_READ] = "read", [HN_FILE_WRITTEN] = "written", [HN_FILE_MODEL] = "model"};
    (void)user;
    strcat(strcat(strcat(strcat(listed, file), " "), names[use]), " ");
}

static void spec_lists(const char *spec, const char *expected) {
    listed[0] = 0;
    assert_int_equal(hn_drafter_files(spec, use_list, NULL, NULL), HUNCH_OK);
    assert_string_equal(listed, expected);
}

/* The weights of a draft head and the files beside them, for a folder, a folder without a description, or a file. */
static void heads_list(void) {
    hunch_error err;
    char file[300];
    head_write_form(&LLAMA_EAGLE, path_of("head"));
    snprintf(file, sizeof file, "%s/model.safetensors", path_of("head"));
    const char *const paths[] = {path_of("head"), file};
    for (int i = 0; i < 2; i++) {
        listed[0] = 0;
        assert_int_equal(hn_model_files(paths[i], file_list, NULL, &err), HUNCH_OK);
        assert_string_equal(listed, "model.safetensors config.json ");
    }
    snprintf(file, sizeof file, "%s/config.json", path_of("head"));
    unlink(file);
    listed[0] = 0;
    assert_int_equal(hn_model_files(paths[0], file_list, NULL, &err), HUNCH_OK);
    assert_string_equal(listed, "model.safetensors ");
}

/* A head's weights, config.json, tree and lists of tokens are not overwritten. */
static void test_heads(void **state) {
    (void)state;
    char spec[900], file[300];
    const char *tree = text_write("tree.json", "[[0], [1], [0, 0]]");
    head_write_form(&STORIES_EAGLE, path_of("head"));
    snprintf(spec, sizeof spec, "eagle:%s,tree=%s", path_of("head"), tree);
    static const char *const names[] = {"model.safetensors", "config.json"};
    for (int i = 0; i < 5; i++) {
        if (i > 2) snprintf(spec, sizeof spec, "eagle:%s,vocab=9,%s=%s", path_of("head"), i == 3 ? "ids" : "texts", tree);
        snprintf(file, sizeof file, "%s/%s", path_of("head"), i < 2 ? names[i] : "../tree.json");
        refused(HUNCH_USAGE, "would be written over a file that the command reads (--draft)", "draft", "-m", STORIES, "-p", "Once",
                "--draft", spec, "-o", file);
    }
}

static void test_lists(void **state) {
    (void)state;
    hunch_error err;
    listed[0] = 0;
    assert_int_equal(hn_model_files(path_of("hf"), file_list, NULL, &err), HUNCH_OK);
    for (int i = 0; i < PARTS; i++)
        assert_non_null(strstr(listed, parts[i]));
    listed[0] = 0;
    assert_int_equal(hn_model_files(split_file(STORIES, "listed", 2, true), file_list, NULL, &err), HUNCH_OK);
    assert_string_equal(listed, "listed-00001-of-00002.gguf listed-00002-of-00002.gguf ");
    assert_int_equal(hn_model_files("/proc/nowhere", file_list, NULL, &err), HUNCH_REFUSED);
    spec_lists("auto", "");
    spec_lists("none", "");
    spec_lists("ngram,depth=4", "");
    spec_lists("cache:/a,save=/b", "/a read /b written ");
    spec_lists("cache,dynamic=/a,save=/b", "/b written /a read ");
    spec_lists("recycle,load=/a,save=/b", "/b written /a read ");
    char spec[900];
    snprintf(spec, sizeof spec, "cache,dynamic=%s,save=%s", path_of("model.gguf"), path_of("link"));
    listed[0] = 0;
    assert_int_equal(hn_drafter_files(spec, use_list, NULL, NULL), HUNCH_OK);
    assert_null(strstr(listed, "read"));
    spec_lists("model:/m,depth=3", "/m model ");
    spec_lists("prediction:/p", "/p read ");
    spec_lists("eagle:/h,depth=3", "/h model ");
    spec_lists("hass:/h,tree=/t.json", "/h model /t.json read ");
    spec_lists("eagle3:/h,tree=dynamic,topk=3", "/h model ");
    spec_lists("mtp:/h,vocab=9,ids=/i", "/h model /i read ");
    spec_lists("/h,vocab=9,texts=dynamic", "/h model dynamic read "); /* a name that only trees have */
    spec_lists("eagle:/h,vocab=9,texts=/x,tree=/t.json", "/h model /t.json read /x read ");
    spec_lists("eagle3:/h,tree=mc_sim_7b_63", "/h model ");
    heads_list();
    assert_int_equal(hn_drafter_files("nonsense:x", use_list, NULL, &err), HUNCH_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_output), cmocka_unit_test(test_folder),      cmocka_unit_test(test_other_inputs),
        cmocka_unit_test(test_other_names),  cmocka_unit_test(test_parts),       cmocka_unit_test(test_two_outputs),
        cmocka_unit_test(test_update),       cmocka_unit_test(test_force),       cmocka_unit_test(test_others),
        cmocka_unit_test(test_lists),        cmocka_unit_test(test_heads),
    };
    return cmocka_run_group_tests(tests, files_make, folder_remove);
}
