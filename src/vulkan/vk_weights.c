/* SPDX-License-Identifier: Apache-2.0 */
/* vk_weights.c - matrices as kernels read them: row after row of codes or floats, in whole vectors of 16 bytes, then row after row of f32
 * scales, one for each 32 inputs. Q4: bytes in the order of Q4_0, inputs i and i + 16 of a block in byte i. Q8: signed bytes. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "vulkan/vk_device.h"

enum { ALIGNED = 256, BLOCK = 32, STEP = 8 };

int hn_vk_type(hn_dtype t) {
    switch (t) {
    case HN_F32: return VK_F32;
    case HN_F16: return VK_F16;
    case HN_BF16: return VK_BF16;
    case HN_Q4_0: return VK_Q4;
    case HN_Q8_0: return VK_Q8;
    default: return -1;
    }
}

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

vk_layout hn_vk_layout(hn_dtype t, int out, int in) {
    vk_layout l = {.type = hn_vk_type(t)};
    const size_t inputs = (size_t)in, steps = up(inputs, STEP);
    if (l.type < 0) return l;
    l.code_row = l.type == VK_F32 ? 4 * steps : l.type == VK_F16 || l.type == VK_BF16 ? 2 * steps : l.type == VK_Q4 ? inputs / 2 : inputs;
    l.scale_row = l.type >= VK_Q4 ? inputs / BLOCK * sizeof(float) : 0;
    l.scales = up(l.code_row * (size_t)out, ALIGNED);
    l.bytes = l.scales + up(l.scale_row * (size_t)out, ALIGNED);
    return l;
}

size_t hn_vk_matrix_bytes(const hn_backend *b HN_UNUSED, hn_dtype t, int out, int in) { return hn_vk_layout(t, out, in).bytes; }

hn_matrix_place hn_vk_place(const hn_backend *b HN_UNUSED, hn_dtype t HN_UNUSED, int in HN_UNUSED, hn_buf at) {
    return (hn_matrix_place){at, 0};
}

/* They are read by two kernels. */
void hn_vk_pair(const hn_backend *b HN_UNUSED, hn_matrix_place *first HN_UNUSED, hn_matrix_place *second HN_UNUSED) {}

/* A row of blocks as codes and scales. */
static void unpack_row(int type, const unsigned char *from, int blocks, unsigned char *codes, float *scales) {
    const size_t size = type == VK_Q4 ? 16 : 32;
    for (int i = 0; i < blocks; i++, from += 2 + size) {
        uint16_t d;
        memcpy(&d, from, sizeof d);
        scales[i] = hn_f16_to_f32(d);
        memcpy(codes + size * (size_t)i, from + 2, size);
    }
}

void hn_vk_pack(hn_backend *b, const hn_weight *w, int matrix, int first, const void *rows, size_t row_bytes,
                const float *factors HN_UNUSED) {
    vk_device *d = vk_of(b)->d;
    const vk_layout l = hn_vk_layout(w->dtype, w->out, w->in);
    const int left = w->out - first, n = left < HN_STRIP ? left : HN_STRIP;
    const size_t codes = l.code_row * (size_t)n, scales = l.scale_row * (size_t)n;
    unsigned char *room = hn_zalloc(1, codes + scales);
    assert(l.type >= 0);
    if (!room) {
        d->lost = true;
        return;
    }
    for (int i = 0; i < n; i++) {
        const unsigned char *row = (const unsigned char *)rows + row_bytes * (size_t)i;
        unsigned char *to = room + l.code_row * (size_t)i;
        if (l.type >= VK_Q4)
            unpack_row(l.type, row, w->in / BLOCK, to, (float *)(void *)(room + codes + l.scale_row * (size_t)i));
        else
            memcpy(to, row, (size_t)w->in * (l.type == VK_F32 ? 4 : 2));
    }
    const hn_buf at = hn_at(w->place.at, l.bytes * (size_t)matrix);
    pthread_mutex_lock(&d->lock);
    hn_vk_write_locked(d, hn_at(at, l.code_row * (size_t)first), room, codes, true);
    if (scales) hn_vk_write_locked(d, hn_at(at, l.scales + l.scale_row * (size_t)first), room + codes, scales, true);
    pthread_mutex_unlock(&d->lock);
    hn_free(room);
}
