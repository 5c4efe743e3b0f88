/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h: one table of flags, from which they are read and explained. */
#include "train/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "train/learn_kind.h"

enum { USAGE = 2 };
typedef enum form { TEXT, LIST, NUMBER, SWITCH } form;

#define AT(field) offsetof(hn_train_options, field)
static const struct flag {
    const char *name, *brief, *value;
    form form;
    size_t at;
    double least, most;
    const char *what;
} flags[] = {
    {"--file", "-f", "FILE", LIST, AT(files), 0, 0, "rows or texts; trie: words without a flag are files, too; of a KIND: what data has made, or files, which are made into texts first"},
    {"--model", "-m", "MODEL", TEXT, AT(model), 0, 0, "instead of the word MODEL"},
    {"--output", "-o", "PATH", TEXT, AT(output), 0, 0, "data: the folder of the texts; trie: its file; else the head, with PATH.svg of how it learned beside it"},
    {"--self", NULL, "N", NUMBER, AT(self), 0, 1e8, "data: N prompts of the model's own beside the files'; default 0"},
    {"--leave-out", NULL, "FILE", LIST, AT(leave_out), 0, 0, "data: rows that share every fifth run of eight words with FILE are left out"},
    {"--temperature", NULL, "T", LIST, AT(temperatures), 0, 0, "data: of the answers; repeatable; default 0 and 0.7"},
    {"--tokens", "-n", "N", NUMBER, AT(tokens), 1, 1e6, "data: of an answer at most; default 320"},
    {"--speaker", NULL, "STUDENT", TEXT, AT(speaker), 0, 0, "data: who answers instead of the model, in its tokens: a draft model, to learn from what it says itself"},
    {"--parallel", NULL, "N", NUMBER, AT(parallel), 1, 64, "data: answers at once; default 24"},
    {"--context", NULL, "ROWS", NUMBER, AT(context), 64, 1e6, "data: of a text; default 2048, or the model's"},
    {"--steps", NULL, "N", NUMBER, AT(steps), 0, 1e7, "of the optimiser; 0 writes the head that training begins with"},
    {"--seconds", NULL, "T", NUMBER, AT(seconds), 1, 1e7, "as many steps as fit into that time here, instead"},
    {"--format", NULL, "NAME", TEXT, AT(format), 0, 0, "gguf, or hf: a folder that others read, too, where its kind has one; default by the name of HEAD"},
    {"--type", NULL, "TYPE", TEXT, AT(type), 0, 0, "of a gguf's matrices: q8_0, q4_0, bf16 or f32; default q8_0, as they are packed to draft"},
    {"--vocab", NULL, "N", NUMBER, AT(vocab), 1, 1e7, "tokens that the head drafts, or by whose law it learns (eagle, mtp): the commonest, special ones always; default 8192"},
    {"--taps", NULL, "LOW:MID:HIGH", TEXT, AT(taps), 0, 0, "of eagle3, peagle, dart, dflash: layers whose entering states it reads; default 2, half, all but 3"},
    {"--ffn", NULL, "N", NUMBER, AT(width), 16, 1e6, "width of its feed-forward layer; default the target's"},
    {"--layers", NULL, "N", NUMBER, AT(layers), 1, 64, "of peagle and dflash (to 8; default 1, of dflash 2); of mtp modules in a row, as many as --unroll; of model how many are kept, from the first to the last; default a quarter, with --init all"},
    {"--init", NULL, "STUDENT", TEXT, AT(init), 0, 0, "of model: what it begins as, another model of the same tokens; default the model itself"},
    {"--divergence", NULL, "NAME", TEXT, AT(divergence), 0, 0, "of model: forward, reverse, jsd or tvd; default forward"},
    {"--cell", NULL, NULL, SWITCH, AT(cell), 0, 0, "of mlp: Arctic's form, with a cell"},
    {"--unroll", NULL, "N", NUMBER, AT(unroll), 1, 16, "drafts in a row that it learns; default 3, of peagle and dart 5, of dflash 7"},
    {"--batch", NULL, "ROWS", NUMBER, AT(batch), 64, 65536, "tokens of a step at most; default 2048"},
    {"--length", NULL, "ROWS", NUMBER, AT(length), 16, 65536, "tokens of a text that it learns in one piece; default 512"},
    {"--rate", NULL, "R", NUMBER, AT(rate), 0, 1, "peak of the learning rate; default 0.001"},
    {"--token-share", NULL, "S", NUMBER, AT(token_share), 0, 1, "of what a law is learned by: 0 the model's own law, 1 the token that came; default 0"},
    {"--state-share", NULL, "S", NUMBER, AT(state_share), 0, 100, "of eagle and falcon: weight of the distance to the model's state, beside a tenth for its law; 0: the law alone; default 1"},
    {"--held-out", NULL, "N", NUMBER, AT(held_out), 2, 10000, "texts that it does not learn from and is measured with; default 32"},
    {"--seed", NULL, "S", NUMBER, AT(seed), 0, 1e15, "of everything random; default 0"},
    {"--features", NULL, "WHERE", TEXT, AT(features), 0, 0, "stored or online: on the disk, or taken anew for each batch; default stored where there is room and they are read more than once"},
    {"--threads", NULL, "N", NUMBER, AT(threads), 1, 1024, "default: the cores this process may use"},
    {"--isa", NULL, "LEVEL", TEXT, AT(isa), 0, 0, "instruction level; default best"},
    {"--quiet", "-q", NULL, SWITCH, AT(quiet), 0, 0, "no progress"},
    {"--help", "-h", NULL, SWITCH, AT(help), 0, 0, "this"},
};
enum { N_FLAGS = sizeof flags / sizeof *flags };

static int wrong(const char *what, const char *about) {
    fprintf(stderr, "hunch train: %s: %s\n", about, what);
    return USAGE;
}

static int value_set(hn_train_options *o, const struct flag *f, const char *value) {
    char *at = (char *)o + f->at, *end;
    hn_train_list *list = (hn_train_list *)(void *)at;
    if (f->form == TEXT) {
        *(const char **)(void *)at = value;
        return 0;
    }
    if (f->form == LIST) {
        if (list->n == HN_TRAIN_MOST) return wrong("given too often", f->name);
        list->item[list->n++] = value;
        return 0;
    }
    const double x = strtod(value, &end);
    if (end == value || *end || !(x >= f->least && x <= f->most)) {
        fprintf(stderr, "hunch train: %s %s: expected a number from %g to %g\n", f->name, value, f->least, f->most);
        return USAGE;
    }
    *(double *)(void *)at = x;
    return 0;
}

static const struct flag *flag_named(const char *name) {
    for (int i = 0; i < N_FLAGS; i++)
        if (!strcmp(name, flags[i].name) || (flags[i].brief && !strcmp(name, flags[i].brief))) return &flags[i];
    return NULL;
}

/* Words without a flag: the command, the model, files of a trie. */
static int word_set(hn_train_options *o, const char *word) {
    if (!o->command) {
        o->command = word;
        return 0;
    }
    if (o->n_words == HN_TRAIN_MOST) return wrong("given too often", "words");
    o->word[o->n_words++] = word;
    return 0;
}

/* Flags may stand behind words: which of them is the model is known at the end. */
static int words_place(hn_train_options *o) {
    const bool files = o->command && !strcmp(o->command, "trie");
    int first = 0;
    if (!o->model && o->n_words > 0) o->model = o->word[first++];
    if (first < o->n_words && !files) return wrong("one word too many (hunch train --help)", o->word[first]);
    for (; first < o->n_words; first++) {
        if (o->files.n == HN_TRAIN_MOST) return wrong("given too often", "--file");
        o->files.item[o->files.n++] = o->word[first];
    }
    return 0;
}

int hn_train_options_parse(hn_train_options *o, int argc, char **argv) {
    *o = (hn_train_options){.self = -1, .tokens = -1, .parallel = -1, .context = -1, .threads = -1, .seed = 0, .seconds = -1,
                            .steps = -1, .vocab = -1, .width = -1, .layers = -1, .unroll = -1, .batch = -1, .rate = -1, .length = -1, .held_out = -1, .token_share = -1, .state_share = -1};
    for (int i = 1; i < argc; i++) {
        const struct flag *f = flag_named(argv[i]);
        if (!f && argv[i][0] == '-' && argv[i][1]) return wrong("there is no such flag (hunch train --help)", argv[i]);
        if (!f) {
            const int code = word_set(o, argv[i]);
            if (code) return code;
            continue;
        }
        if (f->form == SWITCH) {
            *(bool *)(void *)((char *)o + f->at) = true;
            continue;
        }
        if (i + 1 == argc) return wrong("expected a value behind it", argv[i]);
        const int code = value_set(o, f, argv[++i]);
        if (code) return code;
    }
    return words_place(o);
}

void hn_train_options_help(FILE *to) {
    fputs("hunch train data MODEL -f FILE... [--self N] -o DIR                     texts in the model's own words\n"
          "hunch train trie MODEL FILE... -o TRIE                                  n-grams of texts, for trees of DART\n"
          "hunch train KIND MODEL -f DIR|FILE... -o HEAD [--seconds T|--steps N]   a head that learns from them\n\n"
          "KIND:\n", to);
    for (int i = 0; hn_learn_kind_at(i); i++) fprintf(to, "  %-10s %s\n", hn_learn_kind_at(i)->name, hn_learn_kind_at(i)->says);
    fputc('\n', to);
    for (int i = 0; i < N_FLAGS; i++) {
        char left[60];
        snprintf(left, sizeof left, "%s%s%s%s%s", flags[i].brief ? flags[i].brief : "", flags[i].brief ? ", " : "", flags[i].name,
                 flags[i].value ? " " : "", flags[i].value ? flags[i].value : "");
        fprintf(to, "  %-24s %s\n", left, flags[i].what);
    }
}
