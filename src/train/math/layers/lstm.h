/* SPDX-License-Identifier: Apache-2.0 */
/* lstm.h - a layer of an LSTM whose state is zero before every row, forwards and backwards; the rules are those of layers_back.h. */
#ifndef HN_LSTM_H
#define HN_LSTM_H
#include "train/math/workers.h"

/* gates [rows][4 n], in the order i, f, g, o of torch, before their functions: h [rows][n] = sigmoid(o) tanh(sigmoid(i)
 * tanh(g)). f is not used, since the state is zero. */
void hn_lstm_output(hn_workers *t, hn_mat gates, hn_mat h);
/* From the gradient of h to that of the gates, that of f 0. dgates must not be gates. */
void hn_lstm_output_back(hn_workers *t, hn_mat dh, hn_mat gates, hn_mat dgates);
#endif
