/* SPDX-License-Identifier: Apache-2.0 */
/* arch_phi.c - Phi-3, Phi-3.5 and Phi-4 (mini): the plain dense block whose q, k, v and gate, up lie in one matrix each, with
 * a sliding window, a part of each head that does not turn, and longrope (arch_rope.c). */
#include "model/arch.h"

static hunch_status phi3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense phi3 = {.prefix = "phi3", .windowed = true, .window_key = true, .fused = true};
    return hn_dense_read(a, src, &phi3, err);
}

const hn_family hn_family_phi3 = {"phi3", "phi3", phi3_read};
