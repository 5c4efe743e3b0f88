/* SPDX-License-Identifier: Apache-2.0 */
/* rows_table_tmpl.h - enters a level's functions of rows into the kernel table. Included at the end of a level's file,
 * after functions with the names of the entries; ROWS_TABLE is the name of the function that kernels.h declares. */
void ROWS_TABLE(struct hn_kernels *k) {
    k->inverse_rms = inverse_rms;
    k->normalise = normalise;
    k->add = add;
    k->geglu = geglu;
    k->softcap = softcap;
    k->exps = exps;
    k->exp_sum = exp_sum;
    k->exp_moment = exp_moment;
    k->quantise = quantise;
    k->round_bf16 = round_bf16;
    k->rope = rope;
    k->to_cache = to_cache;
    k->at_least = at_least;
}
