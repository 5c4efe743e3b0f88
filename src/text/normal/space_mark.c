/* SPDX-License-Identifier: Apache-2.0 */
/* space_mark.c - see space_mark.h. */
#include "text/normal/space_mark.h"

size_t hn_marks_to_spaces(const char *text, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (hn_is_space_mark(text + i, len - i)) {
            out[n++] = ' ';
            i += HN_SPACE_MARK_BYTES;
        } else {
            out[n++] = text[i++];
        }
    }
    return n;
}
