/* SPDX-License-Identifier: Apache-2.0 */
/* tool_train_kinds.h - the kinds of draft heads that can be trained, their only list: the command's help and completion are made from it,
 * and the trainer's table (src/train/learn/learn_kind.c). */
#ifndef HN_TOOL_TRAIN_KINDS_H
#define HN_TOOL_TRAIN_KINDS_H

/* KIND(id, name, about): hn_learn_ID of src/train/ is the training of one, its name that of the command line. */
#define TOOL_TRAIN_KINDS(KIND)                                                                                   \
    KIND(eagle3, "eagle3", "a head of EAGLE-3, by training-time test")                                           \
    KIND(eagle, "eagle", "a head of EAGLE-1 and -2, by the steps of HASS")                                       \
    KIND(mtp, "mtp", "a module of multi-token prediction, chained")                                              \
    KIND(peagle, "peagle", "a head of P-EAGLE: EAGLE-3 that drafts all its tokens in one pass")                  \
    KIND(dart, "dart", "a head of DART: a layer that drafts all its tokens in one pass, for trees")              \
    KIND(dflash, "dflash", "a head of DFlash: a block of tokens in one pass")                                    \
    KIND(dspark, "dspark", "a head of DSpark: DFlash's, where each token also depends on the one before it")     \
    KIND(jetspec, "jetspec", "a head of JetSpec: DFlash's, where each place sees only those before it")           \
    KIND(domino, "domino", "a head of Domino: DFlash's, where each token also depends on all drafted before it")  \
    KIND(medusa, "medusa", "Medusa's heads, a block and an output matrix for each position")                     \
    KIND(hydra, "hydra", "Hydra's heads, which also read the tokens drafted before them")                        \
    KIND(mlp, "mlp", "IBM's speculator, a state of its own that reads the tokens")                               \
    KIND(meta_mtp, "meta-mtp", "Meta's further heads, a layer for each position after the model's trunk")        \
    KIND(falcon, "falcon", "a head of Falcon: an LSTM before a layer, several tokens per pass")                  \
    KIND(student, "model", "a draft model: some layers of the model, or of --init, distilled")

#endif
