/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FUZZ_FILES = 24 };

void fuzz_fail(const char *file, int line, const char *what) {
    dprintf(STDERR_FILENO, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

fuzz_bytes fuzz_part(fuzz_bytes *rest) {
    const uint8_t *end = rest->size ? memchr(rest->at, 0xFF, rest->size) : NULL;
    fuzz_bytes part = {rest->at, end ? (size_t)(end - rest->at) : rest->size};
    size_t taken = part.size + (end != NULL);
    *rest = (fuzz_bytes){rest->at + taken, rest->size - taken};
    return part;
}

char *fuzz_text(fuzz_bytes b) {
    char *text = malloc(b.size + 1);
    FUZZ_MUST(text != NULL);
    if (b.size) memcpy(text, b.at, b.size);
    text[b.size] = '\0';
    return text;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static char paths[FUZZ_FILES][40];
static int files[FUZZ_FILES];

static void file_make(int number) {
    files[number] = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_MUST(files[number] >= 0);
    snprintf(paths[number], sizeof paths[number], "/proc/self/fd/%d", files[number]);
}

const char *fuzz_file(int number, fuzz_bytes b) {
    FUZZ_MUST(number >= 0 && number < FUZZ_FILES);
    if (paths[number][0] == '\0') file_make(number);
    FUZZ_MUST(ftruncate(files[number], 0) == 0);
    FUZZ_MUST(b.size == 0 || pwrite(files[number], b.at, b.size, 0) == (ssize_t)b.size);
    return paths[number];
}

static char folder[64], links[FUZZ_FILES][240];

static int entry_remove(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void folder_remove(void) {
    nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void) {
    if (folder[0] == '\0') {
        /* in memory, where the system has that: writing a file to disk takes longer than all that an input does */
        strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/hunch-fuzz-XXXXXX" : "/tmp/hunch-fuzz-XXXXXX");
        FUZZ_MUST(mkdtemp(folder) != NULL && atexit(folder_remove) == 0);
    }
    return folder;
}

static void link_name(char *path, const char *name) {
    snprintf(path, sizeof links[0], "%s/%s", fuzz_folder(), name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
}

void fuzz_folder_file(const char *name, int number, fuzz_bytes b, bool optional) {
    const char *to = fuzz_file(number, b);
    char *path = links[number];
    if (path[0] == '\0') link_name(path, name);
    unlink(path);
    if (b.size > 0 || !optional) FUZZ_MUST(symlink(to, path) == 0);
}

/* ---- checks --------------------------------------------------------------------------------------------- */

void fuzz_check(hunch_status status, const hunch_error *err, const char *path) {
    if (status == HUNCH_OK) return;
    if (status != HUNCH_REFUSED && status != HUNCH_USAGE) {
        dprintf(STDERR_FILENO, "%d: %s\n", (int)status, err->message);
        FUZZ_NEVER("a status that a damaged file may not give");
    }
    FUZZ_MUST(err->status == status && err->message[0] != '\0');
    for (const char *c = err->message; *c; c++) FUZZ_MUST((unsigned char)*c >= 0x20 && *c != 0x7f);
    if (path != NULL && strstr(err->message, path) == NULL) {
        dprintf(STDERR_FILENO, "%s\n", err->message);
        FUZZ_NEVER("a message that does not name the file");
    }
}

void fuzz_mute(void) {
    static FILE *nowhere; /* sanitizers and fuzz_fail write to the descriptor, which stays */
    if (nowhere) return;
    nowhere = fopen("/dev/null", "w");
    FUZZ_MUST(nowhere != NULL);
    stdout = stderr = nowhere;
}
