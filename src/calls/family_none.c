/* SPDX-License-Identifier: Apache-2.0 */
/* family_none.c - a template whose calls have no known format: everything but thinking is text. */
#include "calls/call_families.h"

static hn_call_events read(hn_call_reader *r) {
    (void)r;
    return HN_CALL_NOT;
}

const hn_call_family hn_calls_none = {.name = "none", .read = read};
