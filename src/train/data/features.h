/* SPDX-License-Identifier: Apache-2.0 */
/* features.h - the target's states for each token of the texts, in the same numerics as the engine, stored as bf16.
 *
 * A folder of shards, features-0000.bin, ...: a header, then a record for each text:
 *
 *   header   hn_shard_header, whose numbers must be the same to continue a run
 *   record   uint32 n, own; int32 ids[n]; bf16 states[n][n_states * width]; uint64 sum of all that
 *
 * Records are in the order of the texts; a shard is closed when it has SHARD bytes. An interrupted run continues after
 * the last complete record, and gives the same bytes on the same level. Little-endian, like the supported machines. */
#ifndef HN_TRAIN_FEATURES_H
#define HN_TRAIN_FEATURES_H
#include "train/data/states.h"
#include "train/data/texts.h"

enum { HN_TRAIN_LEVEL_BYTES = 24 };

typedef struct hn_shard_header {
    char magic[8];         /* "HUNCHFT1" */
    uint64_t model, texts; /* hn_train_identity of the target; a sum of all ids of all texts */
    uint32_t n_states, width;
    int32_t boundary[HN_TRAIN_MOST_STATES]; /* for each state: the layer that it enters, or HN_FEATURE_POST_NORM */
    char level[HN_TRAIN_LEVEL_BYTES];       /* instruction level */
} hn_shard_header;

/* states [n_states]: boundaries as in states.h. */
hn_shard_header hn_features_header(const hn_model *target, uint64_t identity, const hn_train_texts *texts,
                                   const int *states, int n_states);
/* Bytes of all shards together. */
uint64_t hn_features_bytes(const hn_shard_header *h, const hn_train_texts *texts);
/* The path of a shard; NULL without memory. The caller frees it. */
char *hn_features_shard_path(const char *folder, size_t number);

/* Computes the missing features. progress: tokens. stop: see hn_train_make. HUNCH_REFUSED: the folder has features of
 * another model, level, states or texts. */
hunch_status hn_features_make(const hn_model *target, uint64_t identity, const hn_train_texts *texts, const int *states,
                              int n_states, const char *folder, hunch_progress progress, void *user,
                              const volatile int *stop, hunch_error *err);

/* All texts, and their states: mapped records, or computed when needed (online.h). */
typedef struct hn_feature_text {
    const int32_t *ids;
    const uint16_t *states; /* [n][states * width] bf16, read by hn_features_state; online: of the rows that were passed to
                               hn_features_need */
    int n, own;
} hn_feature_text;

typedef struct hn_features_read {
    hn_shard_header header; /* of the states that are read */
    uint32_t kept;          /* states of a record; 0: those of the header */
    int32_t column[HN_TRAIN_MOST_STATES]; /* of kept > 0: where among them each state of the header is */
    hn_feature_text *text;
    size_t n, cap;
    uint64_t tokens;
    struct hn_shard_map *map;
    size_t n_maps, maps_cap;
    struct hn_online *online; /* NULL: features are stored */
} hn_features_read;

/* [width] state `state` of the header's, of a row. */
static inline const uint16_t *hn_features_state(const hn_features_read *f, const hn_feature_text *t, int row, uint32_t state) {
    const size_t kept = f->kept ? f->kept : f->header.n_states, at = f->kept ? (size_t)f->column[state] : state;
    return t->states + ((size_t)row * kept + at) * f->header.width;
}

/* HUNCH_REFUSED: a damaged record. */
hunch_status hn_features_open(hn_features_read *f, const char *folder, hunch_error *err);
void hn_features_close(hn_features_read *f); /* zeroed is fine */
#endif
