#version 450
// Cosines and sines of positions times frequencies, rounded to f32 first as the reference does. Turns are counted in integers of 128 bits,
// so that the angle's size costs no precision.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer Position { uint position[]; };
layout(set = 0, binding = 2) readonly buffer Freq { float freq[]; };
layout(set = 0, binding = 3) writeonly buffer Cs { float cs[]; };
layout(push_constant) uniform Push { uint n_at, n_most, position_at, freq_at, cs_at, half_; float scale; } p;

// The 32 bits behind the point of angle / (2 pi), for angles of 0 .. 2^31.
uint turns(float angle) {
    const uint u = floatBitsToUint(angle);
    const int e = int(u >> 23) - 150; // angle = m 2^e
    const uint m = u & 0x7fffffu | 0x800000u;
    if (e < -127) return 0u;
    const uint inverse[3] = uint[3](0x28be60dbu, 0x9391054au, 0x7f09d5f4u); // 1 / (2 pi), behind the point
    uint word[4]; // m / (2 pi) 2^96, the lowest first
    uint carry = 0u, high, low, c;
    umulExtended(m, inverse[2], high, low);
    word[0] = low;
    carry = high;
    umulExtended(m, inverse[1], high, low);
    word[1] = uaddCarry(low, carry, c);
    carry = high + c;
    umulExtended(m, inverse[0], high, low);
    word[2] = uaddCarry(low, carry, c);
    word[3] = high + c;
    const uint shift = uint(64 - e), from = shift / 32u, bits = shift % 32u; // the 32 bits from `shift` on
    const uint a = from < 4u ? word[from] : 0u, b = from + 1u < 4u ? word[from + 1u] : 0u;
    return bits == 0u ? a : a >> bits | b << 32u - bits;
}

void main() {
    const uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y;
    if (row >= count_of(p.n_at, p.n_most) || i >= p.half_) return;
    const float angle = float(position[p.position_at + row]) * freq[p.freq_at + i];
    const uint t = turns(angle), quarter = t + 0x20000000u >> 30;
    const float x = float(int(t - (quarter << 30))) * 1.46291807926715968e-9, s = x * x; // -pi / 4 .. pi / 4
    float sine = s * 2.71831131e-6 + -1.98393348e-4;
    sine = sine * s + 8.33332939e-3;
    sine = sine * s + -1.66666667e-1;
    sine = x + x * s * sine;
    float cosine = s * 2.44331571e-5 + -1.38873162e-3;
    cosine = cosine * s + 4.16666456e-2;
    cosine = (1.0 - 0.5 * s) + s * s * cosine;
    const bool swap = (quarter & 1u) == 1u;
    const float c = swap ? sine : cosine, d = swap ? cosine : sine;
    const uint at = p.cs_at + row * 2u * p.half_;
    cs[at + i] = (quarter == 1u || quarter == 2u ? -c : c) * p.scale;
    cs[at + p.half_ + i] = (quarter >= 2u ? -d : d) * p.scale;
}
