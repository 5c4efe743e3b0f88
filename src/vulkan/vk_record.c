/* SPDX-License-Identifier: Apache-2.0 */
/* vk_record.c - submissions: what the host wrote, then kernels with barriers between those that depend on each other, then copies of what
 * the host may read. One queue, one order. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "vulkan/vk_device.h"

void hn_vk_check(vk_device *d, VkResult r) {
    if (r != VK_SUCCESS) d->lost = true;
}

hunch_status hn_vk_failed(const hn_backend *b, hunch_error *err) {
    const vk_device *d = vk_of(b)->d;
    return d->lost
               ? hn_fail(err, HUNCH_DEVICE_LOST, "%s: the device was lost: its driver ended or reset it, or had no memory left", d->level)
               : HUNCH_OK;
}

/* ---- ranges --------------------------------------------------------------------------------------------------------- */

bool hn_vk_ranges_meet(const vk_range *a, const vk_range *b) {
    if (a->mem != b->mem || a->bytes == 0 || b->bytes == 0) return false;
    if (a->off >= b->off + b->bytes || b->off >= a->off + a->bytes) return false;
    if (a->step == 0 || a->step != b->step) return true;
    /* columns of the same rows: where b's begin, counted from a's */
    const size_t from = (b->off + a->step - a->off % a->step) % a->step;
    return from < a->width || from + b->width > a->step;
}

static bool depends(const vk_range *a, const vk_range *b) { return (a->write || b->write) && hn_vk_ranges_meet(a, b); }

int hn_vk_log_fault(const vk_log *log, int without) {
    for (int i = 0; i < log->n; i++) {
        const vk_note *now = &log->note[i];
        for (int k = i - 1; k >= 0 && !now->barrier && (!log->note[k].barrier || k == without); k--) {
            if (log->note[k].earlier && now->n > 0) return i;
            for (int a = 0; a < now->n && !log->note[k].barrier; a++)
                for (int b = 0; b < log->note[k].n; b++)
                    if (depends(&now->range[a], &log->note[k].range[b])) return i;
        }
    }
    return -1;
}

static void note(vk_device *d, const vk_note *n) {
    vk_log *l = d->log;
    if (!l) return;
    if (l->n == l->room) {
        const int room = l->room ? 2 * l->room : 256;
        vk_note *more = hn_realloc(l->note, sizeof *more * (size_t)l->room, sizeof *more * (size_t)room);
        assert(more);
        l->note = more;
        l->room = room;
    }
    l->note[l->n++] = *n;
}

static void barrier(vk_device *d) {
    const VkAccessFlags all =
        VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier b = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = all, .dstAccessMask = all};
    d->f.vkCmdPipelineBarrier(d->slot[d->at].cmd, stages, stages, 0, 1, &b, 0, NULL, 0, NULL);
    d->n_ranges = 0;
    d->counts.barriers++;
    note(d, &(vk_note){.barrier = true});
}

/* What the host may read of the ranges that are written. */
static void touch(vk_device *d, const vk_range *r) {
    if (r->mem->kind != HN_MEM_READBACK) return;
    for (int i = 0; i < d->n_touched; i++) {
        vk_range *t = &d->touched[i];
        const size_t end = t->off + t->bytes, more = r->off + r->bytes;
        if (t->mem != r->mem || (d->n_touched < VK_TOUCHED && (r->off > end || t->off > more))) continue;
        t->off = t->off < r->off ? t->off : r->off; /* one copy of both, which are parts of the same rows */
        t->bytes = (end > more ? end : more) - t->off;
        return;
    }
    assert(d->n_touched < VK_TOUCHED);
    d->touched[d->n_touched++] = *r;
}

/* Before what reads and writes the note's ranges: a barrier, if it depends on something since the last one. */
static void come_after(vk_device *d, const vk_note *now) {
    bool waits = d->n_ranges + now->n > VK_RANGES;
    for (int i = 0; i < now->n && !waits; i++)
        for (int k = 0; k < d->n_ranges && !waits; k++) waits = depends(&now->range[i], &d->range[k]);
    if (waits) barrier(d);
    for (int i = 0; i < now->n; i++) {
        d->range[d->n_ranges++] = now->range[i];
        if (now->range[i].write) touch(d, &now->range[i]);
    }
    note(d, now);
}

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

static size_t in_block(const vk_mem *m, size_t off, const vk_block **block) {
    const size_t i = m->n_blocks > 1 && off / m->step < (size_t)m->n_blocks ? off / m->step : m->n_blocks > 1 ? (size_t)m->n_blocks - 1 : 0;
    *block = &m->block[i];
    return off - i * m->step;
}

uint32_t hn_vk_at(const vk_device *d, hn_buf at, size_t unit) {
    const size_t rest = at.mem ? at.off % d->align : 0; /* the step of blocks is a multiple of the alignment */
    assert(rest % unit == 0);
    return (uint32_t)(rest / unit);
}

static VkDescriptorBufferInfo descriptor(const vk_device *d, const vk_arg *a) {
    const vk_block *block;
    if (!a->at.mem || a->bytes == 0) return (VkDescriptorBufferInfo){d->nothing->block[0].buffer, 0, 256};
    const size_t off = in_block(vk_mem_of(a->at.mem), a->at.off, &block), rest = off % d->align;
    assert(off + a->bytes <= block->bytes && rest + a->bytes <= d->largest_range);
    return (VkDescriptorBufferInfo){block->buffer, off - rest, (rest + a->bytes + 15) / 16 * 16};
}

static void bind(vk_device *d, const vk_arg *args, int n) {
    VkDescriptorBufferInfo info[VK_ARGS];
    VkWriteDescriptorSet write[VK_ARGS];
    for (int i = 0; i < n; i++) {
        info[i] = descriptor(d, &args[i]);
        write[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstBinding = (uint32_t)i, .descriptorCount = 1,
                                          .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &info[i]};
    }
    d->f.vkCmdPushDescriptorSetKHR(d->slot[d->at].cmd, VK_PIPELINE_BIND_POINT_COMPUTE, d->layout, 0, (uint32_t)n, write);
}

void hn_vk_dispatch(const hn_exec *ex, int kernel, const uint32_t constant[2], hn_count n, const vk_arg *args, int n_args, void *push,
                    size_t push_bytes, int x, int y, int z) {
    static const uint32_t none[2] = {0, 0};
    vk_device *d = vk_device_of(ex);
    vk_arg all[VK_ARGS] = {vk_bytes(n.at, n.at.mem ? sizeof(int32_t) : 0, false)};
    uint32_t *head = push;
    vk_note now = {.n = 0, .kernel = hn_vk_kernel_name(kernel)};
    if (d->lost || n.most <= 0 || x <= 0 || y <= 0) return;
    assert(n_args < VK_ARGS && push_bytes <= VK_PUSH);
    memcpy(all + 1, args, sizeof *args * (size_t)n_args);
    head[0] = n.at.mem ? hn_vk_at(d, n.at, sizeof(uint32_t)) : UINT32_MAX;
    head[1] = (uint32_t)n.most;
    for (int i = 0; i <= n_args; i++) {
        if (!all[i].at.mem || all[i].bytes == 0) continue;
        const vk_range r = {vk_mem_of(all[i].at.mem), all[i].at.off, all[i].bytes, all[i].step, all[i].width, all[i].write};
        assert(r.off + r.bytes <= r.mem->size);
        now.range[now.n++] = r;
    }
    const VkPipeline p = hn_vk_pipeline(d, kernel, constant ? constant : none);
    if (!p) {
        d->lost = true;
        return;
    }
    come_after(d, &now);
    VkCommandBuffer cmd = d->slot[d->at].cmd;
    if (d->bound != p) d->f.vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, p);
    d->bound = p;
    bind(d, all, n_args + 1);
    d->f.vkCmdPushConstants(cmd, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, (uint32_t)push_bytes, push);
    d->f.vkCmdDispatch(cmd, (uint32_t)x, (uint32_t)y, (uint32_t)z);
    if (d->profile) hn_vk_profile_note(d, kernel);
    d->counts.dispatches++;
}

/* ---- submissions ---------------------------------------------------------------------------------------------------- */

static void wait_for(vk_device *d, uint64_t ticket) {
    const VkSemaphoreWaitInfo what = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &d->timeline,
                                      .pValues = &ticket};
    if (!d->lost && ticket > 0) hn_vk_check(d, d->f.vkWaitSemaphores(d->device, &what, UINT64_MAX));
}

void hn_vk_slot_open(vk_device *d) {
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    if (d->open || d->lost) return;
    vk_slot *s = &d->slot[d->at];
    wait_for(d, s->ticket);
    s->used_block = 0;
    s->used = 0;
    d->open = true;
    d->bound = VK_NULL_HANDLE;
    d->n_touched = 0;
    hn_vk_check(d, d->f.vkBeginCommandBuffer(s->cmd, &begin));
    d->counts = (vk_counts){0};
    if (d->log) d->log->n = 0;
    note(d, &(vk_note){.earlier = true});
    barrier(d);
}

/* The part of a write that a block has: blocks share bytes. */
static void copy_write(vk_device *d, const vk_write *w) {
    const vk_slot *s = &d->slot[d->at];
    for (int i = 0; i < w->mem->n_blocks; i++) {
        const size_t first = w->mem->step * (size_t)i, end = first + w->mem->block[i].bytes;
        const size_t from = w->off > first ? w->off : first, to = w->off + w->bytes < end ? w->off + w->bytes : end;
        const VkBufferCopy part = {.srcOffset = w->at + (from - w->off), .dstOffset = from - first, .size = to - from};
        if (from < to) d->f.vkCmdCopyBuffer(s->cmd, s->staging[w->block].buffer, w->mem->block[i].buffer, 1, &part);
    }
}

/* Weights meet nothing: one barrier behind all of them. */
static void record_writes(vk_device *d) {
    bool apart = false;
    for (int i = 0; i < d->n_writes; i++) {
        const vk_write *w = &d->write[i];
        const vk_note now = {.n = 1, .kernel = "a write", .range = {{.mem = w->mem, .off = w->off, .bytes = w->bytes, .write = true}}};
        if (!w->apart) come_after(d, &now);
        copy_write(d, w);
        apart |= w->apart;
    }
    if (apart) barrier(d);
    d->n_writes = 0;
    d->write_bytes = 0;
}

static void record_results(vk_device *d) {
    const VkMemoryBarrier host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    VkCommandBuffer cmd = d->slot[d->at].cmd;
    for (int i = 0; i < d->n_touched; i++) {
        vk_note now = {.n = 1, .kernel = "a copy for the host", .range = {d->touched[i]}};
        const VkBufferCopy part = {now.range[0].off, now.range[0].off, now.range[0].bytes};
        now.range[0].write = false;
        come_after(d, &now);
        d->f.vkCmdCopyBuffer(cmd, now.range[0].mem->block[0].buffer, now.range[0].mem->shadow.buffer, 1, &part);
    }
    if (d->n_touched > 0)
        d->f.vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &host, 0, NULL, 0, NULL);
}

static void send(vk_device *d) {
    vk_slot *s = &d->slot[d->at];
    const uint64_t number = d->submitted;
    const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .signalSemaphoreValueCount = 1,
                                                  .pSignalSemaphoreValues = &number};
    const VkSubmitInfo what = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &s->cmd,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &d->timeline};
    hn_vk_check(d, d->f.vkEndCommandBuffer(s->cmd));
    if (d->lost) return;
    hn_vk_check(d, d->f.vkQueueSubmit(d->queue, 1, &what, VK_NULL_HANDLE));
    s->ticket = number;
    d->at = (d->at + 1) % VK_SLOTS;
}

hn_ticket hn_vk_submit_locked(vk_device *d, hn_backend *b, hn_record_fn *record, const void *arg) {
    const hn_ticket t = {.number = ++d->submitted};
    d->begun[t.number % VK_KEPT] = hn_now();
    hn_vk_slot_open(d);
    if (d->lost) return t;
    record_writes(d);
    const hn_exec ex = {b ? b->ops : NULL, b, 0, 1};
    if (record) record(&ex, arg);
    record_results(d);
    d->last_counts = d->counts;
#ifdef HN_VULKAN_CHECKS
    assert(!d->log || hn_vk_log_fault(d->log, -1) < 0);
#endif
    d->open = false;
    d->recorded = hn_now() - d->begun[t.number % VK_KEPT];
    send(d);
    return t;
}

hn_ticket hn_vk_submit(hn_backend *b, hn_record_fn *record, const void *arg) {
    vk_device *d = vk_of(b)->d;
    pthread_mutex_lock(&d->lock);
    const hn_ticket t = hn_vk_submit_locked(d, b, record, arg);
    pthread_mutex_unlock(&d->lock);
    return t;
}

/* Seconds of work that has ended: from its submission, or from the end of the work before it that was waited for. */
static double ended(vk_device *d, hn_ticket t) {
    if (d->profile) hn_vk_profile_read(d);
    const double now = hn_now(), begun = t.number + VK_KEPT > d->submitted ? d->begun[t.number % VK_KEPT] : now;
    const double from = begun > d->over ? begun : d->over;
    d->over = now;
    return now - from;
}

double hn_vk_wait_locked(vk_device *d, hn_ticket t) {
    if (t.number == 0) return 0;
    wait_for(d, t.number);
    return ended(d, t);
}

/* Others may record while it waits. */
double hn_vk_wait(hn_backend *b, hn_ticket t) {
    vk_device *d = vk_of(b)->d;
    if (t.number == 0) return 0;
    wait_for(d, t.number);
    pthread_mutex_lock(&d->lock);
    const double seconds = ended(d, t);
    pthread_mutex_unlock(&d->lock);
    return seconds;
}

bool hn_vk_done(const hn_backend *b, hn_ticket t) {
    vk_device *d = vk_of(b)->d;
    uint64_t at = 0;
    if (t.number == 0 || d->lost) return true;
    return d->f.vkGetSemaphoreCounterValue(d->device, d->timeline, &at) != VK_SUCCESS || at >= t.number;
}
