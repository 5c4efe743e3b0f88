/* SPDX-License-Identifier: Apache-2.0 */
/* c_locale.c - see c_locale.h. newlocale allocates nothing for the C locale. */
#include "base/c_locale.h"

locale_t hn_c_locale_begin(void) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain ? uselocale(plain) : (locale_t)0;
}

void hn_c_locale_end(locale_t before) {
    if (before) freelocale(uselocale(before));
}
