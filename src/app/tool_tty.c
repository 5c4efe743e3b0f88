/* SPDX-License-Identifier: Apache-2.0 */
/* tool_tty.c - see tool_tty.h. Handlers call only async-signal-safe functions. */
#include "app/tool_tty.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

static struct termios original;
static volatile sig_atomic_t begun, continued;
static int change_fd = -1, paste_fd = -1, interrupt_key = -1;

/* Turns bracketed paste on or off: the terminal puts pasted text between \e[200~ and \e[201~. */
static void paste_marks_set(bool on) {
    if (paste_fd >= 0 && write(paste_fd, on ? "\033[?2004h" : "\033[?2004l", 8) < 0)
        return; /* errors are ignored */
}

/* A background process that changes the terminal's modes is stopped. */
static bool in_foreground(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void change_note(void) {
    const uint64_t one = 1;
    if (write(change_fd, &one, sizeof one) < 0)
        return; /* already noted */
}

static void on_size(int number) {
    const int saved = errno;
    (void)number;
    change_note();
    errno = saved;
}

static void by_default(int number) {
    sigset_t set;
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void on_stop(int number) {
    const int saved = errno;
    const bool ours = in_foreground();
    struct termios now;
    struct sigaction a;
    sigaction(number, NULL, &a);
    if (ours) {
        tcgetattr(STDIN_FILENO, &now);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &original);
        paste_marks_set(false);
    }
    by_default(number); /* returns when the process continues */
    sigaction(number, &a, NULL);
    if (ours) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
        paste_marks_set(true);
    }
    continued = 1;
    change_note();
    errno = saved;
}

static void on_quit(int number) {
    tool_tty_end();
    by_default(number);
}

/* Not for signals that were ignored when the process began. */
static void handle(int number, void (*handler)(int)) {
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &a, NULL);
}

static int interrupt_key_find(void) {
    struct sigaction a;
    const cc_t key = original.c_cc[VINTR];
    const bool signals = (original.c_lflag & ISIG) && sigaction(SIGINT, NULL, &a) == 0 && a.sa_handler != SIG_IGN;
    return signals && key != _POSIX_VDISABLE ? key : -1;
}

bool tool_tty_begin(void) {
    if (tcgetattr(STDIN_FILENO, &original) != 0)
        return false;
    if (change_fd < 0 && (change_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return false;
    begun = 1;
    interrupt_key = interrupt_key_find();
    struct termios now = original;
    now.c_lflag |= NOFLSH;
    if (in_foreground())
        tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    handle(SIGWINCH, on_size);
    handle(SIGTSTP, on_stop);
    handle(SIGQUIT, on_quit);
    return true;
}

void tool_tty_drop_typed(void) {
    if (begun && in_foreground())
        tcflush(STDIN_FILENO, TCIFLUSH);
}

void tool_tty_signals(bool on) {
    struct termios now;
    if (!begun || interrupt_key < 0 || !in_foreground() || tcgetattr(STDIN_FILENO, &now) != 0)
        return;
    now.c_cc[VINTR] = on ? original.c_cc[VINTR] : _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

int tool_tty_interrupt_key(void) {
    return interrupt_key;
}

void tool_tty_mark_pastes(int out) {
    if (out < 0 && in_foreground())
        paste_marks_set(false);
    paste_fd = out;
    paste_marks_set(true);
}

void tool_tty_end(void) {
    if (!begun)
        return;
    begun = 0;
    if (in_foreground()) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &original);
        paste_marks_set(false);
    }
}

int tool_tty_fd(void) {
    return change_fd;
}

tool_tty_change tool_tty_clear(void) {
    uint64_t count;
    tool_tty_change change = TOOL_TTY_SAME;
    while (read(change_fd, &count, sizeof count) > 0)
        change = TOOL_TTY_RESIZED;
    if (continued)
        change = TOOL_TTY_CONTINUED;
    continued = 0;
    return change;
}
