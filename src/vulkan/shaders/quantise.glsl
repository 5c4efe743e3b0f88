// 32 neighbouring invocations make the block of 32 numbers that they have: codes of eight bits, four a word, then the scale and the sum of
// the codes. All invocations of the workgroup call it; BLOCKS blocks a workgroup. Numbers behind the last are zero.
const uint BLOCKS = 4u;
shared uint block_bits[32u * BLOCKS];
shared int block_code[32u * BLOCKS];

// codes, meta: words where the block begins; written if `store`. The rows of meta: scale, sum.
#define QUANTISE_BLOCK(value, store, codes, codes_at, meta, meta_at)                                                                   \
    {                                                                                                                                  \
        const uint me = gl_LocalInvocationID.x, lane = me & 31u, start = me & ~31u;                                                     \
        block_bits[me] = floatBitsToUint(value) & 0x7fffffffu;                                                                          \
        barrier();                                                                                                                      \
        uint top = 0u;                                                                                                                  \
        for (uint i = 0u; i < 32u; i++) top = max(top, block_bits[start + i]);                                                          \
        const bool finite = top < 0x7f800000u, tiny = top < 0x0d800000u; /* 2^-100 */                                                   \
        const float most = uintBitsToFloat(top);                                                                                        \
        const float inverse = finite && !tiny ? 127.0 * reciprocal(most) : 0.0;                                                         \
        const float scaled = finite && !tiny ? (value) * inverse : 0.0;                                                                 \
        block_code[me] = int((scaled + 12582912.0) - 12582912.0);                                                                       \
        barrier();                                                                                                                      \
        if ((store) && lane < 8u) {                                                                                                     \
            const uint c = start + 4u * lane;                                                                                           \
            codes[(codes_at) + lane] = uint(block_code[c] & 255) | uint(block_code[c + 1u] & 255) << 8 |                                 \
                                       uint(block_code[c + 2u] & 255) << 16 | uint(block_code[c + 3u] & 255) << 24;                      \
        } else if ((store) && lane == 8u) {                                                                                             \
            int sum = 0;                                                                                                                \
            for (uint i = 0u; i < 32u; i++) sum += block_code[start + i];                                                               \
            meta[meta_at] = !finite ? 0x7fc00000u : tiny ? 0u : floatBitsToUint(most * 7.874015718698501587e-3);                         \
            meta[(meta_at) + 1u] = uint(sum);                                                                                           \
        }                                                                                                                               \
        barrier();                                                                                                                      \
    }
