/* SPDX-License-Identifier: Apache-2.0 */
/* arch_granite.c - Granite 3: the plain dense block with multipliers. */
#include "model/arch.h"

static hunch_status granite_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense granite = {.prefix = "granite", .interleaved = true, .multipliers = true};
    return hn_dense_read(a, src, &granite, err);
}

const hn_family hn_family_granite = {"granite", "granite", granite_read};
