/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - opens a model with llama.cpp or ik_llama.cpp and answers requests for measurements, one a line.
 *
 * Owns: the requests and their answers. Compiled by build.sh against one peer's public header; the PEER_HAS_... macros, which
 * build.sh finds in that header, stand for what differs between peers and between their versions. Who asks, and why in turns:
 * interleave.py, README.md.
 *
 * Requests, and answers in milliseconds:
 *   pass N CONTEXT     N tokens at once behind CONTEXT positions, logits of all of them
 *   prefill N          N tokens into an empty sequence, logits of the last
 *   decode N CONTEXT   N tokens one after the other behind CONTEXT positions, each the most likely one: time of one
 *   copies N CONTEXT   evaluates N positions and fills the cache to CONTEXT with copies of their keys and values: long contexts in
 *                      seconds, for passes behind them; the time of it. CONTEXT is a multiple of N, and the cache is not transposed
 *   info               what this is, as words and name=value
 *   quit
 * What cannot be answered is answered by `error REASON`. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "llama.h"
#if defined(__has_include)
#if __has_include("gguf.h")
#include "gguf.h" /* elsewhere ggml.h, which llama.h includes, has it */
#endif
#endif

#ifndef PEER_NAME
#define PEER_NAME "peer"
#endif
#ifndef PEER_COMMIT
#define PEER_COMMIT "unknown"
#endif

/* Settings that a peer lacks are absent from its command line, not ignored. */
enum choice { OFF, ON, UNSET };

typedef struct settings {
    const char *model, *kv_name;
    int threads, context, batch, ubatch, latent;
    enum choice flash_attn, repack, mmap, window;
    enum ggml_type kv;
    bool verbose;
} settings;

/* Positions [0, filled) of the sequence hold token_at(position); `deepest` positions were written since it was last empty. */
typedef struct peer {
    settings set;
    struct llama_model *model;
    struct llama_context *ctx;
    struct llama_batch batch;
    int vocabulary, filled, deepest;
    FILE *answers;
    const char *why; /* of the last failure */
} peer;

/* ---- what differs between peers ------------------------------------------------------------------------------ */

static bool sequence_cut(peer *p, int from) {
#if PEER_HAS_MEMORY
    return llama_memory_seq_rm(llama_get_memory(p->ctx), 0, from, -1);
#else
    return llama_kv_cache_seq_rm(p->ctx, 0, from, -1);
#endif
}

static void sequence_clear(peer *p) {
#if PEER_HAS_MEMORY
    llama_memory_clear(llama_get_memory(p->ctx), false);
#else
    llama_kv_cache_clear(p->ctx);
#endif
    p->filled = p->deepest = 0;
}

static int vocabulary_size(const struct llama_model *model) {
#if PEER_HAS_VOCAB
    return llama_vocab_n_tokens(llama_model_get_vocab(model));
#else
    return llama_n_vocab(model);
#endif
}

/* Sliding windows whose cache keeps the window only cannot go back far: what lay before it is gone. */
static bool forgets(const peer *p) {
#if PEER_HAS_N_SWA
    return p->set.window == ON && llama_model_n_swa(p->model) > 0;
#else
    return p->set.window == ON;
#endif
}

static struct llama_model_params model_params(const settings *s, const struct llama_model_kv_override *overrides) {
    struct llama_model_params m = llama_model_default_params();
    m.n_gpu_layers = 0;
    m.kv_overrides = overrides;
#if PEER_HAS_RUN_TIME_REPACK
    m.repack_tensors = s->repack == ON;
#elif PEER_HAS_EXTRA_BUFFERS
    m.use_extra_bufts = s->repack == ON;
#endif
#if PEER_HAS_LOAD_MODE
    m.load_mode = s->mmap == ON ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
#else
    m.use_mmap = s->mmap == ON;
#endif
#if PEER_HAS_LATENT
    m.mla = s->latent;
#endif
#if PEER_HAS_WINDOW_IN_MODEL
    m.swa_compress = s->window == ON;
#endif
    return m;
}

static struct llama_context_params context_params(const settings *s) {
    struct llama_context_params c = llama_context_default_params();
    c.n_ctx = (uint32_t)s->context;
    c.n_batch = (uint32_t)s->batch;
    c.n_ubatch = (uint32_t)s->ubatch;
    c.n_seq_max = 1;
    c.n_threads = c.n_threads_batch = s->threads; /* unsigned in one peer, signed in the other */
    c.type_k = c.type_v = s->kv;
#if PEER_HAS_FLASH_ATTENTION_TYPE
    c.flash_attn_type = s->flash_attn == ON ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
#else
    c.flash_attn = s->flash_attn == ON;
#endif
#if PEER_HAS_WINDOW_FULL
    c.swa_full = s->window == OFF;
#elif PEER_HAS_WINDOW_COMPRESSED
    c.swa_compress = s->window == ON;
#endif
#if PEER_HAS_LATENT
    c.mla_attn = s->latent;
#endif
#if PEER_HAS_OUTPUTS_PER_SEQUENCE
    c.n_outputs_max_per_seq = 0;
#endif
    return c;
}

/* ---- measuring ----------------------------------------------------------------------------------------------- */

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static llama_token token_at(const peer *p, int position) {
    uint32_t x = (uint32_t)position * 2654435761u + 12345u;
    return (llama_token)((x ^ x >> 15) % (uint32_t)p->vocabulary);
}

static bool failed(peer *p, const char *why) {
    p->why = why;
    return false;
}

/* Evaluates n tokens from `position`: `given`, or those that belong there. `logits`: of all rows, or of the last. */
static bool evaluate(peer *p, int position, int n, const llama_token *given, bool all) {
    for (int done = 0, m; done < n; done += m) {
        m = n - done < p->set.batch ? n - done : p->set.batch;
        struct llama_batch *b = &p->batch;
        b->n_tokens = m;
        for (int i = 0; i < m; i++) {
            b->token[i] = given ? given[done + i] : token_at(p, position + done + i);
            b->pos[i] = position + done + i;
            b->n_seq_id[i] = 1;
            b->seq_id[i][0] = 0;
            b->logits[i] = all || done + i == n - 1;
        }
        int end = position + done + m;
        p->deepest = end > p->deepest ? end : p->deepest;
        if (llama_decode(p->ctx, *b) != 0) {
            sequence_clear(p);
            return failed(p, "the peer could not evaluate the batch");
        }
    }
    llama_synchronize(p->ctx);
    if (!llama_get_logits_ith(p->ctx, p->batch.n_tokens - 1))
        return failed(p, "the peer gave no logits");
    return true;
}

/* Makes the sequence exactly `context` positions long. */
static bool fill(peer *p, int context) {
    if (forgets(p) && p->deepest - context > p->set.ubatch / 2)
        sequence_clear(p);
    p->filled = p->filled < context ? p->filled : context;
    if (p->deepest > p->filled && !sequence_cut(p, p->filled))
        sequence_clear(p);
    if (p->filled < context && !evaluate(p, p->filled, context - p->filled, NULL, false))
        return false;
    p->filled = context;
    return true;
}

/* First index of the largest value; 64 lanes, which compilers turn into vectors. */
static llama_token most_likely(const float *logits, int n) {
    enum { LANES = 64 };
    float lane[LANES], most = logits[0];
    for (int j = 0; j < LANES; j++)
        lane[j] = logits[0];
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] = logits[i + j] > lane[j] ? logits[i + j] : lane[j];
    for (; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    for (int j = 0; j < LANES; j++)
        most = lane[j] > most ? lane[j] : most;
    for (i = 0; i < n - 1 && logits[i] != most; i++)
        ;
    return i;
}

static bool request_pass(peer *p, int n, int context, double *ms) {
    if (!fill(p, context))
        return false;
    double start = now_ms();
    if (!evaluate(p, context, n, NULL, true))
        return false;
    *ms = now_ms() - start;
    return fill(p, context);
}

static bool request_prefill(peer *p, int n, int unused, double *ms) {
    (void)unused;
    sequence_clear(p);
    double start = now_ms();
    if (!evaluate(p, 0, n, NULL, false))
        return false;
    *ms = now_ms() - start;
    p->filled = n;
    return true;
}

static bool request_decode(peer *p, int n, int context, double *ms) {
    if (!fill(p, context))
        return false;
    llama_token token = token_at(p, context);
    double start = now_ms();
    for (int i = 0; i < n; i++) {
        if (!evaluate(p, context + i, 1, &token, true))
            return false;
        token = most_likely(llama_get_logits_ith(p->ctx, 0), p->vocabulary);
    }
    *ms = (now_ms() - start) / n;
    return fill(p, context);
}

/* ---- a long context from copies of a short one ----------------------------------------------------------------- */

#if defined(PEER_SAVES_ROWS)
/* Reads `bytes` of a saved sequence, writes them `times` times. */
typedef struct copier {
    const uint8_t *from, *end;
    uint8_t *to;
} copier;

static bool copy(copier *c, size_t bytes, int times, void *seen) {
    if ((size_t)(c->end - c->from) < bytes)
        return false;
    if (seen)
        memcpy(seen, c->from, bytes);
    for (int i = 0; i < times; i++, c->to += bytes)
        memcpy(c->to, c->from, bytes);
    c->from += bytes;
    return true;
}

/* The layers' keys, or values: a type, the bytes of a row, rows of `cells` positions. */
static bool copy_rows(copier *c, uint32_t layers, uint32_t cells, int times) {
    for (uint32_t i = 0; i < layers; i++) {
        int32_t type;
        uint64_t row;
        if (!copy(c, sizeof type, 1, &type) || !copy(c, sizeof row, 1, &row) || !copy(c, row * cells, times, NULL))
            return false;
    }
    return true;
}

/* The form in which ik_llama.cpp saves a sequence: positions, then keys, then values. */
static bool copy_sequence(copier *c, uint32_t cells, int times) {
    uint32_t count = 0, state = 0, layers = 0;
    const uint32_t all = cells * (uint32_t)times, none = 0;
    if (!copy(c, sizeof count, 1, &count) || count != cells)
        return false;
    memcpy(c->to - sizeof all, &all, sizeof all);
    for (uint32_t i = 0; i < all; i++) {
        const int32_t position = (int32_t)i;
        memcpy(c->to, &position, sizeof position);
        memcpy(c->to + sizeof position, &none, sizeof none); /* sequences beside this one */
        c->to += 8;
    }
    c->from += 8 * (size_t)cells;
    if (!copy(c, sizeof state, 1, &state) || state != 0 || !copy(c, sizeof layers, 1, &layers))
        return false;
    if (!copy_rows(c, layers, cells, times) || !copy_rows(c, layers, cells, times))
        return false;
    const size_t rest = (size_t)(c->end - c->from); /* words that say that there is nothing else */
    return rest <= 16 && copy(c, rest, 1, NULL);
}

static bool request_copies(peer *p, int n, int context, double *ms) {
    if (context % n)
        return failed(p, "the context is no multiple of what is copied");
    const double start = now_ms();
    double unused;
    if (!request_prefill(p, n, 0, &unused))
        return false;
    const int times = context / n;
    const size_t size = llama_state_seq_get_size(p->ctx, 0, 0);
    uint8_t *saved = malloc(size), *longer = malloc(size * (size_t)times);
    copier c = {saved, saved + size, longer};
    bool done = saved && longer && llama_state_seq_get_data(p->ctx, saved, size, 0, 0) == size && copy_sequence(&c, (uint32_t)n, times);
    sequence_clear(p);
    done = done && llama_state_seq_set_data(p->ctx, longer, (size_t)(c.to - longer), 0, 0) > 0;
    free(saved);
    free(longer);
    if (!done)
        return failed(p, "the peer saves or takes no sequence in the form that is known here");
    p->filled = p->deepest = context;
    *ms = now_ms() - start;
    return true;
}

#else
static bool request_copies(peer *p, int n, int context, double *ms) {
    (void)n, (void)context, (void)ms;
    return failed(p, "how this peer saves a sequence is not known here");
}
#endif

/* ---- requests ------------------------------------------------------------------------------------------------ */

static const char *shown(enum choice c) {
    return c == ON ? "on" : c == OFF ? "off" : "none";
}

static void answer_info(const peer *p) {
    const settings *s = &p->set;
    fprintf(p->answers, "%s %s compiler=%d.%d threads=%d flash-attn=%s repack=%s mmap=%s window=%s", PEER_NAME, PEER_COMMIT,
            __GNUC__, __GNUC_MINOR__, s->threads, shown(s->flash_attn), shown(s->repack), shown(s->mmap), shown(s->window));
    fprintf(p->answers, " kv=%s context=%d batch=%d ubatch=%d\n", s->kv_name, s->context, s->batch, s->ubatch);
}

static void answer(peer *p, const char *line) {
    static const struct {
        const char *name;
        bool (*measure)(peer *, int, int, double *);
        int numbers, most_rows_is_batch;
    } kinds[] = {{"pass", request_pass, 2, 1}, {"prefill", request_prefill, 1, 0}, {"decode", request_decode, 2, 0},
                 {"copies", request_copies, 2, 0}};
    char name[16] = "", rest[2];
    int n = 0, context = 0;
    int got = sscanf(line, "%15s %d %d %1s", name, &n, &context, rest);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double ms;
        if (strcmp(name, kinds[k].name) != 0 || got != kinds[k].numbers + 1)
            continue;
        const int end = kinds[k].measure == request_copies ? context : n + context;
        if (n < 1 || context < 0 || context > p->set.context || end > p->set.context || end < n)
            fprintf(p->answers, "error it does not fit into a context of %d\n", p->set.context);
        else if (kinds[k].most_rows_is_batch && n > p->set.batch)
            fprintf(p->answers, "error more than %d rows, the size of a batch\n", p->set.batch);
        else if (kinds[k].measure(p, n, context, &ms))
            fprintf(p->answers, "%.4f\n", ms);
        else
            fprintf(p->answers, "error %s\n", p->why);
        return;
    }
    if (strcmp(name, "info") == 0 && got == 1)
        answer_info(p);
    else
        fprintf(p->answers, "error not a request: pass N CONTEXT, prefill N, decode N CONTEXT, copies N CONTEXT, info, quit\n");
}

static void serve(peer *p) {
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "quit", 4) == 0)
            return;
        answer(p, line);
        fflush(p->answers);
    }
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static _Noreturn void stop(const char *what, const char *which) {
    fprintf(stderr, "%s: %s %s\n", PEER_NAME, what, which);
    exit(2);
}

static void usage(FILE *to) {
    fprintf(to,
            "usage: peer MODEL.gguf [options]\n"
            "  --threads T         2\n"
            "  --context N         positions of the cache, 4096\n"
            "  --batch N           tokens that are given to the peer at once at most, 2048\n"
            "  --ubatch N          tokens that the peer evaluates at once at most, 512\n"
            "  --kv f16|bf16|q8_0  type of keys and values, f16\n"
            "  --flash-attn on|off on\n"
            "  --mmap on|off       on\n"
#if PEER_HAS_RUN_TIME_REPACK
            "  --repack on|off     rearrange weights while loading, off as in the peer's own programs\n"
#elif PEER_HAS_EXTRA_BUFFERS
            "  --repack on|off     rearrange weights while loading, on as in the peer's own programs\n"
#endif
#if PEER_HAS_WINDOW_FULL || PEER_HAS_WINDOW_COMPRESSED
            "  --window on|off     layers with a window keep only that, default as in the peer's own programs\n"
#endif
#if PEER_HAS_LATENT
            "  --latent N          its way of latent attention, 3 as in its own programs\n"
#endif
            "  --verbose           what the peer logs, to standard error\n"
            "Then requests on standard input, one a line: pass N CONTEXT, prefill N, decode N CONTEXT, info, quit.\n");
}

static void quiet(enum ggml_log_level level, const char *text, void *unused) {
    (void)unused;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static int positive(const char *name, const char *value) {
    char *end;
    long n = strtol(value, &end, 10);
    if (*end || n < 1 || n > 1 << 24)
        stop("a positive number is expected after", name);
    return (int)n;
}

static enum choice on_or_off(const char *name, const char *value) {
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        stop("on or off is expected after", name);
    return strcmp(value, "on") == 0 ? ON : OFF;
}

static enum ggml_type kv_type(const char *name) {
    if (strcmp(name, "f16") == 0)
        return GGML_TYPE_F16;
    if (strcmp(name, "bf16") == 0)
        return GGML_TYPE_BF16;
    if (strcmp(name, "q8_0") == 0)
        return GGML_TYPE_Q8_0;
    stop("f16, bf16 or q8_0 is expected after --kv, not", name);
}

static void option(settings *s, const char *name, const char *value) {
    struct {
        const char *name;
        int *number;
        enum choice *choice;
    } table[] = {{"--threads", &s->threads, NULL},  {"--context", &s->context, NULL},       {"--batch", &s->batch, NULL},
                 {"--ubatch", &s->ubatch, NULL},    {"--flash-attn", NULL, &s->flash_attn}, {"--mmap", NULL, &s->mmap},
                 {"--repack", NULL, &s->repack},    {"--window", NULL, &s->window},
#if PEER_HAS_LATENT
                 {"--latent", &s->latent, NULL},
#endif
    };
    if (!value)
        stop("a value is expected after", name);
    if (strcmp(name, "--kv") == 0) {
        s->kv_name = value;
        s->kv = kv_type(value);
        return;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) != 0)
            continue;
        if (table[i].number)
            *table[i].number = positive(name, value);
        else if (*table[i].choice == UNSET)
            stop("this peer does not have", name);
        else
            *table[i].choice = on_or_off(name, value);
        return;
    }
    stop("unknown option", name);
}

static settings settings_of(int argc, char **argv) {
    settings s = {.threads = 2, .context = 4096, .batch = 2048, .ubatch = 512, .latent = 3, .kv = GGML_TYPE_F16, .kv_name = "f16",
                  .flash_attn = ON, .mmap = ON, .repack = UNSET, .window = UNSET};
#if PEER_HAS_RUN_TIME_REPACK
    s.repack = OFF;
#elif PEER_HAS_EXTRA_BUFFERS
    s.repack = ON;
#endif
#if PEER_HAS_WINDOW_FULL
    s.window = ON;
#elif PEER_HAS_WINDOW_COMPRESSED
    s.window = OFF;
#endif
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            exit(0);
        } else if (strcmp(argv[i], "--verbose") == 0) {
            s.verbose = true;
        } else if (argv[i][0] == '-') {
            option(&s, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            i++;
        } else if (s.model) {
            stop("one model is enough, not also", argv[i]);
        } else {
            s.model = argv[i];
        }
    }
#if PEER_HAS_RUN_TIME_REPACK
    if (s.repack == ON)
        s.mmap = OFF; /* the peer does so itself: say it */
#endif
    if (!s.model) {
        usage(stderr);
        exit(2);
    }
    return s;
}

/* A file without a tokenizer (tools/random_model.py) is opened as one: two keys say so to the peer, and how many ids there
 * are. The list ends with an empty key. */
static void say_no_tokenizer(const char *path, struct llama_model_kv_override list[3]) {
    memset(list, 0, 3 * sizeof *list);
    struct ggml_context *tensors = NULL;
    struct gguf_context *file = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true, .ctx = &tensors});
    if (!file)
        stop("cannot read", path);
    const struct ggml_tensor *embedding = tensors ? ggml_get_tensor(tensors, "token_embd.weight") : NULL;
    if (gguf_find_key(file, "tokenizer.ggml.model") < 0 && gguf_find_key(file, "general.architecture") >= 0 && embedding) {
        const char *family = gguf_get_val_str(file, gguf_find_key(file, "general.architecture"));
        list[0].tag = LLAMA_KV_OVERRIDE_TYPE_STR;
        snprintf(list[0].key, sizeof list[0].key, "tokenizer.ggml.model");
        snprintf(list[0].val_str, sizeof list[0].val_str, "no_vocab");
        list[1].tag = LLAMA_KV_OVERRIDE_TYPE_INT;
        snprintf(list[1].key, sizeof list[1].key, "%s.vocab_size", family);
        list[1].val_i64 = embedding->ne[1];
    }
    gguf_free(file);
    if (tensors)
        ggml_free(tensors);
}

/* Peers print to standard output here and there: answers get the descriptor for themselves, prints go to standard error. */
static FILE *answers_open(void) {
    int fd = dup(STDOUT_FILENO);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        stop("cannot duplicate", "standard output");
    return f;
}

int main(int argc, char **argv) {
    peer p = {.set = settings_of(argc, argv)};
    p.answers = answers_open();
    if (!p.set.verbose)
        llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model_kv_override overrides[3];
    say_no_tokenizer(p.set.model, overrides);
    p.model = llama_model_load_from_file(p.set.model, model_params(&p.set, overrides[0].key[0] ? overrides : NULL));
    if (!p.model)
        stop("cannot open", p.set.model);
    p.ctx = llama_init_from_model(p.model, context_params(&p.set));
    if (!p.ctx)
        stop("cannot make a context with these settings for", p.set.model);
    p.vocabulary = vocabulary_size(p.model);
    p.batch = llama_batch_init(p.set.batch, 0, 1);
    serve(&p);
    llama_batch_free(p.batch);
    llama_free(p.ctx);
#if PEER_HAS_MODEL_FREE
    llama_model_free(p.model);
#else
    llama_free_model(p.model);
#endif
    return fclose(p.answers) != 0;
}
