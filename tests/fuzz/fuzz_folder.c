/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_folder.c - the JSON files of a Hugging Face folder: config.json, the index of its two shards, generation_config.json, and
 * tokenizer.json, in this order. A folder that opens is read as a model's description, and converted: the result opens again. */
#include <unistd.h>

#include "fuzz_source.h"
#include "model/model.h"

/* A llama of one layer, 8 wide, 16 tokens, whose data is all zeros. */
static const struct {
    const char *name;
    int rows, cols; /* cols 0: a vector */
} TENSORS[] = {
    {"model.embed_tokens.weight", 16, 8},
    {"lm_head.weight", 16, 8},
    {"model.norm.weight", 8, 0},
    {"model.layers.0.input_layernorm.weight", 8, 0},
    {"model.layers.0.post_attention_layernorm.weight", 8, 0},
    {"model.layers.0.self_attn.q_proj.weight", 8, 8},
    {"model.layers.0.self_attn.k_proj.weight", 8, 8},
    {"model.layers.0.self_attn.v_proj.weight", 8, 8},
    {"model.layers.0.self_attn.o_proj.weight", 8, 8},
    {"model.layers.0.mlp.gate_proj.weight", 8, 8},
    {"model.layers.0.mlp.up_proj.weight", 8, 8},
    {"model.layers.0.mlp.down_proj.weight", 8, 8},
};
enum { FIRST_SHARD = 3, N_TENSORS = sizeof TENSORS / sizeof *TENSORS, SHARD_BYTES = 8192 };

static size_t head_text(char *out, size_t size, int from, int to) {
    size_t len = (size_t)snprintf(out, size, "{\"__metadata__\":{\"format\":\"pt\"}"), at = 0;
    for (int i = from; i < to; i++) {
        int cols = TENSORS[i].cols;
        size_t bytes = (size_t)(TENSORS[i].rows * (cols ? cols : 1)) * 4;
        len += (size_t)snprintf(out + len, size - len, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%d", TENSORS[i].name,
                                TENSORS[i].rows);
        if (cols) len += (size_t)snprintf(out + len, size - len, ",%d", cols);
        len += (size_t)snprintf(out + len, size - len, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    return len + (size_t)snprintf(out + len, size - len, "}");
}

static void shard_make(const char *name, int number, int from, int to) {
    static uint8_t bytes[SHARD_BYTES];
    memset(bytes, 0, sizeof bytes);
    size_t len = head_text((char *)bytes + 8, 4000, from, to);
    bytes[0] = (uint8_t)len;
    bytes[1] = (uint8_t)(len >> 8);
    fuzz_folder_file(name, number, (fuzz_bytes){bytes, sizeof bytes}, false);
}

/* A supported model is converted, unless GGUF cannot express its tokenizer. */
static void convert(void) {
    static char path[200];
    hn_source *s = NULL;
    hunch_error err = {0};
    snprintf(path, sizeof path, "%s/converted", fuzz_folder());
    hunch_status st = hunch_convert(fuzz_folder(), path, &err);
    fuzz_check(st, &err, NULL);
    FUZZ_MUST(st == HUNCH_OK || access(path, F_OK) != 0);
    if (st != HUNCH_OK) return;
    FUZZ_MUST(hn_source_open(&s, path, &err) == HUNCH_OK);
    fuzz_read_source(s);
    hn_source_close(&s);
    FUZZ_MUST(unlink(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool made;
    fuzz_bytes rest = {data, size};
    hn_source *s = NULL;
    hn_arch arch = {0};
    hunch_error err = {0};
    if (!made) {
        shard_make("a.safetensors", 4, 0, FIRST_SHARD);
        shard_make("b.safetensors", 5, FIRST_SHARD, N_TENSORS);
        made = true;
    }
    fuzz_folder_file("config.json", 0, fuzz_part(&rest), false);
    fuzz_folder_file("model.safetensors.index.json", 1, fuzz_part(&rest), false);
    fuzz_folder_file("generation_config.json", 2, fuzz_part(&rest), true);
    fuzz_folder_file("tokenizer.json", 3, fuzz_part(&rest), true);
    hunch_status st = hn_source_open(&s, fuzz_folder(), &err);
    fuzz_check(st, &err, fuzz_folder());
    if (st == HUNCH_OK) {
        fuzz_read_source(s);
        st = hn_model_mark(s, &arch, NULL, &err);
        fuzz_check(st, &err, fuzz_folder());
        if (st == HUNCH_OK) hn_arch_fini(&arch);
        if (st == HUNCH_OK) convert();
    }
    hn_source_close(&s);
    return 0;
}
