/* SPDX-License-Identifier: Apache-2.0 */
/* vk_none.c - a build without Vulkan. */
#include "vulkan/vulkan_backend.h"

static hunch_status refuse(hunch_error *err) {
    return hn_fail(err, HUNCH_USAGE, "this build of hunch has no Vulkan: it was made without its headers (Debian: libvulkan-volk-dev, "
                                     "libvulkan-dev), or for a static C library");
}

hunch_status hn_vulkan_list(hunch_device out[HUNCH_DEVICES] HN_UNUSED, int *n, hunch_error *err) {
    *n = 0;
    return refuse(err);
}

hunch_status hn_vulkan_open(hn_backend **out, int device, bool f32 HN_UNUSED, hunch_error *err) {
    *out = NULL;
    return device < 0 ? HUNCH_OK : refuse(err);
}
