/* SPDX-License-Identifier: Apache-2.0 */
/* tool_train.c - see tool_train.h. */
#include "app/tool_train.h"

#include <string.h>

#include "base/nearest.h"
#include "app/tool_train_kinds.h"

#define KIND(id, name, about) {name, about},
const tool_train_word tool_train_words[] = {{"data", "no head: answers of the model, which heads learn from"},
                                            {"trie", "no head: counts of n-grams, for trees of heads (tree=pruned)"},
                                            TOOL_TRAIN_KINDS(KIND){NULL, NULL}};
#undef KIND

static bool is_known(const char *word) {
    const tool_train_word *w = tool_train_words;
    while (w->name && strcmp(w->name, word) != 0)
        w++;
    return w->name != NULL;
}

static int unknown(const char *word) {
    const char *names[sizeof tool_train_words / sizeof *tool_train_words];
    size_t n = 0;
    for (const tool_train_word *w = tool_train_words; w->name; w++)
        names[n++] = w->name;
    const char *near = hn_nearest(word, names, n);
    return near ? tool_usage("train: no kind of head %s, did you mean %s?", word, near)
                : tool_usage("train: no kind of head %s, see hunch train --help", word);
}

static int check(const tool_options *o) {
    const char *kind = o->positional;
    if (!kind)
        return tool_usage("train: expected data, trie or a kind of head first, see hunch train --help");
    if (!is_known(kind))
        return unknown(kind);
    if (o->words.n && strcmp(kind, "trie") != 0)
        return tool_usage("train: unexpected argument %s: files of %s come with -f", o->words.items[0], kind);
    if (!o->model)
        return tool_usage("train: which model? hunch train %s MODEL -o OUT", kind);
    if (!o->output)
        return tool_usage("train: where to? hunch train %s MODEL -o OUT", kind);
    return -1;
}

/* Words after the model of a trie are files, as by -f. */
static void words_join(tool_options *o) {
    size_t cap = (size_t)o->files.n;
    const size_t n = (size_t)(o->files.n + o->words.n);
    if (o->words.n)
        o->files.items = tool_grow(o->files.items, &cap, n, sizeof *o->files.items);
    for (int i = 0; i < o->words.n; i++)
        o->files.items[o->files.n++] = o->words.items[i];
}

int tool_train_parse(tool_options *o, int argc, char **argv) {
    int code = tool_options_parse(o, TOOL_TRAIN, argc, argv);
    if (code >= 0)
        return code;
    code = check(o);
    if (code >= 0)
        tool_options_fini(o);
    else
        words_join(o);
    return code;
}
