/* SPDX-License-Identifier: Apache-2.0 */
/* pseudo_terminal.h - the `hunch` command on a pseudo-terminal: its output is read as it arrives, keys are sent as bytes. Nothing
 * depends on when output arrives. */
#ifndef HN_TESTS_TERMINAL_H
#define HN_TESTS_TERMINAL_H

#include "command.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

typedef struct terminal {
    int master;
    pid_t child;
    char *text; /* so far */
    size_t len, cap;
    bool nudges; /* Linux may hold back input beyond 4,096 bytes until the next key: sends a key without effect */
} terminal;

/* out: a file for standard output, NULL: the terminal too. */
static inline terminal terminal_start(int columns, const char *out, const char *const *args) {
    const char *argv[64] = {HUNCH_COMMAND};
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    terminal t = {0};
    for (int n = 1; args[n - 1] && n < 63; n++)
        argv[n] = args[n - 1];
    t.child = forkpty(&t.master, NULL, NULL, &size);
    if (t.child < 0) {
        print_message("skipped: no pseudo-terminal here (%s)\n", strerror(errno));
        skip();
    }
    if (t.child == 0) {
        int o = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600) : 1;
        if (o < 0 || (out && dup2(o, 1) < 0))
            _exit(99);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(98);
    }
    t.text = calloc(1, t.cap = 1 << 20);
    assert_non_null(t.text);
    return t;
}

/* False: the command has ended. */
static inline bool terminal_read(terminal *t, int ms) {
    struct pollfd p = {.fd = t->master, .events = POLLIN};
    if (poll(&p, 1, ms) <= 0)
        return !t->nudges || write(t->master, "", 1) == 1;
    ssize_t n = read(t->master, t->text + t->len, t->cap - t->len - 1);
    if (n <= 0)
        return false;
    t->len += (size_t)n;
    t->text[t->len] = 0;
    return true;
}

/* Reads until the output has this text. Fails if the process ends before, or writes nothing for a minute. */
static inline void terminal_await(terminal *t, size_t from, const char *text) {
    bool running = true;
    for (int silent = 0; running && silent < 600 && !strstr(t->text + from, text);) {
        const size_t before = t->len;
        running = terminal_read(t, 100);
        silent = t->len > before ? 0 : silent + 1;
    }
    if (!strstr(t->text + from, text))
        fail_msg("no \"%s\" in \"%s\"%s", text, t->text + from, running ? "" : ", where it ended");
}

static inline int terminal_end(terminal *t) {
    while (terminal_read(t, 60000))
        continue;
    close(t->master);
    return child_wait(t->child);
}

/* Sends all keys and reads output meanwhile: the terminal's input buffer holds 4,096 bytes. */
static inline void terminal_type(terminal *t, const char *keys, size_t n) {
    while (n > 0) {
        struct pollfd p = {.fd = t->master, .events = POLLIN | POLLOUT};
        assert_true(poll(&p, 1, 60000) > 0);
        if (p.revents & POLLIN)
            assert_true(terminal_read(t, 0));
        if (!(p.revents & POLLOUT))
            continue;
        const ssize_t done = write(t->master, keys, n < 512 ? n : 512);
        assert_true(done > 0);
        keys += done;
        n -= (size_t)done;
    }
}

#define terminal_of(columns, out, ...) terminal_start(columns, out, (const char *const[]){__VA_ARGS__, NULL})

#endif
