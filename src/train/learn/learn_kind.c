/* SPDX-License-Identifier: Apache-2.0 */
/* learn_kind.c - see learn_kind.h. */
#include "train/learn/learn_kind.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/json_load.h"
#include "app/tool_train_kinds.h"

#define KIND(id, name, about) &hn_learn_##id,
static const hn_learn_kind *const kinds[] = {TOOL_TRAIN_KINDS(KIND)};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

const hn_learn_kind *hn_learn_kind_at(int i) {
    return i < N_KINDS ? kinds[i] : NULL;
}

const hn_learn_kind *hn_learn_kind_named(const char *name) {
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    return NULL;
}

static void config_drop(json_t **to) {
    json_decref(*to);
    *to = NULL;
}

void hn_config_put(json_t **to, const char *key, json_t *value) {
    if (!*to)
        json_decref(value);
    else if (json_object_set_new(*to, key, value))
        config_drop(to);
}

void hn_config_append(json_t **to, json_t *value) {
    if (!*to)
        json_decref(value);
    else if (json_array_append_new(*to, value))
        config_drop(to);
}

json_t *hn_config_taps(const hn_learn_setting *s) {
    json_t *list = json_array();
    for (int i = 0; i < s->n_taps; i++) hn_config_append(&list, json_integer(s->taps[i]));
    return list;
}

json_t *hn_config_layer_types(int layers) {
    json_t *list = json_array();
    for (int i = 0; i < layers; i++) hn_config_append(&list, json_string("full_attention"));
    return list;
}

json_t *hn_config_layers(const hn_learn_setting *s, const hn_sizes *z, const char *type, int layers) {
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i, s:i, s:b}", "model_type", type, "hidden_act", "silu",
                     "hidden_size", z->hidden, "intermediate_size", z->ffn, "num_attention_heads", z->heads, "num_key_value_heads",
                     z->kv_heads, "head_dim", z->head_dim, "num_hidden_layers", layers, "rms_norm_eps", z->eps, "rope_theta", z->theta,
                     "vocab_size", s->target->vocab, "max_position_embeddings", s->target->context, "tie_word_embeddings", 0);
}

hn_sizes hn_learn_sizes(const hn_learn_setting *s) {
    const hn_layer_desc *l = &s->target->layer[0];
    return (hn_sizes){s->target->hidden, l->heads, l->kv_heads, l->head_dim, s->o->ffn, (double)s->target->norm_eps, 10000};
}

json_t *hn_config_speculators(const hn_learn_setting *s, const char *algorithm, int tokens) {
    const hn_target_name *n = s->name;
    json_t *way = json_pack("[{s:s, s:i}]", "proposal_type", "greedy", "speculative_tokens", tokens);
    return json_pack("{s:s, s:s, s:o, s:{s:o, s:O}}", "algorithm", algorithm, "default_proposal_method", "greedy", "proposal_methods", way,
                     "verifier", "name_or_path", hn_json_from_bytes(n->name, strlen(n->name)), "architectures", n->architectures);
}

static double gauss(uint64_t *x) {
    const double u = ((double)(hn_splitmix(x) >> 11) + 0.5) / 9007199254740992.0,
                 v = (double)(hn_splitmix(x) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

void hn_learn_random(hn_mat m, double spread, uint64_t *x) {
    for (int i = 0; i < m.rows; i++)
        for (int k = 0; k < m.cols; k++) hn_mat_row(m, i)[k] = (hn_real)(spread * gauss(x));
}
