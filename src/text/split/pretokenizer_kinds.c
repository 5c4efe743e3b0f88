/* SPDX-License-Identifier: Apache-2.0 */
/* pretokenizer_kinds.c - the pre-tokenizers that GGUF files name (tokenizer.ggml.pre), as patterns.
 *
 * A tokenizer.json contains its patterns; a GGUF file has only a name that its converter recognised. The patterns are those
 * of the models' own tokenizers, in PCRE2's syntax.
 */
#include <string.h>

#include "text/split/pretokenizer.h"

#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES "\\s+(?!\\S)|\\s+"
#define LINES "\\s*[\\r\\n]+|" SPACES
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES
#define ONE_NUMBER "\\p{N}"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SYMBOLS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define LLAMA3_BUT(numbers) CONTRACTION "|" LETTERS "|" numbers "|" SYMBOLS "|" LINES
#define LLAMA3 LLAMA3_BUT("\\p{N}{1,3}")
#define QWEN2 LLAMA3_BUT("\\p{N}")
#define QWEN35                                                                                                         \
    CONTRACTION                                                                                                        \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES
#define ASCII_SYMBOL "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK3_START ASCII_SYMBOL "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
#define DEEPSEEK3 DEEPSEEK3_START "[\\r\\n]*|" LINES
#define CHINESE_JAPANESE "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
#define IDEOGRAPHS "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define ASIAN                                                                                                          \
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{3040}-\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}" \
    "\\x{0E40}-\\x{0EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}" \
    "\\x{1100}-\\x{11FF}]+"
/* Words that may begin with capitals: an upper-case and a lower-case part, of which one may be empty. */
#define CASED(upper, lower, tail)                                                                                      \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower "*" tail
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define PATH_SYMBOLS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define NOT_HAN(class) "(?:(?!\\p{Han})" class ")"
#define KIMI "\\p{Han}+|" CASED(NOT_HAN(UPPER), NOT_HAN(LOWER), CONTRACTION "?") "|\\p{N}{1,3}|" SYMBOLS "|" LINES
#define GPT4O CASED(UPPER, LOWER, CONTRACTION "?") "|\\p{N}{1,3}|" PATH_SYMBOLS "|" LINES
#define TEKKEN CASED(UPPER, LOWER, "") "|\\p{N}|" PATH_SYMBOLS "|" LINES
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{0964}\\x{06D4}\\x{060C})]+"
#define BAILING                                                                                                        \
    "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*" \
    "|\\s*[\\r\\n]|" SPACES
#define EXAONE_MOE                                                                                                     \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?"  \
                "|\\s*[\\r\\n]|" SPACES
#define HALVED_SPACES(n) "\\s{" n "}(?!\\S)|"
#define JAIS2                                                                                                          \
    CONTRACTION "|" LETTERS "|\\p{N}{1,3}|" SYMBOLS "|\\s*[\\r\\n]+|" HALVED_SPACES("512") HALVED_SPACES("256")        \
        HALVED_SPACES("128") HALVED_SPACES("64") HALVED_SPACES("32") HALVED_SPACES("16") HALVED_SPACES("8")            \
            HALVED_SPACES("4") HALVED_SPACES("1,2") "\\s"
/* Of deepseek-llm: cased letters, in the ranges of its tokenizer. */
#define CASED_LETTERS                                                                                                  \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}"   \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"     \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}"       \
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-"        \
    "\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}"         \
    "\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-"          \
    "\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"         \
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}"  \
    "\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}" \
    "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-"         \
    "\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"         \
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"              \
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define DEEPSEEK_LLM_SYMBOLS "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"

const char *const hn_pretok_gpt2 = GPT2;

/* The names are those in files, with spaces between those of one entry. */
static const hn_pretok_kind kinds[] = {
    {.names = "default", .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {.names = "gpt-2 phi-2 olmo mpt jais gigachat exaone4 trillion granite-docling mellum a.x-4.0 modern-bert "
              "roberta-bpe jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code",
     .patterns = {GPT2}},
    {.names = "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", .patterns = {ONE_NUMBER, GPT2}},
    {.names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     .patterns = {LLAMA3},
     .ignore_merges = true,
     .adds_bos = true},
    {.names = "dbrx smaug-bpe glm4 chatglm-bpe", .patterns = {LLAMA3}},
    {.names = "jais-2", .patterns = {JAIS2}},
    {.names = "qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan kormo f2llmv2 solar-open grok-2", .patterns = {QWEN2}},
    {.names = "qwen35", .patterns = {QWEN35}},
    {.names = "seed-coder", .patterns = {CONTRACTION "|" LETTERS "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES}},
    {.names = "bailingmoe bailingmoe2 llada-moe", .patterns = {BAILING}},
    {.names = "exaone-moe", .patterns = {EXAONE_MOE}},
    {.names = "minicpm5", .patterns = {"\\p{N}{1,3}", LLAMA3_BUT("\\p{N}+")}, .ignore_merges = true},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm hy_v4", .patterns = {"\\p{N}{1,3}", CHINESE_JAPANESE, DEEPSEEK3}},
    {.names = "spark2_5",
     .patterns = {"\\p{N}{1,3}", CHINESE_JAPANESE, DEEPSEEK3_START "|[\\r\\n]|" SPACES, ONE_NUMBER}},
    {.names = "afmoe", .patterns = {"\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))", ASIAN, DEEPSEEK3}},
    {.names = "deepseek-coder", .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", IDEOGRAPHS, ONE_NUMBER}},
    {.names = "deepseek-llm",
     .patterns = {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", DEEPSEEK_LLM_SYMBOLS, "\\s+$", IDEOGRAPHS, "\\p{N}+"}},
    {.names = "falcon", .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.names = "gpt-4o llama4 kanana2 minimax-m2 talkie", .patterns = {GPT4O}},
    {.names = "youtu",
     .patterns =
         {"[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}"
          "\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+"
          "|" CHINESE_JAPANESE,
          CASED(UPPER, LOWER, CONTRACTION "?") "|\\p{N}|" PATH_SYMBOLS "|" LINES},
     .ignore_merges = true},
    {.names = "laguna", .patterns = {"\\n+", QWEN2}},
    {.names = "kimi-k2", .patterns = {KIMI}},
    {.names = "tekken", .patterns = {TEKKEN}, .ignore_merges = true, .adds_bos = true},
    {.names = "tiny_aya cohere2moe", .patterns = {"\\d{1,3}(?=(?:\\d{3})*(?![\\p{L}\\p{M}\\p{Nd}\\p{Pc}]))", GPT4O}},
    {.names = "bloom poro-chat gpt3-finnish", .patterns = {BLOOM}},
    {.names = "viking", .patterns = {BLOOM, ONE_NUMBER}},
    {.names = "chameleon",
     .patterns = {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", ONE_NUMBER, "[\\p{P}!-/:-@\\[-`{-~]",
                  GPT2},
     .adds_bos = true},
    {.names = "gemma4 granite-embed-multi-311m sarvam-moe", .patterns = {"\\n+"}, .marks = true},
};

/* True if the word is in the list, which is separated by spaces. */
static bool lists(const char *list, const char *word, size_t len) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, word, n) == 0) return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* Lists the first name of each entry. */
static hunch_status fail_unknown(const char *name, size_t len, hunch_error *err) {
    char known[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strcspn(kinds[i].names, " ");
        if (used + n + 3 > sizeof known) continue;
        if (used) used += (size_t)(stpcpy(known + used, ", ") - (known + used));
        memcpy(known + used, kinds[i].names, n);
        used += n;
        known[used] = '\0';
    }
    return hn_fail(
        err, HUNCH_REFUSED,
        "tokenizer.ggml.pre: unknown pre-tokenizer \"%.*s\", expected one of %s, or another name of the same patterns",
        len < 60 ? (int)len : 60, name, known);
}

hunch_status hn_pretok_find(const hn_pretok_kind **out, const char *name, size_t len, hunch_error *err) {
    for (size_t i = 0; len && i < sizeof kinds / sizeof *kinds; i++) {
        if (!lists(kinds[i].names, name, len)) continue;
        *out = &kinds[i];
        return HUNCH_OK;
    }
    return fail_unknown(name, len, err);
}

hunch_status hn_pretok_open_kind(hn_pretok **out, const hn_pretok_kind *kind, hunch_error *err) {
    hn_pretok_step steps[HN_PRETOK_MAX_PATTERNS];
    size_t n = 0;
    for (; n < HN_PRETOK_MAX_PATTERNS && kind->patterns[n]; n++)
        steps[n] = (hn_pretok_step){.kind = HN_PRETOK_SPLIT, .pattern = kind->patterns[n]};
    return hn_pretok_open(out, steps, n, err);
}
