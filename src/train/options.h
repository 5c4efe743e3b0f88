/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line of hunch-train. */
#ifndef HN_TRAIN_OPTIONS_H
#define HN_TRAIN_OPTIONS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { HN_TRAIN_MOST = 64 };

typedef struct hn_train_list {
    const char *item[HN_TRAIN_MOST];
    int n;
} hn_train_list;

typedef struct hn_train_options {
    const char *command, *model; /* the words without a flag, or by one */
    const char *word[HN_TRAIN_MOST]; /* after the command */
    int n_words;
    hn_train_list files, leave_out, temperatures;
    const char *output, *format, *type, *taps, *features, *isa, *init, *divergence, *speaker, *centroids, *centroid_start, *verifier;
    double self, tokens, parallel, context, threads, seed, seconds, steps, vocab, width, layers, unroll, batch, rate,
        length, held_out, token_share, state_share, on_policy, policy_temperature, refresh;
    bool cell, force, quiet, help;
} hn_train_options;

/* 0, or the exit code after a message. */
int hn_train_options_parse(hn_train_options *o, int argc, char **argv);
void hn_train_options_help(FILE *to);
#endif
