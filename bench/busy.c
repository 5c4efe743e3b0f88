/* SPDX-License-Identifier: Apache-2.0 */
/* busy.c - a stranger on a core, for busy.py: counts, or (with a number of MiB) writes through so much memory again and again,
 * until it is killed. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    const size_t mib = argc > 1 ? (size_t)atol(argv[1]) : 0, n = (mib << 20) / sizeof(size_t);
    volatile size_t *memory = mib ? calloc(n, sizeof *memory) : NULL, count = 0;
    if (mib && !memory) {
        fprintf(stderr, "busy: no memory for %zu MiB\n", mib);
        return 1;
    }
    for (;;) {
        if (!mib) count++;
        for (size_t i = 0; i < n; i += 8) memory[i]++; /* a line of 64 bytes each */
    }
}
