/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_convert.c - `hunch convert`: a Hugging Face folder, of a model or a draft head, as one GGUF file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool_file.h"
#include "tool_options.h"

/* Takes what nobody can say is wanted no more only by --force. */
static int replace_check(const tool_options *o, const char *place) {
    if (!place || o->force || access(place, F_OK) != 0)
        return 0;
    return tool_usage("convert: %s is there already: --force replaces it", o->output);
}

static int convert_to(const tool_options *o, const char *path) {
    hunch_error err = {0};
    tool_progress bar;
    tool_progress_begin(&bar, "converting", "B");
    const hunch_status status = hunch_convert_for(o->model, o->target, path, tool_progress_bytes, &bar, &err);
    tool_progress_end(&bar);
    return status == HUNCH_OK ? 0 : tool_failed(&err);
}

static int convert_run(const tool_options *o) {
    if (!o->model)
        return tool_usage("convert: FOLDER is missing: a Hugging Face folder, or a draft head");
    if (!o->output)
        return tool_usage("convert: -o FILE.gguf is missing");
    char *place, *partial;
    int code = tool_file_place(&place, &partial, o->output); /* the library finds the same */
    if (!code)
        code = replace_check(o, place);
    if (!code)
        code = convert_to(o, tool_is_standard(o->output) ? "/dev/stdout" : o->output);
    tool_signals_remove(NULL);
    free(partial);
    hunch_free(place);
    if (code)
        return code;
    if (o->json)
        return tool_print_json(json_pack("{s:o}", "output", tool_json_text(o->output, strlen(o->output))));
    fprintf(stderr, "wrote %s\n", o->output);
    return HUNCH_OK;
}

int tool_convert(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_CONVERT, argc, argv);
    if (code >= 0)
        return code;
    code = convert_run(&o);
    tool_options_fini(&o);
    return code;
}
