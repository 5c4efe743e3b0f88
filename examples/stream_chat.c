/* SPDX-License-Identifier: Apache-2.0 */
/* stream_chat.c - a conversation whose answers appear while they are made.
 *
 *   cc stream_chat.c $(pkg-config --cflags --libs hunch) -o stream_chat
 *   ./stream_chat MODEL.gguf "Why is the sky blue?" "And at sunset?" */
#include <hunch/hunch.h>
#include <stdio.h>

enum { MOST = 64 };

static bool show(void *user, const hunch_output *output) {
    (void)user; /* request.on_output_user. False ends the answer: nobody reads it */
    return fwrite(output->text, 1, output->text_len, stdout) == output->text_len && fflush(stdout) == 0;
}

/* Answers the messages said so far; what was read for an earlier answer is not read again. The session keeps its text. */
static hunch_status answer(hunch_session **session, hunch_engine *engine, hunch_model *model, const hunch_message *said, size_t n,
                           hunch_session_state *state, hunch_error *error) {
    hunch_request request;
    hunch_token *prompt = NULL;
    hunch_request_defaults(&request, model);
    hunch_status status = hunch_chat_tokens(model, said, n, &prompt, &request.n_prompt, error);
    request.prompt = prompt;
    request.max_tokens = 256;
    request.on_output = show;
    if (!status) status = hunch_session_open(session, engine, &request, error);
    if (!status) status = hunch_engine_run(engine, error);
    hunch_free(prompt);
    if (!status) hunch_session_get(*session, state);
    return status;
}

int main(int argc, char **argv) {
    hunch_error error = {0};
    hunch_model *model = NULL;
    hunch_engine *engine = NULL;
    hunch_session *session[MOST] = {NULL};
    hunch_session_state state = {0};
    hunch_message said[2 * MOST];
    if (argc < 3 || argc - 2 > MOST) return fprintf(stderr, "usage: %s MODEL MESSAGE...\n", argv[0]), HUNCH_USAGE;
    hunch_engine_options options;
    hunch_engine_options_defaults(&options);
    options.n_drafts = 1;
    options.drafts = (const char *const[]){"auto"}; /* guess ahead: the same text, sooner */
    hunch_status status = hunch_model_open(&model, argv[1], NULL, &error);
    if (!status) status = hunch_engine_open(&engine, model, &options, &error);
    for (int i = 0; !status && state.finish != HUNCH_FINISH_FAILED && i < argc - 2; i++) {
        said[2 * i] = (hunch_message){"user", argv[i + 2]};
        status = answer(&session[i], engine, model, said, 2 * (size_t)i + 1, &state, &error);
        said[2 * i + 1] = (hunch_message){"assistant", state.text};
        putchar('\n');
    }
    if (state.finish == HUNCH_FINISH_FAILED) status = state.error.status, error = state.error;
    if (status) fprintf(stderr, "%s: %s\n", argv[0], error.message);
    for (int i = 0; i < MOST; i++) hunch_session_close(&session[i]);
    hunch_engine_close(&engine);
    hunch_model_close(&model);
    return (int)status;
}
