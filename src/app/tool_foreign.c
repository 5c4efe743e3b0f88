/* SPDX-License-Identifier: Apache-2.0 */
/* tool_foreign.c - see tool_foreign.h. Names that tool_flag_near finds by similarity are not listed. */
#include "app/tool_foreign.h"

#include <stddef.h>
#include <string.h>

#define NO_FORM "--json-object, --json-schema, --regex and --grammar hold an answer to a form; --json reports an answer as JSON"

static const tool_foreign flags[] = {
    {"--temp", "--temperature", NULL}, {"--max-tokens", "-n", NULL},
    {"--max-new-tokens", "-n", NULL},  {"--n-predict", "-n", NULL},
    {"--predict", "-n", NULL},         {"--num-predict", "-n", NULL},
    {"-c", "--context", NULL},         {"--ctx-size", "--context", NULL},
    {"--num-ctx", "--context", NULL},  {"--max-model-len", "--context", NULL},
    {"-t", "--threads", NULL},         {"--repeat-penalty", "--repetition-penalty", NULL},
    {"--format", NULL, NO_FORM},       {"--grammar-file", "--grammar", NULL},
    {NULL, NULL, NULL},
};

static const tool_foreign commands[] = {
    {"perplexity", "score", NULL},
    {"server", "serve", NULL},
    {NULL, NULL, NULL},
};

static const tool_foreign *find(const tool_foreign *list, const char *name) {
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0)
            return list;
    return NULL;
}

const tool_foreign *tool_foreign_flag(const char *name) {
    return find(flags, name);
}

const tool_foreign *tool_foreign_command(const char *name) {
    return find(commands, name);
}
