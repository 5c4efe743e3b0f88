/* SPDX-License-Identifier: Apache-2.0 */
/* tool_editor.c - see tool_editor.h: a wrapper of libedit that adds what libedit lacks: it waits for signals as well as for keys, decodes
 * UTF-8 in any locale, and inserts a bracketed paste as one piece of text.
 *
 * While a line is edited Ctrl-C is a key, which is read after those typed before it. As a signal it would overtake them: on a busy machine
 * the line that they end would be taken for the one that Ctrl-C clears. While a message is answered it is a signal.
 *
 * Between lines the terminal stays without echo and without its own line editing, which truncates lines at 4,095 bytes: text typed or
 * pasted during an answer is kept complete for the next prompt. */
#include "cli/chat/tool_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/terminal.h"
#include "base/utf8.h"
#include "cli/chat/tool_history.h"
#include "app/tool_tty.h"

enum { BYTE = 0xDC00 }; /* + a byte that is not UTF-8: shown as a code, returned unchanged */

struct tool_editor {
    EditLine *line;
    HistoryW *history;
    FILE *out;
    const char *const *names;
    tool_history history_file;
    bool saves;     /* what is typed */
    bool ended;     /* input */
    bool cancelled; /* by Ctrl-C: the line ends here */
    wchar_t prompt[32];
    char *keys; /* read but not yet returned: [begin, end) */
    size_t begin, end, keys_cap;
    char *text; /* of the line */
    size_t cap;
    wchar_t *pasted;
    size_t pasted_cap;
};

static tool_editor *editor_of(EditLine *line) {
    void *e = NULL;
    el_wget(line, EL_CLIENTDATA, &e);
    return e;
}

/* ---- another size of the terminal ------------------------------------------------------------------------------ */

/* Columns in which libedit shows a character. */
static int columns_of(wchar_t c) {
    const int printed = wcwidth(c);
    if (c < 0x20 || c == 0x7F) /* ^C */
        return 2;
    if (printed >= 0)
        return printed;
    return c > 0xFFFF ? 8 : 7; /* \U+1F600, \U+E000 */
}

/* Rows of the prompt and the line above the cursor. Nearly all terminals break lines anew for another size. */
static int rows_above(const tool_editor *e) {
    enum { PROMPT = 2, TAB = 8 };
    const LineInfoW *at = el_wline(e->line);
    const int width = tool_width_of(e->out);
    int row = 0, column = PROMPT;
    for (const wchar_t *c = at->buffer; c < at->cursor && width > PROMPT; c++) {
        const int n = *c == L'\t' ? TAB - column % TAB : columns_of(*c);
        const bool fits = column + n <= width;
        row += *c == L'\n' || !fits;
        column = *c == L'\n' ? 0 : fits ? column + n : n;
    }
    return row; /* after a full row terminals keep the cursor in it */
}

/* Draws the prompt and the line again: after a resize in their place, after a stop below what others wrote. */
static void line_redraw(tool_editor *e) {
    const int above = tool_tty_clear() == TOOL_TTY_RESIZED ? rows_above(e) : 0;
    el_resize(e->line);
    if (above)
        fprintf(e->out, "\033[%dA", above);
    fputs("\r\033[J", e->out);
    el_wset(e->line, EL_REFRESH);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/* Reads the keys that there are. */
static void keys_take(tool_editor *e) {
    enum { PIECE = 4096 };
    if (e->begin > 0) {
        memmove(e->keys, e->keys + e->begin, e->end - e->begin);
        e->end -= e->begin;
        e->begin = 0;
    }
    e->keys = tool_grow(e->keys, &e->keys_cap, e->end + PIECE, 1);
    const ssize_t n = read(STDIN_FILENO, e->keys + e->end, PIECE);
    if (n > 0)
        e->end += (size_t)n;
    else
        e->ended = n == 0 || (errno != EINTR && errno != EAGAIN);
}

/* Waits for keys, a signal or another size of the terminal. */
static void keys_await(tool_editor *e) {
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {tool_interrupt_fd(), POLLIN, 0}, {tool_tty_fd(), POLLIN, 0}};
    if (poll(fds, 3, -1) < 0) {
        e->ended = errno != EINTR;
        return;
    }
    if (fds[2].revents)
        line_redraw(e);
    if (fds[0].revents && !tool_interrupted)
        keys_take(e);
}

/* Reads the first character, or an invalid byte. Returns its bytes; 0: it is incomplete so far. */
static size_t character_read(const char *at, size_t have, bool ended, wchar_t *c) {
    uint32_t cp;
    const int n = hn_utf8_decode(at, have, &cp);
    if (n > 0) {
        *c = (wchar_t)cp;
        return (size_t)n;
    }
    if (have == 0 || (!ended && hn_utf8_complete(at, have) == 0))
        return 0;
    *c = BYTE + (unsigned char)*at;
    return 1;
}

/* What was typed so far is discarded; what comes after Ctrl-C stays. Until the caller has handled it every key is Enter, which ends any
 * pending input. */
static int line_cancel(tool_editor *e, wchar_t *key) {
    if (!e->cancelled)
        fputs("^C", e->out);
    e->cancelled = true;
    *key = L'\n';
    return 1;
}

static int key_read(EditLine *line, wchar_t *key) {
    tool_editor *e = editor_of(line);
    while (!tool_interrupted) {
        const char *at = e->keys + e->begin;
        const size_t n = character_read(at, e->end - e->begin, e->ended, key);
        if (n == 0 && e->ended)
            return 0;
        if (n == 0) {
            keys_await(e);
            continue;
        }
        e->begin += n;
        if ((unsigned char)*at == tool_tty_interrupt_key()) {
            raise(SIGINT);
            continue;
        }
        return 1;
    }
    return line_cancel(e, key);
}

/* Whether there was Ctrl-C among the keys that are not returned yet; removes it. */
static bool interrupt_remove(tool_editor *e) {
    size_t kept = e->begin;
    for (size_t i = e->begin; i < e->end; i++)
        if ((unsigned char)e->keys[i] != tool_tty_interrupt_key())
            e->keys[kept++] = e->keys[i];
    const bool found = kept < e->end;
    e->end = kept;
    return found;
}

void tool_editor_pause(tool_editor *e) {
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (!e)
        return;
    tool_tty_signals(true);
    while (!e->ended && poll(&input, 1, 0) > 0)
        keys_take(e);
    if (interrupt_remove(e))
        raise(SIGINT);
}

void tool_editor_resume(tool_editor *e) {
    if (e)
        tool_tty_signals(false);
}

/* ---- functions of keys ------------------------------------------------------------------------------------------- */

/* Replaces every line break by one line feed and removes zeros; returns the new length. */
static size_t breaks_join(wchar_t *text, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const wchar_t c = text[i];
        const bool is_break = c == L'\r' || c == L'\n';
        if (c)
            text[kept++] = is_break ? L'\n' : c;
        if (is_break && i + 1 < n && c + text[i + 1] == L'\r' + L'\n')
            i++; /* one break of two characters */
    }
    return kept;
}

/* After \e[200~: inserts everything up to \e[201~ as text. */
static unsigned char paste_take(EditLine *line, wint_t key) {
    static const wchar_t end[] = L"\033[201~";
    enum { END = sizeof end / sizeof *end - 1 };
    tool_editor *e = editor_of(line);
    size_t n = 0;
    wchar_t c;
    (void)key;
    while (el_wgetc(line, &c) == 1 && !e->cancelled) {
        e->pasted = tool_grow(e->pasted, &e->pasted_cap, n + 2, sizeof *e->pasted);
        e->pasted[n++] = c;
        if (n >= END && wmemcmp(e->pasted + n - END, end, END) == 0) {
            n -= END;
            break;
        }
    }
    if (n == 0)
        return CC_REFRESH;
    e->pasted[breaks_join(e->pasted, n)] = 0;
    return *e->pasted && el_winsertstr(line, e->pasted) != 0 ? CC_ERROR : CC_REFRESH;
}

static size_t common(const char *a, const char *b) {
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Completes a line that is the beginning of a name; elsewhere inserts a tab. */
static unsigned char name_complete(EditLine *line, wint_t key) {
    const tool_editor *e = editor_of(line);
    const LineInfoW *at = el_wline(line);
    const size_t typed = (size_t)(at->cursor - at->buffer);
    char word[64];
    const char *found = NULL;
    size_t n = 0;
    (void)key;
    if (typed == 0 || *at->buffer != L'/' || at->cursor != at->lastchar || typed >= sizeof word ||
        wmemchr(at->buffer, L' ', typed))
        return el_winsertstr(line, L"\t") == 0 ? CC_REFRESH : CC_ERROR;
    for (size_t i = 0; i < typed; i++)
        word[i] = at->buffer[i] < 0x80 ? (char)at->buffer[i] : '?';
    for (const char *const *name = e->names; *name; name++) {
        if (strncmp(*name, word, typed) != 0)
            continue;
        n = found ? common(found, *name) < n ? common(found, *name) : n : strlen(*name);
        found = *name;
    }
    wchar_t rest[64] = {0};
    for (size_t i = typed; found && i < n; i++)
        rest[i - typed] = (wchar_t)found[i];
    return *rest && el_winsertstr(line, rest) == 0 ? CC_REFRESH : CC_REFRESH_BEEP;
}

static void keys_bind(EditLine *line) {
    static const wchar_t *const usual[][2] = {
        {L"^R", L"em-inc-search-prev"}, {L"\\e[1~", L"ed-move-to-beg"},      {L"\\e[7~", L"ed-move-to-beg"},
        {L"\\e[4~", L"ed-move-to-end"}, {L"\\e[8~", L"ed-move-to-end"},      {L"\\e[3~", L"ed-delete-next-char"},
        {L"\\e[1;5C", L"em-next-word"}, {L"\\e[1;5D", L"ed-prev-word"},      {L"^I", L"hunch-complete"},
        {L"\\e[H", L"ed-move-to-beg"},  {L"\\e[F", L"ed-move-to-end"},
    };
    el_wset(line, EL_EDITOR, L"emacs");
    el_wset(line, EL_ADDFN, L"hunch-paste", L"takes what is pasted", paste_take);
    el_wset(line, EL_ADDFN, L"hunch-complete", L"completes a command", name_complete);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        el_wset(line, EL_BIND, usual[i][0], usual[i][1], NULL);
    el_source(line, NULL); /* ~/.editrc */
    el_wset(line, EL_BIND, L"\\e[200~", L"hunch-paste", NULL);
}

/* ---- history ----------------------------------------------------------------------------------------------------- */

static void history_enter(void *editor, const char *text) {
    const tool_editor *e = editor;
    const size_t len = strlen(text);
    wchar_t *wide = tool_alloc(len + 1, sizeof *wide);
    HistEventW event;
    for (size_t i = 0, n = 0; i < len; n++)
        i += character_read(text + i, len - i, true, &wide[n]);
    history_w(e->history, &event, H_ENTER, wide);
    hn_free(wide);
}

void tool_editor_remember(tool_editor *e, const char *text, size_t len) {
    history_enter(e, text);
    if (e->saves && hn_utf8_check(text, len) == len)
        tool_history_add(&e->history_file, text, len);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static wchar_t *prompt_of(EditLine *line) {
    return editor_of(line)->prompt;
}

static size_t character_put(char *to, wchar_t c) {
    if (c < BYTE + 0x80 || c >= BYTE + 0x100)
        return (size_t)hn_utf8_encode((uint32_t)c, to);
    *to = (char)(c & 0xFF);
    return 1;
}

tool_line tool_editor_next(tool_editor *e, char mark, char **line, size_t *len) {
    int n = 0;
    e->prompt[wcscspn(e->prompt, L">.")] = mark;
    e->cancelled = false;
    if (tool_tty_clear() != TOOL_TTY_SAME)
        el_resize(e->line);
    const wchar_t *typed = el_wgets(e->line, &n);
    size_t end = 0;
    if (!typed)
        n = 0;
    e->text = tool_grow(e->text, &e->cap, (size_t)n * 4 + 1, 1);
    for (int i = 0; i < n; i++)
        end += character_put(e->text + end, typed[i]);
    while (end > 0 && e->text[end - 1] == '\n')
        end--;
    e->text[end] = 0;
    *line = e->text;
    *len = end;
    return e->cancelled ? TOOL_LINE_INTERRUPTED : typed ? TOOL_LINE : TOOL_LINE_END;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Characters are UTF-8 in any locale, but libedit shows characters beyond ASCII only in a UTF-8 locale. */
static void locale_choose(void) {
    static const char *const names[] = {"", "C.UTF-8", "en_US.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_CTYPE, names[i]) && strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
            return;
}

/* The terminal on which the line is shown; NULL: none. */
static FILE *out_open(void) {
    const char *term = getenv("TERM");
    FILE *to = tool_is_terminal(stderr) ? stderr : tool_is_terminal(stdout) ? stdout : NULL;
    if (!tool_is_terminal(stdin) || !to || !hn_terminal_obeys(fileno(to)) || !term || !*term)
        return NULL;
    const int fd = fcntl(fileno(to), F_DUPFD_CLOEXEC, 3);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !out)
        close(fd);
    return out;
}

static bool line_open(tool_editor *e, bool styled) {
    HistEventW event;
    e->line = el_init("hunch", stdin, e->out, e->out);
    e->history = history_winit();
    if (!e->line || !e->history)
        return false;
    wcscpy(e->prompt, styled ? L"\1\033[1m\1>\1\033[0m\1 " : L"> ");
    el_wset(e->line, EL_CLIENTDATA, e);
    el_wset(e->line, EL_GETCFN, key_read);
    el_wset(e->line, EL_PROMPT_ESC, prompt_of, L'\1');
    el_wset(e->line, EL_SIGNAL, 0);
    history_w(e->history, &event, H_SETSIZE, TOOL_MOST_HISTORY);
    history_w(e->history, &event, H_SETUNIQUE, 1);
    el_wset(e->line, EL_HIST, history_w, e->history);
    keys_bind(e->line);
    /* Line breaks are read as they were pasted; between lines (-x) the terminal keeps collecting input. */
    el_wset(e->line, EL_SETTY, L"-d", L"-icrnl", L"-inlcr", L"+noflsh", NULL);
    el_wset(e->line, EL_SETTY, L"-x", L"-icrnl", L"-inlcr", L"-icanon", L"-echo", L"+noflsh", NULL);
    if (tool_tty_interrupt_key() >= 0) { /* Ctrl-C is read as a key */
        el_wset(e->line, EL_SETTY, L"-d", L"intr=", NULL);
        el_wset(e->line, EL_SETTY, L"-x", L"intr=", NULL);
    }
    return true;
}

tool_editor *tool_editor_open(bool styled, const char *const *names, bool history) {
    FILE *out = out_open();
    if (!out)
        return NULL;
    tool_editor *e = tool_alloc(1, sizeof *e);
    *e = (tool_editor){.out = out, .names = names, .saves = history};
    locale_choose();
    if (!line_open(e, styled)) {
        tool_editor_close(&e);
        return NULL;
    }
    tool_tty_mark_pastes(fileno(out));
    if (history)
        tool_history_open(&e->history_file, history_enter, e);
    return e;
}

void tool_editor_close(tool_editor **editor) {
    tool_editor *e = *editor;
    if (!e)
        return;
    el_end(e->line);
    tool_tty_mark_pastes(-1);
    if (e->history)
        history_wend(e->history);
    tool_history_close(&e->history_file);
    fclose(e->out);
    hn_free(e->keys);
    hn_free(e->text);
    hn_free(e->pasted);
    hn_free(e);
    *editor = NULL;
}
