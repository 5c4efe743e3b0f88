/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_help.h - what help and completion say of a kind of drafter: its file has it, beside the calls that read these keys.
 * tests/command_help_test.c compares it with what the library accepts, kind by kind and key by key. */
#ifndef HN_DRAFTER_HELP_H
#define HN_DRAFTER_HELP_H

typedef struct hn_drafter_key {
    const char *name, *value; /* value: its range, or words with | between them; FILE and NAME stand for any */
    const char *help;
} hn_drafter_key;

typedef struct hn_drafter_help {
    const char *path; /* "[:FILE]", ":MODEL", ":HEAD"; NULL: no path */
    const char *help;
    hn_drafter_key keys[24]; /* to a NULL name */
} hn_drafter_help;

/* The i-th kind of the list (drafter.h) and its name; NULL: there are no more. */
const hn_drafter_help *hn_drafter_help_at(int i, const char **name);
#endif
