/* SPDX-License-Identifier: Apache-2.0 */
/* c_locale.h - switches a thread to the C locale, whatever the host program chose by setlocale: strtod, printf and
 * strftime use the locale, and a comma for the decimal point would change templates and messages. */
#ifndef HN_C_LOCALE_H
#define HN_C_LOCALE_H
#include <locale.h>

/* From begin to end this thread is in the C locale; other threads are not affected. Pairs may nest. The result is passed to
 * end, by the same thread. (If the system has no memory for it, the host's locale stays.) */
locale_t hn_c_locale_begin(void);
void hn_c_locale_end(locale_t before);
#endif
