/* SPDX-License-Identifier: Apache-2.0 */
/* read_calls.c - how fast answers with calls of tools are read, in MB/s, of each family: text, then calls with strings of some kilobytes,
 * in pieces of a token's size, as they come from an engine, and in whole.
 *
 *   build-test/read_calls [SECONDS]      default: a fifth of a second each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "calls/calls.h"

enum { TOKEN = 4, LONG = 4000, BYTES = 1 << 16 };
#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"

/* A call of note(text), its text at %s. */
static const struct { const char *family, *call; } forms[] = {
    {"hermes", "\n<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": \"%s\"}}\n</tool_call>"},
    {"qwen3-coder", "\n<tool_call>\n<function=note>\n<parameter=text>\n%s\n</parameter>\n</function>\n</tool_call>"},
    {"glm4", "<tool_call>note\n<arg_key>text</arg_key>\n<arg_value>%s</arg_value>\n</tool_call>"},
    {"mistral-args", "[TOOL_CALLS]note[ARGS]{\"text\": \"%s\"}"},
    {"gemma4", "<|tool_call>call:note{text:<|\"|>%s<|\"|>}<tool_call|>"},
    {"kimi-k2", "<|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>{\"text\": \"%s\"}<|tool_call_end|>"},
    {"deepseek-v3.1", "<" BAR "tool" LOW "call" LOW "begin" BAR ">note<" BAR "tool" LOW "sep" BAR ">{\"text\": \"%s\"}"},
    {"lfm2", "<|tool_call_start|>[note(text=\"%s\")]<|tool_call_end|>"},
    {"gpt-oss", "<|start|>assistant<|channel|>commentary to=functions.note json<|message|>{\"text\": \"%s\"}<|end|>"}};

/* Seconds of this thread on a core: others may run beside it. */
static double spent(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *answer_of(const char *call, size_t *n) {
    static const char words[] = "The quick (brown) fox, no. 4 of them, jumps over a lazy dog. ";
    char *text = hn_zalloc(BYTES * 2, 1), value[LONG + 1];
    for (size_t i = 0; i < LONG; i++) value[i] = words[i % (sizeof words - 1)];
    value[LONG] = 0;
    *n = 0;
    for (int i = 0; i < 100; i++) *n += (size_t)sprintf(text + *n, "%s", words);
    while (*n < BYTES) *n += (size_t)sprintf(text + *n, call, value);
    return text;
}

static double read_speed(const hn_call_family *f, const hn_tools *t, const char *text, size_t n, size_t step, double seconds) {
    const hn_call_options o = {.think_begin = "<think>", .think_end = "</think>"};
    const double start = spent();
    double bytes = 0;
    while (spent() - start < seconds) {
        hn_call_reader *r = hn_call_reader_open(f, t, &o);
        hn_call_answer a;
        for (size_t at = 0; at < n; at += step) hn_call_reader_feed(r, text + at, step < n - at ? step : n - at, false);
        hn_call_reader_feed(r, NULL, 0, true);
        hn_call_reader_get(r, &a);
        if (a.n_done < 10 || a.n_broken) fprintf(stderr, "read_calls: %s: %zu calls\n", hn_call_family_name(f), a.n_done), exit(1);
        hn_call_reader_close(&r);
        bytes += (double)n;
    }
    return bytes / (spent() - start) * 1e-6;
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    hunch_error err;
    hn_tools t;
    json_t *list = json_loads("[{\"name\": \"note\", \"parameters\": {\"properties\": {\"text\": {\"type\": \"string\"}}}}]", 0, NULL);
    if (hn_tools_open(&t, list, "tools", &err)) return 1;
    printf("%-14s %8s %8s  MB/s\n", "family", "tokens", "whole");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const hn_call_family *f = hn_call_family_named(forms[i].family);
        size_t n;
        char *text = answer_of(forms[i].call, &n);
        printf("%-14s %8.0f %8.0f\n", forms[i].family, read_speed(f, &t, text, n, TOKEN, seconds), read_speed(f, &t, text, n, n, seconds));
        hn_free(text);
    }
    json_decref(list);
    hn_tools_close(&t);
    return 0;
}
