/* SPDX-License-Identifier: Apache-2.0 */
/* tool_signals.c - see tool_signals.h. Handlers call only async-signal-safe functions. Data shared with them is sig_atomic_t, atomic, or
 * set before they are installed. The library installs no handlers. */
#include "app/tool_signals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "app/tool_output.h"
#include "app/tool_tty.h"

enum { GRACE_US = 700000 }; /* for a report */

volatile sig_atomic_t tool_interrupted;

/* What a signal does. */
enum { AT_ONCE, REPORT, AGAIN };
static volatile sig_atomic_t mode = AT_ONCE, held, late; /* late: the time for a report is over */
static const char *volatile to_remove;
static bool reset_colour;
static int interrupt_fd = -1;
static volatile sig_atomic_t presses_allowed;
static atomic_int presses; /* of Ctrl-C, not yet handled */

static void write_all(int fd, const char *text, size_t n) {
    while (n > 0) {
        const ssize_t done = write(fd, text, n);
        if (done <= 0)
            return;
        text += done;
        n -= (size_t)done;
    }
}

/* Any thread may receive the signal, so a flag alone would not wake the one that waits for input. */
static bool wake(void) {
    const uint64_t one = 1;
    return interrupt_fd < 0 || write(interrupt_fd, &one, sizeof one) >= 0;
}

void tool_end(int code) {
    static const char colour[] = "\033[0m";
    tool_tty_end();
    if (to_remove)
        unlink(to_remove);
    tool_progress_wipe();
    if (reset_colour)
        write_all(STDOUT_FILENO, colour, sizeof colour - 1);
    _exit(code);
}

static void time_begin(void) {
    const struct itimerval once = {.it_value = {.tv_usec = GRACE_US}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void on_end(int number) {
    const int saved = errno;
    const bool first = !tool_interrupted;
    if (!first || (mode == AT_ONCE && !held))
        tool_end(128 + number);
    tool_interrupted = number;
    if (mode == REPORT)
        time_begin();
    wake();
    errno = saved;
}

static void on_time(int number) {
    (void)number;
    late = 1;
    if (!held)
        tool_end(128 + tool_interrupted);
}

static void on_each_interrupt(int number) {
    const int saved = errno;
    if (atomic_fetch_add(&presses, 1) > presses_allowed)
        tool_end(128 + number);
    tool_interrupted = number;
    if (!wake())
        tool_end(128 + number);
    errno = saved;
}

static void on_lost_page(int number, siginfo_t *info, void *context) {
    static const char text[] =
        "hunch: a mapped file (--mapped) was truncated or cannot be read any more: it must not change while hunch "
        "runs\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* a fault of another kind: as by default */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    write_all(STDERR_FILENO, text, sizeof text - 1);
    tool_end(HUNCH_FAILED);
}

/* Not for signals that were ignored when the process began. */
static void end_by(int number, void (*handler)(int)) {
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    if (sigaction(number, NULL, &old) != 0 || old.sa_handler == SIG_IGN)
        return;
    sigaddset(&a.sa_mask, SIGALRM);
    sigaction(number, &a, NULL);
}

void tool_signals_begin(void) {
    struct sigaction page = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO}, alarm = {.sa_handler = on_time};
    reset_colour = tool_colors(TOOL_COLOR_AUTO, stdout);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, reported by tool_done */
    signal(SIGXFSZ, SIG_IGN); /* so is a file above the size limit */
    sigaction(SIGBUS, &page, NULL);
    sigaction(SIGALRM, &alarm, NULL);
    end_by(SIGINT, on_end);
    end_by(SIGTERM, on_end);
    end_by(SIGHUP, on_end);
}

void tool_interrupts_catch(void) {
    mode = REPORT;
}

bool tool_interrupts_repeat(int most) {
    if (interrupt_fd < 0)
        interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (interrupt_fd < 0) {
        tool_message("eventfd: %s", strerror(errno));
        return false;
    }
    mode = AGAIN;
    presses_allowed = most;
    end_by(SIGINT, on_each_interrupt);
    return true;
}

int tool_interrupt_fd(void) {
    return interrupt_fd;
}

int tool_interrupts_clear(void) {
    uint64_t count;
    while (read(interrupt_fd, &count, sizeof count) > 0)
        continue;
    const int pressed = atomic_exchange(&presses, 0);
    if (tool_interrupted == SIGINT)
        tool_interrupted = 0;
    if (atomic_load(&presses)) { /* another one has come since, in any thread */
        tool_interrupted = SIGINT;
        wake();
    }
    return pressed;
}

void tool_interrupts_hold(void) {
    held = 1;
}

void tool_interrupts_resume(void) {
    held = 0;
    if (tool_interrupted && (late || mode == AT_ONCE))
        tool_end(128 + tool_interrupted);
}

void tool_signals_remove(const char *path) {
    to_remove = path;
}

int tool_exit_code(int code) {
    return code == HUNCH_CANCELLED && tool_interrupted ? 128 + tool_interrupted : code;
}
