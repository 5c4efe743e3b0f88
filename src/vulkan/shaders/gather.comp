#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer From { uint from[]; };
layout(set = 0, binding = 2) readonly buffer Src { uint src[]; };
layout(set = 0, binding = 3) readonly buffer To { uint to[]; };
layout(set = 0, binding = 4) writeonly buffer Dst { uint dst[]; };
layout(push_constant) uniform Push { uint n_at, n_most, from_at, src_at, to_at, dst_at, width, lds, ldd; } p;
void main() {
    const uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most) || k >= p.width) return;
    const uint at = p.to_at == NOWHERE ? row : to[p.to_at + row];
    dst[p.dst_at + at * p.ldd + k] = src[p.src_at + from[p.from_at + row] * p.lds + k];
}
