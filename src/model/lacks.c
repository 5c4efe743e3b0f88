/* SPDX-License-Identifier: Apache-2.0 */
/* lacks.c - models that a backend cannot run: what they need and its table of operations lacks. Types of matrices: weights.c. */
#include "model/ffns.h"
#include "model/mixers.h"
#include "model/model.h"

/* What of it the backend lacks; NULL: nothing. */
static const char *lacks_of_layer(const hn_backend *b, const hn_layer_desc *d) {
    for (int i = 0; i < hn_layer_mixers(d); i++) {
        const hn_mixer_kind *k = d->mixer[i].kind;
        const char *lacks = k->lacks ? k->lacks(b, d) : NULL;
        if (lacks) return lacks;
    }
    const hn_ffn_kind *ffn = hn_ffn_of(d);
    return ffn && ffn->lacks ? ffn->lacks(b, d) : NULL;
}

static const char *lacks_of_head(const hn_backend *b, const hn_head_desc *d) {
    const hn_ops *o = b->ops;
    const hn_steps_desc *steps = hn_head_steps(d);
    if (hn_head_conv_desc(d) && !o->convolve) return "convolutions of a draft head";
    if (d->output.kind == HN_OUTPUT_CLUSTERS && !o->clusters_top) return "clustered outputs of a draft head";
    if (d->output.kind == HN_OUTPUT_PREFIX && !o->gru) return "a GRU of a draft head";
    if (steps && hn_steps_own_state(steps) && b->applies && !b->applies(HN_GELU_ERF)) return "a draft head's GELU by erf";
    return NULL;
}

hunch_status hn_model_refuse(const hn_model *m, const char *path, const char *what, hunch_error *err) {
    hn_backend_limits l;
    m->backend->limits(m->backend, &l);
    return hn_fail(err, HUNCH_REFUSED, "%s: it needs %s, which %s has not yet: --device cpu runs it", path, what, l.name);
}

hunch_status hn_model_check_operations(const hn_model *m, const hn_source *src, hunch_error *err) {
    const char *lacks = hn_arch_is_head(&m->arch) ? lacks_of_head(m->backend, &m->arch.draft_head) : NULL;
    if (!lacks && m->backend->norms && !m->backend->norms(hn_arch_norms(&m->arch))) lacks = "norms that centre";
    for (int i = 0; !lacks && i < m->arch.layers; i++) lacks = lacks_of_layer(m->backend, &m->arch.layer[i]);
    return lacks ? hn_model_refuse(m, hn_source_path(src), lacks, err) : HUNCH_OK;
}
