#version 450
// Rotates queries and keys, and stores keys and values. A workgroup has a head of a row.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "quantise.glsl"
#include "kv.glsl"
layout(local_size_x = 128) in;
layout(set = 0, binding = 1) buffer Q { float q[]; };
layout(set = 0, binding = 2) buffer K { float k[]; };
layout(set = 0, binding = 3) readonly buffer V { float v[]; };
layout(set = 0, binding = 4) readonly buffer Cs { float cs[]; };
layout(set = 0, binding = 5) readonly buffer Slot { uint slot[]; };
layout(set = 0, binding = 6) readonly buffer Seq { uint seq[]; };
layout(set = 0, binding = 7) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 8) writeonly buffer Pool { uint pool[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, q_at, k_at, v_at, cs_at, slot_at, seq_at, table_at, pool_at;
    uint ldq, ldk, ldv, table_stride;
    uint heads, kv_heads, width, v_width; // kv_heads 0: queries alone
    uint first, half_, does;              // does: 1: rotates; 2: pairs are neighbours; 4: no values
    uint page_words, page_rows, k_off, v_off;
} p;
shared float head_row[576];
void main() {
    const uint me = gl_LocalInvocationID.x, item = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const bool query = item < p.heads, value = item >= p.heads + p.kv_heads;
    const uint head = query ? item : value ? item - p.heads - p.kv_heads : item - p.heads, width = value ? p.v_width : p.width;
    const uint from = head * width + (query ? p.q_at + row * p.ldq : value ? p.v_at + row * p.ldv : p.k_at + row * p.ldk);
    for (uint d = me; d < width; d += 128u) head_row[d] = query ? q[from + d] : value ? v[from + d] : k[from + d];
    barrier();
    if (!value && (p.does & 1u) != 0u) {
        const bool near = (p.does & 2u) != 0u;
        for (uint i = me; i < p.half_; i += 128u) {
            const uint a = p.first + (near ? 2u * i : i), b = p.first + (near ? 2u * i + 1u : p.half_ + i);
            const float c = cs[p.cs_at + row * 2u * p.half_ + i], s = cs[p.cs_at + row * 2u * p.half_ + p.half_ + i];
            const float x = head_row[a], y = head_row[b];
            head_row[a] = x * c - y * s;
            head_row[b] = y * c + x * s;
        }
        barrier();
        for (uint d = me; d < width; d += 128u) {
            if (query)
                q[from + d] = head_row[d];
            else
                k[from + d] = head_row[d];
        }
    }
    if (query) return;
    const uint at = slot[p.slot_at + row], page = table[p.table_at + seq[p.seq_at + row] * p.table_stride + at / p.page_rows];
    const uint words = KV_WORDS(width);
    const uint to = p.pool_at + page * p.page_words + (value ? p.v_off : p.k_off) + (head * p.page_rows + at % p.page_rows) * words;
#if KV == KV_F32
    for (uint d = me; d < width; d += 128u) pool[to + d] = floatBitsToUint(head_row[d]);
#elif KV == KV_Q8
    for (uint start = 0u; start < width; start += 128u) {
        const uint d = start + me;
        const float number = d < width ? head_row[d] : 0.0;
        block_bits[me] = floatBitsToUint(number) & 0x7fffffffu;
        barrier();
        uint top = 0u;
        for (uint i = 0u; i < 32u; i++) top = max(top, block_bits[(me & ~31u) + i]);
        const bool usual = top < 0x7f800000u && top >= 0x0d800000u;
        const float scaled = usual ? number * (127.0 * reciprocal(uintBitsToFloat(top))) : 0.0;
        block_code[me] = int((scaled + 12582912.0) - 12582912.0);
        barrier();
        if (d < width && (me & 3u) == 0u)
            pool[to + d / 4u] = uint(block_code[me] & 255) | uint(block_code[me + 1u] & 255) << 8 | uint(block_code[me + 2u] & 255) << 16 |
                                uint(block_code[me + 3u] & 255) << 24;
        if (d < width && (me & 31u) == 0u)
            pool[to + width / 4u + d / 32u] =
                top >= 0x7f800000u ? 0x7fc00000u : usual ? floatBitsToUint(uintBitsToFloat(top) * 7.874015718698501587e-3) : 0u;
        barrier();
    }
#else
    for (uint d = me; d < width / 2u; d += 128u) {
        const float a = head_row[2u * d], b = head_row[2u * d + 1u];
#if KV == KV_BF16
        pool[to + d] = to_bf16(a) | to_bf16(b) << 16;
#else
        pool[to + d] = to_f16(a) | to_f16(b) << 16;
#endif
    }
#endif
}
