/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_inspect.c - `hunch inspect`: keys and tensors of a model file or folder, and which of them the engine uses. A file
 * that cannot run is shown all the same, with the reason. */
#include <stdlib.h>
#include <string.h>

#include "tool_commands.h"

static void shape_print(const json_t *shape) {
    char text[128];
    size_t at = 0, i;
    const json_t *d;
    text[0] = 0;
    json_array_foreach (shape, i, d)
        if (at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? " x " : "",
                                   (long long)json_integer_value(d));
    printf("%-22s", text);
}

static void metadata_print(const json_t *metadata, bool color) {
    enum { WIDEST = 90 };
    const char *key;
    json_t *value;
    printf("%smetadata%s\n", tool_style(color, 'b'), tool_style(color, '0'));
    json_object_foreach ((json_t *)(uintptr_t)metadata, key, value) {
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        size_t len = dump ? strlen(dump) : 0, shown = len < WIDEST ? len : WIDEST;
        while (shown < len && ((unsigned char)dump[shown] & 0xC0) == 0x80) /* never half a character */
            shown--;
        printf("  %-44s %.*s%s\n", key, (int)shown, dump ? dump : "", shown < len ? "..." : "");
        free(dump);
    }
}

static void tensors_print(const json_t *tensors, bool color) {
    size_t i, unused = 0;
    const json_t *t;
    printf("%stensors%s\n", tool_style(color, 'b'), tool_style(color, '0'));
    json_array_foreach (tensors, i, t) {
        bool used = json_is_true(json_object_get(t, "used"));
        unused += !used;
        printf("  %-44s %-6s ", json_string_value(json_object_get(t, "name")),
               json_string_value(json_object_get(t, "type")));
        shape_print(json_object_get(t, "shape"));
        printf(" %12lld%s%s%s\n", (long long)json_integer_value(json_object_get(t, "bytes")),
               tool_style(color && !used, 'y'), used ? "" : "  not used", tool_style(color && !used, '0'));
    }
    printf("%zu tensors, %zu not used\n", json_array_size(tensors), unused);
}

static int table_print(const json_t *d, const tool_options *o) {
    bool color = tool_colors(o->color, stdout);
    const json_int_t files = json_integer_value(json_object_get(d, "files"));
    printf("%s, %s, %.1f MB of tensors", json_string_value(json_object_get(d, "path")),
           json_string_value(json_object_get(d, "format")),
           (double)json_integer_value(json_object_get(d, "tensor_bytes")) / 1e6);
    if (files > 1)
        printf(" in %lld files", (long long)files);
    putchar('\n');
    metadata_print(json_object_get(d, "metadata"), color);
    tensors_print(json_object_get(d, "tensors"), color);
    const json_t *refused = json_object_get(d, "refused");
    if (refused)
        printf("%sdoes not run: %s%s\n", tool_style(color, 'r'), json_string_value(refused), tool_style(color, '0'));
    return tool_done(HUNCH_OK);
}

static int inspect_run(const tool_options *o) {
    hunch_error err = {0};
    char *text;
    if (o->model && o->positional)
        return tool_usage("inspect: two models: %s and %s", o->model, o->positional);
    const char *path = o->model ? o->model : o->positional;
    if (!path)
        return tool_usage("inspect: no model: a GGUF file or a Hugging Face folder is missing");
    if (hunch_inspect(path, &text, &err) != HUNCH_OK)
        return tool_failed(&err);
    json_t *d = json_loads(text, JSON_ALLOW_NUL, NULL);
    hunch_free(text);
    if (!d) {
        tool_message("%s: its description is not valid JSON", path);
        return HUNCH_FAILED;
    }
    if (o->json)
        return tool_print_json(d);
    int code = table_print(d, o);
    json_decref(d);
    return code;
}

int tool_inspect(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_INSPECT, argc, argv);
    if (code >= 0)
        return code;
    code = inspect_run(&o);
    tool_options_fini(&o);
    return code;
}
