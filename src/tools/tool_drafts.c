/* SPDX-License-Identifier: Apache-2.0 */
/* tool_drafts.c - see tool_drafts.h: the table of kinds and its lookup. */
#include "tool_drafts.h"

#include <string.h>

const char tool_drafts_text[] =
    "A SPEC is KIND[:PATH][,key=value...]. Several joined by + propose together, and the model checks all of it in one "
    "pass: --draft ngram+suffix,mode=tree. The text is always the one that the model generates without drafts. Under "
    "`run` and `chat` several --draft are one method; under `compare` each is a method of its own. A + in a PATH is "
    "part of it, unless the name of a kind follows.";

#define HEAD_KEYS HEAD_KEYS_OF("chain|dynamic|opt|fitted|sequoia|NAME|FILE")
#define AT_ONCE_KEYS HEAD_KEYS_OF("chain|dynamic|best|pruned|fitted|sequoia|NAME|FILE")
#define HEAD_KEYS_OF(trees)                                                                                            \
    {"depth", "1..63", "levels drafted, default 5"},                                                                   \
    {"tree", trees,                                                                                                    \
     "chain; the likeliest paths by levels, by their worth, best first, or DART's pruned ones; fitted to ranks; a "    \
     "published tree; or one of JSON; default chain"},                                                                 \
    {"trie", "FILE", "of tree pruned, of heads that draft all at once: n-grams that hunch train trie counted"},        \
    {"topk", "1..16",                                                                                                  \
     "of dynamic, opt: nodes that go on at a level, and their successors; of best: tokens of a level; default 10"},    \
    {"total", "1..63", "of all those but a chain, NAME and FILE: nodes that are verified, default 59, pruned 60"},     \
    {"gain", "0..64", "of opt: a level is the last that brings no more tokens than that, default 0.2"},                \
    {"ranks", "FILE", "of fitted, sequoia: how often each rank was right, from compare --json"},                       \
    {"min_p", "0..1", "no token whose path is less probable by the head's own distribution, default 0"},                        \
    {"pick", "drawn|best", "under sampling: drawn with the request's own noise, or the likeliest; default drawn"},     \
    {"weights", "q8_0|q4_0|bf16|f32", "how the head's matrices are kept; default q8_0, of f32 models as they are"},    \
    {"kv", "bf16|f16|f32", "of the head's cache, that of the target by default"},                                      \
    {"vocab", "1..", "of heads without a reduced vocabulary: draft that many tokens, the likeliest"},                  \
    {"ids", "FILE", "with vocab: token ids, likeliest first, in JSON, one behind another, or of torch.save"},         \
    {"texts", "FILE", "with vocab: text, or .jsonl rows, in which tokens are counted; default the tokenizer's order"}, \
    {"force", "A[/B...]", "for measuring: the head runs, then its likeliest token is right with that probability, 0..1, the next with B"}

#define LAST_KEY {"last", "normed|raw", "the last state that is read: behind the final norm (default) or before it"}
#define TAPS_KEYS                                                                                                      \
    {"taps", "LOW:MID:HIGH", "layers whose entering states are read, such as 2:16:29; default the head's own"},        \
    {"residual", "normed|plain", "overrides the head's norm_before_residual"},                                         \
    {"output", "normed|plain", "overrides its norm_output"},                                                           \
    {"fc_norms", "on|off", "the norms before fc that it has; default on"}

const tool_draft_kind tool_draft_kinds[] = {
    {"auto", NULL, "ngram and suffix, and a draft head that lies beside the model (NAME.head.gguf, or head.gguf in its "
     "folder); each round a controller decides which of their rows are worth verifying, or none (run --why prints it). "
     "The default", {{NULL, NULL, NULL}}},
    {"none", NULL, "plain decoding", {{NULL, NULL, NULL}}},
    {"ngram", NULL, "the continuation of an earlier occurrence of the last tokens in this text",
     {{"form", "recent|pld|hf|longest|simple|map-k|map-k4v|mod", "how places are found and chosen; default recent"},
      {"min", "1..32", "tokens that must agree; of form mod the shortest draft, to 63"},
      {"max", "1..32", "tokens that are looked for at most"},
      {"depth", "1..63", "tokens drafted at most; by form 8 to 63"},
      {"grow", "0.1..63", "of form recent: tokens drafted for each that agrees, default 1"}}},
    {"suffix", NULL, "suffixes of this text and of earlier ones, with their counts",
     {{"mode", "path|tree", "one likeliest path, or branches; default path"},
      {"depth", "1..63", "tokens drafted at most, default 16"},
      {"window", "2..64", "tokens of a suffix at most, default 64"},
      {"factor", "0..64", "depth for each token that matches, default 1"},
      {"offset", "-64..64", "and that much more, default 0"},
      {"min_p", "0..1", "tokens less likely than that are not drafted, default 0.3"},
      {"max_texts", "0..1000000", "earlier texts that are kept, default 10000"},
      {"mib", "1..65536", "memory for them, default 64"},
      {"text", "256..16777216", "tokens of a text that are kept, default 131072"}}},
    {"cache", "[:FILE]",
     "n-gram counts of this text, of earlier ones, and of a FILE in llama.cpp's lookup-cache format",
     {{"dynamic", "FILE", "counts of earlier texts to begin with"},
      {"save", "FILE", "where they go at the end"},
      {"depth", "1..63", "tokens drafted at most, default 8"},
      {"mib", "1..1048576", "memory for counts, default 64"}}},
    {"prediction", "[:FILE]",
     "the text of FILE, or the \"prediction\" of a prompt's row; survives insertions, deletions, renames",
     {{"depth", "1..63", "tokens drafted at most, default 16"},
      {"window", "1..1024", "tokens within which it finds its position again, default 64"}}},
    {"model", ":MODEL", "a smaller model of the same vocabulary",
     {{"precision", "native|f32", "that of the target by default"},
      {"kv", "bf16|f16|f32", "that of the target by default"},
      {"depth", "1..63", "tokens drafted, default 5"}}},
    {"eagle", ":HEAD", "a draft head of EAGLE-1 or EAGLE-2 for this model: reads the model's last hidden states",
     {LAST_KEY, HEAD_KEYS}},
    {"hass", ":HEAD", "the same for heads trained as HASS", {LAST_KEY, HEAD_KEYS}},
    {"eagle3", ":HEAD",
     "a draft head of EAGLE-3: reads several layers of the model, may draft a part of the vocabulary",
     {TAPS_KEYS, HEAD_KEYS}},
    {"peagle", ":HEAD", "a draft head of P-EAGLE: as EAGLE-3's, but drafts all its tokens in one pass",
     {TAPS_KEYS, AT_ONCE_KEYS}},
    {"dart", ":HEAD", "a draft head of DART: rows as EAGLE-3's, all its tokens in one pass",
     {{"norm", "twice|once", "the norm before its output matrix; default twice, as released"}, TAPS_KEYS,
      AT_ONCE_KEYS}},
    {"falcon", ":HEAD", "a draft head of Falcon: as EAGLE-1's, but drafts k tokens a pass",
     {LAST_KEY, HEAD_KEYS_OF("chain|NAME|FILE")}},
    {"mtp", ":HEAD",
     "a module of multi-token prediction: one layer that drafts any depth; without HEAD that of the model's own file",
     {LAST_KEY, HEAD_KEYS}},
    {"medusa", ":HEAD", "Medusa's heads: each drafts one of the next tokens, all in one pass",
     {LAST_KEY, AT_ONCE_KEYS}},
    {"hydra", ":HEAD", "Hydra's: the same, but each reads the tokens drafted before it", {LAST_KEY, HEAD_KEYS}},
    {"mlp", ":HEAD", "IBM's and Arctic's speculators: a state of their own and a token make the next one",
     {LAST_KEY, HEAD_KEYS}},
    {"meta-mtp", ":HEAD",
     "the further heads of Meta's models that predict several tokens: a layer each, all in one pass", {AT_ONCE_KEYS}},
    {"dflash", ":HEAD", "a draft head of DFlash: drafts a block of tokens in one pass",
     {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"},
      AT_ONCE_KEYS}},
    {"dspark", ":HEAD", "a draft head of DSpark: DFlash's, where each token also depends on the one drafted before it",
     {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"},
      {"min_confidence", "0..1",
       "drafting stops at the first position with less confidence, default 0"}, HEAD_KEYS}},
    {"forced", NULL, "for tests: right with a given probability, by looking at the plain answer",
     {{"accept", "0..1", "that probability, default 1"},
      {"depth", "1..63", "tokens drafted, default 4"},
      {"tree", "shaped|random", "its shape, default shaped"},
      {"width", "1..16", "children of a node"},
      {"seed", "0..", "of its random numbers, default 0"},
      {"cost_us", "0..1000000", "simulated microseconds per draft, default 0"}}},
    {NULL, NULL, NULL, {{NULL, NULL, NULL}}},
};

const tool_draft_kind *tool_draft_kind_find(const char *name, size_t len) {
    const tool_draft_kind *k = tool_draft_kinds;
    while (k->name && (strlen(k->name) != len || memcmp(k->name, name, len) != 0))
        k++;
    return k->name ? k : NULL;
}

const tool_draft_key *tool_draft_key_shared(const tool_draft_key *key) {
    enum { MANY = 10 };
    const tool_draft_key *first = NULL;
    int n = 0;
    for (const tool_draft_kind *k = tool_draft_kinds; k->name; k++)
        for (const tool_draft_key *its = k->keys; its->name; its++) {
            if (strcmp(its->name, key->name) != 0 || strcmp(its->help, key->help) != 0)
                continue;
            if (n++ == 0)
                first = its;
        }
    return n >= MANY ? first : NULL;
}
