#version 450
// The sums of e^(y - the row's best) over each 4096 outputs, and of (y - best) e^(y - best): invocation i of 128 has i, i + 128, ...; then
// sum.glsl.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define WIDTH 128u
#include "sum.glsl"
layout(local_size_x = 128) in;
layout(set = 0, binding = 1) readonly buffer Y { float y[]; };
layout(set = 0, binding = 2) readonly buffer Value { float value[]; };
layout(set = 0, binding = 3) writeonly buffer Sums { float sums[]; };
layout(set = 0, binding = 4) writeonly buffer Moments { float moments[]; };
layout(push_constant) uniform Push { uint n_at, n_most, y_at, value_at, sums_at, moments_at, ldy, width, k, parts, does; } p;
void main() {
    const uint me = gl_LocalInvocationID.x, which = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const float most = value[p.value_at + row * p.k];
    const uint end = min((which + 1u) * 4096u, p.width);
    float s = 0.0, m = 0.0;
    for (uint i = which * 4096u + me; i < end; i += 128u) {
        const float v = y[p.y_at + row * p.ldy + i], d = v - most, e = exponential(d);
        if (v <= most) s = s + e;
        if (d >= -87.0 && d <= 0.0) m = m + e * d;
    }
    s = sum_of_all(s);
    m = sum_of_all(m);
    if (me != 0u) return;
    if ((p.does & 1u) != 0u) sums[p.sums_at + row * p.parts + which] = s;
    if ((p.does & 2u) != 0u) moments[p.moments_at + row * p.parts + which] = m;
}
