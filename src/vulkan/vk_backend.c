/* SPDX-License-Identifier: Apache-2.0 */
/* vk_backend.c - the backend of a device. */
#include "base/mem.h"
#include "vulkan/vk_device.h"

static void close_backend(hn_backend *b) {
    hn_vk_device_close(vk_of(b)->d);
    hn_free(b);
}

static void limits(const hn_backend *b, hn_backend_limits *out) {
    const vk_device *d = vk_of(b)->d;
    *out = (hn_backend_limits){.name = d->level, .memory_left = (size_t)hn_vk_memory_left(d),
                               .prompt_rows = HN_PASS_ROWS};
}

static int act_forms(const hn_backend *b, hn_dtype weight) {
    return !b->f32 && hn_vk_type(weight) >= VK_Q4 ? HN_ACT_Q8 : HN_ACT_F32;
}

static bool norms(hn_norm_kind kind) { return kind != HN_LAYER_NORM; }
bool hn_vk_applies(hn_function f) { return f < HN_GELU_ERF || f == HN_TANH; }

static size_t no_scratch(const hn_backend *b HN_UNUSED, const struct hn_delta *d HN_UNUSED) { return 0; }
static size_t sample_scratch(const hn_backend *b HN_UNUSED, int vocab HN_UNUSED) { return 0; }
static bool attention_in_bf16(const hn_backend *b HN_UNUSED, hn_dtype cache HN_UNUSED) { return false; }

static hunch_status open_like(hn_backend *b, bool f32, hn_backend **out, hunch_error *err);

static hunch_status wrap(vk_device *d, bool f32, hn_backend **out, hunch_error *err) {
    vk_backend *v = hn_zalloc(1, sizeof *v);
    *out = NULL;
    if (!v) {
        hn_vk_device_close(d);
        return hn_fail_memory(err, "a backend", sizeof *v);
    }
    v->d = d;
    v->base = (hn_backend){.ops = &hn_vk_ops,
                           .f32 = f32,
                           .close = close_backend,
                           .open_like = open_like,
                           .limits = limits,
                           .mem_create = hn_vk_mem_create,
                           .mem_free = hn_vk_mem_free,
                           .write = hn_vk_write,
                           .submit = hn_vk_submit,
                           .wait = hn_vk_wait,
                           .done = hn_vk_done,
                           .read = hn_vk_read,
                           .failed = hn_vk_failed,
                           .matrix_bytes = hn_vk_matrix_bytes,
                           .place = hn_vk_place,
                           .pair = hn_vk_pair,
                           .pack = hn_vk_pack,
                           .act_forms = act_forms,
                           .act_bytes = hn_vk_act_bytes,
                           .applies = hn_vk_applies,
                           .norms = norms,
                           .top_scratch = hn_vk_top_scratch,
                           .attention_scratch = hn_vk_attention_scratch,
                           .delta_scratch = no_scratch,
                           .sample_scratch = sample_scratch,
                           .attention_in_bf16 = attention_in_bf16};
    *out = &v->base;
    return HUNCH_OK;
}

static hunch_status open_like(hn_backend *b, bool f32, hn_backend **out, hunch_error *err) {
    vk_device *d = vk_of(b)->d;
    pthread_mutex_lock(&d->lock);
    d->users++;
    pthread_mutex_unlock(&d->lock);
    const hunch_status st = wrap(d, f32, out, err);
    if (!st) (*out)->account = b->account;
    return st;
}

hunch_status hn_vulkan_open(hn_backend **out, int device, bool f32, hunch_error *err) {
    vk_device *d;
    *out = NULL;
    const hunch_status st = hn_vk_device_open(&d, device, err);
    return st || !d ? st : wrap(d, f32, out, err);
}
