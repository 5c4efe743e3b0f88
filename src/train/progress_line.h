/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.h - a line on standard error that is overwritten while work goes on: on a terminal only. The last state of it is a line
 * anywhere. */
#ifndef HN_TRAIN_PROGRESS_LINE_H
#define HN_TRAIN_PROGRESS_LINE_H
#include <stdbool.h>

/* At most one a second is shown; last: the work is done. */
void hn_progress_line(bool last, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Removes it from the screen: before other output. */
void hn_progress_line_wipe(void);
#endif
