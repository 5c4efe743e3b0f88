/* SPDX-License-Identifier: Apache-2.0 */
/* convert_own.c - writes a model's module of multi-token prediction (head_own.c) as the last module of its GGUF. */
#include <stdio.h>

#include "convert/convert_private.h"
#include "model/head/head.h"

hunch_status hn_conversion_find_own(hn_conversion *c) {
    hn_head_names names;
    if (!hn_head_find_own(c->src, &c->arch, &names)) return HUNCH_OK;
    hunch_status st = hn_head_read_own(&c->own, c->src, &names, &c->arch, c->err);
    if (st) return st;
    c->arch.files.next_layers = c->own.layers;
    return HUNCH_OK;
}

/* Visits the part of module k. If modules share one, each gets a copy, as in other GGUF files. */
static hunch_status visit_part(hn_conversion *c, hn_role part, int k, bool write) {
    const hn_head_names to = {.form = &hn_head_own_gguf, .front = "", .module = c->arch.layers + k};
    hn_head_names from = hn_head_names_of(&c->own);
    const bool vector = hn_role_is_vector(part);
    char name[128], written[128];
    uint64_t dims[2];
    hn_tensor *t;
    hn_arch_tensor_shape(&c->own, part, 0, dims);
    hunch_status st = hn_source_need(c->src, hn_head_name(&from, part, k, name), vector ? 1 : 2, dims[0], dims[1], &t, c->err);
    const float more = vector && c->own.files.norms_less_one ? 1 : 0;
    return st ? st
              : hn_conversion_visit_tensor(c, t, hn_head_name(&to, part, 0, written), vector, vector ? 1 : 2, dims, more, write);
}

hunch_status hn_conversion_visit_own(hn_conversion *c, bool write) {
    static const hn_role parts[] = {HN_HEAD_FC, HN_HEAD_TOKEN_NORM, HN_HEAD_STREAM_NORM, HN_HEAD_OUTPUT_NORM};
    const hn_arch model = c->arch;
    hunch_status st = HUNCH_OK;
    if (c->arch.files.next_layers == 0) return HUNCH_OK;
    for (int k = 0; k < c->own.layers; k++)
        for (size_t i = 0; !st && i < sizeof parts / sizeof *parts; i++) st = visit_part(c, parts[i], k, write);
    c->arch = c->own; /* its one layer is written like the model's */
    c->first_layer = model.layers;
    if (!st) st = hn_conversion_visit_layers(c, write);
    c->arch = model;
    c->first_layer = 0;
    return st;
}
