/* SPDX-License-Identifier: Apache-2.0 */
/* key_list.c - the keys that files of a family may have, in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/key_order.h"
#include "schema/key_rows.h"

/* Each word, and each of several between bars, after `before`, separated by `between`; '@' stands for a place. */
static void put_words(char out[400], const char *words, int first, int last, const char *before, const char *between, const char *place) {
    char word[96];
    for (int i = first; i <= last && hn_keys_word(words, i, word); i++) {
        const bool placed = *word == '@';
        if (*word == '?') continue;
        for (char *rest = word + placed, *one = strsep(&rest, "|"); one; one = strsep(&rest, "|")) {
            const size_t len = strlen(out);
            snprintf(out + len, 400 - len, "%s%s%s%s%s", len ? between : "", before, placed ? place : "", placed ? "." : "", one);
        }
    }
}

static void put_values(char out[400], hn_source_kind form, const hn_key_row *k) {
    const double usual = k->usual[form];
    if (k->how & (HN_GGUF_WRITTEN | HN_LATER) && !k->folder) return; /* its value follows from others */
    switch (k->type) {
    case HN_KEY_WORD: put_words(out, k->words, (int)k->least, (int)k->most, "", " or ", ""); break;
    case HN_KEY_BOOL: snprintf(out, 400, "true or false"); break;
    case HN_KEY_LIST: snprintf(out, 400, k->each ? "a number of each layer" : "numbers"); break;
    case HN_KEY_INT:
    case HN_KEY_FLOAT:
    case HN_KEY_REAL:
        if (k->most > k->least && !k->up_to) snprintf(out, 400, "%.10g to %.10g", k->least, k->most);
        break;
    case HN_KEY_CLAIM:
    case HN_KEY_END: break;
    }
    const size_t len = strlen(out);
    if (k->type == HN_KEY_LIST || k->type == HN_KEY_WORD || k->follows || k->read || k->how & HN_LATER) return;
    if (isnan(usual)) snprintf(out + len, 400 - len, "%srequired", len ? ", " : "");
    else if (k->type == HN_KEY_BOOL) snprintf(out + len, 400 - len, ", %s if absent", usual != 0 ? "true" : "false");
    else snprintf(out + len, 400 - len, "%s%.10g if absent", len ? ", " : "", usual);
}

void hn_keys_list(const hn_file_keys *s, hn_source_kind form,
                  void (*each)(void *user, const char *gguf, const char *folder, const char *values), void *user) {
    hn_keys_place at = {0, 0};
    char before[96];
    snprintf(before, sizeof before, "%s.", s->prefix);
    for (const hn_key_row *k; (k = hn_keys_next(s, &at));) {
        char gguf[400] = "", folder[400] = "", values[400] = "";
        if (hn_keys_refuses(k)) continue;
        put_words(gguf, k->gguf, 0, 9, before, ", ", "");
        put_words(folder, k->folder, 0, 9, "", ", ", s->place);
        put_values(values, form, k);
        if (*gguf || *folder) each(user, gguf, folder, values);
    }
}
