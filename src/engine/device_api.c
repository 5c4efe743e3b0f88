/* SPDX-License-Identifier: Apache-2.0 */
/* device_api.c - GPUs: which there are, and one by its name. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "vulkan/vulkan_backend.h"

hunch_status hunch_devices(hunch_device out[HUNCH_DEVICES], int *n, hunch_error *err) {
    const hn_argument needed[] = {{"out", out}, {"n", n}, {0}};
    const hunch_status st = hn_check_arguments(__func__, needed, err);
    return st ? st : hn_vulkan_list(out, n, err);
}

hunch_status hn_device_open(hn_backend **out, const char *name, bool f32, hunch_error *err) {
    static const char vulkan[] = "vulkan";
    *out = NULL;
    if (!name || !strcmp(name, "cpu")) return HUNCH_OK;
    if (!strcmp(name, "auto")) {
        hunch_error none;
        const hunch_status st = hn_vulkan_open(out, -1, f32, &none);
        return st == HUNCH_USAGE ? HUNCH_OK : st ? hn_fail(err, st, "%s", none.message) : HUNCH_OK;
    }
    if (!strncmp(name, vulkan, sizeof vulkan - 1)) {
        const char *rest = name + sizeof vulkan - 1;
        char *end = NULL;
        const long number = *rest == ':' && rest[1] >= '0' && rest[1] <= '9' ? strtol(rest + 1, &end, 10) : *rest ? -1 : 0;
        if (number >= 0 && number < HUNCH_DEVICES && (!end || !*end)) return hn_vulkan_open(out, (int)number, f32, err);
    }
    return hn_fail(err, HUNCH_USAGE, "device %.64s: expected cpu, auto, vulkan or vulkan:N (hunch devices lists them)", name);
}
