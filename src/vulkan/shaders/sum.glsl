// Sums and maxima of the numbers of a workgroup's WIDTH invocations: eight runs of neighbours, ascending, then the eight.
shared float part[WIDTH];
shared float eighth[8];

float sum_of_all(float mine) {
    const uint me = gl_LocalInvocationID.x;
    part[me] = mine;
    barrier();
    if (me < 8u) {
        float t = part[me * (WIDTH / 8u)];
        for (uint i = 1u; i < WIDTH / 8u; i++) t = t + part[me * (WIDTH / 8u) + i];
        eighth[me] = t;
    }
    barrier();
    float t = eighth[0];
    for (uint i = 1u; i < 8u; i++) t = t + eighth[i];
    return t;
}

float largest_of_all(float mine) {
    const uint me = gl_LocalInvocationID.x;
    part[me] = mine;
    barrier();
    if (me < 8u) {
        float t = part[me * (WIDTH / 8u)];
        for (uint i = 1u; i < WIDTH / 8u; i++) t = part[me * (WIDTH / 8u) + i] > t ? part[me * (WIDTH / 8u) + i] : t;
        eighth[me] = t;
    }
    barrier();
    float t = eighth[0];
    for (uint i = 1u; i < 8u; i++) t = eighth[i] > t ? eighth[i] : t;
    return t;
}
