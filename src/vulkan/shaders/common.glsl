// What all kernels share. Numbers of rows may be in a buffer; sums have one order, which no size of a subgroup and no number of rows
// changes; every product and sum is rounded by itself (scripts/shaders.py decorates them NoContraction and refuses all that is not
// exact or correctly rounded by the specification: division, square roots, exp, fma). So the bits of a result are those of
// tests/vulkan/vulkan_kernels_test.c on every device that rounds to nearest and keeps denormals or never meets them.
layout(set = 0, binding = 0) readonly buffer Counts { uint counts[]; };

const uint NOWHERE = 0xffffffffu;

uint count_of(uint at, uint most) { return at == NOWHERE ? most : counts[at]; }
float not_a_number() { return uintBitsToFloat(0x7fc00000u); }
float minus_infinity() { return uintBitsToFloat(0xff800000u); }
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

// 1 / x to an ulp or two, for x of 2^-100 .. 2^100, positive: Newton's steps from a guess by its bits.
float reciprocal(float x) {
    float r = uintBitsToFloat(0x7ef311c7u - floatBitsToUint(x));
    r = r * (2.0 - x * r);
    r = r * (2.0 - x * r);
    r = r * (2.0 - x * r);
    r = r * (2.0 - x * r);
    return r;
}

// 1 / sqrt(x), likewise.
float reciprocal_root(float x) {
    float r = uintBitsToFloat(0x5f375a86u - (floatBitsToUint(x) >> 1));
    const float h = 0.5 * x;
    r = r * (1.5 - h * r * r);
    r = r * (1.5 - h * r * r);
    r = r * (1.5 - h * r * r);
    r = r * (1.5 - h * r * r);
    return r;
}

// e^x = (1 + result) * power: ops/exp_poly.h, with products and sums instead of fma.
float exp_parts(float x, out float power) {
    x = x < -87.0 ? -87.0 : x > 88.0 ? 88.0 : x;
    const float k = (x * 1.44269502 + 12582912.0) - 12582912.0; // rounded to an integer
    float r = x - k * 0.693359375;
    r = r - k * -2.12194440e-4;
    float p = r * 1.38986113e-3 + 8.36345181e-3;
    p = p * r + 4.16637734e-2;
    p = p * r + 1.66665524e-1;
    p = p * r + 5.0e-1;
    power = uintBitsToFloat(uint(int(k) + 127) << 23);
    return p * (r * r) + r;
}
float exponential(float x) {
    if (is_nan(x)) return x;
    float power;
    const float q = exp_parts(x, power);
    return (1.0 + q) * power;
}
float swish(float x) { return x * reciprocal(1.0 + exponential(-x)); }
float sigmoid(float x) { return reciprocal(1.0 + exponential(-x)); }
float gelu(float x) { return x * reciprocal(1.0 + exponential(-1.5957691216 * (0.044715 * x * x * x + x))); }
float hyperbolic(float t) { // tanh
    if (is_nan(t)) return t;
    float power;
    const float q = exp_parts(t + t, power), m = q * power + (power - 1.0);
    return m * reciprocal(m + 2.0);
}

float from_f16(uint h) {
    const uint s = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 1023u;
    if (e == 0u) return uintBitsToFloat(s | floatBitsToUint(float(m) * 5.9604644775390625e-8));
    return uintBitsToFloat(s | (e == 31u ? 0x7f800000u | m << 13 : (e + 112u) << 23 | m << 13));
}
float from_bf16(uint h) { return uintBitsToFloat(h << 16); }
uint to_bf16(float x) {
    const uint u = floatBitsToUint(x);
    return (u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 64u : u + 0x7fffu + (u >> 16 & 1u) >> 16;
}
uint to_f16(float x) { // to nearest even
    const uint u = floatBitsToUint(x), s = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return s | 0x7e00u;
    if (a >= 0x477ff000u) return s | 0x7c00u;
    if (a >= 0x38800000u) return s | a - 0x38000000u + 0xfffu + (a >> 13 & 1u) >> 13;
    if (a < 0x33000000u) return s;
    const uint shift = 126u - (a >> 23), m = a & 0x7fffffu | 0x800000u, kept = m >> shift, rest = m & (1u << shift) - 1u;
    const uint half_ = 1u << shift - 1u;
    return s | kept + (rest > half_ || (rest == half_ && (kept & 1u) == 1u) ? 1u : 0u);
}
