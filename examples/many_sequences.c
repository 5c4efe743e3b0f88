/* SPDX-License-Identifier: Apache-2.0 */
/* many_sequences.c - several questions about one text, answered at once: the text is read once, and every pass over the
 * weights serves all answers.
 *
 *   cc many_sequences.c $(pkg-config --cflags --libs hunch) -o many_sequences
 *   ./many_sequences MODEL.gguf "The keeper lights the lamp at six." "Who is it about?" "When is it?" "What is lit?" */
#include <hunch/hunch.h>
#include <stdio.h>

enum { MOST = 64 };

/* Answers arrive as they end; hunch_session_get has everything about one. */
static bool ended(void *user, const hunch_output *output) {
    hunch_session_state state;
    if (output->finish == HUNCH_RUNNING) return true;
    hunch_session_get(output->session, &state);
    printf("%s\n%s\n[%zu tokens in %llu passes, %llu of %zu rows shared]\n\n", (const char *)user,
           state.finish == HUNCH_FINISH_FAILED ? state.error.message : state.text, state.n_tokens,
           (unsigned long long)state.passes, (unsigned long long)state.n_restored, state.n_prompt);
    return true;
}

int main(int argc, char **argv) {
    hunch_error error = {0};
    hunch_model *model = NULL;
    hunch_engine *engine = NULL;
    hunch_session *session[MOST] = {NULL};
    if (argc < 4 || argc - 3 > MOST) return fprintf(stderr, "usage: %s MODEL TEXT QUESTION...\n", argv[0]), HUNCH_USAGE;

    hunch_engine_options options;
    hunch_engine_options_defaults(&options);
    options.parallel = argc - 3 < 8 ? argc - 3 : 8; /* at once; the others wait for a place */
    options.page_rows = 16;                         /* rows are shared in whole pages */
    hunch_status status = hunch_model_open(&model, argv[1], NULL, &error);
    if (!status) status = hunch_engine_open(&engine, model, &options, &error);

    for (int i = 0; !status && i < argc - 3; i++) {
        const hunch_message message[] = {{"system", argv[2]}, {"user", argv[i + 3]}};
        hunch_request request;
        hunch_request_defaults(&request, model);
        request.max_tokens = 64;
        request.on_output = ended;
        request.on_output_user = argv[i + 3];
        hunch_token *prompt = NULL;
        status = hunch_chat_tokens(model, message, 2, &prompt, &request.n_prompt, &error);
        request.prompt = prompt;
        if (!status) status = hunch_session_open(&session[i], engine, &request, &error);
        hunch_free(prompt);
    }
    if (!status) status = hunch_engine_run(engine, &error);
    if (status) fprintf(stderr, "%s: %s\n", argv[0], error.message);
    for (int i = 0; i < MOST; i++) hunch_session_close(&session[i]);
    hunch_engine_close(&engine);
    hunch_model_close(&model);
    return (int)status;
}
