/* SPDX-License-Identifier: Apache-2.0 */
/* tool_drafts.c - see tool_drafts.h. */
#include "app/tool_drafts.h"

#include <string.h>

const char tool_drafts_text[] =
    "A SPEC is KIND[:PATH][,key=value...]. Several joined by + propose together, and the model checks all of it in one "
    "pass: --draft ngram+suffix,mode=tree. The text is always the one that the model generates without drafts. Under "
    "`run` and `chat` several --draft are one method; under `compare` each is a method of its own. A + in a PATH is "
    "part of it, unless the name of a kind follows.";

/* The words that the engine replaces by drafters. */
static const hn_drafter_key no_keys[] = {{NULL, NULL, NULL}};
static const tool_draft_kind by_engine[] = {
    {"auto", NULL, "ngram and suffix, and a draft head that lies beside the model (NAME.head.gguf, or head.gguf in its "
     "folder), else recycle; each round a controller decides which of their rows are worth verifying, or none (run --why prints it). "
     "The default", no_keys},
    {"none", NULL, "plain decoding", no_keys},
};
enum { BY_ENGINE = sizeof by_engine / sizeof *by_engine };

bool tool_draft_kind_at(int i, tool_draft_kind *k) {
    if (i < BY_ENGINE) {
        *k = by_engine[i];
        return true;
    }
    const hn_drafter_help *help = hn_drafter_help_at(i - BY_ENGINE, &k->name);
    if (!help)
        return false;
    k->path = help->path;
    k->help = help->help;
    k->keys = help->keys;
    return true;
}

bool tool_draft_kind_find(const char *name, size_t len, tool_draft_kind *k) {
    for (int i = 0; tool_draft_kind_at(i, k); i++)
        if (strlen(k->name) == len && memcmp(k->name, name, len) == 0)
            return true;
    return false;
}

const hn_drafter_key *tool_draft_key_shared(const hn_drafter_key *key) {
    enum { MANY = 10 };
    const hn_drafter_key *first = NULL;
    tool_draft_kind k;
    int n = 0;
    for (int i = 0; tool_draft_kind_at(i, &k); i++)
        for (const hn_drafter_key *its = k.keys; its->name; its++) {
            if (strcmp(its->name, key->name) != 0 || strcmp(its->help, key->help) != 0)
                continue;
            if (n++ == 0)
                first = its;
        }
    return n >= MANY ? first : NULL;
}
