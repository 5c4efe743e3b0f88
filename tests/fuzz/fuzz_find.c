/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_find.c - a model's name, and the caches' entries for it: refs/main of a Hugging Face repository, a manifest of
 * Ollama's. For any contents, a found file exists, and is in a cache unless the name was its path. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "format/find.h"
#include "fuzz.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define BLOB "blobs/sha256-aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffff0000000011111111"

static void caches_make(void) {
    static const uint8_t weights[] = "GGUF";
    static const char *const files[] = {"models--org--x-GGUF/snapshots/" COMMIT "/x-Q4_0.gguf",
                                        "models--org--x-GGUF/snapshots/" COMMIT "/x-Q8_0.gguf", BLOB, "own.gguf"};
    static const char *const variables[] = {"HF_HUB_CACHE", "OLLAMA_MODELS", "HUNCH_CACHE", "LLAMA_CACHE"};
    for (int i = 0; i < 4; i++) {
        fuzz_folder_file(files[i], 4 + i, (fuzz_bytes){weights, 4}, false);
        FUZZ_MUST(setenv(variables[i], fuzz_folder(), 1) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool made;
    fuzz_bytes rest = {data, size};
    char *name = fuzz_text(fuzz_part(&rest)), *path = NULL;
    hunch_error err = {0};
    if (!made) caches_make();
    made = true;
    fuzz_folder_file("models--org--x-GGUF/refs/main", 0, fuzz_part(&rest), true);
    fuzz_folder_file("manifests/host.example/library/tiny/latest", 1, fuzz_part(&rest), true);
    hunch_status st = hn_model_find(&path, name, &err);
    fuzz_check(st, &err, NULL);
    FUZZ_MUST((st == HUNCH_OK) == (path != NULL));
    if (path != NULL) {
        FUZZ_MUST(hn_exists(path));
        FUZZ_MUST(hn_exists(name) || strncmp(path, fuzz_folder(), strlen(fuzz_folder())) == 0);
    }
    hn_free(path);
    free(name);
    return 0;
}
