/* SPDX-License-Identifier: Apache-2.0 */
/* arch_phi.c - Phi-3, Phi-3.5 and Phi-4 (mini): the plain dense block with q, k, v in one matrix and gate, up in
 * another, a sliding window, a part of each head that is not rotated, and longrope (arch_rope.c). */
#include "model/arch/arch.h"

static hunch_status phi3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense phi3 = {
        .prefix = "phi3", .windowed = true, .window_key = true, .fused = true, .rotated_by_table = true};
    return hn_dense_read(a, src, &phi3, err);
}

const hn_family hn_family_phi3 = {"phi3", "phi3", phi3_read};
