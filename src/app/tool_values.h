/* SPDX-License-Identifier: Apache-2.0 */
/* tool_values.h - parsers of flag values: numbers, lists, pairs, biases; and the name nearest to a typo. Strict: the whole argument must
 * match. Independent of any flag. */
#ifndef HN_TOOL_VALUES_H
#define HN_TOOL_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hunch/hunch.h"

enum { TOOL_SHOWN = 84 };
/* A value as a message shows it: cut if it is long. */
const char *tool_value_shown(const char *s, char out[TOOL_SHOWN]);

bool tool_parse_int64(const char *s, int64_t *out);
bool tool_parse_real(const char *s, double *out);         /* finite, decimal */
bool tool_parse_pair(const char *s, double out[2]);       /* "A,B" */
bool tool_parse_bias(const char *s, hunch_bias *out);     /* "ID=BIAS": an id from 0 on; a finite number or -inf */
/* "1,2,3", each from min to max, to `items`, which has room for one more than there are commas. Returns their number, 0
 * for an invalid list. */
int tool_parse_ints(const char *s, int64_t min, int64_t max, int *items);

#endif
