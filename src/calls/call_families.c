/* SPDX-License-Identifier: Apache-2.0 */
/* call_families.c - all families, and which of them a chat template has: by its marks, those that others contain, too, last. */
#include "calls/call_families.h"

static const hn_call_family *const families[] = {
    &hn_calls_dsml_v4,      &hn_calls_dsml,     &hn_calls_kimi,        &hn_calls_deepseek_r1, &hn_calls_deepseek_v31,
    &hn_calls_harmony,      &hn_calls_gemma4,   &hn_calls_seed,        &hn_calls_minimax,     &hn_calls_minicpm5,
    &hn_calls_qwen3_coder,  &hn_calls_glm4,     &hn_calls_command_r7b, &hn_calls_functionary, &hn_calls_mistral_args,
    &hn_calls_mistral_json, &hn_calls_granite3, &hn_calls_lfm2,        &hn_calls_hermes,      &hn_calls_llama_pythonic,
    &hn_calls_llama3,       &hn_calls_phi4};
enum { FAMILIES = sizeof families / sizeof *families };

const hn_call_family *hn_call_family_of(const char *template_text, size_t len) {
    for (size_t i = 0; i < FAMILIES; i++)
        if (families[i]->fits(template_text, len)) return families[i];
    return NULL;
}

const hn_call_family *hn_call_family_named(const char *name) {
    for (size_t i = 0; i < FAMILIES; i++)
        if (strcmp(families[i]->name, name) == 0) return families[i];
    return NULL;
}

const char *hn_call_family_name(const hn_call_family *f) {
    return f->name;
}

const char *hn_call_family_stop(const hn_call_family *f) {
    return f->stop;
}

const char *hn_call_family_list(size_t i) {
    return i < FAMILIES ? families[i]->name : NULL;
}
