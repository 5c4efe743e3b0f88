/* SPDX-License-Identifier: Apache-2.0 */
/* convert_rotation.c - the rotation (RoPE) in a GGUF: a tensor of divisors where keys do not suffice. */
#include "convert/convert_private.h"

#include <math.h>

#include "base/mem.h"

/* The divisor of a pair that is not rotated, as other programs write it. */
#define NOT_ROTATED 1e30f

/* The description holds finished frequencies; GGUF has a tensor of divisors of the plain ones. */
static hunch_status divisors_make(hn_conversion *c, const double *freq, float **out) {
    const hn_rotation *r = hn_conversion_rotation(c);
    const int half = r->dims / 2;
    *out = hn_zalloc((size_t)half, sizeof **out);
    if (*out == NULL)
        return hn_fail_memory(c->err, "rope divisors", (size_t)half * sizeof **out);
    for (int i = 0; i < half; i++)
        (*out)[i] = freq[i] > 0 ? (float)(pow(r->scaling.theta, -2.0 * i / r->dims) / freq[i]) : NOT_ROTATED;
    return HUNCH_OK;
}

hunch_status hn_conversion_plan_rotation(hn_conversion *c) {
    const hn_rotation *r = hn_conversion_rotation(c);
    const hn_scaling *s = &r->scaling;
    hunch_status status = HUNCH_OK;
    if (s->kind == HN_SCALING_LLAMA3 || s->kind == HN_SCALING_PART) {
        c->table[0].name = "rope_freqs.weight";
        status = divisors_make(c, r->freq, &c->table[0].values);
    }
    if (s->kind == HN_SCALING_LONGROPE) {
        c->table[0].name = "rope_factors_short.weight";
        c->table[1].name = "rope_factors_long.weight";
        status = divisors_make(c, r->freq, &c->table[0].values);
        if (!status)
            status = divisors_make(c, r->freq_long, &c->table[1].values);
    }
    if (s->kind == HN_SCALING_YARN && s->whole == c->arch.files.yarn_exact)
        status = hn_fail(c->err, HUNCH_REFUSED, "%s: rope scaling yarn with truncate %s: a GGUF file has no place for it",
                         hn_source_path(c->src), s->whole ? "true" : "false");
    const hn_scaling_kind sliding = c->arch.rotations > 1 ? c->arch.rotation[1].scaling.kind : HN_SCALING_NONE;
    if (!status && sliding >= HN_SCALING_LINEAR && sliding <= HN_SCALING_YARN)
        status = hn_fail(c->err, HUNCH_REFUSED, "%s: rope_parameters.sliding_attention is scaled: a GGUF file has no place for it",
                         hn_source_path(c->src));
    return status;
}

hunch_status hn_conversion_visit_tables(hn_conversion *c, bool write) {
    const uint64_t half = (uint64_t)hn_conversion_rotation(c)->dims / 2;
    hunch_status status = HUNCH_OK;
    for (int i = 0; i < 2 && !status && c->table[i].name != NULL; i++)
        status = write ? hn_gguf_data(c->w, c->table[i].values, (size_t)half * sizeof *c->table[i].values, c->err)
                       : hn_gguf_declare(c->w, c->table[i].name, HN_F32, 1, &half, c->err);
    return status;
}
