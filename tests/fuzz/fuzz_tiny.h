/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tiny.h - the tiny model of the tests, for targets whose input is something else. */
#ifndef HN_FUZZ_TINY_H
#define HN_FUZZ_TINY_H
#include "fuzz.h"

/* tiny_gguf.h uses cmocka's macros. */
#define assert_true FUZZ_MUST
#define assert_non_null(p) FUZZ_MUST((p) != NULL)
#define fail_msg(...) FUZZ_NEVER("reached")
#include "tiny_gguf.h"

/* Its file, by number as in fuzz_file. */
static inline const char *fuzz_tiny_model(int number) {
    tiny t;
    tiny_open(&t);
    tiny_text(&t, "tokenizer.chat_template", "{% for m in messages %}{{ m.role[0] }} {{ m.content }}\n{% endfor %}");
    bytes b = tiny_bytes(&t);
    const char *path = fuzz_file(number, (fuzz_bytes){b.at, b.size});
    bytes_free(&b);
    tiny_close(&t);
    return path;
}
#endif
