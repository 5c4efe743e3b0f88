/* SPDX-License-Identifier: Apache-2.0 */
/* learn_student.c - training of a draft model (learn_kind.h): layers of a model with the same vocabulary, the target
 * itself or another one, distilled by DistillSpec (2310.08461). Its folder is that of transformers, without a
 * tokenizer: it uses the target's tokens. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "train/learn/learn_kind.h"
#include "train/learn/learn_student_file.h"

typedef struct student {
    hn_learn_setting s;
    hn_student file;
    hn_student_net *net;
} student;

static void student_usual(hn_learn_options *o) {
    o->unroll = 5; /* drafts in measurements */
    o->layers = 0;
    o->rate = 3e-4;
}

static void student_close(void *head) {
    student *e = head;
    if (e) {
        hn_student_net_close(e->net);
        hn_student_free(&e->file);
    }
    hn_free(e);
}

/* A quarter of the target's, or all of another model's. */
static int layers_of(const hn_learn_setting *s) {
    const int quarter = (s->target->layers + 2) / 4;
    return s->o->layers || *s->o->init ? s->o->layers : quarter ? quarter : 1;
}

static hunch_status student_open(void **out, const hn_learn_setting *s, hunch_error *err) {
    *out = NULL;
    student *e = hn_zalloc(1, sizeof *e);
    if (!e) return hn_fail_memory(err, "a draft model in training", sizeof *e);
    e->s = *s;
    hunch_status st = hn_student_read(&e->file, *s->o->init ? s->o->init : s->path, layers_of(s), s->target->vocab,
                                      s->ids, s->o->vocab, err);
    const int hidden = e->file.shape.hidden;
    if (!st)
        st = hn_student_net_open(&e->net, s->workers, &e->file.shape, s->o->divergence,
                                 hn_mat_of(e->file.rows.embedding, s->target->vocab, hidden),
                                 hn_mat_of(e->file.rows.output, s->o->vocab, hidden), s->o->rows, err);
    if (st)
        student_close(e);
    else
        *out = e;
    return st;
}

static size_t student_count(const void *head) {
    return hn_student_count(&((const student *)head)->file.shape);
}

/* The trained parts, then the embedding, and the output matrix if it is another one. */
static int student_parts(const void *head) {
    const hn_student_shape *s = &((const student *)head)->file.shape;
    return hn_student_parts(s) + 1 + !s->tied;
}

static hn_mat student_part(const void *head, int part, hn_real *vector) {
    const hn_student *f = &((const student *)head)->file;
    const int frozen = part - hn_student_parts(&f->shape);
    if (frozen < 0) return hn_student_part_of(&f->shape, part, vector);
    return hn_mat_of(frozen ? f->whole.output : f->rows.embedding, f->shape.vocab, f->shape.hidden);
}

static void student_part_name(const void *head, int part, char out[HN_LEARN_PART_NAME]) {
    const hn_student_shape *s = &((const student *)head)->file.shape;
    const int frozen = part - hn_student_parts(s);
    if (frozen < 0)
        hn_student_part_name(s, part, out);
    else
        snprintf(out, HN_LEARN_PART_NAME, "%s", frozen ? "lm_head.weight" : "model.embed_tokens.weight");
}

/* A draft reads the whole output matrix. */
static size_t student_read(const void *head) {
    const hn_student_shape *s = &((const student *)head)->file.shape;
    return hn_student_count(s) + (size_t)s->vocab * (size_t)s->hidden;
}

static void student_begin(const void *head, hn_real *weights) {
    memcpy(weights, ((const student *)head)->file.begin, student_count(head) * sizeof *weights);
}

/* One loss: a model has no steps of its own. */
static double student_loss(void *head, hn_real *weights, const hn_net_batch *b, hn_real *gradient, double *losses) {
    student *e = head;
    const double loss = hn_student_net_loss(e->net, weights, b, gradient);
    for (int k = 0; k < e->s.o->unroll; k++) losses[k] = loss;
    return loss;
}

static json_t *student_config(const void *head) {
    const student *e = head;
    const hn_student_shape *s = &e->file.shape;
    json_t *c = hn_config_layers(&e->s, &s->sizes, s->head_norms ? "qwen3" : "llama", s->layers);
    hn_config_put(&c, "architectures", json_pack("[s]", s->head_norms ? "Qwen3ForCausalLM" : "LlamaForCausalLM"));
    hn_config_put(&c, "vocab_size", json_integer(s->vocab));
    hn_config_put(&c, "attention_bias", json_false());
    hn_config_put(&c, "mlp_bias", json_false());
    hn_config_put(&c, "tie_word_embeddings", json_boolean(s->tied));
    hn_config_put(&c, "torch_dtype", json_string("bfloat16"));
    return c;
}

const hn_learn_kind hn_learn_student = {.name = "model",
                                        .others = "transformers",
                                        .layered = true,
                                        .whole_model = true,
                                        .usual = student_usual,
                                        .open = student_open,
                                        .close = student_close,
                                        .count = student_count,
                                        .parts = student_parts,
                                        .part = student_part,
                                        .part_name = student_part_name,
                                        .read = student_read,
                                        .begin = student_begin,
                                        .loss = student_loss,
                                        .config = student_config};
