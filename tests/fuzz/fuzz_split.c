/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_split.c - a GGUF file in two parts: if it opens by its first part, it can be read to its last byte. Input: two bytes with the
 * size of the first part, little endian, then both. */
#include "fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[200];
    if (size < 2) return 0;
    size_t cut = (size_t)data[0] | (size_t)data[1] << 8;
    cut = cut < size - 2 ? cut : size - 2;
    hn_source *s = NULL;
    hunch_error err = {0};
    fuzz_folder_file("m-00001-of-00002.gguf", 0, (fuzz_bytes){data + 2, cut}, false);
    fuzz_folder_file("m-00002-of-00002.gguf", 1, (fuzz_bytes){data + 2 + cut, size - 2 - cut}, true);
    snprintf(path, sizeof path, "%s/m-00001-of-00002.gguf", fuzz_folder());
    hunch_status st = hn_source_open(&s, path, &err);
    fuzz_check(st, &err, fuzz_folder());
    if (st == HUNCH_OK) fuzz_read_source(s);
    hn_source_close(&s);
    return 0;
}
