/* SPDX-License-Identifier: Apache-2.0 */
/* train_main.c - hunch-train, the program that `hunch train` starts: it trains draft heads for a model. It uses internals of
 * the library, and the command's parser of flags; the library and the command do not use it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "train/cmd_data.h"
#include "train/cmd_learn.h"
#include "train/cmd_trie.h"
#include "train/outputs.h"
#include "train/progress_line.h"
#include "app/tool_train.h"

static volatile int stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
    signal(SIGINT, SIG_DFL); /* the second one exits at once */
}

static hunch_status train(hn_train_options *o, hunch_error *err) {
    const bool data = !strcmp(o->positional, "data"), trie = !strcmp(o->positional, "trie");
    hunch_model_options mo;
    hunch_model *m = NULL;
    hunch_model_options_defaults(&mo);
    mo.threads = o->threads > 0 ? o->threads : 0;
    mo.isa = o->isa;
    mo.text_only = trie;
    const hn_learn_kind *kind = hn_learn_kind_named(o->positional); /* NULL: data or trie */
    hunch_status st = hn_train_outputs_check(o, kind, err);
    if (!st) st = hunch_model_open(&m, o->model, &mo, err);
    if (!st)
        st = data   ? hn_train_data(m, o, &stop, err)
             : trie ? hn_train_trie(m, o, &stop, err)
                    : hn_train_learn(m, kind, o, &stop, err);
    hunch_model_close(&m);
    return st;
}

int main(int argc, char **argv) {
    hn_train_options o;
    hunch_error err = {0};
    const int code = tool_train_parse(&o, argc, argv);
    if (code >= 0) return code;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    const hunch_status st = train(&o, &err);
    tool_options_fini(&o);
    hn_progress_line_wipe();
    return st == HUNCH_CANCELLED ? (tool_failed(&err), 130) : st ? tool_failed(&err) : 0;
}
