/* SPDX-License-Identifier: Apache-2.0 */
/* other_names.c - see other_names.h. */
#include "format/other_names.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *other, *usual, *pretokenizer;
} architectures[] = {{"gptoss", "gpt-oss", "gpt-4o"}, {"glm4moelite", "deepseek2", "glm4"}};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures };

/* Keys whose other names differ by more than the architecture. GLM-4.7-Flash: the heads' sizes are in the plain keys. */
static const struct {
    const char *architecture, *usual, *other;
} keys[] = {{"gptoss", "gpt-oss.expert_feed_forward_length", "gptoss.feed_forward_length"},
            {"glm4moelite", "deepseek2.attention.key_length_mla", "glm4moelite.attention.key_length"},
            {"glm4moelite", "deepseek2.attention.value_length_mla", "glm4moelite.attention.value_length"},
            {"gemma3", "gemma3.rope.freq_base", "gemma3.rope.global.freq_base"}};

/* Of blocks, behind "blk.N.". */
static const struct {
    const char *architecture, *usual, *other;
} tensors[] = {{"gptoss", "attn_output.weight", "attn_out.weight"},
               {"gptoss", "attn_output.bias", "attn_out.bias"},
               {"gptoss", "attn_sinks.weight", "attn_sinks"},
               {"gptoss", "post_attention_norm.weight", "ffn_norm.weight"},
               {"gemma4", "ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"},
               {"deepseek2", "attn_q.weight", "self_attn.q_proj.weight"},
               {"qwen35", "ssm_dt.bias", "ssm_dt"},
               {"qwen35moe", "ssm_dt.bias", "ssm_dt"},
               {"qwen3next", "ssm_dt.bias", "ssm_dt"}};

const char *hn_usual_architecture(const char *name) {
    for (int i = 0; i < N_ARCHITECTURES; i++)
        if (!strcmp(name, architectures[i].other)) return architectures[i].usual;
    return name;
}

const char *hn_other_pretokenizer(const char *architecture) {
    for (int i = 0; i < N_ARCHITECTURES; i++)
        if (!strcmp(architecture, architectures[i].other)) return architectures[i].pretokenizer;
    return NULL;
}

bool hn_other_key(const char *architecture, const char *key, char *out, size_t size) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(architecture, keys[i].architecture) && !strcmp(key, keys[i].usual))
            return snprintf(out, size, "%s", keys[i].other) < (int)size;
    const char *usual = hn_usual_architecture(architecture);
    const size_t len = strlen(usual);
    return usual != architecture && !strncmp(key, usual, len) && key[len] == '.' &&
           snprintf(out, size, "%s%s", architecture, key + len) < (int)size;
}

bool hn_other_tensor(const char *architecture, const char *name, char *out, size_t size) {
    static const char block[] = "blk.";
    if (strncmp(name, block, sizeof block - 1) != 0) return false;
    const size_t number = sizeof block - 1 + strspn(name + sizeof block - 1, "0123456789");
    if (name[number] != '.') return false;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (!strcmp(architecture, tensors[i].architecture) && !strcmp(name + number + 1, tensors[i].usual))
            return snprintf(out, size, "%.*s.%s", (int)number, name, tensors[i].other) < (int)size;
    return false;
}
