/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tokenizer_json.c - tokenizer.json, a text for it, tokenizer_config.json and generation_config.json, in this order,
 * of a folder without weights. */
#include "fuzz_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t empty[] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    fuzz_bytes rest = {data, size};
    hn_source *s = NULL;
    hn_tokenizer *t = NULL;
    hunch_error err = {0};
    fuzz_folder_file("config.json", 0, (fuzz_bytes){empty + 8, 2}, false);
    fuzz_folder_file("model.safetensors", 1, (fuzz_bytes){empty, sizeof empty}, false);
    fuzz_folder_file("tokenizer.json", 2, fuzz_part(&rest), false);
    fuzz_bytes text = fuzz_part(&rest);
    fuzz_folder_file("tokenizer_config.json", 3, fuzz_part(&rest), true);
    fuzz_folder_file("generation_config.json", 4, fuzz_part(&rest), true);
    hunch_status st = hn_source_open(&s, fuzz_folder(), &err);
    if (st == HUNCH_OK) st = hn_tokenizer_open(&t, s, &err);
    fuzz_check(st, &err, fuzz_folder());
    if (t != NULL) fuzz_tokenizer(t, text);
    hn_tokenizer_close(&t);
    hn_source_close(&s);
    return 0;
}
