/* SPDX-License-Identifier: Apache-2.0 */
/* head_help.h - help for the keys of many kinds of draft heads (drafter_help.h); what they mean: head_drafter.h. Of all kinds:
 * HN_HELP_HEAD, of heads that draft all levels at once HN_HELP_AT_ONCE, of those with other trees HN_HELP_TREES. */
#ifndef HN_HEAD_HELP_H
#define HN_HEAD_HELP_H

#define HN_HELP_HEAD HN_HELP_TREES("chain|dynamic|opt|fitted|sequoia|NAME|FILE")
#define HN_HELP_AT_ONCE HN_HELP_TREES("chain|dynamic|best|expanded|pruned|fitted|sequoia|NAME|FILE")
#define HN_HELP_TREES(trees)                                                                                                          \
    {"depth", "1..63", "levels drafted, default 5"},                                                                                  \
    {"tree", trees,                                                                                                                   \
     "chain; the likeliest paths by levels, by their worth, best first, JetSpec's expanded or DART's pruned ones; "                   \
     "fitted to ranks; a published tree; or one of JSON; default chain"},                                                             \
    {"trie", "FILE", "of tree pruned, of heads that draft all at once: n-grams that hunch train trie counted"},                       \
    {"topk", "1..16",                                                                                                                 \
     "of dynamic, opt: nodes that go on at a level, and their successors; of best, expanded: tokens of a level; "                     \
     "default 10, expanded 7"},                                                                                                       \
    {"total", "1..63", "of all those but a chain, NAME and FILE: nodes that are verified, default 59, pruned 60"},                    \
    {"gain", "0..64", "of opt: a level is the last that brings no more tokens than that, default 0.2"},                               \
    {"ranks", "FILE", "of fitted, sequoia: how often each rank was right, from compare --json"},                                      \
    {"min_p", "0..1", "no token whose path is less probable by the head; default 0, of chains what its file says"},                   \
    {"pick", "drawn|best", "under sampling: drawn with the request's own noise, or the likeliest; default drawn"},                    \
    {"weights", "q8_0|q4_0|bf16|f32", "how the head's matrices are kept; default q8_0, of f32 models as they are"},                   \
    {"kv", "bf16|f16|f32", "of the head's cache, that of the target by default"},                                                     \
    {"vocab", "1..", "of heads without a reduced vocabulary: draft that many tokens, the likeliest"},                                 \
    {"ids", "FILE", "with vocab: token ids, likeliest first, in JSON, one behind another, or of torch.save"},                         \
    {"texts", "FILE", "with vocab: text, or .jsonl rows, in which tokens are counted; default the tokenizer's order"},                \
    {"force", "A[/B...]", "for measuring: the head runs, then its likeliest token is right with that probability, 0..1, the next with B"}

#define HN_HELP_LAST {"last", "normed|raw", "the last state that is read: behind the final norm (default) or before it"}
#define HN_HELP_TAPS                                                                                                                  \
    {"taps", "LOW:MID:HIGH", "layers whose entering states are read, such as 2:16:29; default the head's own"},                       \
    {"residual", "normed|plain", "overrides the head's norm_before_residual"},                                                        \
    {"output", "normed|plain", "overrides its norm_output"},                                                                          \
    {"fc_norms", "on|off", "the norms before fc that it has; default on"}
#endif
