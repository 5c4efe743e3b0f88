/* SPDX-License-Identifier: Apache-2.0 */
/* tool_flags.h - the flags of all subcommands in one table, from which parser, help, manual and completion are made.
 *
 * To add a flag: a field in tool_options (tool_options.h), and a line in the table of tool_flags.c with the commands that accept it. */
#ifndef HN_TOOL_FLAGS_H
#define HN_TOOL_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

/* Kind of its value. PLACE: --flag for standard output, "-", or --flag=FILE. COUNT: --flag for 0, or --flag=N. LIMIT: -1 is none, kept as
 * 0. ABOVE, PAIR: min itself is too small. WORD: a CHOICE that is kept as the word. REALS: a number each time that it is given. */
enum tool_kind {
    TOOL_SWITCH,
    TOOL_TEXT,
    TOOL_PLACE,
    TOOL_COUNT,
    TOOL_INT,
    TOOL_LIMIT,
    TOOL_INT64,
    TOOL_REAL,
    TOOL_ABOVE,
    TOOL_PAIR,
    TOOL_CHOICE,
    TOOL_WORD,
    TOOL_TEXTS,
    TOOL_INTS,
    TOOL_REALS,
    TOOL_BIASES
};

enum { TOOL_BASIC = 64 }; /* added to a group: -h lists the flag */

typedef struct tool_flag {
    const char *name, *alias; /* with their dashes; alias may be NULL */
    enum tool_kind kind;
    size_t at;                  /* offset in tool_options */
    unsigned commands;          /* that accept it */
    unsigned group;             /* index in tool_groups, | TOOL_BASIC */
    double min, max;            /* of numbers */
    const char *const *choices; /* TOOL_CHOICE, TOOL_WORD: accepted words, then NULL; "default": no flag; not accepted */
    /* Placeholder of the value in help: MODEL, FOLDER and FILE are paths (written in the group Output, else read: tool_check_files.h),
     * SPEC a drafter, LEVEL an instruction level; NULL: no value. */
    const char *value, *help;
} tool_flag;

extern const tool_flag tool_flags[];
extern const int tool_n_flags;
extern const char *const tool_groups[]; /* headings, then NULL */
extern const char *const tool_kv_names[], *const tool_verify_names[]; /* in the order of hunch_kv, hunch_verify */
extern const char *const tool_pooling_names[];                       /* of hunch_pooling */
extern const char *const tool_type_names[];                          /* of hunch_convert_as */

/* The flag named by the first len bytes of name; NULL: this command has none of that name. */
const tool_flag *tool_flag_find(const char *name, size_t len, unsigned command);
bool tool_flag_writes(const tool_flag *f);                             /* whether its value is a file that is written */
const char *tool_flag_near(const char *name, unsigned command); /* the nearest name, NULL: none is near */
bool tool_flag_needs_value(const tool_flag *f); /* it may not be given without one */
bool tool_in_range(const tool_flag *f, double x);
/* "a number above 0 and at most 1": the range of a numeric flag. Returns out. */
char *tool_range_text(const tool_flag *f, char *out, size_t size);
/* "a, b or c" of the words of a choice. Returns out. */
char *tool_choices_text(const tool_flag *f, char *out, size_t size);
const char *tool_choice_near(const tool_flag *f, const char *word);

#endif
