/* SPDX-License-Identifier: Apache-2.0 */
/* head_check.h - the parts of hunch_check_head: check_api.c (whether the head fits, and the report), check_smoke.c (whether it guesses
 * better than a constant, on texts that the model generates), check_causes.c (whether it guesses better if read differently). */
#ifndef HN_HEAD_CHECK_H
#define HN_HEAD_CHECK_H
#include "draft/head/open/head_reading.h"
#include "engine/engine.h"

enum {
    HN_CHECK_TEXTS = 16,
    HN_CHECK_AT_ONCE = 8,
    HN_CHECK_WANTED = 256, /* first positions */
    HN_CHECK_MIN_ROUNDS = 50,   /* with fewer there is no verdict */
    HN_CHECK_ERRORS = 3    /* standard errors that are significant */
};

typedef struct hn_check_text {
    int32_t *token;
    int n, n_prompt;
} hn_check_text;

typedef struct hn_smoke {
    hn_check_text text[HN_CHECK_TEXTS]; /* [n] owned */
    int n;
    int drafted[HUNCH_MAX_DEPTH], accepted[HUNCH_MAX_DEPTH]; /* rounds that drafted level i + 1, and in which it was right */
    int32_t *first_token;               /* [n_first] the texts' tokens at first positions */
    size_t n_first, cap_first;
    bool no_memory;
    double constant;                    /* share of the most frequent of them */
    double seconds;
    bool cut;                           /* stopped by the time limit */
} hn_smoke;

/* The caller's progress callback. */
typedef struct hn_check_progress {
    hunch_progress call; /* NULL: none */
    void *user;
} hn_check_progress;

/* spec: of a head, drafting a chain. given [n_given]: the text that the model continues; n_given 0: several of the test's own. s->n 0:
 * the model's tokenizer gives no tokens for these. */
hunch_status hn_smoke_run(hn_smoke *s, hunch_model *m, const char *spec, const hunch_token *given, size_t n_given, hn_check_progress p,
                          hunch_error *err);
void hn_smoke_fini(hn_smoke *s);
double hn_smoke_error(double share, int n); /* standard error */

typedef enum hn_smoke_verdict { HN_SMOKE_GOOD, HN_SMOKE_BAD, HN_SMOKE_UNKNOWN } hn_smoke_verdict;
hn_smoke_verdict hn_smoke_judge(const hn_smoke *s);

/* A way to read a head: a key of its spec, or rows that are combined differently. */
typedef struct hn_reading {
    char what[80];
    char key[16], value[100]; /* of the spec, "": none */
    int feature, token;       /* offsets of the positions from which rows' features and tokens are taken */
    int n, hits;
    bool better;              /* significantly better than as the file specifies */
} hn_reading;

enum { HN_MOST_READINGS = 32 };
typedef struct hn_causes {
    hn_reading reading[HN_MOST_READINGS]; /* the first is the file's own */
    int n, best;                          /* best -1: none is clearly better */
    double seconds;
    bool cut;
} hn_causes;

/* Tries other ways to read the head on the smoke test's texts, for at most `seconds`. */
hunch_status hn_causes_find(hn_causes *c, hunch_model *m, const hn_spec *spec, const struct hn_head_report *report,
                            const hn_smoke *smoke, double seconds, hn_check_progress p, hunch_error *err);

/* The spec with kind and path, without keys that are not about the head itself (its tree, fewer tokens), with one key changed (NULL:
 * none). To be freed with hn_free. */
hunch_status hn_check_spec(char **out, const hn_spec *spec, const char *key, const char *value, hunch_error *err);
#endif
