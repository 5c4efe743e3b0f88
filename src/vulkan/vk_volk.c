/* SPDX-License-Identifier: Apache-2.0 */
/* vk_volk.c - Debian's volk, which finds Vulkan's functions at run time, compiled here. */
#define VK_NO_PROTOTYPES
#define VOLK_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include <volk.h>
#pragma GCC diagnostic pop
