/* SPDX-License-Identifier: Apache-2.0 */
/* convert_rotation.c - the rotation (RoPE) in a GGUF: its keys, and a tensor of divisors where keys do not suffice. */
#include "convert/convert_private.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* ---- keys ---- */

hunch_status hn_conversion_put_rotation(hn_conversion *c) {
    static const char *const names[] = {
        [HN_SCALING_LINEAR] = "linear", [HN_SCALING_YARN] = "yarn", [HN_SCALING_LONGROPE] = "longrope", [HN_SCALING_PART] = NULL};
    const hn_rotation *r = hn_conversion_rotation(c);
    const hn_scaling *s = &r->scaling;
    const bool yarn = s->kind == HN_SCALING_YARN, longrope = s->kind == HN_SCALING_LONGROPE;
    const char *name = names[s->kind];
    /* attn_factor multiplies YaRN's usual amplitude; for longrope it is the whole amplitude */
    const double scores = c->arch.dense->yarn_scores ? s->mscale_all : 0;
    const hn_scaling plain = {.kind = s->kind, .factor = yarn ? s->factor : 1, .mscale = scores, .mscale_all = scores};
    const double times = (double)r->scale / hn_rope_usual_amplitude(&plain);
    const struct {
        const char *key;
        double value;
        bool there;
    } reals[] = {{"rope.freq_base", s->theta, true},
                 {"rope.scaling.factor", s->factor, s->kind == HN_SCALING_LINEAR || yarn},
                 {"rope.scaling.yarn_beta_fast", s->fast, yarn},
                 {"rope.scaling.yarn_beta_slow", s->slow, yarn},
                 {"rope.scaling.yarn_log_multiplier", scores / 10, yarn && scores > 0},
                 {"rope.scaling.attn_factor", times, longrope || fabs(times - 1) > 1e-6}};
    char key[96];
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof reals / sizeof *reals && !status; i++)
        if (reals[i].there)
            status = hn_gguf_put_f32(c->w, hn_conversion_key(c, reals[i].key, key), (float)reals[i].value, c->err);
    if (!status && name != NULL)
        status = hn_gguf_put_str(c->w, hn_conversion_key(c, "rope.scaling.type", key), name, strlen(name), c->err);
    if (!status && (yarn || longrope))
        status = hn_gguf_put_u32(c->w, hn_conversion_key(c, "rope.scaling.original_context_length", key), (uint32_t)s->original,
                                 c->err);
    return status;
}

/* ---- tables ---- */

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
    if (s->kind == HN_SCALING_YARN && s->whole == c->arch.dense->yarn_exact)
        status = hn_fail(c->err, HUNCH_REFUSED, "%s: rope scaling yarn with truncate %s: a GGUF file has no place for it",
                         hn_source_path(c->src), s->whole ? "true" : "false");
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
