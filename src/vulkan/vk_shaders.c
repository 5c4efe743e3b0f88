/* SPDX-License-Identifier: Apache-2.0 */
/* vk_shaders.c - kernels: their code, which is in the program, and pipelines, each made when it is first used. */
#include <string.h>

#include "base/mem.h"
#include "vulkan/vk_device.h"

/* The files that scripts/shaders.py wrote. */
#define KERNELS(X) \
    X(norm) X(act) X(rope_table) X(fix_heads) X(merge) X(gather) X(pick) X(apply) X(move) X(top) X(sums) \
    X(embed_f32) X(embed_f16) X(embed_bf16) X(embed_q4) X(embed_q8) \
    X(linear_f32) X(linear_f16) X(linear_bf16) X(linear_q4) X(linear_q8) X(linear_q4_packed) X(linear_q8_packed) \
    X(store_f32) X(store_f16) X(store_bf16) X(store_q8) X(attention_f32) X(attention_f16) X(attention_bf16) X(attention_q8)

#define TEXT_OF(x) #x
#define INCLUDE(name) \
    __asm__(".pushsection .rodata\n.balign 16\n.globl hn_vk_code_" #name "\n.hidden hn_vk_code_" #name "\nhn_vk_code_" #name ":\n" \
            ".incbin \"" HN_VULKAN_SHADERS "/" #name ".spv\"\n" \
            ".globl hn_vk_code_end_" #name "\n.hidden hn_vk_code_end_" #name "\nhn_vk_code_end_" #name ":\n.popsection\n"); \
    extern const uint32_t hn_vk_code_##name[], hn_vk_code_end_##name[];
KERNELS(INCLUDE)

typedef struct code {
    const char *name;
    const uint32_t *first, *end;
} code;
#define ROW(name) {#name, hn_vk_code_##name, hn_vk_code_end_##name},
static const code codes[VK_KERNELS] = {KERNELS(ROW)};

const char *hn_vk_kernel_name(int kernel) { return codes[kernel].name; }

enum { HEADER = 5, OP_ENTRY_POINT = 15, OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17, MODES = 3 };

/* The module with the modes of floats that the device has: rounding to nearest even, denormals and signs of zeros kept. They are part of
 * the module, so they cannot be in the file. Returns its words. */
static size_t with_modes(const vk_device *d, const code *c, uint32_t *to) {
    static const struct {
        uint32_t mode, capability;
    } modes[MODES] = {{4459, 4464}, {4461, 4466}, {4462, 4467}};
    const bool has[MODES] = {d->denorm, d->signed_zero, d->rte};
    size_t n = 0;
    uint32_t entry = 0;
    bool capabilities = false, written = false;
    for (const uint32_t *w = c->first; w < c->end;) {
        const uint32_t op = w == c->first ? 0 : *w & 0xffff, words = w == c->first ? HEADER : *w >> 16;
        if (w > c->first && !capabilities) {
            capabilities = true;
            for (int i = 0; i < MODES; i++)
                if (has[i]) {
                    to[n++] = 2u << 16 | OP_CAPABILITY;
                    to[n++] = modes[i].capability;
                }
        }
        if (entry && op != OP_ENTRY_POINT && !written) {
            written = true;
            for (int i = 0; i < MODES; i++)
                if (has[i]) {
                    const uint32_t mode[] = {4u << 16 | OP_EXECUTION_MODE, entry, modes[i].mode, 32};
                    memcpy(to + n, mode, sizeof mode);
                    n += 4;
                }
        }
        if (op == OP_ENTRY_POINT) entry = w[2];
        memcpy(to + n, w, words * sizeof *w);
        n += words;
        w += words;
    }
    return n;
}

static VkPipeline make(vk_device *d, int kernel, const uint32_t constant[2]) {
    const code *c = &codes[kernel];
    const size_t most = (size_t)(c->end - c->first) + 6 * MODES;
    uint32_t *words = hn_alloc(most * sizeof *words);
    if (!words) return VK_NULL_HANDLE;
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = sizeof *words * with_modes(d, c, words), .pCode = words};
    const VkSpecializationMapEntry entry[2] = {{0, 0, sizeof *constant}, {1, sizeof *constant, sizeof *constant}};
    const VkSpecializationInfo special = {2, entry, 2 * sizeof *constant, constant};
    VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                  .stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main", .pSpecializationInfo = &special},
                                        .layout = d->layout};
    VkPipeline p = VK_NULL_HANDLE;
    if (d->f.vkCreateShaderModule(d->device, &module, NULL, &info.stage.module) == VK_SUCCESS) {
        if (d->f.vkCreateComputePipelines(d->device, VK_NULL_HANDLE, 1, &info, NULL, &p) != VK_SUCCESS) p = VK_NULL_HANDLE;
        d->f.vkDestroyShaderModule(d->device, info.stage.module, NULL);
    }
    hn_free(words);
    return p;
}

VkPipeline hn_vk_pipeline(vk_device *d, int kernel, const uint32_t constant[2]) {
    for (const vk_pipeline *p = d->pipeline[kernel]; p; p = p->next)
        if (p->constant[0] == constant[0] && p->constant[1] == constant[1]) return p->pipeline;
    vk_pipeline *p = hn_zalloc(1, sizeof *p);
    if (!p) return VK_NULL_HANDLE;
    *p = (vk_pipeline){d->pipeline[kernel], {constant[0], constant[1]}, make(d, kernel, constant)};
    if (!p->pipeline) {
        hn_free(p);
        return VK_NULL_HANDLE;
    }
    d->pipeline[kernel] = p;
    return p->pipeline;
}

void hn_vk_pipelines_free(vk_device *d) {
    for (int k = 0; k < VK_KERNELS; k++)
        for (vk_pipeline *p = d->pipeline[k], *next; p; p = next) {
            next = p->next;
            d->f.vkDestroyPipeline(d->device, p->pipeline, NULL);
            hn_free(p);
        }
}
