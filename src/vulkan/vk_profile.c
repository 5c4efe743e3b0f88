/* SPDX-License-Identifier: Apache-2.0 */
/* vk_profile.c - how long kernels take, measured one after another: a barrier and a timestamp behind each. */
#include <string.h>

#include "base/mem.h"
#include "vulkan/vk_device.h"

enum { NOTES = 4096 };

struct vk_profile {
    VkQueryPool pool;
    int n, kernel[NOTES]; /* of the submission that is recorded; note 0 is its beginning */
    int calls[VK_KERNELS];
    double seconds[VK_KERNELS];
};

void hn_vk_profile_begin(vk_device *d) {
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = NOTES};
    struct vk_profile *p = hn_zalloc(1, sizeof *p);
    if (!p) return;
    if (d->f.vkCreateQueryPool(d->device, &info, NULL, &p->pool) != VK_SUCCESS)
        hn_free(p);
    else
        d->profile = p;
}

static void stamp(vk_device *d, int kernel) {
    struct vk_profile *p = d->profile;
    const VkMemoryBarrier b = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT};
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkCommandBuffer cmd = d->slot[d->at].cmd;
    d->f.vkCmdPipelineBarrier(cmd, all, all, 0, 1, &b, 0, NULL, 0, NULL);
    d->f.vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, p->pool, (uint32_t)p->n);
    p->kernel[p->n++] = kernel;
}

void hn_vk_profile_note(vk_device *d, int kernel) {
    struct vk_profile *p = d->profile;
    if (p->n == NOTES) return;
    if (p->n == 0) d->f.vkCmdResetQueryPool(d->slot[d->at].cmd, p->pool, 0, NOTES);
    stamp(d, kernel);
}

void hn_vk_profile_read(vk_device *d) {
    static uint64_t at[NOTES];
    struct vk_profile *p = d->profile;
    if (p->n > 0 &&
        d->f.vkGetQueryPoolResults(d->device, p->pool, 0, (uint32_t)p->n, sizeof at, at, sizeof *at, VK_QUERY_RESULT_64_BIT) == VK_SUCCESS)
        for (int i = 1; i < p->n; i++) {
            p->calls[p->kernel[i]]++;
            p->seconds[p->kernel[i]] += (double)(at[i] - at[i - 1]) * d->tick * 1e-9;
        }
    p->n = 0;
}

void hn_vk_profile_end(vk_device *d, FILE *to) {
    struct vk_profile *p = d->profile;
    double all = 0;
    if (!p) return;
    d->profile = NULL;
    for (int k = 0; k < VK_KERNELS; k++) all += p->seconds[k];
    for (int k = 0; k < VK_KERNELS; k++)
        if (p->calls[k] > 0)
            fprintf(to, "  %-18s %5d calls %9.1f us, %5.1f us each, %4.1f %%\n", hn_vk_kernel_name(k), p->calls[k], p->seconds[k] * 1e6,
                    p->seconds[k] * 1e6 / p->calls[k], 100 * p->seconds[k] / all);
    d->f.vkDestroyQueryPool(d->device, p->pool, NULL);
    hn_free(p);
}
