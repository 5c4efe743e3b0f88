/* SPDX-License-Identifier: Apache-2.0 */
/* learn_student_file.h - a language model to be trained as a draft model, read from its file as floats: the kept
 * layers, and the matrices that are not trained. */
#ifndef HN_LEARN_STUDENT_FILE_H
#define HN_LEARN_STUDENT_FILE_H
#include "train/nets/student_net.h"
#include "train/data/target_rows.h"

typedef struct hn_student {
    hn_student_shape shape;
    hn_real *begin;       /* [hn_student_count] weights of the file */
    hn_target_rows rows;  /* embedding, and the output's rows of the tokens whose distribution it learns */
    hn_target_rows whole; /* with an output matrix of its own: all its rows */
} hn_student;

/* path: a model whose layers are Llama's or Qwen3's: full attention, plain rotation, SwiGLU, no biases. layers: the
 * number of kept layers, evenly spread from the first to the last; 0: all. ids [kept]. HUNCH_REFUSED: another kind, or
 * another vocabulary than the target's `vocab` tokens. */
hunch_status hn_student_read(hn_student *s, const char *path, int layers, int vocab, const int32_t *ids, int kept,
                             hunch_error *err);
void hn_student_free(hn_student *s); /* zeroed is fine */
#endif
