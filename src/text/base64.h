/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - decoding of base64 with padding. */
#ifndef HN_BASE64_H
#define HN_BASE64_H
#include <stdbool.h>
#include <stddef.h>

/* out has room for len / 4 * 3 bytes. False if the text is not base64. */
bool hn_base64_decode(const char *text, size_t len, char *out, size_t *n);
#endif
