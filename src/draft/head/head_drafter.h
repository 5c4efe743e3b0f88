/* SPDX-License-Identifier: Apache-2.0 */
/* head_drafter.h - common to the drafters whose head has rows of its own: options, the life of a sequence, chains and trees. The head
 * continues from its own output, a token a level (EAGLE-1, -2, -3, HASS, MTP), or drafts all levels in one pass (P-EAGLE, DART). Each kind
 * has a file of its own that describes its head.
 *
 *   KIND:PATH[,depth=K][,tree=chain|dynamic|opt|best|expanded|pruned|fitted|sequoia|NAME|FILE][,trie=FILE][,topk=W][,total=N][,gain=G]
 *             [,ranks=FILE][,min_p=P][,pick=drawn|best][,weights=q8_0|q4_0|bf16|f32][,kv=bf16|f16|f32]
 *             [,vocab=N[,ids=FILE|,texts=FILE]][,force=A[/B...]]
 *
 *   PATH      the head's folder or file
 *   depth     levels a round                                                                        5
 *   tree      chain; dynamic: EAGLE-2's, the likeliest paths; opt: OPT-Tree's, as long as a level is worth it, of heads that continue
 *             from each token; best: the likeliest paths of heads that draft all levels at once; of such heads, too, expanded: JetSpec's,
 *             whose likeliest nodes get all topk successors, and pruned: DART's (tree_pruned.h); fitted, sequoia: fixed, by measured
 *             ranks; or a fixed shape (head_tree.h)                                                   chain; with trie pruned
 *   trie      of a pruned tree: n-grams of a corpus (ngram_trie.h)                                  none
 *   topk      of dynamic and opt: nodes of a level that are expanded, and successors of each; of best, expanded: tokens of a
 *             level                                                                                   10; of expanded 7
 *   total     of all those but a chain and NAME or FILE: nodes that are verified                    59; pruned 60
 *   gain      of opt: a level is the last one if it adds no more tokens than that                   0.2
 *   ranks     of fitted, sequoia: file measured by hunch compare --json
 *   min_p     least probability of a token's path by the head's own distribution; if tokens are drawn from it,
 *             a path ends after a place whose likeliest token is below it, whichever was drawn  0; of chains without auto the head's own
 *   pick      under sampling, of chains and fixed shapes if the rule needs no distribution (match): tokens
 *             drawn with the request's own noise, or the likeliest                                  drawn
 *   weights   how matrices of floats are packed                                                     q8_0; under f32 as they are
 *   kv        type of the head's cache rows                                                         as the target's
 *   vocab     of a head without d2t: drafts only this many tokens, the likeliest (token_ranks.h)    all
 *   ids, texts  with vocab: which are likely, a file of ids or of text                              by the tokenizer
 *   force     the head runs, then its likeliest token is replaced by the right one with probability A, its second one with B, and so on,
 *             else by wrong ones, and these numbers are its estimates: to separate overhead from acceptance
 */
#ifndef HN_HEAD_DRAFTER_H
#define HN_HEAD_DRAFTER_H
#include "draft/drafter.h"
#include "model/head/head.h"

/* The states of the target that a head reads. */
typedef struct hn_head_taps {
    int n;
    int boundary[HN_MOST_HEAD_FEATURES]; /* layers whose entering state is read, or HN_FEATURE_POST_NORM */
} hn_head_taps;

/* Layers of a target that is not known, while a head is converted without it: they are checked when the head is opened. */
enum { HN_ANY_LAYERS = 256 };

/* HUNCH_REFUSED if a head reads states that the target does not have, or of another width. */
hunch_status hn_head_check_taps(const hn_arch *a, const hn_source *src, const hn_head_taps *t, const hn_target_info *target,
                                hunch_error *err);

/* HUNCH_REFUSED if a file's names are of a head with weights for each position and the kind's heads have none, or the reverse. */
hunch_status hn_head_check_form(const hn_source *src, const hn_head_names *names, const char *kind, hunch_error *err);

/* Where a head has the embeddings of its tokens from; one that reads states alone has none. */
typedef enum hn_head_embedding { HN_EMBEDDING_NONE, HN_EMBEDDING_OWN, HN_EMBEDDING_MODEL } hn_head_embedding;
hn_head_embedding hn_head_embedding_of(const hn_head_desc *d);

/* A description of an open head in one line, to be freed. types: with the types of its packed matrices. */
hunch_status hn_head_about(char **out, const hn_spec *spec, const hn_model *head, const hn_head_taps *taps,
                           const hn_target_info *target, bool types, hunch_error *err);

bool hn_head_reads_word(const char *key, const char *value); /* a tree that is not a file: chain, dynamic, a published one */

/* The operations of all draft heads: open reads the head as the kind's `describe` says. HN_HEAD_KIND: what a kind's hn_drafter_kind has
 * beside its name and its facts. */
extern const hn_drafter_ops hn_head_drafter_ops;
#define HN_HEAD_KIND                                                                                                                  \
    .path_is_model = true, .reads = {"tree", "ranks", "trie", "ids", "texts"}, .reads_word = hn_head_reads_word, .ops = &hn_head_drafter_ops
#endif
