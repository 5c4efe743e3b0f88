/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_gguf.c - a GGUF file: if it opens, it can be read to its last byte. */
#include "fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hn_source *s = NULL;
    hunch_error err = {0};
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    hunch_status st = hn_source_open(&s, path, &err);
    fuzz_check(st, &err, path);
    if (st == HUNCH_OK) fuzz_read_source(s);
    hn_source_close(&s);
    return 0;
}
