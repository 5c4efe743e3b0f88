#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "weight.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer Token { uint token[]; };
layout(set = 0, binding = 2) readonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 3) readonly buffer Scales { float scales[]; };
layout(set = 0, binding = 4) writeonly buffer X { float x[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, token_at, codes_at, scales_at, x_at, width, ld, first, rows, ld_codes, ld_scales;
    float scale;
} p;
void main() {
    const uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most) || k >= p.width) return;
    const uint id = token[p.token_at + row] - p.first;
    if (id >= p.rows) return; // another part of the table has it
    const uint at = p.codes_at + id * p.ld_codes;
#if TYPE == W_F32
    const float w = uintBitsToFloat(codes[at + k]);
#elif TYPE == W_F16
    const float w = from_f16(codes[at + k / 2u] >> 16u * (k & 1u) & 0xffffu);
#elif TYPE == W_BF16
    const float w = from_bf16(codes[at + k / 2u] >> 16u * (k & 1u) & 0xffffu);
#elif TYPE == W_Q4
    const uint b = k & 31u, nibble = codes[at + k / 32u * 4u + (b & 15u) / 4u] >> 8u * (b & 3u) + 4u * (b >> 4) & 15u;
    const float w = float(int(nibble) - 8) * scales[p.scales_at + id * p.ld_scales + k / 32u];
#else
    const int code = int(codes[at + k / 4u] << 24u - 8u * (k & 3u)) >> 24;
    const float w = float(code) * scales[p.scales_at + id * p.ld_scales + k / 32u];
#endif
    x[p.x_at + row * p.ld + k] = w * p.scale;
}
