/* SPDX-License-Identifier: Apache-2.0 */
/* tool_chat_set.c - /set of `hunch chat`: changes those flags of tool_flags.c that an answer depends on during a conversation. The values
 * are those of the flags. A change that fails has no effect. */
#include <inttypes.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/chat/tool_chat.h"
#include "app/tool_flags.h"
#include "app/tool_check_files.h"

/* What a change needs: a new request or a new engine. SWITCH_OFF: "on" means that the flag is not given. */
enum { REQUEST, ENGINE, SWITCH, SWITCH_OFF };

#define AT(field) offsetof(hunch_request, field)
static const struct setting {
    const char *name, *flag; /* name NULL: a chat has no such setting */
    int kind;
    size_t at;    /* in the request; 0: its value is shown as it was given */
    double usual; /* what 0 in the request stands for, as the flag's help says */
} settings[] = {
#define ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, NONE, USUAL, OFF, FLAG, ...) \
    {SET, FLAG, TOOL_##KIND == TOOL_SWITCH ? SWITCH : REQUEST, TOOL_##KIND == TOOL_TEXTS ? 0 : AT(MEMBER), USUAL},
    HN_REQUEST_PARAMETERS(ROW)
#undef ROW
    {"json_schema", "--json-schema", REQUEST, 0, 0},
    {"json_object", "--json-object", SWITCH, 0, 0},
    {"regex", "--regex", REQUEST, 0, 0},
    {"grammar", "--grammar", REQUEST, 0, 0},
    {"loop_guard", "--no-loop-guard", SWITCH_OFF, 0, 0},
    {"keep", "--keep", REQUEST, 0, 0},
    {"context", "--context", ENGINE, 0, 0},
    {"draft", "--draft", ENGINE, 0, 0},
    {"verify", "--verify", ENGINE, 0, 0},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const tool_flag *flag_of(const struct setting *s) {
    return tool_flag_find(s->flag, strlen(s->flag), TOOL_CHAT);
}

/* ---- showing --------------------------------------------------------------------------------------------------- */

static void texts_show(const tool_texts *t) {
    for (int i = 0; i < t->n; i++)
        fprintf(stderr, "%s%s", i ? "+" : "", t->items[i]);
}

/* The value in the options, or the default. */
static void option_show(const tool_chat_state *c, const tool_flag *f) {
    const void *at = (const char *)&c->o + f->at;
    const tool_texts *texts = at;
    if (f->kind == TOOL_TEXTS && texts->n)
        texts_show(texts);
    else if (f->kind == TOOL_TEXTS)
        fputs(strcmp(f->name, "--draft") == 0 ? "auto" : "none", stderr);
    else if (f->kind == TOOL_TEXT)
        fputs(*(const char *const *)at ? *(const char *const *)at : "none", stderr);
    else if (f->kind == TOOL_CHOICE)
        fputs(*(const int *)at == TOOL_UNSET ? "default" : f->choices[*(const int *)at], stderr);
    else
        fprintf(stderr, "%d",
                *(const int *)at != TOOL_UNSET      ? *(const int *)at
                : strcmp(f->name, "--context") == 0 ? c->context
                                                    : 0);
}

static void setting_show(const tool_chat_state *c, const struct setting *s) {
    const void *at = (const char *)&c->request + s->at;
    const tool_flag *f = flag_of(s);
    fprintf(stderr, "%-20s ", s->name);
    if (s->kind == SWITCH || s->kind == SWITCH_OFF)
        fputs(*(const bool *)((const char *)&c->o + f->at) == (s->kind == SWITCH) ? "on" : "off", stderr);
    else if (!s->at)
        option_show(c, f);
    else if (f->kind == TOOL_INT64)
        fprintf(stderr, "%" PRIu64, *(const uint64_t *)at);
    else if (f->kind == TOOL_REAL || f->kind == TOOL_ABOVE)
        fprintf(stderr, "%g", *(const double *)at != 0 ? *(const double *)at : s->usual);
    else
        fprintf(stderr, "%d", *(const int *)at ? *(const int *)at : f->kind == TOOL_LIMIT ? -1 : (int)s->usual);
    fputc('\n', stderr);
}

/* ---- changing -------------------------------------------------------------------------------------------------- */

/* -1, or an exit code after a message. */
static int value_set(tool_chat_state *c, tool_options *o, const struct setting *s, const char *value) {
    const tool_flag *f = flag_of(s);
    const bool on = strcmp(value, "on") == 0;
    tool_option_unset(o, f);
    if (strcmp(value, "default") == 0)
        return -1;
    if (s->kind != SWITCH && s->kind != SWITCH_OFF) {
        json_t *word = json_string(value); /* options point to their values */
        if (!word)
            return tool_usage("chat: the value of %s is not valid UTF-8", s->name);
        json_array_append_new(c->words, word);
        return tool_option_set(o, f, s->name, json_string_value(word));
    }
    if (!on && strcmp(value, "off") != 0)
        return tool_usage("chat: %s %s is unknown: expected on, off or default", s->name, value);
    *(bool *)((char *)o + f->at) = on == (s->kind == SWITCH);
    return -1;
}

/* Makes the request of these options; the seed stays unless it is the setting that changes. */
static int request_change(tool_chat_state *c, const tool_options *o, bool seed) {
    hunch_request r;
    tool_request_init(&r, c->model, o, 0);
    if (!seed)
        r.sampling.seed = c->request.sampling.seed;
    int code = tool_request_try(c->engine, &r);
    if (!code)
        code = tool_chat_grammar(c, o);
    if (!code)
        c->request = r;
    return code;
}

/* The old engine is closed before the new one opens, so that memory need not hold both. */
static int engine_change(tool_chat_state *c, const tool_options *o) {
    const tool_options before = c->o;
    const uint64_t seed = c->request.sampling.seed;
    int code = tool_check_files(o, tool_command_find(TOOL_CHAT));
    if (code >= 0)
        return code;
    hunch_engine_close(&c->engine);
    c->o = *o;
    code = tool_chat_engine_open(c);
    if (code) {
        c->o = before;
        const int again = tool_chat_engine_open(c);
        code = again ? again : code;
    }
    c->request.sampling.seed = seed;
    return code;
}

static int change(tool_chat_state *c, const struct setting *s, const char *value) {
    const tool_flag *f = flag_of(s);
    tool_options before = c->o, next = c->o;
    int code = value_set(c, &next, s, value);
    if (code < 0)
        code = tool_options_check(&next);
    if (code < 0)
        code = s->kind == ENGINE ? engine_change(c, &next) : request_change(c, &next, f->kind == TOOL_INT64);
    if (code) {
        tool_option_free(&next, f);
        return code;
    }
    c->o = next;
    tool_option_free(&before, f);
    tool_conversation_restore(&c->talk); /* it may fit now */
    return 0;
}

static const struct setting *setting_find(const char *name) {
    const char *names[SETTINGS];
    size_t n = 0;
    for (int i = 0; i < SETTINGS; i++) {
        if (!settings[i].name)
            continue;
        names[n++] = settings[i].name;
        if (strcmp(name, settings[i].name) == 0)
            return &settings[i];
    }
    const char *near = hn_nearest(name, names, n);
    if (near)
        tool_message("there is no setting %s, did you mean %s?", name, near);
    else
        tool_message("there is no setting %s: /set lists them", name);
    return NULL;
}

int tool_chat_set(tool_chat_state *c, const char *words) {
    char name[64];
    size_t len = strcspn(words, " \t\n="), n = 0;
    for (size_t i = 0; i < len && n + 1 < sizeof name; i++)
        if (words[i] != '-' || n) /* accepts the flag's name, too */
            name[n++] = words[i] == '-' ? '_' : words[i];
    name[n] = 0;
    const char *value = words + len + strspn(words + len, " \t\n=");
    if (!*words) {
        for (int i = 0; i < SETTINGS; i++)
            if (settings[i].name)
                setting_show(c, &settings[i]);
        return 0;
    }
    const struct setting *s = setting_find(strcmp(name, "n") == 0 ? "max_tokens" : name);
    if (!s)
        return HUNCH_USAGE;
    const int code = *value ? change(c, s, value) : 0;
    if (!code && !tool_quiet)
        setting_show(c, s);
    return code;
}
