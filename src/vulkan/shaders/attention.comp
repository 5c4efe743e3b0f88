#version 450
// Attention of one head of one row: spans of 256 positions from position 0, each from a fresh state, merged ascending.
// Scores: four sums of every fourth number, (0 + 1) + (2 + 3). Weights: invocation i has those of positions i and i + 128, then sum.glsl.
// Values: the workgroup is as many groups as pairs of numbers fit into it; group g has every so many-th position, then
// the groups are added in order.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "kv.glsl"
#define WIDTH 128u
#include "sum.glsl"
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint PARTS = 0; // 1: a workgroup has one span, whose result is left to merge.comp
layout(set = 0, binding = 1) readonly buffer Q { float q[]; };
layout(set = 0, binding = 2) readonly buffer Pool { uint pool[]; };
layout(set = 0, binding = 3) readonly buffer Rows { uint rows[]; }; // the description of the rows
layout(set = 0, binding = 4) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 5) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 6) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Push {
    uint n_at, n_most, q_at, pool_at, table_at, sinks_at, out_at;
    uint ldq, ldo, table_stride, heads, group, width, v_width;
    uint page_words, page_rows, k_off, v_off;
    uint last_at, from_at, seq_at, path_start_at, path_at, committed_at, direct_at; // in rows
    uint window, first, does; // does: 1: sinks; 2: values are the first numbers of keys
    float scale;
    uint spans;
} p;
shared float query[576], score[256], of_group[256];
shared uint key_at[256], value_at[256];

float element(uint at, uint d, uint width) {
#if KV == KV_F32
    return uintBitsToFloat(pool[at + d]);
#elif KV == KV_Q8
    return float(int(pool[at + d / 4u] << 24u - 8u * (d & 3u)) >> 24) * uintBitsToFloat(pool[at + width / 4u + d / 32u]);
#elif KV == KV_BF16
    return from_bf16(pool[at + d / 2u] >> 16u * (d & 1u) & 0xffffu);
#else
    return from_f16(pool[at + d / 2u] >> 16u * (d & 1u) & 0xffffu);
#endif
}

vec2 pair(uint at, uint i, uint width) {
#if KV == KV_BF16
    const uint w = pool[at + i];
    return vec2(from_bf16(w & 0xffffu), from_bf16(w >> 16));
#elif KV == KV_F16
    const uint w = pool[at + i];
    return vec2(from_f16(w & 0xffffu), from_f16(w >> 16));
#else
    return vec2(element(at, 2u * i, width), element(at, 2u * i + 1u, width));
#endif
}

void main() {
    const uint me = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, row = gl_WorkGroupID.y, kv_head = head / p.group;
    if (row >= count_of(p.n_at, p.n_most)) return;
    const int at = int(rows[p.from_at + row]), last = int(rows[p.last_at + row]), window = int(p.window);
    const int begin = max(window > 0 && at >= window ? at - window + 1 : 0, at >= int(p.first) ? int(p.first) : 0);
    const uint text = rows[p.seq_at + row], committed = rows[p.committed_at + text], path = p.path_at + rows[p.path_start_at + row];
    const bool direct = rows[p.direct_at + text] != 0u;
    const uint pairs = (p.v_width + 1u) / 2u, groups = max(1u, 128u / pairs), my_group = me / pairs, my_pair = me % pairs;
    for (uint d = me; d < p.width; d += 128u) query[d] = q[p.q_at + row * p.ldq + head * p.width + d];
    float most = minus_infinity(), sum = 0.0;
    vec2 so_far[3]; // up to 576 numbers
    so_far[0] = so_far[1] = so_far[2] = vec2(0.0);
    bool any = false;
    const int first_span = PARTS != 0u ? int(gl_WorkGroupID.z) : begin / 256, last_span = PARTS != 0u ? first_span : last / 256;
    for (int span = first_span; span <= last_span; span++) {
        const int lo = max(begin - span * 256, 0), hi = min(last + 1 - span * 256, 256);
        if (PARTS != 0u && lo >= hi) break;
        barrier();
        for (int j = int(me); j < 256; j += 128) {
            score[j] = minus_infinity();
            if (j < lo || j >= hi) continue;
            const uint position = uint(span * 256 + j);
            const uint s = position < committed || direct ? position : rows[path + position - committed];
            const uint page = p.pool_at + table[p.table_at + text * p.table_stride + s / p.page_rows] * p.page_words;
            const uint in_head = kv_head * p.page_rows + s % p.page_rows;
            const uint k_at = page + p.k_off + in_head * KV_WORDS(p.width);
            key_at[j] = k_at;
            value_at[j] = (p.does & 2u) != 0u ? k_at : page + p.v_off + in_head * KV_WORDS(p.v_width);
            vec4 dots = vec4(0.0);
            uint d = 0u;
            for (; d + 4u <= p.width; d += 4u) {
                const vec2 a = pair(k_at, d / 2u, p.width), b = pair(k_at, d / 2u + 1u, p.width);
                dots.x = dots.x + query[d] * a.x;
                dots.y = dots.y + query[d + 1u] * a.y;
                dots.z = dots.z + query[d + 2u] * b.x;
                dots.w = dots.w + query[d + 3u] * b.y;
            }
            if (d < p.width) {
                dots.x = dots.x + query[d] * element(k_at, d, p.width);
                if (d + 1u < p.width) dots.y = dots.y + query[d + 1u] * element(k_at, d + 1u, p.width);
                if (d + 2u < p.width) dots.z = dots.z + query[d + 2u] * element(k_at, d + 2u, p.width);
            }
            score[j] = ((dots.x + dots.y) + (dots.z + dots.w)) * p.scale;
        }
        barrier();
        const float m = largest_of_all(score[me + 128u] > score[me] ? score[me + 128u] : score[me]);
        float l = 0.0;
        for (int j = int(me); j < 256; j += 128) {
            if (j < lo || j >= hi) continue;
            score[j] = exponential(score[j] - m);
            l = l + score[j];
        }
        l = sum_of_all(l);
        vec2 here[3];
        here[0] = here[1] = here[2] = vec2(0.0);
        for (uint c = 0u; c < 3u; c++) {
            const uint i = my_pair + c * 128u;
            if (i >= pairs || my_group >= groups || (c > 0u && pairs <= 128u)) continue;
            vec2 t = vec2(0.0);
            for (int j = lo + (int(my_group) - lo % int(groups) + int(groups)) % int(groups); j < hi; j += int(groups)) {
                const vec2 x = pair(value_at[j], i, p.v_width);
                t.x = t.x + score[j] * x.x;
                t.y = t.y + score[j] * x.y;
            }
            here[c] = t;
        }
        if (groups > 1u) {
            of_group[2u * me] = here[0].x; // pairs of all groups: less than 256
            of_group[2u * me + 1u] = here[0].y;
            barrier();
            for (uint g = 1u; g < groups && my_group == 0u; g++) {
                here[0].x = here[0].x + of_group[2u * (g * pairs + my_pair)];
                here[0].y = here[0].y + of_group[2u * (g * pairs + my_pair) + 1u];
            }
        }
        if (any) {
            const float top = m > most ? m : most, a = exponential(most - top), b = exponential(m - top);
            sum = sum * a + l * b;
            for (uint c = 0u; c < 3u; c++) {
                so_far[c].x = so_far[c].x * a + here[c].x * b;
                so_far[c].y = so_far[c].y * a + here[c].y * b;
            }
            most = top;
        } else {
            any = true;
            most = m;
            sum = l;
            so_far = here;
        }
    }
    if (my_group != 0u) return;
    if (PARTS != 0u) {
        const uint to = p.out_at + ((row * p.heads + head) * p.spans + gl_WorkGroupID.z) * (p.v_width + 3u);
        if (me == 0u) {
            result[to] = any ? most : 0.0;
            result[to + 1u] = sum;
            result[to + 2u] = any ? 1.0 : 0.0;
        }
        for (uint c = 0u; c < 3u; c++) {
            const uint i = my_pair + c * 128u;
            if (!any || i >= pairs || (c > 0u && pairs <= 128u)) continue;
            result[to + 3u + 2u * i] = so_far[c].x;
            if (2u * i + 1u < p.v_width) result[to + 3u + 2u * i + 1u] = so_far[c].y;
        }
        return;
    }
    float times = 0.0;
    if ((p.does & 1u) != 0u) {
        const float sink = sinks[p.sinks_at + head], top = sink > most ? sink : most, a = exponential(most - top);
        times = a * reciprocal(sum * a + exponential(sink - top));
    } else {
        times = reciprocal(sum);
    }
    const uint to = p.out_at + row * p.ldo + head * p.v_width;
    for (uint c = 0u; c < 3u; c++) {
        const uint i = my_pair + c * 128u;
        if (i >= pairs || (c > 0u && pairs <= 128u)) continue;
        result[to + 2u * i] = so_far[c].x * times;
        if (2u * i + 1u < p.v_width) result[to + 2u * i + 1u] = so_far[c].y * times;
    }
}
