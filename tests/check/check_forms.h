/* SPDX-License-Identifier: Apache-2.0 */
/* check_forms.h - the forms in which products are checked: every level that the machine has; and levels that it
 * may lack in a form that it can run, built only for the check: avxvnni with the instruction of AVX-512
 * (linear_evex_vnni.c), amx over tiles in plain C (linear_emulated_tiles.c, attention_emulated_tiles.c). */
#ifndef HN_CHECK_FORMS_H
#define HN_CHECK_FORMS_H
#include "ops/kernels.h"

/* Each overrides its level's own entries. */
void check_form_evex(struct hn_kernels *k);
void check_form_tiles(struct hn_kernels *k);
void check_form_attention_tiles(struct hn_kernels *k); /* of check_attention_test */

typedef struct check_form {
    const char *name;
    const struct hn_kernels *kernels;
} check_form;

enum { CHECK_FORMS = HN_ISA_COUNT + 2 };

/* Ref first. Returns how many. */
static inline int check_forms(check_form out[CHECK_FORMS]) {
    int n = 0;
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        out[n++] = (check_form){hn_isa_name(isa), hn_kernels_get(isa)};
    }
#if defined(__x86_64__)
    static struct hn_kernels evex, tiles;
    if (!hn_isa_has(HN_ISA_AVX512)) return n;
    evex = *hn_kernels_get(HN_ISA_AVX2);
    check_form_evex(&evex);
    out[n++] = (check_form){"avxvnni in its EVEX form", &evex};
    tiles = *hn_kernels_get(HN_ISA_AVX512);
    check_form_tiles(&tiles);
    out[n++] = (check_form){"amx over emulated tiles", &tiles};
#endif
    return n;
}
#endif
