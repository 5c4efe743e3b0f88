/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tokenizer_gguf.c - the tokenizer of a GGUF file's metadata; the file's last bytes are a text for it. */
#include "fuzz_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hn_source *s = NULL;
    hn_tokenizer *t = NULL;
    hunch_error err = {0};
    size_t tail = size < 48 ? size : 48;
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    hunch_status st = hn_source_open(&s, path, &err);
    if (st == HUNCH_OK) st = hn_tokenizer_open(&t, s, &err);
    fuzz_check(st, &err, path);
    if (t != NULL) fuzz_tokenizer(t, (fuzz_bytes){data + size - tail, tail});
    hn_tokenizer_close(&t);
    hn_source_close(&s);
    return 0;
}
