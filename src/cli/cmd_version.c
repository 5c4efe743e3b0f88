/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_version.c - `hunch version`, `hunch --version`: the build information for bug reports. */
#include <string.h>

#include "app/tool_options.h"

static int version_json(const hunch_build_info *b) {
    json_t *levels = json_array();
    for (const char *at = b->levels; *at;) {
        const size_t len = strcspn(at, " ");
        json_array_append_new(levels, json_stringn(at, len));
        at += len + strspn(at + len, " ");
    }
    return tool_print_json(json_pack("{s:s,s:s,s:o,s:s,s:s,s:s,s:s}", "version", b->version, "isa", b->isa, "levels",
                                     levels, "compiler", b->compiler, "type", b->type, "target", b->target, "libraries",
                                     b->libraries));
}

/* The first line is the version alone, for scripts. */
static int version_print(const hunch_build_info *b) {
    printf("hunch %s\nlevel      %s, of %s\nbuild      %s%s%s, %s\nlibraries  %s\n", b->version, b->isa, b->levels,
           b->type, *b->type ? ", " : "", b->compiler, b->target, b->libraries);
    return tool_done(HUNCH_OK);
}

int tool_version(int argc, char **argv) {
    tool_options o;
    hunch_build_info b;
    int code = tool_options_parse(&o, TOOL_VERSION, argc, argv);
    if (code >= 0)
        return code;
    hunch_build_get_info(&b);
    code = o.json ? version_json(&b) : version_print(&b);
    tool_options_fini(&o);
    return code;
}
