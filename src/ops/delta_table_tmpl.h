/* SPDX-License-Identifier: Apache-2.0 */
/* delta_table_tmpl.h - enters a level's functions of delta nets, convolutions and gates into the kernel table. Included at the end of
 * a level's file, after functions with the names of the entries; DELTA_TABLE is the name of the function that kernels.h
 * declares. */
void DELTA_TABLE(struct hn_kernels *k) {
    k->convolve = convolve;
    k->gated_taps = gated_taps;
    k->dot = dot;
    k->delta_step = delta_step;
    k->swiglu = swiglu;
    k->sigmoid_glu = sigmoid_glu;
    k->clamped_glu = clamped_glu;
}
