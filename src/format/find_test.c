/* SPDX-License-Identifier: Apache-2.0 */
/* find_test.c - models by name in caches as the tools lay them out; damaged, missing, ambiguous and hostile entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/fault.h"
#include "base/mem.h"
#include "format/bytes_for_tests.h"
#include "format/find.h"
#include "format/source.h"

#define HASH "0123456789abcdef0123456789abcdef01234567"
#define OTHER "89abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffff0000000011111111"

/* Creates a file below the test's folder, and the folders of its path. */
static const char *file(const char *name, const char *text) {
    const char *path = test_path(name);
    char folder[1200];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = folder + strlen(test_root) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(folder, 0700);
    }
    test_file_write(path, text, strlen(text));
    return path;
}

/* Creates a file as Hugging Face stores it: a link from the snapshot to a blob. */
static void linked(const char *repository, const char *name, const char *blob) {
    char path[600], to[300];
    snprintf(path, sizeof path, "hf/models--%s/blobs/%s", repository, blob);
    file(path, "weights");
    snprintf(path, sizeof path, "hf/models--%s/snapshots/%s/%s.part", repository, HASH, name);
    unlink(file(path, ""));
    snprintf(path, sizeof path, "hf/models--%s/snapshots/%s/%s", repository, HASH, name);
    snprintf(to, sizeof to, "../../blobs/%s", blob);
    assert_int_equal(symlink(to, test_path(path)), 0);
}

static void manifest(const char *place, const char *digest) {
    char text[600], path[300];
    snprintf(
        text, sizeof text,
        "{\"schemaVersion\": 2, \"layers\": [{\"mediaType\": \"application/vnd.ollama.image.template\", \"digest\": "
        "\"sha256:0\"}, {\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": \"%s\", \"size\": 7}]}",
        digest);
    snprintf(path, sizeof path, "ollama/manifests/%s", place);
    file(path, text);
}

static int caches_make(void **state) {
    (void)state;
    file("hf/models--org--safe/refs/main", HASH);
    file("hf/models--org--safe/refs/v1", OTHER "\n");
    file("hf/models--org--safe/snapshots/" OTHER "/config.json", "{}");
    file("hf/models--org--safe/snapshots/" OTHER "/model.safetensors.index.json", "{}");
    linked("org--safe", "config.json", "c1");
    linked("org--safe", "model.safetensors", "w1");
    file("hf/models--org--one-GGUF/refs/main", HASH);
    linked("org--one-GGUF", "One-Q4_K_M.gguf", "g1");
    linked("org--one-GGUF", "mmproj-One-F16.gguf", "g2");
    file("hf/models--org--many-GGUF/refs/main", HASH "\n");
    linked("org--many-GGUF", "Many-Q4_K_M.gguf", "g1");
    linked("org--many-GGUF", "Many-Q8_0.gguf", "g2");
    linked("org--many-GGUF", "Many-BF16.gguf", "g3");
    linked("org--many-GGUF", "Many-F16.gguf", "g4");
    linked("org--many-GGUF", "Q6_K/Many-Q6_K-00001-of-00002.gguf", "g5");
    linked("org--many-GGUF", "Q6_K/Many-Q6_K-00002-of-00002.gguf", "g6");
    file("hf/models--org--torch/refs/main", HASH);
    linked("org--torch", "config.json", "c1");
    linked("org--torch", "pytorch_model.bin", "w1");
    file("hf/models--org--head/refs/main", HASH);
    linked("org--head", "config.json", "c1");
    linked("org--head", "medusa_lm_head.pt", "w1");
    file("hf/models--org--heads/refs/main", HASH);
    linked("org--heads", "config.json", "c1");
    linked("org--heads", "one.pt", "w1");
    linked("org--heads", "two.pt", "w1");
    file("hf/models--org--part/refs/main", HASH);
    file("hf/models--org--part/snapshots/" HASH "/config.json", "{}");
    file("hf/models--org--lost/refs/main", OTHER);
    file("hf/models--org--lost/snapshots/" HASH "/x.gguf", "");
    file("hf/models--org--evil/refs/main", "../../models--org--safe");
    file("hf/models--org--evil/snapshots/" HASH "/x.gguf", "");
    file("hf/models--old/snapshots/" HASH "/old.gguf", ""); /* no refs: downloaded by its commit */
    file("hf/.locks/models--org--safe/x", "");
    file("ollama/blobs/sha256-" DIGEST, "weights");
    manifest("host.example/library/tiny/latest", "sha256:" DIGEST);
    manifest("host.example/library/tiny/1b", "sha256-" DIGEST);
    manifest("host.example/user/own/q8", "sha256:" DIGEST);
    manifest("host.example/library/gone/latest", "sha256:" HASH "aaaaaaaaaaaaaaaaaaaaaaaa");
    manifest("host.example/library/evil/latest",
             "sha256:../../../../../../../../../../../../etc/passwd0000000000000000000000000");
    manifest("host.example/library/short/latest", "sha256:12");
    file("ollama/manifests/host.example/library/broken/latest", "{\"layers\": [");
    file("ollama/manifests/host.example/library/empty/latest", "{\"layers\": {\"digest\": 1}}");
    file("own/Mine-Q4_0.gguf", "");
    file("own/costs.json", "{}");
    file("own/Both.gguf", "");
    file("llama/Both.gguf", "");
    file("llama/ggml-org_small-GGUF_small-Q8_0.gguf", "");
    file("llama/ggml-org_small-GGUF_small-Q4_0.gguf", "");
    file("llama/ggml-org_small-GGUF_small-Q4_0.gguf.json", "{}");
    setenv("HF_HUB_CACHE", test_path("hf"), 1);
    setenv("OLLAMA_MODELS", test_path("ollama"), 1);
    setenv("HUNCH_CACHE", test_path("own"), 1);
    setenv("LLAMA_CACHE", test_path("llama"), 1);
    return 0;
}

static void found(const char *name, const char *at) {
    hunch_error e = {0};
    char *path;
    if (hn_model_find(&path, name, &e) != HUNCH_OK)
        fail_msg("%s: %s", name, e.message);
    assert_string_equal(path, test_path(at));
    hn_free(path);
}

static void refused(const char *name, const char *says) {
    hunch_error e = {0};
    char *path;
    hunch_status status = hn_model_find(&path, name, &e);
    if (status != HUNCH_REFUSED || e.status != status || strstr(e.message, says) == NULL || path != NULL)
        fail_msg("%.80s: %d \"%s\", expected \"%s\"", name, status, e.message, says);
}

/* README: "A model that another program downloaded is found by its name." */
static void test_hugging_face(void **state) {
    (void)state;
    found("org/safe", "hf/models--org--safe/snapshots/" HASH);
    found("ORG/Safe", "hf/models--org--safe/snapshots/" HASH);
    found("org/safe@main", "hf/models--org--safe/snapshots/" HASH);
    found("org/safe@v1", "hf/models--org--safe/snapshots/" OTHER);
    found("org/safe@89abcd", "hf/models--org--safe/snapshots/" OTHER);
    found("org/one-GGUF", "hf/models--org--one-GGUF/snapshots/" HASH "/One-Q4_K_M.gguf");
    found("org/one-GGUF:mmproj-One-F16", "hf/models--org--one-GGUF/snapshots/" HASH "/mmproj-One-F16.gguf");
    found("org/many-GGUF:Q8_0", "hf/models--org--many-GGUF/snapshots/" HASH "/Many-Q8_0.gguf");
    found("org/many-GGUF:q4_k_m", "hf/models--org--many-GGUF/snapshots/" HASH "/Many-Q4_K_M.gguf");
    found("org/many-GGUF@main:F16", "hf/models--org--many-GGUF/snapshots/" HASH "/Many-F16.gguf");
    found("org/many-GGUF:Many-BF16.gguf", "hf/models--org--many-GGUF/snapshots/" HASH "/Many-BF16.gguf");
    found("org/many-GGUF:Q6_K", "hf/models--org--many-GGUF/snapshots/" HASH "/Q6_K/Many-Q6_K-00001-of-00002.gguf");
    found("old", "hf/models--old/snapshots/" HASH "/old.gguf");
    found("org/torch", "hf/models--org--torch/snapshots/" HASH);
    found("org/head", "hf/models--org--head/snapshots/" HASH);
    refused("org/heads", "neither a GGUF file nor config.json with model.safetensors or pytorch_model.bin");
    refused("org/many-GGUF", "several models have this name");
    refused("org/many-GGUF", "Many-Q8_0.gguf, ");
    refused("org/many-GGUF", "Many-Q6_K-00001-of-00002.gguf");
    refused("org/many-GGUF:Many", "several models");
    refused("org/many-GGUF:Q5_K_M",
            "there Many-BF16.gguf, Many-F16.gguf, Many-Q4_K_M.gguf, Many-Q8_0.gguf, Many-Q6_K-00001");
    refused("org/safe:Q8_0", "there is none at all");
    refused("org/part", "fetched in part?");
    refused("org/lost", "no snapshot of revision main");
    refused("org/safe@v2", "no snapshot of revision v2");
    refused("org/safe@0", "no snapshot of revision 0"); /* too short to be a commit's beginning */
    refused("org/safe@nowhere", "no snapshot of revision nowhere");
    refused("org/evil", "does not name a commit");
    refused("org/safe@..", "revision \"..\": expected");
    refused("org/safe@a/b", "revision \"a/b\": expected");
    refused("org/safe@", "revision \"\": expected");
}

static void test_ollama(void **state) {
    (void)state;
    found("tiny", "ollama/blobs/sha256-" DIGEST);
    found("tiny:latest", "ollama/blobs/sha256-" DIGEST);
    found("tiny:1b", "ollama/blobs/sha256-" DIGEST);
    found("Tiny:1B", "ollama/blobs/sha256-" DIGEST);
    found("library/tiny", "ollama/blobs/sha256-" DIGEST);
    found("host.example/library/tiny", "ollama/blobs/sha256-" DIGEST);
    found("user/own:q8", "ollama/blobs/sha256-" DIGEST);
    refused("user/own", "similar names: user/own:q8");
    refused("tiny:7b", "tiny:1b");
    refused("gone", "which is not there");
    refused("evil", "64 hexadecimal digits");
    refused("short", "64 hexadecimal digits");
    refused("broken", "names no model: ");
    refused("empty", "names no model");
}

static void test_files(void **state) {
    (void)state;
    found("Mine-Q4_0", "own/Mine-Q4_0.gguf");
    found("mine-q4_0.GGUF", "own/Mine-Q4_0.gguf");
    found("ggml-org/small-GGUF:Q8_0", "llama/ggml-org_small-GGUF_small-Q8_0.gguf");
    found("ggml-org_small-GGUF_small-Q4_0", "llama/ggml-org_small-GGUF_small-Q4_0.gguf");
    refused("ggml-org/small-GGUF", "several models");
    refused("Both", "llama/Both.gguf");
    refused("Both", "own/Both.gguf");
    refused("costs.json", "no download of that name");
    refused("Mine-Q4_1", "similar names: Mine-Q4_0.gguf;");
    refused("Mine-Q4_1", test_path("own"));
    refused("nothing like any of these", "no download of that name in ");
}

/* A folder given by two variables, or by a link, lists each model once. */
static void test_one_folder_twice(void **state) {
    (void)state;
    assert_int_equal(symlink(test_path("own"), test_path("own-link")), 0);
    for (int i = 0; i < 2; i++) {
        setenv("LLAMA_CACHE", test_path(i ? "own-link" : "own"), 1);
        found("Both", "own/Both.gguf");
        found("Mine-Q4_0", "own/Mine-Q4_0.gguf");
        refused("Mine-Q4_1", "similar names: Mine-Q4_0.gguf;");
    }
    setenv("LLAMA_CACHE", test_path("llama"), 1);
    refused("Both", "several models");
}

/* If it cannot be determined whether there is a model, the error does not claim that there is none. */
static void unknown(const char *name, const char *says) {
    hunch_error e = {0};
    hn_source *s;
    hunch_status status = hn_source_open(&s, name, &e);
    if (status != HUNCH_FAILED || strstr(e.message, says) == NULL || strstr(e.message, strerror(ELOOP)) == NULL ||
        s != NULL)
        fail_msg("%.80s: %d \"%s\"", name, status, e.message);
}

static void test_unreachable(void **state) {
    (void)state;
    char manifest_of[200];
    snprintf(manifest_of, sizeof manifest_of, "sha256:%.63sb", DIGEST);
    assert_int_equal(symlink("circle", test_path("circle")), 0);
    unknown(test_path("circle/model.gguf"), "circle/model.gguf");
    file("ring/model.safetensors.index.json", "{\"weight_map\": {\"a\": \"x.safetensors\"}}");
    assert_int_equal(symlink("config.json", test_path("ring/config.json")), 0);
    unknown(test_path("ring"), "ring/config.json");
    unlink(test_path("ring/config.json"));
    file("ring/config.json", "{}");
    assert_int_equal(symlink("model.safetensors", test_path("ring/model.safetensors")), 0);
    unknown(test_path("ring"), "ring/model.safetensors");
    unlink(test_path("ring/model.safetensors"));
    assert_int_equal(symlink("x.safetensors", test_path("ring/x.safetensors")), 0);
    unknown(test_path("ring"), "ring/x.safetensors");
    manifest("host.example/library/ring/latest", manifest_of);
    snprintf(manifest_of, sizeof manifest_of, "ollama/blobs/sha256-%.63sb", DIGEST);
    assert_int_equal(symlink(manifest_of + sizeof "ollama/blobs/" - 1, test_path(manifest_of)), 0);
    unknown("ring", "blobs/sha256-");
    assert_int_equal(symlink("v3", test_path("hf/models--org--safe/refs/v3")), 0);
    unknown("org/safe@v3", "refs/v3");
}

/* An existing path always wins, and a path that does not exist is not looked up as a name. */
static void test_paths(void **state) {
    (void)state;
    hunch_error e = {0};
    char here[1000], *path;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(test_root), 0);
    file("tiny", "a file of that name");
    assert_int_equal(hn_model_find(&path, "tiny", &e), HUNCH_OK);
    assert_string_equal(path, "tiny");
    hn_free(path);
    unlink(test_path("tiny"));
    assert_int_equal(chdir(here), 0);
    refused("/nowhere/tiny", "no such file or folder, expected a GGUF file");
    refused("./tiny", "no such file or folder, expected");
    refused("../no-folder-is-called-so", "no such file or folder, expected");
    refused("~/tiny", "no such file or folder, expected");
    refused("org/../tiny", "no such file or folder, expected");
    refused("", "no such file or folder, expected");
    refused("tiny\n", "no such file or folder, expected");
    char *longest = malloc(5001);
    memset(longest, 'a', 5000);
    longest[5000] = '\0';
    refused(longest, "no such file or folder");
    longest[400] = '\0';
    refused(longest, "no download of that name");
    free(longest);
}

/* The folders of the caches if only some variables are set. */
static void test_places(void **state) {
    (void)state;
    static const char *const names[] = {"HF_HUB_CACHE", "OLLAMA_MODELS", "HUNCH_CACHE", "LLAMA_CACHE", "HOME",
                                        "XDG_CACHE_HOME", "HF_HOME"};
    char *old[7];
    for (int i = 0; i < 7; i++) {
        old[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        unsetenv(names[i]);
    }
    refused("tiny", "in /usr/share/ollama");
    setenv("HOME", test_path("home"), 1);
    file("home/.cache/hunch/a1.gguf", "");
    file("home/.cache/llama.cpp/a2.gguf", "");
    file("home/.cache/huggingface/hub/models--o--a3/snapshots/" HASH "/a3.gguf", "");
    file("home/.ollama/models/blobs/sha256-" DIGEST, "");
    file("home/.ollama/models/manifests/h/library/a4/latest",
         "{\"layers\": [{\"mediaType\": \"application/vnd.ollama.image.model\", \"digest\": \"sha256:" DIGEST "\"}]}");
    found("a1", "home/.cache/hunch/a1.gguf");
    found("a2", "home/.cache/llama.cpp/a2.gguf");
    found("o/a3", "home/.cache/huggingface/hub/models--o--a3/snapshots/" HASH "/a3.gguf");
    found("a4", "home/.ollama/models/blobs/sha256-" DIGEST);
    setenv("HF_HOME", test_path("face"), 1);
    file("face/hub/models--o--a5/snapshots/" HASH "/a5.gguf", "");
    found("o/a5", "face/hub/models--o--a5/snapshots/" HASH "/a5.gguf");
    refused("o/a3", "face/hub");
    unsetenv("HF_HOME");
    setenv("XDG_CACHE_HOME", test_path("xdg"), 1);
    file("xdg/hunch/a6.gguf", "");
    file("xdg/huggingface/hub/models--o--a7/snapshots/" HASH "/a7.gguf", "");
    found("a6", "xdg/hunch/a6.gguf");
    found("o/a7", "xdg/huggingface/hub/models--o--a7/snapshots/" HASH "/a7.gguf");
    for (int i = 0; i < 7; i++) {
        if (old[i] != NULL)
            setenv(names[i], old[i], 1);
        else
            unsetenv(names[i]);
        free(old[i]);
    }
}

/* A model opens by its name, through the links of the cache. */
static void test_open(void **state) {
    (void)state;
    hn_source *s;
    hunch_error e = {0};
    char to[1200];
    const char *path = test_path("hf/models--org--real/snapshots/" HASH "/stories260K.f16.gguf");
    file("hf/models--org--real/refs/main", HASH);
    unlink(file("hf/models--org--real/snapshots/" HASH "/stories260K.f16.gguf", ""));
    unlink(file("hf/models--org--real/blobs/b", ""));
    snprintf(to, sizeof to, "%s/models/stories260K/stories260K.f16.gguf", HUNCH_TEST_DATA);
    assert_int_equal(symlink(to, test_path("hf/models--org--real/blobs/b")), 0);
    assert_int_equal(symlink("../../blobs/b", path), 0);
    if (hn_source_open(&s, "org/real", &e) != HUNCH_OK)
        fail_msg("%s", e.message);
    assert_string_equal(hn_source_path(s), path);
    assert_true(hn_source_tensor_count(s) > 40);
    hn_source_close(&s);
    assert_int_equal(hn_source_open(&s, "org/unreal", &e), HUNCH_REFUSED);
    assert_non_null(strstr(e.message, "similar names: org/real"));
    assert_null(s);
}

static void test_no_memory(void **state) {
    (void)state;
    static const char *const names[] = {"org/many-GGUF:Q8_0", "org/safe@v1", "tiny", "Mine-Q4_0", "nothing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hunch_status status = HUNCH_NO_MEMORY;
        int64_t after = 0;
        for (; status == HUNCH_NO_MEMORY; after++) {
            hunch_error e = {0};
            char *path;
            hn_fault_arm(HN_FAULT_ALLOC, after, false);
            status = hn_model_find(&path, names[i], &e);
            hn_fault_arm(HN_FAULT_ALLOC, -1, false);
            assert_true(status == HUNCH_OK || e.status == status);
            hn_free(path);
        }
        assert_int_equal(status, i < 4 ? HUNCH_OK : HUNCH_REFUSED);
        assert_true(after > 50);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hugging_face), cmocka_unit_test(test_ollama), cmocka_unit_test(test_files),
        cmocka_unit_test(test_one_folder_twice), cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_paths),        cmocka_unit_test(test_places), cmocka_unit_test(test_open),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, caches_make, NULL);
}
