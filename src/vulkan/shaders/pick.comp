#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer Src { uint src[]; };
layout(set = 0, binding = 2) writeonly buffer Dst { uint dst[]; };
layout(push_constant) uniform Push { uint n_at, n_most, src_at, dst_at, width, lds, ldd, run, stride; } p;
void main() {
    const uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most) || k >= p.width) return;
    dst[p.dst_at + row * p.ldd + k] = src[p.src_at + row * p.lds + k / p.run * p.stride + k % p.run];
}
