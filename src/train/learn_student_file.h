/* SPDX-License-Identifier: Apache-2.0 */
/* learn_student_file.h - a language model to be trained as a draft model, read from its file as floats: the layers that are kept of it, and
 * what does not learn. */
#ifndef HN_LEARN_STUDENT_FILE_H
#define HN_LEARN_STUDENT_FILE_H
#include "train/student_net.h"
#include "train/target_rows.h"

typedef struct hn_student {
    hn_student_shape shape;
    hn_real *begin;       /* [hn_student_count] weights as they are in the file */
    hn_target_rows rows;  /* embedding, and the output's rows of the tokens by whose law it learns */
    hn_target_rows whole; /* with an output matrix of its own: all rows of that */
} hn_student;

/* path: a model whose layers are Llama's or Qwen3's: full attention, plain rotation, SwiGLU, no biases. layers: so many of them, spread from
 * the first to the last; 0: all. ids [kept]. HUNCH_REFUSED: of another kind, or of another vocabulary than the target's `vocab` tokens. */
hunch_status hn_student_read(hn_student *s, const char *path, int layers, int vocab, const int32_t *ids, int kept,
                             hunch_error *err);
void hn_student_free(hn_student *s); /* zeroed is fine */
#endif
