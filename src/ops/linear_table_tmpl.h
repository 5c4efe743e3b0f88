/* SPDX-License-Identifier: Apache-2.0 */
/* linear_table_tmpl.h - enters a level's products into the kernel table. Included at the end of a level's file, after
 * its strips_q8_Q4_0(job) and so on for every block type, strips_f32(type, job), store and store_glu; if LINEAR_ONLY_Q8
 * is defined, only the first of these are needed. LINEAR_TABLE is the name of the function that kernels.h declares,
 * LINEAR_BF16 the level's product of bf16 rows, if it has its own. */
#define ENTER_Q8(type, ...) k->linear_q8[HN_##type] = strips_q8_##type;
#if defined(LINEAR_ONLY_Q8)
void LINEAR_TABLE(struct hn_kernels *k) {
    HN_BLOCK_TYPES(ENTER_Q8)
}
#else
#define STRIPS_F32(type, ...) \
    static void strips_f32_##type(const hn_strips_job *j) { strips_f32(HN_##type, j); }
HN_BLOCK_TYPES(STRIPS_F32)
HN_FLOAT_TYPES(STRIPS_F32)

#define ENTER_F32(type, ...) k->linear_f32[HN_##type] = strips_f32_##type;
void LINEAR_TABLE(struct hn_kernels *k) {
    HN_BLOCK_TYPES(ENTER_Q8)
    HN_BLOCK_TYPES(ENTER_F32)
    HN_FLOAT_TYPES(ENTER_F32)
#ifdef LINEAR_BF16
    k->linear_bf16 = LINEAR_BF16;
#endif
    k->store = store;
    k->store_glu = store_glu;
}
#endif
