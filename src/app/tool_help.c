/* SPDX-License-Identifier: Apache-2.0 */
/* tool_help.c - see tool_help.h. Defines the order of a page; the texts are in the tables. */
#include "app/tool_help.h"

#include <string.h>

#include "app/tool_drafts.h"
#include "app/tool_flags.h"
#include "app/tool_options.h"
#include "app/tool_train.h"

/* ---- parts ----------------------------------------------------------------------------------------------------- */

void tool_write_commands(tool_page *p) {
    tool_page_items(p, 12);
    for (const tool_command *c = tool_commands; c->name; c++)
        tool_page_item(p, c->name, NULL, c->summary, false);
}

/* "-m, --model" and " MODEL". A short name comes first. */
static void flag_left(const tool_flag *f, char name[80], char value[40]) {
    const bool shorter = f->alias && f->alias[1] != '-';
    snprintf(name, 80, "%s%s%s", shorter ? f->alias : f->name, f->alias ? ", " : "",
             !f->alias ? "" : shorter ? f->name : f->alias);
    snprintf(value, 40, "%s%s", f->value && tool_flag_needs_value(f) ? " " : "", f->value ? f->value : "");
}

/* basic: it is among the most used flags of the group, which come first; else among the others. */
static bool flag_shown(const tool_flag *f, const tool_command *c, unsigned group, bool basic) {
    return (f->commands & c->bit) && (f->group & ~(unsigned)TOOL_BASIC) == group && !(f->group & TOOL_BASIC) == !basic;
}

void tool_write_flags(tool_page *p, const tool_command *c, bool basic) {
    char name[80], value[40];
    tool_page_items(p, 26);
    for (unsigned group = 0; tool_groups[group]; group++) {
        bool begun = false;
        for (int i = 0; i < (basic ? 1 : 2) * tool_n_flags; i++) {
            const tool_flag *f = &tool_flags[i % tool_n_flags];
            if (!flag_shown(f, c, group, i < tool_n_flags))
                continue;
            if (!begun)
                tool_page_heading(p, tool_groups[group]);
            begun = true;
            flag_left(f, name, value);
            tool_page_item(p, name, value[0] ? value : NULL, f->help, false);
        }
    }
}

void tool_write_kinds(tool_page *p, const tool_command *c) {
    if (c->bit != TOOL_TRAIN)
        return;
    tool_page_heading(p, "Kinds");
    tool_page_items(p, 12);
    for (const tool_train_word *w = tool_train_words; w->name; w++)
        tool_page_item(p, w->name, NULL, w->about, false);
}

void tool_write_examples(tool_page *p, const tool_example *e, int most) {
    if (!e->line)
        return;
    tool_page_heading(p, "Examples");
    for (int i = 0; i < most && e[i].line; i++)
        tool_page_example(p, e[i].what, e[i].line);
}

/* WORD stands for one of several words, which the text lists. help: NULL leaves it at these. */
static void draft_key_write(tool_page *p, const hn_drafter_key *key, const char *help) {
    const bool words = strchr(key->value, '|') != NULL;
    char value[80], text[300];
    size_t n = 0;
    snprintf(value, sizeof value, "=%s", words ? "WORD" : key->value);
    for (const char *c = key->value; words && *c && n + 3 < sizeof text; c++)
        n += (size_t)snprintf(text + n, sizeof text - n, *c == '|' ? ", " : "%c", *c);
    snprintf(text + n, sizeof text - n, "%s%s", words && help ? ": " : "", help ? help : "");
    tool_page_item(p, key->name, value, text, true);
}

/* Of a kind its own keys, and where a shared one has other values these; what all draft heads share is at the end, once. */
static void drafts_write(tool_page *p) {
    tool_draft_kind k;
    for (int i = 0; tool_draft_kind_at(i, &k); i++) {
        if (!p->roff)
            putchar('\n');
        tool_page_items(p, 18);
        tool_page_item(p, k.name, k.path, k.help, false);
        for (const hn_drafter_key *key = k.keys; key->name; key++) {
            const hn_drafter_key *shared = tool_draft_key_shared(key);
            if (!shared)
                draft_key_write(p, key, key->help);
            else if (strcmp(shared->value, key->value) != 0)
                draft_key_write(p, key, NULL);
        }
    }
    if (!p->roff)
        putchar('\n');
    tool_page_text(p, "Every draft head (:HEAD) also has these; where its own words are listed above, those:");
    tool_page_items(p, 18);
    for (int i = 0; tool_draft_kind_at(i, &k); i++)
        for (const hn_drafter_key *key = k.keys; key->name; key++)
            if (tool_draft_key_shared(key) == key)
                draft_key_write(p, key, key->help);
}

void tool_write_topic(tool_page *p, const tool_topic *t) {
    tool_page_text(p, t->text ? t->text : tool_drafts_text);
    if (!t->text) {
        drafts_write(p);
        return;
    }
    tool_page_items(p, 21);
    for (size_t i = 0; i < sizeof t->items / sizeof *t->items && t->items[i].name; i++)
        tool_page_item(p, t->items[i].name, NULL, t->items[i].text, false);
}

/* ---- pages ----------------------------------------------------------------------------------------------------- */

void tool_help_all(int color) {
    tool_page p = tool_page_terminal(color);
    char name[40];
    snprintf(name, sizeof name, "hunch %s", hunch_version());
    tool_page_title(&p, name, "faster answers of a language model, with identical text");
    putchar('\n');
    tool_page_text(&p, "A cheap drafter guesses several tokens ahead; the model checks all the guesses in one pass, "
                       "and keeps exactly those that it would have generated itself.");
    tool_page_heading(&p, "Usage");
    tool_page_synopsis(&p, "hunch", "COMMAND [MODEL] [FLAG...]");
    tool_page_heading(&p, "Commands");
    tool_write_commands(&p);
    tool_write_examples(&p, tool_first_examples, TOOL_MOST_EXAMPLES);
    tool_page_heading(&p, "Where models come from");
    tool_page_text(&p, "MODEL is a GGUF file, a Hugging Face folder, or the name of something that Hugging Face's "
                       "tools (org/name, org/name:Q4_K_M), Ollama (name:tag) or llama.cpp have downloaded.");
    tool_page_heading(&p, "More help");
    tool_page_items(&p, 22);
    tool_page_item(&p, "hunch COMMAND -h", NULL, "a command's most used flags; --help: all of them", false);
    for (const tool_topic *t = tool_topics; t->name; t++) {
        snprintf(name, sizeof name, "hunch help %s", t->name);
        tool_page_item(&p, name, NULL, t->summary, false);
    }
}

static int flags_count(const tool_command *c) {
    int n = 0;
    for (int i = 0; i < tool_n_flags; i++)
        n += (tool_flags[i].commands & c->bit) != 0;
    return n;
}

void tool_help_command(const tool_command *c, bool basic, int color) {
    tool_page p = tool_page_terminal(color);
    char command[40];
    snprintf(command, sizeof command, "hunch %s", c->name);
    tool_page_title(&p, command, c->summary);
    tool_page_heading(&p, "Usage");
    tool_page_synopsis(&p, command, c->synopsis);
    if (!basic) {
        putchar('\n');
        tool_page_text(&p, c->text);
    }
    tool_write_kinds(&p, c);
    tool_write_flags(&p, c, basic);
    if (basic)
        printf("\nhunch %s --help lists all %d flags.\n", c->name, flags_count(c));
    else
        tool_write_examples(&p, c->examples, TOOL_MOST_EXAMPLES);
}

static void topic_show(const tool_topic *t, int color) {
    tool_page p = tool_page_terminal(color);
    char name[40];
    snprintf(name, sizeof name, "hunch: %s", t->name);
    tool_page_title(&p, name, t->summary);
    putchar('\n');
    tool_write_topic(&p, t);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int subject_show(const char *name, int color) {
    const tool_command *c = tool_command_named(name);
    if (c) {
        tool_help_command(c, false, color);
        return tool_done(HUNCH_OK);
    }
    for (const tool_topic *t = tool_topics; t->name; t++)
        if (strcmp(t->name, name) == 0) {
            topic_show(t, color);
            return tool_done(HUNCH_OK);
        }
    const char *near = tool_command_near(name, true);
    return near ? tool_usage("help: no command or topic %s, did you mean %s?", name, near)
                : tool_usage("help: no command or topic %s, see hunch help", name);
}

int tool_help(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_HELP, argc, argv);
    if (code >= 0)
        return code;
    if (o.positional) {
        code = subject_show(o.positional, o.color);
    } else {
        tool_help_all(o.color);
        code = tool_done(HUNCH_OK);
    }
    tool_options_fini(&o);
    return code;
}
