/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer.c - patterns by PCRE2, with hand-written scanners for the two that nearly every text goes through.
 *
 * A scanner decides what ASCII alone decides and leaves the rest to PCRE2 at the same place, so Unicode's classes are
 * PCRE2's and the result never depends on which of the two looked. The patterns of a tokenizer.json are hostile: PCRE2's
 * match limit ends those that backtrack without end.
 */
#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/mem.h"

#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define ONE_NUMBER "\\p{N}"
#define LLAMA3 CONTRACTION "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define QWEN2 CONTRACTION "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define QWEN35 CONTRACTION "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define DEEPSEEK3                                                                                                      \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"               \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define IDEOGRAPHS "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define LIKE_GPT2                                                                                                      \
    { GPT2 }
#define LIKE_SMOLLM                                                                                                    \
    { ONE_NUMBER, GPT2 }

const char *const hn_pretok_gpt2 = GPT2;

/* The names are those that files carry; models with the same rules share a line's patterns. */
static const hn_pretok_kind kinds[] = {
    {.name = "default", .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {.name = "gpt-2", .patterns = LIKE_GPT2},
    {.name = "phi-2", .patterns = LIKE_GPT2},
    {.name = "olmo", .patterns = LIKE_GPT2},
    {.name = "mpt", .patterns = LIKE_GPT2},
    {.name = "jais", .patterns = LIKE_GPT2},
    {.name = "gigachat", .patterns = LIKE_GPT2},
    {.name = "exaone4", .patterns = LIKE_GPT2},
    {.name = "trillion", .patterns = LIKE_GPT2},
    {.name = "smollm", .patterns = LIKE_SMOLLM},
    {.name = "starcoder", .patterns = LIKE_SMOLLM},
    {.name = "refact", .patterns = LIKE_SMOLLM},
    {.name = "command-r", .patterns = LIKE_SMOLLM},
    {.name = "codeshell", .patterns = LIKE_SMOLLM},
    {.name = "exaone", .patterns = LIKE_SMOLLM},
    {.name = "minerva-7b", .patterns = LIKE_SMOLLM},
    {.name = "llama-bpe", .patterns = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .patterns = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .patterns = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "falcon3", .patterns = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "falcon-h1", .patterns = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "lfm2", .patterns = {LLAMA3}, .ignore_merges = true, .adds_bos = true},
    {.name = "dbrx", .patterns = {LLAMA3}},
    {.name = "smaug-bpe", .patterns = {LLAMA3}},
    {.name = "glm4", .patterns = {LLAMA3}},
    {.name = "chatglm-bpe", .patterns = {LLAMA3}},
    {.name = "qwen2", .patterns = {QWEN2}},
    {.name = "deepseek-r1-qwen", .patterns = {QWEN2}},
    {.name = "stablelm2", .patterns = {QWEN2}},
    {.name = "megrez", .patterns = {QWEN2}},
    {.name = "hunyuan", .patterns = {QWEN2}},
    {.name = "qwen35", .patterns = {QWEN35}},
    {.name = "deepseek-v3",
     .patterns = {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+", DEEPSEEK3}},
    {.name = "deepseek-coder", .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", IDEOGRAPHS, ONE_NUMBER}},
    {.name = "falcon", .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
};

hunch_status hn_pretok_find(const hn_pretok_kind **out, const char *name, size_t len, hunch_error *err) {
    char known[700];
    size_t used = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0) {
            *out = &kinds[i];
            return HUNCH_OK;
        }
        size_t n = strlen(kinds[i].name);
        if (used + n + 3 > sizeof known) continue;
        if (used) used += (size_t)(stpcpy(known + used, ", ") - (known + used));
        memcpy(known + used, kinds[i].name, n + 1);
        used += n;
    }
    return hn_fail(err, HUNCH_REFUSED, "tokenizer.ggml.pre: unknown pre-tokenizer \"%.*s\", expected one of %s",
                   len < 60 ? (int)len : 60, name, known);
}

/* A scanner looks for the next match from `at` on. MATCH: it is [*from, *to). ASK: only PCRE2 can tell, from *from on
 * (no match starts before it). */
enum scan { NONE, MATCH, ASK };
typedef enum scan scanner(const char *text, size_t at, size_t end, size_t *from, size_t *to);

typedef struct pattern {
    pcre2_code *code;
    scanner *scan; /* NULL: always PCRE2 */
} pattern;

struct hn_pretok {
    pcre2_general_context *memory;
    size_t n;
    pattern patterns[HN_PRETOK_MAX_PATTERNS];
};

struct hn_pretok_work {
    pcre2_general_context *memory;
    pcre2_match_context *context;
    pcre2_match_data *match;
    pcre2_jit_stack *stack;
};

enum { LETTER = 1, DIGIT = 2, SPACE = 4, WIDE = 8 }; /* classes of a byte; 0: other ASCII */

static inline unsigned class_of(char c) {
    unsigned char u = (unsigned char)c;
    if ((unsigned)(u | 0x20) - 'a' < 26) return LETTER;
    if ((unsigned)u - '0' < 10) return DIGIT;
    if (u == ' ' || (u >= 9 && u <= 13)) return SPACE;
    return u >= 0x80 ? WIDE : 0;
}

/* \p{N} */
static enum scan scan_number(const char *text, size_t at, size_t end, size_t *from, size_t *to) {
    for (; at < end; at++) {
        unsigned class = class_of(text[at]);
        if (!(class & (DIGIT | WIDE))) continue;
        *from = at;
        *to = at + 1;
        return class == DIGIT ? MATCH : ASK;
    }
    return NONE;
}

/* Length of 's 't 'm 'd 're 've 'll at s, which is an apostrophe with n bytes; 0: none. */
static size_t contraction(const char *s, size_t n) {
    if (n < 2) return 0;
    if (strchr("stmd", s[1]) && s[1]) return 2;
    if (n < 3) return 0;
    return (s[1] == 'r' && s[2] == 'e') || (s[1] == 'v' && s[2] == 'e') || (s[1] == 'l' && s[2] == 'l') ? 3 : 0;
}

/* GPT2: every place of a text starts a match, so *from is always `at`. */
static enum scan scan_gpt2(const char *text, size_t at, size_t end, size_t *from, size_t *to) {
    if (at == end) return NONE;
    *from = at;
    if (text[at] == '\'') {
        size_t n = contraction(text + at, end - at);
        if (n) {
            *to = at + n;
            return MATCH;
        }
    }
    size_t i = at + (text[at] == ' ');
    unsigned class = i < end ? class_of(text[i]) : SPACE;
    if (class == WIDE) return ASK;
    if (class == SPACE) i = at;
    size_t first = i;
    while (i < end && class_of(text[i]) == class) i++;
    if (i < end && class_of(text[i]) == WIDE) return ASK; /* may belong to the run */
    if (class == SPACE && i < end && i - first > 1) i--;  /* the last space goes with what follows, or stands alone */
    *to = i;
    return MATCH;
}

static scanner *scanner_of(const char *text) {
    if (strcmp(text, ONE_NUMBER) == 0) return scan_number;
    return strcmp(text, GPT2) == 0 ? scan_gpt2 : NULL;
}

static void *pcre_alloc(size_t size, void *user) {
    (void)user;
    return hn_alloc(size);
}

static void pcre_free(void *p, void *user) {
    (void)user;
    hn_free(p);
}

static hunch_status pattern_open(pattern *p, const char *text, pcre2_general_context *memory, hunch_error *err) {
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    if (!context) return hn_fail_memory(err, "a pre-tokenizer pattern", 0);
    pcre2_set_parens_nest_limit(context, 100);
    p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                            &code, &at, context);
    pcre2_compile_context_free(context);
    if (!p->code) {
        if (code == PCRE2_ERROR_HEAP_FAILED) return hn_fail_memory(err, "a pre-tokenizer pattern", 0);
        char why[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return hn_fail(err, HUNCH_REFUSED, "pre-tokenizer pattern \"%.200s\": %s at byte %zu", text, why, (size_t)at);
    }
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* where there is none, PCRE2 interprets */
    p->scan = scanner_of(text);
    return HUNCH_OK;
}

hunch_status hn_pretok_open(hn_pretok **out, const char *const *patterns, size_t n, hunch_error *err) {
    *out = NULL;
    if (n > HN_PRETOK_MAX_PATTERNS) {
        return hn_fail(err, HUNCH_REFUSED, "pre-tokenizer of %zu patterns, at most %d are read", n,
                       HN_PRETOK_MAX_PATTERNS);
    }
    hn_pretok *p = hn_zalloc(1, sizeof *p);
    if (p) p->memory = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    hunch_status s = p && p->memory ? HUNCH_OK : hn_fail_memory(err, "the pre-tokenizer", sizeof *p);
    for (; s == HUNCH_OK && p->n < n; p->n += s == HUNCH_OK)
        s = pattern_open(&p->patterns[p->n], patterns[p->n], p->memory, err);
    if (s == HUNCH_OK)
        *out = p;
    else
        hn_pretok_close(&p);
    return s;
}

void hn_pretok_close(hn_pretok **p) {
    if (!*p) return;
    for (size_t i = 0; i < (*p)->n; i++) pcre2_code_free((*p)->patterns[i].code);
    pcre2_general_context_free((*p)->memory);
    hn_free(*p);
    *p = NULL;
}

hunch_status hn_pretok_work_open(hn_pretok_work **out, hunch_error *err) {
    hn_pretok_work *w = *out = hn_zalloc(1, sizeof *w);
    if (w) w->memory = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    if (w && w->memory) {
        w->context = pcre2_match_context_create(w->memory);
        w->match = pcre2_match_data_create(1, w->memory);
    }
    if (w && w->context && w->match) {
        w->stack = pcre2_jit_stack_create(32 << 10, 1 << 20, w->memory);
        if (w->stack) pcre2_jit_stack_assign(w->context, NULL, w->stack); /* without JIT there is none */
        return HUNCH_OK;
    }
    hn_pretok_work_close(out);
    return hn_fail_memory(err, "the pre-tokenizer's work area", sizeof *w);
}

void hn_pretok_work_close(hn_pretok_work **w) {
    if (!*w) return;
    pcre2_jit_stack_free((*w)->stack);
    pcre2_match_data_free((*w)->match);
    pcre2_match_context_free((*w)->context);
    pcre2_general_context_free((*w)->memory);
    hn_free(*w);
    *w = NULL;
}

typedef struct split {
    const hn_pretok *p;
    hn_pretok_work *w;
    hn_word_fn *word;
    void *user;
} split;

/* The next match that is not empty, by PCRE2. */
static hunch_status ask(const split *s, const pattern *p, const char *text, size_t at, size_t end, bool *found,
                        size_t *from, size_t *to, hunch_error *err) {
    int n = pcre2_match(p->code, (PCRE2_SPTR)text, end, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, s->w->match,
                        s->w->context);
    if (n == PCRE2_ERROR_NOMEMORY || n == PCRE2_ERROR_HEAPLIMIT)
        return hn_fail_memory(err, "a pre-tokenizer pattern", 0);
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) {
        return hn_fail(err, HUNCH_FAILED, "the pre-tokenizer's pattern gave up at byte %zu (PCRE2 error %d)", at, n);
    }
    *found = n >= 0;
    if (!*found) return HUNCH_OK;
    const PCRE2_SIZE *where = pcre2_get_ovector_pointer(s->w->match);
    *from = where[0];
    *to = where[1];
    if (*from < at || *to <= *from || *to > end) { /* \K inside a lookaround could say so */
        return hn_fail(err, HUNCH_REFUSED, "a pre-tokenizer pattern matches outside its place");
    }
    return HUNCH_OK;
}

static hunch_status cut(const split *s, size_t level, const char *text, size_t len, hunch_error *err) {
    if (len == 0) return HUNCH_OK;
    if (level == s->p->n) return s->word(s->user, text, len, err);
    const pattern *p = &s->p->patterns[level];
    hunch_status status = HUNCH_OK;
    for (size_t at = 0; at < len && status == HUNCH_OK;) {
        size_t from = at, to = at;
        enum scan found = p->scan ? p->scan(text, at, len, &from, &to) : ASK;
        if (found == ASK) {
            bool any;
            status = ask(s, p, text, from, len, &any, &from, &to, err);
            if (status != HUNCH_OK) return status;
            found = any ? MATCH : NONE;
        }
        if (found == NONE) from = to = len;
        status = cut(s, level + 1, text + at, from - at, err);
        if (status == HUNCH_OK) status = cut(s, level + 1, text + from, to - from, err);
        at = to;
    }
    return status;
}

hunch_status hn_pretok_split(const hn_pretok *p, hn_pretok_work *w, const char *text, size_t len, hn_word_fn *word,
                             void *user, hunch_error *err) {
    split s = {p, w, word, user};
    return cut(&s, 0, text, len, err);
}
