/* SPDX-License-Identifier: Apache-2.0 */
/* program_files.h - what hunch's own programs ask beside hunch.h: which files they must not overwrite, which downloads there are,
 * and help for drafters. The
 * programs are linked with libhunch.a; libhunch.so does not export these. The only header of a layer above base/ that src/tools/ may
 * include (tests/layers_test.c). */
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
 * folder; "": there is none. Of a model that is refused as far as it is known; of a draft head keys alone. Errors: as hunch_model_open, of
 * one whose family is not known. */
typedef struct hn_expected {
    bool tensor;
    const char *gguf, *folder, *values; /* values: in words; of a tensor its shape */
    int layer, layers;                  /* of a tensor of layers: how many have it; 0: it is the model's */
} hn_expected;
hunch_status hn_model_expects(const char *path, bool head, void (*each)(void *user, const hn_expected *e), void *user, hunch_error *err);
#endif
