#version 450
// Rows in the forms of an input: as they are, or a unit of two.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "quantise.glsl"
layout(local_size_x = 128) in;
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(set = 0, binding = 2) readonly buffer U { float u[]; };
layout(set = 0, binding = 3) readonly buffer XBias { float x_bias[]; };
layout(set = 0, binding = 4) readonly buffer UBias { float u_bias[]; };
layout(set = 0, binding = 5) buffer Plain { float plain[]; };
layout(set = 0, binding = 6) writeonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 7) writeonly buffer Meta { uint meta[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, x_at, u_at, x_bias_at, u_bias_at, plain_at, codes_at, meta_at, width, ldx, ldu, ld_plain, ld_codes, ld_meta;
    uint does; // 1: x_bias; 2: u_bias; 4: plain; 8: codes; 16: x is plain
    uint unit; // 0: x; 1: swish(x) * u; 2: gelu(x) * u; 3: sigmoid(x) * u
    float scale;
} p;
void main() {
    const uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most)) return;
    float v = 0.0;
    if (k < p.width) {
        if ((p.does & 16u) != 0u)
            v = plain[p.plain_at + row * p.ld_plain + k];
        else
            v = x[p.x_at + row * p.ldx + k];
        if ((p.does & 1u) != 0u) v = v + x_bias[p.x_bias_at + k];
        if (p.unit != 0u) {
            float other = u[p.u_at + row * p.ldu + k];
            if ((p.does & 2u) != 0u) other = other + u_bias[p.u_bias_at + k];
            v = (p.unit == 1u ? swish(v) : p.unit == 2u ? gelu(v) : sigmoid(v)) * other;
        }
        v = v * p.scale;
        if ((p.does & 4u) != 0u) plain[p.plain_at + row * p.ld_plain + k] = v;
    }
    if ((p.does & 8u) != 0u) {
        const uint block = k / 32u;
        const uint to = p.codes_at + row * p.ld_codes + block * 8u, of = p.meta_at + row * p.ld_meta + block * 2u;
        QUANTISE_BLOCK(v, block * 32u < p.width, codes, to, meta, of)
    }
}
