/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_files.h - the files that a drafter's SPEC names. Nothing is opened as a drafter. Implemented in drafter.c. */
#ifndef HN_DRAFTER_FILES_H
#define HN_DRAFTER_FILES_H
#include "base/status.h"

typedef enum hn_file_use { HN_FILE_READ, HN_FILE_WRITTEN, HN_FILE_MODEL } hn_file_use; /* MODEL: of a model or a draft head */

/* Calls each for the files of a SPEC; a name is valid during the call. A file that is both read and written
 * (cache,dynamic=F,save=F) is reported as written only. Errors: HUNCH_USAGE, HUNCH_NO_MEMORY. */
hunch_status hn_drafter_files(const char *spec, void (*each)(void *user, const char *file, hn_file_use use), void *user, hunch_error *err);

/* Whether the files that a SPEC writes (cache,save=F) are new, empty, or earlier ones of the same form. HUNCH_REFUSED: one is something
 * else, which the drafter would replace when the engine closes: it does not ask. Other errors: HUNCH_USAGE, HUNCH_FAILED,
 * HUNCH_NO_MEMORY. */
hunch_status hn_drafter_check_written(const char *spec, hunch_error *err);
#endif
