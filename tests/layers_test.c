/* SPDX-License-Identifier: Apache-2.0 */
/* layers_test.c - the shape of the tree: includes point down only, names are unique, headers stand alone and
 * together.
 *
 * The order of the layers is that of docs/architecture.md. Reads the sources of the checkout that was built, found
 * beside tests/data.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A file may include from its own folder and from those before it. Folders of one layer are rooms: a file belongs to the longest
 * name that its path begins with. Those of train/, which trains heads, are not part of the library. */
static const char *const layers[] = {
    "base",  "format", "text",       "text/jinja",  "grammar",    "calls",   "ops",    "vulkan", "cache",  "schema", "model/arch",
    "model", "model/head", "sample", "draft", "draft/text", "draft/shape", "draft/head", "convert", "verify", "plan",
    "engine", "check", "forecast", "train/math",
    "train/data", "train/nets", "train/learn", "train", "mpi"};
enum { LAYERS = sizeof layers / sizeof *layers, APP = LAYERS, CLI, SERVER, NOWHERE = -1 };

/* Arrows that point up: the table of all kinds of drafters; the tensors of every model. */
static const struct { const char *file, *header; } allowed[] = {{"src/draft/drafter.c", "draft/head/open/head_kind.h"},
                                                               {"src/model/model.c", "model/head/head_steps.h"},
                                                               {"src/model/arch/arch_qwen_hybrid_test.c", "convert/convert.h"}};

/* What the programs may include beside hunch.h and base/. */
static const char for_programs[] = "engine/program_files.h";

/* Libraries beyond the C library: the module that CMake finds, its header, and the folders or files that may include it; tests may include
 * jansson too, and they alone cmocka. */
static const struct { const char *module, *header, *place[14]; } libraries[] = {
    {"jansson",
     "jansson.h",
     {"src/base/json_load.", "src/format/", "src/text/", "src/grammar/", "src/calls/", "src/draft/shape/", "src/plan/", "src/app/",
      "src/cli/", "src/train/", "src/server/", "bench/grammar_masks.c", "bench/load/", "bench/simulate/"}},
    {"libpcre2-8", "pcre2.h", {"src/text/"}},
    {"libutf8proc", "utf8proc.h", {"src/text/"}},
    {"libedit", "histedit.h", {"src/cli/chat/tool_editor.c"}},
    {"libmicrohttpd", "microhttpd.h", {"src/server/http/serve_http.c"}},
    {"volk", "volk.h", {"src/vulkan/"}},
    {"MPI", "mpi.h", {"src/mpi/", "bench/slow_links.c"}},
    {"cmocka", "cmocka.h", {NULL}}};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, PLACES = sizeof libraries[0].place / sizeof *libraries[0].place };

enum { MAX_FILES = 2000, PATH_BYTES = 512 };
static char *files[MAX_FILES]; /* relative to the root of the checkout */
static int n_files;
static const char root[] = HUNCH_TEST_DATA "/../..";

static bool has_suffix(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static int file_note(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)at;
    if (kind != FTW_F || !(has_suffix(path, ".c") || has_suffix(path, ".h"))) return 0;
    if (n_files == MAX_FILES) return -1;
    files[n_files] = strdup(path + sizeof root);
    return files[n_files++] ? 0 : -1;
}

static int setup(void **state) {
    (void)state;
    static const char *const folders[] = {"include", "src", "tests", "bench", "tools"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (access(path, F_OK) == 0 && nftw(path, file_note, 8, FTW_PHYS) != 0) return -1;
    }
    return n_files > 20 ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    while (n_files > 0) free(files[--n_files]);
    return 0;
}

/* The layer that a path below src/ belongs to: "ops/x86/rows_avx2.c" and "ops/ops.h" are both of ops. */
static int layer_of(const char *path) {
    static const struct { const char *begin; int layer; } programs[] = {{"app/", APP}, {"cli/", CLI}, {"server/", SERVER}};
    int found = NOWHERE;
    for (int i = 0; i < 3; i++)
        if (strncmp(path, programs[i].begin, strlen(programs[i].begin)) == 0) found = programs[i].layer;
    size_t longest = 0;
    for (int i = 0; i < LAYERS; i++) {
        size_t n = strlen(layers[i]);
        if (n > longest && strncmp(path, layers[i], n) == 0 && path[n] == '/') found = i, longest = n;
    }
    return found;
}

/* Both are below one folder of src/: "draft/tree.h" and "draft/head/head_passes.h". */
static bool same_layer(const char *a, const char *b) {
    size_t n = strcspn(a, "/");
    return n == strcspn(b, "/") && strncmp(a, b, n) == 0;
}

static bool is_test(const char *file) {
    return has_suffix(file, "_test.c") || has_suffix(file, "_for_tests.h") || strncmp(file, "tests/", 6) == 0;
}

static bool library_fits(int library, const char *file) {
    const char *module = libraries[library].module;
    for (int i = 0; i < PLACES && libraries[library].place[i]; i++)
        if (strncmp(file, libraries[library].place[i], strlen(libraries[library].place[i])) == 0) return true;
    return is_test(file) && (strcmp(module, "cmocka") == 0 || strcmp(module, "jansson") == 0);
}

/* NULL if the file may include this, else why not. */
static const char *include_wrong(const char *file, const char *name, bool quoted) {
    if (!quoted) {
        for (int i = 0; i < LIBRARIES; i++)
            if (strcmp(name, libraries[i].header) == 0) return library_fits(i, file) ? NULL : "this library has its places";
        return NULL;
    }
    if (strncmp(file, "src/", 4) != 0 || strncmp(name, "hunch/", 6) == 0) return NULL;
    int from = layer_of(file + 4), to = layer_of(name);
    if (from == NOWHERE) return "the file is in no layer";
    if (from == APP || from == CLI)
        return to == APP || to == from || strncmp(name, "base/", 5) == 0 || strcmp(name, for_programs) == 0
                   ? NULL : "programs see hunch.h and base/ only";
    if (has_suffix(file, "_test.c") && !strchr(name, '/')) return NULL; /* helpers of tests/ */
    if (has_suffix(file, "_test.c") && to >= 0 && same_layer(file + 4, name)) return NULL; /* a test uses all rooms of its layer */
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(file, allowed[i].file) == 0 && strcmp(name, allowed[i].header) == 0) return NULL;
    if (from == SERVER)
        return to == SERVER || to == APP || strncmp(name, "base/", 5) == 0 ? NULL : "the server sees hunch.h and base/ only";
    if (to == APP) return strncmp(file, "src/train/", 10) == 0 ? NULL : "programs are above all layers";
    if (to == CLI || to == SERVER) return "programs are above all layers";
    if (to == NOWHERE) return "includes name their layer: \"base/mem.h\"";
    return to <= from ? NULL : "the arrow points up";
}

/* The name that a line includes; false if it includes none. */
static bool include_read(const char *line, char name[PATH_BYTES], bool *quoted) {
    char open;
    if (sscanf(line, " # include %c%511[^\">]", &open, name) != 2) return false;
    *quoted = open == '"';
    return true;
}

static void test_arrows_point_down(void **state) {
    (void)state;
    int wrong = 0, seen = 0;
    for (int i = 0; i < n_files; i++) {
        char path[2 * PATH_BYTES], line[1000], name[PATH_BYTES];
        bool quoted;
        snprintf(path, sizeof path, "%s/%s", root, files[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        for (int number = 1; fgets(line, sizeof line, f); number++) {
            if (!include_read(line, name, &quoted)) continue;
            const char *why = include_wrong(files[i], name, quoted);
            if (why) print_error("%s:%d: includes %s: %s\n", files[i], number, name, why);
            wrong += why != NULL;
            seen++;
        }
        fclose(f);
    }
    assert_int_equal(wrong, 0);
    assert_true(seen > n_files);
}

/* The check itself: includes that it must refuse and must allow. */
static void test_the_rules(void **state) {
    (void)state;
    assert_null(include_wrong("src/ops/x86/a_avx2.c", "ops/ops.h", true));
    assert_null(include_wrong("src/draft/a.c", "ops/ops.h", true));
    assert_null(include_wrong("src/model/a.c", "cache/cache.h", true));
    assert_null(include_wrong("src/base/a.c", "hunch/hunch.h", true));
    assert_null(include_wrong("src/cli/a.c", "app/tool_open.h", true));
    assert_non_null(include_wrong("src/base/a.c", "format/source.h", true));
    assert_non_null(include_wrong("src/ops/a.h", "model/pass.h", true));
    assert_non_null(include_wrong("src/cache/a.h", "model/pass.h", true));
    assert_null(include_wrong("src/cli/a.c", "base/mem.h", true));
    assert_null(include_wrong("src/cli/a.c", "hunch/hunch.h", true));
    assert_non_null(include_wrong("src/cli/a.c", "format/find.h", true));
    assert_non_null(include_wrong("src/cli/a.c", "engine/engine.h", true));
    assert_null(include_wrong("src/cli/a.c", "engine/program_files.h", true));
    assert_non_null(include_wrong("src/cli/a.c", "draft/drafter_files.h", true));
    assert_non_null(include_wrong("src/engine/a.c", "train/math/workers.h", true));
    assert_non_null(include_wrong("src/cli/a.c", "train/math/workers.h", true));
    assert_null(include_wrong("src/train/a.c", "engine/engine.h", true));
    assert_null(include_wrong("src/train/options.h", "app/tool_options.h", true));
    assert_non_null(include_wrong("src/train/a.c", "cli/tool_rows.h", true));
    assert_non_null(include_wrong("src/engine/a.c", "app/tool_options.h", true));
    assert_non_null(include_wrong("src/app/a.c", "cli/tool_rows.h", true));
    assert_null(include_wrong("src/app/a.c", "app/tool_options.h", true));
    assert_null(include_wrong("src/server/a.c", "server/a.h", true));
    assert_null(include_wrong("src/server/a.c", "base/mem.h", true));
    assert_null(include_wrong("src/server/a.c", "hunch/hunch.h", true));
    assert_null(include_wrong("src/server/a.c", "app/tool_open.h", true));
    assert_non_null(include_wrong("src/server/a.c", "cli/tool_rows.h", true));
    assert_non_null(include_wrong("src/server/a.c", "engine/engine.h", true));
    assert_non_null(include_wrong("src/engine/a.c", "server/a.h", true));
    assert_non_null(include_wrong("src/cli/a.c", "server/a.h", true));
    assert_non_null(include_wrong("src/server/a.c", "microhttpd.h", false));
    assert_null(include_wrong("src/server/http/serve_http.c", "microhttpd.h", false));
    assert_non_null(include_wrong("src/base/a.c", "mem.h", true));
    assert_non_null(include_wrong("src/other/a.c", "base/mem.h", true));
    assert_non_null(include_wrong("src/ops/a.c", "pcre2.h", false));
    assert_non_null(include_wrong("src/ops/a_test.c", "pcre2.h", false));
    assert_null(include_wrong("src/text/a.c", "pcre2.h", false));
    assert_null(include_wrong("src/text/jinja/a.c", "utf8proc.h", false));
    assert_non_null(include_wrong("src/format/a.c", "utf8proc.h", false));
    assert_null(include_wrong("src/plan/a.c", "jansson.h", false));
    assert_null(include_wrong("src/model/a_for_tests.h", "jansson.h", false));
    assert_non_null(include_wrong("src/model/a.c", "jansson.h", false));
    assert_non_null(include_wrong("src/base/a.c", "jansson.h", false));
    assert_null(include_wrong("src/base/json_load.h", "jansson.h", false));
    assert_null(include_wrong("src/cli/chat/tool_editor.c", "histedit.h", false));
    assert_non_null(include_wrong("src/cli/a.c", "histedit.h", false));
    assert_non_null(include_wrong("src/ops/a.c", "cmocka.h", false));
    assert_null(include_wrong("src/ops/a_test.c", "cmocka.h", false));
    assert_null(include_wrong("src/engine/a_test.c", "fixture.h", true));
    assert_null(include_wrong("src/draft/head/a.c", "draft/drafter.h", true));
    assert_null(include_wrong("src/draft/head/a.c", "draft/text/kept_text.h", true));
    assert_non_null(include_wrong("src/draft/a.c", "draft/text/kept_text.h", true));
    assert_null(include_wrong("src/draft/a_test.c", "draft/text/kept_text.h", true));
    assert_non_null(include_wrong("src/draft/a_test.c", "engine/engine.h", true));
    assert_non_null(include_wrong("src/model/arch/a.c", "model/model.h", true));
    assert_non_null(include_wrong("src/engine/a.c", "check/head_check.h", true));
    assert_non_null(include_wrong("src/convert/a.c", "engine/engine.h", true));
    char name[PATH_BYTES];
    bool quoted;
    assert_true(include_read("#include \"engine/engine.h\" /* why */\n", name, &quoted) && quoted);
    assert_string_equal(name, "engine/engine.h");
    assert_true(include_read(" #  include <string.h>\n", name, &quoted) && !quoted);
    assert_string_equal(name, "string.h");
    assert_false(include_read("/* #include x */\n", name, &quoted));
}

/* Each library that CMake looks for has its places here: what nothing links cannot be used. */
static void test_libraries_have_places(void **state) {
    (void)state;
    static const char *const lists[] = {"CMakeLists.txt", "tests/tests.cmake"};
    int seen = 0;
    for (int i = 0; i < 2; i++) {
        char path[2 * PATH_BYTES], line[1000], module[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", root, lists[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            char *end = strchr(line, ')'), *last = end;
            seen += strstr(line, "check_include_file(volk.h") || strstr(line, "find_package(MPI "); /* they have no module */
            if (!strstr(line, "pkg_check_modules(") || !end) continue;
            while (last[-1] != ' ') last--;
            snprintf(module, sizeof module, "%.*s", (int)(end - last), last);
            int at = 0;
            while (at < LIBRARIES && strcmp(libraries[at].module, module) != 0) at++;
            if (at == LIBRARIES) fail_msg("%s: %s has no place in layers_test.c", lists[i], module);
            seen++;
        }
        fclose(f);
    }
    assert_int_equal(seen, LIBRARIES);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void test_names_are_unique(void **state) {
    (void)state;
    int wrong = 0;
    for (int i = 0; i < n_files; i++) {
        for (int j = 0; j < i; j++) {
            if (strcmp(base_name(files[i]), base_name(files[j])) != 0) continue;
            print_error("%s and %s have one name\n", files[i], files[j]);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Runs a compiler on one header alone. */
static bool header_compiles(const char *compiler, const char *header) {
    char command[4 * PATH_BYTES];
    snprintf(
        command, sizeof command,
        "%s -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -I '%s/include' -I '%s/src' -include '%s/%s' /dev/null",
        compiler, root, root, root, header);
    int code = system(command);
    return code != -1 && WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static bool is_there(const char *compiler) {
    char command[PATH_BYTES];
    snprintf(command, sizeof command, "command -v %s > /dev/null", compiler);
    return system(command) == 0;
}

static bool header_is_public(const char *file) {
    return has_suffix(file, ".h") && strncmp(file, "include/", 8) == 0;
}

/* Those of the layers that need nothing before them. */
static bool header_is_internal(const char *file) {
    if (strncmp(file, "src/", 4) != 0) return false;
    if (strstr(file, "/x86/") || strstr(file, "/arm/")) return false; /* need the flags of their level */
    if (has_suffix(file, "_tmpl.h")) return false;      /* bodies that a .c file gives types to */
    if (has_suffix(file, "_for_tests.h")) return false; /* come after cmocka */
    return has_suffix(file, ".h");
}

static void test_headers_stand_alone(void **state) {
    (void)state;
    if (!is_there("cc")) skip();
    int wrong = 0, seen = 0;
    for (int i = 0; i < n_files; i++) {
        const bool public = header_is_public(files[i]);
        if (!public && !header_is_internal(files[i])) continue;
        seen++;
        if (!header_compiles(public ? "cc -x c -std=c11 -pedantic" : "cc -x c -std=gnu11", files[i])) {
            print_error("%s does not compile alone as C\n", files[i]);
            wrong++;
        }
        if (public && is_there("c++") && !header_compiles("c++ -x c++ -std=c++11 -pedantic", files[i])) {
            print_error("%s does not compile alone as C++\n", files[i]);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    assert_true(seen > 5);
}

/* One file that includes them all, forwards or backwards, then says `more`: does it compile? */
static bool all_compile(bool backwards, const char *more, const char *errors) {
    char command[4 * PATH_BYTES];
    snprintf(command, sizeof command,
             "cc -x c -std=gnu11 -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE -I '%s/include' -I '%s/src' - %s",
             root, root, errors);
    FILE *f = popen(command, "w");
    int seen = 0;
    assert_non_null(f);
    for (int i = 0; i < n_files; i++) {
        const char *file = files[backwards ? n_files - 1 - i : i];
        if (!header_is_public(file) && !header_is_internal(file)) continue;
        fprintf(f, "#include \"%s/%s\"\n", root, file);
        seen++;
    }
    fprintf(f, "%s\n", more);
    assert_true(seen > 50);
    return pclose(f) == 0;
}

/* Any two of them may be included in one file: no name is defined twice, and no macro changes another header. */
static void test_headers_stand_together(void **state) {
    (void)state;
    if (!is_there("cc")) skip();
    assert_true(all_compile(false, "", ""));
    assert_true(all_compile(true, "", ""));
    assert_false(all_compile(false, "typedef enum hn_tree { BIRCH } hn_tree;", "2> /dev/null"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rules),
        cmocka_unit_test(test_arrows_point_down),
        cmocka_unit_test(test_libraries_have_places),
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_headers_stand_alone),
        cmocka_unit_test(test_headers_stand_together),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
