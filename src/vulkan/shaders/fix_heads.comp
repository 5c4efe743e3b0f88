#version 450
// Biases and norms of the heads of one matrix. The sum of squares as in norm.comp, by 64 invocations.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define WIDTH 64u
#include "sum.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) buffer X { float x[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer W { float w[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, x_at, bias_at, w_at, ld, width;
    uint does; // 1: bias; 2: norm; 4: its weights
    float eps, inverse;
} p;
void main() {
    const uint me = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const uint from = p.x_at + row * p.ld + head * p.width;
    float sum = 0.0;
    for (uint k = me; k < p.width; k += 64u) {
        float v = x[from + k];
        if ((p.does & 1u) != 0u) v = v + bias[p.bias_at + head * p.width + k];
        sum = sum + v * v;
        if ((p.does & 2u) == 0u) x[from + k] = v;
    }
    if ((p.does & 2u) == 0u) return;
    const float r = reciprocal_root(sum_of_all(sum) * p.inverse + p.eps);
    for (uint k = me; k < p.width; k += 64u) {
        float v = x[from + k];
        if ((p.does & 1u) != 0u) v = v + bias[p.bias_at + head * p.width + k];
        v = v * r;
        if ((p.does & 4u) != 0u) v = v * w[p.w_at + k];
        x[from + k] = v;
    }
}
