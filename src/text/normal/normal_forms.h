/* SPDX-License-Identifier: Apache-2.0 */
/* normal_forms.h - Unicode's normal forms of a text, and the growing text that normalizers write. Time is n log n at worst,
 * whatever the marks. */
#ifndef HN_NORMAL_FORMS_H
#define HN_NORMAL_FORMS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hn_text {
    char *bytes; /* NULL while nothing was put */
    size_t len, cap;
    size_t most; /* limit in bytes; 0: none */
    bool over;   /* the limit would have been exceeded */
} hn_text;

/* False: no memory, or over. */
bool hn_text_put(hn_text *t, const char *bytes, size_t len);
/* Appends the text with every `from` replaced by `to`; an empty `from` never matches. False: as hn_text_put. */
bool hn_text_replace(hn_text *t, const char *text, size_t len, const char *from, const char *to);

typedef struct hn_form_work { /* code points of the current part; zeroed at first */
    int32_t *points;
    uint64_t *order;
    size_t n, cap_points, cap_order;
} hn_form_work;
void hn_form_work_fini(hn_form_work *w);

/* Appends text in the normal form NFC, NFD, NFKC or NFKD: compose: C, compat: K. text is valid UTF-8. False: as hn_text_put. */
bool hn_normal_form(hn_form_work *w, hn_text *out, const char *text, size_t len, bool compose, bool compat);
#endif
