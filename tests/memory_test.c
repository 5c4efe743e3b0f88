/* SPDX-License-Identifier: Apache-2.0 */
/* memory_test.c - memory of weights: packed at most 1.1 times the size of weights and cache, including loading; mapped
 * almost none; and the messages if there is too little, also for the cache. The models are sparse files: all weights
 * are zero. */
#include "command.h"

#include <sys/resource.h>

#include "base/run_mode_for_tests.h"
#include "tiny_gguf.h"

enum { WIDE = 1024, FFN = 40960, VOCAB = 49152, Q8_0 = 8, BF16 = 30, MIB = 1 << 20 };

static uint64_t matrix_bytes(const tiny_tensor *t) {
    const uint64_t n = t->dims[0] * t->dims[1];
    return t->type == Q8_0 ? n / 32 * 34 : 2 * n;
}

/* A large model by its header, and a file of that length. big_ffn: most of it is in the layer, else in the embedding. */
static const char *sparse_write(const char *name, uint32_t type, bool big_ffn) {
    tiny t;
    tiny_open(&t);
    const uint32_t ffn = big_ffn ? FFN : WIDE, vocab = big_ffn ? 4096 : 3 * VOCAB;
    tiny_u32(&t, "llama.embedding_length", WIDE);
    tiny_u32(&t, "llama.feed_forward_length", ffn);
    tiny_u32(&t, "llama.attention.head_count", 16);
    tiny_u32(&t, "llama.attention.head_count_kv", 16);
    tiny_u32(&t, "llama.rope.dimension_count", 64);
    tiny_u32(&t, "llama.vocab_size", vocab);
    tiny_u32(&t, "llama.context_length", 65536);
    uint64_t end = 0;
    for (size_t i = 0; i < t.n_tensors; i++) {
        tiny_tensor *x = &t.tensor[i];
        free(x->data);
        x->data = NULL;
        x->n = 0;
        x->offset = end;
        x->dims[0] = strstr(x->name, "ffn_down") ? ffn : WIDE;
        if (x->n_dims == 2) {
            x->type = type;
            x->dims[1] = WIDE;
            if (strstr(x->name, "ffn_gate") || strstr(x->name, "ffn_up")) x->dims[1] = ffn;
            if (strstr(x->name, "token_embd")) x->dims[1] = vocab;
        }
        end += x->n_dims == 2 ? matrix_bytes(x) : 4 * x->dims[0];
    }
    bytes header = tiny_bytes(&t);
    const char *path = file_write(name, header.at, header.size);
    assert_int_equal(truncate(path, (off_t)(header.size + end)), 0);
    bytes_free(&header);
    tiny_close(&t);
    return path;
}

static double peak_of(const char *path, const char *flag) {
    json_t *j = json_of("run", "-m", path, "-p", "a", "--raw", "-n", "2", "--draft", "none", "--context", "64", "--threads", "2",
                        "--ignore-eos", flag);
    const double mib = real_of(j, "peak_rss_mib");
    assert_int_equal(json_array_size(get(j, "tokens")), 2);
    json_decref(j);
    return mib;
}

static double bytes_of(const char *path, const char *key) {
    json_t *j = json_of("inspect", path);
    const double n = (double)int_of(get(j, "model"), key);
    json_decref(j);
    return n;
}

/* Loading keeps none of the file's pages in memory, for a large embedding and large layers. */
/* README: "Loading takes no more than 1.1 times the weights and the cache, and 64 MiB." */
static void test_packed_peak(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* it keeps shadows of its own */
    for (int i = 0; i < 4; i++) {
        const char *path = sparse_write("big.gguf", i % 2 ? BF16 : Q8_0, i / 2);
        const double weights = bytes_of(path, "packed_bytes") / MIB, cache = 2.0 * 2 * 64 * WIDE / MIB;
        const double peak = peak_of(path, "--no-prefix-reuse"), most = 1.1 * (weights + cache) + 64;
        assert_true(weights > 100);
        if (peak > most) fail_msg("model %d: %.0f MiB of weights, peak %.0f, expected at most %.0f", i, weights, peak, most);
        unlink(path);
    }
}

/* Of a mapped file only pages that the system can drop at any time: 128 MiB for everything else. */
/* README: "`--mapped` needs memory for the cache and little more." */
static void test_mapped_needs_little(void **state) {
    (void)state;
    if (SANITIZED) skip();
    const char *path = sparse_write("mapped.gguf", BF16, true);
    struct rlimit old, little;
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0); /* of private memory that can be written */
    little = (struct rlimit){128 * MIB, old.rlim_max};
    assert_true(bytes_of(path, "mapped_bytes") > 1.5 * 128 * MIB && bytes_of(path, "packed_bytes") > 1.5 * 128 * MIB);
    assert_int_equal(setrlimit(RLIMIT_DATA, &little), 0);
    peak_of(path, "--mapped");
    result r = command("run", "-m", path, "-p", "a", "--raw", "-n", "2");
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    char needs[200];
    snprintf(needs, sizeof needs, "mapped.gguf: its weights need %.0f bytes of memory, ", bytes_of(path, "packed_bytes"));
    if (r.code != HUNCH_NO_MEMORY || !strstr(r.err, needs) || !strstr(r.err, " are available; --mapped leaves them in the file\n"))
        fail_msg("expected \"%s\", got %d and \"%s\"", needs, r.code, r.err);
    result_free(&r);
    r = command("run", "-m", path, "-p", "a", "--raw", "-n", "2", "--ignore-eos", "--draft", "none", "--context", "64", "--mapped");
    if (r.code != 0 || !strstr(r.err, " MB of weights stay mapped in the file, ")) fail_msg("%d: %s", r.code, r.err);
    result_free(&r);
    unlink(path);
}

/* A cache that exceeds the limit is refused before the first row, not in the middle of an answer. */
static void test_cache_too_large(void **state) {
    (void)state;
    if (SANITIZED) skip();
    const char *path = sparse_write("cache.gguf", BF16, true);
    struct rlimit old, little;
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
    little = (struct rlimit){128 * MIB, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_DATA, &little), 0);
    result r = command("run", "-m", path, "-p", "a", "--raw", "-n", "2", "--ignore-eos", "--draft", "none", "--context",
                       "65536", "--mapped");
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    if (r.code != HUNCH_NO_MEMORY || !strstr(r.err, "a smaller --context") || !strstr(r.err, ": its pages need ") ||
        !strstr(r.err, " bytes of memory, "))
        fail_msg("%d: %s", r.code, r.err);
    result_free(&r);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed_peak), cmocka_unit_test(test_mapped_needs_little),
                                       cmocka_unit_test(test_cache_too_large)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
