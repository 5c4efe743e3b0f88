#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) buffer Y { float y[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, x_at, bias_at, y_at, width, ldx, ldy;
    uint function; // hn_function
    uint into;     // hn_into
    uint does;     // 1: bias; 2: x is y
    float scale;
} p;
void main() {
    const uint k = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most) || k >= p.width) return;
    const uint at = p.y_at + row * p.ldy + k;
    float v;
    if ((p.does & 2u) != 0u)
        v = y[at];
    else
        v = x[p.x_at + row * p.ldx + k];
    if ((p.does & 1u) != 0u) v = v + bias[p.bias_at + k];
    if (p.function == 1u) v = swish(v);
    if (p.function == 2u) v = sigmoid(v);
    if (p.function == 4u) v = hyperbolic(v);
    v = v * p.scale;
    if (p.into == 0u) y[at] = v;
    if (p.into == 1u) y[at] = y[at] + v;
    if (p.into == 2u) y[at] = y[at] * v;
}
