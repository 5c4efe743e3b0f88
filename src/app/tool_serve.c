/* SPDX-License-Identifier: Apache-2.0 */
/* tool_serve.c - see tool_serve.h. */
#include "app/tool_serve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PARALLEL = 32, PORT = 8080, QUEUE = 256, STALL = 60, CONNECTIONS = 16384, PER_ADDRESS = 1024, MAX_BODY = 16 };

/* "6G", "500M", "12k" or bytes; 0: none of these. */
static uint64_t size_read(const char *text) {
    static const char units[] = "kmgt";
    char *end;
    double x = strtod(text, &end);
    if (!isdigit((unsigned char)text[0]) || end == text)
        return 0;
    const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    for (const char *u = units; unit && u <= unit; u++)
        x *= 1000;
    if (unit)
        end++;
    if (*end == 'B')
        end++;
    return *end || x < 1 || x > 1e18 ? 0 : (uint64_t)x;
}

uint64_t tool_serve_memory(const tool_options *o) {
    return o->memory ? size_read(o->memory) : 0;
}

int64_t tool_serve_kept(const tool_options *o) {
    if (!o->kept_prefixes) return 0;
    return strcmp(o->kept_prefixes, "0") == 0 ? -1 : (int64_t)size_read(o->kept_prefixes);
}

uint64_t tool_serve_grammars(const tool_options *o) {
    return o->grammar_memory ? size_read(o->grammar_memory) : 0;
}

static void by_default(int *value, int other) {
    if (*value == TOOL_UNSET)
        *value = other;
}

static int check(const tool_options *o) {
    if (!o->model)
        return tool_usage("serve: which model? hunch serve MODEL (a GGUF file, a Hugging Face folder or the name of a download)");
    if (o->memory && !tool_serve_memory(o))
        return tool_usage("serve: --memory %s is not a size such as 6G or 500M", o->memory);
    if (o->kept_prefixes && !tool_serve_kept(o))
        return tool_usage("serve: --kept-prefixes %s is not 0 or a size such as 2G or 500M", o->kept_prefixes);
    if (o->grammar_memory && !tool_serve_grammars(o))
        return tool_usage("serve: --grammar-memory %s is not a size such as 1G or 100M", o->grammar_memory);
    return -1;
}

int tool_serve_parse(tool_options *o, int argc, char **argv) {
    int code = tool_options_parse(o, TOOL_SERVE, argc, argv);
    if (code >= 0)
        return code;
    if ((code = check(o)) >= 0) {
        tool_options_fini(o);
        return code;
    }
    by_default(&o->parallel, PARALLEL);
    by_default(&o->port, PORT);
    by_default(&o->queue, QUEUE);
    by_default(&o->stall, STALL);
    by_default(&o->connections, CONNECTIONS);
    by_default(&o->connections_per_address, PER_ADDRESS);
    by_default(&o->max_body, MAX_BODY);
    if (!o->host)
        o->host = "127.0.0.1";
    return -1;
}
