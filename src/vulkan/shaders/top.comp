#version 450
// Of outputs [first, first + count): bias, scale, cap; what is written; and the best of them and of those found before.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 256) in;
layout(set = 0, binding = 1) buffer Part { float part[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 3) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 4) readonly buffer Map { uint map[]; };
layout(set = 0, binding = 5) buffer Id { int id[]; };
layout(set = 0, binding = 6) buffer Value { float value[]; };
layout(set = 0, binding = 7) readonly buffer Written { uint written[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, part_at, y_at, bias_at, map_at, id_at, value_at, written_at, written_most;
    uint ld_part, ldy, ld_bias, first, count, k, does; // does: 1: bias; 2: map; 4: there are some found before; 8: cap
    float scale, cap, inverse_cap;
} p;
shared float best_value[256];
shared int best_id[256];
shared int list_id[64];
shared float list_value[64];

bool before(float v, int i, float w, int j) { return j < 0 || v > w || (v == w && i < j); } // j < 0: none

void main() {
    const uint me = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const bool write = row < (p.written_at == NOWHERE ? p.written_most : written[p.written_at]);
    const uint from = p.part_at + row * p.ld_part, found = row * p.k;
    for (uint i = me; i < p.count; i += 256u) {
        float v = part[from + i];
        if ((p.does & 1u) != 0u) v = v + bias[p.bias_at + row * p.ld_bias + p.first + i];
        v = v * p.scale;
        if ((p.does & 8u) != 0u) v = p.cap * hyperbolic(v * p.inverse_cap);
        part[from + i] = v;
        if (write) y[p.y_at + row * p.ldy + p.first + i] = v;
    }
    float last_value = 0.0;
    int last_id = -1; // none yet
    for (uint rank = 0u; rank < p.k; rank++) {
        float v = 0.0;
        int which = -1;
        for (uint i = me; i < p.count; i += 256u) {
            const float a = part[from + i];
            const int b = (p.does & 2u) != 0u ? int(map[p.map_at + p.first + i]) : int(p.first + i);
            if (is_nan(a) || (rank > 0u && !before(last_value, last_id, a, b))) continue;
            if (before(a, b, v, which)) {
                v = a;
                which = b;
            }
        }
        if ((p.does & 4u) != 0u && me < p.k) {
            const float a = value[p.value_at + found + me];
            const int b = id[p.id_at + found + me];
            if (b >= 0 && !(rank > 0u && !before(last_value, last_id, a, b)) && before(a, b, v, which)) {
                v = a;
                which = b;
            }
        }
        best_value[me] = v;
        best_id[me] = which;
        barrier();
        for (uint half_ = 128u; half_ > 0u; half_ /= 2u) {
            const uint at = me + half_;
            if (me < half_ && best_id[at] >= 0 && before(best_value[at], best_id[at], best_value[me], best_id[me])) {
                best_value[me] = best_value[at];
                best_id[me] = best_id[at];
            }
            barrier();
        }
        last_value = best_value[0];
        last_id = best_id[0];
        if (me == 0u) {
            list_value[rank] = last_value;
            list_id[rank] = last_id;
        }
        barrier();
        if (last_id < 0) {
            if (me >= rank && me < p.k) list_id[me] = -1;
            break;
        }
    }
    barrier();
    if (me < p.k) {
        id[p.id_at + found + me] = list_id[me];
        value[p.value_at + found + me] = list_id[me] < 0 ? not_a_number() : list_value[me];
    }
}
