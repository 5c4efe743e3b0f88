/* SPDX-License-Identifier: Apache-2.0 */
/* hold_out.h - which texts a head is measured with and not learned from. The same prompt answered twice, at another temperature say, gives
 * texts that are much alike: what begins with the prompt of one that is held out is not learned from either. */
#ifndef HN_HOLD_OUT_H
#define HN_HOLD_OUT_H
#include "train/features.h"

typedef enum hn_text_role { HN_TEXT_LEARNED, HN_TEXT_HELD_OUT, HN_TEXT_LEFT_OUT } hn_text_role;

/* role [n], of each text. About `wanted` of them are held out, evenly spread; none where there are fewer. Where all the
 * others begin like these none is left out: something has to be learned from. */
void hn_hold_out(const hn_feature_text *text, size_t n, int wanted, hn_text_role *role);
#endif
