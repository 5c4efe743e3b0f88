/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - a draft head: a few layers that read a target's features, with weights of their own; what their file lacks
 * they borrow from the target. The drafter of each kind (draft/head/kinds/drafter_eagle.c, ...) specifies its files; a pass is
 * that of any model (pass.h). */
#ifndef HN_HEAD_H
#define HN_HEAD_H
#include "base/name_list.h"
#include "model/model.h"

struct hn_head_names;
/* A form of files: how they name the tensors of a head outside its layers. A form of one kind of heads is in that kind's
 * drafter_KIND.c; these are shared, or of no kind's own files. */
typedef struct hn_head_form {
    const struct hn_head_form *base; /* names that it lacks are those of this form; NULL: there are none */
    /* '@': a tensor of layer 0; '!': without a prefix; %d: the number of a state, or of a module. Of steps '#': the step; '@': the
     * resblock; '^': the number after all resblocks; '~' and a digit: ".0" if modules are in a list. NULL: see base */
    const char *part[HN_ROLES];
    const struct hn_step_form *steps; /* of heads with weights for each position (head_steps.h); NULL: of others */
    /* What hn_head_read does, of heads whose layers are not those of a dense family, and sets the stages; NULL: of others. */
    hunch_status (*read)(hn_arch *a, hn_source *src, const struct hn_head_names *names, const hn_arch *target, hunch_error *err);
    bool lists_tokens;                /* a list of drafted tokens in a folder has ids, else offsets */
    bool numbered;                    /* %d is the number of a module */
    /* A folder has this form if the name of a tensor begins with a prefix of all names and then so; '!': without the prefix. None: if the
     * kind itself recognises it (hn_head_facts.is). */
    struct {
        const char *front, *begin;
    } mark[8];
} hn_head_form;

extern const hn_head_form hn_head_folder, hn_head_gguf;   /* EAGLE's, which most heads have */
extern const hn_head_form hn_head_mtp, hn_head_gguf_mtp; /* modules of multi-token prediction in a folder of their own: speculators' */
/* Of heads that draft blocks; the second: other names of fc and its norm, which vLLM reads too. */
extern const hn_head_form hn_head_blocks, hn_head_encoder, hn_head_gguf_blocks;
extern const hn_head_form hn_head_gguf_steps;
/* blocks in a model's own files: head_own.c */
extern const hn_head_form hn_head_own, hn_head_own_next, hn_head_own_final, hn_head_own_gguf;
static inline bool hn_head_form_folder_blocks(const hn_head_form *f) { return f == &hn_head_blocks || f->base == &hn_head_blocks; }
static inline bool hn_head_form_blocks(const hn_head_form *f) { return hn_head_form_folder_blocks(f) || f == &hn_head_gguf_blocks; }
static inline bool hn_head_form_own(const hn_head_form *f) {
    return f == &hn_head_own || f == &hn_head_own_next || f == &hn_head_own_final || f == &hn_head_own_gguf;
}

/* Names of the head's tensors in a file: all start with `front` ("", "model."), those of layer 0 continue with `first`. */
typedef struct hn_head_names {
    const hn_head_form *form;
    const char *front, *first; /* "midlayer.", "layers.0." */
    int module;                 /* number of a block in a model's own files, or of a module of speculators */
    int modules;                /* number of consecutive ones from `module` on; 0: one */
    hn_step_layout steps;
} hn_head_names;

hn_head_names hn_head_names_of(const hn_arch *a); /* of the file that the description was read from */
/* The name of a tensor of a head. NULL: this form has none. */
const char *hn_tensor_name(const hn_head_names *names, hn_tensor_id t, char out[128]);
/* The tensor, not marked as used; NULL: there is none. */
const hn_tensor *hn_tensor_find(const hn_source *src, const hn_head_names *names, hn_tensor_id t);
static inline const char *hn_head_name(const hn_head_names *names, hn_role role, int k, char out[128]) {
    return hn_tensor_name(names, (hn_tensor_id){role, k, 0}, out);
}
static inline const hn_tensor *hn_head_find_tensor(const hn_source *src, const hn_head_names *names, hn_role role) {
    return hn_tensor_find(src, names, (hn_tensor_id){role, 0, 0});
}

/* Keys of files beside those of a dense family's layers (head_keys.c), in the order in which convert writes them. */
typedef enum hn_head_key {
    HN_HEAD_KEY_KIND,
    HN_HEAD_KEY_TARGET_WIDTH,
    HN_HEAD_KEY_FEATURE_SCALE, /* of fc(feature), which is added to the embedding */
    HN_HEAD_KEY_STATES, /* a list: the layers whose states are read */
    HN_HEAD_KEY_NORM_BEFORE_RESIDUAL,
    HN_HEAD_KEY_NORM_BEFORE_FC,
    HN_HEAD_KEY_FC_NORM,
    HN_HEAD_KEY_NORM_OUTPUT,
    HN_HEAD_KEY_SPAN, /* how many rows see each other */
    HN_HEAD_KEY_MASKS, /* how many masks it was trained with */
    HN_HEAD_KEY_MASK_TOKEN,
    HN_HEAD_KEY_STEPS, /* positions that it drafts */
    HN_HEAD_KEY_SCALE_INPUT,
    HN_HEAD_KEY_ROWS_IN_PAIRS, /* of Q and K */
    HN_HEAD_KEY_STATE_OFFSET, /* layers before the last state */
    HN_HEAD_KEY_BLOCK, /* rows of a block */
    HN_HEAD_KEY_ROOT_DRAFTS,
    HN_HEAD_KEY_WINDOWS_AHEAD, /* layers with a window see all of a block */
    HN_HEAD_KEY_CAUSAL, /* rows of a block do not see later ones; in a GGUF: in layers without a window */
    HN_HEAD_KEY_WINDOWS_OF_ROOT,
    HN_HEAD_KEY_CONV_TAPS,
    HN_HEAD_KEY_CONV_GROUP,
    HN_HEAD_KEY_SELECTOR_RANK,
    HN_HEAD_KEY_CANDIDATES, /* of a place of a block */
    HN_HEAD_KEY_EMBEDDING_SCALE,
    HN_HEAD_KEY_LOGIT_SCALE,
    HN_HEAD_KEY_LOGIT_CAP,
    HN_HEAD_KEY_PREFIX_PLAIN, /* drafts that do not read it, the first of a block */
    HN_HEAD_KEY_SCALED_EMBEDDING,
    HN_HEAD_KEY_CLUSTERS_USED, /* of a row */
    HN_HEAD_KEY_MIN_P, /* of its chains, where nobody decides how much pays */
    HN_HEAD_KEY_TOKENS, /* of the target */
    HN_HEAD_KEY_OUTPUTS, /* tokens that are drafted */
    HN_HEAD_KEY_MTP_LAYERS,
    HN_HEAD_KEY_WINDOW,
    HN_HEAD_KEY_PREFIX_STATE, /* numbers of the state of the tokens before a draft */
    HN_HEAD_KEY_PREFIX_WIDTH,
    HN_HEAD_KEY_SHIFTED, /* a row drafts the token after its own position */
    HN_HEAD_KEY_CLUSTERS,
    HN_HEAD_KEY_HALVES, /* rotation: false if neighbouring numbers are a pair */
    HN_HEAD_KEY_FREQUENCIES, /* of the rotation, in radians per position */
    HN_HEAD_KEY_LONG_FREQUENCIES,
    HN_HEAD_KEY_AMPLITUDE,
    HN_HEAD_KEYS
} hn_head_key;

/* The i-th possible name of a key in such a file, the most usual first; NULL: there are no more. */
const char *hn_head_key_name(const hn_source *src, hn_head_key key, int i);
/* *name: the key that was found; NULL: none, and *out is unchanged. Errors as hn_source_u64. */
hunch_status hn_head_u64(const hn_source *src, hn_head_key key, uint64_t *out, const char **name, hunch_error *err);
/* A whole number from least to most that the file must have; what: it in words, NULL: its name says it; unit: behind the numbers. */
hunch_status hn_head_need(const hn_source *src, hn_head_key key, int least, int most, const char *what, const char *unit, int *out,
                          hunch_error *err);
/* HUNCH_REFUSED if the file has the key and says another number than the `value` "of this target". */
hunch_status hn_head_expect(const hn_source *src, hn_head_key key, int value, const char *of, hunch_error *err);
/* A number from least to most; *out is unchanged if there is none. */
hunch_status hn_head_real(const hn_source *src, hn_head_key key, double least, double most, double *out, hunch_error *err);
/* Reads keys, to HN_HEAD_KEYS, within their bounds into the fields that their rows name. An absent one leaves the field as it is, but for
 * whole numbers, which must be there. */
hunch_status hn_head_keys_read(hn_arch *a, const hn_source *src, const hn_head_key *keys, hunch_error *err);
/* HUNCH_REFUSED: the file caps its outputs, and its kind reads them without. */
hunch_status hn_head_refuse_cap(const hn_source *src, hunch_error *err);
hunch_status hn_head_bool(const hn_source *src, hn_head_key key, bool *out, hunch_error *err);
hunch_status hn_head_bool_given(const hn_source *src, hn_head_key key, bool *out, bool *said, hunch_error *err);
/* HUNCH_REFUSED if the file names another kind. */
hunch_status hn_head_check_kind(const hn_source *src, const char *kind, hunch_error *err);
/* The family that describes keys and rows of the file's layers. HUNCH_REFUSED: no config.json, or a GGUF of another architecture. */
hunch_status hn_head_find_family(const hn_source *src, const hn_family **out, hunch_error *err);
/* The family of a GGUF to be written (states: the head reads states of layers, as EAGLE-3, or drafts blocks), and its keys. */
const hn_family *hn_head_family(const hn_head_desc *d, bool states);
bool hn_head_family_blocks(const hn_family *family); /* family of GGUF files of heads that draft blocks */
const char *hn_head_gguf_key(const hn_family *family, hn_head_key key); /* NULL: it has none */
/* Writes what a GGUF says beside the layers, but for the rotation and what its file alone knows. states: [features] the
 * layers whose states it reads; NULL: none. */
hunch_status hn_head_keys_write(const hn_arch *a, const int *states, hn_gguf_writer *w, hunch_error *err);
/* All keys that heads of such files have: names in a GGUF of the family (of that of folders: in any), in a folder, and what they say. */
void hn_head_keys_list(const hn_family *family, void (*each)(void *user, const char *gguf, const char *folder, const char *values),
                       void *user);
/* For a GGUF, after hn_family_read_layers: reads our own keys of the rotation. */
hunch_status hn_head_read_rotation(hn_arch *a, const hn_source *src, hunch_error *err);

/* Reads the keys of the head's layers (in a folder as in the config of Llama or Qwen3) into a zeroed description, and
 * what its tensors show: biases, norms of q and k, the embedding, the output (with d2t as many rows as that has).
 * target: the model whose vocabulary it drafts. The caller sets the stages. HUNCH_REFUSED. The caller ends
 * it with hn_arch_fini. */
hunch_status hn_head_read(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err);

/* The part of it that reads the layers, of at most `most`, and nothing about vocabularies: for a form's `read`. */
hunch_status hn_head_read_layers(hn_arch *a, hn_source *src, const hn_head_names *names, int most, hunch_error *err);

/* `read` of the forms of assistants of Gemma 4 (head_assistant.c). target: without layers if it is not known. */
hunch_status hn_head_read_assistant(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err);
extern const hn_key_row hn_assistant_keys[]; /* of a GGUF that is written */
static inline bool hn_head_form_assistant(const hn_head_form *f) { return f->read == hn_head_read_assistant; }

/* Whether the model's own file has draft blocks. names: theirs. */
bool hn_head_find_own(const hn_source *src, const hn_arch *target, hn_head_names *names);
/* Whether a GGUF beside the model's, of its architecture, has such blocks under the same names (*found; llama.cpp's
 * side files). HUNCH_REFUSED: it is of that architecture and has none after the target's layers. */
hunch_status hn_head_find_side(const hn_source *src, const hn_arch *target, hn_head_names *names, bool *found, hunch_error *err);
/* Whether it is a tensor of these blocks and not a copy of the model's own matrices. */
bool hn_head_own_tensor(const hn_head_names *names, const char *name);
/* Marks their tensors as used. */
void hn_head_mark_own(hn_source *src, const hn_arch *target);
/* Sets the stages of a head of multi-token prediction that reads one state of that width. */
void hn_head_set_mtp(hn_arch *a, const hn_head_names *names, int width);
/* As hn_head_read, for such blocks of one layer each: like the target in all else. Sets the stages too. */
hunch_status hn_head_read_own(hn_arch *a, const hn_source *src, const hn_head_names *names, const hn_arch *target,
                              hunch_error *err);

typedef struct hn_head_load {
    const hn_model *target; /* must outlive the head, which borrows its pool, embedding and output */
    bool convert;           /* matrices of floats are packed as `weights` */
    hn_dtype weights;
    const int32_t *order;   /* [vocab] with clusters: row of the file's output for each output, as ids are; NULL: as in the file */
    int trim;               /* 0, or the number of tokens that it drafts, out of those of its own or the target's output */
    hn_name_list *missing;      /* collects the names of all missing tensors; NULL: fail at the first */
} hn_head_load;

/* a: owned by the head, also on failure. ids: the target's token of each output [a->vocab], or NULL: the same; with
 * load->trim the tokens that it drafts [load->trim], if the file has no list. Errors as hn_model_open, and
 * HUNCH_REFUSED for weights that are not finite. Ends with hn_model_close. */
hunch_status hn_head_open(hn_model *m, hn_source *src, hn_arch *a, const hn_head_load *load, const int32_t *ids,
                          hunch_error *err);

/* HUNCH_REFUSED, naming it, if there is an unused tensor that heads of this description do not have: the head is of
 * another kind, or has more layers than its keys specify. */
hunch_status hn_head_check_rest(hn_source *src, const hn_arch *a, hunch_error *err);

/* The target's token of each of n draft tokens, from d2t (offsets in a folder, tokens in a GGUF): *ids is the caller's
 * (hn_free); NULL if the file has none. HUNCH_REFUSED: a token is not in the vocabulary, or listed twice, or t2d says otherwise. */
hunch_status hn_head_read_ids(hn_source *src, const hn_head_names *names, int n, int vocab, int32_t **ids, hunch_error *err);

/* An output whose rows are in clusters, each with a centroid (Gemma 4's "ordered embeddings"). The output's kind is set if the file
 * has centroids. a->vocab is known. HUNCH_REFUSED: only one of the two tensors, clusters of different sizes, no number of clusters of a
 * row or one that cannot be. */
hunch_status hn_head_read_clusters(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err);
/* *order: the output of each place, cluster after cluster, the caller's (hn_free); NULL: the head has no clusters. Files have that, or the
 * cluster of each output: then all numbers are below that of clusters. HUNCH_REFUSED: not each output once; clusters of different
 * sizes. */
hunch_status hn_head_read_order(hn_source *src, const hn_head_names *names, const hn_arch *a, int32_t **order, hunch_error *err);
/* The target's token of each place: *ids, those of the file's outputs (NULL: the same as outputs), is replaced. */
hunch_status hn_head_order_ids(int32_t **ids, const int32_t *order, int n, hunch_error *err);
#endif
