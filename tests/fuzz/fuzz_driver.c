/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_driver.c - runs a fuzz target without libFuzzer: every file of the given folders, then mutations of them, always
 * the same ones.
 *
 *     fuzz_NAME [-rounds=N] FILE-OR-FOLDER...
 *
 * An input that kills the process is stored in fuzz_NAME.input of the current folder, for any cause: a signal, a
 * sanitizer, or the alarm that ends an input after a minute.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/run_mode_for_tests.h"
#include "fuzz.h"

enum { ROUNDS = 6000, LIGHT_ROUNDS = 700, MOST_BYTES = 1 << 16, HANG_SECONDS = 60 };

/* ---- the corpus ------------------------------------------------------------------------------------------------- */

static struct {
    uint8_t *at;
    size_t size;
} * corpus;
static size_t n_corpus;

static void file_add(const char *path) {
    struct stat st;
    FILE *f = fopen(path, "rb");
    FUZZ_MUST(f != NULL && fstat(fileno(f), &st) == 0);
    corpus = realloc(corpus, (n_corpus + 1) * sizeof *corpus);
    FUZZ_MUST(corpus != NULL);
    size_t size = (size_t)st.st_size;
    uint8_t *bytes = malloc(size + 1);
    FUZZ_MUST(bytes != NULL && fread(bytes, 1, size, f) == size);
    corpus[n_corpus].at = bytes;
    corpus[n_corpus++].size = size;
    fclose(f);
}

static int name_compare(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name); /* in every locale the same order */
}

static void path_add(const char *path) {
    struct stat st;
    struct dirent **entries;
    FUZZ_MUST(stat(path, &st) == 0);
    if (!S_ISDIR(st.st_mode)) {
        file_add(path);
        return;
    }
    int n = scandir(path, &entries, NULL, name_compare);
    FUZZ_MUST(n >= 0);
    for (int i = 0; i < n; i++) {
        char file[1200];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') file_add(file);
        free(entries[i]);
    }
    free(entries);
}

/* ---- running one input ------------------------------------------------------------------------------------------ */

static const uint8_t *input; /* the current input */
static size_t input_size;
static char input_path[200];

/* Called when the process dies: system calls only. */
static void input_keep(void) {
    static const char said[] = "the input is in ";
    int fd = input ? open(input_path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd < 0 || write(fd, input, input_size) < 0) return;
    close(fd);
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0 || write(STDERR_FILENO, input_path, strlen(input_path)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        return;
    input = NULL;
}

static void on_death(int signal_number) {
    input_keep();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void deaths_catch(const char *program) {
    const char *name = strrchr(program, '/');
    snprintf(input_path, sizeof input_path, "%.180s.input", name ? name + 1 : program);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(input_keep);
    static const int deaths[] = {SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        if (!SANITIZED || deaths[i] == SIGABRT || deaths[i] == SIGALRM) signal(deaths[i], on_death);
}

static void input_run(const uint8_t *at, size_t size) {
    uint8_t *copy = malloc(size ? size : 1); /* of its exact size, so that a sanitizer sees its end */
    FUZZ_MUST(copy != NULL);
    if (size) memcpy(copy, at, size);
    input = copy;
    input_size = size;
    alarm(HANG_SECONDS);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    input = NULL;
    free(copy);
}

/* ---- mutations ------------------------------------------------------------------------------------------------ */

static uint64_t state = 20261121;

static size_t draw(size_t n) {
    return n ? (size_t)(hn_splitmix(&state) % n) : 0;
}

/* Critical numbers for counts and sizes, little endian. */
static uint64_t odd_number(void) {
    uint64_t power = (uint64_t)1 << draw(64);
    switch (draw(6)) {
    case 0: return power;
    case 1: return power - 1;
    case 2: return ~power;
    case 3: return UINT64_MAX - draw(40);
    case 4: return 0x7fc00000; /* NaN as a float32 */
    default: return draw(300);
    }
}

static size_t part_insert(uint8_t *b, size_t size, size_t at) {
    size_t from = draw(n_corpus), whole = corpus[from].size, begin = draw(whole), n = draw(whole - begin + 1);
    if (n > 64) n = draw(4) ? 64 : n;
    if (n > MOST_BYTES - size) n = MOST_BYTES - size;
    memmove(b + at + n, b + at, size - at);
    memcpy(b + at, corpus[from].at + begin, n);
    return size + n;
}

static size_t bytes_repeat(uint8_t *b, size_t size, size_t at, size_t n) {
    size_t times = 1 + draw(draw(16) ? 4 : 2000);
    for (; times > 0 && size + n <= MOST_BYTES; times--) {
        memmove(b + at + n, b + at, size - at);
        size += n;
    }
    return size;
}

static size_t damage(uint8_t *b, size_t size) {
    static const char likely[] = "\"{}[],:-+.0159eE \n\\/u%<>|()='tfn\xff\x80\xc3";
    size_t at = draw(size), n = draw(17);
    uint64_t number = odd_number();
    if (n > size - at) n = size - at;
    if (size == 0) return part_insert(b, size, 0);
    switch (draw(10)) {
    case 0: b[at] ^= (uint8_t)(1u << draw(8)); break;
    case 1: memset(b + at, likely[draw(sizeof likely - 1)], n); break;
    case 2: memmove(b + at, b + at + n, size - at - n); return size - n;
    case 3: return draw(4) ? size : at;
    case 4: memmove(b + at, b + draw(size - n + 1), n); break;
    case 5: memcpy(b + at, &number, n < 8 ? n : 8); break;
    case 6: return part_insert(b, size, at);
    case 7: return bytes_repeat(b, size, at, n);
    case 8: b[at] = (uint8_t)likely[draw(sizeof likely - 1)]; break;
    default: b[at] = (uint8_t)draw(256); break;
    }
    return size;
}

static void mutations_run(long rounds) {
    static uint8_t bytes[MOST_BYTES + 1];
    for (long i = 0; i < rounds; i++) {
        size_t from = draw(n_corpus), size = corpus[from].size < MOST_BYTES ? corpus[from].size : MOST_BYTES;
        memcpy(bytes, corpus[from].at, size);
        for (size_t n = 1 + draw(5); n > 0; n--) size = damage(bytes, size);
        input_run(bytes, size);
    }
}

int main(int argc, char **argv) {
    long rounds = test_light() ? LIGHT_ROUNDS : ROUNDS;
    const struct rlimit gigabyte = {1u << 30, 1u << 30};
    if (!SANITIZED) FUZZ_MUST(setrlimit(RLIMIT_AS, &gigabyte) == 0);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-rounds=", 8) == 0)
            rounds = atol(argv[i] + 8);
        else
            path_add(argv[i]);
    }
    FUZZ_MUST(n_corpus > 0);
    deaths_catch(argv[0]);
    for (size_t i = 0; i < n_corpus; i++) input_run(corpus[i].at, corpus[i].size);
    mutations_run(rounds);
    dprintf(STDERR_FILENO, "%zu kept inputs and %ld mutations\n", n_corpus, rounds);
    for (size_t i = 0; i < n_corpus; i++) free(corpus[i].at);
    free(corpus);
    return 0;
}
