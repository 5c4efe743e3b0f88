#version 450
// The results of a head's spans (attention.comp), merged in the same order, with the same bits as one workgroup's.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer Parts { float part[]; };
layout(set = 0, binding = 2) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 3) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Push { uint n_at, n_most, part_at, sinks_at, out_at, ldo, heads, v_width, spans, does; } p;
void main() {
    const uint me = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const uint first = p.part_at + (row * p.heads + head) * p.spans * (p.v_width + 3u);
    for (uint d = me; d < p.v_width; d += 64u) {
        float most = minus_infinity(), sum = 0.0, value = 0.0;
        bool any = false;
        for (uint s = 0u; s < p.spans; s++) {
            const uint at = first + s * (p.v_width + 3u);
            if (part[at + 2u] == 0.0) continue;
            const float m = part[at], l = part[at + 1u], v = part[at + 3u + d];
            if (any) {
                const float top = m > most ? m : most, a = exponential(most - top), b = exponential(m - top);
                sum = sum * a + l * b;
                value = value * a + v * b;
                most = top;
            } else {
                any = true;
                most = m;
                sum = l;
                value = v;
            }
        }
        float times = 0.0;
        if ((p.does & 1u) != 0u) {
            const float sink = sinks[p.sinks_at + head], top = sink > most ? sink : most, a = exponential(most - top);
            times = a * reciprocal(sum * a + exponential(sink - top));
        } else {
            times = reciprocal(sum);
        }
        result[p.out_at + row * p.ldo + head * p.v_width + d] = value * times;
    }
}
