/* SPDX-License-Identifier: Apache-2.0 */
/* command_editing_test.c - `hunch chat` at a terminal: keys that edit a line, history, pastes, Ctrl-C, commands, a full context, a loop.
 * The text received is checked by the answers' objects, which go to a file: their tokens are those of `hunch run` for the same text. */
#include "pseudo_terminal.h"

#define READY "\033[?2004h" /* turns on bracketed paste: from now on the editor reads the keys */
#define PASTE(text) "\033[200~" text "\033[201~"
#define TALK "chat", "-m", STORIES, "--json-lines", "-n", "8", "--draft", "none"

static char *out; /* the answers' file */

static long lines_of(const char *path) {
    size_t len;
    long n = 0;
    if (access(path, R_OK) != 0)
        return 0;
    char *text = file_read(path, &len);
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    free(text);
    return n;
}

static terminal talk_args(const char *const *args) {
    out = path_of("answers");
    unlink(out);
    terminal t = terminal_start(60, out, args);
    terminal_await(&t, 0, READY);
    t.nudges = true;
    return t;
}
#define talk(...) talk_args((const char *const[]){__VA_ARGS__, NULL})

static void type(terminal *t, const char *keys) {
    terminal_type(t, keys, strlen(keys));
}

#define PROMPT "\033[1m>\033[0m "

/* Waits for this text and the prompt after it: Ctrl-C before the prompt is for what was running, not for the line. */
static void prompted(terminal *t, size_t from, const char *text) {
    terminal_await(t, from, text);
    terminal_await(t, (size_t)(strstr(t->text + from, text) - t->text), PROMPT);
}

/* Ctrl-C at a line that is typed. */
static void cleared(terminal *t) {
    const size_t from = t->len;
    type(t, "\003");
    terminal_await(t, from, "^C");
    terminal_await(t, (size_t)(strstr(t->text + from, "^C") - t->text), PROMPT);
}

/* Waits for answer `number`, from 1 on, for at most a minute. */
static json_t *answer_of(terminal *t, int number) {
    for (int i = 0; i < 600 && lines_of(out) < number; i++)
        if (!terminal_read(t, 100))
            break;
    if (lines_of(out) < number)
        fail_msg("%ld answers, expected %d: %s", lines_of(out), number, t->text);
    char *text = file_read(out, NULL), *line = text;
    for (int i = 1; i < number; i++)
        line = strchr(line, '\n') + 1;
    line[strcspn(line, "\n")] = 0;
    json_t *one = json_loads(line, 0, NULL);
    assert_non_null(one);
    free(text);
    return one;
}

/* Checks that the answer is to exactly this text. */
static void answers(terminal *t, int number, const char *said) {
    json_t *one = answer_of(t, number), *same = json_of("run", "-m", STORIES, "-n", "8", "--draft", "none", "-p", said);
    if (json_object_get(one, "error"))
        fail_msg("\"%s\": %s", said, text_of(one, "error"));
    tokens_equal(same, one);
    assert_int_equal(int_of(same, "prompt_tokens"), int_of(one, "prompt_tokens"));
    json_decref(same);
    json_decref(one);
}

static void leave(terminal *t, int code) {
    assert_int_equal(terminal_end(t), code);
    free(t->text);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static void test_editing(void **state) {
    (void)state;
    static const struct {
        const char *keys, *said;
    } cases[] = {
        {"Oncf\033[Dx\033[C\177\177e upon", "Once upon"},
        {"nce\001O\005 upon", "Once upon"},
        {"nce\033[HO\033[F upon", "Once upon"},
        {"nce\033OHO\033OF upon", "Once upon"},
        {"nce\033[1~O\033[4~ upon", "Once upon"},
        {"Onxce\033[D\033[D\033[D\033[3~", "Once"},
        {"all of this\025The dog", "The dog"},
        {"The cat\027dog", "The dog"},
        {"The dog ran\033[D\033[D\033[D\033[D\013", "The dog"},
        {"Th\303\251\344\270\255\360\237\231\202\177\177\177e dog", "The dog"},          /* e acute, a wide sign, a face */
        {"\344\270\255 dog\001\033[C\010The", "The dog"},                              /* Ctrl-H over the wide sign */
        {"Lily saw a caf\303\251\033[D\033[C", "Lily saw a caf\303\251"},
        {"a\tb", "a\tb"},
        {" /help me", " /help me"},
    };
    terminal t = talk(TALK);
    int n = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        type(&t, cases[i].keys);
        type(&t, "\r");
        answers(&t, ++n, cases[i].said);
        type(&t, "/res\t\r"); /* Tab makes it /reset */
    }
    type(&t, "The\\\rdog\r");
    answers(&t, ++n, "The\ndog");
    type(&t, "/reset\r\"\"\"\rThe\r\r/dog \"x\"\r\"\"\"\r");
    answers(&t, ++n, "The\n\n/dog \"x\"");
    type(&t, "ab\377c\r");
    json_t *bad = answer_of(&t, ++n);
    assert_non_null(strstr(text_of(bad, "error"), "not valid UTF-8 at byte 2"));
    json_decref(bad);
    type(&t, "/bye\r");
    leave(&t, 0);
}

/* A line longer than the window, and a resize while it is typed. */
static void test_another_size(void **state) {
    (void)state;
    terminal t = talk(TALK);
    const struct winsize narrow = {.ws_row = 5, .ws_col = 20}, wide = {.ws_row = 30, .ws_col = 100};
    type(&t, "Once upon a time there was a \344\270\255\344\270\255\344\270\255 little girl named Lily. She had a "
             "\344\270\255 dog. ");
    terminal_await(&t, 0, "dog. ");
    size_t from = t.len;
    ioctl(t.master, TIOCSWINSZ, &narrow);
    terminal_await(&t, from, "Lily"); /* it is drawn again */
    type(&t, "Lily was \033[H\033[C\033[C\033[C\033[C\033[F");
    from = t.len;
    ioctl(t.master, TIOCSWINSZ, &wide);
    terminal_await(&t, from, "Lily");
    type(&t, "sad.\r");
    answers(&t, 1,
            "Once upon a time there was a \344\270\255\344\270\255\344\270\255 little girl named Lily. She had a "
            "\344\270\255 dog. Lily was sad.");
    type(&t, "\004"); /* the end of input */
    leave(&t, 0);
}

static int prompts_of(const char *text) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, PROMPT)); at++)
        n++;
    return n;
}

/* What is drawn after a change begins with this, and has the prompt once. */
static void drawn_once(terminal *t, size_t from, const char *begin, const char *line) {
    char shown[200];
    snprintf(shown, sizeof shown, "%s" PROMPT "%s", begin, line);
    terminal_await(t, from, line);
    if (strncmp(t->text + from, shown, strlen(shown)) != 0 || prompts_of(t->text + from) != 1)
        fail_msg("expected \"%s\", got \"%s\"", shown, t->text + from);
}

/* A resize and a stop (Ctrl-Z, and fg) draw the prompt in the place of the one that is there, not behind it. */
static void test_one_prompt(void **state) {
    (void)state;
    terminal t = talk(TALK);
    const struct winsize narrow = {.ws_row = 10, .ws_col = 30};
    t.nudges = false;
    type(&t, "The dog ran");
    terminal_await(&t, 0, "ran");
    size_t from = t.len;
    kill(t.child, SIGTSTP); /* nobody could continue it here, so the kernel does not stop it */
    drawn_once(&t, from, "\033[?2004l\033[?2004h\r\033[J", "The dog ran");
    type(&t, " and ran and ran and ran");
    terminal_await(&t, from, " and ran and ran and ran");
    from = t.len;
    ioctl(t.master, TIOCSWINSZ, &narrow); /* 2 + 35 columns: two rows */
    drawn_once(&t, from, "\033[1A\r\033[J", "The dog ran and ran and ran");
    type(&t, "\025/bye\r");
    leave(&t, 0);
}

/* The same while an answer is written: the next prompt is drawn once. */
static void test_one_prompt_after_an_answer(void **state) {
    (void)state;
    terminal t = talk("chat", "-m", STORIES, "--ignore-eos", "--draft", "forced,accept=0,depth=1,cost_us=20000", "-n", "30");
    const struct winsize narrow = {.ws_row = 10, .ws_col = 30};
    t.nudges = false;
    type(&t, "Once\r");
    struct stat st = {0};
    for (int i = 0; i < 600 && st.st_size < 3; i++) {
        terminal_read(&t, 100);
        assert_int_equal(stat(out, &st), 0);
    }
    const size_t from = t.len;
    kill(t.child, SIGTSTP);
    ioctl(t.master, TIOCSWINSZ, &narrow);
    terminal_await(&t, from, "finish length]");
    type(&t, "/set seed 3\r");
    prompted(&t, from, "seed                 3");
    assert_int_equal(prompts_of(t.text + from), 2);
    type(&t, "/bye\r");
    leave(&t, 0);
}

/* Clears the line, and leaves. A key is sent after the previous one was handled: two simultaneous signals are one. */
static void interrupt_twice(terminal *t) {
    cleared(t);
    type(t, "\003");
    terminal_await(t, 0, "Ctrl-C again leaves");
    type(t, "\003");
}

/* The terminal's modes are restored, however the command ends. */
static void test_modes_come_back(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct termios before, now;
        terminal t = talk(TALK);
        assert_int_equal(tcgetattr(t.master, &now), 0);
        if (now.c_lflag & ICANON) /* not yet: the first key must come later */
            terminal_await(&t, 0, "> ");
        type(&t, "abc");
        terminal_await(&t, 0, "abc");
        assert_int_equal(tcgetattr(t.master, &now), 0);
        assert_false(now.c_lflag & (ICANON | ECHO));
        assert_true(now.c_lflag & NOFLSH); /* else the kernel may discard output printed after Ctrl-C */
        const int slave = open(ptsname(t.master), O_RDWR | O_NOCTTY);
        assert_true(slave >= 0); /* keeps the terminal open after its process has ended */
        if (way == 0)
            type(&t, "\025/bye\r");
        else if (way == 1)
            interrupt_twice(&t);
        else
            kill(t.child, way == 2 ? SIGTERM : SIGQUIT);
        static const int codes[] = {0, 130, 143, -SIGQUIT};
        assert_int_equal(child_wait(t.child), codes[way]);
        assert_int_equal(tcgetattr(slave, &before), 0);
        assert_int_equal(before.c_lflag & (ICANON | ECHO | ISIG | NOFLSH), ICANON | ECHO | ISIG);
        terminal_await(&t, 0, "\033[?2004l");
        close(slave);
        close(t.master);
        free(t.text);
    }
}

/* ---- history ----------------------------------------------------------------------------------------------------- */

#define UP "\033[A"

static void test_history(void **state) {
    (void)state;
    char file[400];
    snprintf(file, sizeof file, "%s/hunch/chat_history", path_of("state"));
    terminal t = talk(TALK);
    type(&t, "Once upon\r/reset\r" PASTE("The\rdog") "\r/reset\rnever sent");
    terminal_await(&t, 0, "never sent");
    cleared(&t);
    type(&t, "/bye\r");
    leave(&t, 0);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    t = talk(TALK);
    type(&t, UP UP "\r"); /* /bye is the newest, after the cleared line */
    answers(&t, 1, "never sent");
    type(&t, "/reset\r" UP UP UP UP UP UP "\r");
    answers(&t, 2, "The\ndog");
    type(&t, "/reset\r\022nce\r"); /* Ctrl-R */
    answers(&t, 3, "Once upon");
    type(&t, "/bye\r");
    leave(&t, 0);
    t = talk(TALK, "--no-history");
    type(&t, UP "\025A secret\r/reset\r" UP UP "\r");
    answers(&t, 1, "A secret");
    answers(&t, 2, "A secret");
    type(&t, "/bye\r");
    leave(&t, 0);
    char *text = file_read(file, NULL);
    assert_null(strstr(text, "secret"));
    assert_non_null(strstr(text, "\"The\\ndog\"\n"));
    free(text);
}

/* If the file is not a history, or cannot be made, there is no history, and the conversation works. */
static void test_history_that_cannot_be(void **state) {
    (void)state;
    char file[500], folder_of[400];
    snprintf(folder_of, sizeof folder_of, "%s/hunch", path_of("bad"));
    snprintf(file, sizeof file, "%s/chat_history", folder_of);
    for (int way = 0; way < 5; way++) {
        static const char garbage[] = "\"a\n\377\376\n12\n{}\n\"The dog\"\n\"\"\n\0\0\n\"torn";
        setenv("XDG_STATE_HOME", way == 4 ? "/dev/null" : path_of("bad"), 1);
        mkdir(path_of("bad"), 0700);
        mkdir(folder_of, 0700);
        if (way == 0)
            test_file_write(file, garbage, sizeof garbage - 1);
        if (way == 1)
            assert_int_equal(mkfifo(file, 0600), 0);
        if (way == 2)
            assert_int_equal(mkdir(file, 0700), 0);
        if (way == 3)
            assert_int_equal(symlink("/dev/full", file), 0);
        terminal t = talk(TALK);
        type(&t, way == 0 ? UP "\r" : "The dog\r");
        answers(&t, 1, "The dog");
        type(&t, "/reset\r" UP UP "\r"); /* within this process there is a history */
        answers(&t, 2, "The dog");
        if (way > 0)
            terminal_await(&t, 0, "typed lines are not saved: ");
        type(&t, "/bye\r");
        leave(&t, 0);
        if (way != 2)
            unlink(file);
        else
            rmdir(file);
    }
    setenv("XDG_STATE_HOME", path_of("state"), 1);
}

/* More texts than the limit: the newest stay, and the size of the file is bounded. */
static void test_history_is_bounded(void **state) {
    (void)state;
    enum { MANY = 5000 };
    char file[400], *rows = malloc(MANY * 20), *to = rows;
    snprintf(file, sizeof file, "%s/hunch/chat_history", path_of("state"));
    for (int i = 0; i < MANY; i++)
        to += sprintf(to, "\"text %d\"\n", i);
    test_file_write(file, rows, (size_t)(to - rows));
    free(rows);
    terminal t = talk(TALK);
    type(&t, UP "\r");
    answers(&t, 1, "text 4999");
    type(&t, "/bye\r");
    leave(&t, 0);
    assert_int_equal(lines_of(file), 1002);
    char *text = file_read(file, NULL);
    assert_memory_equal(text, "\"text 4000\"\n", 12);
    free(text);
    unlink(file);
}

/* ---- pastes ------------------------------------------------------------------------------------------------------ */

/* The content of message `number` in the file of /save. */
static char *saved(terminal *t, size_t number) {
    char line[500];
    const char *path = path_of("talk.json");
    const size_t from = t->len;
    if (!path || snprintf(line, sizeof line, "/save %s\r", path) >= (int)sizeof line) fail_msg("no path");
    type(t, line);
    prompted(t, from, " turns are in ");
    char *text = file_read(path, NULL);
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    char *content = strdup(text_of(json_array_get(get(all, "messages"), number), "content"));
    json_decref(all);
    free(text);
    return content;
}

static const char *one_line(char *text) {
    for (char *c = text; (c = strchr(c, '\n'));)
        *c = ' ';
    return text;
}

static void test_pastes(void **state) {
    (void)state;
    enum { LONG = 6000 };
    static const char before[] = "/reset\rOnce\r/system \033[200~", after[] = "\033[201~\r";
    char *big = calloc(1, LONG + 1), line[LONG + 100];
    for (size_t i = 0; i < LONG; i++)
        big[i] = i % 61 == 60 ? '\r' : (char)('a' + i % 23);
    terminal t = talk(TALK);
    /* five lines are one message; carriage returns, line feeds or both end them */
    type(&t, PASTE("The dog\rran\n\nfast\r\nhome\r.") "\r");
    answers(&t, 1, "The dog\nran\n\nfast\nhome\n.");
    /* sent while an answer is awaited, so that much of it waits in the terminal */
    snprintf(line, sizeof line, "%s%s%s", before, big, after);
    type(&t, line);
    for (size_t i = 0; i < LONG; i++)
        big[i] = big[i] == '\r' ? '\n' : big[i];
    char *system = saved(&t, 0);
    assert_string_equal(system, big);
    free(system);
    /* without bracketed paste: a line may have any length */
    snprintf(line, sizeof line, "/system %s\r", one_line(big));
    type(&t, line);
    system = saved(&t, 0);
    assert_string_equal(system, big);
    free(system);
    /* a paste in the middle of a line, and one whose end is not marked before Ctrl-C */
    type(&t, "/system\r/reset\rThe !\033[D" PASTE("big\rdog") "\r");
    answers(&t, 3, "The big\ndog!");
    type(&t, "/reset\r/set keep 3\r");
    prompted(&t, 0, "keep                 3");
    type(&t, "\033[200~half of it");
    cleared(&t);
    type(&t, "The dog\r");
    answers(&t, 4, "The dog");
    type(&t, "/bye\r");
    leave(&t, 0);
    free(big);
}

/* ---- Ctrl-C ------------------------------------------------------------------------------------------------------ */

static void test_interrupts(void **state) {
    (void)state;
    terminal t = talk("chat", "-m", STORIES, "--ignore-eos", "--draft", "forced,accept=0,depth=1,cost_us=50000");
    type(&t, "not this");
    terminal_await(&t, 0, "not this");
    cleared(&t);
    type(&t, "Once\r");
    struct stat st = {0};
    for (int i = 0; i < 600 && st.st_size < 3; i++) { /* it has begun to answer */
        terminal_read(&t, 100);
        assert_int_equal(stat(out, &st), 0);
    }
    type(&t, "\003");
    terminal_await(&t, 0, "finish cancelled");
    char *said = saved(&t, 1), *shown = file_read(out, NULL), *asked = saved(&t, 0);
    assert_true(strlen(said) >= 3);
    shown[strcspn(shown, "\n")] = 0;
    assert_string_equal(said, shown); /* the incomplete answer is kept */
    assert_string_equal(asked, "Once");
    free(said);
    free(shown);
    free(asked);
    /* Ctrl-C in a line half typed, then at empty lines: with a line between them two do not count as two in a row */
    size_t from = t.len;
    type(&t, "\003");
    terminal_await(&t, from, "Ctrl-C again leaves");
    type(&t, "/set seed 7\r");
    prompted(&t, from, "seed                 7");
    from = t.len;
    type(&t, "\003");
    terminal_await(&t, from, "Ctrl-C again leaves");
    type(&t, "\003");
    leave(&t, 130);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* An answer on the terminal has the words of the text, in lines that fit. */
static void test_answer_is_wrapped(void **state) {
    (void)state;
    enum { COLUMNS = 40 };
    json_t *same = json_of("run", "-m", STORIES, "-n", "80", "--ignore-eos", "--draft", "none", "-p", "Once");
    const char *said = text_of(same, "text");
    terminal t = terminal_of(COLUMNS, NULL, "chat", "-m", STORIES, "-n", "80", "--ignore-eos", "--draft", "none", "--color", "never");
    terminal_await(&t, 0, READY);
    type(&t, "Once\r");
    terminal_await(&t, 0, "[80 tokens");
    char *shown = strstr(t.text, "> Once") + strlen("> Once"), *end = strstr(shown, "[80 tokens");
    while (strchr("\r\n", end[-1])) /* of the answer's last line */
        end--;
    *end = 0;
    shown += strspn(shown, "\r\n");
    for (const char *line = shown; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strcspn(line, "\r\n") > COLUMNS)
            fail_msg("a line is too long: \"%s\"", line);
    while (*said || *shown) {
        if ((*said && strchr(" \n", *said)) != (*shown && strchr(" \r\n", *shown)))
            fail_msg("\"%s\" is shown as \"%s\"", said, shown);
        said += strspn(said, " \n");
        shown += strspn(shown, " \r\n");
        assert_int_equal(*said, *shown);
        said += *said != 0;
        shown += *shown != 0;
    }
    type(&t, "/bye\r");
    leave(&t, 0);
    json_decref(same);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void test_commands(void **state) {
    (void)state;
    terminal t = talk(TALK);
    type(&t, "/sey\r");
    terminal_await(&t, 0, "did you mean /set?");
    type(&t, "/setemperature .8\r");
    terminal_await(&t, 0, "unknown command /setemperature");
    type(&t, "/set temperature .8\r");
    terminal_await(&t, 0, "temperature          0.8");
    type(&t, "/set seed 11\rOnce\r");
    json_t *one = answer_of(&t, 1),
           *same = json_of("run", "-m", STORIES, "-n", "8", "-p", "Once", "--temperature", "0.8", "--seed", "11");
    tokens_equal(same, one);
    json_decref(same);
    json_decref(one);
    type(&t, "/again\r"); /* with the next seed, and in its place */
    one = answer_of(&t, 2);
    same = json_of("run", "-m", STORIES, "-n", "8", "-p", "Once", "--temperature", "0.8", "--seed", "12");
    tokens_equal(same, one);
    assert_int_equal(int_of(one, "seed"), 12);
    char *said = saved(&t, 1);
    assert_string_equal(said, text_of(one, "text"));
    free(said);
    json_decref(same);
    json_decref(one);
    /* a saved conversation continues in another process */
    type(&t, "/set temperature 0\r The dog\r");
    one = answer_of(&t, 3);
    type(&t, "/bye\r");
    leave(&t, 0);
    t = talk(TALK);
    char line[400];
    snprintf(line, sizeof line, "/load %s\r The dog\r", path_of("talk.json"));
    type(&t, line);
    same = answer_of(&t, 1);
    tokens_equal(one, same);
    assert_int_equal(int_of(one, "prompt_tokens"), int_of(same, "prompt_tokens"));
    json_decref(one);
    json_decref(same);
    type(&t, "/reset\r/system A dog.\r Once\r");
    one = answer_of(&t, 2);
    same = json_of("run", "-m", STORIES, "-n", "8", "-p", "A dog. Once");
    tokens_equal(same, one);
    json_decref(one);
    json_decref(same);
    type(&t, "/load /nowhere/at/all\r");
    terminal_await(&t, 0, "/nowhere/at/all: No such file");
    type(&t, "/bye\r");
    leave(&t, 0); /* exit code 0: failures were shown at the terminal */
}

static void test_context_runs_out(void **state) {
    (void)state;
    terminal t = talk("chat", "-m", STORIES, "--json-lines", "-n", "8", "--ignore-eos", "--draft", "none", "--context",
                      "64", "--keep", "1");
    type(&t, "Once upon a time\r");
    for (int i = 2; i <= 8; i++) {
        json_decref(answer_of(&t, i - 1));
        type(&t, " The dog ran to the park.\r");
    }
    json_t *last = answer_of(&t, 8);
    assert_true(int_of(last, "prompt_tokens") <= 56);
    json_decref(last);
    terminal_await(&t, 0, "the context of 64 rows is full: the ");
    char *said = saved(&t, 14); /* turns that the model no longer reads are still saved */
    assert_string_equal(said, " The dog ran to the park.");
    free(said);
    type(&t, "/bye\r");
    leave(&t, 0);
}

static void test_loop(void **state) {
    (void)state;
    terminal t = talk("chat", "-m", STORIES, "--json-lines", "--logit-bias", "300=1000", "--draft", "ngram");
    type(&t, "Once\r");
    json_t *one = answer_of(&t, 1);
    assert_string_equal(text_of(one, "finish"), "loop");
    assert_int_equal(json_array_size(get(one, "tokens")), 256);
    json_decref(one);
    terminal_await(&t, 0, "it repeated the same 64 tokens a fourth time; /set loop_guard off turns this check off");
    type(&t, "/reset\r/set loop_guard off\r/set max_tokens 300\rOnce\r");
    one = answer_of(&t, 2);
    assert_string_equal(text_of(one, "finish"), "length");
    json_decref(one);
    type(&t, "/bye\r");
    leave(&t, 0);
}

/* A terminal without capabilities: lines are not edited. */
static void test_dumb_terminal(void **state) {
    (void)state;
    setenv("TERM", "dumb", 1);
    out = path_of("answers");
    unlink(out);
    terminal t = terminal_of(60, out, TALK);
    terminal_await(&t, 0, "> ");
    type(&t, "The dog\n");
    answers(&t, 1, "The dog");
    terminal_await(&t, 0, "> ");
    assert_null(strchr(t.text, 27));
    size_t from = t.len;
    type(&t, "\003");
    terminal_await(&t, from, "Ctrl-C again leaves");
    type(&t, "\003");
    leave(&t, 130);
    setenv("TERM", "xterm", 1);
}

static int begin(void **state) {
    const int code = folder_make(state);
    unsetenv("NO_COLOR");
    unsetenv("EDITRC");
    setenv("TERM", "xterm", 1);
    setenv("HOME", folder, 1);
    setenv("XDG_STATE_HOME", path_of("state"), 1);
    setenv("LC_ALL", "C", 1); /* typed text is UTF-8 in any locale */
    return code;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dumb_terminal),
#ifdef HUNCH_LIBEDIT
        cmocka_unit_test(test_editing),
        cmocka_unit_test(test_another_size),
        cmocka_unit_test(test_one_prompt),
        cmocka_unit_test(test_one_prompt_after_an_answer),
        cmocka_unit_test(test_modes_come_back),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_history_that_cannot_be),
        cmocka_unit_test(test_history_is_bounded),
        cmocka_unit_test(test_pastes),
        cmocka_unit_test(test_interrupts),
        cmocka_unit_test(test_answer_is_wrapped),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_context_runs_out),
        cmocka_unit_test(test_loop),
#endif
    };
    return cmocka_run_group_tests(tests, begin, folder_remove);
}
