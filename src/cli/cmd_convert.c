/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_convert.c - `hunch convert`: a Hugging Face folder, of a model or a draft head, as one GGUF file. */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "app/tool_file.h"
#include "app/tool_flags.h"
#include "app/tool_options.h"

/* An existing file is replaced only with --force. */
static int replace_check(const tool_options *o, const char *place) {
    if (!place || o->force || !hn_exists(place))
        return 0;
    return tool_usage("convert: %s is there already: --force replaces it", o->output);
}

static int convert_to(const tool_options *o, const char *path) {
    hunch_error err = {0};
    hunch_convert_options how;
    hunch_convert_options_defaults(&how);
    how.target = o->target;
    how.type = o->type == TOOL_UNSET ? NULL : tool_type_names[o->type];
    tool_progress bar;
    tool_progress_begin(&bar, "converting", "B");
    how.progress = tool_progress_bytes;
    how.progress_user = &bar;
    const hunch_status status = hunch_convert(o->model, path, &how, &err);
    tool_progress_end(&bar);
    return status == HUNCH_OK ? 0 : tool_failed(&err);
}

/* The types of the written file, as `hunch inspect` lists them: [{"type", "tensors", ...}]. NULL: it cannot be read back. */
static json_t *types_written(const char *path) {
    char *text = NULL;
    hunch_error err = {0};
    if (!path || hunch_inspect(path, &text, &err) != HUNCH_OK)
        return NULL;
    json_t *all = hn_json_load(text, strlen(text), JSON_ALLOW_NUL, NULL), *types = json_incref(json_object_get(all, "types"));
    json_decref(all);
    hunch_free(text);
    return types;
}

/* Lists the types written if --type was given: some matrices may have another. */
static void types_print(const tool_options *o, const json_t *types) {
    const json_t *t;
    size_t i;
    fprintf(stderr, "wrote %s:", o->output);
    json_array_foreach(types, i, t) {
        const char *name = json_string_value(json_object_get(t, "type"));
        const bool rest = strcmp(name, "BF16") == 0 && strchr(tool_type_names[o->type], '_');
        fprintf(stderr, "%s %lld %s%s", i ? "," : "", (long long)json_integer_value(json_object_get(t, "tensors")),
                name, rest ? " (rows that are not whole blocks of 32)" : "");
    }
    fputc('\n', stderr);
}

static int convert_done(const tool_options *o, const char *place) {
    json_t *types = o->json || o->type != TOOL_UNSET ? types_written(place) : NULL;
    if (o->json)
        return tool_print_json(json_pack("{s:o,s:o}", "output", tool_json_text(o->output, strlen(o->output)), "types",
                                         types ? types : json_null()));
    if (types)
        types_print(o, types);
    else
        fprintf(stderr, "wrote %s\n", o->output);
    json_decref(types);
    return HUNCH_OK;
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
    if (!code)
        code = convert_done(o, place);
    hn_free(partial);
    hn_free(place);
    return code;
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
