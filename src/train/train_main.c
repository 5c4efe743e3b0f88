/* SPDX-License-Identifier: Apache-2.0 */
/* train_main.c - hunch-train, the program that `hunch train` starts: it trains draft heads for a model. It uses internals of
 * the library; the library and the command do not use it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "train/cmd_data.h"
#include "train/cmd_learn.h"
#include "train/cmd_trie.h"
#include "train/outputs.h"

static volatile int stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
    signal(SIGINT, SIG_DFL); /* the second one exits at once */
}

static int fail(const hunch_error *err) {
    fprintf(stderr, "hunch train: %s\n", err->message);
    return err->status == HUNCH_CANCELLED ? 130 : (int)err->status;
}

int main(int argc, char **argv) {
    hn_train_options o;
    hunch_model_options mo;
    hunch_model *m = NULL;
    hunch_error err = {0};
    int code = hn_train_options_parse(&o, argc, argv);
    if (code) return code;
    if (o.help || !o.command) {
        hn_train_options_help(o.help ? stdout : stderr);
        return o.help ? 0 : 2;
    }
    const bool data = !strcmp(o.command, "data"), trie = !strcmp(o.command, "trie");
    const hn_learn_kind *kind = hn_learn_kind_named(o.command);
    if ((!data && !trie && !kind) || !o.model || !o.output) {
        fprintf(stderr, "hunch train: expected data, trie or a kind of head, MODEL, -f FILE... and -o (hunch train --help)\n");
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    hunch_model_options_defaults(&mo);
    mo.threads = o.threads > 0 ? (int)o.threads : 0;
    mo.isa = o.isa;
    mo.text_only = trie;
    hunch_status st = hn_train_outputs_check(&o, kind, &err);
    if (!st) st = hunch_model_open(&m, o.model, &mo, &err);
    if (!st)
        st = data   ? hn_train_data(m, &o, &stop, &err)
             : trie ? hn_train_trie(m, &o, &stop, &err)
                    : hn_train_learn(m, kind, &o, &stop, &err);
    hunch_model_close(&m);
    return st ? fail(&err) : 0;
}
