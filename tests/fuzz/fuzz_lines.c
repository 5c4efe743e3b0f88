/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lines.c - standard input of the commands that converse: `hunch chat` and `hunch bench --requests`, on a tiny model. Whatever
 * is said, they go on to its end and then end well. Linked with the command's own files. */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz_command.h"
#include "fuzz_tiny.h"

static void input_give(fuzz_bytes b) {
    int fd = open(fuzz_file(0, b), O_RDONLY | O_CLOEXEC);
    FUZZ_MUST(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *model;
    fuzz_mute();
    if (!model) model = fuzz_tiny_model(1);
    char *chat[] = {"chat", "-m", (char *)(uintptr_t)model, "--draft", "ngram", "-n", "6", "--threads", "1"};
    char *bench[] = {"bench", "-m", (char *)(uintptr_t)model, "--requests", "--threads", "1"};
    input_give((fuzz_bytes){data, size});
    FUZZ_MUST(tool_chat(sizeof chat / sizeof *chat, chat) == HUNCH_OK);
    input_give((fuzz_bytes){data, size});
    FUZZ_MUST(tool_bench(sizeof bench / sizeof *bench, bench) == HUNCH_OK);
    return 0;
}
