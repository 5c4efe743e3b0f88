/* SPDX-License-Identifier: Apache-2.0 */
/* pass_private.h - the parts of a runner, and the functions that its files share. All parts are placed when the runner opens (runner.c,
 * runner_buffers.c); who writes a part's numbers later is said beside it. While workers run a pass, they write buffers alone. */
#ifndef HN_PASS_PRIVATE_H
#define HN_PASS_PRIVATE_H
#include "model/buf_room.h"
#include "model/kv_groups.h"
#include "model/layers.h"
#include "model/pass.h"
#include "ops/ssm.h"

/* Row descriptions as they are built on the host; one block, written to the device in one piece. */
typedef struct hn_row_image {
    int32_t n, n_seqs;                     /* rows of the pass; their sequences */
    int32_t n_out, n_full, n_logits;       /* hn_pass_output's */
    int32_t n_features, n_masks, n_stored; /* rows that are exported; rows of masks; stored outputs */
    int32_t n_step[HN_MOST_HEAD_STEPS];    /* outputs of each step */
    int32_t token[HN_PASS_ROWS], position[HN_PASS_ROWS], slot[HN_PASS_ROWS], seq[HN_PASS_ROWS], path_start[HN_PASS_ROWS];
    int32_t turned[HN_PASS_ROWS]; /* the position that a row is rotated by */
    int32_t last[HN_PASS_ROWS], seen_from[HN_PASS_ROWS]; /* hn_rows.last, from */
    int32_t seq_first[HN_MAX_TEXTS + 1], committed[HN_MAX_TEXTS], direct[HN_MAX_TEXTS];
    int32_t out[HN_PASS_ROWS], feature[HN_PASS_ROWS]; /* rows to gather */
    int32_t normed[HN_PASS_ROWS];                     /* index of the feature rows among the gathered ones */
    int32_t each[HN_PASS_ROWS];                       /* 0, 1, 2, ... */
    /* of a draft head: places of the rows' features; rows whose output is kept, and its place */
    int32_t zero[HN_MAX_ROWS], mask_row[HN_MAX_ROWS]; /* 0, 0, ...; rows of masks with their own vectors (HN_MASK_PAIR, block.mask_row) */
    int32_t from[HN_MAX_ROWS], output_row[HN_MAX_ROWS], output_slot[HN_MAX_ROWS];
    int32_t store_from[HN_MAX_ROWS], store_to[HN_MAX_ROWS];
    int32_t path_slots[]; /* [path_room of the runner]; a pass writes as many as it has */
} hn_row_image;

/* Bytes of row descriptions with `paths` entries of paths. */
static inline size_t hn_image_bytes(int paths) {
    return offsetof(hn_row_image, path_slots) + sizeof(int32_t) * (size_t)paths;
}

/* The model's groups in the cache. Set when the runner opens. */
typedef struct hn_pass_groups {
    hn_cache *cache;
    int first, n, model_id; /* the model's group g is group first + g of the cache */
    hn_cache_kind kind[HN_MODEL_GROUPS];
    hn_layer_place *place; /* owned: [layers] the groups of each */
    int taps;              /* rows that one of a recurrent layer reads, itself included, the most of any */
    bool borrowed; /* they are another model's, and the rows of a pass have no slots in them */
    unsigned read; /* then: mask of those that some layer reads */
    int window;    /* then: the smallest window of its layers; 0: none has one */
} hn_pass_groups;

/* The rows of a pass. Described on the host before each pass (pass_rows.c), then written to the buffers, which workers read. */
typedef struct hn_pass_rows {
    int max, max_texts;              /* of a pass */
    int n, n_seqs;                   /* of this pass */
    hn_layer_set layers;             /* the same: that its rows run */
    int path_room, n_path;           /* entries of path_slots; of this pass */
    hn_row_image *image;             /* owned */
    int32_t *table[HN_MODEL_GROUPS]; /* owned: host copy of the page tables [max_texts][stride] */
    hn_buf image_buf;
    hn_rows group[HN_MODEL_GROUPS]; /* the same rows; the page tables are each group's own */
    hn_rows turned;                 /* the rows with the positions that they are rotated by */
} hn_pass_rows;

/* The order in which recurrent layers walk the rows. Described on the host before each pass (pass_walk.c), then written to the buffers. */
typedef struct hn_pass_walk {
    hn_row_walk at;
    hn_buf next_state[HN_MODEL_GROUPS];   /* page tables of the states that a pass writes */
    int32_t *next_table[HN_MODEL_GROUPS]; /* owned: their host copies */
    hn_walk_step *step;  /* owned: [hn_walk_most_steps]; NULL: the model has no such layers */
    int32_t first[HN_MAX_TEXTS + 1], fresh[HN_MAX_TEXTS];
    int absorb_to[HN_MAX_TEXTS]; /* rows in the states after this pass */
} hn_pass_walk;

/* The states on a grid of positions that rows read, in layers that have such. Described on the host before each pass (pass_grid.c), then
 * written to the buffers. */
typedef struct hn_pass_grid {
    hn_state_grid at;
    hn_grid_cell *cell; /* owned: [hn_grid_most_cells]; NULL: the model has no such layers */
    int32_t *slot, *row; /* owned: HN_GRID of each cell; rows of the pass */
    int32_t first[HN_MAX_TEXTS + 1];
    int n_cells, n_slots, n_rows;
} hn_pass_grid;

/* The input of a draft head's pass and the stores that it reads: workers write them (pass_head.c); the rest is described before each pass
 * (pass_rows.c). */
typedef struct hn_pass_head {
    hn_matrix store, outputs; /* the target's states, side by side; outputs of its own that later rows read */
    int store_rows, output_rows;
    bool drafts;         /* of this pass: features are outputs */
    bool context;        /* of this pass: only keys and values */
    int module;          /* of this pass: which of a head's modules, each one layer */
    int n_output_rows, n_masks; /* of this pass: stored outputs, rows that are masks after the norms */
} hn_pass_head;

/* The rows of a head with steps, in the order of their steps. Workers write the buffers (pass_steps.c); the rest is described before each
 * pass (pass_rows.c). */
typedef struct hn_step_rows {
    hn_step_buffers buffers;
    int first;                         /* the step of the pass's own rows */
    int begin[HN_MOST_HEAD_STEPS + 1]; /* first of each step's rows among the wanted ones */
    int further[HN_MAX_ROWS];          /* number of each row's first further output */
} hn_step_rows;

/* From the stream to logits. Numbers of rows are described before each pass (pass_rows.c), workers write the buffers; host: views of
 * them after the pass. */
typedef struct hn_pass_output {
    int rows, max_logits; /* the most that are gathered after the layers; of them with logits */
    hn_matrix x, norm;
    hn_matrix logits; /* [max_logits]: those of rows with all logits come first, so the memory of other rows is never touched */
    hn_matrix carried; /* of heads with HN_NORM_CARRIED: what the next rows read */
    hn_act act;
    hn_top best;                /* of each row: the list of this pass, of */
    hn_top lists;               /* one, or where a round waits once HN_KEPT_LISTS, in turn */
    int list;
    bool entropy;               /* is asked for: moments of heads' rows are computed */
    hn_top nearest;             /* with clusters: of the centroids, those whose outputs are computed */
    /* gathered rows; the first n_full have all their logits, the first n_host of them for the host; the first n_logits the best of them */
    int n, n_host, n_full, n_logits;
    int16_t of_row[HN_PASS_ROWS + HN_MAX_ROWS]; /* the gathered row of each row, -1: none; further outputs follow the rows */
    const float *host_logits, *host_value, *host_sums, *host_moments; /* what was read of them after the pass; NULL: nothing */
    const int32_t *host_best, *host_clusters;
} hn_pass_output;

/* The states that are exported. The set is fixed when the runner opens; the rest as in hn_pass_output. */
typedef struct hn_pass_export {
    hn_feature_set set;
    int slot[257];    /* place of boundary k among the exported ones, -1: not exported */
    int n_boundaries; /* without the one after the last norm, whose place is behind them */
    hn_matrix states; /* [hn_pass_rows.max] rows of each boundary */
    int n;            /* rows that are exported */
    int16_t of_row[HN_PASS_ROWS];
} hn_pass_export;

/* The pass that was submitted last. */
typedef struct hn_pass_submission {
    bool open; /* it has not been waited for */
    bool moves; /* its work begins with rows of the cache that were still to be moved */
    hn_ticket ticket;
    double seconds; /* that it took to describe it, then also its work */
    int cache_seq[HN_MAX_TEXTS]; /* of its sequences */
} hn_pass_submission;

/* Rows of which the host does not know the tokens, and trees (pass_one_wait.c). One block, written if a pass has any. */
typedef struct hn_one_wait_image {
    int32_t n_trees;
    int32_t tree_first[HN_MAX_TEXTS], tree_rows[HN_MAX_TEXTS];
    int32_t parent[HN_PASS_ROWS], of_row[HN_PASS_ROWS]; /* hn_match's */
    int32_t from[HN_PASS_ROWS], to[HN_PASS_ROWS];       /* of tokens: places in their lists, rows of the pass */
} hn_one_wait_image;

typedef struct hn_token_list {
    hn_buf from;
    int first, n; /* its entries of from and to */
} hn_token_list;

typedef struct hn_pass_one_wait {
    hn_one_wait_image *image; /* owned; NULL: the backend is none where a round waits once */
    hn_draw *draw;         /* owned: [max_logits] of the gathered rows */
    hn_buf image_buf, draws, after, scratch, out;
    hn_token_list list[HN_PASS_ROWS];
    int n_lists, n_trees;
    int16_t tree_of[HN_MAX_TEXTS]; /* the number of a sequence's tree, -1: none */
    const int32_t *host_out, *host_token;
} hn_pass_one_wait;

typedef struct hn_places hn_places;
struct hn_runner {
    const hn_model *m;
    const hn_ops *ops;   /* a table that forwards to the backend's, for passes; NULL: none */
    int max_context;     /* the most rows of a sequence */
    hn_buf_room buffers; /* owned: all buffers of the parts below (runner_buffers.c) */
    hn_pass_groups groups;
    hn_pass_rows rows;
    hn_pass_walk walk;
    hn_pass_grid grid;
    hn_pass_buffers buf; /* what layers read and write */
    hn_pass_head head;
    hn_step_rows steps;
    hn_pass_output out;
    hn_pass_export features;
    hn_places *places; /* owned: the stage after a block, NULL: none */
    hn_pass_one_wait ahead;
    hn_pass_submission run;
    struct hn_pass_told *told; /* owned: what is told to ranks (pass_told.c); NULL: nothing */
    hn_ticket left[HN_KEPT_LISTS]; /* passes whose end nobody waited for: their seconds are not in `seconds` yet */
    int n_left;
    double seconds;    /* of all passes */
};

/* A part of the described rows: its offset in hn_row_image. */
static inline hn_buf hn_image_at(const hn_runner *r, size_t offset) {
    return hn_at(r->rows.image_buf, offset);
}

/* A number in them, which is n in this pass. */
static inline hn_count hn_image_count(const hn_runner *r, size_t offset, int n) {
    return (hn_count){hn_image_at(r, offset), n};
}

/* What is computed of the best outputs in this pass. */
static inline hn_top hn_runner_top(const hn_runner *r, hn_top top) {
    if (!r->out.entropy) top.moments = (hn_buf){NULL, 0};
    return top;
}

/* The sum of a row's parts. */
double hn_parts_sum(const float *parts, int n);
/* In nats, of a softmax, by hn_top: moments NULL: NAN. */
double hn_entropy_of(double sum, const float *moments, int parts);

/* What a recorded function calls operations with. */
static inline hn_exec hn_runner_exec(const hn_exec *ex, const hn_runner *r) {
    return (hn_exec){r->ops ? r->ops : ex->ops, ex->backend, ex->rank, ex->ranks};
}

/* runner_buffers.c. Takes every buffer of a runner (hn_buf_room_open). */
void hn_runner_list_buffers(void *runner, hn_buf_room *room);

/* pass.c. The tables of the rows, by each of the model's rotations. */
void hn_pass_rotations(const hn_exec *ex, const hn_runner *r);

/* pass_mixers.c. x += the results of the layer's mixers; stores what they keep of the rows. */
void hn_pass_mix(const hn_exec *ex, const hn_runner *r, int layer);

/* pass_head.c. The input of a draft head's layers; stores outputs that later rows read. */
hn_head_input hn_head_input_of(const hn_runner *r);
void hn_head_keep_outputs(const hn_exec *ex, const hn_runner *r);

/* pass_results.c. Whether the set has the state at a boundary of layers; the rows of an exported feature. */
bool hn_feature_wants(const hn_feature_set *s, int boundary);
hn_matrix hn_feature_block(const hn_runner *r, int place);

/* pass_steps.c. Widths of its buffers: state, result, mid, token, input of matrices; width of a stored output. */
typedef struct hn_step_widths {
    int state, result, mid, token, in;
} hn_step_widths;
hn_step_widths hn_pass_step_widths(const hn_arch *a);
int hn_pass_output_width(const hn_arch *a);
void hn_pass_steps(const hn_exec *ex, const hn_runner *r);

/* pass_places.c, of a head that drafts the places of a block in order: for up to `states` states of drafts at a time. */
hunch_status hn_places_open(hn_runner *r, int states, hunch_error *err);
void hn_places_close(hn_runner *r);

/* pass_one_wait.c. */
hunch_status hn_one_wait_open(hn_runner *r, hunch_error *err);
void hn_one_wait_close(hn_runner *r);
void hn_one_wait_list_buffers(hn_buf_room *room, hn_runner *r);
void hn_one_wait_describe(hn_runner *r, const hn_row *rows, int n, int n_seqs, const hn_pass_options *more); /* after the rows */
void hn_one_wait_take(const hn_exec *ex, const hn_runner *r);   /* before the layers */
void hn_one_wait_verify(const hn_exec *ex, const hn_runner *r); /* after the logits */
void hn_one_wait_read(hn_runner *r);

/* pass_rows.c. Writes those of n entries of a page table to its buffer that differ from the kept copy of what the buffer has. */
void hn_table_write(const hn_runner *r, hn_buf to, int32_t *kept, const int32_t *table, int n);
/* Describes the rows of a pass, whose slots are reserved, in the runner's buffers. more: not NULL. */
void hn_pass_describe(hn_runner *r, const hn_row *rows, int n, const int *cache_seq, int n_seqs, const hn_pass_options *more);

/* After the description of a pass: the numbers of its rows, wherever operations find them. most_seen: hn_rows.most_seen. */
void hn_pass_counts(hn_runner *r, int most_seen);
/* pass.c. A pass that the leader has described. */
hunch_status hn_pass_run_followed(hn_runner *r, hunch_error *err);

/* pass_told.c, of a leader, else nothing: a runner has been opened, and ends; a pass will be described, an entry of page tables has
 * changed, so has the walk of the pass, the pass is described. */
hunch_status hn_told_open(hn_runner *r, hunch_error *err);
void hn_told_close(hn_runner *r);
void hn_told_begin(hn_runner *r);
void hn_told_table(const hn_runner *r, const int32_t *kept, int n);
void hn_told_walk(const hn_runner *r, int n_seqs);
void hn_told_send(hn_runner *r);

/* pass_walk.c. The most steps of a pass: its rows, and for each sequence rows before it, which may all be absorbed, and draft rows of
 * earlier ones. */
size_t hn_walk_most_steps(const hn_runner *r);
/* Appends the walk of sequence `seq` of the pass, whose rows are [first, last), the first `n_certain` of which
 * will certainly be committed. absorb false: the state does not change, and no row is certain; true: there are no draft
 * rows. */
void hn_walk_sequence(hn_runner *r, const hn_row *rows, int first, int last, int seq, int cache_seq,
                      const hn_draft_rows *drafts, int n_certain, bool absorb);
void hn_walk_write(hn_runner *r, int n_seqs);
void hn_walk_done(hn_runner *r, const int *cache_seq, int n_seqs); /* after the pass: updates the rows of the states */
/* How many of the certain rows after the committed ones are absorbed, if at most `room` remain after the end of a node. */
int hn_walk_certain(int committed, int n_certain, int node_rows, int room);
void hn_walk_next_states(hn_runner *r, int seq, int cache_seq); /* the tables of the states that the pass writes */
static inline bool hn_runner_has_states(const hn_runner *r) { return r->walk.step || r->grid.cell; }

/* pass_grid.c. As hn_walk_sequence, after the rows are described; begin before the first sequence. */
int hn_grid_most_cells(const hn_runner *r);
void hn_grid_begin(hn_runner *r);
void hn_grid_sequence(hn_runner *r, int first, int last, int seq, int cache_seq, const hn_draft_rows *drafts, int n_certain, bool absorb);
void hn_grid_write(hn_runner *r, int n_seqs);
#endif
