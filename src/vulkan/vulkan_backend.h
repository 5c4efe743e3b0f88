/* SPDX-License-Identifier: Apache-2.0 */
/* vulkan_backend.h - a GPU as a backend, by Vulkan 1.3. The loader is opened at run time, so a program runs where there is none; a build
 * without Vulkan's headers has these functions too, and they say so. docs/vulkan.md */
#ifndef HN_VULKAN_BACKEND_H
#define HN_VULKAN_BACKEND_H
#include <hunch/hunch.h>

#include "ops/backend.h"

/* Errors: HUNCH_USAGE (no loader, or this build has no Vulkan). */
hunch_status hn_vulkan_list(hunch_device out[HUNCH_DEVICES], int *n, hunch_error *err);

/* Device number `device` of the list; -1: the first that is no CPU's, and if there is none *out is NULL. Errors: HUNCH_USAGE (no loader, no
 * such device, it lacks something: says what), HUNCH_NO_MEMORY, HUNCH_FAILED. */
hunch_status hn_vulkan_open(hn_backend **out, int device, bool f32, hunch_error *err);
#endif
