/* SPDX-License-Identifier: Apache-2.0 */
/* vk_memory.c - memory of a device. The host never sees it: what it writes goes by staging blocks in the order of the queue, what it reads
 * are copies that a submission makes of what it wrote (HN_MEM_READBACK), or one that is asked for. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "vulkan/vk_device.h"

/* The first type of memory that has all of `needs`, and if there is one also `wants`. */
static int type_of(const vk_device *d, uint32_t allowed, VkMemoryPropertyFlags needs, VkMemoryPropertyFlags wants) {
    for (int again = 0; again < 2; again++)
        for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++) {
            const VkMemoryPropertyFlags has = d->memory.memoryTypes[i].propertyFlags, want = needs | (again ? 0 : wants);
            if ((allowed >> i & 1) && (has & want) == want) return (int)i;
        }
    return -1;
}

hunch_status hn_vk_block_create(vk_device *d, size_t bytes, VkMemoryPropertyFlags needs, VkMemoryPropertyFlags wants, vk_block *out,
                                hunch_error *err) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements is;
    *out = (vk_block){.bytes = bytes};
    if (d->f.vkCreateBuffer(d->device, &info, NULL, &out->buffer) != VK_SUCCESS)
        return hn_fail_memory(err, "a buffer of the device", bytes);
    d->f.vkGetBufferMemoryRequirements(d->device, out->buffer, &is);
    const int type = type_of(d, is.memoryTypeBits, needs, wants);
    const VkMemoryAllocateInfo how = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = is.size, .memoryTypeIndex = (uint32_t)type};
    const bool maps = needs & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    void *host = NULL;
    if (type < 0 || d->f.vkAllocateMemory(d->device, &how, NULL, &out->memory) != VK_SUCCESS ||
        d->f.vkBindBufferMemory(d->device, out->buffer, out->memory, 0) != VK_SUCCESS ||
        (maps && d->f.vkMapMemory(d->device, out->memory, 0, VK_WHOLE_SIZE, 0, &host) != VK_SUCCESS)) {
        hn_vk_block_free(d, out);
        return hn_fail_memory(err, "memory of the device", bytes);
    }
    out->host = host;
    return HUNCH_OK;
}

void hn_vk_block_free(vk_device *d, vk_block *b) {
    if (b->buffer) d->f.vkDestroyBuffer(d->device, b->buffer, NULL);
    if (b->memory) d->f.vkFreeMemory(d->device, b->memory, NULL);
    *b = (vk_block){0};
}

static const VkMemoryPropertyFlags host_reads = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

static void free_blocks(vk_device *d, vk_mem *m) {
    for (int i = 0; i < m->n_blocks; i++) {
        d->taken -= m->block[i].bytes;
        hn_vk_block_free(d, &m->block[i]);
    }
    hn_vk_block_free(d, &m->shadow);
    if (m->copy) munmap(m->copy, m->size);
    hn_free(m->block);
    hn_free(m);
}

/* Once the device has ended what it does: one that counts as lost because the host had no memory may still compute. */
static void free_locked(vk_device *d, vk_mem *m) {
    if (d->lost) d->f.vkDeviceWaitIdle(d->device);
    hn_vk_wait_locked(d, (hn_ticket){.number = d->submitted});
    free_blocks(d, m);
}

/* In the account, as on a CPU: pages are counted by who knows which are touched (cache.c). */
static void count(hn_backend *b, const vk_mem *m, int sign) {
    const int64_t bytes = sign * (int64_t)m->size;
    if (m->kind == HN_MEM_PAGES) return;
    hn_account_add(b->account, m->kind == HN_MEM_WEIGHTS ? HN_ACCOUNT_WEIGHTS : HN_ACCOUNT_BUFFERS, bytes, bytes);
}

static hunch_status create_blocks(vk_device *d, vk_mem *m, hunch_error *err) {
    const bool several = m->kind == HN_MEM_WEIGHTS && m->size > d->largest_block;
    m->step = several ? d->largest_block - vk_part_overlap : m->size > 0 ? m->size : 1;
    const size_t n = several ? (m->size + m->step - 1) / m->step : 1;
    m->block = hn_zalloc(n, sizeof *m->block);
    if (!m->block) return hn_fail_memory(err, "a memory handle", n * sizeof *m->block);
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < n; i++) {
        const size_t left = m->size - i * m->step, most = several ? d->largest_block : left;
        const size_t bytes = ((left < most ? left : most) + 255) / 256 * 256 + 256; /* rows are read in whole vectors */
        st = hn_vk_block_create(d, bytes, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0, &m->block[i], err);
        if (st) break;
        m->n_blocks++;
        d->taken += bytes;
    }
    if (!st && m->kind == HN_MEM_READBACK)
        st = hn_vk_block_create(d, m->size + 256, host_reads, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, &m->shadow, err);
    return st;
}

static void zero_locked(vk_device *d, vk_mem *m) {
    hn_vk_slot_open(d);
    if (d->lost) return;
    for (int i = 0; i < m->n_blocks; i++) d->f.vkCmdFillBuffer(d->slot[d->at].cmd, m->block[i].buffer, 0, VK_WHOLE_SIZE, 0);
    hn_vk_wait_locked(d, hn_vk_submit_locked(d, NULL, NULL, NULL));
}

hunch_status hn_vk_mem_create(hn_backend *b, hn_mem_kind kind, size_t bytes, hn_mem **out, hunch_error *err) {
    vk_device *d = vk_of(b)->d;
    vk_mem *m = hn_zalloc(1, sizeof *m);
    *out = NULL;
    if (!m) return hn_fail_memory(err, "a memory handle", sizeof *m);
    m->size = bytes;
    m->kind = kind;
    if (kind == HN_MEM_PAGES && bytes > d->largest_range) {
        hn_free(m);
        return hn_fail(err, HUNCH_NO_MEMORY, "the cache's pages need %zu bytes, and a kernel sees %zu of a buffer on %s", bytes,
                       d->largest_range, d->level);
    }
    pthread_mutex_lock(&d->lock);
    hunch_status st = create_blocks(d, m, err);
    if (!st) {
        zero_locked(d, m);
        st = hn_vk_failed(b, err);
    }
    if (st) free_locked(d, m);
    pthread_mutex_unlock(&d->lock);
    if (st) return st;
    count(b, m, 1);
    *out = (hn_mem *)(void *)m;
    return HUNCH_OK;
}

/* Writes to it that wait are dropped. */
void hn_vk_mem_free(hn_backend *b, hn_mem *mem) {
    vk_device *d = vk_of(b)->d;
    vk_mem *m = vk_mem_of(mem);
    if (!m) return;
    count(b, m, -1);
    pthread_mutex_lock(&d->lock);
    int kept = 0;
    for (int i = 0; i < d->n_writes; i++)
        if (d->write[i].mem != m) d->write[kept++] = d->write[i];
    d->n_writes = kept;
    free_locked(d, m);
    pthread_mutex_unlock(&d->lock);
}

/* ---- what the host writes -------------------------------------------------------------------------------------------- */

/* Room in the staging blocks of the open slot. */
static unsigned char *stage(vk_device *d, size_t bytes, int *block, size_t *at) {
    vk_slot *s = &d->slot[d->at];
    while (s->used_block < s->n_staging && s->used + bytes > s->staging[s->used_block].bytes) {
        s->used_block++;
        s->used = 0;
    }
    if (s->used_block == s->n_staging) {
        const size_t usual = (size_t)1 << 20;
        vk_block *more = hn_realloc(s->staging, sizeof *more * (size_t)s->n_staging, sizeof *more * (size_t)(s->n_staging + 1));
        hunch_error err;
        if (!more) return NULL;
        s->staging = more;
        if (hn_vk_block_create(d, bytes > usual ? bytes : usual, host_reads, 0, &more[s->n_staging], &err)) return NULL;
        s->n_staging++;
        s->used = 0;
    }
    *block = s->used_block;
    *at = s->used;
    s->used += (bytes + 15) / 16 * 16;
    return s->staging[*block].host + *at;
}

void hn_vk_write_locked(vk_device *d, hn_buf dst, const void *src, size_t bytes, bool apart) {
    vk_mem *m = vk_mem_of(dst.mem);
    assert(dst.off + bytes <= m->size);
    if (d->lost || bytes == 0) return;
    hn_vk_slot_open(d);
    if (d->n_writes == d->write_room) {
        const int room = d->write_room ? 2 * d->write_room : 64;
        vk_write *more = hn_realloc(d->write, sizeof *more * (size_t)d->write_room, sizeof *more * (size_t)room);
        if (!more) {
            d->lost = true;
            return;
        }
        d->write = more;
        d->write_room = room;
    }
    vk_write w = {.mem = m, .off = dst.off, .bytes = bytes, .apart = apart};
    unsigned char *to = stage(d, bytes, &w.block, &w.at);
    if (!to) {
        d->lost = true; /* the same end: nothing that it computes is right without the write */
        return;
    }
    memcpy(to, src, bytes);
    d->write[d->n_writes++] = w;
    d->write_bytes += bytes;
    if (d->write_bytes > vk_flush_bytes) hn_vk_submit_locked(d, NULL, NULL, NULL);
}

void hn_vk_write(hn_backend *b, hn_buf dst, const void *src, size_t bytes) {
    vk_device *d = vk_of(b)->d;
    pthread_mutex_lock(&d->lock);
    hn_vk_write_locked(d, dst, src, bytes, false);
    pthread_mutex_unlock(&d->lock);
}

/* ---- what the host reads ---------------------------------------------------------------------------------------------- */

static void read_now(vk_device *d, vk_mem *m, size_t off, size_t bytes) {
    vk_block to = {0};
    hunch_error err;
    if (d->write_bytes > 0 || d->n_writes > 0) hn_vk_submit_locked(d, NULL, NULL, NULL);
    if (hn_vk_block_create(d, bytes, host_reads, VK_MEMORY_PROPERTY_HOST_CACHED_BIT, &to, &err)) {
        d->lost = true;
        return;
    }
    hn_vk_slot_open(d);
    if (d->lost) {
        hn_vk_block_free(d, &to);
        return;
    }
    const size_t i = m->n_blocks > 1 ? off / m->step : 0;
    const VkBufferCopy part = {.srcOffset = off - i * m->step, .size = bytes};
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                 .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    const VkMemoryBarrier host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    VkCommandBuffer cmd = d->slot[d->at].cmd;
    d->f.vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &all, 0, NULL, 0, NULL);
    d->f.vkCmdCopyBuffer(cmd, m->block[i].buffer, to.buffer, 1, &part);
    d->f.vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &host, 0, NULL, 0, NULL);
    hn_vk_wait_locked(d, hn_vk_submit_locked(d, NULL, NULL, NULL));
    if (!d->lost) memcpy(m->copy + off, to.host, bytes);
    hn_vk_block_free(d, &to);
}

const void *hn_vk_read(hn_backend *b, hn_ticket t, hn_buf src, size_t bytes) {
    vk_device *d = vk_of(b)->d;
    vk_mem *m = vk_mem_of(src.mem);
    assert(src.off + bytes <= m->size);
    if (t.number && m->kind == HN_MEM_READBACK) return m->shadow.host + src.off;
    pthread_mutex_lock(&d->lock);
    if (!m->copy) {
        void *at = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        m->copy = at == MAP_FAILED ? NULL : at;
    }
    if (m->copy && bytes) read_now(d, m, src.off, bytes);
    pthread_mutex_unlock(&d->lock);
    assert(m->copy);
    return m->copy + src.off;
}
