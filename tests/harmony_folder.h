/* SPDX-License-Identifier: Apache-2.0 */
/* harmony_folder.h - the tiny GPT-OSS that answers in Harmony's channels (tests/data/models/harmony), with the real template beside it. Its
 * answer to HARMONY_QUESTION is HARMONY_ANSWER. Include after cmocka. */
#ifndef HN_TESTS_HARMONY_FOLDER_H
#define HN_TESTS_HARMONY_FOLDER_H

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/bytes_for_tests.h"

#define HARMONY_QUESTION "How is it outside?"
#define HARMONY_THINKING "Need weather, so look: 12 degrees."
#define HARMONY_SAYS "It is warm, <|Ünï|> 12 degrees."
#define HARMONY_ANSWER                                                                                                                 \
    "<|channel|>analysis<|message|>" HARMONY_THINKING "<|end|><|start|>assistant<|channel|>final<|message|>" HARMONY_SAYS

static inline void harmony_link(const char *from, const char *where, const char *name) {
    char to[1400];
    snprintf(to, sizeof to, "%s/%s", where, name);
    (void)unlink(to);
    assert_int_equal(symlink(from, to), 0);
}

/* Makes the folder. */
static inline void harmony_folder(const char *where) {
    static const char *const names[] = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json"};
    char from[1400];
    (void)mkdir(where, 0700);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/models/harmony/%s", HUNCH_TEST_DATA, names[i]);
        harmony_link(from, where, names[i]);
    }
    harmony_link(HUNCH_TEST_TEMPLATES "/openai-gpt-oss-120b.jinja", where, "chat_template.jinja");
}
#endif
