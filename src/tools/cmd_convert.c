/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_convert.c - `hunch convert`: a Hugging Face folder as one GGUF file. */
#include <stdlib.h>
#include <string.h>

#include "tool_file.h"
#include "tool_options.h"

static int convert_run(const tool_options *o) {
    hunch_error err = {0};
    if (!o->model)
        return tool_usage("convert: FOLDER is missing: a Hugging Face folder");
    if (!o->output)
        return tool_usage("convert: -o FILE.gguf is missing");
    char *place, *partial;
    const int code = tool_file_place(&place, &partial, o->output); /* the library finds the same */
    if (code)
        return code;
    tool_progress bar;
    tool_progress_begin(&bar, "converting", "B");
    const hunch_status status = hunch_convert_with(o->model, o->output, tool_progress_bytes, &bar, &err);
    tool_progress_end(&bar);
    tool_signals_remove(NULL);
    free(partial);
    hunch_free(place);
    if (status != HUNCH_OK)
        return tool_failed(&err);
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
