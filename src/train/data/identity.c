/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - see identity.h. */
#include "train/data/identity.h"

#include <errno.h>
#include <hunch/hunch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "engine/program_files.h"

typedef struct reading {
    uint64_t number;
    hunch_status status;
    hunch_error *err;
    char *piece;
} reading;

enum { PIECE = 1 << 20 };

static void read_file(void *user, const char *path) {
    reading *r = user;
    size_t n;
    if (r->status) return;
    FILE *f = fopen(path, "rb");
    while (f && (n = fread(r->piece, 1, PIECE, f)) > 0) r->number = hn_bytes_hash(r->piece, n, r->number);
    if (!f || ferror(f)) r->status = hn_fail(r->err, HUNCH_FAILED, "%s: cannot be read: %s", path, strerror(errno));
    if (f) fclose(f);
}

hunch_status hn_train_identity(const char *model, uint64_t *out, hunch_error *err) {
    reading r = {.number = 1, .err = err, .piece = hn_alloc(PIECE)};
    if (!r.piece) return hn_fail_memory(err, "reading a model", PIECE);
    hunch_status st = hn_model_files(model, read_file, &r, err);
    hn_free(r.piece);
    *out = r.number;
    return st ? st : r.status;
}

const char *hn_train_identity_text(uint64_t number, char to[HN_IDENTITY_ROOM]) {
    (void)snprintf(to, HN_IDENTITY_ROOM, "%016" PRIx64, number);
    return to;
}
