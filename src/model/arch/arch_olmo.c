/* SPDX-License-Identifier: Apache-2.0 */
/* arch_olmo.c - OLMo 2 and 3: both halves of a layer read the stream itself, and their results are normed before they are added; norms over
 * the whole rows of q and k. OLMo 3 has a window in three layers of four, which turn by the plain base, whatever the scaling of the others
 * is. A GGUF of either is of architecture olmo2. */
#include <math.h>

#include "model/arch/arch.h"

enum { USUAL_PERIOD = 4 };

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_rotation full = a->rotation[0];
    const bool own = hn_source_config(src, "rope_parameters.full_attention");
    const hn_key plain = {NULL, "rope_theta", 1, 1e12, own ? 5e5 : full.scaling.theta};
    const int window = a->layer[0].window;
    double theta = full.scaling.theta;
    hn_key_buf key;
    if (window == 0) return HUNCH_OK;
    hunch_status st = hn_family_windows(a, src, hn_family_key_of(&key, a->family, HN_PATTERN, NULL, 1, 1024, USUAL_PERIOD), window, err);
    if (!st) st = hn_key_real(src, &plain, &theta, err);
    return st ? st : hn_rope_add_sliding(a, src, theta, full.dims, err);
}

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5), HN_CONTEXT(2048), HN_POST_NORMED,
    HN_ALWAYS(HN_LAYER(BOOL, norm_rows), 1),
    HN_ROWS_END};
static const hn_key_row sliding[] = {
    HN_THETA(5e5), HN_WINDOW(4096), HN_SLIDING_THETA,
    {HN_LAYER(LIST, window), HN_PATTERN, "layer_types", .each = hn_layer_slides, .written = hn_any_window},
    HN_ROWS_END};
const hn_family hn_family_olmo3 = {
    .gguf_name = "olmo2", .hf_type = "olmo3", .keys = {hn_norms_of_heads, hn_attention_bias_keys, keys, sliding}, .finish = finish};
const hn_family hn_family_olmo2 = {
    .gguf_name = "olmo2", .hf_type = "olmo2", .keys = {hn_norms_of_heads, hn_attention_bias_keys, keys}};
