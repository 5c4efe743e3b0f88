/* SPDX-License-Identifier: Apache-2.0 */
/* vk_load.c - the loader, which is opened when a device is first asked for, and devices. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "vulkan/vk_device.h"

/* volk's functions are the process's. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static hunch_status open_instance(VkInstance *out, hunch_error *err) {
    const VkApplicationInfo app = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "hunch", .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
    *out = VK_NULL_HANDLE;
    pthread_mutex_lock(&loading);
    hunch_status st = HUNCH_OK;
    if (volkInitialize() != VK_SUCCESS)
        st = hn_fail(err, HUNCH_USAGE, "there is no Vulkan loader here (libvulkan.so.1; Debian: libvulkan1)");
    if (!st && vkCreateInstance(&info, NULL, out) != VK_SUCCESS)
        st = hn_fail(err, HUNCH_USAGE, "Vulkan finds no driver here (Debian: mesa-vulkan-drivers, or the GPU's own)");
    if (!st) volkLoadInstanceOnly(*out);
    pthread_mutex_unlock(&loading);
    return st;
}

/* ---- what devices have ---------------------------------------------------------------------------------------------- */

typedef struct found {
    VkPhysicalDeviceProperties2 p;
    VkPhysicalDeviceVulkan11Properties p11;
    VkPhysicalDeviceVulkan12Properties p12;
    VkPhysicalDeviceVulkan13Properties p13;
    VkPhysicalDeviceFeatures2 f;
    VkPhysicalDeviceVulkan12Features f12;
    VkPhysicalDeviceVulkan13Features f13;
    VkPhysicalDeviceMemoryProperties2 memory;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    uint32_t family;
    bool has_family, has_push, has_budget;
} found;

static void look(VkPhysicalDevice device, found *x) {
    VkExtensionProperties *list = NULL;
    VkQueueFamilyProperties family[32];
    uint32_t n = 0, families = 32;
    *x = (found){.p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &x->p11},
                 .p11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &x->p12},
                 .p12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = &x->p13},
                 .p13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES},
                 .f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &x->f12},
                 .f12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &x->f13},
                 .f13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES},
                 .memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2},
                 .budget = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT}};
    vkGetPhysicalDeviceProperties(device, &x->p.properties);
    if (x->p.properties.apiVersion < VK_API_VERSION_1_3) return;
    vkGetPhysicalDeviceProperties2(device, &x->p);
    vkGetPhysicalDeviceFeatures2(device, &x->f);
    vkEnumerateDeviceExtensionProperties(device, NULL, &n, NULL);
    list = hn_zalloc(n + 1, sizeof *list);
    if (list) vkEnumerateDeviceExtensionProperties(device, NULL, &n, list);
    for (uint32_t i = 0; list && i < n; i++) {
        x->has_push |= !strcmp(list[i].extensionName, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
        x->has_budget |= !strcmp(list[i].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    }
    hn_free(list);
    if (x->has_budget) x->memory.pNext = &x->budget;
    vkGetPhysicalDeviceMemoryProperties2(device, &x->memory);
    vkGetPhysicalDeviceQueueFamilyProperties(device, &families, family);
    for (uint32_t i = families; i-- > 0;) /* the first, but one that does not draw before those that do */
        if ((family[i].queueFlags & VK_QUEUE_COMPUTE_BIT) && (!x->has_family || !(family[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) ||
                                                              (family[x->family].queueFlags & VK_QUEUE_GRAPHICS_BIT))) {
            x->family = i;
            x->has_family = true;
        }
}

/* What it would need; NULL: nothing. */
static const char *lacks(const found *x) {
    const VkPhysicalDeviceLimits *l = &x->p.properties.limits;
    if (x->p.properties.apiVersion < VK_API_VERSION_1_3) return "Vulkan 1.3";
    if (!x->has_push) return "VK_KHR_push_descriptor";
    if (!x->has_family) return "a queue that computes";
    if (!x->f13.shaderIntegerDotProduct) return "shaderIntegerDotProduct";
    if (!x->f12.timelineSemaphore) return "timelineSemaphore";
    if (l->maxComputeWorkGroupInvocations < 256) return "workgroups of 256";
    if (l->maxComputeSharedMemorySize < 32768) return "32 KiB of shared memory";
    if (l->maxPushConstantsSize < VK_PUSH) return "128 bytes of push constants";
    if (l->maxPerStageDescriptorStorageBuffers < VK_ARGS) return "9 storage buffers a kernel";
    return NULL;
}

static uint64_t own_memory(const found *x, uint64_t *left) {
    uint64_t most = 0;
    *left = 0;
    for (uint32_t i = 0; i < x->memory.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *h = &x->memory.memoryProperties.memoryHeaps[i];
        if (!(h->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || h->size <= most) continue;
        most = h->size;
        const uint64_t budget = x->has_budget ? x->budget.heapBudget[i] : h->size / 10 * 9,
                       used = x->has_budget ? x->budget.heapUsage[i] : 0;
        *left = budget > used ? budget - used : 0;
    }
    return most;
}

static hunch_status find_devices(VkInstance instance, VkPhysicalDevice device[HUNCH_DEVICES], uint32_t *n, hunch_error *err) {
    *n = HUNCH_DEVICES;
    const VkResult r = vkEnumeratePhysicalDevices(instance, n, device);
    return r == VK_SUCCESS || r == VK_INCOMPLETE ? HUNCH_OK : hn_fail(err, HUNCH_USAGE, "Vulkan's devices cannot be listed (%d)", (int)r);
}

hunch_status hn_vulkan_list(hunch_device out[HUNCH_DEVICES], int *n, hunch_error *err) {
    VkPhysicalDevice device[HUNCH_DEVICES];
    VkInstance instance;
    uint32_t count = 0;
    *n = 0;
    hunch_status st = open_instance(&instance, err);
    if (st) return st;
    st = find_devices(instance, device, &count, err);
    for (uint32_t i = 0; !st && i < count; i++) {
        found x;
        look(device[i], &x);
        const char *need = lacks(&x);
        hunch_device *d = &out[(*n)++];
        *d = (hunch_device){.is_cpu = x.p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU, .subgroup = (int)x.p11.subgroupSize,
                                .largest_range = x.p.properties.limits.maxStorageBufferRange};
        d->memory = own_memory(&x, &d->memory_left);
        snprintf(d->name, sizeof d->name, "%s", x.p.properties.deviceName);
        snprintf(d->driver, sizeof d->driver, "%.100s%s%.100s", x.p12.driverName, x.p12.driverInfo[0] ? " " : "", x.p12.driverInfo);
        snprintf(d->lacks, sizeof d->lacks, "%s", need ? need : "");
    }
    vkDestroyInstance(instance, NULL);
    return st;
}

/* ---- a device ----------------------------------------------------------------------------------------------------- */

uint64_t hn_vk_memory_left(const vk_device *d) {
    uint64_t left;
    found x = {.has_budget = d->budget,
               .memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2},
               .budget = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT}};
    if (d->budget) x.memory.pNext = &x.budget;
    vkGetPhysicalDeviceMemoryProperties2(d->physical, &x.memory);
    own_memory(&x, &left);
    return x.has_budget ? left : left > d->taken ? left - d->taken : 0;
}

static hunch_status choose(const vk_device *d, int number, VkPhysicalDevice *out, found *x, hunch_error *err) {
    VkPhysicalDevice device[HUNCH_DEVICES];
    uint32_t n = 0;
    *out = VK_NULL_HANDLE;
    const hunch_status st = find_devices(d->instance, device, &n, err);
    if (st) return st;
    if (number >= 0 && n == 0) return hn_fail(err, HUNCH_USAGE, "vulkan:%d: there is no device that Vulkan's drivers know", number);
    if (number >= 0 && number >= (int)n)
        return hn_fail(err, HUNCH_USAGE, "vulkan:%d: there is no such device: expected 0 to %d (hunch devices lists them)", number,
                       (int)n - 1);
    for (uint32_t i = number < 0 ? 0 : (uint32_t)number; i < n; i++) {
        look(device[i], x);
        const char *need = lacks(x);
        if (number < 0 && (need || x->p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU)) continue;
        if (need) return hn_fail(err, HUNCH_USAGE, "vulkan:%d (%s): the device lacks %s", number, x->p.properties.deviceName, need);
        *out = device[i];
        return HUNCH_OK;
    }
    return HUNCH_OK;
}

static VkResult make_device(vk_device *d, const found *x) {
    const float first = 1;
    const char *const names[] = {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME};
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = x->family, .queueCount = 1, .pQueuePriorities = &first};
    VkPhysicalDeviceVulkan13Features f13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                            .shaderIntegerDotProduct = VK_TRUE,
                                            .maintenance4 = x->f13.maintenance4};
    VkPhysicalDeviceVulkan12Features f12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &f13,
                                            .timelineSemaphore = VK_TRUE};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &f12, .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue, .enabledExtensionCount = x->has_budget ? 2 : 1,
                                     .ppEnabledExtensionNames = names};
    return vkCreateDevice(d->physical, &info, NULL, &d->device);
}

static bool make_parts(vk_device *d) {
    VkDescriptorSetLayoutBinding binding[VK_ARGS];
    for (uint32_t i = 0; i < VK_ARGS; i++)
        binding[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                 .flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR, .bindingCount = VK_ARGS,
                                                 .pBindings = binding};
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, VK_PUSH};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1,
                                         .pSetLayouts = &d->set_layout, .pushConstantRangeCount = 1, .pPushConstantRanges = &push};
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, .queueFamilyIndex = d->family};
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    if (d->f.vkCreateDescriptorSetLayout(d->device, &set, NULL, &d->set_layout) != VK_SUCCESS ||
        d->f.vkCreatePipelineLayout(d->device, &layout, NULL, &d->layout) != VK_SUCCESS ||
        d->f.vkCreateCommandPool(d->device, &pool, NULL, &d->pool) != VK_SUCCESS ||
        d->f.vkCreateSemaphore(d->device, &timeline, NULL, &d->timeline) != VK_SUCCESS)
        return false;
    const VkCommandBufferAllocateInfo cmd = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = d->pool,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    for (int i = 0; i < VK_SLOTS; i++)
        if (d->f.vkAllocateCommandBuffers(d->device, &cmd, &d->slot[i].cmd) != VK_SUCCESS) return false;
    return true;
}

static void take_limits(vk_device *d, const found *x) {
    const VkPhysicalDeviceLimits *l = &x->p.properties.limits;
    const size_t block =
        (size_t)(x->p13.maxBufferSize < x->p11.maxMemoryAllocationSize ? x->p13.maxBufferSize : x->p11.maxMemoryAllocationSize);
    d->align = l->minStorageBufferOffsetAlignment < 16 ? 16 : (size_t)l->minStorageBufferOffsetAlignment;
    d->largest_range = l->maxStorageBufferRange / 256 * 256;
    d->largest_block = (block - 256) / 4096 * 4096;
    d->memory = x->memory.memoryProperties;
    d->family = x->family;
    d->budget = x->has_budget;
    d->tick = (double)l->timestampPeriod;
    d->rte = x->p12.shaderRoundingModeRTEFloat32;
    d->denorm = x->p12.shaderDenormPreserveFloat32;
    d->signed_zero = x->p12.shaderSignedZeroInfNanPreserveFloat32;
    snprintf(d->level, sizeof d->level, "vulkan %.100s, %.50s %.80s", x->p.properties.deviceName, x->p12.driverName, x->p12.driverInfo);
}

hunch_status hn_vk_device_open(vk_device **out, int number, hunch_error *err) {
    vk_device *d = hn_zalloc(1, sizeof *d);
    found x;
    *out = NULL;
    if (!d) return hn_fail_memory(err, "a device", sizeof *d);
    d->users = 1;
    pthread_mutex_init(&d->lock, NULL);
    hunch_status st = open_instance(&d->instance, err);
    if (!st) st = choose(d, number, &d->physical, &x, err);
    if (st || !d->physical) {
        hn_vk_device_close(d);
        return st;
    }
    take_limits(d, &x);
    pthread_mutex_lock(&loading);
    const VkResult r = make_device(d, &x);
    if (r == VK_SUCCESS) volkLoadDeviceTable(&d->f, d->device);
    pthread_mutex_unlock(&loading);
    if (r == VK_SUCCESS) d->f.vkGetDeviceQueue(d->device, d->family, 0, &d->queue);
    if (r != VK_SUCCESS)
        st = hn_fail(err, HUNCH_FAILED, "%s: the device cannot be opened (%d)", d->level, (int)r);
    else if (!make_parts(d))
        st = hn_fail(err, HUNCH_FAILED, "%s: the device has no room for command buffers", d->level);
    hn_mem *nothing = NULL;
    vk_backend own = {.d = d};
    if (!st) st = hn_vk_mem_create(&own.base, HN_MEM_WORK, 256, &nothing, err);
    d->nothing = vk_mem_of(nothing);
    if (st)
        hn_vk_device_close(d);
    else
        *out = d;
    return st;
}

void hn_vk_device_close(vk_device *d) {
    pthread_mutex_lock(&d->lock);
    const bool last = --d->users == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last) return;
    vk_backend own = {.d = d};
    if (d->device) {
        hn_vk_mem_free(&own.base, (hn_mem *)(void *)d->nothing);
        d->f.vkDeviceWaitIdle(d->device);
        hn_vk_pipelines_free(d);
        for (int i = 0; i < VK_SLOTS; i++) {
            for (int k = 0; k < d->slot[i].n_staging; k++) hn_vk_block_free(d, &d->slot[i].staging[k]);
            hn_free(d->slot[i].staging);
        }
        if (d->pool) d->f.vkDestroyCommandPool(d->device, d->pool, NULL);
        if (d->timeline) d->f.vkDestroySemaphore(d->device, d->timeline, NULL);
        if (d->layout) d->f.vkDestroyPipelineLayout(d->device, d->layout, NULL);
        if (d->set_layout) d->f.vkDestroyDescriptorSetLayout(d->device, d->set_layout, NULL);
        d->f.vkDestroyDevice(d->device, NULL);
    }
    if (d->instance) vkDestroyInstance(d->instance, NULL);
    hn_free(d->write);
    pthread_mutex_destroy(&d->lock);
    hn_free(d);
}
