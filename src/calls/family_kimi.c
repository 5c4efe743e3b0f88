/* SPDX-License-Identifier: Apache-2.0 */
/* family_kimi.c - Kimi K2: a section of calls that are named functions.NAME:NUMBER, the number counted over the conversation. */
#include "calls/call_families.h"
#include "base/ascii.h"

static bool fits(const char *text, size_t len) {
    return hn_has(text, len, "<|tool_calls_section_begin|>");
}

static bool prefix_drop(const hn_call_reader *r, hn_span *s, const char *prefix) {
    const size_t n = strlen(prefix);
    if (s->n < n || memcmp(r->in.at + s->from, prefix, n) != 0) return false;
    s->from += n;
    s->n -= n;
    return true;
}

static bool offered(const hn_call_reader *r, hn_span s) {
    return s.n && hn_tools_find(r->tools, r->in.at + s.from, s.n);
}

/* functions.NAME:NUMBER is the id, too. Models also write NAME:NUMBER, functions_NAME_NUMBER, functionsNAMENUMBER: then an id is made. */
static void resolve(const hn_call_reader *r, hn_span *name, hn_span *id) {
    const char *text = r->in.at;
    hn_span s = *name, all = *name;
    while (s.n && hn_is_digit(text[s.from + s.n - 1])) s.n--;
    const bool counted = s.n > 1 && s.n < all.n && text[s.from + s.n - 1] == ':';
    if (counted) s.n--;
    hn_span whole = counted ? s : all;
    if (prefix_drop(r, &whole, "functions.") || offered(r, whole)) {
        if (counted) *id = all;
        *name = whole;
        if (offered(r, whole)) return;
    }
    if (s.n && strchr("_.-", text[s.from + s.n - 1])) s.n--;
    if (prefix_drop(r, &s, "functions") && s.n && strchr("_.:", text[s.from])) s.from++, s.n--;
    if (offered(r, s)) *name = s, *id = (hn_span){0};
}

static const hn_marked how = {.inner = "<|tool_call_begin|>",
                              .separator = "<|tool_call_argument_begin|>",
                              .inner_end = "<|tool_call_end|>",
                              .outer_end = "<|tool_calls_section_end|>",
                              .resolve = resolve};
const hn_call_family hn_calls_kimi = {
    .name = "kimi-k2",
    .opens = (const char *const[]){"<|tool_calls_section_begin|>", "<|tool_call_begin|>", NULL},
    .closes = (const char *const[]){"<|tool_call_end|>", "<|tool_calls_section_end|>", NULL},
    .drops = (const char *const[]){"<|tool_call_end|>", "<|tool_calls_section_end|>", NULL},
    .ids = HN_IDS_COUNTED,
    .fits = fits,
    .grammar = hn_grammar_kimi,
    .read = hn_read_marked,
    .how = &how};
