/* SPDX-License-Identifier: Apache-2.0 */
/* memory_group.h - for tests of models that are larger than the memory that there is: such a model, and control groups (of either version,
 * where this process may make one) that limit memory. */
#ifndef HN_TESTS_MEMORY_GROUP_H
#define HN_TESTS_MEMORY_GROUP_H
#include "command.h"

#include <errno.h>

#include "base/cgroup.h"
#include "base/dtype.h"
#include "base/random.h"
#include "format/gguf_writer.h"

enum { LAYERS = 4, HIDDEN = 256, WIDTH = 512, EXPERTS = 32, USED = 4, HEAD_SIZE = 64, QUERIES = 4, KEYS = 2, VOCAB = 9000 };
enum { MOST_FOLDER = 1000 };

/* ---- the model ------------------------------------------------------------------------------------------------------- */

static hunch_error why;

static inline void must(hunch_status st) {
    if (st) fail_msg("%s", why.message);
}

typedef struct tensor {
    char name[64];
    int n_dims;
    uint64_t dims[3];
} tensor;

static inline int list_tensors(tensor *t) {
    static const struct {
        const char *name;
        int n_dims;
        uint64_t dims[3];
    } of_layer[] = {{"attn_norm", 1, {HIDDEN}},
                    {"attn_q", 2, {HIDDEN, QUERIES * HEAD_SIZE}},
                    {"attn_k", 2, {HIDDEN, KEYS * HEAD_SIZE}},
                    {"attn_v", 2, {HIDDEN, KEYS * HEAD_SIZE}},
                    {"attn_q_norm", 1, {HEAD_SIZE}},
                    {"attn_k_norm", 1, {HEAD_SIZE}},
                    {"attn_output", 2, {QUERIES * HEAD_SIZE, HIDDEN}},
                    {"ffn_norm", 1, {HIDDEN}},
                    {"ffn_gate_inp", 2, {HIDDEN, EXPERTS}},
                    {"ffn_gate_exps", 3, {HIDDEN, WIDTH, EXPERTS}},
                    {"ffn_up_exps", 3, {HIDDEN, WIDTH, EXPERTS}},
                    {"ffn_down_exps", 3, {WIDTH, HIDDEN, EXPERTS}}};
    int n = 0;
    t[n++] = (tensor){"token_embd.weight", 2, {HIDDEN, VOCAB}};
    t[n++] = (tensor){"output.weight", 2, {HIDDEN, VOCAB}};
    t[n++] = (tensor){"output_norm.weight", 1, {HIDDEN}};
    for (int i = 0; i < LAYERS; i++)
        for (size_t k = 0; k < sizeof of_layer / sizeof *of_layer; k++, n++) {
            snprintf(t[n].name, sizeof t[n].name, "blk.%d.%s.weight", i, of_layer[k].name);
            t[n].n_dims = of_layer[k].n_dims;
            memcpy(t[n].dims, of_layer[k].dims, sizeof t[n].dims);
        }
    return n;
}

static inline void put_keys(hn_gguf_writer *w) {
    static const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {{"block_count", LAYERS},        {"context_length", 256},
                   {"embedding_length", HIDDEN},   {"feed_forward_length", WIDTH},
                   {"attention.head_count", QUERIES}, {"attention.head_count_kv", KEYS},
                   {"attention.key_length", HEAD_SIZE}, {"attention.value_length", HEAD_SIZE},
                   {"expert_count", EXPERTS},      {"expert_used_count", USED},
                   {"expert_feed_forward_length", WIDTH}};
    must(hn_gguf_put_str(w, "general.architecture", "qwen3moe", 8, &why));
    must(hn_gguf_put_f32(w, "qwen3moe.attention.layer_norm_rms_epsilon", 1e-6f, &why));
    must(hn_gguf_put_f32(w, "qwen3moe.rope.freq_base", 1e6f, &why));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char key[80];
        snprintf(key, sizeof key, "qwen3moe.%s", numbers[i].name);
        must(hn_gguf_put_u32(w, key, numbers[i].value, &why));
    }
}

/* Matrices of random numbers that keep the size of what they are multiplied with, in BF16; norms of ones. */
static inline void put_values(hn_gguf_writer *w, const tensor *t, uint64_t *seed) {
    enum { PIECE = 1 << 16 };
    static uint16_t value[PIECE];
    static float one[HIDDEN];
    const size_t n = (size_t)(t->dims[0] * (t->n_dims > 1 ? t->dims[1] : 1) * (t->n_dims > 2 ? t->dims[2] : 1));
    const float scale = 3.4f / sqrtf((float)t->dims[0]);
    for (int i = 0; i < HIDDEN; i++) one[i] = 1;
    if (t->n_dims == 1) {
        must(hn_gguf_data(w, one, n * sizeof *one, &why));
        return;
    }
    must(hn_gguf_data_begin(w, n * sizeof *value, &why));
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t m = n - at < PIECE ? n - at : PIECE;
        for (size_t i = 0; i < m; i++)
            value[i] = hn_f32_to_bf16(scale * ((float)(hn_splitmix(seed) >> 40) / (float)(1 << 24) - 0.5f));
        must(hn_gguf_data_piece(w, value, m * sizeof *value, &why));
    }
}

static inline const char *model_write(void) {
    static tensor t[3 + 12 * LAYERS];
    const int n = list_tensors(t);
    const char *path = path_of("large.gguf");
    hn_gguf_writer *w;
    uint64_t seed = 7;
    must(hn_gguf_writer_open(&w, path, &why));
    put_keys(w);
    for (int i = 0; i < n; i++) must(hn_gguf_declare(w, t[i].name, t[i].n_dims == 1 ? HN_F32 : HN_BF16, t[i].n_dims, t[i].dims, &why));
    for (int i = 0; i < n; i++) put_values(w, &t[i], &seed);
    must(hn_gguf_writer_finish(&w, &why));
    return path;
}

/* Pages read by other processes do not count for the group. */
static inline void forget_pages(const char *path) {
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    close(fd);
}

/* ---- the group -------------------------------------------------------------------------------------------------------- */

typedef struct group {
    long long limit; /* bytes; given */
    const char *name; /* what its folder's begins with; given */
    char path[MOST_FOLDER + 40], before[MOST_FOLDER]; /* its folder; that of the group that this process is in */
    bool v2;
    char refused[MOST_FOLDER + 200]; /* why no group could be created */
} group;

static inline bool number_write(const char *in, const char *name, long long value) {
    char path[MOST_FOLDER + 100];
    snprintf(path, sizeof path, "%s/%s", in, name);
    FILE *f = fopen(path, "w");
    const bool wrote = f && fprintf(f, "%lld\n", value) > 0;
    return f && fclose(f) == 0 && wrote;
}

/* The nearest group in which another can be made that limits memory. */
static inline void group_make(void *user, const char *in, bool v2) {
    group *g = user;
    if (strlen(in) >= MOST_FOLDER || g->path[0]) return;
    if (!g->before[0]) snprintf(g->before, sizeof g->before, "%s", in);
    char path[sizeof g->path];
    snprintf(path, sizeof path, "%s/%s-%d", in, g->name, (int)getpid());
    const bool made = mkdir(path, 0755) == 0;
    if (made && number_write(path, v2 ? "memory.max" : "memory.limit_in_bytes", g->limit)) {
        if (v2) (void)number_write(path, "memory.swap.max", 0);
        strcpy(g->path, path);
        g->v2 = v2;
        return;
    }
    snprintf(g->refused, sizeof g->refused, "%s %s: %s", made ? "no limit of memory in" : "cannot make", path, strerror(errno));
    if (made) (void)rmdir(path);
}

/* How often the group had no page left. */
static inline long long times_short(const group *g) {
    char path[MOST_FOLDER + 100], word[40];
    long long n = 0, found = 0;
    snprintf(path, sizeof path, "%s/%s", g->path, g->v2 ? "memory.events" : "memory.failcnt");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    if (!g->v2) assert_int_equal(fscanf(f, "%lld", &found), 1);
    while (g->v2 && fscanf(f, "%39s %lld", word, &n) == 2)
        if (!strcmp(word, "max")) found = n;
    fclose(f);
    return found;
}

static inline long long most_used(const group *g) {
    long long n = -1;
    return hn_cgroup_numbers(g->path, g->v2 ? "memory.peak" : "memory.max_usage_in_bytes", &n, 1) == 1 ? n : -1;
}

/* The command in the group: this process goes there and back. */
static inline result run_inside(const group *g, const char *const *args) {
    assert_true(number_write(g->path, "cgroup.procs", getpid()));
    result r = command_args(args);
    assert_true(number_write(g->before, "cgroup.procs", getpid()));
    return r;
}
#endif
