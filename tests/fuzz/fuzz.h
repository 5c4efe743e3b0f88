/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - helpers of the fuzz targets: their input as files and folders, and checks of every refusal.
 *
 * A target is one file, fuzz_NAME.c, with one function that takes any bytes and returns. libFuzzer calls it (make fuzz,
 * make test-long), or fuzz_driver.c (make test). An input of several parts has a byte 0xFF, which is in no UTF-8 text,
 * between them.
 */
#ifndef HN_FUZZ_H
#define HN_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hunch/hunch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_bytes {
    const uint8_t *at;
    size_t size;
} fuzz_bytes;

/* Removes and returns the next part. After the last one all are empty. */
fuzz_bytes fuzz_part(fuzz_bytes *rest);
/* A NUL-terminated copy; free. */
char *fuzz_text(fuzz_bytes b);

/* The path of a file in memory that holds the bytes; it is overwritten by the next call with the same number, 0 to 15. */
const char *fuzz_file(int number, fuzz_bytes b);
/* The process's folder, removed at exit, and a file in it or below it that is fuzz_file(number). An empty one is removed if `optional`. */
const char *fuzz_folder(void);
void fuzz_folder_file(const char *name, int number, fuzz_bytes b, bool optional);

/* A status that input may end in: success, or a refusal with a message that is not empty, has no control characters
 * and, unless path is NULL, names the path. Out of memory is not allowed: no small file may need that much. */
void fuzz_check(hunch_status status, const hunch_error *err, const char *path);
#define FUZZ_MUST(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) fuzz_fail(__FILE__, __LINE__, #condition);                                                   \
    } while (0)
#define FUZZ_NEVER(what) fuzz_fail(__FILE__, __LINE__, what)
_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* The command's messages and output are discarded. */
void fuzz_mute(void);
#endif
