#version 450
// Rows of the cache, one after another: an invocation has one word of all of them.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(set = 0, binding = 1) readonly buffer Moves { uint moves[]; }; // from page, from row, to page, to row
layout(set = 0, binding = 2) buffer Pool { uint pool[]; };
layout(push_constant) uniform Push { uint n_at, n_most, moves_at, pool_at, page_words, off, row_words, head_words, heads; } p;
void main() {
    const uint i = gl_GlobalInvocationID.x, n = count_of(p.n_at, p.n_most);
    if (i >= p.heads * p.row_words) return;
    const uint at = p.pool_at + p.off + i / p.row_words * p.head_words + i % p.row_words;
    for (uint k = 0u; k < n; k++) {
        const uint m = p.moves_at + 4u * k;
        pool[at + moves[m + 2u] * p.page_words + moves[m + 3u] * p.row_words] =
            pool[at + moves[m] * p.page_words + moves[m + 1u] * p.row_words];
    }
}
