/* SPDX-License-Identifier: Apache-2.0 */
/* head_about.c - the line that describes a draft head's files (head_drafter.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head/head_drafter.h"

static void append(char *to, size_t size, const char *fmt, ...) HN_PRINTF(3, 4);
static void append(char *to, size_t size, const char *fmt, ...) {
    const size_t n = strlen(to);
    va_list args;
    va_start(args, fmt);
    vsnprintf(to + n, size - n, fmt, args);
    va_end(args);
}

/* "2, 4 and 5" */
static void append_layers(char *to, size_t size, const hn_head_taps *t, int less) {
    for (int i = 0; i < t->n; i++)
        append(to, size, "%s%d", i == 0 ? "" : i + 1 < t->n ? ", " : " and ", t->boundary[i] - less);
}

/* Layers are counted from 0. State k enters layer k and is the output of layer k - 1; files have both numberings. */
static void append_entering(char *to, size_t size, const hn_head_taps *t) {
    const char *many = t->n == 1 ? "" : "s";
    bool outputs = true;
    for (int i = 0; i < t->n; i++) outputs &= t->boundary[i] > 0;
    append(to, size, "the state%s entering layer%s ", many, many);
    append_layers(to, size, t, 0);
    if (!outputs) return;
    append(to, size, " (output%s of layer%s ", many, many);
    append_layers(to, size, t, 1);
    append(to, size, ")");
}

static void append_taps(char *to, size_t size, const hn_head_taps *t) {
    hn_head_taps entering = {0};
    for (int i = 0; i < t->n; i++)
        if (t->boundary[i] != HN_FEATURE_POST_NORM) entering.boundary[entering.n++] = t->boundary[i];
    const bool last = entering.n < t->n;
    append(to, size, "reads %s%s", last ? "the state behind the final norm" : "", last && entering.n > 0 ? " and " : "");
    if (entering.n > 0) append_entering(to, size, &entering);
    if (t->n == 0) append(to, size, "the tokens alone");
}

hn_head_embedding hn_head_embedding_of(const hn_head_desc *h) {
    const hn_steps_desc *steps = hn_head_steps(h);
    if (h->input.own_embedding || (steps && hn_steps_own_state(steps))) return HN_EMBEDDING_OWN;
    return !steps || steps->kind == HN_STEP_GROUNDED ? HN_EMBEDDING_MODEL : HN_EMBEDDING_NONE;
}

/* Appends which matrices it takes from the model. */
static void append_borrowed(char *to, size_t size, const hn_head_desc *h) {
    const bool embedding = hn_head_embedding_of(h) == HN_EMBEDDING_MODEL;
    if (!embedding && h->output.own) return;
    append(to, size, " with the model's %s%s%s", embedding ? "embedding" : "", embedding && !h->output.own ? " and " : "",
           h->output.own ? "" : "output");
}

/* Appends its structure. */
static void append_shape(char *to, size_t size, const hn_arch *a) {
    const hn_steps_desc *d = hn_head_steps(&a->draft_head);
    const hn_resblocks_desc *blocks = d ? hn_steps_resblocks(d) : NULL;
    const hn_own_state_desc *state = d ? hn_steps_own_state(d) : NULL;
    if (d) append(to, size, "%d position%s", d->n, d->n == 1 ? "" : "s");
    if (blocks && blocks->n > 0) append(to, size, " of %d resblock%s", blocks->n, blocks->n == 1 ? "" : "s");
    if (state) append(to, size, " of %s state of %d", d->kind == HN_STEP_LSTM ? "a cell and a" : "a", state->width);
    if (d && a->layers > 0) append(to, size, " behind ");
    if (a->layers > 0) append(to, size, "%d layer%s", a->layers, a->layers == 1 ? "" : "s");
    append(to, size, ", %d wide; ", a->hidden);
}

/* The type of its packed matrices. */
static hn_dtype type_of(const hn_model *head) {
    const hn_step *first = head->head.step;
    if (head->arch.layers > 0 && head->arch.layer[0].ffn == HN_FFN_EXPERTS) return head->layer[0].experts.gate.dtype;
    if (head->arch.layers > 0) return head->layer[0].gate.dtype;
    return first->resblock[0].in > 0 ? first->resblock[0].dtype : first->gate[0].in > 0 ? first->gate[0].dtype : first->output.dtype;
}

hunch_status hn_head_about(char **out, const hn_spec *spec, const hn_model *head, const hn_head_taps *taps,
                           const hn_target_info *target, bool types, hunch_error *err) {
    const hn_arch *a = &head->arch;
    char text[700] = "";
    append(text, sizeof text, "%s %.400s: ", spec->kind, spec->path ? spec->path : "of the model's own file");
    append_shape(text, sizeof text, a);
    append_taps(text, sizeof text, taps);
    append(text, sizeof text, "; drafts %d of %d tokens", a->vocab, target->vocab);
    const hn_output_stage *output = &a->draft_head.output;
    if (output->kind == HN_OUTPUT_CLUSTERS)
        append(text, sizeof text, ", of each row those of %d of %d clusters,", output->clusters.used, output->clusters.n);
    append_borrowed(text, sizeof text, &a->draft_head);
    if (a->draft_head.min_p > 0) append(text, sizeof text, "; min_p %.2g without auto", a->draft_head.min_p);
    append(text, sizeof text, "; %.1f MB", (double)head->bytes.memory / 1e6);
    if (types) append(text, sizeof text, " as %s", hn_dtype_name(type_of(head)));
    *out = hn_strdup(text);
    return *out ? HUNCH_OK : hn_fail_memory(err, "the description of a draft head", strlen(text) + 1);
}
