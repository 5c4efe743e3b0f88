/* SPDX-License-Identifier: Apache-2.0 */
/* head_desc.h - what a draft head is beside its layers (layer_desc.h): three stages, each of one kind, with the data of that kind. A row
 * of a head is a token and the feature of the token before it: states of the target side by side, or the head's own output if that
 * token is a draft too.
 *
 *                                        input     rows           output
 *   EAGLE-1, -2, HASS                    JOINT     CHAIN          ALL
 *   MTP; of several modules              JOINT     CHAIN; TURNS   ALL
 *   EAGLE-3                              FEATURE   CHAIN          ALL, CLUSTERS
 *   PARD                                 SUM       MASKS          ALL
 *   P-EAGLE, DART                        FEATURE   MASKS          ALL, CLUSTERS
 *   Falcon                               LSTM      SPAN           ALL
 *   DFlash, JetSpec                      CONTEXT   BLOCK          ALL
 *   DSpark                               CONTEXT   BLOCK          MARKOV
 *   Domino                               CONTEXT   BLOCK          PREFIX
 *   DFlash 2                             CONTEXT   BLOCK          SELECTOR
 *   Medusa, Hydra, MLP speculators,      STATE     STEPS          ALL
 *   Meta's heads
 *   Gemma 4's assistants                 JOINT     BORROWED       ALL, CLUSTERS
 *
 * A new kind of head combines these, or adds a kind of a stage: a value here, its data, and a case in each switch on that stage
 * (docs/writing-heads.md). hn_head_stages_fit says which go together. A zeroed description is a target's. */
#ifndef HN_HEAD_DESC_H
#define HN_HEAD_DESC_H
#include <stdbool.h>
#include <stddef.h>

enum { HN_MOST_HEAD_FEATURES = 16, HN_MOST_HEAD_MODULES = 8 };

/* ---- input: what the stream begins as (layer_head.c) ------------------------------------------------------------------ */

typedef enum hn_stream {
    HN_STREAM_TOKEN,   /* embedding: a target */
    HN_STREAM_JOINT,   /* fc(embedding | feature) */
    HN_STREAM_LSTM,    /* two layers of an LSTM, of embedding | feature; the state of each row is zero */
    HN_STREAM_FEATURE, /* fc(feature); in rows of drafts the output before it */
    HN_STREAM_CONTEXT, /* in rows of the text norm(fc(feature)), for keys and values alone; in those of a block embeddings */
    HN_STREAM_SUM,     /* the embedding, and the scaled fc(feature) if there are features: a whole model that drafts (PARD) */
    HN_STREAM_STATE    /* the feature itself, one state */
} hn_stream;

typedef struct hn_input_stage {
    hn_stream stream;
    int features, feature_width; /* number of the target's states in a feature, and the width of each */
    int embeddings;              /* rows of the embedding of tokens */
    bool own_embedding;          /* else it uses the target's */
    union {
        struct {
            bool fc_bias;
            bool norms; /* fc(norm(embedding) | norm(feature)) */
            bool scaled; /* embeddings are scaled as the target scales them, and as wide as the target */
        } joint;
        struct {
            bool fc_bias;
            bool norm_all, norm_each; /* before fc: one RMSNorm over the whole feature; one over each of its states */
        } feature;
        struct {
            bool fc_bias;
            bool scaled; /* a block's embeddings are scaled as the target scales them */
        } context;
        struct {
            bool fc_bias;
            float scale;
        } sum;
        struct {
            int offset; /* layers before the target's last state; 0: after the final norm */
        } state;
    };
} hn_input_stage;

/* ---- rows: which rows draft (draft/head/head_passes.h) ----------------------------------------------------------------- */

/* Steps: weights of their own for each position, without cache or attention (layer_steps.c). */
typedef enum hn_step_kind {
    HN_STEP_RESBLOCKS, /* residual blocks on the target's state: Medusa; Hydra that is not grounded */
    HN_STEP_GROUNDED,  /* residual blocks on the state and the tokens drafted so far: Hydra */
    HN_STEP_SUM,       /* the sum of a state and a token: IBM's speculator */
    HN_STEP_LSTM,      /* the same with a gated cell: Arctic's */
    HN_STEP_LAYERS     /* one layer for each position, all from the same state: Meta's heads */
} hn_step_kind;
enum { HN_MOST_HEAD_STEPS = 16, HN_MOST_STEP_RESBLOCKS = 8, HN_STEP_GATES = 4 };

/* Of RESBLOCKS and GROUNDED. */
typedef struct hn_resblocks_desc {
    int n; /* of each position */
    bool bias;
} hn_resblocks_desc;
/* Of SUM and LSTM. */
typedef struct hn_own_state_desc {
    int width;
    bool tied;        /* steps share embedding, norm and output, and all but the first share the projection */
    bool scale_input; /* the target's state is normed and divided by sqrt 2 */
} hn_own_state_desc;

typedef struct hn_steps_desc {
    hn_step_kind kind;
    int n;           /* positions that it drafts */
    bool one_output; /* one output matrix for all */
    bool output_bias;
    union {
        hn_resblocks_desc resblocks;
        hn_own_state_desc own_state;
    };
} hn_steps_desc;
/* Does it draft all positions in the root's pass, independent of the tokens before them? */
static inline bool hn_steps_at_once(const hn_steps_desc *s) { return s->kind == HN_STEP_RESBLOCKS || s->kind == HN_STEP_LAYERS; }
/* The data of its kind; NULL: it is of another. */
static inline const hn_resblocks_desc *hn_steps_resblocks(const hn_steps_desc *s) {
    return s->kind == HN_STEP_RESBLOCKS || s->kind == HN_STEP_GROUNDED ? &s->resblocks : NULL;
}
static inline const hn_own_state_desc *hn_steps_own_state(const hn_steps_desc *s) {
    return s->kind == HN_STEP_SUM || s->kind == HN_STEP_LSTM ? &s->own_state : NULL;
}

typedef enum hn_rows_kind {
    HN_ROWS_CHAIN, /* a row a drafted token, which reads the output of the row before */
    HN_ROWS_TURNS, /* the same, and the layers are modules that draft in turn, each from the output of the one before */
    HN_ROWS_SPAN,  /* the last rows of text and drafts see each other; each drafts the token that many after its own */
    HN_ROWS_MASKS, /* rows of masks after the root's draft the further levels in the same pass */
    HN_ROWS_BLOCK, /* the root and masks, which see each other; rows of the text have only keys and values */
    HN_ROWS_STEPS, /* none: further outputs of the root's row, from weights of their own */
    HN_ROWS_BORROWED /* a row a drafted token, of queries alone, over keys and values that the target's layers stored */
} hn_rows_kind;

/* The position of a draft's row, n being that of the root. */
typedef enum hn_borrowed_position {
    HN_POSITION_ROOT, /* n, at every level */
    HN_POSITION_LAST, /* n - 1, that of the last row it sees */
    HN_POSITION_STEP  /* n + level */
} hn_borrowed_position;
typedef struct hn_borrowed_desc {
    hn_borrowed_position position;
    int window_layer, full_layer; /* of the target: whose keys and values the head's layers with a window, and those without, read */
} hn_borrowed_desc;

/* What a mask's row begins with. */
typedef enum hn_mask_input {
    HN_MASK_OWN,  /* as a row of the text, with `token` and a feature of the head's own (P-EAGLE) */
    HN_MASK_PAIR, /* behind the first layer's norms, with a vector of the head's own (DART) */
    HN_MASK_ROOT  /* with `token` and the root's feature, if there are any (PARD) */
} hn_mask_input;

typedef struct hn_masks_desc {
    hn_mask_input input;
    int token;
    int levels; /* that the head was trained to draft in a pass, the root's included; 0: not given */
} hn_masks_desc;

/* Convolutions around both halves of each layer (layer_conv.c). */
typedef struct hn_conv_desc {
    int taps;  /* 0: there are none */
    int group; /* columns with the same coefficients */
} hn_conv_desc;
/* Coefficients of a row, of both sides of a half. */
static inline int hn_conv_coefficients(const hn_conv_desc *d, int hidden) { return 2 * d->taps * (hidden / d->group); }

typedef struct hn_block_desc {
    int n;                /* rows, including the root's */
    int levels;           /* that it drafts */
    bool root_drafts;     /* the root's row drafts too; else the first mask drafts what the root's row would */
    bool windows_of_root; /* windows are counted back from the root, else from each row */
    bool mask_row;        /* a mask's stream begins as a vector of the head's own, else as the embedding of mask_token */
    int mask_token;
    hn_conv_desc conv;
} hn_block_desc;

typedef struct hn_rows_stage {
    hn_rows_kind kind;
    union {
        int span; /* rows that see each other */
        hn_masks_desc masks;
        hn_block_desc block;
        hn_steps_desc steps;
        hn_borrowed_desc borrowed;
    };
} hn_rows_stage;

/* ---- output: from the stream to logits (pass.c) ------------------------------------------------------------------------- */

/* The norm before the output matrix. Rows of drafts read the stream before it, except after READ and CARRIED. */
typedef enum hn_output_norm {
    HN_NORM_ONCE,
    HN_NORM_READ, /* rows of drafts read the normed stream */
    HN_NORM_CARRIED, /* rows of drafts read a product of the normed stream, as wide as the feature */
    HN_NORM_TWICE,
    HN_NORM_NONE
} hn_output_norm;

typedef enum hn_output_kind {
    HN_OUTPUT_ALL,
    HN_OUTPUT_CLUSTERS, /* logits of those clusters of outputs whose centroids have the largest products with the row's state */
    HN_OUTPUT_MARKOV,   /* a bias on all from the token before a draft (pass_markov.c) */
    HN_OUTPUT_SELECTOR, /* scores of the likeliest tokens by the token before (pass_selector.c) */
    HN_OUTPUT_PREFIX    /* a bias on a pool of likely ones from a state of the tokens before a draft (pass_prefix.c) */
} hn_output_kind;

typedef enum hn_markov_kind { HN_MARKOV_VANILLA, HN_MARKOV_GATED, HN_MARKOV_RNN } hn_markov_kind;
/* What a head's confidence that a draft is accepted is computed from. */
typedef enum hn_confidence { HN_CONFIDENCE_NONE, HN_CONFIDENCE_OF_STATE, HN_CONFIDENCE_OF_TOKEN } hn_confidence; /* the last: of both */

typedef struct hn_markov_desc {
    hn_markov_kind kind;
    int rank;
    hn_confidence confidence;
} hn_markov_desc;

typedef struct hn_prefix_desc {
    int state, width; /* numbers of the state, of the product that becomes the bias */
    int plain;        /* drafts without a bias, the first of a block */
    int pool;         /* outputs that the others are chosen from, at most all */
} hn_prefix_desc;

typedef struct hn_selector_desc {
    int rank, candidates; /* candidates: of a place */
} hn_selector_desc;

typedef struct hn_output_stage {
    hn_output_kind kind;
    hn_output_norm norm;
    bool own; /* a matrix of its own, else the target's */
    union {
        struct {
            int n, used; /* clusters of equal size; those of a row */
        } clusters;
        hn_markov_desc markov;
        hn_prefix_desc prefix;
        hn_selector_desc selector;
    };
} hn_output_stage;

typedef struct hn_head_desc {
    hn_input_stage input;
    hn_rows_stage rows;
    hn_output_stage output;
    double min_p; /* of chains: least probability of a drafted token's path that its maker found worth a row; 0: not given */
} hn_head_desc;

/* Whether its input has a product fc, and whether that has a bias. */
static inline bool hn_head_has_fc(const hn_head_desc *d) {
    return d->input.stream == HN_STREAM_JOINT || d->input.stream == HN_STREAM_FEATURE || d->input.stream == HN_STREAM_CONTEXT ||
           (d->input.stream == HN_STREAM_SUM && d->input.features > 0);
}
static inline bool hn_head_has_fc_bias(const hn_head_desc *d) {
    switch (d->input.stream) {
    case HN_STREAM_JOINT: return d->input.joint.fc_bias;
    case HN_STREAM_FEATURE: return d->input.feature.fc_bias;
    case HN_STREAM_CONTEXT: return d->input.context.fc_bias;
    case HN_STREAM_SUM: return d->input.sum.fc_bias;
    case HN_STREAM_TOKEN:
    case HN_STREAM_LSTM:
    case HN_STREAM_STATE: break;
    }
    return false;
}
/* Whether the stream begins with the embedding beside the feature. */
static inline bool hn_head_reads_tokens(const hn_head_desc *d) {
    return d->input.stream == HN_STREAM_JOINT || d->input.stream == HN_STREAM_LSTM;
}
/* A whole model: its embedding and its output are of a vocabulary of its own, which may differ from the target's by padding. */
static inline bool hn_head_is_whole(const hn_head_desc *d) { return d->input.stream == HN_STREAM_SUM; }
/* The steps of a head with weights for each position; NULL: it is another. */
static inline const hn_steps_desc *hn_head_steps(const hn_head_desc *d) { return d->rows.kind == HN_ROWS_STEPS ? &d->rows.steps : NULL; }
/* Its layers read the target's keys and values, and store none. */
static inline bool hn_head_borrows(const hn_head_desc *d) { return d->rows.kind == HN_ROWS_BORROWED; }
/* Whether what rows of drafts read is made of the normed stream. */
static inline bool hn_head_reads_normed(const hn_head_desc *d) {
    return d->output.norm == HN_NORM_READ || d->output.norm == HN_NORM_CARRIED;
}
static inline bool hn_head_has_markov(const hn_head_desc *d) { return d->output.kind == HN_OUTPUT_MARKOV; }
/* The places of its block are drafted one after another: the logits of each depend on the token before it. */
static inline bool hn_head_in_order(const hn_head_desc *d) {
    switch (d->output.kind) {
    case HN_OUTPUT_MARKOV:
    case HN_OUTPUT_PREFIX:
    case HN_OUTPUT_SELECTOR: return true;
    case HN_OUTPUT_ALL:
    case HN_OUTPUT_CLUSTERS: break;
    }
    return false;
}
/* Only some outputs of a row have logits, and of each row others. */
static inline bool hn_head_chooses(const hn_head_desc *d) {
    return d->output.kind == HN_OUTPUT_CLUSTERS || d->output.kind == HN_OUTPUT_PREFIX || d->output.kind == HN_OUTPUT_SELECTOR;
}
/* The best outputs of a row that its passes must list. */
static inline int hn_head_least_best(const hn_head_desc *d) {
    return d->output.kind == HN_OUTPUT_SELECTOR ? d->output.selector.candidates : 1;
}
/* NULL: its layers have no convolutions. */
static inline const hn_conv_desc *hn_head_conv_desc(const hn_head_desc *d) {
    return d->rows.kind == HN_ROWS_BLOCK && d->rows.block.conv.taps > 0 ? &d->rows.block.conv : NULL;
}
static inline bool hn_head_has_confidence(const hn_head_desc *d) {
    return hn_head_has_markov(d) && d->output.markov.confidence != HN_CONFIDENCE_NONE;
}
bool hn_head_stages_fit(const hn_head_desc *d); /* which stages go together (head.c) */
#endif
