#version 450
// Products y = W x of ROWS rows and OUTS outputs of each of four teams of 32 invocations. Invocation i of a team has the steps i, i + 32,
// .. of an output (blocks of 32 inputs, or 8 inputs of float weights), ascending; then the 32 are added in order. Inside a block sums are
// exact; 8 inputs are added one by one. Which rows are together decides nothing.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef PACKED
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(capabilities = [6019, 6018], id = 4450) int dot4(int a, int b, spirv_literal int format);
#endif
#include "common.glsl"
#include "weight.glsl"
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint ROWS = 1;
layout(constant_id = 1) const uint OUTS = 1;
layout(set = 0, binding = 1) readonly buffer Codes { uvec4 codes[]; };
layout(set = 0, binding = 2) readonly buffer Scales { float scales[]; };
#ifdef PACKED
layout(set = 0, binding = 3) readonly buffer Inputs { ivec4 inputs[]; };
#else
layout(set = 0, binding = 3) readonly buffer Inputs { vec4 inputs[]; };
#endif
layout(set = 0, binding = 4) readonly buffer Meta { uvec2 meta[]; };
layout(set = 0, binding = 5) buffer Y { float y[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, codes_at, scales_at, inputs_at, meta_at, y_at; // codes, inputs: in vec4; meta: in vec2
    uint steps, outs, ld_codes, ld_scales, ld_inputs, ld_meta, ldy, add, left; // left: inputs of the last step of float weights
} p;
const uint VALUES = ROWS * OUTS;
shared float part[4u * VALUES * 33u];

void main() {
    const uint me = gl_LocalInvocationID.x, team = me >> 5, lane = me & 31u, n = count_of(p.n_at, p.n_most);
    const uint first_out = (gl_WorkGroupID.x * 4u + team) * OUTS, first_row = gl_WorkGroupID.y * ROWS;
    if (first_row >= n) return;
    float sum[VALUES];
    [[unroll]] for (uint i = 0u; i < VALUES; i++) sum[i] = 0.0;
    for (uint step = lane; step < p.steps; step += 32u) {
#ifdef PACKED
        uvec4 w[OUTS * (TYPE == W_Q4 ? 1u : 2u)];
        float scale[OUTS];
        [[unroll]] for (uint o = 0u; o < OUTS; o++) {
            const uint out_ = min(first_out + o, p.outs - 1u);
#if TYPE == W_Q4
            w[o] = codes[p.codes_at + out_ * p.ld_codes + step];
#else
            w[2u * o] = codes[p.codes_at + out_ * p.ld_codes + 2u * step];
            w[2u * o + 1u] = codes[p.codes_at + out_ * p.ld_codes + 2u * step + 1u];
#endif
            scale[o] = scales[p.scales_at + out_ * p.ld_scales + step];
        }
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            const uint row = min(first_row + r, n - 1u);
            const uint at = p.inputs_at + row * p.ld_inputs + 2u * step;
            const ivec4 a = inputs[at], b = inputs[at + 1u];
            const uvec2 m = meta[p.meta_at + row * p.ld_meta + step];
            [[unroll]] for (uint o = 0u; o < OUTS; o++) {
                int t = 0;
#if TYPE == W_Q4
                [[unroll]] for (uint j = 0u; j < 4u; j++) {
                    t += dot4(int(w[o][j] & 0x0f0f0f0fu), a[j], 0);
                    t += dot4(int(w[o][j] >> 4 & 0x0f0f0f0fu), b[j], 0);
                }
                t -= 8 * int(m.y);
#else
                [[unroll]] for (uint j = 0u; j < 4u; j++) {
                    t += dot4(int(w[2u * o][j]), a[j], 0);
                    t += dot4(int(w[2u * o + 1u][j]), b[j], 0);
                }
#endif
                sum[r * OUTS + o] = sum[r * OUTS + o] + (float(t) * scale[o]) * uintBitsToFloat(m.x);
            }
        }
#else
        const uint inputs_here = step + 1u == p.steps ? p.left : 8u;
        [[unroll]] for (uint o = 0u; o < OUTS; o++) {
            const uint out_ = min(first_out + o, p.outs - 1u);
            float w[8];
#if TYPE == W_F32
            const uvec4 c = codes[p.codes_at + out_ * p.ld_codes + 2u * step], d = codes[p.codes_at + out_ * p.ld_codes + 2u * step + 1u];
            [[unroll]] for (uint j = 0u; j < 4u; j++) { w[j] = uintBitsToFloat(c[j]); w[4u + j] = uintBitsToFloat(d[j]); }
#elif TYPE == W_F16
            const uvec4 c = codes[p.codes_at + out_ * p.ld_codes + step];
            [[unroll]] for (uint j = 0u; j < 8u; j++) w[j] = from_f16(c[j / 2u] >> 16u * (j & 1u) & 0xffffu);
#elif TYPE == W_BF16
            const uvec4 c = codes[p.codes_at + out_ * p.ld_codes + step];
            [[unroll]] for (uint j = 0u; j < 8u; j++) w[j] = from_bf16(c[j / 2u] >> 16u * (j & 1u) & 0xffffu);
#elif TYPE == W_Q4
            const uint block = step / 4u, quarter = step & 3u; // 8 inputs of a block: nibbles of two words
            const uvec4 c = codes[p.codes_at + out_ * p.ld_codes + block];
            const float scale = scales[p.scales_at + out_ * p.ld_scales + block];
            [[unroll]] for (uint j = 0u; j < 8u; j++) {
                const uint word = c[(quarter & 1u) * 2u + j / 4u];
                w[j] = float(int(word >> 8u * (j & 3u) + 4u * (quarter >> 1) & 15u) - 8) * scale;
            }
#else
            const uint block = step / 4u, quarter = step & 3u;
            const uvec4 c = codes[p.codes_at + out_ * p.ld_codes + 2u * block + (quarter >> 1)];
            const float scale = scales[p.scales_at + out_ * p.ld_scales + block];
            [[unroll]] for (uint j = 0u; j < 8u; j++)
                w[j] = float(int(c[(quarter & 1u) * 2u + j / 4u] << 24u - 8u * (j & 3u)) >> 24) * scale;
#endif
            [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                const uint row = min(first_row + r, n - 1u);
                const uint at = p.inputs_at + row * p.ld_inputs + 2u * step;
                const vec4 a = inputs[at], b = inputs[at + 1u];
                float t = sum[r * OUTS + o];
                [[unroll]] for (uint j = 0u; j < 8u; j++) {
                    const float x = j < 4u ? a[j & 3u] : b[j & 3u];
                    if (j < inputs_here) t = t + w[j] * x;
                }
                sum[r * OUTS + o] = t;
            }
        }
#endif
    }
    [[unroll]] for (uint i = 0u; i < VALUES; i++) part[(team * VALUES + i) * 33u + lane] = sum[i];
    barrier();
    for (uint i = me; i < 4u * VALUES; i += 128u) {
        float t = part[i * 33u];
        for (uint k = 1u; k < 32u; k++) t = t + part[i * 33u + k];
        const uint value = i % VALUES, out_ = (gl_WorkGroupID.x * 4u + i / VALUES) * OUTS + value % OUTS, row = first_row + value / OUTS;
        if (row >= n || out_ >= p.outs) continue;
        const uint at = p.y_at + row * p.ldy + out_;
        if (p.add != 0u)
            y[at] = y[at] + t;
        else
            y[at] = t;
    }
}
