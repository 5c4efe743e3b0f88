/* SPDX-License-Identifier: Apache-2.0 */
/* train_kinds_test.c - the command for every kind of head that can be trained: --steps 0 writes a head that drafts, the
 * same as a folder and as a GGUF; unsupported flags of a kind are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fixture.h"
#include "app/tool_train_kinds.h"
#include "format/bytes_for_tests.h" /* last: it calls a type "bytes" */

#define STORIES "models/stories260K/stories260K.f32.gguf"
#define STORIES_HF "models/stories260K/hf"
static char model[600];

/* The exit code; said [room]: standard output and error. */
static int shell(char *said, size_t room, const char *format, ...) {
    char command[4000];
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(command, sizeof command - 10, format, list);
    va_end(list);
    assert_true(n > 0 && n < (int)sizeof command - 10);
    snprintf(command + n, sizeof command - (size_t)n, " 2>&1");
    FILE *from = popen(command, "r");
    assert_non_null(from);
    size_t at = 0;
    for (int c; (c = fgetc(from)) != EOF;)
        if (at + 1 < room) said[at++] = (char)c;
    said[at] = 0;
    const int status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int setup(void **state) {
    (void)state;
    static const char rows[] = "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"Lily and Ben\"}\n{\"prompt\": \"The sun\"}\n"
                               "{\"prompt\": \"Tim had a dog\"}\n{\"prompt\": \"One day\"}\n{\"prompt\": \"Mom said\"}\n";
    char said[2000];
    test_file_write(test_path("rows.jsonl"), rows, sizeof rows - 1);
    snprintf(model, sizeof model, "%s", data_path(STORIES));
    char texts[600];
    snprintf(texts, sizeof texts, "%s", test_path("texts"));
    return shell(said, sizeof said, HUNCH_COMMAND "-train data %s -f %s -n 40 -q -o %s", model, test_path("rows.jsonl"), texts);
}

static int train(const char *kind, const char *head, const char *how, char *said, size_t room) {
    char texts[600];
    snprintf(texts, sizeof texts, "%s", test_path("texts"));
    return shell(said, room, HUNCH_COMMAND "-train %s %s -f %s -q --vocab 300 --held-out 2 -o %s %s", kind, model, texts, head, how);
}

static void must_train(const char *kind, const char *head, const char *how) {
    char said[4000];
    if (train(kind, head, how, said, sizeof said) != 0) fail_msg("%s %s: %s", kind, how, said);
}

static void drafts(const char *kind, const char *head, char *said, size_t room) {
    if (shell(said, room, HUNCH_COMMAND " draft %s --quiet --draft %s:%s,weights=bf16 -p 'Once upon a time there was' --depth 3 --json",
              model, kind, head) != 0)
        fail_msg("%s:%s: %s", kind, head, said);
}

static void check_kind(const char *kind, const char *unroll) {
    static int number;
    char folder[600], file[600], how[100], said[2][60000];
    snprintf(folder, sizeof folder, "%s.%d", test_path("folder"), ++number);
    snprintf(file, sizeof file, "%s.%d.gguf", test_path("file"), number);
    snprintf(how, sizeof how, "--steps 0 --unroll %s", unroll);
    must_train(kind, folder, how);
    snprintf(how, sizeof how, "--steps 0 --unroll %s --type bf16", unroll);
    must_train(kind, file, how);
    drafts(kind, folder, said[0], sizeof said[0]);
    drafts(kind, file, said[1], sizeof said[1]);
    if (!strstr(said[0], "\"parents\": [-1, 0, 1]")) fail_msg("%s: %s", kind, said[0]);
    assert_string_equal(said[0], said[1]);
}

static void test_begins(void **state) {
    (void)state;
    static const char *const kinds[][2] = {{"medusa", "3"}, {"hydra", "3"}, {"mlp", "3"}, {"mlp", "3 --cell"}, {"meta-mtp", "3"},
                                            {"falcon", "4"}, {"falcon", "6"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i += (size_t)test_every(1, 3)) check_kind(kinds[i][0], kinds[i][1]);
}

/* Modules in a row: a folder that drafts, each level by the next one, and no GGUF. */
static void test_modules(void **state) {
    (void)state;
    char said[60000];
    must_train("mtp", test_path("modules"), "--steps 0 --layers 3 --unroll 3");
    drafts("mtp", test_path("modules"), said, sizeof said);
    if (!strstr(said, "\"parents\": [-1, 0, 1]")) fail_msg("%s", said);
    assert_int_not_equal(shell(said, sizeof said, HUNCH_COMMAND " convert %s --target %s -o %s", test_path("modules"),
                               model, test_path("no.gguf")),
                         0);
    if (!strstr(said, "3 modules in a row: a GGUF holds one")) fail_msg("%s", said);
}

/* Untrained heads begin with the model's own output, and would draft the right token from the state that it was chosen from. */
static void test_check_names_heads_without_training(void **state) {
    (void)state;
#define NAME(id, name, about) name,
    static const char *const kinds[] = {TOOL_TRAIN_KINDS(NAME)};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i += (size_t)test_every(1, 4)) {
        char said[60000];
        if (!strcmp(kinds[i], "model")) continue; /* it begins as layers of the model */
        must_train(kinds[i], test_path(kinds[i]), "--steps 0");
        const int code = shell(said, sizeof said, HUNCH_COMMAND " check %s -q --draft %s:%s", model, kinds[i], test_path(kinds[i]));
        if (code != 3 || !strstr(said, "not better than a constant guess") || !strstr(said, "or not trained: of"))
            fail_msg("%s: %d, %s", kinds[i], code, said);
    }
}

/* As speculators reads them: the target by its folder from the root, or as --verifier says, and its classes. */
static void names_target(const char *kind, const char *target, const char *how, const char *name, const char *class) {
    static int number;
    char said[4000], texts[600], head[600], path[700];
    snprintf(texts, sizeof texts, "%s", test_path("texts"));
    snprintf(head, sizeof head, "%s.%d", test_path("named"), ++number);
    if (shell(said, sizeof said,
              "cd %s/.. && " HUNCH_COMMAND "-train %s %s -f %s -q --vocab 300 --held-out 2 --steps 0 --force --format hf -o %s %s",
              data_path(STORIES_HF), kind, target, texts, head, how) != 0)
        fail_msg("%s %s: %s", kind, how, said);
    snprintf(path, sizeof path, "%s/config.json", head);
    json_t *config = json_load_file(path, 0, NULL);
    const json_t *verifier = json_object_get(json_object_get(config, "speculators_config"), "verifier"),
                 *classes = json_object_get(verifier, "architectures");
    assert_string_equal(json_string_value(json_object_get(verifier, "name_or_path")), name);
    assert_int_equal(json_array_size(classes), class ? 1 : 0);
    if (class) assert_string_equal(json_string_value(json_array_get(classes, 0)), class);
    json_decref(config);
}

static void test_folders_name_their_target(void **state) {
    (void)state;
    static const char *const kinds[] = {"eagle3", "peagle", "dflash", "dspark", "mtp"};
    char full[PATH_MAX], file[PATH_MAX];
    assert_true(realpath(data_path(STORIES_HF), full) && realpath(data_path(STORIES), file));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) names_target(kinds[i], "hf", "", full, "LlamaForCausalLM");
    names_target("mtp", "hf", "--verifier someone/stories", "someone/stories", "LlamaForCausalLM");
    names_target("mtp", file, "", file, NULL); /* a GGUF names no class */
}

/* For speculators, and for no one else, a head of EAGLE-3 has the model's embedding too. */
static void test_others_get_the_embedding(void **state) {
    (void)state;
    static const char embedding[] = "\"embed_tokens.weight\"";
    for (int i = 0; i < 4; i++) {
        char head[600], path[700];
        snprintf(head, sizeof head, "%s.%d", test_path("given"), i);
        must_train(i < 2 ? "eagle3" : "peagle", head, i % 2 ? "--steps 0 --format hf" : "--steps 0");
        snprintf(path, sizeof path, "%s/model.safetensors", head);
        bytes b = test_file_read(path);
        assert_int_equal(memmem(b.at, b.size, embedding, strlen(embedding)) != NULL, i % 2);
        bytes_free(&b);
    }
}

static void refused(const char *kind, const char *how, const char *says) {
    char said[4000];
    assert_int_equal(train(kind, test_path("refused"), how, said, sizeof said), 2);
    if (!strstr(said, says)) fail_msg("%s %s: %s", kind, how, said);
}

static void test_refusals(void **state) {
    (void)state;
    must_train("medusa", test_path("medusa"), "--steps 0 --format hf");
    refused("hydra", "--steps 0 --format hf", "--format hf: no other program reads a folder of such a head of hydra");
    refused("mlp", "--steps 0 --format hf", "--format hf: no other program reads a folder of such a head of mlp");
    refused("medusa", "--steps 0 --ffn 64", "--ffn 64: a head of medusa has no feed-forward layer");
    refused("hydra", "--steps 0 --taps 1:2", "--taps 1:2: a head of kind hydra reads the last state alone");
    refused("falcon", "--steps 0 --format hf", "--format hf: no other program reads a folder of such a head of falcon");
    refused("meta-mtp", "--steps 0 --format hf", "--format hf: no other program reads a folder of such a head of "
                                                 "meta-mtp");
    refused("dflash", "--steps 0 --shift-label", "--shift-label: a head of kind dflash has none: expected it only with domino");
    refused("domino", "--steps 0 --unroll 4 --pure-prefix 4", "--pure-prefix 4 of --unroll 4 drafts: expected 0 to 3");
    refused("hydra", "--steps 0 --cell", "--cell: a head of kind hydra has none");
    refused("falcon", "--steps 0 --unroll 3", "--unroll 3: a head of kind falcon learns two passes: expected an even number");
    refused("meta-mtp", "--steps 0 --taps 4", "--taps 4: a head of kind meta-mtp reads what enters the last layer alone");
    refused("mtp", "--steps 0 --layers 2", "--layers 2 --unroll 3: modules in a row draft a token each");
    refused("mtp", "--steps 0 --layers 3 --format hf", "--format hf --layers 3: no other program reads several of mtp");
    refused("medusa", "--steps 0 --token-share 1.5", "--token-share 1.5 is not a number from 0 to 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_begins), cmocka_unit_test(test_modules),
                                       cmocka_unit_test(test_check_names_heads_without_training),
                                       cmocka_unit_test(test_folders_name_their_target),
                                       cmocka_unit_test(test_others_get_the_embedding), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
