#version 450
// RMS norms of rows: to the forms of an input, to a matrix, or added to one.
// The sum of squares: invocation i of 128 has x[i], x[i + 128], ... ascending; then sum.glsl.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "quantise.glsl"
#define WIDTH 128u
#include "sum.glsl"
layout(local_size_x = 128) in;
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(set = 0, binding = 2) readonly buffer W { float w[]; };
layout(set = 0, binding = 3) buffer Y { float y[]; };
layout(set = 0, binding = 4) writeonly buffer Plain { float plain[]; };
layout(set = 0, binding = 5) writeonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 6) writeonly buffer Meta { uint meta[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, x_at, w_at, y_at, plain_at, codes_at, meta_at, width, ldx, ldy, ld_plain, ld_codes, ld_meta;
    uint does; // 1: y; 2: y = (y + ..) * times; 4: plain; 8: codes
    float eps, inverse, times;
} p;
void main() {
    const uint me = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const uint from = p.x_at + row * p.ldx;
    float sum = 0.0;
    for (uint k = me; k < p.width; k += 128u) sum = sum + x[from + k] * x[from + k];
    const float r = reciprocal_root(sum_of_all(sum) * p.inverse + p.eps);
    for (uint start = 0u; start < p.width; start += 128u) {
        const uint k = start + me;
        float v = 0.0;
        if (k < p.width) {
            v = x[from + k] * r * w[p.w_at + k];
            const uint to = p.y_at + row * p.ldy + k;
            if ((p.does & 1u) != 0u) y[to] = v;
            if ((p.does & 2u) != 0u) y[to] = (y[to] + v) * p.times;
            if ((p.does & 4u) != 0u) plain[p.plain_at + row * p.ld_plain + k] = v;
        }
        if ((p.does & 8u) != 0u) {
            const uint block = k / 32u;
            const uint at = p.codes_at + row * p.ld_codes + block * 8u, of = p.meta_at + row * p.ld_meta + block * 2u;
            QUANTISE_BLOCK(v, block * 32u < p.width, codes, at, meta, of)
        }
    }
}
