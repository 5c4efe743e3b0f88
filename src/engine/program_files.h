/* SPDX-License-Identifier: Apache-2.0 */
/* program_files.h - what hunch's own programs ask beside hunch.h: which files they must not overwrite, which downloads there are,
 * and help for drafters. The programs are linked with libhunch.a; libhunch.so does not export these. The only header of a layer above
 * base/ that src/app/ and src/cli/ may include (tests/layers_test.c). */
#ifndef HN_PROGRAM_FILES_H
#define HN_PROGRAM_FILES_H
#include "draft/drafter_files.h"
#include "draft/drafter_help.h"

/* The files of a model, or a draft head, that are read when it is opened: the parts of a split GGUF file; of a folder its weights, JSON
 * and chat template. A name is valid during the call; compare the files themselves, not the names. Errors: as hunch_model_open. */
hunch_status hn_model_files(const char *path, void (*each)(void *user, const char *file), void *user, hunch_error *err);

/* The downloads in the caches that hunch_model_open describes, by the names that it takes, in alphabetical order; a name is valid during
 * the call. Reads folders only. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_downloads(void (*each)(void *user, const char *name), void *user, hunch_error *err);

/* What files of the model's family have: keys, then tensors, of which layer `layer` is the first that has it. Names in a GGUF, and in a
 * folder; "": there is none. Of a model that is refused as far as it is known, and of a draft
 * head that only its target describes. Errors: as hunch_model_open, of
 * one whose family is not known. */
typedef struct hn_expected {
    bool tensor;
    const char *gguf, *folder, *values; /* values: in words; of a tensor its shape */
    int layer, layers;                  /* of a tensor of layers: how many have it; 0: it is the model's */
} hn_expected;
hunch_status hn_model_expects(const char *path, bool head, void (*each)(void *user, const hn_expected *e), void *user, hunch_error *err);

/* ---- a model over the processes that mpirun has started (docs/machines.md) ---- */

typedef struct hn_machines hn_machines;
/* *out NULL: mpirun did not start this process, or it is alone. Errors: HUNCH_REFUSED: it did, but there is no MPI, or a rank is another
 * build or has other arguments; only the leader has a message then. */
hunch_status hn_machines_open(hn_machines **out, int argc, char **argv, hunch_error *err);
bool hn_machines_leads(const hn_machines *m);
/* Of the others: does what the leader tells, until that closes. Errors: what the leader does not know of, after which all have to end. */
hunch_status hn_machines_follow(hn_machines *m, hunch_error *err);
void hn_machines_abort(hn_machines *m, int code);
void hn_machines_close(hn_machines **m); /* NULL is fine */
/* hunch_model_open of the leader: a model whose passes all of them run. m NULL: as hunch_model_open. */
hunch_status hn_machines_model_open(hunch_model **out, hn_machines *m, const char *path, const hunch_model_options *o, hunch_error *err);
#endif
