/* SPDX-License-Identifier: Apache-2.0 */
/* chat_interrupts.h - Ctrl-C at random moments of `hunch chat`, on a processor that other work keeps busy. Each try types a message,
 * Ctrl-C, and another message. The first is answered, in part or whole; the second is answered whole: what was typed after Ctrl-C is never
 * part of what Ctrl-C stops, and what was typed before it with Enter is never cleared. command_interrupts_test.c has a few tries,
 * command_interrupts_long_test.c many. */
#ifndef HN_TESTS_CHAT_INTERRUPTS_H
#define HN_TESTS_CHAT_INTERRUPTS_H

#include "pseudo_terminal.h"

#include <sched.h>
#include <time.h>

enum { BUSY = 3, ANSWER = 24 }; /* processes beside the command, on its processor; tokens of a whole answer */

static uint64_t random_state = 0x9E3779B97F4A7C15u;

static unsigned random_below(unsigned n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % n;
}

/* One processor for the command and the busy processes; the test itself may use all. */
static void children_share_processor(cpu_set_t *all) {
    cpu_set_t one;
    size_t first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof *all, all), 0);
    while (!CPU_ISSET(first, all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static void busy_start(pid_t busy[BUSY]) {
    for (int i = 0; i < BUSY; i++) {
        busy[i] = fork();
        assert_true(busy[i] >= 0);
        for (volatile unsigned spin = 0; busy[i] == 0; spin++)
            if (spin % (1u << 20) == 0 && getppid() == 1) _exit(0); /* the test has ended */
    }
}

static void busy_end(const pid_t busy[BUSY]) {
    for (int i = 0; i < BUSY; i++) {
        kill(busy[i], SIGKILL);
        child_wait(busy[i]);
    }
}

/* Until the answers' file has `count` objects. False: the command does nothing more for ten seconds. */
static bool objects_await(terminal *t, const char *path, size_t count) {
    size_t have = 0;
    for (int silent = 0; silent < 100; silent++) {
        const size_t before = t->len;
        char *text = file_read(path, NULL);
        have = 0;
        for (const char *at = text; (at = strchr(at, '\n')); at++) have++;
        free(text);
        if (have >= count) return true;
        if (!terminal_read(t, 100)) return false;
        if (t->len > before) silent = 0;
    }
    return false;
}

static json_t *object_at(const char *path, size_t number) {
    char *text = file_read(path, NULL), *line = text;
    for (size_t i = 0; i < number; i++) line = strchr(line, '\n') + 1;
    json_t *one = json_loadb(line, strcspn(line, "\n"), 0, NULL);
    assert_non_null(one);
    free(text);
    return one;
}

static void pause_ms(unsigned most) {
    usleep(random_below(most * 1000 + 1));
}

/* A message, Ctrl-C, another message. NULL, or what was lost. */
static const char *one_try(terminal *t, const char *path, size_t *objects) {
    terminal_type(t, "Once\r", 5);
    pause_ms(120);
    terminal_type(t, "\003", 1);
    if (random_below(2)) pause_ms(10);
    terminal_type(t, "The dog\r/reset\r", 15);
    if (!objects_await(t, path, *objects + 2)) return "a message";
    json_t *second = object_at(path, *objects + 1);
    *objects += 2;
    const bool whole = json_array_size(get(second, "tokens")) == ANSWER;
    json_decref(second);
    return whole ? NULL : "the second answer";
}

static void interrupts_tried(int tries) {
    const char *path = path_of("answers");
    char n[10];
    pid_t busy[BUSY];
    cpu_set_t all;
    snprintf(n, sizeof n, "%d", ANSWER);
    children_share_processor(&all);
    busy_start(busy);
    terminal t = terminal_of(60, path, "chat", "-m", STORIES, "--json-lines", "--threads", "1", "--ignore-eos", "-n", n, "--draft", "none",
                             "--no-history");
    sched_setaffinity(0, sizeof all, &all);
    terminal_await(&t, 0, "\033[?2004h");
    size_t objects = 0;
    int lost = 0;
    for (int i = 0; i < tries; i++) {
        const char *what = one_try(&t, path, &objects);
        if (!what) continue;
        print_message("try %d: %s was lost; the screen ends with \"%s\"\n", i, what, t.text + (t.len > 200 ? t.len - 200 : 0));
        lost++;
        char *text = file_read(path, NULL);
        objects = 0;
        for (const char *at = text; (at = strchr(at, '\n')); at++) objects++;
        free(text);
    }
    busy_end(busy);
    terminal_type(&t, "/bye\r", 5);
    assert_int_equal(terminal_end(&t), 0);
    free(t.text);
    if (lost) fail_msg("%d of %d tries lost something", lost, tries);
}

static int interrupts_begin(void **state) {
#ifndef HUNCH_LIBEDIT
    exit(77); /* a terminal's own editing of lines is only told of Ctrl-C by the signal */
#endif
    setenv("TERM", "xterm", 1);
    setenv("HOME", folder, 1);
    return folder_make(state);
}

#endif
