/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_devices.c - `hunch devices`: the GPUs that --device takes. */
#include <stdarg.h>
#include <string.h>

#include "app/tool_options.h"
#include "cli/chat/tool_wrap.h"

static int devices_json(const hunch_device *d, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:o,s:s,s:s,s:I,s:I,s:b,s:i,s:I,s:s}", "device", json_sprintf("vulkan:%d", i), "name",
                                              d[i].name, "driver", d[i].driver, "memory", (json_int_t)d[i].memory, "memory_left",
                                              (json_int_t)d[i].memory_left, "is_cpu", d[i].is_cpu, "subgroup", d[i].subgroup,
                                              "largest_range", (json_int_t)d[i].largest_range, "lacks", d[i].lacks));
    return tool_print_json(list);
}

static void HN_PRINTF(2, 3) put(tool_wrap *to, const char *fmt, ...) {
    char text[sizeof(hunch_device) + 100];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    tool_wrap_write(to, text, strlen(text));
}

static int devices_print(const hunch_device *d, int n) {
    tool_wrap to = {.to = stdout};
    char left[32], all[32], range[32];
    for (int i = 0; i < n; i++) {
        put(&to, "vulkan:%d  %s, %s\n", i, d[i].name, d[i].driver);
        put(&to, "          %s of %s free, subgroups of %d, buffers of %s\n", tool_size_text((double)d[i].memory_left, left),
            tool_size_text((double)d[i].memory, all), d[i].subgroup, tool_size_text((double)d[i].largest_range, range));
        if (d[i].lacks[0]) put(&to, "          cannot be used: it lacks %s\n", d[i].lacks);
        if (d[i].is_cpu) put(&to, "          a CPU: slower than --device cpu, which auto takes\n");
    }
    if (n == 0) put(&to, "Vulkan has no device here.\n");
    tool_wrap_end(&to);
    return tool_done(HUNCH_OK);
}

int tool_devices(int argc, char **argv) {
    tool_options o;
    hunch_device list[HUNCH_DEVICES];
    hunch_error err = {0};
    int n = 0, code = tool_options_parse(&o, TOOL_DEVICES, argc, argv);
    if (code >= 0)
        return code;
    const hunch_status st = hunch_devices(list, &n, &err);
    code = st ? tool_failed(&err) : o.json ? devices_json(list, n) : devices_print(list, n);
    tool_options_fini(&o);
    return code;
}
