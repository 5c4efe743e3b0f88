/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_head.h - draft heads that were damaged on purpose, and the one line that refuses them. */
#ifndef HN_TESTS_HOSTILE_HEAD_H
#define HN_TESTS_HOSTILE_HEAD_H
#include "command.h"

#include "hostile_limits.h"
#include "random_head.h"

#define HEADS HUNCH_TEST_DATA "/goldens-heads"
#define LLAMA HEADS "/targets/llama-a"
#define QWEN3 HEADS "/targets/qwen3-a"
#define IDS HEADS "/eagle2-nobias-gqa/ids.json"

/* Checks that "KIND:PATH..." is refused with one line. */
static inline void spec_refused(int code, const char *target, const char *spec, const char *says) {
    result r = command("draft", "-m", target, "--draft", spec, "--tokens", IDS);
    const char *end = strchr(r.err, '\n'), *again = strstr(r.err, "drafter '");
    if (r.code != code || !strstr(r.err, says) || !again || strstr(again + 1, "drafter '") || !end || end[1] || r.out_len)
        fail_msg("%s: expected %d and one line that names the drafter once and \"%s\", got %d and \"%s\", output \"%s\"", spec,
                 code, says, r.code, r.err, r.out);
    result_free(&r);
}

static inline const char *spec_at(const char *kind, const char *path, const char *rest) {
    static char spec[900];
    snprintf(spec, sizeof spec, "%s:%s%s", kind, path, rest);
    return spec;
}

typedef enum form { EAGLE, EAGLE3, SPECULATORS, PEAGLE, MTP, DART, FALCON, DFLASH, DSPARK, JETSPEC, PARD, CLUSTERS, DOMINO, DFLASH2 } form;
static const head_form *const forms[] = {&LLAMA_EAGLE, &LLAMA_EAGLE3, &LLAMA_SPECULATORS, &LLAMA_PEAGLE, &LLAMA_MTP,
                                         &LLAMA_DART,  &LLAMA_FALCON, &LLAMA_DFLASH,      &LLAMA_DSPARK,
                                         &LLAMA_JETSPEC, &LLAMA_PARD, &LLAMA_CLUSTERS,
                                         &LLAMA_DOMINO, &LLAMA_DFLASH2};

static inline void make(random_head *h, form f) { head_make(h, forms[f]); }

static inline void assert_head_refused(const random_head *h, form f, const char *says) {
    head_write(h, path_of("head"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at(head_kind_of(forms[f]), path_of("head"), ""), says);
}
#endif
