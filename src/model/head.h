/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - a draft head: a few layers that read a target's features, with weights of their own; what their file leaves out
 * they borrow of the target. The drafter of a kind (draft/drafter_eagle.c, ...) says what its files are like; a pass is that
 * of any model (pass.h). */
#ifndef HN_HEAD_H
#define HN_HEAD_H
#include "base/name_list.h"
#include "model/model.h"

/* Tensors of a head that are no layer's (head_names.c). */
typedef enum hn_head_part {
    HN_HEAD_FC,
    HN_HEAD_FC_BIAS,
    HN_HEAD_FEATURE_NORM, /* of the whole feature, before fc */
    HN_HEAD_STATE_NORM,   /* of one of its states */
    HN_HEAD_TOKEN_NORM,   /* of the embedding */
    HN_HEAD_STREAM_NORM,  /* of what is read beside the embedding */
    HN_HEAD_OUTPUT_NORM,
    HN_HEAD_MASK,         /* the feature of rows that have none */
    HN_HEAD_MASK_PAIR,    /* what the first layer reads of rows without token and feature */
    HN_HEAD_CONTEXT_NORM, /* behind fc, of a head of blocks */
    HN_HEAD_MASK_ROW,     /* in the place of a mask's embedding */
    HN_HEAD_MARKOV_IN,    /* and what else stands behind a block (pass_markov.c) */
    HN_HEAD_MARKOV_OUT,
    HN_HEAD_MARKOV_GATE,
    HN_HEAD_MARKOV_GATE_BIAS,
    HN_HEAD_MARKOV_STEP,
    HN_HEAD_MARKOV_STEP_BIAS,
    HN_HEAD_CONFIDENCE,
    HN_HEAD_CONFIDENCE_BIAS,
    HN_HEAD_LSTM_1,       /* gates of the two layers: input, forget, candidate, output */
    HN_HEAD_LSTM_2,
    HN_HEAD_LSTM_BIAS_1,
    HN_HEAD_LSTM_BIAS_2,
    HN_HEAD_LSTM_STATE_BIAS_1, /* of what is made of the state, which is zero */
    HN_HEAD_LSTM_STATE_BIAS_2,
    HN_HEAD_EMBEDDING,
    HN_HEAD_OUTPUT,
    HN_HEAD_IDS,          /* d2t */
    HN_HEAD_PARTS
} hn_head_part;

/* Forms of files. */
typedef enum hn_head_form {
    HN_HEAD_FOLDER,
    HN_HEAD_MTP,
    HN_HEAD_GGUF,
    HN_HEAD_GGUF_MTP,
    HN_HEAD_BLOCKS, /* folders of heads that draft blocks */
    HN_HEAD_ENCODER, /* the same with fc and its norm under other names, as vLLM reads them too */
    HN_HEAD_GGUF_BLOCKS,
    /* with weights for each position (head_steps.h) */
    HN_HEAD_MEDUSA,
    HN_HEAD_MEDUSA_VLLM,
    HN_HEAD_HYDRA,
    HN_HEAD_SPECULATOR, /* IBM's, and Arctic's without a cell */
    HN_HEAD_ARCTIC_LSTM,
    HN_HEAD_META,
    HN_HEAD_GGUF_STEPS,
    /* blocks in a model's own files: head_own.c */
    HN_HEAD_OWN,
    HN_HEAD_OWN_NEXT,
    HN_HEAD_OWN_GGUF,
    HN_HEAD_FORMS
} hn_head_form;
static inline bool hn_head_form_folder_blocks(int form) { return form == HN_HEAD_BLOCKS || form == HN_HEAD_ENCODER; }
static inline bool hn_head_form_blocks(int form) { return hn_head_form_folder_blocks(form) || form == HN_HEAD_GGUF_BLOCKS; }

/* Where a file has the head's tensors: all of them start with `front` ("", "model."), those of layer 0 go on with `first`. */
typedef struct hn_head_names {
    hn_head_form form;
    const char *front, *first; /* "midlayer.", "layers.0." */
    int block;                 /* of a block in a model's own files, and of speculators' modules: its number there */
    int blocks;                /* how many there are: the next ones follow it; 0: one */
} hn_head_names;

hn_head_names hn_head_find_names(hn_source *src);
/* The name of a part; k: which state's. NULL: this form has none. */
const char *hn_head_name(const hn_head_names *names, hn_head_part part, int k, char out[128]);
/* Its tensor (of the first state), unmarked; NULL: there is none. */
const hn_tensor *hn_head_look(const hn_source *src, const hn_head_names *names, hn_head_part part);
/* What is known of a part in a description: whether a head has it (norms of states: all of them), and its shape in ggml's order
 * (inputs, outputs; a vector has outputs 1). */
bool hn_head_has(const hn_arch *a, hn_head_part part);
bool hn_head_part_is_vector(hn_head_part part);
void hn_head_part_shape(const hn_arch *a, hn_head_part part, uint64_t dims[2]);

/* What files say beside the keys of a dense family's layers (head_keys.c). */
typedef enum hn_head_key {
    HN_HEAD_SAYS_KIND,
    HN_HEAD_SAYS_STATES,       /* a list: the layers whose states are read */
    HN_HEAD_SAYS_TARGET_WIDTH,
    HN_HEAD_SAYS_TOKENS,       /* of the target */
    HN_HEAD_SAYS_OUTPUTS,      /* tokens that are drafted */
    HN_HEAD_SAYS_NORM_BEFORE_RESIDUAL,
    HN_HEAD_SAYS_NORM_BEFORE_FC,
    HN_HEAD_SAYS_FC_NORM,
    HN_HEAD_SAYS_NORM_OUTPUT,
    HN_HEAD_SAYS_MASK_TOKEN,
    HN_HEAD_SAYS_MASKS,        /* how many masks it was trained with */
    HN_HEAD_SAYS_TOGETHER,     /* how many rows see each other */
    HN_HEAD_SAYS_MTP_LAYERS,
    HN_HEAD_SAYS_WINDOW,
    HN_HEAD_SAYS_STEPS,        /* positions that it drafts */
    HN_HEAD_SAYS_SCALE_INPUT,
    HN_HEAD_SAYS_STATE_OFFSET, /* layers before the last state */
    HN_HEAD_SAYS_LOGIT_SCALE,
    HN_HEAD_SAYS_ROWS_IN_PAIRS, /* of Q and K */
    HN_HEAD_SAYS_BLOCK,        /* rows of a block */
    HN_HEAD_SAYS_ROOT_DRAFTS,
    HN_HEAD_SAYS_WINDOWS_AHEAD, /* layers with a window see all of a block */
    HN_HEAD_SAYS_WINDOWS_OF_ROOT,
    HN_HEAD_SAYS_CAUSAL,       /* rows of a block do not see those behind them; of a GGUF in layers without a window */
    HN_HEAD_SAYS_SCALED_EMBEDDING,
    HN_HEAD_SAYS_HALVES,       /* rotation: false where neighbouring numbers are a pair */
    HN_HEAD_SAYS_FREQUENCIES,  /* of the rotation: radians a position, as they are used */
    HN_HEAD_SAYS_LONG_FREQUENCIES,
    HN_HEAD_SAYS_AMPLITUDE,
    HN_HEAD_KEYS
} hn_head_key;

/* The i-th name that a key may have in such a file, the likeliest first; NULL: there are no more. */
const char *hn_head_key_name(const hn_source *src, hn_head_key key, int i);
/* *name: the key that was found, NULL: none was, and *out is untouched. Errors as hn_source_u64. */
hunch_status hn_head_u64(const hn_source *src, hn_head_key key, uint64_t *out, const char **name, hunch_error *err);
hunch_status hn_head_bool(const hn_source *src, hn_head_key key, bool *out, hunch_error *err);
hunch_status hn_head_bool_said(const hn_source *src, hn_head_key key, bool *out, bool *said, hunch_error *err);
/* HUNCH_REFUSED where the file says that it is of another kind. */
hunch_status hn_head_check_kind(const hn_source *src, const char *kind, hunch_error *err);
/* How the file has its layers' keys and rows. HUNCH_REFUSED: no config.json, or a GGUF of another architecture. */
hunch_status hn_head_find_family(const hn_source *src, const hn_dense **out, hunch_error *err);
/* The same of a GGUF that is to be written (states: a head that reads states of layers, as EAGLE-3 does; or one of blocks), and its
 * keys. */
const hn_dense *hn_head_family(const hn_head_desc *d, bool states);
bool hn_head_family_blocks(const hn_dense *family); /* of a GGUF of a head that drafts blocks */
const char *hn_head_gguf_key(const hn_dense *family, hn_head_key key); /* NULL: it has none */
/* Of a GGUF, behind hn_dense_read_layers: what it says of the rotation in our own keys. */
hunch_status hn_head_read_rotation(hn_arch *a, const hn_source *src, hunch_error *err);

/* Reads what a file says of the head's layers, a folder as Llama's or Qwen3's config does, into a zeroed description, and what its
 * tensors show: biases, norms of q and k, the embedding, the output (with d2t as many as that has). target: whose vocabulary
 * it drafts. a->draft_head.features stays the caller's. HUNCH_REFUSED. The caller ends it with hn_arch_fini. */
hunch_status hn_head_read(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err);

/* Has the model's own file blocks that draft? names: theirs. */
bool hn_head_find_own(const hn_source *src, const hn_arch *target, hn_head_names *names);
/* The same of a GGUF beside the model's, of its architecture, that holds such blocks under the same names (llama.cpp's side files). HUNCH_REFUSED:
 * it is of that architecture, and holds none behind so many layers; *found: it is one. */
hunch_status hn_head_find_side(const hn_source *src, const hn_arch *target, hn_head_names *names, bool *found, hunch_error *err);
/* Is it a tensor of theirs, and no copy of the model's own matrices? */
bool hn_head_own_tensor(const hn_head_names *names, const char *name);
/* Marks their tensors as used. */
void hn_head_mark_own(hn_source *src, const hn_arch *target);
/* As hn_head_read, of such blocks, a layer each: like the target in all else. */
hunch_status hn_head_read_own(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target,
                              hunch_error *err);

typedef struct hn_head_load {
    const hn_model *target; /* must outlive the head, which borrows pool, embedding and output */
    bool convert;           /* matrices of floats are packed as `weights` */
    hn_dtype weights;
    int trim;               /* 0, or how many tokens it drafts of those that its file lets it, or its target's output */
    hn_name_list *missing;      /* the names of all tensors that the file lacks; NULL: the first one is enough */
} hn_head_load;

/* a: taken over, also where this fails. ids: the target's token of each output [a->vocab], or NULL: the same; with load->trim
 * which tokens it drafts [load->trim], and the file has no list. Errors as
 * hn_model_open, and HUNCH_REFUSED for weights that are not finite. Ends with hn_model_close. */
hunch_status hn_head_open(hn_model *m, hn_source *src, hn_arch *a, const hn_head_load *load, const int32_t *ids,
                          hunch_error *err);

/* HUNCH_REFUSED, naming it, where there is a tensor that heads of this description do not have, and nobody took: the head is of another
 * kind, or has more layers than its file says. */
hunch_status hn_head_check_rest(hn_source *src, const hn_arch *a, hunch_error *err);

/* The target's token of each draft token, from d2t (a folder has offsets, a GGUF the tokens) of n draft tokens: *ids is the caller's (hn_free); NULL where the
 * file has none. HUNCH_REFUSED: one is not in the vocabulary, or there twice. */
hunch_status hn_head_read_ids(hn_source *src, const hn_head_names *names, int n, int vocab, int32_t **ids, hunch_error *err);
#endif
