/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_prompts.c - files that the command reads beside a model: prompts (text or JSON lines), token ids, and variables for
 * a template. The same bytes are given as each. Linked with the command's own files. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "app/tool_commands.h"
#include "cli/tool_prompts.h"

static void code_check(int code) {
    FUZZ_MUST(code == HUNCH_OK || code == HUNCH_USAGE || code == HUNCH_REFUSED);
}

static void prompt_check(const tool_prompt *p) {
    FUZZ_MUST(p->id != NULL && p->group != NULL && (p->text != NULL || p->messages != NULL || p->n_ids > 0));
    FUZZ_MUST(p->text == NULL || p->text[p->len] == '\0');
    FUZZ_MUST(p->prediction == NULL || p->prediction[p->prediction_len] == '\0');
    for (size_t i = 0; i < p->n_ids; i++) FUZZ_MUST(p->ids[i] >= 0);
}

static void prompts_read(const char *path, bool as_tokens) {
    tool_options o = {0};
    tool_prompts p;
    *(as_tokens ? &o.tokens_file : &o.file) = path;
    int code = tool_prompts_read(&p, &o);
    code_check(code);
    for (size_t i = 0; i < p.n && code == 0; i++) prompt_check(&p.items[i]);
    tool_prompts_fini(&p);
}

/* hunch tokenize --template T --messages FILE --text */
static void messages_render(const char *path) {
    static const char source[] =
        "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}{{ x|tojson }}";
    char *words[] = {"tokenize", "--template", NULL, "--messages", NULL, "--text"};
    const char *template_path = fuzz_file(1, (fuzz_bytes){(const uint8_t *)source, sizeof source - 1});
    words[2] = (char *)(uintptr_t)template_path;
    words[4] = (char *)(uintptr_t)path;
    code_check(tool_tokenize(sizeof words / sizeof *words, words));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_mute();
    const char *path = fuzz_file(0, (fuzz_bytes){data, size});
    prompts_read(path, false);
    prompts_read(path, true);
    messages_render(path);
    return 0;
}
