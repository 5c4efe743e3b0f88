/* SPDX-License-Identifier: Apache-2.0 */
/* linear_table_tmpl.h - how every level enters its products into the kernel table. Included at the end of a level's file,
 * behind its strips_q8_q4_0, strips_q8_q4_1, strips_q8_q8_0, strips_f32(type, job), store and store_glu;
 * LINEAR_TABLE is the name of the function that kernels.h declares. */
static void strips_f32_f32(const hn_strips_job *j) {
    strips_f32(HN_F32, j);
}
static void strips_f32_f16(const hn_strips_job *j) {
    strips_f32(HN_F16, j);
}
static void strips_f32_bf16(const hn_strips_job *j) {
    strips_f32(HN_BF16, j);
}
static void strips_f32_q4_0(const hn_strips_job *j) {
    strips_f32(HN_Q4_0, j);
}
static void strips_f32_q4_1(const hn_strips_job *j) {
    strips_f32(HN_Q4_1, j);
}
static void strips_f32_q8_0(const hn_strips_job *j) {
    strips_f32(HN_Q8_0, j);
}

void LINEAR_TABLE(struct hn_kernels *k) {
    k->linear_q8[HN_Q4_0] = strips_q8_q4_0;
    k->linear_q8[HN_Q4_1] = strips_q8_q4_1;
    k->linear_q8[HN_Q8_0] = strips_q8_q8_0;
    k->linear_f32[HN_F32] = strips_f32_f32;
    k->linear_f32[HN_F16] = strips_f32_f16;
    k->linear_f32[HN_BF16] = strips_f32_bf16;
    k->linear_f32[HN_Q4_0] = strips_f32_q4_0;
    k->linear_f32[HN_Q4_1] = strips_f32_q4_1;
    k->linear_f32[HN_Q8_0] = strips_f32_q8_0;
    k->store = store;
    k->store_glu = store_glu;
}
