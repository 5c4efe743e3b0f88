/* SPDX-License-Identifier: Apache-2.0 */
/* template_tables.h - what templates need of Unicode beyond what utf8proc has; template_characters.c explains and uses it. */
#ifndef HN_TEMPLATE_TABLES_H
#define HN_TEMPLATE_TABLES_H
#include <stddef.h>
#include <stdint.h>

typedef struct trange {
    uint32_t first, last;
} trange;
typedef struct tranges {
    const trange *at; /* in order */
    size_t n;
} tranges;
extern const tranges tother_upper, tother_lower, tother_digits, tother_numbers; /* beside those of their category */
extern const tranges tname_start_not, tname_start_too, tname_part_not, tname_part_too;

typedef struct tlong_case { /* a character whose upper or title case is several characters; 0 after the last */
    uint32_t of, upper[3], title[3];
} tlong_case;
extern const tlong_case tlong_cases[]; /* in order of `of` */
extern const size_t tlong_cases_n;

typedef struct tname_run {
    uint32_t first, n;
} tname_run;
extern const char tname_words[], tname_codes[], tnames[];
extern const int tname_short_codes;
extern const tname_run tname_runs[];
extern const size_t tname_runs_n;
#endif
