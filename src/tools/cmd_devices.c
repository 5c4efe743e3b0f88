/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_devices.c - `hunch devices`: the GPUs that --device takes. */
#include "tool_options.h"

static int devices_json(const hunch_device *d, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:o,s:s,s:s,s:I,s:I,s:b,s:i,s:I,s:s}", "device", json_sprintf("vulkan:%d", i), "name",
                                              d[i].name, "driver", d[i].driver, "memory", (json_int_t)d[i].memory, "memory_left",
                                              (json_int_t)d[i].memory_left, "is_cpu", d[i].is_cpu, "subgroup", d[i].subgroup,
                                              "largest_range", (json_int_t)d[i].largest_range, "lacks", d[i].lacks));
    return tool_print_json(list);
}

static int devices_print(const hunch_device *d, int n) {
    for (int i = 0; i < n; i++) {
        printf("vulkan:%d  %s, %s\n          %.1f of %.1f GB free, subgroups of %d, buffers of %.1f GB\n", i, d[i].name, d[i].driver,
               (double)d[i].memory_left / 1e9, (double)d[i].memory / 1e9, d[i].subgroup, (double)d[i].largest_range / 1e9);
        if (d[i].lacks[0]) printf("          cannot be used: it lacks %s\n", d[i].lacks);
        if (d[i].is_cpu) printf("          a CPU: slower than --device cpu, which auto takes\n");
    }
    if (n == 0) printf("Vulkan has no device here.\n");
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
