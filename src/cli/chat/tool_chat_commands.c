/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat_commands.c - lines of `hunch chat` that begin with /. */
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/utf8.h"
#include "cli/chat/tool_chat.h"

static int do_help(tool_chat_state *c, const char *rest) {
    (void)c, (void)rest;
    fputs("/help             this text\n"
          "/again            answers the last message once more, with the next seed\n"
          "/reset            forgets the conversation\n"
          "/save FILE        writes the conversation; /load FILE goes on with one\n"
          "/set NAME VALUE   temperature, top_p, seed, max_tokens, draft, context, ...; /set alone lists them\n"
          "/stats            figures of all answers so far\n"
          "/system TEXT      the system message from here on; without TEXT: none\n"
          "/tool RESULT      the result of a call; without RESULT: the calls that wait for one\n"
          "/bye, /exit       ends, as does the end of input (Ctrl-D)\n"
          "A line that ends in a backslash goes on in the next one, and so does what begins with \"\"\", up to \"\"\"; "
          "what is pasted\n"
          "is one message. A space before / makes a line a message.\n"
          "Ctrl-C stops an answer, clears a line, and leaves when it comes twice at an empty one.\n",
          stderr);
    return TOOL_GO_ON;
}

/* After a command whose message, if any, was printed: notes a failure. */
static int note_failure(tool_chat_state *c, int code) {
    c->failed |= code != 0;
    return TOOL_GO_ON;
}

static int do_again(tool_chat_state *c, const char *rest) {
    (void)rest;
    return tool_chat_again(c);
}

static int do_reset(tool_chat_state *c, const char *rest) {
    (void)rest;
    tool_conversation_clear(&c->talk);
    return TOOL_GO_ON;
}

/* A path, with ~/ expanded to the home folder; NULL after a message. To be freed with hn_free. */
static char *path_of(const char *command, const char *rest) {
    const char *home = getenv("HOME");
    if (!*rest) {
        tool_message("%s needs the name of a file", command);
        return NULL;
    }
    const bool expand = rest[0] == '~' && rest[1] == '/' && home;
    return tool_joined(expand ? home : "", rest + expand);
}

static int do_save(tool_chat_state *c, const char *rest) {
    char *path = path_of("/save", rest);
    const int code = path ? tool_conversation_save(&c->talk, path) : HUNCH_USAGE;
    if (!code && !tool_quiet)
        tool_message("%zu turns are in %s", tool_conversation_turns(&c->talk), path);
    hn_free(path);
    return note_failure(c, code);
}

static int do_load(tool_chat_state *c, const char *rest) {
    char *path = path_of("/load", rest);
    const int code = path ? tool_conversation_load(&c->talk, path) : HUNCH_USAGE;
    if (!code && !tool_quiet)
        tool_message("%zu turns of %s%s", tool_conversation_turns(&c->talk), path,
                     tool_conversation_last_is(&c->talk, "user") ? "; the last has no answer: /again answers it" : "");
    hn_free(path);
    return note_failure(c, code);
}

static int do_set(tool_chat_state *c, const char *rest) {
    const int code = tool_chat_set(c, rest);
    return c->engine ? note_failure(c, code) : code;
}

static int do_system(tool_chat_state *c, const char *rest) {
    const bool valid = hn_utf8_check(rest, strlen(rest)) == strlen(rest);
    if (valid)
        tool_conversation_system(&c->talk, rest);
    else
        tool_message("the system message is not valid UTF-8: ignored");
    return note_failure(c, valid ? 0 : HUNCH_USAGE);
}

static int do_stats(tool_chat_state *c, const char *rest) {
    (void)rest;
    fprintf(stderr, "%zu answers, %zu tokens, %.1f tokens/s · %zu of %zu prompt rows restored\n", c->turns, c->tokens,
            c->decode_s > 0 ? c->decoded / c->decode_s : 0, c->restored, c->rows);
    if (c->rounds)
        fprintf(stderr, "acceptance length %.2f over %llu rounds · drafted %llu, accepted %llu\n",
                c->decoded / (double)c->rounds, (unsigned long long)c->rounds, (unsigned long long)c->drafted,
                (unsigned long long)c->accepted);
    fprintf(stderr, "context of %d rows · peak memory %.0f MiB\n", c->context, tool_peak_mib());
    return TOOL_GO_ON;
}

static int do_tool(tool_chat_state *c, const char *rest) {
    return tool_chat_result(c, rest);
}

static int do_exit(tool_chat_state *c, const char *rest) {
    (void)c, (void)rest;
    return HUNCH_OK;
}

/* In the order of tool_chat_names. */
static int (*const acts[])(tool_chat_state *c, const char *rest) = {do_again, do_exit, do_exit, do_help,  do_load,
                                                                    do_reset, do_save, do_set,  do_stats, do_system, do_tool};
enum { COMMANDS = sizeof acts / sizeof *acts };
const char *const tool_chat_names[] = {"/again", "/bye",  "/exit", "/help",  "/load",   "/reset",
                                       "/save",  "/set",  "/stats", "/system", "/tool", NULL};
_Static_assert(sizeof tool_chat_names / sizeof *tool_chat_names == COMMANDS + 1, "a name for each");

int tool_chat_command(tool_chat_state *c, const char *line) {
    const size_t len = strcspn(line, " \t\n");
    const char *rest = line + len + strspn(line + len, " \t\n");
    char word[64], *trimmed = tool_strdup(rest);
    for (size_t n = strlen(trimmed); n && strchr(" \t\n", trimmed[n - 1]);)
        trimmed[--n] = 0;
    snprintf(word, sizeof word, "%.*s", len < sizeof word ? (int)len : 0, line);
    int at = 0;
    while (at < COMMANDS && strcmp(tool_chat_names[at], word) != 0)
        at++;
    const int code = at < COMMANDS ? acts[at](c, trimmed) : TOOL_GO_ON;
    hn_free(trimmed);
    if (at < COMMANDS)
        return code;
    const char *near = hn_nearest(word, tool_chat_names, COMMANDS);
    c->failed = true;
    if (near)
        tool_message("unknown command %.*s, did you mean %s? (a space before / makes it a message)", (int)len, line,
                     near);
    else
        tool_message("unknown command %.*s, see /help (a space before / makes it a message)", (int)len, line);
    return TOOL_GO_ON;
}
