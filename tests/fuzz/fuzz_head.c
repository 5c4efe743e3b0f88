/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_head.c - a draft head's folder or GGUF file, opened with a tiny model as drafters open it, and run for a few tokens
 * if it opens: the text is that of the model alone.
 *
 * Input: a SPEC without its path (eagle3,depth=3; ,depth=3 for a path alone), config.json, a tree (JSON; empty: none), each followed
 * by 0xFF; then the weights: a checkpoint of PyTorch if it begins as an archive, a GGUF file of the whole head if it begins as one,
 * else safetensors. */
#include <stdio.h>
#include <string.h>

#include "fuzz_tiny.h"

enum { CONTEXT = 24, NEW_TOKENS = 8 };

static hunch_model *target(void) {
    static hunch_model *m;
    hunch_model_options o;
    hunch_error err = {0};
    if (m != NULL) return m;
    hunch_model_options_defaults(&o);
    o.threads = 1;
    FUZZ_MUST(hunch_model_open(&m, fuzz_tiny_model(0), &o, &err) == HUNCH_OK);
    return m;
}

/* The text after a fixed prompt; returns its length. */
static size_t text_of(hunch_engine *e, hunch_token out[NEW_TOKENS]) {
    static const hunch_token prompt[] = {1, 8, 9, 10, 8, 9};
    hunch_session *s = NULL;
    hunch_session_state state;
    hunch_request r;
    hunch_error err = {0};
    hunch_request_defaults(&r, target());
    r.prompt = prompt;
    r.n_prompt = sizeof prompt / sizeof *prompt;
    r.max_tokens = NEW_TOKENS;
    r.ignore_eos = true;
    r.sampling.temperature = 0;
    FUZZ_MUST(hunch_session_open(&s, e, &r, &err) == HUNCH_OK);
    while (hunch_engine_running(e) > 0) FUZZ_MUST(hunch_engine_round(e, &err) == HUNCH_OK);
    hunch_session_get(s, &state);
    FUZZ_MUST(state.finish == HUNCH_FINISH_LENGTH && state.n_tokens == NEW_TOKENS);
    memcpy(out, state.tokens, NEW_TOKENS * sizeof *out);
    hunch_session_close(&s);
    return NEW_TOKENS;
}

static hunch_status engine_open(hunch_engine **e, const char *draft, hunch_error *err) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.context = CONTEXT;
    o.chunk = 4;
    o.page_rows = 16;
    o.drafts = &draft;
    o.n_drafts = draft != NULL;
    return hunch_engine_open(e, target(), &o, err);
}

static void drafted_is_plain(hunch_engine *e) {
    static hunch_token plain[NEW_TOKENS];
    static size_t n_plain;
    hunch_token drafted[NEW_TOKENS];
    hunch_error err = {0};
    hunch_engine *alone = NULL;
    if (n_plain == 0) {
        FUZZ_MUST(engine_open(&alone, NULL, &err) == HUNCH_OK);
        n_plain = text_of(alone, plain);
        hunch_engine_close(&alone);
    }
    text_of(e, drafted);
    FUZZ_MUST(memcmp(plain, drafted, sizeof plain) == 0);
}

/* "eagle3,depth=3" and a tree: "eagle3:FOLDER,depth=3,tree=FILE"; ",depth=3": "FOLDER,depth=3", without its kind. False: not a
 * head's kind, or a SPEC that names files. */
static bool spec_make(char out[400], fuzz_bytes part, const char *path, const char *tree) {
    static const char *const kinds[] = {"", "eagle", "hass", "eagle3", "peagle", "mtp", "dart",
                                        "medusa", "hydra", "mlp", "meta-mtp", "falcon", "dflash", "dspark", "jetspec", "pard",
                                        "domino", "dflash2"};
    char spec[160];
    bool known = false;
    snprintf(spec, sizeof spec, "%.*s", (int)part.size, part.size ? (const char *)part.at : "");
    const size_t kind = strcspn(spec, ",");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) known |= strlen(kinds[i]) == kind && !strncmp(spec, kinds[i], kind);
    if (!known || strpbrk(spec, "/:")) return false;
    snprintf(out, 400, "%.*s%s%s%s%s%s", (int)kind, spec, kind ? ":" : "", path, spec + kind, tree ? ",tree=" : "",
             tree ? tree : "");
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char spec[400];
    fuzz_bytes rest = {data, size}, words = fuzz_part(&rest), config = fuzz_part(&rest), tree = fuzz_part(&rest);
    const bool torch = rest.size > 1 && !memcmp(rest.at, "PK", 2), gguf = rest.size > 3 && !memcmp(rest.at, "GGUF", 4);
    const char *path = gguf ? fuzz_file(5, rest) : fuzz_folder();
    const fuzz_bytes none = {NULL, 0};
    hunch_engine *e = NULL;
    hunch_error err = {0};
    if (!spec_make(spec, words, path, tree.size ? fuzz_file(4, tree) : NULL)) return 0;
    fuzz_folder_file("config.json", 1, config, true);
    fuzz_folder_file("model.safetensors", 2, torch || gguf ? none : rest, true);
    fuzz_folder_file("pytorch_model.bin", 3, torch ? rest : none, true);
    hunch_status st = engine_open(&e, spec, &err);
    fuzz_check(st, &err, st == HUNCH_REFUSED ? path : NULL);
    if (st == HUNCH_OK) drafted_is_plain(e);
    hunch_engine_close(&e);
    return 0;
}
