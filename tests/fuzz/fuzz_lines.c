/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lines.c - standard input of interactive commands, on a tiny model: `hunch bench --requests` if the first letter
 * is that of a request, else `hunch chat`. For any input they continue to its end and exit normally. Linked with the
 * command's own files. */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"
#include "app/tool_commands.h"
#include "fuzz_tiny.h"

enum { MOST_BYTES = 400 };

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
    if (memmem(data, size, "/save", 5)) return 0; /* it may name any file */
    const bool measures = size > 0 && strchr("ipdq", *data); /* as requests begin */
    input_give((fuzz_bytes){data, size < MOST_BYTES ? size : MOST_BYTES});
    if (measures)
        FUZZ_MUST(tool_bench(sizeof bench / sizeof *bench, bench) == HUNCH_OK);
    else {
        const int code = tool_chat(sizeof chat / sizeof *chat, chat);
        FUZZ_MUST(code == HUNCH_OK || code == HUNCH_FAILED); /* a message or a command that failed */
    }
    return 0;
}
