/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - opens the shared object that has MPI, and what is the same over every link. */
#include "base/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HUNCH_MPI_FOLDER
#include <dlfcn.h>
#endif

/* What they set for each process: Open MPI, MPICH, and whoever starts either by PMIx. */
bool hn_link_started(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return true;
    return false;
}

#ifdef HUNCH_MPI_FOLDER
static const char library[] = "libhunch_mpi.so";

/* Beside the program, as it was built, or where it was installed: from the program's folder on. */
static void *open_library(void) {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 200);
    if (n <= 0) return NULL;
    path[n] = 0;
    char *name = strrchr(path, '/');
    if (!name) return NULL;
    snprintf(name + 1, 199, "%s", library);
    /* MPI opens parts of its own, which look for its names among those of the whole process. */
    void *so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (so || access(path, F_OK) == 0) return so;
    snprintf(name + 1, 199, "%s/%s", HUNCH_MPI_FOLDER, library);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static hunch_status open_started(hn_link **out, hunch_error *err) {
    void *so = open_library();
    if (!so) return hn_fail(err, HUNCH_REFUSED, "started by mpirun, but MPI cannot be opened: %s", dlerror());
    hn_link_opener *opener;
    *(void **)(void *)&opener = dlsym(so, HN_LINK_OPENER);
    const char *why = "another version of it";
    hn_link *l = opener ? opener(&why) : NULL;
    if (!l) return hn_fail(err, HUNCH_REFUSED, "started by mpirun, but MPI cannot be opened: %s: %s", library, why);
    if (l->ranks > HN_MOST_RANKS) return hn_fail(err, HUNCH_REFUSED, "%d ranks: expected up to %d", l->ranks, HN_MOST_RANKS);
    if (l->ranks > 1) {
        *out = l;
        return HUNCH_OK;
    }
    l->close(l);
    return HUNCH_OK;
}
#else
static hunch_status open_started(hn_link **out HN_UNUSED, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "started by mpirun, but this hunch was built without MPI (Debian: libopenmpi-dev)");
}
#endif

hunch_status hn_link_open(hn_link **out, hunch_error *err) {
    *out = NULL;
    return hn_link_started() ? open_started(out, err) : HUNCH_OK;
}

/* What a rank thinks of what was told last. */
typedef struct opinion {
    int32_t status;
    char message[512 + 128];
} opinion;
typedef struct verdict {
    hn_told told;
    opinion of;
} verdict;

hunch_status hn_link_agree(hn_link *l, hunch_status own, hunch_error *err) {
    if (!l) return own;
    opinion mine = {.status = own}, all[HN_MOST_RANKS];
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    const char *why = own && err ? err->message : "";
    if (l->rank > 0) snprintf(mine.message, sizeof mine.message, "rank %d on %s: %.500s", l->rank, host, why);
    else snprintf(mine.message, sizeof mine.message, "%.500s", why);
    l->collect(l, &mine, all, sizeof mine);
    verdict v = {.told = {HN_TOLD_VERDICT, 0}};
    if (l->rank == 0) {
        for (int r = l->ranks - 1; r >= 0; r--)
            if (all[r].status) v.of = all[r];
        l->send(l, &v, sizeof v);
    } else {
        const void *message;
        if (l->receive(l, &message) != sizeof v) l->abort(l, HUNCH_FAILED);
        memcpy(&v, message, sizeof v);
    }
    return v.of.status ? hn_fail(err, (hunch_status)v.of.status, "%.600s", v.of.message) : HUNCH_OK;
}
